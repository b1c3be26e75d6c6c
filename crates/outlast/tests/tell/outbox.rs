//! The outbox: what goes in, in which order, and that each reader gets it once.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outlast_job::outbox::Entry;

use outlast_testkit::{Dice, Sandbox, TEST_TIMEOUT, eventually};
use serde_json::Value;

use super::{entries, entry, sandbox};

#[test]
fn an_end_is_told_with_its_reason_and_the_next_call() {
    let sandbox = sandbox();
    let job = sandbox.start(["echo oh no; exit 3"]);
    let told = entry(&sandbox, "exit");
    assert_eq!((told["job"].as_u64(), told["n"].as_u64()), (Some(job), Some(1)));
    assert_eq!(told["text"], "failed: exit code 3: oh no");
    assert_eq!(told["more"], format!("outlast read {job} --tail 20"));
    let line = sandbox.run(["events"]).ok().text();
    assert_eq!(
        line.trim_end(),
        format!("1 job {job} exit: failed: exit code 3: oh no   outlast read {job} --tail 20")
    );
    sandbox.nothing_runs();
}

#[test]
fn a_question_is_told_and_withdrawn() {
    let sandbox = sandbox();
    let job = sandbox.start(["read -p 'Really? ' x; sleep 1000"]).to_string();
    let told = entry(&sandbox, "awaiting_input");
    assert!(told["text"].as_str().unwrap().contains("Really?"), "{told}");
    sandbox.run(["send", &job, "yes", "--no-wait"]).ok();
    entry(&sandbox, "went_on");
    sandbox.run(["kill", &job]).ok();
    assert!(entry(&sandbox, "exit")["text"].as_str().unwrap().contains("ended"));
}

#[test]
fn a_foreground_run_tells_nothing_unless_asked() {
    let sandbox = sandbox();
    sandbox.run(["run", "true"]).ok();
    assert_eq!(entries(&sandbox).len(), 0);
    sandbox.run(["run", "--notify", "exit", "true"]).ok();
    entry(&sandbox, "exit");
}

#[test]
fn folders_and_files_are_private() {
    let sandbox = sandbox();
    sandbox.call(["run", "-d", "true"]).env("OUTLAST_SESSION", "../a b/é").run().ok();
    let folder = sandbox.home().join("outbox");
    let session = eventually("an outbox", TEST_TIMEOUT, || {
        let entry =
            std::fs::read_dir(&folder).ok().and_then(|mut all| all.next()?.ok()).map(|entry| entry.path());
        let is_told = |path: &std::path::PathBuf| {
            std::fs::metadata(path.join("events.jsonl")).is_ok_and(|file| file.len() > 0)
        };
        entry.filter(is_told).ok_or("none")
    });
    for path in [&folder, &session, &session.join("events.jsonl")] {
        let mode = std::fs::metadata(path).unwrap().permissions().mode() & 0o077;
        assert_eq!(mode, 0, "{}", path.display());
    }
    let all = sandbox.json(["events", "--all"]);
    assert_eq!(all["session"], "../a b/é");
}

#[test]
fn what_is_acknowledged_does_not_come_again() {
    let sandbox = sandbox();
    for _ in 0..3 {
        let job = sandbox.start(["true"]);
        sandbox.wait_for_end(job);
    }
    eventually("three events", TEST_TIMEOUT, || Some(()).filter(|()| entries(&sandbox).len() == 3).ok_or(()));
    sandbox.run(["events", "--ack", "2"]).ok();
    let left: Vec<u64> = entries(&sandbox).iter().map(|entry| entry["n"].as_u64().unwrap()).collect();
    assert_eq!(left, [3]);
    sandbox.run(["events", "--ack-all"]).ok();
    assert!(entries(&sandbox).is_empty());
    sandbox.start(["true"]);
    assert_eq!(entry(&sandbox, "exit")["n"], 4);
}

/// What a named reader has read stays until it is acknowledged, too.
#[test]
fn what_is_not_acknowledged_stays_whoever_has_read_it() {
    let sandbox = sandbox();
    for _ in 0..2 {
        let job = sandbox.start(["true"]);
        sandbox.wait_for_end(job);
    }
    eventually("two events", TEST_TIMEOUT, || Some(()).filter(|()| entries(&sandbox).len() == 2).ok_or(()));
    assert_eq!(sandbox.run(["events", "--reader", "z"]).ok().text().lines().count(), 2);
    sandbox.run(["events", "--ack", "1"]).ok();
    let left: Vec<u64> = entries(&sandbox).iter().map(|entry| entry["n"].as_u64().unwrap()).collect();
    assert_eq!(left, [2]);
}

#[test]
fn many_keepers_at_once_leave_no_gap() {
    let sandbox = sandbox();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..5).for_each(|_| assert!(sandbox.start(["true"]) > 0)));
        }
    });
    let all = eventually("twenty events", TEST_TIMEOUT, || {
        let all = entries(&sandbox);
        if all.len() == 20 { Ok(all) } else { Err(all.len()) }
    });
    let numbers: Vec<u64> = all.iter().map(|entry| entry["n"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
    let jobs: std::collections::BTreeSet<u64> =
        all.iter().map(|entry| entry["job"].as_u64().unwrap()).collect();
    assert_eq!(jobs.len(), 20);
}

#[test]
fn a_dead_keeper_loses_no_event_and_doubles_none() {
    let sandbox = sandbox();
    let job = sandbox.start(["--notify", "exit,pattern=line", "read x; echo line $x; read y; exit 7"]);
    let name = job.to_string();
    sandbox.run(["send", &name, "one", "--no-wait"]).ok();
    entry(&sandbox, "pattern");
    outlast_testkit::processes::kill_dash_nine(&sandbox.process(job, "keeper"));
    eventually("the heir took over", TEST_TIMEOUT, || {
        let ran = sandbox.call(["send", &name, "two", "--no-wait"]).run();
        if ran.code == Some(0) { Ok(()) } else { Err(ran.stderr) }
    });
    sandbox.wait_for_end(job);
    assert_eq!(entry(&sandbox, "exit")["text"], "failed: exit code 7: two");
    let kinds: Vec<String> =
        entries(&sandbox).iter().map(|entry| entry["event"].as_str().unwrap().to_owned()).collect();
    assert_eq!(kinds, ["pattern", "exit"]);
}

/// A reader, and what came through its pipe: a line of ours goes into a pipe as a whole or not at all.
struct Following {
    child: Child,
    heard: Arc<Mutex<Vec<u8>>>,
    hearing: Option<std::thread::JoinHandle<()>>,
}

impl Following {
    fn begin(sandbox: &Sandbox, more: &[&str]) -> Self {
        let mut child = Command::new(sandbox.program())
            .args(["--json", "events", "--follow"])
            .args(more)
            .env("OUTLAST_HOME", sandbox.home())
            .env("OUTLAST_SESSION", "test")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (mut pipe, into) = (child.stdout.take().unwrap(), Arc::clone(&heard));
        let hearing = std::thread::spawn(move || {
            let mut piece = [0; 8192];
            while let Ok(n @ 1..) = pipe.read(&mut piece) {
                into.lock().unwrap().extend_from_slice(&piece[..n]);
            }
        });
        Self { child, heard, hearing: Some(hearing) }
    }

    fn lines(&self) -> Vec<Value> {
        let heard = self.heard.lock().unwrap();
        let whole = heard.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines = heard[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(hearing) = self.hearing.take() {
            hearing.join().unwrap();
        }
    }

    /// Kills it, and returns all that it had told.
    fn killed(mut self) -> Vec<Value> {
        self.kill();
        let rest = self.heard.lock().unwrap().last().copied();
        assert!(rest.is_none_or(|byte| byte == b'\n'), "half a line");
        self.lines()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.kill();
    }
}

fn number(entry: &Value) -> u64 {
    entry["n"].as_u64().unwrap()
}

/// Tells a session so many events, one after the other, while somebody does something else.
fn while_told<T>(sandbox: &Sandbox, events: u64, meanwhile: impl FnOnce() -> T) -> T {
    let home = outlast_home(sandbox);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let outbox = outlast_job::outbox::Outbox::open(&home, "test").unwrap();
            for i in 0..events {
                let entry = Entry::about(
                    outlast_job::Handle::new(1),
                    None,
                    outlast_job::EntryKind::Pattern,
                    format!("event {i}"),
                );
                outbox.append(&mut [entry]).unwrap();
            }
        });
        meanwhile()
    })
}

/// How often readers are killed.
fn kills() -> u64 {
    if std::env::var_os("OUTLAST_LONG_TESTS").is_some() { 3000 } else { 300 }
}

/// Lets a moment pass that ends anywhere: before a reader has begun, in the middle of a line, when it waits.
fn some_moment(dice: &mut Dice, round: u64) {
    let moment = Instant::now() + Duration::from_micros(dice.below(15_000 + 100 * round.min(500)));
    while Instant::now() < moment {
        std::thread::yield_now();
    }
}

/// A reader is killed at random points a few hundred times while events come. It gets each event exactly once,
/// whether it says itself how far it has come or has a name.
#[test]
fn a_reader_that_is_killed_anywhere_gets_each_event_once() {
    let sandbox = sandbox();
    let mut dice = Dice::new();
    let (mut by_number, mut by_name) = (Vec::new(), Vec::new());
    let (mut rounds, kills) = (0, kills());
    // As many as the outbox holds at most.
    let events = (5 * kills).min(4000);
    while_told(&sandbox, events, || {
        while rounds < kills
            || by_number.last().map_or(0, number) < events
            || by_name.last().map_or(0, number) < events
        {
            rounds += 1;
            assert!(rounds < 10 * kills, "it does not get on: {:?}, {:?}", by_number.last(), by_name.last());
            let since = by_number.last().map_or(0, number).to_string();
            let first = Following::begin(&sandbox, &["--since", &since]);
            let second = Following::begin(&sandbox, &["--reader", "r"]);
            some_moment(&mut dice, rounds);
            by_number.extend(first.killed());
            by_name.extend(second.killed());
        }
    });
    for told in [&by_number, &by_name] {
        let numbers: Vec<u64> = told.iter().map(number).collect();
        assert_eq!(numbers, (1..=events).collect::<Vec<_>>());
        assert!(told.iter().all(|line| line["again"].is_null()));
    }
    eprintln!("{rounds} kills of each of two readers, {events} events, none missed, none twice");
}

/// Here whoever reads the pipe dies too, and what it had not dealt with is gone with it: it says how far it has come.
#[test]
fn what_was_not_dealt_with_comes_again_to_a_reader_that_holds() {
    const EVENTS: u64 = 200;
    let sandbox = sandbox();
    let mut dice = Dice::new();
    let mut dealt_with: Vec<u64> = Vec::new();
    let mut rounds = 0;
    while_told(&sandbox, EVENTS, || {
        while dealt_with.len() < usize::try_from(EVENTS).unwrap() {
            rounds += 1;
            assert!(rounds < 3000, "it does not get on: {dealt_with:?}");
            let following = Following::begin(&sandbox, &["--reader", "r", "--hold"]);
            some_moment(&mut dice, rounds);
            // It deals with some of what has come, says so while its reader runs, and both die.
            let come = following.lines();
            if let Some(first) = come.first() {
                let before = dealt_with.last().copied().unwrap_or(0);
                assert_eq!(number(first), before + 1, "after {before}");
                let some = 1 + dice.below(come.len() as u64);
                dealt_with.extend(come.iter().take(usize::try_from(some).unwrap()).map(number));
                let last = dealt_with.last().unwrap().to_string();
                sandbox.run(["events", "--reader", "r", "--ack", &last]).ok();
            }
            following.killed();
        }
    });
    assert_eq!(dealt_with, (1..=EVENTS).collect::<Vec<_>>());
}

#[test]
fn a_place_that_no_pipe_takes_is_marked_in_doubt() {
    let sandbox = sandbox();
    let home = outlast_home(&sandbox);
    let outbox = outlast_job::outbox::Outbox::open(&home, "test").unwrap();
    for text in ["one", "two"] {
        outbox
            .append(&mut [Entry::about(
                outlast_job::Handle::new(1),
                None,
                outlast_job::EntryKind::Pattern,
                text,
            )])
            .unwrap();
    }
    let file = sandbox.root().join("read");
    let read = || {
        let mut command = Command::new(sandbox.program());
        command.args(["--json", "events", "--reader", "r"]).env("OUTLAST_HOME", sandbox.home());
        let into = std::fs::File::create(&file).unwrap();
        assert!(command.env("OUTLAST_SESSION", "test").stdout(into).status().unwrap().success());
        std::fs::read_to_string(&file).unwrap()
    };
    assert_eq!(read().lines().count(), 2);
    assert_eq!(read(), "", "a file gets each once too");
    outbox
        .append(&mut [Entry::about(
            outlast_job::Handle::new(1),
            None,
            outlast_job::EntryKind::Pattern,
            "three",
        )])
        .unwrap();
    // As a reader leaves it that dies after it began to write the third, and before it noted that it has.
    let place = sandbox.home().join("outbox/test/reader-r");
    let mut bytes = std::fs::read(&place).unwrap();
    bytes[8..16].copy_from_slice(&3_u64.to_ne_bytes());
    std::fs::write(&place, &bytes).unwrap();
    let line: Value = serde_json::from_str(read().trim()).unwrap();
    assert_eq!((number(&line), &line["again"]), (3, &true.into()));
}

#[test]
fn all_sessions_are_followed_those_that_come_later_too() {
    let sandbox = sandbox();
    let run = |session: &str| {
        sandbox.call(["run", "-d", "true"]).env("OUTLAST_SESSION", session).run().ok();
    };
    run("first");
    let following = Following::begin(&sandbox, &["--all"]);
    let sessions = || -> Vec<String> {
        following.lines().iter().map(|line| line["session"].as_str().unwrap().to_owned()).collect()
    };
    let told = |wanted: &[&str]| {
        eventually("they are told", TEST_TIMEOUT, || {
            let sessions = sessions();
            if sessions == wanted { Ok(()) } else { Err(sessions) }
        });
    };
    told(&["first"]);
    run("second");
    told(&["first", "second"]);
    let long = "x".repeat(300);
    run(&long);
    eventually("a session with a long name too", TEST_TIMEOUT, || match sessions().len() {
        3 => Ok(()),
        n => Err(n),
    });
    let folders = std::fs::read_dir(sandbox.home().join("outbox")).unwrap().count();
    assert_eq!(folders, 3, "reading makes no outbox");
}

fn outlast_home(sandbox: &Sandbox) -> outlast_job::registry::Home {
    outlast_job::registry::Home::open(sandbox.home()).unwrap()
}

#[test]
fn two_processes_do_not_share_a_readers_name() {
    let sandbox = sandbox();
    sandbox.start(["true"]);
    let first = Following::begin(&sandbox, &["--reader", "r"]);
    eventually("the first reads", TEST_TIMEOUT, || if first.lines().is_empty() { Err(()) } else { Ok(()) });
    sandbox.run(["events", "--reader", "r"]).code(2).says("another process reads as");
    drop(first);
    assert!(sandbox.run(["events", "--reader", "r"]).ok().text().is_empty());
}

#[test]
fn an_outbox_goes_with_the_last_job_of_its_session() {
    let sandbox = sandbox();
    let job = sandbox.start(["true"]);
    sandbox.wait_for_end(job);
    entry(&sandbox, "exit");
    // A job whose keeper has not left yet is not removed.
    sandbox.nothing_runs();
    let folder = sandbox.home().join("outbox/test");
    sandbox.run(["prune", "--age", "1h"]).ok();
    assert!(folder.exists(), "its job is kept");
    sandbox.run(["prune", "--age", "0s"]).ok();
    assert!(!folder.exists(), "nobody can ask about these jobs any more");
    assert!(entries(&sandbox).is_empty());
    sandbox.start(["true"]);
    assert_eq!(entry(&sandbox, "exit")["n"], 2, "whoever remembers a number misses nothing");
}

/// As a keeper and an heir leave a job that are killed right after its receipt: it has ended, their socket is there, and
/// nothing is told.
#[test]
fn an_end_that_was_cut_short_is_told_by_the_first_who_looks() {
    let sandbox = sandbox();
    let job = sandbox.start(["exit 3"]);
    sandbox.wait_for_end(job);
    entry(&sandbox, "exit");
    sandbox.nothing_runs();
    std::fs::remove_dir_all(sandbox.home().join("outbox")).unwrap();
    let folder = sandbox.home().join("jobs").join(job.to_string());
    drop(std::os::unix::net::UnixListener::bind(folder.join("keeper.sock")).unwrap());
    assert!(entries(&sandbox).is_empty());
    for _ in 0..3 {
        sandbox.json(["jobs", "--all"]);
    }
    let told = entries(&sandbox);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((&told[0]["job"], &told[0]["event"]), (&job.into(), &"exit".into()), "{told:?}");
}
