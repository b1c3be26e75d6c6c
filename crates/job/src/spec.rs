//! What a keeper is told: a command, where and how to run it, and its limits. It is made from what a door [asks
//! for](JobSpec), and from the environment, folder and settings of the machine that runs it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::notify::Notify;
use crate::settings::{KeptState, Settings};
use crate::shells::Numbers;
use crate::wakes::Wake;
pub use outlast_protocol::Size;
pub use outlast_protocol::job::{Handle, Input, Run, Streams};
pub use outlast_protocol::request::JobSpec;
use outlast_protocol::{Call, Hint, Shell, Slot};

/// Why a job was not started: whoever wanted it was gone before its command ran. It can be asked for again.
pub const CALLER_GONE: &str = "its caller was gone by then";

/// Everything a keeper needs to know to start a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeeperSpec {
    /// The command.
    pub run: Run,
    /// What it is for, in the caller's words.
    pub description: Option<String>,
    /// A name to call it by, besides its handle.
    pub name: Option<String>,
    /// The folder to start in; empty when the caller's own does not exist any more.
    pub cwd: String,
    /// The whole environment of the command. It goes to the keeper by pipe and is never written to disk.
    pub env: BTreeMap<String, String>,
    /// Terminal or pipes.
    pub streams: Streams,
    /// Where the cursor is in the terminal that it is started in the foreground of.
    #[serde(default)]
    pub cursor_at_start: (u16, u16),
    /// Where its input comes from.
    #[serde(default)]
    pub input: Input,
    /// The session that owns the job.
    pub session: String,
    /// End it after this long.
    pub timeout: Option<Duration>,
    /// End it when it printed nothing for this long.
    pub inactivity_timeout: Option<Duration>,
    /// How much of the log is kept.
    pub log_cap: u64,
    /// What of it goes to the session's outbox.
    #[serde(default)]
    pub notify: Notify,
    /// What is shown as its command, if that is not what is run.
    #[serde(default)]
    pub shown_as: Option<String>,
    /// Whom to wake when something does, besides those of the settings.
    #[serde(default)]
    pub wakes: Vec<Wake>,
    /// The environment of a wake's helper: the client's own. What a call adds to `env` is the job's alone, for a
    /// helper that wakes runs outside of the job and its sandbox. Never written to disk.
    #[serde(default)]
    pub wake_env: BTreeMap<String, String>,
    /// The folder that it runs in: that of the client that starts the job, whatever folder the job gets.
    #[serde(default)]
    pub wake_folder: Option<String>,
    /// The sandbox it runs in.
    #[serde(default)]
    pub sandbox: Option<crate::sandbox::Sandbox>,
    /// For a job that an agent asked for, the server whose folder and environment its sandbox is made from. Never written to
    /// disk.
    #[serde(default)]
    pub server: Option<crate::sandbox::Server>,
    /// Rules for what its programs execute, for a job that an agent asked for. Never written to disk.
    #[serde(default)]
    pub guard: Option<outlast_rules::exec::ExecRules>,
    /// How much it may use.
    #[serde(default)]
    pub limits: crate::limits::Limits,
    /// The order that it was started by, where its keeper notes the job: see `registry/orders.rs`.
    #[serde(default)]
    pub order: Option<String>,
    /// It is a shell that remembers.
    #[serde(default)]
    pub shell: Option<Shell>,
    /// What a shell of that name remembered, as it would be told to the new one. Never written to disk.
    #[serde(default)]
    pub shell_state: Option<String>,
    /// A place that it must have before it runs.
    #[serde(default)]
    pub slot: Option<Slot>,
    /// The jobs that must have ended before it runs, each with whether any end will do.
    #[serde(default)]
    pub after: Vec<(Handle, bool)>,
}

/// What names a pager.
const PAGERS: [&str; 3] = ["PAGER", "GIT_PAGER", "MANPAGER"];

/// The default cap of a log: 1 GiB.
pub const LOG_CAP: u64 = 1 << 30;

impl KeeperSpec {
    /// What a door asked for, in this process's folder and environment where it does not say otherwise.
    ///
    /// # Errors
    /// A usage failure, or that this process's own folder was deleted.
    pub(crate) fn resolve(spec: JobSpec, settings: &Settings) -> Result<Self, Failure> {
        spec.check()?;
        let cwd = match spec.cwd {
            Some(cwd) => cwd,
            // A command must not run anywhere else instead.
            None => {
                let own = std::env::current_dir().map_err(|_| deleted_folder())?;
                own.to_string_lossy().into_owned()
            }
        };
        let mut wake_env = inherited_env();
        let mut env = wake_env.clone();
        if spec.for_agent {
            // No pager takes an agent's screen by surprise.
            env.extend(PAGERS.map(|pager| (pager.into(), "cat".into())));
        }
        for (name, value) in spec.env {
            match value {
                Some(value) => drop(env.insert(name, value)),
                None => drop(env.remove(&name)),
            }
        }
        for (name, value) in spec.caller_env {
            env.entry(name.clone()).or_insert_with(|| value.clone());
            wake_env.insert(name, value);
        }
        // Both come from this machine's settings alone: an agent has no say in them.
        let (sandbox, limits) = if spec.for_agent {
            (settings.agents_sandbox.clone(), settings.agents_limits.clone())
        } else {
            (spec.sandbox, spec.limits)
        };
        let in_memory = settings.shells.state == KeptState::Memory;
        let shell = spec.shell.map(|shell| Shell { in_memory: shell.in_memory || in_memory, ..shell });
        let session = if spec.session.is_empty() { crate::session::current() } else { spec.session };
        Ok(Self {
            run: match &shell {
                Some(shell) => Run::Program(crate::shells::start(shell, Numbers::default()).0),
                None => spec.run,
            },
            description: spec.description,
            shown_as: spec.shown_as,
            name: spec.name,
            cwd,
            env,
            streams: spec.streams,
            cursor_at_start: spec.cursor_at_start,
            input: spec.input,
            session,
            timeout: spec.timeout,
            inactivity_timeout: spec.inactivity_timeout,
            log_cap: spec.log_cap.unwrap_or(settings.log_cap),
            notify: spec.notify.map_or_else(Notify::in_background, Notify::of),
            wakes: spec.wakes.into_iter().map(Wake::requested).collect::<Result<_, _>>()?,
            wake_env,
            // None if it was deleted.
            wake_folder: std::env::current_dir().map(|path| path.to_string_lossy().into_owned()).ok(),
            // Rules that cannot be read must not be left out.
            guard: spec.guard.map(serde_json::from_value).transpose().map_err(|error| {
                Failure::usage(format!("invalid rules for what the job executes: {error}"))
            })?,
            server: sandbox.as_ref().filter(|_| spec.for_agent).map(|_| crate::sandbox::this_server()),
            sandbox,
            limits,
            order: spec.order,
            shell,
            shell_state: None,
            slot: spec.slot,
            // By number, once they are looked up.
            after: Vec::new(),
        })
    }

    /// Whether it may connect to some hosts only, through a proxy.
    pub(crate) fn reaches_hosts(&self) -> bool {
        use crate::sandbox::Network;
        self.sandbox.as_ref().is_some_and(|sandbox| sandbox.network == Network::Hosts)
    }

    /// The files that its program's name could mean, the best one first. None if there is no such program.
    fn program_files(&self) -> Vec<std::path::PathBuf> {
        let path = self.env.get("PATH").map(std::ffi::OsStr::new);
        let program = self.argv().into_iter().next().unwrap_or_default();
        let cwd = std::path::Path::new(&self.cwd);
        outlast_pty::spawn::find_program(program.as_ref(), path, cwd).unwrap_or_default()
    }

    /// The same for tests: a line for the shell.
    #[cfg(test)]
    pub(crate) fn shell(line: &str) -> Self {
        Self::resolve(JobSpec::shell(line), &Settings::default()).unwrap()
    }

    /// The program and arguments to execute.
    #[must_use]
    pub fn argv(&self) -> Vec<String> {
        match &self.run {
            Run::Program(argv) => argv.clone(),
            Run::Shell(line) => vec![shell_program(&self.env).into(), "-c".into(), line.clone()],
        }
    }
}

/// The files of this machine that a job's program could mean, the best one first. None if there is no such program.
///
/// # Errors
/// As for its start.
pub fn program_files(spec: &JobSpec) -> Result<Vec<std::path::PathBuf>, Failure> {
    Ok(KeeperSpec::resolve(spec.clone(), &Settings::default())?.program_files())
}

/// What is said to a caller whose own folder was deleted. A command must not run anywhere else instead.
#[must_use]
pub fn deleted_folder() -> Failure {
    Failure::new(crate::failure::Kind::CannotStart, "the current folder does not exist any more")
        .hint(Hint::call("change to another folder, or name one: ", Call::RunInFolder))
}

/// Which shell reads command lines: bash, which is what most callers write for, else the system's own.
fn shell_program(env: &BTreeMap<String, String>) -> &'static str {
    let path = env.get("PATH").map_or("/usr/local/bin:/usr/bin:/bin", String::as_str);
    if std::env::split_paths(path).any(|folder| folder.join("bash").is_file()) { "bash" } else { "sh" }
}

/// The caller's environment as a job may see it: without our own variables, and without what tells of the
/// caller's own terminal.
#[must_use]
pub fn inherited_env() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(key, _)| !key.starts_with("OUTLAST_"))
        .filter(|(key, _)| !["COLUMNS", "LINES", "TERM", "TERMCAP"].contains(&key.as_str()))
        .collect()
}

/// The environment of a command in a terminal: it is told which kind, unless the caller said so itself.
pub(crate) fn terminal_env(env: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut env = env.clone();
    env.entry("TERM".into()).or_insert_with(|| "xterm-256color".into());
    env
}

/// The variable by which a process of a job is known that nobody is a parent of any more.
pub(crate) const MARK: &str = "OUTLAST_MARK";

/// Adds what tells a command which job it is, and in which home: so an `outlast` in it finds itself and its
/// siblings. Nothing else of ours: no session, no token. In a sandbox the home is not to be found.
pub(crate) fn with_own_variables(
    mut env: BTreeMap<String, String>,
    job: Handle,
    home: &std::path::Path,
    mark: &str,
    is_confined: bool,
) -> BTreeMap<String, String> {
    env.insert("OUTLAST_JOB".into(), job.number().to_string());
    env.insert(MARK.into(), mark.to_owned());
    if !is_confined && let Some(home) = home.to_str() {
        env.entry("OUTLAST_HOME".into()).or_insert_with(|| home.to_owned());
    }
    env
}
