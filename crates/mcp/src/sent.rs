//! Knows when an answer is out: what it says for the first time counts as said only then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

use crate::call_handle::Receipt;
use crate::engine::Engine;

/// Where nobody says when an answer is out, it is taken to be after so long.
pub(crate) const OUT_AFTER: Duration = Duration::from_millis(500);
/// More answers than this are not on their way at once.
const MAX_UNSENT: usize = 4096;

/// What the answers that are on their way say.
#[derive(Debug, Default)]
pub(crate) struct Unsent(Mutex<HashMap<RequestId, Vec<Receipt>>>);

impl Unsent {
    pub(crate) fn add(&self, request: RequestId, receipts: Vec<Receipt>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < MAX_UNSENT {
            all.insert(request, receipts);
        }
    }

    fn take(&self, request: &RequestId) -> Option<Vec<Receipt>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(request)
    }
}

/// A transport that settles what an answer says as soon as it is written.
pub(crate) struct Settling<T> {
    pub(crate) inner: T,
    pub(crate) engine: Arc<Engine>,
    pub(crate) unsent: Arc<Unsent>,
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Settling<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let receipts = match &item {
            JsonRpcMessage::Response(response) => self.unsent.take(&response.id),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) | JsonRpcMessage::Error(_) => None,
        };
        let (sending, engine) = (self.inner.send(item), Arc::clone(&self.engine));
        async move {
            let sent = sending.await;
            if let Some(receipts) = receipts {
                let is_out = sent.is_ok();
                let _ = tokio::task::spawn_blocking(move || engine.settle(receipts, is_out)).await;
            }
            sent
        }
    }

    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleServer>>> + Send {
        self.inner.receive()
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
