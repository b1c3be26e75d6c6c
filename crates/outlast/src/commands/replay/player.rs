//! Plays a recording in a terminal: space holds it, the arrows go back and forth, q ends it.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use outlast_cli::ReplayArgs;
use outlast_job::Failure;
use outlast_job::client::signals::{Signal, Signals};
use outlast_job::client::{Played, Recording};
use outlast_job::clock::millis;
use outlast_stream::Passthrough;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::output::Output;
use crate::terminal::{self, Raw};

/// How far an arrow goes, in milliseconds.
const STEP_MS: u64 = 5000;
/// The exit code of a player that was interrupted.
const INTERRUPTED: i32 = 130;

/// Why the player stopped playing on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopped {
    AtTheEnd,
    Quit,
    Interrupted,
    /// Somebody wants to see another moment.
    Seek(u64),
}

/// What a person did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Hold,
    Back,
    Forth,
    Quit,
    Interrupt,
}

pub(super) fn play(recording: &Recording, args: &ReplayArgs, out: &mut Output) -> Result<i32, Failure> {
    let signals = Signals::catch(&[Signal::INT, Signal::TERM])
        .map_err(|error| Failure::system("signals can't be caught", error))?;
    let to_terminal = std::io::stdout().is_terminal();
    let raw = if to_terminal && std::io::stdin().is_terminal() { Raw::enter() } else { None };
    let mut player = Player { recording, args, signals, keys: raw.is_some(), typed: Vec::new(), held: false };
    let mut from = None;
    let stopped = loop {
        if let Some(at) = from {
            let own = terminal::size().unwrap_or_default();
            out.draw(&recording.paint_at(at, own));
        }
        match player.play_from(from, out) {
            Stopped::Seek(at) => from = Some(at),
            stopped => break stopped,
        }
    };
    if to_terminal {
        terminal::calm(out);
    }
    drop(raw);
    Ok(if stopped == Stopped::Interrupted { INTERRUPTED } else { 0 })
}

struct Player<'a> {
    recording: &'a Recording,
    args: &'a ReplayArgs,
    signals: Signals,
    /// Keys are for us.
    keys: bool,
    /// What was typed and not looked at yet.
    typed: Vec<u8>,
    /// It stands still.
    held: bool,
}

impl Player<'_> {
    /// Plays what comes after a moment, or all of it.
    fn play_from(&mut self, from: Option<u64>, out: &mut Output) -> Stopped {
        let recording = self.recording;
        let mut filter = Passthrough::new();
        let mut last = from.unwrap_or(0);
        let mut stopped = Stopped::AtTheEnd;
        recording.events(|at, what| {
            if from.is_some_and(|from| at <= from) {
                return true;
            }
            if let Some(why) = self.pause(last, at) {
                stopped = why;
                return false;
            }
            last = at;
            match what {
                Played::Output(bytes) => {
                    let mut safe = Vec::with_capacity(bytes.len());
                    filter.pass(bytes, &mut safe);
                    out.draw(&safe)
                }
                Played::Resized(_) => true,
            }
        });
        if stopped == Stopped::AtTheEnd && self.held {
            // It was held on its last screen.
            return self.pause(last, u64::MAX).unwrap_or(Stopped::AtTheEnd);
        }
        stopped
    }

    /// Lets the time between two moments pass; says why it should not play on.
    fn pause(&mut self, from: u64, to: u64) -> Option<Stopped> {
        let gap = Duration::from_millis(to.saturating_sub(from));
        let gap = gap.min(self.args.idle_limit.unwrap_or(Duration::MAX)).div_f64(self.args.speed);
        let mut left = gap;
        loop {
            let began = Instant::now();
            let woken = self.wait((!self.held).then_some(left));
            if !self.held {
                left = left.saturating_sub(began.elapsed());
            }
            if !self.signals.take().is_empty() {
                return Some(Stopped::Interrupted);
            }
            let position = from + millis((gap - left).mul_f64(self.args.speed)).min(to.saturating_sub(from));
            if woken {
                self.read_keys();
            }
            while let Some(action) = self.next_action() {
                match action {
                    Action::Hold => self.held = !self.held,
                    Action::Back => return Some(Stopped::Seek(position.saturating_sub(STEP_MS))),
                    Action::Forth => return Some(Stopped::Seek(position + STEP_MS)),
                    Action::Quit => return Some(Stopped::Quit),
                    Action::Interrupt => return Some(Stopped::Interrupted),
                }
            }
            if left.is_zero() && !self.held {
                return None;
            }
        }
    }

    /// Sleeps until the time is up, a signal comes or a key is pressed; says whether it was a key.
    fn wait(&self, most: Option<Duration>) -> bool {
        let timeout = most.map(|most| Timespec {
            tv_sec: most.as_secs().min(1 << 30).cast_signed(),
            tv_nsec: most.subsec_nanos().into(),
        });
        let stdin = rustix::stdio::stdin();
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        if self.keys {
            fds.push(PollFd::from_borrowed_fd(stdin, PollFlags::IN));
        }
        let _ = poll(&mut fds, timeout.as_ref());
        fds.get(1).is_some_and(|keys| !keys.revents().is_empty())
    }

    fn read_keys(&mut self) {
        let mut bytes = [0; 64];
        let read = rustix::io::read(rustix::stdio::stdin(), &mut bytes).unwrap_or(0);
        self.typed.extend_from_slice(&bytes[..read]);
        if read == 0 {
            // The terminal is gone.
            self.keys = false;
            self.typed.push(b'q');
        }
    }

    /// The next key that means something.
    fn next_action(&mut self) -> Option<Action> {
        while !self.typed.is_empty() {
            let (taken, action) = match self.typed.as_slice() {
                [b' ', ..] => (1, Some(Action::Hold)),
                [b'q' | b'Q', ..] => (1, Some(Action::Quit)),
                [3, ..] => (1, Some(Action::Interrupt)),
                [0x1b, b'[' | b'O', b'D', ..] => (3, Some(Action::Back)),
                [0x1b, b'[' | b'O', b'C', ..] => (3, Some(Action::Forth)),
                _ => (1, None),
            };
            self.typed.drain(..taken);
            if action.is_some() {
                return action;
            }
        }
        None
    }
}
