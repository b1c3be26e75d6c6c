//! Links that are cut in the middle of anything: nothing is lost, nothing is done twice, nobody waits for ever.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outlast_job::client::{Given, News, Pace};
use outlast_job::request::{Lines, ReadText, SessionEvents};
use outlast_job::wire::Attach;
use outlast_job::{Condition, Job, JobSpec, Kind, Outlast, Reason, Send, Streams, Wait};
use outlast_testkit::{Dice, TEST_TIMEOUT, eventually};

use super::sandbox;
use super::wire::Wire;

/// How many orders go over a link that is cut all the time.
const ORDERS: usize = 40;
/// The link is cut more often than this before a test is over.
const MIN_CUTS: u64 = 10;

fn on_gpu1(outlast: &Outlast) -> Outlast {
    outlast.on("gpu1".parse().unwrap()).unwrap()
}

fn shell(line: &str) -> JobSpec {
    JobSpec { session: "far".into(), streams: Streams::Pipes, ..JobSpec::shell(line) }
}

/// Cuts the wire at random moments while something is done. Most cuts come after a relay has said something: on a slow machine one that never gets
/// that far would never get anything done.
fn while_it_is_cut<T>(wire: &Wire, act: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut dice = Dice::new();
            while !over.load(Ordering::SeqCst) {
                let heard = wire.bytes_back();
                while dice.below(400) > 0 && wire.bytes_back() == heard && !over.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(2));
                }
                std::thread::sleep(Duration::from_millis(dice.below(120) + 5));
                wire.cut();
            }
        });
        let done = act();
        over.store(true, Ordering::SeqCst);
        done
    })
}

/// The judge is a file outside every home, to which each command appends its own name.
#[test]
fn starts_and_what_is_typed_happen_once_however_often_the_link_is_cut() {
    let (near, wire) = (sandbox(), Wire::new(sandbox()));
    let told = Arc::<Mutex<Vec<String>>>::default();
    let outlast = wire.near(&near, TEST_TIMEOUT, &told);
    let gpu1 = on_gpu1(&outlast);
    let judge = near.root().join("judge");
    let reader = gpu1
        .start(JobSpec { streams: Streams::Pipes, ..shell("while read line; do echo got $line; done") })
        .unwrap();
    let orders = while_it_is_cut(&wire, || {
        let mut orders = 0;
        // A fast machine is done with few before the link was cut often enough.
        while orders < ORDERS || wire.cuts() <= MIN_CUTS {
            let i = orders;
            orders += 1;
            let job = gpu1.start(shell(&format!("echo job-{i} >> {}", judge.display()))).unwrap();
            reader.send(&Send { text: format!("line-{i}"), newline: true, ..Send::default() }, None).unwrap();
            let waited = job.wait(&Wait::for_exit(), Some(TEST_TIMEOUT)).unwrap();
            assert_eq!(waited.reason, Reason::Exit);
        }
        let last = Wait::for_pattern(format!("got line-{}\\b", orders - 1));
        assert_eq!(reader.wait(&last, Some(TEST_TIMEOUT)).unwrap().reason, Reason::Pattern);
        orders
    });
    let expected = |word: &str| (0..orders).map(|i| format!("{word}-{i}")).collect::<Vec<_>>();
    let ran = std::fs::read_to_string(&judge).unwrap();
    assert_eq!(ran.lines().collect::<Vec<_>>(), expected("job"), "each once, in order");
    let text = reader.read(ReadText { max: 1 << 16, ..ReadText::default() }).unwrap().head;
    assert_eq!(text.lines().collect::<Vec<_>>(), expected("got line"), "each once, in order");
    let events = gpu1.events(SessionEvents { session: "far".into(), after: Some(0) }).unwrap();
    let numbers: Vec<u64> = events.iter().map(|event| event["n"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "no event is lost or doubled");
    assert_eq!(events.iter().filter(|event| event["event"] == "exit").count(), orders);
    reader.kill(Duration::ZERO, "far").unwrap();
}

#[test]
fn what_is_followed_comes_whole_and_in_order_over_a_link_that_is_cut() {
    let (near, wire) = (sandbox(), Wire::new(sandbox()));
    let outlast = wire.near(&near, TEST_TIMEOUT, &Arc::default());
    let count = 3000;
    let line = format!(
        "i=0; while [ $i -lt {count} ]; do i=$((i+1)); echo line $i; [ $((i % 100)) = 0 ] && sleep 0.05; done"
    );
    let job = on_gpu1(&outlast).start(shell(&line)).unwrap();
    let mut lines = Vec::new();
    while_it_is_cut(&wire, || {
        job.stream_lines(0, &Pace::default(), |batch| {
            lines.extend(batch.batch.head.lines().map(str::to_owned));
            Given::Taken
        })
        .unwrap()
    });
    let expected: Vec<String> = (1..=count).map(|i| format!("line {i}")).collect();
    assert_eq!(lines.len(), expected.len());
    assert_eq!(lines, expected);
    assert!(wire.cuts() > 2, "only {} cuts", wire.cuts());
}

/// Events that happen while there is no connection are told when there is one again, each once.
#[test]
fn events_that_a_follower_missed_are_told_once() {
    let (near, wire) = (sandbox(), Wire::new(sandbox()));
    let outlast = wire.near(&near, TEST_TIMEOUT, &Arc::default());
    let job = on_gpu1(&outlast).start(shell("read a; echo one; read b; echo two; read c")).unwrap();
    for word in ["one", "two"] {
        let watch = outlast_job::wire::watch::Watch {
            until: vec![Condition::Pattern(word.into())],
            ..Default::default()
        };
        job.watch(watch).unwrap();
    }
    let mut follower = job.follow().unwrap();
    wire.down(true);
    // By another way, as somebody on that machine would.
    wire.far.run(["send", "1", "--no-wait", "x"]).ok();
    wire.far.wait_for_text(1, "one");
    wire.down(false);
    job.type_line("y").unwrap();
    job.type_line("z").unwrap();
    let mut numbers = Vec::new();
    let until = Instant::now() + TEST_TIMEOUT;
    while let Some(news) = follower.next(Some(until)).unwrap() {
        match news {
            News::Event(event) => numbers.push(event.seq),
            News::Over => break,
            News::Grown(_) | News::Attached(_) | News::Changed => {}
        }
    }
    let first = numbers[0];
    let expected: Vec<u64> = (first..first + numbers.len() as u64).collect();
    assert_eq!(numbers, expected, "without a gap, each once");
    let all = wire.far.events(1);
    assert_eq!(*numbers.last().unwrap(), all.last().unwrap()["seq"].as_u64().unwrap());
}

#[test]
fn a_person_stays_attached_and_types_nothing_twice() {
    let (near, wire) = (sandbox(), Wire::new(sandbox()));
    let outlast = wire.near(&near, TEST_TIMEOUT, &Arc::default());
    let line = "stty -echo; echo ready; while read line; do echo got $line; done";
    let job = on_gpu1(&outlast).start(JobSpec { session: "far".into(), ..JobSpec::shell(line) }).unwrap();
    job.wait(&Wait::for_pattern("ready"), Some(TEST_TIMEOUT)).unwrap();
    let mut viewing = job.attach(&Attach { shared: true, ..Attach::default() }).unwrap().unwrap();
    while_it_is_cut(&wire, || {
        for i in 0..ORDERS {
            assert!(viewing.press(format!("key-{i}\r").as_bytes()));
        }
        let last = Wait::for_pattern(format!("got key-{}\\b", ORDERS - 1));
        assert_eq!(job.wait(&last, Some(TEST_TIMEOUT)).unwrap().reason, Reason::Pattern);
    });
    eventually("the screen is painted anew", TEST_TIMEOUT, || {
        while viewing.next_now().unwrap().is_some() {}
        let shown = String::from_utf8_lossy(&viewing.repaint).into_owned();
        if shown.contains("got key-") { Ok(()) } else { Err(shown) }
    });
    let text = job.read(ReadText { max: 1 << 16, ..ReadText::default() }).unwrap().head;
    let got: Vec<&str> = text.lines().filter(|line| line.starts_with("got")).collect();
    assert_eq!(got, (0..ORDERS).map(|i| format!("got key-{i}")).collect::<Vec<_>>());
    job.kill(Duration::ZERO, "far").unwrap();
}

#[test]
fn who_waits_for_a_host_is_told_and_nobody_waits_for_ever() {
    let (near, wire) = (sandbox(), Wire::new(sandbox()));
    let told = Arc::<Mutex<Vec<String>>>::default();
    let outlast = wire.near(&near, Duration::from_secs(4), &told);
    let job: Job = on_gpu1(&outlast).start(shell("sleep 1000")).unwrap();
    wire.down(true);
    let failure = job.info().unwrap_err();
    assert_eq!(failure.kind, Kind::Unreachable, "{failure}");
    assert!(failure.message.starts_with("gpu1: cannot be reached"), "{failure}");
    assert!(told.lock().unwrap().iter().any(|text| text.starts_with("waiting for gpu1")), "{told:?}");
    let waited = job.wait(&Wait::for_exit(), Some(Duration::from_millis(300))).unwrap();
    assert_eq!(waited.reason, Reason::Deadline, "a wait ends in its time");
    wire.down(false);
    assert!(job.info().unwrap().state.is_live(), "the job went on");
    job.kill(Duration::ZERO, "far").unwrap();
}

/// The end of a large log moves about as much as is shown.
#[test]
fn the_tail_of_a_large_log_moves_little() {
    let (near, wire) = (sandbox(), Wire::new(sandbox()));
    let outlast = wire.near(&near, TEST_TIMEOUT, &Arc::default());
    let job = on_gpu1(&outlast).start(shell("seq 1 1500000; echo the end")).unwrap();
    assert_eq!(job.wait(&Wait::for_exit(), Some(TEST_TIMEOUT)).unwrap().reason, Reason::Exit);
    let before = wire.bytes_back();
    let lines = Some(Lines::Last(200));
    let text = job.read(ReadText { lines, max: 1 << 15, ..ReadText::default() }).unwrap();
    assert!(text.head.ends_with("the end\n") || text.tail.ends_with("the end\n"), "{text:?}");
    let moved = wire.bytes_back() - before;
    assert!(moved < 64 << 10, "{moved} bytes");
}
