//! How a machine is reached: the command that gives a pipe to a relay there. Each is a program of the user's own, with the user's own settings.

use std::fmt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

use outlast_protocol::Failure;

/// The longest folder for a control socket: with its name, and what ssh adds to that, it must fit into the address of a socket.
const MAX_SOCKET_FOLDER: usize = 44;

/// How a machine is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// By the user's `ssh`: a destination as ssh takes it.
    Ssh(String),
    /// A container of Docker.
    Docker(String),
    /// A container of Podman.
    Podman(String),
    /// A pod, in a namespace.
    Kubectl {
        /// The namespace; none for that of the current context.
        namespace: Option<String>,
        /// The pod.
        pod: String,
    },
    /// A line for the shell of this machine that gives a pipe to `outlast relay`.
    Command(String),
}

/// Whether several processes share one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Calls of the command line: the first stays for a minute.
    Shared,
    /// A process that stays has a connection of its own.
    Own,
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ssh(to) => write!(f, "ssh:{to}"),
            Self::Docker(name) => write!(f, "docker:{name}"),
            Self::Podman(name) => write!(f, "podman:{name}"),
            Self::Kubectl { namespace: Some(namespace), pod } => write!(f, "kubectl:{namespace}/{pod}"),
            Self::Kubectl { namespace: None, pod } => write!(f, "kubectl:{pod}"),
            Self::Command(line) => write!(f, "command:{line}"),
        }
    }
}

impl FromStr for Reach {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let wrong = |what: String| {
            Failure::usage(what).hint(
                "for example ssh:me@gpu1, docker:web, podman:web, kubectl:default/web-0, or command:'…'",
            )
        };
        let Some((kind, rest)) = text.split_once(':') else {
            return Err(wrong(format!("{text:?} does not say how the host is reached")));
        };
        // What begins with a dash would be an option of the program that is run.
        let is_plain = |word: &str| {
            !word.is_empty()
                && !word.starts_with('-')
                && !word.contains(char::is_whitespace)
                && !word.contains('\0')
        };
        let name = |word: &str| {
            if is_plain(word) { Ok(word.to_owned()) } else { Err(wrong(format!("invalid name in {text:?}"))) }
        };
        match kind {
            "ssh" => Ok(Self::Ssh(name(rest)?)),
            "docker" => Ok(Self::Docker(name(rest)?)),
            "podman" => Ok(Self::Podman(name(rest)?)),
            "kubectl" => match rest.split_once('/') {
                Some((namespace, pod)) => {
                    Ok(Self::Kubectl { namespace: Some(name(namespace)?), pod: name(pod)? })
                }
                None => Ok(Self::Kubectl { namespace: None, pod: name(rest)? }),
            },
            "command" if !rest.trim().is_empty() => Ok(Self::Command(rest.to_owned())),
            _ => Err(wrong(format!("{text:?} does not say how the host is reached"))),
        }
    }
}

impl Reach {
    /// The program and arguments that run a relay there.
    #[must_use]
    pub fn relay(&self, program: Option<&str>, sharing: Sharing) -> Vec<String> {
        match self {
            Self::Command(line) => words(["sh", "-c", line]),
            Self::Ssh(_) | Self::Docker(_) | Self::Podman(_) | Self::Kubectl { .. } => {
                self.run(&remote_line(program), sharing)
            }
        }
    }

    /// The program and arguments that run a line of plain `sh` there. For `command:`, there is no such thing: it is its own line.
    #[must_use]
    pub fn run(&self, line: &str, sharing: Sharing) -> Vec<String> {
        match self {
            Self::Ssh(to) => {
                let mut command = words([
                    "ssh",
                    "-T",
                    "-o",
                    "BatchMode=yes",
                    "-o",
                    "ConnectTimeout=5",
                    "-o",
                    "ServerAliveInterval=5",
                    "-o",
                    "ServerAliveCountMax=2",
                ]);
                command.extend(master_options(to, sharing));
                // The login shell there may be any: single quotes mean the same to all of them.
                command.extend(words(["--", to, &format!("exec sh -c '{line}'")]));
                command
            }
            Self::Docker(name) => words(["docker", "exec", "-i", name, "sh", "-c", line]),
            Self::Podman(name) => words(["podman", "exec", "-i", name, "sh", "-c", line]),
            Self::Kubectl { namespace, pod } => {
                let mut command = words(["kubectl", "exec", "-i"]);
                command.extend(namespace.iter().flat_map(|namespace| words(["-n", namespace])));
                command.extend(words([pod, "--", "sh", "-c", line]));
                command
            }
            Self::Command(own) => words(["sh", "-c", own]),
        }
    }
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

/// What runs a relay on the other side, for a plain `sh`. It has no single quote in it: see [`Reach::run`].
#[must_use]
pub fn remote_line(program: Option<&str>) -> String {
    let given = program.map(|program| program.replace(['\'', '"', '\\', '`'], "")).unwrap_or_default();
    // A path that begins with ~ is for a shell to expand, and not between quotes.
    let given = match given.strip_prefix("~/") {
        Some(rest) => format!("$HOME/{rest}"),
        None => given,
    };
    let given = if given.is_empty() { "${D}/current/outlast".to_owned() } else { given };
    format!(
        ": \"${{HOME:=$PWD}}\"; export HOME; D=\"${{XDG_DATA_HOME:-$HOME/.local/share}}/outlast/bin\"; P=\"{given}\"; \
         [ -x \"$P\" ] || P=outlast; PATH=\"$PATH:$HOME/.local/bin:$HOME/.cargo/bin:/usr/local/bin\"; exec \"$P\" relay"
    )
}

/// Lets calls share one connection, unless the user has settings of their own for that.
fn master_options(to: &str, sharing: Sharing) -> Vec<String> {
    if has_own_master(to) {
        return Vec::new();
    }
    match (sharing, socket_folder()) {
        (Sharing::Shared, Some(folder)) => {
            let path = format!("ControlPath={}/%C", folder.display());
            words(["-o", "ControlMaster=auto", "-o", &path, "-o", "ControlPersist=60"])
        }
        (Sharing::Own, _) | (Sharing::Shared, None) => {
            words(["-o", "ControlMaster=no", "-o", "ControlPath=none"])
        }
    }
}

/// Whether the user's ssh configuration says something about sharing connections to this destination. Nobody is contacted.
fn has_own_master(to: &str) -> bool {
    let asked =
        Command::new("ssh").args(["-G", "--", to]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let Ok(asked) = asked else { return false };
    let text = String::from_utf8_lossy(&asked.stdout).into_owned();
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    value("controlmaster").is_some_and(|set| set != "false" && set != "no")
        || value("controlpath").is_some_and(|path| path != "none")
}

/// A folder of our own with a short name.
fn socket_folder() -> Option<PathBuf> {
    let me = rustix::process::geteuid().as_raw();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty());
    let runtime = runtime.map(|runtime| Path::new(&runtime).join("outlast"));
    let fits = |folder: &PathBuf| folder.as_os_str().len() <= MAX_SOCKET_FOLDER;
    [runtime.filter(fits), Some(PathBuf::from(format!("/tmp/outlast-{me}")))].into_iter().flatten().find(
        |folder| {
            let _ = std::fs::DirBuilder::new().mode(0o700).create(folder);
            // Somebody else could have made it first.
            std::fs::symlink_metadata(folder)
                .is_ok_and(|found| found.is_dir() && found.uid() == me && found.mode() & 0o077 == 0)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reach_is_read_and_written_and_cannot_hold_an_option() {
        for text in
            ["ssh:me@gpu1", "docker:web", "podman:web", "kubectl:ns/web-0", "kubectl:web-0", "command:nc x 1"]
        {
            assert_eq!(text.parse::<Reach>().unwrap().to_string(), text);
        }
        for wrong in [
            "gpu1",
            "ssh:",
            "ssh:-oProxyCommand=x",
            "docker:--privileged",
            "kubectl:a/-b",
            "ssh:a b",
            "nats:x",
        ] {
            assert!(wrong.parse::<Reach>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn containers_are_reached_by_their_own_program_with_exactly_these_arguments() {
        let relay = |text: &str| text.parse::<Reach>().unwrap().relay(None, Sharing::Own);
        let line = remote_line(None);
        assert_eq!(relay("docker:web"), ["docker", "exec", "-i", "web", "sh", "-c", &line]);
        assert_eq!(relay("podman:web"), ["podman", "exec", "-i", "web", "sh", "-c", &line]);
        assert_eq!(
            relay("kubectl:ns/p"),
            ["kubectl", "exec", "-i", "-n", "ns", "p", "--", "sh", "-c", &line]
        );
        assert_eq!(relay("command:a b"), ["sh", "-c", "a b"]);
        assert!(!line.contains('\''), "{line}");
    }
}
