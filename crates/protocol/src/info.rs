//! The on-disk format of a job. Old folders stay readable; see `docs/formats/job-directory.md`.

use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Kind};
use crate::gone::Gone;
use crate::job::{Handle, Input, Run, Streams};
use crate::lifecycle::{Process, State};
use crate::limits::{LimitedBy, Limits};
use crate::sandbox::Sandbox;
use crate::size::Size;

/// The number in every `info.json`.
///
/// 1: the first.
pub const FORMAT: u32 = 1;

/// `info.json`. It never holds environment values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// See [`FORMAT`].
    pub format: u32,
    /// The job's handle.
    pub handle: Handle,
    /// Its name, if it was given one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Who owns it.
    pub session: String,
    /// The command as a person would write it.
    pub command: String,
    /// The command as it was requested.
    pub run: Run,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The trace that it is a part of, as W3C Trace Context writes it: what the caller gave in `TRACEPARENT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// Where it was started.
    pub cwd: String,
    /// Terminal or pipes.
    pub streams: Streams,
    /// Where its input comes from.
    #[serde(default, skip_serializing_if = "Input::is_typed")]
    pub input: Input,
    /// The size its terminal had at the start; later ones are in `timing`, and the last in `streams`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_size: Option<Size>,
    /// Where the cursor of the terminal was that it was started in the foreground of, row and column from 0: its
    /// screen and that terminal agree from the first byte on.
    #[serde(default, skip_serializing_if = "is_origin")]
    pub cursor_at_start: (u16, u16),
    /// While people are attached: the size that its terminal gets back after they have detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_alone: Option<Size>,
    /// Names of the variables in its environment; never their values.
    #[serde(default)]
    pub env_names: Vec<String>,
    /// Its time limit, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Its limit of silence, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inactivity_timeout_ms: Option<u64>,
    /// How much of the log is kept, in bytes.
    pub log_cap: u64,
    /// When it was claimed, in milliseconds since 1970.
    pub created_at: u64,
    /// When a job that was queued got its place, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<u64>,
    /// Which boot of the machine the pids belong to.
    #[serde(default)]
    pub boot_id: String,
    /// Which namespace of processes its pids are of, as the kernel numbers them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid_namespace: Option<u64>,
    /// The command's own process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// The kernel's names of the command's terminal or pipes: a process that holds one of them belongs to the
    /// job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<String>,
    /// What its processes have in their environment, as `OUTLAST_MARK`: by it they are found should keeper and heir be lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// The keeper's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeper: Option<Process>,
    /// The heir's process, which takes over if the keeper dies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heir: Option<Process>,
    /// Which ranges of the output are lost.
    #[serde(default, skip_serializing_if = "Gone::is_empty")]
    pub gone: Gone,
    /// In pipe mode, which ranges of stderr are lost.
    #[serde(default, skip_serializing_if = "Gone::is_empty")]
    pub errors_gone: Gone,
    /// Which bytes of the output nobody could interpret: a keeper died of them. They are in the log, and in no text.
    #[serde(default, skip_serializing_if = "Gone::is_empty")]
    pub unreadable: Gone,
    /// In pipe mode, the same of stderr.
    #[serde(default, skip_serializing_if = "Gone::is_empty")]
    pub errors_unreadable: Gone,
    /// What its log held when it was over: so that a loss after that is noticed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_mark: Option<LogMark>,
    /// In pipe mode, the same of stderr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors_mark: Option<LogMark>,
    /// The sandbox it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// What this kernel really enforces of it, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_by: Option<String>,
    /// Hosts that a person has allowed it to connect to, besides those of its sandbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_hosts: Vec<String>,
    /// What judges the programs that it executes, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard_by: Option<String>,
    /// Its resource limits.
    #[serde(default, skip_serializing_if = "Limits::is_none")]
    pub limits: Limits,
    /// What enforces the limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<LimitedBy>,
    /// How many times the heir had to take over.
    #[serde(default)]
    pub takeovers: u32,
    /// Whether its end goes to the session's outbox.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tells_end: bool,
    /// What kind of shell it is, for a shell that remembers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<crate::shell::Shell>,
    /// Its state.
    #[serde(flatten)]
    pub state: State,
}

/// What a log held at some moment. It may have grown since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogMark {
    /// How long it was.
    pub end: u64,
    /// The CRC-32 of its first and last mebibyte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crc: Option<u32>,
}

impl Info {
    /// Parses the bytes of `info.json`.
    ///
    /// # Errors
    /// [`Kind::UnknownFormat`] for a newer version, [`Kind::System`] for a damaged file.
    pub fn parse(handle: Handle, bytes: &[u8]) -> Result<Self, Failure> {
        #[derive(Deserialize)]
        struct Numbered {
            format: u32,
        }
        let damaged = |error: serde_json::Error| {
            Failure::system(format!("the record of job {handle} can't be read"), error)
                .hint("its output may still be whole: look into its folder")
        };
        let Numbered { format } = serde_json::from_slice(bytes).map_err(damaged)?;
        if format > FORMAT {
            return Err(Failure::new(
                Kind::UnknownFormat,
                format!("job {handle} was written in format {format}; this outlast knows up to {FORMAT}"),
            )
            .hint("use the newer outlast that started it"));
        }
        serde_json::from_slice(bytes).map_err(damaged)
    }

    /// Its bytes for `info.json`.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        // Nothing in it can fail to serialise: there are no maps with other keys than strings.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Its bytes for `info.json`, in place of older ones. What a newer program has written there and this one does not
    /// know stays.
    #[must_use]
    pub fn to_bytes_over(&self, older: &[u8]) -> Vec<u8> {
        type Fields = serde_json::Map<String, serde_json::Value>;
        let fields = |bytes: &[u8]| serde_json::from_slice::<Fields>(bytes).unwrap_or_default();
        let Ok(known) = Self::parse(self.handle, older) else { return self.to_bytes() };
        let (known, mut written) = (fields(&known.to_bytes()), fields(&self.to_bytes()));
        let unknown = fields(older).into_iter().filter(|(name, _)| !known.contains_key(name));
        let before = written.len();
        for (name, value) in unknown {
            written.entry(name).or_insert(value);
        }
        if written.len() == before {
            return self.to_bytes();
        }
        let mut bytes = serde_json::to_vec_pretty(&written).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Whether the job runs on a terminal.
    #[must_use]
    pub fn has_terminal(&self) -> bool {
        matches!(self.streams, Streams::Terminal(_))
    }
}

/// Whether a cursor is in the first cell.
pub(crate) fn is_origin(cursor: &(u16, u16)) -> bool {
    *cursor == (0, 0)
}
