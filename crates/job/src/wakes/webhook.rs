//! A minimal HTTP client for a POST: one request, one answer, one connection, with or without TLS.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use ring::hmac;

use super::attempt::{Payload, Trouble};
use super::tls::{self, Tls};

/// The timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout of each read and write.
const IO_TIMEOUT: Duration = Duration::from_secs(10);

/// Where a POST goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Whether to use TLS.
    pub(super) tls: bool,
    host: String,
    port: u16,
    path: String,
}

impl Target {
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let (tls, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return Err("a webhook's URL begins with https:// or http://".into()),
        };
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
            None => (authority, if tls { 443 } else { 80 }),
        };
        if host.is_empty() {
            return Err("the URL names no host".into());
        }
        let path = if path.is_empty() { "/" } else { path };
        Ok(Self { tls, host: host.to_owned(), port, path: path.to_owned() })
    }
}

/// The result of one exchange.
enum Tried {
    Taken,
    /// It failed, but a retry may succeed.
    NotNow(String),
    Refused(String),
}

/// Posts an entry, once.
pub(super) fn post(
    url: &str,
    key: Option<&str>,
    ca: Option<&str>,
    payload: &Payload<'_>,
) -> Result<(), Trouble> {
    let target = Target::parse(url).map_err(Trouble::Final)?;
    let body = payload.json();
    let signature = key.map(|key| Signature::new(key.as_bytes(), &body));
    let head = target.head(body.len(), payload, signature.as_ref());
    send(&target, ca, &[head.as_bytes(), &body].concat())
}

/// Posts a JSON text to a server that the user has named, once.
///
/// # Errors
/// Whether it may be tried again, and what was wrong.
pub fn post_json(url: &str, headers: &[(String, String)], body: &[u8]) -> Result<(), Trouble> {
    let target = Target::parse(url).map_err(Trouble::Final)?;
    let is_plain = |text: &str| !text.chars().any(char::is_control);
    let mut head = format!(
        "POST {} HTTP/1.1\r\nHost: {}:{}\r\nUser-Agent: outlast/{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
        target.path,
        target.host,
        target.port,
        env!("CARGO_PKG_VERSION"),
        body.len()
    );
    for (name, value) in headers.iter().filter(|(name, value)| is_plain(name) && is_plain(value)) {
        head += &format!("{name}: {value}\r\n");
    }
    head += "Connection: close\r\n\r\n";
    send(&target, None, &[head.as_bytes(), body].concat())
}

fn send(target: &Target, ca: Option<&str>, request: &[u8]) -> Result<(), Trouble> {
    let tls = if target.tls {
        let cert_file = std::env::var("SSL_CERT_FILE").ok();
        let trusted = tls::trusted(ca, cert_file.as_deref()).map_err(Trouble::Final)?;
        Some(Tls::new(&trusted).map_err(Trouble::Final)?)
    } else {
        None
    };
    match try_once(target, tls.as_ref(), request) {
        Ok(Tried::Taken) => Ok(()),
        Ok(Tried::Refused(said)) => Err(Trouble::Final(format!("the server refused it: {said}"))),
        Ok(Tried::NotNow(said)) => Err(Trouble::Retry(said)),
        // A bad certificate does not improve with a retry.
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            Err(Trouble::Final(format!("no TLS with {}: {error}", target.host)))
        }
        Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {
            Err(Trouble::Final(error.to_string()))
        }
        Err(error) => Err(Trouble::Retry(error.to_string())),
    }
}

/// Whether an address is link-local or that of a cloud's metadata service, which gives its secrets to anyone who asks from
/// this machine.
fn is_of_the_machine(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            address.is_link_local()
                || address.is_unspecified()
                || address.is_multicast()
                || address.octets() == [100, 100, 100, 200]
                || address.octets() == [192, 0, 0, 192]
        }
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(inner) => is_of_the_machine(IpAddr::V4(inner)),
            None => {
                address.is_unspecified()
                    || address.is_multicast()
                    || address.segments()[0] & 0xffc0 == 0xfe80
                    || address.segments() == [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]
            }
        },
    }
}

/// What shows that a request comes from us, now and for the first time.
struct Signature {
    /// Over the body alone, for receivers that know no other.
    of_body: String,
    timestamp: u64,
    nonce: String,
    /// Over the time, the nonce and the body.
    of_all: String,
}

impl Signature {
    fn new(key: &[u8], body: &[u8]) -> Self {
        let timestamp = crate::clock::now_ms() / 1000;
        let mut random = [0; 16];
        let _ = outlast_pty::system::random(&mut random);
        let nonce: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let all = [format!("{timestamp}.{nonce}.").as_bytes(), body].concat();
        Self { of_body: sign(key, body), timestamp, nonce, of_all: sign(key, &all) }
    }

    fn headers(&self) -> String {
        let Self { of_body, timestamp, nonce, of_all } = self;
        format!(
            "X-Outlast-Signature: sha256={of_body}\r\nX-Outlast-Timestamp: {timestamp}\r\nX-Outlast-Nonce: {nonce}\r\n\
             X-Outlast-Signature-V2: sha256={of_all}\r\n"
        )
    }
}

impl Target {
    fn connect(&self) -> std::io::Result<TcpStream> {
        let mut last = std::io::Error::other("the host has no address");
        for address in (self.bare_host(), self.port).to_socket_addrs()? {
            if is_of_the_machine(address.ip()) {
                let said = format!(
                    "{} is an address of this machine's network or host: it is told nothing",
                    address.ip()
                );
                last = std::io::Error::new(std::io::ErrorKind::Unsupported, said);
                continue;
            }
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(IO_TIMEOUT))?;
                    stream.set_write_timeout(Some(IO_TIMEOUT))?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn bare_host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    fn head(&self, length: usize, payload: &Payload<'_>, signature: Option<&Signature>) -> String {
        let signed = signature.map(Signature::headers).unwrap_or_default();
        let again = if payload.again { "X-Outlast-Again: true\r\n" } else { "" };
        format!(
            "POST {} HTTP/1.1\r\nHost: {}:{}\r\nUser-Agent: outlast/{}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nX-Outlast-Event: {}\r\nX-Outlast-Number: {}\r\n{again}{signed}Connection: close\r\n\r\n",
            self.path,
            self.host,
            self.port,
            env!("CARGO_PKG_VERSION"),
            payload.entry.event,
            payload.entry.n,
        )
    }
}

fn try_once(target: &Target, tls: Option<&Tls>, request: &[u8]) -> std::io::Result<Tried> {
    let stream = target.connect()?;
    let status = match tls {
        Some(tls) => exchange(tls.over(stream, target.bare_host())?, request)?,
        None => exchange(stream, request)?,
    };
    let code: u16 = status.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let said = status.trim_end().to_owned();
    Ok(match code {
        200..=299 => Tried::Taken,
        408 | 425 | 429 | 500..=599 => Tried::NotNow(said),
        0 => Tried::NotNow("the server did not answer in HTTP".into()),
        _ => Tried::Refused(said),
    })
}

/// Sends a request; returns the first line of the answer.
fn exchange(mut stream: impl Read + Write, request: &[u8]) -> std::io::Result<String> {
    stream.write_all(request)?;
    stream.flush()?;
    let mut status = String::new();
    BufReader::new(stream.take(1024)).read_line(&mut status)?;
    Ok(status)
}

/// The signature of a body: HMAC-SHA256 in hexadecimal.
fn sign(key: &[u8], body: &[u8]) -> String {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), body);
    tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_machine_are_told_nothing() {
        for address in [
            "169.254.169.254",
            "0.0.0.0",
            "::ffff:169.254.169.254",
            "fe80::1",
            "fd00:ec2::254",
            "100.100.100.200",
        ] {
            assert!(is_of_the_machine(address.parse().unwrap()), "{address}");
        }
        for address in ["127.0.0.1", "10.0.0.1", "93.184.216.34", "::1", "2606:4700::1"] {
            assert!(!is_of_the_machine(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn urls_are_taken_apart() {
        let target =
            |tls, host: &str, port, path: &str| Target { tls, host: host.into(), port, path: path.into() };
        assert_eq!(Target::parse("http://a.b/c?d=e"), Ok(target(false, "a.b", 80, "/c?d=e")));
        assert_eq!(Target::parse("https://a.b/c"), Ok(target(true, "a.b", 443, "/c")));
        assert_eq!(Target::parse("http://[::1]:8080"), Ok(target(false, "[::1]", 8080, "/")));
        for bad in ["ftp://x", "http://", "http://a:b/", "http://u:p@h/", "http://a/b c"] {
            assert!(Target::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_signature_is_the_standard_one() {
        // RFC 4231, test case 2.
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(sign(b"Jefe", b"what do ya want for nothing?"), expected);
    }
}
