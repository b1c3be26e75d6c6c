//! A person in front of a job: `attach`, and `run` in the foreground of a terminal.

use std::io::Read;
use std::os::fd::AsFd;

use outlast_job::client::attach::{Seen, Viewing};
use outlast_job::client::read::{Piece, Stream};
use outlast_job::client::signals::{Signal, Signals};
use outlast_job::wire::Attach;
use outlast_job::wire::event::What;
use outlast_job::{Failure, Job, Size};
use outlast_stream::Passthrough;
use rustix::event::{PollFd, PollFlags, poll};

use crate::live::Left;
use crate::output::Output;
use crate::terminal;

/// The key that leaves a job without telling it anything: Ctrl-].
const DETACH: u8 = 0x1d;

/// Sits in front of a job until it ends, or the person leaves.
pub(crate) fn view(job: &Job, attach: &Attach, out: &mut Output) -> Result<Left, Failure> {
    let signals = Signals::catch(&[Signal::HUP, Signal::TERM, Signal::WINCH])
        .map_err(|error| Failure::system("signals can't be caught", error))?;
    let _raw = terminal::Raw::enter();
    let mut reach = 0;
    loop {
        let size = terminal::size();
        let Some(viewing) = job.attach(&Attach { size, ..attach.clone() })? else {
            rest(job, reach, out);
            return Ok(Left::Ended);
        };
        let mut viewer =
            Viewer { job, viewing, filter: Passthrough::new(), offset: 0, read_only: attach.read_only };
        viewer.begin(size, out);
        let left = viewer.stay(&signals, out);
        reach = viewer.offset;
        // Otherwise the keeper died: its heir has the job now, and shows its screen anew.
        if let Some(left) = left? {
            return Ok(left);
        }
    }
}

/// What was printed after the last look at a job that has ended.
fn rest(job: &Job, from: u64, out: &mut Output) {
    let mut filter = Passthrough::new();
    if let Ok(range) = job.range(Stream::Output, from, None) {
        range.pieces(|_, piece| match piece {
            Piece::Bytes(bytes) => put(&mut filter, bytes, out),
            Piece::Gone { .. } => true,
        });
    }
}

fn put(filter: &mut Passthrough, bytes: &[u8], out: &mut Output) -> bool {
    let mut safe = Vec::with_capacity(bytes.len());
    filter.pass(bytes, &mut safe);
    out.data(&safe)
}

struct Viewer<'a> {
    job: &'a Job,
    viewing: Viewing,
    filter: Passthrough,
    offset: u64,
    read_only: bool,
}

impl Viewer<'_> {
    /// The screen as it is.
    fn begin(&mut self, own: Option<Size>, out: &mut Output) {
        self.offset = self.viewing.offset;
        if self.fits(own) {
            let repaint = std::mem::take(&mut self.viewing.repaint);
            out.data(&repaint);
        } else {
            self.draw_what_fits(own, out);
        }
    }

    /// Whether the job's terminal fits on the person's.
    fn fits(&self, own: Option<Size>) -> bool {
        let theirs = self.viewing.size;
        own.is_none_or(|own| own.cols >= theirs.cols && own.rows >= theirs.rows)
    }

    /// Stays until something ends it; nothing means that the keeper has gone.
    fn stay(&mut self, signals: &Signals, out: &mut Output) -> Result<Option<Left>, Failure> {
        loop {
            while let Some(seen) = self.viewing.next_now()? {
                match seen {
                    Seen::Grown(_) => self.show_more(out)?,
                    Seen::Event(event) if matches!(event.what, What::Ended { .. }) => {
                        self.show_more(out)?;
                        return Ok(Some(Left::Ended));
                    }
                    Seen::Event(_) => {}
                    Seen::Refused(failure) => out.talk(&format!("\r\noutlast: {failure}\r")),
                    Seen::Gone => return Ok(None),
                }
            }
            let stdin = std::io::stdin();
            let mut fds = [
                PollFd::from_borrowed_fd(self.viewing.fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN),
            ];
            let _ = poll(&mut fds, None);
            let key_pressed = !fds[2].revents().is_empty();
            for signal in signals.take() {
                if signal != Signal::WINCH {
                    return Ok(Some(Left::Detached));
                }
                if let Some(size) = terminal::size() {
                    self.viewing.resized(size);
                }
            }
            if key_pressed && self.keys() {
                return Ok(Some(Left::Detached));
            }
        }
    }

    fn show_more(&mut self, out: &mut Output) -> Result<(), Failure> {
        let own = terminal::size();
        let range = self.job.range(Stream::Output, self.offset, None)?;
        self.offset = range.to();
        if !self.fits(own) {
            self.draw_what_fits(own, out);
            return Ok(());
        }
        let filter = &mut self.filter;
        range.pieces(|_, piece| match piece {
            Piece::Bytes(bytes) => put(filter, bytes, out),
            Piece::Gone { .. } => true,
        });
        Ok(())
    }

    /// On a smaller terminal, the upper left part of the screen, drawn as a whole.
    fn draw_what_fits(&self, own: Option<Size>, out: &mut Output) {
        let (Some(own), Ok(shot)) = (own, self.job.screen(false, 0)) else { return };
        let mut text = String::from("\x1b[H\x1b[2J");
        for (i, row) in shot.rows.iter().take(own.rows.into()).enumerate() {
            let row: String = row.chars().take(own.cols.into()).collect();
            text.push_str(&format!("\x1b[{};1H{row}", i + 1));
        }
        let (row, col) = ((shot.cursor.row + 1).min(own.rows), (shot.cursor.col + 1).min(own.cols));
        text.push_str(&format!("\x1b[{row};{col}H"));
        out.data(text.as_bytes());
    }

    /// Passes keys on; true when the person wants to leave.
    fn keys(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let n = match std::io::stdin().read(&mut bytes) {
            // The terminal is gone.
            Ok(0) | Err(_) => return true,
            Ok(n) => n,
        };
        let leave = bytes[..n].iter().position(|byte| *byte == DETACH);
        let keys = &bytes[..leave.unwrap_or(n)];
        if !self.read_only && !keys.is_empty() {
            self.viewing.press(keys);
        }
        leave.is_some()
    }
}
