//! `kill -9` of clients, keepers and heirs, at any moment.

use std::thread::JoinHandle;

use outlast_job::wire::Sent;
use outlast_job::{Failure, Outlast};
use outlast_testkit::processes::{self, kill_dash_nine};
use outlast_testkit::{Dice, Sandbox, TEST_TIMEOUT, eventually};
use serde_json::Value;

use crate::{all_jobs, assert_same, counted, sandbox};

const LINES: u64 = 1500;

/// A job that prints for more than a second and ends with code 7: long enough to be hit also on a busy machine.
fn counting_job(sandbox: &Sandbox) -> u64 {
    sandbox.fixture_job(&["counts", &LINES.to_string(), "20", "20", "7"])
}

fn await_log(sandbox: &Sandbox, job: u64, len: u64) {
    eventually("the log has grown", TEST_TIMEOUT, || match sandbox.log_len(job) {
        grown if grown >= len => Ok(()),
        short => Err(short),
    });
}

#[track_caller]
fn assert_took_over(sandbox: &Sandbox, job: u64) {
    let info = sandbox.info(job);
    assert_eq!(info["takeovers"], 1, "{info}");
    let events = sandbox.events(job);
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "{events:?}");
    let of = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    assert_eq!((of("started"), of("took_over"), of("exit")), (1, 1, 1), "{events:?}");
}

#[test]
fn a_client_killed_in_the_middle_of_anything_takes_nothing_along() {
    let sandbox = sandbox();
    let mut dice = Dice::new();
    let wanted = counted(LINES);
    let fixture = sandbox.fixture();
    let count = LINES.to_string();
    for _ in 0..3 {
        let runner = sandbox.call(["run", "--", &fixture, "counts", &count, "20", "5", "7"]).spawn();
        let job = eventually("the job is there", TEST_TIMEOUT, || {
            let jobs = all_jobs(&sandbox);
            jobs.iter()
                .filter(|job| job["status"] == "running")
                .find_map(|job| job["handle"].as_u64())
                .ok_or(jobs)
        });
        let name = job.to_string();
        let clients = [
            runner,
            sandbox.call(["wait", &name, "--pattern", "never"]).spawn(),
            sandbox.call(["logs", "-f", &name]).spawn(),
            sandbox.call(["send", &name, "never read", "--pattern", "never"]).spawn(),
        ];
        for client in clients {
            let at = sandbox.log_len(job) + dice.below(1500);
            await_log(&sandbox, job, at.min(wanted.len() as u64));
            client.kill_dash_nine();
        }
        assert_eq!(sandbox.wait_for_end(job)["exit_code"], 7);
        // What was typed at it is echoed by the terminal; the program's own bytes must all be there, in order.
        let log = String::from_utf8(sandbox.log(job)).unwrap().replace("never read\r\n", "");
        assert_same(log.as_bytes(), &wanted);
    }
}

/// Symptom that this guards against: a keeper dies and bytes between terminal and log die with it, the exit code is
/// unknown, or a client waits for ever.
#[test]
fn a_keeper_killed_at_random_moments_while_the_job_prints() {
    let sandbox = sandbox();
    let mut dice = Dice::new();
    let wanted = counted(LINES);
    for round in 0..10 {
        let job = counting_job(&sandbox);
        let name = job.to_string();
        let exit = sandbox.call(["--json", "wait", &name, "--exit", "--deadline", "30s"]).spawn();
        let last_line = format!("line {}\\b", LINES - 1);
        let found =
            sandbox.call(["--json", "wait", &name, "--pattern", &last_line, "--deadline", "30s"]).spawn();
        let follower = sandbox.call(["logs", "-f", "--raw", &name]).spawn();
        await_log(&sandbox, job, dice.below(wanted.len() as u64 * 8 / 10));
        kill_dash_nine(&sandbox.process(job, "keeper"));
        let (exit, found) = (exit.wait().code(7).json(), found.wait().ok().json());
        assert_eq!(
            (&exit["reason"], &exit["exit_code"]),
            (&"exit".into(), &7.into()),
            "round {round}: {exit}"
        );
        assert_eq!(found["reason"], "pattern", "round {round}: {found}");
        assert_same(&sandbox.log(job), &wanted);
        assert_same(&follower.wait().ok().stdout, &wanted);
        let text = std::fs::read_to_string(sandbox.job(job).join("stdout.txt")).unwrap();
        assert_same(text.as_bytes(), String::from_utf8(wanted.clone()).unwrap().replace('\r', "").as_bytes());
        assert_took_over(&sandbox, job);
    }
    sandbox.nothing_runs();
}

#[test]
fn a_keeper_killed_while_the_job_waits_for_input() {
    let sandbox = sandbox();
    for _ in 0..3 {
        let job = sandbox.fixture_job(&["asks"]);
        let name = job.to_string();
        sandbox.json(["wait", &name, "--input", "--deadline", "30s"]);
        let waiting = sandbox
            .call(["--json", "wait", &name, "--pattern", "Hello, (\\w+)", "--deadline", "30s"])
            .spawn();
        kill_dash_nine(&sandbox.process(job, "keeper"));
        let answer = sandbox.json(["send", &name, "Grace", "--deadline", "30s"]);
        assert_eq!(answer["reason"], "exit", "{answer}");
        let waited = waiting.wait().ok().json();
        assert_eq!(
            (&waited["reason"], &waited["match"]["captures"][0]),
            (&"pattern".into(), &"Grace".into())
        );
        assert_eq!(sandbox.wait_for_end(job)["exit_code"], 0);
        assert_took_over(&sandbox, job);
    }
}

#[test]
fn a_keeper_killed_while_it_ends_the_job() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["family"]);
    sandbox.wait_for_text(job, "family complete");
    let kill = sandbox.call(["--json", "kill", &job.to_string(), "--grace", "3s"]).spawn();
    eventually("the keeper has begun to end it", TEST_TIMEOUT, || match sandbox.info(job) {
        info if info["status"] != "running" || !info["ending"].is_null() => Ok(()),
        info => Err(info),
    });
    kill_dash_nine(&sandbox.process(job, "keeper"));
    let killed = kill.wait().ok().json();
    assert_eq!(killed["survivors"], serde_json::json!([]), "{killed}");
    assert!(killed["ended_by"].as_str().unwrap().contains("kill (SIGTERM) from session test"), "{killed}");
    sandbox.nothing_runs();
}

#[test]
fn the_heir_goes_on_with_time_limits_and_pipes() {
    let sandbox = sandbox();
    let fixture = sandbox.fixture();
    let limited = sandbox.start(["--timeout", "10s", "--", &fixture, "says-and-sleeps", "up"]);
    sandbox.wait_for_text(limited, "up");
    kill_dash_nine(&sandbox.process(limited, "keeper"));
    let ended = sandbox.wait_for_end(limited);
    assert_eq!((&ended["status"], &ended["signal"]), (&"killed".into(), &"SIGTERM".into()), "{ended}");
    assert!(ended["ended_by"].as_str().unwrap().contains("timeout of 10 s"), "{ended}");

    let piped = sandbox.start(["--pipe", "--", &fixture, "eats-stdin", "65536", "0"]);
    let name = piped.to_string();
    sandbox.call(["send", &name, "--stdin", "--no-wait"]).stdin(vec![b'x'; 100_000]).run().ok();
    eventually("the input was taken", TEST_TIMEOUT, || {
        let status = sandbox.socket(piped).ask(&serde_json::json!({"id": 1, "verb": "status"}));
        if status["status"]["queued_input"] == 0 { Ok(()) } else { Err(status) }
    });
    kill_dash_nine(&sandbox.process(piped, "keeper"));
    sandbox.call(["send", &name, "--stdin", "--no-wait", "--eof"]).stdin(vec![b'y'; 100_000]).run().ok();
    assert_eq!(sandbox.wait_for_end(piped)["exit_code"], 0);
    assert!(sandbox.run(["read", &name]).ok().text().contains("ate 200000 bytes"));
}

#[test]
fn keeper_and_heir_killed_one_job_among_fifty() {
    let sandbox = sandbox();
    let fixture = sandbox.fixture();
    let calls: Vec<_> =
        (0..50).map(|_| sandbox.call(["--json", "run", "-d", "--", &fixture, "family"]).spawn()).collect();
    let handles: Vec<u64> =
        calls.into_iter().map(|call| call.wait().ok().json()["handle"].as_u64().unwrap()).collect();
    for handle in &handles {
        sandbox.wait_for_text(*handle, "family complete");
    }
    let unlucky = handles[Dice::new().below(50) as usize];
    let waiting = sandbox.call(["--json", "wait", &unlucky.to_string()]).spawn();
    let printed = sandbox.log(unlucky);
    let (heir, keeper) = (sandbox.process(unlucky, "heir"), sandbox.process(unlucky, "keeper"));
    // Stopped first, so that neither sees the other die.
    for process in [&heir, &keeper] {
        processes::send(process, rustix::process::Signal::STOP);
    }
    kill_dash_nine(&keeper);
    kill_dash_nine(&heir);

    let waited = waiting.wait();
    assert_ne!(waited.code, Some(4), "{waited}");
    let jobs = all_jobs(&sandbox);
    let of = |status: &str| jobs.iter().filter(|job| job["status"] == status).collect::<Vec<&Value>>();
    assert_eq!(of("running").len(), 49, "the others never notice");
    assert!(of("running").iter().all(|job| job["activity"].is_string()), "and their keepers answer");
    let lost = of("lost");
    assert_eq!((lost.len(), &lost[0]["handle"]), (1, &unlucky.into()), "{lost:?}");
    assert!(!lost[0]["left_behind"].as_array().unwrap().is_empty(), "what is left of it is found: {lost:?}");
    assert!(sandbox.log(unlucky).starts_with(&printed), "with all its bytes");
    assert_eq!(sandbox.info(unlucky)["status"], "lost", "whoever looks writes it down");
    assert_eq!(sandbox.run(["doctor"]).code(1).text().matches("bad ").count(), 1);

    let killed = sandbox.json(["kill", &unlucky.to_string()]);
    assert_eq!(killed["survivors"], serde_json::json!([]), "{killed}");
    let again = all_jobs(&sandbox);
    let now = again.iter().find(|job| job["handle"] == unlucky).unwrap();
    assert_eq!((&now["status"], &now["left_behind"]), (&"lost".into(), &serde_json::json!([])), "{now}");
    assert_eq!(again.iter().filter(|job| job["status"] == "running").count(), 49);
}

#[test]
fn a_killed_heir_hangs_the_job_up_and_the_receipt_says_so() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["says-and-sleeps", "up"]);
    sandbox.wait_for_text(job, "up");
    kill_dash_nine(&sandbox.process(job, "heir"));
    let ended = sandbox.wait_for_end(job);
    assert_eq!((&ended["status"], &ended["signal"]), (&"killed".into(), &"SIGHUP".into()), "{ended}");
    assert!(ended["ended_by"].as_str().unwrap().contains("heir"), "{ended}");
    assert!(sandbox.events(job).iter().any(|event| event["event"] == "heir_gone"));
    sandbox.nothing_runs();
}

#[test]
fn a_stopped_keeper_delays_and_loses_nothing() {
    use rustix::process::Signal;
    let sandbox = sandbox();
    let job = counting_job(&sandbox);
    await_log(&sandbox, job, 500);
    let keeper = sandbox.process(job, "keeper");
    processes::send(&keeper, Signal::STOP);
    let before = sandbox.log_len(job);
    // The list is for people: a keeper that does not answer must not keep it from them for ever.
    let listing = sandbox.call(["--json", "jobs"]).spawn();
    let command = sandbox.process(job, "process");
    eventually("the job has filled its terminal or ended", TEST_TIMEOUT, || {
        let state = processes::find(command.pid.as_raw_nonzero().get()).map(|process| process.state);
        match state {
            None | Some(outlast_pty::procfs::State::Sleeping) => Ok(()),
            other => Err(other),
        }
    });
    assert!(sandbox.log_len(job) - before < 16 << 10);
    processes::send(&keeper, Signal::CONT);
    assert_eq!(sandbox.wait_for_end(job)["exit_code"], 7);
    assert_same(&sandbox.log(job), &counted(LINES));
    let _ = listing.wait().ok().json();
}

/// The command ends, its keeper writes that down and leaves; killed anywhere on that way, nothing is lost.
#[test]
fn a_keeper_killed_around_the_end_of_its_job() {
    let sandbox = sandbox();
    let mut dice = Dice::new();
    for round in 0..20 {
        let job = sandbox.fixture_job(&["says-when-told", "bye"]);
        let name = job.to_string();
        let keeper = sandbox.process(job, "keeper");
        let waiting = sandbox.call(["--json", "wait", &name, "--deadline", "30s"]).spawn();
        let mut socket = sandbox.socket(job);
        let sent = socket.ask(&serde_json::json!({"id": 1, "verb": "send", "text": "x", "newline": true}));
        assert_eq!(sent["sent"]["queued"], 0, "{sent}");
        // So many looks at the clock, and nothing in between: up to about two milliseconds.
        let looks = dice.below(40_000);
        for _ in 0..looks {
            std::hint::black_box(std::time::Instant::now());
        }
        processes::send(&keeper, rustix::process::Signal::KILL);
        let ended = waiting.wait().json();
        let at = format!("round {round}, {looks} looks: {ended}");
        assert_eq!((&ended["reason"], &ended["exit_code"]), (&"exit".into(), &0.into()), "{at}");
        assert_same(&sandbox.log(job), b"x\r\nbye\r\n");
        let ends = sandbox.events(job).iter().filter(|event| event["event"] == "exit").count();
        assert!(ends <= 1, "{at}");
    }
    sandbox.nothing_runs();
}

#[test]
fn input_that_died_with_the_keeper_is_told() {
    let sandbox = sandbox();
    let job = sandbox.start(["--pipe", "--", &sandbox.fixture(), "says-and-sleeps", "up"]);
    let (name, big) = (job.to_string(), "x".repeat(50_000));
    let queued = (0..20).find_map(|_| {
        let sent = sandbox.json(["send", &name, &big, "--no-wait"]);
        sent["queued"].as_u64().filter(|queued| *queued > 0)
    });
    kill_dash_nine(&sandbox.process(job, "keeper"));
    let took_over = eventually("the heir took over", TEST_TIMEOUT, || {
        let events = sandbox.events(job);
        events.iter().find(|event| event["event"] == "took_over").cloned().ok_or(events)
    });
    assert_eq!(took_over["input_lost"].as_u64(), queued, "{took_over}");
}

/// How often a job that copies its input to a file got a line.
fn arrived(sandbox: &Sandbox, job: u64, line: &str) -> usize {
    sandbox.run(["send", &job.to_string(), "--eof", "--no-wait"]).ok();
    sandbox.wait_for_end(job);
    let got = std::fs::read_to_string(sandbox.work().join(format!("got-{job}"))).unwrap();
    assert!(got.lines().all(|got| got == line), "{got:?}");
    got.lines().count()
}

fn copying_job(sandbox: &Sandbox) -> u64 {
    let next = all_jobs(sandbox).len() + 1;
    let job = sandbox.start([format!("cat >got-{next}")]);
    assert_eq!(job, next as u64);
    sandbox.json(["wait", &job.to_string(), "--input", "--deadline", "30s"]);
    job
}

/// A client that waits for the answer to something that it has typed, while the keeper is stopped and reads nothing.
fn typing_while_stopped(sandbox: &Sandbox, job: u64) -> JoinHandle<Result<Sent, Failure>> {
    let library = Outlast::at(sandbox.home()).unwrap().job(&job.to_string()).unwrap();
    library.status().unwrap();
    processes::send(&sandbox.process(job, "keeper"), rustix::process::Signal::STOP);
    let (tell, told) = std::sync::mpsc::channel();
    let typing = std::thread::spawn(move || {
        tell.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
        library.type_line("once")
    });
    let stat = format!("/proc/self/task/{}/stat", told.recv().unwrap());
    eventually("the request is out, and its answer is waited for", TEST_TIMEOUT, || {
        let stat = std::fs::read_to_string(&stat).unwrap();
        if stat.contains(") S ") { Ok(()) } else { Err(stat) }
    });
    typing
}

/// The keeper dies before it has read a request: its heir knows that it was not begun, and it is carried out once.
#[test]
fn input_that_a_dead_keeper_had_not_begun_is_typed_by_its_heir() {
    let sandbox = sandbox();
    let job = copying_job(&sandbox);
    let keeper = sandbox.process(job, "keeper");
    let typing = typing_while_stopped(&sandbox, job);
    kill_dash_nine(&keeper);
    typing.join().unwrap().unwrap();
    assert_eq!(arrived(&sandbox, job, "once"), 1);
    assert_took_over(&sandbox, job);
}

/// Symptom that this guards against: a keeper dies after a request was carried out, and its heir is asked the same again.
#[test]
fn what_a_dead_keeper_had_begun_is_not_done_again_by_its_heir() {
    let sandbox = sandbox();
    let job = copying_job(&sandbox);
    let send = |key: &str| {
        let mut socket = sandbox.socket(job);
        let request = format!(r#"{{"key":"{key}","id":7,"verb":"send","text":"once","newline":true}}"#);
        socket.say(format!("{request}\n").as_bytes()).unwrap();
        let reply = socket.hear().expect("an answer")["reply"].clone();
        assert_eq!(reply["id"], 7, "{reply}");
        reply
    };
    assert_eq!(send("a")["sent"]["taken"], 5);
    assert_eq!(send("a")["error"]["kind"], "outcome_unknown", "nor by the same keeper");
    kill_dash_nine(&sandbox.process(job, "keeper"));
    let failure = send("a");
    assert_eq!(failure["error"]["kind"], "outcome_unknown", "{failure}");
    assert!(failure["error"]["hint"].as_str().unwrap().contains(&format!("outlast read {job}")), "{failure}");
    assert_eq!(arrived(&sandbox, job, "once"), 1);
    assert_took_over(&sandbox, job);
}

#[test]
fn input_is_typed_at_most_once_whenever_the_keeper_dies() {
    let sandbox = sandbox();
    let mut dice = Dice::new();
    for round in 0..10 {
        let job = copying_job(&sandbox);
        let keeper = sandbox.process(job, "keeper");
        let library = Outlast::at(sandbox.home()).unwrap().job(&job.to_string()).unwrap();
        library.status().unwrap();
        let typing = std::thread::spawn(move || library.type_line("once"));
        let looks = dice.below(20_000);
        for _ in 0..looks {
            std::hint::black_box(std::time::Instant::now());
        }
        processes::send(&keeper, rustix::process::Signal::KILL);
        let typed = typing.join().unwrap();
        let times = arrived(&sandbox, job, "once");
        match typed {
            Ok(_) => assert_eq!(times, 1, "round {round}, {looks} looks"),
            Err(failure) => {
                assert_eq!(failure.kind.name(), "outcome_unknown", "round {round}: {failure}");
                assert!(times <= 1, "round {round}, {looks} looks: {times} times");
            }
        }
    }
}

/// A whole stream that is cut by the death of a keeper: whoever sends it is told, and does not go on.
#[test]
fn a_stream_of_input_breaks_off_when_the_keeper_dies() {
    let sandbox = sandbox();
    let job = sandbox.start(["--pipe", "until [ -e go ]; do sleep 0.05; done; cat >got"]);
    let name = job.to_string();
    let lines: String = (0..200_000).map(|n| format!("{n}\n")).collect();
    let sending = sandbox.call(["send", &name, "--stdin", "--no-wait"]).stdin(lines).spawn();
    eventually("the keeper has no room for more", TEST_TIMEOUT, || {
        let status = sandbox.socket(job).ask(&serde_json::json!({"id": 1, "verb": "status"}));
        if status["status"]["queued_input"].as_u64() > Some(256 << 10) { Ok(()) } else { Err(status) }
    });
    kill_dash_nine(&sandbox.process(job, "keeper"));
    sending.wait().code(1).says("not known whether it was typed").says(&format!("outlast read {job}"));
    std::fs::write(sandbox.work().join("go"), "").unwrap();
    sandbox.run(["send", &name, "--eof", "--no-wait"]).ok();
    assert_eq!(sandbox.wait_for_end(job)["exit_code"], 0);
    let got = std::fs::read_to_string(sandbox.work().join("got")).unwrap();
    let (whole, _) = got.rsplit_once('\n').unwrap();
    for (n, line) in whole.lines().enumerate() {
        assert_eq!(line, n.to_string(), "every line once and in order");
    }
}
