//! The confinement of a command: its sandbox and its limits, prepared before it starts and removed after it
//! has ended.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use outlast_pty::spawn::Confinement;

use super::Keeper;
use super::inherited::{Ends, Inherited, system_error};
use crate::failure::Failure;
use crate::lifecycle::StartError;
use crate::limits::{self, Group, LimitedBy};
use crate::registry::layout;
use crate::sandbox::{self, By, Folders, Place, Sandbox};
use outlast_protocol::{Call, Hint};

/// A confined command.
pub(super) struct ConfinedCommand {
    pub(super) argv: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) confinement: Confinement,
    /// What the kernel really does for it, in words.
    pub(super) sandbox_by: Option<String>,
    pub(super) limited_by: Option<LimitedBy>,
}

/// The program that is executed to run a command in its sandbox.
struct Built {
    argv: Vec<String>,
    /// What that program is started with, which is not the command's environment when it runs outside the
    /// sandbox.
    env: BTreeMap<String, String>,
    confinement: Confinement,
    by: String,
}

impl Inherited {
    /// Prepares the confinement.
    pub(super) fn confine(&self, mut env: BTreeMap<String, String>) -> Result<ConfinedCommand, StartError> {
        let name = format!("{}-{}", std::process::id(), self.job.handle());
        let (limits, limited_by) =
            limits::prepare(&self.spec.limits, &name).map_err(|failure| refused("no_such_limit", failure))?;
        let confinement = Confinement { limits, ..Confinement::default() };
        let argv = self.spec.argv();
        let Some(sandbox) = &self.spec.sandbox else {
            return Ok(ConfinedCommand { argv, env, confinement, sandbox_by: None, limited_by });
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
        let folders = sandbox::folders(sandbox, place).map_err(|failure| refused("bad_sandbox", failure))?;
        let built = build(sandbox, &folders, place, (argv, confinement))
            .map_err(|failure| refused("no_sandbox", failure))?;
        let Built { argv, env, confinement, by } = built;
        Ok(ConfinedCommand { argv, env, confinement, sandbox_by: Some(by), limited_by })
    }

    fn temporary_folder(&self) -> PathBuf {
        self.home.path().join(layout::TEMPORARY).join(self.job.handle().to_string())
    }

    /// Removes it, with all that is in it, and what is left of the placeholders for protected names.
    pub(super) fn remove_temporary_folder(&self) {
        let Some(sandbox) = &self.spec.sandbox else { return };
        let temporary = self.temporary_folder();
        #[cfg(target_os = "linux")]
        {
            let place = Place {
                home: self.home.path(),
                cwd: Path::new(&self.spec.cwd),
                temporary: &temporary,
                terminal: None,
                env: &self.spec.env,
                server: self.spec.server.as_ref(),
            };
            if let Ok(folders) = sandbox::folders(sandbox, place) {
                let protected = Protection::of(sandbox, place).namespaces(sandbox, &folders, place);
                outlast_pty::confine::remove_placeholders(&protected.placeholders);
            }
        }
        let _ = std::fs::remove_dir_all(temporary);
    }

    fn make_temporary_folder(&self) -> Result<PathBuf, StartError> {
        let path = self.temporary_folder();
        std::fs::create_dir_all(&path)
            .map_err(|error| system_error("cannot make its temporary folder", error))?;
        Ok(path)
    }
}

impl Keeper {
    /// Nothing of the job is left: neither is what was made for it.
    pub(super) fn remove_confinement(&self) {
        self.inherited.remove_temporary_folder();
        if let Some(LimitedBy::Cgroup(path)) = &self.core.info().limited_by {
            Group::remove(path);
        }
    }

    /// Whether the kernel ends all of the job together with its command: what is still there at that moment
    /// is on its way out. So it is under bubblewrap, whose process namespace dies with it.
    pub(super) fn ends_with_its_command(&self) -> bool {
        matches!(&self.core.info().sandbox, Some(Sandbox { by: By::Bwrap, .. }))
    }

    /// Whether the job's own control group ran out of memory.
    pub(super) fn ran_out_of_memory(&self) -> bool {
        let limited_by = self.core.info().limited_by;
        matches!(limited_by, Some(LimitedBy::Cgroup(path)) if Group::ran_out_of_memory(&path))
    }
}

fn refused(kind: &str, failure: Failure) -> StartError {
    StartError {
        kind: kind.into(),
        message: failure.message,
        hint: failure.hint.unwrap_or_else(|| Hint::call("see what this machine can do: ", Call::Doctor)),
    }
}

#[cfg(target_os = "linux")]
fn build(
    sandbox: &Sandbox,
    folders: &Folders,
    place: Place<'_>,
    (argv, mut confinement): (Vec<String>, Confinement),
) -> Result<Built, Failure> {
    use crate::sandbox::Network;
    use outlast_pty::confine::{self, Plan, PreparedSandbox};
    use std::os::fd::AsRawFd;

    let network = match sandbox.network {
        Network::Off => confine::Network::Off,
        Network::Loopback => confine::Network::Loopback,
        Network::On => confine::Network::On,
    };
    let cannot = |error: confine::ConfineError| {
        Failure::usage(format!("the sandbox that was asked for is not available: {error}"))
            .hint(Hint::call("nothing was started; see what this machine can do: ", Call::Doctor))
    };
    match sandbox.by {
        By::Kernel => {
            let protection = Protection::of(sandbox, place);
            // What must be there is tried when the command starts.
            let enclosed = protection == Protection::Required || confine::can_enclose().is_ok();
            let namespaces = enclosed.then(|| protection.namespaces(sandbox, folders, place));
            let plan = Plan {
                readable: folders.readable.clone(),
                writable: folders.writable.clone(),
                network,
                unix_sockets: sandbox.unix_sockets,
                namespaces,
            };
            confinement.sandbox = Some(plan.prepare().map_err(cannot)?);
            let landlock = confine::landlock_abi();
            let by = match (enclosed, protection) {
                (true, Protection::Off) => {
                    format!("landlock {landlock}, seccomp and namespaces; protected names are open")
                }
                (true, Protection::Required | Protection::IfPossible) => {
                    format!("landlock {landlock}, seccomp and namespaces")
                }
                (false, _) => format!("landlock {landlock} and seccomp; protected names are open"),
            };
            Ok(Built { argv, env: place.env.clone(), confinement, by })
        }
        By::Bwrap => {
            let program = crate::sandbox::bwrap().ok_or_else(|| {
                Failure::usage("bubblewrap is not on this machine")
                    .hint("install it (the program bwrap), or let the kernel do it: --sandbox")
            })?;
            let no_memory = |error| Failure::system("cannot create a memory file for the sandbox", error);
            let bytes = PreparedSandbox::filter_bytes(network, sandbox.unix_sockets).map_err(cannot)?;
            let filter = memory_file("outlast-filter", &bytes).map_err(no_memory)?;
            // Bubblewrap reads its options from a descriptor: they hold the job's environment, and a command
            // line can be read by every user.
            let protected = Protection::of(sandbox, place).namespaces(sandbox, folders, place);
            let held = confine::HeldPlaceholders::make(&protected.placeholders)
                .map_err(|error| Failure::system("cannot protect names", error))?;
            let options = sandbox::bwrap_options(sandbox, folders, place, &protected, filter.as_raw_fd());
            if options.iter().any(|word| word.contains('\0')) {
                return Err(Failure::usage("a path or variable of the sandbox contains a NUL byte"));
            }
            let lines: Vec<u8> = options.iter().flat_map(|word| word.bytes().chain([0])).collect();
            let options = memory_file("outlast-options", &lines).map_err(no_memory)?;
            let mut wrapped = vec![program.to_string_lossy().into_owned(), "--args".into()];
            wrapped.extend([options.as_raw_fd().to_string(), "--".into()]);
            wrapped.extend(argv);
            confinement.inherited.extend([filter, options]);
            // It runs outside the sandbox: nothing of the job may act in it, neither LD_PRELOAD nor anything
            // like it.
            let env = BTreeMap::new();
            // As long as this keeper lives: whoever else works there does not take them away.
            std::mem::forget(held);
            Ok(Built { argv: wrapped, env, confinement, by: "bubblewrap and seccomp".into() })
        }
    }
}

/// Whether protected names are out of a job's reach.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protection {
    /// They must be.
    Required,
    /// They are where this user can have namespaces.
    IfPossible,
    /// They are not.
    Off,
}

#[cfg(target_os = "linux")]
impl Protection {
    fn of(sandbox: &Sandbox, place: Place<'_>) -> Self {
        use sandbox::protected::Protect;
        match (sandbox.protect, place.server) {
            (Some(Protect::Require), _) | (None, Some(_)) => Self::Required,
            (None, None) => Self::IfPossible,
            (Some(Protect::Off), _) => Self::Off,
        }
    }

    fn namespaces(
        self,
        sandbox: &Sandbox,
        folders: &Folders,
        place: Place<'_>,
    ) -> outlast_pty::confine::Namespaces {
        use sandbox::protected::{self, Git};
        let git = sandbox.git.unwrap_or(if place.server.is_some() { Git::Read } else { Git::Write });
        match self {
            Self::Required | Self::IfPossible => protected::namespaces(folders, git),
            Self::Off => outlast_pty::confine::Namespaces::default(),
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
fn build(_: &Sandbox, _: &Folders, _: Place<'_>, _: (Vec<String>, Confinement)) -> Result<Built, Failure> {
    Err(Failure::usage("there is no sandbox for this system yet").hint("run it without --sandbox"))
}
