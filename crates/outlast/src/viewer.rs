//! A person in front of a job: `attach`, and `run` in the foreground of a terminal.
//!
//! What the job prints goes to the person's terminal as it comes, below their prompt, as any command's output
//! does. The screen is taken only when the program takes it (the alternate screen), or when the person's
//! terminal has another size than the job's: then the job's screen is drawn as a whole, in a frame of its
//! own.

mod frame;
mod hint;

use std::os::fd::AsFd;
use std::time::Instant;

use outlast_job::client::Piece;
use outlast_job::client::signals::{Signal, Signals};
use outlast_job::client::{Seen, Viewing};
use outlast_job::request::ReadBytes;
use outlast_job::wire::Attach;
use outlast_job::wire::event::EventKind;
use outlast_job::{Failure, Job, Size};
use outlast_protocol::DetachKey;
use outlast_stream::{Config, FoldOutput, Passthrough, Pipeline};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::live::Left;
use crate::output::Output;
use crate::terminal::{self, Raw, Taken, keyboard};
use frame::Frame;
use hint::Hint;

/// The key that interrupts what runs: Ctrl-C.
const INTERRUPT: u8 = 0x03;
/// So much is shown at once; then keys and signals are looked at.
const PIECE: u64 = 64 << 10;
/// How much of a log is read at once.
const READ: usize = 256 << 10;

/// What a person comes to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShowFrom {
    /// A job that they have just started: all that it prints.
    Start(OwnTerminal),
    /// A job whose output they have seen up to an offset.
    Seen(u64),
    /// A job that runs: its screen as it is, and then what it prints.
    Now(OwnTerminal),
}

/// What is known of the person's terminal when they come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnTerminal {
    /// Where the cursor was, if the terminal said so. The screen of a job that was just started begins there too.
    pub(crate) cursor: Option<(u16, u16)>,
    /// The terminal was asked for it, and has not answered yet.
    pub(crate) answer_is_late: bool,
    /// What was typed since.
    pub(crate) typed: Vec<u8>,
}

/// How a person sits in front of a job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seat {
    /// As the keeper is told.
    pub(crate) attach: Attach,
    /// The key that leaves it.
    pub(crate) detach_key: DetachKey,
    /// Says how to leave.
    pub(crate) greeting: Option<String>,
}

/// Sits in front of a job until it ends, or the person leaves.
pub(crate) fn view(job: &Job, seat: Seat, from: ShowFrom, out: &mut Output) -> Result<Left, Failure> {
    let Seat { attach, detach_key, greeting } = seat;
    let signals = Signals::catch(&[Signal::HUP, Signal::TERM, Signal::WINCH])
        .map_err(|error| Failure::system("signals can't be caught", error))?;
    let mut viewer = Viewer {
        raw: Raw::enter(),
        job,
        attach,
        detach_key,
        filter: Passthrough::new(),
        fold: fold_of(terminal::size().unwrap_or_default(), (0, 0)),
        offset: 0,
        last_byte: 0,
        frame: None,
        other_screen_unknown: false,
        held_back: false,
        hint: Hint::new(greeting),
        behind: false,
        interrupted: false,
        rows_agree: false,
        first_row: 0,
        typed: Vec::new(),
        answer_is_late: false,
    };
    let mut first = Some(from);
    loop {
        viewer.attach.size = terminal::size();
        let Some(mut viewing) = job.attach(&viewer.attach)? else {
            match first {
                Some(ShowFrom::Now(_)) => {}
                Some(ShowFrom::Seen(offset)) => {
                    viewer.skip_to(offset)?;
                    viewer.show_more(None, out)?;
                }
                // It has ended already, but its rows are counted from where it began all the same.
                Some(ShowFrom::Start(started)) => {
                    viewer.rows_agree = started.cursor.is_some();
                    let size = viewer.attach.size.unwrap_or_default();
                    viewer.fold = fold_of(size, started.cursor.unwrap_or_default());
                    viewer.show_more(None, out)?;
                }
                None => viewer.show_more(None, out)?,
            }
            viewer.leave(out);
            return Ok(Left::Ended);
        };
        match first.take() {
            Some(from) => viewer.begin(from, &mut viewing, out)?,
            // The keeper has died: its heir has the job now, and the log goes on.
            None => viewer.look_anew(&mut viewing, out)?,
        }
        if let Some(left) = viewer.stay(&mut viewing, &signals, out)? {
            viewer.leave(out);
            return Ok(left);
        }
    }
}

fn put(filter: &mut Passthrough, bytes: &[u8], out: &mut Output) -> bool {
    let mut safe = Vec::with_capacity(bytes.len());
    filter.pass(bytes, &mut safe);
    safe.is_empty() || out.draw(&safe)
}

/// A screen of our own, of the job's size. One row above it tells whether it has scrolled.
fn fold_of(size: Size, cursor: (u16, u16)) -> Pipeline {
    let size = outlast_stream::Size { cols: size.cols, rows: size.rows };
    Pipeline::new(Config { size, scrollback: 1, cursor, ..Config::default() })
}

struct Viewer<'a> {
    raw: Option<Raw>,
    job: &'a Job,
    /// How we sit in front of it, with the size of the person's terminal.
    attach: Attach,
    /// The key that leaves the job and tells it nothing.
    detach_key: DetachKey,
    filter: Passthrough,
    /// What the job's terminal shows.
    fold: Pipeline,
    /// Where in the log the fold has come to.
    offset: u64,
    last_byte: u8,
    /// On a terminal of another size, the job's screen is drawn as a whole.
    frame: Option<Frame>,
    /// A full-screen program was there before us: what it will leave behind was not shown yet.
    other_screen_unknown: bool,
    /// It has left the screen: nothing is shown until we know what lies below.
    held_back: bool,
    hint: Hint,
    /// The log has more than was shown.
    behind: bool,
    /// The person has pressed Ctrl-C.
    interrupted: bool,
    /// The rows of the job's screen are those of the person's terminal.
    rows_agree: bool,
    /// The first row of the person's terminal that is the job's.
    first_row: usize,
    /// What was typed before there was a job to give it to.
    typed: Vec<u8>,
    /// The person's terminal has yet to say where its cursor was: that is not for the job.
    answer_is_late: bool,
}

impl Viewer<'_> {
    /// The first look.
    fn begin(&mut self, from: ShowFrom, viewing: &mut Viewing, out: &mut Output) -> Result<(), Failure> {
        match from {
            ShowFrom::Start(started) => {
                self.rows_agree = started.cursor.is_some() && self.is_same_size(viewing);
                let cursor = started.cursor.filter(|_| self.rows_agree).unwrap_or_default();
                (self.typed, self.answer_is_late) = (started.typed, started.answer_is_late);
                self.fold = fold_of(viewing.size, cursor);
                if !self.is_same_size(viewing) {
                    self.enter_frame(Some(self.offset), out);
                }
                self.show_more(None, out)?;
                self.hint.when_nothing_comes(Instant::now());
            }
            ShowFrom::Seen(offset) => {
                self.fold = fold_of(viewing.size, (0, 0));
                self.skip_to(offset)?;
                if !self.is_same_size(viewing) {
                    self.enter_frame(Some(self.offset), out);
                } else if self.fold.modes().alternate_screen {
                    self.paint(out);
                }
                self.show_more(None, out)?;
            }
            ShowFrom::Now(own) => {
                (self.typed, self.answer_is_late) = (own.typed, own.answer_is_late);
                self.learn(viewing);
                if self.is_same_size(viewing) {
                    self.rows_agree = own.cursor.is_some();
                    // Blank rows above the first that is not are the person's own.
                    let row = own.cursor.map_or(0, |(row, _)| usize::from(row));
                    let blank = self.fold.screen().rows.iter().take_while(|row| row.is_empty()).count();
                    self.first_row = row.min(blank);
                    self.paint_from(self.first_row, out);
                } else {
                    self.enter_frame(None, out);
                }
                self.greet(out);
            }
        }
        self.note_taken();
        Ok(())
    }

    /// Takes over the screen that the keeper shows.
    fn learn(&mut self, viewing: &mut Viewing) {
        let repaint = std::mem::take(&mut viewing.repaint);
        self.offset = viewing.offset;
        self.filter = Passthrough::new();
        self.fold = fold_of(viewing.size, (0, 0));
        self.fold.feed_more(&repaint, &mut FoldOutput::default());
        self.other_screen_unknown = self.fold.modes().alternate_screen;
        self.held_back = false;
    }

    /// The whole screen, on a terminal of the same size. Only the alternate screen is painted over: there is
    /// nothing of the person's there.
    fn paint(&mut self, out: &mut Output) {
        self.paint_from(0, out);
    }

    /// The same, without the first rows of a screen that is printed as lines.
    fn paint_from(&mut self, row: usize, out: &mut Output) {
        let paint = if self.fold.modes().alternate_screen {
            self.fold.repaint()
        } else {
            self.fold.repaint_as_lines(row)
        };
        self.note_screen();
        put(&mut self.filter, &paint, out);
    }

    /// The keeper shows the screen anew: in another size, or because we asked.
    fn look_anew(&mut self, viewing: &mut Viewing, out: &mut Output) -> Result<(), Failure> {
        self.unhint(out);
        let unknown = self.held_back;
        if unknown {
            self.learn(viewing);
        } else {
            self.show_more(Some(viewing.offset), out)?;
            let size = outlast_stream::Size { cols: viewing.size.cols, rows: viewing.size.rows };
            self.fold.resize(size, &mut FoldOutput::default());
        }
        match (self.is_same_size(viewing), self.frame.is_some()) {
            (true, true) => self.leave_frame(out),
            (true, false) if unknown || self.fold.modes().alternate_screen => self.paint(out),
            // The program draws itself anew, and the person's terminal has laid out its lines by itself.
            (true, false) => {}
            (false, true) => self.draw_frame(out),
            (false, false) => self.enter_frame((!unknown).then_some(self.offset), out),
        }
        self.note_taken();
        self.show_more(None, out)
    }

    /// Whether the job's bytes mean the same on the person's terminal: they do only in the same size.
    fn is_same_size(&self, viewing: &Viewing) -> bool {
        self.attach.size.is_none_or(|own| own == viewing.size)
    }

    /// Stays until something ends it; nothing means that the keeper has gone.
    fn stay(
        &mut self,
        viewing: &mut Viewing,
        signals: &Signals,
        out: &mut Output,
    ) -> Result<Option<Left>, Failure> {
        loop {
            // One thing at a time: a flood must not keep keys and signals from being looked at.
            let seen = viewing.next_now()?;
            let more_news = seen.is_some();
            match seen {
                Some(Seen::Grown(_)) => self.behind = true,
                Some(Seen::Repainted) => self.look_anew(viewing, out)?,
                Some(Seen::Event(event)) if matches!(event.what, EventKind::Exit { .. }) => {
                    self.show_rest(out)?;
                    return Ok(Some(Left::Ended));
                }
                Some(Seen::Event(event))
                    if matches!(event.what, EventKind::Stopped) && !self.attach.read_only =>
                {
                    self.show_more(None, out)?;
                    return Ok(Some(Left::Stopped));
                }
                Some(Seen::Event(_)) | None => {}
                Some(Seen::Refused(failure)) => out.talk(&format!("\r\noutlast: {failure}\r")),
                Some(Seen::Gone) => return Ok(None),
            }
            if self.behind {
                let to = self.offset + PIECE;
                self.show_more(Some(to), out)?;
                self.behind = self.offset == to;
            }
            if self.other_screen_unknown && self.held_back {
                self.other_screen_unknown = false;
                viewing.look_again(&self.attach);
            }
            self.pass_on_typed(viewing);
            let mut fds = vec![
                PollFd::from_borrowed_fd(viewing.fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN),
            ];
            fds.extend(keyboard().map(|keys| PollFd::from_borrowed_fd(keys, PollFlags::IN)));
            let timeout = if more_news || self.behind {
                Some(Timespec::default())
            } else {
                self.hint.due().and_then(|due| Timespec::try_from(due).ok())
            };
            let _ = poll(&mut fds, timeout.as_ref());
            let key_pressed = fds.get(2).is_some_and(|keys| !keys.revents().is_empty());
            self.hint_if_due(out);
            for signal in signals.take() {
                if signal != Signal::WINCH {
                    return Ok(Some(Left::Detached));
                }
                // One of another size lays out its lines by rules of its own. The signal alone does not say that it
                // has another.
                let before = std::mem::replace(&mut self.attach.size, terminal::size());
                self.rows_agree &= before == self.attach.size;
                viewing.look_again(&self.attach);
            }
            // What is typed after the end is for the shell.
            if key_pressed && !self.job.has_ended_on_record() {
                self.unhint(out);
                if self.keys(viewing) {
                    return Ok(Some(Left::Detached));
                }
            }
        }
    }

    /// The job has ended: shows what is left. After an interrupt, only the end of a flood is shown.
    fn show_rest(&mut self, out: &mut Output) -> Result<(), Failure> {
        let end = self.job.log_end();
        let skipped = end.saturating_sub(self.offset + PIECE);
        if self.interrupted && skipped > PIECE {
            self.skip_to(end - PIECE)?;
            let handle = self.job.handle();
            put(&mut self.filter, b"\r\n", out);
            out.talk(&format!("outlast: {skipped} bytes are not shown; read them: outlast read {handle}\r"));
        }
        self.show_more(None, out)
    }

    /// Takes in what the log has up to an offset, without showing it.
    fn skip_to(&mut self, to: u64) -> Result<(), Failure> {
        let fold = &mut self.fold;
        self.offset = self.job.read_pieces(log(self.offset, Some(to)), |piece| {
            if let Piece::Bytes(bytes) = piece {
                fold.feed_more(bytes, &mut FoldOutput::default());
            }
            true
        })?;
        Ok(())
    }

    /// Shows what the log has, up to an offset or all of it.
    fn show_more(&mut self, to: Option<u64>, out: &mut Output) -> Result<(), Failure> {
        let (_, end) = self.job.borders(log(self.offset, to))?;
        if end <= self.offset {
            return Ok(());
        }
        self.unhint(out);
        let (job, from) = (self.job.clone(), std::mem::replace(&mut self.offset, end));
        job.read_pieces(log(from, Some(end)), |piece| match piece {
            Piece::Bytes(bytes) => self.show(bytes, out),
            Piece::Lost { .. } => true,
        })?;
        if self.frame.is_some() {
            self.draw_frame(out);
        }
        self.note_taken();
        Ok(())
    }

    fn show(&mut self, mut bytes: &[u8], out: &mut Output) -> bool {
        let mut outcome = FoldOutput::default();
        let mut written = true;
        while !bytes.is_empty() {
            let (part, rest) = bytes.split_at(until_turn(bytes, self.last_byte));
            self.fold.feed_more(part, &mut outcome);
            self.note_screen();
            if !self.held_back && self.frame.is_none() {
                written = put(&mut self.filter, part, out);
            }
            if self.other_screen_unknown && !self.fold.modes().alternate_screen {
                self.held_back = true;
            }
            if outcome.replies.ends_with(b"R") {
                self.line_up(out);
            }
            outcome.clear();
            self.last_byte = part.last().copied().unwrap_or_default();
            bytes = rest;
        }
        written
    }

    /// The program was told in which row of its screen the cursor is, and may count on it: its rows become
    /// those of the person's terminal. What is above them scrolls away into the history.
    fn line_up(&mut self, out: &mut Output) {
        let lines_differ = !self.rows_agree
            && !self.filter.has_addressed_rows()
            && self.frame.is_none()
            && !self.held_back
            && !self.fold.modes().alternate_screen
            // Since it has scrolled, the last row is the same for both.
            && self.fold.scrollback(1).is_empty();
        if lines_differ {
            let row = self.fold.screen().cursor.row;
            if row > 0 {
                out.draw(format!("\x1b[{row}A").as_bytes());
            }
            self.paint(out);
        }
    }

    /// Notes that the screen is taken, before it is: we may be killed right after that.
    fn note_screen(&mut self) {
        if self.fold.modes().alternate_screen || self.frame.is_some() {
            self.note_taken();
        }
    }

    /// Notes what would have to be given back if we died now.
    fn note_taken(&mut self) {
        let taken = self.taken();
        if let Some(raw) = &mut self.raw {
            raw.taken(taken);
        }
    }

    fn taken(&self) -> Taken {
        let modes = self.fold.modes();
        let framed = self.frame.is_some();
        Taken { screen: framed || modes.alternate_screen, origin: !framed && modes.origin }
    }

    /// Gives the person's terminal back, with the cursor in the first column of the line after the last.
    fn leave(&mut self, out: &mut Output) {
        self.unhint(out);
        if self.frame.is_some() {
            self.leave_frame(out);
        }
        let taken = self.taken();
        if taken.screen {
            self.fold.feed_more(b"\x1b[?1049l", &mut FoldOutput::default());
        }
        if let Some(raw) = &mut self.raw {
            raw.give_back(taken, out);
        }
        if taken.origin && !taken.screen {
            return;
        }
        let shot = self.fold.screen();
        let last = shot.rows.iter().rposition(|row| !row.is_empty()).unwrap_or(0);
        let down = last.saturating_sub(shot.cursor.row);
        if down > 0 {
            out.draw(format!("\x1b[{down}B").as_bytes());
        }
        if down > 0 || shot.cursor.col > 0 {
            out.draw(b"\r\n");
        }
    }

    /// Passes on what was typed before there was a job.
    fn pass_on_typed(&mut self, viewing: &mut Viewing) {
        if !self.typed.is_empty() {
            viewing.press(&std::mem::take(&mut self.typed));
        }
    }

    /// Passes keys on; true when the person wants to leave.
    fn keys(&mut self, viewing: &mut Viewing) -> bool {
        let mut bytes = [0; 4096];
        // Not through a buffer: what it held back, no poll would tell of.
        let Some(keyboard) = keyboard() else { return true };
        let n = match rustix::io::read(keyboard, &mut bytes) {
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => return false,
            // The terminal is gone.
            Ok(0) | Err(_) => return true,
            Ok(n) => n,
        };
        let mut keys = bytes[..n].to_vec();
        if self.answer_is_late && terminal::take_cursor_answer(&mut keys).is_some() {
            self.answer_is_late = false;
        }
        let leave = self.detach_key.find(&keys);
        keys.truncate(leave.unwrap_or(keys.len()));
        if !self.attach.read_only && !keys.is_empty() {
            self.interrupted = keys.contains(&INTERRUPT);
            viewing.press(&keys);
        }
        leave.is_some()
    }
}

/// How many bytes may be taken in at once: up to the end of what could ask for the cursor's place or leave
/// the alternate screen, in whatever pieces the bytes come.
fn until_turn(bytes: &[u8], before: u8) -> usize {
    const TURNS: [[u8; 2]; 3] = [*b"6n", *b"7l", *b"9l"];
    if TURNS.contains(&[before, bytes[0]]) {
        return 1;
    }
    bytes.windows(2).position(|pair| TURNS.iter().any(|turn| turn == pair)).map_or(bytes.len(), |at| at + 2)
}

/// A range of what the job printed.
fn log(from: u64, to: Option<u64>) -> ReadBytes {
    ReadBytes { from, to, max: READ, ..ReadBytes::default() }
}
