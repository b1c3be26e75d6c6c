//! A search in `PATH`: one thread tries the same name in one folder after the other.
//!
//! Most of these calls lead nowhere, so they must be cheap. The root of the process is remembered from one miss to the next,
//! and only from a miss: who has executed something may have another root since. A miss by a remembered root is answered with
//! the error itself. So if the root was changed in between after all, a program is not found; none runs unjudged.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use rustix::process::Pid;

use super::ExecCall;

/// How far a search has come.
#[derive(Debug, Default)]
pub struct Search {
    last: Option<Miss>,
}

/// A program that was not there.
#[derive(Debug)]
struct Miss {
    pid: Pid,
    name: Vec<u8>,
    root: OwnedFd,
}

impl Search {
    /// What the kernel would say of a path that is not there either, if this call goes on with the search. None if it has to be
    /// looked at: it is another search, or something is there.
    pub fn goes_on(&mut self, call: &ExecCall, path: &[u8]) -> Option<Errno> {
        let miss = self.last.take_if(|miss| miss.pid == call.pid && !call.at)?;
        if !path.starts_with(b"/") || name(path) != miss.name {
            return None;
        }
        let look = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_MAGICLINKS | ResolveFlags::IN_ROOT;
        match openat2(&miss.root, OsStr::from_bytes(path), look, Mode::empty(), resolve) {
            Err(error @ (Errno::NOENT | Errno::NOTDIR)) => {
                self.last = Some(miss);
                Some(error)
            }
            _ => None,
        }
    }

    /// Remembers where a program was looked for and not found.
    pub(super) fn has_missed(&mut self, call: &ExecCall, path: &[u8], root: OwnedFd) {
        self.last = Some(Miss { pid: call.pid, name: name(path).to_vec(), root });
    }

    /// Forgets it: something was found, or could not be looked at.
    pub(super) fn ends(&mut self) {
        self.last = None;
    }
}

fn name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec_guard::program::Program;

    fn call(at: bool) -> ExecCall {
        ExecCall { id: 1, pid: rustix::process::getpid(), at, arguments: [0; 5] }
    }

    #[test]
    fn only_the_same_name_of_the_same_thread_goes_on() {
        let mut search = Search::default();
        let mut first = |path: &[u8]| {
            assert!(Program::of(&call(false), path, &mut search).is_err());
            std::mem::take(&mut search)
        };
        let missed = b"/nonexistent/1/true";
        assert_eq!(first(missed).goes_on(&call(false), b"/nonexistent/2/true"), Some(Errno::NOENT));
        assert_eq!(first(missed).goes_on(&call(false), b"/etc/passwd/true"), Some(Errno::NOTDIR));
        assert_eq!(first(missed).goes_on(&call(false), b"/nonexistent/2/false"), None);
        assert_eq!(first(missed).goes_on(&call(false), b"nonexistent/true"), None);
        assert_eq!(first(missed).goes_on(&call(true), b"/nonexistent/2/true"), None);
        let other = ExecCall { pid: Pid::INIT, ..call(false) };
        assert_eq!(first(missed).goes_on(&other, b"/nonexistent/2/true"), None);
    }

    #[test]
    fn what_is_there_is_looked_at_anew_and_ends_the_search() {
        let mut search = Search::default();
        assert!(Program::of(&call(false), b"/nonexistent/true", &mut search).is_err());
        assert_eq!(search.goes_on(&call(false), b"/usr/bin/true"), None);
        assert_eq!(
            search.goes_on(&call(false), b"/nonexistent/true"),
            None,
            "its root may be another by now"
        );
        assert!(Program::of(&call(false), b"/nonexistent/true", &mut search).is_err());
        assert!(Program::of(&call(false), b"/usr/bin/true", &mut search).is_ok());
        assert_eq!(search.goes_on(&call(false), b"/nonexistent/true"), None);
    }
}
