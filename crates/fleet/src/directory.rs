//! Who is in the fleet and what runs there, as hosts tell it: heartbeats, and jobs in short.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use outlast_job::Handle;
use outlast_job::request::{ListedJob, Summary};
use outlast_job::wire::brief_status::BriefStatus;
use outlast_job::wire::{Activity, Awaiting};
use outlast_protocol::lifecycle::State;
use outlast_protocol::{Failure, HostName};
use serde::{Deserialize, Serialize};

use crate::broker::{Broker, REPLY_TIMEOUT, broken, gather};
use crate::names;

/// How much of a command is told.
const MAX_COMMAND: usize = 200;
/// How much of a question is told.
const MAX_PROMPT: usize = 200;
/// How many keys are asked for at once.
const BATCH: usize = 2000;
/// A reader of a bucket that has gone is forgotten after this.
const FORGET_READER: Duration = Duration::from_secs(30);

/// What a host says of itself every few seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Beat {
    /// Its name.
    pub host: String,
    /// The version of the program there.
    pub version: String,
    /// Changes when the machine is started anew.
    pub boot: String,
    /// What it is good for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// How many orders it works on at a time.
    pub slots: usize,
    /// How many it works on now.
    pub used: usize,
    /// The load of the last minute, in hundredths.
    pub load: u32,
    /// How many processors it has.
    pub processors: usize,
    /// How many jobs it has in each class of need.
    pub jobs: [u32; Need::COUNT],
    /// It takes no more orders.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub draining: bool,
    /// When this was said, by its own clock, in milliseconds since 1970.
    pub at: u64,
}

impl Beat {
    /// How busy it is: the part of its slots that are used, or of its processors, in thousandths.
    #[must_use]
    pub fn busy(&self) -> u64 {
        let slots = self.used as u64 * 1000 / self.slots.max(1) as u64;
        let processors = u64::from(self.load) * 10 / self.processors.max(1) as u64;
        slots.max(processors)
    }
}

/// How much a job needs somebody. It is the first word of its key, so that a list can begin with what matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// It waits for an answer.
    Asks,
    /// It runs.
    Runs,
    /// It went wrong.
    Failed,
    /// It is done.
    Done,
}

impl Need {
    /// How many there are.
    pub const COUNT: usize = 4;
    /// The most urgent first.
    pub const ALL: [Self; Self::COUNT] = [Self::Asks, Self::Runs, Self::Failed, Self::Done];

    /// Its word in a key.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Asks => "asks",
            Self::Runs => "runs",
            Self::Failed => "failed",
            Self::Done => "done",
        }
    }
}

/// A job in short: this, and nothing else of it, is told to the broker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// Its number on its host.
    pub job: u64,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The beginning of its command, without secrets.
    pub command: String,
    /// Where it is in its life, and how it ended.
    pub state: State,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    /// What it asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<Awaiting>,
    /// The ports it listens on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    /// When it was started, in milliseconds since 1970.
    pub since: u64,
}

impl Card {
    /// What is told of a job.
    #[must_use]
    pub fn of(listed: &ListedJob) -> Self {
        let ListedJob { job, now, .. } = listed;
        let activity = now.as_ref().map(|now| match now.activity {
            // For how long changes all the time, and is not worth a message.
            Activity::Quiet { .. } => Activity::Quiet { for_ms: 0 },
            other @ (Activity::Queued
            | Activity::Working
            | Activity::Listening { .. }
            | Activity::AwaitingInput
            | Activity::Asking
            | Activity::Stopped
            | Activity::Ended) => other,
        });
        let asks = now
            .as_ref()
            .and_then(|now| now.awaiting_input.clone())
            .map(|asks| Awaiting { prompt: cut(&asks.prompt, MAX_PROMPT), ..asks });
        Self {
            job: job.handle.number(),
            name: job.name.clone(),
            command: cut(&job.command, MAX_COMMAND),
            state: without_details(job.state.clone()),
            activity,
            asks,
            ports: now.as_ref().map(|now| now.ports.clone()).unwrap_or_default(),
            since: job.created_at,
        }
    }

    /// How much it needs somebody.
    #[must_use]
    pub fn need(&self) -> Need {
        match &self.state {
            State::Completed(_) => Need::Done,
            State::Failed(_) | State::Killed(_) | State::Lost { .. } => Need::Failed,
            State::Running { .. } if self.asks.is_some() => Need::Asks,
            State::Queued(_) | State::Running { .. } | State::Starting => Need::Runs,
        }
    }

    /// Its key in the bucket.
    #[must_use]
    pub fn key(&self, host: &str) -> String {
        format!("{}.{host}.{}", self.need().word(), self.job)
    }

    /// The same as a list of jobs has it.
    #[must_use]
    pub fn listed(self, host: HostName) -> ListedJob {
        let now = self.activity.map(|activity| {
            Box::new(BriefStatus {
                grown: Default::default(),
                activity,
                log_failing: None,
                awaiting_input: self.asks,
                ports: self.ports,
                last_line: String::new(),
                held_by: None,
                step: None,
            })
        });
        let job = Summary {
            handle: Handle::new(self.job).on(Some(host)),
            name: self.name,
            session: String::new(),
            command: self.command,
            description: None,
            cwd: String::new(),
            created_at: self.since,
            pid: None,
            state: self.state,
        };
        ListedJob { job, log_end: 0, now, last_line: String::new(), left_behind: Vec::new(), pinned: false }
    }
}

/// How a job ended, without its processes.
fn without_details(mut state: State) -> State {
    if let State::Completed(receipt) | State::Failed(receipt) | State::Killed(receipt) = &mut state {
        receipt.left_behind.clear();
        receipt.used = None;
    }
    state
}

fn cut(text: &str, max: usize) -> String {
    text[..text.floor_char_boundary(max)].to_owned()
}

/// The hosts that are there, by name.
///
/// # Errors
/// When the broker does not answer.
pub async fn hosts(broker: &Broker) -> Result<BTreeMap<String, Beat>, Failure> {
    let beats: Vec<Beat> = values(broker, names::HOSTS, ">", usize::MAX).await?;
    Ok(beats.into_iter().map(|beat| (beat.host.clone(), beat)).collect())
}

/// A host that has ever joined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Member {
    /// Its name.
    pub host: String,
    /// What it is good for.
    pub labels: Vec<String>,
    /// The version of the program there.
    pub version: String,
    /// When it was noted last that it is there, in milliseconds since 1970: about once a minute.
    pub seen: u64,
    /// It has left on purpose.
    pub left: bool,
}

/// All hosts that have ever joined.
///
/// # Errors
/// As [`hosts`].
pub async fn members(broker: &Broker) -> Result<Vec<Member>, Failure> {
    values(broker, names::MEMBERS, ">", usize::MAX).await
}

/// The host of that name; else, of two with that label, the one with less to do. None when there is neither.
///
/// # Errors
/// As [`hosts`].
pub async fn choose(broker: &Broker, on: &str) -> Result<Option<String>, Failure> {
    let hosts = hosts(broker).await?;
    if hosts.contains_key(on) {
        return Ok(Some(on.to_owned()));
    }
    let fits = |beat: &&Beat| !beat.draining && beat.labels.iter().any(|label| label == on);
    let labelled: Vec<&Beat> = hosts.values().filter(fits).collect();
    if labelled.is_empty() {
        return Ok(None);
    }
    // Many callers must not all choose the same one.
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().subsec_nanos() as usize;
    let (first, second) = (labelled[now % labelled.len()], labelled[(now / 7919) % labelled.len()]);
    let better = if first.busy() <= second.busy() { first } else { second };
    Ok(Some(better.host.clone()))
}

/// Jobs of a class, of one host or of all, at most so many.
///
/// # Errors
/// As [`hosts`].
pub async fn jobs(
    broker: &Broker,
    need: Need,
    host: Option<&str>,
    limit: usize,
) -> Result<Vec<(String, Card)>, Failure> {
    let filter = format!("{}.{}.*", need.word(), host.unwrap_or("*"));
    let found: Vec<(String, Card)> = entries(broker, names::JOBS, &filter, limit).await?;
    let named = |(key, card): (String, Card)| key.split('.').nth(1).map(|host| (host.to_owned(), card));
    Ok(found.into_iter().filter_map(named).collect())
}

async fn values<T: serde::de::DeserializeOwned>(
    broker: &Broker,
    bucket: &str,
    filter: &str,
    limit: usize,
) -> Result<Vec<T>, Failure> {
    Ok(entries(broker, bucket, filter, limit).await?.into_iter().map(|(_, value)| value).collect())
}

/// The newest value of each key that fits, with its key. What cannot be read is left out: a newer version may have written it.
///
/// # Errors
/// As [`hosts`].
pub(crate) async fn entries<T: serde::de::DeserializeOwned>(
    broker: &Broker,
    bucket: &str,
    filter: &str,
    limit: usize,
) -> Result<Vec<(String, T)>, Failure> {
    let prefix = format!("$KV.{bucket}.");
    let fail = |error: &dyn std::fmt::Display| broken(&format!("cannot read {bucket}"), error);
    let stream = match broker.streams.get_stream_no_info(format!("KV_{bucket}")).await {
        Ok(stream) => stream,
        Err(error) => return Err(fail(&error)),
    };
    let config = pull::Config {
        deliver_policy: DeliverPolicy::LastPerSubject,
        ack_policy: AckPolicy::None,
        filter_subject: format!("{prefix}{filter}"),
        memory_storage: true,
        num_replicas: 1,
        inactive_threshold: FORGET_READER,
        ..Default::default()
    };
    let consumer = match stream.create_consumer(config).await {
        Ok(consumer) => consumer,
        // No node has joined yet: there is nothing.
        Err(error) if error.to_string().contains("not found") => return Ok(Vec::new()),
        Err(error) => return Err(fail(&error)),
    };
    let mut left = usize::try_from(consumer.cached_info().num_pending).unwrap_or(usize::MAX).min(limit);
    let mut found = Vec::new();
    while left > 0 {
        let batch = consumer.fetch().max_messages(left.min(BATCH)).messages().await;
        let before = left;
        for message in gather(batch.map_err(|error| fail(&error))?, REPLY_TIMEOUT).await? {
            left = left.saturating_sub(1);
            let key = message.subject.strip_prefix(&prefix).unwrap_or_default().to_owned();
            // A removed key has no value.
            if let Ok(value) = serde_json::from_slice(&message.payload) {
                found.push((key, value));
            }
        }
        if left == before {
            break;
        }
    }
    Ok(found)
}
