//! Looks at the job from outside: does it wait for input, and which ports does it listen on?
//!
//! Looks are taken by a thread of its own, because reading `/proc` can block, and never by the pump. It is there
//! only while looks are wanted: soon and often while somebody waits for the answer, seldom otherwise, and not at
//! all once a silent job has been looked at often enough.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use outlast_pty::evidence::{self, Attention, Claim, Hints, Kind, Level, Prober, Row, Verdict, text};
use outlast_pty::{ports, procfs};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, getpid};

use super::ground::Ends;
use super::typing::Typing;
use super::{Keeper, Life};
use crate::clock::earliest;
use crate::wire::event::What;
use crate::wire::{Awaiting, Evidence, Reason};

/// How far apart looks for a port are while somebody waits for one.
const PORT_LOOK: Duration = Duration::from_millis(50);
/// How far apart they are while a port is worth an event, and nobody waits.
const PORT_WATCH: Duration = Duration::from_secs(1);
/// After which silences a job that nobody waits for is looked at; later ones are this far apart each.
const UNATTENDED: &[Duration] = &[
    Duration::from_millis(250),
    Duration::from_millis(300),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(46),
];
const UNATTENDED_LATER: Duration = Duration::from_secs(300);
/// When a program that may be back at a known prompt is looked at so that it counts, and how far the first such looks are
/// apart: a little more than must lie between two that are to be different ones. Each later one is twice as far,
const QUICK: Duration = Duration::from_micros(155);
const QUICK_APART: Duration = Duration::from_micros(75);
/// but no further than this.
const QUICK_DOUBLINGS: usize = 5;
/// The look before that only notes who sleeps: two must agree.
const EARLY: Duration = Duration::from_micros(60);
/// So many, and then as for any other.
const QUICK_LOOKS: usize = 8;
/// A look that takes longer is stuck on a hung file system; it is not waited for.
const STUCK: Duration = Duration::from_secs(2);
/// Input that has not woken its reader by then does not wake it: half a line, for example.
const SLOWEST_WAKE: Duration = Duration::from_millis(700);
/// The thread needs little.
const STACK: usize = 128 << 10;

/// What the screen and the clock know, for one look.
#[derive(Default)]
struct Look {
    text: String,
    alternate: bool,
    bracketed_paste: bool,
    cursor_hidden: bool,
    since_output: Duration,
    since_input: Duration,
    row: Row,
    offers_choice: bool,
    /// Whether ports are looked for, too.
    ports: bool,
    activity: u64,
}

/// What one look brought.
struct Seen {
    verdict: Verdict,
    unconfirmed: bool,
    /// Ports and sockets, where they were looked for.
    listening: Option<(Vec<u16>, Vec<String>)>,
    /// Who waits, and how often it had run until then.
    reader: Option<(Pid, u64)>,
    activity: u64,
}

struct Looker {
    ask: Sender<Look>,
    seen: Receiver<Seen>,
    wake: OwnedFd,
}

impl Looker {
    /// Starts the thread.
    fn start(master: OwnedFd) -> std::io::Result<Self> {
        let (wake, waker) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let (ask, asked) = channel::<Look>();
        let (say, seen) = channel();
        std::thread::Builder::new().name("looker".into()).stack_size(STACK).spawn(move || {
            let root = getpid();
            let mut prober = Prober::new(root);
            let mut watch = ports::Watch::new(root);
            let mut sockets = Vec::new();
            while let Ok(look) = asked.recv() {
                let verdict = prober.sample(master.as_fd(), &hints(&look));
                let listening = look.ports.then(|| {
                    if watch.refresh() {
                        sockets = ports::unix_listening(root).into_iter().map(|socket| socket.path).collect();
                    }
                    let mut ports: Vec<u16> = watch.ports().iter().map(|port| port.port).collect();
                    ports.sort_unstable();
                    ports.dedup();
                    (ports, sockets.clone())
                });
                let unconfirmed = prober.is_unconfirmed();
                let reader = verdict.waiting().and_then(|claim| {
                    let pid = claim.evidence.pid?;
                    Some((pid, procfs::times_run(pid)?))
                });
                let seen = Seen { verdict, unconfirmed, listening, reader, activity: look.activity };
                if say.send(seen).is_err() {
                    return;
                }
                let _ = rustix::io::write(&waker, b"!");
            }
        })?;
        Ok(Self { ask, seen, wake })
    }
}

fn hints(look: &Look) -> Hints<'_> {
    Hints {
        text_before_cursor: &look.text,
        alternate_screen: look.alternate,
        bracketed_paste: look.bracketed_paste,
        cursor_hidden: look.cursor_hidden,
        since_output: look.since_output,
        since_input: look.since_input,
        row: look.row,
        offers_choice: look.offers_choice,
        // The screen answers every question of the program before it is looked at.
        query_unanswered: false,
    }
}

/// What is known from looking.
#[derive(Default)]
pub(super) struct Looking {
    looker: Option<Looker>,
    /// A look is under way since then.
    under_way: Option<Instant>,
    next: Option<Instant>,
    unconfirmed: bool,
    looks_since_activity: usize,
    /// Quick looks since the last activity.
    quick_looks: usize,
    /// Counts output and input: a look at what was before does not count.
    activity: u64,
    pub(super) awaiting: Option<Awaiting>,
    /// What stood before the cursor at the last look.
    text: String,
    /// What stood there when it last waited.
    last_prompt: Option<String>,
    /// Who was last seen to wait, and how often it had run until then.
    reader: Option<(Pid, u64)>,
    /// The same, from before the last input: until it has run again, it has not even seen that input.
    reader_before_input: Option<(Pid, u64)>,
    pub(super) ports: Vec<u16>,
    pub(super) sockets: Vec<String>,
}

impl Looking {
    /// What says that a look is done.
    pub(super) fn wake(&self) -> Option<BorrowedFd<'_>> {
        self.looker.as_ref().map(|looker| looker.wake.as_fd())
    }

    pub(super) fn next(&self) -> Option<Instant> {
        match self.under_way {
            Some(since) => Some(since + STUCK),
            None => self.next,
        }
    }

    fn take(&mut self) -> Option<Seen> {
        let looker = self.looker.as_ref()?;
        let mut drained = [0; 16];
        let _ = rustix::io::read(&looker.wake, &mut drained);
        let seen = looker.seen.try_recv().ok()?;
        self.under_way = None;
        Some(seen)
    }
}

impl Keeper {
    /// The job printed something or was typed into: what was known of its waiting no longer holds.
    pub(super) fn note_activity(&mut self) {
        self.looking.activity += 1;
        self.looking.looks_since_activity = 0;
        self.looking.quick_looks = 0;
        self.looking.unconfirmed = false;
        if self.looking.awaiting.take().is_some() {
            self.event(What::WentOn);
        }
        self.plan_look();
    }

    /// Something was typed: whoever waits now waits for what came before.
    pub(super) fn note_input(&mut self) {
        self.last_input = Instant::now();
        let reader = self.looking.reader.take().or(self.looking.reader_before_input);
        self.looking.reader_before_input = reader.and_then(|(pid, _)| Some((pid, procfs::times_run(pid)?)));
        self.note_activity();
    }

    /// Whether a claim is about a program that a busy machine has not woken for its input yet.
    fn is_stale(&self, reader: Option<(Pid, u64)>) -> bool {
        reader.is_some()
            && reader == self.looking.reader_before_input
            && self.last_input.elapsed() < SLOWEST_WAKE
    }

    /// Decides when to look next.
    pub(super) fn plan_look(&mut self) {
        let Life::Running { .. } = self.life else {
            self.looking.next = None;
            return;
        };
        let now = Instant::now();
        let quiet_since = self.last_output.max(self.last_input);
        let quiet = now.saturating_duration_since(quiet_since);
        let wanted = self.waits.wanted();
        let mut next = if wanted.awaiting_input && self.may_look_quickly() {
            Some(match self.looking.quick_looks.checked_sub(1) {
                None => quiet_since + EARLY,
                Some(before) => {
                    let apart = QUICK_APART * (1 << before.min(QUICK_DOUBLINGS));
                    (now + apart).max(quiet_since + QUICK)
                }
            })
        } else if wanted.awaiting_input && self.info.has_terminal() {
            let look = Look { since_output: quiet, since_input: quiet, ..Look::default() };
            Some(now + evidence::next_look(&hints(&look), Attention::Awaited, self.looking.unconfirmed))
        } else {
            let step = UNATTENDED.get(self.looking.looks_since_activity);
            let at = quiet_since + step.copied().unwrap_or(quiet + UNATTENDED_LATER);
            Some(at.max(now + Duration::from_millis(20)))
        };
        let last_resort = quiet_since + self.watchdog.after();
        if last_resort > now {
            next = earliest(next, Some(last_resort + Duration::from_millis(20)));
        }
        if wanted.port {
            next = earliest(next, Some(now + PORT_LOOK));
        }
        if self.chosen().port || self.watching.wants_port() {
            next = earliest(next, Some(now + PORT_WATCH));
        }
        self.looking.next = next;
    }

    /// Whether the program may be back at the prompt it was last seen to wait at, after input that it has seen: a
    /// line typed into an interpreter is mostly answered within a millisecond, and so should its sender be.
    fn may_look_quickly(&self) -> bool {
        self.looking.quick_looks < QUICK_LOOKS
            && self.looking.last_prompt.is_some()
            && self.looking.reader_before_input.is_some()
            && !self.typing.has_more()
    }

    /// Whether nothing that was typed waits to be read.
    fn has_read_all(&self) -> bool {
        match &self.ground.ends {
            Ends::Terminal { slave, .. } => rustix::io::ioctl_fionread(slave).is_ok_and(|left| left == 0),
            Ends::Pipes { .. } => false,
        }
    }

    /// Takes a look if it is time to.
    pub(super) fn look_if_due(&mut self, now: Instant) {
        if let Some(since) = self.looking.under_way {
            if now >= since + STUCK {
                // Given up on: its thread ends by itself when it comes back.
                self.looking.looker = None;
                self.looking.under_way = None;
                self.plan_look();
            }
            return;
        }
        if self.looking.next.is_none_or(|at| now < at) {
            return;
        }
        self.looking.next = None;
        if !matches!(self.life, Life::Running { .. }) {
            return;
        }
        let quick = self.waits.wanted().awaiting_input && self.may_look_quickly();
        let read_all = quick && self.has_read_all();
        let Some(mut look) = self.make_look(now) else { return };
        // What an interpreter does about its next line is not to listen, as a rule: the next look at leisure will tell.
        look.ports = !quick || self.waits.wanted().port;
        if quick {
            let early = self.looking.quick_looks == 0;
            self.looking.quick_looks += 1;
            if !(look.row == Row::SamePrompt && read_all) {
                if !early {
                    // Not back yet; whatever it prints next is another chance.
                    self.looking.quick_looks = QUICK_LOOKS;
                }
                self.plan_look();
                return;
            }
        }
        if self.looking.looker.is_none() {
            self.looking.looker = self.start_looker();
        }
        let sent = self.looking.looker.as_ref().is_some_and(|looker| looker.ask.send(look).is_ok());
        if sent {
            self.looking.under_way = Some(now);
            self.looking.looks_since_activity += 1;
        }
    }

    fn start_looker(&self) -> Option<Looker> {
        let fd = match &self.ground.ends {
            Ends::Terminal { master, .. } => master.try_clone(),
            Ends::Pipes { stdout, .. } => stdout.try_clone(),
        };
        Looker::start(fd.ok()?).ok()
    }

    fn make_look(&mut self, now: Instant) -> Option<Look> {
        let since_output = now.saturating_duration_since(self.last_output);
        let since_input = now.saturating_duration_since(self.last_input);
        let activity = self.looking.activity;
        let channel = self.channels.first_mut()?;
        let mut look = Look { since_output, since_input, activity, ..Look::default() };
        if self.info.has_terminal() {
            let shot = channel.fold.screen();
            let before: Vec<char> = shot.text_before_cursor.chars().collect();
            look.text = before[before.len().saturating_sub(200)..].iter().collect();
            look.alternate = shot.alternate;
            look.bracketed_paste = shot.modes.bracketed_paste;
            look.cursor_hidden = !shot.cursor.visible;
            look.offers_choice =
                look.cursor_hidden && text::offers_choice(shot.rows.iter().map(String::as_str));
            let row = shot.rows.get(shot.cursor.row).map_or("", String::as_str);
            let behind_cursor = row.strip_prefix(&look.text).unwrap_or_default();
            look.row = match &self.looking.last_prompt {
                Some(last) => row_after(last, &look.text, behind_cursor, &self.typing),
                None => Row::New,
            };
            self.looking.text.clone_from(&look.text);
        } else {
            self.looking.text = channel.fold.unfinished();
        }
        Some(look)
    }

    /// A look is done: what it says goes to waits, events and status.
    pub(super) fn on_seen(&mut self) {
        let Some(seen) = self.looking.take() else { return };
        if let Some((ports, sockets)) = seen.listening {
            self.looking.sockets = sockets;
            self.note_ports(ports);
        }
        if self.is_stale(seen.reader) {
            self.looking.unconfirmed = true;
        } else if seen.activity == self.looking.activity {
            if seen.reader.is_some() {
                self.looking.reader = seen.reader;
            }
            let verdict = self.info.has_terminal().then_some(&seen.verdict);
            self.looking.unconfirmed = seen.unconfirmed && verdict.is_some();
            self.note_verdict(verdict);
        }
        let wanted = self.waits.wanted();
        if !wanted.awaiting_input && !wanted.port && !self.looking.unconfirmed {
            self.looking.looker = None;
        }
        self.plan_look();
    }

    fn note_verdict(&mut self, verdict: Option<&Verdict>) {
        let claim = verdict.and_then(Verdict::waiting).map(described);
        let silent = self.last_output.max(self.last_input).elapsed();
        let claim = claim.or_else(|| self.watchdog.judge(&self.looking.text, silent, verdict));
        match (claim, &self.looking.awaiting) {
            (Some(mut awaiting), None) => {
                awaiting.prompt = self.hide(&awaiting.prompt);
                self.looking.last_prompt = Some(self.looking.text.clone());
                self.typing.note_prompt();
                self.looking.awaiting = Some(awaiting.clone());
                self.event(What::AwaitingInput { awaiting: Box::new(awaiting.clone()) });
                let end = self.grown().offset;
                self.waits.on_awaiting(&awaiting, end, &mut self.peers);
                self.watch_hit(Reason::AwaitingInput, None);
            }
            (None, Some(_)) if verdict != Some(&Verdict::Unknown) => {
                self.looking.awaiting = None;
                self.event(What::WentOn);
            }
            _ => {}
        }
    }

    fn note_ports(&mut self, ports: Vec<u16>) {
        if ports == self.looking.ports {
            return;
        }
        let opened: Vec<u16> =
            ports.iter().copied().filter(|port| !self.looking.ports.contains(port)).collect();
        self.looking.ports = ports;
        for port in opened {
            self.event(What::PortOpen { port });
            self.watch_hit(Reason::Port, Some(port));
        }
        let end = self.grown().offset;
        self.waits.on_ports(&self.looking.ports, end, &mut self.peers);
    }
}

/// What the cursor's row has to do with the prompt that the job last waited at.
fn row_after(last: &str, text: &str, behind_cursor: &str, typing: &Typing) -> Row {
    if last.trim().is_empty() {
        return Row::New;
    }
    if let Some(added) = text.strip_prefix(last) {
        let whole = format!("{added}{behind_cursor}");
        if !whole.trim().is_empty() {
            let (ended, open) = typing.lines_since_prompt();
            if ended.iter().any(|line| line.starts_with(whole.trim_end())) {
                return Row::Echo;
            }
            // Half a line: it waits at the same prompt for the rest of it.
            if ended.is_empty() && !open.is_empty() && open == added && !typing.has_more() {
                return Row::LikePrompt;
            }
        }
    }
    if typing.has_more() {
        Row::New
    } else if text == last {
        Row::SamePrompt
    } else if text::differ_in_numbers_only(text, last) {
        Row::LikePrompt
    } else {
        Row::New
    }
}

/// A claim in the words of the wire.
fn described(claim: &Claim) -> Awaiting {
    let level = match claim.level {
        Level::Certain => "certain",
        Level::Likely => "likely",
        Level::Possible => "possible",
    };
    let kind = match claim.kind {
        Kind::Line => "line",
        Kind::Password => "password",
        Kind::Key => "key",
        Kind::Menu => "menu",
        Kind::Pager => "pager",
        Kind::Repl => "repl",
    };
    let evidence = &claim.evidence;
    Awaiting {
        level: level.into(),
        kind: kind.into(),
        prompt: claim.prompt.clone(),
        evidence: Evidence {
            pid: evidence.pid.map_or(0, |pid| pid.as_raw_nonzero().get()),
            program: evidence.program.clone(),
            syscall: evidence.syscall.into(),
            fd: evidence.fd,
            why: evidence.why.clone(),
        },
    }
}
