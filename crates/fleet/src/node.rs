//! A machine in the fleet: one process that says that it is there, tells what changes, answers who asks, and works on orders. It may be
//! killed and started again at any time: what it must not forget is on the disk, and jobs do not need it.

pub mod beat;
pub mod events;
pub mod summaries;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use outlast_protocol::{Failure, Kind};
use rustix::fs::{FlockOperation, flock};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;

use crate::broker::Broker;
use crate::machine::Machine;
use crate::queue::rules;
use crate::queue::worker::{self, Worker};
use crate::{logs, pipe};

/// Below the home: what a node must not forget.
pub const FOLDER: &str = "fleet";
/// How long a node waits before it tries again what the broker did not take.
pub(crate) const RETRY: Duration = Duration::from_secs(1);

/// What a node knows of itself, and all of its tasks share.
pub struct Node {
    /// Its name.
    pub host: String,
    /// What it is good for.
    pub labels: Vec<String>,
    /// How many orders it works on at a time.
    pub slots: usize,
    /// Labels that are slots of the machine, too: their orders share its places with what is started there otherwise.
    pub shared: Vec<String>,
    /// The connection.
    pub broker: Broker,
    /// The machine.
    pub machine: Arc<dyn Machine>,
    /// Where its own files are.
    pub folder: PathBuf,
    /// How many orders it works on.
    pub used: AtomicUsize,
    /// It takes no more orders.
    pub draining: AtomicBool,
    /// What an earlier process has left is dealt with.
    pub is_recovered: AtomicBool,
    /// Rung when jobs may have changed.
    pub jobs_changed: Notify,
    /// Rung when an outbox may have changed.
    pub outboxes_changed: Notify,
    /// Rung when a slot is free, or the node drains.
    pub slot_free: Notify,
    /// Rung when it is to end.
    pub stop: Notify,
    /// How many jobs there are in each class of need.
    pub totals: summaries::Totals,
    /// What it has done since it began.
    pub counts: Counts,
    /// How many whole logs it may bring to the broker at once.
    pub(crate) logs_at_once: Semaphore,
}

/// What a node has done since it began, for its operators.
#[derive(Debug, Default)]
pub struct Counts {
    /// Events that the broker has taken.
    pub events: AtomicU64,
    /// Summaries that the broker has taken.
    pub summaries: AtomicU64,
    /// Orders that were claimed.
    pub claimed: AtomicU64,
    /// Orders that were started.
    pub started: AtomicU64,
    /// Orders whose job has ended.
    pub done: AtomicU64,
    /// Pipes that were opened.
    pub pipes: AtomicU64,
}

impl Counts {
    /// One more.
    pub fn add(count: &AtomicU64) {
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// How a node is set up.
pub struct NodeOptions {
    /// What it is good for.
    pub labels: Vec<String>,
    /// How many orders it works on at a time.
    pub slots: usize,
    /// Labels that are slots of the machine, too.
    pub shared: Vec<String>,
    /// The folder of its jobs.
    pub home: PathBuf,
}

impl Node {
    /// Gets ready.
    ///
    /// # Errors
    /// When another node serves these jobs, or its folder cannot be made.
    pub fn new(
        broker: Broker,
        machine: Arc<dyn Machine>,
        options: NodeOptions,
    ) -> Result<(Arc<Self>, Lock), Failure> {
        let folder = options.home.join(FOLDER);
        let lock = Lock::take(&folder)?;
        let node = Self {
            host: broker.me.name.clone(),
            labels: options.labels,
            slots: options.slots,
            shared: options.shared,
            broker,
            machine,
            folder,
            used: AtomicUsize::new(0),
            draining: AtomicBool::new(false),
            is_recovered: AtomicBool::new(false),
            jobs_changed: Notify::new(),
            outboxes_changed: Notify::new(),
            slot_free: Notify::new(),
            stop: Notify::new(),
            totals: summaries::Totals::default(),
            counts: Counts::default(),
            logs_at_once: Semaphore::new(logs::AT_ONCE),
        };
        Ok((Arc::new(node), lock))
    }

    /// Takes no more orders, and leaves when it works on none.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
        self.slot_free.notify_one();
    }

    /// Whether it takes no more orders.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}

/// Held while a node serves a home: there is one at a time.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    fn take(folder: &Path) -> Result<Self, Failure> {
        let broken =
            |error: std::io::Error| Failure::system(format!("cannot use {}", folder.display()), error);
        std::fs::create_dir_all(folder).map_err(broken)?;
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(folder.join("lock"))
            .map_err(broken)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { _file: file }),
            Err(rustix::io::Errno::AGAIN) => {
                Err(Failure::new(Kind::Usage, "another node serves these jobs already")
                    .hint("there is one for each home; end it first"))
            }
            Err(error) => Err(broken(error.into())),
        }
    }
}

/// Serves until [`Node::stop`] is rung. A broker that is gone is waited for; local jobs do not notice.
///
/// # Errors
/// When the machine cannot tell what changes.
pub fn run(node: &Arc<Node>) -> Result<(), Failure> {
    let tasks = begin(node)?;
    node.broker.wait(node.stop.notified());
    for task in &tasks {
        task.abort();
    }
    node.broker.wait(beat::leave(node));
    Ok(())
}

/// Begins to serve: the tasks that do so.
///
/// # Errors
/// When the machine cannot tell what changes.
pub fn begin(node: &Arc<Node>) -> Result<Vec<JoinHandle<()>>, Failure> {
    let (jobs, outboxes) = (Arc::clone(node), Arc::clone(node));
    node.machine.watch(
        Arc::new(move || jobs.jobs_changed.notify_one()),
        Arc::new(move || outboxes.outboxes_changed.notify_one()),
    )?;
    node.jobs_changed.notify_one();
    node.outboxes_changed.notify_one();
    Ok(vec![
        node.broker.spawn(beat::say(Arc::clone(node))),
        node.broker.spawn(summaries::tell(Arc::clone(node))),
        node.broker.spawn(events::tell(Arc::clone(node))),
        node.broker.spawn(answer(Arc::clone(node))),
        node.broker.spawn(worker::work(Worker::new(Arc::clone(node)))),
        node.broker.spawn(rules::apply(Arc::clone(node))),
    ])
}

/// Answers who asks. The subscription outlives a broker that comes back.
async fn answer(node: Arc<Node>) {
    loop {
        let serving = Arc::clone(&node);
        let serve = Arc::new(move |pipe, user| {
            Counts::add(&serving.counts.pipes);
            serving.machine.serve(pipe, user);
        });
        let putting = Arc::clone(&node);
        let put_log: pipe::PutLog =
            Arc::new(move |user, job| Box::pin(logs::put(Arc::clone(&putting), user, job)));
        pipe::answer_all(node.broker.client.clone(), node.host.clone(), serve, put_log).await;
        tokio::time::sleep(RETRY).await;
    }
}
