//! `outlast hook`: called by agents, to tell how they are. It never gets in an agent's way: it prints nothing and is always
//! content. With `--wake` it waits, and what it says wakes the agent.

use std::io::{BufRead, IsTerminal, Read, Write};

use outlast_cli::{Client, HookArgs};
use outlast_job::{Failure, Outlast};
use outlast_protocol::AgentState;
use serde_json::Value;

/// How much of what an agent says is read.
const MAX_INPUT_BYTES: u64 = 1 << 20;
/// Where agents say what it is about, in order of preference.
const MESSAGES: [&str; 4] = ["message", "tool_name", "title", "reason"];
/// A notification of this kind says that the agent waits for a prompt, not for an answer.
const IDLE: &str = "idle_prompt";

/// What an agent's hook ends with to be heard by its model.
const WAKES: i32 = 2;

pub(super) fn hook(open: impl FnOnce() -> Result<Outlast, Failure>, args: &HookArgs) -> i32 {
    if args.wake {
        return open().map_or(0, |outlast| wait(&outlast, args.client));
    }
    let mut text = String::new();
    if !std::io::stdin().is_terminal() {
        let _ = std::io::stdin().take(MAX_INPUT_BYTES).read_to_string(&mut text);
    }
    let said: Value = serde_json::from_str(&text).unwrap_or_default();
    let here = || std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned();
    let folder = said["cwd"].as_str().map_or_else(here, ToOwned::to_owned);
    let state = if said["notification_type"] == IDLE { AgentState::Idle } else { args.state };
    let message = match state {
        AgentState::Asks => MESSAGES.iter().find_map(|name| said[*name].as_str()).unwrap_or_default(),
        AgentState::Working | AgentState::Idle | AgentState::Done => "",
    };
    if let Ok(outlast) = open() {
        let _ = outlast_job::agents::tell(outlast.home(), &args.client.name(), state, &folder, message);
        if state == AgentState::Idle {
            outlast_job::wakes::ring(outlast.home());
        }
    }
    0
}

/// Waits for something that wakes the agent, and says it.
fn wait(outlast: &Outlast, client: Client) -> i32 {
    let home = outlast.home();
    let unseen = |session: &str, events| outlast_mcp::unseen(home, session, events);
    let said = outlast_job::wakes::wait_as_hook(home, &client.name(), unseen, |text| {
        writeln!(std::io::stderr(), "{text}").is_ok() && (client != Client::Opencode || is_taken())
    });
    if said { WAKES } else { 0 }
}

/// A plugin says when it has prompted its agent.
fn is_taken() -> bool {
    std::io::stdin().lock().read_line(&mut String::new()).is_ok_and(|bytes| bytes > 0)
}
