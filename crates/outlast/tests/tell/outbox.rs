//! The outbox: what goes in, in which order, and that each reader gets it once.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outlast_job::outbox::Entry;

use outlast_testkit::{Dice, PATIENCE, Sandbox, eventually};
use serde_json::Value;

use super::{entries, entry, sandbox};

#[test]
fn an_end_is_told_with_its_reason_and_the_next_call() {
    let sandbox = sandbox();
    let job = sandbox.start(["echo oh no; exit 3"]);
    let told = entry(&sandbox, "ended");
    assert_eq!((told["job"].as_u64(), told["n"].as_u64()), (Some(job), Some(1)));
    assert_eq!(told["text"], "failed: exit code 3: oh no");
    assert_eq!(told["more"], format!("outlast read {job} --tail 20"));
    let line = sandbox.run(["events"]).ok().text();
    assert_eq!(
        line.trim_end(),
        format!("1 job {job} ended: failed: exit code 3: oh no   outlast read {job} --tail 20")
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
    assert!(entry(&sandbox, "ended")["text"].as_str().unwrap().contains("ended"));
}

#[test]
fn a_foreground_run_tells_nothing_unless_asked() {
    let sandbox = sandbox();
    sandbox.run(["run", "true"]).ok();
    assert_eq!(entries(&sandbox).len(), 0);
    sandbox.run(["run", "--notify", "exit", "true"]).ok();
    entry(&sandbox, "ended");
}

#[test]
fn folders_and_files_are_private() {
    let sandbox = sandbox();
    sandbox.call(["run", "-d", "true"]).env("OUTLAST_SESSION", "../a b/é").run().ok();
    let folder = sandbox.home().join("outbox");
    let session = eventually("an outbox", PATIENCE, || {
        let entry =
            std::fs::read_dir(&folder).ok().and_then(|mut all| all.next()?.ok()).map(|entry| entry.path());
        entry.filter(|path| path.join("events.jsonl").exists()).ok_or("none")
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
    eventually("three events", PATIENCE, || Some(()).filter(|()| entries(&sandbox).len() == 3).ok_or(()));
    sandbox.run(["events", "--ack", "2"]).ok();
    let left: Vec<u64> = entries(&sandbox).iter().map(|entry| entry["n"].as_u64().unwrap()).collect();
    assert_eq!(left, [3]);
    sandbox.run(["events", "--ack-all"]).ok();
    assert!(entries(&sandbox).is_empty());
    sandbox.start(["true"]);
    assert_eq!(entry(&sandbox, "ended")["n"], 4);
}

#[test]
fn many_keepers_at_once_leave_no_gap() {
    let sandbox = sandbox();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..5).for_each(|_| assert!(sandbox.start(["true"]) > 0)));
        }
    });
    let all = eventually("twenty events", PATIENCE, || {
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
    eventually("the heir took over", PATIENCE, || {
        let ran = sandbox.call(["send", &name, "two", "--no-wait"]).run();
        if ran.code == Some(0) { Ok(()) } else { Err(ran.stderr) }
    });
    sandbox.wait_for_end(job);
    assert_eq!(entry(&sandbox, "ended")["text"], "failed: exit code 7: two");
    let kinds: Vec<String> =
        entries(&sandbox).iter().map(|entry| entry["event"].as_str().unwrap().to_owned()).collect();
    assert_eq!(kinds, ["pattern", "ended"]);
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

/// A reader is killed at random points a few hundred times while events come. One that says itself how far it has
/// come gets each event exactly once. One with a name does too: an event that was on its way when it died is
/// marked.
#[test]
fn a_reader_that_is_killed_anywhere_gets_each_event_once() {
    const EVENTS: u64 = 1500;
    let sandbox = sandbox();
    let mut dice = Dice::new();
    let home = outlast_home(&sandbox);
    let (mut by_number, mut by_name) = (Vec::new(), Vec::new());
    let (mut rounds, mut marked) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let outbox = outlast_job::outbox::Outbox::open(&home, "test").unwrap();
            for i in 0..EVENTS {
                let entry = Entry::about(outlast_job::Handle(1), None, "pattern", format!("event {i}"));
                outbox.append(&mut [entry]).unwrap();
            }
        });
        while rounds < 300
            || by_number.last().map_or(0, number) < EVENTS
            || by_name.last().map_or(0, number) < EVENTS
        {
            rounds += 1;
            assert!(rounds < 3000, "it does not get on: {:?}, {:?}", by_number.last(), by_name.last());
            let since = by_number.last().map_or(0, number).to_string();
            let first = Following::begin(&sandbox, &["--since", &since]);
            let second = Following::begin(&sandbox, &["--reader", "r"]);
            let moment = Instant::now() + Duration::from_micros(dice.below(15_000 + 100 * rounds));
            while Instant::now() < moment {
                std::thread::yield_now();
            }
            by_number.extend(first.killed());
            by_name.extend(second.killed());
        }
    });
    let numbers: Vec<u64> = by_number.iter().map(number).collect();
    assert_eq!(numbers, (1..=EVENTS).collect::<Vec<_>>());
    let mut before = 0;
    for line in &by_name {
        let again = line["again"] == true;
        // Without the mark it is the next; with it, the one that was on its way when the reader died, or the next.
        let n = number(line);
        assert!(n == before + 1 || (again && n == before), "{n} after {before}, again: {again}");
        marked += u64::from(again);
        before = n;
    }
    assert_eq!(before, EVENTS);
    eprintln!("{rounds} kills, {marked} events marked, {} repeated", by_name.len() as u64 - EVENTS);
}

fn outlast_home(sandbox: &Sandbox) -> outlast_job::registry::Home {
    outlast_job::registry::Home::open(sandbox.home()).unwrap()
}

#[test]
fn two_processes_do_not_share_a_readers_name() {
    let sandbox = sandbox();
    sandbox.start(["true"]);
    let first = Following::begin(&sandbox, &["--reader", "r"]);
    eventually("the first reads", PATIENCE, || if first.lines().is_empty() { Err(()) } else { Ok(()) });
    sandbox.run(["events", "--reader", "r"]).code(2).says("another process reads as");
    drop(first);
    assert!(sandbox.run(["events", "--reader", "r"]).ok().text().is_empty());
}
