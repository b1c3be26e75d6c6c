//! Who owns a job: an agent's conversation, an editor, or a person's shell.

use outlast_pty::open::session_leader;

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
    let started = outlast_pty::procfs::start_time(pid).unwrap_or(0);
    format!("{kind}-{}-{started}", pid.as_raw_nonzero())
}
