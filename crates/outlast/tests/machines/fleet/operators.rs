//! What operators see: metrics of a node, and jobs as spans at a collector.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use outlast_testkit::{TEST_TIMEOUT, eventually};
use serde_json::Value;

use super::{Broker, Host, sees};
use crate::sandbox;

fn get(address: &str, header: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: x\r\n{header}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_node_serves_metrics_to_who_has_the_token() {
    let Some(broker) = Broker::start() else { return };
    let user = sandbox();
    broker.tell(&user, "alice");
    let token = user.root().join("token");
    std::fs::write(&token, "0123456789abcdef0123\n").unwrap();
    let options =
        ["--label", "build", "--metrics", "127.0.0.1:0", "--metrics-token", token.to_str().unwrap()];
    let host = Host::join(&broker, "one", &options);
    sees(&user, &["one"]);
    user.run(["submit", "--on", "build", "--wait", "true"]).ok();
    let log = std::fs::read_to_string(host.box_.root().join("node.log")).unwrap();
    let address = log.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    assert!(get(&address, "").starts_with("HTTP/1.1 401"));
    let answer = get(&address, "Authorization: Bearer 0123456789abcdef0123\r\n");
    for line in
        ["outlast_orders_ended_total 1", "outlast_broker_connected 1", "outlast_jobs{need=\"runs\"} 0"]
    {
        assert!(answer.contains(line), "{line}: {answer}");
    }
}

/// A collector that takes one request.
fn collector() -> (String, std::thread::JoinHandle<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let taken = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
            head += &line;
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        (&stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
        (head, serde_json::from_slice(&body).unwrap())
    });
    (url, taken)
}

#[test]
fn jobs_become_spans_of_their_trace_without_their_command_lines() {
    let here = sandbox();
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    here.run(["run", "-d", "--name", "good", "-e", &format!("TRACEPARENT={trace}"), "echo secret-word"]).ok();
    here.run(["run", "-d", "exit 3"]).ok();
    eventually("both have ended", TEST_TIMEOUT, || {
        let jobs = here.json(["jobs", "--all"]);
        let ended = jobs["jobs"].as_array().unwrap().iter().filter(|job| !job["ended_at"].is_null()).count();
        if ended == 2 { Ok(()) } else { Err(jobs) }
    });
    let (url, taken) = collector();
    let send = || here.call(["--json", "telemetry", "--once"]).env("OTEL_EXPORTER_OTLP_ENDPOINT", &url);
    let sent = send().env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=abc").run().ok().json();
    assert_eq!(sent["sent"], 2);
    let (head, body) = taken.join().unwrap();
    assert!(head.starts_with("POST /v1/traces ") && head.contains("x-key: abc"), "{head}");
    let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let good = spans.iter().find(|span| span["name"] == "good").unwrap();
    assert_eq!(good["traceId"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(good["parentSpanId"], "b7ad6b7169203331");
    assert_eq!(good["status"]["code"], 1);
    let bad = spans.iter().find(|span| span["status"]["code"] == 2).unwrap();
    let code =
        bad["attributes"].as_array().unwrap().iter().find(|one| one["key"] == "process.exit.code").unwrap();
    assert_eq!(code["value"]["intValue"], "3");
    assert!(!body.to_string().contains("secret-word"), "{body}");
    assert_eq!(send().run().ok().json()["sent"], 0, "what was sent is not sent again");
}

#[test]
fn tool_calls_become_spans_of_the_callers_trace_without_their_arguments() {
    let here = sandbox();
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
    let mut talk =
        here.call(["mcp", "--session", "agent", "--own", "allow"]).env(endpoint.0, endpoint.1).converse();
    let client = serde_json::json!({ "name": "test", "version": "1" });
    let asked =
        serde_json::json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let _hello = talk.call("initialize", asked);
    talk.notify("notifications/initialized", serde_json::json!({}));
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let arguments = serde_json::json!({ "command": "echo secret-word" });
    let _done = talk.call(
        "tools/call",
        serde_json::json!({ "name": "run_shell_command", "arguments": arguments, "_meta": { "traceparent": trace } }),
    );
    let entry = eventually("the call is noted", TEST_TIMEOUT, || {
        let text = std::fs::read_to_string(here.home().join("calls.jsonl")).map_err(|_| "no file")?;
        if text.ends_with('\n') { Ok(text) } else { Err("half a line") }
    });
    assert!(!entry.contains("secret-word"), "{entry}");
    let (mut found, mut last) = (Vec::new(), String::new());
    // Jobs and calls come in requests of their own.
    for _ in 0..2 {
        let (url, taken) = collector();
        let sent =
            here.call(["--json", "telemetry", "--once"]).env("OTEL_EXPORTER_OTLP_ENDPOINT", &url).run();
        let (_, body) = taken.join().unwrap();
        found.extend(body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone());
        last = sent.to_string();
        if found.iter().any(|span| span["name"] == "tools/call run_shell_command") {
            break;
        }
    }
    let span = found.iter().find(|span| span["name"] == "tools/call run_shell_command");
    let span = span.unwrap_or_else(|| panic!("no span of the call: {found:?} {last}"));
    assert_eq!(span["traceId"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(span["parentSpanId"], "b7ad6b7169203331");
}
