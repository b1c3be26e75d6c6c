//! tmux's control mode: a client that is told what happens instead of drawing it.

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Tmux;

/// Longer lines are only of interest for how they begin.
const MAX_LINE_BYTES: usize = 64 << 10;

/// What happened while we listened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Happened {
    /// The pane printed something.
    pub output: bool,
    /// Panes or windows changed, or their modes.
    pub changed: bool,
    /// tmux is gone, or has shown us out.
    pub over: bool,
}

/// A control client of one session, which sees all its panes.
#[derive(Debug)]
pub struct Control {
    child: Child,
    _stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    heard: Vec<u8>,
    pane: String,
}

impl Control {
    /// Attaches to the session of a pane, without a say in its size. None where that can't be had: then the pane
    /// is looked at instead.
    #[must_use]
    pub fn attach(tmux: &Tmux, session: &str, pane: &str) -> Option<Self> {
        let mut command = tmux.command();
        command.args(["-C", "attach-session", "-f", "ignore-size", "-t", session]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take()?;
        rustix::io::ioctl_fionbio(&stdout, true).ok()?;
        Some(Self { child, _stdin: stdin, stdout, heard: Vec::new(), pane: pane.to_owned() })
    }

    /// Listens until something happens or the deadline comes.
    pub fn wait(&mut self, deadline: Instant) -> Happened {
        loop {
            let happened = self.hear();
            let left = deadline.saturating_duration_since(Instant::now());
            if happened != Happened::default() || left.is_zero() {
                return happened;
            }
            let left = Timespec {
                tv_sec: left.as_secs().min(1 << 30).cast_signed(),
                tv_nsec: i64::from(left.subsec_nanos()),
            };
            let _ = poll(&mut [PollFd::from_borrowed_fd(self.stdout.as_fd(), PollFlags::IN)], Some(&left));
        }
    }

    /// Takes what has come.
    fn hear(&mut self) -> Happened {
        let mut happened = Happened::default();
        let mut piece = [0; 16 << 10];
        loop {
            match std::io::Read::read(&mut self.stdout, &mut piece) {
                Ok(0) => {
                    happened.over = true;
                    break;
                }
                Ok(n) => self.heard.extend_from_slice(&piece[..n]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    happened.over = true;
                    break;
                }
            }
            self.understand(&mut happened);
        }
        happened
    }

    fn understand(&mut self, happened: &mut Happened) {
        while let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
            note(&self.heard[..end], &self.pane, happened);
            self.heard.drain(..=end);
        }
        if self.heard.len() > MAX_LINE_BYTES {
            note(&self.heard, &self.pane, happened);
            self.heard.clear();
        }
    }
}

fn note(line: &[u8], pane: &str, happened: &mut Happened) {
    let head = &line[..line.len().min(200)];
    let text = String::from_utf8_lossy(head);
    let mut words = text.split(' ');
    match words.next().unwrap_or_default() {
        "%output" | "%extended-output" => happened.output |= words.next() == Some(pane),
        "%exit" => happened.over = true,
        "%pane-mode-changed"
        | "%layout-change"
        | "%window-close"
        | "%unlinked-window-close"
        | "%window-pane-changed"
        | "%session-changed"
        | "%sessions-changed" => happened.changed = true,
        _ => {}
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_pane_counts() {
        let mut happened = Happened::default();
        note(b"%output %12 hello", "%1", &mut happened);
        assert_eq!(happened, Happened::default());
        note(b"%output %1 hello", "%1", &mut happened);
        note(b"%pane-mode-changed %1", "%1", &mut happened);
        assert_eq!(happened, Happened { output: true, changed: true, over: false });
    }
}
