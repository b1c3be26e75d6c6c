//! The only writer of `events.jsonl`.

use std::os::fd::OwnedFd;

use rustix::fs::ftruncate;

use crate::log::writer::read_exact_at;
use crate::registry::replace::{hold_room_after, write_all};
use crate::wire::event::{Event, EventKind};
use crate::wire::line;

/// Events that could not be written yet; a full disk may last, and a job may have much to tell.
const MAX_HELD: usize = 256;

#[derive(Debug)]
pub(super) struct EventLog {
    file: OwnedFd,
    size: u64,
    next: u64,
    held: Vec<u8>,
    held_count: usize,
    holds_room: bool,
}

impl EventLog {
    /// Goes on after the last whole event in the file; a torn one is cut off.
    pub(super) fn new(file: OwnedFd) -> Self {
        let size = rustix::fs::fstat(&file).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
        let tail_from = size.saturating_sub(64 << 10);
        let mut tail = vec![0; usize::try_from(size - tail_from).unwrap_or(0)];
        let got = read_exact_at(&file, &mut tail, tail_from);
        tail.truncate(got);
        let whole = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if whole < tail.len() {
            let _ = ftruncate(&file, tail_from + whole as u64);
        }
        let last = tail[..whole].split(|byte| *byte == b'\n').rev().find(|line| !line.is_empty());
        let seq =
            last.and_then(|line| serde_json::from_slice::<Event>(line).ok()).map_or(0, |event| event.seq);
        let size = tail_from + whole as u64;
        // What an earlier keeper held is still there.
        let holds_room = size > 0;
        Self { file, size, next: seq + 1, held: Vec::new(), held_count: 0, holds_room }
    }

    /// Holds room for what is still to come, from now on.
    pub(super) fn hold_room(&mut self) {
        self.holds_room = true;
        hold_room_after(&self.file, self.size);
    }

    /// The number of the next event.
    pub(super) fn next_number(&self) -> u64 {
        self.next
    }

    /// Writes an event down, at once or when the disk has space again.
    pub(super) fn add(&mut self, event: &Event) {
        self.next = event.seq + 1;
        let is_end = matches!(event.what, EventKind::Exit { .. });
        if self.held_count < MAX_HELD || is_end {
            self.held.extend_from_slice(&line(event));
            self.held_count += 1;
        }
        self.flush();
        if is_end && self.held_count > 0 {
            // The room that is held is enough for this one, whatever else could not be written.
            self.held = line(event);
            self.held_count = 1;
            self.flush();
        }
    }

    fn flush(&mut self) {
        if write_all(&self.file, &self.held).is_ok() {
            self.size += self.held.len() as u64;
            self.held.clear();
            self.held_count = 0;
        } else {
            // Half an event is worse than none: it is tried again as a whole.
            let _ = ftruncate(&self.file, self.size);
        }
        if self.holds_room {
            hold_room_after(&self.file, self.size);
        }
    }

    /// Nothing follows: the room that was held goes back to the disk.
    pub(super) fn finish(&mut self) {
        self.flush();
        if self.holds_room {
            let _ = ftruncate(&self.file, self.size);
        }
    }
}
