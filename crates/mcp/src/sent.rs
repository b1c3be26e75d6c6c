//! Knows when an answer is out: what it says for the first time counts as said only then; and a client that does not read its answers
//! is not read from either, so that they do not pile up.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::net::{SendFlags, send};
use tokio::sync::Notify;

use crate::answering::is_written;
use crate::call_handle::Receipt;
use crate::engine::Engine;

/// Where nobody says when an answer is out, it is taken to be after so long.
pub(crate) const OUT_AFTER: Duration = Duration::from_millis(500);
/// More answers than this are not on their way at once.
const MAX_UNSENT: usize = 4096;

/// More answers than this may wait for a client that does not read them before it is not read from any more.
const MAX_UNWRITTEN: usize = 64;
/// How many requests are taken before their answers are begun.
const MAX_AT_ONCE: usize = 16;
/// What a pipe takes in one piece whenever it takes anything, and so does a socket.
const ONE_PIECE: usize = 4096;

/// More than the protocol's loop needs to take note of an answer.
const LOOP_TURN: Duration = Duration::from_millis(50);

/// How an answer can be written without the protocol's loop.
#[derive(Clone, Copy, Debug)]
enum Way {
    Pipe,
    Socket,
}

impl Way {
    /// Whether standard output is something that can be written to without waiting.
    fn of_stdout() -> Option<Self> {
        let stat = rustix::fs::fstat(rustix::stdio::stdout()).ok()?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Fifo => Some(Self::Pipe),
            // Other kinds may take half of a piece.
            FileType::Socket => {
                let domain = rustix::net::sockopt::socket_domain(rustix::stdio::stdout()).ok()?;
                (domain == rustix::net::AddressFamily::UNIX).then_some(Self::Socket)
            }
            FileType::RegularFile
            | FileType::Directory
            | FileType::Symlink
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => None,
        }
    }

    /// Writes all of a piece, or nothing.
    fn write(self, piece: &[u8]) -> bool {
        let stdout = rustix::stdio::stdout();
        match self {
            Self::Pipe => {
                let mut room = [PollFd::from_borrowed_fd(stdout, PollFlags::OUT)];
                let is_there = poll(&mut room, Some(&Timespec::default()));
                is_there.is_ok_and(|ready| ready > 0)
                    && room[0].revents() == PollFlags::OUT
                    && rustix::io::write(stdout, piece).is_ok_and(|written| written == piece.len())
            }
            Self::Socket => {
                let flags = SendFlags::DONTWAIT | outlast_job::system::NO_SIGNAL;
                send(stdout, piece, flags).is_ok_and(|written| written == piece.len())
            }
        }
    }
}

/// The answers that are on their way, and what they say.
#[derive(Debug, Default)]
pub(crate) struct Unsent {
    receipts: Mutex<HashMap<RequestId, Vec<Receipt>>>,
    /// How many wait to be written by the protocol's loop.
    count: AtomicUsize,
    fewer: Notify,
    /// Taken by who begins to write.
    turn: Mutex<()>,
    /// Requests whose answer is out before the protocol's loop knows it.
    ahead: Mutex<HashSet<RequestId>>,
    caught_up: Notify,
    /// How many answers are out whose receipts are not settled yet.
    settling: AtomicUsize,
    settled: Notify,
    way: Option<Way>,
}

impl Unsent {
    /// Of a server whose client is at standard output.
    pub(crate) fn at_stdout() -> Self {
        Self { way: Way::of_stdout(), ..Self::default() }
    }

    pub(crate) fn add(&self, request: RequestId, receipts: Vec<Receipt>) {
        let mut all = self.receipts.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < MAX_UNSENT {
            all.insert(request, receipts);
        }
    }

    fn take(&self, request: &RequestId) -> Option<Vec<Receipt>> {
        self.receipts.lock().unwrap_or_else(PoisonError::into_inner).remove(request)
    }

    /// Whether nothing is being written.
    pub(crate) fn is_idle(&self) -> bool {
        self.way.is_some() && self.count.load(Ordering::Relaxed) == 0
    }

    /// Writes an answer here and now, all of it or nothing: only if nothing else is being written, and it fits.
    pub(crate) fn write_now(&self, request: &RequestId, line: &[u8]) -> bool {
        let Some(way) = self.way.filter(|_| line.len() <= ONE_PIECE) else { return false };
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.count.load(Ordering::Relaxed) != 0 {
            return false;
        }
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner).insert(request.clone());
        let is_out = way.write(line);
        if !is_out {
            self.catch_up(request);
        }
        is_out
    }

    /// From before an answer is out until what it said counts as said.
    pub(crate) fn settling(self: &Arc<Self>) -> Settles {
        self.settling.fetch_add(1, Ordering::SeqCst);
        Settles(Arc::clone(self))
    }

    /// A client that has an answer may ask again at once: it must not be told the same twice.
    async fn until_settled(&self) {
        let settled = async {
            loop {
                let settled = self.settled.notified();
                if self.settling.load(Ordering::SeqCst) == 0 {
                    return;
                }
                settled.await;
            }
        };
        let _ = tokio::time::timeout(OUT_AFTER, settled).await;
    }

    fn is_ahead(&self, request: &RequestId) -> bool {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner).contains(request)
    }

    fn catch_up(&self, request: &RequestId) {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner).remove(request);
        self.caught_up.notify_waiters();
    }

    /// Some clients give the next request the number of the last. The protocol's loop must have seen the answer of that first, or it
    /// would take the new request for answered. One that was cancelled has no answer for it.
    async fn until_known(&self, request: &RequestId) {
        let known = async {
            loop {
                let caught_up = self.caught_up.notified();
                if !self.is_ahead(request) {
                    return;
                }
                caught_up.await;
            }
        };
        if tokio::time::timeout(LOOP_TURN, known).await.is_err() {
            self.catch_up(request);
        }
    }

    fn one_more(self: &Arc<Self>) -> Waiting {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.count.fetch_add(1, Ordering::Relaxed);
        Waiting(Arc::clone(self))
    }

    /// Waits until the client has read enough.
    async fn room(&self) {
        loop {
            let fewer = self.fewer.notified();
            if self.count.load(Ordering::Relaxed) < MAX_UNWRITTEN {
                return;
            }
            fewer.await;
        }
    }
}

/// An answer that is not written yet.
struct Waiting(Arc<Unsent>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
        self.0.fewer.notify_waiters();
    }
}

/// An answer that is being settled.
pub(crate) struct Settles(Arc<Unsent>);

impl Drop for Settles {
    fn drop(&mut self) {
        self.0.settling.fetch_sub(1, Ordering::SeqCst);
        self.0.settled.notify_waiters();
    }
}

/// A transport that settles what an answer says as soon as it is written.
pub(crate) struct Settling<T> {
    pub(crate) inner: T,
    pub(crate) engine: Arc<Engine>,
    pub(crate) unsent: Arc<Unsent>,
    /// How many requests were taken since anybody else had a turn.
    pub(crate) taken: usize,
    /// A request with a number that is still in use.
    pub(crate) held: Option<RxJsonRpcMessage<RoleServer>>,
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Settling<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let is_out = is_written(&item);
        if let (true, JsonRpcMessage::Response(response)) = (is_out, &item) {
            self.unsent.catch_up(&response.id);
        }
        let receipts = match &item {
            JsonRpcMessage::Response(response) => self.unsent.take(&response.id),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) | JsonRpcMessage::Error(_) => None,
        };
        let sending = (!is_out).then(|| (self.unsent.one_more(), self.inner.send(item)));
        let (engine, unsent) = (Arc::clone(&self.engine), Arc::clone(&self.unsent));
        async move {
            let Some((waiting, sending)) = sending else { return Ok(()) };
            let sent = sending.await;
            drop(waiting);
            if let Some(receipts) = receipts {
                let is_out = sent.is_ok();
                let _settles = unsent.settling();
                let _ = tokio::task::spawn_blocking(move || engine.settle(receipts, is_out)).await;
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        if self.taken >= MAX_AT_ONCE {
            // A buffer full of requests would be taken before the first of them is answered.
            self.taken = 0;
            tokio::task::yield_now().await;
        }
        self.unsent.room().await;
        // Held here, so that nothing is lost when the loop turns to something else meanwhile.
        if self.held.is_none() {
            self.held = Some(self.inner.receive().await?);
            self.taken += 1;
        }
        if let Some(JsonRpcMessage::Request(request)) = &self.held {
            self.unsent.until_known(&request.id).await;
            self.unsent.until_settled().await;
        }
        self.held.take()
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
