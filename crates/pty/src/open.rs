//! Makes a terminal pair and sets its size.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, openpt, unlockpt};
use rustix::termios::{Winsize, tcgetwinsize, tcsetwinsize};

/// A terminal's size in character cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Width of a row.
    pub cols: u16,
    /// Number of rows.
    pub rows: u16,
}

impl Default for Size {
    fn default() -> Self {
        Self { cols: 120, rows: 40 }
    }
}

impl Size {
    fn winsize(self) -> Winsize {
        Winsize { ws_row: self.rows, ws_col: self.cols, ws_xpixel: 0, ws_ypixel: 0 }
    }
}

/// Both ends of a terminal: the master is ours, the slave is the job's.
#[derive(Debug)]
pub struct Pty {
    /// Non-blocking, close-on-exec.
    pub master: OwnedFd,
    /// Blocking, close-on-exec. Drop it once the command has it, or output never ends.
    pub slave: OwnedFd,
}

impl Pty {
    /// Opens a terminal of the given size.
    ///
    /// # Errors
    /// `ENOSPC` when the system has no terminal left.
    pub fn open(size: Size) -> Result<Self, Errno> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        unlockpt(&master)?;
        let slave = open_slave(&master)?;
        tcsetwinsize(&slave, size.winsize())?;
        rustix::io::ioctl_fionbio(&master, true)?;
        Ok(Self { master, slave })
    }
}

#[cfg(target_os = "linux")]
fn open_slave(master: &OwnedFd) -> Result<OwnedFd, Errno> {
    rustix::pty::ioctl_tiocgptpeer(master, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
}

#[cfg(not(target_os = "linux"))]
fn open_slave(master: &OwnedFd) -> Result<OwnedFd, Errno> {
    rustix::pty::grantpt(master)?;
    let path = rustix::pty::ptsname(master, Vec::new())?;
    rustix::fs::open(path, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())
}

/// Opens the slave again by way of its master: to ask a terminal something after our slave was dropped.
///
/// # Errors
/// Whatever the kernel says when the terminal is gone.
pub fn reopen_slave(master: &OwnedFd) -> Result<OwnedFd, Errno> {
    open_slave(master)
}

/// Who leads the session of this terminal, if it is ours and the leader can be seen: the kernel says 0 where it
/// lives outside our pid namespace (`docker exec -t`), which the safe wrapper takes for a pid.
#[must_use]
pub fn session_leader(terminal: impl AsFd) -> Option<rustix::process::Pid> {
    #[expect(unsafe_code, reason = "the safe wrapper does not allow for 0")]
    // SAFETY: the descriptor is open for as long as it is borrowed.
    let leader = unsafe { libc::tcgetsid(terminal.as_fd().as_raw_fd()) };
    rustix::process::Pid::from_raw(leader.max(0))
}

/// Tells the terminal, and with `SIGWINCH` the program in it, a new size.
///
/// # Errors
/// `EIO` when the terminal is gone.
pub fn resize(terminal: impl AsFd, size: Size) -> Result<(), Errno> {
    tcsetwinsize(terminal, size.winsize())
}

/// The size a terminal has now.
///
/// # Errors
/// `ENOTTY` when it is no terminal.
pub fn size_of(terminal: impl AsFd) -> Result<Size, Errno> {
    let size = tcgetwinsize(terminal)?;
    Ok(Size { cols: size.ws_col, rows: size.ws_row })
}

/// A plain read-write handle to `/dev/null`.
///
/// # Errors
/// Whatever opening the device says.
pub fn dev_null() -> Result<OwnedFd, Errno> {
    rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
}
