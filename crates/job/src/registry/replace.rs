//! Replaces a file as one step: whoever reads it sees the old or the new, never half.

use std::os::fd::AsFd;

use rustix::fs::{
    AtFlags, FallocateFlags, Mode, OFlags, fallocate, fdatasync, fstat, openat, renameat, unlinkat,
};
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
        Durability::Machine => fdatasync(&file),
    });
    let result = written.and_then(|()| renameat(dir, &fresh, dir, name));
    if result.is_err() {
        let _ = unlinkat(dir, &fresh, AtFlags::empty());
    }
    result
}

/// Writes a file of a folder that nobody looks at yet.
///
/// # Errors
/// `ENOSPC` and its kin.
pub(crate) fn write_new(dir: impl AsFd, name: &str, bytes: &[u8]) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    write_all(openat(dir, name, flags, Mode::RUSR | Mode::WUSR)?, bytes)
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
        let _ = fallocate(&file, FallocateFlags::KEEP_SIZE, end, ROOM);
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
