//! Ways around a list of hosts: connections to what is not on it, and to this machine by any name.

use std::net::TcpListener;

use outlast_testkit::has;
use serde_json::json;

use crate::Tally;
use crate::client::Sandbox;

/// Lines, with `PORT` for a server of this machine, to which nobody may connect. `named.invalid` and `localhost` are allowed names,
/// on every port.
const LINES: &[&str] = &[
    "curl -sm 5 http://127.0.0.1:PORT/ --noproxy '*'",
    "curl -sm 5 --noproxy '' http://127.0.0.1:PORT/",
    "curl -sm 5 --noproxy '' http://localhost:PORT/",
    "curl -sm 5 --noproxy '' http://LOCALHOST.:PORT/",
    "curl -sm 5 --noproxy '' -p http://localhost:PORT/",
    "curl -sm 5 --noproxy '' -p http://127.0.0.1:PORT/",
    "curl -sm 5 --noproxy '' http://2130706433:PORT/",
    "curl -sm 5 --noproxy '' http://0x7f.1:PORT/",
    "curl -sm 5 --noproxy '' http://127.1:PORT/",
    "curl -sm 5 --noproxy '' http://0.0.0.0:PORT/",
    "curl -sm 5 --noproxy '' -g 'http://[::1]:PORT/'",
    "curl -sm 5 --noproxy '' -g 'http://[::ffff:127.0.0.1]:PORT/'",
    "curl -sm 5 --noproxy '' -g 'http://[::127.0.0.1]:PORT/'",
    "curl -sm 5 --noproxy '' http://named.invalid@127.0.0.1:PORT/",
    "curl -sm 5 --noproxy '' -H 'Host: named.invalid' http://127.0.0.1:PORT/",
    "curl -sm 5 --noproxy '' --resolve named.invalid:PORT:127.0.0.1 http://named.invalid:PORT/",
    "curl -sm 5 --noproxy '' --connect-to named.invalid:PORT:127.0.0.1:PORT http://named.invalid:PORT/",
    "curl -sm 5 --noproxy '' --socks5 127.0.0.1:3128 http://127.0.0.1:PORT/",
    "curl -sm 5 --noproxy '' --socks5-hostname 127.0.0.1:3128 http://localhost:PORT/",
    "curl -sm 5 --noproxy '' --socks4a 127.0.0.1:3128 http://localhost:PORT/",
    "printf 'CONNECT named.invalid:PORT@127.0.0.1:PORT HTTP/1.1\\r\\n\\r\\n'",
    "printf 'CONNECT 127.0.0.1:PORT#named.invalid HTTP/1.1\\r\\n\\r\\n'",
    "printf 'CONNECT named.invalid\\0.127.0.0.1:PORT HTTP/1.1\\r\\n\\r\\n'",
    "printf 'GET http://127.0.0.1:PORT/ HTTP/1.1\\r\\nHost: named.invalid\\r\\n\\r\\n'",
    "printf 'GET http://named.invalid/ HTTP/1.1\\r\\n\\r\\nGET http://127.0.0.1:PORT/ HTTP/1.1\\r\\n\\r\\n'",
    "bash -c 'exec 3<>/dev/tcp/127.0.0.1/PORT'",
    "bash -c 'echo x > /dev/udp/127.0.0.1/PORT; exec 3<>/dev/tcp/localhost/PORT'",
    "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", PORT), 5)'",
    "python3 -c 'import socket; s=socket.create_connection((\"127.0.0.1\", 3128)); s.send(bytes([5,1,0,5,1,0,1,127,0,0,1])+(PORT).to_bytes(2,\"big\")); print(s.recv(99)); print(s.recv(99))'",
    "python3 -c 'import socket; s=socket.create_connection((\"127.0.0.1\", 3128)); s.send(bytes([5,1,0,5,1,0,4]+[0]*10+[255,255,127,0,0,1])+(PORT).to_bytes(2,\"big\")); print(s.recv(99)); print(s.recv(99))'",
    "python3 -c 'import socket; s=socket.create_connection((\"127.0.0.1\", 3128)); s.send(bytes([5,1,0,5,1,0,3,9])+b\"localhost\"+(PORT).to_bytes(2,\"big\")); print(s.recv(99)); print(s.recv(99))'",
    "ip link set lo down; ip link add type veth; ip route add default via 127.0.0.1; curl -sm 5 http://127.0.0.1:PORT/",
    "unshare -n true; nsenter -t 1 -n curl -sm 5 http://127.0.0.1:PORT/",
];

#[test]
fn only_listed_hosts_are_reached() {
    if outlast_pty::confine::can_enclose().is_err() {
        return outlast_testkit::left_out("no namespaces here", "allow user namespaces");
    }
    let outside = TcpListener::bind("127.0.0.1:0").unwrap();
    outside.set_nonblocking(true).unwrap();
    let port = outside.local_addr().unwrap().port().to_string();
    let sandbox = Sandbox::new();
    let settings = sandbox.path().join(".config/outlast");
    std::fs::create_dir_all(&settings).unwrap();
    let text = "[agents.sandbox]\nnetwork = \"hosts\"\nhosts = [\"named.invalid:*\", \"localhost:*\"]\n";
    std::fs::write(settings.join("config.toml"), text).unwrap();
    let work = sandbox.path().join("work");
    std::fs::create_dir_all(&work).unwrap();
    let mut command = sandbox.command(&[]);
    command.current_dir(&work);
    let mut client = crate::client::Client::start(command).initialized("2025-06-18", &json!({}));
    let mut tally = Tally::default();
    for line in LINES {
        let program = line.split([' ', '|']).next().unwrap_or_default();
        if program != "printf" && !has(program) {
            continue;
        }
        let mut line = line.replace("PORT", &port);
        if line.starts_with("printf") {
            // What it prints is said to the proxy.
            line = format!("exec 3<>/dev/tcp/127.0.0.1/3128; {line} >&3; timeout 5 cat <&3");
            std::fs::write(work.join("said"), &line).unwrap();
        }
        let command = if line.starts_with("exec") { "bash said" } else { line.as_str() };
        client.call("run_shell_command", json!({"command": command, "timeout": 30}));
        tally.count(&line, outside.accept().is_ok());
    }
    // The instrument works: the proxy says no to what it is asked for.
    let events: String = std::fs::read_dir(sandbox.path().join("home/jobs"))
        .unwrap()
        .flatten()
        .filter_map(|job| std::fs::read_to_string(job.path().join("events.jsonl")).ok())
        .collect();
    assert!(events.contains("host_refused") && events.contains("of this machine"), "{events}");
    tally.nothing_got_through("hosts that are not listed, and this machine by any name");
}
