//! The rows of `/proc/net/tcp` and `tcp6`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A listening socket, of any network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Listener {
    pub(crate) inode: u64,
    pub(crate) port: u16,
    pub(crate) address: IpAddr,
}

/// A row of `/proc/net/tcp` or `tcp6`, if it listens.
pub(crate) fn parse_row(row: &str) -> Option<Listener> {
    const LISTEN: &str = "0A";
    let mut fields = row.split_ascii_whitespace();
    let (address, port) = fields.nth(1)?.rsplit_once(':')?;
    if fields.nth(1)? != LISTEN {
        return None;
    }
    let port = u16::from_str_radix(port, 16).ok()?;
    let inode = fields.nth(5)?.parse().ok()?;
    // The address is printed as words in the machine's byte order.
    let word =
        |at: usize| u32::from_str_radix(address.get(at * 8..at * 8 + 8)?, 16).ok().map(u32::to_ne_bytes);
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (at, chunk) in bytes.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(at)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(Listener { inode, port, address })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn rows_of_the_kernel_tables_are_read() {
        let row = concat!(
            "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000",
            "     0        0 4711 1 0 100"
        );
        let expected = Listener { inode: 4711, port: 8080, address: IpAddr::V4(Ipv4Addr::LOCALHOST) };
        assert_eq!(parse_row(row), Some(expected));
        let row = concat!(
            "   1: 00000000000000000000000001000000:0016 00000000000000000000000000000000:0000",
            " 0A 00000000:00000000 00:00000000 00000000     0        0 12 1"
        );
        let expected = Listener { inode: 12, port: 22, address: IpAddr::V6(Ipv6Addr::LOCALHOST) };
        assert_eq!(parse_row(row), Some(expected));
    }

    #[test]
    fn connections_and_headings_are_not_listeners() {
        let heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
        assert_eq!(parse_row(heading), None);
        let connection =
            "   0: 0100007F:1F90 0100007F:A000 01 00000000:00000000 00:00000000 00000000 0 0 4711 1";
        assert_eq!(parse_row(connection), None);
        assert_eq!(parse_row(""), None);
    }
}
