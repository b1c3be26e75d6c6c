//! Is this job waiting for somebody to type? Asked of the kernel, not of a pattern.
//!
//! A [`Prober`] looks at a job from outside: at every process below its keeper, at the system call that each
//! thread sleeps in, at what else could wake that thread, and at the terminal's own modes. What the screen shows
//! is a second witness, given as [`Hints`] by whoever owns the screen; it never suffices alone.
//!
//! In reading order: the [terminal] in question; when a thread wakes by itself ([alarms]); what
//! [descriptors](fds) lead to; how the [sets] of poll, select and epoll are taken apart; what each
//! [thread](threads) does, and what is left to say when that is [denied]; what is [remembered](history) between
//! looks; the rule itself in [verdict], with the screen as its [witness], which follows [nested] terminals; and
//! what [text] can add.
//!
//! Where there is no `/proc`, a written fallback judges by the terminal and the hints alone and never says more
//! than "possible".

#[cfg(target_os = "linux")]
mod terminal;
#[cfg(target_os = "linux")]
mod alarms;
#[cfg(target_os = "linux")]
mod fds;
#[cfg(target_os = "linux")]
mod sets;
#[cfg(target_os = "linux")]
mod threads;
#[cfg(target_os = "linux")]
mod denied;
#[cfg(target_os = "linux")]
mod history;
#[cfg(target_os = "linux")]
mod verdict;
#[cfg(target_os = "linux")]
mod witness;
#[cfg(target_os = "linux")]
mod nested;
#[cfg(target_os = "linux")]
mod prober;
#[cfg(not(target_os = "linux"))]
#[path = "evidence/elsewhere.rs"]
mod prober;
mod kinds;
pub mod text;

use std::time::Duration;

use rustix::process::Pid;

pub use prober::Prober;

/// What the owner of the screen and the clock knows.
#[derive(Clone, Copy, Debug)]
pub struct Hints<'a> {
    /// What stands left of the cursor on its row, the last 200 characters of it.
    pub text_before_cursor: &'a str,
    /// The program has switched to the alternate screen.
    pub alternate_screen: bool,
    /// The program has asked for pasted text to be marked.
    pub bracketed_paste: bool,
    /// The program has hidden the cursor.
    pub cursor_hidden: bool,
    /// Time since the last byte came from the program, or since it started.
    pub since_output: Duration,
    /// Time since the last byte was sent to it, or since it started.
    pub since_input: Duration,
    /// What the cursor's row has to do with the one where this job was last known to wait.
    pub row: Row,
    /// The rows on the screen ask something, or offer a choice: of use where the cursor is hidden, and so does
    /// not say where to look.
    pub offers_choice: bool,
    /// The program has asked its terminal something, as the last thing it wrote, and has no answer yet.
    pub query_unanswered: bool,
}

/// What the cursor's row has to do with the one where the job was last known to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Row {
    /// Nothing, or it was never known to wait.
    #[default]
    New,
    /// The text before the cursor is the same to the letter.
    SamePrompt,
    /// The same but for the numbers in it, `In [2]: ` after `In [1]: `; or with half a line typed behind it.
    LikePrompt,
    /// It is the same row still, with input that was typed and ended with Enter: the program has not taken all
    /// of it yet, and has not asked again.
    Echo,
}

/// What a job is doing about its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Somebody has to type, or it will stay as it is.
    Waiting(Claim),
    /// It would take input, but has other things that can wake it: not waiting.
    Listening(Claim),
    /// At work, or asleep for reasons of its own.
    Busy,
    /// Stopped by a signal: by hand, or for touching the terminal from the background.
    Stopped {
        /// One of the stopped.
        pid: Pid,
        /// Its name.
        program: String,
    },
    /// It can't go on because nobody takes its output.
    OutputBlocked,
    /// Nothing can be said: not yet, because a first sign must be seen twice, or not at all, because evidence was
    /// refused.
    Unknown,
}

impl Verdict {
    /// The claim that it waits, if that is the verdict.
    #[must_use]
    pub fn waiting(&self) -> Option<&Claim> {
        match self {
            Self::Waiting(claim) => Some(claim),
            _ => None,
        }
    }
}

/// How sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Evidence was refused; what is left speaks for it.
    Possible,
    /// The terminal is all that can wake it; or a clock or others can, too, and the screen shows a prompt.
    Likely,
    /// A foreground thread sleeps in a read of the job's own terminal, and no other thread of any process of the
    /// job can go on by itself.
    ///
    /// It is not said while one of them runs, waits for a disk or for the network, can't be looked into, sleeps
    /// in a call that is not known here, or in one that has a timeout, however long: a timed lock or wait for a
    /// signal, `poll`, `select`, `epoll_wait` with a timeout or a timer in the set, a sleep, a call that was
    /// taken up again after a stop. Nor while a process of the job has POSIX timers. What is not seen are the
    /// timers of `setitimer` and `alarm`, and timeouts that are set on a socket.
    Certain,
}

/// What sort of input is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A line, ended by Enter.
    Line,
    /// A line that is not shown.
    Password,
    /// A single key.
    Key,
    /// Keys to a full-screen program: a menu, an editor.
    Menu,
    /// Keys to a pager.
    Pager,
    /// A command to an interpreter.
    Repl,
}

/// That a job waits or listens, and how that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// How sure it is.
    pub level: Level,
    /// What sort of input is wanted.
    pub kind: Kind,
    /// The text before the cursor, without blanks at its ends.
    pub prompt: String,
    /// Who waits, and where.
    pub evidence: Evidence,
}

/// Who waits, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The process; `None` where processes can't be seen.
    pub pid: Option<Pid>,
    /// Its name.
    pub program: String,
    /// The system call it sleeps in; empty when that is not known.
    pub syscall: &'static str,
    /// Its descriptor for the terminal, when known.
    pub fd: Option<i32>,
    /// Which terminal it waits at.
    pub tty: Tty,
    /// The reason in words.
    pub why: String,
}

/// Which terminal somebody waits at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tty {
    /// The job's own.
    Own,
    /// One inside it, made by a program that passes input on.
    Nested,
}

/// What may be read of other processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// All that the kernel allows.
    #[default]
    Full,
    /// Only what needs no right to attach a debugger, as on kernels that forbid that to everybody. For tests.
    Hardened,
}

/// How much somebody cares for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attention {
    /// Somebody waits for it.
    Awaited,
    /// Somebody may look at it: a client is attached.
    Attached,
    /// Nobody does.
    None,
}

/// After how long a silence, with no evidence at all, the text may speak alone.
const LAST_RESORT: Duration = Duration::from_secs(45);

/// When to take the next sample.
///
/// Two early looks after each byte, a quick second look to confirm a first sign, and then ever more seldom.
#[must_use]
pub fn next_look(hints: &Hints<'_>, attention: Attention, unconfirmed: bool) -> Duration {
    let quiet = hints.since_output.min(hints.since_input);
    let ms = Duration::from_millis;
    let early = [ms(20), ms(42)].into_iter().find(|at| *at > quiet).map(|at| at - quiet);
    match (attention, early) {
        (Attention::Awaited | Attention::Attached, Some(early)) => early.max(ms(1)),
        (Attention::Awaited, None) if unconfirmed => ms(20),
        (Attention::Awaited, None) if quiet < ms(5000) => ms(50),
        (Attention::Awaited, None) => ms(200),
        (Attention::Attached, None) if unconfirmed => ms(50),
        (Attention::Attached, None) if quiet < ms(5000) => ms(100),
        (Attention::Attached, None) => ms(1000),
        (Attention::None, _) => ms(5000),
    }
}
