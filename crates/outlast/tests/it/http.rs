//! The condition `http`: a path on the job's own port answers, with real servers.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sandbox;

/// A server that answers each request with the next of some statuses, and the last of them from then on.
fn server(statuses: &str) -> String {
    format!(
        "exec python3 -c \"
import http.server
left = list({statuses})
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status = left.pop(0) if len(left) > 1 else left[0]
        self.send_response(status)
        self.send_header('Location', 'http://127.0.0.1:9/elsewhere')
        self.end_headers()
    def log_message(self, *a):
        print('asked', self.path, flush=True)
http.server.HTTPServer(('127.0.0.1', 0), H).serve_forever()
\""
    )
}

#[test]
fn a_path_that_answers_ends_the_wait() {
    let sandbox = sandbox();
    let job = sandbox.start(["exec python3 -m http.server 0 --bind 127.0.0.1"]).to_string();
    let waited = sandbox.json(["wait", &job, "--http", "/", "--deadline", "30s"]);
    assert_eq!(waited["reason"], "http", "{waited}");
    assert_eq!(waited["match"]["captures"], serde_json::json!(["200", "/"]));
    assert!(waited["port"].as_u64().unwrap() > 0);
    // What is not there is not 2xx; but it can be what is wanted.
    sandbox.run(["wait", &job, "--http", "/nothing", "--deadline", "1s"]).code(4);
    sandbox.run(["wait", &job, "--http", "/nothing#404", "--deadline", "30s"]).ok();
}

#[test]
fn it_is_asked_again_until_it_is_ready() {
    let sandbox = sandbox();
    let job = sandbox.start([server("[503, 503, 200]")]).to_string();
    let waited = sandbox.json(["wait", &job, "--http", "/health", "--deadline", "30s"]);
    assert_eq!(waited["match"]["text"], "200 /health", "{waited}");
    let asked = sandbox.run(["read", &job]).ok().text();
    assert_eq!(asked.matches("asked /health").count(), 3, "{asked}");
}

#[test]
fn a_redirect_is_an_answer_and_is_not_followed() {
    let sandbox = sandbox();
    let job = sandbox.start([server("[302]")]).to_string();
    sandbox.run(["wait", &job, "--http", "/", "--deadline", "1s"]).code(4);
    sandbox.run(["wait", &job, "--http", "/#302", "--deadline", "30s"]).ok();
}

#[test]
fn a_server_that_never_answers_holds_nothing_up() {
    let sandbox = sandbox();
    let script = "import socket; s=socket.socket(); s.bind(('127.0.0.1',0)); s.listen(); input('name? ')";
    let job = sandbox.start([format!("exec python3 -c \"{script}\"")]).to_string();
    let waited = sandbox.json(["wait", &job, "--http", "/", "--awaiting-input", "--deadline", "30s"]);
    assert_eq!(waited["reason"], "awaiting_input", "{waited}");
    sandbox.run(["wait", &job, "--http", "/", "--deadline", "1s"]).code(4);
}

#[test]
fn a_port_of_somebody_else_is_never_asked() {
    let sandbox = sandbox();
    let foreign = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = foreign.local_addr().unwrap().port();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    std::thread::spawn(move || {
        while foreign.accept().is_ok() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    let job = sandbox.start(["exec python3 -m http.server 0 --bind 127.0.0.1"]).to_string();
    sandbox.run(["wait", &job, "--port", "--deadline", "30s"]).ok();
    let url = format!("http://127.0.0.1:{port}/x");
    sandbox.run(["wait", &job, "--http", &url, "--deadline", "1s"]).code(4);
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    sandbox.run(["wait", &job, "--http", "http://192.0.2.1:80/"]).code(2).says("only this machine");
}
