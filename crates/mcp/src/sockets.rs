//! Standard input and output that are sockets, as Node makes them for its children.
//!
//! Without this each read and each write would be handed to another thread, because the descriptors may block. Here the
//! single calls do not block, and the descriptors stay as they are for everybody else who has them.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Socket(AsyncFd<OwnedFd>);

/// Standard input and output, if both are sockets. Must be called in a runtime.
pub(crate) fn of_stdio() -> Option<(Socket, Socket)> {
    let open = |fd: std::os::fd::BorrowedFd<'_>, interest| {
        let stat = rustix::fs::fstat(fd).ok()?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
            return None;
        }
        let own = rustix::io::fcntl_dupfd_cloexec(fd, 3).ok()?;
        #[expect(
            deprecated,
            reason = "an owned descriptor stays what it is; what takes its place needs unsafe code"
        )]
        let registered = AsyncFd::with_interest(own, interest);
        registered.ok().map(Socket)
    };
    let input = open(rustix::stdio::stdin(), Interest::READABLE)?;
    Some((input, open(rustix::stdio::stdout(), Interest::WRITABLE)?))
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.0.poll_read_ready(context))?;
            match recv(self.0.get_ref(), into.initialize_unfilled(), RecvFlags::DONTWAIT) {
                Ok((count, _)) => {
                    into.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(Errno::AGAIN) => guard.clear_ready(),
                Err(Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.0.poll_write_ready(context))?;
            match send(self.0.get_ref(), bytes, SendFlags::DONTWAIT | outlast_job::system::NO_SIGNAL) {
                Ok(count) => return Poll::Ready(Ok(count)),
                Err(Errno::AGAIN) => guard.clear_ready(),
                Err(Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
