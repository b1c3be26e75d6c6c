//! When the editor leaves, everything that the agent started ends, and its jobs go on.

use std::path::Path;

use outlast_testkit::{TEST_TIMEOUT, eventually};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::sandbox;

/// An agent of many processes that does not end by itself: a worker, one that takes no notice of SIGTERM, one in a session
/// of its own whose parent is gone; and two jobs, one of which has ended and left a server behind.
const AGENT: &str = r#"
note() { echo "$1 $2" >> pids; }
trap '' HUP
sleep 1000 & note worker $!
( trap '' TERM; while :; do sleep 1000; done ) & note stubborn $!
sh -c 'setsid sh -c "sleep 1000 & echo daemon \$! >> pids; exec sleep 1000" &'
"$OUTLAST" run -d --name kept 'echo job $$ >> pids; exec sleep 1000' > /dev/null
"$OUTLAST" run --name server 'nohup sleep 1000 > /dev/null 2>&1 & echo left $! >> pids' > /dev/null
note agent $$
echo all there >> pids
while :; do sleep 1000; done
"#;

fn pids(file: &Path, who: &[&str]) -> Vec<Pid> {
    let text = std::fs::read_to_string(file).unwrap();
    let named = text.lines().filter_map(|line| line.split_once(' '));
    let wanted: Vec<Pid> = named
        .filter(|(name, _)| who.contains(name))
        .map(|(_, pid)| Pid::from_raw(pid.parse().unwrap()).unwrap())
        .collect();
    assert_eq!(wanted.len(), who.len(), "{text}");
    wanted
}

fn lives(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    test_kill_process(pid).is_ok() && !stat.rsplit(')').next().unwrap_or_default().starts_with(" Z")
}

fn leave(how: impl FnOnce(outlast_testkit::Conversation)) {
    let sandbox = sandbox();
    let file = sandbox.work().join("pids");
    let editor = sandbox
        .call(["acp", "sidecar", "--", "sh", "-c", AGENT])
        .env("OUTLAST", env!("CARGO_BIN_EXE_outlast"))
        .converse();
    eventually("the agent and its processes are there", TEST_TIMEOUT, || {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let daemons = text.contains("daemon") && text.contains("job");
        if text.contains("all there") && daemons { Ok(()) } else { Err(text) }
    });
    let all = pids(&file, &["agent", "worker", "stubborn", "daemon"]);
    let kept = pids(&file, &["job", "left"]);
    assert!(all.iter().chain(&kept).copied().all(lives));
    how(editor);
    eventually("every process of the agent has ended", TEST_TIMEOUT, || {
        let left: Vec<Pid> = all.iter().copied().filter(|pid| lives(*pid)).collect();
        if left.is_empty() { Ok(()) } else { Err(left) }
    });
    let alive: Vec<bool> = kept.iter().map(|pid| lives(*pid)).collect();
    assert_eq!(sandbox.info(1)["status"], "running");
    let _ = kill_process(kept[1], Signal::KILL);
    assert_eq!(alive, [true, true], "a job, and what one left behind");
}

#[test]
fn all_processes_of_the_agent_end_with_the_editor_and_jobs_go_on() {
    leave(|editor| {
        editor.hang_up();
    });
}

#[test]
fn the_same_when_the_editor_ends_the_sidecar_by_a_signal() {
    leave(outlast_testkit::Conversation::terminate);
}
