//! Observes how children ended, and reaps them: two steps, so that an end can be recorded before the kernel
//! forgets it.

use std::io;
use std::time::Duration;

use rustix::process::Pid;

/// Something that happened to a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It has ended, and must be [reaped](reap).
    Ended(Pid, End),
    /// A signal stopped it.
    Stopped(Pid),
    /// It was continued.
    Continued(Pid),
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With an exit code.
    Code(i32),
    /// By a signal.
    Signal {
        /// Its number.
        signal: i32,
        /// Whether it left a core file.
        core: bool,
    },
}

/// What [`peek`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peeked {
    /// Something happened. An end stays until it is reaped; a stop is reported once.
    Change(Change),
    /// There are children, but nothing happened to them.
    Nothing,
    /// There is no child left.
    NoChildren,
}

/// Checks what happened to any child, or to one, without reaping it.
#[must_use]
pub fn peek(child: Option<Pid>) -> Peeked {
    let (kind, id) = child.map_or((libc::P_ALL, 0), |pid| (libc::P_PID, pid.as_raw_nonzero().get()));
    // Ends are left in place; stops and continues are consumed, or they would be reported forever.
    let ended = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    match wait(kind, id, ended) {
        Ok(Some(change)) => Peeked::Change(change),
        Ok(None) => match wait(kind, id, libc::WSTOPPED | libc::WCONTINUED | libc::WNOHANG) {
            Ok(Some(change)) => Peeked::Change(change),
            _ => Peeked::Nothing,
        },
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => Peeked::NoChildren,
        Err(_) => Peeked::Nothing,
    }
}

/// Sleeps until a child has ended; does not reap it.
pub fn sleep_until_ended(child: Pid) -> io::Result<End> {
    loop {
        match wait(libc::P_PID, child.as_raw_nonzero().get(), libc::WEXITED | libc::WNOWAIT) {
            Ok(Some(Change::Ended(_, end))) => return Ok(end),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reaps every other child that ends, until this one has; does not reap this one. For a subreaper, which gets
/// orphans that it does not know.
pub fn reap_others_until_ended(child: Pid) {
    loop {
        match wait(libc::P_ALL, 0, libc::WEXITED | libc::WNOWAIT) {
            Ok(Some(Change::Ended(pid, _))) if pid == child => return,
            Ok(Some(Change::Ended(pid, _))) => drop(reap(pid)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

fn wait(kind: libc::idtype_t, id: i32, options: i32) -> io::Result<Option<Change>> {
    // SAFETY: waitid fills the zeroed siginfo; its fields are read only when it says that a child changed.
    #[expect(unsafe_code, reason = "the safe wrapper does not tell which child it was")]
    let (pid, code, status) = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        if libc::waitid(kind, id as libc::id_t, &raw mut info, options) < 0 {
            return Err(io::Error::last_os_error());
        }
        (info.si_pid(), info.si_code, info.si_status())
    };
    let Some(pid) = Pid::from_raw(pid) else { return Ok(None) };
    Ok(Some(match code {
        libc::CLD_STOPPED | libc::CLD_TRAPPED => Change::Stopped(pid),
        libc::CLD_CONTINUED => Change::Continued(pid),
        libc::CLD_EXITED => Change::Ended(pid, End::Code(status)),
        _ => Change::Ended(pid, End::Signal { signal: status, core: code == libc::CLD_DUMPED }),
    }))
}

/// The resources used by a process and the children it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user code.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// The largest resident set, in KiB.
    pub max_rss_kib: u64,
}

impl From<libc::rusage> for Usage {
    fn from(usage: libc::rusage) -> Self {
        let time = |t: libc::timeval| {
            Duration::from_secs(u64::try_from(t.tv_sec).unwrap_or(0))
                + Duration::from_micros(u64::try_from(t.tv_usec).unwrap_or(0))
        };
        Self {
            user: time(usage.ru_utime),
            system: time(usage.ru_stime),
            max_rss_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0),
        }
    }
}

/// The resources that an ended child used, without reaping it.
#[cfg(all(target_os = "linux", not(outlast_portable)))]
#[must_use]
pub fn usage(child: Pid) -> Option<Usage> {
    // SAFETY: the kernel fills the zeroed rusage. The C library's waitid hides that parameter.
    #[expect(unsafe_code, reason = "waitid with a rusage has no wrapper at all")]
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let pid = child.as_raw_nonzero().get();
        let asked = libc::syscall(libc::SYS_waitid, libc::P_PID, pid, &raw mut info, options, &raw mut usage);
        (asked == 0 && info.si_pid() == pid).then(|| usage.into())
    }
}

/// Other systems only report it when the child is reaped.
#[cfg(any(not(target_os = "linux"), outlast_portable))]
#[must_use]
pub fn usage(_child: Pid) -> Option<Usage> {
    None
}

/// Reaps a child that has ended.
pub fn reap(child: Pid) -> Option<Usage> {
    // SAFETY: wait4 fills the zeroed rusage.
    #[expect(unsafe_code, reason = "wait4 has no safe wrapper")]
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let mut status = 0;
        let pid = child.as_raw_nonzero().get();
        (libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage) == pid).then(|| usage.into())
    }
}
