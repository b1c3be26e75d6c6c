//! What operators watch, in the text form that Prometheus reads.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use crate::directory::Need;
use crate::node::Node;

/// What a node tells.
#[must_use]
pub fn of_node(node: &Node) -> String {
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, rows: &[(String, u64)]| {
        let _ = writeln!(text, "# HELP outlast_{name} {help}\n# TYPE outlast_{name} {kind}");
        for (labels, value) in rows {
            let _ = writeln!(text, "outlast_{name}{labels} {value}");
        }
    };
    let plain = |value: u64| vec![(String::new(), value)];
    let jobs: Vec<(String, u64)> = Need::ALL
        .iter()
        .zip(node.totals.now())
        .map(|(need, count)| (format!("{{need=\"{}\"}}", need.word()), u64::from(count)))
        .collect();
    family("jobs", "gauge", "Jobs of this host by what they need.", &jobs);
    let counts = &node.counts;
    let count = |count: &std::sync::atomic::AtomicU64| plain(count.load(Ordering::Relaxed));
    family("events_published_total", "counter", "Events that the broker has taken.", &count(&counts.events));
    family(
        "summaries_published_total",
        "counter",
        "Summaries that the broker has taken.",
        &count(&counts.summaries),
    );
    family("orders_claimed_total", "counter", "Orders that this host has claimed.", &count(&counts.claimed));
    family("orders_started_total", "counter", "Orders that this host has started.", &count(&counts.started));
    family("orders_ended_total", "counter", "Orders of this host whose job has ended.", &count(&counts.done));
    family("pipes_total", "counter", "Connections of users to this host.", &count(&counts.pipes));
    let used = node.used.load(Ordering::Relaxed) as u64;
    family("slots", "gauge", "Orders that this host works on at a time.", &plain(node.slots as u64));
    family("slots_used", "gauge", "Orders that this host works on now.", &plain(used));
    let connected = node.broker.client.connection_state() == async_nats::connection::State::Connected;
    family("broker_connected", "gauge", "Whether the broker is reached.", &plain(u64::from(connected)));
    text
}
