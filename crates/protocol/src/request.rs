//! Everything that a door may ask of a host, and what it is answered: one closed set, as plain data.
//!
//! A host keeps jobs: this machine's own folder, or later another machine that is reached over a pipe. So
//! no request or answer holds a path to be opened, a descriptor or a lock. Every answer is bounded, and one that had to
//! stop says where to go on. Unknown fields are ignored, so that an older side understands a newer one.
//!
//! A [`Request`] gets one [`Answer`], at once or, for a wait, when it is over. A [`Subscription`] is told [`News`] until
//! it is cancelled or over. See `docs/formats/requests.md`.

mod details;
mod listed;
mod log;
mod order;
mod start;
mod subscription;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::host::{HostName, on_host};
use crate::info::Info;
use crate::job::Handle;
use crate::lifecycle::{Process, Receipt};
use crate::outcome::JobOutcome;
use crate::queue::Load;
use crate::report::WakePlan;
use crate::secret_text::SecretText;
use crate::shell::{ShellStatus, Step, StepOrder};
use crate::size::Size;
use crate::wire::watch::Watch;
use crate::wire::{Hold, Killed, ScreenShot, Send, Sent, Status, Typed, Wait, Waited};
pub use details::{Details, Usage};
pub use listed::{AskKeepers, List, ListedJob, Summary};
pub use log::{
    BytePart, Bytes, Fact, FactKind, Grep, Lines, MatchedLine, Matches, ReadBytes, ReadText, Stream, Text,
    Timing,
};
pub use start::JobSpec;
pub use subscription::{News, Subscription};

/// What a door may ask of a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// Start a job: [`Answer::Started`], once its command runs.
    Start(Box<JobSpec>),
    /// Which wakes would really happen for such a job: [`Answer::Wakes`].
    PlanWakes(Box<JobSpec>),
    /// Find the job of a number or a name: [`Answer::Found`].
    Find {
        /// The number or name.
        job: String,
    },
    /// Find the shell of a name: [`Answer::FoundShell`].
    FindShell {
        /// Whose: an agent's session; empty for the user's own.
        #[serde(default)]
        scope: String,
        /// Its name.
        name: String,
    },
    /// List jobs: [`Answer::Jobs`].
    List(List),
    /// How busy the host is, and its slots: [`Answer::Load`].
    Load {},
    /// Ask about one job, or do something to it.
    Job {
        /// Which.
        job: Handle,
        /// What.
        ask: JobRequest,
    },
    /// Wait on several jobs, each from its own beginning: [`Answer::Waited`], when the first is met.
    Wait(WaitAny),
    /// What a session was not told yet: [`Answer::Events`].
    Events(SessionEvents),
    /// A session knows everything up to a number: [`Answer::Acknowledged`].
    Ack(Ack),
    /// Remove one job that has ended: [`Answer::Removed`].
    Remove {
        /// Which.
        job: Handle,
    },
    /// Remove finished jobs that are past the host's limits: [`Answer::Pruned`].
    Prune {
        /// Only say what would be removed.
        #[serde(default)]
        dry_run: bool,
        /// Other limits than the host's own.
        #[serde(default)]
        limits: PruneLimits,
    },
}

/// What a door may ask about one job, or do to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum JobRequest {
    /// Its record: [`Answer::Info`].
    Info {
        /// It is shown to somebody: if the job has ended, its result counts as read.
        #[serde(default)]
        shown: bool,
    },
    /// How it ended: [`Answer::Receipt`].
    Receipt,
    /// How it is right now, from its keeper: [`Answer::Status`].
    Status,
    /// What it uses, and whether it is kept: [`Answer::Details`].
    Details,
    /// Keep it whatever its age, or no longer: [`Answer::Done`].
    Pin {
        /// Whether to keep it.
        pinned: bool,
    },
    /// Its processes, with what a policy must know of them: [`Answer::Processes`].
    Processes,
    /// The processes that it left behind and that still run: [`Answer::LeftBehind`].
    LeftBehind,
    /// A text about it without its secrets: [`Answer::Hidden`].
    Hide {
        /// The text.
        text: String,
    },
    /// Where its files are on the host, to be shown: [`Answer::Files`].
    Files,
    /// Where a log ends now: [`Answer::End`].
    End {
        /// Of which stream.
        #[serde(default)]
        stream: Stream,
    },
    /// A range of its output as text: [`Answer::Text`].
    ReadText(ReadText),
    /// A range of its output as the bytes it wrote: [`Answer::Bytes`].
    ReadBytes(ReadBytes),
    /// The lines of a range that match a regular expression: [`Answer::Matches`].
    Grep(Grep),
    /// What its terminal shows: [`Answer::Screen`].
    Screen(Screen),
    /// What its terminal showed when it ended: [`Answer::LastScreen`].
    LastScreen,
    /// What its tools reported, once it has ended: [`Answer::Outcome`].
    Outcome,
    /// When it printed what, for a replay: [`Answer::Timing`].
    Timing {
        /// Where to go on: 0, or [`Timing::next`].
        #[serde(default)]
        from: u64,
    },
    /// Its own events, a JSON object a line: [`Answer::EventLines`].
    EventLines {
        /// At most this many bytes: the newest.
        max: usize,
    },
    /// Type something: [`Answer::Sent`].
    Send {
        /// What.
        send: Send,
        /// How long a program that does not read may hold it up, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
    },
    /// Type what nobody may see, then Enter: [`Answer::Sent`].
    Secret {
        /// The secret.
        value: SecretText,
        /// Even where it may be shown.
        #[serde(default)]
        force: bool,
    },
    /// What was typed into it last: [`Answer::Typed`].
    Typed,
    /// End it and all that it started: [`Answer::Killed`].
    Kill {
        /// How long it may take to end by itself, in milliseconds.
        grace_ms: u64,
        /// The session that asks.
        session: String,
    },
    /// Send one signal to the whole job: [`Answer::Killed`].
    Signal {
        /// Its name, with or without `SIG`.
        signal: String,
        /// The session that asks.
        session: String,
    },
    /// Take it over, so that nobody else types into it, or give it back: [`Answer::Done`].
    Hold(Hold),
    /// Give its terminal a new size: [`Answer::Done`].
    Resize {
        /// The new size.
        size: Size,
    },
    /// Answer what a program of it wants to execute: [`Answer::Done`].
    AnswerQuestion {
        /// Which question.
        question: u64,
        /// Whether it may.
        allow: bool,
        /// Who answers, in words.
        by: String,
    },
    /// Make an event of something from now on: [`Answer::Watches`], all of them.
    Watch {
        /// What of.
        watch: Watch,
    },
    /// Run a command in a shell: [`Answer::Step`], at once; what becomes of it is waited for.
    Step(Box<StepOrder>),
    /// How a shell is, with its last steps: [`Answer::Shell`].
    Shell {
        /// Only where it is.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        brief: bool,
    },
    /// End a step of a shell, while the shell stays: [`Answer::Killed`].
    EndStep {
        /// Which; none for the one that runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<u64>,
        /// How long it may take to end by itself, in milliseconds.
        grace_ms: u64,
        /// The session that asks.
        session: String,
    },
    /// All watches: [`Answer::Watches`].
    Watches,
    /// No longer: [`Answer::Watches`], those that are left.
    Unwatch {
        /// The watch's name.
        watch: String,
    },
}

/// A process of a job, as far as a policy looks at it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessDetail {
    /// Which.
    #[serde(flatten)]
    pub process: Process,
    /// Its arguments, if they could be read.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// The file that it runs, if that could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// What a prune keeps, where that is not what the host's settings say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PruneLimits {
    /// Keep nothing.
    pub all: bool,
    /// What nobody has read counts as read.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unread: bool,
    /// Keep what ended less than this ago, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
    /// Keep at most this many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<usize>,
    /// Keep at most this many bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// What of a terminal's screen is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Screen {
    /// As it was then; none for now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Moment>,
    /// With colours and styles.
    pub styled: bool,
    /// How many lines of history to add; only for now.
    pub scrollback: usize,
}

/// A moment in a job's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// This long after its start, in milliseconds.
    Time(u64),
    /// When it had printed this much.
    Offset(u64),
}

/// A wait on one or more jobs: the first that is met ends it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WaitAny {
    /// Each with its own conditions and its own beginning.
    pub waits: Vec<JobWait>,
    /// At most this long, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// One job of a wait.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobWait {
    /// Which.
    pub job: Handle,
    /// What for, and from where on.
    pub wait: Wait,
}

/// Which of a session's events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEvents {
    /// The session.
    pub session: String,
    /// Only those with a higher number; none for those that were not acknowledged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

/// How far a session has got with its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ack {
    /// The session.
    pub session: String,
    /// Up to this number; none for all there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to: Option<u64>,
    /// Only for the reader of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<String>,
}

/// Where a job's files are on its host. They are to be shown: nobody but the host opens them by these names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// The folder that all of them are in.
    pub folder: String,
    /// The log: every byte that the job wrote.
    pub output: String,
    /// The log as a person would have read it.
    pub transcript: String,
}

/// What a prune removed, or would remove.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pruned {
    /// The jobs.
    pub removed: Vec<Handle>,
    /// The disk space this gives back, in bytes.
    pub freed: u64,
    /// The finished jobs that are kept.
    pub kept: usize,
    /// How far the host is still over its limits, because jobs are recent or were not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<OverBudget>,
}

/// How far a home is over its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverBudget {
    /// How many finished jobs it keeps.
    pub jobs: usize,
    /// How much disk they take, in bytes.
    pub bytes: u64,
}

impl OverBudget {
    /// A sentence with what to do about it.
    #[must_use]
    pub fn words(&self) -> String {
        format!(
            "this home is over its budget: {} finished jobs take {} MiB, and are young or were read by nobody; \
             read them, or remove them: outlast prune --keep N",
            self.jobs,
            self.bytes >> 20
        )
    }
}

/// What a host answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The job runs, and this is its handle.
    Started(Handle),
    /// The job that was looked for.
    Found(Handle),
    /// The shell that was looked for, if there is or was one; it may have ended.
    FoundShell(Option<Handle>),
    /// Jobs, oldest first.
    Jobs(Vec<ListedJob>),
    /// How busy the host is.
    Load(Box<Load>),
    /// A job's record.
    Info(Box<Info>),
    /// How a job ended; none while it runs, and for one that is lost.
    Receipt(Option<Box<Receipt>>),
    /// How a job is right now; none when it has no keeper any more.
    Status(Option<Box<Status>>),
    /// What a job uses.
    Details(Details),
    /// A job's processes.
    Processes(Vec<ProcessDetail>),
    /// What a job left running.
    LeftBehind(Vec<Process>),
    /// A text without secrets.
    Hidden(String),
    /// Which wakes would happen.
    Wakes(Vec<WakePlan>),
    /// Where a job's files are.
    Files(Files),
    /// Where a log ends.
    End(u64),
    /// A range as text.
    Text(Text),
    /// A range as bytes.
    Bytes(Bytes),
    /// Lines that match.
    Matches(Matches),
    /// What a terminal shows, or showed.
    Screen(Box<ScreenShot>),
    /// What a terminal showed last, if that was saved.
    LastScreen(Option<String>),
    /// What a job's tools reported; none while it runs, and where nothing is certain.
    Outcome(Option<Box<JobOutcome>>),
    /// When a job printed what.
    Timing(Timing),
    /// A job's own events.
    EventLines(String),
    /// What became of something typed.
    Sent(Sent),
    /// What was typed last.
    Typed(Typed),
    /// What became of a kill or a signal.
    Killed(Killed),
    /// Watches.
    Watches(Vec<Watch>),
    /// How a wait ended.
    Waited {
        /// Which of its jobs ended it, counted from 0.
        which: usize,
        /// How.
        waited: Waited,
    },
    /// A session's events, each as it is in its outbox.
    Events(Vec<serde_json::Value>),
    /// A session has acknowledged everything up to this number.
    Acknowledged(u64),
    /// A job was removed.
    Removed {
        /// The disk space this gives back, in bytes.
        freed: u64,
    },
    /// What was removed.
    Pruned(Pruned),
    /// A step of a shell.
    Step(Box<Step>),
    /// How a shell is.
    Shell(Box<ShellStatus>),
    /// There is nothing to say.
    Done {},
}

impl Request {
    /// The same for the machine that it is sent to: a host knows its own jobs by their numbers alone.
    #[must_use]
    pub fn as_its_host_knows_it(mut self) -> Self {
        let bare = |handle: &mut Handle| *handle = handle.on(None);
        match &mut self {
            Self::Job { job, .. } => bare(job),
            Self::Wait(wait) => wait.waits.iter_mut().for_each(|one| bare(&mut one.job)),
            Self::Start(_)
            | Self::PlanWakes(_)
            | Self::Find { .. }
            | Self::FindShell { .. }
            | Self::List(_)
            | Self::Load {}
            | Self::Events(_)
            | Self::Ack(_)
            | Self::Prune { .. } => {}
            Self::Remove { job } => bare(job),
        }
        self
    }
}

impl Subscription {
    /// The machine that it is about, if that is another one.
    #[must_use]
    pub fn host(&self) -> Option<HostName> {
        match self {
            Self::Job { job } | Self::Attach { job, .. } => job.host(),
            Self::JobList | Self::Session { .. } => None,
        }
    }

    /// The same for the machine that it is sent to.
    #[must_use]
    pub fn as_its_host_knows_it(mut self) -> Self {
        match &mut self {
            Self::Job { job } | Self::Attach { job, .. } => *job = job.on(None),
            Self::JobList | Self::Session { .. } => {}
        }
        self
    }
}

impl Answer {
    /// The answer of another machine as it reads here: its jobs are named with their host.
    #[must_use]
    pub fn seen_from_here(mut self, host: HostName) -> Self {
        let named = |handle: &mut Handle| *handle = handle.on(Some(host));
        match &mut self {
            Self::Started(job) | Self::Found(job) | Self::FoundShell(Some(job)) => named(job),
            Self::Jobs(jobs) => jobs.iter_mut().for_each(|one| named(&mut one.job.handle)),
            Self::Info(info) => named(&mut info.handle),
            Self::Load(load) => load.slots.iter_mut().for_each(|slot| {
                slot.running.iter_mut().chain(&mut slot.queued).for_each(named);
            }),
            Self::Status(status) => status.iter_mut().for_each(|status| named(&mut status.info.handle)),
            Self::Pruned(pruned) => pruned.removed.iter_mut().for_each(named),
            Self::Events(events) => events.iter_mut().for_each(|event| {
                if let Some(job) = event.get_mut("job") {
                    *job = on_host(host, &job.to_string()).into();
                }
            }),
            Self::Receipt(_)
            | Self::Files(_)
            | Self::End(_)
            | Self::Text(_)
            | Self::Bytes(_)
            | Self::Matches(_)
            | Self::Screen(_)
            | Self::LastScreen(_)
            | Self::Timing(_)
            | Self::EventLines(_)
            | Self::Sent(_)
            | Self::Typed(_)
            | Self::Killed(_)
            | Self::Watches(_)
            | Self::Waited { .. }
            | Self::Acknowledged(_)
            | Self::Processes(_)
            | Self::LeftBehind(_)
            | Self::Details(_)
            | Self::Outcome(_)
            | Self::Removed { .. }
            | Self::Hidden(_)
            | Self::Wakes(_)
            | Self::Step(_)
            | Self::Shell(_)
            | Self::FoundShell(None)
            | Self::Done {} => {}
        }
        self
    }
}
