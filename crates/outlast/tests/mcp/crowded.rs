//! Over HTTP, nobody is locked out: not by strangers, and not by clients that never say goodbye.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{PROGRAM, Sandbox, TEST_TIMEOUT, eventually};

/// A server with few descriptors, as a process of its own.
struct Server {
    process: Child,
    _talk: BufReader<std::process::ChildStderr>,
    address: String,
    token: String,
}

impl Server {
    fn start(sandbox: &Sandbox, descriptors: u32, idle: Option<&str>) -> Self {
        let mut command = sandbox.of_environment("sh");
        command.args(["-c", &format!("ulimit -n {descriptors}; exec \"$0\" mcp --http 127.0.0.1:0")]);
        command.arg(PROGRAM);
        if let Some(idle) = idle {
            command.env("OUTLAST_MCP_SESSION_IDLE", idle);
        }
        let mut process = command.stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let mut talk = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        talk.read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
        let token = std::fs::read_to_string(sandbox.path().join("home/mcp-token")).unwrap();
        Self { process, _talk: talk, address, token: token.trim().to_owned() }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream
    }

    /// Sends a request of the older era.
    fn ask(&self, stream: &mut TcpStream, method: &str, session: Option<&str>, body: &str) {
        let session = session.map(|session| format!("Mcp-Session-Id: {session}\r\n")).unwrap_or_default();
        let head = format!(
            "{method} /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: application/json, \
             text/event-stream\r\nContent-Type: application/json\r\n{session}Content-Length: {}\r\n\r\n",
            self.address,
            self.token,
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    }

    /// Asks on a connection of its own; the status and what came until the answer was there.
    fn post(&self, session: Option<&str>, body: &Value) -> (u16, String) {
        let mut stream = self.connect();
        self.ask(&mut stream, "POST", session, &body.to_string());
        let answer = hear_until(&mut stream, |text| {
            text.contains("\"result\"")
                || text.contains("\"error\"")
                || text.contains("\r\n\r\n") && !text.contains("200 OK")
        });
        (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
    }

    /// Begins a session.
    fn initialize(&self) -> String {
        let params = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"},
        });
        let (status, answer) =
            self.post(None, &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}));
        assert_eq!(status, 200, "{answer}");
        let session = answer.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("mcp-session-id").then(|| value.trim().to_owned())
        });
        let session = session.unwrap();
        let (status, answer) =
            self.post(Some(&session), &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(status, 202, "{answer}");
        session
    }

    fn list_tools(&self, session: &str) -> u16 {
        self.post(Some(session), &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})).0
    }

    fn descriptors(&self) -> Vec<String> {
        let fds = std::fs::read_dir(format!("/proc/{}/fd", self.process.id())).unwrap();
        let name = |fd: std::io::Result<std::fs::DirEntry>| std::fs::read_link(fd.ok()?.path()).ok();
        fds.filter_map(name).map(|link| link.to_string_lossy().into_owned()).collect()
    }

    fn inotify_instances(&self) -> usize {
        self.descriptors().iter().filter(|name| name.contains("inotify")).count()
    }

    fn threads(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/task", self.process.id())).unwrap().count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Reads until what came is enough, or the connection is closed.
fn hear_until(stream: &mut TcpStream, enough: impl Fn(&str) -> bool) -> String {
    let mut heard = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&heard).into_owned();
        if enough(&text) {
            return text;
        }
        match stream.read(&mut piece) {
            Ok(0) => return text,
            Ok(n) => heard.extend_from_slice(&piece[..n]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return text,
            Err(error) => panic!("{error} after {text:?}"),
        }
    }
}

#[test]
fn strangers_with_half_requests_lock_nobody_out() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, 256, None);
    let session = server.initialize();
    // A stream that was there before stays.
    let mut stream = server.connect();
    server.ask(&mut stream, "GET", Some(&session), "");
    hear_until(&mut stream, |text| text.contains("\r\n\r\n"));
    let half: [&[u8]; 3] = [
        b"",
        b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
        b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n{",
    ];
    let mut strangers = Vec::new();
    for i in 0..400 {
        let mut stranger = server.connect();
        // Those that came first may be hung up on by now.
        let _ = stranger.write_all(half[i % half.len()]);
        strangers.push(stranger);
        if i % 50 == 0 {
            let asked = Instant::now();
            assert_eq!(server.list_tools(&session), 200);
            assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
        }
    }
    assert_eq!(server.list_tools(&session), 200);
    assert!(server.descriptors().len() < 200, "{} descriptors", server.descriptors().len());
    // Whoever has no token is told so without being waited for, and hung up on.
    let mut stranger = server.connect();
    stranger.write_all(half[2]).unwrap();
    let answer = hear_until(&mut stranger, |_| false);
    assert!(answer.contains("401"), "{answer:?}");
    for stranger in &mut strangers {
        hear_until(stranger, |_| false);
    }
    // The stream still tells of new jobs.
    let call = json!({"name": "run_shell_command", "arguments": {"command": "true"}});
    server.post(Some(&session), &json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call}));
    hear_until(&mut stream, |text| text.contains("list_changed"));
}

#[test]
fn sessions_that_are_not_ended_are_bounded_and_share_one_inotify() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, 512, None);
    let in_use = server.initialize();
    let mut stream = server.connect();
    server.ask(&mut stream, "GET", Some(&in_use), "");
    hear_until(&mut stream, |text| text.contains("\r\n\r\n"));
    let first = server.initialize();
    let mut last = String::new();
    for _ in 0..400 {
        last = server.initialize();
    }
    assert!(server.inotify_instances() <= 1, "{:?}", server.descriptors());
    assert!(server.threads() < 40, "{} threads", server.threads());
    assert!(server.descriptors().len() < 150, "{} descriptors", server.descriptors().len());
    assert_eq!(server.list_tools(&last), 200);
    assert_eq!(server.list_tools(&first), 404, "the one longest unused made room");
    assert_eq!(server.list_tools(&in_use), 200, "one with an open stream did not");
}

#[test]
fn a_session_that_is_not_used_is_closed_and_one_with_an_open_stream_is_not() {
    let sandbox = Sandbox::new();
    // Long enough for a slow machine to open the stream in time.
    let server = Server::start(&sandbox, 512, Some("2"));
    let used = server.initialize();
    let mut stream = server.connect();
    server.ask(&mut stream, "GET", Some(&used), "");
    hear_until(&mut stream, |text| text.contains("\r\n\r\n"));
    let unused = server.initialize();
    // To ask is to use it: so ask seldom.
    eventually("the unused one is gone", || {
        std::thread::park_timeout(Duration::from_secs(3));
        server.list_tools(&unused) == 404
    });
    assert_eq!(server.list_tools(&used), 200);
}

/// The call says nothing for longer than a session may be unused.
#[test]
fn a_silent_call_is_not_cut() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, 512, Some("1"));
    let session = server.initialize();
    let call = json!({"name": "run_shell_command", "arguments": {"command": "sleep 3; echo done", "ai_callback_delay": 30}});
    let call = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call});
    let (status, answer) = server.post(Some(&session), &call);
    assert!(status == 200 && answer.contains("done"), "{answer}");
}

#[test]
fn two_sessions_over_http_are_two_conversations() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, 512, None);
    let (one, other) = (server.initialize(), server.initialize());
    let call = |session: &str, tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        server
            .post(
                Some(session),
                &json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}),
            )
            .1
    };
    call(&one, "run_shell_command", json!({"command": "sleep 1000", "is_background": true}));
    assert!(call(&one, "jobs", json!({})).contains("\"handle\":1"));
    assert!(call(&other, "jobs", json!({})).contains("no jobs in this session"));
    assert!(call(&other, "kill", json!({"handle": 1})).contains("belongs to another session"));
}

/// A wait has no thread and no inotify instance of its own, and neither has a subscription: a hundred agents that wait for
/// their builds cost the server what one does.
#[test]
fn many_waits_and_sessions_share_one_thread_and_one_inotify() {
    const SESSIONS: usize = 50;
    const JOBS: usize = 20;
    const WAITS: usize = 200;
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, 2048, None);
    let tool = |session: &str, id: usize, tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        let mut stream = server.connect();
        server.ask(&mut stream, "POST", Some(session), &body.to_string());
        stream
    };
    let is_answered = |text: &str| text.contains("\"result\"");
    let sessions: Vec<String> = (0..SESSIONS).map(|_| server.initialize()).collect();
    for _ in 0..JOBS {
        let command = json!({"command": "read line", "is_background": true, "again": true});
        hear_until(&mut tool(&sessions[0], 2, "run_shell_command", command), is_answered);
    }
    for (i, session) in sessions.iter().enumerate() {
        let params = json!({"uri": format!("outlast://jobs/{}/screen", 1 + i % JOBS)});
        let body = json!({"jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": params});
        let (status, answer) = server.post(Some(session), &body);
        assert!(status == 200 && answer.contains("result"), "{answer}");
    }
    let mut waits: Vec<TcpStream> = (0..WAITS)
        .map(|i| {
            let arguments = json!({"handle": 1 + i % JOBS, "until": ["exit"], "timeout": 45});
            tool(&sessions[i % SESSIONS], 3 + i, "wait_for", arguments)
        })
        .collect();
    let sockets = || server.descriptors().iter().filter(|name| name.starts_with("socket:")).count();
    eventually("every wait has a connection to a keeper, and one to its client", || sockets() >= 2 * WAITS);
    // Those of the burst of calls end by themselves after a while.
    eventually("the waits have no threads", || server.threads() <= 8);
    assert_eq!(server.inotify_instances(), 1, "{:?}", server.descriptors());
    let outlast = sandbox.outlast();
    for job in 1..=JOBS {
        outlast.job(&job.to_string()).unwrap().type_line("").unwrap();
    }
    for wait in &mut waits {
        let answer = hear_until(wait, is_answered);
        assert!(answer.contains("\"reason\":\"exit\""), "{answer}");
    }
}

/// Where a user has no inotify instances left, following is by looking.
#[test]
fn the_list_is_followed_also_without_inotify() {
    let limit = "echo 0 > /proc/sys/user/max_inotify_instances";
    let can = Command::new("unshare").args(["-Ur", "sh", "-c", limit]).stderr(Stdio::null()).status();
    if !can.is_ok_and(|status| status.success()) {
        outlast_testkit::left_out("a user namespace cannot be made", "run it as root");
        return;
    }
    let sandbox = Sandbox::new();
    let mut server = sandbox.of_environment("unshare");
    let line = format!("{limit}; exec \"$0\" mcp");
    server.args(["-Ur", "sh", "-c", &line, PROGRAM]);
    let mut client = crate::client::Client::start(server).initialized("2025-06-18", &json!({}));
    client.tool("run_shell_command", json!({"command": "true"}));
    client.hear_until("word of the new job", |message| {
        message["method"] == "notifications/resources/list_changed"
    });
}
