//! Whether a program reads a terminal that is not ours, such as a tmux pane's.

use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;
use rustix::termios::{LocalModes, tcgetattr};

/// Whether a terminal is being read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Its foreground programs are working, and none of them reads.
    Nobody {
        /// The first of them.
        program: String,
    },
    /// A program reads, or takes input key by key.
    Somebody,
    /// The system does not say.
    Unknown,
}

/// Programs that run what is typed at their prompt.
const SHELLS: &[&str] = &[
    "ash", "bash", "csh", "dash", "elvish", "es", "fish", "hush", "ion", "ksh", "ksh93", "lksh", "mksh",
    "nu", "oksh", "osh", "pdksh", "posh", "pwsh", "rbash", "rc", "sh", "tcsh", "xonsh", "yash", "ysh", "zsh",
];

fn modes(terminal: &Path) -> Option<LocalModes> {
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let tty = rustix::fs::open(terminal, flags, Mode::empty()).ok()?;
    Some(tcgetattr(&tty).ok()?.local_modes)
}

/// Whether a terminal passes on whole lines, and so limits their length; `None` if it cannot be opened.
#[must_use]
pub fn gives_lines(terminal: &Path) -> Option<bool> {
    Some(modes(terminal)?.contains(LocalModes::ICANON))
}

/// Whether a terminal passes on whole lines without echo: a password prompt.
#[must_use]
pub fn hides_lines(terminal: &Path) -> bool {
    modes(terminal)
        .is_some_and(|modes| modes.contains(LocalModes::ICANON) && !modes.contains(LocalModes::ECHO))
}

/// Whether a program is a shell, by its name or its file name: `-bash`, `/usr/bin/zsh-5.9`.
#[must_use]
pub fn is_shell(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program).trim_start_matches('-');
    SHELLS.contains(&name)
        || name.split_once('-').is_some_and(|(name, version)| {
            version.starts_with(|c: char| c.is_ascii_digit()) && SHELLS.contains(&name)
        })
}

/// The foreground of the terminal that `process` was started on; `None` if the system does not say.
#[cfg(all(target_os = "linux", not(outlast_portable)))]
fn foreground(process: Pid) -> Option<Vec<crate::procfs::Proc>> {
    let leader = crate::procfs::stat(process)?;
    let mut foreground: Vec<_> = crate::procfs::descendants(process);
    foreground.insert(0, leader.clone());
    foreground.retain(|p| p.tty_nr == leader.tty_nr && p.pgrp == leader.tpgid && p.is_alive());
    (!foreground.is_empty()).then_some(foreground)
}

/// The shell in the foreground of the terminal that `process` was started on, if it does not wait for another
/// foreground process: it is at its prompt, in a `read` of a script, or working itself.
#[cfg(all(target_os = "linux", not(outlast_portable)))]
#[must_use]
pub fn shell_in_front(process: Pid) -> Option<String> {
    let foreground = foreground(process)?;
    let waits = |shell: &crate::procfs::Proc| foreground.iter().any(|other| other.ppid == Some(shell.pid));
    foreground.iter().filter(|member| !waits(member)).find_map(|member| {
        let file = crate::procfs::program_file(member.pid);
        let shell = is_shell(&member.comm) || file.as_deref().is_some_and(is_shell);
        (shell && has_terminal(member.pid)).then(|| member.comm.trim_start_matches('-').to_owned())
    })
}

/// The program in the foreground of a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Front {
    /// The leader of the foreground process group: its number, and when it was started.
    pub leader: (i32, u64),
    /// Its name.
    pub program: String,
    /// Whether one of the group sleeps until something is typed on this terminal; none if the system does not say.
    pub waits: Option<bool>,
}

/// The program in the foreground of the terminal that `process` was started on, and whether it waits for input.
#[cfg(all(target_os = "linux", not(outlast_portable)))]
#[must_use]
pub fn in_front(terminal: &Path, process: Pid) -> Option<Front> {
    let foreground = foreground(process)?;
    let group = foreground.first()?.pgrp;
    let leader = foreground.iter().find(|member| member.pid.as_raw_nonzero().get() == group);
    let leader = leader.unwrap_or(foreground.first()?);
    let mut waits = Some(false);
    for member in &foreground {
        match threads_wait(member.pid, terminal) {
            Some(true) => {
                waits = Some(true);
                break;
            }
            Some(false) => {}
            None => waits = None,
        }
    }
    Some(Front {
        leader: (leader.pid.as_raw_nonzero().get(), crate::procfs::start_time(leader.pid)?),
        program: leader.comm.clone(),
        waits,
    })
}

/// Unknown on other systems.
#[cfg(any(not(target_os = "linux"), outlast_portable))]
#[must_use]
pub fn in_front(_: &Path, _: Pid) -> Option<Front> {
    None
}

/// Whether a thread of a process sleeps until something is typed on a terminal; none if that can't be seen.
#[cfg(all(target_os = "linux", not(outlast_portable)))]
fn threads_wait(process: Pid, terminal: &Path) -> Option<bool> {
    let process = process.as_raw_nonzero();
    let leads_there = |fd: u64| {
        let link = std::fs::read_link(format!("/proc/{process}/fd/{fd}"));
        link.is_ok_and(|link| link == terminal || link == Path::new("/dev/tty"))
    };
    let in_set = |epoll: u64| {
        let set = std::fs::read_to_string(format!("/proc/{process}/fdinfo/{epoll}")).unwrap_or_default();
        let members = set.lines().filter_map(|line| line.strip_prefix("tfd:")?.split_whitespace().next());
        members.filter_map(|fd| fd.parse().ok()).any(leads_there)
    };
    for thread in std::fs::read_dir(format!("/proc/{process}/task")).ok()?.filter_map(Result::ok) {
        let call = match std::fs::read_to_string(thread.path().join("syscall")) {
            Ok(call) => call,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(_) => return None,
        };
        let mut words = call.split_whitespace();
        let number = words.next().and_then(|number| number.parse::<i64>().ok());
        let first = words.next().and_then(|fd| u64::from_str_radix(fd.trim_start_matches("0x"), 16).ok());
        let waits = match number {
            Some(libc::SYS_read) => first.is_some_and(leads_there),
            Some(libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2) => first.is_some_and(in_set),
            #[cfg(target_arch = "x86_64")]
            Some(libc::SYS_epoll_wait) => first.is_some_and(in_set),
            // Their sets are in its memory: that it has the terminal open must do.
            number => is_waiting(number) && (0..3).any(leads_there),
        };
        if waits {
            return Some(true);
        }
    }
    Some(false)
}

/// Whether a process has a terminal open, or may have. One that an agent runs with pipes cannot read it.
#[cfg(all(target_os = "linux", not(outlast_portable)))]
fn has_terminal(process: Pid) -> bool {
    let Ok(open) = std::fs::read_dir(format!("/proc/{}/fd", process.as_raw_nonzero())) else { return true };
    open.filter_map(Result::ok)
        .filter_map(|fd| std::fs::read_link(fd.path()).ok())
        .any(|file| file.starts_with("/dev/pts") || file.to_string_lossy().starts_with("/dev/tty"))
}

/// Unknown on other systems.
#[cfg(any(not(target_os = "linux"), outlast_portable))]
#[must_use]
pub fn shell_in_front(_: Pid) -> Option<String> {
    None
}

/// Checks the foreground of the terminal that `process` was started on. A terminal in raw mode belongs to a
/// program that reads keys, whatever it does at the moment.
#[must_use]
pub fn of_terminal(terminal: &Path, process: Pid) -> Reading {
    match gives_lines(terminal) {
        Some(true) => lines(process),
        Some(false) => Reading::Somebody,
        None => Reading::Unknown,
    }
}

#[cfg(all(target_os = "linux", not(outlast_portable)))]
fn lines(process: Pid) -> Reading {
    let Some(foreground) = foreground(process) else { return Reading::Unknown };
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
    // A person would name the program that was started last.
    let program = foreground.last().map(|member| member.comm.clone()).or(program);
    program.map_or(Reading::Unknown, |program| Reading::Nobody { program })
}

/// Whether a call waits for several descriptors, which may include the terminal.
#[cfg(all(target_os = "linux", not(outlast_portable)))]
fn is_waiting(number: Option<i64>) -> bool {
    let calls = [libc::SYS_ppoll, libc::SYS_pselect6, libc::SYS_epoll_pwait];
    #[cfg(target_arch = "x86_64")]
    let calls = [&calls[..], &[libc::SYS_poll, libc::SYS_select, libc::SYS_epoll_wait]].concat();
    number.is_some_and(|number| calls.contains(&number))
}

#[cfg(any(not(target_os = "linux"), outlast_portable))]
fn lines(_: Pid) -> Reading {
    Reading::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_are_known_by_name() {
        for shell in ["bash", "-zsh", "/bin/dash", "/usr/bin/zsh-5.9", "sh"] {
            assert!(is_shell(shell), "{shell}");
        }
        for other in ["node", "codex", "python3.13", "bash-language-server", "ssh", "nushell-agent"] {
            assert!(!is_shell(other), "{other}");
        }
    }
}
