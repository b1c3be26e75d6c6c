//! How agents are: what their hooks have told, so that a person sees which of them waits for one.

use outlast_protocol::AgentState;
use outlast_pty::procfs::{self, Proc};
use rustix::process::{Pid, getpid};
use serde::Serialize;

use crate::failure::Failure;
use crate::outbox::{Entry, Outbox};
use crate::registry::Home;
use crate::session::{agent_lives, conversation};
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
    agent_lives(conversation(session)?)
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

/// What the hooks of these conversations told last.
pub(crate) fn last_word(home: &Home, conversations: &[String]) -> Option<Agent> {
    let is_one = |outbox: &Outbox| {
        conversation(outbox.session()).is_some_and(|name| conversations.iter().any(|other| other == name))
    };
    Outbox::all(home).iter().filter(|outbox| is_one(outbox)).filter_map(of).max_by_key(|agent| agent.since)
}

/// The agent that runs this process as a hook.
#[derive(Debug)]
pub(crate) struct Caller {
    /// The first process above us that is not a shell.
    pub(crate) agent: Proc,
    /// It and all processes above it, by the names that conversations have.
    above: Vec<String>,
}

impl Caller {
    pub(crate) fn find() -> Option<Self> {
        let above: Vec<Proc> = ancestors().collect();
        let is_agent = |process: &&Proc| {
            let comm = std::fs::read_to_string(format!("/proc/{}/comm", process.pid.as_raw_nonzero()));
            !SHELLS.contains(&comm.unwrap_or_default().trim())
        };
        let agent = above.iter().find(is_agent)?.clone();
        Some(Self { agent, above: above.iter().map(name).collect() })
    }

    /// Its name as a conversation.
    pub(crate) fn name(&self) -> String {
        name(&self.agent)
    }

    /// Whether a session is named after it: an agent may be more than one process.
    pub(crate) fn is_of(&self, session: &str) -> bool {
        conversation(session).is_some_and(|name| self.above.iter().any(|other| other == name))
    }

    /// How it is, as its hooks told.
    pub(crate) fn state(&self, home: &Home) -> Option<AgentState> {
        last_word(home, &self.above).map(|agent| agent.state)
    }
}

/// Whether an agent talks with a person at a terminal, and can be woken between two prompts: one that was started for a single prompt
/// (`-p`), or by another program, would wait for its hook instead of ending its turn.
pub(crate) fn is_interactive(agent: Pid) -> bool {
    let agent = agent.as_raw_nonzero();
    let is_terminal = |fd: u8| {
        std::fs::read_link(format!("/proc/{agent}/fd/{fd}"))
            .is_ok_and(|file| file.starts_with("/dev/pts") || file.starts_with("/dev/tty"))
    };
    let line = std::fs::read(format!("/proc/{agent}/cmdline")).unwrap_or_default();
    let mut words = line.split(|byte| *byte == 0).skip(1).map(String::from_utf8_lossy);
    let is_print = |word: &str| {
        let flags = word.strip_prefix('-').filter(|flags| flags.chars().all(|c| c.is_ascii_lowercase()));
        word == "--print" || flags.is_some_and(|flags| flags.contains('p'))
    };
    is_terminal(0) && is_terminal(1) && !words.any(|word| is_print(&word))
}

fn name(process: &Proc) -> String {
    format!("{}-{}", process.pid.as_raw_nonzero(), process.start_time)
}

/// The session of the agent's jobs, if it has one: it is named after a process above this one.
fn session_of_hook(home: &Home, agent: &str, folder: &str) -> String {
    let Some(caller) = Caller::find() else { return format!("{agent}:{folder}") };
    let known = Outbox::all(home).into_iter().find(|outbox| caller.is_of(outbox.session()));
    known.map_or_else(|| format!("{agent}:{folder}#{}", caller.name()), |outbox| outbox.session().to_owned())
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
