//! Opens a terminal (a PTY pair) and sets its size.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, openpt, unlockpt};
use rustix::termios::{Winsize, tcgetwinsize, tcsetwinsize};

pub use outlast_protocol::Size;

fn winsize(size: Size) -> Winsize {
    Winsize { ws_row: size.rows, ws_col: size.cols, ws_xpixel: 0, ws_ypixel: 0 }
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
    /// `ENOSPC` if the system has no terminal left.
    pub fn open(size: Size) -> Result<Self, Errno> {
        let master = open_master()?;
        unlockpt(&master)?;
        let slave = open_slave(&master)?;
        tcsetwinsize(&slave, winsize(size))?;
        rustix::io::ioctl_fionbio(&master, true)?;
        Ok(Self { master, slave })
    }
}

#[cfg(all(target_os = "linux", not(outlast_portable)))]
fn open_master() -> Result<OwnedFd, Errno> {
    openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
}

#[cfg(all(target_os = "linux", not(outlast_portable)))]
fn open_slave(master: &OwnedFd) -> Result<OwnedFd, Errno> {
    rustix::pty::ioctl_tiocgptpeer(master, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
}

#[cfg(any(not(target_os = "linux"), outlast_portable))]
fn open_master() -> Result<OwnedFd, Errno> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::CLOEXEC)?;
    rustix::pty::grantpt(&master)?;
    Ok(master)
}

#[cfg(any(not(target_os = "linux"), outlast_portable))]
fn open_slave(master: &OwnedFd) -> Result<OwnedFd, Errno> {
    let path = rustix::pty::ptsname(master, Vec::new())?;
    rustix::fs::open(path, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())
}

/// Opens the slave again through its master, to query a terminal after our slave was dropped.
///
/// # Errors
/// The error of the kernel if the terminal is closed.
pub fn reopen_slave(master: &OwnedFd) -> Result<OwnedFd, Errno> {
    open_slave(master)
}

/// Who leads the session of this terminal, if it is ours and the leader can be seen: the kernel says 0 where
/// it lives outside our pid namespace (`docker exec -t`), which the safe wrapper takes for a pid.
#[must_use]
pub fn session_leader(terminal: impl AsFd) -> Option<rustix::process::Pid> {
    #[expect(unsafe_code, reason = "the safe wrapper does not allow for 0")]
    // SAFETY: the descriptor is open for as long as it is borrowed.
    let leader = unsafe { libc::tcgetsid(terminal.as_fd().as_raw_fd()) };
    rustix::process::Pid::from_raw(leader.max(0))
}

/// Sets the size of the terminal; the kernel sends `SIGWINCH` to the program in it.
///
/// # Errors
/// `EIO` if the terminal is closed.
pub fn resize(terminal: impl AsFd, size: Size) -> Result<(), Errno> {
    tcsetwinsize(terminal, winsize(size))
}

/// The size a terminal has now.
///
/// # Errors
/// `ENOTTY` if it is not a terminal.
pub fn size_of(terminal: impl AsFd) -> Result<Size, Errno> {
    let size = tcgetwinsize(terminal)?;
    Ok(Size { cols: size.ws_col, rows: size.ws_row })
}

/// A plain read-write handle to `/dev/null`. In a root without devices, a file in memory: there is nothing to read in it
/// either, and who writes to it does not fail.
///
/// # Errors
/// The error of opening the device.
pub fn dev_null() -> Result<OwnedFd, Errno> {
    rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .or_else(|error| crate::system::memory_file("null").map_err(|_| error))
}
