//! A log that can't be written: the job goes on, everyone can see it, and logging resumes.

use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use crate::disks::Disk;
use crate::sandbox;

/// Limits how large a file the keeper of a job may write; none lifts it.
fn limit_files(sandbox: &Sandbox, job: u64, bytes: Option<u64>) {
    let keeper = Pid::from_raw(sandbox.pid(job, "keeper"));
    prlimit(keeper, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
}

fn status(sandbox: &Sandbox, job: u64) -> Value {
    sandbox.socket(job).ask(&json!({"id": 1, "verb": "status"}))["status"].clone()
}

#[test]
fn writes_that_fail_are_a_visible_state_and_pass() {
    let sandbox = sandbox();
    let fixture = sandbox.fixture();
    // A log larger than any other file of the job, so that only the log meets the limit.
    let line = format!("stty -echo; '{fixture}' floods 65536; exec '{fixture}' says-when-told lost found");
    let job = sandbox.start([line]);
    let name = job.to_string();
    let flood = 65536 / 64 * 65;
    eventually("the flood is over", TEST_TIMEOUT, || match sandbox.log_len(job) {
        len if len == flood => Ok(()),
        len => Err(len),
    });
    limit_files(&sandbox, job, Some(flood));
    sandbox.run(["send", &name, "", "--no-wait"]).ok();
    let failing = eventually("the failure is visible", TEST_TIMEOUT, || match status(&sandbox, job) {
        status if status["log_failing"].is_string() => Ok(status),
        status => Err(status),
    });
    assert_eq!(failing["info"]["status"], "running", "the job is not killed for it: {failing}");
    assert_eq!(failing["grown"]["offset"], flood + 6, "offsets stay true: {failing}");
    assert!(sandbox.json(["jobs"])["jobs"][0]["log_failing"].is_string());
    assert!(sandbox.events(job).iter().any(|event| event["event"] == "log_failing"));

    limit_files(&sandbox, job, None);
    sandbox.run(["send", &name, "", "--no-wait"]).ok();
    let ended = sandbox.wait_for_end(job);
    assert_eq!(ended["exit_code"], 0, "{ended}");
    assert_eq!(sandbox.info(job)["gone"], json!([[flood, flood + 6]]), "the lost range is recorded");
    assert_eq!(&sandbox.log(job)[usize::try_from(flood).unwrap() + 6..], b"found\r\n", "and logging went on");
    let read = sandbox.json(["read", &name, "--since", &flood.to_string()]);
    assert_eq!(read["gone_bytes"], 6, "{read}");
    assert!(read["output"].as_str().unwrap().ends_with("found\n"), "{read}");
    let resumed = sandbox.events(job).into_iter().find(|event| event["event"] == "log_resumed").unwrap();
    assert_eq!(
        (&resumed["lost_from"], &resumed["lost_to"]),
        (&flood.into(), &(flood + 6).into()),
        "{resumed}"
    );
}

#[test]
fn nothing_at_all_can_be_written_and_the_job_does_not_notice() {
    let sandbox = sandbox();
    let fixture = sandbox.fixture();
    let job = sandbox.start(["--", &fixture, "says-when-told", "lost", "found"]);
    limit_files(&sandbox, job, Some(0));
    sandbox.run(["send", "1", "", "--no-wait"]).ok();
    eventually("the failure is visible", TEST_TIMEOUT, || match status(&sandbox, job) {
        status if status["log_failing"].is_string() => Ok(()),
        status => Err(status),
    });
    // The screen and patterns see what the log could not take.
    eventually("what the log could not take is on the screen", TEST_TIMEOUT, || {
        let screen = sandbox.json(["screen", "1"]);
        if screen["rows"].to_string().contains("lost") { Ok(()) } else { Err(screen) }
    });
    limit_files(&sandbox, job, None);
    sandbox.run(["send", "1", "", "--no-wait"]).ok();
    let ended = sandbox.wait_for_end(job);
    assert_eq!((&ended["status"], &ended["exit_code"]), (&"completed".into(), &0.into()), "{ended}");
    sandbox.nothing_runs();
    assert!(!sandbox.info(job)["gone"].as_array().unwrap().is_empty());
}

/// A real full disk, where we may mount one.
#[test]
fn a_full_disk_is_survived() {
    let sandbox = Sandbox::with_home(env!("CARGO_BIN_EXE_outlast"), "small/outlast");
    let Some(_mounted) = Disk::tmpfs(&sandbox.root().join("small"), "1m") else {
        outlast_testkit::left_out("a small disk cannot be mounted", "run it as root");
        return;
    };
    let fixture = sandbox.fixture();
    let job = sandbox.start([format!("stty -echo; '{fixture}' floods 4194304; read x; echo found; exit 3")]);
    let end = 4_194_304 / 64 * 65;
    eventually("the flood is over", TEST_TIMEOUT, || match status(&sandbox, job) {
        status if status["grown"]["offset"] == end => Ok(()),
        status => Err(status["grown"].clone()),
    });
    let full = status(&sandbox, job);
    assert!(full["log_failing"].as_str().unwrap().contains("space"), "{full}");
    assert_eq!(full["info"]["status"], "running", "{full}");
    sandbox.run(["send", "1", "", "--no-wait"]).ok();
    let ended = sandbox.wait_for_end(job);
    assert_eq!((&ended["status"], &ended["exit_code"]), (&"failed".into(), &3.into()), "{ended}");
    sandbox.nothing_runs();
    assert!(sandbox.events(job).iter().any(|event| event["event"] == "exit"), "room was held for the end");
    let told = sandbox.run(["events"]).ok().text();
    assert!(told.contains("job 1 exit: failed: exit code 3"), "{told:?}");
    let gone = sandbox.info(job)["gone"].clone();
    assert_eq!(gone[0][1], end + 7, "what is lost at the end is recorded too: {gone}");
    let read = sandbox.json(["read", "1", "--tail", "3"]);
    assert_eq!(read["offset"], end + 7, "{read}");
    let error = sandbox.run(["run", "-d", "true"]);
    assert!(error.code == Some(0) || error.stderr.contains("space"), "{error}");
}

/// What is told of an end must not wait for somebody to tidy up.
#[test]
fn an_outbox_holds_room_for_a_full_disk() {
    use outlast_job::outbox::{Entry, Outbox};
    let sandbox = Sandbox::with_home(env!("CARGO_BIN_EXE_outlast"), "small/outlast");
    let small = sandbox.root().join("small");
    let Some(_mounted) = Disk::tmpfs(&small, "1m") else {
        outlast_testkit::left_out("a small disk cannot be mounted", "run it as root");
        return;
    };
    let home = outlast_job::registry::Home::open(sandbox.home()).unwrap();
    let outbox = Outbox::open(&home, "test").unwrap();
    let one = || {
        outbox.append(&mut [Entry::about(
            outlast_job::Handle::new(1),
            None,
            outlast_job::EntryKind::Exit,
            "x".repeat(300),
        )])
    };
    one().unwrap();
    let mut filler = std::fs::File::create(small.join("filler")).unwrap();
    while std::io::Write::write_all(&mut filler, &[0; 4096]).is_ok() {}
    for told in 2..=20 {
        assert!(one().is_ok(), "number {told}");
    }
    let more = (0..1000).take_while(|_| one().is_ok()).count();
    assert!(more < 1000, "the disk was never full");
    assert_eq!(outbox.entries(0).len(), 20 + more, "and nothing is half written");
}
