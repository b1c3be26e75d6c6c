//! A job in a sandbox: what it is asked to be, what that means in folders, and why it can't be had.
//!
//! By default such a job reads the system and the tools below the user's home, but nothing else of it; writes only into
//! its own folder and a temporary one of its own; and reaches no network. It can't talk to any keeper, to any other Unix
//! socket, or to processes outside. See `docs/sandbox.md`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Who builds the walls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The kernel alone: Landlock and seccomp.
    #[default]
    Kernel,
    /// Bubblewrap: namespaces and bind mounts, and the same filter of system calls.
    Bwrap,
}

/// What it may reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Nothing.
    #[default]
    Off,
    /// A loopback of its own.
    Loopback,
    /// Everything.
    On,
}

/// A sandbox as it is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sandbox {
    /// Who builds the walls.
    pub by: By,
    /// What it may change, besides its own folder.
    pub writable: Vec<String>,
    /// What it may read, besides the system, tools and its own folder.
    pub readable: Vec<String>,
    /// What it may reach.
    pub network: Network,
    /// Whether it may make Unix sockets. Keepers refuse it all the same; others may not.
    pub unix_sockets: bool,
    /// For jobs that agents start: the folders that they may work in and change, instead of the one that the server was
    /// started in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
}

/// Where the walls of an agent's job come from: the server that starts it. Nothing of a call can widen them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// The folder that it was started in.
    folder: PathBuf,
    /// Its own environment, as far as it names folders.
    env: BTreeMap<String, String>,
    /// The folder of its settings and policy, which no job may have.
    settings: Option<PathBuf>,
}

impl Server {
    /// This process.
    pub(crate) fn this() -> Self {
        let mut env = crate::spec::inherited_env();
        env.retain(|name, _| {
            ["HOME", "PATH"].contains(&name.as_str()) || TOOL_VARIABLES.contains(&name.as_str())
        });
        let settings = crate::settings::Settings::path();
        let settings = settings.and_then(|file| file.parent()?.canonicalize().ok());
        Self { folder: std::env::current_dir().unwrap_or_else(|_| "/".into()), env, settings }
    }
}

/// The system, as far as programs need it.
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
/// Devices that only give and take bytes.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// Those among them that can be written to.
const SINKS: &[&str] = &["/dev/null", "/dev/zero", "/dev/full"];
/// Tools below a user's home. Nothing here holds a key.
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
/// Where bubblewrap may be. Not looked up in the job's own `PATH`: whoever sets that must not choose the walls.
const BWRAP: &[&str] =
    &["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap"];

/// Where a job lives, as far as its sandbox must know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// The home of all jobs.
    pub(crate) home: &'a Path,
    /// The folder that the job starts in.
    pub(crate) cwd: &'a Path,
    /// The temporary folder of its own.
    pub(crate) temporary: &'a Path,
    /// Its terminal, if it has one.
    pub(crate) terminal: Option<&'a Path>,
    /// Its environment.
    pub(crate) env: &'a BTreeMap<String, String>,
    /// For an agent's job, the server that starts it.
    pub(crate) server: Option<&'a Server>,
}

impl<'a> Place<'a> {
    /// Where the user's home and tools are looked up.
    fn tools(&self) -> &'a BTreeMap<String, String> {
        self.server.map_or(self.env, |server| &server.env)
    }

    /// What a relative path is relative to.
    fn base(&self) -> &'a Path {
        self.server.map_or(self.cwd, |server| &server.folder)
    }

    fn user(&self) -> Option<PathBuf> {
        self.tools().get("HOME").and_then(|home| Path::new(home).canonicalize().ok())
    }
}

/// A sandbox as folders, each with all links followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Folders {
    /// Those that it works in; they are writable.
    own: Vec<PathBuf>,
    pub(crate) readable: Vec<PathBuf>,
    pub(crate) writable: Vec<PathBuf>,
}

impl Sandbox {
    /// What it means in folders.
    ///
    /// # Errors
    /// A usage failure when a folder is not there, or would let the job out.
    pub(crate) fn folders(&self, place: Place<'_>) -> Result<Folders, Failure> {
        let user = place.user();
        let own = match place.server {
            Some(server) => self.roots_of(server, place)?,
            None => vec![own_folder(place)?],
        };
        let mut writable = own.clone();
        for path in &self.writable {
            writable.push(given(path, place, &own)?);
        }
        let mut readable: Vec<PathBuf> = SYSTEM.iter().chain(DEVICES).map(PathBuf::from).collect();
        for path in &self.readable {
            readable.push(given(path, place, &own)?);
        }
        if let Some(user) = &user {
            readable.extend(TOOLS.iter().map(|tool| user.join(tool)));
        }
        // A folder of programs, not all that the user has.
        let wide = |path: &Path| {
            user.as_ref().is_some_and(|user| user.starts_with(path)) || place.home.starts_with(path)
        };
        let tools = place.tools();
        let named = TOOL_VARIABLES.iter().filter_map(|name| tools.get(*name)).map(PathBuf::from);
        let path = tools.get("PATH").map(String::as_str).unwrap_or_default();
        for tool in std::env::split_paths(path).chain(named) {
            if !tool.is_absolute() || wide(&tool) {
                continue;
            }
            // Links into the rest of a version manager.
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
        Ok(Folders { own, readable, writable })
    }

    /// The folders that an agent's job may work in; the one that it starts in must lie below one of them.
    fn roots_of(&self, server: &Server, place: Place<'_>) -> Result<Vec<PathBuf>, Failure> {
        let user = place.user();
        let started_in = [server.folder.to_string_lossy().into_owned()];
        let named = if self.roots.is_empty() { &started_in[..] } else { &self.roots };
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

    /// What bubblewrap is told to build the same walls, and to give the command its environment only inside them; `filter`
    /// is the descriptor that it reads the system call filter from.
    pub(crate) fn bwrap_options(&self, folders: &Folders, place: Place<'_>, filter: i32) -> Vec<String> {
        let mut options = Vec::new();
        let mut add = |words: &[&str]| options.extend(words.iter().map(|word| (*word).to_owned()));
        add(&["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]);
        add(&["--die-with-parent", "--cap-drop", "ALL"]);
        if self.network != Network::On {
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
        // For root these are writable in a new /proc too, and speak to the whole machine: a core_pattern is run outside.
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
        // What runs outside when a person next uses the repository: that of a root, or the one that the job starts in.
        let starts_in = place.cwd.canonicalize().ok().filter(|folder| !folders.own.contains(folder));
        for folder in folders.own.iter().chain(&starts_in) {
            for path in [folder.join(".git/hooks"), folder.join(".git/config")] {
                if path.exists() {
                    let path = path.to_string_lossy();
                    add(&["--ro-bind", &path, &path]);
                }
            }
        }
        for (name, value) in place.env {
            add(&["--setenv", name, value]);
        }
        add(&["--chdir", &own, "--seccomp", &filter]);
        options
    }
}

/// Bubblewrap, if it is on this machine.
pub(crate) fn bwrap() -> Option<PathBuf> {
    BWRAP.iter().map(PathBuf::from).find(|path| path.is_file())
}

/// How the user chooses where agents' jobs may work.
const ROOTS: &str =
    "the user names the folders of agents' jobs: [agents.sandbox] roots = [\"~/src/project\"] in config.toml";

/// The folder that a person's job starts in, and works in.
fn own_folder(place: Place<'_>) -> Result<PathBuf, Failure> {
    let own = given(place.cwd.to_string_lossy().as_ref(), place, &[])?;
    if place.user().is_some_and(|user| user.starts_with(&own)) {
        return Err(Failure::usage(format!(
            "a sandbox can't begin in {}: all of your home would be open to it",
            own.display()
        ))
        .hint("start it in the folder that it is about: --cwd DIR"));
    }
    Ok(own)
}

/// A folder that was named, in full.
fn full_path(path: &str, place: Place<'_>) -> PathBuf {
    match (path.strip_prefix('~'), place.tools().get("HOME")) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            format!("{home}{rest}").into()
        }
        _ => place.base().join(path),
    }
}

/// A folder that was named, with its links followed.
fn followed(path: &str, place: Place<'_>) -> Result<PathBuf, Failure> {
    full_path(path, place).canonicalize().map_err(|error| {
        Failure::usage(format!("the sandbox can't have {path:?}: {error}"))
            .hint("make the folder first, or leave it out")
    })
}

/// A folder that was named: with its links followed, and not one that would open the jobs themselves or, to an agent, the
/// settings. What lies in a folder that an agent's jobs change must not be a link out of it: they could have made it.
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
    fn a_sandbox_has_its_folder_and_the_system_and_not_the_home() {
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
        let folders = sandbox.folders(at_work).unwrap();
        assert!(folders.writable.contains(&work) && folders.writable.contains(&temporary));
        assert!(folders.readable.contains(&root.join("extra")));
        assert!(folders.readable.contains(&user.join(".cargo/bin")));
        let all = || folders.readable.iter().chain(&folders.writable);
        assert!(!all().any(|path| user.join(".ssh").starts_with(path)), "{folders:?}");
        assert!(!all().any(|path| home.starts_with(path)), "{folders:?}");
        let wide = |sandbox: &Sandbox| sandbox.folders(at_work).unwrap_err().message;
        let at_home = Place { cwd: &user, ..at_work };
        assert!(sandbox.folders(at_home).unwrap_err().message.contains("the jobs themselves"));
        let elsewhere = root.join("extra/jobs");
        std::fs::create_dir(&elsewhere).unwrap();
        let alone = Place { home: &elsewhere, ..at_home };
        assert!(Sandbox::default().folders(alone).unwrap_err().message.contains("all of your home"));
        let through = Sandbox { writable: vec!["~".into()], ..Sandbox::default() };
        assert!(wide(&through).contains("the jobs themselves"));
        let missing = Sandbox { writable: vec!["nowhere".into()], ..Sandbox::default() };
        assert!(wide(&missing).contains("nowhere"));
    }

    #[test]
    fn the_hooks_of_a_repository_below_a_root_are_read_only() {
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
        let options = sandbox.bwrap_options(&sandbox.folders(place).unwrap(), place, 9);
        let hooks = repository.join(".git/hooks").to_string_lossy().into_owned();
        assert!(options.windows(2).any(|pair| pair == ["--ro-bind", &hooks]), "{options:?}");
    }
}
