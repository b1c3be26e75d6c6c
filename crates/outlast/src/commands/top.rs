//! `outlast top`: all jobs on one screen, what needs a person first, and the live screen of the chosen one beside them.
//!
//! Nothing is asked in between: keepers tell what has changed ([`mailbox`]), a thread looks ([`looker`]), and once a second
//! the times that are shown go on by themselves. What is done goes through the same gate as the verb that does it, and
//! where somebody must be asked, the verb itself is called, below the prompt.

mod actions;
mod canvas;
mod far;
mod input;
mod jobs;
mod keys;
mod looker;
mod mailbox;
mod styled;
mod timeline;
mod view;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use outlast_cli::TopArgs;
use outlast_job::client::signals::Signal;
use outlast_job::clock::millis;
use outlast_job::{Failure, Handle, Outlast};
use outlast_policy::OrderKind;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::ask::allowed;
use crate::commands::jobs::rows::Row;
use crate::output::Output;
use crate::terminal::keyboard;
use actions::Errand;
use canvas::Canvas;
use far::Far;
use input::Mode;
use jobs::Jobs;
use keys::Keys;
use looker::{Found, Look, Looker, MergedLine, Picture};
use mailbox::Mailbox;
use timeline::Story;

/// What happens to jobs closer together is listed together.
const LIST_DEBOUNCE: Duration = Duration::from_millis(150);
/// How often the list is made anew because jobs print something.
const LIST_WHILE_PRINTING: Duration = Duration::from_secs(1);
/// How often the screen of the chosen job is drawn while it prints.
const FRAME: Duration = Duration::from_millis(40);
/// How often a job is looked at that nobody tells of when it prints.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How soon the rest of a sequence of bytes follows a lone Escape.
const ESCAPE_TIMEOUT: Duration = Duration::from_millis(50);
/// How many merged lines are kept.
const MAX_MERGED: usize = 5000;

/// Whether there is a person who can look at it.
pub(super) fn is_possible() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !dumb
}

pub(super) fn top(outlast: &Outlast, args: &TopArgs, out: &mut Output) -> Result<i32, Failure> {
    if out.json || !is_possible() {
        return Err(Failure::usage("top needs a terminal that can draw")
            .hint("for a program: outlast jobs --watch --json; in any terminal: outlast jobs --watch"));
    }
    allowed(outlast.home(), OrderKind::List)?;
    allowed(outlast.home(), OrderKind::Screen)?;
    let mut top = Top::new(outlast, args, out.colour)?;
    top.looker.list();
    let mut canvas = Canvas::enter(out)?;
    loop {
        match top.stay(&mut canvas, out) {
            Next::Leave => {
                canvas.leave(out);
                return Ok(0);
            }
            Next::Errand(errand) => {
                canvas.leave(out);
                top.run(errand, out);
                out.end_line();
                canvas = Canvas::enter(out)?;
                top.look_soon(Duration::ZERO);
                top.list_soon(Duration::ZERO);
            }
            Next::Stop => {
                canvas.leave(out);
                // The shell has the terminal until it lets us go on.
                let _ = rustix::process::kill_current_process_group(Signal::TSTP);
                canvas = Canvas::enter(out)?;
            }
            Next::Stay => {}
        }
    }
}

/// What comes after a key.
enum Next {
    Stay,
    Leave,
    /// Ctrl-Z.
    Stop,
    /// Something that needs the terminal as it was.
    Errand(Errand),
}

/// The screen, and what is behind it.
struct Top<'a> {
    outlast: &'a Outlast,
    colour: bool,
    jobs: Jobs,
    /// The jobs of this machine, and what other machines said.
    near: Vec<Row>,
    near_at: Instant,
    far: Far,
    mode: Mode,
    /// The list is not shown.
    wide: bool,
    message: Option<String>,
    /// What the chosen job shows.
    picture: Option<(Handle, Picture)>,
    /// A job's life, the moment that is looked at, and what the job showed then.
    story: Option<(Handle, Box<Story>)>,
    then: Option<(u64, Picture)>,
    merged: VecDeque<MergedLine>,
    /// How far up the merged lines are scrolled.
    scrolled: usize,
    /// Jobs that were told to end, and since when.
    ending: BTreeMap<Handle, Instant>,
    mailbox: Mailbox,
    looker: Looker,
    keys: Keys,
    list_at: Option<Instant>,
    look_at: Option<Instant>,
    listed: Instant,
    looked: Instant,
    stale: bool,
    has_list: bool,
}

impl<'a> Top<'a> {
    fn new(outlast: &'a Outlast, args: &TopArgs, colour: bool) -> Result<Self, Failure> {
        let mailbox = Mailbox::open(outlast)?;
        let looker = Looker::start(outlast, args, mailbox.sender.clone())?;
        far::tell_of_all(outlast, args, &mailbox.sender)?;
        far::tell_of_fleet(outlast, args, &mailbox.sender)?;
        let now = Instant::now();
        Ok(Self {
            outlast,
            colour,
            jobs: Jobs::new(),
            near: Vec::new(),
            near_at: now,
            far: Far::default(),
            mode: Mode::Browse,
            wide: false,
            message: None,
            picture: None,
            story: None,
            then: None,
            merged: VecDeque::new(),
            scrolled: 0,
            ending: BTreeMap::new(),
            mailbox,
            looker,
            keys: Keys::default(),
            list_at: None,
            look_at: None,
            listed: now,
            looked: now,
            stale: true,
            has_list: false,
        })
    }

    /// Stays until something needs the terminal, or it is over.
    fn stay(&mut self, canvas: &mut Canvas, out: &mut Output) -> Next {
        self.stale = true;
        loop {
            if std::mem::take(&mut self.stale) {
                let (picture, cursor) = view::draw(self, Canvas::area());
                if !canvas.show(picture, cursor, out) {
                    return Next::Leave;
                }
            }
            let (key_pressed, woken) = self.sleep(canvas);
            for signal in canvas.signals.take() {
                if signal != Signal::WINCH {
                    return Next::Leave;
                }
                self.stale = true;
            }
            self.open_mail();
            self.do_what_is_due();
            let next = if key_pressed { self.read_keys() } else { Next::Stay };
            if !woken && self.keys.is_unfinished() {
                if let Some(key) = self.keys.finish() {
                    self.stale = true;
                    self.press(key);
                }
            } else if !woken {
                // A second has passed: times go on.
                self.stale = true;
            }
            if !matches!(next, Next::Stay) {
                return next;
            }
        }
    }

    /// Sleeps until there is something to do; says whether there are keys, and whether anything came at all.
    fn sleep(&self, canvas: &Canvas) -> (bool, bool) {
        let mut fds = vec![
            PollFd::from_borrowed_fd(canvas.signals.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.mailbox.ours.as_fd(), PollFlags::IN),
        ];
        fds.extend(keyboard().map(|keys| PollFd::from_borrowed_fd(keys, PollFlags::IN)));
        let now = Instant::now();
        let mut timeout = self.tick();
        for due in [self.list_at, self.look_at].into_iter().flatten() {
            timeout = timeout.min(due.saturating_duration_since(now));
        }
        if self.keys.is_unfinished() {
            timeout = timeout.min(ESCAPE_TIMEOUT);
        }
        let timeout =
            Timespec { tv_sec: timeout.as_secs().cast_signed(), tv_nsec: timeout.subsec_nanos().into() };
        let woken = poll(&mut fds, Some(&timeout));
        let key_pressed = fds.get(2).is_some_and(|keys| !keys.revents().is_empty());
        (key_pressed, !matches!(woken, Ok(0)))
    }

    /// How soon a time on the screen reads otherwise.
    fn tick(&self) -> Duration {
        const HOUR: u64 = 3_600_000;
        let changes_soon = |row: &Row| row.is_live() && row.duration_ms < HOUR;
        let seconds = if self.jobs.shown().any(changes_soon) { 1 } else { 60 };
        Duration::from_secs(seconds)
    }

    /// Takes in what keepers and threads have told.
    fn open_mail(&mut self) {
        let inbox = self.mailbox.take();
        let is_looked_at = match &self.mode {
            Mode::Merged(handles) => inbox.grown.iter().any(|handle| handles.contains(handle)),
            _ => self.jobs.chosen().is_some_and(|row| inbox.grown.contains(&row.handle)),
        };
        if is_looked_at {
            self.look_soon(FRAME.saturating_sub(self.looked.elapsed()));
        }
        if inbox.happened {
            self.list_soon(LIST_DEBOUNCE.saturating_sub(self.listed.elapsed()));
        } else if !inbox.grown.is_empty() {
            self.list_soon(LIST_WHILE_PRINTING.saturating_sub(self.listed.elapsed()));
        }
        for found in inbox.found {
            self.stale = true;
            self.take_in(found);
        }
    }

    fn take_in(&mut self, found: Found) {
        match found {
            Found::Jobs(rows) => {
                let live: BTreeSet<Handle> =
                    rows.iter().filter(|row| row.is_live()).map(|row| row.handle).collect();
                self.ending.retain(|handle, _| handle.host().is_some() || live.contains(handle));
                self.mailbox.follow(self.outlast, &live);
                (self.near, self.near_at) = (rows, Instant::now());
                self.has_list = true;
                self.relist();
            }
            Found::Far(host, said) => {
                self.far.take_in(host, said);
                // Without those of this machine there is no list yet.
                if self.has_list {
                    self.relist();
                }
            }
            Found::Fleet(said) => {
                self.far.take_in_fleet(said);
                if self.has_list {
                    self.relist();
                }
            }
            Found::Now(handle, picture) => {
                self.picture = Some((handle, picture));
                let is_live = self.jobs.chosen().is_some_and(|row| row.handle == handle && row.is_live());
                if is_live && self.far.is_only_told(handle) {
                    self.look_soon(LOOK_AGAIN);
                }
            }
            Found::Then(handle, ms, picture) => {
                if matches!(self.mode, Mode::Timeline(of, at) if of == handle && at == ms) {
                    self.then = Some((ms, picture));
                }
            }
            Found::Story(handle, story) => {
                if let Mode::Timeline(of, at) = &mut self.mode
                    && *of == handle
                {
                    *at = (*at).min(story.total_ms);
                    let look = Look::Then(handle, *at);
                    self.story = Some((handle, story));
                    self.looker.look(look);
                }
            }
            Found::Merged(of, lines) => {
                if matches!(&self.mode, Mode::Merged(handles) if *handles == of) {
                    if lines.len() == looker::MAX_LINES {
                        self.look_soon(Duration::ZERO);
                    }
                    self.scrolled += if self.scrolled > 0 { lines.len() } else { 0 };
                    self.merged.extend(lines);
                    let over = self.merged.len().saturating_sub(MAX_MERGED);
                    self.merged.drain(..over);
                    self.scrolled = self.scrolled.min(self.merged.len());
                }
            }
            Found::Said(text) => self.message = Some(text),
            Found::Killed(handle, text) => {
                self.ending.remove(&handle);
                self.message = Some(text);
                self.list_soon(Duration::ZERO);
            }
        }
    }

    /// Puts the lists of all machines together.
    fn relist(&mut self) {
        let before = self.jobs.chosen().map(|row| (row.handle, row.is_live()));
        let near = self.near.iter().map(|row| row.later(millis(self.near_at.elapsed())));
        let rows: Vec<Row> = near.chain(self.far.rows()).collect();
        self.jobs.replace(rows);
        if self.jobs.chosen().map(|row| (row.handle, row.is_live())) != before {
            self.look_soon(Duration::ZERO);
        }
    }

    fn do_what_is_due(&mut self) {
        let now = Instant::now();
        if self.list_at.is_some_and(|at| at <= now) {
            self.list_at = None;
            self.listed = now;
            self.looker.list();
        }
        if self.look_at.is_some_and(|at| at <= now) {
            self.look_at = None;
            self.looked = now;
            self.look();
        }
    }

    /// Has the thread look at what is shown beside the list.
    fn look(&mut self) {
        let look = match &self.mode {
            Mode::Merged(handles) => Some(Look::Merged(handles.clone())),
            // The past does not change.
            Mode::Timeline(..) => None,
            _ => self.jobs.chosen().map(|row| Look::Now(row.handle)),
        };
        if let Some(look) = look {
            self.looker.look(look);
        }
    }

    fn look_soon(&mut self, after: Duration) {
        let at = Instant::now() + after;
        self.look_at = Some(self.look_at.map_or(at, |before| before.min(at)));
    }

    fn list_soon(&mut self, after: Duration) {
        let at = Instant::now() + after;
        self.list_at = Some(self.list_at.map_or(at, |before| before.min(at)));
    }

    fn read_keys(&mut self) -> Next {
        let Some(keyboard) = keyboard() else { return Next::Leave };
        let mut bytes = [0; 1024];
        let n = match rustix::io::read(keyboard, &mut bytes) {
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => return Next::Stay,
            // The terminal is gone.
            Ok(0) | Err(_) => return Next::Leave,
            Ok(n) => n,
        };
        self.stale = true;
        for key in self.keys.take(&bytes[..n]) {
            let next = self.press(key);
            if !matches!(next, Next::Stay) {
                return next;
            }
        }
        Next::Stay
    }
}
