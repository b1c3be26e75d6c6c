//! What operators watch of a node, in the text form that Prometheus reads: its jobs, its orders, its place in the fleet.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use outlast_job::census::Text;

use crate::directory::{self, Need};
use crate::node::Node;
use crate::queue;

/// How long the broker may take to say how the fleet is: a scraper does not wait for long.
const FLEET_TIMEOUT: Duration = Duration::from_secs(2);

/// What a node tells.
pub async fn of_node(node: &std::sync::Arc<Node>) -> String {
    let machine = std::sync::Arc::clone(&node.machine);
    let jobs = tokio::task::spawn_blocking(move || machine.metrics()).await.unwrap_or_default();
    let mut text = Text(jobs);
    let needs: BTreeMap<&str, u64> = Need::ALL
        .iter()
        .zip(node.totals.now())
        .map(|(need, count)| (need.word(), u64::from(count)))
        .collect();
    text.labelled("jobs", "gauge", "Jobs of this host by what they need.", "need", &needs);
    let counts = &node.counts;
    let mut count = |name: &str, about: &str, count: &AtomicU64| {
        text.plain(name, "counter", about, count.load(Ordering::Relaxed));
    };
    count("events_published_total", "Events that the broker has taken.", &counts.events);
    count("summaries_published_total", "Summaries that the broker has taken.", &counts.summaries);
    count("orders_claimed_total", "Orders that this host has claimed.", &counts.claimed);
    count("orders_started_total", "Orders that this host has started.", &counts.started);
    count("orders_ended_total", "Orders of this host whose job has ended.", &counts.done);
    count("pipes_total", "Connections of users to this host.", &counts.pipes);
    let used = node.used.load(Ordering::Relaxed);
    text.plain("slots", "gauge", "Orders that this host works on at a time.", node.slots);
    text.plain("slots_used", "gauge", "Orders that this host works on now.", used);
    let connected = node.broker.client.connection_state() == async_nats::connection::State::Connected;
    text.plain("broker_connected", "gauge", "Whether the broker is reached.", u64::from(connected));
    if let Ok((hosts, queues)) = tokio::time::timeout(FLEET_TIMEOUT, of_fleet(node)).await {
        if let Some(hosts) = hosts {
            text.labelled("fleet_hosts", "gauge", "Hosts of the fleet.", "state", &hosts);
        }
        text.labelled("queue_waiting", "gauge", "Orders that wait, by label.", "label", &queues);
    }
    text.0
}

/// How many hosts are there and away, and how many orders of this host's labels wait.
async fn of_fleet(node: &Node) -> (Option<BTreeMap<&'static str, u64>>, BTreeMap<String, u64>) {
    let (beats, members) = tokio::join!(directory::hosts(&node.broker), directory::members(&node.broker));
    let hosts = match (beats, members) {
        (Ok(beats), Ok(members)) => {
            let away = members.iter().filter(|member| !member.left && !beats.contains_key(&member.host));
            Some(BTreeMap::from([("here", beats.len() as u64), ("unreachable", away.count() as u64)]))
        }
        (_, _) => None,
    };
    let mut queues = BTreeMap::new();
    for label in &node.labels {
        if let Some(waiting) = queue::waiting(&node.broker, label).await {
            queues.insert(label.clone(), waiting);
        }
    }
    (hosts, queues)
}
