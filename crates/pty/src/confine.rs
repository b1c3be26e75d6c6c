//! Confines a command: what it may read, write, reach and ask of the kernel. Once confined it can't undo it, and neither
//! can anything it starts.
//!
//! Four parts of the kernel do it together: [`landlock`] for files, TCP, signals and abstract sockets, [`seccomp`] for system
//! calls, [`network`] namespaces for a loopback of its own, and fewer capabilities for root. Everything is prepared before the
//! fork; the child only makes system calls. What this kernel can't do is an error before anything is started.

mod landlock;
mod network;
mod seccomp;

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

pub use landlock::abi as landlock_abi;
pub use network::has_namespaces;
pub use seccomp::filters_of;

/// The oldest Landlock that will do: before it, files could be cut short anywhere.
pub const OLDEST_LANDLOCK: i32 = 3;
/// From this one on, signals and abstract sockets stay inside too.
pub const SCOPED_LANDLOCK: i32 = 6;

/// What a confined command may reach on the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Nothing.
    Off,
    /// A loopback of its own: itself, and nobody else.
    Loopback,
    /// Everything.
    On,
}

/// What a command is to be confined to.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Folders and files that it may read and execute; those that are not there are left out.
    pub readable: Vec<PathBuf>,
    /// Folders and files that it may also change.
    pub writable: Vec<PathBuf>,
    /// What it may reach.
    pub network: Network,
    /// Whether it may make Unix sockets.
    pub unix_sockets: bool,
}

/// Why a command can't be confined as asked.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// The kernel has no Landlock, an old one, or was told not to use it.
    #[error(
        "this kernel's Landlock is too old or switched off (version {found}, needed is {OLDEST_LANDLOCK})"
    )]
    NoLandlock {
        /// What it has; 0 for none.
        found: i32,
    },
    /// The kernel has no seccomp filters.
    #[error("this kernel has no seccomp filters: {0}")]
    NoSeccomp(io::Error),
    /// Programs of this processor can't be filtered by us.
    #[error("there are no filters for this processor")]
    UnknownProcessor,
    /// A folder that must be there is not.
    #[error("{path:?} can't be opened for the sandbox: {source}")]
    NoFolder {
        /// Which.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// No network namespace can be had.
    #[error("no network of its own can be had for it: {0}")]
    NoNamespace(io::Error),
    /// Anything else.
    #[error("the sandbox can't be made: {0}")]
    System(#[from] io::Error),
}

/// Everything that the child needs, prepared.
#[derive(Debug)]
pub struct Confinement {
    ruleset: Option<OwnedFd>,
    filter: seccomp::Filter,
    namespace: Option<network::Namespace>,
}

impl Plan {
    /// Prepares it.
    ///
    /// # Errors
    /// [`ConfineError`], when this kernel can't do all of it.
    pub fn prepare(&self) -> Result<Confinement, ConfineError> {
        let filter = seccomp::Filter::new(self.network, self.unix_sockets, seccomp::Processes::All)?;
        let namespace = match self.network {
            Network::Loopback => Some(network::Namespace::prepare()?),
            Network::Off | Network::On => None,
        };
        Ok(Confinement { ruleset: Some(landlock::ruleset(self)?), filter, namespace })
    }
}

impl Confinement {
    /// The system calls alone, for a program that confines files and network by itself, and has process and IPC namespaces
    /// made: its bytes are what such programs read from a descriptor.
    ///
    /// # Errors
    /// [`ConfineError::UnknownProcessor`].
    pub fn filter_bytes(network: Network, unix_sockets: bool) -> Result<Vec<u8>, ConfineError> {
        Ok(seccomp::Filter::new(network, unix_sockets, seccomp::Processes::Own)?.bytes())
    }

    /// Runs in the child, between fork and exec: only system calls.
    pub(crate) fn apply(&self) -> io::Result<()> {
        if let Some(namespace) = &self.namespace {
            namespace.enter()?;
        }
        drop_capabilities();
        no_new_privileges()?;
        if let Some(ruleset) = &self.ruleset {
            landlock::restrict(ruleset)?;
        }
        self.filter.install()
    }
}

/// Capabilities that would let root work around the rest, or harm the machine: none of them is for building software.
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

/// For root: takes away what it could get out with. For others there is nothing to take.
fn drop_capabilities() {
    for capability in DROPPED {
        // SAFETY: numbers only; a capability that the kernel does not know, or that we do not have, is refused.
        #[expect(unsafe_code, reason = "prctl")]
        unsafe {
            libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
        }
    }
}

/// From now on no program that it executes gets more rights than it has.
fn no_new_privileges() -> io::Result<()> {
    // SAFETY: numbers only.
    #[expect(unsafe_code, reason = "prctl")]
    let done = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
