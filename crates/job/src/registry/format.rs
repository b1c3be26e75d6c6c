//! The record of a job as it is first written. Its form on the disk is `outlast_protocol::info`.

pub use outlast_protocol::info::*;

use crate::lifecycle::State;
use crate::log::gone::Gone;
use crate::spec::{Handle, KeeperSpec, Streams};

/// The record of a job that was just claimed.
#[must_use]
pub fn claimed(handle: Handle, spec: &KeeperSpec, created_at: u64) -> Info {
    let ms = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    Info {
        format: FORMAT,
        handle,
        name: spec.name.clone(),
        session: spec.session.clone(),
        command: spec.shown_as.clone().unwrap_or_else(|| spec.run.display()),
        run: spec.run.clone(),
        description: spec.description.clone(),
        traceparent: spec.env.get("TRACEPARENT").filter(|trace| is_traceparent(trace)).cloned(),
        cwd: spec.cwd.clone(),
        streams: spec.streams,
        input: spec.input,
        started_size: match spec.streams {
            Streams::Terminal(size) => Some(size),
            Streams::Pipes => None,
        },
        size_alone: None,
        cursor_at_start: spec.cursor_at_start,
        env_names: spec.env.keys().cloned().collect(),
        timeout_ms: spec.timeout.map(ms),
        inactivity_timeout_ms: spec.inactivity_timeout.map(ms),
        log_cap: spec.log_cap,
        created_at,
        started_at: None,
        boot_id: outlast_pty::procfs::boot_id().unwrap_or_default(),
        pid_namespace: outlast_pty::procfs::pid_namespace(),
        process: None,
        endpoints: Vec::new(),
        mark: None,
        keeper: None,
        heir: None,
        gone: Gone::default(),
        errors_gone: Gone::default(),
        unreadable: Gone::default(),
        errors_unreadable: Gone::default(),
        log_mark: None,
        errors_mark: None,
        sandbox: spec.sandbox.clone(),
        sandbox_by: None,
        allowed_hosts: Vec::new(),
        guard_by: None,
        limits: spec.limits.clone(),
        limited_by: None,
        takeovers: 0,
        shell: spec.shell.clone(),
        tells_end: spec.notify.tells_end(),
        state: State::Starting,
    }
}

/// Whether a text is a `traceparent`: a version, a trace, a span and flags, in small hexadecimal digits.
#[must_use]
pub fn is_traceparent(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    let digits = |byte: u8| byte == b'-' || byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    lengths.eq([2, 32, 16, 2]) && text.bytes().all(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_traceparent_is_one() {
        assert!(is_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
        for other in ["", "00-x-y-01", "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", "----"] {
            assert!(!is_traceparent(other), "{other}");
        }
    }
}
