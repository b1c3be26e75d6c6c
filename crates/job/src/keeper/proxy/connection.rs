//! One connection through the proxy: what is wanted, whether it may be, and then bytes both ways.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::handshake::{self, How, MAX_HEAD, Wanted};
use super::{Refused, Rules, Why};
use crate::sandbox::hosts::is_private;

/// How long a client may take to say what it wants, and a write to be taken.
const SAY_WITHIN: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// A connection on which nothing is said for this long is closed: places are few.
const IDLE: Timespec = Timespec { tv_sec: 1800, tv_nsec: 0 };

/// What came of a request.
enum Outcome {
    Connected(TcpStream),
    /// It may not be.
    Refused(String),
    /// It could not be done.
    Failed(String),
}

/// Serves one client until it or the host is done.
pub(super) fn serve(mut client: TcpStream, rules: &Rules) {
    let _ = client.set_read_timeout(Some(SAY_WITHIN));
    let _ = client.set_write_timeout(Some(SAY_WITHIN));
    let Some((wanted, more)) = heard(&mut client) else { return };
    let mut host = match connect(&wanted, rules) {
        Outcome::Connected(host) => host,
        Outcome::Refused(why) => return answer(&mut client, &wanted, 2, "403 Forbidden", &why),
        Outcome::Failed(why) => return answer(&mut client, &wanted, 4, "502 Bad Gateway", &why),
    };
    let _ = host.set_write_timeout(Some(SAY_WITHIN));
    let begun = match &wanted.how {
        How::Tunnel => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n"),
        How::Socks => client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
        How::Request(request) => host.write_all(request),
    };
    if begun.and_then(|()| host.write_all(&more)).is_ok() {
        relay(&mut client, &mut host);
    }
}

/// What the client wants, and what it has said besides. None if it can't be understood, which it is told.
fn heard(client: &mut TcpStream) -> Option<(Wanted, Vec<u8>)> {
    let mut first = [0];
    client.read_exact(&mut first).ok()?;
    if first[0] == 5 {
        return socks(client).map(|wanted| (wanted, Vec::new()));
    }
    let mut head = first.to_vec();
    let mut chunk = [0; 2048];
    loop {
        if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            let more = head.split_off(end + 4);
            let wanted = handshake::http(&head);
            if wanted.is_none() {
                let _ = client.write_all(
                    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\noutlast: this proxy takes CONNECT and http:// requests\n",
                );
            }
            return wanted.map(|wanted| (wanted, more));
        }
        if head.len() > MAX_HEAD {
            return None;
        }
        match client.read(&mut chunk) {
            Ok(0) | Err(_) => return None,
            Ok(n) => head.extend_from_slice(&chunk[..n]),
        }
    }
}

/// SOCKS 5, behind its first byte.
fn socks(client: &mut TcpStream) -> Option<Wanted> {
    let mut count = [0];
    client.read_exact(&mut count).ok()?;
    let mut methods = vec![0; usize::from(count[0])];
    client.read_exact(&mut methods).ok()?;
    if !methods.contains(&0) {
        let _ = client.write_all(&[5, 0xff]);
        return None;
    }
    client.write_all(&[5, 0]).ok()?;
    let mut request = Vec::new();
    loop {
        match handshake::socks(&request) {
            Ok(wanted) => return Some(wanted),
            Err(Some(missing)) => {
                let from = request.len();
                request.resize(from + missing, 0);
                client.read_exact(&mut request[from..]).ok()?;
            }
            Err(None) => {
                // The command is not supported.
                let _ = client.write_all(&[5, 7, 0, 1, 0, 0, 0, 0, 0, 0]);
                return None;
            }
        }
    }
}

fn connect(wanted: &Wanted, rules: &Rules) -> Outcome {
    let Wanted { host, port, .. } = wanted;
    let Some(by_address) = rules.allows(host, *port) else {
        rules.tell(Refused { host: host.clone(), port: *port, why: Why::NotAllowed });
        return Outcome::Refused(format!("this job may not connect to {host}:{port}; a person can allow it"));
    };
    let addresses: Vec<SocketAddr> = match (host.as_str(), *port).to_socket_addrs() {
        Ok(addresses) => addresses.collect(),
        Err(error) => return Outcome::Failed(format!("cannot look up {host}: {error}")),
    };
    let mut last = format!("{host} has no address");
    let mut private = None;
    for address in addresses {
        if !by_address && is_private(address.ip()) {
            private = Some(address.ip());
            continue;
        }
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => return Outcome::Connected(stream),
            Err(error) => last = format!("cannot connect to {host}:{port}: {error}"),
        }
    }
    match private {
        Some(address) => {
            rules.tell(Refused { host: host.clone(), port: *port, why: Why::Private(address) });
            Outcome::Refused(format!("{host} is {address}, an address of this machine or its network"))
        }
        None => Outcome::Failed(last),
    }
}

/// Tells a client that there is no connection.
fn answer(client: &mut TcpStream, wanted: &Wanted, socks: u8, status: &str, why: &str) {
    let _ = match wanted.how {
        How::Socks => client.write_all(&[5, socks, 0, 1, 0, 0, 0, 0, 0, 0]),
        How::Tunnel | How::Request(_) => {
            let body = format!("outlast: {why}\n");
            let length = body.len();
            client.write_all(
                format!(
                    "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                )
                .as_bytes(),
            )
        }
    };
}

/// Passes bytes both ways until both ends are done, or nothing was said for long.
fn relay(client: &mut TcpStream, host: &mut TcpStream) {
    let mut chunk = vec![0; 16 << 10];
    let (mut client_speaks, mut host_speaks) = (true, true);
    while client_speaks || host_speaks {
        let wants = |speaks: bool| if speaks { PollFlags::IN } else { PollFlags::empty() };
        let ready = {
            let mut ends = [
                PollFd::from_borrowed_fd(client.as_fd(), wants(client_speaks)),
                PollFd::from_borrowed_fd(host.as_fd(), wants(host_speaks)),
            ];
            match poll(&mut ends, Some(&IDLE)) {
                Ok(0) => return,
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return,
            }
            [!ends[0].revents().is_empty(), !ends[1].revents().is_empty()]
        };
        // A side that hangs up while the other is not read any more is gone.
        if ready[0] && !client_speaks || ready[1] && !host_speaks {
            return;
        }
        if ready[0] && !pass(client, host, &mut chunk, &mut client_speaks) {
            return;
        }
        if ready[1] && !pass(host, client, &mut chunk, &mut host_speaks) {
            return;
        }
    }
}

/// Passes on what one side has said; false if the connection is broken.
fn pass(from: &mut TcpStream, to: &mut TcpStream, chunk: &mut [u8], speaks: &mut bool) -> bool {
    match from.read(chunk) {
        Ok(0) => {
            *speaks = false;
            to.shutdown(Shutdown::Write).is_ok()
        }
        Ok(n) => to.write_all(&chunk[..n]).is_ok(),
        Err(error) => error.kind() == std::io::ErrorKind::Interrupted,
    }
}
