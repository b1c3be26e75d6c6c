//! Which ports a job listens on: sockets of its processes, matched with the kernel's list of listeners.
//!
//! The list comes over netlink, in one request for all processes in our network namespace. A process in
//! another network namespace is looked up through its `/proc/P/net` instead. Sockets are identified by their
//! inodes, so a port is never attributed to a job by its number alone.
//!
//! Like everything that reads `/proc`, this may block: do not use it in a thread that moves bytes.

use std::net::IpAddr;

use rustix::process::Pid;

use crate::procfs::Proc;

#[cfg(any(not(target_os = "linux"), outlast_portable))]
mod elsewhere;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) mod rows;

#[cfg(any(not(target_os = "linux"), outlast_portable))]
pub use elsewhere::{PortWatch, unix_listening};
#[cfg(all(target_os = "linux", not(outlast_portable)))]
pub use linux::{PortWatch, unix_listening};

/// A TCP port that a process listens on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its number.
    pub port: u16,
    /// The address it is bound to; all zeroes for any.
    pub address: IpAddr,
    /// Whether it is an IPv6 socket, which may serve IPv4 as well.
    pub ipv6: bool,
    /// The first process, parents before children, that holds the socket.
    pub pid: Pid,
    /// Its name.
    pub program: String,
}

/// A Unix socket that a process listens on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixPort {
    /// Its path; with an `@` in front if it is an abstract name, not a file.
    pub path: String,
    /// The first process that holds the socket.
    pub pid: Pid,
    /// Its name.
    pub program: String,
}

/// Every TCP port that a process below `root` listens on, sorted by number.
#[must_use]
pub fn listening(root: Pid) -> Vec<Port> {
    let mut watch = PortWatch::new(root);
    watch.refresh();
    watch.ports().to_vec()
}

/// Every TCP port that a process or one below it listens on, sorted by number.
#[must_use]
pub fn listening_with(process: &Proc) -> Vec<Port> {
    let mut processes = vec![process.clone()];
    processes.extend(crate::procfs::descendants(process.pid).into_iter().filter(Proc::is_alive));
    PortWatch::new(process.pid).held_by(&processes)
}
