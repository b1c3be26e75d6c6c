//! The next step, as data: each door words the calls in it for itself. A model has tools, a person has the command line.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::host::{HostName, on_host};

/// What to do next: words, and calls among them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WrittenHint", into = "WrittenHint")]
pub struct Hint {
    parts: Vec<Part>,
}

/// A piece of a hint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Words that name no call.
    Text(String),
    /// Something to call.
    Call(Call),
}

/// Something that can be called next. A job is named as its user would: by handle or name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// Read what a job printed.
    Read(String),
    /// Read what a job prints as it comes.
    Follow(String),
    /// Look at a job's screen.
    Screen(String),
    /// Type into a job.
    Send(String),
    /// End a job.
    Kill(String),
    /// Attach a terminal to a job, and let others type too.
    AttachShared(String),
    /// See a job's watches.
    Watches(String),
    /// See all jobs.
    AllJobs,
    /// Run a command; this is one.
    RunExample(String),
    /// Run a command so that it can be sent input.
    RunForInput,
    /// Run a command on pipes.
    RunOnPipes,
    /// Run a command in another folder.
    RunInFolder,
    /// See what this machine can do, and what is wrong.
    Doctor,
    /// See why a policy refuses a command.
    ExplainPolicy,
}

impl Hint {
    /// Words that name no call.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::Text(text.into())] }
    }

    /// A call, with words before it.
    #[must_use]
    pub fn call(before: impl Into<String>, call: Call) -> Self {
        Self::text(before).then(call)
    }

    /// Adds a call.
    #[must_use]
    pub fn then(mut self, call: Call) -> Self {
        self.parts.push(Part::Call(call));
        self
    }

    /// Adds words.
    #[must_use]
    pub fn and(mut self, text: impl Into<String>) -> Self {
        self.parts.push(Part::Text(text.into()));
        self
    }

    /// The hint in the words of a door, which says how it calls each call.
    #[must_use]
    pub fn worded(&self, mut call: impl FnMut(&Call) -> String) -> String {
        let words = self.parts.iter().map(|part| match part {
            Part::Text(text) => text.clone(),
            Part::Call(next) => call(next),
        });
        words.collect()
    }

    /// The hint of another machine as it reads here: its jobs are named with their host.
    #[must_use]
    pub fn seen_from_here(self, host: HostName) -> Self {
        let part = |part| match part {
            Part::Text(text) => Part::Text(text),
            Part::Call(call) => Part::Call(call.seen_from_here(host)),
        };
        Self { parts: self.parts.into_iter().map(part).collect() }
    }

    fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// None if it says nothing.
    #[must_use]
    pub fn some(self) -> Option<Self> {
        (!self.is_empty()).then_some(self)
    }
}

impl Call {
    /// One of each, for tests of doors: none may be worded for another door.
    #[must_use]
    pub fn samples() -> Vec<Self> {
        let job = || "3".to_owned();
        vec![
            Self::Read(job()),
            Self::Follow(job()),
            Self::Screen(job()),
            Self::Send(job()),
            Self::Kill("web".into()),
            Self::AttachShared(job()),
            Self::Watches(job()),
            Self::AllJobs,
            Self::RunExample("echo hello".into()),
            Self::RunForInput,
            Self::RunOnPipes,
            Self::RunInFolder,
            Self::Doctor,
            Self::ExplainPolicy,
        ]
    }

    fn seen_from_here(self, host: HostName) -> Self {
        let named = |job: String| on_host(host, &job);
        match self {
            Self::Read(job) => Self::Read(named(job)),
            Self::Follow(job) => Self::Follow(named(job)),
            Self::Screen(job) => Self::Screen(named(job)),
            Self::Send(job) => Self::Send(named(job)),
            Self::Kill(job) => Self::Kill(named(job)),
            Self::AttachShared(job) => Self::AttachShared(named(job)),
            Self::Watches(job) => Self::Watches(named(job)),
            Self::AllJobs
            | Self::RunExample(_)
            | Self::RunForInput
            | Self::RunOnPipes
            | Self::RunInFolder
            | Self::Doctor
            | Self::ExplainPolicy => self,
        }
    }

    /// As it is called on the command line.
    #[must_use]
    pub fn command_line(&self) -> String {
        match self {
            Self::Read(job) => format!("outlast read {job}"),
            Self::Follow(job) => format!("outlast logs -f {job}"),
            Self::Screen(job) => format!("outlast screen {job}"),
            Self::Send(job) => format!("outlast send {job} TEXT"),
            Self::Kill(job) => format!("outlast kill {job}"),
            Self::AttachShared(job) => format!("outlast attach --shared {job}"),
            Self::Watches(job) => format!("outlast watch {job} --list"),
            Self::AllJobs => "outlast jobs --all".into(),
            Self::RunExample(command) => format!("outlast run '{command}'"),
            Self::RunForInput => "outlast run -d".into(),
            Self::RunOnPipes => "outlast run --pipe".into(),
            Self::RunInFolder => "--cwd DIR".into(),
            Self::Doctor => "outlast doctor".into(),
            Self::ExplainPolicy => "outlast policy check --explain 'COMMAND'".into(),
        }
    }
}

/// In the words of the command line, as keepers of version 1 and files of 0.1 have it.
impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.worded(Call::command_line))
    }
}

impl From<&str> for Hint {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Hint {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

/// A hint on the wire and on the disk: in words for version 1, and in parts if there is a call among them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct WrittenHint {
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    next: Vec<Part>,
}

impl From<WrittenHint> for Hint {
    fn from(WrittenHint { hint, next }: WrittenHint) -> Self {
        if next.is_empty() { hint.map(Self::text).unwrap_or_default() } else { Self { parts: next } }
    }
}

impl From<Hint> for WrittenHint {
    fn from(hint: Hint) -> Self {
        let words = (!hint.is_empty()).then(|| hint.to_string());
        let calls = hint.parts.iter().any(|part| matches!(part, Part::Call(_)));
        Self { hint: words, next: if calls { hint.parts } else { Vec::new() } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_written_in_words_and_read_back_as_data() {
        let hint = Hint::call("read it: ", Call::Read("3".into())).and("; or wait");
        let json = serde_json::to_value(&hint).unwrap();
        assert_eq!(json["hint"], "read it: outlast read 3; or wait");
        assert_eq!(serde_json::from_value::<Hint>(json).unwrap(), hint);
        let old: Hint = serde_json::from_str(r#"{"hint":"see outlast doctor"}"#).unwrap();
        assert_eq!(old, Hint::text("see outlast doctor"));
        assert_eq!(serde_json::from_str::<Hint>("{}").unwrap().some(), None);
    }
}
