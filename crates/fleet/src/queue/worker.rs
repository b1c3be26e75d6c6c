//! A host that works on orders: takes them when it has a free slot, claims, acknowledges and starts them, and tells how they end.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::kv::{CreateErrorKind, Store};
use async_nats::jetstream::message::{AckKind, PublishMessage};
use bytes::Bytes;
use outlast_job::Handle;
use outlast_protocol::lifecycle::State;
use outlast_protocol::{Failure, Kind, Slot};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::claims::{Claim, Claims};
use super::polls::{Polls, consumers, heed_leaders};
use super::{End, Order, Record, Retry, Stage, change, look, value};
use crate::broker::broken;
use crate::names;
use crate::node::{Counts, Node, RETRY, beat};

/// How long the broker waits for an acknowledgement before it offers an order again.
pub(super) const ACK_WAIT: Duration = Duration::from_secs(15);
/// How long a claim of another host is left alone before the order is offered again.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How long the broker may take to take an acknowledgement.
const ACK_TIMEOUT: Duration = Duration::from_secs(3);

/// What the tasks of a worker share.
pub struct Worker {
    node: Arc<Node>,
    /// Orders that this process works on.
    busy: Mutex<BTreeSet<String>>,
}

/// A worker with its place in the fleet.
struct Shop {
    worker: Worker,
    orders: Store,
    claims: Claims,
}

impl Worker {
    /// For a node.
    #[must_use]
    pub fn new(node: Arc<Node>) -> Self {
        Self { node, busy: Mutex::default() }
    }
}

/// Works until the task is ended.
pub async fn work(worker: Worker) {
    let shop = loop {
        let orders = worker.node.broker.orders().await;
        let results = worker.node.broker.results().await;
        match (orders, results, Claims::open(&worker.node.folder)) {
            (Ok(orders), Ok(_), Ok(claims)) => break Arc::new(Shop { worker, orders, claims }),
            _ => tokio::time::sleep(RETRY).await,
        }
    };
    while !shop.recover().await {
        tokio::time::sleep(RETRY).await;
    }
    let node = Arc::clone(&shop.worker.node);
    // From now on it is known that this host was here. Should that fail, the heartbeat does it.
    let _ = beat::note(&node, false).await;
    node.is_recovered.store(true, Ordering::Relaxed);
    if node.labels.is_empty() || node.slots == 0 {
        return until_drained(&shop).await;
    }
    let consumers = loop {
        match consumers(&node).await {
            Ok(consumers) => break consumers,
            Err(_) => tokio::time::sleep(RETRY).await,
        }
    };
    let _heeding: JoinSet<()> =
        node.labels.iter().map(|label| heed_leaders(Arc::clone(&node), label.clone())).collect();
    let mut polls = Polls::new(&consumers);
    while !node.is_draining() {
        let free = node.slots.saturating_sub(node.used.load(Ordering::Relaxed));
        if free > 0 && polls.has_more {
            let there = polls.there(free).await;
            if !there.is_empty() {
                shop.begin(there);
                continue;
            }
        }
        if free > 0 {
            polls.ask();
        }
        tokio::select! {
            came = polls.came() => {
                if free > 0 && !node.is_draining() {
                    shop.begin(came);
                } else {
                    give_back(&came).await;
                }
            }
            () = node.slot_free.notified() => {}
            () = node.broker.changed.notified() => polls.ask_anew(),
        }
    }
    // What was asked for may come yet: others can have it at once.
    drop(polls);
    until_drained(&shop).await;
}

/// Another host may have them.
async fn give_back(messages: &[Message]) {
    for message in messages {
        let _ = message.ack_with(AckKind::Nak(None)).await;
    }
}

/// Ends the node when it drains and has told how everything ended.
async fn until_drained(shop: &Shop) {
    let node = shop.node();
    while !node.is_draining() || shop.is_busy() {
        node.slot_free.notified().await;
    }
    node.stop.notify_one();
}

impl Shop {
    /// Begins to work on orders, each in a slot.
    fn begin(self: &Arc<Self>, messages: Vec<Message>) {
        for message in messages {
            self.node().used.fetch_add(1, Ordering::Relaxed);
            let shop = Arc::clone(self);
            tokio::spawn(async move { shop.handle(message).await });
        }
    }

    fn node(&self) -> &Arc<Node> {
        &self.worker.node
    }

    fn is_new(&self, id: &str) -> bool {
        self.worker.busy.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned())
    }

    fn is_done_with(&self, id: &str) {
        self.worker.busy.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        self.node().slot_free.notify_one();
    }

    fn is_busy(&self) -> bool {
        !self.worker.busy.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn free_slot(&self) {
        self.node().used.fetch_sub(1, Ordering::Relaxed);
        self.node().slot_free.notify_one();
    }

    /// Goes on with what an earlier process has begun, and gives back what it has only just claimed. False when the broker does not
    /// answer: nothing was done then that could not be done again.
    async fn recover(self: &Arc<Self>) -> bool {
        let boot = self.node().machine.boot();
        let Ok(doubtful) = self.doubtful(&boot).await else { return false };
        for id in doubtful {
            if self.claims.find(&id).is_none() && self.settle_without_file(&id).await.is_err() {
                return false;
            }
            self.claims.forget_intent(&id);
        }
        self.claims.note_boot(&boot);
        for claim in self.claims.all() {
            let id = claim.order.id.clone();
            if !self.is_new(&id) {
                continue;
            }
            self.node().used.fetch_add(1, Ordering::Relaxed);
            let shop = Arc::clone(self);
            tokio::spawn(async move {
                shop.resume(claim).await;
                shop.is_done_with(&id);
            });
        }
        true
    }

    /// Orders that may be claimed for this host without a file that says so. A process that was killed leaves a note of each that it
    /// was about to claim; after a crash of the machine, or without its folder, all orders are looked at.
    async fn doubtful(&self, boot: &str) -> Result<Vec<String>, Failure> {
        if self.claims.boot().as_deref() == Some(boot) {
            return Ok(self.claims.intents());
        }
        let (broker, host) = (&self.node().broker, &self.node().host);
        let members = broker.members().await?;
        let known = members.get(host).await.map_err(|error| broken("cannot read members", error))?;
        if known.is_none() && self.claims.boot().is_none() {
            // It joins for the first time.
            return Ok(Vec::new());
        }
        let records = super::all(broker).await?;
        let is_ours = |record: &Record| record.host == *host && !record.is_over();
        Ok(records.into_iter().filter(is_ours).map(|record| record.order.id).collect())
    }

    /// No claim is on the disk: one that was not started is given back, and of any other nothing is known.
    async fn settle_without_file(&self, id: &str) -> Result<(), Failure> {
        let host = &self.node().host;
        let Some((mut record, revision)) = look(&self.orders, id).await? else { return Ok(()) };
        if record.host != *host {
            return Ok(());
        }
        match &record.stage {
            Stage::Claimed => {
                let purged = self.orders.purge_expect_revision(id, Some(revision)).await;
                purged.map_err(|error| broken("cannot give an order back", error))
            }
            Stage::Starting | Stage::Started { .. } => {
                record.stage = Stage::Unknown { why: format!("{host} has lost what it knew of it") };
                change(&self.node().broker, &record, revision).await.map(drop)
            }
            Stage::Unknown { .. } | Stage::Ended { .. } | Stage::Cancelled { .. } => Ok(()),
        }
    }

    /// Goes on with a claim of an earlier process.
    async fn resume(&self, mut claim: Claim) {
        let id = claim.order.id.clone();
        let revision = loop {
            match look(&self.orders, &id).await {
                Ok(Some((record, revision))) if record.host == self.node().host && !record.is_over() => {
                    break revision;
                }
                Ok(Some((record, _))) => {
                    // Settled by somebody else meanwhile.
                    if let (Some(job), Stage::Cancelled { by }) = (claim.job, &record.stage) {
                        self.node().machine.kill(Handle::new(job), by);
                    }
                    claim.settle();
                    return self.free_slot();
                }
                Ok(None) => match self.orders.create(&id, value(&self.claimed(&claim.order))).await {
                    Ok(revision) => break revision,
                    Err(_) => tokio::time::sleep(RETRY).await,
                },
                Err(_) => tokio::time::sleep(RETRY).await,
            }
        };
        let boot = self.node().machine.boot();
        let is_in_doubt = claim.job.is_none() && claim.starting_in.as_ref().is_some_and(|then| *then != boot);
        if is_in_doubt {
            let why = "its machine was started anew while it was being started".to_owned();
            self.free_slot();
            return self.in_doubt(claim, revision, why).await;
        }
        if claim.starting_in.is_some() {
            claim.starting_in = Some(boot);
        }
        self.carry_out(claim, revision).await;
    }

    fn claimed(&self, order: &Order) -> Record {
        Record {
            order: order.clone(),
            host: self.node().host.clone(),
            boot: self.node().machine.boot(),
            stage: Stage::Claimed,
            since: outlast_job::clock::now_ms(),
        }
    }

    /// An order from the queue. It has a slot.
    async fn handle(&self, message: Message) {
        let Some(order) = order_of(&message) else {
            let _ = message.ack_with(AckKind::Term).await;
            return self.free_slot();
        };
        let id = order.id.clone();
        if !self.is_new(&id) {
            // It is being worked on; whoever does so acknowledges it.
            return self.free_slot();
        }
        match self.claim(&order, &message).await {
            Some((claim, revision)) => self.carry_out(claim, revision).await,
            None => self.free_slot(),
        }
        self.is_done_with(&id);
    }

    /// Claims an order and acknowledges it; none when it is not ours to carry out now.
    async fn claim(&self, order: &Order, message: &Message) -> Option<(Claim, u64)> {
        let nak = |after: Duration| message.ack_with(AckKind::Nak(Some(after)));
        let stage = match self.predecessors(order).await {
            Predecessors::Well => Stage::Claimed,
            Predecessors::NotYet => {
                let _ = nak(wait_for(message)).await;
                return None;
            }
            Predecessors::Failed(because) => Stage::Ended { job: None, end: End::Skipped { because } },
        };
        let record = Record { stage, ..self.claimed(order) };
        // Should we be killed before there is a file, this says what may be claimed.
        tokio::task::block_in_place(|| self.claims.intend(&order.id));
        let revision = match self.orders.create(&order.id, value(&record)).await {
            Ok(revision) => revision,
            Err(error) if error.kind() == CreateErrorKind::AlreadyExists => {
                let (known, revision) = look(&self.orders, &order.id).await.ok().flatten()?;
                let is_mine = known.host == self.node().host;
                match &known.stage {
                    // Its host has it for certain, or it is over.
                    Stage::Ended { .. }
                    | Stage::Cancelled { .. }
                    | Stage::Starting
                    | Stage::Started { .. }
                    | Stage::Unknown { .. } => {
                        self.claims.forget_intent(&order.id);
                        let _ = message.ack().await;
                        return None;
                    }
                    Stage::Claimed if is_mine => revision,
                    Stage::Claimed => {
                        self.claims.forget_intent(&order.id);
                        let _ = nak(LOOK_AGAIN).await;
                        return None;
                    }
                }
            }
            // Whether it is claimed is not known; it is offered again.
            Err(_) => return None,
        };
        if record.is_over() {
            self.claims.forget_intent(&order.id);
            self.tell_result(&record).await;
            let _ = message.ack().await;
            return None;
        }
        Counts::add(&self.node().counts.claimed);
        test_point("claimed");
        let (claims, of, boot) = (self.claims.clone(), order.clone(), self.node().machine.boot());
        // One that may still go to another host is not about to be started yet.
        let starting_in = (order.retry != Retry::IfNotStarted).then_some(boot);
        let made = tokio::task::spawn_blocking(move || match claims.find(&of.id) {
            Some(claim) => Ok(claim),
            None => claims.make(&of, starting_in.as_deref()),
        });
        let Ok(Ok(claim)) = made.await else {
            // This disk takes no claim: another host may have it.
            let _ = self.orders.purge_expect_revision(&order.id, Some(revision)).await;
            let _ = nak(RETRY).await;
            return None;
        };
        test_point("filed");
        // Should the broker not hear it, it offers the order again, and finds it claimed.
        let _ = tokio::time::timeout(ACK_TIMEOUT, message.double_ack()).await;
        test_point("acknowledged");
        Some((claim, revision))
    }

    async fn predecessors(&self, order: &Order) -> Predecessors {
        for id in &order.after {
            match look(&self.orders, id).await {
                Ok(Some((record, _))) if record.is_well() => {}
                Ok(Some((record, _))) if record.is_over() => return Predecessors::Failed(id.clone()),
                Ok(_) | Err(_) => return Predecessors::NotYet,
            }
        }
        Predecessors::Well
    }

    /// Starts a claimed order, and tells how it ends. The slot is free again when its job has ended.
    async fn carry_out(&self, mut claim: Claim, revision: u64) {
        let Ok(revision) = self.announce(&claim, revision).await else {
            self.free_slot();
            return claim.settle();
        };
        let job = match self.start(&mut claim).await {
            Ok(job) => job,
            Err(failure) if failure.kind == Kind::OutcomeUnknown => {
                self.free_slot();
                return self.in_doubt(claim, revision, failure.message).await;
            }
            Err(failure) => {
                self.free_slot();
                let end = End::Refused { why: failure.message };
                return self.over(claim, revision, Stage::Ended { job: None, end }).await;
            }
        };
        let (tell, told) = oneshot::channel();
        self.node().machine.when_ended(
            job,
            Box::new(move |state| {
                let _ = tell.send(state);
            }),
        );
        let mut record = self.claimed(&claim.order);
        record.stage = Stage::Started { job: job.number() };
        let revision = match self.report(&record, revision).await {
            Ok(revision) => revision,
            Err(cancelled_by) => {
                let machine = Arc::clone(&self.node().machine);
                let _ = tokio::task::spawn_blocking(move || machine.kill(job, &cancelled_by)).await;
                self.free_slot();
                return claim.settle();
            }
        };
        let lost = State::Lost { found_at: outlast_job::clock::now_ms(), restarted: false };
        let state = told.await.unwrap_or(lost);
        self.free_slot();
        Counts::add(&self.node().counts.done);
        let end = End::Job { state };
        self.over(claim, revision, Stage::Ended { job: Some(job.number()), end }).await;
    }

    /// An order that may be given to another host while it is not started is started only if the broker still says that it is ours.
    async fn announce(&self, claim: &Claim, revision: u64) -> Result<u64, String> {
        match claim.order.retry {
            Retry::IfNotStarted if claim.starting_in.is_none() && claim.job.is_none() => {
                let record = Record { stage: Stage::Starting, ..self.claimed(&claim.order) };
                self.report(&record, revision).await
            }
            Retry::Never | Retry::IfNotStarted | Retry::Always => Ok(revision),
        }
    }

    async fn start(&self, claim: &mut Claim) -> Result<Handle, Failure> {
        if let Some(job) = claim.job {
            return Ok(Handle::new(job));
        }
        let lost = |_| Failure::new(Kind::OutcomeUnknown, "the node was ended while it started the order");
        if claim.starting_in.is_none() {
            // On the disk before anything runs, as it is for all others since they were claimed.
            let boot = self.node().machine.boot();
            tokio::task::block_in_place(|| claim.starting(&boot))?;
        }
        let machine = Arc::clone(&self.node().machine);
        let Order { id, by, label, mut spec, .. } = claim.order.clone();
        if spec.slot.is_none() && self.node().shared.contains(&label) {
            spec.slot = Some(Slot::new(&label));
        }
        let started =
            tokio::task::spawn_blocking(move || machine.start(&id, &by, spec)).await.map_err(lost)??;
        test_point("started");
        Counts::add(&self.node().counts.started);
        if let Some(noted) = tokio::task::block_in_place(|| claim.started(started.number())) {
            tokio::task::spawn_blocking(move || noted.sync_data());
        }
        Ok(started)
    }

    /// Brings to the broker how far an order has got, however long that takes; who cancelled it, if somebody has.
    async fn report(&self, record: &Record, mut revision: u64) -> Result<u64, String> {
        loop {
            if let Ok(revision) = change(&self.node().broker, record, revision).await {
                return Ok(revision);
            }
            match look(&self.orders, &record.order.id).await {
                // It was taken after all.
                Ok(Some((known, at))) if known.host == record.host && known.stage == record.stage => {
                    return Ok(at);
                }
                Ok(Some((Record { stage: Stage::Cancelled { by }, .. }, _))) => return Err(by),
                Ok(Some((known, at))) if known.host == record.host => {
                    // Nothing changed, and yet it was refused: a broker whose disk is full, for example.
                    if at == revision {
                        tokio::time::sleep(RETRY).await;
                    }
                    revision = at;
                }
                Ok(Some((known, _))) => return Err(known.host),
                Ok(None) => match self.orders.create(&record.order.id, value(record)).await {
                    Ok(revision) => return Ok(revision),
                    Err(_) => tokio::time::sleep(RETRY).await,
                },
                Err(_) => tokio::time::sleep(RETRY).await,
            }
        }
    }

    async fn over(&self, claim: Claim, revision: u64, stage: Stage) {
        let record = Record { stage, ..self.claimed(&claim.order) };
        // A cancelled one stays cancelled; its job has ended all the same.
        let _ = self.report(&record, revision).await;
        self.tell_result(&record).await;
        claim.settle();
    }

    /// Nobody can say whether it was carried out. What is to be done about it was said when it was ordered.
    async fn in_doubt(&self, claim: Claim, revision: u64, why: String) {
        let order = claim.order.clone();
        self.over(claim, revision, Stage::Unknown { why }).await;
        match order.retry {
            Retry::Never | Retry::IfNotStarted => {}
            Retry::Always => {
                let broker = &self.node().broker;
                while super::resolve(broker, &order.id, super::Decision::Again)
                    .await
                    .is_err_and(|failure| failure.kind == Kind::Unreachable)
                {
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    async fn tell_result(&self, record: &Record) {
        let subject = names::result(&record.order.label, &record.order.id);
        let payload = Bytes::from(serde_json::to_vec(record).unwrap_or_default());
        loop {
            let message = PublishMessage::build().message_id(&record.order.id).payload(payload.clone());
            if let Ok(ack) = self.node().broker.streams.send_publish(subject.clone(), message).await
                && ack.await.is_ok()
            {
                return;
            }
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// Whether an order may begin, as far as others are concerned.
enum Predecessors {
    Well,
    NotYet,
    Failed(String),
}

/// How long an order that must come after others is left alone.
fn wait_for(message: &Message) -> Duration {
    let tries = message.info().map_or(1, |info| info.delivered).clamp(1, 5);
    Duration::from_millis(250 * 2_u64.pow(u32::try_from(tries).unwrap_or(5)))
}

/// The order in a message. Who ordered it is in the subject: the broker lets everybody order only in their own name.
fn order_of(message: &Message) -> Option<Order> {
    let mut order: Order = serde_json::from_slice(&message.payload).ok()?;
    order.by = message.subject.split('.').nth(4)?.to_owned();
    if order.repeats {
        order.id = format!("{}-{}", order.id, message.info().ok()?.stream_sequence);
    }
    super::check_id(&order.id).is_ok().then_some(order)
}

/// Where tests end a node: `OUTLAST_NODE_STOPS_AT=claimed` ends the process there. A release build has no such points.
fn test_point(name: &str) {
    if cfg!(debug_assertions) && std::env::var_os("OUTLAST_NODE_STOPS_AT").is_some_and(|at| at == name) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}
