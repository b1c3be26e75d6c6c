//! How agents are: what their hooks have told, so that a person sees which of them waits for one.

use outlast_protocol::AgentState;
use outlast_pty::procfs::{self, Proc};
use rustix::process::getpid;
use serde::Serialize;

use crate::failure::Failure;
use crate::outbox::{Entry, Outbox};
use crate::registry::Home;
use crate::session::agent_lives;
use crate::spec::Handle;
use crate::wire::event::{EntryKind, EventKind};

/// How far up an agent is looked for.
const MAX_ANCESTORS: usize = 32;
/// Programs that only run the hook.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "fish", "env"];

/// An agent, as its hooks told it last.
#[derive(Clone, Debug, Serialize)]
pub struct Agent {
    /// Which: `claude`, `codex`, `gemini`, `opencode`.
    pub agent: String,
    /// How it is.
    pub state: AgentState,
    /// The folder it works in.
    pub folder: String,
    /// What it said.
    pub text: String,
    /// Since when, in milliseconds since 1970.
    pub since: u64,
    /// The session of its jobs.
    pub session: String,
}

/// Every agent that has told how it is, lives, and is not done.
#[must_use]
pub fn agents(home: &Home) -> Vec<Agent> {
    let mut agents: Vec<Agent> = Outbox::all(home).iter().filter_map(of).collect();
    agents.retain(|agent| agent.state != AgentState::Done && lives(&agent.session) != Some(false));
    agents.sort_by_key(|agent| (agent.state != AgentState::Asks, std::cmp::Reverse(agent.since)));
    agents
}

fn lives(session: &str) -> Option<bool> {
    agent_lives(session.rsplit_once('#')?.1)
}

fn of(outbox: &Outbox) -> Option<Agent> {
    let last = outbox.entries(0).into_iter().rfind(|entry| entry.event == EntryKind::Agent)?;
    let Some(EventKind::Agent { agent, state, folder }) = last.detail else { return None };
    let session = outbox.session().to_owned();
    Some(Agent { agent, state, folder, text: last.text, since: last.at, session })
}

/// Writes down how the agent is that runs this process as a hook; nothing if that is known already.
///
/// # Errors
/// When the outbox can't be written.
pub fn tell(home: &Home, agent: &str, state: AgentState, folder: &str, text: &str) -> Result<(), Failure> {
    let session = session_of_hook(home, agent, folder);
    let outbox = Outbox::open(home, &session)?;
    if of(&outbox).is_some_and(|last| last.state == state && state != AgentState::Asks) {
        return Ok(());
    }
    let text = if text.is_empty() { state.to_string() } else { format!("{state}: {text}") };
    let mut entry = Entry::about(Handle::new(0), Some(agent), EntryKind::Agent, text);
    entry.more = "outlast jobs".into();
    let (agent, folder) = (agent.to_owned(), folder.to_owned());
    entry.detail = Some(EventKind::Agent { agent, state, folder });
    outbox.append(&mut [entry]).map_err(|error| Failure::system("the outbox can't be written", error))
}

/// The session of the agent's jobs, if it has one: it is named after a process above this one.
fn session_of_hook(home: &Home, agent: &str, folder: &str) -> String {
    let above: Vec<Proc> = ancestors().collect();
    let name = |process: &Proc| format!("{}-{}", process.pid.as_raw_nonzero(), process.start_time);
    let known = Outbox::all(home).into_iter().find(|outbox| {
        let conversation = outbox.session().rsplit_once('#').map(|(_, conversation)| conversation);
        conversation.is_some_and(|conversation| above.iter().any(|process| name(process) == conversation))
    });
    if let Some(outbox) = known {
        return outbox.session().to_owned();
    }
    let is_agent = |process: &&Proc| {
        let comm = std::fs::read_to_string(format!("/proc/{}/comm", process.pid.as_raw_nonzero()));
        !SHELLS.contains(&comm.unwrap_or_default().trim())
    };
    match above.iter().find(is_agent) {
        Some(process) => format!("{agent}:{folder}#{}", name(process)),
        None => format!("{agent}:{folder}"),
    }
}

fn ancestors() -> impl Iterator<Item = Proc> {
    let mut next = procfs::stat(getpid()).and_then(|me| me.ppid);
    std::iter::from_fn(move || {
        let process = procfs::stat(next?)?;
        next = process.ppid;
        Some(process)
    })
    .take(MAX_ANCESTORS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_of_an_agent_counts_and_one_that_is_done_is_not_listed() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path()).unwrap();
        for (state, text) in
            [(AgentState::Working, ""), (AgentState::Working, ""), (AgentState::Asks, "may I?")]
        {
            tell(&home, "gemini", state, "/x", text).unwrap();
        }
        let seen = agents(&home);
        assert_eq!(seen.len(), 1);
        assert_eq!((seen[0].state, seen[0].text.as_str()), (AgentState::Asks, "asks: may I?"));
        let written = Outbox::all(&home)[0].entries(0).len();
        assert_eq!(written, 2, "the same again is not written");
        tell(&home, "gemini", AgentState::Done, "/x", "").unwrap();
        assert!(agents(&home).is_empty());
    }
}
