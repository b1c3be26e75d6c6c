//! All jobs of a home in short, for lists: ended ones from the home's [index], where it knows
//! them, the others from their folders; and how the running ones are, from their keepers.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use outlast_protocol::request::Stream;

use super::read::Range;
use super::status_poll::{self, StatusPoll};
use super::{Local, LocalJob, leftover};
use crate::lifecycle::Process;
use crate::registry::format::Info;
use crate::registry::index::{self, Entry, EntryRef, Index, Mark, Place};
use crate::registry::summary::Summary;
use crate::secrets::{self, SharedMasks};
use crate::spec::Handle;
use crate::wire::Activity;
use crate::wire::brief_status::BriefStatus;

/// With more jobs than this that may run, as far as is known, the index is read before their records are.
const MAX_READ_SINGLY: usize = 8;
/// How much of the last line is read.
const LINE: usize = 2048;

/// One job of a list.
#[derive(Debug)]
pub(crate) struct Listed {
    /// Its record in short.
    pub(crate) job: Summary,
    /// The end of its log.
    pub(crate) log_end: u64,
    /// How it is right now, if it was asked and has answered.
    pub(crate) now: Option<Box<BriefStatus>>,
    /// What it printed last, if that is known by now.
    last_line: Option<String>,
    /// What an entry of the index would be made from.
    mark: Option<Mark>,
    /// Its whole record, if it runs or may have left processes behind.
    info: Option<Box<Info>>,
}

impl Listed {
    /// Whether it runs, as far as is known.
    pub(crate) fn is_live(&self) -> bool {
        self.job.state.is_live()
    }

    /// The processes that it left behind and that still run.
    pub(crate) fn left_behind(&self) -> Vec<Process> {
        self.info.as_ref().map(|info| leftover::find(info)).unwrap_or_default()
    }

    fn of_entry(entry: Entry, record: Mark) -> Self {
        Self {
            job: entry.job,
            log_end: entry.log_end,
            now: None,
            last_line: Some(entry.last_line),
            mark: Some(record),
            info: None,
        }
    }

    fn entry(&self) -> Option<EntryRef<'_>> {
        let (record, last_line) = (self.mark.as_ref()?, self.last_line.as_ref()?);
        Some(EntryRef { record, job: &self.job, log_end: self.log_end, last_line })
    }
}

/// A job of a list that is being made.
enum Found {
    /// Its entry in the index holds, and is read later.
    Known(Place),
    Read(Box<Listed>),
}

/// Lists the jobs of a home as one reader may see them.
struct Lister<'a> {
    local: &'a Local,
    masked: bool,
}

impl Local {
    /// All jobs in short, oldest first. Those whose keeper vanished are found to be lost on the way. Asks the keepers of
    /// those that run and are `wanted` how they are: all at once, and what is known of the others is read while they
    /// answer. One that has ended by then, or has no keeper any more, is read again.
    pub(crate) fn list(
        &self,
        masked: bool,
        wanted: impl Fn(&Summary) -> bool,
        timeout: Duration,
    ) -> Vec<Listed> {
        Lister { local: self, masked }.list(wanted, timeout)
    }

    /// As [`list`](Self::list), of jobs that run or may have left processes behind. What it costs does not grow with the
    /// number of those that have ended.
    pub(crate) fn list_unfinished(
        &self,
        masked: bool,
        wanted: impl Fn(&Summary) -> bool,
        timeout: Duration,
    ) -> Vec<Listed> {
        Lister { local: self, masked }.list_unfinished(wanted, timeout)
    }

    /// The last line of a listed job that is not empty.
    pub(crate) fn last_line(&self, masked: bool, listed: &Listed) -> String {
        Lister { local: self, masked }.last_line(listed)
    }
}

impl Lister<'_> {
    fn list(&self, wanted: impl Fn(&Summary) -> bool, timeout: Duration) -> Vec<Listed> {
        let until = Instant::now() + timeout;
        let mut handles = self.local.home.handles();
        handles.sort_unstable();
        let mut index = Index::read(&self.local.home);
        let mut poll = StatusPoll::default();
        let mut found = Vec::with_capacity(handles.len());
        for handle in handles {
            if let Some(place) = index.take(&self.local.home, handle) {
                found.push(Found::Known(place));
            } else if let Some(listed) = self.read_job(handle) {
                if listed.is_live() && wanted(&listed.job) {
                    poll.ask(&self.local.home, found.len(), handle, until);
                }
                found.push(Found::Read(Box::new(listed)));
            }
        }
        let list = self.read_known(&index, found);
        self.finish(list, poll, until)
    }

    fn list_unfinished(&self, wanted: impl Fn(&Summary) -> bool, timeout: Duration) -> Vec<Listed> {
        let until = Instant::now() + timeout;
        let mut final_jobs = self.local.final_jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let mut handles = self.local.home.handles();
        handles.sort_unstable();
        if handles.iter().filter(|handle| !final_jobs.contains(handle)).count() > MAX_READ_SINGLY {
            final_jobs.extend(Index::read(&self.local.home).handles());
        }
        if final_jobs.len() > 2 * handles.len() {
            final_jobs.retain(|handle| handles.binary_search(handle).is_ok());
        }
        let mut poll = StatusPoll::default();
        let mut list = Vec::new();
        for handle in handles {
            if final_jobs.contains(&handle) {
                continue;
            }
            let Some(listed) = self.read_job(handle) else { continue };
            if listed.info.is_none() {
                final_jobs.insert(handle);
                continue;
            }
            if listed.is_live() && wanted(&listed.job) {
                poll.ask(&self.local.home, list.len(), handle, until);
            }
            list.push(Some(listed));
        }
        drop(final_jobs);
        self.finish(list, poll, until)
    }

    /// Takes the answers of the keepers, and finds the places of those that are queued.
    fn finish(&self, mut list: Vec<Option<Listed>>, poll: StatusPoll, until: Instant) -> Vec<Listed> {
        for (at, answer) in poll.answers(until) {
            if let Some(Some(listed)) = list.get_mut(at) {
                self.take_answer(listed, answer);
            }
        }
        let mut list: Vec<Listed> = list.into_iter().flatten().collect();
        let mut lines = crate::slots::Lines::of(&self.local.home);
        for listed in &mut list {
            if let crate::lifecycle::State::Queued(queued) = &mut listed.job.state {
                lines.locate(listed.job.handle, queued);
            }
        }
        list
    }

    /// Reads the entries of the index, and replaces it if it has missed much. A job that is gone leaves its place empty.
    fn read_known(&self, index: &Index, found: Vec<Found>) -> Vec<Option<Listed>> {
        let mut missed = 0;
        let mut list: Vec<Option<Listed>> = Vec::with_capacity(found.len());
        for one in found {
            let listed = match one {
                Found::Known(place) => match index.entry(&place) {
                    Some(entry) => Some(Listed::of_entry(entry, place.record)),
                    None => self.read_job(place.handle).inspect(|_| missed += 1),
                },
                Found::Read(listed) => {
                    missed += usize::from(listed.mark.is_some());
                    Some(*listed)
                }
            };
            list.push(listed);
        }
        if index.has_missed_much(missed, list.len()) {
            let entries: Vec<EntryRef<'_>> = list.iter().flatten().filter_map(Listed::entry).collect();
            index::write(&self.local.home, &entries);
        }
        list
    }

    fn take_answer(&self, listed: &mut Listed, answer: status_poll::Answer) {
        match answer {
            status_poll::Answer::Here(glance) if glance.activity != Activity::Ended => {
                listed.log_end = listed.log_end.max(glance.grown.offset);
                listed.now = Some(glance);
            }
            status_poll::Answer::Silent => {}
            status_poll::Answer::Here(_) | status_poll::Answer::Nobody => {
                if let Some(again) = self.read_job(listed.job.handle) {
                    *listed = again;
                }
            }
        }
    }

    fn last_line(&self, listed: &Listed) -> String {
        if listed.log_end == 0 {
            return String::new();
        }
        if let Some(line) = &listed.last_line {
            return line.clone();
        }
        let Some(job) = self.open(listed.job.handle) else { return String::new() };
        let range = match &listed.info {
            Some(info) => job.masks().map(|masks| job.whole(Stream::Output, info, masks)),
            None => job.range(Stream::Output, 0, None),
        };
        range.map(|range| last_line_of(&range)).unwrap_or_default()
    }

    /// Opened apart: a list of thousands must not push out what other calls keep open.
    fn open(&self, handle: Handle) -> Option<LocalJob> {
        Some(LocalJob::new(Arc::new(self.local.open_apart(handle).ok()?), self.masked))
    }

    /// Reads a job from its own folder.
    fn read_job(&self, handle: Handle) -> Option<Listed> {
        let job = self.open(handle)?;
        // Before the record: should it be replaced in between, the entry does not hold.
        let mark = Mark::of_job(&job.open.dir);
        let info = job.truth().ok().or_else(|| job.open.dir.as_known())?;
        let summary = Summary::from(&info);
        let log_end = job.end_of(Stream::Output, &info);
        let mut listed = Listed { job: summary, log_end, now: None, last_line: None, mark: None, info: None };
        let is_final = index::is_final(&job.open.dir, &listed.job);
        if self.masked || is_final {
            let masks = secrets::read(&job.open.dir).ok().map(|masks| SharedMasks::new(masks.into()));
            let hides = hide(&mut listed.job, masks.as_ref(), self.masked);
            if let Some(masks) = masks.filter(|_| is_final && !hides) {
                remember(&mut listed, &job, &info, masks, mark);
            }
        }
        listed.info = (!is_final).then(|| Box::new(info));
        Some(listed)
    }
}

/// Hides what an agent must not see, if it is for one; says whether there is anything of that kind.
fn hide(job: &mut Summary, masks: Option<&SharedMasks>, for_agent: bool) -> bool {
    let mut hides = false;
    let mut hide = |text: &mut String| {
        let hidden =
            masks.map_or_else(|| "***".into(), |masks| secrets::with(masks, |masks| masks.text(text)));
        if hidden != *text {
            hides = true;
            if for_agent {
                *text = hidden;
            }
        }
    };
    // A new field does not compile until it is said here whether it may hold a secret.
    let Summary {
        command,
        description,
        handle: _,
        name: _,
        session: _,
        cwd: _,
        created_at: _,
        pid: _,
        state: _,
    } = job;
    hide(command);
    description.iter_mut().for_each(hide);
    hides
}

/// Notes the last line, and that the job can go into the index: if nothing of it can change or must be hidden.
fn remember(listed: &mut Listed, job: &LocalJob, info: &Info, masks: SharedMasks, mark: Option<Mark>) {
    let mut last_line = String::new();
    if listed.log_end > 0 {
        let mut whole = job.whole(Stream::Output, info, None);
        last_line = last_line_of(&whole);
        whole = job.whole(Stream::Output, info, Some(masks));
        if last_line_of(&whole) != last_line {
            return;
        }
    }
    let fits = index::has_room_for(&listed.job, &last_line);
    listed.last_line = Some(last_line);
    listed.mark = mark.filter(|mark| fits && mark.is_settled());
}

fn last_line_of(range: &Range) -> String {
    let text = range.last_lines(3).excerpt(LINE).joined(|_, _| String::new());
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim_end().to_owned()
}

#[cfg(test)]
mod tests;
