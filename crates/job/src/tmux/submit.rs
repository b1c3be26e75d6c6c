//! Seed 000: type a command into a pane, watch the pane until it stands still, and wake whoever lives there.
//!
//! [`prepare`] is quick and is done by the caller; [`work`] takes as long as it takes and is the command of a job.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::pane::{Held, Listener, Pane};
use super::turns::{Turn, take_number};
use super::{Tmux, default_target};
use crate::failure::{Failure, Kind};
use crate::keeper::standing::Standing;
use crate::wire::Stable;

/// What is typed when the command is done, unless something else is wanted.
pub const NOTICE: &str = "[SYSTEM COMMAND] Command complete. Resume.";
/// A line that a program reads as a whole can't be longer.
const LONGEST_LINE: usize = 4095;

/// What to type, where, and when it is done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Submission {
    /// The tmux server's socket.
    pub socket: Option<String>,
    /// The pane, by its number.
    pub pane: String,
    /// The pane that is told, by its number.
    pub told: String,
    /// What to type.
    pub command: String,
    /// What to type when it is done; empty for nothing.
    pub notice: String,
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
    /// Our place in the pane's queue: the file that holds all this.
    #[serde(skip)]
    pub number: PathBuf,
}

/// How a submission went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// The pane stood still.
    Still,
    /// It never did, in the time that there was.
    Capped,
}

/// Finds the panes and takes a place in the queue.
///
/// # Errors
/// When there is no such pane, or the command can't be typed.
pub fn prepare(
    home: &Path,
    mut wanted: Submission,
    env: &std::collections::BTreeMap<String, String>,
) -> Result<Submission, Failure> {
    if wanted.command.trim().is_empty() {
        return Err(Failure::usage("there is nothing to type"));
    }
    let odd = |c: char| c.is_control() && c != '\n' && c != '\t';
    if wanted.command.chars().chain(wanted.notice.chars()).any(odd) {
        return Err(Failure::usage(
            "control characters would be keys: only text, tabs and newlines are typed",
        ));
    }
    let tmux = match &wanted.socket {
        Some(socket) => Tmux::at(Some(socket.clone())),
        None => Tmux::of_env(env),
    };
    if let Some(prompt) = &wanted.prompt {
        super::pane::prompt_of(prompt)?;
    }
    let target = if wanted.pane.is_empty() { default_target(env)? } else { wanted.pane.clone() };
    let pane = tmux.pane(&target)?;
    let told = if wanted.told.is_empty() { pane.clone() } else { tmux.pane(&wanted.told)? };
    wanted.socket = tmux.socket().map(ToOwned::to_owned);
    wanted.pane = pane.id().to_owned();
    wanted.told = told.id().to_owned();
    let server = crate::outbox::folder_name(tmux.socket().unwrap_or("default"));
    let queue = home.join("tmux").join(format!("{server}-{}", &pane.id()[1..]));
    wanted.number = take_number(&queue, &wanted)?;
    Ok(wanted)
}

/// Reads back what [`prepare`] left in the queue.
///
/// # Errors
/// When it is not there.
pub fn read(number: &Path) -> Result<Submission, Failure> {
    let text =
        std::fs::read(number).map_err(|error| Failure::system("the submission can't be read", error))?;
    let wanted: Submission = serde_json::from_slice(&text)
        .map_err(|error| Failure::usage(format!("that is no submission: {error}")))?;
    Ok(Submission { number: number.to_owned(), ..wanted })
}

/// Does it all; `say` gets a line for whatever a person would like to know.
///
/// # Errors
/// When the pane dies or never is free.
pub fn work(wanted: &Submission, say: &mut dyn FnMut(&str)) -> Result<Done, Failure> {
    let tmux = match &wanted.socket {
        Some(socket) => Tmux::at(Some(socket.clone())),
        None => Tmux::default(),
    };
    let turn = Turn::wait_for(wanted.number.clone(), |before| say(&format!("waits for {before} before it")))?;
    let pane = tmux.pane(&wanted.pane)?.with_prompt(wanted.prompt.as_deref())?;
    let mut listener = pane.listen();
    let patience = Instant::now() + Duration::from_millis(wanted.patience_ms);
    settle(&pane, &mut listener, wanted, patience, say)?;
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
    pane.type_line(&mut listener, &wanted.command)?;
    say(&format!("typed {} bytes into {}", wanted.command.len(), pane.id()));
    let done = watch(&pane, &mut listener, wanted)?;
    say(match done {
        Done::Still => "it stands still",
        Done::Capped => "it does not stand still; the time is up",
    });
    // The next may type while we look for a moment to tell.
    if wanted.notice.is_empty() {
        return Ok(done);
    }
    let told = if wanted.told == wanted.pane {
        pane
    } else {
        tmux.pane(&wanted.told)?.with_prompt(wanted.prompt.as_deref())?
    };
    let mut listener = told.listen();
    let patience = Instant::now() + Duration::from_millis(wanted.patience_ms);
    listener.until_free(patience, &mut |held: &Held| say(&format!("waits to tell: {held}")))?;
    told.type_line(&mut listener, &wanted.notice)?;
    say(&format!("told {}", told.id()));
    drop(turn);
    Ok(done)
}

/// Waits until the pane is free and has stood still for a moment.
fn settle(
    pane: &Pane,
    listener: &mut Listener,
    wanted: &Submission,
    patience: Instant,
    say: &mut dyn FnMut(&str),
) -> Result<(), Failure> {
    let moment = Stable { checks: 1, interval_ms: wanted.settle_ms.max(10), ..wanted.stable.clone() };
    loop {
        if !wanted.clear {
            listener.until_free(patience, &mut |held: &Held| say(&format!("waits: {held}")))?;
        }
        let mut standing = Standing::new(&moment, &pane.rows()?, Instant::now())?;
        let happened = listener.pass(Duration::from_millis(moment.interval_ms));
        let still = !happened.output || standing.check(&pane.rows()?, Instant::now());
        if still && (wanted.clear || pane.free()?.is_none()) {
            return Ok(());
        }
        if Instant::now() >= patience {
            let why = format!("nothing was typed into {}: it never settled", pane.id());
            return Err(Failure::new(Kind::System, why)
                .hint("leave out what always moves: --ignore REGEX; or wait longer: --patience TIME"));
        }
    }
}

/// Watches the pane until it stands still: checks at fixed times, as the seed says. A program there that works and
/// does not read holds it up, however still the screen.
pub fn watch(pane: &Pane, listener: &mut Listener, wanted: &Submission) -> Result<Done, Failure> {
    let until = Instant::now() + Duration::from_millis(wanted.cap_ms);
    let mut rows = pane.rows()?;
    let mut standing = Standing::new(&wanted.stable, &rows, Instant::now())?;
    let mut still = false;
    while Instant::now() < until {
        let at = standing.next().min(until);
        let happened = listener.pass(at.saturating_duration_since(Instant::now()));
        if happened.output || happened.changed || happened.over {
            rows = pane.rows()?;
        }
        if Instant::now() < standing.next() {
            continue;
        }
        still = standing.check(&rows, Instant::now()) || (still && !happened.output);
        if still && pane.busy().is_none() {
            return Ok(Done::Still);
        }
    }
    Ok(Done::Capped)
}
