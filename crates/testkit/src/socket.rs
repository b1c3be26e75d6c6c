//! Talks to a keeper directly, as a person would with `socat`.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::TEST_TIMEOUT;

/// A connection to a keeper.
#[derive(Debug)]
pub struct Socket {
    stream: BufReader<UnixStream>,
}

impl Socket {
    /// Connects to the socket in a job's folder, however long its path is.
    ///
    /// # Errors
    /// If nothing listens there.
    pub fn connect(job: &Path) -> std::io::Result<Self> {
        let folder = std::fs::File::open(job)?;
        let stream = UnixStream::connect(format!("/proc/self/fd/{}/keeper.sock", folder.as_raw_fd()))?;
        stream.set_read_timeout(Some(TEST_TIMEOUT))?;
        stream.set_write_timeout(Some(TEST_TIMEOUT))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sets a timeout for sending.
    pub fn give_up_sending_after(&mut self, patience: Duration) {
        self.stream.get_ref().set_write_timeout(Some(patience)).unwrap();
    }

    /// Sends bytes unchanged.
    ///
    /// # Errors
    /// If the keeper has closed the connection.
    pub fn say(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// The next line; `None` if the keeper has closed the connection.
    #[must_use]
    pub fn hear(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
            Err(error) => panic!("the keeper says nothing: {error}"),
        }
    }

    /// Sends a request, and returns the reply to it.
    #[must_use]
    pub fn ask(&mut self, request: &Value) -> Value {
        self.say(format!("{request}\n").as_bytes()).unwrap();
        loop {
            let line = self.hear().expect("an answer, not the end of the connection");
            if line["reply"]["id"] == request["id"] {
                return line["reply"].clone();
            }
        }
    }

    /// Reads until the keeper closes the connection.
    pub fn drain(&mut self) {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            Err(error) => panic!("the keeper does not close the connection: {error}"),
        }
    }
}

/// Takes the place of a keeper's socket: from now on, each connection of a client is given to `serve`, with
/// one to the keeper, in a thread of its own.
pub fn stand_between(job: &Path, serve: impl Fn(UnixStream, UnixStream) + Send + Sync + 'static) {
    let (socket, real) = (job.join("keeper.sock"), job.join("keeper.real"));
    std::fs::rename(&socket, &real).unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(keeper) = UnixStream::connect(&real) else { break };
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || serve(client, keeper));
        }
        // The keeper has left, and takes its socket along.
        let _ = std::fs::remove_file(&socket);
    });
}
