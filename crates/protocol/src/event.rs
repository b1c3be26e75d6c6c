//! Events: numbered facts about a job, in its `events.jsonl` and to its followers, and the kinds of entries that they
//! become in the outbox of its session.

use serde::{Deserialize, Serialize};

use crate::awaiting::Awaiting;
use crate::lifecycle::State;
use crate::reason::Reason;
use crate::wire::watch::Fired;
use crate::words::words;

/// A numbered fact about a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Counts from 1 in each job, without gaps.
    pub seq: u64,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// The end of the log then.
    pub offset: u64,
    /// What happened.
    #[serde(flatten)]
    pub what: EventKind,
}

/// What can happen to a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// It waits for a place, or for other jobs to end.
    Queued {
        /// For which.
        #[serde(flatten)]
        queued: Box<crate::queue::Queued>,
    },
    /// The command runs.
    Started {
        /// Its pid.
        pid: i32,
    },
    /// The command has ended.
    #[serde(alias = "ended")]
    Exit {
        /// How.
        #[serde(flatten)]
        state: State,
    },
    /// Children that the command left behind have ended too.
    AllGone,
    /// It waits for input.
    AwaitingInput {
        /// For what, and how we know.
        #[serde(flatten)]
        awaiting: Box<Awaiting>,
    },
    /// It no longer waits for input.
    WentOn,
    /// It takes input, and does not wait for it: other things can wake it, too.
    Listening {
        /// Who listens, and how we know.
        #[serde(flatten)]
        awaiting: Box<Awaiting>,
    },
    /// It was stopped: by Ctrl-Z, as a rule.
    Stopped,
    /// It goes on after a stop.
    Continued,
    /// It listens on a TCP port.
    #[serde(alias = "port_open")]
    Port {
        /// Which.
        port: u16,
    },
    /// A watch has something to tell.
    Watch {
        /// What.
        #[serde(flatten)]
        fired: Box<Fired>,
    },
    /// The log can't be written.
    LogFailing {
        /// What the system says.
        error: String,
    },
    /// The log can be written again.
    LogResumed {
        /// The first byte that was lost.
        lost_from: u64,
        /// Just after the last one.
        lost_to: u64,
    },
    /// The log has reached its cap; this part was given back to the disk.
    LogCapped {
        /// Its first byte.
        from: u64,
        /// Just after its last one.
        to: u64,
    },
    /// The keeper died and its heir took over.
    TookOver {
        /// Typed input that the program had not taken yet, and that is gone.
        input_lost: u64,
        /// The output that the keeper died of, from and to where: it is in the log, and in no text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unreadable: Option<(u64, u64)>,
    },
    /// The heir died; nobody would take over now.
    HeirGone,
    /// An agent's hook tells how the agent is. It is about no job.
    Agent {
        /// Which agent.
        agent: String,
        /// How it is.
        state: AgentState,
        /// The folder it works in.
        folder: String,
    },
    /// A program of the job was not executed: a rule denies it.
    ExecRefused {
        /// Which, and why.
        #[serde(flatten)]
        refused: Box<ExecRefused>,
    },
    /// The job was not connected to a host.
    HostRefused {
        /// Which, and why.
        #[serde(flatten)]
        refused: Box<HostRefused>,
    },
    /// A program of the job stands still: a person must agree to what it wants to execute.
    Asking {
        /// To what.
        #[serde(flatten)]
        question: Box<ExecQuestion>,
    },
    /// A question was answered, or is not asked any more.
    Answered {
        /// Which.
        question: u64,
        /// Whether a person agreed.
        allowed: bool,
        /// Who answered, in words.
        by: String,
    },
    /// A command began in a shell.
    StepStarted {
        /// Which.
        #[serde(flatten)]
        step: Box<crate::shell::Step>,
    },
    /// A command in a shell is over.
    Step {
        /// How it ended.
        #[serde(flatten)]
        step: Box<crate::shell::Step>,
    },
    /// A shell that had nothing to do was asked what it remembers: a step has changed this.
    StepChanged {
        /// Which.
        step: u64,
        /// Names of variables, functions, aliases and options.
        changed: Vec<String>,
    },
    /// A process that is not the shell said that a step had ended; the shell is ended for that.
    StepForged {
        /// What was wrong, in words.
        why: String,
    },
    /// A person has taken it over: nobody else types into it.
    Taken {
        /// Who, in words.
        by: String,
    },
    /// Others may type again.
    GivenBack {
        /// Who had taken it over, in words.
        by: String,
        /// Why, in words.
        why: String,
    },
    /// Something a newer version knows.
    #[serde(other)]
    Unknown,
}

/// A program that was not executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecRefused {
    /// The process that wanted to execute it.
    pub pid: i32,
    /// The program and its arguments, cut to a readable length.
    pub command: String,
    /// Why not, in words.
    pub why: String,
    /// Where the rule is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// A host that a job was not connected to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRefused {
    /// Its name or address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Why not, in words.
    pub why: String,
    /// The question that a person can answer with yes to allow it for this job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<u64>,
}

/// A program that stands still until a person has agreed to what it wants to execute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecQuestion {
    /// What it is answered by; unique in its job.
    pub question: u64,
    /// The process that wants to execute it.
    pub pid: i32,
    /// The program and its arguments, cut to a readable length in the middle.
    pub command: String,
    /// The rule that asks.
    pub rule: String,
    /// Where the rule is written.
    pub place: String,
    /// The reason, in the words of the rule's author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Until when an answer counts, in milliseconds since 1970. No answer is a no.
    pub until: u64,
    /// For a host that the job was not connected to: which. Nothing stands still for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

impl EventKind {
    /// Its word, as it is written.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Queued { .. } => "queued",
            Self::Started { .. } => "started",
            Self::Exit { .. } => "exit",
            Self::AllGone => "all_gone",
            Self::AwaitingInput { .. } => "awaiting_input",
            Self::WentOn => "went_on",
            Self::Listening { .. } => "listening",
            Self::Stopped => "stopped",
            Self::Continued => "continued",
            Self::Port { .. } => "port",
            Self::Watch { .. } => "watch",
            Self::LogFailing { .. } => "log_failing",
            Self::LogResumed { .. } => "log_resumed",
            Self::LogCapped { .. } => "log_capped",
            Self::TookOver { .. } => "took_over",
            Self::HeirGone => "heir_gone",
            Self::Agent { .. } => "agent",
            Self::ExecRefused { .. } => "exec_refused",
            Self::HostRefused { .. } => "host_refused",
            Self::Asking { .. } => "asking",
            Self::Answered { .. } => "answered",
            Self::StepStarted { .. } => "step_started",
            Self::Step { .. } => "step",
            Self::StepChanged { .. } => "step_changed",
            Self::StepForged { .. } => "step_forged",
            Self::Taken { .. } => "taken",
            Self::GivenBack { .. } => "given_back",
            Self::Unknown => "unknown",
        }
    }
}

words! {
    /// How an agent is.
    pub enum AgentState ("state of an agent") {
        /// It works on a prompt.
        Working = "working",
        /// It waits for the next prompt.
        Idle = "idle",
        /// It needs a person: for a permission, or an answer.
        Asks = "asks",
        /// Its conversation is over.
        Done = "done",
    }
}

words! {
    /// What kind of entry of an outbox it is. Where a condition is met, the word is that of the condition.
    pub enum EntryKind ("kind of event") {
        /// The job has ended.
        Exit = "exit" | "ended",
        /// It waits for input.
        AwaitingInput = "awaiting_input" | "input",
        /// It no longer waits for input.
        WentOn = "went_on",
        /// It listens on a port.
        Port = "port" | "port_open",
        /// A pattern was found.
        Pattern = "pattern",
        /// It has printed nothing for a while.
        Quiet = "quiet",
        /// Its screen has not changed for a while.
        Stable = "stable",
        /// A path on its port answers.
        Http = "http",
        /// It has printed something.
        Output = "output",
        /// A pattern is no longer on its screen.
        Gone = "gone",
        /// It has printed lines.
        Lines = "lines",
        /// A program of it was not executed, because of a rule.
        ExecRefused = "exec_refused",
        /// It was not connected to a host.
        HostRefused = "host_refused",
        /// It stands still until a person has agreed to what it wants to execute.
        Asking = "asking",
        /// That was answered.
        Answered = "answered",
        /// A command in a shell is over, and nobody waited for it.
        Step = "step",
        /// A person has taken it over: nobody else types into it.
        Taken = "taken",
        /// Others may type again.
        GivenBack = "given_back",
        /// Its log cannot be written, or can be again.
        LogTrouble = "log_trouble",
        /// Somebody could not be woken.
        WakeFailed = "wake_failed",
        /// Entries were dropped.
        Dropped = "dropped",
        /// An ACP agent streams output of its own.
        Stream = "stream",
        /// An agent works, is idle, asks a person, or is done.
        Agent = "agent",
        /// Something that a newer version knows.
        Unknown = "unknown",
    }
}

impl EntryKind {
    /// The kind of a word in a file; what a newer version wrote is [`EntryKind::Unknown`].
    ///
    /// # Errors
    /// It is not a word at all.
    pub fn read<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let word = String::deserialize(from)?;
        Ok(word.parse().unwrap_or(Self::Unknown))
    }

    /// Whether a job that asked before it does not ask any more.
    #[must_use]
    pub fn withdraws_question(self) -> bool {
        matches!(self, Self::WentOn | Self::Exit)
    }

    /// Reads a kind that somebody asks for.
    ///
    /// # Errors
    /// There is no such kind; the error lists those that there are.
    pub fn wanted(word: &str) -> Result<Self, crate::UnknownWord> {
        match word.parse() {
            Ok(Self::Unknown) | Err(_) => Err(crate::UnknownWord {
                noun: "kind of event",
                word: word.to_owned(),
                known: Self::ALL.iter().filter(|of| **of != Self::Unknown).map(|of| of.name()).collect(),
            }),
            Ok(kind) => Ok(kind),
        }
    }
}

impl From<Reason> for EntryKind {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Exit => Self::Exit,
            Reason::Pattern => Self::Pattern,
            Reason::AwaitingInput => Self::AwaitingInput,
            Reason::Quiet => Self::Quiet,
            Reason::Stable => Self::Stable,
            Reason::Port => Self::Port,
            Reason::Http => Self::Http,
            Reason::Output => Self::Output,
            Reason::Gone => Self::Gone,
            Reason::Lines => Self::Lines,
            // No watch ends for one of these.
            Reason::Deadline | Reason::Started => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::CONDITIONS;

    #[test]
    fn an_entry_about_a_condition_has_its_word() {
        for row in CONDITIONS {
            assert_eq!(EntryKind::from(row.reason).name(), row.word());
            for older in row.older() {
                assert_eq!(EntryKind::wanted(older).unwrap().name(), row.word());
            }
        }
    }

    #[test]
    fn events_of_older_versions_are_read() {
        let ended = r#"{"seq":3,"at":1,"offset":2,"event":"ended","status":"completed","outcome":"exited","code":0,
            "ended_at":1,"ended_by":{"who":"itself"}}"#;
        let event: Event = serde_json::from_str(ended).unwrap();
        assert!(matches!(event.what, EventKind::Exit { .. }), "{event:?}");
        assert!(serde_json::to_string(&event).unwrap().contains(r#""event":"exit""#));
        let port = r#"{"seq":4,"at":1,"offset":2,"event":"port_open","port":80}"#;
        let event: Event = serde_json::from_str(port).unwrap();
        assert_eq!(event.what, EventKind::Port { port: 80 });
        let newer = r#"{"seq":4,"at":1,"offset":2,"event":"invented"}"#;
        let event: Event = serde_json::from_str(newer).unwrap();
        assert_eq!(event.what, EventKind::Unknown);
    }

    #[test]
    fn an_unknown_kind_is_refused_with_those_that_there_are() {
        let unknown = EntryKind::wanted("exits").unwrap_err().to_string();
        assert!(unknown.contains("exits") && unknown.contains("awaiting_input"), "{unknown}");
        assert!(EntryKind::wanted("unknown").is_err());
    }
}
