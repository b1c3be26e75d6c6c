//! The on-disk form of a job. Old folders stay readable for ever; see `docs/formats/job-directory.md`.

use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Kind};
use crate::lifecycle::{Process, State};
use crate::log::gone::Gone;
use crate::spec::{Handle, Input, JobSpec, Run, Size, Streams};

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
    /// As a person would write the command.
    pub command: String,
    /// How it was asked for.
    pub run: Run,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
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
    /// While people are attached: the size that its terminal gets back when they have left.
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
    /// Which boot of the machine the pids belong to.
    #[serde(default)]
    pub boot_id: String,
    /// The command's own process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// What the kernel calls the command's terminal or pipes: whoever holds one of them belongs to the job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<String>,
    /// The process that keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeper: Option<Process>,
    /// The process that would take over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heir: Option<Process>,
    /// Which bytes of the output are gone.
    #[serde(default, skip_serializing_if = "Gone::is_empty")]
    pub gone: Gone,
    /// In pipe mode, which bytes of stderr are gone.
    #[serde(default, skip_serializing_if = "Gone::is_empty")]
    pub errors_gone: Gone,
    /// The sandbox it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<crate::sandbox::Sandbox>,
    /// What of it this kernel really does, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_by: Option<String>,
    /// How much it may use.
    #[serde(default, skip_serializing_if = "crate::limits::Limits::is_none")]
    pub limits: crate::limits::Limits,
    /// Who sees to that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<crate::limits::LimitedBy>,
    /// How many times the heir had to take over.
    #[serde(default)]
    pub takeovers: u32,
    /// Where it is in its life.
    #[serde(flatten)]
    pub state: State,
}

impl Info {
    /// A job that was just claimed.
    #[must_use]
    pub fn claimed(handle: Handle, spec: &JobSpec, created_at: u64) -> Self {
        let ms = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self {
            format: FORMAT,
            handle,
            name: spec.name.clone(),
            session: spec.session.clone(),
            command: spec.run.display(),
            run: spec.run.clone(),
            description: spec.description.clone(),
            cwd: spec.cwd.clone(),
            streams: spec.streams,
            input: spec.input,
            started_size: match spec.streams {
                Streams::Terminal(size) => Some(size),
                Streams::Pipes => None,
            },
            size_alone: None,
            env_names: spec.env.keys().cloned().collect(),
            timeout_ms: spec.timeout.map(ms),
            inactivity_timeout_ms: spec.inactivity_timeout.map(ms),
            log_cap: spec.log_cap,
            created_at,
            boot_id: outlast_pty::procfs::boot_id().unwrap_or_default(),
            process: None,
            endpoints: Vec::new(),
            keeper: None,
            heir: None,
            gone: Gone::default(),
            errors_gone: Gone::default(),
            sandbox: spec.sandbox.clone(),
            sandbox_by: None,
            limits: spec.limits.clone(),
            limited_by: None,
            takeovers: 0,
            state: State::Starting,
        }
    }

    /// Reads it from the bytes of `info.json`.
    ///
    /// # Errors
    /// [`Kind::UnknownFormat`] for a newer number, [`Kind::System`] for damage.
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
        // Nothing in it can fail to serialise: no maps with odd keys, no foreign types.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Whether the job runs on a terminal.
    #[must_use]
    pub fn has_terminal(&self) -> bool {
        matches!(self.streams, Streams::Terminal(_))
    }
}
