//! The connection to the broker. One for each process, with a small runtime of its own: the rest of the program does not wait in async code.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::pull::Batch;
use async_nats::jetstream::{Context, Message};
use async_nats::{Client, ConnectOptions, Event};
use futures_util::StreamExt;
use outlast_protocol::{Failure, Kind};
use tokio::runtime::Runtime;
use tokio::sync::Notify;

use crate::config::{FleetFile, Identity};

/// How long it may take to reach the broker.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the broker may take to answer.
pub const REPLY_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the connection is tried when nothing is said: a broker that vanished is noticed after two of these.
const PING_EVERY: Duration = Duration::from_secs(10);
/// After a loss of the connection: the longest time between two tries.
const SLOWEST_RETRY: Duration = Duration::from_secs(2);

/// Who came to the broker, and the connection.
#[derive(Clone)]
pub struct Broker {
    runtime: Arc<Runtime>,
    /// The connection.
    pub client: Client,
    /// Its streams and buckets.
    pub streams: Context,
    /// Who this is.
    pub me: Identity,
    /// How the fleet is set up.
    pub file: FleetFile,
    /// Rung when the connection came back, or another server leads a queue: what was asked of the broker may be lost.
    pub changed: Arc<Notify>,
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broker").field("me", &self.me.name).finish_non_exhaustive()
    }
}

/// What to do when no server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Say so.
    Fail,
    /// Try until one does.
    Wait,
}

impl Broker {
    /// Comes to the broker.
    ///
    /// # Errors
    /// [`Kind::Unreachable`] when no server answers, [`Kind::Denied`] when they refuse.
    pub fn connect(file: &FleetFile, me: Identity, patience: Patience) -> Result<Self, Failure> {
        Self::connect_on(runtime(1)?, file, me, patience)
    }

    /// As [`connect`](Self::connect), in a runtime that others use too.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn connect_on(
        runtime: Arc<Runtime>,
        file: &FleetFile,
        me: Identity,
        patience: Patience,
    ) -> Result<Self, Failure> {
        let changed = Arc::new(Notify::new());
        let client = runtime.block_on(connect(file, &me, patience, Arc::clone(&changed)))?;
        // It begins a task of its own.
        let entered = runtime.enter();
        let streams = async_nats::jetstream::ContextBuilder::new()
            .timeout(REPLY_TIMEOUT)
            .ack_timeout(REPLY_TIMEOUT)
            .build(client.clone());
        drop(entered);
        Ok(Self { runtime, client, streams, me, file: file.clone(), changed })
    }

    /// Waits for something to be done. Not to be called in async code.
    pub fn wait<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime.block_on(what)
    }

    /// Lets something go on by itself.
    pub fn spawn<T: Send + 'static>(
        &self,
        what: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        self.runtime.spawn(what)
    }
}

/// A runtime with this many threads.
///
/// # Errors
/// When there can be none.
pub fn runtime(threads: usize) -> Result<Arc<Runtime>, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("nats")
        .enable_all()
        .build()
        .map(Arc::new)
        .map_err(|error| Failure::system("cannot start a runtime", error))
}

async fn connect(
    file: &FleetFile,
    me: &Identity,
    patience: Patience,
    changed: Arc<Notify>,
) -> Result<Client, Failure> {
    let kind = if me.is_host { "host" } else { "user" };
    let mut options = ConnectOptions::new()
        .name(format!("outlast {kind} {}", me.name))
        .connection_timeout(CONNECT_TIMEOUT)
        .request_timeout(Some(REPLY_TIMEOUT))
        .ping_interval(PING_EVERY)
        .custom_inbox_prefix(inbox(me))
        .event_callback(move |event| {
            if matches!(event, Event::Connected) {
                changed.notify_one();
            }
            std::future::ready(())
        })
        .reconnect_delay_callback(|tries| {
            let tries = u32::try_from(tries.min(8)).unwrap_or(8);
            // Not all at once, when a broker comes back.
            let spread = Duration::from_millis(u64::from(std::process::id() % 97));
            (Duration::from_millis(20) * 2_u32.pow(tries) + spread).min(SLOWEST_RETRY)
        });
    if patience == Patience::Wait {
        options = options.retry_on_initial_connect();
    }
    if let Some(ca) = &file.ca {
        options = options.add_root_certificates(ca.clone()).require_tls(true);
    }
    if let Some(key) = &me.key {
        let text = std::fs::read_to_string(key)
            .map_err(|error| Failure::usage(format!("cannot read the key {}: {error}", key.display())))?;
        options = if text.contains("BEGIN NATS USER JWT") {
            options.credentials(&text).map_err(|error| {
                Failure::usage(format!("invalid credentials in {}: {error}", key.display()))
            })?
        } else {
            options.nkey(text.trim().to_owned())
        };
    }
    let servers =
        if file.nats.is_empty() { vec!["nats://127.0.0.1:4222".to_owned()] } else { file.nats.clone() };
    options.connect(servers.as_slice()).await.map_err(|error| {
        let said = format!("cannot reach the broker at {}: {error}", servers.join(", "));
        let kind = match error.kind() {
            async_nats::ConnectErrorKind::AuthorizationViolation
            | async_nats::ConnectErrorKind::Authentication => Kind::Denied,
            _ => Kind::Unreachable,
        };
        Failure::new(kind, said).hint("see whether a nats-server runs there: outlast fleet status")
    })
}

/// Where answers come in: nobody else may listen there.
#[must_use]
pub fn inbox(me: &Identity) -> String {
    let kind = if me.is_host { "h" } else { "u" };
    format!("_INBOX_{kind}_{}", me.name)
}

/// What the broker said, as a failure.
pub fn broken(what: &str, error: impl fmt::Display) -> Failure {
    Failure::new(Kind::Unreachable, format!("{what}: {error}"))
}

/// The messages of a batch. A server that dies leaves a question without an answer: after so long without a message there are no more.
///
/// # Errors
/// When there were none, and the broker said why or did not answer.
pub async fn gather(mut batch: Batch, patience: Duration) -> Result<Vec<Message>, Failure> {
    let mut found = Vec::new();
    loop {
        let why = match tokio::time::timeout(patience, batch.next()).await {
            Ok(Some(Ok(message))) => {
                found.push(message);
                continue;
            }
            Ok(None) => return Ok(found),
            Ok(Some(Err(error))) => error.to_string(),
            Err(_) => "no answer".to_owned(),
        };
        return if found.is_empty() { Err(broken("cannot read", why)) } else { Ok(found) };
    }
}
