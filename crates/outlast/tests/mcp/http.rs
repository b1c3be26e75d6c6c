//! Streamable HTTP: only this machine, only with the token, from no other origin.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::client::{Sandbox, TEST_TIMEOUT};

pub(crate) struct Server {
    process: Child,
    /// Kept open: the server says more than its first line.
    _talk: BufReader<std::process::ChildStderr>,
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(sandbox: &Sandbox) -> Self {
        let mut process = sandbox
            .command(&["--http", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut talk = BufReader::new(process.stderr.take().unwrap());
        talk.read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
        Self { process, _talk: talk, address }
    }

    /// Sends one request; the status and the body.
    fn post(&self, headers: &[(&str, &str)], body: &Value) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let body = body.to_string();
        let mut request =
            format!("POST /mcp HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        let own_host = [("Host", self.address.as_str())];
        let host: &[(&str, &str)] =
            if headers.iter().any(|(name, _)| *name == "Host") { &[] } else { &own_host };
        let accept = [
            ("Accept", "application/json, text/event-stream"),
            ("Content-Type", "application/json"),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "run_shell_command"),
        ];
        for (name, value) in host.iter().chain(headers).chain(&accept) {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{request}\r\n{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn call() -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "run_shell_command",
            "arguments": {"command": "echo over http"},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    })
}

#[test]
fn nobody_gets_in_without_the_token_or_from_elsewhere() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox);
    let file = sandbox.path().join("home/mcp-token");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let token = std::fs::read_to_string(&file).unwrap();
    let right = format!("Bearer {token}");
    let right = ("Authorization", right.as_str());
    assert_eq!(server.post(&[], &call()).0, 401);
    assert_eq!(server.post(&[("Authorization", "Bearer 0000")], &call()).0, 401);
    assert_eq!(server.post(&[right, ("Origin", "http://evil.example")], &call()).0, 403);
    assert_eq!(server.post(&[right, ("Host", "evil.example")], &call()).0, 403);
    assert!(sandbox.outlast().jobs().is_empty());
    let (status, answer) = server.post(&[right, ("Origin", "http://localhost:3000")], &call());
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains("over http"), "{answer}");
    // No priming event: the first thing that comes is an answer.
    assert!(!answer.contains("\ndata:\r\n") && !answer.contains("\ndata: \n"), "{answer}");
}

#[test]
fn the_token_stays_the_same_and_only_this_machine_is_served() {
    let sandbox = Sandbox::new();
    let token = || std::fs::read_to_string(sandbox.path().join("home/mcp-token")).unwrap();
    drop(Server::start(&sandbox));
    let first = token();
    drop(Server::start(&sandbox));
    assert_eq!(token(), first);
    let refused = sandbox.command(&["--http", "0.0.0.0:0"]).output().unwrap();
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("127.0.0.1"));
}
