//! A process that is not our child, watched by a descriptor: whether it has ended, and how. The kernel tells the second since
//! Linux 6.15, and only after its parent has reaped it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::reap::End;

/// `PIDFD_GET_INFO`, with the 64 bytes that every kernel with it knows.
const GET_INFO: u64 = 0xc040_ff0b;
/// Asks for the exit code, and says that it is there.
const EXIT: u64 = 1 << 3;

#[repr(C)]
#[derive(Default)]
struct Info {
    mask: u64,
    cgroup: u64,
    ids: [u32; 11],
    exit_code: i32,
}

/// A process, no matter who its parent is. Its number may be given to another; this stays with it.
#[derive(Debug)]
pub struct Watched {
    pid: Pid,
    fd: OwnedFd,
}

impl Watched {
    /// Watches a process from now on.
    ///
    /// # Errors
    /// `ESRCH` if there is none, `ENOSYS` before Linux 5.3.
    pub fn open(pid: Pid) -> io::Result<Self> {
        Ok(Self { pid, fd: pidfd_open(pid, PidfdFlags::empty())? })
    }

    /// Its number.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// The same once more.
    ///
    /// # Errors
    /// `EMFILE`.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { pid: self.pid, fd: self.fd.try_clone()? })
    }

    /// Whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let mut ended = [rustix::event::PollFd::new(&self.fd, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut ended, Some(&rustix::event::Timespec::default())) == Ok(1)
    }

    /// How it ended; none while it has not, or where the kernel does not tell.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.told_end().or_else(|| self.end_of_zombie())
    }

    /// One that has ended and is not reaped yet: nobody can have got its number.
    fn end_of_zombie(&self) -> Option<End> {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.pid.as_raw_nonzero())).ok()?;
        let mut fields = text.rsplit_once(')')?.1.split_whitespace();
        let is_zombie = matches!(fields.next(), Some("Z"));
        // Its descriptor says that it is the one that ended, and not another of that number.
        let has_ended = self.has_ended();
        let status = fields.next_back()?.parse().ok()?;
        (is_zombie && has_ended && self.told_end().is_none()).then(|| end_of(status))
    }

    fn told_end(&self) -> Option<End> {
        let mut info = Info { mask: EXIT, ..Info::default() };
        // SAFETY: the kernel fills the 64 bytes of `info`, which the request names.
        #[expect(unsafe_code, reason = "an ioctl that has no wrapper")]
        let asked = unsafe { libc::ioctl(self.fd.as_raw_fd(), GET_INFO as _, &raw mut info) };
        if asked != 0 || info.mask & EXIT == 0 {
            return None;
        }
        Some(end_of(info.exit_code))
    }
}

/// What a status of `wait` says.
fn end_of(status: i32) -> End {
    match status & 0x7f {
        0 => End::Code((status >> 8) & 0xff),
        signal => End::Signal { signal, core: status & 0x80 != 0 },
    }
}

impl AsFd for Watched {
    /// Readable once it has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Whether this kernel tells how a process ended that is not our child: tried, with one that ends at once. Only to be called
/// in a process with a single thread.
#[must_use]
pub fn can_tell_ends() -> bool {
    let Ok(forked) = crate::detach::fork() else { return false };
    let child = match forked {
        crate::detach::Forked::Child => crate::detach::leave(),
        crate::detach::Forked::Parent { child } => child,
    };
    let watched = Watched::open(child);
    let _ = crate::reap::sleep_until_ended(child);
    crate::reap::reap(child);
    watched.is_ok_and(|watched| watched.end() == Some(End::Code(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_ended_is_known_after_it_was_reaped_if_the_kernel_tells() {
        for (line, end) in [("exit 7", End::Code(7)), ("kill -9 $$", End::Signal { signal: 9, core: false })]
        {
            let mut shell = Command::new("sh");
            shell.args(["-c", "read x; eval \"$0\"", line]).stdin(std::process::Stdio::piped());
            let mut child = shell.spawn().unwrap();
            let watched = Watched::open(Pid::from_child(&child)).unwrap();
            assert_eq!(watched.end(), None, "it runs");
            drop(child.stdin.take());
            child.wait().unwrap();
            if let Some(told) = watched.end() {
                assert_eq!(told, end, "{line}");
            }
        }
    }
}
