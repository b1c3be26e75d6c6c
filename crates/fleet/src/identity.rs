//! Who is who in a fleet. Each host and each user has a key of its own, and the broker lets them publish only under their own names: so
//! a subject says who speaks. The owner's folder has the broker's configuration and the list of members; it never has anybody's secret key
//! but in the bundle that is handed over once.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use outlast_protocol::{Failure, Kind};
use serde::{Deserialize, Serialize};

use crate::config::{FILE, FleetFile, HostPart, UserPart};
use crate::names::{self, token};

const MEMBERS_FILE: &str = "members.toml";
const CONFIGURATION: &str = "nats-server.conf";

/// Writes a file that only its owner may read, as a whole or not at all.
///
/// # Errors
/// When that fails.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let write = || -> std::io::Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}", std::process::id()));
        let fresh = path.with_file_name(name);
        // Never into a file that somebody else has made: its owner could read it.
        match std::fs::remove_file(&fresh) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = std::fs::File::options().create_new(true).write(true).mode(0o600).open(&fresh)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        std::fs::rename(&fresh, path)
    };
    write().map_err(|error| Failure::system(format!("cannot write {}", path.display()), error))
}

/// What the owner of a fleet knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Owner {
    /// Where the broker listens.
    pub listen: String,
    /// How members reach it.
    pub servers: Vec<String>,
    /// The server's certificate and key, if it speaks TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// How many servers keep each message.
    pub replicas: usize,
    /// Everybody who may come.
    pub member: Vec<Member>,
}

/// Files for TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tls {
    /// The server's certificate.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Who signed it: members trust nobody else.
    pub ca: PathBuf,
}

/// A host or a user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Member {
    /// The name.
    pub name: String,
    /// A host, not a user.
    pub is_host: bool,
    /// The public key.
    pub key: String,
    /// A host: what it is good for. A user: which labels may be ordered from; none for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// A user: which hosts may be reached; none for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

/// What a new member is given, once: with its secret key.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bundle {
    /// The name.
    pub name: String,
    /// A host, not a user.
    pub is_host: bool,
    /// The secret key.
    pub seed: String,
    /// The broker.
    pub nats: Vec<String>,
    /// How many servers keep each message.
    pub replicas: usize,
    /// What the host is good for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Who signed the broker's certificate, in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
}

impl Owner {
    /// Reads the owner's folder.
    ///
    /// # Errors
    /// When there is no fleet in it.
    pub fn load(folder: &Path) -> Result<Self, Failure> {
        let path = folder.join(MEMBERS_FILE);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            Failure::usage(format!("there is no fleet in {}: {error}", folder.display()))
                .hint(format!("set one up: outlast fleet init {}", folder.display()))
        })?;
        toml::from_str(&text)
            .map_err(|error| Failure::usage(format!("{}: {}", path.display(), error.message())))
    }

    /// Writes the list of members and the broker's configuration.
    ///
    /// # Errors
    /// When that fails.
    pub fn write(&self, folder: &Path) -> Result<(), Failure> {
        let text = toml::to_string(self).map_err(|error| Failure::system("cannot write members", error))?;
        write_private(&folder.join(MEMBERS_FILE), text.as_bytes())?;
        write_private(&folder.join(CONFIGURATION), self.configuration(folder).as_bytes())
    }

    /// Adds a member, or gives one a new key: what it must be handed over.
    ///
    /// # Errors
    /// When the name does not fit, or is taken by somebody of the other kind.
    pub fn admit(&mut self, mut member: Member) -> Result<Bundle, Failure> {
        token(if member.is_host { "host name" } else { "user name" }, &member.name)?;
        member.labels.iter().try_for_each(|label| token("label", label).map(drop))?;
        if let Some(known) = self.member.iter().find(|known| known.name == member.name)
            && known.is_host != member.is_host
        {
            return Err(Failure::usage(format!("the name {} is taken", member.name)));
        }
        let pair = nkeys::KeyPair::new_user();
        let seed = pair.seed().map_err(|error| Failure::system("cannot make a key", error))?;
        member.key = pair.public_key();
        let ca = self.tls.as_ref().map(|tls| std::fs::read_to_string(&tls.ca)).transpose();
        let bundle = Bundle {
            name: member.name.clone(),
            is_host: member.is_host,
            seed,
            nats: self.servers.clone(),
            replicas: self.replicas,
            labels: if member.is_host { member.labels.clone() } else { Vec::new() },
            ca: ca.map_err(|error| Failure::usage(format!("cannot read the certificate: {error}")))?,
        };
        self.member.retain(|known| known.name != member.name);
        self.member.push(member);
        Ok(bundle)
    }

    /// Takes a member's place away.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn revoke(&mut self, name: &str) -> Result<(), Failure> {
        let before = self.member.len();
        self.member.retain(|known| known.name != name);
        if self.member.len() == before {
            return Err(Failure::new(Kind::NoSuchJob, format!("there is no member {name}")));
        }
        Ok(())
    }

    /// The broker's configuration.
    fn configuration(&self, folder: &Path) -> String {
        // The server may be started anywhere.
        let store = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()).join("jetstream");
        let mut text = format!(
            "# Written by `outlast fleet`: changes are overwritten. After a change: nats-server --signal reload\n\
             listen: \"{}\"\nserver_name: \"outlast\"\njetstream {{ store_dir: \"{}\" }}\n",
            self.listen,
            store.display()
        );
        if let Some(Tls { cert, key, .. }) = &self.tls {
            text +=
                &format!("tls {{ cert_file: \"{}\", key_file: \"{}\" }}\n", cert.display(), key.display());
        }
        text += "accounts {\n  FLEET {\n    jetstream: enabled\n    users: [\n";
        for member in &self.member {
            text += &format!("      # {} {}\n", if member.is_host { "host" } else { "user" }, member.name);
            text += &format!(
                "      {{ nkey: {}, permissions: {{ publish: {{ allow: {} }}, subscribe: {{ allow: {} }}{} }} }}\n",
                member.key,
                list(&member.may_publish()),
                list(&member.may_hear()),
                if member.is_host { ", allow_responses: true" } else { "" }
            );
        }
        text += "    ]\n  }\n}\n";
        text
    }
}

fn list(subjects: &[String]) -> String {
    serde_json::to_string(subjects).unwrap_or_default()
}

impl Member {
    /// Where a member may publish: under its own name, and what JetStream needs for it.
    fn may_publish(&self) -> Vec<String> {
        let name = &self.name;
        let mut may = vec!["$JS.API.INFO".to_owned()];
        let mut streams = vec![
            format!("KV_{}", names::HOSTS),
            format!("KV_{}", names::MEMBERS),
            format!("KV_{}", names::JOBS),
            format!("KV_{}", names::ORDERS),
            names::EVENTS.to_owned(),
            names::RESULTS.to_owned(),
            format!("OBJ_{}", names::LOGS),
        ];
        // Who may reach some hosts only orders for the labels that were named, not for all.
        let orders_anywhere = self.labels.is_empty() && self.hosts.is_empty() && !self.is_host;
        let labels = if orders_anywhere { vec!["*".to_owned()] } else { self.labels.clone() };
        if self.is_host {
            may.extend([
                format!("ol.say.*.{name}.*"),
                names::event(name, "*"),
                format!("$KV.{}.{name}", names::HOSTS),
                format!("$KV.{}.{name}", names::MEMBERS),
                format!("$KV.{}.*.{name}.*", names::JOBS),
                format!("$KV.{}.*", names::ORDERS),
                format!("$O.{}.>", names::LOGS),
            ]);
            may.extend(labels.iter().map(|label| names::result(label, "*")));
        } else {
            let hosts = if self.hosts.is_empty() { vec!["*".to_owned()] } else { self.hosts.clone() };
            may.extend(hosts.iter().map(|host| names::ask(host, name, "*")));
            may.push(format!("$KV.{}.*", names::ORDERS));
        }
        for label in &labels {
            may.push(names::queue(label, "*", name));
            may.push(format!("ol.q.{label}.plan.{name}.*"));
            // A star in the middle of a word is no wildcard to the broker.
            let stream = if label == "*" { "*".to_owned() } else { names::queue_stream(label) };
            streams.push(stream);
        }
        for stream in &streams {
            may.extend([
                format!("$JS.API.STREAM.INFO.{stream}"),
                format!("$JS.API.STREAM.CREATE.{stream}"),
                format!("$JS.API.CONSUMER.CREATE.{stream}.>"),
                format!("$JS.API.CONSUMER.CREATE.{stream}"),
                format!("$JS.API.CONSUMER.INFO.{stream}.*"),
                format!("$JS.API.CONSUMER.DELETE.{stream}.*"),
                format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.*"),
                format!("$JS.API.DIRECT.GET.{stream}.>"),
                format!("$JS.API.DIRECT.GET.{stream}"),
                format!("$JS.API.STREAM.MSG.GET.{stream}"),
            ]);
            if self.is_host {
                // Newer servers put a domain and an account before the stream.
                may.extend([format!("$JS.ACK.{stream}.>"), format!("$JS.ACK.*.*.{stream}.>")]);
            }
        }
        may
    }

    fn may_hear(&self) -> Vec<String> {
        let name = &self.name;
        if self.is_host {
            let mut may = vec![names::asked_of(name), format!("_INBOX_h_{name}.>")];
            may.extend(self.labels.iter().map(|label| names::leader_elected(label)));
            may
        } else {
            vec![format!("ol.say.{name}.*.*"), format!("_INBOX_u_{name}.>")]
        }
    }
}

impl Bundle {
    /// Puts what was handed over in its place: `fleet.toml`, the key and the certificate, beside `config.toml`.
    ///
    /// # Errors
    /// When that fails.
    pub fn install(&self, path: &Path) -> Result<FleetFile, Failure> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut file = FleetFile::load_from(path)?.unwrap_or_default();
        let key = PathBuf::from(format!("fleet-{}.key", self.name));
        write_private(&folder.join(&key), self.seed.as_bytes())?;
        file.nats = self.nats.clone();
        file.replicas = Some(self.replicas.max(1));
        if let Some(ca) = &self.ca {
            write_private(&folder.join("fleet-ca.pem"), ca.as_bytes())?;
            file.ca = Some(PathBuf::from("fleet-ca.pem"));
        }
        if self.is_host {
            let before = file.host.take().unwrap_or_default();
            file.host = Some(HostPart {
                name: self.name.clone(),
                key: Some(key),
                labels: self.labels.clone(),
                slots: before.slots,
            });
        } else {
            file.user = Some(UserPart { name: self.name.clone(), key: Some(key) });
        }
        file.write(path)?;
        Ok(file)
    }

    /// Reads a bundle.
    ///
    /// # Errors
    /// When it is none.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
        toml::from_str(&text).map_err(|error| {
            Failure::usage(format!(
                "{} is not what `outlast fleet add` wrote: {}",
                path.display(),
                error.message()
            ))
        })
    }

    /// Writes it for the one who is to get it.
    ///
    /// # Errors
    /// When that fails.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let text = toml::to_string(self).map_err(|error| Failure::system("cannot write a bundle", error))?;
        write_private(path, text.as_bytes())
    }
}

/// What the file of a member is called in messages.
#[must_use]
pub fn file_name() -> &'static str {
    FILE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_may_publish_only_under_its_own_name() {
        let mut owner = Owner { listen: "127.0.0.1:4222".into(), replicas: 1, ..Owner::default() };
        let host =
            Member { name: "gpu1".into(), is_host: true, labels: vec!["gpu".into()], ..Member::default() };
        let bundle = owner.admit(host).unwrap();
        assert!(bundle.seed.starts_with("SU"));
        let gpu1 = &owner.member[0];
        assert!(gpu1.may_publish().iter().all(|subject| !subject.starts_with("ol.ask.")));
        assert!(gpu1.may_publish().contains(&"ol.ev.gpu1.*".to_owned()));
        let first = gpu1.key.clone();
        let again = Member { name: "gpu1".into(), is_host: true, ..Member::default() };
        owner.admit(again).unwrap();
        assert_eq!(owner.member.len(), 1);
        assert_ne!(owner.member[0].key, first, "a new key takes the place of the old one");
        assert!(owner.admit(Member { name: "gpu1".into(), ..Member::default() }).is_err());
        owner.revoke("gpu1").unwrap();
        assert!(owner.revoke("gpu1").is_err());
    }
}
