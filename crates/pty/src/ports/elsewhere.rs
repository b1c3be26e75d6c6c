//! Ports by what the system tells of each process's sockets. Unix sockets are not told.

use rustix::process::Pid;

use super::{Port, UnixPort};
use crate::procfs::{Proc, descendants, sockets_of};

/// Tracks the ports of one job: every refresh asks anew.
#[derive(Debug)]
pub struct PortWatch {
    root: Pid,
    ports: Vec<Port>,
}

impl PortWatch {
    /// For the job whose keeper is `root`: everything below it.
    #[must_use]
    pub fn new(root: Pid) -> Self {
        Self { root, ports: Vec::new() }
    }

    /// The ports as of the last refresh.
    #[must_use]
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// Searches again; true if the ports have changed.
    pub fn refresh(&mut self) -> bool {
        let mut processes = descendants(self.root);
        processes.retain(Proc::is_alive);
        let ports = self.held_by(&processes);
        let changed = ports != self.ports;
        self.ports = ports;
        changed
    }

    /// The ports that some processes hold. A worker that was forked later holds its parent's: the first counts.
    #[expect(clippy::unused_self, reason = "its twin remembers what it has asked")]
    pub(super) fn held_by(&mut self, processes: &[Proc]) -> Vec<Port> {
        let mut ports: Vec<Port> = Vec::new();
        for process in processes {
            for (port, address) in sockets_of(process.pid) {
                if !ports.iter().any(|known| known.port == port && known.address == address) {
                    let program = process.comm.clone();
                    ports.push(Port { port, address, ipv6: address.is_ipv6(), pid: process.pid, program });
                }
            }
        }
        ports.sort_by_key(|port| (port.port, port.address));
        ports
    }
}

/// Unix sockets are not told.
#[must_use]
pub fn unix_listening(_root: Pid) -> Vec<UnixPort> {
    Vec::new()
}
