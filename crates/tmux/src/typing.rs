//! Typing into a pane: pasted as one piece, looked at, entered, and looked at again.
//!
//! Enter is the dangerous key: it approves a dialog, runs a command, sends what a person has begun to write. So it is
//! pressed only while exactly what was pasted is seen to stand in the input, and tmux itself makes sure that the
//! cursor has not moved since. Nothing is pasted twice. Only one process at a time types into a pane.

use std::time::{Duration, Instant};

use super::Pane;
use super::input::Input;
use super::listen::Listener;
use super::pane::{Held, LOOK, Look};
use super::turns::Hands;
use outlast_protocol::failure::{Failure, Kind};

/// Between a paste and Enter: programs take what comes faster for part of the paste.
const BEFORE_ENTER: Duration = Duration::from_millis(500);
/// Between two keys that are typed one by one.
const BETWEEN_KEYS: Duration = Duration::from_millis(20);
/// The same for what reads lines, where a paste is only text.
const BEFORE_LINE: Duration = Duration::from_millis(200);
/// An input that is empty for so long is nobody's who is about to type.
const EMPTY_FOR: Duration = Duration::from_millis(150);
/// A program may hang for so long before it shows what was pasted, or takes it.
const HANGS: Duration = Duration::from_secs(30);
/// A notice whose time is up is looked at for so long after Enter.
const LEAST_LOOK: Duration = Duration::from_secs(2);
/// How long an input may show something else after a paste: programs draw it in pieces.
const MERGED_FOR: Duration = Duration::from_secs(2);
/// Why what stands in the input as it was pasted is not entered.
const IN_OTHER_MODE: &str = "its input line has changed to a mode where text is run or kept";
/// A text can be seen as a whole in an input up to this length.
const SEEN_WHOLE: usize = 240;

/// A character as a word of a tmux command.
fn quoted(c: char) -> String {
    match c {
        '\'' => "\"'\"".to_owned(),
        // Within a command that is itself an argument of if-shell nothing else is special between these.
        c => format!("'{c}'"),
    }
}

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

/// Something to tell the program in a pane.
pub trait Notice {
    /// The pane can't take it now, for this reason: whether to go on waiting. May be asked often.
    fn waits(&mut self, held: &Held) -> bool;
    /// The pane can take it now: what to type. None if it is no longer to be told.
    fn text(&mut self) -> Option<String>;
    /// What an earlier try had begun to type. If exactly that stands in the input line, it is sent.
    fn begun(&self) -> Option<&str> {
        None
    }
}

/// How telling ended, if nothing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The text was seen to leave the input line.
    Sent,
    /// It was no longer to be told, and nothing was typed.
    Withdrawn,
}

/// Why something was not told.
#[derive(Clone, Debug)]
pub enum Untold {
    /// Nothing was typed: the pane could not take it in its time, or is gone.
    Nothing(Failure),
    /// It was pasted and taken back: it may be tried again.
    TakenBack(Failure),
    /// It was pasted and not sent, and may still be there: nothing more is to be typed.
    Left(Failure),
}

impl Untold {
    /// What a person is told.
    #[must_use]
    pub fn failure(&self) -> &Failure {
        match self {
            Untold::Nothing(failure) | Untold::TakenBack(failure) | Untold::Left(failure) => failure,
        }
    }
}

impl From<Failure> for Untold {
    fn from(failure: Failure) -> Self {
        Untold::Nothing(failure)
    }
}

/// A text, and how it is recognized in an input.
#[derive(Clone, Copy)]
struct Paste<'a> {
    text: &'a str,
    exact: bool,
    /// How long it may take until it is seen to have left.
    seen_within: Duration,
    /// Whether an input that can't be seen any more may still hold it. What a person's own command brings up is no
    /// input; a notice counts as told only when it was taken.
    must_be_seen_to_leave: bool,
}

impl<'a> Paste<'a> {
    /// A notice, which there is time for until the deadline.
    fn notice(text: &'a str, deadline: Instant) -> Self {
        let left = deadline.saturating_duration_since(Instant::now());
        Self { text, exact: true, seen_within: left.clamp(LEAST_LOOK, HANGS), must_be_seen_to_leave: true }
    }
}

/// What stands in an input, beside what was pasted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    /// Exactly what was pasted, as a message to the agent.
    Ours,
    /// Exactly what was pasted, but the input has changed its mode: it would be run or kept.
    OursInOtherMode,
    /// Nothing.
    Nothing,
    /// Something else.
    Other,
}

impl Paste<'_> {
    /// Whether the input shows what was pasted. Long texts and those of several lines are shown in other ways.
    fn is_in(self, input: &Input) -> bool {
        if self.exact { input.holds(self.text) } else { !input.is_empty() }
    }
}

impl Pane {
    /// Types a notice into the empty input line of the agent in this pane and sends it; waits for that until the
    /// deadline.
    ///
    /// # Errors
    /// Why it was not typed, or not sent.
    pub fn tell(&self, notice: &mut dyn Notice, deadline: Instant) -> Result<Told, Untold> {
        let mut listener = self.listen();
        loop {
            let hands = Hands::take(self.identity(), deadline)?;
            let look = self.look()?;
            if let Some(begun) = notice.begun().map(ToOwned::to_owned)
                && self.holds_our_text(&look, &begun)
            {
                // The process that began to type it died before Enter.
                self.enter_and_see(&mut listener, Paste::notice(&begun, deadline))?;
                return Ok(Told::Sent);
            }
            let mut held = self.holds_notice(&look);
            if held.is_none() {
                listener.pass(EMPTY_FOR);
                let look = self.look()?;
                held = self.holds_notice(&look);
                if held.is_none() {
                    let Some(text) = notice.text() else { return Ok(Told::Withdrawn) };
                    match self.send_message(&mut listener, &look, Paste::notice(&text, deadline))? {
                        Tried::Typed => return Ok(Told::Sent),
                        Tried::NotYet => {}
                    }
                }
            }
            drop(hands);
            let held = held.unwrap_or(Held::Moves);
            if !notice.waits(&held) {
                return Ok(Told::Withdrawn);
            }
            if Instant::now() >= deadline {
                return Err(Untold::Nothing(nothing_typed(self, &held)));
            }
            listener.wait(deadline.min(Instant::now() + LOOK));
        }
    }

    /// Whether exactly a text of ours stands in an agent's input, and nothing else is there to press Enter in.
    fn holds_our_text(&self, look: &Look, text: &str) -> bool {
        let paste = Paste::notice(text, Instant::now());
        !look.mode && self.holds_nothing_else(look) && self.in_input(look, paste) == Some(Stands::Ours)
    }

    /// Types the user's own command, if the pane is still free for it; false if it no longer is.
    pub(super) fn type_command(
        &self,
        listener: &mut Listener,
        wanted: &super::submit::Submission,
    ) -> Result<bool, Failure> {
        let (text, cleared) = (wanted.command.as_str(), wanted.clear);
        let hands = Hands::take(self.identity(), Instant::now() + HANGS)?;
        let look = self.look()?;
        let held = self.holds_command(&look);
        let typed = match held {
            None | Some(Held::HalfTyped(_) | Held::Busy(_)) if wanted.keys && (held.is_none() || cleared) => {
                self.type_keys(listener, text)?
            }
            None if look.input().is_some() => {
                let exact = text.len() <= SEEN_WHOLE && !text.contains('\n');
                let paste = Paste { text, exact, seen_within: HANGS, must_be_seen_to_leave: false };
                let sent = self.send_message(listener, &look, paste);
                matches!(sent.map_err(|untold| untold.failure().clone())?, Tried::Typed)
            }
            None => self.type_line(listener, text)?,
            // With --clear it is typed whatever is there, but not as the answer to a question.
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

    /// Presses Enter, if the cursor is still where it was.
    fn enter(&self, cursor: Option<(usize, usize)>) -> Result<bool, Failure> {
        self.only_if(cursor, (&[], b""), &format!("send-keys -t {} Enter", self.id()))
    }

    /// Presses Enter, if the pane has printed nothing since the listener last heard, and the cursor is still where it
    /// was: both at the moment when tmux would press it, but for the time that tmux takes to read what was printed.
    fn enter_if_still(&self, listener: &mut Listener, look: &Look) -> Result<bool, Failure> {
        if !listener.is_told() {
            return self.enter(Some(look.cursor));
        }
        let happened = listener.hear();
        if happened.output || happened.changed {
            return Ok(false);
        }
        let condition = self.unchanged(Some(look.cursor));
        let key = format!("send-keys -t {} Enter", self.id());
        Ok(listener.only_if(&condition, &key).is_some_and(|(done, _)| done))
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

    /// Types key by key, as a person would, and presses Enter.
    fn type_keys(&self, listener: &mut Listener, text: &str) -> Result<bool, Failure> {
        for (at, c) in text.chars().enumerate() {
            let key = match c {
                '\n' => "Enter".to_owned(),
                '\t' => "Tab".to_owned(),
                c => format!("-l {}", quoted(c)),
            };
            let key = format!("send-keys -t {} {key}", self.id());
            // Somebody who has begun to scroll just now would swallow the key.
            while !self.only_if(None, (&[], b""), &key)? {
                if at == 0 {
                    return Ok(false);
                }
                self.look()?;
                listener.wait(Instant::now() + LOOK);
            }
            listener.pass(BETWEEN_KEYS);
        }
        listener.pass(BEFORE_ENTER);
        while !self.enter(None)? {
            self.look()?;
            listener.wait(Instant::now() + LOOK);
        }
        Ok(true)
    }

    /// What stands in the input now, if one is to be seen: an agent's, or at the prompt that the user has described.
    fn in_input(&self, look: &Look, paste: Paste<'_>) -> Option<Stands> {
        if let Some(input) = look.input().filter(|_| self.named_shell.is_none()) {
            return Some(match (paste.is_in(&input), input.is_for_messages()) {
                (true, true) => Stands::Ours,
                (true, false) => Stands::OursInOtherMode,
                (false, _) if input.is_empty() => Stands::Nothing,
                (false, _) => Stands::Other,
            });
        }
        if self.named_shell.is_some() && self.holds_at_prompt(look, paste.text) {
            return Some(Stands::Ours);
        }
        let line = self.at_prompt(look)?;
        let plain = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        Some(match plain(&line) == plain(paste.text) {
            true => Stands::Ours,
            false if line.is_empty() => Stands::Nothing,
            false => Stands::Other,
        })
    }

    /// Pastes a message into an empty input, sees it stand there, presses Enter, and sees it leave.
    fn send_message(&self, listener: &mut Listener, look: &Look, paste: Paste<'_>) -> Result<Tried, Untold> {
        if !self.paste(paste.text, Some(look.cursor))? {
            return Ok(Tried::NotYet);
        }
        self.enter_and_see(listener, paste)?;
        Ok(Tried::Typed)
    }

    /// Presses Enter behind what was pasted, and sees it leave.
    fn enter_and_see(&self, listener: &mut Listener, paste: Paste<'_>) -> Result<(), Untold> {
        let left = |failure| Untold::Left(failure);
        let entered_at = self.enter_when_seen(listener, paste)?;
        let mut again = true;
        let until = Instant::now() + paste.seen_within;
        loop {
            listener.wait(Instant::now() + LOOK);
            let look = self.look().map_err(left)?;
            let stands = self.in_input(&look, paste);
            match stands {
                Some(Stands::Ours | Stands::OursInOtherMode) => {}
                // No input is to be seen: a program that hangs may still hold the text there. A dialog came after it.
                None if paste.must_be_seen_to_leave && self.prompt().is_none() && !look.has_menu() => {
                    if Instant::now() >= until {
                        let why = "it could not be seen whether it was taken";
                        return Err(left(not_sent(self, why)));
                    }
                    continue;
                }
                Some(Stands::Nothing | Stands::Other) | None => return Ok(()),
            }
            // The text is as it was and the cursor is in the next row: Enter was taken for a new line.
            let is_new_line = again && paste.exact && look.cursor.1 > entered_at.1;
            if is_new_line && stands == Some(Stands::Ours) && self.holds_nothing_else(&look) {
                again = !self.enter_if_still(listener, &look).map_err(left)?;
            }
            if Instant::now() >= until {
                return Err(self.give_up(&look, paste, "Enter had no effect"));
            }
        }
    }

    /// Presses Enter once what was pasted has been seen for a moment, and nothing but it; says where the cursor was.
    fn enter_when_seen(&self, listener: &mut Listener, paste: Paste<'_>) -> Result<(usize, usize), Untold> {
        let until = Instant::now() + HANGS;
        let (mut seen, mut merged): (Option<Instant>, Option<Instant>) = (None, None);
        loop {
            // What is printed from now on is not in the look.
            listener.hear();
            let look = self.look().map_err(Untold::Left)?;
            let now = Instant::now();
            let is_there = match self.in_input(&look, paste) {
                Some(Stands::Ours) if !look.mode && !look.is_in_turn() && self.holds_nothing_else(&look) => {
                    merged = None;
                    if now >= *seen.get_or_insert(now) + BEFORE_ENTER
                        && self.enter_if_still(listener, &look).map_err(Untold::Left)?
                    {
                        return Ok(look.cursor);
                    }
                    true
                }
                // A person has switched it to shell mode between our look and our paste: the cursor stays where it is.
                Some(Stands::OursInOtherMode) => return Err(self.give_up(&look, paste, IN_OTHER_MODE)),
                Some(Stands::Other) => {
                    seen = None;
                    if now >= *merged.get_or_insert(now) + MERGED_FOR {
                        let why = "something else stands in its input line as well";
                        return Err(Untold::Left(not_sent(self, why)));
                    }
                    false
                }
                // Not shown yet, or a dialog came in between.
                Some(Stands::Ours | Stands::Nothing) | None => {
                    (seen, merged) = (None, None);
                    false
                }
            };
            if now >= until {
                return Err(match is_there {
                    true => self.give_up(&look, paste, "the pane never stood still"),
                    false => Untold::Left(not_sent(self, "it was not seen in its input line")),
                });
            }
            listener.wait(now + LOOK / 5);
        }
    }

    /// Gives up what stands in the input line as it was pasted: takes it back, if it is known as a whole.
    fn give_up(&self, look: &Look, paste: Paste<'_>, why: &str) -> Untold {
        if paste.exact && self.take_back(look, paste.text).unwrap_or(false) {
            return Untold::TakenBack(not_sent(self, &format!("{why}; it was taken back")));
        }
        Untold::Left(not_sent(self, why))
    }

    /// Whether neither a shell that was not named, nor another program than the one that was meant, nor a list of
    /// choices has taken over meanwhile. What a shell left on the screen asks nobody.
    fn holds_nothing_else(&self, look: &Look) -> bool {
        let has_menu = look.has_menu() && self.named_shell.is_none();
        !has_menu && self.has_shell_as_meant() && self.another().is_none()
    }

    /// Takes back what was pasted, while it stands there exactly as it was pasted.
    fn take_back(&self, look: &Look, text: &str) -> Result<bool, Failure> {
        let count = text.chars().count();
        let keys = format!("send-keys -t {} -N {count} BSpace", self.id());
        self.only_if(Some(look.cursor), (&[], b""), &keys)
    }
}
