//! Which ports a job listens on: sockets of its processes, matched with the kernel's list of listeners.
//!
//! The list comes over netlink, in one request for all processes in our network namespace. A process in
//! another network namespace is looked up through its `/proc/P/net` instead. Sockets are identified by their
//! inodes, so a port is never attributed to a job by its number alone.
//!
//! Like everything that reads `/proc`, this may block: do not use it in a thread that moves bytes.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rustix::process::Pid;

use crate::procfs::{Proc, ProcReader};

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
    watch.ports
}

/// Every TCP port that a process or one below it listens on, sorted by number.
#[must_use]
pub fn listening_with(process: &Proc) -> Vec<Port> {
    let mut watch = PortWatch::new(process.pid);
    let mut processes = vec![process.clone()];
    let mut below = Vec::new();
    watch.reader.descendants(process.pid, &mut below);
    processes.extend(below.into_iter().filter(Proc::is_alive));
    let listeners = watch.listeners(&processes);
    watch.match_sockets(&processes, &listeners)
}

/// Every Unix socket with a name that a process below `root` listens on.
#[cfg(target_os = "linux")]
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

/// Sockets are unknown without a `/proc`.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn unix_listening(_root: Pid) -> Vec<UnixPort> {
    Vec::new()
}

#[cfg(target_os = "linux")]
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
    #[cfg(target_os = "linux")]
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

/// A listening socket, of any network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Listener {
    inode: u64,
    port: u16,
    address: IpAddr,
}

impl PortWatch {
    /// For the job whose keeper is `root`: everything below it.
    #[must_use]
    pub fn new(root: Pid) -> Self {
        Self {
            root,
            reader: ProcReader::new(),
            #[cfg(target_os = "linux")]
            diag: None,
            basis: Basis::default(),
            ports: Vec::new(),
        }
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

    #[cfg(target_os = "linux")]
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

    #[cfg(not(target_os = "linux"))]
    fn by_netlink(&mut self) -> Option<Vec<Listener>> {
        None
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

/// A row of `/proc/net/tcp` or `tcp6`, if it listens.
fn parse_row(row: &str) -> Option<Listener> {
    const LISTEN: &str = "0A";
    let mut fields = row.split_ascii_whitespace();
    let (address, port) = fields.nth(1)?.rsplit_once(':')?;
    if fields.nth(1)? != LISTEN {
        return None;
    }
    let port = u16::from_str_radix(port, 16).ok()?;
    let inode = fields.nth(5)?.parse().ok()?;
    // The address is printed as words in the machine's byte order.
    let word =
        |at: usize| u32::from_str_radix(address.get(at * 8..at * 8 + 8)?, 16).ok().map(u32::to_ne_bytes);
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (at, chunk) in bytes.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(at)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(Listener { inode, port, address })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn rows_of_the_kernel_tables_are_read() {
        let row = concat!(
            "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000",
            "     0        0 4711 1 0 100"
        );
        let expected = Listener { inode: 4711, port: 8080, address: IpAddr::V4(Ipv4Addr::LOCALHOST) };
        assert_eq!(parse_row(row), Some(expected));
        let row = concat!(
            "   1: 00000000000000000000000001000000:0016 00000000000000000000000000000000:0000",
            " 0A 00000000:00000000 00:00000000 00000000     0        0 12 1"
        );
        let expected = Listener { inode: 12, port: 22, address: IpAddr::V6(Ipv6Addr::LOCALHOST) };
        assert_eq!(parse_row(row), Some(expected));
    }

    #[test]
    fn connections_and_headings_are_not_listeners() {
        let heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
        assert_eq!(parse_row(heading), None);
        let connection =
            "   0: 0100007F:1F90 0100007F:A000 01 00000000:00000000 00:00000000 00000000 0 0 4711 1";
        assert_eq!(parse_row(connection), None);
        assert_eq!(parse_row(""), None);
    }
}
