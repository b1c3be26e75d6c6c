//! Watches: waits without a client. What they find becomes an event, once or each time; a flood becomes one.

use std::time::{Duration, Instant};

use super::ground::Ground;
use super::standing::Standing;
use super::telling::Chosen;
use super::{Keeper, Life};
use crate::clock::earliest;
use crate::failure::Failure;
use crate::log::writer::LogWriter;
use crate::notify::LINE;
use crate::registry::format::Info;
use crate::registry::layout;
use crate::registry::replace::{Durability, read_small, replace};
use crate::search::Search;
use crate::secrets::SharedMasks;
use crate::spec::Streams;
use crate::wire::event::What;
use crate::wire::watch::{Fired, LineTold, Watch};
use crate::wire::{Answer, Found, Reason};

/// More watches than this on one job are refused.
const MOST: usize = 64;
/// Finds are gathered until none came for so long,
const PAUSE: Duration = Duration::from_millis(200);
/// but not for longer than this; a flood that goes on is told of less and less often,
const PATIENCE: Duration = Duration::from_secs(5);
/// down to this.
const LONGEST_PATIENCE: Duration = Duration::from_secs(60);

/// So much text of lines is told at once; where the rest is, is told too.
const LINES_BYTES: usize = 8 << 10;

/// Finds that were not told yet.
struct Gathered {
    found: Found,
    count: u64,
    lines: Vec<LineTold>,
    lines_bytes: usize,
    from: u64,
    to: u64,
    first: Instant,
    last: Instant,
}

impl Gathered {
    fn new(found: Found, at: u64, now: Instant) -> Self {
        let (lines, lines_bytes) = (Vec::new(), 0);
        Self { found, count: 0, lines, lines_bytes, from: at, to: at, first: now, last: now }
    }

    /// One more was found; `line` is its text if all of them are told.
    fn add(&mut self, at: u64, line: Option<String>, now: Instant) {
        self.count += 1;
        self.to = self.to.max(at);
        self.last = now;
        // Once one was left out, so is what comes after it.
        if let Some(text) = line
            && self.lines.len() as u64 + 1 == self.count
        {
            let mut text = text.trim_end_matches(['\r', '\n']).to_owned();
            if self.lines_bytes + text.len() > LINES_BYTES && !self.lines.is_empty() {
                return;
            }
            if text.len() > LINES_BYTES {
                text.truncate(text.floor_char_boundary(LINES_BYTES));
                text.push_str(outlast_stream::CUT_MARK);
            }
            self.lines_bytes += text.len() + 1;
            self.lines.push(LineTold { text, to: at });
        }
    }
}

struct Armed {
    watch: Watch,
    search: Option<Search>,
    standing: Option<Standing>,
    began: Instant,
    /// The silence that was told of: the one after the output of then.
    quiet_told: Option<Instant>,
    /// The screen that was told of.
    still_told: Option<u64>,
    gathered: Option<Gathered>,
    patience: Duration,
}

impl Armed {
    fn new(mut watch: Watch, (streams, masks): (Streams, &SharedMasks), end: u64) -> Result<Self, Failure> {
        let from = *watch.on.from.get_or_insert(end);
        let search = if watch.on.patterns.is_empty() {
            None
        } else {
            // What it finds goes to whoever is told, agents among them.
            Some(Search::new(&watch.on.patterns, streams, from)?.masked(Some(masks.clone())))
        };
        if let Some(stable) = &watch.on.stable {
            // A bad pattern is told at once; the screen is looked at later.
            Standing::new(stable, &[], Instant::now())?;
        }
        Ok(Self {
            watch,
            search,
            standing: None,
            began: Instant::now(),
            quiet_told: None,
            still_told: None,
            gathered: None,
            patience: PATIENCE,
        })
    }

    fn quiet_at(&self, last_output: Instant) -> Option<Instant> {
        let quiet = Duration::from_millis(self.watch.on.quiet_ms?);
        if self.quiet_told == Some(last_output) {
            return None;
        }
        last_output.max(self.began).checked_add(quiet)
    }

    fn gathered_at(&self) -> Option<Instant> {
        let gathered = self.gathered.as_ref()?;
        Some((gathered.last + PAUSE).min(gathered.first + self.patience))
    }

    fn fired(&self, reason: Reason, at: u64) -> Fired {
        Fired {
            watch: self.watch.id.clone(),
            reason,
            count: 1,
            from: at,
            to: at,
            found: None,
            lines: Vec::new(),
            port: None,
        }
    }

    /// Whether it is lines that are watched, and not a pattern in them.
    fn is_of_lines(&self) -> bool {
        self.watch.each && self.watch.on.patterns == [LINE]
    }

    /// Lets the search look at the next piece of the log.
    fn catch_up(&mut self, log: &LogWriter, end: u64) {
        let lines = self.is_of_lines();
        let Some(search) = &mut self.search else { return };
        if !search.is_behind(end) || (!self.watch.each && self.gathered.is_some()) {
            return;
        }
        let now = Instant::now();
        let gathered = &mut self.gathered;
        search.read_each(log, end, |found, at| gather(gathered, found, at, lines, now));
    }

    /// The end of output: a last line that did not end is a line.
    fn end_last_line(&mut self) {
        if let (true, Some(search)) = (self.is_of_lines(), &mut self.search) {
            let (gathered, now) = (&mut self.gathered, Instant::now());
            search.end_last_line(|found, at| gather(gathered, found, at, true, now));
        }
    }

    fn is_behind(&self, end: u64) -> bool {
        let searched = self.search.as_ref().is_some_and(|search| search.is_behind(end));
        searched && (self.watch.each || self.gathered.is_none())
    }

    /// What was gathered, if it is time to tell it.
    fn release(&mut self, now: Instant, end: u64, all: bool) -> Option<Fired> {
        let at = self.gathered_at()?;
        let gathered = self.gathered.as_ref()?;
        let out_of_patience = now >= gathered.first + self.patience;
        let due = !self.watch.each || all || out_of_patience || (now >= at && !self.is_behind(end));
        if !due {
            return None;
        }
        self.patience = if out_of_patience { (self.patience * 2).min(LONGEST_PATIENCE) } else { PATIENCE };
        let gathered = self.gathered.take()?;
        let count = if self.watch.each { gathered.count } else { 1 };
        let to = if self.watch.each { gathered.to } else { gathered.from };
        let mut found = gathered.found;
        found.text.truncate(found.text.floor_char_boundary(200));
        found.captures.truncate(9);
        for capture in found.captures.iter_mut().flatten() {
            capture.truncate(capture.floor_char_boundary(200));
        }
        let (from, lines) = (gathered.from, gathered.lines);
        Some(Fired { count, from, to, found: Some(found), lines, ..self.fired(Reason::Pattern, to) })
    }
}

fn gather(gathered: &mut Option<Gathered>, found: Found, at: u64, lines: bool, now: Instant) {
    let line = lines.then(|| found.text.clone());
    gathered.get_or_insert_with(|| Gathered::new(found, at, now)).add(at, line, now);
}

#[derive(Default)]
pub(super) struct Watching {
    armed: Vec<Armed>,
    behind: bool,
    /// Something was printed: screens that stood still may move again.
    moved: bool,
}

impl Watching {
    /// The watches the job was started with, or those that a dead keeper had, with what it told of them in mind.
    pub(super) fn new(ground: &Ground, info: &Info) -> Self {
        let kept = read_small(&ground.job, layout::WATCHES, 1 << 20).ok();
        let kept: Option<Vec<Watch>> = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let mut watches = kept.unwrap_or_else(|| ground.spec.notify.watches.clone());
        for event in ground.job.events() {
            let What::Watch { fired } = event.what else { continue };
            watches.retain_mut(|watch| {
                if watch.id == fired.watch {
                    watch.on.from = watch.on.from.map(|from| from.max(fired.to));
                    return watch.each;
                }
                true
            });
        }
        let armed =
            watches.into_iter().filter_map(|watch| Armed::new(watch, (info.streams, &ground.masks), 0).ok());
        Self { armed: armed.take(MOST).collect(), behind: true, moved: true }
    }

    pub(super) fn all(&self) -> Vec<Watch> {
        self.armed.iter().map(|armed| armed.watch.clone()).collect()
    }

    pub(super) fn wants_port(&self) -> bool {
        self.armed.iter().any(|armed| armed.watch.on.port.is_some())
    }

    pub(super) fn is_behind(&self) -> bool {
        self.behind
    }

    pub(super) fn on_output(&mut self, channel: usize) {
        self.moved = true;
        if channel == 0 {
            self.behind |= self.armed.iter().any(|armed| armed.search.is_some());
        }
    }

    pub(super) fn next_deadline(&self, last_output: Instant) -> Option<Instant> {
        self.armed.iter().fold(None, |next, armed| {
            let standing = armed.standing.as_ref().map(Standing::next);
            let by_time = earliest(armed.quiet_at(last_output), armed.gathered_at());
            earliest(next, earliest(standing, by_time))
        })
    }

    fn wants_screen(&self, now: Instant) -> bool {
        let due = |standing: &Standing| now >= standing.next();
        self.armed.iter().any(|armed| {
            let wanted = armed.watch.on.stable.is_some();
            wanted && armed.standing.as_ref().map_or(self.moved, due)
        })
    }
}

impl Keeper {
    /// What the job's start and its watches chose to tell.
    pub(super) fn chosen(&self) -> Chosen {
        let notify = &self.ground.spec.notify;
        let exit = notify.exit || self.watching.armed.iter().any(|armed| armed.watch.on.exit);
        Chosen { exit, input: notify.input, port: notify.port }
    }

    pub(super) fn on_watch(&mut self, mut watch: Watch) -> Answer {
        if watch.is_empty() {
            return Answer::Error(Failure::usage("a watch needs something to watch for").into());
        }
        if watch.id.is_empty() {
            let used = |id: &String| self.watching.armed.iter().any(|armed| armed.watch.id == *id);
            watch.id = (1..).map(|i| format!("w{i}")).find(|id| !used(id)).unwrap_or_default();
        }
        let end = self.grown().offset;
        let armed = match Armed::new(watch, (self.info.streams, &self.ground.masks), end) {
            Ok(armed) => armed,
            Err(failure) => return Answer::Error(failure.into()),
        };
        self.watching.armed.retain(|old| old.watch.id != armed.watch.id);
        if self.watching.armed.len() >= MOST {
            return Answer::Error(Failure::usage("too many watches on this job").into());
        }
        self.watching.behind |= armed.is_behind(end);
        self.watching.moved |= armed.watch.on.stable.is_some();
        self.watching.armed.push(armed);
        self.keep_watches();
        if let Some(port) = self.looking.ports.first().copied() {
            self.watch_hit(Reason::Port, Some(port));
        }
        if self.looking.awaiting.is_some() {
            self.watch_hit(Reason::AwaitingInput, None);
        }
        self.plan_look();
        Answer::Watches(self.watching.all())
    }

    pub(super) fn on_unwatch(&mut self, id: &str) -> Answer {
        let before = self.watching.armed.len();
        self.watching.armed.retain(|armed| armed.watch.id != id);
        if self.watching.armed.len() == before {
            let failure = Failure::usage(format!("there is no watch {id:?} on this job"))
                .hint(format!("see them: outlast watch {} --list", self.info.handle));
            return Answer::Error(failure.into());
        }
        self.keep_watches();
        Answer::Watches(self.watching.all())
    }

    /// Writes them down for an heir.
    fn keep_watches(&mut self) {
        let bytes = serde_json::to_vec(&self.watching.all()).unwrap_or_default();
        let _ = replace(&self.ground.job, layout::WATCHES, &bytes, Durability::Process);
    }

    /// Makes events of what fired, and forgets watches that are done.
    fn fire(&mut self, fired: Vec<Fired>) {
        let mut done = false;
        for fired in fired {
            let told_anyway = match fired.reason {
                Reason::AwaitingInput => self.chosen().input,
                Reason::Port => self.chosen().port,
                _ => false,
            };
            let count = self.watching.armed.len();
            self.watching.armed.retain(|armed| armed.watch.each || armed.watch.id != fired.watch);
            done |= self.watching.armed.len() < count;
            if !told_anyway {
                self.event(What::Watch { fired: Box::new(fired) });
            }
        }
        if done {
            self.keep_watches();
        }
    }

    /// Something that others found out: it listens, or it waits for input.
    pub(super) fn watch_hit(&mut self, reason: Reason, port: Option<u16>) {
        let end = self.grown().offset;
        let holds = |armed: &&Armed| match reason {
            Reason::AwaitingInput => armed.watch.on.awaiting_input,
            _ => armed.watch.on.port.is_some_and(|wanted| wanted == 0 || Some(wanted) == port),
        };
        let fired = self.watching.armed.iter().filter(holds);
        let fired = fired.map(|armed| Fired { port, ..armed.fired(reason, end) }).collect();
        self.fire(fired);
    }

    /// Searches look at what was printed.
    pub(super) fn watch_catch_up(&mut self) {
        let Some(channel) = self.channels.first() else { return };
        if !self.watching.behind {
            return;
        }
        let end = channel.log.end();
        let mut behind = false;
        for armed in &mut self.watching.armed {
            armed.catch_up(&channel.log, end);
            behind |= armed.is_behind(end);
        }
        self.watching.behind = behind;
        self.watch_release(Instant::now(), false);
    }

    fn watch_release(&mut self, now: Instant, all: bool) {
        let end = self.grown().offset;
        let fired = self.watching.armed.iter_mut().filter_map(|armed| armed.release(now, end, all)).collect();
        self.fire(fired);
    }

    /// What time alone decides: silence, a screen that stands still, and what was gathered long enough.
    pub(super) fn watch_on_time(&mut self, now: Instant) {
        if self.watching.armed.is_empty() {
            return;
        }
        self.watch_release(now, false);
        let (end, last_output) = (self.grown().offset, self.last_output);
        let mut fired = Vec::new();
        if self.watching.wants_screen(now) {
            let rows = self.screen_rows();
            let moved = std::mem::take(&mut self.watching.moved);
            for armed in &mut self.watching.armed {
                let Some(stable) = &armed.watch.on.stable else { continue };
                let still = armed.standing.as_mut().filter(|standing| now >= standing.next());
                let still = still.and_then(|standing| standing.check(&rows, now).then_some(standing.seen()));
                if still.is_some() {
                    // It is looked at again once something is printed, and told again once it shows something else.
                    armed.standing = None;
                    if armed.still_told != still {
                        armed.still_told = still;
                        fired.push(armed.fired(Reason::Stable, end));
                    }
                } else if armed.standing.is_none() && moved {
                    armed.standing = Standing::new(stable, &rows, now).ok();
                }
            }
        }
        if matches!(self.life, Life::Running { .. }) {
            for armed in &mut self.watching.armed {
                if armed.quiet_at(last_output).is_some_and(|at| now >= at) {
                    armed.quiet_told = Some(last_output);
                    fired.push(armed.fired(Reason::Quiet, end));
                }
            }
        }
        self.fire(fired);
    }

    /// The job has ended and its output is drained: patterns in its last words count.
    pub(super) fn watch_end(&mut self) {
        while {
            self.watch_catch_up();
            self.watching.behind
        } {}
        self.watching.armed.iter_mut().for_each(Armed::end_last_line);
        self.watch_release(Instant::now(), true);
        // Silence and standing still mean nothing any more.
        self.watching.armed.retain(|armed| armed.search.is_some() || armed.watch.on.exit);
    }
}
