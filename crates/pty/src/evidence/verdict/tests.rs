//! Verdicts about made-up jobs: above all, none is called certain in which something continues by itself.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::*;
use crate::evidence::fds::Outside;
use crate::evidence::threads::Watched;
use crate::procfs::{Proc, State};

const TERMINAL: TtyIndex = TtyIndex(7);
const FOREGROUND: i32 = 4000;

/// A real process that sleeps, because the kernel is asked whether the reader has slept. It is the reader of
/// every made-up job; all other threads are made up.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Self {
        let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let sleeper = Self(child);
        let mut scanner = ThreadScanner::new(false);
        let asleep = |scanner: &mut ThreadScanner| {
            let path = format!("/proc/{0}/task/{0}/wchan", sleeper.pid());
            scanner.reader.read(format_args!("{path}")).is_ok_and(|name| name.ends_with(b"pipe_read"))
        };
        let began = std::time::Instant::now();
        while !asleep(&mut scanner) {
            assert!(began.elapsed() < Duration::from_secs(30), "cat does not start to read");
            std::thread::sleep(Duration::from_millis(1));
        }
        sleeper
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn process(pid: Pid, pgrp: i32, threads: usize) -> Proc {
    Proc {
        pid,
        ppid: None,
        pgrp,
        session: FOREGROUND,
        tty_nr: 0,
        tpgid: FOREGROUND,
        start_time: 0,
        state: State::Sleeping,
        threads: u32::try_from(threads).unwrap(),
        comm: "made-up".into(),
    }
}

fn watches(alarm: Alarm, more: &[Source], inferred: bool) -> Doing {
    let sources = [Source::Terminal(TERMINAL)].into_iter().chain(more.iter().copied());
    let set = (0..).zip(sources).map(|(fd, source)| Watched { fd, source, reads: true }).collect();
    Doing::Watches { call: "poll", set, alarm, inferred }
}

/// What threads can do that only continue when another thread of the job does, or someone types.
fn still() -> Vec<Doing> {
    vec![
        Doing::Parked(Alarm::Never),
        Doing::Idles(Alarm::Never),
        Doing::WaitsForChild,
        Doing::WaitsOutside(Outside::Inner(TtyIndex(9))),
        watches(Alarm::Never, &[], false),
        watches(Alarm::Never, &[Source::Internal], false),
    ]
}

/// What threads can do that continue by themselves, or might.
fn moving() -> Vec<Doing> {
    let alarms = [
        Alarm::Unknown,
        Alarm::Housekeeping,
        Alarm::After(Duration::ZERO),
        Alarm::After(Duration::from_millis(50)),
        Alarm::After(Duration::from_secs(60)),
        Alarm::After(Duration::from_secs(1 << 40)),
        Alarm::In(Duration::ZERO),
        Alarm::In(Duration::from_millis(900)),
        Alarm::In(Duration::from_secs(7200)),
    ];
    let mut moving = vec![
        Doing::Running,
        Doing::Disk,
        Doing::Other,
        Doing::Denied,
        Doing::Writes { terminal: TERMINAL },
        Doing::WaitsOutside(Outside::Network),
        Doing::WaitsOutside(Outside::Other),
        // Nobody in the made-up job holds the other end.
        Doing::WaitsOutside(Outside::Pipe(7)),
        Doing::WaitsOutside(Outside::UnixSocket(Some(7))),
        Doing::WaitsOutside(Outside::UnixSocket(None)),
        Doing::Reads { call: "read", fd: 0, terminal: TERMINAL, inferred: true },
        watches(Alarm::Never, &[Source::Soft], false),
        watches(Alarm::Never, &[Source::External(Outside::Network)], false),
        watches(Alarm::Never, &[Source::External(Outside::Pipe(7))], false),
        watches(Alarm::Never, &[Source::Timer(Alarm::After(Duration::from_secs(9)))], false),
        watches(Alarm::Never, &[], true),
    ];
    for alarm in alarms {
        moving.extend([Doing::Parked(alarm), Doing::Idles(alarm), Doing::Sleeps(alarm)]);
        moving.push(watches(alarm, &[], false));
    }
    moving
}

/// Where a made-up thread lives: in the reader's process, or in another one in the foreground or background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Sibling,
    Foreground,
    Background,
}

const PLACES: [Place; 3] = [Place::Sibling, Place::Foreground, Place::Background];

/// The rank of a job whose reader is in a read beside these threads.
fn rank(sleeper: &Sleeper, others: &[(Place, Doing)], text: &str) -> Option<Rank> {
    let thread = |tid: i32, doing: &Doing| Thread {
        tid: Pid::from_raw(tid).unwrap(),
        doing: doing.clone(),
        processor_time: Some(0),
    };
    let reads = Doing::Reads { call: "read", fd: 0, terminal: TERMINAL, inferred: false };
    let mut threads = vec![thread(sleeper.pid().as_raw_nonzero().get(), &reads)];
    let mut samples = Vec::new();
    // Above the largest possible pid.
    for (tid, (place, doing)) in ((1 << 23)..).zip(others) {
        let pgrp = match place {
            Place::Sibling => {
                threads.push(thread(tid, doing));
                continue;
            }
            Place::Foreground => FOREGROUND,
            Place::Background => FOREGROUND + 1,
        };
        let pid = Pid::from_raw(tid).unwrap();
        samples.push(Sample { process: process(pid, pgrp, 1), threads: vec![thread(tid, doing)] });
    }
    samples.push(Sample { process: process(sleeper.pid(), FOREGROUND, threads.len()), threads });
    let terminal = Terminal { index: TERMINAL, foreground: Some(FOREGROUND), modes: Modes::PLAIN, depth: 0 };
    // At a known prompt, two samples may be close together.
    let hints = Hints {
        text_before_cursor: text,
        line_above: "",
        alternate_screen: false,
        bracketed_paste: false,
        cursor_hidden: false,
        since_output: Duration::from_secs(5),
        since_input: Duration::from_secs(6),
        row: Row::SamePrompt,
        offers_choice: false,
        lists_choices: false,
        field: "",
        text_below: false,
        answered: false,
    };
    let mut scanner = ThreadScanner::new(false);
    let mut history = SampleHistory::default();
    let (mut wakes, mut processor) = (Wakeups::default(), ProcessorUse::default());
    let mut last = None;
    for _ in 0..2 {
        let now = std::time::Instant::now();
        history.begin(true);
        wakes.begin(now, Duration::from_secs(5));
        processor.begin(now, Duration::from_secs(5));
        let mut judge = Judge {
            scanner: &mut scanner,
            hints: &hints,
            history: &mut history,
            wakeups: &mut wakes,
            processor: &mut processor,
        };
        last = match judge.judge(&samples, &terminal) {
            Assessment::Waits(rank, _) => Some(rank),
            Assessment::Unconfirmed
            | Assessment::Listens(_)
            | Assessment::OutputBlocked
            | Assessment::Stopped(_)
            | Assessment::Busy
            | Assessment::Denied
            | Assessment::Nobody => None,
        };
        history.turn(now);
        std::thread::sleep(Duration::from_millis(1));
    }
    last
}

fn is_certain(sleeper: &Sleeper, others: &[(Place, Doing)], text: &str) -> bool {
    matches!(rank(sleeper, others, text), Some(Rank::Certain(_)))
}

/// Pseudo-random numbers, the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

#[test]
fn a_lone_reader_is_certain() {
    let sleeper = Sleeper::start();
    assert!(is_certain(&sleeper, &[], "> "));
    assert!(is_certain(&sleeper, &[], ""));
}

#[test]
fn parked_threads_leave_a_reader_certain() {
    let sleeper = Sleeper::start();
    for place in PLACES {
        for doing in [Doing::Parked(Alarm::Never), Doing::Idles(Alarm::Never)] {
            assert!(is_certain(&sleeper, &[(place, doing.clone())], "> "), "{doing:?}");
        }
    }
}

#[test]
fn nothing_is_certain_beside_a_thread_that_continues_by_itself() {
    let sleeper = Sleeper::start();
    for place in PLACES {
        for doing in moving() {
            for text in ["", "> "] {
                let certain = is_certain(&sleeper, &[(place, doing.clone())], text);
                assert!(!certain, "{place:?} {doing:?} {text:?}");
            }
        }
    }
    let (still, moving) = (still(), moving());
    let mut numbers = Numbers(20_260_101);
    for round in 0..300 {
        let count = numbers.below(6);
        let mut others: Vec<(Place, Doing)> =
            (0..count).map(|_| (numbers.pick(&PLACES), numbers.pick(&still))).collect();
        let at = numbers.below(others.len() + 1);
        others.insert(at, (numbers.pick(&PLACES), numbers.pick(&moving)));
        let certain = is_certain(&sleeper, &others, numbers.pick(&["", "> ", "working"]));
        assert!(!certain, "round {round}: {others:?}");
    }
}
