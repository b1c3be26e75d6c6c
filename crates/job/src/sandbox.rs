//! The sandbox of a job: what was requested, which folders that means, and why it is not possible.
//!
//! By default such a job can read the system and the tools in the user's home, but nothing else of it; it can
//! write only to its own folder and a temporary one of its own; and it has no network. It cannot talk to any
//! keeper, to any other Unix socket, or to processes outside. See `docs/guide/sandbox.md`.

#[cfg(all(target_os = "linux", not(outlast_portable)))]
pub(crate) mod closed;
pub(crate) mod hosts;
#[cfg(all(target_os = "linux", not(outlast_portable)))]
pub(crate) mod protected;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[cfg(all(target_os = "linux", not(outlast_portable)))]
pub use closed::can_close_files;
pub use outlast_protocol::sandbox::{By, Git, Network, Protect, Sandbox, Server};

use crate::failure::Failure;
use outlast_protocol::{Call, Hint};

/// Whether files can be closed to a job on this system.
///
/// # Errors
/// It has no namespaces.
#[cfg(any(not(target_os = "linux"), outlast_portable))]
pub fn can_close_files() -> Result<(), String> {
    Err("this system has none".into())
}

/// This process, as the server that starts an agent's job.
pub(crate) fn this_server() -> Server {
    let mut env = crate::spec::inherited_env();
    env.retain(|name, _| {
        ["HOME", "PATH"].contains(&name.as_str()) || TOOL_VARIABLES.contains(&name.as_str())
    });
    let settings = crate::settings::Settings::path();
    let settings = settings.and_then(|file| file.parent()?.canonicalize().ok());
    Server { folder: std::env::current_dir().unwrap_or_else(|_| "/".into()), env, settings }
}

/// The parts of the system that programs need.
const SYSTEM: &[&str] = &[
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/usr",
    "/etc",
    "/opt",
    "/nix",
    "/gnu",
    "/snap",
    "/sys",
    "/proc",
    "/var/lib",
    "/var/cache",
    "/run/current-system",
    "/run/systemd/resolve",
];
/// Devices that only produce or consume bytes.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// The devices that can be written to.
const SINKS: &[&str] = &["/dev/null", "/dev/zero", "/dev/full"];
/// Tools in a user's home. None of these folders holds a key.
const TOOLS: &[&str] = &[
    ".asdf",
    ".bun/bin",
    ".bun/install",
    ".cargo/bin",
    ".cargo/config.toml",
    ".cargo/env",
    ".cargo/git",
    ".cargo/registry",
    ".config/git/config",
    ".config/git/ignore",
    ".deno/bin",
    ".gitconfig",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/uv",
    ".npm/_npx",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman/candidates",
    ".volta",
    "go/bin",
    "go/pkg",
];
/// Variables that name a tool's folder.
const TOOL_VARIABLES: &[&str] = &[
    "RUSTUP_HOME",
    "NVM_DIR",
    "NVM_BIN",
    "PYENV_ROOT",
    "GOROOT",
    "JAVA_HOME",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "VOLTA_HOME",
    "PNPM_HOME",
    "FNM_DIR",
];
#[cfg(all(target_os = "linux", not(outlast_portable)))]
/// Where bubblewrap may be. It is not searched in the job's own `PATH`: that must not decide about the
/// sandbox.
const BWRAP: &[&str] =
    &["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap"];

/// Where a job runs, as far as its sandbox must know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// The home of all jobs.
    pub(crate) home: &'a Path,
    /// The folder in which the job starts.
    pub(crate) cwd: &'a Path,
    /// Its own temporary folder.
    pub(crate) temporary: &'a Path,
    /// Its terminal, if it has one.
    pub(crate) terminal: Option<&'a Path>,
    /// Its environment.
    pub(crate) env: &'a BTreeMap<String, String>,
    /// For an agent's job, the server that starts it.
    pub(crate) server: Option<&'a Server>,
}

impl<'a> Place<'a> {
    /// The environment in which the user's home and tools are looked up.
    fn tools(&self) -> &'a BTreeMap<String, String> {
        self.server.map_or(self.env, |server| &server.env)
    }

    /// What a relative path is relative to.
    fn base(&self) -> &'a Path {
        self.server.map_or(self.cwd, |server| &server.folder)
    }

    /// Where people and their tools look for settings: the folder of the job, and that of its server.
    pub(crate) fn works_in(&self) -> [&'a Path; 2] {
        [self.cwd, self.base()]
    }

    fn user(&self) -> Option<PathBuf> {
        self.tools().get("HOME").and_then(|home| Path::new(home).canonicalize().ok())
    }
}

/// A sandbox as folders, all with symlinks resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Folders {
    /// Those that it works in; they are writable.
    own: Vec<PathBuf>,
    /// Others that the user named as writable.
    named: Vec<PathBuf>,
    pub(crate) readable: Vec<PathBuf>,
    pub(crate) writable: Vec<PathBuf>,
}

/// The folders of this sandbox.
///
/// # Errors
/// A usage failure if a folder does not exist, or would let the job escape.
pub(crate) fn folders(sandbox: &Sandbox, place: Place<'_>) -> Result<Folders, Failure> {
    for host in &sandbox.hosts {
        hosts::AllowedHost::parse(host)?;
    }
    if !sandbox.hosts.is_empty() && sandbox.network != Network::Hosts {
        return Err(Failure::usage("hosts are named, and the network is not \"hosts\"")
            .hint("say --network hosts, or network = \"hosts\" in [agents.sandbox]"));
    }
    let user = place.user();
    let own = match place.server {
        Some(server) => roots_of(sandbox, server, place)?,
        None => vec![own_folder(place)?],
    };
    let named =
        sandbox.writable.iter().map(|path| given(path, place, &own)).collect::<Result<Vec<_>, _>>()?;
    let mut writable = own.clone();
    writable.extend(named.iter().cloned());
    let mut readable: Vec<PathBuf> = SYSTEM.iter().chain(DEVICES).map(PathBuf::from).collect();
    for path in &sandbox.readable {
        readable.push(given(path, place, &own)?);
    }
    if let Some(user) = &user {
        readable.extend(TOOLS.iter().map(|tool| user.join(tool)));
    }
    // A folder of programs, not everything that the user has.
    let wide = |path: &Path| {
        user.as_ref().is_some_and(|user| user.starts_with(path)) || place.home.starts_with(path)
    };
    let tools = place.tools();
    let variables = TOOL_VARIABLES.iter().filter_map(|name| tools.get(*name)).map(PathBuf::from);
    let path = tools.get("PATH").map(String::as_str).unwrap_or_default();
    for tool in std::env::split_paths(path).chain(variables) {
        if !tool.is_absolute() || wide(&tool) {
            continue;
        }
        // Shims link to the rest of a version manager.
        if let (Some("shims"), Some(manager)) =
            (tool.file_name().and_then(|name| name.to_str()), tool.parent())
            && tool.is_dir()
            && !wide(manager)
        {
            readable.push(manager.to_owned());
        }
        readable.push(tool);
    }
    writable.push(place.temporary.to_owned());
    writable.extend(SINKS.iter().map(PathBuf::from));
    writable.push("/dev/tty".into());
    writable.extend(place.terminal.map(Path::to_owned));
    writable.retain(|path| path.exists());
    readable.retain(|path| path.exists());
    Ok(Folders { own, named, readable, writable })
}

impl Folders {
    /// What a job sees of the file system: nothing of the home and of the jobs but what it may use. Whoever lets it have Unix
    /// sockets wants it to find them, also there.
    #[cfg(all(target_os = "linux", not(outlast_portable)))]
    pub(crate) fn view(&self, sandbox: &Sandbox, place: Place<'_>) -> outlast_pty::confine::View {
        let jobs = place.home.canonicalize().ok();
        let user = place.user().filter(|user| user.parent().is_some());
        let hidden = user.into_iter().chain(jobs).filter(|_| !sandbox.unix_sockets);
        outlast_pty::confine::View {
            writable: self.writable.clone(),
            hidden: hidden.collect(),
            readable: self.readable.clone(),
        }
    }

    #[cfg(all(target_os = "linux", not(outlast_portable)))]
    /// The writable folders that others use too: all but the job's temporary one and devices.
    pub(crate) fn shared(&self) -> impl Iterator<Item = &PathBuf> {
        self.own.iter().chain(&self.named).filter(|path| path.is_dir() && !path.starts_with("/dev"))
    }
}

/// The folders that an agent's job may work in; the one in which it starts must be below one of them.
fn roots_of(sandbox: &Sandbox, server: &Server, place: Place<'_>) -> Result<Vec<PathBuf>, Failure> {
    let user = place.user();
    let started_in = [server.folder.to_string_lossy().into_owned()];
    let named = if sandbox.roots.is_empty() { &started_in[..] } else { &sandbox.roots };
    let mut roots = Vec::new();
    for path in named {
        let root = followed(path, place)?;
        if root == Path::new("/") || user.as_ref().is_some_and(|user| user.starts_with(&root)) {
            return Err(Failure::usage(format!(
                "the sandbox of agents can't have all of {}: your home would be open to it",
                root.display()
            ))
            .hint(ROOTS));
        }
        roots.push(root);
    }
    for path in named {
        given(path, place, &roots).map_err(|failure| failure.hint(ROOTS))?;
    }
    let start = place.cwd.canonicalize().map_err(|error| {
        Failure::usage(format!("the sandbox can't begin in {}: {error}", place.cwd.display()))
            .hint("make the folder first, or give another")
    })?;
    if roots.iter().any(|root| start.starts_with(root)) {
        return Ok(roots);
    }
    let listed: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
    Err(Failure::usage(format!(
        "the sandbox of agents can't begin in {}: their jobs work below {}",
        start.display(),
        listed.join(", ")
    ))
    .hint(format!("start it there; for more, {ROOTS}")))
}

/// The options with which bubblewrap builds the same sandbox, and sets the command's environment only inside
/// it. It reads the system call filter from the descriptor `filter`.
#[cfg(all(target_os = "linux", not(outlast_portable)))]
pub(crate) fn bwrap_options(
    sandbox: &Sandbox,
    folders: &Folders,
    place: Place<'_>,
    protected: &outlast_pty::confine::Namespaces,
    filter: i32,
) -> Vec<String> {
    let mut options = Vec::new();
    let mut add = |words: &[&str]| options.extend(words.iter().map(|word| (*word).to_owned()));
    add(&["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]);
    add(&["--die-with-parent", "--cap-drop", "ALL"]);
    if sandbox.network != Network::On {
        add(&["--unshare-net"]);
    }
    let filter = filter.to_string();
    for path in &folders.readable {
        let path = path.to_string_lossy();
        if !path.starts_with("/proc") && !path.starts_with("/dev") {
            add(&["--ro-bind-try", &path, &path]);
        }
    }
    add(&["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]);
    // For root these are writable in a new /proc too, and affect the whole machine: a core_pattern is run
    // outside.
    for path in ["/proc/sys", "/proc/sysrq-trigger"] {
        add(&["--ro-bind-try", path, path]);
    }
    for path in &folders.writable {
        let path = path.to_string_lossy();
        if !path.starts_with("/dev") {
            add(&["--bind", &path, &path]);
        }
    }
    let own = place.cwd.to_string_lossy();
    // These run outside when a person next works there.
    for mount in &protected.mounts {
        let (source, target) = (mount.source.to_string_lossy(), mount.target.to_string_lossy());
        add(&[if mount.read_only { "--ro-bind" } else { "--bind" }, &source, &target]);
    }
    for closed in &protected.closed {
        let path = closed.path.to_string_lossy();
        if closed.is_folder {
            add(&["--tmpfs", &path, "--remount-ro", &path]);
        } else {
            // A device that may not be opened: bubblewrap mounts without them.
            add(&["--ro-bind", "/dev/null", &path]);
        }
    }
    for (name, value) in place.env {
        add(&["--setenv", name, value]);
    }
    add(&["--chdir", &own, "--seccomp", &filter]);
    options
}

#[cfg(all(target_os = "linux", not(outlast_portable)))]
/// Bubblewrap, if it is on this machine.
pub(crate) fn bwrap() -> Option<PathBuf> {
    BWRAP.iter().map(PathBuf::from).find(|path| path.is_file())
}

/// How the user chooses where agents' jobs may work.
const ROOTS: &str =
    "the user names the folders of agents' jobs: [agents.sandbox] roots = [\"~/src/project\"] in config.toml";

/// The folder in which a person's job starts and works.
fn own_folder(place: Place<'_>) -> Result<PathBuf, Failure> {
    let own = given(place.cwd.to_string_lossy().as_ref(), place, &[])?;
    if place.user().is_some_and(|user| user.starts_with(&own)) {
        return Err(Failure::usage(format!(
            "a sandbox can't begin in {}: all of your home would be open to it",
            own.display()
        ))
        .hint(Hint::call("start it in the folder that it is about: ", Call::RunInFolder)));
    }
    Ok(own)
}

/// A named folder as an absolute path.
fn full_path(path: &str, place: Place<'_>) -> PathBuf {
    match (path.strip_prefix('~'), place.tools().get("HOME")) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            format!("{home}{rest}").into()
        }
        _ => place.base().join(path),
    }
}

/// A named folder with symlinks resolved.
fn followed(path: &str, place: Place<'_>) -> Result<PathBuf, Failure> {
    full_path(path, place).canonicalize().map_err(|error| {
        Failure::usage(format!("the sandbox can't have {path:?}: {error}"))
            .hint("make the folder first, or leave it out")
    })
}

/// A named folder with symlinks resolved. It must not contain the jobs themselves or, for an agent, the
/// settings. Inside a folder that an agent's jobs can change, it must not be a symlink that leads out: they
/// could have created it.
fn given(path: &str, place: Place<'_>, changed: &[PathBuf]) -> Result<PathBuf, Failure> {
    let full = followed(path, place)?;
    let jobs = place.home.canonicalize().unwrap_or_else(|_| place.home.to_owned());
    let closed = |what: &str| {
        Err(Failure::usage(format!("a sandbox can't have {}: {what}", full.display()))
            .hint("name narrower folders"))
    };
    if jobs.starts_with(&full) || full.starts_with(&jobs) {
        return closed("the jobs themselves are in there");
    }
    let Some(server) = place.server else { return Ok(full) };
    if server.settings.as_ref().is_some_and(|settings| settings.starts_with(&full)) {
        return closed("the settings and the policy are in there");
    }
    let written = full_path(path, place);
    if changed.iter().any(|root| written.starts_with(root) && !full.starts_with(root)) {
        return closed("it is reached by a link that agents' jobs can change");
    }
    Ok(full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_has_its_folder_and_the_system_but_not_the_home() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for folder in ["user/.ssh", "user/.cargo/bin", "user/work", "user/state/outlast", "tmp", "extra"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        let user = root.join("user");
        let env: BTreeMap<String, String> = [
            ("HOME".to_owned(), user.to_string_lossy().into_owned()),
            ("PATH".to_owned(), format!("/usr/bin:{}:{}", user.display(), user.join(".cargo/bin").display())),
        ]
        .into();
        let (home, temporary) = (user.join("state/outlast"), root.join("tmp"));
        let work = user.join("work");
        let at_work =
            Place { home: &home, cwd: &work, temporary: &temporary, terminal: None, env: &env, server: None };
        let sandbox = Sandbox { readable: vec!["../../extra".into()], ..Sandbox::default() };
        let built = folders(&sandbox, at_work).unwrap();
        assert!(built.writable.contains(&work) && built.writable.contains(&temporary));
        assert!(built.readable.contains(&root.join("extra")));
        assert!(built.readable.contains(&user.join(".cargo/bin")));
        let all = || built.readable.iter().chain(&built.writable);
        assert!(!all().any(|path| user.join(".ssh").starts_with(path)), "{built:?}");
        assert!(!all().any(|path| home.starts_with(path)), "{built:?}");
        let wide = |sandbox: &Sandbox| folders(sandbox, at_work).unwrap_err().message;
        let at_home = Place { cwd: &user, ..at_work };
        assert!(folders(&sandbox, at_home).unwrap_err().message.contains("the jobs themselves"));
        let elsewhere = root.join("extra/jobs");
        std::fs::create_dir(&elsewhere).unwrap();
        let alone = Place { home: &elsewhere, ..at_home };
        assert!(folders(&Sandbox::default(), alone).unwrap_err().message.contains("all of your home"));
        let through = Sandbox { writable: vec!["~".into()], ..Sandbox::default() };
        assert!(wide(&through).contains("the jobs themselves"));
        let missing = Sandbox { writable: vec!["nowhere".into()], ..Sandbox::default() };
        assert!(wide(&missing).contains("nowhere"));
    }

    #[cfg(all(target_os = "linux", not(outlast_portable)))]
    #[test]
    fn a_repository_below_a_root_is_read_only_or_at_least_its_hooks() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (home, work, repository) = (root.join("jobs"), root.join("work"), root.join("work/repository"));
        std::fs::create_dir_all(repository.join(".git/hooks")).unwrap();
        std::fs::create_dir(&home).unwrap();
        let env = BTreeMap::new();
        let server = Server { folder: work, env: BTreeMap::new(), settings: None };
        let place = Place {
            home: &home,
            cwd: &repository,
            temporary: &root,
            terminal: None,
            env: &env,
            server: Some(&server),
        };
        let sandbox = Sandbox::default();
        let folders = folders(&sandbox, place).unwrap();
        for (git, name) in [(Git::Read, ".git"), (Git::Write, ".git/hooks"), (Git::Write, ".git/commondir")] {
            let protected = protected::namespaces(&folders, place.works_in(), git);
            let options = bwrap_options(&sandbox, &folders, place, &protected, 9);
            let closed = repository.join(name).to_string_lossy().into_owned();
            assert!(options.windows(2).any(|pair| pair == ["--ro-bind", &closed]), "{options:?}");
        }
    }
}
