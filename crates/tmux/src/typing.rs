//! Typing into a pane: pasted as one piece, looked at, entered, and looked at again.
//!
//! Enter is the dangerous key: it approves a dialog, runs a command, sends what a person has begun to write. So it is
//! pressed only while exactly what was pasted is seen to stand in the input, and tmux itself makes sure that the
//! cursor has not moved since. Nothing is pasted twice. One at a time types into a pane, whoever it is for.

use std::time::{Duration, Instant};

use super::Pane;
use super::input::Input;
use super::pane::{Held, LOOK, Listener, Look, Said};
use super::turns::Hands;
use outlast_protocol::failure::{Failure, Kind};

/// Between a paste and Enter: programs take what comes faster for part of the paste.
const BEFORE_ENTER: Duration = Duration::from_millis(500);
/// The same for what reads lines, where a paste is only text.
const BEFORE_LINE: Duration = Duration::from_millis(200);
/// An input that is empty for so long is nobody's who is about to type.
const EMPTY_FOR: Duration = Duration::from_millis(150);
/// A program may hang for so long before it shows what was pasted, or takes it.
const HANGS: Duration = Duration::from_secs(30);
/// How long an input may show something else after a paste: programs draw it in pieces.
const MERGED_FOR: Duration = Duration::from_secs(2);
/// A text can be seen as a whole in an input up to this length.
const SEEN_WHOLE: usize = 240;

/// The failure of something that was never begun.
pub(super) fn nothing_typed(pane: &Pane, held: &Held) -> Failure {
    Failure::new(Kind::System, format!("nothing was typed into {}: {held}", pane.id()))
        .hint("try again when it is free")
}

fn not_sent(pane: &Pane, why: &str) -> Failure {
    Failure::new(Kind::System, format!("what was pasted into {} was not sent: {why}", pane.id()))
}

/// What became of one try.
enum Tried {
    Typed,
    /// It was not begun: the pane had changed.
    NotYet,
}

/// A text, and how it is recognized in an input.
#[derive(Clone, Copy)]
struct Paste<'a> {
    text: &'a str,
    exact: bool,
}

impl Paste<'_> {
    /// Whether the input shows what was pasted. Long texts and those of several lines are shown in other ways.
    fn is_in(self, input: &Input) -> bool {
        if self.exact { input.holds(self.text) } else { !input.is_empty() }
    }
}

impl Pane {
    /// Types a notice into the empty input line of the agent in this pane and sends it; waits for that until the
    /// deadline. `say` hears why it waits, each reason once; `give_up` says which reasons will not pass.
    ///
    /// # Errors
    /// Why it was not typed, or not sent.
    pub fn tell(
        &self,
        text: &str,
        deadline: Instant,
        give_up: &dyn Fn(&Held) -> bool,
        say: &mut dyn FnMut(&Held),
    ) -> Result<(), Failure> {
        let mut listener = self.listen();
        let mut said = Said::default();
        loop {
            let hands = Hands::take(self.identity(), deadline)?;
            let mut held = self.holds_notice(&self.look()?);
            if held.is_none() {
                listener.pass(EMPTY_FOR);
                let look = self.look()?;
                held = self.holds_notice(&look);
                if held.is_none() {
                    match self.send_message(&mut listener, &look, Paste { text, exact: true })? {
                        Tried::Typed => return Ok(()),
                        Tried::NotYet => {}
                    }
                }
            }
            drop(hands);
            let is_late = Instant::now() >= deadline;
            match held {
                Some(held) => {
                    said.once(&held, say);
                    if is_late || give_up(&held) {
                        return Err(nothing_typed(self, &held));
                    }
                }
                None if is_late => return Err(nothing_typed(self, &Held::Moves)),
                None => {}
            }
            listener.wait(deadline.min(Instant::now() + LOOK));
        }
    }

    /// Types the user's own command, if the pane is still free for it; false if it no longer is.
    pub(super) fn type_command(
        &self,
        listener: &mut Listener,
        text: &str,
        cleared: bool,
    ) -> Result<bool, Failure> {
        let hands = Hands::take(self.identity(), Instant::now() + HANGS)?;
        let look = self.look()?;
        let held = self.holds_command(&look);
        let typed = match held {
            None if look.input().is_some() => {
                let exact = text.len() <= SEEN_WHOLE && !text.contains('\n');
                matches!(self.send_message(listener, &look, Paste { text, exact })?, Tried::Typed)
            }
            None => self.type_line(listener, text)?,
            // Whoever had the line cleared wants it typed whatever is there, but not as the answer to a question.
            Some(Held::HalfTyped(_) | Held::Busy(_)) if cleared => self.type_line(listener, text)?,
            Some(_) => false,
        };
        drop(hands);
        Ok(typed)
    }

    fn paste(&self, text: &str, cursor: Option<(usize, usize)>) -> Result<bool, Failure> {
        let buffer = format!("outlast-{}", std::process::id());
        let load = ["load-buffer", "-b", &buffer, "-", ";"];
        let then = format!("paste-buffer -p -r -d -b {buffer} -t {}", self.id());
        let pasted = self.only_if(cursor, (&load, text.as_bytes()), &then)?;
        if !pasted {
            self.tmux().run(&["delete-buffer", "-b", &buffer], b"")?;
        }
        Ok(pasted)
    }

    fn enter(&self, cursor: Option<(usize, usize)>) -> Result<bool, Failure> {
        self.only_if(cursor, (&[], b""), &format!("send-keys -t {} Enter", self.id()))
    }

    /// Types into a shell, or a program that reads in its own way: its line can't be told from the rest.
    fn type_line(&self, listener: &mut Listener, text: &str) -> Result<bool, Failure> {
        if !self.paste(text, None)? {
            return Ok(false);
        }
        listener.pass(BEFORE_LINE);
        // Somebody who has begun to scroll just now would swallow the key.
        while !self.enter(None)? {
            self.look()?;
            listener.wait(Instant::now() + LOOK);
        }
        Ok(true)
    }

    /// What stands in the input now, if one is to be seen: an agent's, or at the prompt that the user has described.
    fn in_input(&self, look: &Look, paste: Paste<'_>) -> Option<(bool, bool)> {
        if let Some(input) = look.input() {
            return Some((paste.is_in(&input), input.is_empty()));
        }
        let line = self.at_prompt(look)?;
        let plain = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        Some((plain(&line) == plain(paste.text), line.is_empty()))
    }

    /// Pastes a message into an empty input, sees it stand there, presses Enter, and sees it leave.
    fn send_message(&self, listener: &mut Listener, look: &Look, paste: Paste<'_>) -> Result<Tried, Failure> {
        if !self.paste(paste.text, Some(look.cursor))? {
            return Ok(Tried::NotYet);
        }
        let entered_at = self.enter_when_seen(listener, paste)?;
        let mut again = true;
        let until = Instant::now() + HANGS;
        loop {
            listener.wait(Instant::now() + LOOK);
            let look = self.look()?;
            let Some((true, _)) = self.in_input(&look, paste) else { return Ok(Tried::Typed) };
            // The text is as it was and the cursor is in the next row: Enter was taken for a new line.
            if again && paste.exact && look.cursor.1 > entered_at.1 && !self.asks(&look) {
                again = false;
                self.enter(Some(look.cursor))?;
            }
            if Instant::now() >= until {
                let back = paste.exact && self.take_back(&look, paste.text)?;
                let why = if back { "Enter had no effect; it was taken back" } else { "Enter had no effect" };
                return Err(not_sent(self, why));
            }
        }
    }

    /// Presses Enter once what was pasted has been seen for a moment, and nothing but it; says where the cursor was.
    fn enter_when_seen(&self, listener: &mut Listener, paste: Paste<'_>) -> Result<(usize, usize), Failure> {
        let until = Instant::now() + HANGS;
        let (mut seen, mut merged): (Option<Instant>, Option<Instant>) = (None, None);
        loop {
            let look = self.look()?;
            let now = Instant::now();
            match self.in_input(&look, paste) {
                Some((true, _)) if !look.mode && self.holds_nothing_else(&look) => {
                    merged = None;
                    if now >= *seen.get_or_insert(now) + BEFORE_ENTER && self.enter(Some(look.cursor))? {
                        return Ok(look.cursor);
                    }
                }
                Some((false, false)) => {
                    seen = None;
                    if now >= *merged.get_or_insert(now) + MERGED_FOR {
                        return Err(not_sent(self, "something else stands in its input line as well"));
                    }
                }
                // Not shown yet, or a dialog came in between.
                _ => (seen, merged) = (None, None),
            }
            if now >= until {
                return Err(not_sent(self, "it was not seen in its input line"));
            }
            listener.wait(now + LOOK / 5);
        }
    }

    /// Whether neither a shell nor a list of choices has taken over meanwhile.
    fn holds_nothing_else(&self, look: &Look) -> bool {
        !look.has_menu() && self.shell().is_none()
    }

    /// Takes back what was pasted, while it stands there exactly as it was pasted.
    fn take_back(&self, look: &Look, text: &str) -> Result<bool, Failure> {
        let count = text.chars().count();
        let keys = format!("send-keys -t {} -N {count} BSpace", self.id());
        self.only_if(Some(look.cursor), (&[], b""), &keys)
    }
}
