//! All machines that a program may reach, each with a link that is made when it is first named; and what was last known of those that cannot be reached.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use outlast_job::client::{Hosts, Link};
use outlast_job::request::ListedJob;
use outlast_protocol::{Failure, HostName, Kind};
use serde::{Deserialize, Serialize};

use crate::hosts::{HostFile, Sharing};
use crate::link::{Dial, LinkOptions, Notice, RelayLink};
use crate::message::Caller;

/// In the home: what was last known of each host.
const FOLDER: &str = "hosts";
/// How long a request may wait for a connection that was cut.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);
/// The same for an agent, whose calls are short.
pub const AGENT_CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// The machines of the user.
pub struct Fleet {
    home: PathBuf,
    sharing: Sharing,
    caller: Caller,
    notice: Option<Notice>,
    /// The only hosts that may be named; none for all.
    only: Option<Vec<String>>,
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fleet").field("home", &self.home).finish_non_exhaustive()
    }
}

impl Fleet {
    /// For calls of the command line, which share their connections. `notice` tells who waits for a connection.
    #[must_use]
    pub fn of_command_line(home: &Path, notice: Notice) -> Self {
        let caller = Caller::here();
        Self { home: home.to_owned(), sharing: Sharing::Shared, caller, notice: Some(notice), only: None }
    }

    /// For a server of agents, who may name only these hosts.
    #[must_use]
    pub fn of_agents(home: &Path, only: Vec<String>) -> Self {
        let caller = Caller { agent: true, ..Caller::here() };
        Self { home: home.to_owned(), sharing: Sharing::Own, caller, notice: None, only: Some(only) }
    }

    /// For a relay that reaches others.
    #[must_use]
    pub fn of_relay(home: &Path) -> Self {
        Self {
            home: home.to_owned(),
            sharing: Sharing::Own,
            caller: Caller::here(),
            notice: None,
            only: None,
        }
    }

    /// A link over a pipe that is opened in this way. Whether the host may be named was asked before.
    #[must_use]
    pub fn link_over(&self, name: HostName, dial: Dial) -> RelayLink {
        RelayLink::new(LinkOptions {
            name: name.to_string(),
            dial,
            patience: if self.caller.agent { AGENT_CONNECT_TIMEOUT } else { CONNECT_TIMEOUT },
            caller: self.caller.clone(),
            notice: self.notice.clone(),
        })
    }
}

impl Fleet {
    /// Whether a machine of that name may be used at all.
    #[must_use]
    pub fn may_name(&self, name: HostName) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|known| known == name.as_str()))
    }
}

impl Hosts for Fleet {
    fn link(&self, name: HostName) -> Result<Box<dyn Link>, Failure> {
        if !self.may_name(name) {
            return Err(Failure::new(Kind::Denied, format!("agents may not use the host {name}")).hint(
                format!("the user can allow it in config.toml: [agents] hosts = [\"{name}\"]; ask them"),
            ));
        }
        let host = HostFile::load()?.find(name)?;
        let command = host.reach.relay(host.program.as_deref(), self.sharing);
        Ok(Box::new(self.link_over(name, Dial::Command(command))))
    }

    fn known(&self) -> Vec<HostName> {
        let mut known: BTreeSet<HostName> =
            HostFile::load().map(|file| file.all().map(|host| host.name).collect()).unwrap_or_default();
        known.extend(with_jobs(&self.home));
        known.into_iter().filter(|name| self.may_name(*name)).collect()
    }
}

/// Hosts with jobs that were seen from here.
fn with_jobs(home: &Path) -> Vec<HostName> {
    let entries = std::fs::read_dir(home.join(FOLDER)).into_iter().flatten().flatten();
    let name = |entry: std::fs::DirEntry| entry.file_name().to_str()?.strip_suffix(".json")?.parse().ok();
    entries
        .filter_map(name)
        .filter(|name| LastKnown::load(home, *name).is_some_and(|one| !one.jobs.is_empty()))
        .collect()
}

/// What was last known of a host.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct LastKnown {
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// Its jobs.
    pub jobs: Vec<ListedJob>,
}

impl LastKnown {
    /// What was noted of a host, if it was ever reached.
    #[must_use]
    pub fn load(home: &Path, host: HostName) -> Option<Self> {
        let text = std::fs::read_to_string(home.join(FOLDER).join(format!("{host}.json"))).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Notes what a host says now.
    pub fn note(home: &Path, host: HostName, jobs: &[ListedJob]) {
        let folder = home.join(FOLDER);
        let _ = std::fs::create_dir_all(&folder);
        let known = Self { at: now_ms(), jobs: jobs.to_vec() };
        let fresh = folder.join(format!(".{host}.{}", std::process::id()));
        let text = serde_json::to_vec(&known).unwrap_or_default();
        // A cache: that it cannot be written makes nothing wrong.
        if std::fs::write(&fresh, text).is_ok() {
            let _ = std::fs::rename(&fresh, folder.join(format!("{host}.json")));
        }
    }

    /// Forgets a host that was removed.
    pub fn forget(home: &Path, host: HostName) {
        let _ = std::fs::remove_file(home.join(FOLDER).join(format!("{host}.json")));
    }

    /// How long ago that was.
    #[must_use]
    pub fn age(&self) -> Duration {
        Duration::from_millis(now_ms().saturating_sub(self.at))
    }
}

fn now_ms() -> u64 {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
