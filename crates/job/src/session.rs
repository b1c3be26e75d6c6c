//! Who owns a job: an agent's conversation, an editor, or a person's shell.

use outlast_pty::open::session_leader;
use outlast_pty::procfs;
use outlast_pty::stdin_peer::stdin_peer;
use rustix::process::{Pid, getpid};

/// The session of this process: `$OUTLAST_SESSION`, else the login or terminal session it belongs to, told
/// apart from a later one of the same number by its start time.
#[must_use]
pub fn current() -> String {
    if let Some(session) = std::env::var("OUTLAST_SESSION").ok().filter(|s| !s.is_empty()) {
        return session;
    }
    let terminal = session_leader(rustix::stdio::stderr()).or_else(|| session_leader(rustix::stdio::stdin()));
    let (kind, pid) = match (terminal, rustix::process::getppid()) {
        (Some(leader), _) => ("terminal", leader),
        (None, Some(parent)) => ("process", parent),
        (None, None) => return "process-1".into(),
    };
    let started = procfs::start_time(pid).unwrap_or(0);
    format!("{kind}-{}-{started}", pid.as_raw_nonzero())
}

/// Names the process at the other end of standard input, by pid and start time: for a server, the agent that talks to
/// it. Where that can't be seen, this process stands for it.
#[must_use]
pub fn agent_at_stdin() -> Option<String> {
    let agent = stdin_peer().or_else(|| procfs::stat(getpid()))?;
    Some(format!("{}-{}", agent.pid.as_raw_nonzero(), agent.start_time))
}

/// Whether such an agent still lives; none if that is no name of one.
#[must_use]
pub fn agent_lives(agent: &str) -> Option<bool> {
    let (pid, started) = agent.split_once('-')?;
    let (pid, started) = (Pid::from_raw(pid.parse().ok()?)?, started.parse::<u64>().ok()?);
    Some(procfs::stat(pid).is_some_and(|found| found.start_time == started && found.is_alive()))
}
