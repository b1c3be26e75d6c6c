//! How far a reader has come: a number in a file, which moves on in the same system call that hands bytes over.
//!
//! `splice` moves bytes from a file into a pipe and writes the new offset where its caller says. Here that is memory
//! that *is* the file with the number, and the bytes lie in their file so that they end at an offset which is the
//! number. A process that is killed has handed the bytes over and its place says so, or neither: a system call
//! that has begun to move bytes is not cut short by a signal before it has written the offset. (The page is there and
//! writable, because it was written a moment before. Only if the disk takes it for itself in just that moment, and the
//! process is killed in the same one, would the offset have nowhere to go.)

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::fstat;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A number `n` is kept as `n << SHIFT`, the offset at which its bytes end.
const SHIFT: u32 = 20;
/// More than this is not handed over as one piece.
pub const LONGEST: usize = (1 << SHIFT) - 1;
const WORDS: usize = 2;
const SIZE: usize = WORDS * 8;

/// A place in a file, and a second number beside it that is the caller's.
#[derive(Debug)]
pub struct Place {
    file: OwnedFd,
    words: &'static [AtomicU64; WORDS],
}

impl Place {
    /// Maps a file; an empty one begins at 0. Returns whether it was new.
    ///
    /// # Errors
    /// A full disk, or a file that is too short and not empty.
    pub fn new(file: OwnedFd) -> io::Result<(Self, bool)> {
        let size = fstat(&file)?.st_size;
        let new = size == 0;
        if new {
            // Written, not only grown: there must be room on the disk for what is stored through the mapping.
            rustix::io::pwrite(&file, &[0; SIZE], 0)?;
        } else if size < SIZE as i64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "that is no reader's place"));
        }
        // SAFETY: a fresh shared mapping of at least SIZE bytes of a file, page-aligned, is a valid array of
        // AtomicU64; it is given back only in `drop`, and no reference to it leaves `self`.
        #[expect(unsafe_code, reason = "a mapped file has no safe wrapper")]
        let words = unsafe {
            let flags = ProtFlags::READ | ProtFlags::WRITE;
            let at = mmap(std::ptr::null_mut(), SIZE, flags, MapFlags::SHARED, &file, 0)?;
            &*at.cast::<[AtomicU64; WORDS]>()
        };
        Ok((Self { file, words }, new))
    }

    /// The number of what was handed over last, as a whole.
    #[must_use]
    pub fn number(&self) -> u64 {
        number_of(self.words[0].load(Ordering::Acquire))
    }

    /// Moves on to a number; never back.
    pub fn raise(&self, number: u64) {
        self.words[0].fetch_max(number << SHIFT, Ordering::AcqRel);
    }

    /// The caller's own number.
    #[must_use]
    pub fn mark(&self) -> u64 {
        self.words[1].load(Ordering::Acquire)
    }

    /// Sets the caller's own number.
    pub fn set_mark(&self, mark: u64) {
        self.words[1].store(mark, Ordering::Release);
    }

    /// Makes sure that the numbers survive the machine.
    pub fn sync(&self) {
        // Pages that were changed through a mapping are written back with the file.
        let _ = rustix::fs::fdatasync(&self.file);
    }

    /// Moves bytes into a pipe and moves on to a number, in one step for whoever kills us. In a pipe that is nearly
    /// full, bytes of more than a page may go in two steps; between them the place still says that they did not go.
    ///
    /// # Errors
    /// `Unsupported`, with nothing done, when that is no pipe; `BrokenPipe` when nobody reads it.
    #[cfg(target_os = "linux")]
    pub fn hand_over(&self, pipe: impl AsFd, bytes: &[u8], number: u64) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, poll};
        let pipe = pipe.as_fd();
        let is_pipe = rustix::fs::FileType::from_raw_mode(fstat(pipe)?.st_mode).is_fifo();
        if !is_pipe || bytes.is_empty() || bytes.len() > LONGEST || number >= 1 << (62 - SHIFT) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let end = number << SHIFT;
        let start = end - bytes.len() as u64;
        let source = rustix::fs::memfd_create("handed-over", rustix::fs::MemfdFlags::CLOEXEC)?;
        if rustix::io::pwrite(&source, bytes, start)? < bytes.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        // Also makes the page present and writable, so that the kernel can store the offset at any time.
        self.words[0].store(start, Ordering::Release);
        loop {
            let at = self.words[0].load(Ordering::Acquire);
            let left = usize::try_from(end.saturating_sub(at)).unwrap_or(0);
            if left == 0 {
                return Ok(());
            }
            match splice_from(&source, &self.words[0], pipe, left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A kernel that does not move bytes like this.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) => {
                    return Err(io::ErrorKind::Unsupported.into());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    poll(&mut [PollFd::from_borrowed_fd(pipe, PollFlags::OUT)], None)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Elsewhere there is no such system call.
    ///
    /// # Errors
    /// Always `Unsupported`.
    #[cfg(not(target_os = "linux"))]
    pub fn hand_over(&self, _: impl AsFd, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let at = std::ptr::from_ref(self.words).cast_mut().cast();
        // SAFETY: mapped in `new` with this size, and nobody else has a reference to it.
        #[expect(unsafe_code, reason = "a mapped file has no safe wrapper")]
        let _ = unsafe { munmap(at, SIZE) };
    }
}

/// The number that a place in a file stands for.
fn number_of(place: u64) -> u64 {
    place >> SHIFT
}

/// The number in a file's bytes, without mapping it.
#[must_use]
pub fn number_in(bytes: &[u8]) -> Option<u64> {
    Some(number_of(u64::from_ne_bytes(bytes.first_chunk::<8>().copied()?)))
}

/// The caller's own number in a file's bytes, without mapping it.
#[must_use]
pub fn mark_in(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(8..16)?.first_chunk::<8>().copied()?))
}

#[cfg(target_os = "linux")]
fn splice_from(source: &OwnedFd, offset: &AtomicU64, pipe: impl AsFd, len: usize) -> io::Result<usize> {
    use std::os::fd::AsRawFd;
    let (from, to) = (source.as_raw_fd(), pipe.as_fd().as_raw_fd());
    // SAFETY: both are open, and the kernel reads and writes the offset as one number of 64 bits that lives longer
    // than the call. Others only look at it atomically.
    #[expect(unsafe_code, reason = "the offset must be the shared number itself, not a copy on our stack")]
    let moved = unsafe {
        libc::splice(from, offset.as_ptr().cast::<libc::loff_t>(), to, std::ptr::null_mut(), len, 0)
    };
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn place() -> Place {
        let file = rustix::fs::memfd_create("place", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let (place, new) = Place::new(file).unwrap();
        assert!(new);
        place
    }

    #[test]
    fn the_place_moves_with_the_bytes() {
        let (mut from, to) = io::pipe().unwrap();
        let place = place();
        place.hand_over(&to, b"one\n", 1).unwrap();
        assert_eq!(place.number(), 1);
        place.hand_over(&to, &[b'x'; 5000], 7).unwrap();
        assert_eq!(place.number(), 7);
        drop(to);
        let mut got = Vec::new();
        from.read_to_end(&mut got).unwrap();
        assert_eq!(got, [&b"one\n"[..], &[b'x'; 5000]].concat());
        let (again, new) = Place::new(place.file.try_clone().unwrap()).unwrap();
        assert_eq!((again.number(), new), (7, false));
        again.set_mark(5);
        let mut bytes = [0; SIZE];
        rustix::io::pread(&place.file, &mut bytes, 0).unwrap();
        assert_eq!((number_in(&bytes), mark_in(&bytes)), (Some(7), Some(5)));
    }

    #[test]
    fn what_nobody_takes_was_not_handed_over() {
        let (from, to) = io::pipe().unwrap();
        let place = place();
        drop(from);
        assert_eq!(place.hand_over(&to, b"x", 3).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(place.number(), 2, "what came before it is done with");
        let file = rustix::fs::memfd_create("no pipe", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        assert_eq!(place.hand_over(&file, b"x", 3).unwrap_err().kind(), io::ErrorKind::Unsupported);
    }

    #[test]
    fn a_full_pipe_is_waited_for() {
        let (mut from, to) = io::pipe().unwrap();
        let place = place();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 1..=200 {
                    place.hand_over(&to, &[b'x'; 1000], number).unwrap();
                }
            });
            let mut got = vec![0; 200_000];
            from.read_exact(&mut got).unwrap();
        });
        assert_eq!(place.number(), 200);
    }
}
