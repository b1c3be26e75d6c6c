//! A pane as a job: paints what the pane shows, and passes keys on to it.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use outlast_job::{Failure, Size};
use outlast_tmux::Pane;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::output::Output;

/// How soon after a change it is painted: a flood is not painted screen by screen.
const PAINT: Duration = Duration::from_millis(30);
/// How often it is looked at whether the pane still lives.
const LOOK: Duration = Duration::from_secs(2);

/// The pane's size.
pub(super) fn size(pane: &Pane) -> Result<Option<Size>, Failure> {
    let said =
        pane.tmux().run(&["display-message", "-p", "-t", pane.id(), "#{pane_width} #{pane_height}"], b"")?;
    let sides = said.trim().split_once(' ').and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
    Ok(sides.map(|(cols, rows)| Size { cols, rows }))
}

/// Until the pane is gone.
pub(super) fn mirror(pane: &Pane, out: &mut Output) -> Result<i32, Failure> {
    // Keys are the pane's to understand, and its echo is the only one.
    let stdin = std::io::stdin();
    if let Ok(mut modes) = rustix::termios::tcgetattr(&stdin) {
        modes.make_raw();
        let _ = rustix::termios::tcsetattr(&stdin, rustix::termios::OptionalActions::Now, &modes);
    }
    let (keys, pressed) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut piece = [0; 4096];
        let stdin = std::io::stdin();
        while poll(&mut [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)], None::<&Timespec>).is_ok() {
            match rustix::io::read(&stdin, &mut piece) {
                Ok(n @ 1..) if keys.send(piece[..n].to_vec()).is_ok() => {}
                _ => return,
            }
        }
    });
    let mut listener = pane.listen();
    let mut last = None;
    loop {
        let shown = match paint(pane) {
            Ok(shown) => shown,
            Err(failure) => {
                out.line(&format!("\r\n{}", failure.message));
                return Ok(0);
            }
        };
        if last.as_ref() != Some(&shown) {
            out.data(shown.as_bytes());
            last = Some(shown);
        }
        let until = Instant::now() + LOOK;
        loop {
            let mut typed = false;
            while let Ok(bytes) = pressed.try_recv() {
                pane.send(&bytes)?;
                typed = true;
            }
            let now = Instant::now();
            let happened = listener.wait(until.min(now + PAINT));
            if typed || happened.output || happened.changed || happened.over || now >= until {
                listener.pass(PAINT);
                break;
            }
        }
    }
}

/// What the pane shows, as bytes that paint it.
fn paint(pane: &Pane) -> Result<String, Failure> {
    let text = pane.text(0, true)?;
    let (column, row) = pane.cursor()?;
    let mut painted = String::from("\x1b[H");
    for (i, line) in text.lines().enumerate() {
        if i > 0 {
            painted.push_str("\r\n");
        }
        painted.push_str(line);
        painted.push_str("\x1b[0m\x1b[K");
    }
    painted.push_str(&format!("\x1b[J\x1b[{};{}H", row + 1, column + 1));
    Ok(painted)
}
