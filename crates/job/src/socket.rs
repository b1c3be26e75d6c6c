//! The keeper's socket in a job's folder, however long the folder's path is.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use rustix::io::Errno;

use crate::registry::{JobDir, layout};

/// How many clients may knock at the same moment.
const BACKLOG: i32 = 1024;

/// A path to the socket that fits into a socket address: by way of the folder's descriptor, where it must.
#[cfg(target_os = "linux")]
fn short_path(job: &JobDir) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{}", job.as_fd().as_raw_fd(), layout::SOCKET))
}

/// Elsewhere the whole path must fit.
#[cfg(not(target_os = "linux"))]
fn short_path(job: &JobDir) -> PathBuf {
    job.file(layout::SOCKET)
}

/// Makes the socket, readable and writable by its owner alone.
pub(crate) fn listen(job: &JobDir) -> Result<OwnedFd, std::io::Error> {
    let listener = UnixListener::bind(short_path(job))?;
    listener.set_nonblocking(true)?;
    let listener = OwnedFd::from(listener);
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

/// Connects to a job's keeper.
pub(crate) fn connect(job: &JobDir) -> Result<UnixStream, std::io::Error> {
    UnixStream::connect(short_path(job))
}

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Our own user.
    Ours,
    /// Our own user, in a sandbox: whoever it could tell what to do would let it out.
    Confined,
    /// Somebody else.
    Stranger,
}

/// Looks at the one at the other end: by user, by descent, and by how confined it is.
pub(crate) fn who(peer: &UnixStream) -> Who {
    if !peer_is_us(peer).unwrap_or(false) {
        return Who::Stranger;
    }
    match outlast_pty::procfs::peer_of(peer) {
        Some(pid) if is_confined(pid) => Who::Confined,
        // Outside of the processes that we can see: so no descendant of ours, and of no keeper beside us.
        _ => Who::Ours,
    }
}

fn is_confined(pid: rustix::process::Pid) -> bool {
    #[cfg(target_os = "linux")]
    {
        use outlast_pty::confine::filters_of;
        let own = filters_of(rustix::process::getpid());
        // Under more filters than we are: more confined than we are.
        if filters_of(pid).zip(own).is_none_or(|(theirs, own)| theirs > own) {
            return true;
        }
    }
    let keeps_confined = |pid| {
        let arguments = outlast_pty::procfs::arguments(pid).unwrap_or_default();
        let words = [crate::client::start::KEEP, crate::client::start::CONFINED];
        matches!(arguments.as_slice(), [_, keep, _, confined] if [keep, confined] == words.map(str::as_bytes))
    };
    outlast_pty::procfs::ancestors(pid).into_iter().any(keeps_confined)
}

/// Whether the one at the other end is of our own user.
pub(crate) fn peer_is_us(peer: &UnixStream) -> Result<bool, Errno> {
    #[cfg(target_os = "linux")]
    {
        let peer = rustix::net::sockopt::socket_peercred(peer)?;
        Ok(peer.uid == rustix::process::geteuid())
    }
    #[cfg(not(target_os = "linux"))]
    {
        // The socket lies in a folder that only its owner can enter.
        let _ = peer;
        Ok(true)
    }
}
