//! Which secrets a job knows, and where they are recorded: in its folder, as fingerprints, never as values.
//!
//! The keeper creates the [masks](Masks) when it starts the job, from the values of variables with names like
//! secrets and from the settings, and adds what people type with `outlast secret`. Readers for agents load
//! them from the file. See `docs/guide/secrets.md`.

mod known_in_home;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, RwLock};

use outlast_stream::Masks;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::registry::replace::{Durability, read_small, replace, write_new};
use crate::registry::{JobDir, layout};
pub use known_in_home::KnownSecret;

/// The shortest value of a variable that counts as a secret.
const MIN_VALUE_BYTES: usize = 6;
/// More than any masks file has.
pub(crate) const MAX_MASKS_BYTES: usize = 8 << 20;

/// Jobs that are older were started by versions that wrote no masks (2026-11-17).
const FIRST_MASKS_MS: u64 = 1_794_873_600_000;

/// Words in a variable's name, between underscores, that mean that its value is a secret.
const WORDS: &[&str] = &[
    "KEY",
    "APIKEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASS",
    "PWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
    "AUTH",
    "COOKIE",
    "PAT",
    "PRIVATE",
];
/// Endings of names without underscores that mean the same.
const ENDS: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD"];
/// Names that only look like secrets.
const HARMLESS_NAMES: &[&str] = &["PWD", "OLDPWD", "SSH_AUTH_SOCK", "KEYBOARD"];
/// Well-known values: hiding them would hide half of what a development database prints.
const HARMLESS_VALUES: &[&str] = &[
    "postgres",
    "password",
    "passwd",
    "secret",
    "changeme",
    "example",
    "default",
    "development",
    "production",
    "localhost",
    "undefined",
    "disabled",
    "enabled",
    "docker",
    "github",
    "gitlab",
    "mysql",
    "redis",
    "master",
];

/// The user's settings for secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SecretSettings {
    /// Values to hide.
    pub values: Vec<String>,
    /// Regular expressions of what to hide: the first group, or all of it.
    pub patterns: Vec<String>,
    /// Variables whose values are secrets, besides those with such names.
    pub env: Vec<String>,
    /// Variables whose values are not secrets, whatever their names.
    pub not_env: Vec<String>,
    /// Hide secrets in logs too: what is hidden there cannot be recovered.
    pub redact_log: bool,
}

impl SecretSettings {
    /// Checks that all of it can be used.
    ///
    /// # Errors
    /// A usage failure that names the pattern or value.
    pub fn check(&self) -> Result<(), Failure> {
        let mut masks = Masks::new([0; 32]);
        for value in &self.values {
            if !masks.add(value, false) {
                let least = outlast_stream::MIN_SECRET_BYTES;
                return Err(Failure::usage(format!(
                    "[secrets]: a value shorter than {least} bytes can't be hidden"
                ))
                .hint("use a pattern with what stands around it, for example patterns = ['pin: (\\d+)']"));
            }
        }
        for pattern in &self.patterns {
            masks.add_pattern(pattern).map_err(|error| Failure::usage(format!("[secrets]: {error}")))?;
        }
        Ok(())
    }
}

/// Masks that several readers share, and that can grow.
pub(crate) type SharedMasks = Arc<RwLock<Masks>>;

/// Uses shared masks.
pub(crate) fn with<T>(masks: &SharedMasks, look: impl FnOnce(&Masks) -> T) -> T {
    match masks.read() {
        Ok(masks) => look(&masks),
        // Nothing panics while it holds the lock; and half-written masks are still masks.
        Err(poisoned) => look(&poisoned.into_inner()),
    }
}

/// The masks of a new job.
pub(crate) fn of_job(env: &BTreeMap<String, String>, settings: &SecretSettings) -> Masks {
    let mut key = [0; 32];
    let _ = outlast_pty::system::random(&mut key);
    let mut masks = Masks::new(key);
    for (_, value) in values(env, settings) {
        masks.add(value, false);
    }
    for pattern in &settings.patterns {
        // It was checked when the settings were read.
        let _ = masks.add_pattern(pattern);
    }
    masks
}

/// Whether a variable is one whose value must be hidden.
pub(crate) fn is_secret(name: &str, value: &str) -> bool {
    is_named_like_a_secret(name) && is_worth_hiding(value)
}

/// The secrets that a job is given, each with where it comes from.
fn values<'a>(env: &'a BTreeMap<String, String>, settings: &'a SecretSettings) -> Vec<(&'a str, &'a str)> {
    let mut values = Vec::new();
    for (name, value) in env.iter().filter(|(name, _)| !settings.not_env.contains(name)) {
        let is_set = settings.env.contains(name);
        if is_set || is_secret(name, value) {
            values.push((name.as_str(), value.as_str()));
        } else if let Some(password) = password_of_address(value) {
            values.push((name.as_str(), password));
        }
    }
    values.extend(settings.values.iter().map(|value| ("settings", value.as_str())));
    values
}

/// Lets all jobs of a home know what this one is given. If that cannot be written down, only this one does.
pub(crate) fn share(home: &Path, env: &BTreeMap<String, String>, settings: &SecretSettings) {
    let _ = known_in_home::add(home, values(env, settings));
}

/// Lets all jobs of a home know a typed secret.
pub(crate) fn share_typed(home: &Path, value: &str) {
    let _ = known_in_home::add(home, [("typed", value)]);
}

/// The secrets that all jobs of a home know, the last given first.
///
/// # Errors
/// A system failure if they can't be read.
pub fn list(home: &Path) -> Result<Vec<KnownSecret>, Failure> {
    known_in_home::list(home).map_err(|error| Failure::system("the known secrets can't be read", error))
}

/// Lets all jobs of a home forget the secrets of these ids, or all. Those of a job itself it knows for as long as it is kept.
/// Returns those that were known.
///
/// # Errors
/// A system failure if they can't be read or written.
pub fn forget(home: &Path, ids: Option<&[String]>) -> Result<Vec<KnownSecret>, Failure> {
    known_in_home::forget(home, ids)
        .map_err(|error| Failure::system("the known secrets can't be changed", error))
}

/// Adds what all jobs of a home know.
pub(crate) fn add_those_of_home(home: &Path, masks: &mut Masks) {
    masks.set_others(known_in_home::read(home));
}

fn is_named_like_a_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    if HARMLESS_NAMES.contains(&name.as_str()) {
        return false;
    }
    name.split(['_', '-', '.']).any(|word| WORDS.contains(&word))
        || ENDS.iter().any(|end| name.ends_with(end) && !name.ends_with("MONKEY"))
}

fn is_worth_hiding(value: &str) -> bool {
    let value = value.trim();
    let word = value.to_ascii_lowercase();
    value.len() >= MIN_VALUE_BYTES
        && !HARMLESS_VALUES.contains(&word.as_str())
        // The path of a key is not the key.
        && !(value.starts_with('/') && std::path::Path::new(value).exists())
        && password_of_address(value).is_none()
}

/// The password in `scheme://user:password@host`.
fn password_of_address(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    (password.len() >= MIN_VALUE_BYTES && !HARMLESS_VALUES.contains(&password)).then_some(password)
}

/// Writes the masks of a new job, whose folder nothing reads yet.
pub(crate) fn write_first(job: &JobDir, masks: &Masks) -> Result<(), Errno> {
    write_new(job, layout::MASKS, masks.to_text().as_bytes())
}

/// Writes the masks of a job.
pub(crate) fn write(job: &JobDir, masks: &Masks) -> Result<(), Errno> {
    replace(job, layout::MASKS, masks.to_text().as_bytes(), Durability::Process)
}

/// The masks of a job. Jobs of the first versions have none: then they are the common key formats.
///
/// # Errors
/// If there are masks that cannot be read: then nothing of the job may be shown to an agent.
pub(crate) fn read(job: &JobDir) -> Result<Masks, Failure> {
    parse(job, read_small(job, layout::MASKS, MAX_MASKS_BYTES))
}

/// Parses the result of reading the masks file.
pub(crate) fn parse(job: &JobDir, read: Result<Vec<u8>, Errno>) -> Result<Masks, Failure> {
    let damaged = |why: &dyn std::fmt::Display| {
        let handle = job.handle();
        Failure::system(format!("what must be hidden of job {handle} can't be read"), why)
            .hint("a person can still read it on the command line")
    };
    match read {
        Ok(bytes) => {
            let text = String::from_utf8(bytes).map_err(|error| damaged(&error))?;
            let mut masks = Masks::parse(&text).ok_or_else(|| damaged(&"it is damaged"))?;
            if let Some(home) = job.path().parent().and_then(Path::parent) {
                add_those_of_home(home, &mut masks);
            }
            Ok(masks)
        }
        Err(Errno::NOENT) if job.info().is_ok_and(|info| info.created_at < FIRST_MASKS_MS) => {
            Ok(Masks::new([0; 32]))
        }
        Err(error) => Err(damaged(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hides(env: &[(&str, &str)], settings: &SecretSettings, text: &str) -> bool {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        of_job(&env, settings).text(text) != text
    }

    #[test]
    fn variables_with_names_like_secrets_are_secrets() {
        let none = SecretSettings::default();
        for name in
            ["MY_API_KEY", "GITHUB_TOKEN", "db_password", "SecretKey", "AUTH", "CI_JOB_TOKEN", "X_PAT"]
        {
            assert!(hides(&[(name, "v4lue-of-it")], &none, "a v4lue-of-it b"), "{name}");
        }
        for name in ["PATH", "MONKEY", "KEYBOARD", "PWD", "TOKENIZER", "HOME", "AUTHOR", "PATTERN"] {
            assert!(!hides(&[(name, "v4lue-of-it")], &none, "a v4lue-of-it b"), "{name}");
        }
    }

    #[test]
    fn everyday_values_and_paths_are_not_hidden_but_passwords_in_addresses_are() {
        let none = SecretSettings::default();
        assert!(!hides(&[("POSTGRES_PASSWORD", "postgres")], &none, "user postgres"));
        assert!(!hides(&[("SSL_KEY", "/etc/passwd")], &none, "read /etc/passwd"));
        assert!(!hides(&[("DB_TOKEN", "abc")], &none, "abc"));
        assert!(hides(&[("DATABASE_URL", "postgres://me:hunter22@db/x")], &none, "got hunter22"));
        assert!(!hides(&[("DATABASE_URL", "postgres://me:hunter22@db/x")], &none, "at db/x"));
    }

    #[test]
    fn settings_add_and_leave_out() {
        let settings = SecretSettings {
            values: vec!["zebra-crossing".into()],
            patterns: vec![r"pin: (\d+)".into()],
            env: vec!["CODENAME".into()],
            not_env: vec!["PUBLIC_KEY".into()],
            redact_log: false,
        };
        assert!(settings.check().is_ok());
        assert!(hides(&[], &settings, "a zebra-crossing"));
        assert!(hides(&[], &settings, "pin: 77"));
        assert!(hides(&[("CODENAME", "bluebird")], &settings, "bluebird"));
        assert!(!hides(&[("PUBLIC_KEY", "v4lue-of-it")], &settings, "v4lue-of-it"));
        let short = SecretSettings { values: vec!["abc".into()], ..SecretSettings::default() };
        assert!(short.check().unwrap_err().message.contains("shorter"));
        let bad = SecretSettings { patterns: vec!["(".into()], ..SecretSettings::default() };
        assert!(bad.check().unwrap_err().message.contains("pattern"));
    }
}
