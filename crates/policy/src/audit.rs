//! The audit log: one line for each act that was asked about or refused, with the answer, or that a rule allowed.
//!
//! It is `audit.jsonl` in the home. It is append-only, with one write per line, by any number of processes.
//! Beyond its size limit it is renamed to `audit.1.jsonl`, replacing the previous one.
//!
//! Each line has a number, and a hash of the line before it. The number and hash of the last one are also in
//! `audit.last`: so a log that was cut, emptied or changed is noticed, and the next line says so.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use outlast_job::Handle;
use outlast_job::clock::now_ms;
use ring::digest;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, open, stat};
use serde::Serialize;
use serde_json::Value;

use crate::question::{Answer, Question};

const FILE: &str = "audit.jsonl";
const ROTATED_FILE: &str = "audit.1.jsonl";
/// The number and the hash of the last line.
const LAST_FILE: &str = "audit.last";
/// The log is rotated beyond this size.
const MAX_LOG_BYTES: u64 = 4 << 20;
/// More than a line has.
const MAX_LINE_BYTES: u64 = 128 << 10;
/// How much of a command is recorded.
const MAX_COMMAND_BYTES: usize = 2000;

/// Where acts are recorded.
#[derive(Clone, Debug)]
pub struct Audit {
    home: PathBuf,
    limit: u64,
}

/// The entries of a log, and what is wrong with it.
#[derive(Debug, Default)]
pub struct Entries {
    /// Oldest first.
    pub entries: Vec<Value>,
    /// Where entries were lost or changed, in words.
    pub damage: Vec<String>,
}

/// Which line is the last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Last {
    n: u64,
    hash: String,
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noted {
    /// A rule allowed it.
    Allowed,
    /// It was refused without asking.
    Denied,
    /// A person was asked.
    Asked(Answer),
}

#[derive(Serialize)]
struct AuditEntry<'a> {
    n: u64,
    after: &'a str,
    at: u64,
    door: &'a str,
    session: &'a str,
    tool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<Handle>,
    what: &'a str,
    decision: &'a str,
    why: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'a str>,
}

impl Audit {
    /// The log of a home.
    #[must_use]
    pub fn of(home: &Path) -> Self {
        Self { home: home.to_owned(), limit: MAX_LOG_BYTES }
    }

    /// Its path.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.home.join(FILE)
    }

    /// Records what was decided.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn note(&self, question: &Question, noted: Noted) -> io::Result<()> {
        let file = self.open_current()?;
        let mut last = self.last();
        if let Some(lost) = self.loss(&last) {
            let entry = serde_json::json!({"n": last.n + 1, "after": last.hash, "at": now_ms(), "decision": "loss", "why": lost});
            last = self.append(&file, &serde_json::to_vec(&entry)?, last.n + 1)?;
        }
        let (decision, answer) = match noted {
            Noted::Allowed => ("allow", None),
            Noted::Denied => ("deny", None),
            Noted::Asked(answer) => ("ask", Some(answer.name())),
        };
        let entry = AuditEntry {
            n: last.n + 1,
            after: &last.hash,
            at: now_ms(),
            door: question.door.name(),
            session: cut(&question.session),
            tool: question.tool.name(),
            job: question.job,
            what: cut(&question.what),
            decision,
            why: cut(&question.why),
            rule: question.rule.as_deref().map(cut),
            place: question.place.as_deref().map(cut),
            answer,
        };
        self.append(&file, &serde_json::to_vec(&entry)?, last.n + 1).map(drop)
    }

    fn append(&self, file: &OwnedFd, line: &[u8], n: u64) -> io::Result<Last> {
        let whole = [line, b"\n"].concat();
        // A single write: lines of several processes do not mix.
        if rustix::io::write(file, &whole)? != whole.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let last = Last { n, hash: hash(line) };
        let draft = self.home.join(format!("{LAST_FILE}.new"));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let written = open(&draft, flags, Mode::RUSR | Mode::WUSR)?;
        rustix::io::write(&written, format!("{} {}\n", last.n, last.hash).as_bytes())?;
        std::fs::rename(draft, self.home.join(LAST_FILE))?;
        Ok(last)
    }

    /// Which line should be the last.
    fn last(&self) -> Last {
        let text = std::fs::read_to_string(self.home.join(LAST_FILE)).unwrap_or_default();
        let (n, hash) = text.trim().split_once(' ').unwrap_or_default();
        Last { n: n.parse().unwrap_or(0), hash: hash.to_owned() }
    }

    /// What is lost, if the last line is not the one that was written last.
    fn loss(&self, last: &Last) -> Option<String> {
        if last.n == 0 {
            return None;
        }
        let is_there = [FILE, ROTATED_FILE].iter().any(|name| {
            let text = end_of(&self.home.join(name)).unwrap_or_default();
            let lines = text.strip_suffix(b"\n").unwrap_or(&text);
            lines.rsplit(|byte| *byte == b'\n').next().is_some_and(|line| hash(line) == last.hash)
        });
        (!is_there).then(|| format!("the log was emptied, cut or changed: entry {} is gone", last.n))
    }

    /// Reads what is there, oldest first, and looks for what is missing.
    #[must_use]
    pub fn read(&self) -> Entries {
        let mut read = Entries::default();
        let mut before: Option<Last> = None;
        for name in [ROTATED_FILE, FILE] {
            let text = std::fs::read_to_string(self.home.join(name)).unwrap_or_default();
            for line in text.lines() {
                let Ok(entry) = serde_json::from_str::<Value>(line) else {
                    read.damage.push(format!("a line of {name} is not an entry"));
                    continue;
                };
                // Older versions wrote no numbers.
                if let (Some(n), Some(after)) = (entry["n"].as_u64(), entry["after"].as_str()) {
                    if let Some(before) = &before
                        && (n != before.n + 1 || after != before.hash)
                    {
                        read.damage.push(format!(
                            "between entries {} and {n} something was removed or changed",
                            before.n
                        ));
                    }
                    before = Some(Last { n, hash: hash(line.as_bytes()) });
                }
                read.entries.push(entry);
            }
        }
        read.damage.extend(self.loss(&self.last()));
        read
    }

    /// The file to append to, locked so that no other process rotates it meanwhile.
    fn open_current(&self) -> io::Result<OwnedFd> {
        let path = self.file();
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let file = open(&path, flags, Mode::RUSR | Mode::WUSR)?;
            flock(&file, FlockOperation::LockExclusive)?;
            let ours = fstat(&file)?;
            let is_current =
                stat(&path).is_ok_and(|now| (now.st_dev, now.st_ino) == (ours.st_dev, ours.st_ino));
            if !is_current {
                continue;
            }
            if u64::try_from(ours.st_size).unwrap_or(0) < self.limit {
                return Ok(file);
            }
            std::fs::rename(&path, self.home.join(ROTATED_FILE))?;
        }
    }
}

/// The last bytes of a file, more than any line has.
fn end_of(path: &Path) -> io::Result<Vec<u8>> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = std::fs::File::open(path)?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(MAX_LINE_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(MAX_LINE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn hash(line: &[u8]) -> String {
    let digest = digest::digest(&digest::SHA256, line);
    digest.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_COMMAND_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Tool;
    use crate::question::Topic;
    use outlast_protocol::Door;
    use std::os::unix::fs::PermissionsExt;

    fn question(what: &str) -> Question {
        Question {
            door: Door::CommandLine,
            topic: Topic::Rule,
            session: "me".into(),
            tool: Tool::Run,
            job: None,
            what: what.into(),
            typed: None,
            why: "because".into(),
            rule: Some("ask x".into()),
            place: Some("policy.toml:1".into()),
            typed_after: None,
            unattended: crate::Unattended::Own,
            confirmed: false,
            parts: Vec::new(),
            guard: None,
        }
    }

    #[test]
    fn lines_are_private_bounded_and_rotated_once() {
        let home = tempfile::tempdir().unwrap();
        let audit = Audit { limit: 2000, ..Audit::of(home.path()) };
        for i in 0..40 {
            audit
                .note(&question(&format!("act {i} {}", "x".repeat(5000 * (i % 2)))), Noted::Asked(Answer::No))
                .unwrap();
        }
        let text = std::fs::read_to_string(audit.file()).unwrap();
        let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert!(last["what"].as_str().unwrap().starts_with("act 39 "), "{last}");
        assert_eq!((&last["decision"], &last["answer"]), (&"ask".into(), &"no".into()));
        assert!(last["what"].as_str().unwrap().len() <= MAX_COMMAND_BYTES);
        let mode = std::fs::metadata(audit.file()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut files: Vec<_> =
            std::fs::read_dir(home.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        files.sort();
        assert_eq!(files, [ROTATED_FILE, FILE, LAST_FILE]);
        assert!(audit.read().damage.is_empty(), "{:?}", audit.read().damage);
        let older = std::fs::read_to_string(home.path().join(ROTATED_FILE)).unwrap();
        assert!(older.len() < 2000 + 5000 && older.lines().all(|line| line.ends_with('}')), "{older}");
    }

    #[test]
    fn a_log_that_was_cut_or_changed_is_noticed_and_says_so() {
        let home = tempfile::tempdir().unwrap();
        let audit = Audit::of(home.path());
        let note = || audit.note(&question("x"), Noted::Allowed).unwrap();
        for _ in 0..3 {
            note();
        }
        assert!(audit.read().damage.is_empty());
        let whole = std::fs::read_to_string(audit.file()).unwrap();
        let lines: Vec<&str> = whole.lines().collect();
        for changed in [
            String::new(),
            format!("{}\n", lines[0]),
            format!("{}\n{}\n", lines[0], lines[2]),
            whole.replacen("\"x\"", "\"y\"", 1),
        ] {
            std::fs::write(audit.file(), &changed).unwrap();
            assert_eq!(audit.read().damage.len(), 1, "{changed}");
            std::fs::write(audit.file(), &whole).unwrap();
        }
        std::fs::write(audit.file(), "").unwrap();
        note();
        let read = audit.read();
        assert!(read.damage.is_empty(), "it is told in the log itself now: {read:?}");
        assert_eq!((&read.entries[0]["decision"], &read.entries[0]["n"]), (&"loss".into(), &4.into()));
        assert_eq!((&read.entries[1]["decision"], &read.entries[1]["n"]), (&"allow".into(), &5.into()));
    }

    #[test]
    fn a_planted_symlink_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let elsewhere = home.path().join("elsewhere");
        std::os::unix::fs::symlink(&elsewhere, home.path().join(FILE)).unwrap();
        assert!(Audit::of(home.path()).note(&question("x"), Noted::Denied).is_err());
        assert!(!elsewhere.exists());
    }

    #[test]
    fn many_writers_lose_no_line() {
        let home = tempfile::tempdir().unwrap();
        let audit = Audit { limit: 1500, ..Audit::of(home.path()) };
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let audit = &audit;
                scope.spawn(move || {
                    for i in 0..25 {
                        audit.note(&question(&format!("{writer}/{i}")), Noted::Denied).unwrap();
                    }
                });
            }
        });
        // Two files of at most the limit plus a line; every line in them is complete.
        for file in [FILE, ROTATED_FILE] {
            let text = std::fs::read_to_string(home.path().join(file)).unwrap();
            assert!(text.len() < 1500 + 300 && !text.is_empty(), "{file}: {}", text.len());
            assert!(
                text.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()),
                "{text}"
            );
        }
    }
}
