//! Everything that a door may ask of a host, and what it is answered: one closed set, as plain data.
//!
//! A host is whoever keeps the jobs: this machine's own folder, or later another machine that is reached over a pipe. So
//! no request or answer holds a path to be opened, a descriptor or a lock. Every answer is bounded, and one that had to
//! stop says where to go on. Unknown fields are ignored, so that an older side understands a newer one.
//!
//! A [`Request`] gets one [`Answer`], at once or, for a wait, when it is over. A [`Subscription`] is told [`News`] until
//! it is cancelled or over. See `docs/formats/requests.md`.

mod details;
mod listed;
mod log;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::info::Info;
use crate::job::{Handle, Run, Streams};
use crate::lifecycle::Receipt;
use crate::outcome::JobOutcome;
use crate::secret_text::SecretText;
use crate::size::Size;
use crate::wire::event::Event;
use crate::wire::watch::Watch;
use crate::wire::{Grown, Killed, ScreenShot, Send, Sent, Status, Typed, Wait, Waited};
pub use details::{Details, Usage};
pub use listed::{AskKeepers, List, ListedJob, Summary};
pub use log::{
    BytePart, Bytes, Fact, FactKind, Grep, Lines, MatchedLine, Matches, ReadBytes, ReadText, Stream, Text,
    Timing,
};

/// What a door may ask of a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// Start a job: [`Answer::Started`], once its command runs.
    Start(Box<Start>),
    /// Find the job of a number or a name: [`Answer::Found`].
    Find {
        /// The number or name.
        job: String,
    },
    /// List jobs: [`Answer::Jobs`].
    List(List),
    /// Ask about one job, or do something to it.
    Job {
        /// Which.
        job: Handle,
        /// What.
        ask: JobRequest,
    },
    /// Wait on several jobs, each from its own beginning: [`Answer::Waited`], when the first is met.
    Wait(WaitAny),
    /// What a session was not told yet: [`Answer::Events`].
    Events(SessionEvents),
    /// A session knows everything up to a number: [`Answer::Acknowledged`].
    Ack(Ack),
    /// Remove one job that has ended: [`Answer::Removed`].
    Remove {
        /// Which.
        job: Handle,
    },
    /// Remove finished jobs that are past the host's limits: [`Answer::Pruned`].
    Prune {
        /// Only say what would be removed.
        #[serde(default)]
        dry_run: bool,
    },
}

/// What a door may ask about one job, or do to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum JobRequest {
    /// Its record: [`Answer::Info`].
    Info {
        /// It is shown to somebody: if the job has ended, its result counts as read.
        #[serde(default)]
        shown: bool,
    },
    /// How it ended: [`Answer::Receipt`].
    Receipt,
    /// How it is right now, from its keeper: [`Answer::Status`].
    Status,
    /// What it uses, and whether it is kept: [`Answer::Details`].
    Details,
    /// Keep it whatever its age, or no longer: [`Answer::Done`].
    Pin {
        /// Whether to keep it.
        pinned: bool,
    },
    /// Where its files are on the host, to be shown: [`Answer::Files`].
    Files,
    /// Where a log ends now: [`Answer::End`].
    End {
        /// Of which stream.
        #[serde(default)]
        stream: Stream,
    },
    /// A range of its output as text: [`Answer::Text`].
    ReadText(ReadText),
    /// A range of its output as the bytes it wrote: [`Answer::Bytes`].
    ReadBytes(ReadBytes),
    /// The lines of a range that match a regular expression: [`Answer::Matches`].
    Grep(Grep),
    /// What its terminal shows: [`Answer::Screen`].
    Screen(Screen),
    /// What its terminal showed when it ended: [`Answer::LastScreen`].
    LastScreen,
    /// What its tools reported, once it has ended: [`Answer::Outcome`].
    Outcome,
    /// When it printed what, for a replay: [`Answer::Timing`].
    Timing {
        /// Where to go on: 0, or [`Timing::next`].
        #[serde(default)]
        from: u64,
    },
    /// Its own events, a JSON object a line: [`Answer::EventLines`].
    EventLines {
        /// At most this many bytes: the newest.
        max: usize,
    },
    /// Type something: [`Answer::Sent`].
    Send {
        /// What.
        send: Send,
        /// How long a program that does not read may hold it up, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
    },
    /// Type what nobody may see, then Enter: [`Answer::Sent`].
    Secret {
        /// The secret.
        value: SecretText,
        /// Even where it may be shown.
        #[serde(default)]
        force: bool,
    },
    /// What was typed into it last: [`Answer::Typed`].
    Typed,
    /// End it and all that it started: [`Answer::Killed`].
    Kill {
        /// How long it may take to end by itself, in milliseconds.
        grace_ms: u64,
        /// The session that asks.
        session: String,
    },
    /// Send one signal to the whole job: [`Answer::Killed`].
    Signal {
        /// Its name, with or without `SIG`.
        signal: String,
        /// The session that asks.
        session: String,
    },
    /// Give its terminal a new size: [`Answer::Done`].
    Resize {
        /// The new size.
        size: Size,
    },
    /// Answer what a program of it wants to execute: [`Answer::Done`].
    AnswerQuestion {
        /// Which question.
        question: u64,
        /// Whether it may.
        allow: bool,
        /// Who answers, in words.
        by: String,
    },
    /// Make an event of something from now on: [`Answer::Watches`], all of them.
    Watch {
        /// What of.
        watch: Watch,
    },
    /// All watches: [`Answer::Watches`].
    Watches,
    /// No longer: [`Answer::Watches`], those that are left.
    Unwatch {
        /// The watch's name.
        watch: String,
    },
}

/// A job to be started. What it does not say, the host decides: its own environment, folder, sandbox and limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// The command.
    pub run: Run,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A name to call it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The folder to start in; none for the host's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// What is added to the host's own environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Terminal or pipes.
    pub streams: Streams,
    /// The session that owns it.
    pub session: String,
    /// End it after this long, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// End it when it printed nothing for this long, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inactivity_timeout_ms: Option<u64>,
    /// What of it goes to the session's outbox, in the words of `--notify`; none for what the host does in the
    /// background.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<Vec<String>>,
    /// Under the sandbox and limits that the host has for agents.
    #[serde(default)]
    pub for_agent: bool,
}

/// What of a terminal's screen is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Screen {
    /// As it was then; none for now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Moment>,
    /// With colours and styles.
    pub styled: bool,
    /// How many lines of history to add; only for now.
    pub scrollback: usize,
}

/// A moment in a job's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// This long after its start, in milliseconds.
    Time(u64),
    /// When it had printed this much.
    Offset(u64),
}

/// A wait on one or more jobs: the first that is met ends it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WaitAny {
    /// Each with its own conditions and its own beginning.
    pub waits: Vec<JobWait>,
    /// At most this long, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// One job of a wait.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobWait {
    /// Which.
    pub job: Handle,
    /// What for, and from where on.
    pub wait: Wait,
}

/// Which of a session's events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEvents {
    /// The session.
    pub session: String,
    /// Only those with a higher number; none for those that were not acknowledged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

/// How far a session has got with its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ack {
    /// The session.
    pub session: String,
    /// Up to this number; none for all there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to: Option<u64>,
    /// Only for the reader of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<String>,
}

/// Where a job's files are on its host. They are to be shown: nobody but the host opens them by these names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// The folder that all of them are in.
    pub folder: String,
    /// The log: every byte that the job wrote.
    pub output: String,
    /// The log as a person would have read it.
    pub transcript: String,
}

/// What a prune removed, or would remove.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pruned {
    /// The jobs.
    pub removed: Vec<Handle>,
    /// The disk space this gives back, in bytes.
    pub freed: u64,
    /// The finished jobs that are kept.
    pub kept: usize,
}

/// What a host answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The job runs, and this is its handle.
    Started(Handle),
    /// The job that was looked for.
    Found(Handle),
    /// Jobs, oldest first.
    Jobs(Vec<ListedJob>),
    /// A job's record.
    Info(Box<Info>),
    /// How a job ended; none while it runs, and for one that is lost.
    Receipt(Option<Box<Receipt>>),
    /// How a job is right now; none when it has no keeper any more.
    Status(Option<Box<Status>>),
    /// What a job uses.
    Details(Details),
    /// Where a job's files are.
    Files(Files),
    /// Where a log ends.
    End(u64),
    /// A range as text.
    Text(Text),
    /// A range as bytes.
    Bytes(Bytes),
    /// Lines that match.
    Matches(Matches),
    /// What a terminal shows, or showed.
    Screen(Box<ScreenShot>),
    /// What a terminal showed last, if that was saved.
    LastScreen(Option<String>),
    /// What a job's tools reported; none while it runs, and where nothing is certain.
    Outcome(Option<Box<JobOutcome>>),
    /// When a job printed what.
    Timing(Timing),
    /// A job's own events.
    EventLines(String),
    /// What became of something typed.
    Sent(Sent),
    /// What was typed last.
    Typed(Typed),
    /// What became of a kill or a signal.
    Killed(Killed),
    /// Watches.
    Watches(Vec<Watch>),
    /// How a wait ended.
    Waited {
        /// Which of its jobs ended it, counted from 0.
        which: usize,
        /// How.
        waited: Waited,
    },
    /// A session's events, each as it is in its outbox.
    Events(Vec<serde_json::Value>),
    /// A session has acknowledged everything up to this number.
    Acknowledged(u64),
    /// A job was removed.
    Removed {
        /// The disk space this gives back, in bytes.
        freed: u64,
    },
    /// What was removed.
    Pruned(Pruned),
    /// There is nothing to say.
    Done {},
}

/// What a door may be told of, from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "subscribe", rename_all = "snake_case")]
pub enum Subscription {
    /// A job: how far its log has grown, and its events, until it is over.
    Job {
        /// Which.
        job: Handle,
    },
    /// The list of jobs: that one was started or removed.
    JobList,
    /// A session's outbox: that it has changed.
    Session {
        /// Whose.
        session: String,
    },
}

/// What a subscriber is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum News {
    /// The job's logs have grown.
    Grown(Grown),
    /// Something happened to the job.
    Event(Event),
    /// The list, or the outbox, has changed.
    Changed,
    /// There will be no more.
    Over,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of each.
    fn examples() -> Vec<Request> {
        let job = |ask| Request::Job { job: Handle::new(3), ask };
        let session = || "s".to_owned();
        let range =
            ReadText { from: 5, to: Some(9), lines: Some(Lines::Last(2)), max: 100, ..ReadText::default() };
        let start = Start {
            run: Run::Shell("echo hi".into()),
            description: None,
            name: Some("x".into()),
            folder: None,
            env: BTreeMap::from([("A".into(), "b".into())]),
            streams: Streams::Pipes,
            session: session(),
            timeout_ms: Some(1),
            inactivity_timeout_ms: None,
            notify: Some(vec!["exit".into()]),
            for_agent: true,
        };
        vec![
            Request::Start(Box::new(start)),
            Request::Find { job: "web".into() },
            Request::List(List { keepers: AskKeepers::OfSession(session()), ..List::default() }),
            Request::Wait(WaitAny {
                waits: vec![JobWait { job: Handle::new(1), wait: Wait::for_exit() }],
                timeout_ms: Some(10),
            }),
            Request::Events(SessionEvents { session: session(), after: Some(4) }),
            Request::Ack(Ack { session: session(), up_to: None, reader: Some("r".into()) }),
            Request::Remove { job: Handle::new(1) },
            Request::Prune { dry_run: true },
            job(JobRequest::Info { shown: true }),
            job(JobRequest::Receipt),
            job(JobRequest::Status),
            job(JobRequest::Details),
            job(JobRequest::Pin { pinned: true }),
            job(JobRequest::Files),
            job(JobRequest::End { stream: Stream::Stderr }),
            job(JobRequest::ReadText(range)),
            job(JobRequest::ReadBytes(ReadBytes { stream: Stream::Stderr, max: 7, ..ReadBytes::default() })),
            job(JobRequest::Grep(Grep { range, pattern: "x".into() })),
            job(JobRequest::Screen(Screen { at: Some(Moment::Time(5)), ..Screen::default() })),
            job(JobRequest::LastScreen),
            job(JobRequest::Outcome),
            job(JobRequest::Timing { from: 7 }),
            job(JobRequest::EventLines { max: 10 }),
            job(JobRequest::Send { send: Send { text: "x".into(), ..Send::default() }, timeout_ms: None }),
            job(JobRequest::Secret { value: SecretText::default(), force: false }),
            job(JobRequest::Typed),
            job(JobRequest::Kill { grace_ms: 200, session: session() }),
            job(JobRequest::Signal { signal: "INT".into(), session: session() }),
            job(JobRequest::Resize { size: Size::default() }),
            job(JobRequest::Watch { watch: Watch::default() }),
            job(JobRequest::Watches),
            job(JobRequest::Unwatch { watch: "w".into() }),
        ]
    }

    #[test]
    fn every_request_survives_a_wire() {
        for request in examples() {
            let text = serde_json::to_string(&request).unwrap();
            let again: Request = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&again).unwrap(), text);
        }
    }

    #[test]
    fn what_a_newer_side_adds_is_ignored() {
        let text = r#"{"request":"job","job":3,"ask":{"ask":"read_text","from":1,"max":2,"invented":{"x":1}},"more":0}"#;
        let Request::Job { job, ask: JobRequest::ReadText(read) } = serde_json::from_str(text).unwrap()
        else {
            panic!("{text}")
        };
        assert_eq!((job, read.from, read.max), (Handle::new(3), 1, 2));
    }

    #[test]
    fn bytes_survive_a_wire_as_they_are() {
        let bytes = Bytes {
            from: 1,
            parts: vec![BytePart::Bytes(vec![0, 0xff, 0x80]), BytePart::Lost { from: 4, to: 9 }],
            next: 9,
            end: 12,
        };
        let text = serde_json::to_string(&Answer::Bytes(bytes.clone())).unwrap();
        let Answer::Bytes(again) = serde_json::from_str(&text).unwrap() else { panic!("{text}") };
        assert_eq!(again, bytes);
    }

    #[test]
    fn what_was_left_out_is_named_between_head_and_tail() {
        let text = Text { head: "a".into(), tail: "z".into(), omitted: Some((1, 9)), ..Text::default() };
        let joined = text.joined(|from, to| format!("read {from} {to}"));
        assert_eq!(joined, "a\n[... 8 bytes left out; to read them: read 1 9 ...]\nz");
        assert_eq!(Text { head: "a".into(), ..Text::default() }.joined(|_, _| String::new()), "a");
    }
}
