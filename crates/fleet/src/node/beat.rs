//! The heartbeat: who is there, what for, and how busy it is.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;

use super::{Node, RETRY};
use crate::directory::{Beat, Member};
use crate::names;

/// How often a host says that it is there.
pub const EVERY: Duration = Duration::from_secs(5);

/// How often it is noted when a host was seen, in heartbeats: for those that look for it when it is gone.
const NOTE_EVERY: u32 = 12;

/// Says it until the task is ended.
pub(super) async fn say(node: Arc<Node>) {
    let hosts = loop {
        match node.broker.hosts().await {
            Ok(hosts) => break hosts,
            Err(_) => tokio::time::sleep(RETRY).await,
        }
    };
    let (mut count, mut is_noted) = (0_u32, false);
    let subject = format!("$KV.{}.{}", names::HOSTS, node.host);
    drop(hosts);
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let beat = serde_json::to_vec(&now(&node)).unwrap_or_default();
        // Nobody asks whether it was taken: one that is not is followed by the next.
        let _ = node.broker.client.publish(subject.clone(), Bytes::from(beat)).await;
        count += 1;
        // Whether this host was here before is asked first by who recovers its orders.
        if node.is_recovered.load(Ordering::Relaxed) && (!is_noted || count.is_multiple_of(NOTE_EVERY)) {
            is_noted = note(&node, false).await;
        }
    }
}

/// Notes that this host is a member, and when it was seen.
pub(crate) async fn note(node: &Node, left: bool) -> bool {
    let Ok(members) = node.broker.members().await else { return false };
    let member = Member {
        host: node.host.clone(),
        labels: node.labels.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        seen: outlast_job::clock::now_ms(),
        left,
    };
    let value = Bytes::from(serde_json::to_vec(&member).unwrap_or_default());
    members.put(&node.host, value).await.is_ok()
}

/// Says that it leaves, if the broker is there to hear it.
pub(super) async fn leave(node: &Node) {
    let say = async {
        note(node, true).await;
        if let Ok(hosts) = node.broker.hosts().await {
            let _ = hosts.purge(&node.host).await;
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(2), say).await;
}

/// What the host says now.
#[must_use]
pub fn now(node: &Node) -> Beat {
    Beat {
        host: node.host.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        boot: node.machine.boot(),
        labels: node.labels.clone(),
        slots: node.slots,
        used: node.used.load(Ordering::Relaxed),
        load: load(),
        processors: std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get),
        jobs: node.totals.now(),
        draining: node.is_draining(),
        at: outlast_job::clock::now_ms(),
    }
}

/// The load of the last minute, in hundredths.
fn load() -> u32 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split(' ').next().unwrap_or_default();
    let (whole, part) = first.split_once('.').unwrap_or((first, "0"));
    whole.parse::<u32>().unwrap_or(0) * 100 + part.parse::<u32>().unwrap_or(0)
}
