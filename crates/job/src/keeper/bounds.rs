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
use crate::sandbox::{By, Folders, Place, Sandbox};

/// A command between its walls.
pub(super) struct Walled {
    pub(super) argv: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) bounds: Bounds,
    /// What the kernel really does for it, in words.
    pub(super) sandbox_by: Option<String>,
    pub(super) limited_by: Option<LimitedBy>,
}

/// The program that is executed to run a command in its sandbox.
struct Built {
    argv: Vec<String>,
    /// What that program is started with, which is not the command's environment when it runs outside the walls.
    env: BTreeMap<String, String>,
    bounds: Bounds,
    by: String,
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
            server: self.spec.server.as_ref(),
        };
        let folders = sandbox.folders(place).map_err(|failure| refused("bad_sandbox", failure))?;
        let built = build(sandbox, &folders, place, (argv, bounds))
            .map_err(|failure| refused("no_sandbox", failure))?;
        let Built { argv, env, bounds, by } = built;
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

    /// Whether the kernel ends all of the job together with its command: what is still there at that moment is on its way out.
    /// So it is under bubblewrap, whose process namespace dies with it.
    pub(super) fn ends_with_its_command(&self) -> bool {
        matches!(&self.info.sandbox, Some(Sandbox { by: By::Bwrap, .. }))
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
) -> Result<Built, Failure> {
    use crate::sandbox::Network;
    use outlast_pty::confine::{self, Confinement, Plan};
    use std::os::fd::AsRawFd;

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
            let by = format!("landlock {} and seccomp", confine::landlock_abi());
            Ok(Built { argv, env: place.env.clone(), bounds, by })
        }
        By::Bwrap => {
            let program = crate::sandbox::bwrap().ok_or_else(|| {
                Failure::usage("bubblewrap is not on this machine")
                    .hint("install it (the program bwrap), or let the kernel do it: --sandbox")
            })?;
            let no_memory = |error| Failure::system("cannot create a memory file for the sandbox", error);
            let bytes = Confinement::filter_bytes(network, sandbox.unix_sockets).map_err(cannot)?;
            let filter = memory_file("outlast-filter", &bytes).map_err(no_memory)?;
            // Bubblewrap reads its options from a descriptor: they hold the job's environment, and a command line can be
            // read by every user.
            let options = sandbox.bwrap_options(folders, place, filter.as_raw_fd());
            if options.iter().any(|word| word.contains('\0')) {
                return Err(Failure::usage("a path or variable of the sandbox contains a NUL byte"));
            }
            let lines: Vec<u8> = options.iter().flat_map(|word| word.bytes().chain([0])).collect();
            let options = memory_file("outlast-options", &lines).map_err(no_memory)?;
            let mut wrapped = vec![program.to_string_lossy().into_owned(), "--args".into()];
            wrapped.extend([options.as_raw_fd().to_string(), "--".into()]);
            wrapped.extend(argv);
            bounds.kept.extend([filter, options]);
            // It runs outside the walls: nothing of the job may act in it, neither LD_PRELOAD nor anything like it.
            let env = BTreeMap::new();
            Ok(Built { argv: wrapped, env, bounds, by: "bubblewrap and seccomp".into() })
        }
    }
}

/// A file in memory that another program reads by its descriptor.
#[cfg(target_os = "linux")]
fn memory_file(name: &str, bytes: &[u8]) -> std::io::Result<std::os::fd::OwnedFd> {
    use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
    let file = memfd_create(name, MemfdFlags::CLOEXEC)?;
    crate::registry::replace::write_all(&file, bytes)?;
    seek(&file, SeekFrom::Start(0))?;
    outlast_pty::spawn::above_stdio(file)
}

#[cfg(not(target_os = "linux"))]
fn build(_: &Sandbox, _: &Folders, _: Place<'_>, _: (Vec<String>, Bounds)) -> Result<Built, Failure> {
    Err(Failure::usage("there is no sandbox for this system yet").hint("run it without --sandbox"))
}
