//! A system call filter: a small BPF program that the kernel runs before each call.
//!
//! It denies calls that reach into other processes or change them, inject input into terminals, create
//! namespaces, share memory or queues without a path, or open sockets of families that were not requested. It
//! allows everything else.

use std::io;

use rustix::process::Pid;

use super::{ConfineError, Network};

#[cfg(target_arch = "x86_64")]
pub(crate) const PROCESSOR: Option<u32> = Some(0xC000_003E);
#[cfg(target_arch = "aarch64")]
pub(crate) const PROCESSOR: Option<u32> = Some(0xC000_00B7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) const PROCESSOR: Option<u32> = None;

/// On x86-64, numbers from here on are the x32 set of the same calls.
#[cfg(target_arch = "x86_64")]
pub(crate) const X32: u32 = 0x4000_0000;

pub(crate) const LOAD: u16 = 0x20;
pub(crate) const IF_EQUAL: u16 = 0x15;
#[cfg(target_arch = "x86_64")]
pub(crate) const IF_AT_LEAST: u16 = 0x35;
const IF_ANY_BIT: u16 = 0x45;
const AND: u16 = 0x54;
pub(crate) const RETURN: u16 = 0x06;

pub(crate) const NUMBER: u32 = 0;
pub(crate) const ARCHITECTURE: u32 = 4;
/// Where the lower half of an argument is. Both supported processors store it first.
const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

pub(crate) const ALLOW: u32 = 0x7fff_0000;
pub(crate) const fn refuse(errno: i32) -> u32 {
    0x0005_0000 | errno as u32
}

/// Since Linux 6.15; the same number on all processors.
const OPEN_TREE_ATTR: libc::c_long = 467;

/// Calls that reach into other processes or around the rest of the sandbox.
const DENIED: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_perf_event_open,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_fsconfig,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    libc::SYS_acct,
    libc::SYS_open_by_handle_at,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
];

/// Calls that programs can do without, answered as if the kernel did not know them: `io_uring`, which opens
/// sockets unseen, and a `clone` whose flags cannot be inspected.
const UNKNOWN: &[libc::c_long] =
    &[libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register, libc::SYS_clone3];

/// Calls that share by a number or name instead of a path: System V shared memory, semaphores and queues, and
/// POSIX queues. Kernels without them exist, so programs cope.
const SHARED_BY_NUMBER: &[libc::c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Who watches a folder learns the names in it and when they change, wherever it is. With namespaces there is little to watch;
/// without them, nothing can be watched. Programs look again now and then instead.
const WATCH: &[libc::c_long] = &[libc::SYS_inotify_add_watch];

/// Calls that change the process in the first argument; 0 is the caller itself. A filter does not know its
/// caller's own pid, so that is refused like any other.
const OF_A_PROCESS: &[libc::c_long] = &[
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
];
/// The `which` argument of `ioprio_set` for a process; for `setpriority` it is 0.
const IOPRIO_WHO_PROCESS: u32 = 1;

/// Injects input into a terminal.
const TIOCSTI: u32 = 0x5412;
/// The same through a virtual console's selection.
const TIOCLINUX: u32 = 0x541c;

/// The bits of a socket's type; the other bits are flags.
const SOCKET_TYPE: u32 = 0xf;

const NAMESPACES: u32 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u32;

/// Which processes a command can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Processes {
    /// All processes of the machine.
    All,
    /// Only its own: it has its own process and IPC namespaces.
    Own,
}

/// A filter, ready to be installed.
#[derive(Debug)]
pub(super) struct Filter {
    program: Vec<libc::sock_filter>,
}

pub(crate) fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

pub(crate) fn number(call: libc::c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

impl Filter {
    pub(super) fn new(
        network: Network,
        unix_sockets: bool,
        processes: Processes,
    ) -> Result<Self, ConfineError> {
        let processor = PROCESSOR.ok_or(ConfineError::UnknownProcessor)?;
        let mut program = vec![
            instruction(LOAD, 0, 0, ARCHITECTURE),
            instruction(IF_EQUAL, 1, 0, processor),
            // Another architecture's calls have other numbers, so none of them is allowed.
            instruction(RETURN, 0, 0, refuse(libc::ENOSYS)),
            instruction(LOAD, 0, 0, NUMBER),
        ];
        #[cfg(target_arch = "x86_64")]
        program
            .extend([instruction(IF_AT_LEAST, 0, 1, X32), instruction(RETURN, 0, 0, refuse(libc::ENOSYS))]);
        let (shared, watch): (&[_], &[_]) =
            if processes == Processes::All { (SHARED_BY_NUMBER, WATCH) } else { (&[], &[]) };
        let all =
            [(DENIED, libc::EPERM), (UNKNOWN, libc::ENOSYS), (shared, libc::ENOSYS), (watch, libc::ENOSPC)];
        for (calls, errno) in all {
            for call in calls {
                program.push(instruction(IF_EQUAL, 0, 1, number(*call)));
                program.push(instruction(RETURN, 0, 0, refuse(errno)));
            }
        }
        if_call(
            &mut program,
            libc::SYS_ioctl,
            &[
                instruction(LOAD, 0, 0, argument(1)),
                instruction(IF_EQUAL, 1, 0, TIOCSTI),
                instruction(IF_EQUAL, 0, 1, TIOCLINUX),
                instruction(RETURN, 0, 0, refuse(libc::EPERM)),
                instruction(RETURN, 0, 0, ALLOW),
            ],
        );
        if_call(
            &mut program,
            libc::SYS_clone,
            &[
                instruction(LOAD, 0, 0, argument(0)),
                instruction(IF_ANY_BIT, 0, 1, NAMESPACES),
                instruction(RETURN, 0, 0, refuse(libc::EPERM)),
                instruction(RETURN, 0, 0, ALLOW),
            ],
        );
        if processes == Processes::All {
            only_itself(&mut program);
        }
        if !unix_sockets {
            // Either end of a datagram pair can send to any address; connected pairs cannot.
            if_call(
                &mut program,
                libc::SYS_socketpair,
                &[
                    instruction(LOAD, 0, 0, argument(1)),
                    instruction(AND, 0, 0, SOCKET_TYPE),
                    instruction(IF_EQUAL, 1, 0, libc::SOCK_STREAM as u32),
                    instruction(IF_EQUAL, 0, 1, libc::SOCK_SEQPACKET as u32),
                    instruction(RETURN, 0, 0, ALLOW),
                    instruction(RETURN, 0, 0, refuse(libc::EPERM)),
                ],
            );
        }
        let mut families = Vec::new();
        if network != Network::Off {
            // Netlink: how a program learns its own addresses.
            families.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]);
        }
        if unix_sockets {
            families.push(libc::AF_UNIX);
        }
        let mut sockets = vec![instruction(LOAD, 0, 0, argument(0))];
        for family in families {
            sockets.push(instruction(IF_EQUAL, 0, 1, family as u32));
            sockets.push(instruction(RETURN, 0, 0, ALLOW));
        }
        sockets.push(instruction(RETURN, 0, 0, refuse(libc::EPERM)));
        if_call(&mut program, libc::SYS_socket, &sockets);
        program.push(instruction(RETURN, 0, 0, ALLOW));
        Ok(Self { program })
    }

    /// The program in the kernel's format.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let bytes = |step: &libc::sock_filter| {
            let [a, b] = step.code.to_ne_bytes();
            let [c, d, e, f] = step.k.to_ne_bytes();
            [a, b, step.jt, step.jf, c, d, e, f]
        };
        self.program.iter().flat_map(bytes).collect()
    }

    /// Installs the filter in this process. It cannot be removed.
    pub(super) fn install(&self) -> io::Result<()> {
        let program = libc::sock_fprog {
            len: u16::try_from(self.program.len()).unwrap_or(0),
            filter: self.program.as_ptr().cast_mut(),
        };
        // SAFETY: the program outlives the call, and the kernel copies and checks it.
        #[expect(unsafe_code, reason = "seccomp has no safe wrapper here")]
        let done = unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0_u32, &raw const program)
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// Runs `steps`, which end in a verdict, if it is this call. The register holds the call number before and
/// after.
fn if_call(program: &mut Vec<libc::sock_filter>, call: libc::c_long, steps: &[libc::sock_filter]) {
    let past = u8::try_from(steps.len()).unwrap_or(u8::MAX);
    program.push(instruction(IF_EQUAL, 0, past, number(call)));
    program.extend_from_slice(steps);
}

/// Allows a process to change limits, CPU affinity and priorities of itself, but of no other process.
fn only_itself(program: &mut Vec<libc::sock_filter>) {
    for call in OF_A_PROCESS {
        if_call(
            program,
            *call,
            &[
                instruction(LOAD, 0, 0, argument(0)),
                instruction(IF_EQUAL, 1, 0, 0),
                instruction(RETURN, 0, 0, refuse(libc::EPERM)),
                instruction(RETURN, 0, 0, ALLOW),
            ],
        );
    }
    for (call, a_process) in [(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS)] {
        if_call(
            program,
            call,
            &[
                instruction(LOAD, 0, 0, argument(0)),
                instruction(IF_EQUAL, 0, 2, a_process),
                instruction(LOAD, 0, 0, argument(1)),
                instruction(IF_EQUAL, 1, 0, 0),
                instruction(RETURN, 0, 0, refuse(libc::EPERM)),
                instruction(RETURN, 0, 0, ALLOW),
            ],
        );
    }
    // Limits of other processes may be read: the new limit is then a null pointer.
    if_call(
        program,
        libc::SYS_prlimit64,
        &[
            instruction(LOAD, 0, 0, argument(0)),
            instruction(IF_EQUAL, 5, 0, 0),
            instruction(LOAD, 0, 0, argument(2)),
            instruction(IF_EQUAL, 0, 2, 0),
            instruction(LOAD, 0, 0, argument(2) + 4),
            instruction(IF_EQUAL, 1, 0, 0),
            instruction(RETURN, 0, 0, refuse(libc::EPERM)),
            instruction(RETURN, 0, 0, ALLOW),
        ],
    );
}

/// How many filters a process is under; `None` if the kernel does not say.
#[must_use]
pub fn filters_of(pid: Pid) -> Option<u32> {
    let mut reader = crate::procfs::ProcReader::new();
    let status = reader.read_record(format_args!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(status);
    let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    line("Seccomp_filters:").or_else(|| line("Seccomp:"))
}
