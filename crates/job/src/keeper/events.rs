//! The only writer of `events.jsonl`, and of the files that a shell's steps go to.
//!
//! A shell may run for weeks and have any number of steps: these have files of their own, of which the older half goes when
//! there is too much. All else that happens to a job is little, and stays.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ftruncate, openat, renameat};
use rustix::io::Errno;

use crate::log::writer::read_exact_at;
use crate::registry::JobDir;
use crate::registry::layout::{OLD_STEPS, STEPS, STEPS_BEHIND};
use crate::registry::replace::{hold_room_after, write_all};
use crate::wire::event::{Event, EventKind};
use crate::wire::line;

/// Events that could not be written yet; a full disk may last, and a job may have much to tell.
const MAX_HELD: usize = 256;
/// When the file of steps has this size, a new one is begun, and only this one is kept besides.
const MAX_STEPS: u64 = 1 << 20;
/// More than the longest event has.
const TAIL: u64 = 64 << 10;

#[derive(Debug)]
pub(super) struct EventLog {
    events: EventFile,
    steps: Option<StepFiles>,
    next: u64,
}

impl EventLog {
    /// Goes on after the last event.
    pub(super) fn new(file: OwnedFd, shell: Option<&JobDir>) -> Self {
        let (events, last) = EventFile::open(file);
        // Without a file of their own, steps are among the other events: a disk in trouble must not cost the shell.
        let steps = shell.and_then(|job| StepFiles::open(job).ok());
        let (steps, last_step) = steps.map_or((None, 0), |(steps, last)| (Some(steps), last));
        Self { events, steps, next: last.max(last_step) + 1 }
    }

    /// Holds room for what is still to come, from now on.
    pub(super) fn hold_room(&mut self) {
        self.events.hold_room();
        if let Some(steps) = &mut self.steps {
            steps.file.hold_room();
        }
    }

    /// The number of the next event.
    pub(super) fn next_number(&self) -> u64 {
        self.next
    }

    /// Writes an event down, at once or when the disk has space again.
    pub(super) fn add(&mut self, event: &Event) {
        self.next = event.seq + 1;
        match (&mut self.steps, &event.what) {
            (
                Some(steps),
                EventKind::StepStarted { .. } | EventKind::Step { .. } | EventKind::StepChanged { .. },
            ) => steps.add(event),
            _ => self.events.add(event),
        }
    }

    /// Nothing follows: the room that was held goes back to the disk.
    pub(super) fn finish(&mut self) {
        self.events.finish();
        if let Some(steps) = &mut self.steps {
            steps.file.finish();
        }
    }
}

/// The steps of a shell: a file that is written, and the one before it.
#[derive(Debug)]
struct StepFiles {
    folder: OwnedFd,
    file: EventFile,
    /// Whether the file is marked as lacking the last steps.
    is_behind: bool,
}

impl StepFiles {
    /// With the number of the last event in them; 0 for none.
    fn open(job: &JobDir) -> Result<(Self, u64), Errno> {
        let folder = rustix::io::fcntl_dupfd_cloexec(job, 3)?;
        let (file, last) = EventFile::open(steps_file(&folder, STEPS)?);
        let last = match last {
            // A keeper may have died after it put the old one away.
            0 => job.open(OLD_STEPS).map_or(0, |old| EventFile::last_in(&old).1),
            last => last,
        };
        // What a keeper held that died is not written any more: the mark stays until the next step is there.
        let mode = rustix::fs::fstat(&file.file).map_or(0, |stat| stat.st_mode);
        let is_behind = Mode::from_raw_mode(mode).contains(STEPS_BEHIND);
        Ok((Self { folder, file, is_behind }, last))
    }

    fn add(&mut self, event: &Event) {
        self.file.add(event);
        self.mark();
        if self.file.size >= MAX_STEPS && self.file.held_count == 0 {
            self.begin_anew();
        }
    }

    /// Marks the file while steps could not be written to it: whoever reads the last folder there must ask us instead. A mode can be
    /// changed on a full disk too.
    fn mark(&mut self) {
        let is_behind = self.file.held_count > 0;
        if is_behind != self.is_behind {
            let mark = if is_behind { STEPS_BEHIND } else { Mode::empty() };
            let _ = rustix::fs::fchmod(&self.file.file, Mode::RUSR | Mode::WUSR | mark);
            self.is_behind = is_behind;
        }
    }

    /// What can't be put away is written on.
    fn begin_anew(&mut self) {
        let held_room = self.file.holds_room;
        self.file.finish();
        if renameat(&self.folder, STEPS, &self.folder, OLD_STEPS).is_err() {
            return;
        }
        match steps_file(&self.folder, STEPS) {
            Ok(file) => {
                self.file = EventFile::open(file).0;
                if held_room {
                    self.file.hold_room();
                }
            }
            Err(_) => {
                let _ = renameat(&self.folder, OLD_STEPS, &self.folder, STEPS);
            }
        }
    }
}

fn steps_file(folder: impl AsFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::RUSR | Mode::WUSR)
}

/// A file of events.
#[derive(Debug)]
struct EventFile {
    file: OwnedFd,
    size: u64,
    held: Vec<u8>,
    held_count: usize,
    holds_room: bool,
}

impl EventFile {
    /// Goes on after the last whole event in the file, and says its number; a torn one is cut off.
    fn open(file: OwnedFd) -> (Self, u64) {
        let (size, seq) = Self::last_in(&file);
        if file_size(&file) > size {
            let _ = ftruncate(&file, size);
        }
        // What an earlier keeper held is still there.
        let holds_room = size > 0;
        (Self { file, size, held: Vec::new(), held_count: 0, holds_room }, seq)
    }

    /// Where the last whole event of a file ends, and its number.
    fn last_in(file: &OwnedFd) -> (u64, u64) {
        let size = file_size(file);
        let tail_from = size.saturating_sub(TAIL);
        let mut tail = vec![0; usize::try_from(size - tail_from).unwrap_or(0)];
        let got = read_exact_at(file, &mut tail, tail_from);
        tail.truncate(got);
        let whole = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let last = tail[..whole].split(|byte| *byte == b'\n').rev().find(|line| !line.is_empty());
        let event = last.and_then(|line| serde_json::from_slice::<Event>(line).ok());
        (tail_from + whole as u64, event.map_or(0, |event| event.seq))
    }

    fn hold_room(&mut self) {
        self.holds_room = true;
        hold_room_after(&self.file, self.size);
    }

    fn add(&mut self, event: &Event) {
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

    fn finish(&mut self) {
        self.flush();
        if self.holds_room {
            let _ = ftruncate(&self.file, self.size);
        }
    }
}

fn file_size(file: &OwnedFd) -> u64 {
    rustix::fs::fstat(file).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use outlast_protocol::shell::{Step, StepState};

    use super::*;
    use crate::registry::{Home, layout};
    use crate::spec::Handle;

    fn step(seq: u64) -> Event {
        let step = Step {
            step: seq,
            command: "x".repeat(500),
            state: StepState::Ended,
            by: "test".into(),
            from: 0,
            to: Some(0),
            exit_code: Some(0),
            pipeline: Vec::new(),
            started_at: 0,
            took_ms: Some(1),
            folder_before: "/".into(),
            folder: None,
            changed: Vec::new(),
            background: Vec::new(),
            note: None,
        };
        Event { seq, at: 0, offset: 0, what: EventKind::Step { step: Box::new(step) } }
    }

    fn numbers(job: &JobDir, max: usize) -> Vec<u64> {
        let lines = String::from_utf8(job.event_lines(max).unwrap()).unwrap();
        lines.lines().map(|line| serde_json::from_str::<Event>(line).unwrap().seq).collect()
    }

    #[test]
    fn the_steps_of_a_shell_take_a_bounded_place_and_all_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(&folder.path().join("home")).unwrap();
        std::fs::create_dir(home.job_path(Handle::new(1))).unwrap();
        let job = home.job(Handle::new(1)).unwrap();
        let open = || EventLog::new(steps_file(&job, layout::EVENTS).unwrap(), Some(&job));
        let mut log = open();
        let other = |seq| Event { seq, at: 0, offset: 0, what: EventKind::Stopped };
        for seq in 1..=10_000 {
            if seq % 1000 == 0 {
                // Another keeper goes on, whatever file the last event is in.
                log = open();
                assert_eq!(log.next_number(), seq);
                log.add(&other(seq));
            } else {
                log.add(&step(seq));
            }
        }
        let size = |name| std::fs::metadata(job.file(name)).unwrap().len();
        assert!(size(STEPS) + size(OLD_STEPS) < 2 * MAX_STEPS + 4096);
        let all = numbers(&job, 8 << 20);
        assert!(all.is_sorted() && all.ends_with(&[9998, 9999, 10_000]), "{:?}", &all[all.len() - 5..]);
        assert!(
            all.starts_with(&[1000, 2000]) && all.len() > 1000,
            "the last ones, and all that were not steps"
        );
        let last = numbers(&job, 8000);
        assert_eq!(last, all[all.len() - last.len()..]);
        assert!((8..16).contains(&last.len()), "{last:?}");
        // A keeper that died between putting one file away and making the next.
        rustix::fs::renameat(&job, STEPS, &job, OLD_STEPS).unwrap();
        log.add(&step(10_001));
        assert_eq!(open().next_number(), 10_002);
    }

    #[test]
    fn the_folder_on_the_disk_is_not_trusted_while_steps_are_missing_there() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(&folder.path().join("home")).unwrap();
        std::fs::create_dir(home.job_path(Handle::new(1))).unwrap();
        let job = home.job(Handle::new(1)).unwrap();
        let (mut steps, _) = StepFiles::open(&job).unwrap();
        steps.add(&step(1));
        assert_eq!(job.shell_folder().as_deref(), Some("/"));
        // A descriptor that can't be written stands for a full disk.
        let read_only = openat(&job, STEPS, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        let file = std::mem::replace(&mut steps.file.file, read_only);
        steps.add(&step(2));
        assert_eq!(job.shell_folder(), None);
        // Another keeper does not have what this one holds.
        let (mut heirs, _) = StepFiles::open(&job).unwrap();
        assert_eq!(job.shell_folder(), None);
        heirs.add(&step(3));
        assert_eq!(job.shell_folder().as_deref(), Some("/"));
        drop(file);
    }
}
