//! The keeper's socket in a job's folder, however long the folder's path is.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::process::Pid;

use crate::registry::{JobDir, layout};

/// How many clients may try to connect at the same moment.
const BACKLOG: i32 = 1024;

/// A path to the socket that fits into a socket address: through the folder's descriptor, if necessary.
#[cfg(all(target_os = "linux", not(outlast_portable)))]
fn short_path(job: &JobDir) -> PathBuf {
    use std::os::fd::{AsFd, AsRawFd};
    PathBuf::from(format!("/proc/self/fd/{}/{}", job.as_fd().as_raw_fd(), layout::SOCKET))
}

/// On other systems the whole path must fit.
#[cfg(any(not(target_os = "linux"), outlast_portable))]
fn short_path(job: &JobDir) -> PathBuf {
    job.file(layout::SOCKET)
}

/// Creates the socket, with access for its owner only.
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

/// What is known about the peer of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerTrust {
    /// Our own user.
    Ours,
    /// Our own user, in a sandbox: it must not control keepers, or it could escape.
    Confined,
    /// Our own user, but its process can't be seen from our namespace of processes.
    Unseen,
    /// Another user.
    Stranger,
}

/// How many unconfined processes are cached.
const MAX_UNCONFINED: usize = 256;
/// How often the ancestors of a peer are walked, at most.
const MAX_WALKS: usize = 3;

/// Checks peers that connect to a keeper.
///
/// A peer that connects again usually has the same ancestors, and checking all of them takes longer than to
/// answer. So they are cached, by pid and start time: a process never gains ancestors, and a keeper is a
/// keeper before it has its first child. The peer itself is always checked, and so are the processes between
/// it and the first cached one.
#[derive(Debug, Default)]
pub(crate) struct PeerCheck {
    /// Processes that are not in a sandbox, and neither are their ancestors.
    unconfined: HashMap<Pid, u64>,
    /// How many seccomp filters we are under ourselves.
    #[cfg(all(target_os = "linux", not(outlast_portable)))]
    filters: Option<u32>,
    /// Our home: programs of its guarded jobs are under a filter more.
    #[cfg(all(target_os = "linux", not(outlast_portable)))]
    home: PathBuf,
}

impl PeerCheck {
    /// Checks peers of keepers in this home.
    #[cfg(all(target_os = "linux", not(outlast_portable)))]
    pub(crate) fn of(home: &Path) -> Self {
        Self { home: home.to_owned(), ..Self::default() }
    }

    /// There are no filters to compare.
    #[cfg(any(not(target_os = "linux"), outlast_portable))]
    pub(crate) fn of(_home: &Path) -> Self {
        Self::default()
    }

    /// Checks the peer: by user, by ancestors, and by seccomp filters.
    pub(crate) fn who(&mut self, peer: &UnixStream) -> PeerTrust {
        if !peer_is_us(peer) {
            return PeerTrust::Stranger;
        }
        match outlast_pty::procfs::peer_of(peer) {
            Some(pid) if self.is_confined(pid) => PeerTrust::Confined,
            Some(_) => PeerTrust::Ours,
            // It may be in a sandbox, for all that we can see.
            None if cfg!(all(target_os = "linux", not(outlast_portable))) => PeerTrust::Unseen,
            None => PeerTrust::Ours,
        }
    }

    fn is_confined(&mut self, pid: Pid) -> bool {
        #[cfg(all(target_os = "linux", not(outlast_portable)))]
        {
            use outlast_pty::confine::filters_of;
            // The number only grows. If ours did, we are just stricter.
            self.filters = self.filters.or_else(|| filters_of(rustix::process::getpid()));
            // It is under more filters than we are, so it is confined; unless it is only guarded.
            let Some((theirs, own)) = filters_of(pid).zip(self.filters) else { return true };
            let is_guarded = || crate::keeper::guard::guarding(&self.home, pid).is_some();
            if theirs > own + 1 || theirs == own + 1 && !is_guarded() {
                return true;
            }
        }
        // A process that ends during the walk breaks the chain, because its children get another parent: walk
        // again.
        (0..MAX_WALKS).find_map(|_| self.walk_up(pid)).unwrap_or(false)
    }

    /// Whether a process descends from a keeper whose job is in a sandbox; `None` if that is unknown.
    fn walk_up(&mut self, pid: Pid) -> Option<bool> {
        let mut confined = false;
        let mut walked = Vec::new();
        let whole = outlast_pty::procfs::walk_up(pid, |process, arguments| {
            if process.pid != pid && self.unconfined.get(&process.pid) == Some(&process.start_time) {
                return false;
            }
            walked.push((process.pid, process.start_time));
            // A keeper itself is none of its descendants: that of a queued job waits for the end of others.
            confined = process.pid != pid && keeps_confined(&arguments.read());
            !confined
        });
        if confined || !whole {
            return confined.then_some(true);
        }
        if self.unconfined.len() + walked.len() > MAX_UNCONFINED {
            self.unconfined.clear();
        }
        // Not the peer itself: it may still execute anything.
        self.unconfined.extend(walked.into_iter().skip(1));
        Some(false)
    }
}

/// Whether these are the arguments of a keeper whose job is in a sandbox.
fn keeps_confined(arguments: &[&[u8]]) -> bool {
    let words = [crate::local::start::KEEP, crate::local::start::CONFINED];
    matches!(arguments, [_, keep, _, confined] if [*keep, *confined] == words.map(str::as_bytes))
}

/// Whether the peer runs as our own user.
pub(crate) fn peer_is_us(peer: &UnixStream) -> bool {
    outlast_pty::procfs::peer_user(peer) == Some(rustix::process::geteuid().as_raw())
}
