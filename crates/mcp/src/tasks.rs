//! Tasks: calls that a client of the newer protocol detaches from, and asks about later.
//!
//! A task is a wait on a job that continues without a call. What it waits for is a file in the home, so every
//! server knows it, even one that was started later; the job itself continues anyway. Its result is written
//! there once it is known, and is the same however often it is read.

use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat};
use outlast_job::clock::now_ms;
use outlast_job::registry::Home;
use outlast_job::registry::replace::{Durability, read_small, replace};
use outlast_job::{Failure, Handle, Wait};
use rmcp::model::{DetailedTask, ErrorData, JsonObject, Task, TaskPayload, TaskStatus};
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

const FOLDER: &str = "tasks";
/// How long a task is kept.
const TASK_TTL: Duration = Duration::from_secs(24 * 3600);
/// How often a client may poll.
const POLL_MS: u64 = 1000;

/// What a call that returned early was waiting for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Pending {
    pub(crate) session: String,
    pub(crate) handle: Handle,
    pub(crate) wait: Wait,
    /// Where the answer's output starts.
    pub(crate) from: u64,
    /// When it times out, in milliseconds since 1970.
    pub(crate) until: u64,
    pub(crate) budget: usize,
}

/// How a task ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ended {
    Cancelled,
    Completed { result: JsonObject },
}

/// A task as it is on the disk.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) id: String,
    pub(crate) pending: Pending,
    created_at: u64,
    updated_at: u64,
    pub(crate) ended: Option<Ended>,
}

/// The tasks of a home.
#[derive(Debug)]
pub(crate) struct Tasks {
    folder: PathBuf,
}

impl Tasks {
    pub(crate) fn of(home: &Home) -> Self {
        Self { folder: home.path().join(FOLDER) }
    }

    /// Writes a task to the disk; from then on every server knows it.
    pub(crate) fn create(&self, pending: Pending) -> Result<Record, Failure> {
        let mut random = [0_u8; 16];
        outlast_job::system::random(&mut random)
            .map_err(|error| Failure::system("cannot get random numbers", error))?;
        let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let id = format!("{}-{random}", pending.handle);
        let now = now_ms();
        let record = Record { id, pending, created_at: now, updated_at: now, ended: None };
        self.write(&record)?;
        Ok(record)
    }

    fn write(&self, record: &Record) -> Result<(), Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::system("the task can't be kept", error);
        let mut folder = std::fs::DirBuilder::new();
        folder.recursive(true).mode(0o700).create(&self.folder).map_err(|error| failed(&error))?;
        let dir = self.open().map_err(|error| failed(&error))?;
        let bytes = serde_json::to_vec(record).unwrap_or_default();
        replace(&dir, &record.id, &bytes, Durability::Process).map_err(|error| failed(&error))
    }

    fn open(&self) -> rustix::io::Result<std::os::fd::OwnedFd> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::open(&self.folder, flags, Mode::empty())
    }

    /// The task with an id.
    pub(crate) fn get(&self, id: &str) -> Result<Record, ErrorData> {
        let unknown = || ErrorData::invalid_params(format!("there is no task {id:?}"), None);
        if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
            return Err(unknown());
        }
        let bytes = self.open().and_then(|dir| read_small(&dir, id, 16 << 20)).map_err(|_| unknown())?;
        serde_json::from_slice(&bytes).map_err(|_| unknown())
    }

    /// Records how a task ended, unless it has already; returns it as it is then.
    pub(crate) fn end(&self, id: &str, ended: Ended) -> Result<Record, ErrorData> {
        let mut record = self.get(id)?;
        if record.ended.is_none() {
            record.ended = Some(ended);
            record.updated_at = now_ms();
            self.write(&record).map_err(|failure| ErrorData::internal_error(failure.to_string(), None))?;
        }
        Ok(record)
    }

    /// Removes old tasks.
    pub(crate) fn sweep(&self) {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let age = entry.metadata().and_then(|data| data.modified()).map(|at| at.elapsed());
            if matches!(age, Ok(Ok(age)) if age > TASK_TTL) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

impl Record {
    /// The task in the protocol's form, without its result.
    pub(crate) fn task(&self) -> Task {
        let kept = u64::try_from(TASK_TTL.as_millis()).unwrap_or(u64::MAX);
        let left = self.pending.until.saturating_sub(self.created_at);
        Task::new(&self.id, TaskStatus::Working, date(self.created_at), date(self.updated_at))
            .with_ttl_ms(kept.saturating_add(left))
            .with_poll_interval_ms(POLL_MS)
    }

    /// The task with its result, or with a message about its progress.
    pub(crate) fn detailed(&self, message: String) -> DetailedTask {
        match &self.ended {
            Some(Ended::Cancelled) => DetailedTask::new(self.task(), TaskPayload::Cancelled),
            Some(Ended::Completed { result }) => {
                DetailedTask::new(self.task(), TaskPayload::Completed { result: result.clone() })
            }
            None => DetailedTask::new(self.task().with_status_message(message), TaskPayload::Working),
        }
    }
}

/// A time in the protocol's format.
fn date(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(DateTime::from_timestamp_millis).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_the_protocol_does() {
        assert_eq!(date(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(date(951_782_400_123), "2000-02-29T00:00:00.123Z");
        assert_eq!(date(1_794_795_153_000), "2026-11-16T02:12:33.000Z");
    }

    #[test]
    fn a_task_ends_once_and_is_known_to_others() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path()).unwrap();
        let pending = Pending {
            session: "s".into(),
            handle: Handle::new(3),
            wait: Wait::for_exit(),
            from: 0,
            until: now_ms() + 1000,
            budget: 1000,
        };
        let record = Tasks::of(&home).create(pending).unwrap();
        let tasks = Tasks::of(&home);
        assert!(tasks.get(&record.id).unwrap().ended.is_none());
        tasks.end(&record.id, Ended::Cancelled).unwrap();
        let result = JsonObject::new();
        let ended = tasks.end(&record.id, Ended::Completed { result }).unwrap().ended;
        assert!(matches!(ended, Some(Ended::Cancelled)));
        for unknown in ["3-00", "", "../cursors", "3-zz"] {
            assert!(tasks.get(unknown).is_err(), "{unknown}");
        }
    }
}
