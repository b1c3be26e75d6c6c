//! What one job uses: its disk space, and what its processes use now.

use outlast_protocol::request::{Details, Usage};
use rustix::process::Pid;

use super::LocalJob;
use crate::failure::Failure;
use crate::registry::sweep::disk_use;

impl LocalJob {
    /// # Errors
    /// When the keeper does not answer.
    pub(super) fn details(&self) -> Result<Details, Failure> {
        let dir = &self.open.dir;
        let running = self.status()?.map(|status| status.processes).unwrap_or_default();
        let used: Vec<_> = running
            .iter()
            .filter_map(|process| outlast_pty::usage::usage(Pid::from_raw(process.pid)?))
            .collect();
        let usage = (!used.is_empty()).then(|| Usage {
            processes: used.len() as u64,
            cpu_ms: used.iter().map(|one| one.cpu_ms).sum(),
            memory_bytes: used.iter().map(|one| one.memory_bytes).sum(),
        });
        Ok(Details { pinned: dir.is_pinned(), read: dir.is_marked_read(), disk_bytes: disk_use(dir), usage })
    }

    /// Keeps the job whatever its age, or no longer.
    pub(super) fn pin(&self, pinned: bool) -> Result<(), Failure> {
        let what = if pinned { "pinned" } else { "unpinned" };
        let unwritable = |error| Failure::system(format!("job {} can't be {what}", self.handle()), error);
        self.open.dir.pin(pinned).map_err(unwritable)
    }
}
