//! The user's settings: `$OUTLAST_CONFIG`, else `$XDG_CONFIG_HOME/outlast/config.toml`, else
//! `~/.config/outlast/config.toml`. What is wrong in it is told with its line and key.

mod file;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast_protocol::DetachKey;
use outlast_protocol::shell::ShellKind;
use rustix::fs::{Mode, OFlags, open};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::limits::Limits;
use crate::sandbox::Sandbox;
use crate::secrets::SecretSettings;
use crate::spec::LOG_CAP;
use crate::wakes::Wake;

/// All settings, with defaults filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Which finished jobs are kept.
    pub retention: Retention,
    /// How much of a log is kept, in bytes.
    pub log_cap: u64,
    /// When what a job printed is brought to the disk.
    #[serde(default)]
    pub log_sync: LogSync,
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
    /// The other machines that agents may use.
    #[serde(default)]
    pub agents_hosts: Vec<String>,
    /// How long a job may take to end by itself.
    #[serde(default)]
    pub kill: KillGrace,
    /// How many jobs may have a place in each slot.
    #[serde(default)]
    pub slots: BTreeMap<String, u32>,
    /// How busy the machine may be when a job gets a place.
    #[serde(default)]
    pub pressure: PressureLimits,
    /// Whether jobs leave the unit of systemd that their starter is in.
    #[serde(default)]
    pub systemd_scope: SystemdScope,
    /// What holds for a person at a terminal, and for nobody else.
    #[serde(default)]
    pub terminal: AtTerminal,
    /// Shells that remember.
    #[serde(default)]
    pub shells: ShellSettings,
    /// Whether every list shows the jobs of the fleet, too.
    #[serde(default)]
    pub fleet_shown: bool,
}

/// How busy the machine may be when a queued job gets its place, in percent of the last ten seconds in which nothing went on for
/// want of memory or disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PressureLimits {
    /// For want of memory; with 100, memory holds nobody back.
    pub memory: u32,
    /// For disks.
    pub io: u32,
    /// A job is held back at most this long, or it might never run.
    pub hold: Duration,
}

impl Default for PressureLimits {
    fn default() -> Self {
        Self { memory: 10, io: 40, hold: Duration::from_secs(300) }
    }
}

/// Whether the jobs of a session get a scope of systemd of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SystemdScope {
    /// Where systemd can be asked and they would be ended with a unit.
    #[default]
    Auto,
    /// They stay where they were started.
    Never,
}

/// What a person at a terminal has chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtTerminal {
    /// The program that reads command lines; bash if none is named.
    pub shell: Option<String>,
    /// The key that leaves a job.
    pub detach_key: DetachKey,
}

/// How shells are made, and what is kept of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShellSettings {
    /// Which one a person's new shell is, where nothing is said.
    pub with: ShellKind,
    /// Where it is kept what a shell remembers.
    pub state: KeptState,
}

impl Default for ShellSettings {
    fn default() -> Self {
        Self { with: ShellKind::Bash, state: KeptState::Disk }
    }
}

/// Where it is kept what a shell remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptState {
    /// In the job's folder, without secrets: a shell that ended is made again with it.
    #[default]
    Disk,
    /// Nowhere but in the shell itself.
    Memory,
}

/// When what a job printed, its record and what is told of it are brought to the disk, in this order: so that they survive
/// not only us but the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogSync {
    /// When the job is over. A wait for its end does not wait for the disk.
    #[default]
    End,
    /// Also every five seconds while it prints.
    Interval,
    /// Before anybody is told that it has ended.
    Answer,
    /// Whenever the system does so by itself.
    None,
}

/// How long a job that is to end may take to do so by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KillGrace {
    /// For agents and scripts.
    pub grace: Duration,
    /// For a person at a terminal.
    pub at_terminal: Duration,
}

impl Default for KillGrace {
    fn default() -> Self {
        use outlast_protocol::order::{KILL_GRACE, KILL_GRACE_AT_TERMINAL};
        Self { grace: KILL_GRACE, at_terminal: KILL_GRACE_AT_TERMINAL }
    }
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
    /// How long after its end.
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
            log_sync: LogSync::default(),
            wakes: Vec::new(),
            watchdog: Watchdog::default(),
            secrets: SecretSettings::default(),
            agents_sandbox: None,
            agents_limits: Limits::default(),
            agents_hosts: Vec::new(),
            kill: KillGrace::default(),
            shells: ShellSettings::default(),
            slots: BTreeMap::new(),
            pressure: PressureLimits::default(),
            systemd_scope: SystemdScope::default(),
            terminal: AtTerminal::default(),
            fleet_shown: false,
        }
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

    /// Reads settings from the text of the file.
    ///
    /// # Errors
    /// A usage failure that names the line and the key.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let loaded = LoadedSettings::parse(text);
        loaded.all().map(|()| loaded.settings)
    }
}

/// The settings as far as they could be read. A wrong value stops only what needs it: nobody is kept from ending
/// a job by a typing error in `[retention]`.
#[derive(Clone, Debug, Default)]
pub struct LoadedSettings {
    /// What was read; a section that is wrong has its defaults.
    pub settings: Settings,
    mistakes: Vec<Mistake>,
}

/// A table of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// `[retention]`
    Retention,
    /// `[log]`
    Log,
    /// `[[wake]]`
    Wake,
    /// `[watchdog]`
    Watchdog,
    /// `[secrets]`
    Secrets,
    /// `[agents]`
    Agents,
    /// `[kill]`
    Kill,
    /// `[shells]`
    Shells,
    /// `[slots]`
    Slots,
    /// `[pressure]`
    Pressure,
    /// `[systemd]`
    Systemd,
    /// `[terminal]`
    Terminal,
    /// `[fleet]`
    Fleet,
}

/// What is wrong with the file.
#[derive(Clone, Debug)]
struct Mistake {
    /// None if it concerns the whole file.
    section: Option<Section>,
    failure: Failure,
}

/// The largest file of settings or rules that is read.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Reads a file of settings or rules. Who clones a project gets its links too: only a regular file of a sensible size is
/// read, never a device or a pipe that does not end.
///
/// # Errors
/// It is not there, is none of these, or cannot be read.
pub fn read_file(path: &Path) -> std::io::Result<String> {
    use std::io::{Error, ErrorKind, Read};
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = std::fs::File::from(open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(Error::new(ErrorKind::FileTooLarge, "it is longer than 1 MiB"));
    }
    Ok(text)
}

impl LoadedSettings {
    /// Reads the file; without one, returns the defaults.
    #[must_use]
    pub fn load() -> Self {
        let Some(path) = Settings::path() else { return Self::default() };
        match read_file(&path) {
            Ok(text) => {
                let mut loaded = Self::parse(&text);
                for mistake in &mut loaded.mistakes {
                    mistake.failure.message = format!("{}, {}", path.display(), mistake.failure.message);
                }
                loaded
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::default(),
            Err(error) => {
                let failure = Failure::usage(format!("{} can't be read: {error}", path.display()));
                Self { mistakes: vec![Mistake { section: None, failure }], ..Self::default() }
            }
        }
    }

    /// Insists that the whole file could be read.
    ///
    /// # Errors
    /// The first mistake, with line and key.
    pub fn all(&self) -> Result<(), Failure> {
        self.mistakes.first().map_or(Ok(()), |mistake| Err(mistake.failure.clone()))
    }

    /// Insists that a section could be read.
    ///
    /// # Errors
    /// The first mistake in it, with line and key.
    pub fn section(&self, section: Section) -> Result<(), Failure> {
        let wrong = |mistake: &&Mistake| mistake.section.is_none_or(|wrong| wrong == section);
        self.mistakes.iter().find(wrong).map_or(Ok(()), |mistake| Err(mistake.failure.clone()))
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
    fn a_wrong_value_names_its_line_and_key_and_stops_only_its_section() {
        let loaded =
            LoadedSettings::parse("[log]\ncap = \"2MiB\"\n\n[retention]\njobs = 5\nage = \"7 weeks\"\n");
        let failure = loaded.section(Section::Retention).unwrap_err();
        assert!(failure.message.contains("line 6: retention.age: \"7 weeks\""), "{}", failure.message);
        assert!(loaded.section(Section::Kill).is_ok());
        assert!(loaded.all().is_err());
        assert_eq!((loaded.settings.log_cap, loaded.settings.retention), (2 << 20, Retention::default()));
    }

    #[test]
    fn a_file_that_is_not_toml_stops_every_section() {
        let loaded = LoadedSettings::parse("[retention]\nage = 7d\n");
        assert!(loaded.section(Section::Kill).unwrap_err().message.contains("line 2"));
        let loaded = LoadedSettings::parse("[kill]\ngrace = \"1s\"\n[retentoin]\nage = \"7d\"\n");
        let failure = loaded.all().unwrap_err();
        assert!(failure.message.contains("line 3: retentoin"), "{}", failure.message);
        assert!(failure.message.contains("retention"), "{}", failure.message);
        assert_eq!(loaded.settings.kill.grace, Duration::from_secs(1));
    }

    #[test]
    fn wrong_wakes_patterns_and_limits_are_named_too() {
        for (text, line, key) in [
            ("[[wake]]\nkind = \"file\"\npath = \"a\"\n[[wake]]\nkind = \"pigeon\"\n", "line 4", "wake"),
            ("[watchdog]\nprompts = [\"(\"]\n", "line 2", "watchdog.prompts"),
            ("[secrets]\n\npatterns = [\"(\"]\n", "line 1", "secrets"),
            ("[agents.limits]\nmemory = \"much\"\n", "line 2", "memory"),
            ("[kill]\ngrace_at_terminal = \"soon\"\n", "line 2", "kill.grace_at_terminal"),
            ("[slots]\nbuild = 0\n", "line 2", "slots"),
            ("[slots]\n\"../x\" = 1\n", "line 2", "slots"),
            ("[pressure]\nio = 101\n", "line 2", "pressure.io"),
            ("[terminal]\n\ndetach_key = \"Ctrl-C\"\n", "line 3", "terminal.detach_key"),
        ] {
            let failure = Settings::parse(text).unwrap_err();
            assert!(failure.message.contains(line) && failure.message.contains(key), "{}", failure.message);
        }
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
