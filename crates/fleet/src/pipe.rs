//! A pipe through the broker: bytes of a relay's frames in numbered messages.
//!
//! The broker gives no promise about a single message, so each has a number, and a pipe with a gap is cut. That loses nothing: the
//! near end of a link makes a new pipe and asks again for what was not answered, and no order is carried out twice.
//!
//! A near end asks `ol.ask.HOST.USER.PIPE` to open it and is answered; then both sides send bytes. The broker lets a user send only under
//! its own name, and a host only as itself: so the subject says who asks.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream as Socket;
use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, Message, Request, RequestErrorKind, Subscriber};
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use outlast_protocol::{Failure, Kind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

use crate::broker::Broker;
use crate::names;

/// How many bytes one message carries.
const CHUNK: usize = 64 << 10;
/// How long a host may take to open a pipe.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
/// How many messages of a pipe may wait for a relay that does not read; one more, and the pipe is cut.
const MAX_WAITING: usize = 1024;
/// How many pipes a host has open at once.
const MAX_PIPES: usize = 256;

const OPEN: u8 = 1;
const BYTES: u8 = 2;
const CLOSE: u8 = 3;
/// No pipe: the whole log of the job of that number is asked for.
const LOG: u8 = 4;
const OPENED: &[u8] = b"opened";
const FULL: &[u8] = b"full";

/// One message of a pipe.
struct Part {
    kind: u8,
    number: u64,
    bytes: Bytes,
}

impl Part {
    fn encode(kind: u8, number: u64, bytes: &[u8]) -> Bytes {
        let mut message = BytesMut::with_capacity(bytes.len() + 9);
        message.put_u8(kind);
        message.put_u64(number);
        message.extend_from_slice(bytes);
        message.freeze()
    }

    fn decode(message: &Bytes) -> Option<Self> {
        let number = u64::from_be_bytes(message.get(1..9)?.try_into().ok()?);
        Some(Self { kind: *message.first()?, number, bytes: message.slice(9..) })
    }
}

/// Opens a pipe to a host's relay; what is returned is the near end. Not to be called in async code.
///
/// # Errors
/// [`Kind::Unreachable`] when the host is not there.
pub fn open(broker: &Broker, host: &str) -> Result<Socket, Failure> {
    let broken = |error: std::io::Error| Failure::system("cannot make a pipe", error);
    let (near, ours) = Socket::pair().map_err(broken)?;
    ours.set_nonblocking(true).map_err(broken)?;
    let name = random_name();
    let to = names::ask(host, &broker.me.name, &name);
    let from = names::say(&broker.me.name, host, &name);
    let client = broker.client.clone();
    broker.wait(async move {
        let unreachable = |why: &str| Failure::new(Kind::Unreachable, format!("cannot reach {host}: {why}"));
        let heard = client.subscribe(from).await.map_err(|error| unreachable(&error.to_string()))?;
        let request = Request::new().payload(Part::encode(OPEN, 0, b"")).timeout(Some(OPEN_TIMEOUT));
        let answer = client.send_request(to.clone(), request).await.map_err(|error| match error.kind() {
            RequestErrorKind::NoResponders => unreachable("it is not connected to the broker"),
            RequestErrorKind::TimedOut => unreachable("no answer"),
            _ => unreachable(&error.to_string()),
        })?;
        if answer.payload.as_ref() != OPENED {
            return Err(unreachable("it has too many connections"));
        }
        let (read, write) = UnixStream::from_std(ours).map_err(broken)?.into_split();
        tokio::spawn(send(client, to, read));
        tokio::spawn(receive(heard, write));
        Ok(())
    })?;
    Ok(near)
}

/// Sends what is read, until there is no more.
async fn send(client: Client, to: String, mut read: OwnedReadHalf) {
    let mut chunk = vec![0; CHUNK];
    let mut number = 0;
    loop {
        let n = read.read(&mut chunk).await.unwrap_or(0);
        number += 1;
        let (kind, bytes) = if n == 0 { (CLOSE, &[][..]) } else { (BYTES, &chunk[..n]) };
        if client.publish(to.clone(), Part::encode(kind, number, bytes)).await.is_err() || n == 0 {
            return;
        }
    }
}

/// Writes what comes, until the pipe is closed or cut.
async fn receive(mut heard: Subscriber, mut write: OwnedWriteHalf) {
    let mut last = 0;
    while let Some(message) = heard.next().await {
        let Some(part) = Part::decode(&message.payload) else { break };
        if part.kind != BYTES || part.number != last + 1 || write.write_all(&part.bytes).await.is_err() {
            break;
        }
        last = part.number;
    }
    // The relay's side reads an end, and the link makes a new pipe.
    let _ = write.shutdown().await;
}

pub(crate) fn random_name() -> String {
    let mut bytes = [0_u8; 12];
    // Should there be no random numbers, the time is unlike that of any other pipe of this process.
    if ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes).is_err() {
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        bytes.copy_from_slice(&now.to_be_bytes()[4..]);
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is sent to a host to ask for a whole log.
pub(crate) fn ask_for_log(job: u64) -> Bytes {
    Part::encode(LOG, job, b"")
}

/// Puts the log of a job into the store for a user; what the user is answered.
pub(crate) type PutLog = Arc<dyn Fn(String, u64) -> BoxFuture<'static, Bytes> + Send + Sync>;

/// Serves one pipe in a thread of its own: the socket, and the name of the user at the other end. Returns when the pipe is over.
pub type Serve = Arc<dyn Fn(Socket, String) + Send + Sync>;

/// Answers all who ask this host, for as long as the connection lives.
pub(crate) async fn answer_all(client: Client, host: String, serve: Serve, put_log: PutLog) {
    let mut open: BTreeMap<String, mpsc::Sender<Part>> = BTreeMap::new();
    let Ok(mut asked) = client.subscribe(names::asked_of(&host)).await else { return };
    while let Some(Message { subject, reply, payload, .. }) = asked.next().await {
        // A consumer at the broker can send a message of another subject here: it proves no user.
        if !subject.as_str().starts_with(&format!("ol.ask.{host}.")) {
            continue;
        }
        let mut words = subject.as_str().split('.').skip(3);
        let (Some(user), Some(pipe), Some(part)) = (words.next(), words.next(), Part::decode(&payload))
        else {
            continue;
        };
        if part.kind == LOG {
            if let Some(reply) = reply {
                let (client, putting) = (client.clone(), put_log(user.to_owned(), part.number));
                tokio::spawn(async move { client.publish(reply, putting.await).await });
            }
            continue;
        }
        let key = format!("{user}.{pipe}");
        if part.kind == OPEN {
            open.retain(|_, to| !to.is_closed());
            let has_room = open.len() < MAX_PIPES;
            if has_room && !open.contains_key(&key) {
                let to = names::say(user, &host, pipe);
                if let Some(sender) = begin(&client, to, user.to_owned(), &serve) {
                    open.insert(key, sender);
                }
            }
            if let Some(reply) = reply {
                let said = if has_room { OPENED } else { FULL };
                let _ = client.publish(reply, Bytes::from_static(said)).await;
            }
            continue;
        }
        let is_over = part.kind == CLOSE;
        // One that does not read is cut, and holds nobody else up.
        let taken = open.get(&key).is_some_and(|to| to.try_send(part).is_ok());
        if is_over || !taken {
            open.remove(&key);
        }
    }
}

/// Begins to serve a pipe.
fn begin(client: &Client, to: String, user: String, serve: &Serve) -> Option<mpsc::Sender<Part>> {
    let (theirs, ours) = Socket::pair().ok()?;
    ours.set_nonblocking(true).ok()?;
    let (read, mut write) = UnixStream::from_std(ours).ok()?.into_split();
    let serve = Arc::clone(serve);
    std::thread::Builder::new().name("relay".into()).spawn(move || serve(theirs, user)).ok()?;
    tokio::spawn(send(client.clone(), to, read));
    let (sender, mut parts) = mpsc::channel::<Part>(MAX_WAITING);
    tokio::spawn(async move {
        let mut last = 0;
        while let Some(part) = parts.recv().await {
            if part.kind != BYTES || part.number != last + 1 || write.write_all(&part.bytes).await.is_err() {
                break;
            }
            last = part.number;
        }
        let _ = write.shutdown().await;
    });
    Some(sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_survives_a_message_and_a_short_one_is_none() {
        let part = Part::decode(&Part::encode(BYTES, 7, b"abc")).unwrap();
        assert_eq!((part.kind, part.number, part.bytes.as_ref()), (BYTES, 7, &b"abc"[..]));
        assert!(Part::decode(&Bytes::from_static(b"\x02\0\0")).is_none());
        assert_ne!(random_name(), random_name());
    }
}
