//! Reads the sets of `poll`, `select` and `epoll`: which descriptors a sleeping thread waits for.
//!
//! `poll` and `select` keep their sets in the memory of the sleeping process, unchanged until the call
//! returns. `epoll` keeps its set in the kernel, which lists it in `fdinfo`.

use rustix::process::Pid;

use super::alarms::{Alarm, Width};
use super::fds::Descriptors;
use crate::procfs::ProcReader;

/// What a thread waits for.
#[derive(Debug)]
pub(super) struct Set {
    /// Descriptors that wake it when they are readable.
    pub(super) reads: Vec<i32>,
    /// Descriptors that wake it only for other reasons: writable, or connected.
    pub(super) others: Vec<i32>,
    /// When it wakes by itself.
    pub(super) alarm: Alarm,
    /// Whether there are more than were read.
    pub(super) truncated: bool,
}

/// Larger sets belong to servers, which do more than wait for a key.
const MAX_DESCRIPTORS: usize = 1024;

/// epoll sets inside epoll sets are followed to this depth.
pub(super) const MAX_EPOLL_DEPTH: u32 = 3;

impl Set {
    pub(super) fn new(alarm: Alarm) -> Self {
        Self { reads: Vec::new(), others: Vec::new(), alarm, truncated: false }
    }

    fn push(&mut self, fd: i32, readable: bool) {
        if self.reads.len() + self.others.len() >= MAX_DESCRIPTORS {
            self.truncated = true;
        } else if readable {
            self.reads.push(fd);
        } else {
            self.others.push(fd);
        }
    }
}

/// `poll(fds, count, milliseconds)`.
pub(super) fn poll(pid: Pid, args: &[u64; 6]) -> Option<Set> {
    poll_set(pid, args, Alarm::milliseconds(args[2] as i32))
}

/// `ppoll(fds, count, timespec, …)`.
pub(super) fn ppoll(pid: Pid, args: &[u64; 6], width: Width) -> Option<Set> {
    poll_set(pid, args, Alarm::relative(pid, args[2], width)?)
}

fn poll_set(pid: Pid, args: &[u64; 6], alarm: Alarm) -> Option<Set> {
    const ENTRY: usize = 8;
    let mut set = Set::new(alarm);
    let count = usize::try_from(args[1]).ok()?;
    let looked_at = count.min(MAX_DESCRIPTORS);
    set.truncated = count > looked_at;
    let mut entries = vec![0_u8; looked_at * ENTRY];
    read_memory(pid, args[0], &mut entries)?;
    for entry in entries.chunks_exact(ENTRY) {
        let fd = i32::from_ne_bytes(entry[..4].try_into().ok()?);
        let events = i16::from_ne_bytes(entry[4..6].try_into().ok()?);
        // The kernel skips negative descriptors.
        if fd >= 0 {
            set.push(fd, events & (libc::POLLIN | libc::POLLRDNORM | libc::POLLPRI) != 0);
        }
    }
    Some(set)
}

/// `select(count, read, write, except, timeval)`.
#[cfg(target_arch = "x86_64")]
pub(super) fn select(pid: Pid, args: &[u64; 6], width: Width) -> Option<Set> {
    select_set(pid, args, Alarm::relative_micros(pid, args[4], width)?)
}

/// `pselect6(count, read, write, except, timespec, …)`.
pub(super) fn pselect(pid: Pid, args: &[u64; 6], width: Width) -> Option<Set> {
    select_set(pid, args, Alarm::relative(pid, args[4], width)?)
}

fn select_set(pid: Pid, args: &[u64; 6], alarm: Alarm) -> Option<Set> {
    const WORD: usize = 8;
    let mut set = Set::new(alarm);
    let count = usize::try_from(args[0]).ok()?.min(4096);
    let mut bits = [0_u8; 4096 / 8];
    let bytes = count.div_ceil(8 * WORD) * WORD;
    for (pointer, readable) in [(args[1], true), (args[2], false), (args[3], false)] {
        if pointer == 0 || bytes == 0 {
            continue;
        }
        let bits = &mut bits[..bytes];
        read_memory(pid, pointer, bits)?;
        // On a big-endian machine the bytes of each word would be in the other order; we support none.
        for fd in (0..count).filter(|fd| bits[fd / 8] & (1 << (fd % 8)) != 0) {
            set.push(i32::try_from(fd).ok()?, readable);
        }
    }
    Some(set)
}

/// `epoll_wait(epoll, events, room, milliseconds)` and `epoll_pwait`.
pub(super) fn epoll_wait(reader: &mut ProcReader, pid: Pid, args: &[u64; 6]) -> Option<Set> {
    let mut set = Set::new(Alarm::milliseconds(args[3] as i32));
    epoll_members(reader, pid, args[0] as i32, MAX_EPOLL_DEPTH, &mut set)?;
    Some(set)
}

/// `epoll_pwait2(epoll, events, room, timespec, …)`.
pub(super) fn epoll_pwait2(reader: &mut ProcReader, pid: Pid, args: &[u64; 6]) -> Option<Set> {
    let mut set = Set::new(Alarm::relative(pid, args[3], Width::Native)?);
    epoll_members(reader, pid, args[0] as i32, MAX_EPOLL_DEPTH, &mut set)?;
    Some(set)
}

/// Adds the members of an epoll set.
pub(super) fn epoll_members(
    reader: &mut ProcReader,
    pid: Pid,
    epoll: i32,
    depth: u32,
    set: &mut Set,
) -> Option<()> {
    let info = reader.read(format_args!("/proc/{pid}/fdinfo/{epoll}")).ok()?;
    let mut members = Vec::new();
    for line in info.split(|byte| *byte == b'\n') {
        let Some(line) = line.strip_prefix(b"tfd:") else { continue };
        // tfd:  5 events:  19 data: …
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let fd = crate::procfs::number(words.next()?)?;
        let events =
            words.nth(1).and_then(|hex| u32::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok())?;
        members.push((fd, events));
        if members.len() > MAX_DESCRIPTORS {
            set.truncated = true;
            break;
        }
    }
    for (fd, events) in members {
        // A one-shot member that has fired stays in the list without events, and wakes no one.
        let wanted = events & !(libc::EPOLLET | libc::EPOLLONESHOT | libc::EPOLLWAKEUP) as u32;
        let says_nothing = wanted & !(libc::EPOLLERR | libc::EPOLLHUP) as u32 == 0;
        if says_nothing && events & libc::EPOLLONESHOT as u32 != 0 {
            continue;
        }
        if depth > 0 && Descriptors::is_epoll(reader, pid, fd) {
            epoll_members(reader, pid, fd, depth - 1, set)?;
        } else {
            set.push(fd, wanted & (libc::EPOLLIN | libc::EPOLLRDNORM | libc::EPOLLPRI) as u32 != 0);
        }
    }
    Some(())
}

/// Copies from the memory of another process. `None` if that is refused, or the address is not mapped.
pub(super) fn read_memory(pid: Pid, address: u64, into: &mut [u8]) -> Option<()> {
    if into.is_empty() {
        return Some(());
    }
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: into.len() };
    // SAFETY: the local vector describes `into`, which is ours to write during the call. The remote one is
    // never dereferenced here: the kernel checks it against the other process's memory.
    #[expect(unsafe_code, reason = "process_vm_readv has no safe wrapper")]
    let n = unsafe {
        libc::process_vm_readv(pid.as_raw_nonzero().get(), &raw const local, 1, &raw const remote, 1, 0)
    };
    (usize::try_from(n).ok()? == into.len()).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn unmapped_memory_gives_none() {
        let mut room = [0; 8];
        let me = rustix::process::getpid();
        assert_eq!(read_memory(me, 8, &mut room), None);
        let number = 77_u64;
        assert_eq!(read_memory(me, &raw const number as u64, &mut room), Some(()));
        assert_eq!(u64::from_ne_bytes(room), 77);
    }

    #[test]
    fn a_poll_set_is_read() {
        let me = rustix::process::getpid();
        let entry = |fd, events| libc::pollfd { fd, events, revents: 0 };
        let fds = [entry(0, libc::POLLIN), entry(-1, libc::POLLIN), entry(9, libc::POLLOUT)];
        let set = poll(me, &[fds.as_ptr() as u64, 3, u64::from(u32::MAX), 0, 0, 0]).unwrap();
        assert_eq!((set.reads, set.others, set.alarm), (vec![0], vec![9], Alarm::Never));
        let set = poll(me, &[fds.as_ptr() as u64, 3, 500, 0, 0, 0]).unwrap();
        assert_eq!(set.alarm, Alarm::After(Duration::from_millis(500)));
    }

    #[test]
    fn a_select_set_is_read() {
        let me = rustix::process::getpid();
        let (read, write) = ([1_u64, 1 << 3], [1_u64 << 5, 0]);
        let clock = [4_i64, 0];
        let (read, write, clock) = (read.as_ptr() as u64, write.as_ptr() as u64, clock.as_ptr() as u64);
        let set = pselect(me, &[68, read, write, 0, clock, 0], Width::Native).unwrap();
        let four_seconds = Alarm::After(Duration::from_secs(4));
        assert_eq!((set.reads, set.others, set.alarm), (vec![0, 67], vec![5], four_seconds));
    }
}
