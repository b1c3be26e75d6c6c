//! The facts of an answer, in the same words everywhere.

use outlast_job::client::read::{Stream, Text};
use outlast_job::lifecycle::Receipt;
use outlast_job::registry::format::Info;
use outlast_job::registry::layout;
use outlast_job::wire::{Awaiting, Found};
use outlast_job::{Failure, Job, Reason, Waited};
use serde::Serialize;

/// What every answer about one job says.
#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    pub(crate) handle: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    pub(crate) pid: Option<i32>,
    pub(crate) status: &'static str,
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended_by: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) left_behind: Vec<outlast_job::lifecycle::Process>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) elapsed_ms: Option<u64>,
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub(crate) found: Option<Found>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) awaiting_input: Option<Awaiting>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stderr: Option<String>,
    pub(crate) offset: u64,
    pub(crate) omitted_bytes: u64,
    pub(crate) gone_bytes: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) wakes: Vec<outlast_job::wakes::Will>,
    pub(crate) output_file: String,
    pub(crate) transcript_file: String,
}

impl Answer {
    /// What is known of a job, without its output.
    pub(crate) fn of(job: &Job, info: &Info) -> Self {
        let file = |name| job.dir().file(name).to_string_lossy().into_owned();
        let receipt = info.state.receipt();
        Self {
            handle: info.handle.0,
            name: info.name.clone(),
            pid: info.process.as_ref().map(|process| process.pid),
            status: info.state.name(),
            exit_code: info.state.exit_code(),
            signal: info.state.signal().map(ToOwned::to_owned),
            ended_by: receipt.map(|receipt| receipt.ended_by.describe()),
            left_behind: outlast_job::client::leftover::find(info),
            reason: None,
            elapsed_ms: None,
            found: None,
            awaiting_input: None,
            port: None,
            output: None,
            stderr: None,
            offset: job.log_end(),
            omitted_bytes: 0,
            gone_bytes: 0,
            wakes: Vec::new(),
            output_file: file(layout::OUTPUT),
            transcript_file: file(layout::TRANSCRIPT),
        }
    }

    /// Adds how a wait ended.
    pub(crate) fn waited(mut self, waited: &Waited) -> Self {
        self.reason = Some(waited.reason.name());
        self.elapsed_ms = Some(waited.elapsed_ms);
        self.found.clone_from(&waited.found);
        self.awaiting_input.clone_from(&waited.awaiting_input);
        self.port = waited.port;
        self
    }

    /// Adds a reason alone.
    pub(crate) fn because(mut self, reason: Reason) -> Self {
        self.reason = Some(reason.name());
        self
    }

    /// Adds what was printed.
    pub(crate) fn with_text(mut self, text: Text) -> Self {
        self.output = Some(text.text);
        self.offset = text.offset;
        self.omitted_bytes = text.omitted_bytes;
        self.gone_bytes = text.gone_bytes;
        self
    }

    /// Adds what was printed from an offset on; in pipe mode stderr too.
    pub(crate) fn with_output(mut self, job: &Job, from: u64, max: usize) -> Result<Self, Failure> {
        let errors = job.range(Stream::Errors, 0, None)?.text(max, &format!("{} --stderr", self.handle));
        self.stderr = Some(errors.text).filter(|text| !text.is_empty());
        Ok(self.with_text(job.read_text(from, max)?))
    }
}

/// What can be said of a job that is over and has no receipt.
pub(crate) fn unseen_end(info: &Info) -> String {
    let Info { handle, state, .. } = info;
    let status = state.name();
    format!("job {handle} is {status}: nobody saw how it ended; what it printed: outlast read {handle}")
}

/// How a job ended, in a line.
pub(crate) fn ending(receipt: &Receipt) -> String {
    let how = match receipt.words() {
        Ok(how) => how,
        Err(error) => return format!("could not start: {}", error.message),
    };
    let left = match receipt.left_behind.as_slice() {
        [] => String::new(),
        some => {
            let names: Vec<String> = some.iter().map(|p| format!("{} ({})", p.program, p.pid)).collect();
            format!(", left behind: {}", names.join(", "))
        }
    };
    format!("{how}{left}")
}
