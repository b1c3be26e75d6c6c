//! The text of `config.toml`, read section by section, so that a mistake stays where it is. Each mistake is told
//! with its line and its key.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::time::Duration;

use outlast_protocol::{DetachKey, with_interpreter};
use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::{
    AtTerminal, KeptState, KillGrace, LoadedSettings, LogSync, Mistake, PressureLimits, Retention, Section,
    Settings, ShellSettings, SystemdScope, Watchdog,
};
use crate::failure::Failure;
use crate::limits::Limits;
use crate::sandbox::Sandbox;
use crate::secrets::SecretSettings;
use crate::units::{parse_bytes, parse_duration, parse_processors};
use crate::wakes;

impl Section {
    const ALL: [Self; 13] = [
        Self::Retention,
        Self::Log,
        Self::Wake,
        Self::Watchdog,
        Self::Secrets,
        Self::Agents,
        Self::Kill,
        Self::Shells,
        Self::Slots,
        Self::Pressure,
        Self::Systemd,
        Self::Terminal,
        Self::Fleet,
    ];

    /// Its name in the file.
    fn key(self) -> &'static str {
        match self {
            Self::Retention => "retention",
            Self::Log => "log",
            Self::Wake => "wake",
            Self::Watchdog => "watchdog",
            Self::Secrets => "secrets",
            Self::Agents => "agents",
            Self::Kill => "kill",
            Self::Shells => "shells",
            Self::Slots => "slots",
            Self::Pressure => "pressure",
            Self::Systemd => "systemd",
            Self::Terminal => "terminal",
            Self::Fleet => "fleet",
        }
    }
}

impl LoadedSettings {
    /// Reads settings from the text of the file.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut reader = Reader { text, mistakes: Vec::new() };
        if !reader.is_toml() {
            return Self { settings: Settings::default(), mistakes: reader.mistakes };
        }
        let settings = reader.settings();
        Self { settings, mistakes: reader.mistakes }
    }
}

struct Reader<'a> {
    text: &'a str,
    mistakes: Vec<Mistake>,
}

impl Reader<'_> {
    /// Whether the sections can be told apart; an unknown one is noted.
    fn is_toml(&mut self) -> bool {
        let keys: Vec<Spanned<String>> =
            match toml::Deserializer::parse(self.text).and_then(|document| document.deserialize_map(Keys)) {
                Ok(keys) => keys,
                Err(error) => {
                    self.wrong(None, None, error.span(), error.message());
                    return false;
                }
            };
        let known: Vec<&str> = Section::ALL.iter().map(|section| section.key()).collect();
        for key in keys {
            let name = key.get_ref().as_str();
            if !known.contains(&name) {
                let said = format!("there is no such section; there are: {}", known.join(", "));
                self.wrong(None, Some(name), Some(key.span()), &said);
            }
        }
        true
    }

    fn settings(&mut self) -> Settings {
        let default = Settings::default();
        let keep = &default.retention;
        let retention: RetentionTable = self.section(Section::Retention);
        let log: LogTable = self.section(Section::Log);
        let watchdog: WatchdogTable = self.section(Section::Watchdog);
        let agents: AgentsTable = self.section(Section::Agents);
        let kill: KillTable = self.section(Section::Kill);
        let shells: ShellsTable = self.section(Section::Shells);
        let pressure: PressureTable = self.section(Section::Pressure);
        let systemd: SystemdTable = self.section(Section::Systemd);
        let terminal: TerminalTable = self.section(Section::Terminal);
        Settings {
            retention: Retention {
                age: retention.age.unwrap_or(keep.age),
                jobs: retention.jobs.unwrap_or(keep.jobs),
                bytes: retention.bytes.unwrap_or(keep.bytes),
                young: retention.young.unwrap_or(keep.young),
                unread: retention.unread.unwrap_or(keep.unread),
            },
            log_cap: log.cap.unwrap_or(default.log_cap),
            log_sync: log.sync,
            wakes: self.wakes(),
            watchdog: Watchdog {
                after: watchdog.after.unwrap_or(default.watchdog.after),
                prompts: watchdog.prompts,
                not_prompts: watchdog.not_prompts,
            },
            secrets: self.secrets(),
            agents_sandbox: agents.sandbox.map(Sandbox::from),
            agents_limits: Limits {
                memory: agents.limits.memory,
                processes: agents.limits.processes,
                cpu_milli: agents.limits.cpu,
                cpu_time: agents.limits.cpu_time,
            },
            agents_hosts: agents.hosts,
            systemd_scope: systemd.scope,
            kill: KillGrace {
                grace: kill.grace.unwrap_or(default.kill.grace),
                at_terminal: kill.grace_at_terminal.unwrap_or(default.kill.at_terminal),
            },
            shells: ShellSettings {
                with: shells.with.unwrap_or(default.shells.with),
                state: shells.state.unwrap_or(default.shells.state),
            },
            slots: self.section::<SlotsTable>(Section::Slots).0,
            pressure: PressureLimits {
                memory: pressure.memory.unwrap_or(default.pressure.memory),
                io: pressure.io.unwrap_or(default.pressure.io),
                hold: pressure.hold.unwrap_or(default.pressure.hold),
            },
            terminal: AtTerminal {
                shell: terminal.shell.filter(|shell| shell != "bash"),
                detach_key: terminal.detach_key,
            },
            fleet_shown: self.section::<FleetTable>(Section::Fleet).show,
        }
    }

    fn wakes(&mut self) -> Vec<wakes::Wake> {
        let tables: Vec<Spanned<wakes::Table>> = self.section(Section::Wake);
        let mut wakes = Vec::new();
        for table in tables {
            let span = table.span();
            match table.into_inner().wake() {
                Ok(wake) => wakes.push(wake),
                Err(failure) => self.refused(Section::Wake, Some(span), &failure),
            }
        }
        wakes
    }

    fn secrets(&mut self) -> SecretSettings {
        let secrets: Option<Spanned<SecretSettings>> = self.section(Section::Secrets);
        let Some(secrets) = secrets else { return SecretSettings::default() };
        if let Err(failure) = secrets.get_ref().check() {
            self.refused(Section::Secrets, Some(secrets.span()), &failure);
            return SecretSettings::default();
        }
        secrets.into_inner()
    }

    /// One section, or its default.
    fn section<T: DeserializeOwned + Default>(&mut self, section: Section) -> T {
        let only = Only { key: section.key(), of: PhantomData };
        let read = toml::Deserializer::parse(self.text).and_then(|document| only.deserialize(document));
        read.unwrap_or_else(|error| {
            self.wrong(Some(section), None, error.span(), error.message());
            T::default()
        })
    }

    fn refused(&mut self, section: Section, span: Option<Range<usize>>, failure: &Failure) {
        self.wrong(Some(section), Some(section.key()), span, &said(failure));
    }

    fn wrong(&mut self, section: Option<Section>, key: Option<&str>, span: Option<Range<usize>>, said: &str) {
        let at = span.map_or(0, |span| span.start.min(self.text.len()));
        let before = &self.text.as_bytes()[..at];
        let number = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let line = self.text.lines().nth(number - 1).unwrap_or_default();
        let key = key.map_or_else(|| key_of(section, line), ToOwned::to_owned);
        let said = said.lines().collect::<Vec<_>>().join("; ");
        let failure = Failure::usage(format!("line {number}: {key}: {said}"))
            .hint("correct that line, or remove it; `outlast doctor` says whether the file is good now");
        self.mistakes.push(Mistake { section, failure });
    }
}

/// The key that a line sets, with its section.
fn key_of(section: Option<Section>, line: &str) -> String {
    let section = section.map(Section::key);
    let key = line.split_once('=').map(|(key, _)| key.trim());
    match (section, key) {
        (Some(section), Some(key)) => format!("{section}.{key}"),
        (Some(section), None) => section.to_owned(),
        (None, _) => line.trim().to_owned(),
    }
}

fn said(failure: &Failure) -> String {
    match &failure.hint {
        Some(hint) => format!("{}; {hint}", failure.message),
        None => failure.message.clone(),
    }
}

/// The keys of the whole file.
struct Keys;

impl<'de> Visitor<'de> for Keys {
    type Value = Vec<Spanned<String>>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("settings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut keys = Vec::new();
        while let Some(key) = map.next_key()? {
            keys.push(key);
            map.next_value::<IgnoredAny>()?;
        }
        Ok(keys)
    }
}

/// One section of the file, whatever the others hold.
struct Only<T> {
    key: &'static str,
    of: PhantomData<T>,
}

impl<'de, T: Deserialize<'de> + Default> DeserializeSeed<'de> for Only<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<T, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for Only<T> {
    type Value = T;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("settings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut found = T::default();
        while let Some(key) = map.next_key::<String>()? {
            if key == self.key {
                found = map.next_value()?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct RetentionTable {
    #[serde(deserialize_with = "duration")]
    age: Option<Duration>,
    jobs: Option<usize>,
    #[serde(deserialize_with = "bytes")]
    bytes: Option<u64>,
    #[serde(deserialize_with = "duration")]
    young: Option<Duration>,
    #[serde(deserialize_with = "duration")]
    unread: Option<Duration>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct LogTable {
    #[serde(deserialize_with = "bytes")]
    cap: Option<u64>,
    sync: LogSync,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct WatchdogTable {
    #[serde(deserialize_with = "duration")]
    after: Option<Duration>,
    #[serde(deserialize_with = "patterns")]
    prompts: Vec<String>,
    #[serde(deserialize_with = "patterns")]
    not_prompts: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct KillTable {
    #[serde(deserialize_with = "duration")]
    grace: Option<Duration>,
    #[serde(deserialize_with = "duration")]
    grace_at_terminal: Option<Duration>,
}

/// Slots by name, each with how many jobs may have a place.
#[derive(Deserialize, Default)]
struct SlotsTable(#[serde(deserialize_with = "slots")] BTreeMap<String, u32>);

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct PressureTable {
    #[serde(deserialize_with = "percent")]
    memory: Option<u32>,
    #[serde(deserialize_with = "percent")]
    io: Option<u32>,
    #[serde(deserialize_with = "duration")]
    hold: Option<Duration>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct ShellsTable {
    with: Option<outlast_protocol::shell::ShellKind>,
    state: Option<KeptState>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct SystemdTable {
    scope: SystemdScope,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct TerminalTable {
    #[serde(deserialize_with = "interpreter")]
    shell: Option<String>,
    detach_key: DetachKey,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct FleetTable {
    show: bool,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct AgentsTable {
    #[serde(default)]
    hosts: Vec<String>,
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
    hosts: Vec<String>,
    unix_sockets: bool,
    roots: Vec<String>,
    protect: Option<crate::sandbox::Protect>,
    git: Option<crate::sandbox::Git>,
}

impl From<SandboxTable> for Sandbox {
    fn from(table: SandboxTable) -> Self {
        let SandboxTable { by, writable, readable, network, hosts, unix_sockets, roots, protect, git } =
            table;
        Self { by, writable, readable, network, hosts, unix_sockets, roots, protect, git }
    }
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct LimitsTable {
    #[serde(deserialize_with = "bytes")]
    memory: Option<u64>,
    processes: Option<u64>,
    #[serde(deserialize_with = "processors")]
    cpu: Option<u64>,
    #[serde(deserialize_with = "duration")]
    cpu_time: Option<Duration>,
}

fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    parsed(from, parse_duration)
}

fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    parsed(from, parse_bytes)
}

fn interpreter<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    // It must be possible to run a line with it.
    parsed(from, |text| with_interpreter(text, "").map(|_| text.to_owned()))
}

fn parsed<'de, D: Deserializer<'de>, T>(
    from: D,
    parse: fn(&str) -> Result<T, Failure>,
) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(from)?;
    parse(&text).map(Some).map_err(|failure| D::Error::custom(said(&failure)))
}

fn processors<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let count = f64::deserialize(from)?;
    parse_processors(count).map(Some).map_err(|failure| D::Error::custom(said(&failure)))
}

fn slots<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, u32>, D::Error> {
    let slots = BTreeMap::<SlotName, Places>::deserialize(from)?;
    Ok(slots.into_iter().map(|(name, places)| (name.0, places.0)).collect())
}

/// A key of `[slots]`: checked by itself, so that a mistake has its own line.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct SlotName(String);

impl<'de> Deserialize<'de> for SlotName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        outlast_protocol::queue::check_slot_name(&name)
            .map_err(|failure| D::Error::custom(said(&failure)))?;
        Ok(Self(name))
    }
}

/// How many jobs run at once in a slot.
struct Places(u32);

impl<'de> Deserialize<'de> for Places {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match u32::deserialize(from)? {
            0 => Err(D::Error::custom("a slot needs at least 1 place")),
            places => Ok(Self(places)),
        }
    }
}

fn percent<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    match u32::deserialize(from)? {
        percent @ 0..=100 => Ok(Some(percent)),
        other => Err(D::Error::custom(format!("{other} is not a percentage: give 0 to 100"))),
    }
}

fn patterns<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let patterns = Vec::<String>::deserialize(from)?;
    for pattern in &patterns {
        outlast_stream::PatternSet::compile(&[pattern]).map_err(D::Error::custom)?;
    }
    Ok(patterns)
}
