//! What goes over a keeper's socket: newline-delimited JSON, so that a person can talk to it too.
//!
//! The keeper speaks first, with its [`Hello`]. Then each request has an `id` of the client's choice, and gets
//! one [`Reply`] with that id, at once or, for a wait, when it is over. Output never goes this way: clients read
//! the log themselves, and the keeper only says how far it has grown. See `docs/formats/wire.md`.

pub mod base64;
pub mod brief_status;
mod typing;
mod wait;
mod waited;
pub mod watch;

use serde::{Deserialize, Serialize};

use crate::Size;
pub use crate::event;
use crate::failure::{Failure, Kind};
use crate::hint::Hint;
use crate::info::Info;
use crate::job::Handle;
use crate::lifecycle::Process;
use crate::secret_text::SecretText;
use crate::shell::{ShellStatus, Step, StepOrder};
pub use crate::{Awaiting, AwaitingKind, Evidence, Level, Reason, Stable};
use brief_status::BriefStatus;
use event::{Event, ExecQuestion};
pub use typing::{Send, Sent, Typed};
pub use wait::Wait;
pub use waited::{Found, Waited};
use watch::Watch;

/// The version of the protocol. Keepers outlive upgrades: client and keeper understand every number up to their own.
///
/// 1: the first.
/// 2: waits and watches name their conditions in `until`; events are called `exit` and `port` instead of `ended` and
/// `port_open`. Shapes and words of version 1 are in [`crate::v1`]. Requests have keys: see [`KEYS_SINCE`].
pub const PROTOCOL: u32 = 2;

/// Since this version, a keeper and its heir know by the keys of [requests](Request::key) what they have begun: then a request
/// that must not be carried out twice can be sent again.
pub const KEYS_SINCE: u32 = 2;

/// The oldest version that is understood. Clients of that version refuse a greeting with a higher number.
pub const OLDEST_PROTOCOL: u32 = 1;

/// A line longer than this is refused: input comes in pieces.
pub const LONGEST_LINE: usize = 1 << 20;

/// The most input that goes into one `send` request.
pub const INPUT_PIECE: usize = 64 << 10;

/// The keeper's first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The oldest version of the protocol that it understands: see [`OLDEST_PROTOCOL`].
    pub outlast: u32,
    /// The newest one; a keeper of version 1 does not say.
    #[serde(default = "first_version")]
    pub newest: u32,
    /// The version of the keeper's program.
    pub version: String,
    /// Whose keeper it is.
    pub handle: Handle,
}

/// One line from a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// Unique, and of the client's choice: at most 64 characters, none of which is escaped. A keeper carries out a request
    /// that must not be carried out twice only once for each key, even if it dies and its heir is asked. It comes first in
    /// the line, so that a keeper knows it before it reads the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Comes back in the reply.
    #[serde(default)]
    pub id: u64,
    /// The version of the protocol that the client speaks: see [`PROTOCOL`]. A client of version 1 does not say.
    #[serde(default = "first_version")]
    pub outlast: u32,
    /// What is asked for.
    #[serde(flatten)]
    pub verb: Verb,
}

impl Request {
    /// A request of a client of this version.
    #[must_use]
    pub fn new(id: u64, verb: Verb) -> Self {
        Self { key: None, id, outlast: PROTOCOL, verb }
    }
}

fn first_version() -> u32 {
    1
}

/// What a client can ask of a keeper.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case")]
pub enum Verb {
    /// How the job is.
    Status {
        /// Only what is at hand: see [`BriefStatus`]. Keepers that do not know the word answer in full.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        brief: bool,
    },
    /// Type something.
    Send(Send),
    /// What was typed last.
    Typed,
    /// Type what nobody may see.
    Secret(Secret),
    /// Wait until something holds.
    Wait(Wait),
    /// Send one signal to the whole job.
    Signal {
        /// Its name, with or without `SIG`.
        signal: String,
        /// The session that asks.
        session: String,
    },
    /// End the whole job.
    Kill {
        /// How long it may take to end by itself, in milliseconds.
        grace_ms: u64,
        /// The session that asks.
        session: String,
    },
    /// Take the job over, so that nobody else types into it, or give it back. Nobody inside a job may.
    Hold(Hold),
    /// Change the size of the terminal.
    Resize {
        /// The new size.
        size: Size,
    },
    /// Be told when the log grows, when something happens, and when the job ends.
    Follow,
    /// Attach to the job: a person at a terminal. Asked again, for the screen anew or with another size.
    /// The same reply comes once more whenever the size of the job's terminal changes.
    Attach(Attach),
    /// Make an event of something from now on; the answer is all watches.
    Watch {
        /// What of.
        watch: Watch,
    },
    /// All watches.
    Watches,
    /// No longer; the answer is the watches that are left.
    Unwatch {
        /// The watch's name.
        watch: String,
    },
    /// Answer what a program of the job wants to execute. Nobody inside a job may.
    AnswerQuestion {
        /// Which question.
        question: u64,
        /// Whether it may.
        allow: bool,
        /// Who answers, in words.
        by: String,
    },
    /// Run a command in a shell: its turn comes when the steps before it are over.
    Step(StepOrder),
    /// How a shell is, with its last steps.
    Shell {
        /// Only where it is.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        brief: bool,
    },
    /// End a step of a shell; the shell stays.
    EndStep {
        /// Which; none for the one that runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<u64>,
        /// How long it may take to end by itself, in milliseconds.
        grace_ms: u64,
        /// The session that asks.
        session: String,
    },
    /// What the terminal shows.
    Screen {
        /// With colours and styles.
        #[serde(default)]
        styled: bool,
        /// How many lines of history to add.
        #[serde(default)]
        scrollback: usize,
        /// Without secrets: for agents.
        #[serde(default)]
        masked: bool,
    },
}

impl Verb {
    /// The version of the protocol that a keeper must understand to be asked this.
    #[must_use]
    pub fn needs_version(&self) -> u32 {
        let sayable = match self {
            Verb::AnswerQuestion { .. }
            | Verb::Hold(_)
            | Verb::Step(_)
            | Verb::Shell { .. }
            | Verb::EndStep { .. } => false,
            Verb::Wait(wait) => crate::v1::Wait::try_from(wait).is_ok(),
            Verb::Watch { watch } => crate::v1::Watch::try_from(watch).is_ok(),
            Verb::Status { .. }
            | Verb::Send(_)
            | Verb::Typed
            | Verb::Secret(_)
            | Verb::Signal { .. }
            | Verb::Kill { .. }
            | Verb::Resize { .. }
            | Verb::Follow
            | Verb::Attach(_)
            | Verb::Watches
            | Verb::Unwatch { .. }
            | Verb::Screen { .. } => true,
        };
        if sayable { 1 } else { 2 }
    }

    /// What would be done twice if this were asked twice; none for what does no more the second time.
    #[must_use]
    pub fn done_again_if_repeated(&self) -> Option<&'static str> {
        match self {
            Verb::Status { .. }
            | Verb::Typed
            | Verb::Wait(_)
            | Verb::Kill { .. }
            | Verb::Hold(_)
            | Verb::Resize { .. }
            | Verb::Follow
            | Verb::Attach(_)
            | Verb::Watches
            | Verb::AnswerQuestion { .. }
            | Verb::Shell { .. }
            | Verb::EndStep { .. }
            | Verb::Screen { .. } => None,
            Verb::Step(_) => Some("run"),
            Verb::Send(_) | Verb::Secret(_) => Some("typed"),
            Verb::Signal { .. } => Some("sent"),
            Verb::Watch { .. } => Some("set"),
            Verb::Unwatch { .. } => Some("removed"),
        }
    }
}

/// How a person attaches to a job.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Attach {
    /// The size of the person's terminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// Only to look.
    pub read_only: bool,
    /// Others may type at the same time.
    pub shared: bool,
    /// Sit down at the prompt of a shell: steps of others wait meanwhile.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sits: bool,
    /// The name under which this person has taken the job over, or will: see [`Hold`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
}

/// A person takes a job over, or gives it back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hold {
    /// What the holder is known by, here and in [`Send::holder`]: nobody else can guess it.
    pub holder: String,
    /// Who that is, in words that others may read.
    pub by: String,
    /// Take it, or give it back.
    pub take: bool,
}

/// Something to type that nobody may see.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Secret {
    /// The secret.
    pub value: SecretText,
    /// Press Enter after it.
    pub newline: bool,
    /// Type it even where it may be shown.
    pub force: bool,
}

/// One line from a keeper.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// An answer.
    Reply(Reply),
    /// To followers: how far the logs have grown.
    Grown(Grown),
    /// To followers: something happened.
    Event(Event),
}

/// An answer to a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reply {
    /// The request's id.
    pub id: u64,
    /// The answer itself.
    #[serde(flatten)]
    pub answer: Answer,
}

/// Good or bad.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// To `status` and `follow`.
    Status(Box<Status>),
    /// To a brief `status`.
    #[serde(rename = "glance")]
    BriefStatus(Box<BriefStatus>),
    /// To `send`.
    Sent(Sent),
    /// To `typed`.
    Typed(Typed),
    /// To `wait`.
    Waited(Waited),
    /// To `kill` and `signal`.
    Killed(Killed),
    /// To `screen`.
    Screen(Box<ScreenShot>),
    /// To `attach`.
    Attached(Attached),
    /// To `watch`, `watches` and `unwatch`.
    Watches(Vec<Watch>),
    /// To `step`: its number, and whether it runs or waits.
    Step(Box<Step>),
    /// To `shell`.
    Shell(Box<ShellStatus>),
    /// To what has no answer of its own.
    Done {},
    /// It could not be done.
    Error(WireFailure),
}

/// What a person sees first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// Bytes, in base64, that paint the screen, and then the start of a sequence that has not ended at `offset`.
    pub repaint: String,
    /// The end of the log that they show.
    pub offset: u64,
    /// The size of the job's terminal.
    pub size: Size,
    /// How many people are in front of it now.
    pub viewers: usize,
}

/// How far the logs have grown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grown {
    /// The end of the output.
    pub offset: u64,
    /// In pipe mode, the end of stderr.
    #[serde(default)]
    pub errors: u64,
}

/// How a job is right now.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Its record.
    pub info: Info,
    /// How far the logs have grown.
    pub grown: Grown,
    /// What it is doing.
    pub activity: Activity,
    /// Input that the program has not taken yet, in bytes.
    #[serde(default)]
    pub queued_input: u64,
    /// Why the log can't be written, if it can't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_failing: Option<String>,
    /// What it waits for, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaiting_input: Option<Awaiting>,
    /// The TCP ports it listens on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    /// The Unix sockets it listens on, by path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sockets: Vec<String>,
    /// The last line it printed, as it reads now.
    #[serde(default)]
    pub last_line: String,
    /// The processes of the job, the command first.
    #[serde(default)]
    pub processes: Vec<Process>,
    /// What a person is asked about programs of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<ExecQuestion>,
    /// Who has taken it over, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
}

/// What a running job is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "activity", rename_all = "snake_case")]
pub enum Activity {
    /// It does not run yet: it waits for a place, or for other jobs to end.
    Queued,
    /// It printed something just now.
    Working,
    /// It has printed nothing for a while.
    Quiet {
        /// For how long, in milliseconds.
        for_ms: u64,
    },
    /// It takes input, and does not wait for it: other things can wake it, too.
    Listening {
        /// For how long it has printed nothing, in milliseconds.
        for_ms: u64,
    },
    /// It waits for input.
    AwaitingInput,
    /// A program of it stands still until a person has agreed to what it wants to execute.
    Asking,
    /// It was stopped by a signal and can be continued.
    Stopped,
    /// It has ended; only left-behind children keep the keeper busy.
    Ended,
}

/// What became of a `kill` or `signal`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Killed {
    /// How many processes got the signal.
    pub signalled: usize,
    /// What is still there, if it was meant to end.
    #[serde(default)]
    pub survivors: Vec<Process>,
    /// Whether the job had already ended, with nothing left behind.
    #[serde(default)]
    pub already_ended: bool,
    /// Whether there may be more that can't be seen: the machine hides other users' processes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unseen: bool,
    /// What the caller should know besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What a terminal shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScreenShot {
    /// Its size.
    pub size: Size,
    /// Its rows from the top, blanks at their ends cut off.
    pub rows: Vec<String>,
    /// Older lines that have left the screen, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scrollback: Vec<String>,
    /// Where the cursor is, from 0.
    pub cursor: Cursor,
    /// The window title that the program set.
    #[serde(default)]
    pub title: String,
    /// Whether a full-screen program has taken the screen.
    pub alternate: bool,
    /// Whether the program wants pasted text marked.
    pub bracketed_paste: bool,
    /// Whether arrow keys are sent in their application form.
    pub application_cursor: bool,
    /// How often the bell rang.
    #[serde(default)]
    pub bells: u64,
    /// The end of the log that this shows.
    pub offset: u64,
}

/// Where a cursor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// Row, from 0 at the top.
    pub row: u16,
    /// Column, from 0 at the left.
    pub col: u16,
    /// Whether it shows.
    pub visible: bool,
}

/// A [`Failure`] on the wire.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WireFailure {
    /// The kind's name.
    pub kind: String,
    /// What is wrong.
    pub message: String,
    /// What to do next.
    #[serde(flatten)]
    pub hint: Hint,
}

impl From<Failure> for WireFailure {
    fn from(failure: Failure) -> Self {
        Self {
            kind: failure.kind.name().into(),
            message: failure.message,
            hint: failure.hint.unwrap_or_default(),
        }
    }
}

impl From<WireFailure> for Failure {
    fn from(failure: WireFailure) -> Self {
        Self { kind: Kind::from_name(&failure.kind), message: failure.message, hint: failure.hint.some() }
    }
}

/// One JSON line, newline included.
#[must_use]
pub fn line(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}
