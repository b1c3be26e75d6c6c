//! Secrets that any job of a home knows, so that one job does not print what another was given or was typed into it.
//!
//! They are fingerprints under a key of the home, each with the day it was last given, and are forgotten after thirty
//! days. Short values stay with their job: they are part of too many words.

use std::io;
use std::path::Path;

use outlast_stream::Masks;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::rand::{GetRandomFlags, getrandom};

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

/// The file: two lines of a masks file, then lines of one, each behind the time it was last given.
struct Known {
    head: String,
    lines: Vec<(u64, String)>,
}

/// What all jobs of a home know. One that cannot be read hides nothing more than the job's own masks.
pub(super) fn read(home: &Path) -> Option<Masks> {
    let folder = open_folder(home).ok()?;
    let known = Known::parse(&read_small(&folder, layout::SECRETS, MAX_MASKS_BYTES).ok()?)?;
    let lines: String = known.lines.iter().map(|(_, line)| format!("{line}\n")).collect();
    Masks::parse(&format!("{}{lines}", known.head))
}

/// Lets all jobs of a home know these values.
pub(super) fn add<'a>(home: &Path, values: impl IntoIterator<Item = &'a str>) -> io::Result<()> {
    let values: Vec<&str> =
        values.into_iter().map(str::trim).filter(|value| value.len() >= MIN_SHARED_BYTES).collect();
    if values.is_empty() {
        return Ok(());
    }
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
    if known.learn(&values, now_ms()) {
        replace(&folder, layout::SECRETS, known.text().as_bytes(), Durability::Process)?;
    }
    Ok(())
}

fn open_folder(home: &Path) -> io::Result<std::os::fd::OwnedFd> {
    Ok(open(home, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

impl Known {
    fn new() -> io::Result<Self> {
        let mut key = [0; 32];
        getrandom(&mut key, GetRandomFlags::empty())?;
        Ok(Self { head: Masks::new(key).to_text(), lines: Vec::new() })
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut lines = text.lines();
        let head = format!("{}\n{}\n", lines.next()?, lines.next()?);
        Masks::parse(&head)?;
        let timed = |line: &str| {
            let (at, rest) = line.split_once(' ')?;
            Some((at.parse().ok()?, rest.to_owned()))
        };
        Some(Self { head, lines: lines.filter_map(timed).collect() })
    }

    fn text(&self) -> String {
        let lines: String = self.lines.iter().map(|(at, line)| format!("{at} {line}\n")).collect();
        format!("{}{lines}", self.head)
    }

    /// Adds values. Returns whether there is something to write.
    fn learn(&mut self, values: &[&str], now: u64) -> bool {
        let Some(mut masks) = Masks::parse(&self.head) else { return false };
        for value in values {
            masks.add(value, false);
        }
        let before = self.lines.len();
        self.lines.retain(|(at, _)| at + LIFETIME_MS > now);
        let mut changed = self.lines.len() != before;
        for line in masks.to_text().lines().skip(2) {
            match self.lines.iter_mut().find(|(_, known)| known == line) {
                Some((at, _)) if *at + DAY_MS > now => {}
                Some((at, _)) => {
                    *at = now;
                    changed = true;
                }
                None => {
                    self.lines.push((now, line.to_owned()));
                    changed = true;
                }
            }
        }
        if self.lines.len() > MAX_LINES {
            self.lines.sort_by_key(|(at, _)| *at);
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
        add(home.path(), ["hunter22-otter", "short"]).unwrap();
        add(home.path(), ["another-secret-9"]).unwrap();
        let masks = read(home.path()).unwrap();
        for text in ["hunter22-otter", "another-secret-9", "aHVudGVyMjItb3R0ZXI="] {
            assert_ne!(masks.text(text), text);
        }
        assert_eq!(masks.text("short"), "short");
        let text = std::fs::read_to_string(home.path().join(layout::SECRETS)).unwrap();
        assert!(!text.contains("hunter22") && !text.contains("another"), "{text}");
        add(home.path(), ["hunter22-otter"]).unwrap();
        assert_eq!(std::fs::read_to_string(home.path().join(layout::SECRETS)).unwrap(), text);
    }

    #[test]
    fn a_value_is_forgotten_after_its_time() {
        let mut known = Known::new().unwrap();
        assert!(known.learn(&["hunter22-otter"], 1000));
        assert!(!known.learn(&["hunter22-otter"], 2000));
        assert!(known.learn(&["another-secret-9"], 2000 + LIFETIME_MS));
        let masks = Masks::parse(&format!(
            "{}{}",
            known.head,
            known.lines.iter().map(|(_, line)| format!("{line}\n")).collect::<String>()
        ))
        .unwrap();
        assert_eq!(masks.text("hunter22-otter"), "hunter22-otter");
        assert_ne!(masks.text("another-secret-9"), "another-secret-9");
    }
}
