//! A job to be started, as a door asks a host for it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::failure::Failure;
use crate::hint::{Call, Hint};
use crate::job::{Input, Run, Streams};
use crate::limits::Limits;
use crate::queue::{After, MAX_AFTER, Slot};
use crate::sandbox::Sandbox;
use crate::size::Size;

/// A job to be started. What it does not say, the host decides: the folder, the environment, the cap of its log.
///
/// It holds only what differs from the host's own environment, so that the environment and the folder of one machine
/// never go to another unless a user named them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobSpec {
    /// The command.
    pub run: Run,
    /// What it is for, in the caller's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A name to call it by, besides its handle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The folder to start in; none for the host's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// What differs from the host's own environment: a value to set, or none to remove the variable.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Option<String>>,
    /// What the caller's conversation is known by. The job gets it where it has no such variable; who is woken gets it
    /// in any case.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub caller_env: BTreeMap<String, String>,
    /// Terminal or pipes.
    pub streams: Streams,
    /// Where the cursor is in the terminal that it is started in the foreground of.
    #[serde(default, skip_serializing_if = "crate::info::is_origin")]
    pub cursor_at_start: (u16, u16),
    /// Where its input comes from.
    #[serde(default, skip_serializing_if = "Input::is_typed")]
    pub input: Input,
    /// The session that owns it; empty for that of the process that asks.
    #[serde(default)]
    pub session: String,
    /// End it after this long.
    #[serde(default, rename = "timeout_ms", with = "in_ms", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// End it when it printed nothing for this long.
    #[serde(
        default,
        rename = "inactivity_timeout_ms",
        with = "in_ms",
        skip_serializing_if = "Option::is_none"
    )]
    pub inactivity_timeout: Option<Duration>,
    /// How much of the log is kept, in bytes; none for the host's own cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_cap: Option<u64>,
    /// What of it goes to the session's outbox; none for what a job in the background tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<Vec<Condition>>,
    /// What is shown as its command, if that is not what is run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_as: Option<String>,
    /// Whom to wake when something does, besides those of the host's settings: each as an order of a wake has it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wakes: Vec<serde_json::Value>,
    /// The sandbox it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// How much it may use.
    #[serde(default, skip_serializing_if = "Limits::is_none")]
    pub limits: Limits,
    /// Rules for what its programs execute, for a job that an agent asked for: as the policy writes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<serde_json::Value>,
    /// It is a shell that remembers, which takes its commands as steps; `run` is then only what is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<crate::shell::Shell>,
    /// An agent asks: it runs in the sandbox and under the limits that the host has for agents, whatever is said here,
    /// and without pagers.
    #[serde(default)]
    pub for_agent: bool,
    /// The name of this order, never used before: asked again under the same name, it starts nothing and is answered again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// A place that it must have before it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<Slot>,
    /// Jobs of the same host that must have ended before it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<After>,
}

impl JobSpec {
    /// A command in a terminal of the default size, with everything else as the host has it.
    #[must_use]
    pub fn new(run: Run) -> Self {
        Self {
            run,
            description: None,
            name: None,
            cwd: None,
            env: BTreeMap::new(),
            caller_env: BTreeMap::new(),
            streams: Streams::Terminal(Size::default()),
            cursor_at_start: (0, 0),
            input: Input::Typed,
            session: String::new(),
            timeout: None,
            inactivity_timeout: None,
            log_cap: None,
            notify: None,
            shown_as: None,
            wakes: Vec::new(),
            sandbox: None,
            limits: Limits::default(),
            guard: None,
            shell: None,
            for_agent: false,
            order: None,
            slot: None,
            after: Vec::new(),
        }
    }

    /// A line for the shell, otherwise as [`JobSpec::new`].
    #[must_use]
    pub fn shell(line: impl Into<String>) -> Self {
        Self::new(Run::Shell(line.into()))
    }

    /// Sets a variable of its environment.
    pub fn set_env(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.env.insert(name.into(), Some(value.into()));
    }

    /// Removes a variable from its environment.
    pub fn unset_env(&mut self, name: impl Into<String>) {
        self.env.insert(name.into(), None);
    }

    /// Checks what can be checked before anything is started.
    ///
    /// # Errors
    /// A usage failure.
    pub fn check(&self) -> Result<(), Failure> {
        let words = match &self.run {
            Run::Shell(line) => std::slice::from_ref(line),
            Run::Program(argv) => argv.as_slice(),
        };
        let example = || Hint::call("give one, for example: ", Call::RunExample("echo hello".into()));
        if words.first().is_none_or(String::is_empty) {
            return Err(Failure::usage("there is no command to run").hint(example()));
        }
        if let Run::Shell(line) = &self.run
            && line.trim().is_empty()
        {
            return Err(Failure::usage("the command is empty").hint(example()));
        }
        let has_nul = |text: &String| text.contains('\0');
        let env_has_nul =
            |(name, value): (&String, &Option<String>)| has_nul(name) || value.as_ref().is_some_and(has_nul);
        if words.iter().any(has_nul) || self.env.iter().any(env_has_nul) {
            return Err(Failure::usage("a command or environment can't contain a NUL byte")
                .hint("write the data to a file, and give the command that file's name"));
        }
        if let Some(name) = self.env.keys().find(|name| name.is_empty() || name.contains('=')) {
            return Err(Failure::usage(format!("{name:?} can't be the name of an environment variable")));
        }
        if let Streams::Terminal(size) = self.streams {
            size.checked()?;
        }
        self.shell.as_ref().map_or(Ok(()), crate::shell::Shell::check)?;
        self.slot.as_ref().map_or(Ok(()), Slot::check)?;
        if self.after.len() > MAX_AFTER {
            return Err(Failure::usage(format!("a job can wait for at most {MAX_AFTER} others")));
        }
        if self.shell.is_some() && (self.slot.is_some() || !self.after.is_empty()) {
            return Err(Failure::usage("a shell cannot be queued")
                .hint("its commands run one after the other anyway; queue a job of its own instead"));
        }
        self.name.as_deref().map_or(Ok(()), check_name)
    }
}

/// A name must not look like a handle, a path or a flag.
fn check_name(name: &str) -> Result<(), Failure> {
    let fits = name.len() <= 64
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        && name.starts_with(|c: char| c.is_ascii_alphabetic());
    if fits {
        return Ok(());
    }
    Err(Failure::usage(format!("{name:?} can't be a job's name"))
        .hint("give a letter, then letters, digits, '.', '_' or '-', at most 64 in all; for example web"))
}

/// A time, in milliseconds where it goes over a wire.
mod in_ms {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
    pub(super) fn serialize<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        let ms = time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        match ms {
            Some(ms) => to.serialize_u64(ms),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Duration::from_millis))
    }
}
