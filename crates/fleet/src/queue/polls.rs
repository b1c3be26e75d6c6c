//! Which orders a host takes: those of its labels, the urgent first, as many as it has free slots.
//!
//! An idle host leaves one question for each queue with the broker, and hears of nothing until there is an order. Such a question is lost
//! with the server that has it: then the broker says who leads the queue now, or the connection comes back, and all is asked anew.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::{Message, stream};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use outlast_protocol::Failure;

use super::Priority;
use super::worker::ACK_WAIT;
use crate::broker::{REPLY_TIMEOUT, broken, gather};
use crate::names;
use crate::node::{Node, RETRY};

/// How long one question for orders stays with the broker.
const ASK_FOR: Duration = Duration::from_secs(30);
/// How many acknowledgements of one label may be missing at once.
const MAX_UNACKNOWLEDGED: i64 = 10_000;

/// The readers of each label, the urgent first.
///
/// # Errors
/// When the broker does not answer.
pub(super) async fn consumers(node: &Node) -> Result<Vec<PullConsumer>, Failure> {
    let mut consumers = Vec::new();
    for priority in Priority::ALL {
        for label in &node.labels {
            let queue = node.broker.queue(label).await?;
            consumers.push(consumer(&queue, label, priority).await?);
        }
    }
    Ok(consumers)
}

async fn consumer(queue: &stream::Stream, label: &str, priority: Priority) -> Result<PullConsumer, Failure> {
    let config = pull::Config {
        durable_name: Some(priority.word().into()),
        ack_policy: AckPolicy::Explicit,
        ack_wait: ACK_WAIT,
        max_ack_pending: MAX_UNACKNOWLEDGED,
        filter_subject: names::queue(label, priority.word(), "*"),
        ..Default::default()
    };
    let made = queue.get_or_create_consumer(priority.word(), config).await;
    made.map_err(|error| broken("cannot read a queue", error))
}

/// Asks anew whenever another server leads a queue.
pub(super) async fn heed_leaders(node: Arc<Node>, label: String) {
    let subject = names::leader_elected(&label);
    loop {
        if let Ok(mut elected) = node.broker.client.subscribe(subject.clone()).await {
            while elected.next().await.is_some() {
                node.broker.changed.notify_one();
            }
        }
        tokio::time::sleep(RETRY).await;
    }
}

type Asked<'a> = Pin<Box<dyn Future<Output = (usize, Vec<Message>)> + Send + 'a>>;

/// What was asked of the broker.
pub(super) struct Polls<'a> {
    consumers: &'a [PullConsumer],
    asked: FuturesUnordered<Asked<'a>>,
    is_asked: Vec<bool>,
    /// There may be orders that need not be waited for.
    pub(super) has_more: bool,
}

impl<'a> Polls<'a> {
    pub(super) fn new(consumers: &'a [PullConsumer]) -> Self {
        let is_asked = vec![false; consumers.len()];
        Self { consumers, asked: FuturesUnordered::new(), is_asked, has_more: true }
    }

    /// What was asked may be lost.
    pub(super) fn ask_anew(&mut self) {
        *self = Self::new(self.consumers);
    }

    /// Orders that are there, the urgent first.
    pub(super) async fn there(&mut self, free: usize) -> Vec<Message> {
        let mut taken = Vec::new();
        for consumer in self.consumers {
            if taken.len() < free
                && let Ok(batch) = consumer.fetch().max_messages(free - taken.len()).messages().await
            {
                taken.extend(gather(batch, REPLY_TIMEOUT).await.unwrap_or_default());
            }
        }
        self.has_more = !taken.is_empty();
        taken
    }

    /// Leaves a question with the broker wherever there is none.
    pub(super) fn ask(&mut self) {
        for (at, consumer) in self.consumers.iter().enumerate() {
            if std::mem::replace(&mut self.is_asked[at], true) {
                continue;
            }
            self.asked.push(Box::pin(async move {
                let batch = consumer.batch().max_messages(1).expires(ASK_FOR).messages().await;
                let gathered = match batch {
                    Ok(batch) => gather(batch, ASK_FOR + REPLY_TIMEOUT).await,
                    Err(error) => Err(broken("cannot read a queue", error)),
                };
                match gathered {
                    Ok(came) => (at, came),
                    Err(_) => {
                        tokio::time::sleep(RETRY).await;
                        (at, Vec::new())
                    }
                }
            }));
        }
    }

    /// What comes first of what was asked for. It may be dropped at any time: nothing is lost by it.
    pub(super) async fn came(&mut self) -> Vec<Message> {
        match self.asked.next().await {
            Some((at, came)) => {
                self.is_asked[at] = false;
                self.has_more |= came.iter().any(|one| one.info().is_ok_and(|info| info.pending > 0));
                came
            }
            None => std::future::pending().await,
        }
    }
}
