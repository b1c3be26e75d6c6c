//! `outlast node`: joins this machine to a fleet. What comes from there is judged by this machine's own policy, as over a relay.

use std::path::Path;
use std::sync::Arc;

use outlast_cli::NodeArgs;
use outlast_fleet::broker::{Broker, Patience};
use outlast_fleet::config::FleetFile;
use outlast_fleet::machine::LocalMachine;
use outlast_fleet::names::token;
use outlast_fleet::node::{self, FOLDER, Node, NodeOptions};
use outlast_fleet::scrape;
use outlast_job::client::signals::{Signal, Signals};
use outlast_job::{Failure, Kind, Outlast};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::process::Pid;

use super::relay::HostJudge;
use crate::output::Output;

const PID: &str = "pid";

pub(super) fn node(outlast: &Outlast, args: &NodeArgs, out: &mut Output) -> Result<i32, Failure> {
    let home = outlast.home().path();
    if args.drain {
        return drain(&home.join(FOLDER), out);
    }
    let mut file = FleetFile::load()?.unwrap_or_default();
    if !args.nats.is_empty() {
        file.nats.clone_from(&args.nats);
    }
    let mut me = file.host()?;
    if let Some(name) = &args.name {
        me.name = token("host name", name)?;
    }
    let given = file.host.clone().unwrap_or_default();
    let labels = if args.labels.is_empty() { given.labels } else { args.labels.clone() };
    labels.iter().try_for_each(|label| token("label", label).map(drop))?;
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    // Where every label is a slot of this machine, there are as many orders at a time as these have places.
    let places = |label: &String| outlast.settings().slots.get(label).map(|places| *places as usize);
    let in_slots = labels.iter().map(places).sum::<Option<usize>>().filter(|places| *places > 0);
    let slots = args.slots.or(given.slots).or(in_slots).unwrap_or(processors);
    let shared = labels.iter().filter(|label| places(label).is_some()).cloned().collect();
    let judge = Arc::new(HostJudge::open(outlast)?);
    let machine = Arc::new(LocalMachine::new(outlast.clone(), judge));
    let signals = Signals::catch(&[Signal::TERM, Signal::INT, Signal::HUP, Signal::USR1])
        .map_err(|error| Failure::system("cannot catch signals", error))?;
    let broker = Broker::connect(&file, me, Patience::Wait)?;
    let options = NodeOptions { labels, slots, shared, home: home.to_owned() };
    let (node, _lock) = Node::new(broker, machine, options)?;
    std::fs::write(home.join(FOLDER).join(PID), std::process::id().to_string())
        .map_err(|error| Failure::system("cannot write the node's file", error))?;
    if let (Some(address), Some(token)) = (args.metrics, &args.metrics_token) {
        let at = scrape::serve(&node, address, token)?;
        out.talk(&format!("outlast: metrics at http://{at}/metrics"));
    }
    let told = Arc::clone(&node);
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || obey(&signals, &told))
        .map_err(|error| Failure::system("cannot start a thread", error))?;
    out.talk(&format!("outlast: {} is a node of the fleet now, with {} slots", node.host, node.slots));
    node::run(&node)?;
    Ok(0)
}

/// SIGUSR1 drains, the others end.
fn obey(signals: &Signals, node: &Node) {
    loop {
        let _ = poll(&mut [PollFd::new(signals, PollFlags::IN)], None);
        for signal in signals.take() {
            if signal == Signal::USR1 {
                node.drain();
            } else {
                node.stop.notify_one();
            }
        }
    }
}

/// Lets the node that runs here finish what it works on; returns when it has left.
fn drain(folder: &Path, out: &mut Output) -> Result<i32, Failure> {
    let none =
        || Failure::new(Kind::NotRunning, "no node runs for this home").hint("start one: outlast node");
    let lock = std::fs::File::open(folder.join("lock")).map_err(|_| none())?;
    if flock(&lock, FlockOperation::NonBlockingLockShared).is_ok() {
        return Err(none());
    }
    let text = std::fs::read_to_string(folder.join(PID)).unwrap_or_default();
    let pid = text.trim().parse().ok().and_then(Pid::from_raw).ok_or_else(none)?;
    rustix::process::kill_process(pid, rustix::process::Signal::USR1)
        .map_err(|error| Failure::system("cannot tell the node", error))?;
    out.aside("outlast: the node takes no more orders; waiting until it has none");
    flock(&lock, FlockOperation::LockShared)
        .map_err(|error| Failure::system("cannot wait for the node", error))?;
    if out.json {
        out.value(&serde_json::json!({ "drained": true }));
    } else {
        out.line("the node has left the fleet; jobs that were started otherwise go on");
    }
    Ok(0)
}
