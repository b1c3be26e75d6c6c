//! Many machines over a NATS broker with JetStream. The truth stays on each host: the broker has who is there, short summaries, events
//! and a queue of orders, and carries the bytes of links. It never has logs, screens, environments or secrets by itself.
//!
//! [`node`] joins a machine. [`everywhere::Everywhere`] lets every door reach the hosts of the fleet as `host/job`. [`directory`] reads who
//! is there and what runs, [`follow`] the events of all hosts, [`queue`] orders work that any host with a label may do. Names of subjects,
//! buckets and streams are in [`names`]; `docs/formats/fleet.md` describes what is in them.

pub mod broker;
pub mod config;
pub mod directory;
pub mod everywhere;
pub mod follow;
pub mod identity;
pub mod logs;
pub mod machine;
pub mod metrics;
pub mod names;
pub mod node;
pub mod overview;
pub mod pipe;
pub mod queue;
pub mod scrape;
pub mod store;
pub mod telemetry;
