//! What the next sidecar must know: who owns a conversation's jobs, what is being told, and what was spent.
//!
//! `<home>/acp/<session>.json`, replaced as one step. How far the events are told is the outbox's own business: its
//! reader with our name. Here is only the number up to which a prompt was being sent. If the sidecar dies then, the
//! conversation itself says whether it got through: the prompt is in what the agent tells again, or it is not.

use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::time::{Duration, SystemTime};

use outlast_job::Failure;
use outlast_job::outbox::folder_name;
use outlast_job::registry::Home;
use outlast_job::registry::replace::{Durability, read_small, replace};
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use super::budget::Spent;

const FOLDER: &str = "acp";
/// Conversations that nobody has opened for so long are forgotten.
const FORGOTTEN: Duration = Duration::from_secs(90 * 86_400);

/// A conversation, on the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Saved {
    /// Who owns its jobs.
    pub(crate) owner: String,
    /// A prompt with everything up to this number was being sent.
    pub(crate) telling: Option<u64>,
    /// The user wants no waking.
    pub(crate) off: bool,
    pub(crate) spent: Spent,
}

/// The folder.
#[derive(Debug)]
pub(crate) struct States {
    dir: OwnedFd,
    agent: String,
}

impl States {
    /// Those of an agent: another one may call its sessions the same.
    pub(crate) fn open(home: &Home, agent: &str) -> Result<Self, Failure> {
        let path = home.path().join(FOLDER);
        let broken =
            |error: &dyn std::fmt::Display| Failure::system("the sidecar's state can't be kept", error);
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .map_err(|error| broken(&error))?;
        forget_old(&path);
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = rustix::fs::open(&path, flags, Mode::empty()).map_err(|error| broken(&error))?;
        let agent =
            std::path::Path::new(agent).file_name().map_or(agent.into(), |name| name.to_string_lossy());
        Ok(Self { dir, agent: agent.into_owned() })
    }

    fn name(&self, session: &str) -> String {
        format!("{}.json", folder_name(&format!("{}:{session}", self.agent)))
    }

    /// What is known of a session.
    pub(crate) fn load(&self, session: &str) -> Option<Saved> {
        let bytes = read_small(&self.dir, &self.name(session), 1 << 20).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Writes it down. What can't be written is only missed after a crash.
    pub(crate) fn save(&self, session: &str, saved: &Saved) {
        let bytes = serde_json::to_vec(saved).unwrap_or_default();
        let _ = replace(&self.dir, &self.name(session), &bytes, Durability::Process);
    }
}

fn forget_old(folder: &std::path::Path) {
    let Ok(files) = std::fs::read_dir(folder) else { return };
    let now = SystemTime::now();
    for file in files.flatten() {
        let age = file
            .metadata()
            .and_then(|data| data.modified())
            .map(|at| now.duration_since(at).unwrap_or_default());
        if age.is_ok_and(|age| age > FORGOTTEN) {
            let _ = std::fs::remove_file(file.path());
        }
    }
}
