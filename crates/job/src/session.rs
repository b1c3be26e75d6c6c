//! Who owns a job: an agent's conversation, an editor, or a person's shell.

/// The session of this process: `$OUTLAST_SESSION`, else the login or terminal session it belongs to, told
/// apart from a later one of the same number by its start time.
#[must_use]
pub fn current() -> String {
    if let Some(session) = std::env::var("OUTLAST_SESSION").ok().filter(|s| !s.is_empty()) {
        return session;
    }
    let terminal = rustix::termios::tcgetsid(rustix::stdio::stderr())
        .or_else(|_| rustix::termios::tcgetsid(rustix::stdio::stdin()));
    let (kind, pid) = match (terminal, rustix::process::getppid()) {
        (Ok(leader), _) => ("terminal", leader),
        (Err(_), Some(parent)) => ("process", parent),
        (Err(_), None) => return "process-1".into(),
    };
    let started = outlast_pty::procfs::start_time(pid).unwrap_or(0);
    format!("{kind}-{}-{started}", pid.as_raw_nonzero())
}
