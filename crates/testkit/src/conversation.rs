//! Talks JSON-RPC with the program over its stdin and stdout, one message per line, as an editor does.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{TEST_TIMEOUT, eventually};

/// How often a conversation is listened to.
const LISTEN_INTERVAL: Duration = Duration::from_millis(1);

/// A program in a conversation. Dropping it kills it.
#[derive(Debug)]
pub struct Conversation {
    child: Child,
    stdin: Option<ChildStdin>,
    heard: Arc<Mutex<Vec<(String, Value)>>>,
    reader: Option<std::thread::JoinHandle<()>>,
    next_id: u64,
    /// How many messages `next_message` has returned.
    taken: usize,
}

impl Conversation {
    /// Runs a program and listens to it.
    #[must_use]
    pub fn begin(mut command: Command) -> Self {
        let shown = format!("{command:?}");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{shown}: {error}"));
        show(child.stderr.take().unwrap());
        let stdout = child.stdout.take().unwrap();
        let heard: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let collected = Arc::clone(&heard);
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                collected.lock().unwrap().push((line, value));
            }
        });
        Self { stdin: child.stdin.take(), child, heard, reader: Some(reader), next_id: 1, taken: 0 }
    }

    /// Sends a line unchanged.
    pub fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("the conversation goes on");
        stdin.write_all(format!("{line}\n").as_bytes()).and_then(|()| stdin.flush()).unwrap();
    }

    /// Sends a request and returns its id.
    pub fn ask(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        id
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.say(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// Waits for the answer to a request.
    #[track_caller]
    pub fn answer(&self, id: u64) -> Value {
        self.wait_for(&format!("an answer to request {id}"), |all| {
            all.iter().find(|message| message["id"] == id && message.get("method").is_none()).cloned()
        })
    }

    /// Sends a request and returns its result; an error fails the test.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.answer(id);
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Everything that was received so far, in order.
    #[must_use]
    pub fn heard(&self) -> Vec<Value> {
        self.heard.lock().unwrap().iter().map(|(_, value)| value.clone()).collect()
    }

    /// The same, as raw lines.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.heard.lock().unwrap().iter().map(|(line, _)| line.clone()).collect()
    }

    /// Waits until `look` finds something in what was received.
    #[track_caller]
    pub fn wait_for<T>(&self, what: &str, look: impl Fn(&[Value]) -> Option<T>) -> T {
        eventually(what, TEST_TIMEOUT, || {
            let all = self.heard();
            look(&all).ok_or_else(|| all[all.len().saturating_sub(12)..].to_vec())
        })
    }

    /// The next message that was not returned before; none if it does not come within the time.
    pub fn next_message(&mut self, within: Duration) -> Option<Value> {
        let deadline = Instant::now() + within;
        loop {
            if let Some((_, message)) = self.heard.lock().unwrap().get(self.taken) {
                self.taken += 1;
                return Some(message.clone());
            }
            let reader_ended = self.reader.as_ref().is_none_or(std::thread::JoinHandle::is_finished);
            if Instant::now() >= deadline || (reader_ended && self.heard.lock().unwrap().len() <= self.taken)
            {
                return None;
            }
            std::thread::sleep(LISTEN_INTERVAL);
        }
    }

    /// The program's pid.
    #[must_use]
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// `kill -9` of the program.
    pub fn kill_dash_nine(mut self) {
        self.child.kill().unwrap();
    }

    /// Sends SIGTERM to the program, and waits for its end.
    pub fn terminate(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        eventually("the program ends when it is asked to", TEST_TIMEOUT, || {
            self.child.try_wait().unwrap().ok_or("it runs")
        });
    }

    /// Closes the program's stdin, and waits for its end; returns its exit code.
    pub fn hang_up(mut self) -> Option<i32> {
        drop(self.stdin.take());
        eventually("the program ends when nobody talks to it", TEST_TIMEOUT, || {
            self.child.try_wait().unwrap().ok_or("it runs")
        })
        .code()
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            // A process behind it may hold its stdout a little longer. If the reader panicked, so must the
            // test.
            if reader.is_finished() && reader.join().is_err() && !std::thread::panicking() {
                panic!("the program printed something that is not JSON");
            }
        }
    }
}

/// Passes on what a program says on stderr, as output of the test: it is shown if the test fails.
#[expect(clippy::print_stderr, reason = "output of a test")]
fn show(stderr: ChildStderr) {
    std::thread::spawn(move || {
        BufReader::new(stderr).lines().map_while(Result::ok).for_each(|line| eprintln!("{line}"));
    });
}
