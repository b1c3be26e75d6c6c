//! Ports by netlink and `/proc`.

use std::collections::HashMap;

use rustix::process::Pid;

use super::rows::{Listener, parse_row};
use super::{Port, UnixPort};
use crate::procfs::{Proc, ProcReader};

/// Every Unix socket with a name that a process below `root` listens on.
#[must_use]
pub fn unix_listening(root: Pid) -> Vec<UnixPort> {
    let listeners = crate::sockdiag::SockDiag::open().and_then(|mut diag| diag.unix_listeners());
    let Ok(listeners) = listeners else { return Vec::new() };
    let mut reader = ProcReader::new();
    let mut processes = Vec::new();
    reader.descendants(root, &mut processes);
    let wanted: HashMap<u64, usize> =
        listeners.iter().enumerate().map(|(at, listener)| (u64::from(listener.inode), at)).collect();
    let mut found = Vec::new();
    let mut taken = vec![false; listeners.len()];
    for process in &processes {
        for at in sockets(&mut reader, process.pid).iter().filter_map(|inode| wanted.get(inode)) {
            if !std::mem::replace(&mut taken[*at], true) {
                let program = reader.program(process.pid, &process.comm);
                found.push(UnixPort { path: unix_path(&listeners[*at].name), pid: process.pid, program });
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

fn unix_path(name: &[u8]) -> String {
    match name {
        [0, abstract_name @ ..] => format!("@{}", String::from_utf8_lossy(abstract_name)),
        path => String::from_utf8_lossy(path.strip_suffix(b"\0").unwrap_or(path)).into_owned(),
    }
}

/// Tracks the ports of one job.
///
/// A refresh walks the job's processes and asks for the machine's listeners. Only if one of the two has
/// changed does it go through the descriptors of every process. It is cheap enough for every 50 ms while a
/// client waits.
#[derive(Debug)]
pub struct PortWatch {
    root: Pid,
    reader: ProcReader,
    diag: Option<crate::sockdiag::SockDiag>,
    /// What the last full search was based on.
    basis: Basis,
    ports: Vec<Port>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Basis {
    processes: Vec<(Pid, u64)>,
    listeners: Vec<Listener>,
}

impl PortWatch {
    /// For the job whose keeper is `root`: everything below it.
    #[must_use]
    pub fn new(root: Pid) -> Self {
        Self { root, reader: ProcReader::new(), diag: None, basis: Basis::default(), ports: Vec::new() }
    }

    /// The ports as of the last refresh.
    #[must_use]
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// Searches again; true if the ports have changed.
    pub fn refresh(&mut self) -> bool {
        let mut processes = Vec::new();
        self.reader.descendants(self.root, &mut processes);
        processes.retain(Proc::is_alive);
        let listeners = self.listeners(&processes);
        let basis = Basis {
            processes: processes.iter().map(|process| (process.pid, process.start_time)).collect(),
            listeners,
        };
        if basis == self.basis {
            return false;
        }
        let ports = self.match_sockets(&processes, &basis.listeners);
        self.basis = basis;
        let changed = ports != self.ports;
        self.ports = ports;
        changed
    }

    /// The ports that some processes hold.
    pub(super) fn held_by(&mut self, processes: &[Proc]) -> Vec<Port> {
        let listeners = self.listeners(processes);
        self.match_sockets(processes, &listeners)
    }

    fn match_sockets(&mut self, processes: &[Proc], listeners: &[Listener]) -> Vec<Port> {
        let mut wanted: HashMap<u64, &Listener> =
            listeners.iter().map(|listener| (listener.inode, listener)).collect();
        let mut ports = Vec::new();
        for process in processes {
            if wanted.is_empty() {
                break;
            }
            for inode in sockets(&mut self.reader, process.pid) {
                // Removed, because workers that were forked later hold the same socket.
                let Some(listener) = wanted.remove(&inode) else { continue };
                ports.push(Port {
                    port: listener.port,
                    address: listener.address,
                    ipv6: listener.address.is_ipv6(),
                    pid: process.pid,
                    program: self.reader.program(process.pid, &process.comm),
                });
            }
        }
        ports.sort_by_key(|port| (port.port, port.address));
        ports
    }

    /// The listeners of every network namespace that the job has a process in.
    fn listeners(&mut self, processes: &[Proc]) -> Vec<Listener> {
        let mut listeners = Vec::new();
        let mut networks: Vec<Vec<u8>> = Vec::new();
        let ours = self.reader.link(format_args!("/proc/self/ns/net")).map(<[u8]>::to_vec).ok();
        for process in processes {
            let pid = process.pid;
            let link = self.reader.link(format_args!("/proc/{pid}/ns/net"));
            // If it may not be inspected, it is most likely our own: setuid programs share it.
            let Some(network) = link.map(<[u8]>::to_vec).ok().or_else(|| ours.clone()) else { continue };
            if networks.contains(&network) {
                continue;
            }
            let by_netlink = if Some(&network) == ours.as_ref() { self.by_netlink() } else { None };
            listeners.extend(by_netlink.unwrap_or_else(|| self.by_proc(pid)));
            networks.push(network);
        }
        listeners.sort_unstable();
        listeners
    }

    fn by_netlink(&mut self) -> Option<Vec<Listener>> {
        let mut diag = self.diag.take().or_else(|| crate::sockdiag::SockDiag::open().ok())?;
        let found = diag.tcp_listeners().ok()?;
        self.diag = Some(diag);
        let listener = |found: crate::sockdiag::TcpListener| Listener {
            inode: found.inode.into(),
            port: found.port,
            address: found.address,
        };
        Some(found.into_iter().map(listener).collect())
    }

    fn by_proc(&mut self, pid: Pid) -> Vec<Listener> {
        let mut found = Vec::new();
        for table in ["tcp", "tcp6"] {
            if let Ok(table) = self.reader.read(format_args!("/proc/{pid}/net/{table}")) {
                found.extend(String::from_utf8_lossy(table).lines().filter_map(parse_row));
            }
        }
        found
    }
}

/// The inodes of a process's sockets.
fn sockets(reader: &mut ProcReader, pid: Pid) -> Vec<u64> {
    let mut fds = Vec::new();
    if reader.numbers(format_args!("/proc/{pid}/fd"), |fd| fds.push(fd)).is_err() {
        return Vec::new();
    }
    fds.into_iter()
        .filter_map(|fd| {
            let link = reader.link(format_args!("/proc/{pid}/fd/{fd}")).ok()?;
            crate::procfs::inode_in(link, b"socket:[")
        })
        .collect()
}
