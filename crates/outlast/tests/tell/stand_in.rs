//! An agent submits a command to its own pane and is woken, with a stand-in for the agent.

use std::time::Duration;

use outlast_testkit::{TEST_TIMEOUT, eventually};

use super::panes::Server;
use super::sandbox;

/// Submits a command to its own pane, notes how long that took, and how long calls of tmux itself take before and
/// after it; then obeys and notes each line that is typed. Its command is silent for less than the three checks that a
/// still screen takes: as long as them, and which of the two is first is anybody's guess.
const AGENT: &str = r#"
import os, subprocess, sys, time
notes = open(sys.argv[1], 'a', buffering=1)
def timed(word, call):
    started = time.time_ns()
    subprocess.run(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    notes.write(f'{word} {(time.time_ns() - started) // 1000000}\n')
def bare():
    for _ in range(3): timed('bare', ['tmux', 'send-keys', '-t', os.environ['TMUX_PANE'], ''])
bare()
submit = [os.environ['OUTLAST'], 'tmux', 'submit', '--prompt', '^agent: ']
timed('back', [*submit, '--', 'sleep 2; echo done'])
bare()
while True:
    line = input('agent: ')
    notes.write(f'got {time.time_ns()} {line}\n')
    if not line.startswith('[SYSTEM'):
        subprocess.run(line, shell=True)
        notes.write(f'did {time.time_ns()}\n')
"#;

#[test]
fn an_agent_submits_to_itself_and_is_woken_once() {
    let sandbox = sandbox();
    let notes = sandbox.root().join("notes");
    let script = sandbox.root().join("agent.py");
    std::fs::write(&script, AGENT).unwrap();
    let command = ["python3", script.to_str().unwrap(), notes.to_str().unwrap()];
    let Some(server) = Server::start(&sandbox, &command) else { return };
    let read = || std::fs::read_to_string(&notes).unwrap_or_default();
    eventually("the agent is woken", TEST_TIMEOUT, || {
        let text = read();
        if text.contains("[SYSTEM COMMAND] Command complete. Resume.") {
            Ok(())
        } else {
            Err((text, server.shows()))
        }
    });
    let job = eventually("the job has ended", TEST_TIMEOUT, || {
        let jobs = sandbox.json(["jobs", "--all"]);
        let job = jobs["jobs"][0].clone();
        if job["status"] == "completed" { Ok(job) } else { Err(jobs) }
    });
    assert!(job["description"].as_str().is_none_or(|text| text.contains("sleep 2; echo done")), "{job}");
    let text = read();
    let took = |word: &str| -> u64 {
        text.lines().filter_map(|line| line.strip_prefix(word)?.parse().ok()).max().unwrap()
    };
    let (back, bare) = (took("back "), took("bare "));
    eprintln!("control came back after {back} ms; a call of tmux takes up to {bare} ms");
    // A hundred milliseconds; where a bare call of tmux takes more than ten, the machine is busy with other things.
    assert!(
        back < 100.max(10 * bare),
        "control came back after {back} ms, where tmux itself takes {bare} ms"
    );
    let times = |prefix: &str| -> Vec<u64> {
        let stamps =
            text.lines().filter_map(|line| line.strip_prefix(prefix)?.split(' ').next()?.parse().ok());
        stamps.collect()
    };
    let (got, did) = (times("got "), times("did "));
    assert_eq!((got.len(), did.len()), (2, 1), "{text}");
    let stood = Duration::from_nanos(got[1] - did[0]);
    assert!(stood >= Duration::from_millis(1900), "woken {stood:?} after the output");
    assert!(server.shows().contains("done"));
}

/// A full-screen agent: takes keys, shows a spinner for ever if asked to, and a bar for a while after Enter.
const FULL_SCREEN: &str = r#"
import sys, tty, time, threading
notes, spin = open(sys.argv[1], 'a', buffering=1), sys.argv[2] == 'spin'
tty.setraw(0)
lock, line = threading.Lock(), ''
def show(row, text):
    with lock:
        sys.stdout.write(f'\x1b[{row};1H\x1b[K{text}\x1b[20;{3 + len(line)}H'); sys.stdout.flush()
def spinner():
    i = 0
    while True:
        i += 1; show(1, 'spin ' + '|/-\\'[i % 4]); time.sleep(0.03)
def bar():
    for i in range(41):
        show(3, '#' * i); time.sleep(0.05)
    notes.write(f'bar {time.time_ns()}\n')
show(19, '─' * 90)
show(21, '─' * 90)
show(20, '> ')
if spin: threading.Thread(target=spinner, daemon=True).start()
while True:
    c = sys.stdin.read(1)
    if c in '\r\n':
        notes.write(f'got {time.time_ns()} {line}\n')
        if line.startswith('build'): threading.Thread(target=bar, daemon=True).start()
        line = ''
    else:
        line += c
    show(20, '> ' + line)
"#;

fn full_screen(spin: &str, more: &[&str]) -> Option<(u64, u64, String)> {
    let sandbox = sandbox();
    let notes = sandbox.root().join("notes");
    let script = sandbox.root().join("agent.py");
    std::fs::write(&script, FULL_SCREEN).unwrap();
    let command = ["python3", script.to_str().unwrap(), notes.to_str().unwrap(), spin];
    let server = Server::start(&sandbox, &command)?;
    server.wait_for("> ");
    let job = server.submit(&sandbox, more, "build");
    let ended = sandbox.wait_for_end(job);
    let text = eventually("the notice", TEST_TIMEOUT, || {
        let text = std::fs::read_to_string(&notes).unwrap_or_default();
        if text.contains("[SYSTEM") { Ok(text) } else { Err(text) }
    });
    let stamp = |prefix: &str| {
        let line = text.lines().rfind(|line| line.starts_with(prefix)).unwrap();
        line.split(' ').nth(1).unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(text.lines().filter(|line| line.contains("[SYSTEM")).count(), 1, "{text}");
    Some((stamp("bar "), stamp("got "), ended["exit_code"].to_string()))
}

#[test]
fn it_is_not_done_while_a_bar_moves() {
    let Some((bar, notice, code)) = full_screen("still", &[]) else { return };
    assert_eq!(code, "0");
    assert!(
        notice > bar + 200_000_000,
        "the notice came {} ms after the bar",
        (notice.max(bar) - bar) / 1_000_000
    );
}

#[test]
fn a_spinner_that_is_left_out_does_not_hold_it_back() {
    for left_out in [["--ignore", "spin ."], ["--ignore-row", "0"]] {
        let Some((bar, notice, code)) = full_screen("spin", &left_out) else { return };
        assert_eq!(code, "0");
        assert!(notice > bar, "the notice came before the bar ended");
    }
}
