//! A small JSON-RPC client of our own, and the sealed home it works in.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use outlast_job::Outlast;
use serde_json::{Value, json};

/// Longer than anything here takes, also on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A home of its own. Whatever still runs in it is ended when the test is over, however it ends.
pub(crate) struct Sandbox {
    folder: tempfile::TempDir,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A server process, not yet spoken to.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.of_environment(env!("CARGO_BIN_EXE_outlast-mcp-testserver"));
        command.args(arguments);
        command
    }

    /// Any program, in this environment.
    pub(crate) fn of_environment(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path())
            .env("OUTLAST_HOME", self.path().join("home"))
            .env("OUTLAST_MCP_PROGRESS_EVERY", "0.05")
            .current_dir(self.path());
        command
    }

    /// A client of the older era, with a server of its own.
    pub(crate) fn client(&self) -> Client {
        Client::start(self.command(&[])).initialized("2025-06-18", &json!({}))
    }

    /// A client of the newer era: nothing is said before the first request.
    pub(crate) fn modern(&self, capabilities: Value) -> Client {
        let mut client = Client::start(self.command(&[]));
        client.meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
            "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
        });
        client
    }

    pub(crate) fn outlast(&self) -> Outlast {
        Outlast::at(&self.path().join("home")).unwrap()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let outlast = self.outlast();
        for info in outlast.jobs() {
            if let Ok(job) = outlast.job(&info.handle.to_string())
                && info.state.is_live()
            {
                let _ = job.kill(Duration::ZERO, "tests");
            }
            // They write their last words into the folder that is about to be removed.
            for process in [&info.keeper, &info.heir].into_iter().flatten() {
                let until = Instant::now() + PATIENCE;
                while is_alive(process.pid) && Instant::now() < until {
                    std::thread::park_timeout(Duration::from_millis(2));
                }
            }
        }
    }
}

fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

/// One client and its server.
pub(crate) struct Client {
    server: Child,
    stdin: Option<ChildStdin>,
    heard: Receiver<Value>,
    last_id: u64,
    /// Goes into every request, as the newer era wants it.
    pub(crate) meta: Value,
    /// What came besides the answers.
    pub(crate) aside: Vec<Value>,
}

impl Client {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(server.stdout.take().unwrap());
        let (tell, heard) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|_| json!({"not json": line}));
                if tell.send(message).is_err() {
                    break;
                }
            }
        });
        let stdin = server.stdin.take();
        Self { server, stdin, heard, last_id: 0, meta: Value::Null, aside: Vec::new() }
    }

    pub(crate) fn initialized(mut self, version: &str, capabilities: &Value) -> Self {
        let answer = self.request(
            "initialize",
            json!({
                "protocolVersion": version,
                "capabilities": capabilities,
                "clientInfo": {"name": "tests", "version": "1"},
            }),
        );
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        self
    }

    pub(crate) fn pid(&self) -> u32 {
        self.server.id()
    }

    pub(crate) fn say(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    /// Asks without waiting for the answer; says which request it was.
    pub(crate) fn ask(&mut self, method: &str, mut params: Value) -> u64 {
        self.last_id += 1;
        if let (Some(meta), Some(params)) = (self.meta.as_object(), params.as_object_mut()) {
            let own = params.remove("_meta");
            let mut meta = meta.clone();
            meta.extend(own.as_ref().and_then(Value::as_object).cloned().unwrap_or_default());
            params.insert("_meta".into(), Value::Object(meta));
        }
        let message = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        self.say(&message);
        self.last_id
    }

    /// The next message of any kind.
    pub(crate) fn hear(&mut self, patience: Duration) -> Option<Value> {
        self.heard.recv_timeout(patience).ok()
    }

    /// Waits until a message is one that the test names; what comes before it is put aside.
    pub(crate) fn hear_until(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.aside.iter().position(&is_it) {
            return self.aside.remove(at);
        }
        let until = Instant::now() + PATIENCE;
        while let Some(message) = self.hear(until.saturating_duration_since(Instant::now())) {
            if is_it(&message) {
                return message;
            }
            self.aside.push(message);
        }
        panic!("{what} did not come; what came: {:#?}", self.aside);
    }

    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.hear_until(&format!("the answer to request {id}"), |message| {
            message["id"] == id && message.get("method").is_none()
        })
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// Calls a tool; the whole result.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(answer.get("result").is_some(), "{tool}: {answer}");
        answer["result"].clone()
    }

    /// Calls a tool that must do what it was asked for; the facts of its answer.
    pub(crate) fn tool(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_ne!(result["isError"], true, "{tool}: {result}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that must refuse; what it says.
    pub(crate) fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        text(&result)
    }

    /// Hangs up and waits until the server has left.
    pub(crate) fn hang_up(mut self) {
        self.stdin = None;
        assert!(self.server.wait().unwrap().success());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// The words of a result.
pub(crate) fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// Waits until something holds that nobody tells us about.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "never came true: {what}");
        std::thread::yield_now();
        std::thread::park_timeout(Duration::from_millis(5));
    }
}
