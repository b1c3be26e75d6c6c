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
        cwd: spec.cwd.clone(),
        streams: spec.streams,
        input: spec.input,
        started_size: match spec.streams {
            Streams::Terminal(size) => Some(size),
            Streams::Pipes => None,
        },
        size_alone: None,
        env_names: spec.env.keys().cloned().collect(),
        timeout_ms: spec.timeout.map(ms),
        inactivity_timeout_ms: spec.inactivity_timeout.map(ms),
        log_cap: spec.log_cap,
        created_at,
        boot_id: outlast_pty::procfs::boot_id().unwrap_or_default(),
        process: None,
        endpoints: Vec::new(),
        keeper: None,
        heir: None,
        gone: Gone::default(),
        errors_gone: Gone::default(),
        sandbox: spec.sandbox.clone(),
        sandbox_by: None,
        guard_by: None,
        limits: spec.limits.clone(),
        limited_by: None,
        takeovers: 0,
        tells_end: spec.notify.tells_end(),
        state: State::Starting,
    }
}
