//! Orders of hosts that do not come back: what each order's own rule says is done about it, by one host for all.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::message::PublishMessage;
use bytes::Bytes;
use outlast_protocol::Failure;

use super::{Decision, Record, Retry, Stage};
use crate::broker::broken;
use crate::node::Node;
use crate::{directory, names};

/// A host that was not heard of for so long does not come back, unless the settings say otherwise.
const LOST_AFTER: Duration = Duration::from_secs(600);
/// Who has made this key looks; for as long as it lives, nobody else does. Names of orders are longer.
const TURN: &str = "turn";
/// How soon another one may look.
const TURN_TTL: Duration = Duration::from_secs(60);

/// Looks now and then until the task is ended.
pub(crate) async fn apply(node: Arc<Node>) {
    let lost_after = node.broker.file.lost_after_seconds.map_or(LOST_AFTER, Duration::from_secs);
    // Not all at once.
    let spread = node.host.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let every = lost_after / 2 + lost_after * u32::try_from(spread % 100).unwrap_or(0) / 400;
    loop {
        tokio::time::sleep(every).await;
        // What fails is done the next time, by somebody.
        let _ = settle_all(&node, lost_after).await;
    }
}

async fn settle_all(node: &Node, lost_after: Duration) -> Result<(), Failure> {
    let broker = &node.broker;
    if !is_my_turn(node, TURN_TTL.min(lost_after)).await? {
        return Ok(());
    }
    let (beats, members) = tokio::join!(directory::hosts(broker), directory::members(broker));
    let (beats, members) = (beats?, members?);
    let now = outlast_job::clock::now_ms();
    let limit = u64::try_from(lost_after.as_millis()).unwrap_or(u64::MAX);
    let is_lost = |host: &str| {
        let seen = members.iter().find(|member| member.host == host).map_or(0, |member| member.seen);
        !beats.contains_key(host) && now.saturating_sub(seen) >= limit
    };
    for record in super::all(broker).await? {
        // Only a host of the same label may order it again.
        if is_due(&record) && node.labels.contains(&record.order.label) && is_lost(&record.host) {
            let _ = super::resolve(broker, &record.order.id, Decision::Again).await;
        }
    }
    Ok(())
}

/// Whether nobody else looks now: then nobody does for a while.
async fn is_my_turn(node: &Node, ttl: Duration) -> Result<bool, Failure> {
    let orders = node.broker.orders().await?;
    let found = orders.entry(TURN).await.map_err(|error| broken("cannot look whose turn it is", error))?;
    let revision = match found {
        Some(turn) if !turn.value.is_empty() => return Ok(false),
        // What is left of a key whose time was over.
        Some(marker) => marker.revision,
        None => 0,
    };
    let mine = PublishMessage::build()
        .payload(Bytes::copy_from_slice(node.host.as_bytes()))
        .expected_last_subject_sequence(revision)
        .ttl(ttl);
    let sent = node.broker.streams.send_publish(format!("$KV.{}.{TURN}", names::ORDERS), mine).await;
    let sent = sent.map_err(|error| broken("cannot take a turn", error))?;
    // Refused: somebody was faster.
    Ok(sent.await.is_ok())
}

/// Whether an order of a host that is lost is ordered again, by its own rule. One that may have run is, only if it says so.
fn is_due(record: &Record) -> bool {
    match (&record.stage, record.order.retry) {
        (Stage::Claimed | Stage::Starting | Stage::Started { .. } | Stage::Unknown { .. }, Retry::Always) => {
            true
        }
        // Its host asks before it starts such an order, and finds that it is not its own any more.
        (Stage::Claimed, Retry::IfNotStarted) => true,
        (Stage::Claimed, Retry::Never) => false,
        (
            Stage::Starting | Stage::Started { .. } | Stage::Unknown { .. },
            Retry::Never | Retry::IfNotStarted,
        ) => false,
        (
            Stage::Ended { .. } | Stage::Cancelled { .. },
            Retry::Never | Retry::IfNotStarted | Retry::Always,
        ) => false,
    }
}
