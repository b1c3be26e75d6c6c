//! Which ports a job listens on: sockets of its processes, matched with the kernel's list of listeners.
//!
//! The list comes over netlink, in one question for all processes that share our network; a process in a
//! network of its own is asked through its `/proc/P/net` instead. Sockets are known by their inodes, so a port is
//! never ascribed to a job for its number alone.
//!
//! Like everything that reads `/proc`, not for a thread that moves bytes.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rustix::process::Pid;

use crate::procfs::{Proc, Reader};

/// A TCP port that a process listens on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its number.
    pub port: u16,
    /// The address it is bound to; all zeroes for any.
    pub address: IpAddr,
    /// Whether it is a socket of IPv6, which may serve IPv4 as well.
    pub ipv6: bool,
    /// The first process, parents before children, that holds the socket.
    pub pid: Pid,
    /// Its name.
    pub program: String,
}

/// A Unix socket that a process listens on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixPort {
    /// Its path; with an `@` in front when it is a name and no file.
    pub path: String,
    /// The first process that holds the socket.
    pub pid: Pid,
    /// Its name.
    pub program: String,
}

/// Every TCP port that a process below `root` listens on, in the order of their numbers.
#[must_use]
pub fn listening(root: Pid) -> Vec<Port> {
    let mut watch = Watch::new(root);
    watch.refresh();
    watch.ports
}

/// Every Unix socket with a name that a process below `root` listens on.
#[cfg(target_os = "linux")]
#[must_use]
pub fn unix_listening(root: Pid) -> Vec<UnixPort> {
    let listeners = crate::sockdiag::SockDiag::open().and_then(|mut diag| diag.unix_listeners());
    let Ok(listeners) = listeners else { return Vec::new() };
    let mut reader = Reader::new();
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

/// Nothing is known of sockets where there is no `/proc`.
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

/// Follows the ports of one job.
///
/// A look walks the job's processes and asks for the machine's listeners; only when one of the two has changed
/// does it go through the descriptors of every process. Cheap enough for every 50 ms while somebody waits.
#[derive(Debug)]
pub struct Watch {
    root: Pid,
    reader: Reader,
    #[cfg(target_os = "linux")]
    diag: Option<crate::sockdiag::SockDiag>,
    /// What the last full look was based on.
    basis: Basis,
    ports: Vec<Port>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Basis {
    processes: Vec<(Pid, u64)>,
    listeners: Vec<Listener>,
}

/// A listening socket, of whichever network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Listener {
    inode: u64,
    port: u16,
    address: IpAddr,
}

impl Watch {
    /// For the job whose keeper is `root`: everything below it.
    #[must_use]
    pub fn new(root: Pid) -> Self {
        Self {
            root,
            reader: Reader::new(),
            #[cfg(target_os = "linux")]
            diag: None,
            basis: Basis::default(),
            ports: Vec::new(),
        }
    }

    /// The ports as of the last look.
    #[must_use]
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// Looks again; true when the ports are other ones than before.
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
                // Taken out, because workers that were forked later hold the same socket.
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

    /// The listeners of every network that the job has a process in.
    fn listeners(&mut self, processes: &[Proc]) -> Vec<Listener> {
        let mut listeners = Vec::new();
        let mut networks: Vec<Vec<u8>> = Vec::new();
        let ours = self.reader.link(format_args!("/proc/self/ns/net")).map(<[u8]>::to_vec).ok();
        for process in processes {
            let pid = process.pid;
            let link = self.reader.link(format_args!("/proc/{pid}/ns/net"));
            // Where we may not look, it is most likely our own: setuid programs share it.
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
fn sockets(reader: &mut Reader, pid: Pid) -> Vec<u64> {
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
    // The address is printed as words in the machine's own order.
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
        let row = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100";
        let expected = Listener { inode: 4711, port: 8080, address: IpAddr::V4(Ipv4Addr::LOCALHOST) };
        assert_eq!(parse_row(row), Some(expected));
        let row = "   1: 00000000000000000000000001000000:0016 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12 1";
        let expected = Listener { inode: 12, port: 22, address: IpAddr::V6(Ipv6Addr::LOCALHOST) };
        assert_eq!(parse_row(row), Some(expected));
    }

    #[test]
    fn connections_and_headings_are_no_listeners() {
        let heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
        assert_eq!(parse_row(heading), None);
        let connection =
            "   0: 0100007F:1F90 0100007F:A000 01 00000000:00000000 00:00000000 00000000 0 0 4711 1";
        assert_eq!(parse_row(connection), None);
        assert_eq!(parse_row(""), None);
    }
}
