//! Lines between two programs, as bytes: what is not understood passes unchanged.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};

use outlast_job::{Failure, Kind};

/// The longest line that is accepted as a message.
const MAX_MESSAGE_BYTES: u64 = 256 << 20;

/// Reads the lines of a stream, each with its line end.
pub(crate) struct LineReader<R> {
    from: BufReader<R>,
}

impl<R: Read> LineReader<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from: BufReader::with_capacity(64 << 10, from) }
    }

    /// The next line; `None` at the end of the stream, or if a line is too long.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        let read = (&mut self.from).take(MAX_MESSAGE_BYTES).read_until(b'\n', &mut line);
        (read.is_ok() && !line.is_empty() && (line.len() as u64) < MAX_MESSAGE_BYTES).then_some(line)
    }
}

/// Starts the agent. It inherits our stderr, unless another is given.
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

/// The exit code for how the agent ended.
pub(crate) fn exit_code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}
