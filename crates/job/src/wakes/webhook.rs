//! An HTTP POST, by hand: one request, one answer, one connection. There is no TLS: `https` needs a command of the
//! user's own, for example `exec:curl`.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::outbox::Entry;

/// How often it is tried.
pub(super) const TRIES: u32 = 5;
/// How long before the second try; each later one waits twice as long.
const BACK_OFF: Duration = Duration::from_millis(500);
const CONNECT: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(10);

/// Where a POST goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    host: String,
    port: u16,
    path: String,
}

impl Target {
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        if url.starts_with("https://") {
            return Err("https needs TLS, which is not built in: use exec:'curl -d @- URL'".into());
        }
        let rest = url.strip_prefix("http://").ok_or("a webhook's URL begins with http://")?;
        if url.chars().any(|c| c.is_control() || c == ' ') {
            return Err("a URL has no blanks".into());
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err("a user name in the URL is not supported: sign with a key".into());
        }
        let after_bracket = authority.rfind(']').map_or(0, |at| at + 1);
        let (host, port) = match authority[after_bracket..].rfind(':') {
            Some(at) => {
                let (host, port) = authority.split_at(after_bracket + at);
                (host, port[1..].parse().map_err(|_| format!("{authority:?} has no good port"))?)
            }
            None => (authority, 80),
        };
        if host.is_empty() {
            return Err("the URL names no host".into());
        }
        let path = if path.is_empty() { "/" } else { path };
        Ok(Self { host: host.to_owned(), port, path: path.to_owned() })
    }
}

/// What became of one try.
enum Tried {
    Taken,
    /// Another try may go better.
    NotNow(String),
    Refused(String),
}

/// Posts an entry, trying again while that may help.
pub(super) fn post(url: &str, key: Option<&str>, entry: &Entry) -> Result<(), String> {
    let target = Target::parse(url)?;
    let body = serde_json::to_vec(entry).map_err(|error| error.to_string())?;
    let signature = key.map(|key| sign(key.as_bytes(), &body)).transpose()?;
    let mut pause = BACK_OFF;
    let mut why = String::new();
    for round in 0..TRIES {
        if round > 0 {
            std::thread::sleep(pause);
            pause *= 2;
        }
        match try_once(&target, &body, entry, signature.as_deref()) {
            Ok(Tried::Taken) => return Ok(()),
            Ok(Tried::Refused(said)) => return Err(format!("the server refused it: {said}")),
            Ok(Tried::NotNow(said)) => why = said,
            Err(error) => why = error.to_string(),
        }
    }
    Err(format!("tried {TRIES} times: {why}"))
}

fn try_once(target: &Target, body: &[u8], entry: &Entry, signature: Option<&str>) -> std::io::Result<Tried> {
    let host = target.host.trim_start_matches('[').trim_end_matches(']');
    let mut last = std::io::Error::other("the host has no address");
    let mut stream = None;
    for address in (host, target.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(connected) => {
                stream = Some(connected);
                break;
            }
            Err(error) => last = error,
        }
    }
    let Some(mut stream) = stream else { return Err(last) };
    stream.set_read_timeout(Some(ANSWER))?;
    stream.set_write_timeout(Some(ANSWER))?;
    let signed = signature.map(|hex| format!("X-Outlast-Signature: sha256={hex}\r\n")).unwrap_or_default();
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {}:{}\r\nUser-Agent: outlast/{}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nX-Outlast-Event: {}\r\nX-Outlast-Number: {}\r\n{signed}Connection: close\r\n\r\n",
        target.path,
        target.host,
        target.port,
        env!("CARGO_PKG_VERSION"),
        body.len(),
        entry.event,
        entry.n,
    );
    stream.write_all(&[head.as_bytes(), body].concat())?;
    let mut status = String::new();
    BufReader::new(std::io::Read::take(&stream, 1024)).read_line(&mut status)?;
    let code: u16 = status.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let said = status.trim_end().to_owned();
    Ok(match code {
        200..=299 => Tried::Taken,
        408 | 425 | 429 | 500..=599 => Tried::NotNow(said),
        0 => Tried::NotNow("the server did not answer in HTTP".into()),
        _ => Tried::Refused(said),
    })
}

/// The signature of a body: HMAC-SHA256 in hexadecimal.
fn sign(key: &[u8], body: &[u8]) -> Result<String, String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|error| error.to_string())?;
    mac.update(body);
    Ok(mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let target = |host: &str, port, path: &str| Target { host: host.into(), port, path: path.into() };
        assert_eq!(Target::parse("http://a.b/c?d=e"), Ok(target("a.b", 80, "/c?d=e")));
        assert_eq!(Target::parse("http://[::1]:8080"), Ok(target("[::1]", 8080, "/")));
        for bad in ["ftp://x", "http://", "http://a:b/", "http://u:p@h/", "http://a/b c"] {
            assert!(Target::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_signature_is_the_standard_one() {
        // RFC 4231, test case 2.
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(sign(b"Jefe", b"what do ya want for nothing?").unwrap(), expected);
    }
}
