//! What can still be inferred of a process that may not be inspected.
//!
//! There are two degrees of denial. A hardened kernel may forbid everything that needs ptrace rights (system
//! calls, memory) and still show which kernel function a thread sleeps in and what its descriptors are. A
//! process of another user, such as a setuid program, shows nothing but its state and its CPU time. The rest
//! comes from the terminal, which is ours.

use rustix::process::Pid;

use super::alarms::Alarm;
use super::fds::{Outside, Source};
use super::sets::{self, Set};
use super::threads::{Doing, ThreadScanner};
use crate::procfs::{Proc, ProcReader};

/// The kernel function a thread sleeps in, if it is one that matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitFunction {
    /// A read of a terminal or of a network connection: both use the same function.
    ReadOrReceive,
    /// `poll` or `select`.
    Poll,
    /// `epoll_wait` and its variants.
    Epoll,
    /// A clock.
    Sleep,
    /// A lock of the process's own, or a signal.
    Lock,
    /// The end of a child.
    Child,
    /// A pipe.
    Pipe,
    /// A Unix socket.
    UnixSocket,
    /// Something else.
    Other,
}

/// `None` if the kernel does not say, or the thread is awake.
pub(super) fn wait_function(reader: &mut ProcReader, pid: Pid, tid: Pid) -> Option<WaitFunction> {
    let name = reader.read(format_args!("/proc/{pid}/task/{tid}/wchan")).ok()?;
    by_name(std::str::from_utf8(name).ok()?.trim())
}

/// The names differ between kernels, but have common stems.
fn by_name(name: &str) -> Option<WaitFunction> {
    let any = |stems: &[&str]| stems.iter().any(|stem| name.contains(stem));
    Some(match name {
        "" | "0" => return None,
        "wait_woken" => WaitFunction::ReadOrReceive,
        _ if any(&["epoll", "ep_poll"]) => WaitFunction::Epoll,
        _ if any(&["poll_schedule", "do_sys_poll", "do_poll", "do_select"]) => WaitFunction::Poll,
        _ if any(&["nanosleep", "nsleep"]) => WaitFunction::Sleep,
        _ if any(&[
            "futex",
            "sigtimedwait",
            "sigsuspend",
            "do_pause",
            "sys_pause",
            "eventfd_read",
            "signalfd",
        ]) =>
        {
            WaitFunction::Lock
        }
        "do_wait" | "kernel_wait4" | "kernel_waitid" => WaitFunction::Child,
        _ if any(&["pipe_read", "pipe_wait"]) => WaitFunction::Pipe,
        _ if any(&["unix_stream", "unix_dgram"]) => WaitFunction::UnixSocket,
        _ => WaitFunction::Other,
    })
}

/// What a thread does, without its system call.
pub(super) fn infer(scanner: &mut ThreadScanner, process: &Proc, tid: Pid) -> Doing {
    let Some(function) = wait_function(&mut scanner.reader, process.pid, tid) else { return Doing::Denied };
    match function {
        WaitFunction::Sleep => Doing::Sleeps(Alarm::Unknown),
        WaitFunction::Lock => Doing::Parked(Alarm::Unknown),
        WaitFunction::Child => Doing::WaitsForChild,
        WaitFunction::Pipe => Doing::WaitsOutside(Outside::Other),
        WaitFunction::UnixSocket => Doing::WaitsOutside(Outside::UnixSocket(None)),
        WaitFunction::Other => Doing::Other,
        // The set is unknown. Guessing it from the open descriptors would mistake a program that only sleeps
        // in `poll` for one that waits.
        WaitFunction::Poll => Doing::Denied,
        WaitFunction::ReadOrReceive => infer_read(scanner, process),
        WaitFunction::Epoll => infer_epoll(scanner, process),
    }
}

/// A read of the terminal, if there is no network connection that it could be instead.
fn infer_read(scanner: &mut ThreadScanner, process: &Proc) -> Doing {
    let mut terminal = None;
    for fd in open_fds(scanner, process.pid) {
        match scanner.fds.source(&mut scanner.reader, process, fd) {
            Some(Source::Terminal(index)) if terminal.is_none() => terminal = Some((fd, index)),
            Some(Source::External(Outside::Network)) => return Doing::Denied,
            _ => {}
        }
    }
    match terminal {
        Some((fd, terminal)) => Doing::Reads { call: "read", fd, terminal, inferred: true },
        None => Doing::Denied,
    }
}

/// The first epoll set that has a terminal in it. Whether the call has a timeout is unknown.
fn infer_epoll(scanner: &mut ThreadScanner, process: &Proc) -> Doing {
    let pid = process.pid;
    let mut fallback = Doing::Denied;
    for fd in open_fds(scanner, pid) {
        if !super::fds::Descriptors::is_epoll(&mut scanner.reader, pid, fd) {
            continue;
        }
        let mut set = Set::new(Alarm::Unknown);
        if sets::epoll_members(&mut scanner.reader, pid, fd, 1, &mut set).is_none() {
            continue;
        }
        match scanner.watched(process, "epoll_wait", &set, true) {
            found @ Doing::Watches { .. } => return found,
            other => fallback = other,
        }
    }
    fallback
}

fn open_fds(scanner: &mut ThreadScanner, pid: Pid) -> Vec<i32> {
    let mut fds = Vec::new();
    if scanner.reader.numbers(format_args!("/proc/{pid}/fd"), |fd| fds.push(fd)).is_err() {
        fds.clear();
    }
    fds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_functions_are_known_under_their_old_and_new_names() {
        let known = [
            ("wait_woken", WaitFunction::ReadOrReceive),
            ("do_epoll_wait", WaitFunction::Epoll),
            ("ep_poll", WaitFunction::Epoll),
            ("poll_schedule_timeout.constprop.0", WaitFunction::Poll),
            ("do_select", WaitFunction::Poll),
            ("hrtimer_nanosleep", WaitFunction::Sleep),
            ("futex_do_wait", WaitFunction::Lock),
            ("futex_wait_queue_me", WaitFunction::Lock),
            ("do_wait", WaitFunction::Child),
            ("anon_pipe_read", WaitFunction::Pipe),
            ("unix_stream_read_generic", WaitFunction::UnixSocket),
            ("ext4_sync_file", WaitFunction::Other),
        ];
        for (name, function) in known {
            assert_eq!(by_name(name), Some(function), "{name}");
        }
        assert_eq!(by_name("0"), None);
        assert_eq!(by_name(""), None);
    }
}
