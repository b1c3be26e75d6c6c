//! What a client of the proxy wants, in HTTP or SOCKS 5. Pure: bytes in, a request out.

/// A head of a request that is longer is refused.
pub(super) const MAX_HEAD: usize = 16 << 10;

/// Where a client wants to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) how: How,
}

/// What is passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// Bytes both ways, after an answer in HTTP.
    Tunnel,
    /// Bytes both ways, after an answer in SOCKS.
    Socks,
    /// This request first: a plain one, with its target rewritten.
    Request(Vec<u8>),
}

/// The head of a request in HTTP, up to and with its empty line. None if it can't be understood.
pub(super) fn http(head: &[u8]) -> Option<Wanted> {
    let text = std::str::from_utf8(head).ok()?;
    let mut lines = text.trim_end_matches("\r\n").split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if words.next().is_some() || !version.starts_with("HTTP/1.") {
        return None;
    }
    if method == "CONNECT" {
        let (host, port) = authority(target, None)?;
        return Some(Wanted { host, port, how: How::Tunnel });
    }
    let rest = target.strip_prefix("http://").or_else(|| target.strip_prefix("HTTP://"))?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (at, path) = rest.split_at(end);
    let (host, port) = authority(at, Some(80))?;
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let mut request = format!("{method} {path} {version}\r\n");
    // Each connection is for one host, so it ends with the answer.
    let for_us = ["proxy-connection", "proxy-authorization", "connection", "keep-alive"];
    for line in lines {
        let name = line.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
        if !for_us.contains(&name.as_str()) {
            request.push_str(line);
            request.push_str("\r\n");
        }
    }
    request.push_str("Connection: close\r\n\r\n");
    Some(Wanted { host, port, how: How::Request(request.into_bytes()) })
}

fn authority(text: &str, default: Option<u16>) -> Option<(String, u16)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            (host, rest.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        Some(port) => port.parse().ok()?,
        None => default?,
    };
    is_a_host(host).then(|| (host.to_owned(), port))
}

/// Whether a text can be a name or an address at all: nothing else goes to the resolver or into an event.
fn is_a_host(text: &str) -> bool {
    let is_ok = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    !text.is_empty() && text.len() <= 253 && text.chars().all(is_ok)
}

/// A request of SOCKS 5, behind the greeting. `Err` says how many more bytes are needed, or none if it is wrong.
pub(super) fn socks(bytes: &[u8]) -> Result<Wanted, Option<usize>> {
    let need = |length: usize| if bytes.len() < length { Err(Some(length - bytes.len())) } else { Ok(()) };
    need(5)?;
    // Version 5, a connection, nothing.
    if bytes[..3] != [5, 1, 0] {
        return Err(None);
    }
    let (host, end) = match bytes[3] {
        1 => {
            need(10)?;
            (std::net::Ipv4Addr::new(bytes[4], bytes[5], bytes[6], bytes[7]).to_string(), 8)
        }
        3 => {
            let end = 5 + usize::from(bytes[4]);
            need(end + 2)?;
            (String::from_utf8(bytes[5..end].to_vec()).map_err(|_| None)?, end)
        }
        4 => {
            need(22)?;
            let address: [u8; 16] = bytes[4..20].try_into().map_err(|_| None)?;
            (std::net::Ipv6Addr::from(address).to_string(), 20)
        }
        _ => return Err(None),
    };
    let port = u16::from_be_bytes([bytes[end], bytes[end + 1]]);
    if is_a_host(&host) { Ok(Wanted { host, port, how: How::Socks }) } else { Err(None) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_they_are_meant() {
        let wanted = |host: &str, port, how| Some(Wanted { host: host.into(), port, how });
        assert_eq!(http(b"CONNECT a.b:443 HTTP/1.1\r\nHost: x\r\n\r\n"), wanted("a.b", 443, How::Tunnel));
        assert_eq!(http(b"CONNECT [::1]:80 HTTP/1.1\r\n\r\n"), wanted("::1", 80, How::Tunnel));
        let plain = b"GET http://a.b/c?d HTTP/1.1\r\nHost: a.b\r\nProxy-Connection: keep-alive\r\n\r\n";
        let passed = b"GET /c?d HTTP/1.1\r\nHost: a.b\r\nConnection: close\r\n\r\n".to_vec();
        assert_eq!(http(plain), wanted("a.b", 80, How::Request(passed)));
        for wrong in [
            "CONNECT a.b HTTP/1.1\r\n\r\n",
            "GET /c HTTP/1.1\r\n\r\n",
            "GET http:// HTTP/1.1\r\n\r\n",
            "CONNECT a@b:443 HTTP/1.1\r\n\r\n",
            "CONNECT a.b:x HTTP/1.1\r\n\r\n",
            "CONNECT a.b:1 x HTTP/1.1\r\n\r\n",
            "CONNECT a\u{2028}b:1 HTTP/1.1\r\n\r\n",
            "",
        ] {
            assert_eq!(http(wrong.as_bytes()), None, "{wrong:?}");
        }
    }

    #[test]
    fn socks_requests_are_read_byte_by_byte() {
        let request = [&[5, 1, 0, 3, 3][..], b"a.b", &[1, 187]].concat();
        for cut in 0..request.len() {
            assert!(matches!(socks(&request[..cut]), Err(Some(1..))), "{cut}");
        }
        let wanted = Wanted { host: "a.b".into(), port: 443, how: How::Socks };
        assert_eq!(socks(&request), Ok(wanted));
        assert_eq!(socks(&[5, 1, 0, 1, 127, 0, 0, 1, 0, 80]).unwrap().host, "127.0.0.1");
        assert_eq!(socks(&[5, 2, 0, 1, 127, 0, 0, 1, 0, 80]), Err(None), "it may not listen");
        assert_eq!(socks(&[5, 1, 0, 9, 1, 1]), Err(None));
    }
}
