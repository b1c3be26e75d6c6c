//! Asks the kernel about sockets over netlink: the peer of a Unix socket, and which sockets listen.
//!
//! `/proc/net/*` has the same information, but lists every socket of the machine as text. The answers are
//! about the network namespace of the calling thread; sockets of other namespaces are not found.
#![cfg(all(target_os = "linux", not(outlast_portable)))]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

/// The message type of all socket requests and answers.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const HEADER: usize = 16;

/// Which attributes of a Unix socket to request, and the numbers under which they are returned.
const UDIAG_SHOW_NAME: u32 = 1;
const UDIAG_SHOW_PEER: u32 = 4;
const UNIX_DIAG_NAME: u16 = 0;
const UNIX_DIAG_PEER: u16 = 2;

/// `TCP_LISTEN`, which Unix sockets use too.
const LISTEN: u8 = 10;

/// A TCP socket that accepts connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TcpListener {
    pub(crate) inode: u32,
    pub(crate) port: u16,
    pub(crate) address: IpAddr,
}

/// A Unix socket that accepts connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnixListener {
    pub(crate) inode: u32,
    /// As bound; abstract names start with a NUL.
    pub(crate) name: Vec<u8>,
}

/// What is known about an inode as a Unix socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnixSocket {
    /// Connected to this one.
    Peer(u32),
    /// A Unix socket, but not connected to any other.
    Alone,
    /// Not a Unix socket of this network namespace.
    NotUnix,
}

/// A netlink connection to the kernel.
#[derive(Debug)]
pub(crate) struct SockDiag {
    line: OwnedFd,
    answer: Vec<u8>,
}

impl SockDiag {
    /// # Errors
    /// If the kernel does not support it, or a sandbox forbids it.
    pub(crate) fn open() -> Result<Self, Errno> {
        let line = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        )?;
        Ok(Self { line, answer: vec![0; 32 * 1024] })
    }

    /// The socket that a Unix socket is connected to.
    pub(crate) fn unix_peer(&mut self, inode: u32) -> Result<UnixSocket, Errno> {
        let request = unix_request(inode, u32::MAX, UDIAG_SHOW_PEER);
        let mut found = UnixSocket::Alone;
        let asked = self.ask(0, &request, |message| {
            if let Some(peer) = attribute(message.get(16..)?, UNIX_DIAG_PEER) {
                // A peer that was closed has inode 0.
                found = match word(peer, 0)? {
                    0 => UnixSocket::Alone,
                    inode => UnixSocket::Peer(inode),
                };
            }
            Some(())
        });
        match asked {
            Ok(()) => Ok(found),
            Err(Errno::NOENT) => Ok(UnixSocket::NotUnix),
            Err(error) => Err(error),
        }
    }

    /// Every TCP socket that listens, of both families.
    pub(crate) fn tcp_listeners(&mut self) -> Result<Vec<TcpListener>, Errno> {
        let mut found = Vec::new();
        for family in [libc::AF_INET as u8, libc::AF_INET6 as u8] {
            // struct inet_diag_req_v2: family, protocol, no extras, a mask of states, an empty socket id.
            let mut request = [0_u8; 56];
            request[0] = family;
            request[1] = libc::IPPROTO_TCP as u8;
            request[4..8].copy_from_slice(&(1_u32 << LISTEN).to_ne_bytes());
            self.ask(NLM_F_DUMP, &request, |message| {
                found.push(tcp_listener(message)?);
                Some(())
            })?;
        }
        Ok(found)
    }

    /// Every Unix socket that listens and has a name.
    pub(crate) fn unix_listeners(&mut self) -> Result<Vec<UnixListener>, Errno> {
        let mut found = Vec::new();
        let request = unix_request(0, 1 << LISTEN, UDIAG_SHOW_NAME);
        self.ask(NLM_F_DUMP, &request, |message| {
            let inode = word(message, 4)?;
            if let Some(name) = attribute(message.get(16..)?, UNIX_DIAG_NAME) {
                found.push(UnixListener { inode, name: name.to_vec() });
            }
            Some(())
        })?;
        Ok(found)
    }

    /// Sends a request and passes every answer to `each`, which returns `None` for one that it cannot parse.
    fn ask(
        &mut self,
        flags: u16,
        body: &[u8],
        mut each: impl FnMut(&[u8]) -> Option<()>,
    ) -> Result<(), Errno> {
        let mut request = Vec::with_capacity(HEADER + body.len());
        request.extend_from_slice(&((HEADER + body.len()) as u32).to_ne_bytes());
        request.extend_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        request.extend_from_slice(&(NLM_F_REQUEST | flags).to_ne_bytes());
        request.extend_from_slice(&[0; 8]);
        request.extend_from_slice(body);
        rustix::net::send(&self.line, &request, SendFlags::empty())?;
        loop {
            let (filled, _) = rustix::io::retry_on_intr(|| {
                rustix::net::recv(&self.line, self.answer.as_mut_slice(), RecvFlags::empty())
            })?;
            let mut rest = &self.answer[..filled.min(self.answer.len())];
            while rest.len() >= HEADER {
                let length = word(rest, 0).map_or(0, |length| length as usize);
                let kind = half(rest, 4).unwrap_or(NLMSG_DONE);
                let Some(message) = rest.get(HEADER..length) else { return Err(Errno::BADMSG) };
                match kind {
                    NLMSG_DONE => return Ok(()),
                    NLMSG_ERROR => {
                        let code = word(message, 0).map_or(0, |code| (code as i32).saturating_neg());
                        return if code == 0 { Ok(()) } else { Err(Errno::from_raw_os_error(code)) };
                    }
                    _ => each(message).ok_or(Errno::BADMSG)?,
                }
                if flags & NLM_F_DUMP == 0 {
                    return Ok(());
                }
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            }
        }
    }
}

/// struct `unix_diag_req`: family, a mask of states, an inode or 0, what to show, any cookie.
fn unix_request(inode: u32, states: u32, show: u32) -> [u8; 24] {
    let mut request = [0_u8; 24];
    request[0] = libc::AF_UNIX as u8;
    request[4..8].copy_from_slice(&states.to_ne_bytes());
    request[8..12].copy_from_slice(&inode.to_ne_bytes());
    request[12..16].copy_from_slice(&show.to_ne_bytes());
    request[16..24].fill(0xff);
    request
}

/// struct `inet_diag_msg`: family, state, timer, retransmits; ports and addresses; five words, the inode
/// last.
fn tcp_listener(message: &[u8]) -> Option<TcpListener> {
    let family = i32::from(*message.first()?);
    let port = u16::from_be_bytes([*message.get(4)?, *message.get(5)?]);
    let source: [u8; 16] = message.get(8..24)?.try_into().ok()?;
    let address = if family == libc::AF_INET {
        IpAddr::V4(Ipv4Addr::new(source[0], source[1], source[2], source[3]))
    } else {
        IpAddr::V6(Ipv6Addr::from(source))
    };
    Some(TcpListener { inode: word(message, 68)?, port, address })
}

/// The value of one netlink attribute.
fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    while attributes.len() >= 4 {
        let length = usize::from(half(attributes, 0)?);
        if half(attributes, 2)? == wanted {
            return attributes.get(4..length);
        }
        attributes = attributes.get(length.max(4).next_multiple_of(4)..)?;
    }
    None
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    fn inode(socket: impl AsFd) -> u32 {
        rustix::fs::fstat(socket).unwrap().st_ino as u32
    }

    #[test]
    fn the_ends_of_a_socket_pair_know_each_other() {
        let (one, other) = UnixStream::pair().unwrap();
        let mut diag = SockDiag::open().unwrap();
        assert_eq!(diag.unix_peer(inode(&one)).unwrap(), UnixSocket::Peer(inode(&other)));
        assert_eq!(diag.unix_peer(inode(&other)).unwrap(), UnixSocket::Peer(inode(&one)));
        let inode_of_one = inode(&one);
        drop(other);
        assert_eq!(diag.unix_peer(inode_of_one).unwrap(), UnixSocket::Alone);
    }

    #[test]
    fn a_tcp_socket_is_not_a_unix_socket() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut diag = SockDiag::open().unwrap();
        assert_eq!(diag.unix_peer(inode(&listener)).unwrap(), UnixSocket::NotUnix);
    }

    #[test]
    fn listeners_of_both_families_are_found() {
        let mut diag = SockDiag::open().unwrap();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = std::net::TcpListener::bind(address) else { continue };
            let at = listener.local_addr().unwrap();
            let expected = TcpListener { inode: inode(&listener), port: at.port(), address: at.ip() };
            assert!(diag.tcp_listeners().unwrap().contains(&expected), "{expected:?}");
        }
    }

    #[test]
    fn a_unix_listener_is_found_by_its_name() {
        let folder = std::env::temp_dir().join(format!("outlast-sockdiag-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("s");
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        let found = SockDiag::open().unwrap().unix_listeners().unwrap();
        let mine = found.iter().find(|found| found.inode == inode(&listener)).unwrap();
        let name = mine.name.strip_suffix(b"\0").unwrap_or(&mine.name);
        assert_eq!(name, path.to_str().unwrap().as_bytes());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
