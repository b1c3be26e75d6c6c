//! What each session has seen of each job, so that nothing is returned twice, even after a restart.
//!
//! `<home>/cursors/<session>.jsonl` has a line for each answer; the last one about a job counts. Appending a
//! line is far cheaper for a disk than creating a file, and every answer waits for it. Any number of servers
//! append to it, and read what others have appended. If it has many old lines, it is rewritten. Losing one
//! only means that the same output is returned again. A cursor that an answer moves is held in memory until the
//! answer is out: if the server is killed before, the next one returns the same output.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use outlast_job::Handle;
use outlast_job::registry::Home;
use outlast_job::registry::layout::JOBS;
use outlast_job::registry::replace::{Durability, replace};
use outlast_job::registry::stable_name::stable_hash;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

const FOLDER: &str = "cursors";
const ENDING: &str = "jsonl";
/// A file with more lines than this, most of them old, is rewritten.
const MAX_LINES: usize = 4096;
/// How many sessions are cached.
const MAX_CACHED_SESSIONS: usize = 32;

/// How far a session has read a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Cursor {
    /// Where the next read starts.
    pub(crate) read: u64,
    /// Where the next wait for a pattern starts. Behind `read` after an answer with output that was not asked
    /// for: a caller that starts a job and waits for its first output must find it.
    pub(crate) waited: u64,
    /// Where the next read of stderr starts, in pipe mode.
    pub(crate) errors: u64,
    /// A call about the job was cancelled, and its answer was never seen.
    pub(crate) cancelled: bool,
    /// An answer has said how the job ended.
    pub(crate) ended: bool,
    /// When the last answer about it was given, in milliseconds since 1970.
    pub(crate) at: u64,
}

/// A line of a session's file.
#[derive(Serialize, Deserialize)]
struct Entry {
    job: Handle,
    #[serde(flatten)]
    cursor: Cursor,
}

/// The cursors of a home.
#[derive(Debug)]
pub(crate) struct Cursors {
    home: PathBuf,
    sessions: Mutex<HashMap<String, Session>>,
    /// The number of the last cursor that was held.
    holds: AtomicU64,
}

/// The cursors of one session, as far as its file was read.
#[derive(Debug)]
struct Session {
    path: PathBuf,
    /// `None` if it does not exist yet.
    file: Option<File>,
    read_to: u64,
    lines: usize,
    unfinished: Vec<u8>,
    known: HashMap<Handle, Cursor>,
    /// Cursors of answers that are not out yet, the newest last, and the number of the last one that was written.
    held: HashMap<Handle, Vec<(u64, Cursor)>>,
    written: HashMap<Handle, u64>,
}

impl Session {
    fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: None,
            read_to: 0,
            lines: 0,
            unfinished: Vec::new(),
            known: HashMap::new(),
            held: HashMap::new(),
            written: HashMap::new(),
        }
    }

    /// Reads what was appended since.
    fn read_on(&mut self) {
        let mut data = self.file.as_ref().and_then(|file| file.metadata().ok());
        if data.as_ref().is_none_or(|data| data.nlink() == 0) {
            let path = std::mem::take(&mut self.path);
            let (held, written) = (std::mem::take(&mut self.held), std::mem::take(&mut self.written));
            *self = Self { file: open(&path, false).ok(), held, written, ..Self::new(path) };
            data = self.file.as_ref().and_then(|file| file.metadata().ok());
        }
        let (Some(file), Some(data)) = (&self.file, data) else { return };
        let added = usize::try_from(data.len().saturating_sub(self.read_to)).unwrap_or(0);
        let begun = self.unfinished.len();
        self.unfinished.resize(begun + added, 0);
        if added == 0 || file.read_exact_at(&mut self.unfinished[begun..], self.read_to).is_err() {
            return self.unfinished.truncate(begun);
        }
        self.read_to += added as u64;
        let whole = self.unfinished.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        for line in self.unfinished[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.lines += 1;
            // A partial line, of a server that was killed on a full disk, is skipped.
            if let Ok(Entry { job, cursor }) = serde_json::from_slice(line) {
                self.known.insert(job, cursor);
            }
        }
        self.unfinished.drain(..whole);
    }

    fn get(&self, job: Handle) -> Option<Cursor> {
        let held = self.held.get(&job).and_then(|all| all.last()).map(|(_, cursor)| *cursor);
        held.or_else(|| self.known.get(&job).copied())
    }

    /// Takes a held cursor back; none if it is not held any more.
    fn let_go(&mut self, job: Handle, number: u64) -> Option<Cursor> {
        let held = self.held.get_mut(&job)?;
        let at = held.iter().position(|(one, _)| *one == number)?;
        let (_, cursor) = held.remove(at);
        if held.is_empty() {
            self.held.remove(&job);
        }
        Some(cursor)
    }

    fn add(&mut self, job: Handle, cursor: Cursor) -> std::io::Result<()> {
        self.read_on();
        if self.file.is_none() {
            let folder = self.path.parent().unwrap_or(Path::new("/"));
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            self.file = Some(open(&self.path, true)?);
        }
        self.known.insert(job, cursor);
        match &mut self.file {
            Some(file) => file.write_all(&line(job, cursor)?),
            None => Ok(()),
        }
    }

    /// Rewrites the file, with one line for each job that still exists.
    fn tidy(&mut self, jobs: &Path) -> std::io::Result<()> {
        // What became of a job on another machine is not known here.
        self.known.retain(|job, _| job.host().is_some() || jobs.join(job.to_string()).exists());
        if self.known.is_empty() {
            return std::fs::remove_file(&self.path);
        }
        if self.lines > self.known.len() {
            let mut bytes = Vec::new();
            for (job, cursor) in &self.known {
                bytes.append(&mut line(*job, *cursor)?);
            }
            let folder = File::open(self.path.parent().unwrap_or(Path::new("/")))?;
            let name = self.path.file_name().unwrap_or_default().to_string_lossy();
            replace(&folder, &name, &bytes, Durability::Process)?;
        }
        Ok(())
    }
}

fn line(job: Handle, cursor: Cursor) -> std::io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&Entry { job, cursor })?;
    line.push(b'\n');
    Ok(line)
}

fn open(path: &Path, make: bool) -> std::io::Result<File> {
    let mut options = File::options();
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    options.read(true).append(true).create(make).mode(0o600).custom_flags(flags).open(path)
}

impl Cursors {
    pub(crate) fn of(home: &Home) -> Self {
        Self { home: home.path().to_owned(), sessions: Mutex::default(), holds: AtomicU64::new(0) }
    }

    fn with<T>(&self, session: &str, work: impl FnOnce(&mut Session) -> T) -> Option<T> {
        let mut sessions = self.sessions.lock().ok()?;
        if !sessions.contains_key(session) {
            if sessions.len() >= MAX_CACHED_SESSIONS {
                // They are read again when they are needed.
                sessions.retain(|_, session| !session.held.is_empty());
            }
            let path = self.home.join(FOLDER).join(slug(session)).with_added_extension(ENDING);
            sessions.insert(session.to_owned(), Session::new(path));
        }
        sessions.get_mut(session).map(work)
    }

    /// How far a session has read a job.
    pub(crate) fn get(&self, session: &str, handle: Handle) -> Cursor {
        self.refresh(session);
        self.cached(session, handle)
    }

    /// Reads what other servers have appended for a session.
    pub(crate) fn refresh(&self, session: &str) {
        self.with(session, Session::read_on);
    }

    /// How far a session had read a job at the last [`refresh`](Self::refresh).
    pub(crate) fn cached(&self, session: &str, handle: Handle) -> Cursor {
        self.with(session, |session| session.get(handle)).flatten().unwrap_or_default()
    }

    /// All cursors of a session; a job without one has the default.
    pub(crate) fn all_of(&self, session: &str) -> HashMap<Handle, Cursor> {
        let known = self.with(session, |session| {
            session.read_on();
            let mut all = session.known.clone();
            all.extend(session.held.keys().filter_map(|job| Some((*job, session.get(*job)?))));
            all
        });
        known.unwrap_or_default()
    }

    /// Stores a cursor. If it cannot be written, output is returned again later, which is better than a lost
    /// answer now.
    pub(crate) fn set(&self, session: &str, handle: Handle, cursor: Cursor) {
        self.with(session, |session| {
            let _ = session.add(handle, cursor);
            if session.lines > MAX_LINES && session.lines > 4 * session.known.len() {
                let _ = session.tidy(&self.home.join(JOBS));
            }
        });
    }

    /// Remembers a cursor that an answer moves, for as long as the answer is not out; returns its number.
    pub(crate) fn hold(&self, session: &str, handle: Handle, cursor: Cursor) -> u64 {
        let number = self.holds.fetch_add(1, Ordering::Relaxed) + 1;
        self.with(session, |session| session.held.entry(handle).or_default().push((number, cursor)));
        number
    }

    /// The answer is out: its cursor is written, unless that of a later answer is already.
    pub(crate) fn confirm(&self, session: &str, handle: Handle, number: u64) {
        let cursor = self.with(session, |session| {
            let cursor = session.let_go(handle, number)?;
            let written = session.written.entry(handle).or_default();
            let is_newest = *written < number;
            *written = number.max(*written);
            is_newest.then_some(cursor)
        });
        if let Some(cursor) = cursor.flatten() {
            self.set(session, handle, cursor);
        }
    }

    /// The answer will never be out.
    pub(crate) fn release(&self, session: &str, handle: Handle, number: u64) {
        self.with(session, |session| session.let_go(handle, number));
    }

    /// Removes cursors of removed jobs, and files of sessions without jobs.
    pub(crate) fn sweep(&self) {
        let Ok(files) = std::fs::read_dir(self.home.join(FOLDER)) else { return };
        for path in files.flatten().map(|file| file.path()) {
            if path.extension().is_some_and(|ending| ending == ENDING) {
                let mut session = Session::new(path);
                session.read_on();
                let _ = session.tidy(&self.home.join(JOBS));
            }
        }
    }
}

/// A file name for a session: its readable part, and a hash that distinguishes similar names.
fn slug(session: &str) -> String {
    let readable: String =
        session.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(40).collect();
    format!("{readable}.{:016x}", stable_hash(session))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_cursor_for_each_session_and_job() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path()).unwrap();
        let cursors = Cursors::of(&home);
        let there = Cursor { read: 10, waited: 7, cancelled: true, ..Cursor::default() };
        cursors.set("a/b", Handle::new(3), there);
        assert_eq!(Cursors::of(&home).get("a/b", Handle::new(3)), there);
        assert_eq!(cursors.get("ab", Handle::new(3)), Cursor::default());
        assert_eq!(cursors.get("a/b", Handle::new(4)), Cursor::default());
        cursors.sweep();
        assert_eq!(cursors.get("a/b", Handle::new(3)), Cursor::default());
        assert_eq!(std::fs::read_dir(folder.path().join(FOLDER)).unwrap().count(), 0);
    }

    /// Two servers of one session see each other's cursors, even after one of them has rewritten the file.
    #[test]
    fn two_servers_see_each_others_cursors() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path()).unwrap();
        std::fs::create_dir_all(folder.path().join(JOBS).join("3")).unwrap();
        let (one, other) = (Cursors::of(&home), Cursors::of(&home));
        let at = |read| Cursor { read, ..Cursor::default() };
        for read in 1..100 {
            let (writer, reader) = if read % 2 == 0 { (&one, &other) } else { (&other, &one) };
            writer.set("s", Handle::new(3), at(read));
            assert_eq!(reader.get("s", Handle::new(3)), at(read));
            if read % 10 == 0 {
                writer.sweep();
                let file = std::fs::read_to_string(folder.path().join(FOLDER).join(slug("s") + ".jsonl"));
                assert_eq!(file.unwrap().lines().count(), 1, "only the last line about a job is kept");
            }
        }
    }

    #[test]
    fn a_cursor_of_a_job_on_another_machine_is_not_swept() {
        let folder = tempfile::tempdir().unwrap();
        let cursors = Cursors::of(&Home::open(folder.path()).unwrap());
        let elsewhere: Handle = "gpu1/3".parse().unwrap();
        cursors.set("s", elsewhere, Cursor { read: 7, ..Cursor::default() });
        cursors.set("s", Handle::new(3), Cursor { read: 9, ..Cursor::default() });
        cursors.sweep();
        let again = Cursors::of(&Home::open(folder.path()).unwrap());
        assert_eq!((again.get("s", elsewhere).read, again.get("s", Handle::new(3)).read), (7, 0));
    }

    #[test]
    fn a_file_does_not_grow_forever() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path()).unwrap();
        std::fs::create_dir_all(folder.path().join(JOBS).join("3")).unwrap();
        let cursors = Cursors::of(&home);
        for read in 0..10_000 {
            cursors.set("s", Handle::new(3), Cursor { read, ..Cursor::default() });
        }
        let file = std::fs::read_to_string(folder.path().join(FOLDER).join(slug("s") + ".jsonl")).unwrap();
        assert!(file.lines().count() <= MAX_LINES + 2, "{}", file.lines().count());
        assert_eq!(Cursors::of(&home).get("s", Handle::new(3)).read, 9_999);
    }

    #[test]
    fn a_cursor_is_written_once_its_answer_is_out() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path()).unwrap();
        let cursors = Cursors::of(&home);
        let (job, at) = (Handle::new(3), |read| Cursor { read, ..Cursor::default() });
        let (first, second) = (cursors.hold("s", job, at(5)), cursors.hold("s", job, at(9)));
        assert_eq!((cursors.get("s", job), cursors.all_of("s")[&job]), (at(9), at(9)));
        assert_eq!(Cursors::of(&home).get("s", job), at(0), "another server does not know it yet");
        cursors.confirm("s", job, second);
        cursors.confirm("s", job, first);
        assert_eq!(Cursors::of(&home).get("s", job), at(9), "an earlier answer does not move it back");
        let third = cursors.hold("s", job, at(20));
        cursors.release("s", job, third);
        assert_eq!(cursors.get("s", job), at(9));
    }

    #[test]
    fn a_session_can_be_called_anything() {
        assert_ne!(slug("../x"), slug("x"));
        assert!(!slug("../../etc").contains('/'));
    }
}
