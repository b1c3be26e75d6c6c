//! Sends signals: never to a group by mistake, never to a recycled pid.

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use crate::procfs::{self, Proc};

/// Sends a signal to exactly this process, or to none: it is held by a pidfd and compared by its start time.
///
/// # Errors
/// `ESRCH` if it has ended, `EPERM` if it may not be signalled.
#[cfg(all(target_os = "linux", not(outlast_portable)))]
pub fn send(process: &Proc, signal: Signal) -> Result<(), Errno> {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let pidfd = match pidfd_open(process.pid, PidfdFlags::empty()) {
        Err(Errno::NOSYS) => return send_by_pid(process, signal),
        opened => opened?,
    };
    if procfs::start_time(process.pid) != Some(process.start_time) {
        return Err(Errno::SRCH);
    }
    pidfd_send_signal(&pidfd, signal)
}

/// Without pidfds there is a gap between the check and the signal.
///
/// # Errors
/// `ESRCH` if it has ended, `EPERM` if it may not be signalled.
#[cfg(any(not(target_os = "linux"), outlast_portable))]
pub fn send(process: &Proc, signal: Signal) -> Result<(), Errno> {
    send_by_pid(process, signal)
}

fn send_by_pid(process: &Proc, signal: Signal) -> Result<(), Errno> {
    if procfs::start_time(process.pid) != Some(process.start_time) {
        return Err(Errno::SRCH);
    }
    rustix::process::kill_process(process.pid, signal)
}

/// Signals a child by its pid. A pid cannot be reused before the child is reaped, so this is safe.
///
/// # Errors
/// `ESRCH` if it has ended.
pub fn send_to_child(child: Pid, signal: Signal) -> Result<(), Errno> {
    rustix::process::kill_process(child, signal)
}

/// Names and numbers that are the same on all Linux architectures.
const NAMES: &[(&str, i32)] = &[
    ("HUP", libc::SIGHUP),
    ("INT", libc::SIGINT),
    ("QUIT", libc::SIGQUIT),
    ("ILL", libc::SIGILL),
    ("TRAP", libc::SIGTRAP),
    ("ABRT", libc::SIGABRT),
    ("BUS", libc::SIGBUS),
    ("FPE", libc::SIGFPE),
    ("KILL", libc::SIGKILL),
    ("USR1", libc::SIGUSR1),
    ("SEGV", libc::SIGSEGV),
    ("USR2", libc::SIGUSR2),
    ("PIPE", libc::SIGPIPE),
    ("ALRM", libc::SIGALRM),
    ("TERM", libc::SIGTERM),
    ("CHLD", libc::SIGCHLD),
    ("CONT", libc::SIGCONT),
    ("STOP", libc::SIGSTOP),
    ("TSTP", libc::SIGTSTP),
    ("TTIN", libc::SIGTTIN),
    ("TTOU", libc::SIGTTOU),
    ("URG", libc::SIGURG),
    ("XCPU", libc::SIGXCPU),
    ("XFSZ", libc::SIGXFSZ),
    ("VTALRM", libc::SIGVTALRM),
    ("PROF", libc::SIGPROF),
    ("WINCH", libc::SIGWINCH),
    ("IO", libc::SIGIO),
    ("SYS", libc::SIGSYS),
];

/// The signal with this name, with or without `SIG`, or with this number.
#[must_use]
pub fn parse(name: &str) -> Option<Signal> {
    let upper = name.trim().to_ascii_uppercase();
    let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
    let number = bare.parse().ok().or_else(|| NAMES.iter().find(|(known, _)| *known == bare).map(|n| n.1))?;
    Signal::from_named_raw(number)
}

/// The name of a signal, including `SIG`.
#[must_use]
pub fn name(number: i32) -> String {
    let known = NAMES.iter().find(|(_, known)| *known == number);
    known.map_or_else(|| format!("signal {number}"), |(name, _)| format!("SIG{name}"))
}

/// All names that [`parse`] knows.
#[must_use]
pub fn names() -> Vec<&'static str> {
    NAMES.iter().map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_has_many_spellings_and_one_name() {
        for spelling in ["TERM", "SIGTERM", "sigterm", " term ", "15"] {
            assert_eq!(parse(spelling), Some(Signal::TERM), "{spelling}");
        }
        assert_eq!(name(9), "SIGKILL");
        for wrong in ["", "SIG", "NOPE", "0", "-1", "99"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_recycled_pid_is_not_hit() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let mut seen = procfs::stat(pid).unwrap();
        seen.start_time -= 1;
        assert_eq!(send(&seen, Signal::KILL), Err(Errno::SRCH));
        assert!(child.try_wait().unwrap().is_none(), "it was another process, and is still alive");
        seen.start_time += 1;
        send(&seen, Signal::KILL).unwrap();
        child.wait().unwrap();
    }
}
