//! The process information calls of macOS (`libproc` and `sysctl`).
//!
//! **Untested**: this was written by its headers and is compiled by `cargo xtask check-targets`, but no Mac has run it yet.

use std::ffi::CStr;
use std::os::fd::AsFd;

use rustix::process::Pid;

use super::super::{Proc, State};

/// The most bytes of a command line that are read.
const MAX_ARGUMENTS: usize = 1 << 20;

/// The numbers of all processes.
pub(crate) fn pids() -> Vec<Pid> {
    let mut numbers = vec![0_i32; 4096];
    loop {
        let bytes = libc::c_int::try_from(size_of_val(numbers.as_slice())).unwrap_or(libc::c_int::MAX);
        // SAFETY: the kernel fills at most `bytes` bytes of the buffer, which outlives the call.
        #[expect(unsafe_code, reason = "libproc has no safe wrapper")]
        let found = unsafe { libc::proc_listallpids(numbers.as_mut_ptr().cast(), bytes) };
        let found = usize::try_from(found).unwrap_or(0);
        if found < numbers.len() {
            numbers.truncate(found);
            return numbers.into_iter().filter_map(Pid::from_raw).collect();
        }
        numbers.resize(numbers.len() * 2, 0);
    }
}

/// Asks for one of the structures that `proc_pidinfo` knows.
fn info<T>(pid: Pid, flavor: libc::c_int) -> Option<T> {
    let size = libc::c_int::try_from(size_of::<T>()).ok()?;
    // SAFETY: `T` is one of libproc's plain structures, for which all zeros are valid; the kernel fills at most its size.
    #[expect(unsafe_code, reason = "libproc has no safe wrapper")]
    unsafe {
        let mut info: T = std::mem::zeroed();
        let got = libc::proc_pidinfo(pid.as_raw_nonzero().get(), flavor, 0, (&raw mut info).cast(), size);
        (got == size).then_some(info)
    }
}

/// One process.
pub(crate) fn process(pid: Pid) -> Option<Proc> {
    let all: libc::proc_taskallinfo = match info(pid, libc::PROC_PIDTASKALLINFO) {
        Some(all) => all,
        // Another user's: what is told to everybody.
        None => {
            let known: libc::proc_bsdinfo = info(pid, libc::PROC_PIDTBSDINFO)?;
            return Some(from(pid, &known, 1));
        }
    };
    Some(from(pid, &all.pbsd, u32::try_from(all.ptinfo.pti_threadnum).unwrap_or(1)))
}

fn from(pid: Pid, known: &libc::proc_bsdinfo, threads: u32) -> Proc {
    let raw = |number: u32| i32::try_from(number).unwrap_or(0);
    // SAFETY: numbers only.
    #[expect(unsafe_code, reason = "rustix takes a session that can't be seen for an error")]
    let session = unsafe { libc::getsid(pid.as_raw_nonzero().get()) }.max(0);
    let has_terminal = known.e_tdev != u32::MAX && known.e_tdev != 0;
    Proc {
        pid,
        ppid: Pid::from_raw(raw(known.pbi_ppid)),
        pgrp: raw(known.pbi_pgid),
        session,
        tty_nr: if has_terminal { known.e_tdev.cast_signed() } else { 0 },
        tpgid: if has_terminal { raw(known.e_tpgid) } else { -1 },
        start_time: known.pbi_start_tvsec * 1_000_000 + known.pbi_start_tvusec,
        state: match known.pbi_status {
            libc::SIDL | libc::SRUN => State::Running,
            libc::SSLEEP => State::Sleeping,
            libc::SSTOP => State::Stopped,
            libc::SZOMB => State::Dead,
            _ => State::Other,
        },
        threads,
        comm: text(&known.pbi_comm),
    }
}

fn text(name: &[libc::c_char]) -> String {
    let bytes: Vec<u8> = name.iter().map(|byte| byte.cast_unsigned()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The CPU time that a process has used, in some unit; none if it is not told.
pub(crate) fn cpu_time(pid: Pid) -> Option<u64> {
    let task: libc::proc_taskinfo = info(pid, libc::PROC_PIDTASKINFO)?;
    Some(task.pti_total_user + task.pti_total_system)
}

/// The command line of a process, as it was started. The kernel gives the number of arguments, the program's path, some zeros, and
/// then the arguments, each with a zero behind it.
#[must_use]
pub fn arguments(pid: Pid) -> Option<Vec<Vec<u8>>> {
    let mut name = [libc::CTL_KERN, libc::KERN_PROCARGS2, pid.as_raw_nonzero().get()];
    let mut bytes = vec![0_u8; MAX_ARGUMENTS];
    let mut size = bytes.len();
    // SAFETY: the kernel reads `name` and fills at most `size` bytes of the buffer.
    #[expect(unsafe_code, reason = "sysctl has no safe wrapper")]
    let done = unsafe {
        let into = bytes.as_mut_ptr().cast();
        libc::sysctl(name.as_mut_ptr(), 3, into, &raw mut size, std::ptr::null_mut(), 0)
    };
    if done != 0 {
        return None;
    }
    let count = usize::try_from(i32::from_ne_bytes(*bytes.first_chunk::<4>()?)).ok()?;
    let rest = bytes.get(4..size)?;
    let path = rest.iter().position(|byte| *byte == 0)?;
    let start = path + rest[path..].iter().position(|byte| *byte != 0)?;
    Some(rest[start..].split(|byte| *byte == 0).take(count).map(<[u8]>::to_vec).collect())
}

/// The file that a process executes.
#[must_use]
pub fn program_file(pid: Pid) -> Option<String> {
    let mut path = vec![0_u8; libc::PROC_PIDPATHINFO_MAXSIZE as usize];
    let room = u32::try_from(path.len()).ok()?;
    // SAFETY: the kernel fills at most `room` bytes of the buffer.
    #[expect(unsafe_code, reason = "libproc has no safe wrapper")]
    let got = unsafe { libc::proc_pidpath(pid.as_raw_nonzero().get(), path.as_mut_ptr().cast(), room) };
    path.truncate(usize::try_from(got).ok().filter(|got| *got > 0)?);
    Some(String::from_utf8_lossy(&path).into_owned())
}

/// The random id of this boot.
#[must_use]
pub fn boot_id() -> Option<String> {
    let mut id = [0_u8; 64];
    let mut size = id.len();
    // SAFETY: the kernel fills at most `size` bytes of the buffer; the name ends with a zero.
    #[expect(unsafe_code, reason = "sysctl has no safe wrapper")]
    let done = unsafe {
        let into = id.as_mut_ptr().cast();
        libc::sysctlbyname(c"kern.bootsessionuuid".as_ptr(), into, &raw mut size, std::ptr::null_mut(), 0)
    };
    let text = CStr::from_bytes_until_nul(&id).ok()?;
    (done == 0).then(|| text.to_string_lossy().into_owned())
}

/// The process at the other end of a Unix socket.
#[must_use]
pub fn peer_of(socket: impl AsFd) -> Option<Pid> {
    let mut pid: libc::pid_t = 0;
    let mut size = size_of::<libc::pid_t>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes into `pid`, and both outlive the call.
    #[expect(unsafe_code, reason = "this option has no safe wrapper")]
    let done = unsafe {
        let into = (&raw mut pid).cast();
        libc::getsockopt(super::raw(&socket), libc::SOL_LOCAL, libc::LOCAL_PEERPID, into, &raw mut size)
    };
    Pid::from_raw(pid).filter(|_| done == 0)
}

/// The user at the other end of a Unix socket.
#[must_use]
pub fn peer_user(socket: impl AsFd) -> Option<u32> {
    let (mut user, mut group) = (0, 0);
    // SAFETY: the call fills two numbers.
    #[expect(unsafe_code, reason = "getpeereid has no safe wrapper")]
    let done = unsafe { libc::getpeereid(super::raw(&socket), &raw mut user, &raw mut group) };
    (done == 0).then_some(user)
}

/// Where things stand in a `socket_fdinfo` of `sys/proc_info.h`, which the `libc` crate does not have.
mod socket_info {
    pub(super) const FLAVOR: libc::c_int = 3;
    pub(super) const ROOM: usize = 1024;
    pub(super) const KIND: usize = 256;
    pub(super) const KIND_TCP: u32 = 2;
    pub(super) const LOCAL_PORT: usize = 268;
    pub(super) const VERSIONS: usize = 288;
    pub(super) const IS_V4: u8 = 1;
    pub(super) const LOCAL_ADDRESS: usize = 312;
    pub(super) const STATE: usize = 344;
    pub(super) const LISTENS: u32 = 1;
    /// `PROX_FDTYPE_SOCKET`.
    pub(super) const SOCKET: u32 = 2;
}

/// The TCP ports that a process listens on, and their addresses.
pub(crate) fn sockets_of(pid: Pid) -> Vec<(u16, std::net::IpAddr)> {
    const MAX_DESCRIPTORS: usize = 4096;
    let number = pid.as_raw_nonzero().get();
    // SAFETY: all zeros are a valid `proc_fdinfo`.
    #[expect(unsafe_code, reason = "libproc has no safe wrapper")]
    let mut open: Vec<libc::proc_fdinfo> = vec![unsafe { std::mem::zeroed() }; MAX_DESCRIPTORS];
    let room = libc::c_int::try_from(size_of_val(open.as_slice())).unwrap_or(0);
    // SAFETY: the kernel fills at most `room` bytes of the buffer.
    #[expect(unsafe_code, reason = "libproc has no safe wrapper")]
    let got = unsafe { libc::proc_pidinfo(number, libc::PROC_PIDLISTFDS, 0, open.as_mut_ptr().cast(), room) };
    open.truncate(usize::try_from(got).unwrap_or(0) / size_of::<libc::proc_fdinfo>());
    let sockets = open.iter().filter(|fd| fd.proc_fdtype == socket_info::SOCKET);
    sockets.filter_map(|fd| listener(number, fd.proc_fd)).collect()
}

fn listener(pid: i32, fd: i32) -> Option<(u16, std::net::IpAddr)> {
    use socket_info as at;
    let mut info = [0_u8; at::ROOM];
    // SAFETY: the kernel fills at most that many bytes of the buffer.
    #[expect(unsafe_code, reason = "libproc has no safe wrapper")]
    let got = unsafe {
        libc::proc_pidfdinfo(pid, fd, at::FLAVOR, info.as_mut_ptr().cast(), at::ROOM as libc::c_int)
    };
    if usize::try_from(got).ok()? <= at::STATE {
        return None;
    }
    let word = |from: usize| info.get(from..)?.first_chunk::<4>().copied().map(u32::from_ne_bytes);
    if word(at::KIND)? != at::KIND_TCP || word(at::STATE)? != at::LISTENS {
        return None;
    }
    // In the network's order, in the lower half of an int.
    let port = u16::from_be(word(at::LOCAL_PORT)? as u16);
    let address = *info.get(at::LOCAL_ADDRESS..)?.first_chunk::<16>()?;
    let address = if info[at::VERSIONS] & at::IS_V4 != 0 {
        std::net::Ipv4Addr::new(address[12], address[13], address[14], address[15]).into()
    } else {
        std::net::Ipv6Addr::from(address).into()
    };
    Some((port, address))
}

/// When a process with this start time was started, since 1970: start times are microseconds since then.
#[must_use]
pub fn wall_time_of(start_time: u64) -> std::time::Duration {
    std::time::Duration::from_micros(start_time)
}

/// The start time of a process that is started at a moment, since 1970.
#[must_use]
pub fn start_time_at(moment: std::time::Duration) -> u64 {
    u64::try_from(moment.as_micros()).unwrap_or(u64::MAX)
}
