//! The other side of `outlast mcp`: as small a client as there can be, so that the server is what is
//! measured.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// A running server and our end of it.
pub(crate) struct Server {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    id: u64,
}

impl Server {
    /// Starts one over a home, and shakes hands.
    pub(crate) fn start(program: &Path, home: &Path) -> Result<Self, String> {
        let mut child = Command::new(program)
            .arg("mcp")
            .env("OUTLAST_HOME", home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("no pipes".into());
        };
        let mut server = Self { child, to, from: BufReader::new(from), id: 0 };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"}});
        server.request("initialize", &hello)?;
        server.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(server)
    }

    /// The server's own process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn write(&mut self, message: &Value) -> Result<(), String> {
        let mut line = message.to_string();
        line.push('\n');
        self.to.write_all(line.as_bytes()).map_err(|error| error.to_string())
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        self.id += 1;
        let id = self.id;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let mut line = String::new();
            if self.from.read_line(&mut line).map_err(|error| error.to_string())? == 0 {
                return Err("the server is gone".into());
            }
            let mut message: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
            if message["id"] == id {
                return match message.get("error") {
                    Some(error) => Err(error.to_string()),
                    None => Ok(message["result"].take()),
                };
            }
        }
    }

    /// Calls a tool and does not wait for the answer.
    pub(crate) fn send(&mut self, tool: &str, arguments: &Value) -> Result<(), String> {
        self.id += 1;
        let params = json!({"name": tool, "arguments": arguments});
        self.write(&json!({"jsonrpc": "2.0", "id": self.id, "method": "tools/call", "params": params}))
    }

    /// Calls a tool; the facts of its answer.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value, String> {
        let mut result = self.request("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        if result["isError"] == true {
            return Err(result["content"].to_string());
        }
        Ok(result["structuredContent"].take())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
