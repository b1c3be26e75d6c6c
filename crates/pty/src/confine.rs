//! Confines a command: what it may read, write, reach and ask of the kernel. Neither the command nor anything
//! that it starts can undo it.
//!
//! Several kernel features work together: [`landlock`] for files, TCP, signals and abstract sockets; [`seccomp`]
//! for system calls; an [`enclosure`] of namespaces for processes, IPC, mounts and network, or a [`network`]
//! namespace alone; and for root, fewer capabilities.
//! Everything is prepared before the fork; the child only makes system calls. If the kernel lacks a feature,
//! that is an error before anything is started.

mod enclosure;
mod landlock;
mod network;
mod placeholder;
pub(crate) mod seccomp;

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

pub use enclosure::can_enclose;
pub(crate) use enclosure::{Enclosure, Entered};
pub use landlock::abi as landlock_abi;
pub use network::has_namespaces;
pub use placeholder::{HeldPlaceholders, Placeholder, remove as remove_placeholders};
pub use seccomp::filters_of;

/// The oldest Landlock version that is accepted. Before it, any file could be truncated.
pub const OLDEST_LANDLOCK: i32 = 3;
/// From this version on, signals and abstract sockets are confined too.
pub const SCOPED_LANDLOCK: i32 = 6;

/// What a confined command may reach on the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Nothing.
    Off,
    /// A private loopback: the command can only reach itself.
    Loopback,
    /// Everything.
    On,
}

/// What to confine a command to.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Folders and files that it may read and execute. Missing ones are skipped.
    pub readable: Vec<PathBuf>,
    /// Folders and files that it may also change.
    pub writable: Vec<PathBuf>,
    /// What it may reach on the network.
    pub network: Network,
    /// Whether it may create Unix sockets.
    pub unix_sockets: bool,
    /// What is different in its own mount namespace. It then has namespaces for processes, IPC and, unless it
    /// may use the network, network too; `None` does without them.
    pub namespaces: Option<Namespaces>,
}

/// What is different in a mount namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespaces {
    /// What is mounted, in this order.
    pub mounts: Vec<Mount>,
    /// What must be made first to be mounted over. It is taken away when nothing is left of the command.
    pub placeholders: Vec<Placeholder>,
}

/// Something that is mounted at another place, or at its own with other rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// What is to be seen. A symlink is not followed.
    pub source: PathBuf,
    /// Where.
    pub target: PathBuf,
    /// Whether it can't be changed there.
    pub read_only: bool,
}

/// Why a command cannot be confined as requested.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// The kernel has no Landlock, an old one, or has it disabled.
    #[error(
        "this kernel's Landlock is too old or switched off (version {found}, needed is {OLDEST_LANDLOCK})"
    )]
    NoLandlock {
        /// The version found; 0 for none.
        found: i32,
    },
    /// The kernel has no seccomp filters.
    #[error("this kernel has no seccomp filters: {0}")]
    NoSeccomp(io::Error),
    /// There is no filter for this processor architecture.
    #[error("there are no filters for this processor")]
    UnknownProcessor,
    /// A folder that must exist does not.
    #[error("{path:?} can't be opened for the sandbox: {source}")]
    NoFolder {
        /// The folder.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel cannot create a network namespace.
    #[error("cannot create a network namespace: {0}")]
    NoNamespace(io::Error),
    /// Anything else.
    #[error("cannot create the sandbox: {0}")]
    System(#[from] io::Error),
}

/// A sandbox, prepared for the child to enter.
#[derive(Debug)]
pub struct PreparedSandbox {
    ruleset: Option<OwnedFd>,
    filter: seccomp::Filter,
    namespace: Option<network::Namespace>,
    enclosure: Option<Enclosure>,
}

impl Plan {
    /// Prepares the sandbox.
    ///
    /// # Errors
    /// [`ConfineError`], if this kernel cannot do all of it.
    pub fn prepare(&self) -> Result<PreparedSandbox, ConfineError> {
        let seen = match self.namespaces {
            Some(_) => seccomp::Processes::Own,
            None => seccomp::Processes::All,
        };
        let filter = seccomp::Filter::new(self.network, self.unix_sockets, seen)?;
        let namespace = match (self.network, &self.namespaces) {
            (Network::Loopback, None) => Some(network::Namespace::prepare()?),
            (Network::Off | Network::On, None) | (_, Some(_)) => None,
        };
        let ruleset = Some(landlock::ruleset(self)?);
        let enclosure = match &self.namespaces {
            Some(Namespaces { mounts, placeholders }) => {
                Some(Enclosure::prepare(mounts, placeholders, self.network != Network::On)?)
            }
            None => None,
        };
        Ok(PreparedSandbox { ruleset, filter, namespace, enclosure })
    }
}

impl PreparedSandbox {
    /// Only the system call filter, as bytes, for a program that confines files and network itself and
    /// creates process and IPC namespaces. Such programs read it from a descriptor.
    ///
    /// # Errors
    /// [`ConfineError::UnknownProcessor`].
    pub fn filter_bytes(network: Network, unix_sockets: bool) -> Result<Vec<u8>, ConfineError> {
        Ok(seccomp::Filter::new(network, unix_sockets, seccomp::Processes::Own)?.bytes())
    }

    /// The namespaces that the child makes first of all.
    pub(crate) fn enclosure(&self) -> Option<&Enclosure> {
        self.enclosure.as_ref()
    }

    /// Runs in the child between fork and exec, so it only makes system calls.
    pub(crate) fn apply(&self) -> io::Result<()> {
        if let Some(namespace) = &self.namespace {
            namespace.enter()?;
        }
        drop_capabilities();
        no_new_privileges()?;
        if let Some(ruleset) = &self.ruleset {
            if self.enclosure.is_some() {
                landlock::allow_reading(ruleset, c"/proc")?;
            }
            landlock::restrict(ruleset)?;
        }
        self.filter.install()
    }
}

/// Capabilities that would let root bypass the rest, or harm the machine. Building software needs none of
/// them.
const DROPPED: [libc::c_ulong; 21] = [
    2,  // DAC_READ_SEARCH: opens files by handle.
    9,  // LINUX_IMMUTABLE
    12, // NET_ADMIN
    13, // NET_RAW
    16, // SYS_MODULE
    17, // SYS_RAWIO
    18, // SYS_CHROOT
    19, // SYS_PTRACE
    20, // SYS_PACCT
    21, // SYS_ADMIN
    22, // SYS_BOOT
    24, // SYS_RESOURCE
    25, // SYS_TIME
    26, // SYS_TTY_CONFIG
    27, // MKNOD
    30, // AUDIT_CONTROL
    32, // MAC_OVERRIDE
    33, // MAC_ADMIN
    34, // SYSLOG
    38, // PERFMON
    39, // BPF
];

/// Drops capabilities that root could use to escape. Other users have none to drop.
fn drop_capabilities() {
    for capability in DROPPED {
        // SAFETY: numbers only. The kernel refuses a capability that it does not know or that we do not have.
        #[expect(unsafe_code, reason = "prctl")]
        unsafe {
            libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
        }
    }
}

/// From now on, no program that it executes gets more privileges than it has.
pub(crate) fn no_new_privileges() -> io::Result<()> {
    // SAFETY: numbers only.
    #[expect(unsafe_code, reason = "prctl")]
    let done = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether a process is the init of a command's namespaces: ours, and no part of the job.
#[must_use]
pub fn is_init(process: &crate::procfs::Proc) -> bool {
    if process.comm.as_bytes() != enclosure::INIT.to_bytes() {
        return false;
    }
    let mut reader = crate::procfs::ProcReader::new();
    let Ok(status) = reader.read_record(format_args!("/proc/{}/status", process.pid)) else { return false };
    let status = String::from_utf8_lossy(status);
    let pids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    pids.is_some_and(|pids| pids.split_whitespace().next_back() == Some("1"))
}
