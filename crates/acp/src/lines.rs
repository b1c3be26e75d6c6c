//! Lines between two programs, as bytes: what is not understood passes as it came.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};

use outlast_job::{Failure, Kind};

/// A message longer than this is no message.
const LONGEST: u64 = 256 << 20;

/// The lines of a stream, each with its end; none at the end of it all.
pub(crate) struct LineReader<R> {
    from: BufReader<R>,
}

impl<R: Read> LineReader<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from: BufReader::with_capacity(64 << 10, from) }
    }

    /// The next line; none at the end, and when a line never ends.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        let read = (&mut self.from).take(LONGEST).read_until(b'\n', &mut line);
        (read.is_ok() && !line.is_empty() && (line.len() as u64) < LONGEST).then_some(line)
    }
}

/// Starts the agent behind us. Its stderr is ours, unless somebody listens to it.
pub(crate) fn start_agent(command: &[String], stderr: Stdio) -> Result<Child, Failure> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::usage("there is no agent to start")
            .hint("name it after --, for example: outlast acp sidecar -- gemini --acp"));
    };
    let mut agent = Command::new(program);
    agent.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
    agent.spawn().map_err(|error| {
        Failure::new(Kind::CannotStart, format!("the agent {program:?} can't be started: {error}"))
            .hint("check that it is installed, and give its path if it is not on PATH")
    })
}

/// The exit code that stands for how the agent ended.
pub(crate) fn exit_code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}
