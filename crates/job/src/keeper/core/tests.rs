//! Drives the core with any order of output, deaths, requests, time and clients that leave, without a
//! process. What must hold in every order is checked after each input, and at the end.

mod hold;
mod size;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use outlast_protocol::Condition;
use outlast_pty::evidence::Verdict;
use outlast_pty::reap::End;
use outlast_stream::{Checkpoint, Masks};
use proptest::prelude::*;
use rustix::process::Pid;

use super::*;
use crate::keeper::conditions::{Facts, Moment, Pace};
use crate::lifecycle::{EndedBy, Receipt, State};
use crate::settings::Settings;
use crate::spec::{KeeperSpec, Size, Streams};
use crate::wire::watch::Watch;
use crate::wire::{Attach, Secret, Send, Stable, Wait};

/// How many clients there are.
const PEERS: u64 = 4;
/// More than this is never kept, in bytes and entries together, whatever happens: the queue of input (256
/// KiB, and the largest piece that one client sends), what was typed last, and bounded lists.
const KEPT_BOUND: usize = 512 << 10;

/// Something that happens to a job.
#[derive(Clone, Debug)]
enum Happening {
    Prints(&'static str),
    PrintsToStderr,
    Asks(u64, Wish),
    Leaves(u64),
    TakesInput(usize),
    ClosesInput,
    CommandEnds(Died),
    CommandStops(bool),
    ChildrenAreLeft(bool),
    HeirDies,
    IsTerminated,
    DiskIsFull(bool),
    OutboxIsLocked(bool),
    LogChanges(bool),
    ProbeFinds(bool, Option<u16>),
    HelperEnds(i32),
    Passes(u64),
}

#[derive(Clone, Copy, Debug)]
enum Died {
    Code(i32),
    Signal(i32),
}

/// What a client asks for.
#[derive(Clone, Copy, Debug)]
enum Wish {
    Status,
    BriefStatus,
    Follow,
    Send,
    SendMuch,
    SendEof,
    Typed,
    Secret,
    WaitForPattern,
    WaitForInput,
    WaitForPort,
    WaitForQuiet,
    WaitForStable,
    WaitForExit,
    WaitShortly,
    Signal,
    Kill,
    KillAtOnce,
    Resize,
    Attach,
    Watch,
    Watches,
    Unwatch,
    Screen,
}

const WISHES: &[Wish] = &[
    Wish::Status,
    Wish::BriefStatus,
    Wish::Follow,
    Wish::Send,
    Wish::SendMuch,
    Wish::SendEof,
    Wish::Typed,
    Wish::Secret,
    Wish::WaitForPattern,
    Wish::WaitForInput,
    Wish::WaitForPort,
    Wish::WaitForQuiet,
    Wish::WaitForStable,
    Wish::WaitForExit,
    Wish::WaitShortly,
    Wish::Signal,
    Wish::Kill,
    Wish::KillAtOnce,
    Wish::Resize,
    Wish::Attach,
    Wish::Watch,
    Wish::Watches,
    Wish::Unwatch,
    Wish::Screen,
];

impl Wish {
    fn verb(self) -> Verb {
        let wait = |condition| Verb::Wait(Wait::of([condition]));
        match self {
            Wish::Status => Verb::Status { brief: false },
            Wish::BriefStatus => Verb::Status { brief: true },
            Wish::Follow => Verb::Follow,
            Wish::Send => Verb::Send(Send { text: "ls".into(), newline: true, ..Send::default() }),
            Wish::SendMuch => Verb::Send(Send { text: "x".repeat(60 << 10), ..Send::default() }),
            Wish::SendEof => Verb::Send(Send { eof: true, ..Send::default() }),
            Wish::Typed => Verb::Typed,
            Wish::Secret => Verb::Secret(Secret { force: true, newline: true, ..Secret::default() }),
            Wish::WaitForPattern => wait(Condition::Pattern("rea?dy".into())),
            Wish::WaitForInput => wait(Condition::AwaitingInput),
            Wish::WaitForPort => wait(Condition::Port(None)),
            Wish::WaitForQuiet => wait(Condition::Quiet { ms: 700 }),
            Wish::WaitForStable => wait(Condition::Stable(Stable::default())),
            Wish::WaitForExit => wait(Condition::Exit),
            Wish::WaitShortly => Verb::Wait(Wait { deadline_ms: Some(50), ..Wait::for_exit() }),
            Wish::Signal => Verb::Signal { signal: "USR2".into(), session: "test".into() },
            Wish::Kill => Verb::Kill { grace_ms: 200, session: "test".into() },
            Wish::KillAtOnce => Verb::Kill { grace_ms: 0, session: "test".into() },
            Wish::Resize => Verb::Resize { size: Size { cols: 100, rows: 30 } },
            Wish::Attach => {
                Verb::Attach(Attach { size: Some(Size { cols: 90, rows: 20 }), ..Attach::default() })
            }
            Wish::Watch => {
                let until = vec![Condition::Pattern("err".into())];
                Verb::Watch { watch: Watch { until, each: true, ..Watch::default() } }
            }
            Wish::Watches => Verb::Watches,
            Wish::Unwatch => Verb::Unwatch { watch: "w1".into() },
            Wish::Screen => Verb::Screen { styled: false, scrollback: 3, masked: true },
        }
    }
}

/// The shell around the core, and what is true outside of it.
struct World {
    core: Core,
    effects: Effects,
    clock: Instant,
    ms: u64,
    log: Vec<u8>,
    stderr_end: u64,
    unanswered: BTreeMap<(u64, u64), Wish>,
    left: BTreeSet<u64>,
    next_request: u64,
    told_ends: usize,
    events: u64,
    closed: bool,
    command_lives: bool,
    unreaped: bool,
    children_left: bool,
    disk_is_full: bool,
    outbox_is_locked: bool,
    takes_input: usize,
    input_is_closed: bool,
    log_failing: bool,
    helper: bool,
    inputs: u64,
}

fn command() -> Pid {
    Pid::from_raw(4321).unwrap()
}

impl World {
    fn new() -> Self {
        let started = Instant::now();
        let mut spec = KeeperSpec::shell("true");
        spec.session = "test".into();
        let handle = Handle::new(1);
        let info = crate::registry::format::claimed(handle, &spec, 0);
        let masks = SharedMasks::new(Masks::new([0; 32]).into());
        let moment = Moment { now: started, end: 0, last_output: started, running: true };
        let streams = Streams::Terminal(Size::default());
        let facts = Facts { moment, streams, rows: &[], awaiting: None, ports: &[] };
        let conditions = Conditions::new(spec.notify.conditions(), Vec::new(), &facts);
        let checkpoint = Checkpoint { offset: 0, transcript_len: 0, prelude: Vec::new() };
        let core = Core::new(Beginning {
            command: command(),
            has_heir: true,
            outputs: vec![Output::resume(&info, &checkpoint), Output::resume(&info, &checkpoint)],
            limits: TimeLimits { started, timeout: Some(Duration::from_secs(3600)), inactivity: None },
            last_output: started,
            next_event: 1,
            notifier: Notifier::new(info.handle, None, true, false),
            conditions,
            watchdog: Watchdog::new(&Settings::default().watchdog),
            masks,
            steps: KnownSteps::default(),
            info,
        });
        let mut world = Self {
            core,
            effects: Effects::default(),
            clock: started,
            ms: 1_000,
            log: Vec::new(),
            stderr_end: 0,
            unanswered: BTreeMap::new(),
            left: BTreeSet::new(),
            next_request: 1,
            told_ends: 0,
            events: 0,
            closed: false,
            command_lives: true,
            unreaped: false,
            children_left: false,
            disk_is_full: false,
            outbox_is_locked: false,
            takes_input: 0,
            input_is_closed: false,
            log_failing: false,
            helper: false,
            inputs: 0,
        };
        world.feed(Input::Started { command: command() });
        world
    }

    fn now(&self) -> Now {
        Now { at: self.clock, unix_ms: self.ms }
    }

    fn feed(&mut self, input: Input<'_>) {
        self.inputs += 1;
        self.core.turn(input, self.now(), &mut self.effects);
        while let Some(effect) = self.effects.next() {
            assert!(!self.closed, "{effect:?} after the end");
            if let Some(result) = self.perform(effect) {
                self.inputs += 1;
                self.core.turn(result, self.now(), &mut self.effects);
            }
        }
    }

    fn perform(&mut self, effect: Effect) -> Option<Input<'static>> {
        match effect {
            Effect::Reply { client, .. } => {
                let asked = self.unanswered.remove(&(client.peer, client.request));
                assert!(asked.is_some() || self.left.contains(&client.peer), "{client:?} was answered twice");
            }
            Effect::Event(event) => {
                self.events += 1;
                assert_eq!(event.seq, self.events, "events are numbered without gaps");
                if let EventKind::Exit { state } = &event.what {
                    assert!(!self.command_lives && !self.unreaped, "told before it was written down");
                    assert!(matches!(state, State::Completed(_) | State::Failed(_) | State::Killed(_)));
                    self.told_ends += 1;
                }
            }
            Effect::WriteTranscript { channel } => {
                self.core.take_text(channel, &mut Vec::new());
            }
            Effect::WriteInput => {
                let (front, back) = self.core.input();
                let waits = front.len() + back.len();
                let taken = waits.min(self.takes_input);
                self.takes_input -= taken;
                return Some(Input::Written { taken, refused: self.input_is_closed });
            }
            Effect::ReadLineModes => return Some(Input::LineModes(None)),
            Effect::FeedStep { .. }
            | Effect::ShowPrompt(_)
            | Effect::LeavePrompt
            | Effect::SearchStep(_)
            | Effect::CaptureShell
            | Effect::LookForLostShell(_)
            | Effect::InterruptForeground
            | Effect::SignalStep { .. } => panic!("a job that is not a shell has no steps: {effect:?}"),
            Effect::LearnSecret(secret) => return Some(Input::SecretLearned { secret, failed: None }),
            Effect::SetSize { before, client, .. } => {
                return Some(Input::SizeSet { before, client, failed: None });
            }
            Effect::SignalAll { counts, .. } => {
                return counts
                    .then(|| Input::Signalled(usize::from(self.command_lives || self.children_left)));
            }
            Effect::Signal { client, .. } => return Some(Input::SignalSent { client, count: 1 }),
            Effect::Survey { .. } => {
                let nothing_left = !self.command_lives && !self.unreaped && !self.children_left;
                return Some(Input::Surveyed { nothing_left, processes: Vec::new() });
            }
            Effect::ListProcesses(client) => {
                return Some(Input::Processes { client, processes: Vec::new() });
            }
            Effect::WriteRecord(_) => return Some(Input::RecordWritten(!self.disk_is_full)),
            Effect::Reap(pid) => {
                assert!(self.unreaped && pid == command(), "reaped twice");
                self.unreaped = false;
                return Some(Input::Reaped { used: None, last_line: String::new() });
            }
            Effect::SearchAll => {
                while self.search() {}
                return Some(Input::SearchedAll);
            }
            Effect::CheckInputRead => return Some(Input::AllRead(true)),
            Effect::CountRuns(pid) => return Some(Input::Runs { pid, runs: Some(7) }),
            Effect::AppendOutbox(entries) => {
                return Some(Input::OutboxAppended {
                    entries,
                    written: !self.outbox_is_locked,
                    unfiled: None,
                });
            }
            Effect::Wake(_) => {
                self.helper = true;
                return Some(Input::HelperStarted { failed: None });
            }
            Effect::Repaint { .. }
            | Effect::Follow(_)
            | Effect::Hold { .. }
            | Effect::NoteProgress { .. }
            | Effect::WriteScreen(_)
            | Effect::CloseInput
            | Effect::GiveReserveBack
            | Effect::MarkEndUnsaved(_)
            | Effect::RememberEnd { .. }
            | Effect::CheckFolder
            | Effect::RememberGrace(_)
            | Effect::SaveWatches(_)
            | Effect::GiveMemoryBack
            | Effect::Probe(_)
            | Effect::StopProbes
            | Effect::AnswerExec { .. }
            | Effect::NumberQuestion(_)
            | Effect::AllowHost(_)
            | Effect::SyncOutbox => {}
        }
        None
    }

    fn search(&mut self) -> bool {
        let end = self.log.len() as u64;
        let unread = self.core.unread(end, Pace::Round);
        for piece in &unread {
            let from = usize::try_from(piece.from).unwrap();
            let bytes = self.log[from..from + piece.len].to_vec();
            self.inputs += 1;
            let input = Input::Searched { piece: *piece, bytes: &bytes, end };
            self.core.turn(input, self.now(), &mut self.effects);
        }
        !unread.is_empty()
    }

    fn happens(&mut self, happening: &Happening) {
        match happening {
            Happening::Prints(text) => {
                self.log.extend_from_slice(text.as_bytes());
                self.feed(Input::Output { channel: 0, bytes: text.as_bytes() });
                self.feed(Input::OutputPaused { channel: 0, end: self.log.len() as u64 });
            }
            Happening::PrintsToStderr => {
                self.stderr_end += 5;
                self.feed(Input::Output { channel: 1, bytes: b"oops\n" });
                self.feed(Input::OutputPaused { channel: 1, end: self.stderr_end });
            }
            Happening::Asks(peer, wish) => {
                if !self.left.contains(peer) {
                    let client = Client { peer: *peer, request: self.next_request };
                    self.unanswered.insert((*peer, self.next_request), *wish);
                    self.next_request += 1;
                    self.feed(Input::Request { client, verb: wish.verb(), modes: None });
                }
            }
            Happening::Leaves(peer) => {
                // The next one is another client.
                self.unanswered.retain(|(of, _), _| of != peer);
                self.left.insert(*peer);
                self.feed(Input::PeerLeft(*peer));
            }
            Happening::TakesInput(bytes) => {
                self.takes_input = *bytes;
                self.feed(Input::SinkReady);
            }
            Happening::ClosesInput => {
                self.input_is_closed = true;
                self.feed(Input::SinkReady);
            }
            Happening::CommandEnds(died) => self.command_ends(*died),
            Happening::CommandStops(stops) => self.feed(Input::Stopped(*stops)),
            Happening::ChildrenAreLeft(left) => self.children_left = *left && self.command_lives,
            Happening::HeirDies => self.feed(Input::HeirDied),
            Happening::IsTerminated => self.feed(Input::Terminated),
            Happening::DiskIsFull(full) => self.disk_is_full = *full,
            Happening::OutboxIsLocked(locked) => self.outbox_is_locked = *locked,
            Happening::LogChanges(failing) => {
                if *failing != self.log_failing {
                    self.log_failing = *failing;
                    let failing = failing.then(|| "no space".to_owned());
                    self.feed(Input::LogChanged { channel: 0, failing, lost: Gone::default() });
                }
            }
            Happening::ProbeFinds(waits, port) => {
                let verdict = if *waits { Verdict::Unknown } else { Verdict::Busy };
                let ports = port.iter().copied().collect();
                self.feed(Input::Probed(Box::new(ProbeResult {
                    http: Vec::new(),
                    verdict,
                    unconfirmed: false,
                    listening: Some((ports, Vec::new())),
                    reader: None,
                    activity: 0,
                })));
            }
            Happening::HelperEnds(code) => {
                if std::mem::take(&mut self.helper) {
                    self.feed(Input::HelperEnded(End::Code(*code)));
                }
            }
            Happening::Passes(ms) => {
                self.clock += Duration::from_millis(*ms);
                self.ms += ms;
            }
        }
        self.round();
    }

    fn command_ends(&mut self, died: Died) {
        if !self.command_lives {
            return;
        }
        (self.command_lives, self.unreaped) = (false, true);
        let end = match died {
            Died::Code(code) => End::Code(code),
            Died::Signal(signal) => End::Signal { signal, core: false },
        };
        self.feed(Input::CommandEnded(Box::new(CommandEnd {
            command: command(),
            end,
            at_ms: self.ms,
            others: Vec::new(),
            others_end_too: false,
            used: None,
            out_of_memory: false,
        })));
    }

    /// What the shell does after each round.
    fn round(&mut self) {
        self.search();
        self.feed(Input::Time);
        self.no_deadline_stays_due();
        assert!(self.core.kept() < KEPT_BOUND, "{} bytes and entries are kept", self.core.kept());
        assert!(self.told_ends <= 1, "an end is told once");
    }

    /// Time was an input, so what was due is done. A deadline that stays in the past would keep the loop from
    /// sleeping; what comes of an effect may be due at once, but not again and again.
    fn no_deadline_stays_due(&mut self) {
        let is_due = |world: &Self| world.core.next_deadline().is_some_and(|at| at <= world.clock);
        for _ in 0..4 {
            if self.core.is_over() || !is_due(self) {
                return;
            }
            self.search();
            self.feed(Input::Time);
        }
        let which = [
            ("end", self.core.next_end()),
            ("probe", self.core.probing.next()),
            ("conditions", self.core.conditions.next_deadline(self.core.last_output)),
            ("notifier", self.core.notifier.next_deadline()),
        ];
        let due: Vec<_> = which.iter().filter(|(_, at)| at.is_some_and(|at| at <= self.clock)).collect();
        assert!(
            self.core.is_over() || !is_due(self),
            "a deadline stays due: {due:?} in {:?}",
            self.core.phase
        );
    }

    /// Everything that a job needs to end happens.
    fn end(&mut self) {
        self.disk_is_full = false;
        self.outbox_is_locked = false;
        self.children_left = false;
        self.happens(&Happening::CommandEnds(Died::Code(0)));
        for _ in 0..200 {
            if self.core.is_over() {
                break;
            }
            self.happens(&Happening::HelperEnds(0));
            self.happens(&Happening::Passes(100));
        }
        assert!(self.core.is_over(), "it does not end");
        assert_eq!(self.told_ends, 1, "its end was told");
        self.feed(Input::Close);
        assert_eq!(self.unanswered, BTreeMap::new(), "all but those who left are answered");
        self.closed = true;
    }
}

impl PartialEq for Wish {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

fn happening() -> impl Strategy<Value = Happening> {
    let text = prop_oneof![
        Just("ready> "),
        Just("line\n"),
        Just("err: no\n"),
        Just("\u{1b}[6n"),
        Just("\u{1b}[?1049h"),
        Just("\u{1b}]2;title\u{7}"),
    ];
    let died =
        prop_oneof![Just(Died::Code(0)), Just(Died::Code(3)), Just(Died::Signal(1)), Just(Died::Signal(9))];
    prop_oneof![
        6 => text.prop_map(Happening::Prints),
        1 => Just(Happening::PrintsToStderr),
        12 => (0..PEERS, proptest::sample::select(WISHES)).prop_map(|(peer, wish)| Happening::Asks(peer, wish)),
        1 => (0..PEERS).prop_map(Happening::Leaves),
        3 => (0_usize..100_000).prop_map(Happening::TakesInput),
        1 => Just(Happening::ClosesInput),
        1 => died.prop_map(Happening::CommandEnds),
        1 => any::<bool>().prop_map(Happening::CommandStops),
        1 => any::<bool>().prop_map(Happening::ChildrenAreLeft),
        1 => Just(Happening::HeirDies),
        1 => Just(Happening::IsTerminated),
        1 => any::<bool>().prop_map(Happening::DiskIsFull),
        1 => any::<bool>().prop_map(Happening::OutboxIsLocked),
        1 => any::<bool>().prop_map(Happening::LogChanges),
        2 => (any::<bool>(), proptest::option::of(8000..8004_u16))
            .prop_map(|(waits, port)| Happening::ProbeFinds(waits, port)),
        1 => prop_oneof![Just(0), Just(9)].prop_map(Happening::HelperEnds),
        6 => (0_u64..3_000).prop_map(Happening::Passes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_an_end_is_told_once_and_every_request_is_answered_once(
        happenings in proptest::collection::vec(happening(), 1..120),
    ) {
        let mut world = World::new();
        for happening in &happenings {
            world.happens(happening);
        }
        world.end();
        // Nothing comes after the end, whatever happens then.
        for happening in &happenings {
            world.happens(happening);
        }
    }
}

#[test]
fn an_end_by_hangup_is_known_as_such_if_the_heir_dies_within_a_moment() {
    let ended_by = |happenings: &[Happening]| {
        let mut world = World::new();
        happenings.iter().for_each(|happening| world.happens(happening));
        let Some(Receipt { ended_by, .. }) = world.core.state().receipt().cloned() else { panic!("it runs") };
        ended_by
    };
    let hangup = Happening::CommandEnds(Died::Signal(1));
    assert_eq!(ended_by(&[hangup.clone(), Happening::HeirDies]), EndedBy::Hangup);
    assert_eq!(ended_by(&[Happening::HeirDies, hangup.clone()]), EndedBy::Hangup);
    assert_eq!(ended_by(&[hangup.clone(), Happening::Passes(60)]), EndedBy::Outside);
    let mut world = World::new();
    world.happens(&hangup);
    assert!(!world.core.has_ended(), "it is not known yet who ended it");
}
