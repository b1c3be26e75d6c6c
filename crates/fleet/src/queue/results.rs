//! How orders ended, read from the stream of results.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer, pull};
use outlast_protocol::Failure;

use super::Record;
use crate::broker::{Broker, REPLY_TIMEOUT, broken, gather};

/// How many results are asked for at once.
const BATCH: usize = 500;
/// How long one question stays with the broker.
const ASK_FOR: Duration = Duration::from_secs(10);
/// A reader that is gone is forgotten after this.
const FORGET_READER: Duration = Duration::from_secs(60);

/// A reader of results.
pub struct Results {
    consumer: PullConsumer,
}

/// Records that come.
type Coming<'a> = Pin<Box<dyn Future<Output = Result<Vec<Record>, Failure>> + 'a>>;

impl Results {
    /// Begins with the oldest, or with what comes from now on.
    ///
    /// # Errors
    /// When the broker does not answer.
    pub async fn begin(broker: &Broker, only_new: bool) -> Result<Self, Failure> {
        let stream = broker.results().await?;
        let config = pull::Config {
            deliver_policy: if only_new { DeliverPolicy::New } else { DeliverPolicy::All },
            ack_policy: AckPolicy::None,
            memory_storage: true,
            num_replicas: 1,
            inactive_threshold: FORGET_READER,
            ..Default::default()
        };
        let consumer = stream.create_consumer(config).await;
        Ok(Self { consumer: consumer.map_err(|error| broken("cannot read results", error))? })
    }

    /// Those that are there.
    pub fn there(&self) -> Coming<'_> {
        Box::pin(async {
            let batch = self.consumer.fetch().max_messages(BATCH).messages().await;
            read(batch.map_err(|error| broken("cannot read results", error))?).await
        })
    }

    /// The next ones; empty when there were none for a while.
    pub fn next(&self) -> Coming<'_> {
        Box::pin(async {
            let there = self.there().await?;
            if !there.is_empty() {
                return Ok(there);
            }
            let batch = self.consumer.batch().max_messages(1).expires(ASK_FOR).messages().await;
            read(batch.map_err(|error| broken("cannot read results", error))?).await
        })
    }
}

async fn read(batch: pull::Batch) -> Result<Vec<Record>, Failure> {
    let messages = gather(batch, ASK_FOR + REPLY_TIMEOUT).await?;
    // What a newer version wrote in another form is passed over.
    Ok(messages.iter().filter_map(|message| serde_json::from_slice(&message.payload).ok()).collect())
}
