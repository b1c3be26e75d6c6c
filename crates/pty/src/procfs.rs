//! What the system's table of processes says: their ids, their children, their start times. On Linux that is `/proc`.
//!
//! Pids are recycled, so a process that may end in the meantime is identified by its pid *and* its start
//! time. Everything here returns `None` or nothing if the process has ended, if the kernel refuses, and on
//! systems without a `/proc`: callers must treat that as "unknown", never as "does not exist".
//!
//! Any of these calls may block for as long as the kernel holds the process's locks (if it executes a file
//! from a dead network mount, for example). Never call them in a thread that moves bytes.

#[cfg(all(target_os = "linux", not(outlast_portable)))]
mod linux;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
mod numbers;
#[cfg(any(not(target_os = "linux"), outlast_portable))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod stat_line;
#[cfg(target_os = "linux")]
mod ticks;

use rustix::process::Pid;

#[cfg(any(not(target_os = "linux"), outlast_portable))]
use elsewhere as system;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
use linux as system;

#[cfg(any(not(target_os = "linux"), outlast_portable))]
pub(crate) use elsewhere::source::{cpu_time, sockets_of};
#[cfg(target_vendor = "apple")]
pub use elsewhere::source::{start_time_at, wall_time_of};
#[cfg(any(not(target_os = "linux"), outlast_portable))]
pub use elsewhere::{boot_id, find_in, numbers, pid_namespace};
#[cfg(all(target_os = "linux", not(outlast_portable)))]
pub(crate) use linux::inode_in;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
pub use numbers::{boot_id, find_in, numbers, pid_namespace};
pub(crate) use system::ProcReader;
pub use system::{
    arguments, descriptor_name, environment_has, everything, executes_our_program, hides_other_users,
    peer_of, peer_user, program_file, standard_descriptors, times_run,
};
#[cfg(target_os = "linux")]
pub use ticks::{start_time_at, wall_time_of};

/// What a process's main thread is doing, by the letter in its `stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Running, or ready to run.
    Running,
    /// Asleep until something happens.
    Sleeping,
    /// Asleep in the kernel and not interruptible: usually waiting for a disk.
    Disk,
    /// Stopped by a signal.
    Stopped,
    /// Stopped by a debugger.
    Traced,
    /// Ended but not yet reaped, or being torn down.
    Dead,
    /// Some other letter.
    Other,
}

/// A snapshot of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proc {
    /// Its id, which may be reused later.
    pub pid: Pid,
    /// Its parent; `None` if that is outside our pid namespace.
    pub ppid: Option<Pid>,
    /// Its process group; 0 if the group is outside our pid namespace.
    pub pgrp: i32,
    /// Its session; 0 when outside our pid namespace.
    pub session: i32,
    /// Its controlling terminal as a device number, 0 for none.
    pub tty_nr: i32,
    /// The foreground group of that terminal, -1 for none.
    pub tpgid: i32,
    /// When it started, in clock ticks since boot. Together with the pid it identifies a process.
    pub start_time: u64,
    /// What its main thread does.
    pub state: State,
    /// How many threads it has.
    pub threads: u32,
    /// The name of its main thread: the program's, cut to 15 bytes, unless it was changed.
    pub comm: String,
}

impl Proc {
    /// Whether it can still run code.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.state != State::Dead
    }
}

/// Reads `/proc/P/stat` of one process.
#[must_use]
pub fn stat(pid: Pid) -> Option<Proc> {
    ProcReader::new().stat(pid)
}

/// When a process started, in clock ticks since boot; `None` if there is no such process.
#[must_use]
pub fn start_time(pid: Pid) -> Option<u64> {
    stat(pid).map(|process| process.start_time)
}

/// The direct children of a process, of all its threads, zombies included.
///
/// The kernel does not guarantee anything about children that come or go in the meantime: look twice before
/// relying on it.
#[must_use]
pub fn children(pid: Pid) -> Vec<Pid> {
    let mut found = Vec::new();
    ProcReader::new().children(pid, &mut found);
    found
}

/// Every process below `root`, parents before their children; not `root` itself.
///
/// If `root` is a subreaper this is the whole job, including daemons that forked twice.
#[must_use]
pub fn descendants(root: Pid) -> Vec<Proc> {
    let mut found = Vec::new();
    ProcReader::new().descendants(root, &mut found);
    found
}

/// The most descendants that a walk returns: a fork bomb must not take down the keeper.
const MAX_DESCENDANTS: usize = 20_000;

/// A non-negative decimal number and nothing else.
#[cfg(target_os = "linux")]
pub(crate) fn number(digits: &[u8]) -> Option<i32> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_i32, |sum, digit| {
        let digit = digit.is_ascii_digit().then(|| i32::from(digit - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

/// Whether a process is the init of a command's namespaces: ours, and no part of the job.
#[cfg(all(target_os = "linux", not(outlast_portable)))]
#[must_use]
pub fn is_init(process: &Proc) -> bool {
    crate::confine::is_init(process)
}

/// Without namespaces there is none.
#[cfg(any(not(target_os = "linux"), outlast_portable))]
#[must_use]
pub fn is_init(_process: &Proc) -> bool {
    false
}

/// Walks from a process to its parent, and so on, while `each` returns true. It can ask for the arguments of
/// each process. Returns false if one ended before its parent was known: then there may be more ancestors
/// than were visited.
pub fn walk_up(from: Pid, mut each: impl FnMut(&Proc, &mut Arguments<'_>) -> bool) -> bool {
    let mut reader = ProcReader::new();
    let mut seen = Vec::new();
    let mut next = Some(from);
    while let Some(pid) = next.filter(|pid| !seen.contains(pid)) {
        let Some(process) = reader.stat(pid) else { return false };
        seen.push(pid);
        next = process.ppid;
        if !each(&process, &mut Arguments { reader: &mut reader, pid }) {
            return true;
        }
    }
    true
}

/// The arguments of a process, read on demand.
#[derive(Debug)]
pub struct Arguments<'a> {
    reader: &'a mut ProcReader,
    pid: Pid,
}

impl Arguments<'_> {
    /// All arguments, the program's name first; empty if the kernel does not say.
    pub fn read(&mut self) -> Vec<&[u8]> {
        let pid = self.pid;
        let Some(bytes) = self.reader.command_line(pid) else { return Vec::new() };
        bytes.strip_suffix(&[0]).unwrap_or(bytes).split(|byte| *byte == 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_os = "linux")]
    use stat_line::parse_stat;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_name_with_brackets_and_blanks_does_not_shift_the_fields() {
        let line = b"42 (a) b (c)) S 7 42 40 34817 42 4194560 1 2 3 4 5 6 7 8 20 0 3 0 991 1 2 3\n";
        let process = parse_stat(line).unwrap();
        assert_eq!(process.comm, "a) b (c)");
        assert_eq!(process.ppid, Pid::from_raw(7));
        assert_eq!((process.pgrp, process.session), (42, 40));
        assert_eq!((process.tty_nr, process.tpgid), (34817, 42));
        assert_eq!((process.threads, process.start_time), (3, 991));
        assert_eq!(process.state, State::Sleeping);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn truncated_lines_are_refused() {
        let line = b"42 (sh) S 7 42 40 34817 42 4194560 1 2 3 4 5 6 7 8 20 0 3 0 991";
        for end in 0..line.len() - 3 {
            let cut = parse_stat(&line[..end]);
            assert!(cut.is_none(), "{end}: {cut:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_plain_digits_are_numbers() {
        assert_eq!(number(b"0"), Some(0));
        assert_eq!(number(b"2147483647"), Some(i32::MAX));
        for bad in [&b""[..], b"-1", b"+1", b" 1", b"2147483648", b"1x", b".", b".."] {
            assert_eq!(number(bad), None, "{bad:?}");
        }
    }

    #[cfg(unix)]
    mod on_this_machine {
        use super::super::*;
        use std::process::{Child, Command, Stdio};

        /// Ends and reaps a child even if the test fails.
        struct Ended(Child);

        impl Drop for Ended {
            fn drop(&mut self) {
                let _ = self.0.kill();
                let _ = self.0.wait();
            }
        }

        fn pid_of(child: &Ended) -> Pid {
            Pid::from_child(&child.0)
        }

        fn a_sleeper() -> Ended {
            Ended(Command::new("sleep").arg("30").stdin(Stdio::null()).spawn().unwrap())
        }

        #[test]
        fn children_of_every_thread_are_found() {
            let here = a_sleeper();
            let elsewhere = std::thread::spawn(a_sleeper);
            let me = rustix::process::getpid();
            let elsewhere = elsewhere.join().unwrap();
            let found = children(me);
            assert!(found.contains(&pid_of(&here)) && found.contains(&pid_of(&elsewhere)), "{found:?}");
        }

        #[cfg(all(target_os = "linux", not(outlast_portable)))]
        #[test]
        fn the_slow_way_finds_the_same_children() {
            let child = a_sleeper();
            let mut found = Vec::new();
            ProcReader::new().children_by_parent(rustix::process::getpid(), &mut found);
            assert!(found.contains(&pid_of(&child)));
        }

        #[test]
        fn grandchildren_come_after_their_parents() {
            let mut shell = Command::new("sh");
            shell.args(["-c", "sleep 30 & echo started; wait"]).stdin(Stdio::null()).stdout(Stdio::piped());
            let mut shell = Ended(shell.spawn().unwrap());
            let mut said = [0; 8];
            std::io::Read::read_exact(shell.0.stdout.as_mut().unwrap(), &mut said).unwrap();
            let found = descendants(rustix::process::getpid());
            let place = |pid| found.iter().position(|process| process.pid == pid);
            let parent = place(pid_of(&shell)).unwrap();
            let child = found.iter().position(|process| process.ppid == Some(pid_of(&shell))).unwrap();
            let grandchild = found[child].pid;
            assert!(parent < child);
            assert!(start_time(grandchild) >= start_time(pid_of(&shell)));
            rustix::process::kill_process(grandchild, rustix::process::Signal::KILL).unwrap();
        }

        #[test]
        fn dead_processes_are_unknown() {
            let mut child = a_sleeper();
            let pid = pid_of(&child);
            assert!(stat(pid).unwrap().is_alive());
            child.0.kill().unwrap();
            child.0.wait().unwrap();
            assert_eq!(stat(pid), None);
            assert_eq!(children(pid), Vec::new());
        }

        #[test]
        fn the_boot_has_an_id() {
            assert!(boot_id().unwrap().len() > 9);
        }
    }
}
