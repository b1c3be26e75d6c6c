//! What a list wants to know of a running job: only what its keeper has at hand, without a look at anything.

use serde::{Deserialize, Serialize};

use super::{Activity, Awaiting, Grown, Status};
use crate::shell::RunningStep;

/// The answer to a brief `status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BriefStatus {
    /// How far the logs have grown.
    pub grown: Grown,
    /// What it is doing.
    pub activity: Activity,
    /// Why the log can't be written, if it can't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_failing: Option<String>,
    /// What it waits for, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaiting_input: Option<Awaiting>,
    /// The TCP ports it listens on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    /// The last line it printed, as it reads now.
    #[serde(default)]
    pub last_line: String,
    /// Who has taken it over, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
    /// The step that it runs, if it is a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<RunningStep>,
}

/// Keepers that are older than this answer tell everything.
impl From<Status> for BriefStatus {
    fn from(status: Status) -> Self {
        Self {
            grown: status.grown,
            activity: status.activity,
            log_failing: status.log_failing,
            awaiting_input: status.awaiting_input,
            ports: status.ports,
            last_line: status.last_line,
            held_by: status.held_by,
            step: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::wire::{Answer, Line, Request, Verb};

    /// The word for it is that of a full status, so that an older keeper, which does not know `brief`, answers too.
    #[test]
    fn a_brief_status_is_asked_for_in_words_that_every_keeper_knows() {
        let brief = Request::new(1, Verb::Status { brief: true });
        assert_eq!(
            serde_json::to_string(&brief).unwrap(),
            r#"{"id":1,"outlast":2,"verb":"status","brief":true}"#
        );
        let full: Request = serde_json::from_str(r#"{"id":1,"verb":"status"}"#).unwrap();
        assert!(matches!(full.verb, Verb::Status { brief: false }));
        assert_eq!(serde_json::to_string(&full).unwrap(), r#"{"id":1,"outlast":1,"verb":"status"}"#);
    }

    #[test]
    fn an_answer_without_what_is_not_there_reads() {
        let line = r#"{"reply":{"id":1,"glance":{"grown":{"offset":7},"activity":{"activity":"working"}}}}"#;
        let Line::Reply(reply) = serde_json::from_str(line).unwrap() else { panic!("{line}") };
        let Answer::BriefStatus(glance) = reply.answer else { panic!("{line}") };
        assert_eq!((glance.grown.offset, glance.ports.len()), (7, 0));
    }
}
