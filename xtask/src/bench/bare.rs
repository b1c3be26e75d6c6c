//! The floor: no keeper at all, the caller forks by itself and reads.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use outlast_pty::{Command, Pty, SessionLeader, Size, Stdio};
use rustix::process::{Pid, WaitOptions, waitpid};

/// A command on a terminal or pipes of our own.
pub(super) struct Bare {
    pid: Pid,
    reads: OwnedFd,
    types: OwnedFd,
}

impl Bare {
    /// Starts it.
    pub(super) fn start(argv: &[&str], terminal: bool) -> Result<Self, String> {
        let say = |error: rustix::io::Errno| error.to_string();
        let (stdio, reads, types) = if terminal {
            let pty = Pty::open(Size::default()).map_err(say)?;
            rustix::io::ioctl_fionbio(&pty.master, false).map_err(say)?;
            let types = pty.master.try_clone().map_err(|error| error.to_string())?;
            (Stdio::Terminal(pty.slave), pty.master, types)
        } else {
            let pipe = || rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(say);
            let ((stdin, types), (reads, stdout)) = (pipe()?, pipe()?);
            let stderr = stdout.try_clone().map_err(|error| error.to_string())?;
            let _ = rustix::pipe::fcntl_setpipe_size(&reads, 256 << 10);
            (Stdio::Pipes { stdin, stdout, stderr }, reads, types)
        };
        let command = Command {
            argv: argv.iter().map(OsString::from).collect(),
            cwd: Path::new("/").into(),
            env: std::env::vars_os().collect(),
            stdio,
            session_leader: SessionLeader::Command,
            confinement: outlast_pty::spawn::Confinement::default(),
        };
        let pid = command.spawn().map_err(|error| error.to_string())?;
        Ok(Self { pid, reads, types })
    }

    /// Reads until the text has come at the end of a piece, or all there is.
    pub(super) fn read_until(&self, end: Option<&str>) -> usize {
        self.read_into(end, None)
    }

    /// The same, and writes what it reads to a file.
    fn read_into(&self, end: Option<&str>, kept: Option<&std::fs::File>) -> usize {
        let mut piece = vec![0; 64 << 10];
        let (mut total, mut tail) = (0, Vec::new());
        loop {
            match rustix::io::read(&self.reads, piece.as_mut_slice()) {
                Ok(0) | Err(rustix::io::Errno::IO) => return total,
                Ok(n) => {
                    total += n;
                    if let Some(mut kept) = kept {
                        let _ = kept.write_all(&piece[..n]);
                    }
                    if let Some(end) = end {
                        // What was read before matters only where the mark was cut in two.
                        tail.extend_from_slice(&piece[n.saturating_sub(64)..n]);
                        tail.drain(..tail.len().saturating_sub(64));
                        if tail.windows(end.len()).any(|window| window == end.as_bytes()) {
                            return total;
                        }
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return total,
            }
        }
    }

    /// Reads a little until the text has come; gives what was read.
    pub(super) fn read_text(&self, end: &str) -> String {
        let (mut text, mut piece) = (Vec::new(), [0; 4096]);
        while !text.windows(end.len()).any(|window| window == end.as_bytes()) {
            match rustix::io::read(&self.reads, piece.as_mut_slice()) {
                Ok(n) if n > 0 => text.extend_from_slice(&piece[..n]),
                Err(rustix::io::Errno::INTR) => {}
                Ok(_) | Err(_) => break,
            }
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Types a line.
    pub(super) fn type_line(&self, text: &str) {
        let _ = rustix::io::write(self.types.as_fd(), format!("{text}\n").as_bytes());
    }

    /// Ends it.
    pub(super) fn end(self) {
        let _ = rustix::process::kill_process(self.pid, rustix::process::Signal::KILL);
        self.reap();
    }

    /// Waits for its end.
    pub(super) fn reap(self) {
        drop(self.types);
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }
}

/// How long a flood takes to be read, and nothing else: from a terminal, or from a pipe into a file.
pub(super) fn flood(argv: &[&str], kept: Option<&Path>, end: &str) -> Result<Duration, String> {
    let file = kept.map(std::fs::File::create).transpose().map_err(|error| error.to_string())?;
    let began = Instant::now();
    let bare = Bare::start(argv, kept.is_none())?;
    bare.read_into(Some(end), file.as_ref());
    let took = began.elapsed();
    bare.type_line("");
    bare.read_until(None);
    bare.reap();
    Ok(took)
}

/// Start to end of a short command on a terminal, with its output and code; and how much it printed.
pub(super) fn round_trip(argv: &[&str]) -> Result<(Duration, usize), String> {
    let began = Instant::now();
    let bare = Bare::start(argv, true)?;
    let printed = bare.read_until(None);
    bare.reap();
    Ok((began.elapsed(), printed))
}
