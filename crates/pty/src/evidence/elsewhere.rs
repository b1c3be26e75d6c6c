//! The prober for systems without a `/proc`: the terminal, the hints, and of the programs in front whether they sleep and how much
//! CPU time they have used. Which call they sleep in is not told.
//!
//! By the terminal and the text alone, about one busy program in twenty was taken for a waiting one in a simulation (`watch`,
//! `less +F`, `stty -echo; sleep`). So a claim is "likely" only if all programs in front have slept between two looks and the
//! screen shows a prompt, and "possible" otherwise; it is never certain.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::modes::Modes;
use super::{Claim, Evidence, Hints, LAST_RESORT_SILENCE, Level, Tty, Verdict, kinds, text};
use crate::procfs::{self, Proc, State};

/// Judges one job by its terminal and the programs in front of it.
#[derive(Debug)]
pub struct Prober {
    root: Pid,
    /// What the programs in front had used when they were first seen asleep with no more than this.
    asleep: Option<Asleep>,
}

#[derive(Debug, PartialEq, Eq)]
struct Asleep {
    since: Instant,
    used: Vec<(Pid, u64)>,
}

/// What the programs in front are doing.
enum Front {
    /// One of them runs, or has run since the last look.
    Busy,
    /// All sleep, and have for at least [`SLEPT`].
    Asleep {
        pid: Pid,
        program: String,
    },
    /// They sleep now.
    NotYet,
    Stopped {
        pid: Pid,
        program: String,
    },
    Unknown,
}

/// How long programs must have slept, with no CPU time used.
const SLEPT: Duration = Duration::from_millis(60);
/// How long the job must be quiet before its modes and its text count, where the programs in front are known to sleep.
const QUIET_ASLEEP: Duration = Duration::from_millis(120);
/// The same where they are not seen.
const QUIET_FOR_MODES: Duration = Duration::from_millis(300);
/// How long the job must be quiet before its text counts.
const QUIET_FOR_TEXT: Duration = Duration::from_secs(1);

impl Prober {
    /// For the job whose keeper is `root`.
    #[must_use]
    pub fn new(root: Pid) -> Self {
        Self { root, asleep: None }
    }

    /// There is nothing here that hardening would forbid.
    #[doc(hidden)]
    #[must_use]
    pub fn hardened(root: Pid) -> Self {
        Self::new(root)
    }

    /// Programs were seen asleep once.
    #[must_use]
    pub fn is_unconfirmed(&self) -> bool {
        self.asleep.as_ref().is_some_and(|asleep| asleep.since.elapsed() < SLEPT)
    }

    /// Takes one sample.
    pub fn sample(&mut self, master: BorrowedFd<'_>, hints: &Hints<'_>) -> Verdict {
        let Ok(termios) = rustix::termios::tcgetattr(master) else { return Verdict::Unknown };
        let Ok(group) = rustix::termios::tcgetpgrp(master) else { return Verdict::Unknown };
        let front = self.front(group);
        let (level, quiet_modes, quiet_text) = match &front {
            Front::Busy => return Verdict::Busy,
            Front::Stopped { pid, program } => {
                return Verdict::Stopped { pid: *pid, program: program.clone() };
            }
            Front::NotYet => return Verdict::Unknown,
            Front::Asleep { .. } => (Level::Likely, QUIET_ASLEEP, QUIET_ASLEEP),
            Front::Unknown => (Level::Possible, QUIET_FOR_MODES, QUIET_FOR_TEXT),
        };
        let modes = Modes::from(&termios);
        let Some(why) = looks_waiting(hints, modes, (quiet_modes, quiet_text)) else {
            return Verdict::Unknown;
        };
        let (pid, program) = match front {
            Front::Asleep { pid, program } => (Some(pid), program),
            Front::Busy | Front::NotYet | Front::Stopped { .. } | Front::Unknown => (None, String::new()),
        };
        let is_prompt = hints.asks() && !text::is_false_friend(hints.text_before_cursor);
        Verdict::Waiting(Claim {
            level: if is_prompt { level } else { Level::Possible },
            kind: kinds::kind(hints, modes, &program),
            prompt: hints.prompt().to_owned(),
            evidence: Evidence { pid, program, syscall: "", fd: None, tty: Tty::Own, why: why.to_owned() },
        })
    }

    /// Looks at the foreground group.
    fn front(&mut self, group: Pid) -> Front {
        let number = group.as_raw_nonzero().get();
        let mut members: Vec<Proc> = procfs::descendants(self.root);
        members.retain(|process| process.pgrp == number && process.is_alive());
        let Some(leader) = members.iter().find(|process| process.pid == group).or(members.first()).cloned()
        else {
            return Front::Unknown;
        };
        if members.iter().all(|process| process.state == State::Stopped) {
            return Front::Stopped { pid: leader.pid, program: leader.comm };
        }
        if members.iter().any(|process| matches!(process.state, State::Running | State::Disk)) {
            self.asleep = None;
            return Front::Busy;
        }
        let used: Option<Vec<(Pid, u64)>> =
            members.iter().map(|process| Some((process.pid, procfs::cpu_time(process.pid)?))).collect();
        let Some(used) = used else { return Front::Unknown };
        match &self.asleep {
            Some(asleep) if asleep.used == used => {
                if asleep.since.elapsed() < SLEPT {
                    return Front::NotYet;
                }
                Front::Asleep { pid: leader.pid, program: leader.comm }
            }
            Some(_) | None => {
                self.asleep = Some(Asleep { since: Instant::now(), used });
                Front::NotYet
            }
        }
    }

    /// Who reads a pipe is not visible here.
    pub fn sample_stdin(&mut self, _pipe: BorrowedFd<'_>, _hints: &Hints<'_>) -> Verdict {
        Verdict::Unknown
    }
}

/// Why the terminal and the screen look as if somebody has to type.
fn looks_waiting(hints: &Hints<'_>, modes: Modes, quiet_for: (Duration, Duration)) -> Option<&'static str> {
    let Modes { canonical, echo, .. } = modes;
    let prompt = hints.text_before_cursor;
    let quiet = hints.since_output.min(hints.since_input);
    let hidden_line = canonical && !echo && text::is_prompt_like(prompt);
    let raw = !canonical
        && !text::is_false_friend(prompt)
        && (!prompt.trim().is_empty() || hints.alternate_screen || hints.bracketed_paste);
    if quiet >= quiet_for.0 && (hidden_line || raw) {
        Some("the terminal's modes and the screen look as if it waits")
    } else if quiet >= quiet_for.1 && (text::is_prompt_like(prompt) || hints.asks()) {
        Some("its last line looks like a prompt")
    } else if quiet >= LAST_RESORT_SILENCE && text::looks_like_question(prompt) {
        Some("it has been silent for long, and its last line looks like a question")
    } else {
        None
    }
}
