//! Keepers and jobs hold nothing of their caller's.

use crate::sandbox;

/// Symptom: `outlast run -d ... | cat` in a script that had another descriptor of the pipe open hung until the job
/// ended, because keeper, heir and command had inherited it.
#[test]
fn descriptors_of_the_caller_are_let_go() {
    let sandbox = sandbox();
    let fixture = sandbox.fixture();
    let line =
        format!("\"$PROGRAM\" run -d -- '{fixture}' says-and-sleeps up 9>&1 >handle | cat; cat handle");
    let ran = sandbox.shell(&line).limit(std::time::Duration::from_secs(20)).run().ok();
    assert_eq!(ran.text(), "1\n");
    sandbox.wait_for_text(1, "up");
    let open = std::fs::read_dir(format!("/proc/{}/fd", sandbox.pid(1, "process"))).unwrap().count();
    assert_eq!(open, 3, "the command has its three streams and nothing else");
}

#[test]
fn neither_keeper_nor_heir_stands_in_the_callers_folder_or_session() {
    let sandbox = sandbox();
    let job = sandbox.fixture_job(&["says-and-sleeps", "up"]);
    sandbox.wait_for_text(job, "up");
    // Not by `getsid`: where the session's leader is outside our pid namespace it is 0, which no pid is.
    let me = outlast_pty::procfs::stat(rustix::process::getpid()).unwrap().session;
    for role in ["keeper", "heir"] {
        let process = sandbox.process(job, role);
        match std::fs::read_link(format!("/proc/{}/cwd", process.pid.as_raw_nonzero())) {
            Ok(folder) => assert_eq!(folder, std::path::Path::new("/"), "{role}"),
            Err(error) => {
                assert!(!rustix::process::geteuid().is_root(), "only root may look at a keeper: {error}")
            }
        }
        assert_ne!(process.session, me, "{role}");
    }
    let command = sandbox.process(job, "process");
    assert_eq!(command.session, sandbox.pid(job, "heir"), "the heir leads the session");
    assert_eq!(command.pgrp, command.pid.as_raw_nonzero().get(), "the command leads its group");
    assert_eq!(command.tpgid, command.pgrp, "in the foreground");
}
