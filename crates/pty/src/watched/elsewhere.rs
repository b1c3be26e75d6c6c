//! Watched without a descriptor of the process: it is told by a queue of the kernel where there is one, or looked at by a thread.
//! How a process ended that is not our child is never told.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::process::Pid;

use crate::procfs;
use crate::reap::End;

/// A process, no matter who its parent is. Its number may be given to another; its start tells them apart.
#[derive(Debug)]
pub struct Watched {
    pid: Pid,
    started: u64,
    /// Readable once it has ended.
    told: OwnedFd,
}

impl Watched {
    /// Watches a process from now on.
    ///
    /// # Errors
    /// `ESRCH` if there is none.
    pub fn open(pid: Pid) -> io::Result<Self> {
        let gone = || io::Error::from_raw_os_error(libc::ESRCH);
        let started = procfs::start_time(pid).ok_or_else(gone)?;
        let told = queue(pid, started)?;
        let watched = Self { pid, started, told };
        // It may have ended before it was watched.
        if watched.has_ended() { Err(gone()) } else { Ok(watched) }
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
        Ok(Self { pid: self.pid, started: self.started, told: self.told.try_clone()? })
    }

    /// Whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        !is_there(self.pid, self.started)
    }

    /// Never told of a process that is not our child.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        None
    }
}

fn is_there(pid: Pid, started: u64) -> bool {
    procfs::stat(pid).is_some_and(|process| process.is_alive() && process.start_time == started)
}

impl AsFd for Watched {
    /// Readable once it has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.told.as_fd()
    }
}

/// A queue of the kernel that says when the process ends. Untested: no Mac has run it yet.
#[cfg(target_vendor = "apple")]
fn queue(pid: Pid, _started: u64) -> io::Result<OwnedFd> {
    use std::os::fd::{AsRawFd, FromRawFd};
    // SAFETY: a fresh descriptor that nobody else owns; the kernel reads one event, which outlives the call.
    #[expect(unsafe_code, reason = "kqueue has no safe wrapper for this")]
    unsafe {
        let queue = libc::kqueue();
        if queue < 0 {
            return Err(io::Error::last_os_error());
        }
        let queue = OwnedFd::from_raw_fd(queue);
        let mut event: libc::kevent = std::mem::zeroed();
        event.ident = pid.as_raw_nonzero().get().unsigned_abs() as libc::uintptr_t;
        event.filter = libc::EVFILT_PROC;
        event.flags = libc::EV_ADD;
        event.fflags = libc::NOTE_EXIT;
        let asked =
            libc::kevent(queue.as_raw_fd(), &raw const event, 1, std::ptr::null_mut(), 0, std::ptr::null());
        if asked < 0 { Err(io::Error::last_os_error()) } else { Ok(queue) }
    }
}

/// A thread that looks, and closes its end of a pipe once the process is gone or nobody listens.
#[cfg(not(target_vendor = "apple"))]
fn queue(pid: Pid, started: u64) -> io::Result<OwnedFd> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let (told, tell) = crate::system::pipe()?;
    std::thread::Builder::new().name("watched".into()).spawn(move || {
        let between = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        while is_there(pid, started) {
            // A pipe that nobody reads has an error to tell.
            let mut nobody = [PollFd::new(&tell, PollFlags::empty())];
            if poll(&mut nobody, Some(&between)).is_ok_and(|told| told > 0) {
                return;
            }
        }
    })?;
    Ok(told)
}

/// Never.
#[must_use]
pub fn can_tell_ends() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    #[test]
    fn the_end_of_a_process_is_told() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let watched = Watched::open(Pid::from_child(&child)).unwrap();
        assert!(!watched.has_ended());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(poll(&mut [PollFd::new(&watched, PollFlags::IN)], None), Ok(1));
        assert!(watched.has_ended());
        assert!(Watched::open(watched.pid()).is_err());
    }
}
