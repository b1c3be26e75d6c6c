//! The walls around a command: its sandbox and its limits, prepared before it starts and cleared away after it has ended.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use outlast_pty::spawn::Bounds;

use super::Keeper;
use super::ground::{Ends, Ground, system_error};
use crate::failure::Failure;
use crate::lifecycle::StartError;
use crate::limits::{Group, LimitedBy};
use crate::registry::layout;
use crate::sandbox::{Folders, Place, Sandbox};

/// A command between its walls.
pub(super) struct Walled {
    pub(super) argv: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) bounds: Bounds,
    /// What the kernel really does for it, in words.
    pub(super) sandbox_by: Option<String>,
    pub(super) limited_by: Option<LimitedBy>,
}

impl Ground {
    /// Prepares the walls.
    pub(super) fn wall_in(&self, mut env: BTreeMap<String, String>) -> Result<Walled, StartError> {
        let name = format!("{}-{}", std::process::id(), self.job.handle());
        let (limits, limited_by) =
            self.spec.limits.prepare(&name).map_err(|failure| refused("no_such_limit", failure))?;
        let bounds = Bounds { limits, ..Bounds::default() };
        let argv = self.spec.argv();
        let Some(sandbox) = &self.spec.sandbox else {
            return Ok(Walled { argv, env, bounds, sandbox_by: None, limited_by });
        };
        let temporary = self.make_temporary_folder()?;
        for variable in ["TMPDIR", "TMP", "TEMP"] {
            env.insert(variable.into(), temporary.to_string_lossy().into_owned());
        }
        // The user's caches are closed to it: tools get their own, unless they are told where.
        for (variable, folder) in [("XDG_CACHE_HOME", "cache"), ("npm_config_cache", "npm")] {
            let own = temporary.join(folder).to_string_lossy().into_owned();
            env.entry(variable.into()).or_insert(own);
        }
        let terminal = match &self.ends {
            Ends::Terminal { .. } => self.endpoints().first().map(PathBuf::from),
            Ends::Pipes { .. } => None,
        };
        let place = Place {
            home: self.home.path(),
            cwd: Path::new(&self.spec.cwd),
            temporary: &temporary,
            terminal: terminal.as_deref(),
            env: &env,
        };
        let folders = sandbox.folders(place).map_err(|failure| refused("bad_sandbox", failure))?;
        let walls = build(sandbox, &folders, place, (argv, bounds))
            .map_err(|failure| refused("no_sandbox", failure))?;
        let (argv, bounds, by) = walls;
        Ok(Walled { argv, env, bounds, sandbox_by: Some(by), limited_by })
    }

    fn temporary_folder(&self) -> PathBuf {
        self.home.path().join(layout::TEMPORARY).join(self.job.handle().to_string())
    }

    /// Removes it, with all that is in it.
    pub(super) fn remove_temporary_folder(&self) {
        if self.spec.sandbox.is_some() {
            let _ = std::fs::remove_dir_all(self.temporary_folder());
        }
    }

    fn make_temporary_folder(&self) -> Result<PathBuf, StartError> {
        let path = self.temporary_folder();
        std::fs::create_dir_all(&path)
            .map_err(|error| system_error("its temporary folder can't be made", error))?;
        Ok(path)
    }
}

impl Keeper {
    /// Nothing of the job is left: neither is what was made for it.
    pub(super) fn clear_walls(&self) {
        self.ground.remove_temporary_folder();
        if let Some(LimitedBy::Cgroup(path)) = &self.info.limited_by {
            Group::remove(path);
        }
    }

    /// Whether the job's own control group ran out of memory.
    pub(super) fn ran_out_of_memory(&self) -> bool {
        matches!(&self.info.limited_by, Some(LimitedBy::Cgroup(path)) if Group::ran_out_of_memory(path))
    }
}

fn refused(kind: &str, failure: Failure) -> StartError {
    StartError {
        kind: kind.into(),
        message: failure.message,
        hint: failure.hint.unwrap_or_else(|| "see what this machine can do: outlast doctor".into()),
    }
}

#[cfg(target_os = "linux")]
fn build(
    sandbox: &Sandbox,
    folders: &Folders,
    place: Place<'_>,
    (argv, mut bounds): (Vec<String>, Bounds),
) -> Result<(Vec<String>, Bounds, String), Failure> {
    use crate::sandbox::{By, Network};
    use outlast_pty::confine::{self, Confinement, Plan};

    let network = match sandbox.network {
        Network::Off => confine::Network::Off,
        Network::Loopback => confine::Network::Loopback,
        Network::On => confine::Network::On,
    };
    let cannot = |error: confine::ConfineError| {
        Failure::usage(format!("the sandbox that was asked for can't be had: {error}"))
            .hint("nothing was started; see what this machine can do: outlast doctor")
    };
    match sandbox.by {
        By::Kernel => {
            let plan = Plan {
                readable: folders.readable.clone(),
                writable: folders.writable.clone(),
                network,
                unix_sockets: sandbox.unix_sockets,
            };
            bounds.confinement = Some(plan.prepare().map_err(cannot)?);
            Ok((argv, bounds, format!("landlock {} and seccomp", confine::landlock_abi())))
        }
        By::Bwrap => {
            let bytes = Confinement::filter_bytes(network, sandbox.unix_sockets).map_err(cannot)?;
            let filter =
                filter_file(&bytes).map_err(|error| Failure::system("no memory can be had", error))?;
            let number = std::os::fd::AsRawFd::as_raw_fd(&filter);
            let mut wrapped = sandbox.bwrap(folders, place, number)?;
            wrapped.extend(argv);
            bounds.kept.push(filter);
            Ok((wrapped, bounds, "bubblewrap and seccomp".into()))
        }
    }
}

/// The filter, where another program can read it.
#[cfg(target_os = "linux")]
fn filter_file(bytes: &[u8]) -> std::io::Result<std::os::fd::OwnedFd> {
    use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
    let file = memfd_create("outlast-filter", MemfdFlags::CLOEXEC)?;
    crate::registry::replace::write_all(&file, bytes)?;
    seek(&file, SeekFrom::Start(0))?;
    outlast_pty::spawn::above_stdio(file)
}

#[cfg(not(target_os = "linux"))]
fn build(
    _: &Sandbox,
    _: &Folders,
    _: Place<'_>,
    _: (Vec<String>, Bounds),
) -> Result<(Vec<String>, Bounds, String), Failure> {
    Err(Failure::usage("there is no sandbox for this system yet").hint("run it without --sandbox"))
}
