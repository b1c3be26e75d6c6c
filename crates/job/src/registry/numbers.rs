//! Numbers of jobs are never given twice, not even when the machine crashes and the folder of a job that was just started is
//! lost with it. They are reserved in blocks, and a block is on the disk before a number of it is given. After a restart of the
//! machine, numbers go on behind the block: gaps are allowed.

use std::os::fd::OwnedFd;

use outlast_pty::system::sync_data;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fsync, openat};
use rustix::io::Errno;

use super::replace::read_open;
use super::{Home, layout};
use crate::spec::Handle;

/// How many are reserved at once.
const BLOCK: u64 = 256;
/// With fewer than this left, more are reserved while nobody waits.
const MIN_RESERVED: u64 = 64;
/// The length of the file, padded: it is written over as one piece.
const LENGTH: usize = 128;

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Numbers {
    /// Up to this one, numbers may have been given before the machine was started.
    floor: u64,
    /// Up to this one, they may have been given since.
    upto: u64,
    /// Which start of the machine that was.
    boot: String,
}

impl Numbers {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(bytes).ok()?.split_whitespace();
        let (floor, upto) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Self { floor, upto, boot: words.next()?.to_owned() })
    }

    fn bytes(&self) -> Vec<u8> {
        let Self { floor, upto, boot } = self;
        let mut bytes = format!("{floor} {upto} {boot}").into_bytes();
        bytes.resize(LENGTH - 1, b' ');
        bytes.push(b'\n');
        bytes
    }

    /// What holds in this boot.
    fn in_boot(self, boot: &str) -> Self {
        if self.boot == boot {
            self
        } else {
            Self { floor: self.upto, upto: self.upto, boot: boot.to_owned() }
        }
    }

    /// The number to give, if it is reserved already.
    fn next(&self, highest: u64, boot: &str) -> Option<u64> {
        let next = highest.max(self.floor) + 1;
        (self.boot == boot && next <= self.upto).then_some(next)
    }
}

/// The number after `highest`, the highest that is known to be taken.
pub(super) fn next(home: &Home, highest: u64) -> u64 {
    let boot = boot();
    let known = read(home).unwrap_or_default();
    if let Some(next) = known.next(highest, &boot) {
        return next;
    }
    // On a disk that can't be written nothing can be claimed either.
    reserve(home, highest, &boot).unwrap_or(highest.max(known.in_boot(&boot).floor) + 1)
}

/// Reserves more, if few are left: a disk may take its time, and nobody waits now.
pub(crate) fn reserve_ahead(home: &Home) {
    let (boot, known) = (boot(), read(home).unwrap_or_default());
    let highest = home.handles().into_iter().max().map_or(0, Handle::number);
    if known.boot == boot && highest + MIN_RESERVED > known.upto {
        let _ = reserve(home, highest + MIN_RESERVED, &boot);
    }
}

fn boot() -> String {
    outlast_pty::procfs::boot_id().filter(|id| !id.is_empty()).unwrap_or_else(|| "unknown".into())
}

fn open(home: &Home) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(home.as_dir(), layout::NUMBERS, flags, Mode::RUSR | Mode::WUSR)
}

fn read(home: &Home) -> Option<Numbers> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(home.as_dir(), layout::NUMBERS, flags, Mode::empty()).ok()?;
    Numbers::parse(&read_open(file, 4096).ok()?)
}

/// Reserves the next block, and says which number comes after `highest`.
fn reserve(home: &Home, highest: u64, boot: &str) -> Result<u64, Errno> {
    let file = open(home)?;
    flock(&file, FlockOperation::LockExclusive)?;
    let known = Numbers::parse(&read_open(&file, 4096)?);
    let is_new = known.is_none();
    let mut numbers = known.unwrap_or_default().in_boot(boot);
    let next = highest.max(numbers.floor) + 1;
    if next > numbers.upto {
        numbers.upto = next + BLOCK - 1;
    }
    let bytes = numbers.bytes();
    let mut at = 0;
    while at < bytes.len() {
        at += rustix::io::pwrite(&file, &bytes[at..], at as u64)?;
    }
    sync_data(&file)?;
    if is_new {
        fsync(home.as_dir())?;
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_restart_numbers_go_on_behind_the_block() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(&folder.path().join("home")).unwrap();
        assert_eq!((next(&home, 0), next(&home, 1), next(&home, 7)), (1, 2, 8));
        let file = folder.path().join("home").join(layout::NUMBERS);
        let said = std::fs::read_to_string(&file).unwrap();
        assert!(said.starts_with("0 256 "), "{said}");
        // The machine restarts, and every folder is lost.
        std::fs::write(&file, said.replace(&boot(), "another-boot")).unwrap();
        assert_eq!((next(&home, 0), next(&home, 257)), (257, 258));
        assert!(std::fs::read_to_string(&file).unwrap().starts_with("256 512 "));
        // What is taken already, as in a home that an earlier version has made, counts too.
        assert_eq!(next(&home, 1000), 1001);
        std::fs::write(&file, "damaged").unwrap();
        assert_eq!(next(&home, 1001), 1002, "what can't be read is written anew");
    }

    #[test]
    fn more_are_reserved_before_none_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(&folder.path().join("home")).unwrap();
        assert_eq!(next(&home, 0), 1);
        std::fs::create_dir(home.job_path(Handle::new(200))).unwrap();
        reserve_ahead(&home);
        assert_eq!(read(&home).unwrap().upto, 520);
    }
}
