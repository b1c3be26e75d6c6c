//! tmux panes: looked at, typed into, and watched until they stand still.
//!
//! A pane belongs to the person in front of it. Nothing here interrupts what runs there: text is pasted as one
//! piece and Enter pressed after it, only while the pane is [free](pane::Pane::free); no Escape, no Ctrl-U, no
//! Ctrl-C. A notice is typed only into the empty `input` line of an agent, and seen there before Enter (`typing`); or at
//! the prompt of a `shell` that a person has named, in a form that it ignores.
//! tmux tells by its [control] mode when a pane prints or dies; only what it can't tell (whether a program in the
//! pane reads) is looked at from time to time.

pub mod control;
mod input;
pub mod listen;
pub mod pane;
pub mod prompt;
mod screen;
mod shell;
pub mod submit;
mod turns;
mod typing;

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use outlast_protocol::failure::{Failure, Kind};
use outlast_pty::bounded;
pub use pane::{Held, Identity, Pane};
pub use shell::NoticeShell;
pub use typing::{Notice, Told, Untold};

/// A tmux that does not answer for so long is wedged.
const REPLY_TIMEOUT: Duration = Duration::from_secs(3);

/// A tmux server.
#[derive(Clone, Debug, Default)]
pub struct Tmux {
    socket: Option<String>,
    program: Option<String>,
}

impl Tmux {
    /// The server at a socket; none for the user's default one.
    #[must_use]
    pub fn at(socket: Option<String>) -> Self {
        Self { socket, program: None }
    }

    /// The server that an environment is inside of, else the default one.
    #[must_use]
    pub fn of_env(env: &BTreeMap<String, String>) -> Self {
        let socket = env.get("TMUX").and_then(|value| value.split(',').next());
        let path = env.get("PATH").map_or("/usr/local/bin:/usr/bin:/bin", String::as_str);
        let program =
            std::env::split_paths(path).map(|folder| folder.join("tmux")).find(|file| file.is_file());
        Self {
            socket: socket.filter(|socket| !socket.is_empty()).map(ToOwned::to_owned),
            program: program.map(|program| program.to_string_lossy().into_owned()),
        }
    }

    /// The server of a pane that was found earlier, with the program that an environment finds.
    #[must_use]
    pub fn of_pane(pane: &Identity, env: &BTreeMap<String, String>) -> Self {
        Self { socket: Some(pane.socket.clone()), ..Self::of_env(env) }
    }

    /// Where its socket is, if that was said.
    #[must_use]
    pub fn socket(&self) -> Option<&str> {
        self.socket.as_deref()
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(self.program.as_deref().unwrap_or("tmux"));
        // In UTF-8 whatever the environment says, and as if outside of any pane.
        command.arg("-u").env_remove("TMUX").env_remove("TMUX_PANE");
        if let Some(socket) = &self.socket {
            command.args(["-S", socket]);
        }
        command
    }

    /// Runs one tmux command with some input, for a limited time.
    ///
    /// # Errors
    /// What tmux says.
    pub fn run(&self, args: &[&str], input: &[u8]) -> Result<String, Failure> {
        let mut command = self.command();
        command.args(args);
        let ran = bounded::run(command, input, REPLY_TIMEOUT)
            .map_err(|why| Failure::new(Kind::System, format!("tmux: {why}")))?;
        if ran.status.success() {
            return Ok(String::from_utf8_lossy(&ran.stdout).into_owned());
        }
        let why = ran.trouble();
        Err(Failure::new(Kind::System, format!("tmux: {why}")).hint("see its panes: tmux list-panes -a"))
    }

    /// The pane of a target, as tmux names panes.
    ///
    /// # Errors
    /// When there is no server or no such pane.
    pub fn pane(&self, target: &str) -> Result<Pane, Failure> {
        Pane::find(self, target)
    }
}

/// The pane that is meant when none is named: that of `$GEMINI_TMUX_SESSION_NAME`, else our own.
///
/// # Errors
/// When neither variable is set.
pub fn default_target(env: &BTreeMap<String, String>) -> Result<String, Failure> {
    let set = |name: &str| env.get(name).filter(|value| !value.is_empty());
    if let Some(session) = set("GEMINI_TMUX_SESSION_NAME") {
        // The first pane of that session, wherever its numbers begin.
        return Ok(format!("={session}:^.{{top-left}}"));
    }
    set("TMUX_PANE").cloned().ok_or_else(|| {
        Failure::usage("no pane is named").hint("give one: --target PANE, for example --target main:0.0")
    })
}
