//! Every request is answered, also one that can't be read; and a client that does not read its answers is not read from.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::client::{Sandbox, eventually};

#[test]
fn a_request_that_cannot_be_read_is_answered_with_an_error() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let deep = format!("{}{}", "[".repeat(2000), "]".repeat(2000));
    let long = format!("\"{}\"", "a".repeat(17 << 20));
    for (id, odd) in [("surrogate", "\"\\ud800\""), ("deep", &deep), ("long", &long), ("words", "nope")] {
        client.say_text(&format!(
            "{{\"method\":\"tools/call\",\"params\":{{\"name\":{odd}}},\"jsonrpc\":\"2.0\",\"id\":\"{id}\"}}"
        ));
        let answer = client.hear_until(id, |message| message["id"] == id);
        assert_eq!(answer["error"]["code"], -32700, "{answer}");
    }
    // A pair of surrogates is a letter like others, and the next request is read.
    client.say_text(
        "{\"jsonrpc\":\"2.0\",\"id\":\"pair\",\"method\":\"tools/call\",\"params\":{\"name\":\"run_shell_command\",\
         \"arguments\":{\"command\":\"echo \\ud83d\\ude00\"}}}",
    );
    let answer = client.hear_until("pair", |message| message["id"] == "pair");
    assert!(answer.to_string().contains('😀'), "{answer}");
}

#[test]
fn a_command_that_no_system_executes_leaves_no_record() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let said =
        client.refused("run_shell_command", json!({"command": format!("echo {}", "a".repeat(200_000))}));
    assert!(said.contains("200005 bytes long") && said.contains("write the data to a file"), "{said}");
    assert!(sandbox.outlast().jobs().is_empty());
}

/// Whether no thread of a process runs or is about to.
fn sleeps(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    threads.flatten().all(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('S'))
    })
}

#[test]
fn a_client_that_does_not_read_is_not_read_from() {
    const REQUESTS: u64 = 2500;
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&[]);
    let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut to, from) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello});
    writeln!(to, "{hello}\n{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).unwrap();
    let requests = to.as_fd().try_clone_to_owned().unwrap();
    let sent = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&sent);
    let writer = std::thread::spawn(move || {
        for id in 1..=REQUESTS {
            writeln!(to, "{}", json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"})).unwrap();
            counted.store(id, Ordering::Relaxed);
        }
        to
    });
    eventually("the server sleeps though requests wait for it, or all are taken", || {
        let now = sent.load(Ordering::Relaxed);
        now == REQUESTS
            || now > 100 && rustix::io::ioctl_fionread(&requests).unwrap() > 0 && sleeps(server.id())
    });
    drop(requests);
    let taken = sent.load(Ordering::Relaxed);
    assert!(taken < REQUESTS, "all {taken} requests were taken though no answer was read");
    // Nothing is lost by it: whoever reads gets every answer.
    let mut answers = BufReader::new(from).lines().map_while(Result::ok);
    let mut missing = REQUESTS + 1;
    while missing > 0 {
        let message: Value = serde_json::from_str(&answers.next().unwrap()).unwrap();
        missing -= u64::from(message.get("result").is_some());
    }
    drop(writer.join().unwrap());
    server.wait().unwrap();
}
