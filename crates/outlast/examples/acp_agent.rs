//! An ACP agent for tests. It does what prompts say, with no model behind it, and keeps its conversation in a file.
//!
//!   say TEXT       says it
//!   job COMMAND    starts it in the background, with the MCP server it was given
//!   hold FIFO      works until somebody opens the FIFO
//!   hang           works until it is cancelled
//!   refuse         answers with an error
//!   stream TEXT    ends the turn, then shows TEXT as a stream of its own
//!   run COMMAND    runs it and waits for its end
//!   lines COMMAND  starts it, with each of its lines an event
//!   watch COMMAND  the same, in a tool call that it shows
//!   call COMMAND   runs it and waits for its end, in a tool call that it shows
//!   flood COUNT    ends the turn, then shows a stream of its own with this many updates
//!   jobs           lists them with the server's tool
//!
//! Every prompt goes into `$AGENT_HISTORY` as one line of JSON when it comes; `session/load` tells it again. While one
//! process has the conversation open, another waits. `$AGENT_TOLD` is what it does when it is told events: `loop` starts a
//! job, `die` says something, forgets all and exits, `hang` works until it is cancelled, `refuse` answers with an error, `hold FIFO` waits there without a word.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a fixture fails by panicking, and talks on stdout"
)]

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

#[derive(Default)]
struct Agent {
    history: Mutex<Option<File>>,
    server: Mutex<Option<Server>>,
    /// Whether a turn runs, and whether it was cancelled.
    turns: Mutex<HashMap<String, bool>>,
    cancelled: Condvar,
}

/// The MCP server that we were given.
struct Server {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    calls: u64,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn main() {
    let agent = Arc::new(Agent::default());
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let message: Value = serde_json::from_str(&line).unwrap();
        let id = message.get("id").cloned();
        match (message["method"].as_str(), id) {
            (Some("session/prompt"), Some(id)) => {
                let agent = Arc::clone(&agent);
                let session = message["params"]["sessionId"].as_str().unwrap().to_owned();
                let text = texts(&message["params"]["prompt"]);
                let overlaps = agent.turns.lock().unwrap().insert(session.clone(), false).is_some();
                agent.remember(&json!({ "user": text, "overlaps": overlaps }));
                std::thread::spawn(move || agent.turn(&session, &id, &text));
            }
            (Some("session/cancel"), _) => {
                let session = message["params"]["sessionId"].as_str().unwrap();
                if let Some(cancelled) = agent.turns.lock().unwrap().get_mut(session) {
                    *cancelled = true;
                }
                agent.cancelled.notify_all();
            }
            (Some(method), Some(id)) => agent.answer(method, &id, &message["params"], &line),
            // What we do not know is shown exactly as it came.
            (Some(_), None) => say(&json!({ "method": "_fixture/heard", "params": { "line": line } })),
            (None, _) => {}
        }
    }
}

fn say(message: &Value) {
    let mut message = message.clone();
    message["jsonrpc"] = "2.0".into();
    let mut stdout = std::io::stdout().lock();
    // Nobody there any more: the end of our input follows.
    let _ = writeln!(stdout, "{message}").and_then(|()| stdout.flush());
}

fn update(session: &str, update: &Value) {
    say(&json!({ "method": "session/update", "params": { "sessionId": session, "update": update } }));
}

fn streamed(session: &str, text: &str) {
    update(
        session,
        &json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "shell-1", "status": "in_progress",
            "content": [{ "type": "content", "content": { "type": "text", "text": text } }],
            "_meta": { "gemini-cli/stream_output": true, "pid": 1 },
        }),
    );
}

fn texts(content: &Value) -> String {
    let blocks = content.as_array().unwrap().iter();
    blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

impl Agent {
    fn answer(&self, method: &str, id: &Value, params: &Value, line: &str) {
        let result = match method {
            "initialize" => json!({ "protocolVersion": 1, "agentCapabilities": { "loadSession": true } }),
            "session/new" => {
                self.open(params);
                json!({ "sessionId": "conversation" })
            }
            "session/resume" => {
                self.open(params);
                json!({})
            }
            "session/load" => {
                self.open(params);
                let path = std::env::var("AGENT_HISTORY").unwrap();
                for line in std::fs::read_to_string(path).unwrap().lines() {
                    let entry: Value = serde_json::from_str(line).unwrap();
                    let content = json!({ "type": "text", "text": entry["user"] });
                    update(
                        "conversation",
                        &json!({ "sessionUpdate": "user_message_chunk", "content": content }),
                    );
                }
                json!({})
            }
            "_fixture/odd" => {
                println!("{}", params["line"].as_str().unwrap());
                json!({})
            }
            _ => json!({ "line": line }),
        };
        say(&json!({ "id": id, "result": result }));
    }

    /// Takes up the conversation, when the process that had it before is gone.
    fn open(&self, params: &Value) {
        if let Ok(path) = std::env::var("AGENT_HISTORY") {
            *self.history.lock().unwrap() = None;
            let file = File::options().create(true).append(true).open(path).unwrap();
            rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
            *self.history.lock().unwrap() = Some(file);
        }
        let ours = params["mcpServers"].as_array().unwrap().iter().find(|server| server["name"] == "outlast");
        *self.server.lock().unwrap() = ours.map(Server::start);
    }

    fn remember(&self, entry: &Value) {
        if let Some(file) = &mut *self.history.lock().unwrap() {
            file.write_all(format!("{entry}\n").as_bytes()).unwrap();
        }
    }

    fn turn(&self, session: &str, id: &Value, text: &str) {
        let told = if text.starts_with("[outlast events ") { std::env::var("AGENT_TOLD").ok() } else { None };
        let first = told.as_deref().unwrap_or_else(|| text.lines().next().unwrap_or_default());
        let (word, rest) = first.split_once(' ').unwrap_or((first, ""));
        let words = match word {
            "job" => self.start(rest, "background"),
            "lines" => self.start(rest, "lines"),
            "run" => self.start(rest, "foreground"),
            "watch" => self.shown(session, rest, "lines"),
            "call" => self.shown(session, rest, "foreground"),
            "jobs" => self.call("jobs", &json!({}))["content"][0]["text"].as_str().unwrap().to_owned(),
            "hold" => {
                let _ = File::open(rest).unwrap();
                "held".into()
            }
            "hang" => {
                let turns = self.turns.lock().unwrap();
                drop(self.cancelled.wait_while(turns, |turns| !turns[session]).unwrap());
                "cancelled".into()
            }
            "say" => rest.to_owned(),
            "loop" => self.start("sleep 0.3", "background"),
            _ => "ok".into(),
        };
        if word != "refuse" {
            let content = json!({ "type": "text", "text": words });
            update(session, &json!({ "sessionUpdate": "agent_message_chunk", "content": content }));
        }
        if word == "die" {
            if let Some(file) = &*self.history.lock().unwrap() {
                file.set_len(0).unwrap();
            }
            std::process::exit(9);
        }
        let cancelled = self.turns.lock().unwrap().remove(session).unwrap_or(false);
        let reason = if cancelled { "cancelled" } else { "end_turn" };
        if word == "refuse" {
            say(&json!({ "id": id, "error": { "code": -32000, "message": "not today" } }));
        } else {
            say(&json!({ "id": id, "result": { "stopReason": reason } }));
        }
        match word {
            "stream" => streamed(session, rest),
            "flood" => (1..=rest.parse::<u64>().unwrap()).for_each(|n| streamed(session, &format!("EV:{n}"))),
            _ => {}
        }
    }

    /// A tool call, as agents show it.
    fn shown(&self, session: &str, command: &str, how: &str) -> String {
        let call = format!("call-{}", self.server.lock().unwrap().as_ref().unwrap().calls);
        update(
            session,
            &json!({ "sessionUpdate": "tool_call", "toolCallId": call, "status": "pending", "title": "run" }),
        );
        let result = self.run(command, how);
        let content = json!([{ "type": "content", "content": result["content"][0] }]);
        update(
            session,
            &json!({
                "sessionUpdate": "tool_call_update", "toolCallId": call, "status": "completed",
                "content": content, "rawOutput": result,
            }),
        );
        "done".into()
    }

    fn start(&self, command: &str, how: &str) -> String {
        format!("started {}", self.run(command, how)["structuredContent"]["handle"])
    }

    fn run(&self, command: &str, how: &str) -> Value {
        let background = how != "foreground";
        self.call("run_shell_command", &json!({
            "command": command, "is_background": background, "ai_callback_delay": 30, "stream_output": how == "lines",
        }))
    }

    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let mut server = self.server.lock().unwrap();
        let answer =
            server.as_mut().unwrap().call("tools/call", &json!({ "name": tool, "arguments": arguments }));
        answer["result"].clone()
    }
}

impl Server {
    fn start(entry: &Value) -> Self {
        let arguments: Vec<&str> =
            entry["args"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let mut command = Command::new(entry["command"].as_str().unwrap());
        let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut server = Self { child, stdin, stdout, calls: 0 };
        let client = json!({ "name": "fixture", "version": "1" });
        server.call(
            "initialize",
            &json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client }),
        );
        writeln!(server.stdin, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .unwrap();
        server
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.calls, "method": method, "params": params });
        writeln!(self.stdin, "{request}").unwrap();
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the MCP server is gone");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == self.calls && message.get("method").is_none() {
                return message;
            }
        }
    }
}
