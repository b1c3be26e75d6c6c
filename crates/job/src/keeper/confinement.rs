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
        let closed = self.closed_files().map_err(|failure| refused("no_guard", failure))?;
        let Some(sandbox) = &self.spec.sandbox else {
            let mut confinement = confinement;
            close_files(&mut confinement, closed).map_err(|failure| refused("no_guard", failure))?;
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
        if self.spec.reaches_hosts() {
            env.extend(proxy_variables());
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
        let built = build(sandbox, &folders, place, (argv, confinement, closed))
            .map_err(|failure| refused("no_sandbox", failure))?;
        let Built { argv, env, confinement, by } = built;
        Ok(ConfinedCommand { argv, env, confinement, sandbox_by: Some(by), limited_by })
    }

    /// What rules about files close to this job; nothing if there is no such rule.
    fn closed_files(&self) -> Result<Option<ClosedFiles>, Failure> {
        let rules = self.file_rules();
        if rules.is_empty() {
            return Ok(None);
        }
        closed_files(rules, &self.file_folders()).map(Some)
    }

    fn file_rules(&self) -> &[outlast_rules::files::FileRule] {
        self.spec.guard.as_ref().map_or(&[], |guard| &guard.files)
    }

    /// Where names of closed files are looked for: where the job starts, and where whoever started it stands.
    fn file_folders(&self) -> Vec<PathBuf> {
        let full = |path: &str| Path::new(path).canonicalize().ok();
        let roots = self.spec.sandbox.iter().flat_map(|sandbox| &sandbox.roots).map(String::as_str);
        let folders = [self.spec.cwd.as_str()].into_iter().chain(self.spec.wake_folder.as_deref());
        let mut folders: Vec<PathBuf> = folders.chain(roots).filter_map(full).collect();
        // A server that was started in the root of the file system works nowhere in particular.
        folders.retain(|folder| folder != Path::new("/") || self.spec.cwd == "/");
        folders.sort();
        folders.dedup();
        folders
    }

    fn temporary_folder(&self) -> PathBuf {
        self.home.path().join(layout::TEMPORARY).join(self.job.handle().to_string())
    }

    /// Removes it, with all that is in it, and what is left of the placeholders for protected names.
    pub(super) fn remove_temporary_folder(&self) {
        #[cfg(all(target_os = "linux", not(outlast_portable)))]
        if !self.file_rules().is_empty() {
            let left = sandbox::closed::placeholders(self.file_rules(), &self.file_folders());
            outlast_pty::confine::remove_placeholders(&left);
        }
        if self.spec.sandbox.is_none() {
            return;
        }
        let temporary = self.temporary_folder();
        #[cfg(all(target_os = "linux", not(outlast_portable)))]
        if let Some(sandbox) = &self.spec.sandbox {
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

/// Variables by which programs know their proxy.
fn proxy_variables() -> impl Iterator<Item = (String, String)> {
    let proxy = format!("http://127.0.0.1:{}", outlast_pty::spawn::PROXY_PORT);
    let names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
    let own = ["NO_PROXY", "no_proxy"].map(|name| (name.to_owned(), "localhost,127.0.0.1,::1".to_owned()));
    names.into_iter().map(move |name| (name.to_owned(), proxy.clone())).chain(own)
}

fn refused(kind: &str, failure: Failure) -> StartError {
    StartError {
        kind: kind.into(),
        message: failure.message,
        hint: failure.hint.unwrap_or_else(|| Hint::call("see what this machine can do: ", Call::Doctor)),
    }
}

/// What is mounted to close files.
#[cfg(all(target_os = "linux", not(outlast_portable)))]
type ClosedFiles = outlast_pty::confine::Namespaces;
#[cfg(any(not(target_os = "linux"), outlast_portable))]
type ClosedFiles = ();

#[cfg(all(target_os = "linux", not(outlast_portable)))]
fn closed_files(
    rules: &[outlast_rules::files::FileRule],
    folders: &[PathBuf],
) -> Result<ClosedFiles, Failure> {
    sandbox::closed::namespaces(rules, folders)
}

#[cfg(any(not(target_os = "linux"), outlast_portable))]
fn closed_files(_: &[outlast_rules::files::FileRule], _: &[PathBuf]) -> Result<ClosedFiles, Failure> {
    Err(Failure::usage("rules about files can't be enforced on this system"))
}

/// Closes files to a command that has no sandbox.
#[cfg(all(target_os = "linux", not(outlast_portable)))]
fn close_files(confinement: &mut Confinement, closed: Option<ClosedFiles>) -> Result<(), Failure> {
    let Some(closed) = closed else { return Ok(()) };
    let prepared = outlast_pty::confine::PreparedSandbox::files_only(&closed)
        .map_err(|error| Failure::usage(format!("rules about files can't be enforced: {error}")))?;
    confinement.sandbox = Some(prepared);
    Ok(())
}

#[cfg(any(not(target_os = "linux"), outlast_portable))]
fn close_files(_: &mut Confinement, _: Option<ClosedFiles>) -> Result<(), Failure> {
    Ok(())
}

#[cfg(all(target_os = "linux", not(outlast_portable)))]
fn build(
    sandbox: &Sandbox,
    folders: &Folders,
    place: Place<'_>,
    (argv, mut confinement, closed): (Vec<String>, Confinement, Option<ClosedFiles>),
) -> Result<Built, Failure> {
    use crate::sandbox::Network;
    use outlast_pty::confine::{self, Namespaces, Plan, PreparedSandbox};
    use std::os::fd::AsRawFd;

    let network = match sandbox.network {
        Network::Off => confine::Network::Off,
        Network::Loopback => confine::Network::Loopback,
        Network::Hosts => confine::Network::Hosts,
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
            let is_needed =
                protection == Protection::Required || closed.is_some() || sandbox.network == Network::Hosts;
            let enclosed = is_needed || confine::can_enclose().is_ok();
            let namespaces = enclosed.then(|| {
                let namespaces = with_closed(protection.namespaces(sandbox, folders, place), closed);
                Namespaces { view: Some(folders.view(sandbox, place)), ..namespaces }
            });
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
        By::Bwrap if sandbox.network == Network::Hosts => {
            Err(Failure::usage("a sandbox by bubblewrap can't reach hosts through a proxy")
                .hint("let the kernel make it: --sandbox, or by = \"kernel\""))
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
            let protected = with_closed(protected, closed);
            if let Some(link) = links_in(&protected).next() {
                let said = format!("bubblewrap can't hold {}, which is a symlink", link.display());
                return Err(Failure::usage(said).hint(
                    "let the kernel make the sandbox: --sandbox, or by = \"kernel\" in [agents.sandbox]",
                ));
            }
            confine::keep_placeholders(&protected.placeholders)
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
            Ok(Built { argv: wrapped, env, confinement, by: "bubblewrap and seccomp".into() })
        }
    }
}

/// Protected names and closed files together. Files are closed last, so also in folders that are mounted before.
#[cfg(all(target_os = "linux", not(outlast_portable)))]
fn with_closed(mut protected: ClosedFiles, closed: Option<ClosedFiles>) -> ClosedFiles {
    if let Some(closed) = closed {
        protected.mounts.extend(closed.mounts);
        protected.placeholders.extend(closed.placeholders);
        protected.closed.extend(closed.closed);
    }
    protected
}

/// What is to be mounted over a symlink: bubblewrap would follow it, and the link itself could be replaced.
#[cfg(target_os = "linux")]
fn links_in(namespaces: &ClosedFiles) -> impl Iterator<Item = &Path> {
    let mounts = namespaces.mounts.iter().map(|mount| mount.target.as_path());
    mounts
        .chain(namespaces.closed.iter().map(|closed| closed.path.as_path()))
        .filter(|path| path.is_symlink())
}

/// Whether protected names are out of a job's reach.
#[cfg(all(target_os = "linux", not(outlast_portable)))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protection {
    /// They must be.
    Required,
    /// They are where this user can have namespaces.
    IfPossible,
    /// They are not.
    Off,
}

#[cfg(all(target_os = "linux", not(outlast_portable)))]
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
            Self::Required | Self::IfPossible => protected::namespaces(folders, place.works_in(), git),
            Self::Off => outlast_pty::confine::Namespaces::default(),
        }
    }
}

/// A file in memory that another program reads by its descriptor.
#[cfg(all(target_os = "linux", not(outlast_portable)))]
fn memory_file(name: &str, bytes: &[u8]) -> std::io::Result<std::os::fd::OwnedFd> {
    use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
    let file = memfd_create(name, MemfdFlags::CLOEXEC)?;
    crate::registry::replace::write_all(&file, bytes)?;
    seek(&file, SeekFrom::Start(0))?;
    outlast_pty::spawn::above_stdio(file)
}

#[cfg(any(not(target_os = "linux"), outlast_portable))]
fn build(
    _: &Sandbox,
    _: &Folders,
    _: Place<'_>,
    _: (Vec<String>, Confinement, Option<ClosedFiles>),
) -> Result<Built, Failure> {
    Err(Failure::usage("there is no sandbox for this system yet").hint("run it without --sandbox"))
}
