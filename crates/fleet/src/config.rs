//! `fleet.toml`, beside `config.toml`: the broker, and who this machine and this user are to it. Without the file there is no fleet.

use std::path::{Path, PathBuf};

use outlast_job::settings::{Settings, read_file};
use outlast_protocol::{Failure, Kind};
use serde::{Deserialize, Serialize};

use crate::names::token;

/// The file's name.
pub const FILE: &str = "fleet.toml";

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FleetFile {
    /// The addresses of the broker's servers.
    pub nats: Vec<String>,
    /// The certificate of who signed the servers' certificates, in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// How many servers keep each message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<usize>,
    /// How many days events are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events_days: Option<u64>,
    /// How many bytes of events are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events_bytes: Option<i64>,
    /// After how many seconds a host that is not heard of counts as lost: what its orders' own rules say is done then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_after_seconds: Option<u64>,
    /// Who this machine is, if it is a host of the fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostPart>,
    /// Who this user is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<UserPart>,
}

/// This machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostPart {
    /// Its name in the fleet.
    pub name: String,
    /// The file with its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// What it is good for.
    pub labels: Vec<String>,
    /// How many orders it works on at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<usize>,
}

/// This user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UserPart {
    /// The name in the fleet.
    pub name: String,
    /// The file with the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
}

/// As whom a program comes to the broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The name.
    pub name: String,
    /// The file with the key; none where the broker asks for none.
    pub key: Option<PathBuf>,
    /// A host, not a user.
    pub is_host: bool,
}

impl FleetFile {
    /// Where the file is.
    #[must_use]
    pub fn path() -> Option<PathBuf> {
        Settings::path().map(|config| config.with_file_name(FILE))
    }

    /// Reads the file; none without one.
    ///
    /// # Errors
    /// A usage failure that says what is wrong in it.
    pub fn load() -> Result<Option<Self>, Failure> {
        match Self::path() {
            Some(path) => Self::load_from(&path),
            None => Ok(None),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_from(path: &Path) -> Result<Option<Self>, Failure> {
        let text = match read_file(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::usage(format!("cannot read {}: {error}", path.display()))),
        };
        let mut file: Self = toml::from_str(&text)
            .map_err(|error| Failure::usage(format!("{}: {}", path.display(), error.message())))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let user = file.user.as_mut().and_then(|user| user.key.as_mut());
        let host = file.host.as_mut().and_then(|host| host.key.as_mut());
        for named in file.ca.iter_mut().chain(user).chain(host) {
            // Files are named from where this file is.
            *named = folder.join(&*named);
        }
        file.check()?;
        Ok(Some(file))
    }

    /// The file, or how to get one.
    ///
    /// # Errors
    /// There is none.
    pub fn required() -> Result<Self, Failure> {
        Self::load()?.ok_or_else(|| {
            Failure::new(Kind::Usage, "this user is in no fleet: there is no fleet.toml").hint(
                "set one up: outlast fleet init; or take what its owner gave you: outlast fleet join FILE",
            )
        })
    }

    fn check(&self) -> Result<(), Failure> {
        if let Some(host) = &self.host {
            token("host name", &host.name)?;
            host.labels.iter().try_for_each(|label| token("label", label).map(drop))?;
        }
        self.user.iter().try_for_each(|user| token("user name", &user.name).map(drop))
    }

    /// Writes it.
    ///
    /// # Errors
    /// When that fails.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let text =
            toml::to_string(self).map_err(|error| Failure::system("cannot write fleet.toml", error))?;
        crate::identity::write_private(path, text.as_bytes())
    }

    /// Who the user is; without a name in the file, the user of this machine.
    #[must_use]
    pub fn user(&self) -> Identity {
        let part = self.user.clone().unwrap_or_default();
        let own = || std::env::var("USER").ok().and_then(|name| token("user", &name).ok());
        let name = if part.name.is_empty() { own().unwrap_or_else(|| "somebody".into()) } else { part.name };
        Identity { name, key: part.key, is_host: false }
    }

    /// Who this machine is; without a name in the file, what it calls itself.
    ///
    /// # Errors
    /// It has no name that fits.
    pub fn host(&self) -> Result<Identity, Failure> {
        let part = self.host.clone().unwrap_or_default();
        let own = || outlast_remote::message::machine_name().replace('.', "-");
        let name = if part.name.is_empty() { token("host name", &own())? } else { part.name };
        Ok(Identity { name, key: part.key, is_host: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_with_its_keys_beside_it_and_mistakes_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        assert_eq!(FleetFile::load_from(&path).unwrap(), None);
        let text =
            "nats = [\"nats://a:4222\"]\n[host]\nname = \"gpu1\"\nkey = \"gpu1.nk\"\nlabels = [\"gpu\"]\n";
        std::fs::write(&path, text).unwrap();
        let file = FleetFile::load_from(&path).unwrap().unwrap();
        assert_eq!(file.host().unwrap().key, Some(folder.path().join("gpu1.nk")));
        std::fs::write(&path, "nats = []\nnast = 1\n").unwrap();
        assert!(FleetFile::load_from(&path).unwrap_err().message.contains("nast"));
        std::fs::write(&path, "[host]\nname = \"a.b\"\n").unwrap();
        assert!(FleetFile::load_from(&path).unwrap_err().message.contains("a.b"));
    }
}
