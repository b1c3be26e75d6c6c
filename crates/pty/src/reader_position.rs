//! How far a reader has come: a number in a file, which advances in the same system call that hands bytes
//! over.
//!
//! `splice` moves bytes from a file into a pipe and stores the new offset where its caller says. Here that is
//! a memory mapping of the file with the number, and the bytes lie in their file so that they end at an
//! offset that encodes the number. If the process is killed, either the bytes were handed over and its number
//! says so, or neither: a system call that has begun to move bytes is not interrupted by a signal before it
//! has stored the offset. (The page is present and writable, because it was written a moment before. Only if
//! it is written back to the disk in just that moment, and the process is killed at the same time, could the
//! offset not be stored.)

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::fstat;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A number `n` is stored as `n << SHIFT`, the offset at which its bytes end.
const SHIFT: u32 = 20;
/// The most bytes that are handed over at once.
pub const MAX_HANDOVER_BYTES: usize = (1 << SHIFT) - 1;
const WORDS: usize = 2;
const SIZE: usize = WORDS * 8;

/// A reader's position in a file, and a second number for the caller.
#[derive(Debug)]
pub struct ReaderPosition {
    file: OwnedFd,
    words: &'static [AtomicU64; WORDS],
}

impl ReaderPosition {
    /// Maps a file; an empty one starts at 0. Returns whether it was new.
    ///
    /// # Errors
    /// A full disk, or a file that is too short and not empty.
    pub fn new(file: OwnedFd) -> io::Result<(Self, bool)> {
        let size = fstat(&file)?.st_size;
        let new = size == 0;
        if new {
            // Written, not only extended: the disk must have space for what is stored through the mapping.
            rustix::io::pwrite(&file, &[0; SIZE], 0)?;
        } else if size < SIZE as i64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a reader's position"));
        }
        // SAFETY: a fresh shared mapping of at least SIZE bytes of a file, page-aligned, is a valid array of
        // AtomicU64. It is unmapped only in `drop`, and no reference to it leaves `self`.
        #[expect(unsafe_code, reason = "a mapped file has no safe wrapper")]
        let words = unsafe {
            let flags = ProtFlags::READ | ProtFlags::WRITE;
            let at = mmap(std::ptr::null_mut(), SIZE, flags, MapFlags::SHARED, &file, 0)?;
            &*at.cast::<[AtomicU64; WORDS]>()
        };
        Ok((Self { file, words }, new))
    }

    /// The number of the last piece that was handed over completely.
    #[must_use]
    pub fn number(&self) -> u64 {
        number_of(self.words[0].load(Ordering::Acquire))
    }

    /// Advances to a number; never goes back.
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

    /// Syncs the numbers to the disk, so that they survive a crash of the machine.
    pub fn sync(&self) {
        // Pages that were changed through a mapping are written back with the file.
        let _ = crate::system::sync_data(&self.file);
    }

    /// Moves bytes into a pipe and advances to a number, in one step as far as a kill can observe. If the
    /// pipe is nearly full, more than a page may go in two steps; between them the position still says that
    /// nothing was handed over.
    ///
    /// # Errors
    /// `Unsupported`, with nothing done, if it is not a pipe; `BrokenPipe` if nothing reads it.
    #[cfg(all(target_os = "linux", not(outlast_portable)))]
    pub fn hand_over(&self, pipe: impl AsFd, bytes: &[u8], number: u64) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, poll};
        let pipe = pipe.as_fd();
        let is_pipe = rustix::fs::FileType::from_raw_mode(fstat(pipe)?.st_mode).is_fifo();
        if !is_pipe || bytes.is_empty() || bytes.len() > MAX_HANDOVER_BYTES || number >= 1 << (62 - SHIFT) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let end = number << SHIFT;
        let start = end - bytes.len() as u64;
        let source = rustix::fs::memfd_create("handed-over", rustix::fs::MemfdFlags::CLOEXEC)?;
        if rustix::io::pwrite(&source, bytes, start)? < bytes.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        // This also makes the page present and writable, so that the kernel can store the offset at any time.
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
                // A kernel that cannot splice like this.
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

    /// Other systems have no such system call.
    ///
    /// # Errors
    /// Always `Unsupported`.
    #[cfg(any(not(target_os = "linux"), outlast_portable))]
    pub fn hand_over(&self, _: impl AsFd, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Drop for ReaderPosition {
    fn drop(&mut self) {
        let at = std::ptr::from_ref(self.words).cast_mut().cast();
        // SAFETY: mapped in `new` with this size, and there is no other reference to it.
        #[expect(unsafe_code, reason = "a mapped file has no safe wrapper")]
        let _ = unsafe { munmap(at, SIZE) };
    }
}

/// The number that an offset stands for.
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

#[cfg(all(target_os = "linux", not(outlast_portable)))]
fn splice_from(source: &OwnedFd, offset: &AtomicU64, pipe: impl AsFd, len: usize) -> io::Result<usize> {
    use std::os::fd::AsRawFd;
    let (from, to) = (source.as_raw_fd(), pipe.as_fd().as_raw_fd());
    // SAFETY: both are open, and the kernel reads and writes the offset as one 64-bit number that outlives
    // the call. Others only access it atomically.
    #[expect(unsafe_code, reason = "the offset must be the shared number itself, not a copy on our stack")]
    let moved = unsafe {
        libc::splice(from, offset.as_ptr().cast::<libc::loff_t>(), to, std::ptr::null_mut(), len, 0)
    };
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}

#[cfg(all(target_os = "linux", not(outlast_portable)))]
#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn position() -> ReaderPosition {
        let file = rustix::fs::memfd_create("place", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let (place, new) = ReaderPosition::new(file).unwrap();
        assert!(new);
        place
    }

    #[test]
    fn the_position_advances_with_the_bytes() {
        let (mut from, to) = io::pipe().unwrap();
        let position = position();
        position.hand_over(&to, b"one\n", 1).unwrap();
        assert_eq!(position.number(), 1);
        position.hand_over(&to, &[b'x'; 5000], 7).unwrap();
        assert_eq!(position.number(), 7);
        drop(to);
        let mut got = Vec::new();
        from.read_to_end(&mut got).unwrap();
        assert_eq!(got, [&b"one\n"[..], &[b'x'; 5000]].concat());
        let (again, new) = ReaderPosition::new(position.file.try_clone().unwrap()).unwrap();
        assert_eq!((again.number(), new), (7, false));
        again.set_mark(5);
        let mut bytes = [0; SIZE];
        rustix::io::pread(&position.file, &mut bytes, 0).unwrap();
        assert_eq!((number_in(&bytes), mark_in(&bytes)), (Some(7), Some(5)));
    }

    #[test]
    fn bytes_that_are_not_read_were_not_handed_over() {
        let (from, to) = io::pipe().unwrap();
        let position = position();
        drop(from);
        assert_eq!(position.hand_over(&to, b"x", 3).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(position.number(), 2, "what came before is done");
        let file = rustix::fs::memfd_create("no pipe", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        assert_eq!(position.hand_over(&file, b"x", 3).unwrap_err().kind(), io::ErrorKind::Unsupported);
    }

    #[test]
    fn a_full_pipe_is_waited_for() {
        let (mut from, to) = io::pipe().unwrap();
        let position = position();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 1..=200 {
                    position.hand_over(&to, &[b'x'; 1000], number).unwrap();
                }
            });
            let mut got = vec![0; 200_000];
            from.read_exact(&mut got).unwrap();
        });
        assert_eq!(position.number(), 200);
    }
}
