//! A person in front of a job: `attach`, and `run` in the foreground of a terminal.

use std::os::fd::AsFd;

use outlast_job::client::attach::{Seen, Viewing};
use outlast_job::client::read::{Piece, Stream};
use outlast_job::client::signals::{Signal, Signals};
use outlast_job::wire::Attach;
use outlast_job::wire::event::What;
use outlast_job::{Failure, Job, Size};
use outlast_stream::{Config, Outcome, Passthrough, Pipeline};
use rustix::event::{PollFd, PollFlags, poll};

use crate::live::Left;
use crate::output::Output;
use crate::terminal;

/// The key that leaves a job without telling it anything: Ctrl-].
const DETACH: u8 = 0x1d;

/// Sits in front of a job until it ends, or the person leaves. The greeting lies over the screen until something
/// happens.
pub(crate) fn view(
    job: &Job,
    attach: &Attach,
    greeting: Option<String>,
    out: &mut Output,
) -> Result<Left, Failure> {
    let signals = Signals::catch(&[Signal::HUP, Signal::TERM, Signal::WINCH])
        .map_err(|error| Failure::system("signals can't be caught", error))?;
    let _raw = terminal::Raw::enter();
    terminal::make_room(out);
    let mut reach = 0;
    let mut greeting = greeting;
    loop {
        let attach = Attach { size: terminal::size(), ..attach.clone() };
        let Some(viewing) = job.attach(&attach)? else {
            rest(job, reach, out);
            return Ok(Left::Ended);
        };
        let mut viewer = Viewer {
            job,
            attach,
            fold: fold_of(viewing.size),
            viewing,
            filter: Passthrough::new(),
            offset: 0,
            other_screen_unknown: false,
            greets: false,
        };
        viewer.begin(out);
        if let Some(greeting) = greeting.take() {
            viewer.greet(&greeting, out);
        }
        let left = viewer.stay(&signals, out);
        reach = viewer.offset;
        // Otherwise the keeper died: its heir has the job now, and shows its screen anew.
        if let Some(left) = left? {
            viewer.step_below(out);
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

/// A screen of our own, of the job's size.
fn fold_of(size: Size) -> Pipeline {
    let size = outlast_stream::Size { cols: size.cols, rows: size.rows };
    Pipeline::new(Config { size, scrollback: 0, ..Config::default() })
}

struct Viewer<'a> {
    job: &'a Job,
    /// How we sit in front of it, with the size of the person's terminal.
    attach: Attach,
    viewing: Viewing,
    filter: Passthrough,
    /// What the job's terminal shows, for a person's terminal of another size.
    fold: Pipeline,
    offset: u64,
    /// A full-screen program was there before us: what it will leave behind was not shown yet.
    other_screen_unknown: bool,
    /// A greeting lies over the screen.
    greets: bool,
}

impl Viewer<'_> {
    /// The screen as it is.
    fn begin(&mut self, out: &mut Output) {
        let repaint = std::mem::take(&mut self.viewing.repaint);
        self.offset = self.viewing.offset;
        self.filter = Passthrough::new();
        self.fold = fold_of(self.viewing.size);
        self.fold.feed_more(&repaint, &mut Outcome::default());
        self.other_screen_unknown = self.fold.modes().alternate_screen;
        self.paint(&repaint, out);
    }

    /// The whole screen; whatever lay over it is gone.
    fn paint(&mut self, repaint: &[u8], out: &mut Output) {
        self.greets = false;
        if self.is_same_size() {
            put(&mut self.filter, repaint, out);
        } else {
            self.draw_what_fits(out);
        }
    }

    /// Says how to leave, in a row that the cursor is not in.
    fn greet(&mut self, greeting: &str, out: &mut Output) {
        let Some(own) = self.attach.size else { return };
        let cursor = self.fold.screen().cursor.row;
        let row = if cursor + 1 >= usize::from(own.rows) { 1 } else { own.rows };
        let text: String = greeting.chars().take(own.cols.into()).collect();
        out.data(format!("\x1b7\x1b[?6l\x1b[{row};1H\x1b[0;7m{text}\x1b[0m\x1b8").as_bytes());
        self.greets = true;
    }

    /// Takes the greeting away.
    fn uncover(&mut self, out: &mut Output) {
        if self.greets {
            self.filter = Passthrough::new();
            let repaint = self.fold.repaint();
            self.paint(&repaint, out);
        }
    }

    /// Whether the job's bytes mean the same on the person's terminal: they do only in the same size.
    fn is_same_size(&self) -> bool {
        self.attach.size.is_none_or(|own| own == self.viewing.size)
    }

    /// Stays until something ends it; nothing means that the keeper has gone.
    fn stay(&mut self, signals: &Signals, out: &mut Output) -> Result<Option<Left>, Failure> {
        loop {
            while let Some(seen) = self.viewing.next_now()? {
                match seen {
                    Seen::Grown(_) => self.show_more(out)?,
                    Seen::Repainted => self.begin(out),
                    Seen::Event(event) if matches!(event.what, What::Ended { .. }) => {
                        self.show_more(out)?;
                        return Ok(Some(Left::Ended));
                    }
                    Seen::Event(_) => {}
                    Seen::Refused(failure) => out.talk(&format!("\r\noutlast: {failure}\r")),
                    Seen::Gone => return Ok(None),
                }
            }
            let mut fds = [
                PollFd::from_borrowed_fd(self.viewing.fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(rustix::stdio::stdin(), PollFlags::IN),
            ];
            let _ = poll(&mut fds, None);
            let key_pressed = !fds[2].revents().is_empty();
            for signal in signals.take() {
                if signal != Signal::WINCH {
                    return Ok(Some(Left::Detached));
                }
                self.attach.size = terminal::size();
                self.viewing.look_again(&self.attach);
            }
            if key_pressed {
                self.uncover(out);
                if self.keys() {
                    return Ok(Some(Left::Detached));
                }
            }
        }
    }

    fn show_more(&mut self, out: &mut Output) -> Result<(), Failure> {
        self.uncover(out);
        let range = self.job.range(Stream::Output, self.offset, None)?;
        self.offset = range.to();
        let same_size = self.is_same_size();
        let (filter, fold) = (&mut self.filter, &mut self.fold);
        let mut outcome = Outcome::default();
        range.pieces(|_, piece| match piece {
            Piece::Bytes(bytes) => {
                fold.feed_more(bytes, &mut outcome);
                outcome.clear();
                !same_size || put(filter, bytes, out)
            }
            Piece::Gone { .. } => true,
        });
        if !same_size {
            self.draw_what_fits(out);
        }
        if self.other_screen_unknown && !self.fold.modes().alternate_screen {
            self.other_screen_unknown = false;
            self.viewing.look_again(&self.attach);
        }
        Ok(())
    }

    /// On a terminal of another size, as much of the screen as fits, drawn as a whole.
    fn draw_what_fits(&mut self, out: &mut Output) {
        if let Some(own) = self.attach.size {
            out.data(&self.fold.repaint_within(outlast_stream::Size { cols: own.cols, rows: own.rows }));
        }
    }

    /// What the shell prints next comes below what the job's screen shows.
    fn step_below(&mut self, out: &mut Output) {
        let shot = self.fold.screen();
        let height = self.attach.size.map_or(usize::MAX, |own| own.rows.into());
        let first = (shot.cursor.row + 1).saturating_sub(height);
        let last = shot.rows.iter().rposition(|row| !row.is_empty()).unwrap_or(0);
        let row = last.saturating_sub(first).min(height.saturating_sub(1));
        // The other screen goes away with its program; the cursor then comes back to where it was.
        if !shot.alternate || !self.is_same_size() {
            out.data(format!("\x1b[?6l\x1b[r\x1b[{};1H", row + 1).as_bytes());
        }
    }

    /// Passes keys on; true when the person wants to leave.
    fn keys(&mut self) -> bool {
        let mut bytes = [0; 4096];
        // Not through a buffer: what it held back, no poll would tell of.
        let n = match rustix::io::read(rustix::stdio::stdin(), &mut bytes) {
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => return false,
            // The terminal is gone.
            Ok(0) | Err(_) => return true,
            Ok(n) => n,
        };
        let leave = bytes[..n].iter().position(|byte| *byte == DETACH);
        let keys = &bytes[..leave.unwrap_or(n)];
        if !self.attach.read_only && !keys.is_empty() {
            self.viewing.press(keys);
        }
        leave.is_some()
    }
}
