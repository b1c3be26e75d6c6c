//! What a door was asked to do, parsed once: the gate judges it, and the door runs the very values that it
//! names.
//!
//! The set is closed. A new request says in [`OrderKind::tool`] which rules are about it, and in
//! [`Gate::judge`](crate::Gate::judge) what else decides.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use outlast_job::wire::{Send, base64};
use outlast_job::{Failure, Job, Run, keys};
use outlast_protocol::{ShellKind, StepOrder, Tool};
use outlast_rules::exec::ExecRules;
use outlast_stream::Key;

/// What somebody wants, and who.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// The session that asks.
    pub session: &'a str,
    /// What it asks for.
    pub kind: OrderKind<'a>,
}

/// Everything that a door can be asked for, as far as it is judged. A new one says which rules are
/// about it.
#[derive(Clone, Copy, Debug)]
pub enum OrderKind<'a> {
    /// Start a job.
    Start(Start<'a>),
    /// Type a line into a terminal that is not a job's, such as a tmux pane.
    TypeLine(&'a str),
    /// Type into a job.
    Send {
        /// The job.
        job: &'a Job,
        /// What.
        input: &'a TypedInput,
    },
    /// A person types a secret into a job.
    Secret,
    /// A person attaches to a job.
    Attach {
        /// Only to look.
        read_only: bool,
    },
    /// End a job.
    Kill {
        /// The job.
        job: &'a Job,
        /// Even the one that the caller runs in.
        force: bool,
    },
    /// Send a signal to a job.
    Signal {
        /// The job.
        job: &'a Job,
        /// Even to the one that the caller runs in.
        force: bool,
    },
    /// Give a job's terminal another size.
    Resize {
        /// The job.
        job: &'a Job,
    },
    /// Set a watch.
    Watch {
        /// The job.
        job: &'a Job,
    },
    /// Remove a watch.
    Unwatch {
        /// The job.
        job: &'a Job,
    },
    /// List the watches of a job.
    Watches,
    /// List jobs.
    List,
    /// Read what a job printed, or the lines of it that match.
    Read,
    /// Read what a job prints, as it comes.
    Follow,
    /// Play a job again.
    Replay,
    /// Show what a job's terminal shows.
    Screen,
    /// Wait for something.
    Wait,
    /// Read what a session was told.
    Events,
    /// Note how far a session has got with what it was told.
    Ack {
        /// Whose.
        session: &'a str,
    },
    /// Remove one job, which has ended.
    Remove {
        /// The job.
        job: &'a Job,
    },
    /// Keep a job whatever its age, or no longer.
    Pin {
        /// The job.
        job: &'a Job,
        /// Whether to keep it.
        pinned: bool,
    },
    /// Remove finished jobs.
    Prune {
        /// Only say which.
        dry_run: bool,
    },
}

/// A job to be started, as far as that is judged.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The command.
    pub run: &'a Run,
    /// The folder it runs in.
    pub folder: &'a Path,
    /// What the caller adds to their own environment.
    pub env: &'a BTreeMap<String, String>,
    /// Whether something that we do not see is fed to it.
    pub fed: bool,
}

/// A command for a shell that remembers, as far as it is judged: one like any other, in the folder that the shell is in.
#[derive(Clone, Debug)]
pub struct StepCommand {
    run: Run,
    folder: PathBuf,
    env: BTreeMap<String, String>,
}

impl StepCommand {
    /// Of an order for a shell of this kind, which is in this folder now.
    #[must_use]
    pub fn of(kind: ShellKind, order: &StepOrder, folder_now: &str) -> Self {
        let command = order.command.clone();
        let run = match kind {
            // What it reads is what we read.
            ShellKind::Bash => Run::Shell(command),
            ShellKind::Dash | ShellKind::Zsh | ShellKind::Fish => {
                Run::Program(vec![kind.name().into(), "-c".into(), command])
            }
        };
        let folder = order.folder.as_deref().unwrap_or(folder_now).into();
        let set = order.env.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
        Self { run, folder, env: set.collect() }
    }

    /// What is judged.
    #[must_use]
    pub fn start(&self) -> Start<'_> {
        Start { run: &self.run, folder: &self.folder, env: &self.env, fed: false }
    }
}

/// Something to type, with its keys parsed.
#[derive(Clone, Debug)]
pub struct TypedInput {
    send: Send,
    keys: Vec<Key>,
    /// What the bytes say, where they are not text.
    raw: Option<String>,
}

/// A yes of the gate: what was judged may be done now, once.
#[derive(Debug)]
#[must_use = "an order is judged to be carried out"]
pub struct Pass {
    /// After how much input it was judged: should somebody type in between, the keeper refuses.
    pub(crate) typed_after: Option<u64>,
    /// The rules for what the job executes.
    pub(crate) guard: Option<ExecRules>,
}

impl Pass {
    /// The rules for what the job executes that was asked for, if there are any, as a request of a host has them.
    #[must_use]
    pub fn guard_request(&self) -> Option<serde_json::Value> {
        // Nothing in them can fail to serialise; if it did, the host refuses what it cannot read.
        self.guard.as_ref().map(|rules| serde_json::to_value(rules).unwrap_or_default())
    }
}

impl OrderKind<'_> {
    /// The tool that rules call it by.
    #[must_use]
    pub fn tool(&self) -> Tool {
        match self {
            Self::Start(_) => Tool::Run,
            Self::TypeLine(_) | Self::Send { .. } | Self::Secret | Self::Attach { read_only: false } => {
                Tool::Send
            }
            Self::Kill { .. } | Self::Signal { .. } => Tool::Kill,
            Self::Resize { .. } => Tool::Resize,
            Self::Watch { .. } | Self::Unwatch { .. } | Self::Watches => Tool::Watch,
            Self::List | Self::Pin { pinned: true, .. } | Self::Prune { dry_run: true } => Tool::Jobs,
            Self::Read | Self::Follow | Self::Replay => Tool::Read,
            Self::Screen | Self::Attach { read_only: true } => Tool::Screen,
            Self::Wait => Tool::Wait,
            Self::Events | Self::Ack { .. } => Tool::Events,
            Self::Remove { .. } | Self::Pin { pinned: false, .. } | Self::Prune { dry_run: false } => {
                Tool::Prune
            }
        }
    }

    /// Whether it changes nothing.
    #[must_use]
    pub fn only_looks(&self) -> bool {
        match self {
            Self::Attach { read_only: looks } | Self::Prune { dry_run: looks } => *looks,
            Self::Watches
            | Self::List
            | Self::Read
            | Self::Follow
            | Self::Replay
            | Self::Screen
            | Self::Wait
            | Self::Events => true,
            Self::Start(_)
            | Self::TypeLine(_)
            | Self::Send { .. }
            | Self::Secret
            | Self::Kill { .. }
            | Self::Signal { .. }
            | Self::Resize { .. }
            | Self::Watch { .. }
            | Self::Unwatch { .. }
            | Self::Remove { .. }
            | Self::Pin { .. }
            | Self::Ack { .. } => false,
        }
    }
}

impl TypedInput {
    /// Text and keys.
    ///
    /// # Errors
    /// A usage failure that names the keys that do not exist: nobody is asked about keys that can't be
    /// pressed.
    pub fn new(send: Send) -> Result<Self, Failure> {
        let keys = keys::parse(&send.keys)?;
        let decoded = || base64::decode(&send.bytes).unwrap_or_default();
        let raw = (!send.bytes.is_empty()).then(|| String::from_utf8_lossy(&decoded()).into_owned());
        Ok(Self { keys, raw, send })
    }

    /// Bytes as they are.
    #[must_use]
    pub fn bytes(bytes: &[u8]) -> Self {
        let send = Send { bytes: base64::encode(bytes), ..Send::default() };
        Self { send, keys: Vec::new(), raw: Some(String::from_utf8_lossy(bytes).into_owned()) }
    }

    /// What it says, without its keys.
    #[must_use]
    pub fn text(&self) -> &str {
        self.raw.as_deref().unwrap_or(&self.send.text)
    }

    /// The keys that are pressed after the text, and after Enter if there is one.
    pub(crate) fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Everything about it, as it was given.
    #[must_use]
    pub fn as_given(&self) -> &Send {
        &self.send
    }

    /// As it goes to the keeper.
    #[must_use]
    pub fn passed(&self, pass: &Pass) -> Cow<'_, Send> {
        match pass.typed_after {
            None => Cow::Borrowed(&self.send),
            after => Cow::Owned(Send { after, ..self.send.clone() }),
        }
    }
}
