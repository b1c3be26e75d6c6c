//! Replaces a file as one step: a reader sees the old or the new, never half.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use outlast_pty::system;
use rustix::fs::{AtFlags, Mode, OFlags, fstat, openat, renameat, unlinkat};
use rustix::io::Errno;

/// Whether the bytes must be on the disk before the name points to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Survives a crash of ours, but maybe not of the machine.
    Process,
    /// Survives a crash of the machine.
    Machine,
}

/// Writes `bytes` to a new file beside `name` in `dir`, and puts it in its place.
///
/// # Errors
/// `ENOSPC` and its kin; `name` is then as it was.
pub fn replace(dir: impl AsFd, name: &str, bytes: &[u8], durability: Durability) -> Result<(), Errno> {
    let dir = dir.as_fd();
    let fresh = format!(".{name}.{}", std::process::id());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(dir, &fresh, flags, Mode::RUSR | Mode::WUSR)?;
    let written = write_all(&file, bytes).and_then(|()| match durability {
        Durability::Process => Ok(()),
        Durability::Machine => system::sync_data(&file),
    });
    let result = written.and_then(|()| renameat(dir, &fresh, dir, name));
    if result.is_err() {
        let _ = unlinkat(dir, &fresh, AtFlags::empty());
    }
    result
}

/// Writes a file of a folder that nobody looks at yet. What it holds already is shorter: it is not cut off first, which
/// would have some file systems bring it to the disk at once.
///
/// # Errors
/// `ENOSPC` and its kin.
pub(crate) fn write_new(dir: impl AsFd, name: &str, bytes: &[u8]) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    write_all(openat(dir, name, flags, Mode::RUSR | Mode::WUSR)?, bytes)
}

/// A file made ahead of time, to take another's place when that must be quick: to make one can take a disk longer than
/// all that is written to it.
///
/// It changes places with the other, and that stays under its name: to put one file over another has some file systems
/// bring the new one to the disk, and give back the room of the old one, before they go on. So until somebody sees to that,
/// it does not survive the machine.
#[derive(Debug)]
pub(crate) struct PreparedFile {
    name: String,
    file: OwnedFd,
}

/// What another took the place of, to be removed when there is time.
#[derive(Debug)]
#[must_use]
pub(crate) struct Displaced {
    name: String,
}

impl PreparedFile {
    /// Makes one beside `name`.
    pub(crate) fn make(dir: impl AsFd, name: &str) -> Result<Self, Errno> {
        let name = format!(".{name}.next");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let make = || openat(&dir, &name, flags, Mode::RUSR | Mode::WUSR);
        let file = match make() {
            // Never a file that was there: a process that has it open would see other contents.
            Err(Errno::EXIST) => unlinkat(&dir, &name, AtFlags::empty()).and_then(|()| make()),
            made => made,
        }?;
        Ok(Self { name, file })
    }

    /// Holds room for this many bytes, where the file system can.
    pub(crate) fn reserve(&self, bytes: usize) {
        let _ = system::reserve(&self.file, 0, bytes as u64);
    }

    /// Writes it, and puts it in the place of `name`; returns the other, and this one as it is still open.
    pub(crate) fn put(self, dir: impl AsFd, name: &str, bytes: &[u8]) -> Result<(Displaced, OwnedFd), Errno> {
        let old = Displaced { name: self.name };
        match write_all(&self.file, bytes).and_then(|()| exchange(dir.as_fd(), &old.name, name)) {
            Ok(()) => Ok((old, self.file)),
            Err(error) => {
                old.remove(dir);
                Err(error)
            }
        }
    }

    /// It is not needed.
    pub(crate) fn remove(self, dir: impl AsFd) {
        Displaced { name: self.name }.remove(dir);
    }
}

impl Displaced {
    pub(crate) fn remove(self, dir: impl AsFd) {
        let _ = unlinkat(dir, &self.name, AtFlags::empty());
    }
}

#[cfg(all(target_os = "linux", not(outlast_portable)))]
fn exchange(dir: BorrowedFd<'_>, new: &str, name: &str) -> Result<(), Errno> {
    use rustix::fs::{RenameFlags, renameat_with};
    match renameat_with(dir, new, dir, name, RenameFlags::EXCHANGE) {
        // There is none yet, or the file system can't.
        Err(Errno::NOENT | Errno::INVAL | Errno::NOSYS) => renameat(dir, new, dir, name),
        done => done,
    }
}

/// Elsewhere it takes the other's place.
#[cfg(any(not(target_os = "linux"), outlast_portable))]
fn exchange(dir: BorrowedFd<'_>, new: &str, name: &str) -> Result<(), Errno> {
    renameat(dir, new, dir, name)
}

/// Writes over a small file in its place, for when it can't be replaced: a reader may see half of it for a moment. It only
/// does so where its blocks are there already or can be allocated, and what it held before stays otherwise.
///
/// # Errors
/// Whatever `write` says.
pub(crate) fn rewrite(file: impl AsFd, bytes: &[u8], durability: Durability) -> Result<(), Errno> {
    let stat = fstat(&file)?;
    let size = usize::try_from(stat.st_size).unwrap_or(0);
    let mut bytes = bytes.to_vec();
    // Blanks for what is longer now: it is cut off by nobody who could be killed before.
    bytes.resize(bytes.len().max(size), b' ');
    if u64::try_from(stat.st_blocks).unwrap_or(0) * 512 < bytes.len() as u64 {
        system::reserve(&file, 0, bytes.len() as u64)?;
    }
    let mut at = 0;
    while at < bytes.len() {
        match rustix::io::pwrite(&file, &bytes[at..], at as u64) {
            Ok(n) => at += n,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    match durability {
        Durability::Process => Ok(()),
        Durability::Machine => system::sync_data(&file),
    }
}

/// Writes all bytes, or says why not.
///
/// # Errors
/// Whatever `write` says.
pub fn write_all(file: impl AsFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(&file, bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Room that is held after the end of a file which must still grow when the disk is full.
const ROOM: u64 = 16 << 10;

/// Holds room after a file's end, where the file system can; asked again after each write, it costs little.
pub(crate) fn hold_room_after(file: impl AsFd, end: u64) {
    let held = fstat(&file).map_or(0, |stat| u64::try_from(stat.st_blocks).unwrap_or(0) * 512);
    if held < end + ROOM / 2 {
        let _ = system::reserve(&file, end, ROOM);
    }
}

/// Reads a whole small file, refusing to follow a link.
///
/// # Errors
/// `ENOENT`; `ELOOP` when it is a link; `EFBIG` when it is larger than `limit`.
pub fn read_small(dir: impl AsFd, name: &str, limit: usize) -> Result<Vec<u8>, Errno> {
    let file = openat(&dir, name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    read_open(&file, limit)
}

/// Reads a whole small file that is open, from where it stands.
///
/// # Errors
/// `EFBIG` when it is larger than `limit`.
pub(crate) fn read_open(file: impl AsFd, limit: usize) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::new();
    let mut chunk = [0_u8; 8192];
    // Most files fit into the first; larger ones are not read by the spoonful.
    let mut large = Vec::new();
    loop {
        let room = if large.is_empty() { &mut chunk[..] } else { &mut large[..] };
        match rustix::io::read(&file, &mut *room) {
            Ok(0) => return Ok(bytes),
            Ok(n) => {
                bytes.extend_from_slice(&room[..n]);
                if n == room.len() && large.is_empty() {
                    large = vec![0; 256 << 10];
                }
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        if bytes.len() > limit {
            return Err(Errno::FBIG);
        }
    }
}
