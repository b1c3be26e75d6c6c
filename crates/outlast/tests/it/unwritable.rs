//! How a job ended is known also where its last record can't be written.

use std::os::unix::fs::{PermissionsExt, chown};

use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually};
use serde_json::{Value, json};

use crate::disks::Disk;
use crate::{all_jobs, sandbox};

fn on_small_disk() -> Sandbox {
    Sandbox::with_home(env!("CARGO_BIN_EXE_outlast"), "small/outlast")
}

/// The answer of an MCP server to one call of a tool, as text.
fn told_by_mcp(sandbox: &Sandbox, tool: &str, arguments: &Value) -> String {
    let mut server = sandbox.call(["mcp"]).converse();
    let client = json!({"name": "tests", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    server.call("initialize", hello);
    server.notify("notifications/initialized", json!({}));
    let answer = server.call("tools/call", json!({"name": tool, "arguments": arguments}));
    answer["content"][0]["text"].as_str().unwrap().to_owned()
}

/// More is free than what makes a keeper careful at once, and then nothing is.
#[test]
fn a_disk_that_fills_in_the_first_moment_hides_no_exit_code() {
    for ext4 in [false, true] {
        let sandbox = on_small_disk();
        let at = sandbox.root().join("small");
        let Some(_disk) = (if ext4 { Disk::ext4(&at, 96 << 20) } else { Disk::tmpfs(&at, "72m") }) else {
            outlast_testkit::left_out("a small disk cannot be mounted", "run it as root");
            continue;
        };
        let fill = format!("head -c 200M /dev/zero 2>/dev/null >'{}/filler'; exit 5", at.display());
        sandbox.run(["run", &fill]).code(5);
        std::fs::remove_file(at.join("filler")).unwrap();
        let job = sandbox.start([&fill]);
        let ended = sandbox.wait_for_end(job);
        assert_eq!((&ended["status"], &ended["exit_code"]), (&"failed".into(), &5.into()), "{ended}");
        let text = told_by_mcp(&sandbox, "read_output", &json!({"handle": "2"}));
        assert!(text.contains("job 2 · exit 5"), "{text}");
        sandbox.nothing_runs();
        assert_eq!(sandbox.info(job)["code"], 5, "and it is written down");
        let told = sandbox.run(["events"]).ok().text();
        assert!(told.contains("job 2 exit: failed: exit code 5"), "{told:?}");
    }
}

/// Nothing can be written at all: the keeper stays, and knows.
#[test]
fn a_disk_that_becomes_read_only_hides_no_exit_code() {
    let sandbox = on_small_disk();
    let Some(disk) = Disk::ext4(&sandbox.root().join("small"), 16 << 20) else {
        outlast_testkit::left_out("a small disk cannot be mounted", "run it as root");
        return;
    };
    let fixture = sandbox.fixture();
    let (one, two) = (
        sandbox.start([format!("'{fixture}' says-when-told bye; exit 5")]),
        sandbox.start([format!("'{fixture}' says-when-told bye; exit 6")]),
    );
    disk.fail();
    for job in [one, two] {
        sandbox.run(["send", &job.to_string(), "", "--no-wait"]).ok();
    }
    for (job, code) in [(one, 5), (two, 6)] {
        let ended = sandbox.wait_for_end(job);
        assert_eq!((&ended["status"], &ended["exit_code"]), (&"failed".into(), &code.into()), "{ended}");
    }
    // Also for whoever did not wait for it, and after the keeper was killed.
    outlast_testkit::processes::kill_dash_nine(&sandbox.process(two, "keeper"));
    let listed = eventually("the heir answers", TEST_TIMEOUT, || {
        let jobs = all_jobs(&sandbox);
        if jobs.iter().all(|job| job["status"] == "failed") { Ok(jobs) } else { Err(jobs) }
    });
    let mut codes: Vec<i64> = listed.iter().map(|job| job["exit_code"].as_i64().unwrap()).collect();
    codes.sort_unstable();
    assert_eq!(codes, [5, 6], "{listed:?}");
    let text = told_by_mcp(&sandbox, "read_output", &json!({"handle": "1"}));
    assert!(text.contains("job 1 · exit 5"), "{text}");
    let doctor = sandbox.run(["doctor"]).text();
    assert!(doctor.contains("bad  ends") && doctor.contains("try again: 1 2"), "{doctor}");
    // It stays for as long as nobody lets go of it, and costs nothing meanwhile.
    assert!(!sandbox.processes().is_empty());
    let killed = sandbox.json(["kill", "1"]);
    assert_eq!((&killed["already_ended"], &killed["exit_code"]), (&true.into(), &5.into()), "{killed}");
    let _ = sandbox.run(["prune", "--all"]);
    sandbox.nothing_runs();
    // Now nobody knows, and nobody says that it runs.
    let waited = sandbox.run(["--json", "wait", "1", "--deadline", "30s"]).code(1).json();
    assert_eq!((&waited["reason"], &waited["status"]), (&"exit".into(), &"lost".into()), "{waited}");
}

/// A disk that can be written again gets the record, without anybody asking.
#[test]
fn a_record_that_could_not_be_written_is_written_later() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["says-when-told", "bye"]);
    let keeper = rustix::process::Pid::from_raw(sandbox.pid(job, "keeper"));
    let limit = |current| {
        let resource = rustix::process::Resource::Fsize;
        let limit = rustix::process::Rlimit { current, maximum: None };
        rustix::process::prlimit(keeper, resource, limit).unwrap();
    };
    limit(Some(0));
    sandbox.run(["send", "1", "", "--no-wait"]).ok();
    let ended = sandbox.wait_for_end(job);
    assert_eq!((&ended["status"], &ended["exit_code"]), (&"completed".into(), &0.into()), "{ended}");
    assert_eq!(sandbox.info(job)["status"], "running", "nothing could be written");
    limit(None);
    // It tries ever more rarely, up to every 30 s.
    eventually("it was written, and its keeper left", 3 * TEST_TIMEOUT, || match sandbox.processes() {
        none if none.is_empty() => Ok(()),
        some => Err(some),
    });
    assert_eq!((&sandbox.info(job)["status"], &sandbox.info(job)["code"]), (&"completed".into(), &0.into()));
}

/// A job may close its own folder; for root no folder is closed, so this is another user's.
#[test]
fn a_job_that_closes_its_own_folder_hides_no_exit_code() {
    let sandbox = sandbox();
    if !rustix::process::geteuid().is_root() || !outlast_testkit::has("setpriv") {
        outlast_testkit::left_out("only root can run something as another user", "run it as root");
        return;
    }
    let open = std::fs::Permissions::from_mode(0o711);
    std::fs::set_permissions(sandbox.root(), open).unwrap();
    let home = sandbox.root().join("another");
    std::fs::create_dir(&home).unwrap();
    std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o700)).unwrap();
    chown(&home, Some(65534), Some(65534)).unwrap();
    let run = |arguments: &str| {
        let user = "setpriv --reuid 65534 --regid 65534 --clear-groups";
        let call = sandbox.shell(&format!("exec {user} \"$PROGRAM\" {arguments}"));
        call.env("OUTLAST_HOME", &home).cwd("/")
    };
    for (job, mode) in [(1, "500"), (2, "000")] {
        let folder = home.join("jobs").join(job.to_string());
        let go = home.join("go");
        let command = format!(
            "echo up; until [ -e {} ]; do sleep 0.01; done; chmod {mode} {}; exit 4",
            go.display(),
            folder.display()
        );
        let running = run(&format!("run '{command}'")).spawn();
        // Whoever shows the output has the folder open. One that is closed before that cannot be read by anybody.
        eventually("the client shows what is printed", TEST_TIMEOUT, || {
            let shown = running.stdout_so_far();
            if shown.starts_with(b"up") { Ok(()) } else { Err(shown) }
        });
        std::fs::write(&go, "").unwrap();
        running.wait().code(4);
        std::fs::remove_file(&go).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
        let info = std::fs::read(folder.join("info.json")).unwrap();
        let info: Value = serde_json::from_slice(&info).unwrap();
        assert_eq!((&info["status"], &info["code"]), (&"failed".into(), &4.into()), "{info}");
    }
    assert!(run("wait 2 --json").run().code(4).text().contains("\"exit_code\":4"));
    sandbox.nothing_runs();
}
