//! What the exec guard adds to the start of a program: two jobs, one with a rule in force and one without, spawn `true` in turns.

use serde_json::json;

use crate::client::Sandbox;
use crate::is_full;

const TURNS: usize = 100;
const SPAWNS: usize = 100;

/// Spawns when it is told to, with a `PATH` of ten folders, and writes how long each took, in microseconds.
const SPAWNER: &str = r#"
import os, sys, time
os.environ["PATH"] = ":".join("/nonexistent/%d" % i for i in range(9)) + ":/usr/bin"
out = open(sys.argv[2], "w")
for line in open(sys.argv[1]):
    for _ in range(int(line)):
        begun = time.perf_counter_ns()
        pid = os.posix_spawnp("true", ["true"], os.environ)
        os.waitpid(pid, 0)
        out.write("%d\n" % ((time.perf_counter_ns() - begun) // 1000))
    out.write("end\n")
    out.flush()
"#;

/// A job that spawns: where it is told to, and where it says how long that took.
fn spawner(policy: &str) -> (Sandbox, std::fs::File, std::path::PathBuf) {
    let sandbox = Sandbox::new();
    let settings = sandbox.path().join(".config/outlast");
    std::fs::create_dir_all(&settings).unwrap();
    std::fs::write(settings.join("policy.toml"), policy).unwrap();
    std::fs::write(sandbox.path().join("spawner.py"), SPAWNER).unwrap();
    let line = sandbox.path().join("orders");
    rustix::fs::mknodat(rustix::fs::CWD, &line, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let mut client = sandbox.client();
    let command = "python3 spawner.py orders times";
    client.tool("run_shell_command", json!({"command": command, "is_background": true, "pty": false}));
    client.hang_up();
    let orders = std::fs::OpenOptions::new().write(true).open(line).unwrap();
    let times = sandbox.path().join("times");
    (sandbox, orders, times)
}

#[test]
fn the_guard_adds_little_to_an_exec() {
    use std::io::Write;
    if !is_full() {
        return;
    }
    let mut free = spawner("[[rule]]\ndecision = \"deny\"\ntool = \"prune\"\n");
    let mut guarded = spawner(
        "[[rule]]\ndecision = \"deny\"\nprefix = \"rm\"\n[[rule]]\ndecision = \"deny\"\nprefix = \"git push\"\n",
    );
    for turn in 1..=TURNS {
        for job in [&mut free, &mut guarded] {
            job.1.write_all(format!("{SPAWNS}\n").as_bytes()).unwrap();
            crate::client::eventually("it has spawned", || {
                std::fs::read_to_string(&job.2).is_ok_and(|text| text.matches("end").count() >= turn)
            });
        }
    }
    let times = |job: &(Sandbox, std::fs::File, std::path::PathBuf)| -> Vec<u64> {
        let text = std::fs::read_to_string(&job.2).unwrap();
        let mut times: Vec<u64> = text.lines().filter_map(|line| line.parse().ok()).collect();
        times.sort_unstable();
        times
    };
    let (free, guarded) = (times(&free), times(&guarded));
    let at = |times: &[u64], share: usize| times[times.len() * share / 1000];
    eprintln!("microseconds for a spawn of true, {} each, in turns of {SPAWNS}:", free.len());
    for share in [0, 100, 500, 900, 990] {
        let (without, with) = (at(&free, share), at(&guarded, share));
        let (added, percent) = (with.cast_signed() - without.cast_signed(), with * 100 / without.max(1));
        eprintln!("  at {share} of 1000: {without} without, {with} with the guard: {added:+}, {percent} %");
    }
    assert!(free.len() == guarded.len() && free.len() == TURNS * SPAWNS);
}
