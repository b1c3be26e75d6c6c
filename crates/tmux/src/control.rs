//! tmux's control mode: a client that is told what happens instead of drawing it.

use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::pane::Identity;
use super::{REPLY_TIMEOUT, Tmux, turns};

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
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    heard: Vec<u8>,
    pane: String,
    /// How many conditions were sent.
    asked: u64,
    /// The answer to the last one, once it has come.
    answer: Option<bool>,
    tmux: Tmux,
    door: Option<PathBuf>,
}

impl Control {
    /// Attaches to the session of a pane, without a say in its size. None where that is not possible: then the pane
    /// is looked at instead.
    #[must_use]
    pub(super) fn attach(tmux: &Tmux, session: &str, pane: &Identity) -> Option<Self> {
        let door = turns::door(pane);
        let alone = door.as_deref().and_then(turns::pass_door);
        let mut command = tmux.command();
        command.args(["-C", "attach-session", "-f", "ignore-size", "-t", session]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take()?;
        rustix::io::ioctl_fionbio(&stdout, true).ok()?;
        // We are in as soon as tmux says something.
        let timeout = Timespec { tv_sec: REPLY_TIMEOUT.as_secs().cast_signed(), tv_nsec: 0 };
        let _ = poll(&mut [PollFd::from_borrowed_fd(stdout.as_fd(), PollFlags::IN)], Some(&timeout));
        drop(alone);
        let (heard, pane, tmux) = (Vec::new(), pane.id.clone(), tmux.clone());
        Some(Self { child, stdin, stdout, heard, pane, asked: 0, answer: None, tmux, door })
    }

    /// Has tmux do something if a condition holds at that moment. Says whether it did, and what happened up to then;
    /// none if tmux does not answer.
    pub(super) fn only_if(&mut self, pane: &str, condition: &str, then: &str) -> Option<(bool, Happened)> {
        self.asked += 1;
        self.answer = None;
        let (yes, no) = (said(self.asked, true), said(self.asked, false));
        let line = format!(
            "if-shell -F -t {pane} '{condition}' '{then} ; display-message -p {yes}' 'display-message -p {no}'\n"
        );
        self.stdin.as_mut()?.write_all(line.as_bytes()).ok()?;
        let until = Instant::now() + REPLY_TIMEOUT;
        let mut all = Happened::default();
        while self.answer.is_none() {
            let happened = self.wait(until);
            all.output |= happened.output;
            all.changed |= happened.changed;
            if happened.over || (Instant::now() >= until && self.answer.is_none()) {
                return None;
            }
        }
        Some((self.answer?, all))
    }

    /// Listens until something happens or the deadline comes.
    pub fn wait(&mut self, deadline: Instant) -> Happened {
        loop {
            let answered = self.answer.is_some();
            let happened = self.hear();
            let left = deadline.saturating_duration_since(Instant::now());
            if happened != Happened::default() || left.is_zero() || self.answer.is_some() != answered {
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
            let line = &self.heard[..end];
            for answer in [true, false] {
                if line == said(self.asked, answer).as_bytes() {
                    self.answer = Some(answer);
                }
            }
            note(line, &self.pane, happened);
            self.heard.drain(..=end);
        }
        if self.heard.len() > MAX_LINE_BYTES {
            note(&self.heard, &self.pane, happened);
            self.heard.clear();
        }
    }
}

/// How tmux answers the condition of a number.
fn said(number: u64, answer: bool) -> String {
    format!("outlast-{number}-{answer}")
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
        let alone = self.door.as_deref().and_then(turns::pass_door);
        let _ = self.child.kill();
        let _ = self.child.wait();
        if alone.is_some() {
            // When it answers another client, it has noticed that this one is gone.
            let _ = self.tmux.run(&["display-message", "-p", ""], b"");
        }
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
