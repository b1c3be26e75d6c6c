//! Who owns a job: an agent's conversation, an editor, or a person's shell.

use std::sync::OnceLock;

use outlast_pty::open::session_leader;
use outlast_pty::procfs;
use outlast_pty::stdin_peer::stdin_peer;
use rustix::process::{Pid, getpid};

/// The session of this process: `$OUTLAST_SESSION`, else the terminal session it belongs to, else the process that
/// called it, told apart from a later one of the same number by its start time.
///
/// It is found out once: a start asks for it several times, and each answer is a walk through `/proc`. Who called us does not change.
#[must_use]
pub fn current() -> String {
    static CURRENT: OnceLock<String> = OnceLock::new();
    CURRENT.get_or_init(find_current).clone()
}

fn find_current() -> String {
    if let Some(session) = std::env::var("OUTLAST_SESSION").ok().filter(|s| !s.is_empty()) {
        return session;
    }
    let terminal = session_leader(rustix::stdio::stderr()).or_else(|| session_leader(rustix::stdio::stdin()));
    let (kind, pid) = match (terminal, caller()) {
        (Some(leader), _) => ("terminal", leader),
        (None, Some(parent)) => ("process", parent),
        (None, None) => return "process-1".into(),
    };
    let started = procfs::start_time(pid).unwrap_or(0);
    format!("{kind}-{}-{started}", pid.as_raw_nonzero())
}

/// Programs that only adopt others as the first process of a system or container.
const INITS: &[&str] =
    &["systemd", "init", "tini", "docker-init", "dumb-init", "catatonit", "runit", "s6-svscan"];

/// The process that called us. An agent runs each command line in a fresh `bash -c`, so shells with a command line and
/// programs that only run another one are looked through: else its next call would be another session.
fn caller() -> Option<Pid> {
    let mut caller = rustix::process::getppid();
    procfs::walk_up(getpid(), |process, arguments| {
        if process.pid == getpid() {
            return true;
        }
        // In a container the agent itself may be the first process.
        if process.pid == Pid::INIT && INITS.contains(&process.comm.as_str()) {
            return false;
        }
        caller = Some(process.pid);
        is_launcher(&arguments.read())
    });
    caller
}

/// Whether a command line is that of a shell which was given its command, or of a program that runs another one.
fn is_launcher(arguments: &[&[u8]]) -> bool {
    let Some((&program, arguments)) = arguments.split_first() else { return false };
    let name = program.rsplit(|byte| *byte == b'/').next().unwrap_or(program);
    match name {
        b"timeout" | b"time" | b"nice" | b"ionice" | b"nohup" | b"setsid" | b"sudo" | b"env" => true,
        b"sh" | b"bash" | b"dash" | b"zsh" | b"fish" | b"ksh" | b"ash" | b"busybox" => arguments
            .iter()
            .take_while(|argument| argument.starts_with(b"-") || name == b"busybox")
            .any(|argument| {
                !argument.starts_with(b"--") && argument.starts_with(b"-") && argument.contains(&b'c')
            }),
        _ => false,
    }
}

/// Names the process at the other end of standard input, by pid and start time: for a server, the agent that talks to
/// it. Where that can't be seen, this process stands for it.
#[must_use]
pub fn agent_at_stdin() -> Option<String> {
    let agent = stdin_peer().or_else(|| procfs::stat(getpid()))?;
    Some(format!("{}-{}", agent.pid.as_raw_nonzero(), agent.start_time))
}

/// The conversation in a session's name, where it is the process of an agent: what follows the last `#`.
#[must_use]
pub fn conversation(session: &str) -> Option<&str> {
    session.rsplit_once('#').map(|(_, conversation)| conversation)
}

/// Whether such an agent still lives; none if that is not the name of one.
#[must_use]
pub fn agent_lives(agent: &str) -> Option<bool> {
    let (pid, started) = agent.split_once('-')?;
    let (pid, started) = (Pid::from_raw(pid.parse().ok()?)?, started.parse::<u64>().ok()?);
    Some(procfs::stat(pid).is_some_and(|found| found.start_time == started && found.is_alive()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_one(line: &str) -> bool {
        let arguments: Vec<_> = line.split(' ').map(str::as_bytes).collect();
        is_launcher(&arguments)
    }

    #[test]
    fn shells_are_looked_through_when_they_were_given_their_command() {
        for line in [
            "bash -c outlast",
            "/bin/bash -lc outlast",
            "/bin/zsh -l -c outlast",
            "timeout 20 outlast jobs",
            "busybox sh -c outlast",
        ] {
            assert!(is_one(line), "{line}");
        }
        // A script is a caller of its own, and so is a shell that a person types into.
        for line in
            ["bash deploy.sh -c", "-bash", "bash --rcfile x", "bash", "node agent.js -c", "sh -e script -c"]
        {
            assert!(!is_one(line), "{line}");
        }
    }
}
