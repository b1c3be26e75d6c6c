//! What guards: secrets, sandbox, limits.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{bytes, duration};

/// Answer a password prompt of a job.
///
/// You are asked in your own terminal, and nothing is shown there. What you type is in no log, event or answer, also if
/// the program prints it all the same. Refused unless the job is at a prompt that hides what is typed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast secret deploy
  pass show server/root | outlast secret deploy --stdin")]
pub(crate) struct SecretArgs {
    /// Its handle or name.
    pub(crate) job: String,
    /// Take the first line of standard input.
    #[arg(long)]
    pub(crate) stdin: bool,
    /// Type it wherever the job is, even if it may be shown.
    #[arg(long)]
    pub(crate) force: bool,
}

/// Who builds a sandbox.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum SandboxBy {
    /// The kernel alone: Landlock and seccomp.
    Kernel,
    /// Bubblewrap: namespaces and bind mounts, and the same system call filter.
    Bwrap,
}

/// What a sandbox may reach.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum NetworkArg {
    /// Nothing.
    Off,
    /// A loopback of its own: itself, and nobody else.
    Loopback,
    /// Everything.
    On,
}

/// The walls around a job.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sandbox and limits")]
pub(crate) struct BoundsArgs {
    /// Run it in a sandbox: it writes only into its own folder, reads the system and tools but not your home, and has no
    /// network.
    #[arg(long, value_name = "BY", value_enum, num_args = 0..=1, default_missing_value = "kernel", require_equals = true)]
    pub(crate) sandbox: Option<SandboxBy>,
    /// In the sandbox: it may also write here.
    #[arg(long, value_name = "DIR", requires = "sandbox")]
    pub(crate) writable: Vec<PathBuf>,
    /// In the sandbox: it may also read here.
    #[arg(long, value_name = "DIR", requires = "sandbox")]
    pub(crate) readable: Vec<PathBuf>,
    /// In the sandbox: what it may reach [default: off].
    #[arg(long, value_name = "WHAT", value_enum, requires = "sandbox")]
    pub(crate) network: Option<NetworkArg>,
    /// In the sandbox: let it make Unix sockets; keepers refuse it all the same, other services may not.
    #[arg(long, requires = "sandbox")]
    pub(crate) unix_sockets: bool,
    /// At most so much memory.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) memory: Option<u64>,
    /// At most so many processes and threads.
    #[arg(long, value_name = "COUNT")]
    pub(crate) processes: Option<u64>,
    /// At most so many processors, for example 0.5; needs a control group.
    #[arg(long, value_name = "COUNT")]
    pub(crate) cpu: Option<f64>,
    /// At most so much CPU time for each of its processes.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) cpu_time: Option<Duration>,
}
