//! `outlast config`: every setting, where its value comes from, and a way to change it.

mod keys;

use std::path::{Path, PathBuf};

use outlast_cli::ConfigVerb;
use outlast_cli::{
    ConfigArgs, ConfigGetArgs, ConfigListArgs, ConfigPathArgs, ConfigSetArgs, ConfigUnsetArgs,
};
use outlast_job::Failure;
use outlast_job::settings::{Settings, read_file};
use outlast_protocol::near::is_near;
use serde::Serialize;
use toml_edit::{DocumentMut, Item, Table, Value};

use crate::output::Output;
use crate::table::{Column, fit, line};
use crate::terminal;
use keys::{KEYS, Key};

/// The names of all settings.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.name)
}

pub(super) fn config(args: &ConfigArgs, out: &mut Output) -> Result<i32, Failure> {
    let path = Settings::path().ok_or_else(|| {
        Failure::usage("there is no place for settings").hint("set $HOME, or name a file in $OUTLAST_CONFIG")
    })?;
    match &args.verb {
        None | Some(ConfigVerb::List(ConfigListArgs {})) => list(&path, out),
        Some(ConfigVerb::Get(ConfigGetArgs { key })) => get(&path, key, out),
        Some(ConfigVerb::Set(ConfigSetArgs { key, value })) => set(&path, key, value, out),
        Some(ConfigVerb::Unset(ConfigUnsetArgs { key })) => unset(&path, key, out),
        Some(ConfigVerb::Path(ConfigPathArgs {})) => {
            let shown = path.display().to_string();
            if out.json {
                out.value(&serde_json::json!({ "path": shown, "exists": path.exists() }));
            } else {
                out.line(&shown);
            }
            Ok(0)
        }
    }
}

/// One setting, as JSON has it.
#[derive(Serialize)]
struct Setting {
    key: &'static str,
    value: String,
    default: &'static str,
    /// `default` or `file`.
    origin: &'static str,
    about: &'static str,
}

fn settings(document: &DocumentMut) -> Vec<Setting> {
    let setting = |key: &Key| {
        let set = find(document, key.name).map(shown);
        Setting {
            key: key.name,
            origin: if set.is_some() { "file" } else { "default" },
            value: set.unwrap_or_else(|| key.default.to_owned()),
            default: key.default,
            about: key.about,
        }
    };
    KEYS.iter().map(setting).collect()
}

const COLUMNS: &[Column] = &[
    Column { title: "SETTING", min: 24, leave_out: 0 },
    Column { title: "VALUE", min: 10, leave_out: 0 },
    Column { title: "FROM", min: 7, leave_out: 1 },
    Column { title: "WHAT IT IS", min: 20, leave_out: 2 },
];

fn list(path: &Path, out: &mut Output) -> Result<i32, Failure> {
    let document = read(path)?;
    let settings = settings(&document);
    if out.json {
        out.value(&serde_json::json!({
            "path": path.display().to_string(), "exists": path.exists(), "settings": settings
        }));
        return Ok(0);
    }
    let cells =
        |one: &Setting| vec![one.key.to_owned(), one.value.clone(), one.origin.into(), one.about.into()];
    let rows: Vec<Vec<String>> = settings.iter().map(cells).collect();
    let widths = fit(COLUMNS, &rows, terminal::columns());
    let titles: Vec<String> = COLUMNS.iter().map(|column| column.title.to_owned()).collect();
    let head = out.styled("1", &line(&titles, &widths, |_, title| title.to_owned()));
    out.line(&head);
    for (row, one) in rows.iter().zip(&settings) {
        let style = |_: usize, cell: &str| {
            if one.origin == "file" { out.styled("1", cell) } else { cell.to_owned() }
        };
        let text = line(row, &widths, style);
        out.line(&text);
    }
    let is_there = if path.exists() { "" } else { " (not there: all are defaults)" };
    out.talk(&format!("file: {}{is_there}", path.display()));
    let wakes =
        document.get("wake").and_then(Item::as_array_of_tables).map_or(0, toml_edit::ArrayOfTables::len);
    if wakes > 0 {
        out.talk(&format!("and {wakes} [[wake]] in it"));
    }
    Ok(0)
}

fn get(path: &Path, name: &str, out: &mut Output) -> Result<i32, Failure> {
    let key = known(name)?;
    let all = settings(&read(path)?);
    if let Some(one) = all.iter().find(|one| one.key == key.name) {
        if out.json {
            out.value(one);
        } else {
            out.line(&one.value);
        }
    }
    Ok(0)
}

fn set(path: &Path, name: &str, value: &str, out: &mut Output) -> Result<i32, Failure> {
    let key = known(name)?;
    let mut document = read(path)?;
    let (tables, last) = parts(key.name);
    let mut table: &mut Table = document.as_table_mut();
    for part in tables {
        let entry = table.entry(part).or_insert_with(|| {
            let mut table = Table::new();
            // `[agents]` alone says nothing when there is `[agents.limits]`.
            table.set_implicit(true);
            Item::Table(table)
        });
        table = entry.as_table_mut().ok_or_else(|| {
            Failure::usage(format!("{part} is not a table in {}", path.display()))
                .hint("correct the file by hand")
        })?;
    }
    table[last] = Item::Value(written(key, value));
    write(path, &document, name)?;
    let now = find(&document, key.name).map(shown).unwrap_or_default();
    tell(path, key, &now, out)
}

fn unset(path: &Path, name: &str, out: &mut Output) -> Result<i32, Failure> {
    let key = known(name)?;
    let mut document = read(path)?;
    let (tables, last) = parts(key.name);
    let mut table = Some(document.as_table_mut());
    for part in tables {
        table = table.and_then(|table| table.get_mut(part)?.as_table_mut());
    }
    if table.is_some_and(|table| table.remove(last).is_some()) {
        write(path, &document, name)?;
    }
    tell(path, key, key.default, out)
}

fn tell(path: &Path, key: &Key, value: &str, out: &mut Output) -> Result<i32, Failure> {
    if out.json {
        out.value(
            &serde_json::json!({ "key": key.name, "value": value, "path": path.display().to_string() }),
        );
    } else {
        out.talk(&format!(
            "{} = {value} in {}; jobs that are started from now on have it",
            key.name,
            path.display()
        ));
    }
    Ok(0)
}

/// The key of a name; of one that there is not, those that are like it.
fn known(name: &str) -> Result<&'static Key, Failure> {
    KEYS.iter().find(|key| key.name == name).ok_or_else(|| {
        let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
        let like = |key: &&Key| {
            key.name.starts_with(name) || last(key.name) == last(name) || is_near(key.name, name)
        };
        let found: Vec<&str> = KEYS.iter().filter(like).map(|key| key.name).collect();
        let hint = match found.as_slice() {
            [] => "see all of them: outlast config".to_owned(),
            some => format!("did you mean: {}; all of them: outlast config", some.join(", ")),
        };
        let hint = if name.starts_with("wake") {
            "a [[wake]] is written by hand: outlast config path".into()
        } else {
            hint
        };
        Failure::usage(format!("there is no setting {name:?}")).hint(hint)
    })
}

/// The tables of a key, and its last part.
fn parts(name: &'static str) -> (Vec<&'static str>, &'static str) {
    let mut parts: Vec<&str> = name.split('.').collect();
    let last = parts.pop().unwrap_or_default();
    (parts, last)
}

fn find<'a>(document: &'a DocumentMut, name: &'static str) -> Option<&'a Value> {
    let (tables, last) = parts(name);
    let mut item = document.as_item();
    for part in tables {
        item = item.get(part)?;
    }
    item.get(last)?.as_value()
}

/// A value as a person writes it: texts without their quotes.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string().trim().to_owned(), str::to_owned)
}

/// What was given, as a value: text where text is meant, whatever it looks like.
fn written(key: &Key, given: &str) -> Value {
    if key.is_text && !given.starts_with(['"', '\'']) {
        return given.into();
    }
    given.parse().unwrap_or_else(|_| given.into())
}

fn read(path: &Path) -> Result<DocumentMut, Failure> {
    let text = match read_file(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::usage(format!("{} can't be read: {error}", path.display()))),
    };
    text.parse().map_err(|error: toml_edit::TomlError| {
        Failure::usage(format!("{} is not TOML: {}", path.display(), error.message()))
            .hint("`outlast doctor` names the line")
    })
}

/// Writes the file, unless the new value is refused. It is replaced as a whole: nobody reads half of it.
fn write(path: &Path, document: &DocumentMut, name: &str) -> Result<(), Failure> {
    let text = document.to_string();
    Settings::parse(&text).map_err(|failure| {
        let said = failure.message.split_once(": ").map_or(failure.message.as_str(), |(_, said)| said);
        Failure::usage(format!("{name} was not changed: {said}"))
            .hint("see its value and default: outlast config")
    })?;
    let broken =
        |error: std::io::Error| Failure::system(format!("{} can't be written", path.display()), error);
    // A link stays a link.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if let Some(folder) = real.parent() {
        std::fs::create_dir_all(folder).map_err(broken)?;
    }
    let mut fresh = real.clone().into_os_string();
    fresh.push(".new");
    let fresh = PathBuf::from(fresh);
    std::fs::write(&fresh, text).map_err(broken)?;
    if let Ok(before) = std::fs::metadata(&real) {
        let _ = std::fs::set_permissions(&fresh, before.permissions());
    }
    std::fs::rename(&fresh, &real).map_err(broken)
}
