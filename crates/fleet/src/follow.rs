//! Reads the events of all hosts, each once.
//!
//! The broker recognises a message that is sent twice only for minutes, and a host that was cut off sends again what it is not sure of. So
//! a reader keeps the highest number that it has seen of each outbox, and drops what is not above it. A number that is missing is asked
//! for at the host, which keeps its events; what nobody has any more is reported as a gap.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use outlast_protocol::Failure;
use serde::{Deserialize, Serialize};

use crate::broker::{Broker, REPLY_TIMEOUT, broken, gather};
use crate::identity::write_private;
pub use crate::node::events::FleetEvent;
use crate::{names, node};

/// How many messages are asked for at once.
const BATCH: usize = 500;
/// How long one question stays with the broker.
const ASK_FOR: Duration = Duration::from_secs(10);
/// A reader that is gone is forgotten by the broker after this; its place is on our own disk.
const FORGET_READER: Duration = Duration::from_secs(60);

/// How far a reader has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Marks {
    /// The last message of the stream that was looked at.
    pub stream: u64,
    /// The highest number of each outbox, by `host:outbox`.
    pub outboxes: BTreeMap<String, u64>,
}

/// What a reader makes of an event.
#[derive(Debug, PartialEq, Eq)]
pub enum Seen {
    /// It is the next of its outbox.
    Next,
    /// It was seen before.
    Before,
    /// Those between two numbers are missing, both included.
    Gap {
        /// The first that is missing.
        from: u64,
        /// The last that is missing.
        to: u64,
    },
}

impl Marks {
    /// What an event is to this reader. Nothing is noted.
    #[must_use]
    pub fn see(&self, event: &FleetEvent) -> Seen {
        match self.outboxes.get(&key(event)) {
            // The first of an outbox that this reader hears of: it may have begun long before the fleet.
            None => Seen::Next,
            Some(mark) if event.n <= *mark => Seen::Before,
            Some(mark) if event.n == mark + 1 => Seen::Next,
            Some(mark) => Seen::Gap { from: mark + 1, to: event.n - 1 },
        }
    }

    /// Everything of its outbox up to this event is dealt with.
    pub fn note(&mut self, event: &FleetEvent) {
        let mark = self.outboxes.entry(key(event)).or_default();
        *mark = (*mark).max(event.n);
    }
}

fn key(event: &FleetEvent) -> String {
    format!("{}:{}", event.host, names::outbox(&event.session))
}

/// A reader with a name, whose place is on the disk.
#[derive(Debug)]
pub struct Reader {
    path: Option<PathBuf>,
    /// How far it has come.
    pub marks: Marks,
    /// How far an earlier process had got, perhaps, when it was ended.
    doubtful: Marks,
}

/// What is on the disk.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Kept {
    marks: Marks,
    #[serde(skip_serializing_if = "Option::is_none")]
    doubtful: Option<Marks>,
}

impl Reader {
    /// Goes on where the reader of that name was; without a name, from the oldest that the broker has.
    ///
    /// # Errors
    /// When its place cannot be read.
    pub fn open(home: &Path, name: Option<&str>) -> Result<Self, Failure> {
        let Some(name) = name else { return Ok(Self::new(None, Kept::default())) };
        let name = names::token("name of a reader", name)?;
        let folder = home.join(node::FOLDER).join("readers");
        std::fs::create_dir_all(&folder)
            .map_err(|error| Failure::system("cannot keep the place of a reader", error))?;
        let path = folder.join(format!("{name}.json"));
        let kept = match std::fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text)
                .map_err(|error| Failure::system("cannot read the place of a reader", error))?,
            Err(_) => Kept::default(),
        };
        Ok(Self::new(Some(path), kept))
    }

    fn new(path: Option<PathBuf>, kept: Kept) -> Self {
        Self { path, marks: kept.marks, doubtful: kept.doubtful.unwrap_or_default() }
    }

    /// Whether an event may have been told by an earlier process that was ended meanwhile.
    #[must_use]
    pub fn is_doubtful(&self, event: &FleetEvent) -> bool {
        self.doubtful.outboxes.get(&key(event)).is_some_and(|mark| event.n <= *mark)
    }

    /// Notes on the disk how far the reader will be when it has told what it tells now.
    ///
    /// # Errors
    /// When that fails.
    pub fn doubt(&self, after: Marks) -> Result<(), Failure> {
        self.write(&Kept { marks: self.marks.clone(), doubtful: Some(after) })
    }

    /// Keeps its place on the disk.
    ///
    /// # Errors
    /// When that fails.
    pub fn keep(&mut self) -> Result<(), Failure> {
        self.doubtful = Marks::default();
        self.write(&Kept { marks: self.marks.clone(), doubtful: None })
    }

    fn write(&self, kept: &Kept) -> Result<(), Failure> {
        let Some(path) = &self.path else { return Ok(()) };
        let text = serde_json::to_vec(kept)
            .map_err(|error| Failure::system("cannot keep the place of a reader", error))?;
        write_private(path, &text)
    }
}

/// The messages of the stream after a place, of one host or of all, as they come.
pub struct Follower {
    consumer: async_nats::jetstream::consumer::PullConsumer,
}

impl Follower {
    /// Begins behind what a reader has looked at.
    ///
    /// # Errors
    /// When the broker does not answer.
    pub async fn begin(broker: &Broker, after: u64, host: Option<&str>) -> Result<Self, Failure> {
        let fail = |error: &dyn std::fmt::Display| broken("cannot read events", error);
        let stream = broker.events().await?;
        let deliver_policy = match after {
            0 => DeliverPolicy::All,
            after => DeliverPolicy::ByStartSequence { start_sequence: after + 1 },
        };
        let config = pull::Config {
            deliver_policy,
            ack_policy: AckPolicy::None,
            filter_subject: names::event(host.unwrap_or("*"), "*"),
            memory_storage: true,
            num_replicas: 1,
            inactive_threshold: FORGET_READER,
            ..Default::default()
        };
        let consumer = stream.create_consumer(config).await.map_err(|error| fail(&error))?;
        Ok(Self { consumer })
    }

    /// The next messages, each with its number in the stream. Empty when there were none until the deadline, or for a while.
    ///
    /// # Errors
    /// When the broker does not answer: then begin again.
    pub async fn next(&self, deadline: Option<Instant>) -> Result<Vec<(u64, FleetEvent)>, Failure> {
        let fail = |error: &dyn std::fmt::Display| broken("cannot read events", error);
        let there = self.consumer.fetch().max_messages(BATCH).messages().await;
        let mut found = read(there.map_err(|error| fail(&error))?).await?;
        if found.is_empty() {
            let left = deadline.map_or(ASK_FOR, |at| at.saturating_duration_since(Instant::now()));
            if left > Duration::from_millis(1) {
                let asked = self.consumer.batch().max_messages(1).expires(left.min(ASK_FOR)).messages().await;
                found = read(asked.map_err(|error| fail(&error))?).await?;
            }
        }
        Ok(found)
    }
}

async fn read(batch: pull::Batch) -> Result<Vec<(u64, FleetEvent)>, Failure> {
    let mut found = Vec::new();
    for message in gather(batch, ASK_FOR + REPLY_TIMEOUT).await? {
        let number = message.info().map_or(0, |info| info.stream_sequence);
        // What a newer version wrote in another form is passed over.
        if let Ok(event) = serde_json::from_slice(&message.payload) {
            found.push((number, event));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(host: &str, n: u64) -> FleetEvent {
        FleetEvent { host: host.into(), session: "s".into(), n, event: serde_json::Value::Null }
    }

    #[test]
    fn a_reader_takes_each_number_once_and_notices_what_is_missing() {
        let mut marks = Marks::default();
        assert_eq!(marks.see(&event("a", 7)), Seen::Next);
        marks.note(&event("a", 7));
        assert_eq!(marks.see(&event("a", 7)), Seen::Before);
        assert_eq!(marks.see(&event("a", 3)), Seen::Before);
        assert_eq!(marks.see(&event("a", 8)), Seen::Next);
        assert_eq!(marks.see(&event("a", 11)), Seen::Gap { from: 8, to: 10 });
        assert_eq!(marks.see(&event("b", 11)), Seen::Next, "another host counts for itself");
    }

    #[test]
    fn the_place_of_a_reader_survives_it() {
        let home = tempfile::tempdir().unwrap();
        let mut reader = Reader::open(home.path(), Some("bot")).unwrap();
        reader.marks.note(&event("a", 9));
        reader.marks.stream = 4;
        reader.keep().unwrap();
        assert_eq!(Reader::open(home.path(), Some("bot")).unwrap().marks, reader.marks);
        assert_eq!(Reader::open(home.path(), Some("other")).unwrap().marks, Marks::default());
    }
}
