//! A thread that looks: lists, screens, logs and moments of the past. A large log, or a machine that is far away, holds up
//! no key. Of two wishes of a kind, only the later is fulfilled.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use outlast_cli::{LogsArgs, TopArgs};
use outlast_job::clock::now_ms;
use outlast_job::request::{AskKeepers, Lines, List, Moment, ReadText};
use outlast_job::wire::ScreenShot;
use outlast_job::{Failure, Handle, Job, Kind, Outlast, session};

use outlast_protocol::HostName;

use super::mailbox::Sender;
use super::timeline::Story;
use crate::commands::jobs::rows::Row;
use crate::commands::logs::by_line::Merged;
use crate::last_job::reference;

/// How many lines of a job that has no screen are shown, and of each job when several are merged.
const LAST_LINES: usize = 200;
/// How much text they may have.
const MAX_TEXT: usize = 256 << 10;
/// The last screen of a job is drawn from its log, with colours, only if that is no longer than this.
const SMALL_LOG: u64 = 4 << 20;
/// How many merged lines are handed on at once.
pub(super) const MAX_LINES: usize = 2000;

/// What is to be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// What a job shows now, or showed last.
    Now(Handle),
    /// What a job showed so long after its start, in milliseconds.
    Then(Handle, u64),
    /// What happened to a job, and when.
    Story(Handle),
    /// What jobs print, line by line.
    Merged(Vec<Handle>),
}

/// What was found.
#[derive(Debug)]
pub(super) enum Found {
    Jobs(Vec<Row>),
    /// The jobs of another machine, or why they are not known.
    Far(HostName, Result<Vec<Row>, String>),
    /// What the hosts of the fleet tell, and all of it in a few words; or why that is not known.
    Fleet(Result<(Vec<Row>, String), String>),
    Now(Handle, Picture),
    Then(Handle, u64, Picture),
    Story(Handle, Box<Story>),
    /// New lines, each with the name of its job.
    Merged(Vec<Handle>, Vec<MergedLine>),
    /// A message for the person.
    Said(String),
    /// A job has been ended, or could not be.
    Killed(Handle, String),
}

/// A line of one of several jobs.
#[derive(Clone, Debug)]
pub(super) struct MergedLine {
    /// Which of the jobs.
    pub(super) which: usize,
    pub(super) name: String,
    pub(super) text: String,
}

/// What can be shown of a job.
#[derive(Debug)]
pub(super) enum Picture {
    Screen(Box<ScreenShot>),
    /// One without a screen: its last lines.
    Text(Vec<String>),
    /// Why there is nothing.
    Nothing(String),
}

#[derive(Debug, Default)]
struct Wishes {
    list: bool,
    look: Option<Look>,
    stop: bool,
}

/// The thread, while this lives.
#[derive(Debug)]
pub(super) struct Looker {
    wishes: Arc<(Mutex<Wishes>, Condvar)>,
}

impl Looker {
    pub(super) fn start(outlast: &Outlast, args: &TopArgs, to: Sender) -> Result<Self, Failure> {
        let wishes: Arc<(Mutex<Wishes>, Condvar)> = Arc::default();
        let worker = Worker {
            outlast: outlast.clone(),
            session: args.session.clone(),
            running: args.running,
            to,
            merged: None,
        };
        let theirs = Arc::clone(&wishes);
        std::thread::Builder::new()
            .name("looker".into())
            .spawn(move || worker.run(&theirs))
            .map_err(|error| Failure::system("cannot start a thread", error))?;
        Ok(Self { wishes })
    }

    fn wish(&self, wish: impl FnOnce(&mut Wishes)) {
        let (wishes, wake) = &*self.wishes;
        wish(&mut wishes.lock().unwrap_or_else(PoisonError::into_inner));
        wake.notify_one();
    }

    pub(super) fn list(&self) {
        self.wish(|wishes| wishes.list = true);
    }

    pub(super) fn look(&self, look: Look) {
        self.wish(|wishes| wishes.look = Some(look));
    }
}

impl Drop for Looker {
    fn drop(&mut self) {
        self.wish(|wishes| wishes.stop = true);
    }
}

struct Worker {
    outlast: Outlast,
    session: Option<String>,
    running: bool,
    to: Sender,
    merged: Option<(Vec<Handle>, Merged, Vec<String>)>,
}

impl Worker {
    fn run(mut self, (wishes, wake): &(Mutex<Wishes>, Condvar)) {
        loop {
            let mut wanted = wishes.lock().unwrap_or_else(PoisonError::into_inner);
            while !wanted.list && wanted.look.is_none() && !wanted.stop {
                wanted = wake.wait(wanted).unwrap_or_else(PoisonError::into_inner);
            }
            let Wishes { list, look, stop } = std::mem::take(&mut *wanted);
            drop(wanted);
            if stop {
                return;
            }
            if list {
                self.to.found(Found::Jobs(self.list()));
            }
            if let Some(look) = look {
                self.look(look);
            }
        }
    }

    fn list(&self) -> Vec<Row> {
        let list = List {
            session: self.session.clone(),
            unfinished: false,
            running: self.running,
            keepers: AskKeepers::All,
            last_lines: false,
            left_behind: false,
            pins: true,
        };
        let (mine, now) = (session::current(), now_ms());
        self.outlast.list(list).into_iter().map(|job| Row::new(job, &mine, now)).collect()
    }

    fn look(&mut self, look: Look) {
        let found = match look {
            Look::Now(handle) => Ok(Found::Now(handle, self.picture(handle))),
            Look::Then(handle, ms) => Ok(Found::Then(handle, ms, self.then(handle, ms))),
            Look::Story(handle) => self
                .job(handle)
                .and_then(|job| Story::of(&job))
                .map(|story| Found::Story(handle, story.into())),
            Look::Merged(handles) => self.merged(handles),
        };
        self.to.found(found.unwrap_or_else(|failure| Found::Said(failure.message)));
    }

    fn job(&self, handle: Handle) -> Result<Job, Failure> {
        self.outlast.job(&handle.to_string())
    }

    fn picture(&self, handle: Handle) -> Picture {
        let found = self.job(handle).and_then(|job| {
            if !job.info()?.has_terminal() {
                return text(&job);
            }
            match job.screen(true, 0) {
                Ok(shot) => Ok(Picture::Screen(Box::new(shot))),
                Err(failure) if failure.kind == Kind::NotRunning => last(&job),
                Err(failure) => Err(failure),
            }
        });
        found.unwrap_or_else(|failure| Picture::Nothing(failure.message))
    }

    fn then(&self, handle: Handle, ms: u64) -> Picture {
        let found = self.job(handle).and_then(|job| job.screen_at(Moment::Time(ms), true));
        found.map_or_else(|failure| Picture::Nothing(failure.message), |shot| Picture::Screen(Box::new(shot)))
    }

    fn merged(&mut self, handles: Vec<Handle>) -> Result<Found, Failure> {
        let known = self.merged.take().filter(|(known, ..)| *known == handles);
        let (_, mut merged, names) = match known {
            Some(known) => known,
            None => {
                let jobs = handles.iter().map(|handle| self.job(*handle)).collect::<Result<Vec<_>, _>>()?;
                let args = LogsArgs {
                    jobs: Vec::new(),
                    follow: true,
                    tail: Some(LAST_LINES),
                    since: None,
                    timestamps: false,
                    raw: false,
                };
                let name = |job: &Job| Ok(reference(job.handle(), job.info()?.name.as_deref()));
                let names = jobs.iter().map(name).collect::<Result<Vec<_>, Failure>>()?;
                (handles.clone(), Merged::open(&jobs, &args)?, names)
            }
        };
        let mut lines = Vec::new();
        while lines.len() < MAX_LINES
            && let Some(line) = merged.next()?
        {
            let name = names.get(line.which).cloned().unwrap_or_default();
            lines.push(MergedLine { which: line.which, name, text: line.text });
        }
        self.merged = Some((handles.clone(), merged, names));
        Ok(Found::Merged(handles, lines))
    }
}

/// What a job that has ended showed last.
fn last(job: &Job) -> Result<Picture, Failure> {
    if job.log_end() <= SMALL_LOG {
        let shot = job.screen_at(Moment::Time(u64::MAX), true)?;
        if shot.rows.iter().any(|row| !row.trim().is_empty()) {
            return Ok(Picture::Screen(Box::new(shot)));
        }
    }
    match job.last_screen()? {
        Some(screen) if !screen.trim().is_empty() => {
            Ok(Picture::Text(screen.lines().map(str::to_owned).collect()))
        }
        _ => text(job),
    }
}

/// The last lines of one that has no screen.
fn text(job: &Job) -> Result<Picture, Failure> {
    let read = ReadText { lines: Some(Lines::Last(LAST_LINES)), max: MAX_TEXT, ..ReadText::default() };
    let text = job.read(read)?;
    let lines: Vec<String> = text.head.lines().chain(text.tail.lines()).map(str::to_owned).collect();
    if lines.is_empty() {
        return Ok(Picture::Nothing("it has printed nothing".into()));
    }
    Ok(Picture::Text(lines))
}
