//! What every door shows of a job, once: the same facts under the same names, in the same order.
//!
//! A door fills in what it shows and leaves the rest unset; what is unset is not written. The exceptions are
//! `pid`, `exit_code` and `signal`: the command line always names them, as `null` if need be.

use serde::{Deserialize, Serialize};

use crate::awaiting::Awaiting;
use crate::info::Info;
use crate::job::Handle;
use crate::lifecycle::{Process, State};
use crate::outcome::JobOutcome;
use crate::queue::Queued;
use crate::reason::Reason;
use crate::request::{Files, Summary};
use crate::shell::{Step, StepState};
use crate::wake::WakeKind;
use crate::wire::{Found, Waited};

/// Which job, and how it is: what an answer and a list share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobIdentity {
    /// Its handle.
    pub handle: Handle,
    /// Its name, if it was given one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The command's own process.
    pub pid: Option<i32>,
    /// The word for its state.
    pub status: &'static str,
    /// Its exit code, if it ended with one.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<String>,
}

impl JobIdentity {
    fn new((handle, name): (Handle, Option<&String>), pid: Option<i32>, state: &State) -> Self {
        Self {
            handle,
            name: name.cloned(),
            pid,
            status: state.name(),
            exit_code: state.exit_code(),
            signal: state.signal().map(ToOwned::to_owned),
        }
    }
}

impl From<&Info> for JobIdentity {
    fn from(info: &Info) -> Self {
        let pid = info.process.as_ref().map(|process| process.pid);
        Self::new((info.handle, info.name.as_ref()), pid, &info.state)
    }
}

impl From<&Summary> for JobIdentity {
    fn from(job: &Summary) -> Self {
        Self::new((job.handle, job.name.as_ref()), job.pid, &job.state)
    }
}

/// Whether a wake will really happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakePlan {
    /// In which way.
    pub kind: WakeKind,
    /// Whom or what.
    pub target: String,
    /// Whether it will.
    #[serde(rename = "will")]
    pub fires: bool,
    /// Why, or why not.
    pub why: String,
}

/// What an answer about one job says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobReport {
    /// Which job, and how it is.
    #[serde(flatten)]
    pub job: JobIdentity,
    /// What it waits for before it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued: Option<Queued>,
    /// Who ended it, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
    /// What it left running.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_behind: Vec<Process>,
    /// What ended the wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// How long the wait took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_ms: Option<u64>,
    /// What a pattern found.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub found: Option<Found>,
    /// What the job waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub awaiting_input: Option<Awaiting>,
    /// Who takes input, of a job that does not wait for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listening: Option<Box<Awaiting>>,
    /// Which port it listens on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// What its tools reported, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<JobOutcome>,
    /// The shell, for an answer about a step of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// Which step of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// The folder that the shell is in now, if the step changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The exit codes of the step's last pipeline, if that had several parts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pipeline: Vec<i32>,
    /// What it printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// What it printed on stderr, where that is apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// Where the next read begins.
    pub offset: u64,
    /// How many bytes are left out of `output`.
    pub omitted_bytes: u64,
    /// How many bytes of the log no longer exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone_bytes: Option<u64>,
    /// Which wakes will happen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wakes: Vec<WakePlan>,
    /// Where its log is.
    pub output_file: String,
    /// Where its transcript is.
    pub transcript_file: String,
}

impl JobReport {
    /// What is known of a job, without its output; `offset` is the end of its log.
    #[must_use]
    pub fn new(info: &Info, files: Files, offset: u64) -> Self {
        Self {
            job: JobIdentity::from(info),
            queued: info.state.queued().cloned(),
            ended_by: None,
            left_behind: Vec::new(),
            reason: None,
            elapsed_ms: None,
            found: None,
            awaiting_input: None,
            listening: None,
            port: None,
            outcome: None,
            shell: None,
            step: None,
            folder: None,
            pipeline: Vec::new(),
            output: None,
            stderr: None,
            offset,
            omitted_bytes: 0,
            gone_bytes: None,
            wakes: Vec::new(),
            output_file: files.output,
            transcript_file: files.transcript,
        }
    }

    /// Adds how a wait ended.
    #[must_use]
    pub fn waited(self, waited: Waited) -> Self {
        let Waited { reason, elapsed_ms, found, awaiting_input, listening, port, .. } = waited;
        let (reason, elapsed_ms) = (Some(reason), Some(elapsed_ms));
        Self { reason, elapsed_ms, found, awaiting_input, listening, port, ..self }
    }

    /// The answer is about a step of a shell: how that is, not how the shell is.
    #[must_use]
    pub fn of_step(mut self, shell: &str, step: &Step) -> Self {
        self.job.status = match (step.state, step.exit_code) {
            (StepState::Queued, _) => "queued",
            (StepState::Running, _) => "running",
            (StepState::Ended, Some(0)) => "completed",
            (StepState::Ended, _) => "failed",
            (StepState::NotRun, _) => "not_run",
        };
        self.job.exit_code = step.exit_code;
        self.job.signal = None;
        Self {
            ended_by: step.note.clone(),
            left_behind: Vec::new(),
            shell: Some(shell.to_owned()),
            step: Some(step.step),
            folder: step.new_folder().map(ToOwned::to_owned),
            pipeline: step.pipeline.clone(),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> JobReport {
        JobReport {
            job: JobIdentity::new((Handle::new(7), None), None, &State::Starting),
            queued: None,
            ended_by: None,
            left_behind: Vec::new(),
            reason: None,
            elapsed_ms: None,
            found: None,
            awaiting_input: None,
            listening: None,
            port: None,
            outcome: None,
            shell: None,
            step: None,
            folder: None,
            pipeline: Vec::new(),
            output: None,
            stderr: None,
            offset: 3,
            omitted_bytes: 0,
            gone_bytes: None,
            wakes: Vec::new(),
            output_file: "o".into(),
            transcript_file: "t".into(),
        }
    }

    #[test]
    fn a_report_names_its_facts_in_the_order_that_users_know() {
        let bare = serde_json::to_string(&report()).unwrap();
        assert_eq!(
            bare,
            r#"{"handle":7,"pid":null,"status":"starting","exit_code":null,"signal":null,"offset":3,"#
                .to_owned()
                + r#""omitted_bytes":0,"output_file":"o","transcript_file":"t"}"#
        );
        let found = Found { pattern: 0, text: "up".into(), captures: vec![None] };
        let waited = Waited {
            elapsed_ms: 5,
            found: Some(found),
            port: Some(80),
            ..Waited::because(Reason::Pattern, 9)
        };
        let full = JobReport {
            job: JobIdentity::new((Handle::new(7), Some(&"web".to_owned())), Some(42), &State::Starting),
            ended_by: Some("by itself".into()),
            left_behind: vec![Process { pid: 1, started: 2, program: "p".into(), ports: Vec::new() }],
            output: Some("x".into()),
            stderr: Some("y".into()),
            gone_bytes: Some(0),
            wakes: vec![WakePlan { kind: WakeKind::File, target: "f".into(), fires: true, why: "w".into() }],
            ..report().waited(waited)
        };
        assert_eq!(
            serde_json::to_string(&full).unwrap(),
            [
                r#"{"handle":7,"name":"web","pid":42,"status":"starting","exit_code":null,"signal":null,"#,
                r#""ended_by":"by itself","left_behind":[{"pid":1,"started":2,"program":"p"}],"#,
                r#""reason":"pattern","elapsed_ms":5,"match":{"pattern":0,"text":"up","captures":[null]},"#,
                r#""port":80,"output":"x","stderr":"y","offset":3,"omitted_bytes":0,"gone_bytes":0,"#,
                r#""wakes":[{"kind":"file","target":"f","will":true,"why":"w"}],"#,
                r#""output_file":"o","transcript_file":"t"}"#,
            ]
            .concat()
        );
    }
}
