//! Whether anybody reads a terminal that is not ours, such as a tmux pane's.

use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;
use rustix::termios::{LocalModes, tcgetattr};

/// Who reads a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Its foreground programs work, and none of them reads.
    Nobody {
        /// The first of them.
        program: String,
    },
    /// Somebody reads, or takes key by key what comes.
    Somebody,
    /// The system does not tell.
    Unknown,
}

/// Whether a terminal gives whole lines, and has its own idea of how long they may be; none when it can't be seen.
#[must_use]
pub fn gives_lines(terminal: &Path) -> Option<bool> {
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let tty = rustix::fs::open(terminal, flags, Mode::empty()).ok()?;
    Some(tcgetattr(&tty).ok()?.local_modes.contains(LocalModes::ICANON))
}

/// Looks at the foreground of the terminal that `process` was started on. A terminal in raw mode belongs to a program
/// that reads keys, whatever it does at the moment.
#[must_use]
pub fn of_terminal(terminal: &Path, process: Pid) -> Reading {
    match gives_lines(terminal) {
        Some(true) => lines(process),
        Some(false) => Reading::Somebody,
        None => Reading::Unknown,
    }
}

#[cfg(target_os = "linux")]
fn lines(process: Pid) -> Reading {
    let Some(leader) = crate::procfs::stat(process) else { return Reading::Unknown };
    let mut foreground: Vec<_> = crate::procfs::descendants(process);
    foreground.insert(0, leader.clone());
    foreground.retain(|p| p.tty_nr == leader.tty_nr && p.pgrp == leader.tpgid && p.is_alive());
    let mut program = None;
    for member in &foreground {
        let call = std::fs::read_to_string(format!("/proc/{}/syscall", member.pid.as_raw_nonzero()));
        let Ok(call) = call else { return Reading::Unknown };
        let mut words = call.split_whitespace();
        let number = words.next().and_then(|number| number.parse::<i64>().ok());
        let fd = words.next().and_then(|fd| u64::from_str_radix(fd.trim_start_matches("0x"), 16).ok());
        let on_terminal = fd.is_some_and(|fd| {
            let link = std::fs::read_link(format!("/proc/{}/fd/{fd}", member.pid.as_raw_nonzero()));
            link.is_ok_and(|link| link.starts_with("/dev/pts") || link.ends_with("tty"))
        });
        if is_waiting(number) || (number == Some(libc::SYS_read) && on_terminal) {
            return Reading::Somebody;
        }
        program.get_or_insert_with(|| member.comm.clone());
    }
    // The last one started is what a person would say runs there.
    let program = foreground.last().map(|member| member.comm.clone()).or(program);
    program.map_or(Reading::Unknown, |program| Reading::Nobody { program })
}

/// Whether a call waits for one of several things, of which the terminal may be one.
#[cfg(target_os = "linux")]
fn is_waiting(number: Option<i64>) -> bool {
    let calls = [libc::SYS_ppoll, libc::SYS_pselect6, libc::SYS_epoll_pwait];
    #[cfg(target_arch = "x86_64")]
    let calls = [&calls[..], &[libc::SYS_poll, libc::SYS_select, libc::SYS_epoll_wait]].concat();
    number.is_some_and(|number| calls.contains(&number))
}

#[cfg(not(target_os = "linux"))]
fn lines(_: Pid) -> Reading {
    Reading::Unknown
}
