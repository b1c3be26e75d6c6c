//! Runs another program with a timeout: it gets its input, its output is bounded, and it is killed when the
//! time is up.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

/// The most output that is kept.
const MAX_OUTPUT_BYTES: usize = 4 << 20;
/// How long to wait for its output after its end: a process it left behind may hold the pipe.
const OUTPUT_GRACE: Duration = Duration::from_millis(500);

/// The result of a run.
#[derive(Debug)]
pub struct Ran {
    /// How it ended.
    pub status: ExitStatus,
    /// Its stdout.
    pub stdout: Vec<u8>,
    /// Its stderr.
    pub stderr: Vec<u8>,
}

impl Ran {
    /// The last line of its stderr, or how it ended.
    #[must_use]
    pub fn trouble(&self) -> String {
        let text = String::from_utf8_lossy(&self.stderr);
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        last.map_or_else(|| self.status.to_string(), |line| line.trim().to_owned())
    }
}

/// Runs a command with some input, in a process group of its own.
///
/// # Errors
/// In words: it could not be started, or did not end in time and was killed.
pub fn run(mut command: Command, input: &[u8], limit: Duration) -> Result<Ran, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|error| format!("{name} can't be run: {error}"))?;
    let group = Pid::from_child(&child);
    let (done, ended) = channel();
    let feed = child.stdin.take();
    let input = input.to_vec();
    std::thread::spawn(move || {
        // A program that does not read its input is fine.
        let _ = feed.map(|mut pipe| pipe.write_all(&input));
    });
    let (stdout, out_done) = keep(child.stdout.take());
    let (stderr, err_done) = keep(child.stderr.take());
    std::thread::spawn(move || done.send(child.wait()));
    let status = match ended.recv_timeout(limit) {
        Ok(status) => status.map_err(|error| format!("{name}: {error}"))?,
        Err(_) => {
            let _ = kill_process_group(group, Signal::KILL);
            return Err(format!("{name} did not end within {} ms and was killed", limit.as_millis()));
        }
    };
    let _ = out_done.recv_timeout(OUTPUT_GRACE);
    let _ = err_done.recv_timeout(OUTPUT_GRACE);
    let take =
        |kept: &Mutex<Vec<u8>>| kept.lock().map(|mut kept| std::mem::take(&mut *kept)).unwrap_or_default();
    Ok(Ran { status, stdout: take(&stdout), stderr: take(&stderr) })
}

type Kept = (Arc<Mutex<Vec<u8>>>, std::sync::mpsc::Receiver<()>);

/// Reads a pipe to its end in a thread, and keeps the start.
fn keep(pipe: Option<impl Read + Send + 'static>) -> Kept {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let ours = Arc::clone(&kept);
    let (done, ended) = channel();
    std::thread::spawn(move || {
        let Some(mut pipe) = pipe else { return };
        let mut piece = [0; 8192];
        while let Ok(n @ 1..) = pipe.read(&mut piece) {
            if let Ok(mut kept) = ours.lock()
                && kept.len() < MAX_OUTPUT_BYTES
            {
                kept.extend_from_slice(&piece[..n]);
            }
        }
        let _ = done.send(());
    });
    (kept, ended)
}
