//! Whole logs through the broker's object store, when somebody asks for one: a pipe carries ranges, and would hold a relay up for long.
//!
//! A host puts the log there as its own policy lets the user read it, without its secrets, because others of the fleet can read the
//! store, too. It is gone from there after an hour.

use std::io::Write;
use std::os::unix::net::UnixStream as Socket;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::object_store::{Config, ObjectStore};
use async_nats::{Request, RequestErrorKind};
use bytes::Bytes;
use outlast_job::Handle;
use outlast_protocol::{Failure, Kind};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;

use crate::broker::{Broker, broken};
use crate::names;
use crate::node::Node;
use crate::pipe;

/// How long a log stays at the broker.
const KEPT_FOR: Duration = Duration::from_secs(3600);
/// How much the broker keeps of all logs.
const MAX_BYTES: i64 = 4 << 30;
/// How long a host may take to put a log there.
const PUT_TIMEOUT: Duration = Duration::from_secs(600);
/// How many logs a host puts there at once.
pub(crate) const AT_ONCE: usize = 2;
/// How much of a log is written at once.
const CHUNK: usize = 64 << 10;

/// What a host answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    /// The log is there.
    Put {
        /// What it is called there.
        object: String,
        /// How long it is.
        bytes: usize,
    },
    /// It is not, and why.
    Refused(String),
}

impl Broker {
    async fn logs(&self) -> Result<ObjectStore, Failure> {
        if let Ok(store) = self.streams.get_object_store(names::LOGS).await {
            return Ok(store);
        }
        let config = Config {
            bucket: names::LOGS.into(),
            max_age: KEPT_FOR,
            max_bytes: MAX_BYTES,
            num_replicas: self.replicas(),
            ..Default::default()
        };
        let made = self.streams.create_object_store(config).await;
        made.map_err(|error| broken("cannot make the store of logs", error))
    }
}

/// Has a host put a job's log into the store, and writes it from there; says how long it is. Not to be called in async code.
///
/// # Errors
/// [`Kind::Unreachable`] when the host or the broker does not answer, [`Kind::Denied`] with what the host says otherwise.
pub fn fetch(broker: &Broker, host: &str, job: u64, into: &mut impl Write) -> Result<usize, Failure> {
    let to = names::ask(host, &broker.me.name, &pipe::random_name());
    let client = broker.client.clone();
    let asked = async {
        let request = Request::new().payload(pipe::ask_for_log(job)).timeout(Some(PUT_TIMEOUT));
        client.send_request(to, request).await.map_err(|error| {
            let why = match error.kind() {
                RequestErrorKind::NoResponders => "it is not connected to the broker".to_owned(),
                RequestErrorKind::TimedOut => "no answer".to_owned(),
                _ => error.to_string(),
            };
            Failure::new(Kind::Unreachable, format!("cannot reach {host}: {why}"))
        })
    };
    let answer = broker.wait(asked)?;
    let said = serde_json::from_slice(&answer.payload).map_err(|_| {
        Failure::new(Kind::UnknownFormat, format!("{host} does not know how to put a log at the broker"))
            .hint("its version is too old; read it in ranges: outlast read --raw")
    })?;
    let (object, bytes) = match said {
        Said::Put { object, bytes } => (object, bytes),
        Said::Refused(why) => return Err(Failure::new(Kind::Denied, format!("{host}: {why}"))),
    };
    let store = broker.wait(broker.logs())?;
    let found = broker.wait(store.get(&object)).map_err(|error| broken("cannot read the log", error));
    let mut log = found?;
    let (mut chunk, mut done) = (vec![0; CHUNK], 0);
    loop {
        // Its digest is checked at the end: what does not agree with it is an error here.
        let n = broker.wait(log.read(&mut chunk)).map_err(|error| broken("cannot read the log", error))?;
        if n == 0 {
            break;
        }
        into.write_all(&chunk[..n]).map_err(|error| Failure::system("cannot write the log", error))?;
        done += n;
    }
    if done == bytes {
        Ok(done)
    } else {
        Err(broken("the log is not whole", format!("{done} of {bytes} bytes came")))
    }
}

/// Puts a log into the store for a user; what the user is answered.
pub(crate) async fn put(node: Arc<Node>, user: String, job: u64) -> Bytes {
    let said = match put_log(&node, &user, job).await {
        Ok(said) => said,
        Err(failure) => Said::Refused(failure.message),
    };
    Bytes::from(serde_json::to_vec(&said).unwrap_or_default())
}

async fn put_log(node: &Arc<Node>, user: &str, job: u64) -> Result<Said, Failure> {
    let _place = node.logs_at_once.acquire().await.map_err(|error| broken("the node ends", error))?;
    let broken_pipe = |error: std::io::Error| Failure::system("cannot make a pipe", error);
    let store = node.broker.logs().await?;
    let (theirs, ours) = Socket::pair().map_err(broken_pipe)?;
    ours.set_nonblocking(true).map_err(broken_pipe)?;
    let mut ours = UnixStream::from_std(ours).map_err(broken_pipe)?;
    let (machine, by) = (Arc::clone(&node.machine), user.to_owned());
    let writing = tokio::task::spawn_blocking(move || machine.log(Handle::new(job), &by, theirs));
    let object = format!("{}-{job}-{}", node.host, pipe::random_name());
    let stored = store.put(object.as_str(), &mut ours).await;
    // Should the store refuse, the writer notices.
    drop(ours);
    let written = writing.await.map_err(|error| Failure::system("cannot read the log", error))?;
    if let Err(failure) = written {
        let _ = store.delete(&object).await;
        return Err(failure);
    }
    let stored = stored.map_err(|error| broken("the store does not take the log", error))?;
    Ok(Said::Put { object, bytes: stored.size })
}
