//! The user's settings: `$OUTLAST_CONFIG`, else `$XDG_CONFIG_HOME/outlast/config.toml`, else
//! `~/.config/outlast/config.toml`. A file that does not load is an error that says where it is wrong.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::limits::Limits;
use crate::sandbox::Sandbox;
use crate::secrets::SecretSettings;
use crate::spec::LOG_CAP;
use crate::units::{parse_bytes, parse_duration, parse_processors};
use crate::wakes::Wake;

/// All settings, with defaults filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Which finished jobs are kept.
    pub retention: Retention,
    /// How much of a log is kept, in bytes.
    pub log_cap: u64,
    /// Whom to wake for events of a job.
    #[serde(default)]
    pub wakes: Vec<Wake>,
    /// When silence alone suggests a question.
    #[serde(default)]
    pub watchdog: Watchdog,
    /// What is hidden from agents, besides what is known anyway.
    #[serde(default)]
    pub secrets: SecretSettings,
    /// The sandbox for jobs that agents start.
    #[serde(default)]
    pub agents_sandbox: Option<Sandbox>,
    /// The limits for jobs that agents start.
    #[serde(default)]
    pub agents_limits: Limits,
}

/// The last resort if the kernel does not say: a job that has been silent for long, and whose last line looks
/// like a question, possibly waits for input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watchdog {
    /// How long it must be silent.
    pub after: Duration,
    /// What a question looks like, besides the built-in patterns.
    pub prompts: Vec<String>,
    /// What only looks like one, besides the built-in patterns.
    pub not_prompts: Vec<String>,
}

impl Default for Watchdog {
    fn default() -> Self {
        Self {
            after: outlast_pty::evidence::LAST_RESORT_SILENCE,
            prompts: Vec::new(),
            not_prompts: Vec::new(),
        }
    }
}

/// Which ended jobs are kept, whichever limit is reached first. Recent or unread jobs are not removed to free
/// space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// How long it must be silent.
    pub age: Duration,
    /// How many.
    pub jobs: usize,
    /// How many bytes together.
    pub bytes: u64,
    /// A job that ended more recently than this is kept even if there are too many.
    #[serde(default = "Retention::default_young")]
    pub young: Duration,
    /// How long at least an unread job is kept; zero if that makes no difference.
    #[serde(default = "Retention::default_unread")]
    pub unread: Duration,
}

const DAY: Duration = Duration::from_secs(86400);

impl Retention {
    fn default_young() -> Duration {
        DAY
    }

    fn default_unread() -> Duration {
        DAY * 30
    }

    /// Limits for one sweep: they also apply to recent and unread jobs.
    #[must_use]
    pub fn at_once(age: Duration, jobs: usize, bytes: u64) -> Self {
        Self { age, jobs, bytes, young: Duration::ZERO, unread: Duration::ZERO }
    }

    /// Keeps nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self::at_once(Duration::ZERO, 0, 0)
    }
}

impl Default for Retention {
    fn default() -> Self {
        let (young, unread) = (Self::default_young(), Self::default_unread());
        Self { age: DAY * 7, jobs: 1000, bytes: 5 << 30, young, unread }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            retention: Retention::default(),
            log_cap: LOG_CAP,
            wakes: Vec::new(),
            watchdog: Watchdog::default(),
            secrets: SecretSettings::default(),
            agents_sandbox: None,
            agents_limits: Limits::default(),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct File {
    retention: RetentionTable,
    log: LogTable,
    wake: Vec<crate::wakes::Table>,
    watchdog: WatchdogTable,
    secrets: SecretSettings,
    agents: AgentsTable,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct AgentsTable {
    sandbox: Option<SandboxTable>,
    limits: LimitsTable,
}

/// Like the sandbox in a job's record, but an unknown key is an error here.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct SandboxTable {
    by: crate::sandbox::By,
    writable: Vec<String>,
    readable: Vec<String>,
    network: crate::sandbox::Network,
    unix_sockets: bool,
    roots: Vec<String>,
}

impl From<SandboxTable> for Sandbox {
    fn from(table: SandboxTable) -> Self {
        let SandboxTable { by, writable, readable, network, unix_sockets, roots } = table;
        Self { by, writable, readable, network, unix_sockets, roots }
    }
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct LimitsTable {
    memory: Option<String>,
    processes: Option<u64>,
    cpu: Option<f64>,
    cpu_time: Option<String>,
}

impl LimitsTable {
    fn resolved(self) -> Result<Limits, Failure> {
        Ok(Limits {
            memory: self.memory.as_deref().map(parse_bytes).transpose()?,
            processes: self.processes,
            cpu_milli: self.cpu.map(parse_processors).transpose()?,
            cpu_time: self.cpu_time.as_deref().map(parse_duration).transpose()?,
        })
    }
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct WatchdogTable {
    after: Option<String>,
    prompts: Vec<String>,
    not_prompts: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct RetentionTable {
    age: Option<String>,
    jobs: Option<usize>,
    bytes: Option<String>,
    young: Option<String>,
    unread: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct LogTable {
    cap: Option<String>,
}

impl WatchdogTable {
    fn resolved(self) -> Result<Watchdog, Failure> {
        for pattern in self.prompts.iter().chain(&self.not_prompts) {
            outlast_stream::PatternSet::compile(&[pattern])
                .map_err(|error| Failure::usage(format!("[watchdog]: {error}")))?;
        }
        let after = self.after.as_deref().map_or(Ok(Watchdog::default().after), parse_duration)?;
        Ok(Watchdog { after, prompts: self.prompts, not_prompts: self.not_prompts })
    }
}

impl Settings {
    /// Where the file would be.
    #[must_use]
    pub fn path() -> Option<PathBuf> {
        let var = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        var("OUTLAST_CONFIG")
            .or_else(|| var("XDG_CONFIG_HOME").map(|config| config.join("outlast/config.toml")))
            .or_else(|| var("HOME").map(|home| home.join(".config/outlast/config.toml")))
    }

    /// Reads the file; without one, returns the defaults.
    ///
    /// # Errors
    /// A usage failure that names the file and the line.
    pub fn load() -> Result<Self, Failure> {
        let Some(path) = Self::path() else { return Ok(Self::default()) };
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::parse(&text).map_err(|failure| Failure {
                message: format!("{}: {}", path.display(), failure.message),
                ..failure
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(Failure::usage(format!("{} can't be read: {error}", path.display()))),
        }
    }

    /// Reads settings from the text of the file.
    ///
    /// # Errors
    /// A usage failure that names the line.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let file: File =
            toml::from_str(text).map_err(|error| Failure::usage(error.to_string().trim_end()))?;
        let default = Self::default();
        let keep = default.retention;
        file.secrets.check()?;
        Ok(Self {
            retention: Retention {
                age: file.retention.age.as_deref().map_or(Ok(keep.age), parse_duration)?,
                jobs: file.retention.jobs.unwrap_or(keep.jobs),
                bytes: file.retention.bytes.as_deref().map_or(Ok(keep.bytes), parse_bytes)?,
                young: file.retention.young.as_deref().map_or(Ok(keep.young), parse_duration)?,
                unread: file.retention.unread.as_deref().map_or(Ok(keep.unread), parse_duration)?,
            },
            log_cap: file.log.cap.as_deref().map_or(Ok(default.log_cap), parse_bytes)?,
            wakes: file.wake.into_iter().map(crate::wakes::Table::wake).collect::<Result<_, _>>()?,
            watchdog: file.watchdog.resolved()?,
            secrets: file.secrets,
            agents_sandbox: file.agents.sandbox.map(Sandbox::from),
            agents_limits: file.agents.limits.resolved()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_key_names_its_line() {
        let failure = Settings::parse("[retention]\njobs = 5\nagee = \"7d\"\n").unwrap_err();
        assert!(failure.message.contains("line 3"), "{}", failure.message);
        assert!(failure.message.contains("agee"), "{}", failure.message);
    }

    #[test]
    fn sandbox_settings_of_agents_are_read_and_an_unknown_key_is_named() {
        let text =
            "[agents.sandbox]\nnetwork = \"loopback\"\n[agents.limits]\nmemory = \"2GiB\"\ncpu = 1.5\n";
        let settings = Settings::parse(text).unwrap();
        let sandbox = settings.agents_sandbox.unwrap();
        assert_eq!((sandbox.network, sandbox.unix_sockets), (crate::sandbox::Network::Loopback, false));
        assert_eq!(
            (settings.agents_limits.memory, settings.agents_limits.cpu_milli),
            (Some(2 << 30), Some(1500))
        );
        assert!(
            Settings::parse("[agents.sandbox]\nnetwrok = \"off\"\n").unwrap_err().message.contains("netwrok")
        );
        assert!(
            Settings::parse("[agents.sandbox]\nnetwork = \"some\"\n").unwrap_err().message.contains("some")
        );
        assert!(Settings::parse("[secrets]\npatterns = [\"(\"]\n").unwrap_err().message.contains("pattern"));
    }

    #[test]
    fn set_values_win_and_others_keep_their_defaults() {
        let settings = Settings::parse("[retention]\nage = \"12h\"\nbytes = \"2GiB\"\n").unwrap();
        let expected =
            Retention { age: Duration::from_secs(12 * 3600), bytes: 2 << 30, ..Retention::default() };
        assert_eq!(settings, Settings { retention: expected, ..Settings::default() });
    }
}
