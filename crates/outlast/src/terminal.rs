//! The person's own terminal: its size, and its modes, which are always put back, also after a crash.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use outlast_job::Size;
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};

/// The hidden verb of the process that puts the terminal back if we can't.
pub(crate) const GUARD: &str = "guard-terminal";

/// Leaves whatever a program may have switched on: the other screen, hidden cursor, mouse, paste marks, colours.
const CALM: &[u8] =
    b"\x0f\x1b(B\x1b[?6l\x1b[?1049l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?1l\x1b>\
\x1b[?7h\x1b7\x1b[r\x1b8\x1b[4l\x1b[?25h\x1b[0m";

/// For who does not know where the cursor is: below everything.
const BELOW: &[u8] = b"\x1b[999;1H\r\n";

/// What the terminal was like before we changed it.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// The size of the terminal that our output goes to.
pub(crate) fn size() -> Option<Size> {
    let size = tcgetwinsize(stdout()).or_else(|_| tcgetwinsize(stdin())).ok()?;
    Size { cols: size.ws_col, rows: size.ws_row }.checked().ok()
}

/// Keys come to us one by one and unseen, until this is dropped.
#[derive(Debug)]
pub(crate) struct Raw {
    guard: Option<Child>,
}

impl Raw {
    pub(crate) fn enter() -> Option<Self> {
        let before = tcgetattr(stdin()).ok()?;
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
        tcsetattr(stdin(), OptionalActions::Now, &raw).ok()?;
        Some(Self { guard })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
        if let Some(guard) = &mut self.guard {
            // One byte says that all is well; without it, the guard would put the terminal back itself.
            if let Some(mut pipe) = guard.stdin.take() {
                let _ = pipe.write_all(b".");
            }
            let _ = guard.wait();
        }
    }
}

fn restore() {
    let before = BEFORE.lock().ok().and_then(|mut slot| slot.take());
    if let Some(before) = before {
        let mut stdout = std::io::stdout().lock();
        let _ = stdout.write_all(CALM).and_then(|()| stdout.write_all(b"\r\n")).and_then(|()| stdout.flush());
        let _ = tcsetattr(stdin(), OptionalActions::Drain, &before);
    }
}

/// Leaves whatever a replayed program had switched on.
pub(crate) fn calm(out: &mut crate::output::Output) {
    out.data(CALM);
    out.data(BELOW);
}

/// Pushes what a person has on the screen up into the history of their terminal: it is about to be drawn over.
pub(crate) fn make_room(out: &mut crate::output::Output) {
    if let Some(size) = size() {
        out.data(format!("\x1b[999;1H{}", "\n".repeat(size.rows.into())).as_bytes());
    }
}

/// Starts a process that outlives our own death by a moment. It has read the modes when this returns.
fn start_guard() -> Option<Child> {
    let program = std::env::current_exe().ok()?;
    let mut command = Command::new(program);
    // The terminal as its stderr, wherever our own goes.
    let terminal = rustix::io::dup(stdin()).ok()?;
    command.arg(GUARD).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(terminal);
    let mut guard = command.spawn().ok()?;
    let mut ready = [0];
    guard.stdout.take()?.read_exact(&mut ready).ok()?;
    Some(guard)
}

/// The guard itself: sleeps until whoever started it says that all is well, or is gone.
pub(crate) fn guard() -> i32 {
    outlast_job::client::signals::ignore_keys();
    let Ok(before) = tcgetattr(stderr()) else { return 1 };
    let _ = std::io::stdout().lock().write_all(b"!").and_then(|()| std::io::stdout().flush());
    let mut word = [0];
    if matches!(std::io::stdin().lock().read(&mut word), Ok(1)) {
        return 0;
    }
    let _ = std::io::stderr().lock().write_all(CALM).and_then(|()| std::io::stderr().lock().write_all(BELOW));
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

/// Asks a person for a line that is not shown while it is typed; none if they gave up. The terminal is put back in any
/// case, also if we are killed.
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
