//! The keeper's socket in a job's folder, however long the folder's path is.

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::process::Pid;

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

/// More are not remembered.
const MOST_CLEAR: usize = 256;
/// How often we go up from one that knocks, at most.
const WALKS: usize = 3;

/// What a keeper knows of those who knock.
///
/// Who asks again mostly has the same ancestors, and to read up on all of them takes longer than to answer. So they are
/// remembered, by pid and start time: the ancestors of a process only ever become fewer, and a keeper is one from before
/// it has its first child. The one that knocks is always looked at itself, and so is whoever stands between it and the
/// first that is known.
#[derive(Debug, Default)]
pub(crate) struct Doorkeeper {
    /// Processes that are in no sandbox, and so are all above them.
    clear: HashMap<Pid, u64>,
    /// Under how many filters we are ourselves.
    filters: Option<u32>,
}

impl Doorkeeper {
    /// Looks at the one at the other end: by user, by descent, and by how confined it is.
    pub(crate) fn who(&mut self, peer: &UnixStream) -> Who {
        if !peer_is_us(peer).unwrap_or(false) {
            return Who::Stranger;
        }
        match outlast_pty::procfs::peer_of(peer) {
            Some(pid) if self.is_confined(pid) => Who::Confined,
            // Outside of the processes that we can see: so no descendant of ours, and of no keeper beside us.
            _ => Who::Ours,
        }
    }

    fn is_confined(&mut self, pid: Pid) -> bool {
        #[cfg(target_os = "linux")]
        {
            use outlast_pty::confine::filters_of;
            // They only become more: should ours have, we are the stricter.
            self.filters = self.filters.or_else(|| filters_of(rustix::process::getpid()));
            // Under more filters than we are: more confined than we are.
            if filters_of(pid).zip(self.filters).is_none_or(|(theirs, own)| theirs > own) {
                return true;
            }
        }
        // Who ends while we walk leads us astray, its children go to another: so walk again.
        (0..WALKS).find_map(|_| self.walk_up(pid)).unwrap_or(false)
    }

    /// Whether a process descends from a keeper whose job is in a sandbox; none when that can't be told.
    fn walk_up(&mut self, pid: Pid) -> Option<bool> {
        let mut confined = false;
        let mut walked = Vec::new();
        let whole = outlast_pty::procfs::walk_up(pid, |process, arguments| {
            if process.pid != pid && self.clear.get(&process.pid) == Some(&process.start_time) {
                return false;
            }
            walked.push((process.pid, process.start_time));
            confined = keeps_confined(&arguments.read());
            !confined
        });
        if confined || !whole {
            return confined.then_some(true);
        }
        if self.clear.len() + walked.len() > MOST_CLEAR {
            self.clear.clear();
        }
        // Not the one that knocks: what it executes may still become anything.
        self.clear.extend(walked.into_iter().skip(1));
        Some(false)
    }
}

/// Whether these are the arguments of a keeper whose job is in a sandbox.
fn keeps_confined(arguments: &[&[u8]]) -> bool {
    let words = [crate::client::start::KEEP, crate::client::start::CONFINED];
    matches!(arguments, [_, keep, _, confined] if [*keep, *confined] == words.map(str::as_bytes))
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
