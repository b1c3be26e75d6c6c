//! What each thread of a process is doing, by the system call it sleeps in.

use std::collections::{HashMap, HashSet};

use rustix::io::Errno;
use rustix::process::Pid;

use super::alarms::{Alarm, Width};
use super::compat::{self, NativeCall};
use super::denied;
use super::fds::{Descriptors, Link, Outside, Source};
use super::sets::{self, Set};
use super::terminal::TtyIndex;
use crate::procfs::{Proc, ProcReader, State};

/// Scans the threads of processes, with a cache between samples.
#[derive(Debug)]
pub(super) struct ThreadScanner {
    pub(super) reader: ProcReader,
    pub(super) fds: Descriptors,
    /// Whether to avoid everything that needs ptrace rights.
    pub(super) hardened: bool,
    /// Threads that were parked at the last sample, by process (with its start time) and thread: how often
    /// they had run. A thread that has not run since is still parked. A JVM has dozens of them.
    parked: HashMap<(Pid, u64, Pid), u64>,
    /// Threads that only look after their runtime.
    runtime: HashSet<(Pid, u64, Pid)>,
    /// Whether processes of other users are hidden, once that was asked.
    hides_processes: Option<bool>,
}

/// What decides whether a thread can continue without input: the whole of it, for the claim that none can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Continues {
    /// Only when another thread of the job does, or someone types.
    WithOthers,
    /// When whoever is at the other end of this does: another process of the job, or not.
    With(Link),
    /// By a timer, by the network, by somebody else, or in a way that cannot be seen.
    ByItself,
}

/// A descriptor that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Watched {
    pub(super) fd: i32,
    pub(super) source: Source,
    /// Whether it is polled for input.
    pub(super) reads: bool,
}

/// What a thread is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// It is running, or ready to run.
    Running,
    /// It waits for a disk.
    Disk,
    /// It was stopped, by a signal or a debugger.
    Stopped,
    /// It waits for several descriptors, among them a terminal or a relay.
    Watches {
        call: &'static str,
        set: Vec<Watched>,
        alarm: Alarm,
        /// Whether the set was only inferred from the descriptors that the process holds.
        inferred: bool,
    },
    /// It is in a read of this terminal.
    Reads { call: &'static str, fd: i32, terminal: TtyIndex, inferred: bool },
    /// It is blocked writing its output.
    Writes { terminal: TtyIndex },
    /// It waits for a child to end.
    WaitsForChild,
    /// It waits for its own process: for a lock or a signal.
    Parked(Alarm),
    /// It waits for its own process, in a set that other threads can add to while it sleeps.
    Idles(Alarm),
    /// It waits for a timer.
    Sleeps(Alarm),
    /// It waits for another process or machine.
    WaitsOutside(Outside),
    /// None of the above.
    Other,
    /// The kernel does not say.
    Denied,
}

impl Doing {
    /// What it takes for it to continue. Whatever is not known for sure continues by itself.
    pub(super) fn continues(&self) -> Vec<Continues> {
        let by_alarm = |alarm: Alarm| match alarm {
            Alarm::Never => Continues::WithOthers,
            Alarm::Unknown | Alarm::Housekeeping | Alarm::After(_) | Alarm::In(_) => Continues::ByItself,
        };
        let outside = |outside: Outside| outside.link().map_or(Continues::ByItself, Continues::With);
        match self {
            Self::Running | Self::Disk | Self::Sleeps(_) | Self::Other | Self::Denied => {
                vec![Continues::ByItself]
            }
            // Its output will be read sooner or later.
            Self::Writes { .. } => vec![Continues::ByItself],
            Self::Parked(alarm) | Self::Idles(alarm) => vec![by_alarm(*alarm)],
            Self::Watches { inferred: true, .. } | Self::Reads { inferred: true, .. } => {
                vec![Continues::ByItself]
            }
            Self::Watches { set, alarm, inferred: false, .. } => {
                let members = set.iter().map(|member| match member.source {
                    Source::Terminal(_) | Source::Internal => Continues::WithOthers,
                    Source::Timer(alarm) => by_alarm(alarm),
                    // The programs there are the job's, and are looked at as well.
                    Source::Relay(_) => Continues::WithOthers,
                    Source::Soft => Continues::ByItself,
                    Source::External(it) => outside(it),
                });
                members.chain([by_alarm(*alarm)]).collect()
            }
            Self::Reads { inferred: false, .. } => vec![Continues::WithOthers],
            Self::WaitsOutside(Outside::Inner(_)) => vec![Continues::WithOthers],
            Self::WaitsOutside(it) => vec![outside(*it)],
            Self::Stopped | Self::WaitsForChild => vec![Continues::WithOthers],
        }
    }
}

/// A thread and what it does.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub(super) tid: Pid,
    pub(super) doing: Doing,
    /// Its CPU time, if it was read anyway.
    pub(super) processor_time: Option<u64>,
}

/// A process and what its threads do.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) process: Proc,
    pub(super) threads: Vec<Thread>,
}

/// How a thread's `syscall` file reads.
enum Call {
    Running,
    /// Its number, its arguments, and where the thread's stack and code are.
    Number(i64, [u64; 6], [u64; 2]),
    /// Asleep, but not in a system call: in a page fault, for example.
    Elsewhere,
}

/// Only this many threads of a process are scanned; the rest counts as busy.
const MAX_THREADS: usize = 256;

/// Threads of the JVM and of .NET that run no code of the program, by their names as the kernel cuts them.
const RUNTIME_THREADS: [&str; 12] = [
    "VM Thread",
    "VM Periodic Tas",
    "G1 Service",
    "Monitor Deflati",
    "C1 CompilerThre",
    "C2 CompilerThre",
    "Sweeper thread",
    "Service Thread",
    "Common-Cleaner",
    // Looks for the ends of children, and stays for a minute.
    "process reaper",
    "process reaper ",
    ".NET Tiered Com",
];

impl ThreadScanner {
    pub(super) fn new(hardened: bool) -> Self {
        Self {
            reader: ProcReader::new(),
            fds: Descriptors::new(),
            hardened,
            parked: HashMap::new(),
            runtime: HashSet::new(),
            hides_processes: None,
        }
    }

    /// Scans every thread of a process.
    pub(super) fn look(&mut self, process: Proc) -> Sample {
        let whole = match process.state {
            State::Running if process.threads <= 1 => Some(Doing::Running),
            State::Disk => Some(Doing::Disk),
            State::Stopped | State::Traced => Some(Doing::Stopped),
            State::Dead => return Sample { process, threads: Vec::new() },
            State::Running | State::Sleeping | State::Other => None,
        };
        if let Some(doing) = whole {
            let threads = vec![Thread { tid: process.pid, doing, processor_time: None }];
            return Sample { process, threads };
        }
        let mut tids = Vec::new();
        if process.threads <= 1 {
            tids.push(process.pid);
        } else if self.reader.threads(process.pid, &mut tids).is_err() {
            return Sample { process, threads: Vec::new() };
        }
        let mut threads = Vec::with_capacity(tids.len().min(MAX_THREADS));
        for tid in tids.iter().take(MAX_THREADS).copied() {
            if process.threads <= 1 {
                let doing = self.thread(&process, tid);
                threads.extend(doing.map(|doing| Thread { tid, doing, processor_time: None }));
            } else {
                threads.extend(self.one_of_many(&process, tid));
            }
        }
        if tids.len() > MAX_THREADS {
            threads.push(Thread { tid: process.pid, doing: Doing::Other, processor_time: None });
        }
        Sample { process, threads }
    }

    /// One of many threads. Most are parked, and were already parked at the last sample.
    fn one_of_many(&mut self, process: &Proc, tid: Pid) -> Option<Thread> {
        let (processor_time, runs) = self.schedstat(process.pid, tid).unzip();
        let key = (process.pid, process.start_time, tid);
        if runs.is_some() && self.parked.get(&key) == runs.as_ref() {
            return Some(Thread { tid, doing: Doing::Parked(Alarm::Never), processor_time });
        }
        let doing = match self.thread(process, tid)? {
            // It runs for what the program did before: a compiler of hot code, for example.
            Doing::Running | Doing::Disk if self.is_runtime_thread(key) => Doing::Parked(Alarm::Housekeeping),
            Doing::Parked(alarm) if alarm != Alarm::Never && self.is_runtime_thread(key) => {
                Doing::Parked(Alarm::Housekeeping)
            }
            doing @ (Doing::Running
            | Doing::Disk
            | Doing::Stopped
            | Doing::Watches { .. }
            | Doing::Reads { .. }
            | Doing::Writes { .. }
            | Doing::WaitsForChild
            | Doing::Parked(_)
            | Doing::Idles(_)
            | Doing::Sleeps(_)
            | Doing::WaitsOutside(_)
            | Doing::Other
            | Doing::Denied) => doing,
        };
        match runs {
            Some(runs) if doing == Doing::Parked(Alarm::Never) => self.parked.insert(key, runs),
            _ => self.parked.remove(&key),
        };
        Some(Thread { tid, doing, processor_time })
    }

    fn is_runtime_thread(&mut self, key: (Pid, u64, Pid)) -> bool {
        let (pid, _, tid) = key;
        if self.runtime.contains(&key) {
            return true;
        }
        let name = self.reader.read(format_args!("/proc/{pid}/task/{tid}/comm"));
        let is = |name: &[u8]| RUNTIME_THREADS.iter().any(|keeper| keeper.as_bytes() == name.trim_ascii());
        name.is_ok_and(is) && self.runtime.insert(key)
    }

    /// Whether a thread is known to look only after its runtime.
    pub(super) fn is_known_runtime_thread(&self, process: &Proc, tid: Pid) -> bool {
        self.runtime.contains(&(process.pid, process.start_time, tid))
    }

    /// Drops threads of processes that are no longer in this list.
    pub(super) fn forget_ended(&mut self, processes: &[Proc]) {
        let lives = |pid: &Pid| processes.iter().any(|process| process.pid == *pid);
        self.parked.retain(|(pid, _, _), _| lives(pid));
        self.runtime.retain(|(pid, _, _)| lives(pid));
    }

    /// `None` for a thread that has ended.
    fn thread(&mut self, process: &Proc, tid: Pid) -> Option<Doing> {
        if self.hardened {
            return Some(denied::infer(self, process, tid));
        }
        match self.call(process.pid, tid) {
            Ok(Call::Running) => Some(Doing::Running),
            Ok(Call::Elsewhere) => Some(Doing::Other),
            Ok(Call::Number(number, args, [stack, code])) => {
                let call = if compat::may_be_narrow(stack, code) && self.is_narrow(process.pid) {
                    compat::native(number)
                } else {
                    Some(NativeCall { number, width: Width::Native })
                };
                Some(call.map_or(Doing::Other, |call| self.doing(process, tid, call, &args)))
            }
            Err(Errno::PERM | Errno::ACCESS) => Some(denied::infer(self, process, tid)),
            Err(_) => None,
        }
    }

    /// Whether it is a 32-bit program on a 64-bit kernel.
    fn is_narrow(&mut self, pid: Pid) -> bool {
        self.reader.read(format_args!("/proc/{pid}/auxv")).is_ok_and(compat::is_narrow)
    }

    fn call(&mut self, pid: Pid, tid: Pid) -> Result<Call, Errno> {
        let line = self.reader.read(format_args!("/proc/{pid}/task/{tid}/syscall"))?;
        Ok(parse_call(line).unwrap_or(Call::Elsewhere))
    }

    fn doing(&mut self, process: &Proc, tid: Pid, call: NativeCall, args: &[u64; 6]) -> Doing {
        let pid = process.pid;
        let NativeCall { number, width } = call;
        let fd = args[0] as i32;
        match number {
            libc::SYS_read => self.reads(process, "read", fd),
            libc::SYS_readv => self.reads(process, "readv", fd),
            libc::SYS_ppoll => self.watches(process, "ppoll", sets::ppoll(pid, args, width)),
            libc::SYS_pselect6 => self.watches(process, "pselect6", sets::pselect(pid, args, width)),
            libc::SYS_epoll_pwait => {
                let set = sets::epoll_wait(&mut self.reader, pid, args);
                self.watches(process, "epoll_pwait", set)
            }
            libc::SYS_epoll_pwait2 => {
                let set = sets::epoll_pwait2(&mut self.reader, pid, args);
                self.watches(process, "epoll_pwait2", set)
            }
            libc::SYS_write | libc::SYS_writev | libc::SYS_ioctl => self.writes(process, fd),
            libc::SYS_wait4 | libc::SYS_waitid => Doing::WaitsForChild,
            libc::SYS_futex => parked(Alarm::of_futex(pid, args, width)),
            libc::SYS_futex_waitv => parked(Alarm::of_futex_waitv(pid, args)),
            libc::SYS_rt_sigtimedwait => parked(Alarm::relative(pid, args[2], width)),
            libc::SYS_rt_sigsuspend => Doing::Parked(Alarm::Never),
            libc::SYS_nanosleep => {
                Doing::Sleeps(Alarm::relative(pid, args[0], width).unwrap_or(Alarm::Unknown))
            }
            libc::SYS_clock_nanosleep => Doing::Sleeps(Alarm::of_clock_nanosleep(pid, args, width)),
            libc::SYS_recvfrom
            | libc::SYS_recvmsg
            | libc::SYS_recvmmsg
            | libc::SYS_accept
            | libc::SYS_accept4
            | libc::SYS_connect
            | libc::SYS_sendto
            | libc::SYS_sendmsg => self.waits_for(process, fd),
            libc::SYS_restart_syscall => self.restarted(process, tid, args),
            _ => self.doing_by_old_number(process, call, args),
        }
    }

    /// Calls that newer architectures never had.
    #[cfg(target_arch = "x86_64")]
    fn doing_by_old_number(&mut self, process: &Proc, call: NativeCall, args: &[u64; 6]) -> Doing {
        let pid = process.pid;
        match call.number {
            libc::SYS_poll => self.watches(process, "poll", sets::poll(pid, args)),
            libc::SYS_select => self.watches(process, "select", sets::select(pid, args, call.width)),
            libc::SYS_epoll_wait => {
                let set = sets::epoll_wait(&mut self.reader, pid, args);
                self.watches(process, "epoll_wait", set)
            }
            libc::SYS_pause => Doing::Parked(Alarm::Never),
            _ => Doing::Other,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn doing_by_old_number(&mut self, _: &Proc, _: NativeCall, _: &[u64; 6]) -> Doing {
        Doing::Other
    }

    /// A call that was interrupted by a stop and restarted under another number, with the same arguments.
    /// Only the kernel function it sleeps in tells which one it was.
    fn restarted(&mut self, process: &Proc, tid: Pid, args: &[u64; 6]) -> Doing {
        let pid = process.pid;
        match denied::wait_function(&mut self.reader, pid, tid) {
            Some(denied::WaitFunction::Poll) => match self.watches(process, "poll", sets::poll(pid, args)) {
                Doing::Idles(_) => Doing::Idles(Alarm::Unknown),
                doing @ (Doing::Running
                | Doing::Disk
                | Doing::Stopped
                | Doing::Watches { .. }
                | Doing::Reads { .. }
                | Doing::Writes { .. }
                | Doing::WaitsForChild
                | Doing::Parked(_)
                | Doing::Sleeps(_)
                | Doing::WaitsOutside(_)
                | Doing::Other
                | Doing::Denied) => doing,
            },
            Some(denied::WaitFunction::Sleep) => Doing::Sleeps(Alarm::Unknown),
            // A lock is only restarted in this way if it has a timeout.
            Some(denied::WaitFunction::Lock) => Doing::Sleeps(Alarm::Unknown),
            _ => Doing::Other,
        }
    }

    fn reads(&mut self, process: &Proc, call: &'static str, fd: i32) -> Doing {
        match self.fds.source(&mut self.reader, process, fd) {
            Some(Source::Terminal(terminal)) => Doing::Reads { call, fd, terminal, inferred: false },
            Some(source) => waits_for_source(source),
            None => Doing::Other,
        }
    }

    fn writes(&mut self, process: &Proc, fd: i32) -> Doing {
        match self.fds.source(&mut self.reader, process, fd) {
            Some(Source::Terminal(terminal)) => Doing::Writes { terminal },
            _ => Doing::Other,
        }
    }

    fn waits_for(&mut self, process: &Proc, fd: i32) -> Doing {
        self.fds.source(&mut self.reader, process, fd).map_or(Doing::Other, waits_for_source)
    }

    fn watches(&mut self, process: &Proc, call: &'static str, set: Option<Set>) -> Doing {
        match set {
            Some(set) => self.watched(process, call, &set, false),
            None => Doing::Other,
        }
    }

    /// Classifies the members of a set, and the thread by them.
    pub(super) fn watched(&mut self, process: &Proc, call: &'static str, set: &Set, inferred: bool) -> Doing {
        let members = set.reads.iter().map(|fd| (*fd, true)).chain(set.others.iter().map(|fd| (*fd, false)));
        let mut watched = Vec::with_capacity(set.reads.len() + set.others.len());
        for (fd, reads) in members {
            // A closed descriptor cannot wake the thread; one that is hidden might.
            let Some(source) = self.fds.source(&mut self.reader, process, fd) else { continue };
            if source == Source::External(Outside::Other) && self.watches_inner_set(process, fd, &mut watched)
            {
                continue;
            }
            watched.push(Watched { fd, source, reads });
        }
        let timers = watched.iter().map(|member| match member.source {
            Source::Timer(alarm) => alarm,
            Source::Terminal(_)
            | Source::Relay(_)
            | Source::Internal
            | Source::Soft
            | Source::External(_) => Alarm::Never,
        });
        let alarm = timers.fold(set.alarm, Alarm::with);
        let has_terminal =
            watched.iter().any(|member| member.reads && matches!(member.source, Source::Terminal(_)));
        if has_terminal {
            if set.truncated {
                let source = Source::External(Outside::Other);
                watched.push(Watched { fd: -1, source, reads: true });
            }
            return Doing::Watches { call, set: watched, alarm, inferred };
        }
        if let Some(outside) = most_telling(&watched) {
            Doing::WaitsOutside(outside)
        } else if set.truncated {
            Doing::WaitsOutside(Outside::Other)
        } else if alarm.is_near() || alarm == Alarm::Unknown {
            Doing::Sleeps(alarm)
        } else if watched.iter().any(|member| member.source == Source::Soft) {
            Doing::Sleeps(Alarm::Unknown)
        } else {
            Doing::Idles(alarm)
        }
    }

    /// Adds the members of an epoll set that is itself in the set of `poll` or `select`; false if it is not
    /// an epoll set.
    fn watches_inner_set(&mut self, process: &Proc, fd: i32, watched: &mut Vec<Watched>) -> bool {
        let mut inner = Set::new(Alarm::Never);
        if !Descriptors::is_epoll(&mut self.reader, process.pid, fd)
            || sets::epoll_members(&mut self.reader, process.pid, fd, sets::MAX_EPOLL_DEPTH, &mut inner)
                .is_none()
            || inner.truncated
        {
            return false;
        }
        let members =
            inner.reads.iter().map(|fd| (*fd, true)).chain(inner.others.iter().map(|fd| (*fd, false)));
        for (fd, reads) in members {
            if let Some(source) = self.fds.source(&mut self.reader, process, fd) {
                watched.push(Watched { fd, source, reads });
            }
        }
        true
    }

    /// How often a thread has been scheduled. The count does not change while it sleeps.
    pub(super) fn run_count(&mut self, pid: Pid, tid: Pid) -> Option<u64> {
        if let Some((_, runs)) = self.schedstat(pid, tid) {
            return Some(runs);
        }
        // Without scheduler statistics, the kernel still counts how often a thread was descheduled.
        let status = self.reader.read(format_args!("/proc/{pid}/task/{tid}/status")).ok()?;
        let status = std::str::from_utf8(status).ok()?;
        let counts = status.lines().filter_map(|line| line.split_once("voluntary_ctxt_switches:"));
        counts.map(|(_, count)| count.trim().parse::<u64>().ok()).sum()
    }

    /// Whether a process has POSIX timers, which send it signals. The list does not say whether one is armed,
    /// so they all count. A kernel without the list reports none.
    pub(super) fn has_posix_timers(&mut self, pid: Pid) -> bool {
        match self.reader.read(format_args!("/proc/{pid}/timers")) {
            Ok(list) => !list.is_empty(),
            Err(error) => error != Errno::NOENT,
        }
    }

    /// The pipes and sockets that a process holds.
    pub(super) fn links(&mut self, pid: Pid) -> &[(i32, Link)] {
        self.fds.holds(&mut self.reader, pid)
    }

    /// Whether the kernel hides processes of other users (`hidepid`): then even the first one cannot be seen.
    pub(super) fn hides_processes(&mut self) -> bool {
        let reader = &mut self.reader;
        *self.hides_processes.get_or_insert_with(|| reader.stat(rustix::process::Pid::INIT).is_none())
    }

    /// The CPU time of a thread in nanoseconds, and how often it has been scheduled.
    pub(super) fn schedstat(&mut self, pid: Pid, tid: Pid) -> Option<(u64, u64)> {
        let line = self.reader.read(format_args!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
        let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
        Some((words.next()?.parse().ok()?, words.nth(1)?.parse().ok()?))
    }
}

/// Of all that others could wake a thread by: what says most about it.
fn most_telling(watched: &[Watched]) -> Option<Outside> {
    let outside = |member: &Watched| match member.source {
        Source::External(outside) => Some(outside),
        Source::Relay(inner) => Some(Outside::Inner(inner)),
        Source::Terminal(_) | Source::Internal | Source::Timer(_) | Source::Soft => None,
    };
    let weight = |outside: &Outside| match outside {
        Outside::Inner(_) => 4,
        Outside::Network => 3,
        Outside::Other => 2,
        Outside::UnixSocket(_) => 1,
        Outside::Pipe(_) => 0,
    };
    let most = watched.iter().filter_map(outside).max_by_key(weight)?;
    let several = watched.iter().filter_map(outside).any(|other| other != most);
    // Where there are several, it cannot be told that all lead into the job.
    Some(if several && most.link().is_some() { Outside::Other } else { most })
}

/// If the timeout of a call cannot be read, nothing is known.
fn parked(alarm: Option<Alarm>) -> Doing {
    alarm.map_or(Doing::Other, Doing::Parked)
}

fn waits_for_source(source: Source) -> Doing {
    match source {
        Source::Internal => Doing::Idles(Alarm::Never),
        Source::Timer(alarm) => Doing::Sleeps(alarm),
        Source::Soft => Doing::Sleeps(Alarm::Unknown),
        Source::External(outside) => Doing::WaitsOutside(outside),
        Source::Relay(inner) => Doing::WaitsOutside(Outside::Inner(inner)),
        Source::Terminal(_) => Doing::Other,
    }
}

/// `running`, or a number and eight hexadecimal words, or -1 and two.
fn parse_call(line: &[u8]) -> Option<Call> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_ascii_whitespace();
    let first = words.next()?;
    if first == "running" {
        return Some(Call::Running);
    }
    let number: i64 = first.parse().ok()?;
    if number < 0 {
        return Some(Call::Elsewhere);
    }
    let mut hexadecimal = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let mut args = [0; 6];
    for arg in &mut args {
        *arg = hexadecimal()?;
    }
    let [stack, code] = [hexadecimal(), hexadecimal()].map(Option::unwrap_or_default);
    Some(Call::Number(number, args, [stack, code]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_of_a_syscall_line_are_read() {
        assert!(matches!(parse_call(b"running\n"), Some(Call::Running)));
        assert!(matches!(parse_call(b"-1 0x7ffd 0x7f3c\n"), Some(Call::Elsewhere)));
        let Some(Call::Number(number, args, places)) =
            parse_call(b"0 0x3 0x7f 0x400 0x0 0x1 0x2 0x7ffd 0x7f3c\n")
        else {
            panic!("a call");
        };
        assert_eq!((number, args, places), (0, [3, 0x7f, 0x400, 0, 1, 2], [0x7ffd, 0x7f3c]));
        assert!(parse_call(b"0 0x3\n").is_none());
        assert!(parse_call(b"").is_none());
    }
}
