//! Landlock: files, TCP, signals and abstract sockets, by rules that the kernel keeps.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat, open};

use super::{ConfineError, Network, OLDEST_LANDLOCK, Plan, SCOPED_LANDLOCK};

const EXECUTE: u64 = 1 << 0;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_BLOCK: u64 = 1 << 11;
const TRUNCATE: u64 = 1 << 14;
/// All that version 3 knows.
const EVERYTHING: u64 = (1 << 15) - 1;

const READ: u64 = EXECUTE | READ_FILE | READ_DIR;
/// Device files are nobody's to make.
const WRITE: u64 = EVERYTHING & !MAKE_CHAR & !MAKE_BLOCK;
/// What can be allowed for a file, which has nothing below it.
const OF_A_FILE: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE;

const TCP_BIND_AND_CONNECT: u64 = 0b11;
const TCP_VERSION: i32 = 4;
const ABSTRACT_SOCKETS_AND_SIGNALS: u64 = 0b11;

const CREATE_VERSION: u32 = 1;
const RULE_PATH_BENEATH: u32 = 1;

#[repr(C)]
struct RulesetAttributes {
    files: u64,
    network: u64,
    scoped: u64,
}

#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: i32,
}

/// The version of Landlock in this kernel; 0 for none.
#[must_use]
pub fn abi() -> i32 {
    let none = std::ptr::null::<RulesetAttributes>();
    // SAFETY: asks for the version only; no memory is looked at.
    #[expect(unsafe_code, reason = "Landlock has no safe wrapper here")]
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0, CREATE_VERSION) };
    i32::try_from(version).unwrap_or(0).max(0)
}

/// Makes the rules of a plan.
pub(super) fn ruleset(plan: &Plan) -> Result<OwnedFd, ConfineError> {
    let version = abi();
    if version < OLDEST_LANDLOCK {
        return Err(ConfineError::NoLandlock { found: version });
    }
    let attributes = RulesetAttributes {
        files: EVERYTHING,
        network: if plan.network == Network::Off { TCP_BIND_AND_CONNECT } else { 0 },
        scoped: ABSTRACT_SOCKETS_AND_SIGNALS,
    };
    // Older kernels know less of it; what they lack of the network, the system call filter does.
    let size: usize = match version {
        SCOPED_LANDLOCK.. => 24,
        TCP_VERSION.. => 16,
        _ => 8,
    };
    // SAFETY: `attributes` has at least `size` bytes, and the kernel only reads them.
    #[expect(unsafe_code, reason = "Landlock has no safe wrapper here")]
    let ruleset = unsafe {
        let fd = libc::syscall(libc::SYS_landlock_create_ruleset, &raw const attributes, size, 0_u32);
        if fd < 0 {
            return Err(ConfineError::System(io::Error::last_os_error()));
        }
        OwnedFd::from_raw_fd(fd as i32)
    };
    for path in &plan.readable {
        match allow(&ruleset, path, READ) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // What we may not look at ourselves, the command can't either.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            other => other.map_err(|source| ConfineError::NoFolder { path: path.clone(), source })?,
        }
    }
    for path in &plan.writable {
        allow(&ruleset, path, WRITE)
            .map_err(|source| ConfineError::NoFolder { path: path.clone(), source })?;
    }
    Ok(ruleset)
}

fn allow(ruleset: &OwnedFd, path: &Path, access: u64) -> io::Result<()> {
    let parent = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let folder = FileType::from_raw_mode(fstat(&parent)?.st_mode) == FileType::Directory;
    let allowed = if folder { access } else { access & OF_A_FILE };
    let rule = PathBeneath { allowed, parent: parent.as_raw_fd() };
    // SAFETY: the kernel only reads `rule`, which has the layout that it wants.
    #[expect(unsafe_code, reason = "Landlock has no safe wrapper here")]
    let added = unsafe {
        let (set, kind) = (ruleset.as_raw_fd(), RULE_PATH_BENEATH);
        libc::syscall(libc::SYS_landlock_add_rule, set, kind, &raw const rule, 0_u32)
    };
    if added == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Puts this process under the rules, for ever.
pub(super) fn restrict(ruleset: &OwnedFd) -> io::Result<()> {
    // SAFETY: numbers only.
    #[expect(unsafe_code, reason = "Landlock has no safe wrapper here")]
    let done = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0_u32) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
