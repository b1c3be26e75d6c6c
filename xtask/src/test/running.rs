//! Runs one command of a suite within a time limit. A command that hangs is ended, with every process it started.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use outlast_testkit::processes;
use rustix::process::{Pid, Signal, kill_process_group};

/// How often a command that prints nothing is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long output may still come after a command has ended: what it left behind can hold its output open.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How long killed processes may take to be gone.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself; true with code 0.
    Ended(bool),
    /// Not within its time: it was killed.
    Killed,
}

/// Runs a command until it ends or its time is up. Its temporary files go into `scratch`, and whatever names that
/// folder in its arguments or environment belongs to it.
///
/// # Errors
/// When it cannot be run at all.
pub(crate) fn run(
    mut command: Command,
    scratch: &Path,
    deadline: Instant,
    mut on_line: impl FnMut(&str),
) -> Result<End, String> {
    command.env("TMPDIR", scratch).stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    let lines = lines_of(&mut child);
    let mut ended: Option<(bool, Instant)> = None;
    loop {
        match lines.recv_timeout(POLL_INTERVAL) {
            Ok(line) => on_line(&line),
            Err(RecvTimeoutError::Timeout) => {}
            // Not in a hurry: it has closed its output, and may still be at work.
            Err(RecvTimeoutError::Disconnected) if ended.is_none() => std::thread::sleep(POLL_INTERVAL),
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if ended.is_none()
            && let Some(status) = child.try_wait().map_err(|error| error.to_string())?
        {
            ended = Some((status.success(), Instant::now()));
        }
        match ended {
            Some((_, at)) if at.elapsed() > LAST_WORDS => break,
            None if Instant::now() >= deadline => break,
            Some(_) | None => {}
        }
    }
    end_all(&mut child, scratch);
    Ok(ended.map_or(End::Killed, |(success, _)| End::Ended(success)))
}

fn lines_of(child: &mut Child) -> Receiver<String> {
    let (send, lines) = channel();
    let stdout = child.stdout.take();
    std::thread::spawn(move || {
        let lines = stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).split(b'\n'));
        for line in lines.map_while(Result::ok) {
            if send.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                break;
            }
        }
    });
    lines
}

/// Ends whatever is left of a command: keepers and jobs have left its process group long ago.
fn end_all(child: &mut Child, scratch: &Path) {
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let _ = child.wait();
    let deadline = Instant::now() + END_TIMEOUT;
    loop {
        let left = processes::naming(scratch);
        left.iter().for_each(|process| processes::send(process, Signal::KILL));
        if left.is_empty() || Instant::now() >= deadline {
            break;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        command
    }

    fn run_within(line: &str, limit: Duration) -> (End, Vec<String>, tempfile::TempDir) {
        let scratch = tempfile::tempdir().unwrap();
        let mut lines = Vec::new();
        let end =
            run(shell(line), scratch.path(), Instant::now() + limit, |line| lines.push(line.to_owned()))
                .unwrap();
        (end, lines, scratch)
    }

    #[test]
    fn a_command_is_heard_to_its_end() {
        let (end, lines, _) = run_within("echo one; echo two; exit 3", Duration::from_secs(60));
        assert_eq!((end, lines), (End::Ended(false), vec!["one".into(), "two".into()]));
        assert_eq!(run_within("true", Duration::from_secs(60)).0, End::Ended(true));
    }

    #[test]
    fn a_command_that_hangs_is_ended_with_all_that_it_started() {
        // The second sleeper is in a session of its own, as a keeper is.
        let line = "echo begun; setsid sleep 1000 & sleep 1000";
        let (end, lines, scratch) = run_within(line, Duration::from_millis(300));
        assert_eq!((end, lines), (End::Killed, vec!["begun".into()]));
        assert!(processes::naming(scratch.path()).is_empty());
    }

    #[test]
    fn what_a_command_leaves_behind_does_not_hold_it_up() {
        let began = Instant::now();
        let (end, _, scratch) = run_within("setsid sleep 1000 & exit 0", Duration::from_secs(60));
        assert_eq!(end, End::Ended(true));
        assert!(began.elapsed() < Duration::from_secs(30) && processes::naming(scratch.path()).is_empty());
    }
}
