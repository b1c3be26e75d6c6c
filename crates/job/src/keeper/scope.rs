//! Has a job leave the unit of systemd that its starter is in, off the start path: see [`systemd`].
//!
//! Jobs that are over in a moment never trouble systemd with it. Asking takes a thread of its own, because systemd may take its time.

use std::time::{Duration, Instant};

use rustix::process::{Pid, getpid};

use super::Keeper;
use crate::settings::SystemdScope;
use crate::systemd::{self, Place};

/// How long a job runs before it gets a scope.
const AFTER: Duration = Duration::from_millis(300);
/// The thread needs little.
const STACK_SIZE: usize = 128 << 10;

impl Keeper {
    /// Decides whether to, and when.
    pub(super) fn plan_scope(&mut self) {
        let wanted = self.inherited.settings.systemd_scope == SystemdScope::Auto;
        self.scope_due = (wanted && systemd::runs_this_machine()).then(|| Instant::now() + AFTER);
    }

    pub(super) fn move_into_scope_if_due(&mut self, now: Instant) {
        if self.scope_due.is_none_or(|at| now < at) {
            return;
        }
        self.scope_due = None;
        let info = self.core.info();
        let heir = info.heir.as_ref().and_then(|heir| Pid::from_raw(heir.pid));
        let session = info.session;
        // Where it fails the job stays where it is, as `doctor` says.
        let _ = std::thread::Builder::new().name("scope".into()).stack_size(STACK_SIZE).spawn(move || {
            let Place::CanLeave { socket, .. } = Place::of_this_process() else { return };
            let keeper = getpid();
            let members = || {
                let below = outlast_pty::procfs::descendants(keeper);
                let jobs = super::nested::without_nested_jobs(below);
                heir.into_iter().chain([keeper]).chain(jobs.into_iter().map(|process| process.pid)).collect()
            };
            let _ = systemd::move_into_scope(&socket, &session, members);
        });
    }
}
