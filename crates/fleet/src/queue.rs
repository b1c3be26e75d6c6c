//! Orders that any host with a label may work on, each once.
//!
//! An order waits in the stream of its label until a host with a free slot takes it. Whoever takes it makes a key for it that can be made
//! only once, writes a claim to its own disk, acknowledges the order, and starts the job, in this sequence. So at every moment either the
//! broker still has the order, or exactly one host has a claim. What became of it is the value of the key.

pub mod claims;
mod polls;
pub mod results;
pub(crate) mod rules;
pub mod worker;

use std::time::Duration;

use async_nats::jetstream::kv::Store;
use async_nats::jetstream::message::PublishMessage;
use bytes::Bytes;
use outlast_job::request::JobSpec;
use outlast_protocol::lifecycle::State;
use outlast_protocol::{Failure, Kind};
use serde::{Deserialize, Serialize};

use crate::broker::{Broker, broken};
use crate::names;

/// How long it is known what became of an order.
const KEPT_FOR: Duration = Duration::from_secs(7 * 86400);
/// How often what somebody else changes meanwhile is looked at anew.
const MAX_TRIES: usize = 8;

/// Work for any host with a label.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// Its name: nobody else has one of the same name.
    pub id: String,
    /// What the host must be good for.
    pub label: String,
    /// Which come first.
    #[serde(default)]
    pub priority: Priority,
    /// What to do when nobody knows what became of it.
    #[serde(default)]
    pub retry: Retry,
    /// Orders that must have ended well before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Who ordered it.
    #[serde(default)]
    pub by: String,
    /// When, in milliseconds since 1970.
    #[serde(default)]
    pub at: u64,
    /// The broker sends it again and again: each time it is an order of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeats: bool,
    /// What to run.
    pub spec: JobSpec,
}

/// Which orders come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Before all others.
    High,
    /// As they come.
    #[default]
    Normal,
    /// When there is nothing else.
    Low,
}

impl Priority {
    /// The first first.
    pub const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];

    /// Its word in a subject.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }
}

/// What to do with an order when nobody can say whether it was carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Retry {
    /// Leave it to a person.
    #[default]
    Never,
    /// Order it again if it is certain that it was not started.
    IfNotStarted,
    /// Order it again in any case: it may run twice.
    Always,
}

/// How far an order has got.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum Stage {
    /// A host has it, and may start it.
    Claimed,
    /// A host is about to start it, and nobody else may. Only orders that go to another host as long as they are not started pass here.
    Starting,
    /// A host has started it.
    Started {
        /// The number of its job there.
        job: u64,
    },
    /// It has ended.
    Ended {
        /// The number of its job, if it got that far.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job: Option<u64>,
        /// How.
        end: End,
    },
    /// Nobody knows whether it was carried out.
    Unknown {
        /// Why.
        why: String,
    },
    /// It was taken back before it began, or ended because of that.
    Cancelled {
        /// By whom.
        by: String,
    },
}

/// How an order ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum End {
    /// Its job ended.
    Job {
        /// How.
        state: State,
    },
    /// It could not be started, or was not allowed.
    Refused {
        /// Why.
        why: String,
    },
    /// One that it had to come after did not end well.
    Skipped {
        /// Which.
        because: String,
    },
}

/// What is known of an order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The order.
    pub order: Order,
    /// Who has it.
    #[serde(default)]
    pub host: String,
    /// Which run of the machine that was.
    #[serde(default)]
    pub boot: String,
    /// How far it has got.
    #[serde(flatten)]
    pub stage: Stage,
    /// Since when, in milliseconds since 1970.
    pub since: u64,
}

impl Record {
    /// Whether nothing more will become of it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        match &self.stage {
            Stage::Ended { .. } | Stage::Cancelled { .. } => true,
            Stage::Claimed | Stage::Starting | Stage::Started { .. } | Stage::Unknown { .. } => false,
        }
    }

    /// Whether it ended well.
    #[must_use]
    pub fn is_well(&self) -> bool {
        matches!(&self.stage, Stage::Ended { end: End::Job { state: State::Completed(_) }, .. })
    }

    /// How it is, in a few words.
    #[must_use]
    pub fn words(&self) -> String {
        match &self.stage {
            Stage::Claimed => format!("claimed by {}", self.host),
            Stage::Starting => format!("about to be started by {}", self.host),
            Stage::Started { job } => format!("runs as {}/{job}", self.host),
            Stage::Ended { job, end } => {
                let job = job.map(|job| format!(" ({}/{job})", self.host)).unwrap_or_default();
                match end {
                    End::Job { state } => match state.exit_code() {
                        Some(code) => format!("{}, code {code}{job}", state.name()),
                        None => format!("{}{job}", state.name()),
                    },
                    End::Refused { why } => format!("not started: {why}"),
                    End::Skipped { because } => format!("skipped: {because} did not end well"),
                }
            }
            Stage::Unknown { why } => format!("outcome unknown: {why}"),
            Stage::Cancelled { by } => format!("cancelled by {by}"),
        }
    }
}

fn value(record: &Record) -> Bytes {
    Bytes::from(serde_json::to_vec(record).unwrap_or_default())
}

/// A name for a new order.
#[must_use]
pub fn new_id() -> String {
    let mut bytes = [0_u8; 10];
    let _ = ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a text can be the name of an order.
///
/// # Errors
/// A usage failure.
pub fn check_id(id: &str) -> Result<(), Failure> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if (8..=48).contains(&id.len()) && id.chars().all(is_plain) {
        return Ok(());
    }
    Err(Failure::usage(format!("invalid name of an order: {id:?}"))
        .hint("8 to 48 letters, digits, '-' or '_'"))
}

/// Orders something. Returns when the broker has it on its disks.
///
/// # Errors
/// When the broker does not answer, refuses, or has no room.
pub async fn submit(broker: &Broker, orders: &[Order], schedule: Option<&str>) -> Result<(), Failure> {
    for label in orders.iter().map(|order| &order.label).collect::<std::collections::BTreeSet<_>>() {
        names::token("label", label)?;
        broker.queue(label).await?;
    }
    let mut acks = Vec::with_capacity(orders.len());
    for order in orders {
        check_id(&order.id)?;
        let subject = names::queue(&order.label, order.priority.word(), &broker.me.name);
        let payload = Bytes::from(
            serde_json::to_vec(order).map_err(|error| Failure::system("cannot write an order", error))?,
        );
        let mut message = PublishMessage::build().message_id(&order.id).payload(payload);
        let mut to = subject.clone();
        if let Some(schedule) = schedule {
            // The broker keeps the plan under a subject of its own, and sends the order to the real one when it is time.
            to = format!("ol.q.{}.plan.{}.{}", order.label, broker.me.name, order.id);
            message =
                message.header("Nats-Schedule", schedule).header("Nats-Schedule-Target", subject.as_str());
        }
        let sent = broker.streams.send_publish(to, message).await;
        acks.push(sent.map_err(|error| broken("cannot submit an order", error))?);
    }
    for ack in acks {
        ack.await.map_err(|error| broken("the broker did not take an order", error))?;
    }
    Ok(())
}

/// What is known of an order, with the revision; none while nobody has claimed it.
///
/// # Errors
/// When the broker does not answer.
pub async fn look(orders: &Store, id: &str) -> Result<Option<(Record, u64)>, Failure> {
    let entry = orders.entry(id).await.map_err(|error| broken("cannot look at an order", error))?;
    let Some(entry) = entry.filter(|entry| !entry.value.is_empty()) else { return Ok(None) };
    let record = serde_json::from_slice(&entry.value)
        .map_err(|error| Failure::new(Kind::UnknownFormat, format!("cannot read order {id}: {error}")))?;
    Ok(Some((record, entry.revision)))
}

/// What is known of all orders, claimed or over.
///
/// # Errors
/// When the broker does not answer.
pub async fn all(broker: &Broker) -> Result<Vec<Record>, Failure> {
    let found = crate::directory::entries(broker, names::ORDERS, "*", usize::MAX).await?;
    Ok(found.into_iter().map(|(_, record)| record).collect())
}

/// Changes what is known, if nobody else has meanwhile; says the new revision. What is over is forgotten after a week.
///
/// # Errors
/// When somebody else was faster, or the broker does not answer.
pub(crate) async fn change(broker: &Broker, record: &Record, revision: u64) -> Result<u64, Failure> {
    let subject = format!("$KV.{}.{}", names::ORDERS, record.order.id);
    let mut message = PublishMessage::build().payload(value(record)).expected_last_subject_sequence(revision);
    if record.is_over() {
        message = message.ttl(KEPT_FOR);
    }
    let sent = broker.streams.send_publish(subject, message).await;
    let ack = sent.map_err(|error| broken("cannot change an order", error))?;
    let ack = ack.await.map_err(|error| broken("cannot change an order", error))?;
    Ok(ack.sequence)
}

/// What became of a cancellation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// It will never run.
    Before,
    /// A host has it. If it runs already, its job is to be ended there.
    Claimed {
        /// The job, as `host/job`.
        job: Option<String>,
    },
    /// It was over already.
    TooLate,
}

/// Takes an order back. Whoever starts it from now on ends it at once; one that runs must be ended by the caller.
///
/// # Errors
/// When the broker does not answer.
pub async fn cancel(broker: &Broker, id: &str) -> Result<Cancelled, Failure> {
    check_id(id)?;
    let orders = broker.orders().await?;
    let by = broker.me.name.clone();
    let mut last = None;
    for _ in 0..MAX_TRIES {
        let now = outlast_job::clock::now_ms();
        match look(&orders, id).await? {
            None => {
                // Whoever gets it from the queue finds that it is over. What it was is not known here.
                let order = Order {
                    id: id.to_owned(),
                    label: String::new(),
                    priority: Priority::Normal,
                    retry: Retry::Never,
                    after: Vec::new(),
                    by: by.clone(),
                    at: now,
                    repeats: false,
                    spec: JobSpec::shell("true"),
                };
                let stage = Stage::Cancelled { by: by.clone() };
                let record = Record { order, host: String::new(), boot: String::new(), stage, since: now };
                match orders.create_with_ttl(id, value(&record), KEPT_FOR).await {
                    Ok(_) => return Ok(Cancelled::Before),
                    Err(error) => last = Some(broken("cannot cancel an order", error)),
                }
            }
            Some((record, _)) if record.is_over() => return Ok(Cancelled::TooLate),
            Some((mut record, revision)) => {
                let job = match &record.stage {
                    Stage::Started { job } => Some(format!("{}/{job}", record.host)),
                    Stage::Claimed
                    | Stage::Starting
                    | Stage::Unknown { .. }
                    | Stage::Ended { .. }
                    | Stage::Cancelled { .. } => None,
                };
                record.stage = Stage::Cancelled { by: by.clone() };
                record.since = now;
                match change(broker, &record, revision).await {
                    Ok(_) => return Ok(Cancelled::Claimed { job }),
                    Err(failure) => last = Some(failure),
                }
            }
        }
    }
    Err(last.unwrap_or_else(|| broken("cannot cancel an order", "others change it all the time")))
}

/// What a person decides about an order of which nobody knows what became.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Order it again, under a new name.
    Again,
    /// Leave it as it is: it counts as cancelled.
    GiveUp,
}

/// Settles an order that is claimed by a host that does not come back, or whose outcome is unknown. Returns the name of the new order.
///
/// # Errors
/// When it is not in doubt, or the broker does not answer.
pub async fn resolve(broker: &Broker, id: &str, decision: Decision) -> Result<Option<String>, Failure> {
    let orders = broker.orders().await?;
    let Some((mut record, revision)) = look(&orders, id).await? else {
        return Err(Failure::usage(format!("nobody has claimed order {id} yet: it waits in the queue")));
    };
    if record.is_over() {
        return Err(Failure::usage(format!("order {id} is over: {}", record.words())));
    }
    let order = record.order.clone();
    record.stage = Stage::Cancelled { by: broker.me.name.clone() };
    record.since = outlast_job::clock::now_ms();
    change(broker, &record, revision).await?;
    match decision {
        Decision::GiveUp => Ok(None),
        Decision::Again => {
            let again = Order { id: new_id(), at: record.since, ..order };
            submit(broker, std::slice::from_ref(&again), None).await?;
            Ok(Some(again.id))
        }
    }
}

/// How many orders of a label wait, claimed or not; none when there is no such queue.
pub async fn waiting(broker: &Broker, label: &str) -> Option<u64> {
    let mut stream = broker.streams.get_stream(names::queue_stream(label)).await.ok()?;
    Some(stream.info().await.ok()?.state.messages)
}
