//! The proxy with real sockets, on the loopback of this machine.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::*;

/// A host that answers whatever it is told with "hello", and its port.
fn host() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut heard = [0; 1024];
            let n = stream.read(&mut heard).unwrap_or(0);
            let _ = stream.write_all(&[b"hello ", &heard[..n]].concat());
        }
    });
    port
}

fn proxy(allowed: &[String]) -> (Proxy, std::net::SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let allowed = allowed.iter().map(|host| AllowedHost::parse(host).unwrap()).collect();
    (Proxy::start(listener.into(), allowed).unwrap(), at)
}

fn said(at: std::net::SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn an_allowed_host_is_reached_in_three_ways_and_no_other() {
    let port = host();
    let (proxy, at) = proxy(&[format!("127.0.0.1:{port}"), format!("localhost:{port}")]);
    let tunnel = said(at, format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nping").as_bytes());
    assert!(tunnel.starts_with("HTTP/1.1 200") && tunnel.ends_with("hello ping"), "{tunnel}");
    let plain = said(at, format!("GET http://127.0.0.1:{port}/x HTTP/1.1\r\nHost: y\r\n\r\n").as_bytes());
    assert!(plain.starts_with("hello GET /x HTTP/1.1"), "{plain}");
    let mut socks = vec![5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1];
    socks.extend(port.to_be_bytes());
    socks.extend(b"ping");
    assert!(said(at, &socks).ends_with("hello ping"));
    assert!(proxy.take().is_empty());
    // The name is allowed, and has an address of this machine.
    let private = said(at, format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\n").as_bytes());
    assert!(private.starts_with("HTTP/1.1 403") && private.contains("of this machine"), "{private}");
    let other = said(at, b"CONNECT example.com:443 HTTP/1.1\r\n\r\n");
    assert!(other.starts_with("HTTP/1.1 403") && other.contains("may not connect"), "{other}");
    let refused = proxy.take();
    assert!(matches!(refused[0].why, Why::Private(_)) && refused[1].why == Why::NotAllowed, "{refused:?}");
    assert_eq!((refused[1].host.as_str(), refused[1].port), ("example.com", 443));
    proxy.allow(AllowedHost::parse("unknown.invalid:443").unwrap());
    let allowed = said(at, b"CONNECT unknown.invalid:443 HTTP/1.1\r\n\r\n");
    assert!(allowed.starts_with("HTTP/1.1 502"), "it is allowed now, and does not exist: {allowed}");
}
