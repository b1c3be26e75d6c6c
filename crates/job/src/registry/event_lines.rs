//! The events of a job as they are on the disk: those of a shell's steps are in files of their own, and belong between the others.

use std::collections::BTreeMap;

use outlast_protocol::event::{Event, EventKind};
use outlast_protocol::shell::Step;
use rustix::fs::{Mode, fstat};
use rustix::io::Errno;
use serde::Deserialize;

use super::{JobDir, layout};
use crate::log::writer::read_exact_at;

/// How much is read to know what happened last.
const LAST: usize = 1 << 20;
/// How often the files are read again because events came meanwhile.
const MAX_LOOKS: usize = 4;
/// More than most events have, and more than any has.
const SHORT_EVENT: usize = 4 << 10;
const LONG_EVENT: usize = 64 << 10;

/// The end of a file.
#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
    /// Whether it has more before.
    is_cut: bool,
    /// Whether what came last could not be written to it.
    is_behind: bool,
}

/// Of an event, only where it belongs.
#[derive(Deserialize)]
struct Place {
    seq: u64,
}

impl JobDir {
    /// The newest whole lines of all events that fit, oldest first.
    ///
    /// # Errors
    /// There are no events, or they can't be read.
    pub(crate) fn event_lines(&self, max: usize) -> Result<Vec<u8>, Errno> {
        let mut events = self.tail_of(layout::EVENTS, max)?;
        let mut steps = self.tail_of(layout::STEPS, max).unwrap_or_default();
        // An event may come between two looks, and then a step after it: the files must be of one moment.
        for _ in 0..MAX_LOOKS {
            let again = self.tail_of(layout::EVENTS, max)?;
            if again.bytes == events.bytes {
                break;
            }
            events = again;
            steps = self.tail_of(layout::STEPS, max).unwrap_or_default();
        }
        // It may be put away between two looks, and be in both.
        let room = max.saturating_sub(steps.bytes.len());
        let older = self.tail_of(layout::OLD_STEPS, room).unwrap_or_default();
        if steps.bytes.is_empty() && older.bytes.is_empty() {
            return Ok(events.bytes);
        }
        let mut placed: Vec<(u64, &[u8])> = Vec::new();
        // Where lines of a file are left out, older ones of the others are too: what is given has no gap.
        let mut from = 0;
        for tail in [&events, &older, &steps] {
            let lines = tail.bytes.split_inclusive(|byte| *byte == b'\n');
            let of_file = lines
                .filter_map(|line| serde_json::from_slice(line).ok().map(|Place { seq }: Place| (seq, line)));
            let before = placed.len();
            placed.extend(of_file);
            if let (true, Some((first, _))) = (tail.is_cut, placed.get(before)) {
                from = from.max(*first);
            }
        }
        placed.retain(|(seq, _)| *seq >= from);
        placed.sort_by_key(|(seq, _)| *seq);
        placed.dedup();
        let mut left = max;
        let fits = placed.iter().rev().take_while(|(_, line)| {
            let room = left.checked_sub(line.len());
            left = room.unwrap_or(0);
            room.is_some()
        });
        let first = placed.len() - fits.count();
        Ok(placed[first..].iter().flat_map(|(_, line)| line.iter().copied()).collect())
    }

    /// The folder that a shell is in, as its last step says; none before that, and while the last step is not on the disk.
    pub(crate) fn shell_folder(&self) -> Option<String> {
        [SHORT_EVENT, LONG_EVENT].into_iter().find_map(|size| {
            let last = self.tail_of(layout::STEPS, size).ok().filter(|tail| !tail.is_behind)?;
            let mut lines = last.bytes.split(|byte| *byte == b'\n').rev().filter(|line| !line.is_empty());
            lines.find_map(|line| {
                let event: Event = serde_json::from_slice(line).ok()?;
                let (EventKind::StepStarted { step } | EventKind::Step { step }) = event.what else {
                    return None;
                };
                Some(step.folder.unwrap_or(step.folder_before))
            })
        })
    }

    /// What happened last.
    pub(crate) fn events(&self) -> Vec<Event> {
        let lines = self.event_lines(LAST).unwrap_or_default();
        lines.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }

    /// The last bytes of a file, from the first whole line on.
    fn tail_of(&self, name: &str, max: usize) -> Result<Tail, Errno> {
        let file = self.open(name)?;
        let stat = fstat(&file)?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let is_behind = Mode::from_raw_mode(stat.st_mode).contains(layout::STEPS_BEHIND);
        let from = size.saturating_sub(max as u64);
        let mut bytes = vec![0; usize::try_from(size - from).unwrap_or(0)];
        let got = read_exact_at(&file, &mut bytes, from);
        bytes.truncate(got);
        if from > 0 {
            let whole = bytes.iter().position(|byte| *byte == b'\n').map_or(got, |at| at + 1);
            bytes.drain(..whole);
        }
        Ok(Tail { bytes, is_cut: from > 0, is_behind })
    }
}

/// The steps of a shell by their numbers, each as the last event about it says.
pub(crate) fn steps_of(events: impl IntoIterator<Item = Event>) -> BTreeMap<u64, Step> {
    let mut steps: BTreeMap<u64, Step> = BTreeMap::new();
    for event in events {
        if let EventKind::StepChanged { step, changed } = event.what {
            if let Some(step) = steps.get_mut(&step) {
                step.changed.extend(changed);
            }
        } else if let EventKind::StepStarted { step } | EventKind::Step { step } = event.what {
            steps.insert(step.step, *step);
        }
    }
    steps
}
