//! Submit: type a command into a pane, watch the pane until it stands still, and wake the program in it.
//!
//! [`prepare`] is quick and is done by the caller; [`work`] takes as long as it takes and is the command of a job.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::listen::{Listener, Said};
use super::pane::{Held, Identity, Pane};
use super::turns::{self, Turn, take_number};
use super::{Tmux, default_target};
use outlast_protocol::failure::{Failure, Kind};
use outlast_protocol::wire::Stable;
use outlast_stream::StableScreen;

/// A line that a program reads as a whole can't be longer.
const LONGEST_LINE: usize = 4095;

/// What to type, where, and when it is done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Submission {
    /// The tmux server's socket.
    pub socket: Option<String>,
    /// The pane, as tmux names panes.
    pub pane: String,
    /// The pane that is told, as tmux names panes.
    pub told: String,
    /// Which panes these are, so that a number is not taken for another pane of another server.
    pub pinned: Option<Pinned>,
    /// What to type.
    pub command: String,
    /// When the pane counts as standing still.
    pub stable: Stable,
    /// The pane must stand still for so long before anything is typed, in milliseconds.
    pub settle_ms: u64,
    /// It is watched for so long at most, in milliseconds.
    pub cap_ms: u64,
    /// It may be in use for so long before we give up, in milliseconds.
    pub patience_ms: u64,
    /// What a prompt looks like there, besides what is built in.
    #[serde(default)]
    pub prompt: Option<String>,
    /// Clear the line first, as a person would with Escape and Ctrl-U.
    pub clear: bool,
    /// Type key by key, for programs that take no pastes.
    #[serde(default)]
    pub keys: bool,
    /// Our place in the pane's queue: the file that holds all this.
    #[serde(skip)]
    pub number: PathBuf,
}

/// The two panes of a submission, for good.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pinned {
    pane: Identity,
    told: Identity,
}

/// How the watching ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// The pane stood still.
    Still,
    /// It stands still, and the command waits for an answer.
    Asks,
    /// It never did, in the time that there was.
    Capped,
}

/// Finds the panes and takes a place in the queue.
///
/// # Errors
/// When there is no such pane, or the command can't be typed.
pub fn prepare(
    mut wanted: Submission,
    env: &std::collections::BTreeMap<String, String>,
) -> Result<Submission, Failure> {
    if wanted.command.trim().is_empty() {
        return Err(Failure::usage("there is nothing to type"));
    }
    let odd = |c: char| c.is_control() && c != '\n' && c != '\t';
    if wanted.command.chars().any(odd) {
        return Err(Failure::usage(
            "control characters would be keys: only text, tabs and newlines are typed",
        ));
    }
    let tmux = match &wanted.socket {
        Some(socket) => Tmux::at(Some(socket.clone())),
        None => Tmux::of_env(env),
    };
    if let Some(prompt) = &wanted.prompt {
        super::prompt::prompt_of(prompt)?;
    }
    let target = if wanted.pane.is_empty() { default_target(env)? } else { wanted.pane.clone() };
    let pane = tmux.pane(&target)?;
    let told = if wanted.told.is_empty() { pane.clone() } else { tmux.pane(&wanted.told)? };
    wanted.socket = tmux.socket().map(ToOwned::to_owned);
    wanted.pane = pane.id().to_owned();
    wanted.told = told.id().to_owned();
    wanted.pinned =
        Some(Pinned { pane: pane.identity().clone(), told: told.for_its_program().identity().clone() });
    wanted.number = take_number(&turns::folder(pane.identity())?, &wanted)?;
    Ok(wanted)
}

impl Submission {
    fn tmux(&self) -> Tmux {
        self.socket.as_ref().map_or_else(Tmux::default, |socket| Tmux::at(Some(socket.clone())))
    }

    fn pinned(&self) -> Result<&Pinned, Failure> {
        self.pinned.as_ref().ok_or_else(|| Failure::usage("that submission names no pane"))
    }

    /// The pane that is told, for good.
    #[must_use]
    pub fn told(&self) -> Option<&Identity> {
        self.pinned.as_ref().map(|pinned| &pinned.told)
    }
}

/// Reads back what [`prepare`] left in the queue.
///
/// # Errors
/// When it is not there.
pub fn read(number: &Path) -> Result<Submission, Failure> {
    let text =
        std::fs::read(number).map_err(|error| Failure::system("the submission can't be read", error))?;
    let wanted: Submission = serde_json::from_slice(&text)
        .map_err(|error| Failure::usage(format!("invalid submission: {error}")))?;
    Ok(Submission { number: number.to_owned(), ..wanted })
}

/// Does it all; `say` gets a line for whatever a person would like to know.
///
/// # Errors
/// When the pane dies or never is free.
pub fn work(wanted: &Submission, say: &mut dyn FnMut(&str)) -> Result<Done, Failure> {
    let tmux = wanted.tmux();
    let turn = Turn::wait_for(wanted.number.clone(), |before| say(&format!("waits for {before} before it")))?;
    let pinned = wanted.pinned()?;
    let pane = Pane::again(&tmux, &pinned.pane)?.with_prompt(wanted.prompt.as_deref())?;
    let mut listener = pane.listen();
    let patience = Instant::now() + Duration::from_millis(wanted.patience_ms);
    let mut said = Said::default();
    let before = loop {
        settle(&pane, &mut listener, wanted, (patience, &mut said), say)?;
        if wanted.clear {
            pane.press(&["Escape"])?;
            listener.pass(Duration::from_millis(100));
            pane.press(&["C-u"])?;
            listener.pass(Duration::from_millis(200));
        }
        let longest = wanted.command.split('\n').map(str::len).max().unwrap_or(0);
        if longest > LONGEST_LINE && pane.reads_lines() {
            return Err(Failure::usage(format!(
                "the program in {} reads whole lines, of {LONGEST_LINE} bytes at most; this one has {longest}",
                pane.id()
            )));
        }
        let before = pane.front_leader();
        if pane.type_command(&mut listener, wanted)? {
            break before;
        }
        if Instant::now() >= patience {
            return Err(never_settled(&pane));
        }
    };
    say(&format!("typed {} bytes into {}", wanted.command.len(), pane.id()));
    let done = watch(&pane, &mut listener, wanted, before)?;
    say(match done {
        Done::Still => "it stands still",
        Done::Asks => "it stands still and asks for an answer",
        Done::Capped => "deadline: it does not stand still, and the time is up",
    });
    drop(turn);
    Ok(done)
}

fn never_settled(pane: &Pane) -> Failure {
    let why = format!("nothing was typed into {}: it never settled", pane.id());
    Failure::new(Kind::System, why)
        .hint("leave out what always moves: --ignore REGEX; or wait longer: --patience TIME")
}

/// Waits until the pane is free and has stood still for a moment.
fn settle(
    pane: &Pane,
    listener: &mut Listener,
    wanted: &Submission,
    (patience, said): (Instant, &mut Said),
    say: &mut dyn FnMut(&str),
) -> Result<(), Failure> {
    let moment = Stable { checks: 1, interval_ms: wanted.settle_ms.max(10), ..wanted.stable.clone() };
    loop {
        if !wanted.clear {
            listener.until_free(patience, said, &mut |held: &Held| say(&format!("waits: {held}")))?;
        }
        let mut screen = StableScreen::new(&moment, &pane.rows()?, Instant::now())?;
        let happened = listener.pass(Duration::from_millis(moment.interval_ms));
        let still = !happened.output || screen.check(&pane.rows()?, Instant::now());
        if still && (wanted.clear || pane.free()?.is_none()) {
            return Ok(());
        }
        if Instant::now() >= patience {
            return Err(never_settled(pane));
        }
    }
}

/// Watches the pane until it stands still: checks at fixed times, whatever bytes come in between. A program there that works and
/// does not read holds it up, however still the screen. `before` is the program that was there when the command was typed.
fn watch(
    pane: &Pane,
    listener: &mut Listener,
    wanted: &Submission,
    before: Option<(i32, u64)>,
) -> Result<Done, Failure> {
    let until = Instant::now() + Duration::from_millis(wanted.cap_ms);
    let mut rows = pane.rows()?;
    let mut screen = StableScreen::new(&wanted.stable, &rows, Instant::now())?;
    let mut still = false;
    while Instant::now() < until {
        let at = screen.next().min(until);
        let happened = listener.pass(at.saturating_duration_since(Instant::now()));
        if happened.output || happened.changed || happened.over {
            rows = pane.rows()?;
        }
        if Instant::now() < screen.next() {
            continue;
        }
        still = screen.check(&rows, Instant::now()) || (still && !happened.output);
        if still && pane.busy().is_none() {
            return Ok(if pane.asks_for_answer(before)? { Done::Asks } else { Done::Still });
        }
    }
    Ok(Done::Capped)
}
