//! Options of `run` for a sandbox and limits.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::values::{bytes, duration};

/// Who builds a sandbox.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum SandboxBy {
    /// The kernel alone: Landlock and seccomp.
    Kernel,
    /// Bubblewrap: namespaces and bind mounts, and the same system call filter.
    Bwrap,
}

/// What a sandbox may reach.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum NetworkArg {
    /// Nothing.
    Off,
    /// A loopback of its own: itself, and nobody else.
    Loopback,
    /// The hosts that --allow-host names, through a proxy.
    Hosts,
    /// Everything.
    On,
}

/// The walls around a job.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sandbox and limits")]
pub struct BoundsArgs {
    /// Run it in a sandbox: it writes only into its own folder, reads the system and tools but not your home,
    /// and has no network.
    #[arg(
        long,
        value_name = "BY",
        value_enum,
        num_args = 0..=1,
        default_missing_value = "kernel",
        require_equals = true
    )]
    pub sandbox: Option<SandboxBy>,
    /// In the sandbox: it may also write here.
    #[arg(long, value_name = "DIR", requires = "sandbox")]
    pub writable: Vec<PathBuf>,
    /// In the sandbox: it may also read here.
    #[arg(long, value_name = "DIR", requires = "sandbox")]
    pub readable: Vec<PathBuf>,
    /// In the sandbox: what it may reach [default: off].
    #[arg(long, value_name = "WHAT", value_enum, requires = "sandbox")]
    pub network: Option<NetworkArg>,
    /// With --network hosts: it may connect to this host, such as crates.io, *.npmjs.org:443 or example.com:*.
    #[arg(long, value_name = "HOST", requires = "sandbox")]
    pub allow_host: Vec<String>,
    /// In the sandbox: let it make Unix sockets; keepers refuse it all the same, other services may not.
    #[arg(long, requires = "sandbox")]
    pub unix_sockets: bool,
    /// At most this much memory.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub memory: Option<u64>,
    /// At most this many processes and threads.
    #[arg(long, value_name = "COUNT")]
    pub processes: Option<u64>,
    /// At most this many processors, for example 0.5; needs a control group.
    #[arg(long, value_name = "COUNT")]
    pub cpu: Option<f64>,
    /// At most this much CPU time for each of its processes.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub cpu_time: Option<Duration>,
}
