//! What a job waits for before it runs: a place in a slot, or the end of other jobs.

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::job::Handle;
use crate::lifecycle::EndedBy;

/// The longest name of a slot, in bytes.
const MAX_SLOT_NAME: usize = 32;
/// A job may wait for as many others.
pub const MAX_AFTER: usize = 64;
/// How many jobs a sentence names.
const NAMED: usize = 4;

/// A place that a job wants before it runs. Jobs that name the same slot get its places in the order in which they came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// Its name.
    pub name: String,
    /// How many jobs may have a place at once, where the host's own settings do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<u32>,
    /// Refuse the job with `busy` instead of queueing it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub or_refuse: bool,
}

impl Slot {
    /// A place in the slot of this name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), places: None, or_refuse: false }
    }

    /// Checks the name.
    ///
    /// # Errors
    /// A usage failure.
    pub fn check(&self) -> Result<(), Failure> {
        check_slot_name(&self.name)
    }
}

/// Checks that a slot can have this name.
///
/// # Errors
/// A usage failure.
pub fn check_slot_name(name: &str) -> Result<(), Failure> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let fits = name.len() <= MAX_SLOT_NAME && name.chars().all(is_plain);
    if fits && name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Ok(());
    }
    Err(Failure::usage(format!("invalid slot name {name:?}")).hint(format!(
        "a slot name is a letter, then letters, digits, '.', '_' or '-', at most {MAX_SLOT_NAME} in all"
    )))
}

/// A job that must have ended first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct After {
    /// Its number or name, on the same host.
    pub job: String,
    /// However it ends; otherwise only if it ends with code 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_end: bool,
}

/// A job that does not run yet: what it waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queued {
    /// The slot that it wants a place in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    /// How many places that has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub places: Option<u32>,
    /// Where it is in the line, from 1; worked out by whoever answers, so not in the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// The jobs that have the places now; also worked out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held_by: Vec<u64>,
    /// The jobs that must end first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<u64>,
    /// There is a place, and the machine is short of memory or its disks are busy: which, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pressure: Option<String>,
    /// Set once somebody began to end it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<EndedBy>,
}

impl Queued {
    /// What it waits for, in words.
    #[must_use]
    pub fn words(&self) -> String {
        let mut parts = Vec::new();
        if !self.after.is_empty() {
            parts.push(format!("waits for the end of {}", jobs(&self.after)));
        }
        if let Some(slot) = &self.slot {
            let place = match self.position {
                Some(position) => format!("{} in line for a place in slot {slot}", ordinal(position)),
                None => format!("wants a place in slot {slot}"),
            };
            parts.push(match (self.held_by.is_empty(), self.places) {
                (false, Some(places)) => {
                    format!("{place} ({}, held by {})", count(places), jobs(&self.held_by))
                }
                (false, None) => format!("{place} (held by {})", jobs(&self.held_by)),
                (true, _) => place,
            });
        }
        if let Some(pressure) = &self.pressure {
            parts.push(format!("held back: {pressure}"));
        }
        if parts.is_empty() { "is about to start".into() } else { parts.join("; ") }
    }
}

fn count(places: u32) -> String {
    if places == 1 { "1 place".into() } else { format!("{places} places") }
}

/// `job 3`, `jobs 3, 4 and 5`, or with how many more there are.
fn jobs(numbers: &[u64]) -> String {
    let words: Vec<String> = numbers.iter().take(NAMED).map(ToString::to_string).collect();
    match (numbers.len(), words.split_last()) {
        (1, _) => format!("job {}", words.join("")),
        (all, Some((last, first))) if all <= NAMED => format!("jobs {} and {last}", first.join(", ")),
        (all, _) => format!("jobs {} and {} more", words.join(", "), all - words.len()),
    }
}

fn ordinal(position: u32) -> String {
    let ending = match (position % 100, position % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{position}{ending}")
}

/// How busy a host is: what a caller needs to choose one of several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Load {
    /// Its slots: those of its settings, and those that have a job.
    pub slots: Vec<SlotLoad>,
    /// How many jobs run.
    pub running: usize,
    /// How many processors it has.
    pub processors: usize,
    /// How much memory is available, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_available: Option<u64>,
    /// The part of the last ten seconds in which nothing went on for want of memory, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_pressure: Option<f64>,
    /// The same for disks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_pressure: Option<f64>,
    /// Why it would hold a job back now, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pressure: Option<String>,
}

/// One slot of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlotLoad {
    /// Its name.
    pub name: String,
    /// How many jobs may have a place at once, if its settings say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub places: Option<u32>,
    /// The jobs that have one.
    pub running: Vec<Handle>,
    /// The jobs in line, the next one first.
    pub queued: Vec<Handle>,
}

impl SlotLoad {
    /// How many places are free, if each job asks for so many.
    #[must_use]
    pub fn free(&self, asked: Option<u32>) -> usize {
        let places = self.places.or(asked).unwrap_or(1) as usize;
        if self.queued.is_empty() { places.saturating_sub(self.running.len()) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queued_job_says_what_it_waits_for() {
        let queued = Queued {
            slot: Some("build".into()),
            places: Some(2),
            position: Some(3),
            held_by: vec![12, 15],
            after: vec![17],
            ..Queued::default()
        };
        assert_eq!(
            queued.words(),
            "waits for the end of job 17; 3rd in line for a place in slot build (2 places, held by jobs 12 and 15)"
        );
        assert_eq!(jobs(&[1, 2, 3, 4, 5, 6]), "jobs 1, 2, 3, 4 and 2 more");
        let ordinals = [1, 2, 11, 21, 112].map(ordinal);
        assert_eq!(ordinals.each_ref().map(String::as_str), ["1st", "2nd", "11th", "21st", "112th"]);
    }

    #[test]
    fn a_slot_name_is_no_path() {
        for wrong in ["", "../x", "a/b", ".lock", "1x", &"x".repeat(33)] {
            assert!(check_slot_name(wrong).is_err(), "{wrong}");
        }
        assert!(check_slot_name("build-2").is_ok());
    }

    #[test]
    fn a_slot_with_a_line_has_no_free_place() {
        let slot = SlotLoad { places: Some(2), running: vec![Handle::new(1)], ..SlotLoad::default() };
        assert_eq!(slot.free(None), 1);
        let line = SlotLoad { queued: vec![Handle::new(2)], ..slot };
        assert_eq!(line.free(None), 0);
    }
}
