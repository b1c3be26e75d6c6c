//! What the next sidecar must know: who owns a conversation's jobs, what is being delivered, and what was
//! used up.
//!
//! `<home>/acp/<session>.json`, replaced atomically. How far events were delivered is kept in the outbox, by
//! our reader. Here is only the number up to which a prompt was being sent. If the sidecar dies then, the
//! conversation itself says whether it was delivered: the prompt is in what the agent replays, or it is not.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use outlast_job::Failure;
use outlast_job::registry::Home;
use outlast_job::registry::replace::{Durability, read_small, replace};
use outlast_job::registry::stable_name::all_names;
use serde::{Deserialize, Serialize};

use super::budget::Spent;

/// The saved state of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Saved {
    /// Who owns its jobs.
    pub(crate) owner: String,
    /// The key of the tags by which its tool calls are recognised.
    pub(crate) key: String,
    /// A prompt with all events up to this number was being sent.
    #[serde(rename = "telling")]
    pub(crate) delivering: Option<u64>,
    /// The user has turned waking off.
    pub(crate) off: bool,
    pub(crate) spent: Spent,
}

/// The folder of saved states.
#[derive(Debug)]
pub(crate) struct States {
    pub(crate) dir: Arc<OwnedFd>,
    agent: String,
}

impl States {
    /// The states of one agent: another agent may use the same session ids.
    pub(crate) fn open(home: &Home, agent: &str) -> Result<Self, Failure> {
        let dir = Arc::new(crate::folder::open(home)?);
        let agent =
            std::path::Path::new(agent).file_name().map_or(agent.into(), |name| name.to_string_lossy());
        Ok(Self { dir, agent: agent.into_owned() })
    }

    /// The file of a session, and then the name that 0.1 gave it, if that was another one.
    fn names(&self, session: &str) -> Vec<String> {
        all_names(&format!("{}:{session}", self.agent)).map(|name| format!("{name}.json")).collect()
    }

    /// The saved state of a session.
    pub(crate) fn load(&self, session: &str) -> Option<Saved> {
        let bytes = self.names(session).iter().find_map(|name| read_small(&*self.dir, name, 1 << 20).ok())?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Saves a state. If this fails, it is only missed after a crash.
    pub(crate) fn save(&self, session: &str, saved: &Saved) {
        let bytes = serde_json::to_vec(saved).unwrap_or_default();
        if let Some(name) = self.names(session).first() {
            let _ = replace(&*self.dir, name, &bytes, Durability::Process);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_job::registry::stable_name::name_of_0_1;

    #[test]
    fn a_state_that_0_1_named_is_loaded_and_saved_under_its_lasting_name() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path()).unwrap();
        let states = States::open(&home, "/bin/agent").unwrap();
        let session = "s".repeat(400);
        let old = format!("{}.json", name_of_0_1(&format!("agent:{session}")).unwrap());
        let saved = Saved { owner: "me".into(), off: true, ..Saved::default() };
        std::fs::write(folder.path().join("acp").join(old), serde_json::to_vec(&saved).unwrap()).unwrap();
        assert_eq!(states.load(&session), Some(saved.clone()));
        let next = Saved { off: false, ..saved };
        states.save(&session, &next);
        assert_eq!(states.load(&session), Some(next));
    }
}
