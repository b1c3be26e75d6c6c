//! The proxy of a job that may connect to some hosts only.
//!
//! The job has a network of its own with nothing in it but a loopback, and on that a socket that listens. The socket was
//! made inside and is held by the keeper and its heirs, who live outside: so they can answer there and connect here.
//! HTTP (`CONNECT` and plain requests) and SOCKS 5 are spoken on the same port.
//!
//! It is a thread, and one for each connection: names are looked up by the system, which takes as long as it takes. The
//! keeper's loop is only told what was refused.

mod connection;
mod handshake;

use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::sandbox::hosts::AllowedHost;

const STACK_SIZE: usize = 128 << 10;
/// More connections at once than this wait until one ends.
const MAX_CONNECTIONS: usize = 64;
/// More refusals than this are not told.
const MAX_TOLD: usize = 100;
/// How long accepting rests if the system is short of descriptors.
const SHORT_OF_FILES: Duration = Duration::from_millis(100);

/// A connection that was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) why: Why,
}

/// Why a connection was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The host is not among those that are allowed; a person can allow it.
    NotAllowed,
    /// It is allowed, and has an address of this machine or its network.
    Private(std::net::IpAddr),
}

/// The keeper's end of the proxy.
#[derive(Debug)]
pub(super) struct Proxy {
    told: Receiver<Refused>,
    wake: OwnedFd,
    allowed: Arc<Mutex<Vec<AllowedHost>>>,
}

/// What all connections share.
struct Rules {
    allowed: Arc<Mutex<Vec<AllowedHost>>>,
    tell: Mutex<Teller>,
    open: AtomicUsize,
}

/// Tells the keeper's loop, and wakes it.
struct Teller {
    tell: Sender<Refused>,
    waker: OwnedFd,
    told: usize,
}

impl Proxy {
    /// Starts it on a socket that listens in the job's network.
    pub(super) fn start(listener: OwnedFd, allowed: Vec<AllowedHost>) -> std::io::Result<Self> {
        let (wake, waker) = outlast_pty::system::pipe_that_never_blocks()?;
        let (tell, told) = channel();
        let allowed = Arc::new(Mutex::new(allowed));
        let tell = Mutex::new(Teller { tell, waker, told: 0 });
        let rules = Arc::new(Rules { allowed: allowed.clone(), tell, open: AtomicUsize::new(0) });
        let listener = TcpListener::from(listener);
        let serve = move || serve(&listener, &rules);
        std::thread::Builder::new().name("proxy".into()).stack_size(STACK_SIZE).spawn(serve)?;
        Ok(Self { told, wake, allowed })
    }

    /// Allows a host from now on.
    pub(super) fn allow(&self, host: AllowedHost) {
        self.allowed.lock().unwrap_or_else(PoisonError::into_inner).push(host);
    }

    /// What says that there is something to take.
    pub(super) fn wake(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// What was refused.
    pub(super) fn take(&self) -> Vec<Refused> {
        let mut drained = [0; 64];
        let _ = rustix::io::read(&self.wake, &mut drained);
        self.told.try_iter().collect()
    }
}

impl Rules {
    /// Whether a host is allowed, and if so, whether by its address.
    fn allows(&self, host: &str, port: u16) -> Option<bool> {
        let allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = allowed.iter().filter(|allowed| allowed.is(host, port)).peekable();
        found.peek()?;
        Some(found.any(AllowedHost::is_address))
    }

    fn tell(&self, refused: Refused) {
        let mut teller = self.tell.lock().unwrap_or_else(PoisonError::into_inner);
        if teller.told < MAX_TOLD && teller.tell.send(refused).is_ok() {
            teller.told += 1;
            let _ = rustix::io::write(&teller.waker, b"!");
        }
    }
}

fn serve(listener: &TcpListener, rules: &Arc<Rules>) {
    loop {
        match listener.accept() {
            Ok((client, _)) => {
                if rules.open.fetch_add(1, Ordering::AcqRel) >= MAX_CONNECTIONS {
                    rules.open.fetch_sub(1, Ordering::AcqRel);
                    // Closed at once: a program tries again, or says that the proxy is busy.
                    continue;
                }
                let of_connection = rules.clone();
                let run = move || {
                    connection::serve(client, &of_connection);
                    of_connection.open.fetch_sub(1, Ordering::AcqRel);
                };
                let thread = std::thread::Builder::new().name("proxied".into()).stack_size(STACK_SIZE);
                if thread.spawn(run).is_err() {
                    rules.open.fetch_sub(1, Ordering::AcqRel);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => std::thread::sleep(SHORT_OF_FILES),
        }
    }
}

#[cfg(test)]
mod tests;
