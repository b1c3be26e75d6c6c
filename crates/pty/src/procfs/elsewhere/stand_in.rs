//! Stands in for another system's process information calls, to test the portable twins on Linux. It tells no more of a process
//! than those do.

use std::os::fd::AsFd;

use rustix::process::Pid;

use super::super::stat_line::parse_stat;
use super::super::{Proc, number};

/// The numbers of all processes.
pub(crate) fn pids() -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let named = entries.flatten().filter_map(|entry| number(entry.file_name().as_encoded_bytes()));
    named.filter_map(Pid::from_raw).collect()
}

/// One process.
pub(crate) fn process(pid: Pid) -> Option<Proc> {
    parse_stat(&std::fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?)
}

/// The CPU time that a process has used, in some unit; none if it is not told.
pub(crate) fn cpu_time(pid: Pid) -> Option<u64> {
    let line = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let fields: Vec<&str> = line.get(line.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
    Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
}

/// The command line of a process, as it was started.
#[must_use]
pub fn arguments(pid: Pid) -> Option<Vec<Vec<u8>>> {
    let bytes = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).ok()?;
    let text = bytes.strip_suffix(&[0]).unwrap_or(&bytes);
    Some(text.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect())
}

/// The file that a process executes.
#[must_use]
pub fn program_file(pid: Pid) -> Option<String> {
    let link = std::fs::read_link(format!("/proc/{}/exe", pid.as_raw_nonzero())).ok()?;
    let path = link.to_string_lossy();
    Some(path.strip_suffix(" (deleted)").unwrap_or(&path).to_owned())
}

/// When this machine was started, which tells one boot from another.
#[must_use]
pub fn boot_id() -> Option<String> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("btime ")).map(|time| format!("boot-{}", time.trim()))
}

fn credentials(socket: &impl AsFd) -> Option<libc::ucred> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes into `peer`, and both outlive the call.
    #[expect(unsafe_code, reason = "stands in for getpeereid and LOCAL_PEERPID")]
    let done = unsafe {
        let into = (&raw mut peer).cast();
        libc::getsockopt(super::raw(socket), libc::SOL_SOCKET, libc::SO_PEERCRED, into, &raw mut size)
    };
    (done == 0).then_some(peer)
}

/// The process at the other end of a Unix socket.
#[must_use]
pub fn peer_of(socket: impl AsFd) -> Option<Pid> {
    credentials(&socket).and_then(|peer| Pid::from_raw(peer.pid))
}

/// The user at the other end of a Unix socket.
#[must_use]
pub fn peer_user(socket: impl AsFd) -> Option<u32> {
    credentials(&socket).map(|peer| peer.uid)
}

/// The TCP ports that a process listens on, and their addresses.
pub(crate) fn sockets_of(pid: Pid) -> Vec<(u16, std::net::IpAddr)> {
    let pid = pid.as_raw_nonzero();
    let Ok(fds) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let links = fds.flatten().filter_map(|fd| std::fs::read_link(fd.path()).ok());
    let inodes: Vec<u64> = links
        .filter_map(|link| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok())
        .collect();
    let table = |name| std::fs::read_to_string(format!("/proc/{pid}/net/{name}")).unwrap_or_default();
    let rows = table("tcp") + &table("tcp6");
    let listeners = rows.lines().filter_map(crate::ports::rows::parse_row);
    listeners.filter(|row| inodes.contains(&row.inode)).map(|row| (row.port, row.address)).collect()
}
