//! The machines that the user has named, in `hosts.toml` beside `config.toml`, and those of the user's ssh configuration.

mod reach;
mod ssh_config;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use outlast_job::settings::{Settings, read_file};
use outlast_protocol::{Failure, HostName, Kind};
use toml_edit::{Array, DocumentMut, Item, Table, value};

pub use reach::{Reach, Sharing, remote_line};
pub use ssh_config::names as ssh_names;

/// The file's name.
const FILE: &str = "hosts.toml";
/// The table of hosts in it.
const TABLE: &str = "host";

/// What this machine is called where a host is named.
pub const HERE: &str = "here";

/// One machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// What it is called.
    pub name: HostName,
    /// How it is reached.
    pub reach: Reach,
    /// Where the program is on it, if not where it is looked for.
    pub program: Option<String>,
    /// What it is good for: `run --on LABEL` takes one of these.
    pub labels: Vec<String>,
    /// How many jobs of a label it takes at once, where its own settings do not say.
    pub slots: Option<u32>,
}

/// All machines that were added.
#[derive(Clone, Debug, Default)]
pub struct HostFile {
    path: Option<PathBuf>,
    document: DocumentMut,
    hosts: BTreeMap<HostName, Host>,
    /// This machine, with its labels.
    here: Option<Host>,
}

impl HostFile {
    /// Where it is.
    #[must_use]
    pub fn default_path() -> Option<PathBuf> {
        Settings::path().map(|config| config.with_file_name(FILE))
    }

    /// Reads the user's file; without one there are no hosts.
    ///
    /// # Errors
    /// A usage failure that names what is wrong in it.
    pub fn load() -> Result<Self, Failure> {
        match Self::default_path() {
            Some(path) => Self::load_from(&path),
            None => Ok(Self::default()),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_from(path: &Path) -> Result<Self, Failure> {
        let text = match read_file(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Failure::usage(format!("cannot read {}: {error}", path.display()))),
        };
        let wrong = |what: &str| Failure::usage(format!("{}: {what}", path.display()));
        let document: DocumentMut =
            text.parse().map_err(|error: toml_edit::TomlError| wrong(&error.to_string()))?;
        let mut hosts = BTreeMap::new();
        for (name, host) in
            document.get(TABLE).and_then(Item::as_table_like).into_iter().flat_map(|table| table.iter())
        {
            let host = parse(name, host).map_err(|failure| wrong(&failure.message))?;
            hosts.insert(host.name, host);
        }
        let here = HERE.parse().ok().and_then(|name| hosts.remove(&name));
        Ok(Self { path: Some(path.to_owned()), document, hosts, here })
    }

    /// The hosts, by name.
    pub fn all(&self) -> impl Iterator<Item = &Host> {
        self.hosts.values()
    }

    /// A host that was added, or one of the user's ssh configuration.
    ///
    /// # Errors
    /// [`Kind::NoSuchJob`].
    pub fn find(&self, name: HostName) -> Result<Host, Failure> {
        if let Some(host) = self.hosts.get(&name) {
            return Ok(host.clone());
        }
        if ssh_names().iter().any(|known| known == name.as_str()) {
            let reach = Reach::Ssh(name.to_string());
            return Ok(Host { name, reach, program: None, labels: Vec::new(), slots: None });
        }
        let known: Vec<&str> = self.hosts.keys().map(HostName::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(Failure::new(Kind::NoSuchJob, format!("there is no host {name}"))
            .hint(format!("known hosts: {known}; add one: outlast host add {name} ssh:USER@ADDRESS")))
    }

    /// Hosts with a label; this machine may be one of them.
    #[must_use]
    pub fn labelled(&self, label: &str) -> Vec<&Host> {
        let all = self.hosts.values().chain(&self.here);
        all.filter(|host| host.labels.iter().any(|one| one == label)).collect()
    }

    /// Adds a host, or changes one, and writes the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, host: Host) -> Result<(), Failure> {
        let table = self.document.entry(TABLE).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        let Some(table) = table.as_table_like_mut() else {
            return Err(Failure::usage(format!("{TABLE} in {FILE} is not a table")));
        };
        let mut entry = Table::new();
        entry.insert("reach", value(host.reach.to_string()));
        if let Some(program) = &host.program {
            entry.insert("program", value(program));
        }
        if !host.labels.is_empty() {
            entry.insert("labels", value(host.labels.iter().collect::<Array>()));
        }
        if let Some(slots) = host.slots {
            entry.insert("slots", value(i64::from(slots)));
        }
        table.insert(host.name.as_str(), Item::Table(entry));
        self.hosts.insert(host.name, host);
        self.write()
    }

    /// Forgets a host, and writes the file; false when there was none.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn remove(&mut self, name: HostName) -> Result<bool, Failure> {
        if self.hosts.remove(&name).is_none() {
            return Ok(false);
        }
        if let Some(table) = self.document.get_mut(TABLE).and_then(Item::as_table_like_mut) {
            table.remove(name.as_str());
        }
        self.write().map(|()| true)
    }

    fn write(&self) -> Result<(), Failure> {
        let Some(path) = &self.path else {
            return Err(Failure::usage("there is no folder for settings: HOME is not set"));
        };
        let cannot =
            |error: std::io::Error| Failure::system(format!("cannot write {}", path.display()), error);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(cannot)?;
        }
        let fresh = path.with_extension(format!("toml.{}", std::process::id()));
        std::fs::write(&fresh, self.document.to_string())
            .and_then(|()| std::fs::rename(&fresh, path))
            .map_err(cannot)
    }
}

fn parse(name: &str, host: &Item) -> Result<Host, Failure> {
    let wrong = |what: &str| Failure::usage(format!("[{TABLE}.{name}] {what}"));
    let table = host.as_table_like().ok_or_else(|| wrong("is not a table"))?;
    let (name, reach) = (name.parse()?, Reach::Ssh(name.to_owned()));
    let mut found = Host { name, reach, program: None, labels: Vec::new(), slots: None };
    for (key, item) in table.iter() {
        let text = || item.as_str().ok_or_else(|| wrong(&format!("{key} is not a text")));
        match key {
            "reach" => found.reach = text()?.parse()?,
            "program" => found.program = Some(text()?.to_owned()),
            "labels" => {
                let labels = item.as_array().ok_or_else(|| wrong("labels is not a list"))?;
                let label = |one: &toml_edit::Value| one.as_str().map(ToOwned::to_owned);
                found.labels = labels.iter().filter_map(label).collect();
            }
            "slots" => {
                let slots = item.as_integer().and_then(|count| u32::try_from(count).ok());
                let slots = slots.filter(|count| *count > 0);
                found.slots = Some(slots.ok_or_else(|| wrong("slots is not a number from 1 on"))?);
            }
            other => {
                return Err(wrong(&format!(
                    "has an unknown key {other}; it may have reach, program, labels, slots"
                )));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_added_changed_and_removed_and_the_rest_of_the_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub/hosts.toml");
        let mut file = HostFile::load_from(&path).unwrap();
        let host = |name: &str, reach: &str| Host {
            name: name.parse().unwrap(),
            reach: reach.parse().unwrap(),
            program: None,
            labels: vec!["gpu".into()],
            slots: Some(2),
        };
        file.add(host("gpu1", "ssh:me@gpu1")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("note = 1 # mine\n\n{text}")).unwrap();
        let mut file = HostFile::load_from(&path).unwrap();
        file.add(host("box", "docker:web")).unwrap();
        assert_eq!(file.labelled("gpu").len(), 2);
        assert!(file.remove("gpu1".parse().unwrap()).unwrap());
        assert!(!file.remove("gpu1".parse().unwrap()).unwrap());
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("note = 1 # mine\n") && text.contains("[host.box]"), "{text}");
        let again = HostFile::load_from(&path).unwrap();
        assert_eq!(again.find("box".parse().unwrap()).unwrap(), host("box", "docker:web"));
        std::fs::write(&path, "[host.x]\nraech = 1\n").unwrap();
        assert!(HostFile::load_from(&path).unwrap_err().message.contains("raech"));
    }
}
