//! Several processes that read under one name, such as two MCP servers of one session: each entry is told by one of them.
//!
//! A process that tells entries claims them first, and confirms them once the answer is out. Claims are in the file
//! `claims-<name>`, which is locked while it is changed. If a process dies in between, its claims are free again: the next
//! one tells the same entries, with the same numbers, and marks them as told again. The reader's place follows what is
//! confirmed.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, openat};
use rustix::process::getpid;
use serde::{Deserialize, Serialize};

use super::{Outbox, reader};
use crate::failure::Failure;
use crate::registry::replace::read_open;
use crate::registry::stable_name::stable_name;
use crate::session::agent_lives;
use outlast_pty::procfs;

const PREFIX: &str = "claims-";
/// A larger file is none of ours.
const MAX_BYTES: usize = 1 << 20;
/// The owner of a claim that was given up.
const NOBODY: &str = "";

/// What is being told under a name at the moment.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct State {
    /// Every number up to this was claimed once.
    told: u64,
    /// Those of them that are not confirmed.
    open: Vec<Claim>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Claim {
    numbers: Vec<u64>,
    /// The process that tells them: its pid and start time.
    owner: String,
}

/// Entries that this process tells now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claimed {
    /// Their numbers, in order.
    pub numbers: Vec<u64>,
    /// Those of them that another process may have told already.
    pub again: Vec<u64>,
    /// How many more there are, beyond what was asked for.
    pub more: usize,
}

impl State {
    /// The number up to which everything is confirmed.
    fn confirmed(&self) -> u64 {
        let open = self.open.iter().flat_map(|claim| claim.numbers.iter());
        open.min().map_or(self.told, |first| first.saturating_sub(1).min(self.told))
    }

    fn remove(&mut self, numbers: &[u64]) {
        for claim in &mut self.open {
            claim.numbers.retain(|number| !numbers.contains(number));
        }
        self.open.retain(|claim| !claim.numbers.is_empty());
    }

    /// Takes the first `most` of the candidates that nobody else tells; `last` is told too if none is left over.
    fn claim(
        &mut self,
        (candidates, most, last): (&[u64], usize, u64),
        place: u64,
        owner: &str,
        lives: impl Fn(&str) -> bool,
    ) -> Claimed {
        self.told = self.told.max(place);
        let settled: Vec<u64> = self
            .open
            .iter()
            .flat_map(|claim| {
                let is_free = !lives(&claim.owner);
                // What is no longer a candidate was withdrawn, or shown in another way.
                let is_over = move |number: &u64| *number <= place || is_free && !candidates.contains(number);
                claim.numbers.iter().copied().filter(is_over)
            })
            .collect();
        self.remove(&settled);
        let free: Vec<u64> = self
            .open
            .iter()
            .filter(|claim| !lives(&claim.owner))
            .flat_map(|claim| claim.numbers.iter().copied())
            .collect();
        let mut numbers: Vec<u64> = candidates
            .iter()
            .copied()
            .filter(|number| *number > self.told || free.contains(number))
            .collect();
        let more = numbers.len().saturating_sub(most);
        numbers.truncate(most);
        let again: Vec<u64> = numbers.iter().copied().filter(|number| free.contains(number)).collect();
        self.remove(&numbers);
        let reached = if more == 0 { last } else { numbers.last().copied().unwrap_or(0) };
        self.told = self.told.max(reached);
        if !numbers.is_empty() {
            self.open.push(Claim { numbers: numbers.clone(), owner: owner.to_owned() });
        }
        Claimed { numbers, again, more }
    }
}

/// This process, as the owner of claims.
fn this_process() -> String {
    let started = procfs::stat(getpid()).map_or(0, |me| me.start_time);
    format!("{}-{started}", getpid().as_raw_nonzero())
}

fn lives(owner: &str) -> bool {
    agent_lives(owner) == Some(true)
}

/// Claims the first `most` of `candidates`, which are numbers in order, that no living process tells. If there are no more
/// than that, everything up to `last` is taken as told.
///
/// # Errors
/// If the disk fails.
pub fn claim(
    outbox: &Outbox,
    name: &str,
    candidates: &[u64],
    most: usize,
    last: u64,
) -> Result<Claimed, Failure> {
    let place = reader::place(outbox, name)?;
    change(outbox, name, |state| state.claim((candidates, most, last), place, &this_process(), lives))
}

/// The answer with these entries is out.
///
/// # Errors
/// If the disk fails.
pub fn confirm(outbox: &Outbox, name: &str, numbers: &[u64]) -> Result<(), Failure> {
    change(outbox, name, |state| state.remove(numbers))
}

/// These entries were claimed, and no answer with them went out.
///
/// # Errors
/// If the disk fails.
pub fn release(outbox: &Outbox, name: &str, numbers: &[u64]) -> Result<(), Failure> {
    change(outbox, name, |state| {
        let owner = this_process();
        for claim in state.open.iter_mut().filter(|claim| claim.owner == owner) {
            if claim.numbers.iter().any(|number| numbers.contains(number)) {
                NOBODY.clone_into(&mut claim.owner);
            }
        }
    })
}

/// Changes the state under its lock, and has the reader's place follow it.
fn change<T>(outbox: &Outbox, name: &str, work: impl FnOnce(&mut State) -> T) -> Result<T, Failure> {
    let broken = |error: std::io::Error| Failure::system("what is being told can't be noted", error);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let path = format!("{PREFIX}{}", stable_name(name));
    let file = openat(&outbox.dir, path, flags, Mode::RUSR | Mode::WUSR).map_err(|e| broken(e.into()))?;
    flock(&file, FlockOperation::LockExclusive).map_err(|error| broken(error.into()))?;
    let text = read_open(&file, MAX_BYTES).unwrap_or_default();
    // What can't be read is forgotten: then the reader's place counts.
    let mut state: State = serde_json::from_slice(&text).unwrap_or_default();
    let done = work(&mut state);
    let file = File::from(file);
    let mut now = serde_json::to_vec(&state).map_err(|error| broken(error.into()))?;
    // Blanks at the end instead of a shorter file: it is written in one step.
    now.resize(now.len().max(text.len()), b' ');
    if now != text {
        file.write_all_at(&now, 0).map_err(broken)?;
    }
    if state.confirmed() > reader::place(outbox, name)? {
        reader::acknowledge(outbox, name, state.confirmed())?;
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimed(state: &mut State, candidates: &[u64], most: usize, who: &str, dead: &str) -> Claimed {
        let last = candidates.last().copied().unwrap_or(0);
        state.claim((candidates, most, last), 0, who, |owner| owner != dead && !owner.is_empty())
    }

    #[test]
    fn each_entry_is_told_by_one_of_two_servers() {
        let mut state = State::default();
        let one = claimed(&mut state, &[1, 2, 3, 4], 3, "a", "-");
        assert_eq!((one.numbers.as_slice(), one.more), ([1, 2, 3].as_slice(), 1));
        let other = claimed(&mut state, &[1, 2, 3, 4], 3, "b", "-");
        assert_eq!((other.numbers.as_slice(), other.again.len()), ([4].as_slice(), 0));
        assert_eq!(state.confirmed(), 0);
        state.remove(&other.numbers);
        assert_eq!(state.confirmed(), 0, "the first answer is not out");
        state.remove(&one.numbers);
        assert_eq!(state.confirmed(), 4);
    }

    #[test]
    fn what_a_dead_server_did_not_confirm_is_told_again_and_marked() {
        let mut state = State::default();
        claimed(&mut state, &[1, 2], 9, "a", "-");
        let next = claimed(&mut state, &[1, 2, 3], 9, "b", "a");
        assert_eq!(
            (next.numbers.as_slice(), next.again.as_slice()),
            ([1, 2, 3].as_slice(), [1, 2].as_slice())
        );
        state.remove(&next.numbers);
        assert_eq!((state.confirmed(), state.open.len()), (3, 0));
        // Withdrawn meanwhile: it holds nothing up.
        claimed(&mut state, &[4, 5], 9, "a", "-");
        let next = claimed(&mut state, &[5], 9, "b", "a");
        assert_eq!(next.numbers, [5]);
        state.remove(&next.numbers);
        assert_eq!(state.confirmed(), 5);
    }
}
