//! Events of every outbox into the stream of the fleet, each under its own number: `host:outbox:number`. What was told is noted on the
//! disk only after the broker has it, so nothing is lost; what comes twice is recognised by its number, by the broker for minutes and by
//! readers for ever.

use std::sync::Arc;

use async_nats::jetstream::message::PublishMessage;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{Counts, Node, RETRY};
use crate::machine::OutboxEvent;
use crate::names;

/// How many events are on their way at once.
const AT_ONCE: usize = 256;

/// An event as it is in the stream.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FleetEvent {
    /// The host.
    pub host: String,
    /// Whose outbox it is.
    pub session: String,
    /// Its number there.
    pub n: u64,
    /// What it says.
    pub event: serde_json::Value,
}

/// Tells of events until the task is ended.
pub(super) async fn tell(node: Arc<Node>) {
    while node.broker.events().await.is_err() {
        tokio::time::sleep(RETRY).await;
    }
    loop {
        node.outboxes_changed.notified().await;
        let machine = Arc::clone(&node.machine);
        let sessions = tokio::task::spawn_blocking(move || machine.outboxes()).await.unwrap_or_default();
        let mut all = true;
        for session in sessions {
            all &= tell_one(&node, &session).await;
        }
        if !all {
            tokio::time::sleep(RETRY).await;
            node.outboxes_changed.notify_one();
        }
    }
}

/// Tells what is new in one outbox; false when the broker has not taken all of it.
async fn tell_one(node: &Node, session: &str) -> bool {
    let (machine, of) = (Arc::clone(&node.machine), session.to_owned());
    let untold = tokio::task::spawn_blocking(move || machine.untold(&of)).await.unwrap_or_default();
    for some in untold.chunks(AT_ONCE) {
        let Some(last) = publish(node, session, some).await else { return false };
        let (machine, of) = (Arc::clone(&node.machine), session.to_owned());
        let noted = tokio::task::spawn_blocking(move || machine.told(&of, last)).await;
        if noted.is_err() {
            return false;
        }
    }
    true
}

/// The number of the last one, if the broker has all.
async fn publish(node: &Node, session: &str, events: &[OutboxEvent]) -> Option<u64> {
    let outbox = names::outbox(session);
    let subject = names::event(&node.host, &outbox);
    let mut acks = Vec::with_capacity(events.len());
    for OutboxEvent { n, entry } in events {
        let event =
            FleetEvent { host: node.host.clone(), session: session.to_owned(), n: *n, event: entry.clone() };
        let message = PublishMessage::build()
            .message_id(format!("{}:{outbox}:{n}", node.host))
            .payload(Bytes::from(serde_json::to_vec(&event).unwrap_or_default()));
        let ack = node.broker.streams.send_publish(subject.clone(), message).await.ok()?;
        acks.push(ack);
    }
    for ack in acks {
        ack.await.ok()?;
        Counts::add(&node.counts.events);
    }
    events.last().map(|event| event.n)
}
