//! Many hosts in one process, for measurements: the real node, with jobs that are only in memory. An order starts nothing and ends at once.
//!
//! `fleet_hosts URL COUNT JOBS LABEL SLOTS REPLICAS` says `ready` when all are there. A line `report` on standard input is answered by how many orders
//! were started and how long that took from the moment that an order's name says (`AT-microseconds`), a line `lose` ends one host as a crash does.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program for measurements")]

use std::io::BufRead;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use outlast_fleet::broker::{Broker, Patience, runtime};
use outlast_fleet::config::{FleetFile, Identity};
use outlast_fleet::machine::{Ended, Knock, Machine, OutboxEvent};
use outlast_fleet::node::{Node, NodeOptions, begin};
use outlast_job::request::{JobSpec, ListedJob, Summary};
use outlast_job::{Failure, Handle};
use outlast_protocol::lifecycle::{EndedBy, Outcome, Receipt, State};

/// How long orders took from being given to being started, in microseconds.
type Times = Arc<Mutex<Vec<u64>>>;

struct Simulated {
    jobs: u64,
    next: AtomicU64,
    times: Times,
}

fn micros() -> u64 {
    u64::try_from(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros()).unwrap()
}

fn completed() -> State {
    State::ended(Receipt {
        outcome: Outcome::Exited { code: 0 },
        ended_at: micros() / 1000,
        ended_by: EndedBy::Itself,
        left_behind: Vec::new(),
        used: None,
    })
}

impl Machine for Simulated {
    fn serve(&self, _pipe: UnixStream, _user: String) {}

    fn watch(&self, _jobs: Knock, _outboxes: Knock) -> Result<(), Failure> {
        Ok(())
    }

    fn jobs(&self) -> Vec<ListedJob> {
        let job = |number: u64| ListedJob {
            job: Summary {
                handle: Handle::new(number),
                name: Some(format!("job-{number}")),
                session: "s".into(),
                command: format!("./work.sh --part {number} --of many --with-some-more-options"),
                description: None,
                cwd: "/work".into(),
                created_at: 1_800_000_000_000 + number,
                pid: Some(1000),
                state: if number.is_multiple_of(10) {
                    State::Running { ending: None }
                } else {
                    completed_at(number)
                },
            },
            log_end: 0,
            now: None,
            last_line: String::new(),
            left_behind: Vec::new(),
            pinned: false,
        };
        (1..=self.jobs).map(job).collect()
    }

    fn outboxes(&self) -> Vec<String> {
        Vec::new()
    }

    fn untold(&self, _session: &str) -> Vec<OutboxEvent> {
        Vec::new()
    }

    fn told(&self, _session: &str, _n: u64) {}

    fn start(&self, _order: &str, _user: &str, spec: JobSpec) -> Result<Handle, Failure> {
        let given = spec.name.as_deref().and_then(|name| name.strip_prefix("AT-")?.parse::<u64>().ok());
        if let Some(given) = given {
            self.times.lock().unwrap().push(micros().saturating_sub(given));
        }
        Ok(Handle::new(self.next.fetch_add(1, Ordering::Relaxed)))
    }

    fn when_ended(&self, _job: Handle, ended: Ended) {
        ended(completed());
    }

    fn kill(&self, _job: Handle, _user: &str) {}

    fn log(&self, _job: Handle, _user: &str, _into: UnixStream) -> Result<(), Failure> {
        Err(Failure::usage("its jobs print nothing"))
    }

    fn boot(&self) -> String {
        "simulated".into()
    }
}

fn completed_at(number: u64) -> State {
    State::ended(Receipt {
        outcome: Outcome::Exited { code: 0 },
        ended_at: 1_800_000_000_000 + number,
        ended_by: EndedBy::Itself,
        left_behind: Vec::new(),
        used: None,
    })
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, count, jobs, label, slots, replicas] = words.as_slice() else {
        return println!("fleet_hosts URL COUNT JOBS LABEL SLOTS REPLICAS");
    };
    let file = FleetFile {
        nats: url.split(',').map(str::to_owned).collect(),
        replicas: replicas.parse().ok(),
        ..FleetFile::default()
    };
    let (count, jobs, slots): (usize, u64, usize) =
        (count.parse().unwrap(), jobs.parse().unwrap(), slots.parse().unwrap());
    let shared = runtime(2).unwrap();
    let times = Times::default();
    let folder = tempfile::tempdir().unwrap();
    let mut hosts = Vec::new();
    for number in 0..count {
        let me = Identity { name: format!("sim{number}"), key: None, is_host: true };
        let broker = Broker::connect_on(Arc::clone(&shared), &file, me, Patience::Fail).unwrap();
        let machine = Simulated { jobs, next: AtomicU64::new(jobs + 1), times: Arc::clone(&times) };
        let home: PathBuf = folder.path().join(number.to_string());
        std::fs::create_dir(&home).unwrap();
        let labels = if label.is_empty() { Vec::new() } else { vec![label.clone()] };
        let (node, lock) =
            Node::new(broker, Arc::new(machine), NodeOptions { labels, slots, shared: Vec::new(), home })
                .unwrap();
        hosts.push((begin(&node).unwrap(), node, lock));
    }
    println!("ready");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match line.as_str() {
            "report" => {
                let mut times = std::mem::take(&mut *times.lock().unwrap());
                times.sort_unstable();
                let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or(0);
                println!("{{\"started\": {}, \"p50_us\": {}, \"p99_us\": {}}}", times.len(), at(50), at(99));
            }
            "lose" => {
                if let Some((tasks, node, _lock)) = hosts.pop() {
                    tasks.iter().for_each(tokio::task::JoinHandle::abort);
                    println!("{}", node.host);
                }
            }
            _ => {}
        }
    }
}
