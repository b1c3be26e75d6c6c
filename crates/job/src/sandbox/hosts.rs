//! Hosts that a job in a sandbox may connect to: names with ports and wildcards, and which addresses are never meant by a
//! name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::failure::Failure;

/// The ports of a host that is named without one: the web.
const WEB_PORTS: [u16; 2] = [80, 443];

/// A host as it is named in the settings: `crates.io`, `*.npmjs.org:443`, `10.0.0.7:5432`, `example.com:*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AllowedHost {
    name: Name,
    port: Port,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    Exact(String),
    /// Any name below this one.
    Below(String),
    Address(IpAddr),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Port {
    Web,
    Any,
    One(u16),
}

impl AllowedHost {
    /// Reads a host as it is written.
    ///
    /// # Errors
    /// A usage failure that says what is wrong.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = |why: &str| {
            Failure::usage(format!("{text:?} is no host: {why}"))
                .hint("write example.com, *.example.com, example.com:8443, example.com:* or 10.0.0.7:5432")
        };
        let (host, port) = match (text.parse::<IpAddr>(), text.rsplit_once(':')) {
            (Ok(_), _) | (_, None) => (text, None),
            (Err(_), Some((host, port))) => (host, Some(port)),
        };
        let port = match port {
            None => Port::Web,
            Some("*") => Port::Any,
            Some(port) => match port.parse() {
                Ok(0) | Err(_) => return Err(wrong("a port is a number from 1 to 65535, or *")),
                Ok(port) => Port::One(port),
            },
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        if let Ok(address) = host.parse() {
            return Ok(Self { name: Name::Address(address), port });
        }
        let (name, is_below) = match host.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (host.as_str(), false),
        };
        let name = name.trim_end_matches('.');
        if name.is_empty() || !name.split('.').all(is_label) {
            return Err(wrong("it is no name, and no address"));
        }
        if is_below && !name.contains('.') {
            return Err(wrong(
                "a wildcard needs two parts behind it; for every host there is network = \"on\"",
            ));
        }
        let name = name.to_owned();
        Ok(Self { name: if is_below { Name::Below(name) } else { Name::Exact(name) }, port })
    }

    /// Whether a connection to this host is meant.
    pub(crate) fn is(&self, host: &str, port: u16) -> bool {
        let is_port = match self.port {
            Port::Web => WEB_PORTS.contains(&port),
            Port::Any => true,
            Port::One(one) => one == port,
        };
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        is_port
            && match &self.name {
                Name::Exact(name) => *name == host,
                Name::Below(name) => host
                    .strip_suffix(name.as_str())
                    .is_some_and(|below| below.len() > 1 && below.ends_with('.')),
                Name::Address(address) => host.parse() == Ok(*address),
            }
    }

    /// Whether it is an address, which whoever wrote it meant, also if it is a private one.
    pub(crate) fn is_address(&self) -> bool {
        matches!(self.name, Name::Address(_))
    }
}

fn is_label(label: &str) -> bool {
    let is_ok = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !label.is_empty() && label.len() <= 63 && label.chars().all(is_ok)
}

/// Whether an address is of this machine or of the network that it is in: no public name means one of these.
pub(crate) fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => is_private_v6(address),
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_unspecified()
        || address.is_multicast()
        || address.is_broadcast()
        || a == 0
        || a >= 240
        // Shared by the customers of a provider; where clouds have their metadata too.
        || (a == 100 && (64..128).contains(&b))
        || (a, b, c) == (192, 0, 0)
        // Between the machines of a laboratory.
        || (a == 198 && (18..20).contains(&b))
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    // Addresses that carry one of version 4: mapped, compatible, translated, 6to4.
    let inner = match parts {
        [0, 0, 0, 0, 0, 0xffff, a, b] | [0x64, 0xff9b, 0, 0, 0, 0, a, b] => Some((a, b)),
        [0, 0, 0, 0, 0, 0, a, b] if a != 0 => Some((a, b)),
        [0x2002, a, b, ..] => Some((a, b)),
        _ => None,
    };
    if let Some((a, b)) = inner {
        let ([a, b], [c, d]) = (a.to_be_bytes(), b.to_be_bytes());
        return is_private_v4(Ipv4Addr::new(a, b, c, d));
    }
    address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || parts[0] & 0xfe00 == 0xfc00
        || parts[0] & 0xffc0 == 0xfe80
        || parts[0] & 0xffc0 == 0xfec0
        // Translated within a network.
        || parts[..3] == [0x64, 0xff9b, 1]
        // Teredo.
        || parts[..2] == [0x2001, 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(allowed: &str, host: &str, port: u16) -> bool {
        AllowedHost::parse(allowed).unwrap().is(host, port)
    }

    #[test]
    fn names_ports_and_wildcards_are_compared() {
        assert!(is("crates.io", "crates.io", 443) && is("crates.io", "Crates.IO.", 80));
        assert!(!is("crates.io", "crates.io", 22) && !is("crates.io", "static.crates.io", 443));
        assert!(is("*.crates.io", "static.crates.io", 443) && is("*.crates.io", "a.b.crates.io", 443));
        for host in ["crates.io", "evilcrates.io", ".crates.io", "crates.io.evil.com", "x-crates.io"] {
            assert!(!is("*.crates.io", host, 443), "{host}");
        }
        assert!(
            is("db.example.com:5432", "db.example.com", 5432)
                && !is("db.example.com:5432", "db.example.com", 443)
        );
        assert!(is("x.example.com:*", "x.example.com", 9));
        assert!(is("127.0.0.1:8080", "127.0.0.1", 8080) && !is("127.0.0.1:8080", "localhost", 8080));
        assert!(is("[::1]:80", "::1", 80) && is("::1", "::1", 443));
        for wrong in ["", "*", "*.com", "a b", "a:0", "a:x", "http://a", "a/b", "*.*.com", "a..b", "x@y"] {
            assert!(AllowedHost::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_name_means_an_address_of_this_machine_or_network() {
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.100.100.200",
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "255.255.255.255",
            "192.0.0.192",
            "198.18.0.1",
            "240.0.0.1",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "fec0::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:0:1::1",
            "64:ff9b:1::1",
        ] {
            assert!(is_private(address.parse().unwrap()), "{address}");
        }
        for address in
            ["93.184.216.34", "8.8.8.8", "198.51.100.7", "2606:4700::1111", "64:ff9b::808:808", "172.32.0.1"]
        {
            assert!(!is_private(address.parse().unwrap()), "{address}");
        }
    }
}
