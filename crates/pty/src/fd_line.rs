//! A socket pair over which a forked child hands a descriptor back: a listener that only the child can make, inside of its
//! own filter or its own namespaces.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};

/// A line: where a descriptor arrives, and where it is sent.
///
/// # Errors
/// Too many open files.
pub fn line() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    let (arrives, sent) = rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    Ok((crate::spawn::above_stdio(arrives)?, crate::spawn::above_stdio(sent)?))
}

/// Sends a descriptor, with buffers on the stack only: it may run between fork and exec.
pub(crate) fn send(to: RawFd, fd: RawFd) -> io::Result<()> {
    // SAFETY: all buffers live until the call returns; the control buffer is aligned for, and has room for, one message
    // with one descriptor.
    #[expect(unsafe_code, reason = "sendmsg between fork and exec")]
    unsafe {
        let mut byte = 0_u8;
        let mut iov = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
        let mut control = [0_u64; 4];
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut iov;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(4) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as _;
        std::ptr::copy_nonoverlapping((&raw const fd).cast::<u8>(), libc::CMSG_DATA(header), 4);
        if libc::sendmsg(to, &raw const message, libc::MSG_NOSIGNAL) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Waits for a descriptor on its line, and takes it; none if it never was sent and never will be.
///
/// # Errors
/// What the system says.
pub fn receive(line: BorrowedFd<'_>) -> io::Result<Option<OwnedFd>> {
    received(line, RecvFlags::empty())
}

/// A copy of the descriptor that waits on a line, which stays there for whoever comes later.
///
/// # Errors
/// What the system says; `EAGAIN` if it is not there.
pub fn peek(line: BorrowedFd<'_>) -> io::Result<Option<OwnedFd>> {
    received(line, RecvFlags::DONTWAIT | RecvFlags::PEEK)
}

fn received(line: BorrowedFd<'_>, flags: RecvFlags) -> io::Result<Option<OwnedFd>> {
    let mut byte = [0_u8; 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = rustix::net::RecvAncillaryBuffer::new(&mut space);
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let mut iov = [io::IoSliceMut::new(&mut byte)];
    rustix::io::retry_on_intr(|| rustix::net::recvmsg(line, &mut iov, &mut control, flags))?;
    for message in control.drain() {
        if let rustix::net::RecvAncillaryMessage::ScmRights(fds) = message
            && let Some(fd) = fds.into_iter().next()
        {
            return crate::spawn::above_stdio(fd).map(Some);
        }
    }
    Ok(None)
}
