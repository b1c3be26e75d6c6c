//! What a client asks for: a command, where and how to run it, and its limits.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
pub use outlast_protocol::Size;
pub use outlast_protocol::job::{Handle, Input, Run, Streams};
use outlast_protocol::{Call, Hint};

/// Everything a keeper needs to know to start a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobSpec {
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
    pub notify: crate::notify::Notify,
    /// What is shown as its command, if that is not what is run.
    #[serde(default)]
    pub shown_as: Option<String>,
    /// Whom to wake when something does, besides those of the settings.
    #[serde(default)]
    pub wakes: Vec<crate::wakes::Wake>,
    /// The environment of whoever is woken: the client's own. What a call adds to `env` is the job's alone, for a
    /// helper that wakes runs outside of the job and its sandbox. Never written to disk.
    #[serde(default)]
    pub wake_env: BTreeMap<String, String>,
    /// The folder that it runs in: that of whoever starts the job, whatever folder the job gets.
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
}

/// What names a pager.
const PAGERS: [&str; 3] = ["PAGER", "GIT_PAGER", "MANPAGER"];

/// The default cap of a log: 1 GiB.
pub const LOG_CAP: u64 = 1 << 30;

impl JobSpec {
    /// A command in a terminal of the default size, in the caller's folder and environment.
    #[must_use]
    pub fn new(run: Run) -> Self {
        Self::in_session(run, crate::session::current())
    }

    /// The same for a session that is known.
    #[must_use]
    pub fn in_session(run: Run, session: impl Into<String>) -> Self {
        // None if it was deleted: then the check fails, unless the caller names another.
        let cwd = std::env::current_dir().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        let env = inherited_env();
        Self {
            run,
            description: None,
            shown_as: None,
            name: None,
            cwd: cwd.clone(),
            wake_env: env.clone(),
            wake_folder: Some(cwd.clone()).filter(|folder| !folder.is_empty()),
            env,
            streams: Streams::Terminal(Size::default()),
            input: Input::Typed,
            session: session.into(),
            timeout: None,
            inactivity_timeout: None,
            log_cap: LOG_CAP,
            notify: crate::notify::Notify::in_background(),
            wakes: Vec::new(),
            sandbox: None,
            server: None,
            guard: None,
            limits: crate::limits::Limits::default(),
        }
    }

    /// Puts a job that an agent asked for in the sandbox and under the limits that the user chose. Both come from this process
    /// and its settings alone: an agent has no say in them.
    pub fn confine_for_agent(&mut self, settings: &crate::settings::Settings) {
        self.sandbox.clone_from(&settings.agents_sandbox);
        self.server = self.sandbox.as_ref().map(|_| crate::sandbox::this_server());
        self.limits.clone_from(&settings.agents_limits);
    }

    /// Lets no pager take an agent's screen by surprise.
    pub fn without_pagers(&mut self) {
        for pager in PAGERS {
            self.env.insert(pager.into(), "cat".into());
        }
    }

    /// A line for the shell, otherwise as [`JobSpec::new`].
    #[must_use]
    pub fn shell(line: impl Into<String>) -> Self {
        Self::new(Run::Shell(line.into()))
    }

    /// The program and arguments to execute.
    #[must_use]
    pub fn argv(&self) -> Vec<String> {
        match &self.run {
            Run::Program(argv) => argv.clone(),
            Run::Shell(line) => vec![shell_program(&self.env).into(), "-c".into(), line.clone()],
        }
    }

    /// The files that its program's name could mean, the best one first. None if there is no such program.
    #[must_use]
    pub fn program_files(&self) -> Vec<std::path::PathBuf> {
        let path = self.env.get("PATH").map(std::ffi::OsStr::new);
        let program = self.argv().into_iter().next().unwrap_or_default();
        let cwd = std::path::Path::new(&self.cwd);
        outlast_pty::spawn::find_program(program.as_ref(), path, cwd).unwrap_or_default()
    }

    /// Checks what can be checked before anything is started.
    ///
    /// # Errors
    /// A usage failure.
    pub fn checked(self) -> Result<Self, Failure> {
        self.check()?;
        Ok(self)
    }

    /// The same, of one that is only looked at.
    ///
    /// # Errors
    /// A usage failure.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let words = match &self.run {
            Run::Shell(line) => std::slice::from_ref(line),
            Run::Program(argv) => argv.as_slice(),
        };
        if words.first().is_none_or(String::is_empty) {
            return Err(Failure::usage("there is no command to run")
                .hint(Hint::call("give one, for example: ", Call::RunExample("echo hello".into()))));
        }
        if let Run::Shell(line) = &self.run
            && line.trim().is_empty()
        {
            return Err(Failure::usage("the command is empty")
                .hint(Hint::call("give one, for example: ", Call::RunExample("echo hello".into()))));
        }
        let has_nul = |text: &String| text.contains('\0');
        if words.iter().any(has_nul) || self.env.iter().any(|(k, v)| has_nul(k) || has_nul(v)) {
            return Err(Failure::usage("a command or environment can't contain a NUL byte")
                .hint("write the data to a file, and give the command that file's name"));
        }
        if let Some(key) = self.env.keys().find(|key| key.is_empty() || key.contains('=')) {
            return Err(Failure::usage(format!("{key:?} can't be the name of an environment variable")));
        }
        if self.cwd.is_empty() {
            return Err(deleted_folder());
        }
        if let Streams::Terminal(size) = self.streams {
            size.checked()?;
        }
        if let Some(name) = &self.name {
            check_name(name)?;
        }
        Ok(())
    }
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

/// A name must not look like a handle, a path or a flag.
fn check_name(name: &str) -> Result<(), Failure> {
    let fits = name.len() <= 64
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        && name.starts_with(|c: char| c.is_ascii_alphabetic());
    if fits {
        return Ok(());
    }
    Err(Failure::usage(format!("{name:?} can't be a job's name")).hint(
        "give a letter, then letters, digits, '.', '_' or '-', at most 64 in all; for example --name web",
    ))
}

/// The environment of a command in a terminal: it is told which kind, unless the caller said so itself.
pub(crate) fn terminal_env(env: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut env = env.clone();
    env.entry("TERM".into()).or_insert_with(|| "xterm-256color".into());
    env
}

/// Adds what tells a command which job it is, and in which home: so an `outlast` in it finds itself and its
/// siblings. Nothing else of ours: no session, no token. In a sandbox the home is not to be found.
pub(crate) fn with_own_variables(
    mut env: BTreeMap<String, String>,
    job: Handle,
    home: &std::path::Path,
    is_confined: bool,
) -> BTreeMap<String, String> {
    env.insert("OUTLAST_JOB".into(), job.number().to_string());
    if !is_confined && let Some(home) = home.to_str() {
        env.entry("OUTLAST_HOME".into()).or_insert_with(|| home.to_owned());
    }
    env
}
