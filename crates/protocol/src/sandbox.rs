//! A sandbox as it is asked for, and as it is written down.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What implements the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The kernel alone: Landlock and seccomp.
    #[default]
    Kernel,
    /// Bubblewrap: namespaces and bind mounts, and the same system call filter.
    Bwrap,
}

/// What it may reach on the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Nothing.
    #[default]
    Off,
    /// A private loopback.
    Loopback,
    /// A private loopback, and some hosts through a proxy on it.
    Hosts,
    /// Everything.
    On,
}

/// Whether protected names below writable folders must be out of its reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protect {
    /// They must; where that is not possible, nothing is started.
    Require,
    /// They are files like others.
    Off,
}

/// What it may do with repositories below writable folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Git {
    /// Read them.
    Read,
    /// Commit too, but not change their hooks and their configuration.
    Write,
}

/// A sandbox as it was requested.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sandbox {
    /// What implements the sandbox.
    pub by: By,
    /// What it may change, besides its own folder.
    pub writable: Vec<String>,
    /// What it may read, besides the system, tools and its own folder.
    pub readable: Vec<String>,
    /// What it may reach on the network.
    pub network: Network,
    /// With [`Network::Hosts`]: the hosts, with ports and wildcards.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Whether it may create Unix sockets. Keepers refuse it in any case; others may not.
    pub unix_sockets: bool,
    /// For jobs that agents start: the folders in which they may work and write, instead of the one in which
    /// the server was started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
    /// Whether protected names must be out of its reach. If not given, they must for agents, and are for
    /// people where that is possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protect: Option<Protect>,
    /// What it may do with repositories. If not given, agents read them and people commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<Git>,
}

/// What determines the sandbox of an agent's job: the server that starts it. No call can widen it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// The folder in which it was started.
    pub folder: PathBuf,
    /// Its own environment, for variables that name folders.
    pub env: BTreeMap<String, String>,
    /// The folder of its settings and policy, which no job may access.
    pub settings: Option<PathBuf>,
}
