//! The audit log: one line for each act that was asked about or refused, with the answer.
//!
//! It is `audit.jsonl` in the home. It is append-only, with one write per line, by any number of processes.
//! Beyond its size limit it is renamed to `audit.1.jsonl`, replacing the previous one.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use outlast_job::Handle;
use outlast_job::clock::now_ms;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, open, stat};
use serde::Serialize;

use crate::question::{Answer, Question};

const FILE: &str = "audit.jsonl";
const ROTATED_FILE: &str = "audit.1.jsonl";
/// The log is rotated beyond this size.
const MAX_LOG_BYTES: u64 = 4 << 20;
/// How much of a command is recorded.
const MAX_COMMAND_BYTES: usize = 2000;

/// Where acts are recorded.
#[derive(Clone, Debug)]
pub struct Audit {
    home: PathBuf,
    limit: u64,
}

#[derive(Serialize)]
struct AuditEntry<'a> {
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

    /// Records a question and its answer; without an answer it was refused without asking.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn note(&self, question: &Question, answer: Option<Answer>) -> io::Result<()> {
        let entry = AuditEntry {
            at: now_ms(),
            door: question.door.name(),
            session: cut(&question.session),
            tool: question.tool.name(),
            job: question.job,
            what: cut(&question.what),
            decision: if answer.is_some() { "ask" } else { "deny" },
            why: cut(&question.why),
            rule: question.rule.as_deref().map(cut),
            place: question.place.as_deref().map(cut),
            answer: answer.map(Answer::name),
        };
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        let file = self.open_current()?;
        // A single write: lines of several processes do not mix.
        let written = rustix::io::write(&file, &line)?;
        if written == line.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
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
            part: None,
            guard: None,
        }
    }

    #[test]
    fn lines_are_private_bounded_and_rotated_once() {
        let home = tempfile::tempdir().unwrap();
        let audit = Audit { limit: 2000, ..Audit::of(home.path()) };
        for i in 0..40 {
            audit
                .note(&question(&format!("act {i} {}", "x".repeat(5000 * (i % 2)))), Some(Answer::No))
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
        assert_eq!(files, [ROTATED_FILE, FILE]);
        let older = std::fs::read_to_string(home.path().join(ROTATED_FILE)).unwrap();
        assert!(older.len() < 2000 + 5000 && older.lines().all(|line| line.ends_with('}')), "{older}");
    }

    #[test]
    fn a_planted_symlink_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let elsewhere = home.path().join("elsewhere");
        std::os::unix::fs::symlink(&elsewhere, home.path().join(FILE)).unwrap();
        assert!(Audit::of(home.path()).note(&question("x"), None).is_err());
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
                        audit.note(&question(&format!("{writer}/{i}")), None).unwrap();
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
