//! The prober for systems without a `/proc`: only the terminal and the hints are known.
//!
//! In simulation this took about one busy program in twenty for a waiting one (`watch`, `less +F`, `stty
//! -echo; sleep`), so it never says more than "possible".

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::process::Pid;

use super::modes::Modes;
use super::{Claim, Evidence, Hints, LAST_RESORT_SILENCE, Level, Tty, Verdict, kinds, text};

/// Judges one job by its terminal.
#[derive(Debug)]
pub struct Prober {}

/// How long the job must be quiet before the terminal's modes count.
const QUIET_FOR_MODES: Duration = Duration::from_millis(300);
/// How long the job must be quiet before its text counts.
const QUIET_FOR_TEXT: Duration = Duration::from_secs(1);

impl Prober {
    /// For the job whose keeper is `root`, whose processes cannot be seen here.
    #[must_use]
    pub fn new(_root: Pid) -> Self {
        Self {}
    }

    /// There is nothing here that hardening would forbid.
    #[doc(hidden)]
    #[must_use]
    pub fn hardened(root: Pid) -> Self {
        Self::new(root)
    }

    /// One sample is as good as two.
    #[must_use]
    pub fn is_unconfirmed(&self) -> bool {
        false
    }

    /// Takes one sample.
    pub fn sample(&mut self, master: BorrowedFd<'_>, hints: &Hints<'_>) -> Verdict {
        let Ok(termios) = rustix::termios::tcgetattr(master) else { return Verdict::Unknown };
        if rustix::termios::tcgetpgrp(master).is_err() {
            return Verdict::Unknown;
        }
        let modes = Modes::from(&termios);
        let Modes { canonical, echo, .. } = modes;
        let prompt = hints.text_before_cursor;
        let quiet = hints.since_output.min(hints.since_input);
        let hidden_line = canonical && !echo && text::is_prompt_like(prompt);
        let friend = text::is_false_friend(prompt);
        let raw = !canonical
            && !friend
            && (!prompt.trim().is_empty() || hints.alternate_screen || hints.bracketed_paste);
        let why = if quiet >= QUIET_FOR_MODES && (hidden_line || raw) {
            "the terminal's modes and the screen look as if it waits"
        } else if quiet >= QUIET_FOR_TEXT && text::is_prompt_like(prompt) {
            "its last line looks like a prompt"
        } else if quiet >= LAST_RESORT_SILENCE && text::looks_like_question(prompt) {
            "it has been silent for long, and its last line looks like a question"
        } else {
            return Verdict::Unknown;
        };
        Verdict::Waiting(Claim {
            level: Level::Possible,
            kind: kinds::kind(hints, modes, ""),
            prompt: hints.prompt().to_owned(),
            evidence: Evidence {
                pid: None,
                program: String::new(),
                syscall: "",
                fd: None,
                tty: Tty::Own,
                why: why.to_owned(),
            },
        })
    }

    /// Who reads a pipe is not visible here.
    pub fn sample_stdin(&mut self, _pipe: BorrowedFd<'_>, _hints: &Hints<'_>) -> Verdict {
        Verdict::Unknown
    }
}
