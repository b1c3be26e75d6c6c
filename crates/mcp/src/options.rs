//! What the one who starts the server can choose.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use outlast_job::Failure;
use outlast_policy::Decision;

use crate::extras::Extras;

/// The longest that a call blocks. Clients give up on a silent call after 60 s at the earliest (opencode does).
pub const LONGEST_CALL: Duration = Duration::from_secs(50);

/// How often a blocked call says that it lives, when the client asked to be told.
pub const PROGRESS_EVERY: Duration = Duration::from_secs(8);

/// For how long a session over HTTP may be unused before it is closed.
pub(crate) const SESSION_IDLE: Duration = Duration::from_secs(3600);

/// Which names the tools go by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// The seven tools.
    #[default]
    Plain,
    /// Also the names that Gemini's models know.
    Gemini,
    /// `exec_command` and `write_stdin` instead of `run_shell_command` and `send_input`.
    Codex,
    /// `Bash`, `BashOutput` and `KillShell` instead of `run_shell_command`, `read_output` and `kill`.
    Claude,
}

impl Profile {
    /// The profile of that name.
    ///
    /// # Errors
    /// A usage failure that lists the names.
    pub fn from_name(name: &str) -> Result<Self, Failure> {
        match name {
            "plain" | "default" => Ok(Self::Plain),
            "gemini" => Ok(Self::Gemini),
            "codex" => Ok(Self::Codex),
            "claude" => Ok(Self::Claude),
            other => Err(Failure::usage(format!("there is no profile {other:?}"))
                .hint("the profiles are plain, gemini, codex and claude")),
        }
    }
}

/// How to serve.
#[derive(Clone, Debug)]
pub struct Options {
    /// The home; none means the user's own.
    pub home: Option<PathBuf>,
    /// Who owns what is started; none means that each client is told apart by what it sends.
    pub session: Option<String>,
    /// Which names the tools go by.
    pub profile: Profile,
    /// What agents may do to jobs of their own; none means what the policy says, or to ask.
    pub own: Option<Decision>,
    /// The longest that a call blocks.
    pub longest_call: Duration,
    /// How often a blocked call reports progress.
    pub progress_every: Duration,
    /// Over HTTP: for how long a session may be unused before it is closed.
    pub session_idle: Duration,
    /// Over HTTP: whether a bearer token is asked for. Turn it off only to test the server itself.
    pub require_token: bool,
    /// The program that started the server prompts the agent when something happened, as the ACP sidecar does.
    pub prompted: bool,
    /// The key of the tags by which the program that started the server recognises the calls that start jobs.
    pub call_key: Option<String>,
    /// What is offered besides the tools; for testing the server itself.
    pub extras: Option<Arc<dyn Extras>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            home: None,
            session: None,
            profile: Profile::default(),
            own: None,
            longest_call: LONGEST_CALL,
            progress_every: PROGRESS_EVERY,
            session_idle: SESSION_IDLE,
            require_token: true,
            prompted: false,
            call_key: None,
            extras: None,
        }
    }
}

impl Options {
    /// The defaults, with what the environment sets: `OUTLAST_SESSION`, and in seconds `OUTLAST_MCP_LONGEST_CALL`,
    /// `OUTLAST_MCP_PROGRESS_EVERY` and `OUTLAST_MCP_SESSION_IDLE`.
    ///
    /// # Errors
    /// A usage failure when a number is none.
    pub fn from_env() -> Result<Self, Failure> {
        let default = Self::default();
        Ok(Self {
            session: std::env::var("OUTLAST_SESSION").ok().filter(|session| !session.is_empty()),
            longest_call: seconds("OUTLAST_MCP_LONGEST_CALL", default.longest_call)?,
            progress_every: seconds("OUTLAST_MCP_PROGRESS_EVERY", default.progress_every)?,
            session_idle: seconds("OUTLAST_MCP_SESSION_IDLE", default.session_idle)?,
            ..default
        })
    }
}

fn seconds(name: &str, default: Duration) -> Result<Duration, Failure> {
    let Some(text) = std::env::var(name).ok().filter(|text| !text.is_empty()) else { return Ok(default) };
    text.parse::<f64>()
        .ok()
        .filter(|seconds| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| Failure::usage(format!("{name} must be a number of seconds, not {text:?}")))
}
