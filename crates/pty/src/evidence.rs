//! Is this job waiting for input? Answered by asking the kernel, not by matching a pattern.
//!
//! A [`Prober`] inspects a job from outside: every process below its keeper, the system call that each thread
//! sleeps in, what else could wake that thread, and the terminal's modes. What the screen shows is additional
//! evidence, passed as [`Hints`] by the owner of the screen; it is never enough alone.
//!
//! In reading order: the [terminal] in question; when a thread wakes by itself ([alarms]); what
//! [descriptors](fds) lead to; how the [sets] of poll, select and epoll are read; what each [thread](threads)
//! does, and what can be inferred when that is [denied]; what is [remembered](history) between samples; the
//! rule itself in [verdict], and what [certainty] needs, with the screen as a second [witness], which follows [nested] terminals; programs that
//! are [told by a signal](signalled); and what [text] can add.
//!
//! Without a `/proc`, a fallback judges by the terminal and the hints alone and never says more than
//! "possible".

#[cfg(all(target_os = "linux", not(outlast_portable)))]
mod terminal;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
mod alarms;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
mod fds;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
mod sets;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
mod compat;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
mod threads;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
mod certainty;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
mod denied;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
mod history;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
mod verdict;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
mod witness;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
mod nested;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
mod signalled;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
mod prober;
#[cfg(any(not(target_os = "linux"), outlast_portable))]
#[path = "evidence/elsewhere.rs"]
mod prober;
mod fields;
mod kinds;
mod modes;
pub mod text;

use std::time::Duration;

use rustix::process::Pid;

pub use fields::question_of_field;
pub use prober::Prober;

/// What the owner of the screen and the clock knows.
#[derive(Clone, Copy, Debug)]
pub struct Hints<'a> {
    /// The text left of the cursor on its row, at most the last 200 characters.
    pub text_before_cursor: &'a str,
    /// The last row above the cursor's with text in it, where nothing stands left of the cursor.
    pub line_above: &'a str,
    /// The program has switched to the alternate screen.
    pub alternate_screen: bool,
    /// The program has asked for bracketed paste.
    pub bracketed_paste: bool,
    /// The program has hidden the cursor.
    pub cursor_hidden: bool,
    /// Time since the last byte came from the program, or since it started.
    pub since_output: Duration,
    /// Time since the last byte was sent to it, or since it started.
    pub since_input: Duration,
    /// How the cursor's row compares with the one where this job was last known to wait.
    pub row: Row,
    /// The rows on the screen ask something or offer a choice. Matters if the cursor is hidden, and so does
    /// not say where to look.
    pub offers_choice: bool,
    /// The rows on the screen list several things, one of which is marked, or say which keys choose one.
    pub lists_choices: bool,
    /// The question of a field that takes text, if the cursor is hidden or nothing stands left of it; empty otherwise.
    pub field: &'a str,
    /// Rows below the cursor's have text in them.
    pub text_below: bool,
    /// A line was typed at the last prompt, and the program has read it.
    pub answered: bool,
}

impl Hints<'_> {
    /// What is asked: the text before the cursor, or the line above if that is a question.
    #[must_use]
    pub fn prompt(&self) -> &str {
        let before = self.text_before_cursor.trim();
        if !self.field.is_empty() && !self.alternate_screen {
            self.field
        } else if before.is_empty() && !self.alternate_screen && text::is_question(self.line_above) {
            self.line_above.trim()
        } else {
            before
        }
    }

    #[cfg(all(target_os = "linux", not(outlast_portable)))]
    /// Whether the screen is drawn as a whole: some do so without the alternate screen, with frames.
    fn is_full_screen(&self) -> bool {
        self.alternate_screen || self.text_before_cursor.contains(kinds::FRAMES)
    }

    /// Whether the screen shows a prompt: the text before the cursor ends like one, or the line above is a question that
    /// ended with a newline. What a program is doing is no question, even if a colon follows.
    fn asks(&self) -> bool {
        let before = self.text_before_cursor;
        if !self.field.is_empty() && !self.alternate_screen {
            return !text::is_progress(self.field);
        }
        if self.is_marked_question() {
            return true;
        }
        if before.trim().is_empty() {
            return !self.alternate_screen
                && text::is_question(self.line_above)
                && !text::is_progress(self.line_above);
        }
        text::is_prompt_like(before) && !text::is_progress(before)
    }
}

impl Hints<'_> {
    /// Whether a line editor stands behind a question that begins with a mark, as those of prompt libraries do: `🎤 Project name`.
    /// What draws something that turns before its words hides the cursor, and takes no pastes.
    fn is_marked_question(&self) -> bool {
        let before = self.text_before_cursor;
        self.bracketed_paste
            && !self.cursor_hidden
            && !self.alternate_screen
            && text::begins_with_mark(before)
            && !text::is_command_prompt(before)
            && !text::is_progress(before)
    }
}

/// How the cursor's row compares with the one where the job was last known to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Row {
    /// Not at all, or the job was never known to wait.
    #[default]
    New,
    /// The text before the cursor is exactly the same.
    SamePrompt,
    /// The same except for its numbers (`In [2]: ` after `In [1]: `), or with a partial line typed after it.
    LikePrompt,
    /// Still the same row, with input that was typed and ended with Enter: the program has not read all of it
    /// yet, and has not asked again.
    Echo,
}

/// What a job is doing about its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Someone has to type, or nothing will happen.
    Waiting(Claim),
    /// It would accept input, but other things can wake it: not waiting.
    Listening(Claim),
    /// Working, or sleeping for reasons of its own.
    Busy,
    /// Stopped by a signal: manually, or for using the terminal from the background.
    Stopped {
        /// One of the stopped processes.
        pid: Pid,
        /// Its name.
        program: String,
    },
    /// It is blocked because nobody reads its output.
    OutputBlocked,
    /// Nothing can be said: not yet, because a first sign must be seen twice; or not at all, because evidence
    /// was denied.
    Unknown,
}

impl Verdict {
    /// The claim, if the verdict is that it waits.
    #[must_use]
    pub fn waiting(&self) -> Option<&Claim> {
        match self {
            Self::Waiting(claim) => Some(claim),
            Self::Listening(_) | Self::Busy | Self::Stopped { .. } | Self::OutputBlocked | Self::Unknown => {
                None
            }
        }
    }
}

/// How certain a claim is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Evidence was denied; what is left suggests it.
    Possible,
    /// Only the terminal can wake it; or a timer or others can too, and the screen shows a prompt.
    Likely,
    /// A foreground thread sleeps in a read of the job's own terminal, and no other thread of any process of
    /// the job can continue by itself.
    ///
    /// It is not reported while one of them runs, waits for a disk or for the network, cannot be inspected,
    /// sleeps in an unknown call, or in one that has a timeout, however long: a timed lock or wait for a
    /// signal, `poll`, `select`, `epoll_wait` with a timeout or a timer in the set, a sleep, a call that was
    /// restarted after a stop. Nor while a process of the job has POSIX timers. It cannot see the timers of
    /// `setitimer` and `alarm`, and timeouts that are set on a socket.
    Certain,
}

/// What kind of input is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// A line, ended by Enter.
    Line,
    /// A line that is not echoed.
    Password,
    /// A single key.
    Key,
    /// Keys to a full-screen program: a menu, an editor.
    Menu,
    /// Keys to a pager.
    Pager,
    /// A command to an interpreter.
    Repl,
    /// Anything, into the pipe that is its standard input.
    Stdin,
}

/// That a job waits or listens, with the evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// How certain it is.
    pub level: Level,
    /// What kind of input is expected.
    pub kind: InputKind,
    /// The text before the cursor, trimmed.
    pub prompt: String,
    /// Which process waits, and where.
    pub evidence: Evidence,
}

/// Which process waits, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The process; `None` if processes cannot be seen.
    pub pid: Option<Pid>,
    /// Its name.
    pub program: String,
    /// The system call it sleeps in; empty if unknown.
    pub syscall: &'static str,
    /// Its descriptor of the terminal, if known.
    pub fd: Option<i32>,
    /// Which terminal it waits at.
    pub tty: Tty,
    /// The reason, in words.
    pub why: String,
}

/// Which terminal a process waits at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tty {
    /// The job's own.
    Own,
    /// One inside it, created by a program that relays input.
    Nested,
}

/// After this much silence, without any evidence, the text alone may decide.
pub const LAST_RESORT_SILENCE: Duration = Duration::from_secs(45);
/// At a prompt that the job was seen to wait at before, no claim is made sooner than this after a byte in
/// either direction. The caller knows that the program has run since the last input, so it only has to be
/// seen asleep twice.
pub const SETTLE_TIME_AT_PROMPT: Duration = Duration::from_micros(150);
/// At such a prompt, two samples must be at least this far apart to count as two. A thread that has not run
/// in between has slept.
pub const MIN_SAMPLE_GAP_AT_PROMPT: Duration = Duration::from_micros(70);

/// When to take the next sample, for somebody who waits for the answer.
///
/// Two early samples after each byte, a quick one to confirm a first sign, then with growing intervals.
#[must_use]
pub fn next_look(hints: &Hints<'_>, unconfirmed: bool) -> Duration {
    let quiet = hints.since_output.min(hints.since_input);
    let ms = Duration::from_millis;
    match [ms(20), ms(42)].into_iter().find(|at| *at > quiet) {
        Some(early) => (early - quiet).max(ms(1)),
        None if unconfirmed => ms(20),
        None if quiet < ms(5000) => ms(50),
        None => ms(200),
    }
}
