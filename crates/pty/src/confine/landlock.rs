//! Landlock: files, TCP, signals and abstract sockets, by rules that the kernel keeps.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::fs::{FileType, Mode, OFlags, fstat, open};

use super::{ConfineError, Network, OLDEST_LANDLOCK, Plan};

/// The version whose rights on files are handled. A later one handles more, and would refuse what works today.
const FILES: ABI = ABI::V3;

const CREATE_VERSION: u32 = 1;

/// The version of Landlock in this kernel; 0 for none.
#[must_use]
pub fn abi() -> i32 {
    // SAFETY: asks for the version only; no memory is looked at.
    #[expect(unsafe_code, reason = "the landlock crate keeps the version to itself")]
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, CREATE_VERSION)
    };
    i32::try_from(version).unwrap_or(0).max(0)
}

/// Makes the rules of a plan.
pub(super) fn ruleset(plan: &Plan) -> Result<OwnedFd, ConfineError> {
    let version = abi();
    if version < OLDEST_LANDLOCK {
        return Err(ConfineError::NoLandlock { found: version });
    }
    let mut rules = handled(plan.network).map_err(|error| ConfineError::System(io::Error::other(error)))?;
    for path in &plan.readable {
        match allow(&mut rules, path, AccessFs::from_read(FILES)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // What we may not look at ourselves, the command can't either.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            other => other.map_err(|source| ConfineError::NoFolder { path: path.clone(), source })?,
        }
    }
    // Nobody may make device files.
    let write = AccessFs::from_all(FILES) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    for path in &plan.writable {
        allow(&mut rules, path, write)
            .map_err(|source| ConfineError::NoFolder { path: path.clone(), source })?;
    }
    Option::from(rules).ok_or(ConfineError::NoLandlock { found: version })
}

/// Rules that refuse everything they are about. All rights on files must be known to this kernel. Older ones know
/// nothing of TCP and of scopes; what they lack of the network, the system call filter does.
fn handled(network: Network) -> Result<RulesetCreated, RulesetError> {
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(FILES))?
        .set_compatibility(CompatLevel::BestEffort)
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?;
    let rules = match network {
        Network::Off => rules.handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)?,
        Network::Loopback | Network::Hosts | Network::On => rules,
    };
    Ok(rules.create()?.set_compatibility(CompatLevel::HardRequirement))
}

fn allow(rules: &mut RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> io::Result<()> {
    let parent = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let folder = FileType::from_raw_mode(fstat(&parent)?.st_mode) == FileType::Directory;
    // A file has nothing below it that could be allowed.
    let access = if folder { access } else { access & AccessFs::from_file(FILES) };
    rules.add_rule(PathBeneath::new(parent, access)).map_err(io::Error::other)?;
    Ok(())
}

/// Allows reading a folder that was mounted after the rules were made: a rule about what it covers does not count for
/// it. It runs between fork and exec, so it only makes system calls.
pub(super) fn allow_reading(ruleset: &OwnedFd, path: &std::ffi::CStr) -> io::Result<()> {
    #[repr(C, packed)]
    struct PathBeneathAttr {
        allowed_access: u64,
        parent_fd: i32,
    }
    const PATH_BENEATH: u32 = 1;
    const EXECUTE: u64 = 1;
    const READ_FILE: u64 = 1 << 2;
    const READ_DIR: u64 = 1 << 3;
    let parent = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let rule =
        PathBeneathAttr { allowed_access: EXECUTE | READ_FILE | READ_DIR, parent_fd: parent.as_raw_fd() };
    let add = libc::SYS_landlock_add_rule;
    // SAFETY: the kernel only reads the rule, which outlives the call.
    #[expect(unsafe_code, reason = "after a fork only system calls are allowed")]
    let done = unsafe { libc::syscall(add, ruleset.as_raw_fd(), PATH_BENEATH, &raw const rule, 0_u32) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Puts this process under the rules, permanently. It runs between fork and exec, so it only makes a system call: what the
/// crate does there allocates.
pub(super) fn restrict(ruleset: &OwnedFd) -> io::Result<()> {
    // SAFETY: numbers only.
    #[expect(unsafe_code, reason = "after a fork only system calls are allowed")]
    let done = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0_u32) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
