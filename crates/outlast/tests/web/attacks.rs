//! Attacks on the server, each of which must fail: other names, other sites, half of what gets somebody in, and too much of anything.

use std::io::{Read, Write};

use serde_json::{Value, json};

use crate::client::{Page, Request, Served};
use crate::sandbox;

fn served() -> (outlast_testkit::Sandbox, Served, Page) {
    let sandbox = sandbox();
    sandbox.start(["echo secret of a job; sleep 600"]);
    let served = Served::start(&sandbox, &[]);
    let page = served.page();
    (sandbox, served, page)
}

fn hello() -> Value {
    json!({ "call": "hello" })
}

/// Each variant of a good request is refused with one of the statuses.
#[track_caller]
fn all_refused(good: impl Fn() -> Request, statuses: &[u16], bad: &[&dyn Fn(Request) -> Request]) {
    for (index, change) in bad.iter().enumerate() {
        let answer = change(good()).send();
        assert!(statuses.contains(&answer.status), "attack {index} got {}: {}", answer.status, answer.text());
        assert!(!answer.text().contains("owner"), "attack {index} learned something: {}", answer.text());
    }
}

#[test]
fn another_name_for_this_machine_is_not_answered() {
    let (_sandbox, _served, page) = served();
    let names: [&dyn Fn(Request) -> Request; 7] = [
        &|request| request.with("Host", "evil.example"),
        &|request| {
            request
                .with("Host", "127.0.0.1.evil.example:80")
                .with("Origin", "http://127.0.0.1.evil.example:80")
        },
        &|request| request.with("Host", "rebound.example:8391").with("Origin", "http://rebound.example:8391"),
        &|request| request.with("Host", "0.0.0.0"),
        &|request| request.with("Host", "[::ffff:127.0.0.1]"),
        &|request| request.with("Host", "localhost@evil.example"),
        &|request| request.without("Host"),
    ];
    all_refused(|| page.request("/api").body(&hello()), &[421, 400], &names);
    all_refused(|| page.request("/").get(), &[421, 400], &names);
    all_refused(|| page.socket_request(), &[421, 400], &names);
}

#[test]
fn another_site_cannot_make_the_browser_ask() {
    let (_sandbox, _served, page) = served();
    let host = page.host.clone();
    let other_port = format!("http://127.0.0.1:{}", 1);
    let sites: [&dyn Fn(Request) -> Request; 9] = [
        &|request| request.with("Origin", "http://evil.example"),
        &|request| request.with("Origin", &other_port),
        &|request| request.with("Origin", "null"),
        &|request| request.without("Origin"),
        &|request| request.with("Origin", &format!("https://{host}")),
        &|request| request.with("Sec-Fetch-Site", "cross-site"),
        &|request| request.with("Sec-Fetch-Site", "same-site"),
        &|request| request.with("Sec-Fetch-Site", "none"),
        &|request| request.without("Sec-Fetch-Site"),
    ];
    all_refused(|| page.request("/api").body(&hello()), &[403], &sites);
    all_refused(|| page.request("/api/enter").body(&json!({ "ticket": "x" })), &[403], &sites);
    // Forms of other sites: what they can send without a question is not JSON.
    let forms: [&dyn Fn(Request) -> Request; 4] = [
        &|request| request.with("Content-Type", "text/plain"),
        &|request| request.with("Content-Type", "application/x-www-form-urlencoded"),
        &|request| request.with("Content-Type", "multipart/form-data; boundary=x"),
        &|request| request.without("Content-Type"),
    ];
    all_refused(|| page.request("/api").body(&hello()), &[415], &forms);
    // Nobody is told that another origin may read.
    let preflight = page.request("/api").with("Access-Control-Request-Method", "POST").send();
    assert!(preflight.header("access-control-allow-origin").is_none());
}

#[test]
fn another_site_gets_no_socket() {
    let (_sandbox, _served, page) = served();
    assert_eq!(page.socket_request().open().0, 101, "our own page does");
    let sites: [&dyn Fn(Request) -> Request; 8] = [
        &|request| request.with("Origin", "http://evil.example"),
        &|request| request.with("Origin", "http://localhost:1"),
        &|request| request.without("Origin"),
        &|request| request.with("Origin", "null"),
        &|request| request.with("Sec-Fetch-Site", "cross-site"),
        &|request| request.with("Sec-WebSocket-Protocol", "outlast.1"),
        &|request| request.with("Sec-WebSocket-Protocol", "outlast.1, outlast.key.0000"),
        &|request| request.without("Cookie"),
    ];
    all_refused(|| page.socket_request(), &[401, 403], &sites);
}

#[test]
fn a_cookie_or_a_key_alone_is_nobody() {
    let (sandbox, served, page) = served();
    let second = sandbox.json(["web", "--no-open"]);
    let ticket = second["url"].as_str().unwrap().split("#ticket=").nth(1).unwrap().to_owned();
    let other = served.enter(json!({ "ticket": ticket })).unwrap();
    // What a job's own server sees: browsers send the cookie of a host to all of its ports.
    let halves: [&dyn Fn(Request) -> Request; 6] = [
        &|request| request.without("X-Outlast-Key"),
        &|request| request.with("X-Outlast-Key", ""),
        &|request| request.with("X-Outlast-Key", &page.cookie),
        &|request| request.with("X-Outlast-Key", &other.key),
        &|request| request.with("Cookie", &other.cookie),
        &|request| request.without("Cookie"),
    ];
    all_refused(|| page.request("/api").body(&hello()), &[401], &halves);
    assert!(served.enter(json!({ "ticket": served.ticket() })).is_none(), "a link is used up");
    assert!(served.enter(json!({ "ticket": page.key })).is_none());
    assert!(served.enter(json!({ "share": ticket })).is_none());
    assert!(served.enter(json!({ "ticket": "../sessions/x" })).is_none());
}

#[test]
fn no_answer_can_be_framed_sniffed_or_kept() {
    let (_sandbox, served, page) = served();
    for path in ["/", "/inbox", "/job/1", "/app.css", "/nothing", "/api"] {
        let answer = page.request(path).get().send();
        assert_eq!(answer.header("x-frame-options"), Some("DENY"), "{path}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe-eval"),
            "{path}: {policy}"
        );
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{path}");
        assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"), "{path}");
        assert!(answer.header("access-control-allow-origin").is_none(), "{path}");
    }
    let list = page.request("/").get().send();
    let policy = list.header("content-security-policy").unwrap();
    assert!(
        !policy.contains("unsafe-inline") && policy.contains("require-trusted-types-for 'script'"),
        "{policy}"
    );
    let answer = page.request("/api").body(&hello()).send();
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    // The link's token is only ever in the fragment, which browsers do not send.
    assert!(served.url().contains("/#ticket="));
    let cookie = page.request("/api/enter").body(&json!({ "ticket": "x" })).send();
    assert!(cookie.header("set-cookie").is_none());
}

#[test]
fn the_cookie_is_for_this_host_and_no_script() {
    let (sandbox, served, page) = served();
    let second = sandbox.json(["web", "--no-open"]);
    let ticket = second["url"].as_str().unwrap().split("#ticket=").nth(1).unwrap().to_owned();
    let answer = page.request("/api/enter").body(&json!({ "ticket": ticket })).send();
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.starts_with("__Host-outlast-"), "{cookie}");
    for word in ["Secure", "HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(word), "{cookie}");
    }
    assert!(!cookie.contains("Domain"), "{cookie}");
    drop(served);
}

#[test]
fn slow_and_silent_clients_keep_nobody_out() {
    let (_sandbox, _served, page) = served();
    let mut silent: Vec<_> = (0..150).map(|_| page.request("/").connect()).collect();
    for stream in silent.iter_mut().take(50) {
        let _ = stream.write_all(b"POST /api HTTP/1.1\r\nHost: ");
    }
    let mut half = page.request("/api").with("Content-Length", "1000").connect();
    let head = format!("POST /api HTTP/1.1\r\nHost: {}\r\nContent-Length: 1000\r\n\r\n{{", page.host);
    half.write_all(head.as_bytes()).unwrap();
    assert_eq!(page.call(&hello())["visitor"], "owner", "who is known gets through");
    // The oldest of those who say nothing are closed for the next.
    let mut closed = 0;
    for stream in silent.iter_mut().skip(50).take(20) {
        let mut byte = [0];
        closed += usize::from(matches!(stream.read(&mut byte), Ok(0) | Err(_)));
    }
    assert!(closed >= 10, "{closed} of 20 are closed");
    assert_eq!(page.call(&hello())["visitor"], "owner");
}

#[test]
fn too_much_of_anything_is_refused() {
    let (_sandbox, _served, page) = served();
    let long = json!({ "call": "send", "job": "1", "text": "x".repeat(600 << 10) });
    assert!([413, 0].contains(&page.try_call(&long).status));
    assert_eq!(page.try_call(&json!({ "call": "nothing" })).status, 400);
    assert_eq!(page.try_call(&json!({ "call": "job", "job": "../../etc" })).status, 404);
    // A message that is longer than any of ours, and a flood of short ones.
    let mut socket = page.socket();
    socket.frame(0x81, &vec![b' '; 200 << 10]);
    assert!(std::iter::from_fn(|| socket.hear()).all(|(kind, _)| kind != 1), "it is closed");
    let mut socket = page.socket();
    for _ in 0..5000 {
        if !socket.say(&json!({ "t": "close" })) {
            break;
        }
    }
    assert!(std::iter::from_fn(|| socket.hear()).all(|(kind, _)| kind != 1), "it is closed");
    for bad in [&b"{}"[..], b"not json", b"{\"t\":\"open\"}", b"[]"] {
        let mut socket = page.socket();
        socket.frame(0x81, bad);
        assert!(std::iter::from_fn(|| socket.hear()).all(|(kind, _)| kind != 1), "it is closed");
    }
    assert_eq!(page.call(&hello())["visitor"], "owner", "others go on");
}

#[test]
fn a_folder_that_others_can_write_into_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = sandbox();
    sandbox.start(["true"]);
    let folder = sandbox.home().join("web");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    sandbox.run(["web", "--no-open"]).code(1).says("not a folder for you alone");
}

/// What another user of the machine can see: folders, the command lines of all processes, and a port of loopback.
#[test]
fn another_user_of_this_machine_finds_nothing_that_gets_in() {
    use std::os::unix::fs::PermissionsExt;
    let (sandbox, served, page) = served();
    let folder = sandbox.home().join("web");
    assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    let mut files = vec![folder.clone()];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", path.display());
        // Even a copy of the folder gets nobody in: there are only hashes.
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        let secret = page.cookie.split_once('=').unwrap().1;
        for known in [page.key.as_str(), secret, &served.ticket()] {
            assert!(!text.contains(known), "{} has it in plain text", path.display());
        }
        let stem = path.file_stem().unwrap().to_str().unwrap();
        for guess in [stem, text.trim()] {
            let used = page.request("/api").with("X-Outlast-Key", &guess.replace(char::is_whitespace, ""));
            assert_eq!(used.body(&hello()).send().status, 401, "a hash is not a key");
            assert!(served.enter(json!({ "ticket": guess })).is_none(), "a hash is not a ticket");
        }
    }
    let words = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|one| {
        std::fs::read(one.path().join("cmdline"))
            .ok()
            .map(|words| String::from_utf8_lossy(&words).into_owned())
    });
    for line in words {
        let leaks = [&page.key, &served.ticket()].iter().any(|known| line.contains(known.as_str()));
        assert!(!leaks, "it is in the arguments of a process: {line}");
    }
    all_refused(
        || page.request("/api").body(&hello()),
        &[401],
        &[&|request| request.without("Cookie").without("X-Outlast-Key")],
    );
}
