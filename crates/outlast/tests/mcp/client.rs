//! An MCP client of our own, and the sealed home it works in.

use std::ops::Deref;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use outlast_job::Outlast;
use outlast_testkit::Conversation;
pub(crate) use outlast_testkit::TEST_TIMEOUT;
use serde_json::{Value, json};

/// The real program: its server is `outlast mcp`.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_outlast");

/// A home for servers, which tell each conversation by itself.
pub(crate) struct Sandbox(outlast_testkit::Sandbox);

impl Deref for Sandbox {
    type Target = outlast_testkit::Sandbox;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self(outlast_testkit::Sandbox::with_home(PROGRAM, "home"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.root()
    }

    /// A server process, not yet spoken to.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.of_environment(PROGRAM);
        command.arg("mcp").args(arguments);
        command
    }

    /// Any program, in this environment.
    pub(crate) fn of_environment(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = self.0.command(program);
        command
            .env_remove("OUTLAST_SESSION")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME")
            .env("HOME", self.path())
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

/// One client and its server.
pub(crate) struct Client {
    server: Conversation,
    last_id: u64,
    /// Goes into every request, as the newer era wants it.
    pub(crate) meta: Value,
    /// What came besides the answers.
    pub(crate) aside: Vec<Value>,
}

impl Client {
    pub(crate) fn start(command: Command) -> Self {
        Self { server: Conversation::begin(command), last_id: 0, meta: Value::Null, aside: Vec::new() }
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
        self.server.pid().cast_unsigned()
    }

    pub(crate) fn say(&mut self, message: &Value) {
        self.server.say(&message.to_string());
    }

    /// Says a line as it is.
    pub(crate) fn say_text(&mut self, line: &str) {
        self.server.say(line);
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
        self.server.next_message(patience)
    }

    /// Waits until a message is one that the test names; what comes before it is put aside.
    pub(crate) fn hear_until(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.aside.iter().position(&is_it) {
            return self.aside.remove(at);
        }
        let until = Instant::now() + TEST_TIMEOUT;
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
    pub(crate) fn hang_up(self) {
        assert_eq!(self.server.hang_up(), Some(0));
    }
}

/// The words of a result.
pub(crate) fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// Waits until something holds that nobody tells us about.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    outlast_testkit::eventually(what, TEST_TIMEOUT, || if holds() { Ok(()) } else { Err("not yet") });
}
