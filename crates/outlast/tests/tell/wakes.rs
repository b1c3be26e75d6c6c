//! Wakes: what `run` promises, and what really happens, also when nobody is there any more.

use std::io::{Read, Write};
use std::net::TcpListener;

use outlast_testkit::{TEST_TIMEOUT, eventually};

use super::{entry, sandbox};

#[test]
fn run_says_which_wakes_will_happen() {
    let sandbox = sandbox();
    let answer = sandbox.json([
        "run",
        "-d",
        "--wake",
        "exec:true",
        "--wake",
        "webhook:gopher://example.org/",
        "--wake",
        "tmux:nowhere",
        "--wake",
        "agent",
        "--wake",
        "codex",
        "--wake",
        "file:/nowhere/at/all",
        "true",
    ]);
    let will: Vec<(&str, bool)> = answer["wakes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|wake| (wake["kind"].as_str().unwrap(), wake["will"].as_bool().unwrap()))
        .collect();
    let expected = [
        ("exec", true),
        ("webhook", false),
        ("tmux", false),
        ("agent", false),
        ("codex", false),
        ("file", false),
    ];
    assert_eq!(will, expected, "{answer}");
    sandbox.run(["run", "-d", "--wake", "pigeon:home", "true"]).code(2).says("pigeon");
}

#[test]
fn a_command_gets_the_event_and_its_failure_is_told() {
    let sandbox = sandbox();
    let file = sandbox.root().join("got");
    let good = format!("exec:cat > {0}.new && mv {0}.new {0}", file.display());
    sandbox.start(["--wake", &good, "--wake", "exec:echo out of luck >&2; exit 9", "exit 4"]);
    let told = entry(&sandbox, "wake_failed");
    assert!(told["text"].as_str().unwrap().contains("out of luck"), "{told}");
    let got: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!((got["event"].as_str(), got["n"].as_u64()), (Some("exit"), Some(1)));
    sandbox.nothing_runs();
}

#[test]
fn a_command_that_hangs_is_ended_and_no_part_of_the_job() {
    let sandbox = sandbox();
    let config = sandbox.root().join("config/outlast");
    std::fs::create_dir_all(&config).unwrap();
    let text = "[[wake]]\nkind = \"exec\"\ncommand = \"sleep 1000\"\ntimeout = \"300ms\"\non = [\"exit\"]\n";
    std::fs::write(config.join("config.toml"), text).unwrap();
    let job = sandbox.start(["true"]);
    let answer = sandbox.wait_for_end(job);
    assert!(answer["left_behind"].as_array().is_none_or(Vec::is_empty), "{answer}");
    let told = entry(&sandbox, "wake_failed");
    assert!(told["text"].as_str().unwrap().contains("300 ms"), "{told}");
    sandbox.nothing_runs();
}

#[test]
fn a_running_wake_is_not_killed_with_the_job_and_does_not_hold_it_up() {
    let sandbox = sandbox();
    let file = sandbox.root().join("woken");
    let fifo = sandbox.root().join("gate");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let wake = format!("exec:cat < {} > {}", fifo.display(), file.display());
    let job =
        sandbox.start(["--notify", "pattern=here", "--wake", &wake, "echo here; sleep 1000"]).to_string();
    entry(&sandbox, "pattern");
    let killed = sandbox.json(["kill", &job]);
    assert_eq!(killed["survivors"].as_array().map(Vec::len), Some(0), "{killed}");
    std::fs::write(&fifo, "through").unwrap();
    eventually("the wake ends by itself", TEST_TIMEOUT, || {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        if text == "through" { Ok(()) } else { Err(text) }
    });
    sandbox.nothing_runs();
}

/// Takes one request; answers it; returns its head and body.
fn serve(listener: &TcpListener, answer: &str) -> (String, Vec<u8>) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let n = stream.read(&mut piece).unwrap();
        bytes.extend_from_slice(&piece[..n]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let length =
            head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse::<usize>().ok());
        if bytes.len() >= end + 4 + length.unwrap() {
            stream.write_all(format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n").as_bytes()).unwrap();
            return (head, bytes[end + 4..].to_vec());
        }
    }
}

#[test]
fn a_webhook_is_signed_and_tried_again() {
    let sandbox = sandbox();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = sandbox.root().join("config/outlast");
    std::fs::create_dir_all(&config).unwrap();
    let text =
        format!("[[wake]]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:{port}/hook\"\nkey = \"secret\"\n");
    std::fs::write(config.join("config.toml"), text).unwrap();
    sandbox.start(["true"]);
    serve(&listener, "503 Later");
    let (head, body) = serve(&listener, "204 No Content");
    assert!(head.starts_with("POST /hook HTTP/1.1\r\n"), "{head}");
    let event: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(event["event"], "exit");
    let signature = head.lines().find_map(|line| line.strip_prefix("X-Outlast-Signature: sha256=")).unwrap();
    let mut openssl = std::process::Command::new("python3");
    openssl.args([
        "-c",
        "import hmac,sys;print(hmac.new(b'secret',sys.stdin.buffer.read(),'sha256').hexdigest())",
    ]);
    openssl.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = openssl.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&body).unwrap();
    let said = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(said.trim(), signature);
}

/// Certificates, and a server over TLS that writes what is posted to it into a file.
struct Secure {
    child: std::process::Child,
    port: u16,
    ca: std::path::PathBuf,
    stranger: std::path::PathBuf,
    posted: std::path::PathBuf,
}

impl Drop for Secure {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const SECURE: &str = r#"
import http.server, os, ssl, sys
class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        with open('posted.new', 'wb') as out: out.write(body)
        os.rename('posted.new', 'posted')
        self.send_response(204); self.end_headers()
server = http.server.HTTPServer(('127.0.0.1', 0), Hook)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain('server.pem', 'server.key')
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

fn secure(sandbox: &outlast_testkit::Sandbox) -> Option<Secure> {
    use std::io::BufRead;
    let folder = sandbox.root().join("tls");
    std::fs::create_dir_all(&folder).unwrap();
    let openssl = |line: &str| {
        let mut command = std::process::Command::new("openssl");
        command.args(line.split(' ')).current_dir(&folder).stderr(std::process::Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
    if !openssl(&format!("req -x509 {key} -keyout ca.key -out ca.pem -subj /CN=ours")) {
        outlast_testkit::left_out("openssl makes no certificates", "apt-get install openssl");
        return None;
    }
    std::fs::write(folder.join("names"), "subjectAltName=IP:127.0.0.1\n").unwrap();
    assert!(openssl(&format!("req -x509 {key} -keyout other.key -out other.pem -subj /CN=another")));
    assert!(openssl(
        "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout server.key -out server.csr -subj /CN=server"
    ));
    assert!(openssl(
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 -extfile names"
    ));
    let mut command = std::process::Command::new("python3");
    command.args(["-c", SECURE]).current_dir(&folder).stdout(std::process::Stdio::piped());
    let Ok(mut child) = command.stderr(std::process::Stdio::null()).spawn() else {
        outlast_testkit::left_out("python3 is not installed", "apt-get install python3");
        return None;
    };
    let mut said = String::new();
    std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
    let port = said.trim().parse().unwrap();
    let file = |name: &str| folder.join(name);
    Some(Secure { child, port, ca: file("ca.pem"), stranger: file("other.pem"), posted: file("posted") })
}

#[test]
fn a_webhook_goes_over_tls_to_a_server_that_proves_who_it_is() {
    let sandbox = sandbox();
    let Some(server) = secure(&sandbox) else { return };
    let config = sandbox.root().join("config/outlast");
    std::fs::create_dir_all(&config).unwrap();
    let trust = |ca: &std::path::Path| {
        let url = format!("https://127.0.0.1:{}/hook", server.port);
        let text = format!("[[wake]]\nkind = \"webhook\"\nurl = {url:?}\nca = {ca:?}\n");
        std::fs::write(config.join("config.toml"), text).unwrap();
        let answer = sandbox.json(["run", "-d", "true"]);
        assert_eq!(answer["wakes"][0]["will"], true, "{answer}");
    };
    trust(&server.stranger);
    let told = entry(&sandbox, "wake_failed");
    assert!(told["text"].as_str().unwrap().contains("certificate"), "{told}");
    assert!(!server.posted.exists(), "nothing is said to a server that can't prove who it is");
    trust(&server.ca);
    let posted = eventually("the event is posted", TEST_TIMEOUT, || std::fs::read(&server.posted));
    let event: serde_json::Value = serde_json::from_slice(&posted).unwrap();
    assert_eq!(event["event"], "exit");
}

/// Writes down the command line of whatever program it is loaded into.
const PRELOADED: &str = r#"
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void note(void) {
    char line[4096];
    FILE *in = fopen("/proc/self/cmdline", "r"), *out = fopen(getenv("LOADED_INTO"), "a");
    size_t n = in ? fread(line, 1, sizeof line, in) : 0;
    for (size_t i = 0; i < n; i++) if (!line[i]) line[i] = ' ';
    if (out) { fwrite(line, 1, n, out); fputc('\n', out); fclose(out); }
    if (in) fclose(in);
}
"#;

#[test]
fn a_wake_gets_nothing_of_the_environment_that_a_call_gives_to_its_job() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = sandbox();
    let root = sandbox.root().to_owned();
    let [evil, stolen, woken, loaded] = ["evil", "stolen", "woken", "loaded"].map(|name| root.join(name));
    std::fs::create_dir_all(&evil).unwrap();
    std::fs::write(evil.join("sh"), format!("#!/bin/sh\necho \"$*\" >> {}\n", stolen.display())).unwrap();
    std::fs::set_permissions(evil.join("sh"), PermissionsExt::from_mode(0o755)).unwrap();
    let library = root.join("note.so");
    std::fs::write(root.join("note.c"), PRELOADED).unwrap();
    let mut gcc = std::process::Command::new("gcc");
    gcc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(root.join("note.c"));
    let built = gcc.status().is_ok_and(|status| status.success());
    let config = root.join("config/outlast");
    std::fs::create_dir_all(&config).unwrap();
    let command = format!("(env; pwd) > {0}.new && mv {0}.new {0}", woken.display());
    std::fs::write(config.join("config.toml"), format!("[[wake]]\nkind = \"exec\"\ncommand = {command:?}\n"))
        .unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut env = serde_json::json!({
        "PATH": format!("{}:{path}", evil.display()), "SSL_CERT_FILE": "/of/the/job", "OF_THE_JOB": "1",
        "LOADED_INTO": loaded,
    });
    if built {
        env["LD_PRELOAD"] = library.display().to_string().into();
    } else {
        outlast_testkit::left_out("there is no gcc to build a library with", "apt-get install gcc");
    }
    let mut client = sandbox.call(["mcp"]).converse();
    let hello = serde_json::json!({ "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "tests", "version": "1" } });
    client.call("initialize", hello);
    client.notify("notifications/initialized", serde_json::json!({}));
    let arguments = serde_json::json!({ "command": "true", "dir_path": sandbox.work(), "env": env });
    let call = serde_json::json!({ "name": "run_shell_command", "arguments": arguments });
    let answer = client.call("tools/call", call);
    assert_ne!(answer["isError"], true, "{answer}");
    let seen = eventually("the wake", TEST_TIMEOUT, || {
        std::fs::read_to_string(&woken).map_err(|error| (error.to_string(), std::fs::read_to_string(&stolen)))
    });
    let has = |line: &str| seen.lines().any(|seen| seen == line);
    assert!(has(&format!("PATH={path}")), "{seen}");
    assert!(!seen.contains("OF_THE_JOB") && !seen.contains("/of/the/job"), "{seen}");
    let work = sandbox.work().canonicalize().unwrap();
    assert!(has(&work.display().to_string()), "it runs in the folder of the server: {seen}");
    assert!(!stolen.exists(), "the job's own sh was run: {:?}", std::fs::read_to_string(&stolen));
    if built {
        let loaded = std::fs::read_to_string(&loaded).unwrap();
        assert!(loaded.contains("true"), "the job itself loads it: {loaded}");
        assert!(!loaded.contains("deliver") && !loaded.contains("woken"), "{loaded}");
    }
    assert_eq!(client.hang_up(), Some(0));
    sandbox.nothing_runs();
}

#[test]
fn a_wake_whose_helper_is_killed_each_time_is_given_up() {
    let sandbox = sandbox();
    let wake = "exec:kill -9 $PPID";
    sandbox.start(["--notify", "pattern=here", "--wake", wake, "echo here; sleep 1000"]);
    let told = entry(&sandbox, "wake_failed");
    assert!(told["text"].as_str().unwrap().contains("its helper was killed each time"), "{told}");
}
