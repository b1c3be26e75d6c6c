//! The outbox: what goes in, in which order, and that each reader gets it once.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use outlast_testkit::{Dice, PATIENCE, Sandbox, eventually};

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

/// Begins to follow into a file that outlives it.
fn follow(sandbox: &Sandbox, into: &std::path::Path, more: &[&str]) -> std::process::Child {
    let file = OpenOptions::new().append(true).create(true).open(into).unwrap();
    Command::new(sandbox.program())
        .args(["--json", "events", "--follow"])
        .args(more)
        .env("OUTLAST_HOME", sandbox.home())
        .env("OUTLAST_SESSION", "test")
        .stdin(Stdio::null())
        .stdout(file)
        .spawn()
        .unwrap()
}

fn lines(of: &std::path::Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(of).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A reader is killed at random points a few hundred times while events come. One that says itself how far it has
/// come gets each event exactly once. One with a name does too: an event that was on its way when it died is
/// marked.
#[test]
fn a_reader_that_is_killed_anywhere_gets_each_event_once() {
    let sandbox = sandbox();
    let by_number = sandbox.root().join("by-number");
    let by_name = sandbox.root().join("by-name");
    let mut dice = Dice::new();
    let home = outlast_home(&sandbox);
    let writing = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let outbox = outlast_job::outbox::Outbox::open(&home, "test").unwrap();
            for i in 0..1500_u64 {
                let word = format!("event {i}");
                let entry = outlast_job::outbox::Entry::about(outlast_job::Handle(1), None, "pattern", word);
                outbox.append(&mut [entry]).unwrap();
            }
            writing.store(false, std::sync::atomic::Ordering::Relaxed);
        });
        for _ in 0..300 {
            let since = lines(&by_number).last().map_or(0, |entry| entry["n"].as_u64().unwrap()).to_string();
            let mut readers = [
                follow(&sandbox, &by_number, &["--since", &since]),
                follow(&sandbox, &by_name, &["--reader", "r"]),
            ];
            let moment = std::time::Instant::now() + std::time::Duration::from_micros(dice.below(12_000));
            while std::time::Instant::now() < moment {
                std::thread::yield_now();
            }
            for reader in &mut readers {
                reader.kill().unwrap();
                reader.wait().unwrap();
            }
        }
    });
    let since = lines(&by_number).last().map_or(0, |entry| entry["n"].as_u64().unwrap()).to_string();
    let mut readers =
        [follow(&sandbox, &by_number, &["--since", &since]), follow(&sandbox, &by_name, &["--reader", "r"])];
    for file in [&by_number, &by_name] {
        eventually("the last event", PATIENCE, || {
            let last = lines(file).last().map(|entry| entry["n"].as_u64());
            if last == Some(Some(1500)) { Ok(()) } else { Err(last) }
        });
    }
    for reader in &mut readers {
        reader.kill().unwrap();
        reader.wait().unwrap();
    }
    let numbers: Vec<u64> = lines(&by_number).iter().map(|entry| entry["n"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=1500).collect::<Vec<_>>());
    let mut times: BTreeMap<u64, u64> = BTreeMap::new();
    let mut before = 0;
    for line in lines(&by_name) {
        let n = line["n"].as_u64().unwrap();
        let again = line["again"] == true;
        // Without the mark it is new; with it, it is the one that was on its way, or a new one.
        assert!(n == before + 1 || (again && n == before), "{n} after {before}, again: {again}");
        before = n;
        *times.entry(n).or_default() += 1;
    }
    assert_eq!(times.len(), 1500);
}

fn outlast_home(sandbox: &Sandbox) -> outlast_job::registry::Home {
    outlast_job::registry::Home::open(sandbox.home()).unwrap()
}

#[test]
fn two_processes_do_not_share_a_readers_name() {
    let sandbox = sandbox();
    let file = sandbox.root().join("first");
    sandbox.start(["true"]);
    let mut first = follow(&sandbox, &file, &["--reader", "r"]);
    eventually("the first reads", PATIENCE, || if lines(&file).is_empty() { Err(()) } else { Ok(()) });
    sandbox.run(["events", "--reader", "r"]).code(2).says("another process reads as");
    first.kill().unwrap();
    first.wait().unwrap();
    sandbox.run(["events", "--reader", "r"]).ok();
}
