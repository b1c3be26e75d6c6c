//! Who asks: the checks before anything is answered.
//!
//! A page of another site can make a browser send requests here, a name of another site can be pointed at this machine, and
//! browsers send a cookie to every port of a host, where jobs run servers of their own. So a request counts only if it is
//! addressed to a name of ours, comes from our own page as the browser says, and has the cookie *and* the key that only our page
//! can read. Neither alone is anything.

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::rights::Visitor;
use crate::store::{Known, Store, hash};

/// The header in which our page sends its key.
pub(crate) const KEY: HeaderName = HeaderName::from_static("x-outlast-key");
/// How the name of a subprotocol begins that holds the key: a socket cannot have headers of its own.
pub(crate) const KEY_PROTOCOL: &str = "outlast.key.";
/// The subprotocol itself.
pub(crate) const PROTOCOL: &str = "outlast.1";

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Names by which browsers reach us.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    /// Host names, with or without a port.
    pub(crate) hosts: Vec<String>,
    pub(crate) scheme: &'static str,
    /// The name of the cookie: each port has its own, as browsers do not tell ports apart.
    pub(crate) cookie: String,
    pub(crate) read_only: bool,
}

/// Why a request is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is addressed to another name.
    Host,
    /// It does not come from our own page.
    Elsewhere,
    /// Cookie and key are not those of somebody whom we know.
    Unknown,
}

/// How a request says that it comes from our own page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Fetched by a script: the browser says from which site.
    Fetch,
    /// A socket: not every browser says so, but each names the origin.
    Socket,
}

impl Guard {
    /// Whether it is addressed to us. The host as it was written.
    pub(crate) fn host<'a>(&self, headers: &'a HeaderMap) -> Result<&'a str, Refused> {
        let mut named = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else { return Err(Refused::Host) };
        let host = host.to_str().map_err(|_| Refused::Host)?;
        let name = without_port(host).ok_or(Refused::Host)?;
        let is_ours =
            self.hosts.iter().any(|ours| ours.eq_ignore_ascii_case(host) || ours.eq_ignore_ascii_case(name));
        if is_ours { Ok(host) } else { Err(Refused::Host) }
    }

    /// Whether our own page asks.
    pub(crate) fn own_page(&self, headers: &HeaderMap, kind: Kind) -> Result<(), Refused> {
        let host = self.host(headers)?;
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let (Some(origin), None) = (origins.next(), origins.next()) else { return Err(Refused::Elsewhere) };
        let ours = format!("{}://{host}", self.scheme);
        if !origin.as_bytes().eq_ignore_ascii_case(ours.as_bytes()) {
            return Err(Refused::Elsewhere);
        }
        match (headers.get(&FETCH_SITE).map(HeaderValue::as_bytes), kind) {
            (Some(b"same-origin"), _) | (None, Kind::Socket) => Ok(()),
            (Some(_), _) | (None, Kind::Fetch) => Err(Refused::Elsewhere),
        }
    }

    /// Who it is, by cookie and key.
    pub(crate) fn visitor(&self, headers: &HeaderMap, key: &str, store: &Store) -> Result<Visitor, Refused> {
        let cookie = self.cookie_of(headers).ok_or(Refused::Unknown)?;
        match store.known(cookie, key).ok_or(Refused::Unknown)? {
            Known::Owner => {
                let holder = hash(&format!("holder {key}"));
                Ok(Visitor::Owner { read_only: self.read_only, holder })
            }
            Known::Guest(share) => Ok(Visitor::Guest { job: share.job, until: share.until }),
        }
    }

    fn cookie_of<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(name, _)| *name == self.cookie).map(|(_, value)| value)
    }

    /// The cookie for somebody who comes in.
    pub(crate) fn set_cookie(&self, value: &str) -> String {
        format!("{}={value}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=604800", self.cookie)
    }
}

/// The key in the subprotocols that a socket offers.
pub(crate) fn key_of_socket(headers: &HeaderMap) -> Option<&str> {
    let lines = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).find_map(|name| name.trim().strip_prefix(KEY_PROTOCOL))
}

/// The name in `name:port`, `[::1]:port` or `name`.
fn without_port(host: &str) -> Option<&str> {
    let name = match host.strip_prefix('[') {
        Some(rest) => &host[..rest.find(']')? + 2],
        None => host.split(':').next()?,
    };
    let rest = &host[name.len()..];
    let is_port = rest.is_empty() || rest.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    (is_port && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> Guard {
        Guard {
            hosts: ["127.0.0.1", "localhost", "[::1]"].map(str::to_owned).to_vec(),
            scheme: "http",
            cookie: "__Host-outlast-1".into(),
            read_only: false,
        }
    }

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
        };
        let mut all = HeaderMap::new();
        pairs.iter().map(pair).for_each(|(name, value)| {
            all.append(name, value);
        });
        all
    }

    #[test]
    fn only_our_own_names_are_answered() {
        for ours in ["127.0.0.1:80", "localhost:8391", "LOCALHOST", "[::1]:5", "[::1]"] {
            assert!(guard().host(&headers(&[("host", ours)])).is_ok(), "{ours}");
        }
        for other in [
            "evil.example",
            "evil.example:8391",
            "127.0.0.1.evil.example",
            "localhost.evil.example:1",
            "",
            "127.0.0.1:80:90",
            "127.0.0.1:evil",
            "[::1]evil",
            "127.0.0.1@evil.example",
            "0.0.0.0",
            "2130706433",
        ] {
            assert_eq!(guard().host(&headers(&[("host", other)])), Err(Refused::Host), "{other}");
        }
        assert_eq!(guard().host(&headers(&[])), Err(Refused::Host));
        let twice = headers(&[("host", "localhost"), ("host", "evil.example")]);
        assert_eq!(guard().host(&twice), Err(Refused::Host));
    }

    #[test]
    fn only_our_own_page_may_ask() {
        let host = ("host", "127.0.0.1:1");
        let ours = [host, ("origin", "http://127.0.0.1:1"), ("sec-fetch-site", "same-origin")];
        assert_eq!(guard().own_page(&headers(&ours), Kind::Fetch), Ok(()));
        assert_eq!(guard().own_page(&headers(&ours[..2]), Kind::Socket), Ok(()));
        for other in [
            &[host, ours[2]][..],
            &ours[..2],
            &[host, ("origin", "http://127.0.0.1:2"), ours[2]],
            &[host, ("origin", "http://localhost:1"), ours[2]],
            &[host, ("origin", "https://127.0.0.1:1"), ours[2]],
            &[host, ("origin", "null"), ours[2]],
            &[host, ours[1], ("origin", "http://evil.example"), ours[2]],
            &[host, ours[1], ("sec-fetch-site", "same-site")],
            &[host, ours[1], ("sec-fetch-site", "cross-site")],
            &[host, ours[1], ("sec-fetch-site", "none")],
        ] {
            assert_eq!(guard().own_page(&headers(other), Kind::Fetch), Err(Refused::Elsewhere), "{other:?}");
        }
    }
}
