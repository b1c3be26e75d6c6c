//! Secrets that any job of a home knows, so that one job does not print what another was given or was typed into it.
//!
//! They are fingerprints under a key of the home, each with the day it was last given and where it came from, and are
//! forgotten after thirty days, or when a person says so. Short values stay with their job: they are part of too many
//! words.

use std::io;
use std::path::Path;

use outlast_stream::Masks;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use serde::Serialize;

use super::MAX_MASKS_BYTES;
use crate::clock::now_ms;
use crate::registry::layout;
use crate::registry::replace::{Durability, read_small, replace};

/// The shortest value that all jobs know.
const MIN_SHARED_BYTES: usize = 8;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// How long a value is known after it was last given.
const LIFETIME_MS: u64 = 30 * DAY_MS;
/// The most lines that are kept; the newest ones count.
const MAX_LINES: usize = 4096;

/// A secret that all jobs of a home know, without its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KnownSecret {
    /// What it is forgotten by: a part of its fingerprint.
    pub id: String,
    /// Where it came from: a variable's name, `typed` or `settings`.
    pub from: String,
    /// How many bytes it has.
    pub bytes: usize,
    /// When it was last given, in milliseconds since 1970.
    pub given_at: u64,
    /// When it will be forgotten, if it is not given again.
    pub until: u64,
}

/// The file: two lines of a masks file, then lines of one. Each stands behind the time it was last given, the id of its
/// secret and where that came from.
struct Known {
    head: String,
    lines: Vec<Line>,
}

/// A fingerprint: of a value, or of another spelling of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    given_at: u64,
    id: String,
    from: String,
    print: String,
}

impl Line {
    /// Earlier versions wrote neither an id nor where it came from.
    fn parse(text: &str) -> Option<Self> {
        let (given_at, rest) = text.split_once(' ')?;
        let given_at = given_at.parse().ok()?;
        let Some(rest) = rest.strip_prefix("id=") else {
            let id = id_of(rest)?;
            return Some(Self { given_at, id, from: "unknown".into(), print: rest.to_owned() });
        };
        let (id, rest) = rest.split_once(" from=")?;
        let (from, print) = rest.split_once(' ')?;
        Some(Self { given_at, id: id.to_owned(), from: from.to_owned(), print: print.to_owned() })
    }

    fn text(&self) -> String {
        let Self { given_at, id, from, print } = self;
        format!("{given_at} id={id} from={from} {print}\n")
    }
}

/// The beginning of a fingerprint's proof.
fn id_of(print: &str) -> Option<String> {
    print.split(' ').next_back().and_then(|proof| proof.get(..8)).map(str::to_owned)
}

fn is_living(line: &Line, now: u64) -> bool {
    line.given_at + LIFETIME_MS > now
}

/// What all jobs of a home know. One that cannot be read hides nothing more than the job's own masks.
pub(super) fn read(home: &Path) -> Option<Masks> {
    let folder = open_folder(home).ok()?;
    let known = Known::parse(&read_small(&folder, layout::SECRETS, MAX_MASKS_BYTES).ok()?)?;
    let now = now_ms();
    let living = known.lines.iter().filter(|line| is_living(line, now));
    let lines: String = living.map(|line| format!("{}\n", line.print)).collect();
    Masks::parse(&format!("{}{lines}", known.head))
}

/// The secrets that all jobs of a home know, the last given first.
pub(super) fn list(home: &Path) -> io::Result<Vec<KnownSecret>> {
    let bytes = match read_small(&open_folder(home)?, layout::SECRETS, MAX_MASKS_BYTES) {
        Ok(bytes) => bytes,
        Err(rustix::io::Errno::NOENT) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let known = Known::parse(&bytes).ok_or(io::ErrorKind::InvalidData)?;
    Ok(known.listed(now_ms()))
}

/// Forgets the secrets of these ids, or all. Returns those that were known.
pub(super) fn forget(home: &Path, ids: Option<&[String]>) -> io::Result<Vec<KnownSecret>> {
    changed(home, |known| {
        let is_meant = |id: &str| ids.is_none_or(|ids| ids.iter().any(|meant| meant == id));
        let mut gone = known.listed(now_ms());
        gone.retain(|secret| is_meant(&secret.id));
        known.lines.retain(|line| !is_meant(&line.id));
        (!gone.is_empty(), gone)
    })
}

/// Lets all jobs of a home know these values.
pub(super) fn add<'a>(home: &Path, values: impl IntoIterator<Item = (&'a str, &'a str)>) -> io::Result<()> {
    let values = values.into_iter().map(|(from, value)| (from, value.trim()));
    let values: Vec<(&str, &str)> = values.filter(|(_, value)| value.len() >= MIN_SHARED_BYTES).collect();
    if values.is_empty() {
        return Ok(());
    }
    changed(home, |known| (known.learn(&values, now_ms()), ()))
}

/// Changes the file, under its lock; `change` says whether there is something to write.
fn changed<T>(home: &Path, change: impl FnOnce(&mut Known) -> (bool, T)) -> io::Result<T> {
    let folder = open_folder(home)?;
    let lock = rustix::fs::openat(
        &folder,
        layout::SECRETS_LOCK,
        OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::RUSR | Mode::WUSR,
    )?;
    flock(&lock, FlockOperation::LockExclusive)?;
    let known = read_small(&folder, layout::SECRETS, MAX_MASKS_BYTES).ok();
    let mut known = match known.and_then(|bytes| Known::parse(&bytes)) {
        Some(known) => known,
        None => Known::new()?,
    };
    let (is_changed, result) = change(&mut known);
    if is_changed {
        replace(&folder, layout::SECRETS, known.text().as_bytes(), Durability::Process)?;
    }
    Ok(result)
}

fn open_folder(home: &Path) -> io::Result<std::os::fd::OwnedFd> {
    Ok(open(home, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

impl Known {
    fn new() -> io::Result<Self> {
        let mut key = [0; 32];
        outlast_pty::system::random(&mut key)?;
        Ok(Self { head: Masks::new(key).to_text(), lines: Vec::new() })
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut lines = text.lines();
        let head = format!("{}\n{}\n", lines.next()?, lines.next()?);
        Masks::parse(&head)?;
        Some(Self { head, lines: lines.filter_map(Line::parse).collect() })
    }

    fn text(&self) -> String {
        let lines: String = self.lines.iter().map(Line::text).collect();
        format!("{}{lines}", self.head)
    }

    fn listed(&self, now: u64) -> Vec<KnownSecret> {
        let mut listed: Vec<KnownSecret> = Vec::new();
        for line in self.lines.iter().filter(|line| is_living(line, now)) {
            // The first line of a secret is that of its value; the others are spellings.
            if listed.iter().all(|secret| secret.id != line.id) {
                let bytes = line.print.split(' ').nth(1).and_then(|len| len.parse().ok()).unwrap_or(0);
                let (id, from, given_at) = (line.id.clone(), line.from.clone(), line.given_at);
                listed.push(KnownSecret { id, from, bytes, given_at, until: given_at + LIFETIME_MS });
            }
        }
        listed.sort_by_key(|secret| std::cmp::Reverse(secret.given_at));
        listed
    }

    /// Adds values, each with where it came from. Returns whether there is something to write.
    fn learn(&mut self, values: &[(&str, &str)], now: u64) -> bool {
        let before = self.lines.len();
        self.lines.retain(|line| is_living(line, now));
        let mut changed = self.lines.len() != before;
        for (from, value) in values {
            let Some(mut masks) = Masks::parse(&self.head) else { return false };
            masks.add(value, false);
            let text = masks.to_text();
            let mut prints = text.lines().skip(2).peekable();
            let Some(id) = prints.peek().and_then(|first| id_of(first)) else { continue };
            // A name has no blanks in the file.
            let from: String =
                from.chars().map(|c| if c.is_whitespace() { '_' } else { c }).take(64).collect();
            for print in prints {
                match self.lines.iter_mut().find(|known| known.print == print) {
                    Some(known) if known.given_at + DAY_MS > now => {}
                    Some(known) => {
                        known.given_at = now;
                        changed = true;
                    }
                    None => {
                        let (id, from, print) = (id.clone(), from.clone(), print.to_owned());
                        self.lines.push(Line { given_at: now, id, from, print });
                        changed = true;
                    }
                }
            }
        }
        if self.lines.len() > MAX_LINES {
            self.lines.sort_by_key(|line| line.given_at);
            self.lines.drain(..self.lines.len() - MAX_LINES);
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_job_was_given_every_job_hides_and_no_value_is_written() {
        let home = tempfile::tempdir().unwrap();
        assert!(read(home.path()).is_none());
        add(home.path(), [("A_TOKEN", "hunter22-otter"), ("X", "short")]).unwrap();
        add(home.path(), [("typed", "another-secret-9")]).unwrap();
        let masks = read(home.path()).unwrap();
        for text in ["hunter22-otter", "another-secret-9", "aHVudGVyMjItb3R0ZXI="] {
            assert_ne!(masks.text(text), text);
        }
        assert_eq!(masks.text("short"), "short");
        let text = std::fs::read_to_string(home.path().join(layout::SECRETS)).unwrap();
        assert!(!text.contains("hunter22") && !text.contains("another"), "{text}");
        add(home.path(), [("A_TOKEN", "hunter22-otter")]).unwrap();
        assert_eq!(std::fs::read_to_string(home.path().join(layout::SECRETS)).unwrap(), text);
    }

    #[test]
    fn a_secret_is_listed_once_and_forgotten_with_all_of_its_spellings() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(list(home.path()).unwrap(), []);
        add(home.path(), [("A_TOKEN", "hunter22-otter"), ("typed", "another-secret-9")]).unwrap();
        let listed = list(home.path()).unwrap();
        assert_eq!(listed.len(), 2, "{listed:?}");
        let token = listed.iter().find(|secret| secret.from == "A_TOKEN").unwrap();
        assert_eq!((token.bytes, token.until - token.given_at), (14, LIFETIME_MS));
        assert_eq!(forget(home.path(), Some(&["nothing".into()])).unwrap(), []);
        let forgotten = forget(home.path(), Some(std::slice::from_ref(&token.id))).unwrap();
        assert_eq!(forgotten, std::slice::from_ref(token));
        let masks = read(home.path()).unwrap();
        for text in ["hunter22-otter", "aHVudGVyMjItb3R0ZXI="] {
            assert_eq!(masks.text(text), text);
        }
        assert_ne!(masks.text("another-secret-9"), "another-secret-9");
        assert_eq!(forget(home.path(), None).unwrap().len(), 1);
        assert_eq!(list(home.path()).unwrap(), []);
    }

    #[test]
    fn a_value_is_forgotten_after_its_time() {
        let mut known = Known::new().unwrap();
        assert!(known.learn(&[("A", "hunter22-otter")], 1000));
        assert!(!known.learn(&[("A", "hunter22-otter")], 2000));
        assert!(known.learn(&[("B", "another-secret-9")], 2000 + LIFETIME_MS));
        let listed = known.listed(2000 + LIFETIME_MS);
        assert_eq!(listed.iter().map(|secret| secret.from.as_str()).collect::<Vec<_>>(), ["B"]);
    }

    #[test]
    fn lines_of_earlier_versions_are_read() {
        let mut known = Known::new().unwrap();
        known.learn(&[("A", "hunter22-otter")], 1000);
        let old: String =
            known.lines.iter().map(|line| format!("{} {}\n", line.given_at, line.print)).collect();
        let read = Known::parse(format!("{}{old}", known.head).as_bytes()).unwrap();
        assert_eq!(read.lines.len(), known.lines.len());
        assert_eq!(read.lines[0].from, "unknown");
        assert_eq!(Known::parse(known.text().as_bytes()).unwrap().lines, known.lines);
    }
}
