//! Full-screen programs that are told of input by a signal (`O_ASYNC`): no thread of them sleeps on their terminal. Those that
//! use termbox are.

use super::terminal::TtyIndex;
use super::threads::{Sample, ThreadScanner};
use super::verdict::{Assessment, Finding, Judge, Rank, Terminal, in_foreground};
use super::witness::Witness;
use crate::procfs::Proc;

/// The flag of a descriptor that asks for SIGIO, as `fdinfo` has it.
const ASYNC: i32 = libc::O_ASYNC;
/// Terminals are opened early: more descriptors are not looked at.
const MAX_DESCRIPTORS: usize = 64;

impl Judge<'_> {
    /// What is to be said of a full-screen program that asked for a signal; `None` if there is none in the foreground.
    pub(super) fn told_by_signal(&mut self, samples: &[Sample], terminal: &Terminal) -> Option<Assessment> {
        if !self.hints.alternate_screen || terminal.modes.canonical || terminal.depth > 0 {
            return None;
        }
        let mut foreground = in_foreground(samples, terminal).filter(|sample| sample.process.is_alive());
        let (sample, fd) = foreground
            .find_map(|sample| Some((sample, self.scanner.signalled_by(&sample.process, terminal.index)?)))?;
        let finding = Finding {
            pid: sample.process.pid,
            call: "",
            fd,
            nested: false,
            modes: terminal.modes,
            why: "a signal tells it of input, and its full screen stands still",
        };
        let main = sample.threads.first()?;
        if self.works_behind_the_screen(samples, terminal, sample, main) {
            return Some(Assessment::Listens(finding));
        }
        Some(match self.beside_others(samples, terminal, sample) {
            Witness::Yes => Assessment::Waits(Rank::Medium, finding),
            Witness::NotYet => Assessment::Unconfirmed,
            Witness::No => Assessment::Listens(finding),
        })
    }
}

impl ThreadScanner {
    /// The descriptor by which a process has a signal sent when somebody types.
    fn signalled_by(&mut self, process: &Proc, terminal: TtyIndex) -> Option<i32> {
        let (pid, path) = (process.pid, terminal.path());
        let mut fds = Vec::new();
        self.reader.numbers(format_args!("/proc/{pid}/fd"), |fd| fds.push(fd)).ok()?;
        fds.sort_unstable();
        fds.truncate(MAX_DESCRIPTORS);
        fds.into_iter().find(|fd| {
            let link = self.reader.link(format_args!("/proc/{pid}/fd/{fd}"));
            let ours = link.is_ok_and(|link| link == path.as_bytes() || link == b"/dev/tty");
            ours && self.reader.read(format_args!("/proc/{pid}/fdinfo/{fd}")).is_ok_and(asks_for_signal)
        })
    }
}

/// Whether the `flags` of an `fdinfo`, in octal, have it.
fn asks_for_signal(info: &[u8]) -> bool {
    let flags = std::str::from_utf8(info).ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
        i32::from_str_radix(line.trim(), 8).ok()
    });
    flags.is_some_and(|flags| flags & ASYNC != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_is_read_in_octal() {
        assert!(asks_for_signal(b"pos:\t0\nflags:\t0120002\nmnt_id:\t29\n"));
        assert!(!asks_for_signal(b"pos:\t0\nflags:\t0100002\nmnt_id:\t29\n"));
        assert!(!asks_for_signal(b"nonsense"));
    }
}
