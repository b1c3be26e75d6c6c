//! What each session has been told of each job, so that nothing is returned twice, also after a restart.
//!
//! `<home>/cursors/<session>/<handle>` holds a few numbers, replaced as one step. Losing one costs a second
//! reading of the same output, and nothing else.

use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use outlast_job::registry::Home;
use outlast_job::registry::layout::JOBS;
use outlast_job::registry::replace::{Durability, read_small, replace};
use outlast_job::{Failure, Handle};
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

const FOLDER: &str = "cursors";

/// How far a session has got with a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Cursor {
    /// Where the next read begins.
    pub(crate) read: u64,
    /// Where the next wait for a pattern begins. Behind `read` after an answer that nobody asked to see: a
    /// caller that starts a job and waits for its first words must find them.
    pub(crate) waited: u64,
    /// Where the next read of stderr begins, in pipe mode.
    pub(crate) errors: u64,
    /// A call about the job was cancelled, and its answer never seen.
    pub(crate) cancelled: bool,
    /// An answer has said how the job ended.
    pub(crate) ended: bool,
    /// When the last answer about it was given, in milliseconds since 1970.
    pub(crate) at: u64,
}

/// The cursors of a home.
#[derive(Debug)]
pub(crate) struct Cursors {
    folder: PathBuf,
}

/// The cursors of one session.
#[derive(Debug)]
pub(crate) struct SessionCursors {
    /// None if it has none yet.
    folder: Option<OwnedFd>,
}

impl SessionCursors {
    /// How far the session has got with a job.
    pub(crate) fn get(&self, handle: Handle) -> Cursor {
        let bytes =
            self.folder.as_ref().and_then(|folder| read_small(folder, &handle.to_string(), 4096).ok());
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }
}

impl Cursors {
    pub(crate) fn of(home: &Home) -> Self {
        Self { folder: home.path().join(FOLDER) }
    }

    fn session(&self, session: &str) -> PathBuf {
        self.folder.join(slug(session))
    }

    /// How far a session has got with a job.
    pub(crate) fn get(&self, session: &str, handle: Handle) -> Cursor {
        self.all_of(session).get(handle)
    }

    /// The cursors of a session, for those who want many of them.
    pub(crate) fn all_of(&self, session: &str) -> SessionCursors {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        SessionCursors { folder: rustix::fs::open(self.session(session), flags, Mode::empty()).ok() }
    }

    /// Remembers it. What can't be written is returned twice later, which is better than an answer lost now.
    pub(crate) fn set(&self, session: &str, handle: Handle, cursor: Cursor) {
        let write = || -> Result<(), Failure> {
            let dir = self.make(session)?;
            let bytes = serde_json::to_vec(&cursor).unwrap_or_default();
            replace(&dir, &handle.to_string(), &bytes, Durability::Process)
                .map_err(|error| Failure::system("a cursor can't be written", error))
        };
        let _ = write();
    }

    fn make(&self, session: &str) -> Result<OwnedFd, Failure> {
        let path = self.session(session);
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if let Ok(dir) = rustix::fs::open(&path, flags, Mode::empty()) {
            return Ok(dir);
        }
        let failed = |error: &dyn std::fmt::Display| Failure::system("the cursors can't be kept", error);
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .map_err(|error| failed(&error))?;
        rustix::fs::open(&path, flags, Mode::empty()).map_err(|error| failed(&error))
    }

    /// Forgets jobs that are gone, and sessions that have none left.
    pub(crate) fn sweep(&self, home: &Home) {
        let Ok(sessions) = std::fs::read_dir(&self.folder) else { return };
        for session in sessions.flatten() {
            let Ok(cursors) = std::fs::read_dir(session.path()) else { continue };
            for cursor in cursors.flatten() {
                if !home.path().join(JOBS).join(cursor.file_name()).exists() {
                    let _ = std::fs::remove_file(cursor.path());
                }
            }
            let _ = std::fs::remove_dir(session.path());
        }
    }
}

/// A file name for a session: what can be read of it, and a number that tells apart what looks the same.
fn slug(session: &str) -> String {
    let readable: String =
        session.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(40).collect();
    // FNV-1a, because it must be the same in every version.
    let number = session.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{readable}.{number:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_kept_a_session_and_a_handle() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path()).unwrap();
        let cursors = Cursors::of(&home);
        let there = Cursor { read: 10, waited: 7, cancelled: true, ..Cursor::default() };
        cursors.set("a/b", Handle(3), there);
        assert_eq!(Cursors::of(&home).get("a/b", Handle(3)), there);
        assert_eq!(cursors.get("ab", Handle(3)), Cursor::default());
        assert_eq!(cursors.get("a/b", Handle(4)), Cursor::default());
        cursors.sweep(&home);
        assert_eq!(cursors.get("a/b", Handle(3)), Cursor::default());
        assert_eq!(std::fs::read_dir(folder.path().join(FOLDER)).unwrap().count(), 0);
    }

    #[test]
    fn a_session_can_be_called_anything() {
        assert_ne!(slug("../x"), slug("x"));
        assert!(!slug("../../etc").contains('/'));
    }
}
