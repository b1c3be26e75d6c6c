//! One pane: what it shows, whether it is free, and typing into it.

use std::path::Path;
use std::time::{Duration, Instant};

use outlast_pty::reading::{self, Reading};
use regex_automata::meta::Regex;
use rustix::process::Pid;

use super::Tmux;
use super::control::{Control, Happened};
use crate::failure::{Failure, Kind};

/// Between a paste and Enter: programs take what comes faster for part of the paste.
const BEFORE_ENTER: Duration = Duration::from_millis(200);
/// How often it is looked at what tmux can't tell.
const LOOK: Duration = Duration::from_millis(250);
/// What a prompt ends with.
const PROMPT_MARKS: &[char] = &['$', '#', '%', '>', '❯', '›', '»', '➜', 'λ', '⟩', '│', '┃'];

/// A pane of a tmux server, named for good.
#[derive(Clone, Debug)]
pub struct Pane {
    tmux: Tmux,
    id: String,
    session: String,
    tty: String,
    pid: Option<Pid>,
    /// What a prompt looks like there, besides what is built in.
    prompt: Option<Regex>,
}

/// Why a pane is not free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// Somebody scrolls or copies in it.
    Mode,
    /// Somebody has half typed a line.
    HalfTyped(String),
    /// A program runs there that does not read.
    Busy(String),
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Held::Mode => f.write_str("somebody scrolls or copies in it"),
            Held::HalfTyped(text) => write!(f, "somebody has half typed {text:?} there"),
            Held::Busy(program) => write!(f, "{program} runs there and does not read"),
        }
    }
}

struct State {
    mode: bool,
    cursor: (usize, usize),
}

fn gone(id: &str, why: &str) -> Failure {
    Failure::new(Kind::System, format!("the pane {id} is gone: {why}"))
}

impl Pane {
    pub(super) fn find(tmux: &Tmux, target: &str) -> Result<Self, Failure> {
        let format = "#{pane_id}\t#{session_id}\t#{pane_tty}\t#{pane_pid}\t#{pane_dead}";
        let said = tmux.run(&["display-message", "-p", "-t", target, format], b"")?;
        let mut fields = said.trim_end().split('\t').map(ToOwned::to_owned);
        let (Some(id), Some(session), Some(tty)) = (fields.next(), fields.next(), fields.next()) else {
            return Err(Failure::new(Kind::System, format!("tmux does not know the pane {target:?}")));
        };
        let pid = fields.next().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
        if !id.starts_with('%') || fields.next().as_deref() == Some("1") {
            return Err(Failure::new(Kind::System, format!("tmux has no living pane {target:?}")));
        }
        Ok(Self { tmux: tmux.clone(), id, session, tty, pid, prompt: None })
    }

    /// Says what a prompt looks like there, as a regular expression that ends where somebody types.
    ///
    /// # Errors
    /// When that is no regular expression.
    pub fn with_prompt(mut self, prompt: Option<&str>) -> Result<Self, Failure> {
        self.prompt = prompt.map(prompt_of).transpose()?;
        Ok(self)
    }

    /// Its number, with a `%`, which it keeps wherever it is moved.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its server.
    #[must_use]
    pub fn tmux(&self) -> &Tmux {
        &self.tmux
    }

    /// Whether both are panes of one server.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.id == other.id && self.tty == other.tty
    }

    /// Listens to what happens in it.
    #[must_use]
    pub fn listen(&self) -> Listener {
        let control = Control::attach(&self.tmux, &self.session, &self.id);
        Listener { control, pane: self.clone() }
    }

    fn state(&self) -> Result<State, Failure> {
        let format = "#{pane_id}\t#{pane_dead}\t#{pane_in_mode}\t#{cursor_x}\t#{cursor_y}";
        let said = self
            .tmux
            .run(&["display-message", "-p", "-t", &self.id, format], b"")
            .map_err(|failure| gone(&self.id, &failure.message))?;
        let fields: Vec<&str> = said.trim_end().split('\t').collect();
        let [id, dead, mode, x, y] = fields[..] else {
            return Err(gone(&self.id, "tmux no longer knows it"));
        };
        if id != self.id || dead == "1" {
            return Err(gone(&self.id, "what ran there has ended"));
        }
        let number = |text: &str| text.parse().unwrap_or(0);
        Ok(State { mode: mode != "0" && !mode.is_empty(), cursor: (number(x), number(y)) })
    }

    /// What it shows, row by row.
    ///
    /// # Errors
    /// When it is gone.
    pub fn rows(&self) -> Result<Vec<String>, Failure> {
        let text = self
            .tmux
            .run(&["capture-pane", "-p", "-t", &self.id], b"")
            .map_err(|failure| gone(&self.id, &failure.message))?;
        Ok(text.lines().map(|row| row.trim_end().to_owned()).collect())
    }

    /// What it shows with so many lines of history before.
    ///
    /// # Errors
    /// When it is gone.
    pub fn text(&self, history: usize, styled: bool) -> Result<String, Failure> {
        let from = format!("-{history}");
        let mut args = vec!["capture-pane", "-p", "-t", &self.id];
        if history > 0 {
            args.extend(["-S", &from]);
        }
        if styled {
            args.push("-e");
        }
        self.tmux.run(&args, b"").map_err(|failure| gone(&self.id, &failure.message))
    }

    /// Where the cursor is: column and row, from 0.
    ///
    /// # Errors
    /// When it is gone.
    pub fn cursor(&self) -> Result<(usize, usize), Failure> {
        Ok(self.state()?.cursor)
    }

    /// The program there that works and does not read its terminal, if the kernel says so.
    #[must_use]
    pub fn busy(&self) -> Option<String> {
        match reading::of_terminal(Path::new(&self.tty), self.pid?) {
            Reading::Nobody { program } => Some(program),
            Reading::Somebody | Reading::Unknown => None,
        }
    }

    /// Whether the program there reads whole lines, which have a longest length.
    #[must_use]
    pub fn reads_lines(&self) -> bool {
        reading::gives_lines(Path::new(&self.tty)) == Some(true)
    }

    /// Whether something can be typed without getting into anybody's way.
    ///
    /// # Errors
    /// When it is gone.
    pub fn free(&self) -> Result<Option<Held>, Failure> {
        let state = self.state()?;
        if state.mode {
            return Ok(Some(Held::Mode));
        }
        if let Some(program) = self.busy() {
            return Ok(Some(Held::Busy(program)));
        }
        let rows = self.rows()?;
        let row = rows.get(state.cursor.1).map_or("", String::as_str);
        Ok(half_typed(row, state.cursor.0, self.prompt.as_ref()).map(Held::HalfTyped))
    }

    /// Types a text and presses Enter, once it is free; gives up when it is not for so long.
    ///
    /// # Errors
    /// When it is gone, or never was free; nothing was typed then.
    pub fn type_when_free(&self, text: &str, patience: Duration) -> Result<(), Failure> {
        let mut listener = self.listen();
        listener.until_free(Instant::now() + patience, &mut |_| {})?;
        self.type_line(&mut listener, text)
    }

    /// Pastes a text as one piece, and presses Enter a moment later. Never tried twice: what was typed once must
    /// not run twice.
    pub(super) fn type_line(&self, listener: &mut Listener, text: &str) -> Result<(), Failure> {
        let buffer = format!("outlast-{}", std::process::id());
        let paste = ["load-buffer", "-b", &buffer, "-", ";", "paste-buffer", "-p", "-r", "-d", "-b", &buffer];
        self.tmux.run(&[&paste[..], &["-t", &self.id]].concat(), text.as_bytes())?;
        listener.pass(BEFORE_ENTER);
        // Somebody who has begun to scroll just now would swallow the key.
        while self.state()?.mode {
            listener.wait(Instant::now() + LOOK);
        }
        self.press(&["Enter"])
    }

    /// Presses keys by tmux's names for them.
    ///
    /// # Errors
    /// When it is gone.
    pub fn press(&self, keys: &[&str]) -> Result<(), Failure> {
        self.tmux.run(&[&["send-keys", "-t", &self.id][..], keys].concat(), b"").map(drop)
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// When it is gone.
    pub fn send(&self, bytes: &[u8]) -> Result<(), Failure> {
        for piece in bytes.chunks(512) {
            let codes: Vec<String> = piece.iter().map(|byte| format!("{byte:02x}")).collect();
            let codes: Vec<&str> = codes.iter().map(String::as_str).collect();
            self.press(&[&["-H"][..], &codes].concat())?;
        }
        Ok(())
    }
}

/// What a prompt looks like, in the user's words.
///
/// # Errors
/// When that is no regular expression.
pub fn prompt_of(pattern: &str) -> Result<Regex, Failure> {
    Regex::new(pattern).map_err(|error| {
        let why = error.to_string();
        let why = why.lines().last().unwrap_or_default().trim();
        Failure::usage(format!("{pattern:?} is no prompt: {why}"))
            .hint("give a regular expression, for example --prompt '^ready: '")
    })
}

/// What somebody has typed in the row of the cursor and not entered. A prompt is known by what the user says of it,
/// or by how it ends; a row without one is nobody's line.
fn half_typed(row: &str, cursor: usize, prompt: Option<&Regex>) -> Option<String> {
    let before: String = row.chars().take(cursor).collect();
    // A row of tmux has no blanks at its end: the prompt's own may be missing.
    let padded = format!("{before: <cursor$}");
    if let Some(found) = prompt.and_then(|prompt| prompt.find_iter(&padded).last()) {
        let draft = padded[found.end()..].trim();
        return (!draft.is_empty()).then(|| draft.to_owned());
    }
    let marked = before.trim_end();
    if marked.is_empty() || marked.ends_with(PROMPT_MARKS) {
        return None;
    }
    // The last mark that a blank follows ends the prompt; what comes after it is the draft.
    let at =
        before.match_indices(PROMPT_MARKS).filter(|(at, mark)| before[at + mark.len()..].starts_with(' '));
    let (at, mark) = at.max_by_key(|(at, _)| *at)?;
    Some(before[at + mark.len()..].trim().to_owned())
}

/// Listens to a pane: told by tmux, or looking where tmux can't tell.
#[derive(Debug)]
pub struct Listener {
    control: Option<Control>,
    pane: Pane,
}

impl Listener {
    /// Sleeps until something happens in the pane or the deadline comes. Without a control client, every moment
    /// may have brought something.
    pub fn wait(&mut self, deadline: Instant) -> Happened {
        let Some(control) = &mut self.control else {
            std::thread::sleep(deadline.saturating_duration_since(Instant::now()).min(LOOK));
            return Happened { output: true, changed: true, over: false };
        };
        let happened = control.wait(deadline);
        if happened.over {
            self.control = None;
        }
        happened
    }

    /// Lets time pass; says what happened meanwhile.
    pub fn pass(&mut self, time: Duration) -> Happened {
        let until = Instant::now() + time;
        let mut all = Happened::default();
        while Instant::now() < until {
            let happened = self.wait(until);
            all.output |= happened.output;
            all.changed |= happened.changed;
            all.over |= happened.over;
        }
        all
    }

    /// Waits until the pane is free; says why not whenever that changes.
    pub(super) fn until_free(
        &mut self,
        deadline: Instant,
        say: &mut dyn FnMut(&Held),
    ) -> Result<(), Failure> {
        let mut said = None;
        loop {
            let Some(held) = self.pane.free()? else { return Ok(()) };
            if said.as_ref() != Some(&held) {
                say(&held);
                said = Some(held.clone());
            }
            if Instant::now() >= deadline {
                let id = &self.pane.id;
                return Err(Failure::new(Kind::System, format!("nothing was typed into {id}: {held}"))
                    .hint("try again when it is free"));
            }
            self.wait(deadline.min(Instant::now() + LOOK));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_told_from_a_prompt() {
        for (row, draft) in [
            ("", None),
            ("$ ", None),
            ("user@host:~/x$ ", None),
            ("user@host:~/x$ make te", Some("make te")),
            ("│ > ", None),
            ("│ > fix the", Some("fix the")),
            ("❯ git st", Some("git st")),
            ("compiling 50%", None),
            (">>> print(", Some("print(")),
            ("done", None),
        ] {
            assert_eq!(half_typed(row, row.chars().count(), None).as_deref(), draft, "{row:?}");
        }
        // What stands behind the cursor is a suggestion, not a draft.
        assert_eq!(half_typed("> Try \"fix lint\"", 2, None), None);
    }

    #[test]
    fn an_unusual_prompt_is_known_by_what_is_said_of_it() {
        let prompt = prompt_of("^(ready|busy): ").unwrap();
        for (row, cursor, draft) in [
            ("ready:", 7, None),
            ("ready: make te", 14, Some("make te")),
            ("ready: a: b", 11, Some("a: b")),
            ("$ make", 6, Some("make")),
            ("done", 4, None),
        ] {
            assert_eq!(half_typed(row, cursor, Some(&prompt)).as_deref(), draft, "{row:?}");
        }
        assert_eq!(half_typed("ready: make", 11, None), None, "nobody could know");
        assert!(prompt_of("(").is_err());
    }
}
