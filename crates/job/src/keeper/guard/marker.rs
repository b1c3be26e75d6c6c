//! A note in the home that a keeper's job is guarded.
//!
//! Programs of a guarded job are under one more filter than their keeper. To other keepers of the home they must not look
//! like programs of a sandbox, which are turned away. Only who may write into the home can leave such a note.

use std::path::{Path, PathBuf};

use outlast_pty::procfs;
use rustix::process::Pid;

use crate::registry::Home;
use crate::spec::Handle;

const FOLDER: &str = "guards";

/// The note of a keeper, removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Marker {
    path: PathBuf,
}

impl Marker {
    /// Leaves the note of this process.
    pub(crate) fn leave(home: &Home, job: Handle) -> std::io::Result<Self> {
        let me = procfs::stat(rustix::process::getpid()).ok_or(std::io::ErrorKind::NotFound)?;
        let folder = home.path().join(FOLDER);
        std::fs::create_dir_all(&folder)?;
        remove_dead(&folder);
        let path = folder.join(name(me.pid, me.start_time));
        std::fs::write(&path, job.to_string())?;
        Ok(Self { path })
    }
}

impl Drop for Marker {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn name(pid: Pid, start_time: u64) -> String {
    format!("{}-{start_time}", pid.as_raw_nonzero())
}

/// What keepers left that were killed.
fn remove_dead(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let file = entry.file_name();
        let alive = file.to_str().and_then(|name| name.split_once('-')).is_some_and(|(pid, start)| {
            let process = pid.parse().ok().and_then(Pid::from_raw).and_then(procfs::stat);
            process.is_some_and(|process| start.parse() == Ok(process.start_time))
        });
        if !alive {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The handle of the guarded job of this home that a process runs in, if it runs in one.
pub(crate) fn guarding(home: &Path, pid: Pid) -> Option<String> {
    let folder = home.join(FOLDER);
    if !folder.exists() {
        return None;
    }
    let mut found = None;
    let _ = procfs::walk_up(pid, |process, _| {
        let note = std::fs::read_to_string(folder.join(name(process.pid, process.start_time)));
        found = note.ok();
        found.is_none()
    });
    found
}
