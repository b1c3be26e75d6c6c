//! The terminal in question: which one it is.

use std::os::fd::BorrowedFd;

use rustix::fs::{Mode, OFlags};

use super::modes::Modes;

/// A terminal's number: the `N` of `/dev/pts/N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TtyIndex(pub(super) u32);

/// The device number that all Unix98 terminals share.
const PTS_MAJOR: i32 = 136;

impl TtyIndex {
    /// Not a terminal: the pipe that is the standard input of a job without one.
    pub(super) const STDIN: Self = Self(u32::MAX);

    /// From a process's controlling terminal; `None` if it has none, or a console.
    pub(super) fn of_tty_nr(tty_nr: i32) -> Option<Self> {
        let major = (tty_nr >> 8) & 0xfff;
        let minor = (tty_nr & 0xff) | ((tty_nr >> 12) & 0xfff00);
        (major == PTS_MAJOR).then(|| Self(minor.unsigned_abs()))
    }

    /// From the master of a terminal.
    pub(super) fn of_master(master: BorrowedFd<'_>) -> Option<Self> {
        let name = rustix::pty::ptsname(master, Vec::new()).ok()?;
        let digits = name.to_bytes().strip_prefix(b"/dev/pts/")?;
        Some(Self(crate::procfs::number(digits)?.unsigned_abs()))
    }

    pub(super) fn path(self) -> String {
        format!("/dev/pts/{}", self.0)
    }
}

impl Modes {
    /// Of a terminal whose master another process holds.
    pub(super) fn of_index(index: TtyIndex) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Self::of(rustix::fs::open(index.path(), flags, Mode::empty()).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_name_terminals() {
        assert_eq!(TtyIndex::of_tty_nr(0), None);
        assert_eq!(TtyIndex::of_tty_nr(136 << 8 | 7), Some(TtyIndex(7)));
        // Terminal 300 is minor 0x12c: its low byte below the major, the rest above it.
        assert_eq!(TtyIndex::of_tty_nr((1 << 20) | (136 << 8) | 0x2c), Some(TtyIndex(300)));
        // A virtual console.
        assert_eq!(TtyIndex::of_tty_nr(4 << 8 | 1), None);
    }
}
