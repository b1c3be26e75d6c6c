//! The helper that delivers wakes: `outlast deliver HOME WHOSE`. A keeper starts it for its own job; a process that finds orders
//! that dead keepers have left starts one for those.
//!
//! Orders for one target are delivered one after the other, those for different targets side by side. The folder tells
//! (inotify) when orders come, are cancelled or may go on.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::Delivery;
use super::attempt::{self, MAX_TRIES, Payload, Trouble, backoff};
use super::left::is_left;
use super::notice::notice;
use super::spool::{Filed, Held, Order, OrderId, Progress, Spool};
use crate::clock::now_ms;
use crate::outbox::inotify::Inotify;
use crate::outbox::{Entry, Outbox};
use crate::registry::Home;
use crate::spec::Handle;
use crate::wire::event::EntryKind;
use outlast_tmux::{Held as PaneHeld, Identity, Notice, NoticeShell, Pane, Tmux, Told, Untold};

/// The hidden verb.
pub(crate) const DELIVER: &str = "deliver";
const LEFT: &str = "left";
const ALL: &str = "all";
/// How often the folder is looked at where the kernel does not tell, or while a lane ends.
const LOOK: Duration = Duration::from_millis(100);

/// Whose orders a helper delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Those of one job, for its keeper.
    Job(Handle),
    /// Those that no keeper delivers, in a small environment.
    Left,
    /// Whatever is there, for a person who asks.
    All,
}

impl Scope {
    fn word(self) -> String {
        match self {
            Scope::Job(job) => job.to_string(),
            Scope::Left => LEFT.to_owned(),
            Scope::All => ALL.to_owned(),
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            LEFT => Some(Scope::Left),
            ALL => Some(Scope::All),
            job => job.parse().ok().map(|job| Scope::Job(Handle::new(job))),
        }
    }
}

/// Starts a helper, and does not wait for it. It runs outside the job's sandbox, so it gets nothing of the
/// job: not its environment, which could name another `sh` or a library to load, and not its folder.
pub(crate) fn begin(
    scope: Scope,
    home: &Home,
    env: &BTreeMap<String, String>,
    folder: Option<&Path>,
) -> std::io::Result<Child> {
    let folder = folder.filter(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
    let mut helper = Command::new(crate::local::start::own_program());
    helper
        .arg0("outlast")
        .arg(DELIVER)
        .arg(home.path())
        .arg(scope.word())
        .env_clear()
        .envs(env)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    outlast_pty::heritage::give_back_to(&mut helper);
    helper.spawn()
}

/// The helper itself. Returns its exit code: 1 if something could not be delivered.
pub(crate) fn run(home: &Path, scope: Scope) -> i32 {
    // Leave the keeper's session, which leads the job's terminal; and do not inherit its ignored signals.
    let _ = rustix::process::setsid();
    outlast_pty::signals::restore(&[
        Signal::HUP,
        Signal::INT,
        Signal::QUIT,
        Signal::TERM,
        Signal::TSTP,
        Signal::TTIN,
        Signal::TTOU,
        Signal::USR2,
        Signal::XFSZ,
    ]);
    let Ok(home) = Home::open(home) else { return 2 };
    let Some(spool) = Spool::existing(&home) else { return 0 };
    // Two that go on with the same orders would do no harm, and be of no use.
    let left = (scope == Scope::Left).then(|| spool.take_left());
    if matches!(left, Some(None)) {
        return 0;
    }
    let courier = Courier::new(home, spool, scope);
    courier.work();
    courier.spool.tidy();
    i32::from(courier.failed.load(Ordering::Acquire))
}

/// Wakes lanes that wait for a time or a change.
#[derive(Debug, Default)]
struct Bell {
    rung: Mutex<u64>,
    changed: Condvar,
}

impl Bell {
    fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_all();
    }

    /// How often it has rung: asked before the spool is looked at, so that no change is missed in between.
    fn heard(&self) -> u64 {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until something has changed in the spool since then, or the time in milliseconds since 1970 has come.
    fn wait(&self, heard: u64, until: Option<u64>) {
        let left = until.map_or(3_600_000, |until| until.saturating_sub(now_ms())).min(3_600_000);
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.changed.wait_timeout_while(rung, Duration::from_millis(left), |now| *now == heard);
    }
}

/// Delivers orders.
#[derive(Debug)]
pub(super) struct Courier {
    home: Home,
    spool: Spool,
    scope: Scope,
    bell: Bell,
    failed: AtomicBool,
}

impl Courier {
    pub(super) fn new(home: Home, spool: Spool, scope: Scope) -> Self {
        Self { home, spool, scope, bell: Bell::default(), failed: AtomicBool::new(false) }
    }

    pub(super) fn home(&self) -> &Home {
        &self.home
    }

    pub(super) fn spool(&self) -> &Spool {
        &self.spool
    }

    /// Sleeps until something has changed in the spool since it was last looked at, or that time has come.
    pub(super) fn wait_for_change(&self, heard: u64, until: Option<u64>) {
        self.bell.wait(heard, until);
    }

    /// Orders that we are to deliver, oldest first.
    pub(super) fn pending(&self) -> Vec<Filed> {
        let mut ids = self.spool.ids();
        match self.scope {
            Scope::Job(job) => ids.retain(|id| id.job == job),
            Scope::Left => {
                let mut left = BTreeMap::new();
                ids.retain(|id| *left.entry(id.job).or_insert_with(|| is_left(&self.home, id.job)));
            }
            Scope::All => {}
        }
        let all = ids.into_iter().filter_map(|id| self.spool.get(id));
        let mut pending: Vec<Filed> = all.filter(Filed::is_pending).collect();
        pending.sort_by_key(|filed| (filed.order.made_at, filed.id));
        pending
    }

    /// Until nothing is pending.
    fn work(&self) {
        let inotify = Inotify::new();
        let inotify = inotify.filter(|inotify| matches!(inotify.watch_spool(self.spool.path()), Ok(Some(_))));
        std::thread::scope(|scope| {
            let mut lanes: Vec<(Delivery, std::thread::ScopedJoinHandle<'_, ()>)> = Vec::new();
            loop {
                lanes.retain(|(_, lane)| !lane.is_finished());
                let pending = self.pending();
                for filed in &pending {
                    let how = &filed.order.wake.how;
                    if !lanes.iter().any(|(other, _)| other == how) {
                        let target = how.clone();
                        lanes.push((how.clone(), scope.spawn(move || self.lane(&target))));
                    }
                }
                if lanes.is_empty() {
                    return;
                }
                // A lane that has done its last order ends in a moment.
                let soon = pending.is_empty().then(|| Instant::now() + LOOK);
                match &inotify {
                    Some(inotify) => inotify.wait(soon),
                    None => std::thread::sleep(LOOK),
                }
                self.bell.ring();
            }
        });
    }

    /// Delivers all that is pending for one target, in order.
    fn lane(&self, target: &Delivery) {
        let next = || self.pending().into_iter().find(|filed| filed.order.wake.how == *target);
        loop {
            let heard = self.bell.heard();
            let Some(filed) = next() else { return };
            if let Some(pause) = self.spool.pause_of(&filed.order) {
                self.bell.wait(heard, pause.until);
                continue;
            }
            if now_ms() < filed.progress.next_at {
                self.bell.wait(heard, Some(filed.progress.next_at));
                continue;
            }
            self.spool.sync(filed.id);
            match &filed.order.wake.how {
                Delivery::Tmux { pane, prompt, shell, timeout_ms, pinned, says } => {
                    let (prompt, pinned, timeout_ms) = (prompt.as_deref(), pinned.as_ref(), *timeout_ms);
                    let shell_stays = says.is_some();
                    let place = InPane { pane, prompt, shell: *shell, timeout_ms, pinned, shell_stays };
                    self.type_notice(&filed, &place, &std::env::vars().collect());
                }
                Delivery::Agent { timeout_ms } => self.wake_agent(&filed, *timeout_ms, heard),
                Delivery::Codex { thread } => self.queue_notice(&filed, thread.as_deref()),
                Delivery::Exec { .. } | Delivery::Webhook { .. } | Delivery::File { .. } => {
                    self.deliver_next(filed.id);
                }
            }
        }
    }

    /// Tries the next event of an order.
    fn deliver_next(&self, id: OrderId) {
        let Some(_held) = self.spool.hold(id, true) else { return };
        let Some(mut filed) = self.spool.get(id).filter(Filed::is_pending) else { return };
        let Some(mut entry) = filed.order.events.get(filed.progress.done).cloned() else {
            return self.spool.remove(id);
        };
        let again = filed.progress.tries > 0;
        if !self.begin_try(&mut filed) {
            return;
        }
        self.find_number(&filed.order.session, &mut entry);
        let payload = Payload { entry: &entry, again, small_environment: self.scope == Scope::Left };
        match attempt::deliver(&filed.order.wake.how, &payload) {
            Ok(()) => {
                filed.progress = Progress { done: filed.progress.done + 1, ..Progress::default() };
                if filed.progress.done >= filed.order.events.len() {
                    self.spool.remove(id);
                } else {
                    self.spool.note(id, &filed.progress);
                }
            }
            Err(trouble) => self.on_trouble(filed, trouble),
        }
    }

    /// Notes that an order is tried, before it is; false when that was often enough.
    pub(super) fn begin_try(&self, filed: &mut Filed) -> bool {
        if filed.progress.tries >= MAX_TRIES {
            let why =
                filed.progress.trouble.clone().unwrap_or_else(|| "its helper was killed each time".into());
            self.fail(filed, &format!("tried {MAX_TRIES} times: {why}"));
            return false;
        }
        filed.progress.tries += 1;
        self.spool.note(filed.id, &filed.progress);
        true
    }

    pub(super) fn on_trouble(&self, mut filed: Filed, trouble: Trouble) {
        let tries = filed.progress.tries;
        match trouble {
            Trouble::Final(why) => self.fail(&mut filed, &why),
            Trouble::Retry(why) if tries >= MAX_TRIES => {
                self.fail(&mut filed, &format!("tried {tries} times: {why}"));
            }
            Trouble::Retry(why) => {
                filed.progress.trouble = Some(why);
                filed.progress.next_at = now_ms() + crate::clock::millis(backoff(tries));
                self.spool.note(filed.id, &filed.progress);
            }
        }
    }

    /// Gives an order up, and says so.
    pub(super) fn fail(&self, filed: &mut Filed, why: &str) {
        self.failed.store(true, Ordering::Release);
        let wake = &filed.order.wake;
        if let Some(mut entry) = filed.order.events.last().cloned()
            && let Ok(outbox) = Outbox::open(&self.home, &filed.order.session)
        {
            self.find_number(&filed.order.session, &mut entry);
            let small = if self.scope == Scope::Left {
                " (in a small environment: that of the client that started the job is lost)"
            } else {
                ""
            };
            let text = format!("{} {:?} for event {}: {why}{small}", wake.kind(), wake.target(), entry.n);
            let mut word = Entry::about(entry.job, entry.name.as_deref(), EntryKind::WakeFailed, text);
            word.more = format!("outlast wakes retry {}", filed.id);
            (word.from, word.offset) = (entry.offset, entry.offset);
            let _ = outbox.append(&mut [word]);
        }
        filed.progress.failed_at = Some(now_ms());
        filed.progress.trouble = Some(why.to_owned());
        self.spool.note(filed.id, &filed.progress);
    }

    /// An order is written before its entries are numbered: the outbox has the number.
    pub(super) fn find_number(&self, session: &str, entry: &mut Entry) {
        if entry.n == 0
            && entry.seq > 0
            && let Some(outbox) = Outbox::existing(&self.home, session)
        {
            let told =
                outbox.entries(0).into_iter().find(|told| told.job == entry.job && told.seq == entry.seq);
            entry.n = told.map_or(0, |told| told.n);
        }
    }

    /// Takes an order and all others for the same target and session to ourselves.
    pub(super) fn join(&self, filed: &Filed) -> Vec<(Filed, Held)> {
        let is_like =
            |other: &Order| other.wake.how == filed.order.wake.how && other.session == filed.order.session;
        let others = self.spool.all().into_iter().filter(|other| other.is_pending() && is_like(&other.order));
        let mut joined: Vec<(Filed, Held)> = others
            .filter_map(|other| {
                let held = self.spool.hold(other.id, false)?;
                // It may have been tried until just now.
                let now = self.spool.get(other.id).filter(Filed::is_pending)?;
                Some((now, held))
            })
            .collect();
        joined.sort_by_key(|(other, _)| (other.order.made_at, other.id));
        if joined.iter().any(|(other, _)| other.id == filed.id) { joined } else { Vec::new() }
    }

    /// Queues one notice for all orders of a target.
    pub(super) fn queue_notice(&self, filed: &Filed, thread: Option<&str>) {
        let mut joined = self.join(filed);
        joined.retain_mut(|(other, _)| self.begin_try(other));
        let text = text_of(&joined);
        if joined.is_empty() {
            return self.bell.wait(self.bell.heard(), Some(now_ms() + 50));
        }
        let result = attempt::queue(thread, &text);
        for (other, _held) in joined {
            match &result {
                Ok(()) => self.spool.remove(other.id),
                Err(trouble) => self.on_trouble(other, trouble.clone()),
            }
        }
    }

    /// Types one notice for all orders of a target into its pane.
    pub(super) fn type_notice(&self, filed: &Filed, place: &InPane<'_>, env: &BTreeMap<String, String>) {
        let InPane { pane, prompt, shell, timeout_ms, pinned, shell_stays } = *place;
        let found = match pinned {
            Some(pinned) => Pane::again(&Tmux::of_pane(pinned, env), pinned),
            None => Tmux::of_env(env).pane(pane),
        };
        let pane = match found.and_then(|pane| pane.with_prompt(prompt)?.with_shell(shell)) {
            Ok(pane) => pane,
            Err(failure) => {
                let Some(_held) = self.spool.hold(filed.id, true) else { return };
                return self.fail(&mut filed.clone(), &failure.message);
            }
        };
        let began = Instant::now();
        let left = Duration::from_millis(timeout_ms.saturating_sub(filed.progress.waited_ms));
        let begun = filed.progress.typed.clone();
        let joined = Vec::new();
        let mut typing = Typing { courier: self, filed, joined, begun, shell_stays, over: None };
        let told = pane.tell(&mut typing, began + left);
        let Typing { joined, over, .. } = typing;
        self.after_typing(filed, joined, (told, over), began.elapsed());
    }

    fn after_typing(
        &self,
        filed: &Filed,
        mut joined: Vec<(Filed, Held)>,
        (told, over): (Result<Told, Untold>, Option<String>),
        took: Duration,
    ) {
        if joined.is_empty() {
            // What a dead helper had begun may have been finished; or nothing was typed.
            let Some(held) = self.spool.hold(filed.id, true) else { return };
            let Some(mut now) = self.spool.get(filed.id).filter(Filed::is_pending) else { return };
            now.progress.waited_ms += crate::clock::millis(took);
            joined.push((now, held));
        }
        for (mut other, _held) in joined {
            match &told {
                Ok(Told::Sent) => self.spool.remove(other.id),
                Ok(Told::Withdrawn) => match &over {
                    Some(why) => self.fail(&mut other, why),
                    None => self.spool.note(other.id, &other.progress),
                },
                Err(Untold::TakenBack(failure)) => {
                    other.progress.typed = None;
                    self.on_trouble(other, Trouble::Retry(failure.message.clone()));
                }
                Err(Untold::Nothing(failure) | Untold::Left(failure)) => {
                    self.fail(&mut other, &failure.message);
                }
            }
        }
    }
}

/// Where a notice is typed.
#[derive(Debug)]
pub(super) struct InPane<'a> {
    pane: &'a str,
    prompt: Option<&'a str>,
    shell: Option<NoticeShell>,
    timeout_ms: u64,
    pinned: Option<&'a Identity>,
    /// A shell that is back at its prompt after a submitted command stays there.
    shell_stays: bool,
}

impl<'a> InPane<'a> {
    /// A pane by its name alone.
    pub(super) fn named(pane: &'a str, timeout_ms: u64) -> Self {
        Self { pane, prompt: None, shell: None, timeout_ms, pinned: None, shell_stays: false }
    }
}

/// One notice for all events of some orders.
fn text_of(joined: &[(Filed, Held)]) -> String {
    let Some((first, _)) = joined.first() else { return String::new() };
    let entries: Vec<&Entry> = joined.iter().flat_map(|(filed, _)| &filed.order.events).collect();
    // A try that is noted and has left no trouble was cut short: it may have arrived.
    let again = joined.iter().any(|(filed, _)| filed.progress.typed.is_some());
    notice(&first.order.wake, &entries, again)
}

/// A notice that waits for its pane.
struct Typing<'a> {
    courier: &'a Courier,
    filed: &'a Filed,
    joined: Vec<(Filed, Held)>,
    begun: Option<String>,
    shell_stays: bool,
    /// Why it is given up before its time.
    over: Option<String>,
}

impl Notice for Typing<'_> {
    fn waits(&mut self, held: &PaneHeld) -> bool {
        if self.shell_stays && matches!(held, PaneHeld::Shell(_)) {
            self.over = Some(format!("nothing was typed: {held}"));
            return false;
        }
        // Not typed after all: others may have it meanwhile.
        for (mut other, _held) in self.joined.drain(..) {
            other.progress.tries -= 1;
            other.progress.typed = None;
            self.courier.spool.note(other.id, &other.progress);
        }
        self.courier.spool.is_there(self.filed.id) && self.courier.spool.pause_of(&self.filed.order).is_none()
    }

    fn text(&mut self) -> Option<String> {
        let spool = &self.courier.spool;
        if spool.pause_of(&self.filed.order).is_some() {
            return None;
        }
        let mut joined = self.courier.join(self.filed);
        joined.retain_mut(|(other, _)| self.courier.begin_try(other));
        if joined.is_empty() {
            return None;
        }
        let text = text_of(&joined);
        for (other, _) in &mut joined {
            other.progress.typed = Some(text.clone());
            spool.note(other.id, &other.progress);
        }
        self.joined = joined;
        Some(text)
    }

    fn begun(&self) -> Option<&str> {
        self.begun.as_deref()
    }
}
