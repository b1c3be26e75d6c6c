//! What a crash of the machine may take, and that it is noticed. A restart is played by a record of another boot.

use outlast_testkit::processes::{self, kill_dash_nine};
use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually};
use rustix::process::Signal;
use serde_json::Value;

use crate::{all_jobs, sandbox};

/// Changes the record of a job that nobody keeps any more.
fn change_record(sandbox: &Sandbox, job: u64, change: impl FnOnce(&mut Value)) {
    let mut info = sandbox.info(job);
    change(&mut info);
    std::fs::write(sandbox.job(job).join("info.json"), info.to_string()).unwrap();
}

/// Symptom that this guards against: after a power cut the receipt is there, the output is not, and nothing says so.
#[test]
fn output_that_a_disk_has_lost_is_said_to_be_gone() {
    let sandbox = sandbox();
    sandbox.run(["run", "--pipe", "seq 1 1000"]).ok();
    sandbox.nothing_runs();
    let log = sandbox.job(1).join("output.log");
    let end = sandbox.log_len(1);
    assert_eq!(sandbox.info(1)["log_mark"]["end"], end);
    let whole = sandbox.json(["read", "1"]);
    assert!(whole["lost_bytes"].as_u64().unwrap_or(0) == 0, "{whole}");

    std::fs::File::options().write(true).open(&log).unwrap().set_len(100).unwrap();
    let read = sandbox.run(["read", "1"]).ok().text();
    assert!(read.contains(&format!("{} bytes", end - 100)), "{read}");
    let shown = sandbox.run(["show", "1"]).ok().text();
    assert!(shown.contains("of it are gone"), "{shown}");
}

#[test]
fn a_log_that_kept_its_length_and_lost_its_end_is_noticed_after_a_restart() {
    let sandbox = sandbox();
    sandbox.run(["run", "--pipe", "seq 1 1000"]).ok();
    sandbox.nothing_runs();
    let end = sandbox.log_len(1);
    let log = std::fs::File::options().write(true).open(sandbox.job(1).join("output.log")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&log, &[0; 1000], end - 1000).unwrap();
    change_record(&sandbox, 1, |info| info["boot_id"] = "another-boot".into());
    let read = sandbox.run(["read", "1"]).ok().text();
    assert!(read.contains("1000 bytes"), "{read}");
}

/// Symptom that this guards against: after a restart of the machine a job is `lost` without a reason, or told again and again.
#[test]
fn after_a_restart_the_reason_is_said_and_the_session_is_told_once() {
    let sandbox = sandbox();
    let job = sandbox.start(["sleep 1000"]);
    let both = ["heir", "keeper"].map(|role| sandbox.process(job, role));
    both.iter().for_each(|process| processes::send(process, Signal::STOP));
    both.iter().for_each(kill_dash_nine);
    eventually("nobody keeps it", TEST_TIMEOUT, || {
        let left = both.iter().filter_map(|p| processes::alive(p.pid.as_raw_nonzero().get(), p.start_time));
        match left.collect::<Vec<_>>() {
            none if none.is_empty() => Ok(()),
            some => Err(some),
        }
    });
    change_record(&sandbox, job, |info| info["boot_id"] = "another-boot".into());
    for _ in 0..3 {
        let jobs = all_jobs(&sandbox);
        assert_eq!(jobs[0]["status"], "lost", "{jobs:?}");
        let shown = sandbox.run(["show", &job.to_string()]).ok().text();
        assert!(shown.contains("the machine restarted"), "{shown}");
    }
    let outbox = std::fs::read_to_string(sandbox.home().join("outbox/test/events.jsonl")).unwrap();
    assert_eq!(outbox.matches("the machine restarted").count(), 1, "{outbox}");
}

#[test]
fn a_number_is_never_given_twice_even_if_every_folder_was_lost() {
    let sandbox = sandbox();
    sandbox.run(["run", "true"]).ok();
    sandbox.run(["run", "true"]).ok();
    sandbox.nothing_runs();
    let numbers = sandbox.home().join("numbers");
    let said = std::fs::read_to_string(&numbers).unwrap();
    let boot = said.split_whitespace().nth(2).unwrap();
    std::fs::remove_dir_all(sandbox.job(1)).unwrap();
    std::fs::remove_dir_all(sandbox.job(2)).unwrap();
    std::fs::write(&numbers, said.replace(boot, "another-boot")).unwrap();
    let job = sandbox.start(["true"]);
    assert!(job > 2, "{job}");
}

/// In this order, so that whoever finds the later finds the earlier. What the kernel is asked for is what a disk can be held to.
#[test]
fn the_log_is_on_the_disk_before_the_record_and_that_before_the_outbox() {
    if !outlast_testkit::has("strace") {
        return;
    }
    let sandbox = sandbox();
    for (sync, is_synced) in [("end", true), ("answer", true), ("none", false)] {
        std::fs::write(sandbox.root().join("config.toml"), format!("[log]\nsync = \"{sync}\"\n")).unwrap();
        let trace = sandbox.root().join(format!("trace-{sync}"));
        let line = format!(
            "exec strace -f -y -e trace=fdatasync,fsync -o '{}' \"$outlast\" run --notify exit 'echo x'",
            trace.display()
        );
        let run = sandbox.shell(&line).env("outlast", sandbox.program());
        run.env("OUTLAST_CONFIG", sandbox.root().join("config.toml")).run().ok();
        sandbox.nothing_runs();
        let text = std::fs::read_to_string(&trace).unwrap();
        let last = |what: &str| text.rfind(&format!("{what}>"));
        let order = [last("output.log"), last("info.json"), last("events.jsonl")];
        if is_synced {
            assert!(order[0].is_some() && order.is_sorted(), "{sync}: {order:?} in {text}");
        } else {
            assert_eq!(order, [None; 3], "{sync}: {text}");
        }
    }
}
