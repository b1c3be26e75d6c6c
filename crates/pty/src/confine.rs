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
mod view;

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

pub use enclosure::can_enclose;
pub(crate) use enclosure::{Enclosure, Entered};
pub use landlock::abi as landlock_abi;
pub use network::{PROXY_PORT, has_namespaces};
pub use placeholder::{Placeholder, keep as keep_placeholders, remove as remove_placeholders};
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
    /// A private loopback, with a proxy on it that reaches some hosts. It needs namespaces.
    Hosts,
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
    /// What can't be looked into.
    pub closed: Vec<Closed>,
    /// What is left of the file system, if not all of it.
    pub view: Option<View>,
}

/// A view of the file system in which little can be changed, and some folders hide what is in them. Landlock keeps files from being
/// read and written; their modes and times, and who looks at them, it does not see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// What can be changed: folders and files. Everything else is mounted read-only.
    pub writable: Vec<PathBuf>,
    /// Of these folders nothing is there but what can be changed and what can be read.
    pub hidden: Vec<PathBuf>,
    /// What can be read in them.
    pub readable: Vec<PathBuf>,
}

/// A path that a command can't look into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// Where it is. A symlink is not followed.
    pub path: PathBuf,
    /// Whether it is a folder.
    pub is_folder: bool,
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
    filter: Option<seccomp::Filter>,
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
            (Network::Hosts, None) => {
                return Err(ConfineError::NoNamespace(io::ErrorKind::Unsupported.into()));
            }
            (Network::Off | Network::On, None) | (_, Some(_)) => None,
        };
        let ruleset = Some(landlock::ruleset(self)?);
        let isolated = enclosure::Isolated { ipc: true, network: self.network != Network::On };
        let enclosure = match &self.namespaces {
            Some(namespaces) => Some(Enclosure::prepare(namespaces, isolated)?),
            None => None,
        };
        Ok(PreparedSandbox { ruleset, filter: Some(filter), namespace, enclosure })
    }
}

impl PreparedSandbox {
    /// No walls but what is mounted: for a command that may do everything except look into some files.
    ///
    /// # Errors
    /// [`ConfineError`], if the placeholders can't be made.
    pub fn files_only(namespaces: &Namespaces) -> Result<Self, ConfineError> {
        let isolated = enclosure::Isolated { ipc: false, network: false };
        let enclosure = Some(Enclosure::prepare(namespaces, isolated)?);
        Ok(Self { ruleset: None, filter: None, namespace: None, enclosure })
    }

    /// Sends a socket that listens in the command's own network over these lines, for a proxy outside of it.
    pub fn send_listener(&mut self, lines: Vec<OwnedFd>) {
        if let Some(enclosure) = &mut self.enclosure {
            enclosure.send_listener(lines);
        }
    }

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
        let dropped: &[libc::c_ulong] = if self.filter.is_some() { &DROPPED } else { &DROPPED_FOR_FILES };
        drop_capabilities(dropped);
        no_new_privileges()?;
        if let Some(ruleset) = &self.ruleset {
            if self.enclosure.is_some() {
                landlock::allow_reading(ruleset, c"/proc")?;
            }
            landlock::restrict(ruleset)?;
        }
        self.filter.as_ref().map_or(Ok(()), seccomp::Filter::install)
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
    SYS_ADMIN, 22, // SYS_BOOT
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

/// Capabilities with which root could look into closed files all the same.
const DROPPED_FOR_FILES: [libc::c_ulong; 7] = [
    2,  // DAC_READ_SEARCH: opens files by handle.
    16, // SYS_MODULE
    17, // SYS_RAWIO
    SYS_ADMIN, 27, // MKNOD
    38, // PERFMON
    39, // BPF
];

/// To mount, and to make namespaces without a user namespace.
const SYS_ADMIN: libc::c_ulong = 21;

/// Whether this process has a capability, or a program that root executes would get it.
fn has_capability(capability: libc::c_ulong) -> bool {
    // SAFETY: numbers only.
    #[expect(unsafe_code, reason = "prctl")]
    let known = unsafe { libc::prctl(libc::PR_CAPBSET_READ, capability, 0, 0, 0) };
    known == 1
}

/// Drops capabilities that root could use to escape. Other users have none to drop.
fn drop_capabilities(dropped: &[libc::c_ulong]) {
    for capability in dropped {
        // SAFETY: numbers only. The kernel refuses a capability that it does not know or that we do not have.
        #[expect(unsafe_code, reason = "prctl")]
        unsafe {
            libc::prctl(libc::PR_CAPBSET_DROP, *capability, 0, 0, 0);
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
    process.comm.as_bytes() == enclosure::INIT.to_bytes()
        && crate::procfs::numbers(process.pid).last() == Some(&1)
}
