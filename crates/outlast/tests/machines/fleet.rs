//! A fleet with a real broker: nodes, far jobs, events, and orders that run once whoever dies.

mod broker;
mod doors;
mod events;
mod identity;
mod jobs;
mod operators;
mod orders;

use std::process::{Child, Command, Stdio};

use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually};
use rustix::process::{Pid, Signal, kill_process};

use super::sandbox;
pub(super) use broker::Broker;

/// A machine of a fleet: a home of its own, and its node.
struct Host {
    box_: Sandbox,
    name: String,
    node: Option<Child>,
}

impl Host {
    /// A machine whose node runs.
    fn join(broker: &Broker, name: &str, options: &[&str]) -> Self {
        let mut host = Self { box_: sandbox(), name: name.to_owned(), node: None };
        broker.tell(&host.box_, name);
        host.start(options, &[]);
        host
    }

    fn start(&mut self, options: &[&str], env: &[(&str, &str)]) {
        let mut command: Command = self.box_.command(self.box_.program());
        command.args(["node", "--name", &self.name]).args(options).envs(env.iter().copied());
        let log = std::fs::File::create(self.box_.root().join("node.log")).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.node = Some(command.spawn().unwrap());
    }

    fn pid(&self) -> Pid {
        Pid::from_child(self.node.as_ref().unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Ends the node as a crash does.
    fn kill(&mut self) {
        if let Some(mut node) = self.node.take() {
            let _ = node.kill();
            let _ = node.wait();
        }
    }

    /// Waits until the node has ended by itself.
    fn gone(&mut self) {
        let mut node = self.node.take().unwrap();
        eventually("the node has ended", TEST_TIMEOUT, || match node.try_wait().unwrap() {
            Some(_) => Ok(()),
            None => Err("it runs"),
        });
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits until a user sees these hosts, and no others.
fn sees(user: &Sandbox, hosts: &[&str]) {
    eventually(&format!("{hosts:?} are there"), TEST_TIMEOUT, || {
        let status = user.json(["fleet", "status"]);
        let all = status["hosts"].as_array().unwrap();
        let mut here: Vec<&str> = all
            .iter()
            .filter(|host| host["reachable"] == true)
            .map(|host| host["host"].as_str().unwrap())
            .collect();
        here.sort_unstable();
        if here == hosts { Ok(()) } else { Err(status) }
    });
}
