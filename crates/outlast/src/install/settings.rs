//! A client's settings file: what is in it, and how a change comes into it without a moment in which it is broken.

use std::path::{Path, PathBuf};

use outlast_cli::Client;
use outlast_job::{Failure, Kind};
use serde_json::Value;
use toml_edit::DocumentMut;

use super::clients::{KnownClient, NAME, Server};
use super::jsonc;

/// A settings file as it was read.
#[derive(Debug)]
pub(crate) struct Settings {
    client: Client,
    pub(crate) path: PathBuf,
    /// None where there is no file yet.
    text: Option<String>,
    /// Everything in it.
    value: Value,
}

/// Whether the server is known there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It is not in it.
    No,
    /// It is, and is started in another way.
    Otherwise,
    /// It is.
    Yes,
}

impl Settings {
    /// Reads it; what can't be read is refused, and nothing is changed.
    pub(crate) fn read(client: Client, path: PathBuf) -> Result<Self, Failure> {
        // A file that is a link stays one.
        let path = path.canonicalize().unwrap_or(path);
        let text = match std::fs::read(&path) {
            Ok(bytes) => Some(String::from_utf8(bytes).map_err(|_| refusal(&path, "it is not UTF-8"))?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(Failure::system(format!("can't read {}", path.display()), error)),
        };
        let value = value(&path, text.as_deref().unwrap_or_default())?;
        let settings = Self { client, path, text, value };
        let servers = settings.value.get(client.key());
        if servers.is_some_and(|servers| !servers.is_object())
            || servers.and_then(|servers| servers.get(NAME)).is_some_and(|entry| !entry.is_object())
        {
            return Err(refusal(&settings.path, &format!("its {:?} is not what it should be", client.key())));
        }
        Ok(settings)
    }

    /// What a file with nothing else in it would hold.
    pub(crate) fn snippet(client: Client, path: &Path, server: &Server) -> Result<String, Failure> {
        Self { client, path: path.to_owned(), text: None, value: serde_json::json!({}) }.with(server)
    }

    fn entry(&self) -> Option<&Value> {
        self.value.get(self.client.key())?.get(NAME)
    }

    /// Whether the server is in it, to be started like this.
    pub(crate) fn knows(&self, server: &Server) -> Known {
        let wanted = self.client.entry(server);
        match self.entry() {
            None => Known::No,
            Some(entry) if self.client.our_keys().iter().all(|key| entry.get(key) == wanted.get(key)) => {
                Known::Yes
            }
            Some(_) => Known::Otherwise,
        }
    }

    /// Whether the server is in it, however it is started.
    pub(crate) fn has_entry(&self) -> bool {
        self.entry().is_some()
    }

    /// The text with the server in it.
    pub(crate) fn with(&self, server: &Server) -> Result<String, Failure> {
        let entry = self.client.entry(server);
        let key = self.client.key();
        let changes: Vec<(Vec<&str>, &Value)> = match self.entry() {
            None => vec![(vec![key, NAME], &entry)],
            Some(_) => {
                let ours = self.client.our_keys().iter();
                ours.filter_map(|&part| Some((vec![key, NAME, part], entry.get(part)?))).collect()
            }
        };
        let mut wanted = self.value.clone();
        let mut text = self.text.clone().unwrap_or_default();
        for (path, value) in changes {
            let mut place = &mut wanted;
            for part in &path {
                place = &mut place[*part];
            }
            *place = value.clone();
            text = if is_toml(&self.path) {
                set_toml(&text, &path, value)
            } else {
                jsonc::set(&text, &path, value)
            }
            .map_err(|error| refusal(&self.path, &error))?;
        }
        self.checked(text, &wanted)
    }

    /// The text without it.
    pub(crate) fn without(&self) -> Result<String, Failure> {
        let text = self.text.clone().unwrap_or_default();
        let mut wanted = self.value.clone();
        let key = self.client.key();
        if let Some(servers) = wanted.get_mut(key).and_then(Value::as_object_mut) {
            servers.remove(NAME);
        }
        let text = if is_toml(&self.path) {
            let mut document: DocumentMut =
                text.parse().map_err(|error| refusal(&self.path, &format!("{error}")))?;
            if let Some(servers) = document.get_mut(key).and_then(toml_edit::Item::as_table_like_mut) {
                servers.remove(NAME);
            }
            document.to_string()
        } else {
            let left = jsonc::remove(&text, &[key, NAME]).map_err(|error| refusal(&self.path, &error))?;
            // What only held ours goes too, unless there is a comment in it.
            match jsonc::remove(&left, &[key]) {
                Ok(shorter) if wanted.get(key).is_some_and(is_empty) && is_blank_object(&left, key) => {
                    shorter
                }
                Ok(_) | Err(_) => left,
            }
        };
        self.checked(text, &wanted)
    }

    /// A change is only good when reading it gives exactly what was meant, and all the rest as before.
    fn checked(&self, text: String, wanted: &Value) -> Result<String, Failure> {
        let mut seen = value(&self.path, &text)?;
        let mut wanted = wanted.clone();
        for value in [&mut seen, &mut wanted] {
            let key = self.client.key();
            if value
                .get(key)
                .is_some_and(|servers| servers.as_object().is_some_and(serde_json::Map::is_empty))
                && let Some(root) = value.as_object_mut()
            {
                root.remove(key);
            }
        }
        if seen == wanted {
            Ok(text)
        } else {
            Err(refusal(&self.path, "its layout is not one that can be changed safely"))
        }
    }

    /// Where the file as it was is kept: never in place of an older copy.
    pub(crate) fn backup_path(&self) -> Option<PathBuf> {
        let text = self.text.as_ref()?;
        let is_free = |path: &PathBuf| match std::fs::read(path) {
            Ok(there) => there == text.as_bytes(),
            Err(_) => !path.exists(),
        };
        (1..1000).map(|number| backup_of(&self.path, number)).find(is_free)
    }

    /// Whether a copy of the file as it once was is beside it: if not, there was none before we came.
    pub(crate) fn has_backup(&self) -> bool {
        backup_of(&self.path, 1).exists()
    }

    /// What a new text would change, line by line.
    pub(crate) fn diff(&self, text: &str) -> String {
        let old = self.text.as_deref().unwrap_or_default();
        let name = self.path.display().to_string();
        let before = if self.text.is_some() { name.as_str() } else { "/dev/null" };
        similar::TextDiff::from_lines(old, text)
            .unified_diff()
            .context_radius(2)
            .header(before, &name)
            .to_string()
    }

    /// Removes a file that holds nothing any more.
    pub(crate) fn remove_file(&self) -> Result<(), Failure> {
        std::fs::remove_file(&self.path)
            .map_err(|error| Failure::system(format!("can't remove {}", self.path.display()), error))
    }

    /// Keeps the file as it was beside it.
    pub(crate) fn back_up(&self) -> Result<Option<PathBuf>, Failure> {
        let Some(backup) = self.backup_path() else { return Ok(None) };
        std::fs::copy(&self.path, &backup)
            .map_err(|error| Failure::system(format!("can't keep a copy at {}", backup.display()), error))?;
        Ok(Some(backup))
    }

    /// Puts a new text in place of the old one, whole or not at all.
    pub(crate) fn write(&self, text: &str) -> Result<(), Failure> {
        let fail = |error| Failure::system(format!("can't write {}", self.path.display()), error);
        let folder = self.path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(fail)?;
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".outlast-{}", std::process::id()));
        let fresh = self.path.with_file_name(name);
        let placed = write_new(&fresh, text)
            .and_then(|()| match std::fs::metadata(&self.path) {
                Ok(old) => std::fs::set_permissions(&fresh, old.permissions()),
                Err(_) => Ok(()),
            })
            .and_then(|()| std::fs::rename(&fresh, &self.path));
        if placed.is_err() {
            let _ = std::fs::remove_file(&fresh);
        }
        placed.map_err(fail)
    }
}

/// The copy of that number.
fn backup_of(path: &Path, number: u32) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(if number == 1 { ".outlast-backup".to_owned() } else { format!(".outlast-backup.{number}") });
    path.with_file_name(name)
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty)
}

/// Whether a key's object has not even a comment in it.
fn is_blank_object(text: &str, key: &str) -> bool {
    let named = format!("{key:?}");
    let after = text.split(&named).nth(1).map(|rest| rest.trim_start().trim_start_matches(':').trim_start());
    after.and_then(|rest| rest.strip_prefix('{')).is_some_and(|rest| rest.trim_start().starts_with('}'))
}

/// Whether a text holds nothing: no setting and no comment.
pub(crate) fn is_nothing(text: &str) -> bool {
    let text: String = text.trim_start_matches('\u{feff}').split_whitespace().collect();
    text.is_empty() || text == "{}"
}

/// Such files hold keys of others now and then: nobody else reads a new one.
pub(super) fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
}

fn refusal(path: &Path, why: &str) -> Failure {
    Failure::new(Kind::UnknownFormat, format!("{} is left as it is: {why}", path.display()))
        .hint("repair it, or put the entry in yourself: outlast install --client CLIENT --print")
}

/// Everything in a text.
fn value(path: &Path, text: &str) -> Result<Value, Failure> {
    let value = if text.trim_start_matches('\u{feff}').trim().is_empty() {
        Ok(serde_json::json!({}))
    } else if is_toml(path) {
        text.parse::<DocumentMut>()
            .map_err(|error| error.to_string())
            .map(|document| from_table(document.as_table()))
    } else {
        jsonc::parse(text)
    };
    let value = value.map_err(|error| refusal(path, error.trim_end()))?;
    if value.is_object() { Ok(value) } else { Err(refusal(path, "it is not an object")) }
}

fn from_table(table: &dyn toml_edit::TableLike) -> Value {
    table.iter().map(|(key, item)| (key.to_owned(), from_item(item))).collect()
}

fn from_item(item: &toml_edit::Item) -> Value {
    if let Some(table) = item.as_table_like() {
        return from_table(table);
    }
    if let Some(tables) = item.as_array_of_tables() {
        return tables.iter().map(|table| from_table(table)).collect();
    }
    item.as_value().map_or(Value::Null, from_value)
}

fn from_value(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => Value::from(text.value().as_str()),
        toml_edit::Value::Integer(number) => Value::from(*number.value()),
        toml_edit::Value::Float(number) => Value::from(*number.value()),
        toml_edit::Value::Boolean(flag) => Value::from(*flag.value()),
        toml_edit::Value::Datetime(time) => Value::from(time.value().to_string()),
        toml_edit::Value::Array(items) => items.iter().map(from_value).collect(),
        toml_edit::Value::InlineTable(table) => from_table(table),
    }
}

fn to_value(value: &Value) -> toml_edit::Value {
    match value {
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => toml_edit::Value::Array(items.iter().map(to_value).collect()),
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        other => other.to_string().into(),
    }
}

fn set_toml(text: &str, path: &[&str], value: &Value) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| error.to_string())?;
    let Some((last, parents)) = path.split_last() else { return Ok(text.to_owned()) };
    let mut place: &mut dyn toml_edit::TableLike = document.as_table_mut();
    for key in parents {
        if !place.contains_key(key) {
            let mut table = toml_edit::Table::new();
            // No header of its own for a table that only holds others.
            table.set_implicit(true);
            place.insert(key, toml_edit::Item::Table(table));
        }
        place = place
            .get_mut(key)
            .and_then(toml_edit::Item::as_table_like_mut)
            .ok_or_else(|| format!("{key:?} is not a table"))?;
    }
    let item = match value {
        Value::Object(map) => {
            let table: toml_edit::Table =
                map.iter().map(|(key, value)| (key.as_str(), to_value(value))).collect();
            toml_edit::Item::Table(table)
        }
        other => toml_edit::Item::Value(to_value(other)),
    };
    // What stands beside a value, such as a comment, stays.
    match (place.get_mut(last).and_then(toml_edit::Item::as_value_mut), item) {
        (Some(old), toml_edit::Item::Value(mut new)) => {
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        (_, item) => {
            place.insert(last, item);
        }
    }
    Ok(document.to_string())
}
