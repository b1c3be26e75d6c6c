//! The person's own terminal: its size, its keys, where its cursor is, and its modes, which are always put back,
//! also after a crash.

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use outlast_job::Size;
use outlast_stream::{FoldOutput, Passthrough, Pipeline};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, isatty, tcgetattr, tcgetpgrp, tcgetwinsize,
    tcsetattr,
};

/// The hidden verb of the process that puts the terminal back if we can't.
pub(crate) const GUARD: &str = "guard-terminal";

/// Switches off whatever a program may have switched on, and leaves the cursor where it is: mouse, paste
/// marks, colours, line drawing, scroll region, hidden cursor, an update that was never finished.
const CALM: &[u8] =
    b"\x0f\x1b(B\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?2026l\x1b[?1l\x1b>\
\x1b[?5l\x1b[?7h\x1b7\x1b[r\x1b8\x1b[4l\x1b[20l\x1b[?25h\x1b[0m";

/// For who does not know where the cursor is: below everything.
const BELOW: &[u8] = b"\x1b[999;1H\r\n";

/// What the terminal was like before we changed it.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// The size of the terminal that our output goes to.
pub(crate) fn size() -> Option<Size> {
    let size = tcgetwinsize(stdout()).or_else(|_| tcgetwinsize(stdin())).ok()?;
    Size { cols: size.ws_col, rows: size.ws_row }.checked().ok()
}

/// How many columns there are to print into; none if our output does not go to a terminal.
pub(crate) fn columns() -> Option<usize> {
    let size = tcgetwinsize(stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// How long a terminal may take to say where its cursor is: it may be far away.
const CURSOR_TIMEOUT: Duration = Duration::from_millis(500);

/// Where a person's keys come from: standard input, or the terminal that we are in if that is something else.
pub(crate) fn keyboard() -> Option<BorrowedFd<'static>> {
    static OPENED: OnceLock<Option<OwnedFd>> = OnceLock::new();
    if isatty(stdin()) {
        return Some(stdin());
    }
    let open =
        || rustix::fs::open("/dev/tty", OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).ok();
    OPENED.get_or_init(open).as_ref().map(AsFd::as_fd)
}

/// Whether keys come to us: not in the background of a shell, where taking them would stop us.
pub(crate) fn is_in_front() -> bool {
    keyboard().and_then(|keyboard| tcgetpgrp(keyboard).ok()) == Some(rustix::process::getpgrp())
}

/// Whether somebody sits here who types and reads what we say.
pub(crate) fn is_a_person() -> bool {
    isatty(stdin()) && isatty(stderr())
}

/// Where the cursor is, as row and column from 0, and what was typed meanwhile.
#[derive(Debug, Default)]
pub(crate) struct CursorAnswer {
    /// None if the terminal does not say.
    pub(crate) cursor: Option<(u16, u16)>,
    /// Whether it was asked: an answer that comes late is not for the job.
    pub(crate) asked: bool,
    pub(crate) typed: Vec<u8>,
}

/// Asks the person's terminal where its cursor is.
pub(crate) fn ask_for_cursor() -> CursorAnswer {
    let nothing = CursorAnswer::default();
    if std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb") {
        return nothing;
    }
    let Some((keyboard, before)) = keyboard().and_then(|it| Some((it, tcgetattr(it).ok()?))) else {
        return nothing;
    };
    let mut raw = before.clone();
    raw.make_raw();
    if tcsetattr(keyboard, OptionalActions::Drain, &raw).is_err() {
        return nothing;
    }
    let mut answer = CursorAnswer { asked: true, ..nothing };
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(b"\x1b[6n").and_then(|()| stdout.flush());
    let until = Instant::now() + CURSOR_TIMEOUT;
    let mut bytes = [0; 256];
    while answer.cursor.is_none() {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).unwrap_or_default();
        match poll(&mut [PollFd::new(&keyboard, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => break,
            Ok(_) => {}
            Err(_) => continue,
        }
        let Ok(n @ 1..) = rustix::io::read(keyboard, &mut bytes) else { break };
        answer.typed.extend_from_slice(&bytes[..n]);
        answer.cursor = take_cursor_answer(&mut answer.typed);
    }
    let _ = tcsetattr(keyboard, OptionalActions::Drain, &before);
    answer
}

/// Takes the answer to a question about the cursor out of what was typed.
pub(crate) fn take_cursor_answer(typed: &mut Vec<u8>) -> Option<(u16, u16)> {
    let starts = (0..typed.len()).filter(|&at| typed[at..].starts_with(b"\x1b["));
    for start in starts.collect::<Vec<_>>() {
        let Some(length) = typed[start..].iter().position(|byte| *byte == b'R') else { continue };
        let text = std::str::from_utf8(&typed[start + 2..start + length]).unwrap_or_default();
        let place = text
            .split_once(';')
            .and_then(|(row, col)| Some((row.parse::<u16>().ok()?, col.parse::<u16>().ok()?)));
        if let Some((row, col)) = place {
            typed.drain(start..=start + length);
            return Some((row.saturating_sub(1), col.saturating_sub(1)));
        }
    }
    None
}

/// What a program did to the terminal that can't be taken back blindly: each way back moves the cursor, also
/// where there is nothing to take back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The alternate screen is shown.
    pub(crate) screen: bool,
    /// Rows are counted from the scroll region (origin mode).
    pub(crate) origin: bool,
}

impl Taken {
    /// As the letter that tells the guard.
    fn letter(self) -> u8 {
        b'0' + u8::from(self.screen) + 2 * u8::from(self.origin)
    }

    fn of_letter(letter: u8) -> Self {
        let bits = letter.wrapping_sub(b'0');
        Self { screen: bits & 1 != 0, origin: bits & 2 != 0 }
    }

    /// What gives the terminal back. The cursor is then where it was; in origin mode, in the first column
    /// below everything.
    pub(crate) fn way_back(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.origin {
            bytes.extend_from_slice(b"\x1b[?6l");
        }
        if self.screen {
            bytes.extend_from_slice(b"\x1b[?1049l");
        }
        bytes.extend_from_slice(CALM);
        if self.origin && !self.screen {
            bytes.extend_from_slice(BELOW);
        }
        bytes
    }
}

/// A job's output on a person's terminal: without what could do harm there, and with a way back at its end.
pub(crate) struct Shown {
    filter: Passthrough,
    fold: Pipeline,
    /// There was something other than plain text.
    has_controls: bool,
}

impl Shown {
    /// The fold must begin where the bytes do.
    pub(crate) fn new(fold: Pipeline) -> Self {
        Self { filter: Passthrough::new(), fold, has_controls: false }
    }

    /// What may be written of these bytes.
    pub(crate) fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        const SHIFT_OUT: u8 = 0x0e;
        const ESCAPE: u8 = 0x1b;
        self.has_controls = self.has_controls || bytes.iter().any(|byte| [SHIFT_OUT, ESCAPE].contains(byte));
        let mut safe = Vec::with_capacity(bytes.len());
        self.filter.pass(bytes, &mut safe);
        self.fold.feed_more(bytes, &mut FoldOutput::default());
        safe
    }

    /// What gives the screen back before somebody else shows the rest: the cursor stays where it is.
    pub(crate) fn hand_over(&self) -> Vec<u8> {
        let modes = self.fold.modes();
        let taken = Taken { screen: modes.alternate_screen, origin: false };
        if taken.screen { taken.way_back() } else { Vec::new() }
    }

    /// What gives the terminal back, with the cursor at the beginning of a line.
    pub(crate) fn way_back(&mut self) -> Vec<u8> {
        let modes = self.fold.modes();
        let taken = Taken { screen: modes.alternate_screen, origin: modes.origin };
        let mut bytes = if self.has_controls { taken.way_back() } else { Vec::new() };
        if taken.screen {
            self.fold.feed_more(b"\x1b[?1049l", &mut FoldOutput::default());
        }
        let is_below = taken.origin && !taken.screen;
        if !is_below && self.fold.screen().cursor.col > 0 {
            bytes.extend_from_slice(b"\r\n");
        }
        self.has_controls = false;
        bytes
    }
}

/// What is taken now, for a panic.
static TAKEN: AtomicU8 = AtomicU8::new(b'0');

/// Keys come to us one by one and unseen, until this is dropped.
#[derive(Debug)]
pub(crate) struct Raw {
    guard: Option<Child>,
}

impl Raw {
    pub(crate) fn enter() -> Option<Self> {
        let keyboard = keyboard()?;
        let before = tcgetattr(keyboard).ok()?;
        let guard = start_guard();
        let mut raw = before.clone();
        raw.make_raw();
        let old_hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            old_hook(panic);
        }));
        if let Ok(mut slot) = BEFORE.lock() {
            *slot = Some(before);
        }
        tcsetattr(keyboard, OptionalActions::Now, &raw).ok()?;
        Some(Self { guard })
    }

    /// Notes what a program has taken, also for the process that gives it back in our place.
    pub(crate) fn taken(&mut self, taken: Taken) {
        let letter = taken.letter();
        if TAKEN.swap(letter, Ordering::Relaxed) != letter
            && let Some(pipe) = self.guard.as_mut().and_then(|guard| guard.stdin.as_mut())
        {
            let _ = pipe.write_all(&[letter]);
        }
    }

    /// Gives the terminal back.
    pub(crate) fn give_back(&mut self, taken: Taken, out: &mut crate::output::Output) {
        out.draw(&taken.way_back());
        self.taken(Taken::default());
        if let Ok(mut slot) = BEFORE.lock()
            && let (Some(before), Some(keyboard)) = (slot.take(), keyboard())
        {
            let _ = tcsetattr(keyboard, OptionalActions::Drain, &before);
        }
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
        if let Some(guard) = &mut self.guard {
            // It says that all is well; without it, the guard would put the terminal back itself.
            if let Some(mut pipe) = guard.stdin.take() {
                let _ = pipe.write_all(b".");
            }
            let _ = guard.wait();
        }
    }
}

/// Puts the terminal back in a hurry, unless that was done.
fn restore() {
    let before = BEFORE.lock().ok().and_then(|mut slot| slot.take());
    if let Some(before) = before {
        let taken = Taken::of_letter(TAKEN.load(Ordering::Relaxed));
        let mut stdout = std::io::stdout().lock();
        let _ = stdout
            .write_all(&taken.way_back())
            .and_then(|()| stdout.write_all(&next_line(size().map_or(80, |size| size.cols))))
            .and_then(|()| stdout.flush());
        if let Some(keyboard) = keyboard() {
            let _ = tcsetattr(keyboard, OptionalActions::Drain, &before);
        }
    }
}

/// Moves to the beginning of a line, the next one unless the cursor is at the beginning of its own, which
/// nobody has to know: a row of blanks wraps only if it does not begin in the first column.
fn next_line(cols: u16) -> Vec<u8> {
    [" ".repeat(cols.into()).as_bytes(), b"\r\x1b[K"].concat()
}

/// Leaves whatever a replayed program had switched on.
pub(crate) fn calm(out: &mut crate::output::Output) {
    out.draw(b"\x1b[?6l\x1b[?1049l");
    out.draw(CALM);
    out.draw(BELOW);
}

/// Starts a process that outlives our own death by a moment. It has read the modes when this returns.
fn start_guard() -> Option<Child> {
    let program = std::env::current_exe().ok()?;
    let mut command = Command::new(program);
    // The terminal as its stderr, wherever our own goes.
    let terminal = rustix::io::dup(keyboard()?).ok()?;
    command.arg(GUARD).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(terminal);
    let mut guard = command.spawn().ok()?;
    let mut ready = [0];
    guard.stdout.take()?.read_exact(&mut ready).ok()?;
    Some(guard)
}

/// The guard itself: sleeps until the process that started it says that all is well, or is gone.
pub(crate) fn guard() -> i32 {
    outlast_job::client::signals::ignore_keys();
    let Ok(before) = tcgetattr(stderr()) else { return 1 };
    let _ = std::io::stdout().lock().write_all(b"!").and_then(|()| std::io::stdout().flush());
    let mut taken = Taken::default();
    for word in std::io::stdin().lock().bytes() {
        match word {
            Ok(b'.') => return 0,
            Ok(letter) => taken = Taken::of_letter(letter),
            Err(_) => break,
        }
    }
    // The shell has its prompt on the screen by now, or soon: nothing moves the cursor that does not have to.
    let _ = std::io::stderr().lock().write_all(&taken.way_back());
    let _ = tcsetattr(stderr(), OptionalActions::Drain, &before);
    0
}

/// Something typed that nobody may see; overwritten when it is let go of.
pub(crate) struct Unseen(Vec<u8>);

impl Unseen {
    /// With all the room it will need: growing would leave a copy behind.
    pub(crate) fn with_room(room: usize) -> Self {
        Self(Vec::with_capacity(room))
    }

    pub(crate) fn push(&mut self, byte: u8) {
        if self.0.len() < self.0.capacity() {
            self.0.push(byte);
        }
    }

    pub(crate) fn pop(&mut self) {
        self.0.pop();
    }
}

impl std::ops::Deref for Unseen {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Unseen {
    fn drop(&mut self) {
        let room = self.0.capacity();
        self.0.resize(room, 0);
        self.0.fill(0);
        std::hint::black_box(&mut self.0);
    }
}

/// Asks a person for a line that is not shown while it is typed; none if they gave up. The terminal is put
/// back in any case, even if we are killed.
pub(crate) fn ask_unseen(question: &str, longest: usize) -> Option<Unseen> {
    let before = tcgetattr(stdin()).ok()?;
    let guard = start_guard();
    let mut unseen = before.clone();
    // Keys that end programs come to us as keys: so there is no way out that leaves the terminal blind.
    unseen.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG | LocalModes::IEXTEN);
    unseen.special_codes[SpecialCodeIndex::VMIN] = 1;
    unseen.special_codes[SpecialCodeIndex::VTIME] = 0;
    let _ = write!(std::io::stderr().lock(), "{question}");
    let changed = tcsetattr(stdin(), OptionalActions::Flush, &unseen);
    let typed = if changed.is_ok() { read_line_of_keys(longest) } else { None };
    let _ = tcsetattr(stdin(), OptionalActions::Flush, &before);
    let _ = writeln!(std::io::stderr().lock());
    if let Some(mut guard) = guard {
        if let Some(mut pipe) = guard.stdin.take() {
            let _ = pipe.write_all(b".");
        }
        let _ = guard.wait();
    }
    typed
}

fn read_line_of_keys(longest: usize) -> Option<Unseen> {
    const CTRL_C: u8 = 3;
    const CTRL_D: u8 = 4;
    const BACKSPACE: [u8; 2] = [8, 0x7f];
    const CTRL_U: u8 = 0x15;
    let mut value = Unseen::with_room(longest);
    let mut byte = [0];
    loop {
        match rustix::io::retry_on_intr(|| rustix::io::read(stdin(), &mut byte)) {
            Ok(1) => {}
            _ => return None,
        }
        match byte[0] {
            b'\r' | b'\n' => return Some(value),
            CTRL_C => return None,
            CTRL_D if value.is_empty() => return None,
            CTRL_D => return Some(value),
            CTRL_U => value = Unseen::with_room(longest),
            key if BACKSPACE.contains(&key) => value.pop(),
            key => value.push(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_about_the_cursor_is_taken_out_of_what_was_typed() {
        let mut typed = b"ls\x1b[A\x1b[15;3Rx\r".to_vec();
        assert_eq!(take_cursor_answer(&mut typed), Some((14, 2)));
        assert_eq!(typed, b"ls\x1b[Ax\r");
        for other in [&b"\x1b[15;3"[..], b"R", b"\x1b[1;2A", b""] {
            let mut typed = other.to_vec();
            assert_eq!(take_cursor_answer(&mut typed), None);
            assert_eq!(typed, other);
        }
    }
}
