//! The engine without a keeper: any order of output, facts and time.

use proptest::prelude::*;

use super::*;
use crate::wire::{Evidence, Stable};

const BASE_MS: u64 = 1_000_000;

/// A job as the engine sees it, and all that was told.
struct Job {
    conditions: Conditions,
    start: Instant,
    now_ms: u64,
    last_output_ms: u64,
    /// The log from an offset on.
    log: Vec<u8>,
    log_from: u64,
    rows: Vec<String>,
    ports: Vec<u16>,
    running: bool,
    met: Vec<Met>,
}

impl Job {
    fn new(notify: &[Condition]) -> Self {
        let start = Instant::now();
        let mut job = Self {
            conditions: Conditions::default(),
            start,
            now_ms: BASE_MS,
            last_output_ms: BASE_MS,
            log: Vec::new(),
            log_from: 0,
            rows: Vec::new(),
            ports: Vec::new(),
            running: true,
            met: Vec::new(),
        };
        job.conditions = Conditions::new(notify, Vec::new(), &facts(job.moment(), &[], &[]));
        job
    }

    fn moment(&self) -> Moment {
        Moment {
            now: self.start + Duration::from_millis(self.now_ms),
            end: self.log_from + self.log.len() as u64,
            last_output: self.start + Duration::from_millis(self.last_output_ms),
            running: self.running,
        }
    }

    fn wait(&mut self, request: u64, wait: &Wait) {
        let (rows, ports) = (self.rows.clone(), self.ports.clone());
        let facts = facts(self.moment(), &rows, &ports);
        let met = self.conditions.wait((Client { peer: 1, request }, None), wait, &facts).unwrap();
        self.met.extend(met);
    }

    fn watch(&mut self, id: &str, each: bool, until: &[Condition]) {
        let watch = Watch { id: id.into(), until: until.to_vec(), from: None, each };
        let (rows, ports) = (self.rows.clone(), self.ports.clone());
        let facts = facts(self.moment(), &rows, &ports);
        let met = self.conditions.watch(watch, &facts).unwrap();
        self.met.extend(met);
    }

    fn print(&mut self, text: &[u8]) {
        self.log.extend_from_slice(text);
        self.last_output_ms = self.now_ms;
        let moment = self.moment();
        self.met.extend(self.conditions.on_output(&moment));
    }

    /// One round of reading; false when there was nothing to read.
    fn read(&mut self, pace: Pace) -> bool {
        let moment = self.moment();
        let unread = self.conditions.unread(moment.end, pace);
        for piece in &unread {
            let from = usize::try_from(piece.from - self.log_from).unwrap();
            let bytes = self.log[from..from + piece.len].to_vec();
            self.met.extend(self.conditions.on_bytes(piece, &bytes, &moment));
        }
        !unread.is_empty()
    }

    fn read_all(&mut self) {
        while self.read(Pace::Round) {}
    }

    fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        let moment = self.moment();
        if self.conditions.wants_screen(moment.now) {
            let rows = self.rows.clone();
            self.met.extend(self.conditions.on_screen(&rows, &moment));
        }
        self.met.extend(self.conditions.on_time(&moment));
    }

    fn exit(&mut self) {
        if !self.running {
            return;
        }
        self.running = false;
        self.read_all();
        let moment = self.moment();
        self.met.extend(self.conditions.on_drained(&moment));
        self.met.extend(self.conditions.on_exit(&moment));
    }

    fn close(&mut self) {
        self.exit();
        let moment = self.moment();
        self.met.extend(self.conditions.close(&moment));
    }

    fn answers(&self, request: u64) -> Vec<&Waited> {
        let mut answers = Vec::new();
        for met in &self.met {
            match met {
                Met::Wait(client, waited) if client.request == request => answers.push(waited),
                Met::Wait(..) | Met::Watch(_) => {}
            }
        }
        answers
    }

    fn told(&self, id: &str) -> Vec<&Fired> {
        let mut told = Vec::new();
        for met in &self.met {
            match met {
                Met::Watch(fired) if fired.watch == id => told.push(fired),
                Met::Wait(..) | Met::Watch(_) => {}
            }
        }
        told
    }

    fn reasons(&self, id: &str) -> Vec<Reason> {
        self.told(id).iter().map(|fired| fired.reason).collect()
    }
}

fn facts<'a>(moment: Moment, rows: &'a [String], ports: &'a [u16]) -> Facts<'a> {
    Facts { moment, streams: Streams::Pipes, rows, awaiting: None, ports }
}

fn awaiting() -> Awaiting {
    Awaiting {
        level: crate::wire::Level::Certain,
        kind: crate::wire::AwaitingKind::Line,
        prompt: "name? ".into(),
        evidence: Evidence::default(),
    }
}

fn stable() -> Condition {
    Condition::Stable(Stable { checks: 1, interval_ms: 100, ..Stable::default() })
}

fn every_condition() -> Vec<Condition> {
    vec![
        Condition::Exit,
        Condition::Pattern("done".into()),
        Condition::AwaitingInput,
        Condition::Quiet { ms: 300 },
        stable(),
        Condition::Port(None),
        Condition::Output,
        Condition::Gone("Loading".into()),
        Condition::Lines,
    ]
}

#[test]
fn a_watch_on_output_tells_of_each_burst_once() {
    let mut job = Job::new(&[]);
    job.watch("o", true, &[Condition::Output]);
    job.watch("once", false, &[Condition::Output]);
    for _ in 0..3 {
        job.print(b"some ");
        job.pass(50);
    }
    assert!(job.told("o").is_empty(), "a burst is gathered");
    job.pass(200);
    job.print(b"more");
    job.pass(200);
    let told: Vec<(u64, u64)> = job.told("o").iter().map(|fired| (fired.from, fired.to)).collect();
    assert_eq!(told, [(0, 15), (15, 19)]);
    assert_eq!(job.told("once").len(), 1);
}

#[test]
fn a_watch_on_gone_text_tells_when_it_goes_and_not_before_it_came() {
    let mut job = Job::new(&[]);
    job.watch("g", true, &[Condition::Gone("Loading".into())]);
    job.pass(100);
    assert!(job.told("g").is_empty(), "nothing was there");
    for _ in 0..2 {
        job.rows = vec!["Loading".into()];
        job.print(b"x");
        job.pass(100);
        job.rows = vec!["Ready".into()];
        job.print(b"x");
        job.pass(100);
        job.print(b"x");
        job.pass(100);
    }
    assert_eq!(job.reasons("g"), [Reason::Gone, Reason::Gone]);
}

#[test]
fn a_new_watch_on_gone_text_tells_what_holds_already() {
    let mut job = Job::new(&[]);
    job.print(b"Ready");
    job.rows = vec!["Ready".into()];
    job.watch("g", false, &[Condition::Gone("Loading".into())]);
    assert_eq!(job.reasons("g"), [Reason::Gone]);
    assert_eq!(job.conditions.watches().count(), 0);
}

#[test]
fn the_session_is_told_of_a_port_once_however_many_listen() {
    let mut job = Job::new(&[Condition::Port(None)]);
    assert!(job.conditions.tells(&EventKind::Port { port: 1 }));
    assert!(!job.conditions.tells(&EventKind::WentOn));
    job.watch("w", false, &[Condition::Port(Some(80))]);
    let moment = job.moment();
    assert!(job.conditions.on_port(8080, &moment).is_empty());
    assert_eq!(job.conditions.watches().count(), 1);
    assert!(job.conditions.on_port(80, &moment).is_empty());
    assert_eq!(job.conditions.watches().count(), 0, "it was told, by the event of the port itself");
}

#[test]
fn a_watch_for_the_exit_makes_the_end_worth_telling() {
    let mut job = Job::new(&[]);
    let ended = EventKind::LogFailing { error: "full".into() };
    assert!(!job.conditions.tells(&ended));
    job.watch("e", false, &[Condition::Exit]);
    assert!(job.conditions.tells(&ended));
    job.exit();
    assert!(job.told("e").is_empty(), "the end has an event of its own");
}

#[test]
fn a_pattern_in_the_last_words_counts_before_the_exit() {
    let mut job = Job::new(&[]);
    job.wait(1, &Wait::of([Condition::Exit, Condition::Pattern("last".into())]));
    job.wait(2, &Wait::of([Condition::Exit]));
    job.print(b"the last words");
    job.exit();
    assert_eq!(job.answers(1)[0].reason, Reason::Pattern);
    assert_eq!(job.answers(2)[0].reason, Reason::Exit);
    // A wait that begins after the end has seen nothing yet.
    job.wait(3, &Wait { from: Some(0), ..Wait::of([Condition::Exit, Condition::Pattern("last".into())]) });
    job.wait(4, &Wait { from: Some(0), ..Wait::of([Condition::Exit, Condition::Pattern("none".into())]) });
    assert!(job.answers(3).is_empty() && job.answers(4).is_empty());
    job.read_all();
    assert_eq!((job.answers(3)[0].reason, job.answers(3)[0].already), (Reason::Pattern, true));
    assert_eq!(job.answers(4)[0].reason, Reason::Exit);
}

#[test]
fn patterns_at_the_same_place_share_what_is_read() {
    let mut job = Job::new(&[]);
    job.wait(1, &Wait::of([Condition::Pattern("a".into())]));
    job.wait(2, &Wait::of([Condition::Pattern("b".into())]));
    job.wait(3, &Wait { masked: true, ..Wait::of([Condition::Pattern("c".into())]) });
    job.print(b"nothing");
    assert_eq!(job.conditions.unread(7, Pace::Round).len(), 2);
    assert!(job.conditions.unread(0, Pace::Round).is_empty());
}

#[test]
fn too_many_are_refused() {
    let mut job = Job::new(&[]);
    for i in 0..MAX_WAITS as u64 {
        job.wait(i, &Wait::of([Condition::Exit]));
    }
    let facts = facts(job.moment(), &[], &[]);
    let client = Client { peer: 1, request: 0 };
    assert!(job.conditions.wait((client, None), &Wait::of([Condition::Exit]), &facts).is_err());
    job.conditions.forget_clients(&[1]);
    assert!(job.conditions.wait((client, None), &Wait::of([Condition::Exit]), &facts).is_ok());
}

/// Something that may happen to a job.
#[derive(Clone, Debug)]
enum Step {
    Print(&'static str),
    Read(bool),
    Pass(u64),
    Show(&'static str),
    Listen(u16),
    Await,
    Wait(Vec<usize>, bool, Option<u64>),
    Watch(u8, Vec<usize>, bool),
    Unwatch(u8),
    Leave,
    Exit,
}

fn step() -> impl Strategy<Value = Step> {
    let some = || proptest::collection::vec(0..every_condition().len(), 1..4);
    prop_oneof![
        8 => prop_oneof![Just("x"), Just("don"), Just("done"), Just("e\n"), Just("\n"), Just("\r"), Just("\u{8}")]
            .prop_map(Step::Print),
        6 => any::<bool>().prop_map(Step::Read),
        6 => (0..700u64).prop_map(Step::Pass),
        2 => prop_oneof![Just("Loading"), Just("Ready")].prop_map(Step::Show),
        1 => (1..4u16).prop_map(Step::Listen),
        1 => Just(Step::Await),
        4 => (some(), any::<bool>(), proptest::option::of(0..2000u64))
            .prop_map(|(until, from, deadline)| Step::Wait(until, from, deadline)),
        3 => (0..3u8, some(), any::<bool>()).prop_map(|(id, until, each)| Step::Watch(id, until, each)),
        1 => (0..3u8).prop_map(Step::Unwatch),
        1 => Just(Step::Leave),
        1 => Just(Step::Exit),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// A wait ends exactly once, or went with its client; a watch that tells once tells at most once; nothing is told
    /// after the engine was closed.
    #[test]
    fn every_wait_ends_once_and_nothing_comes_after_the_end(
        steps in proptest::collection::vec(step(), 0..80)
    ) {
        let mut job = Job::new(&[Condition::Exit]);
        let (mut request, mut left) = (0, Vec::new());
        let mut set = 0;
        let mut once = Vec::new();
        for step in steps {
            match step {
                Step::Print(text) => job.print(text.as_bytes()),
                Step::Read(flood) => { job.read(if flood { Pace::Flood } else { Pace::Round }); }
                Step::Pass(ms) => job.pass(ms),
                Step::Show(text) => job.rows = vec![text.into()],
                Step::Listen(port) if job.running && !job.ports.contains(&port) => {
                    job.ports.push(port);
                    let moment = job.moment();
                    job.met.extend(job.conditions.on_port(port, &moment));
                }
                Step::Listen(_) => {}
                Step::Await => {
                    let moment = job.moment();
                    job.met.extend(job.conditions.on_awaiting(&awaiting(), &moment));
                }
                Step::Wait(until, from_start, deadline_ms) => {
                    let until: Vec<Condition> = until.iter().map(|i| every_condition()[*i].clone()).collect();
                    let from = from_start.then_some(0);
                    job.wait(request, &Wait { from, deadline_ms, ..Wait::of(until.clone()) });
                    request += 1;
                }
                Step::Watch(id, until, each) => {
                    let until: Vec<Condition> = until.iter().map(|i| every_condition()[*i].clone()).collect();
                    // A name of its own each time, so that what a replaced one told is not counted.
                    job.conditions.unwatch(&format!("{id}-{set}"));
                    set += 1;
                    let name = format!("{id}-{set}");
                    job.watch(&name, each, &until);
                    if !each {
                        once.push(name);
                    }
                }
                Step::Unwatch(id) => { job.conditions.unwatch(&format!("{id}-{set}")); }
                Step::Leave => {
                    job.conditions.forget_clients(&[1]);
                    left.extend(0..request);
                }
                Step::Exit => job.exit(),
            }
            prop_assert!(job.conditions.subscriptions.len() as u64 <= request + set);
        }
        job.close();
        for request in 0..request {
            let answers = job.answers(request).len();
            let expected = if left.contains(&request) { answers.min(1) } else { 1 };
            prop_assert_eq!(answers, expected, "wait {}: {:?}", request, job.answers(request));
        }
        for name in once {
            prop_assert!(job.told(&name).len() <= 1, "{:?}", job.told(&name));
        }
        let told = job.met.len();
        job.print(b"done\n");
        job.read_all();
        job.pass(100_000);
        prop_assert_eq!(job.met.len(), told);
        prop_assert_eq!(job.conditions.next_deadline(job.moment().last_output), None);
    }

    /// However output is cut into reads, the same is found.
    #[test]
    fn any_cut_gives_the_same_matches(
        text in "(done|x|\n|\r\n|\u{1b}\\[1m|é){0,60}",
        cuts in proptest::collection::vec((1..9usize, any::<bool>()), 0..60)
    ) {
        let found = |cuts: &[(usize, bool)]| {
            let mut job = Job::new(&[]);
            job.watch("p", true, &[Condition::Pattern("done".into())]);
            job.watch("l", true, &[Condition::Lines]);
            let mut rest = text.as_bytes();
            for (len, read) in cuts {
                let (piece, after) = rest.split_at((*len).min(rest.len()));
                job.print(piece);
                if *read {
                    job.read(Pace::Round);
                }
                rest = after;
            }
            job.print(rest);
            job.exit();
            job.met
        };
        prop_assert_eq!(found(&cuts), found(&[]));
    }
}

/// A million inputs, and the engine holds no more than a few batches.
#[test]
fn the_engine_stays_small() {
    const BOUND: usize = 3 * (8 << 10) + (4 << 10);
    let mut job = Job::new(&[Condition::Exit]);
    let until: Vec<Condition> = every_condition().into_iter().filter(|it| *it != Condition::Lines).collect();
    job.watch("w", true, &until);
    let line = b"done with some work, and this line has an end\n";
    for i in 0..250_000u64 {
        job.print(&line[usize::try_from(i).unwrap() % line.len()..]);
        if i % 64 == 0 {
            job.wait(i, &Wait { deadline_ms: Some(1), ..Wait::of(until.clone()) });
        }
        job.read(Pace::Round);
        job.pass(1 + i % 3);
        if job.log.len() > 1 << 20 {
            job.read_all();
            job.log_from += job.log.len() as u64;
            job.log.clear();
        }
        job.met.clear();
        assert!(job.conditions.subscriptions.len() <= 2);
        assert!(job.conditions.held_bytes() <= BOUND, "{}", job.conditions.held_bytes());
    }
}

impl Conditions {
    fn held_bytes(&self) -> usize {
        let checks = self.subscriptions.iter().flat_map(|it| &it.checks);
        checks
            .map(|check| match check {
                Check::Output { batch, .. } => batch.held_bytes(),
                Check::Patterns(patterns) => patterns.held_bytes(),
                Check::Exit
                | Check::AwaitingInput(_)
                | Check::Port(_)
                | Check::Http { .. }
                | Check::Quiet { .. }
                | Check::Stable { .. }
                | Check::Gone { .. } => 0,
            })
            .sum()
    }
}
