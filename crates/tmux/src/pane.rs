//! One pane: which one it is, what it shows, and why nothing may be typed into it now.

use std::path::Path;
use std::time::Duration;

use outlast_pty::reading::{self, Front, Reading};
use regex_automata::meta::Regex;
use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use super::Tmux;
use super::control::Control;
use super::input::{self, Input};
use super::listen::Listener;
use super::prompt::{before_cursor, half_typed, prompt_of};
use super::screen::{self, Row};
use super::shell::NoticeShell;
use outlast_protocol::failure::{Failure, Kind};

/// How often it is looked at what tmux can't tell.
pub(super) const LOOK: Duration = Duration::from_millis(250);

/// Which pane of which server: numbers alone begin anew with each server, and a pane can be given another program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub(super) socket: String,
    pub(super) server: i32,
    /// When the server was started, in seconds since 1970.
    pub(super) started: u64,
    /// The pane's number, with a `%`.
    pub(super) id: String,
    /// The program that tmux started in it.
    pub(super) pid: i32,
    /// The program that was in its foreground when it was meant, and when that was started; none for a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) program: Option<(i32, u64)>,
}

impl Identity {
    /// What identifies the server and the pane, in tmux's own words.
    const FORMAT: &str = "#{pid}/#{start_time}/#{pane_id}/#{pane_pid}";

    /// The pane's number, with a `%`.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether both name the same pane, whatever program is meant there.
    #[must_use]
    pub fn is_same_pane(&self, other: &Self) -> bool {
        self.socket == other.socket && self.words() == other.words()
    }

    fn words(&self) -> String {
        format!("{}/{}/{}/{}", self.server, self.started, self.id, self.pid)
    }

    fn read(words: &str, socket: &str) -> Option<Self> {
        let [server, started, id, pid] = words.split('/').collect::<Vec<_>>()[..] else { return None };
        Some(Self {
            socket: socket.to_owned(),
            server: server.parse().ok()?,
            started: started.parse().ok()?,
            id: id.to_owned(),
            pid: pid.parse().ok()?,
            program: None,
        })
    }
}

/// A pane of a tmux server, named for good.
#[derive(Clone, Debug)]
pub struct Pane {
    tmux: Tmux,
    identity: Identity,
    session: String,
    tty: String,
    pid: Option<Pid>,
    /// What a prompt looks like there, besides what is built in.
    pub(super) prompt: Option<Regex>,
    /// The shell that a person lets notices be typed into.
    pub(super) named_shell: Option<NoticeShell>,
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
    /// A list of choices is shown: Enter would take one.
    Menu,
    /// A password is asked for.
    Password,
    /// Its input line is not for messages: what is typed there is run, or kept.
    OtherInput,
    /// A shell would run what is typed.
    Shell(String),
    /// No empty input line of an agent is to be seen.
    NoInput,
    /// No empty prompt of the shell that was named is to be seen.
    NoPrompt,
    /// Another program is in the foreground than the one that was meant.
    Another(String),
    /// The program in the foreground does not wait for input at the moment.
    Works(String),
    /// The agent works on a prompt, and may ask something at any moment.
    Turn,
    /// The pane prints between each look and what would be done then.
    Moves,
}

impl Held {
    /// Whether both are the same reason, whatever the details.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Held::Mode => f.write_str("somebody scrolls or copies in it"),
            Held::Turn => f.write_str("the agent works on a prompt, and may ask something at any moment"),
            Held::HalfTyped(text) => write!(f, "somebody has half typed {text:?} there"),
            Held::Busy(program) => write!(f, "{program} runs there and does not read"),
            Held::Menu => f.write_str("it shows a list of choices, and Enter would take one"),
            Held::Password => f.write_str("it asks for a password"),
            Held::OtherInput => {
                f.write_str("its input line is in a mode where text is run or kept, not a message")
            }
            Held::Shell(program) => {
                write!(f, "{program} is in the foreground there, and a shell would run it as a command")
            }
            Held::NoInput => f.write_str("it shows no empty input line of an agent"),
            Held::NoPrompt => f.write_str("it shows no empty prompt of the shell"),
            Held::Another(program) => {
                write!(f, "{program} is in the foreground there, and not the program that was meant")
            }
            Held::Works(program) => write!(f, "{program} works there and does not wait for input"),
            Held::Moves => f.write_str("it never stood still"),
        }
    }
}

/// What a pane looked like at one moment.
#[derive(Clone, Debug)]
pub(super) struct Look {
    pub(super) mode: bool,
    pub(super) cursor: (usize, usize),
    pub(super) rows: Vec<Row>,
}

impl Look {
    /// The agent's input that the cursor is in.
    pub(super) fn input(&self) -> Option<Input> {
        input::at(&self.rows, self.cursor.1)
    }

    /// Whether the agent works on a prompt.
    pub(super) fn is_in_turn(&self) -> bool {
        self.input().is_some_and(|input| input.works())
    }

    pub(super) fn has_menu(&self) -> bool {
        input::has_menu(&self.rows)
    }

    pub(super) fn row(&self) -> String {
        self.rows.get(self.cursor.1).map(Row::text).unwrap_or_default()
    }

    /// Text that begins right under the cursor and is not a mere suggestion: a draft whose cursor was moved back.
    pub(super) fn under_cursor(&self) -> Option<String> {
        let cells = self.rows.get(self.cursor.1)?.cells.get(self.cursor.0..)?;
        let first = cells.first()?;
        let text: String = cells.iter().map(|cell| cell.c).collect();
        (!first.is_blank() && !first.faint).then(|| text.trim().to_owned())
    }
}

fn gone(id: &str, why: &str) -> Failure {
    Failure::new(Kind::System, format!("the pane {id} is gone: {why}"))
}

impl Pane {
    pub(super) fn find(tmux: &Tmux, target: &str) -> Result<Self, Failure> {
        let format =
            format!("{}\t#{{session_id}}\t#{{pane_tty}}\t#{{pane_dead}}\t#{{socket_path}}", Identity::FORMAT);
        let said = tmux.run(&["display-message", "-p", "-t", target, &format], b"")?;
        let unknown = || Failure::new(Kind::System, format!("tmux does not know the pane {target:?}"));
        let fields: Vec<&str> = said.trim_end_matches('\n').split('\t').collect();
        let [words, session, tty, dead, socket] = fields[..] else { return Err(unknown()) };
        let identity = Identity::read(words, socket).ok_or_else(unknown)?;
        if !identity.id.starts_with('%') || dead == "1" {
            return Err(Failure::new(Kind::System, format!("tmux has no living pane {target:?}")));
        }
        let pid = Pid::from_raw(identity.pid);
        let (session, tty) = (session.to_owned(), tty.to_owned());
        Ok(Self { tmux: tmux.clone(), identity, session, tty, pid, prompt: None, named_shell: None })
    }

    /// The pane that was found earlier, and no other that has its number now.
    ///
    /// # Errors
    /// When it is gone.
    pub fn again(tmux: &Tmux, pinned: &Identity) -> Result<Self, Failure> {
        let id = &pinned.id;
        let found = Self::find(tmux, id).map_err(|failure| gone(id, &failure.message))?;
        let now = &found.identity;
        if (now.server, now.started) != (pinned.server, pinned.started) {
            return Err(gone(
                id,
                "its tmux server has ended; another one is there now, and nothing was typed",
            ));
        }
        if now.pid != pinned.pid {
            return Err(gone(id, "another program was started in it, and nothing was typed"));
        }
        let identity = Identity { program: pinned.program, ..found.identity };
        Ok(Self { identity, ..found })
    }

    /// The same pane, meant for the program that is in its foreground now, unless that is a shell or ourselves.
    #[must_use]
    pub fn for_its_program(mut self) -> Self {
        let ours = rustix::process::getpid().as_raw_nonzero().get();
        let front = self.front().filter(|front| front.leader.0 != ours && !reading::is_shell(&front.program));
        self.identity.program = front.map(|front| front.leader);
        self
    }

    /// The leader of its foreground process group, and when that was started.
    pub(super) fn front_leader(&self) -> Option<(i32, u64)> {
        self.front().map(|front| front.leader)
    }

    /// Whether a program there waits for an answer: it hides what is typed, shows choices, or reads a line and is not
    /// what was there `before`. Shells that edit their own line read one as a whole only for a `read`.
    pub(super) fn asks_for_answer(&self, before: Option<(i32, u64)>) -> Result<bool, Failure> {
        let look = self.look()?;
        if look.input().is_some_and(|input| input.is_for_messages()) && !look.has_menu() {
            return Ok(false);
        }
        if self.hides_lines() || self.asks(&look) {
            return Ok(true);
        }
        if !self.reads_lines() {
            return Ok(false);
        }
        Ok(match self.shell() {
            Some(shell) => ["bash", "zsh", "fish"].contains(&shell.as_str()),
            None => self.front_leader() != before,
        })
    }

    pub(super) fn front(&self) -> Option<Front> {
        reading::in_front(Path::new(&self.tty), self.pid?)
    }

    /// Says what a prompt looks like there, as a regular expression that ends where somebody types.
    ///
    /// # Errors
    /// When that is not a regular expression.
    pub fn with_prompt(mut self, prompt: Option<&str>) -> Result<Self, Failure> {
        self.prompt = prompt.map(prompt_of).transpose()?;
        Ok(self)
    }

    /// Its number, with a `%`, which it keeps wherever it is moved.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.identity.id
    }

    /// Which it is, for later.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Its server.
    #[must_use]
    pub fn tmux(&self) -> &Tmux {
        &self.tmux
    }

    /// What a prompt looks like there, where the user has said so.
    pub(super) fn prompt(&self) -> Option<&Regex> {
        self.prompt.as_ref()
    }

    /// Listens to what happens in it.
    #[must_use]
    pub fn listen(&self) -> Listener {
        let control = Control::attach(&self.tmux, &self.session, &self.identity);
        Listener::new(control, self.clone())
    }

    /// Looks at it: everything in one answer of tmux.
    pub(super) fn look(&self) -> Result<Look, Failure> {
        let format =
            format!("{}\t#{{pane_dead}}\t#{{pane_in_mode}}\t#{{cursor_x}}\t#{{cursor_y}}", Identity::FORMAT);
        let id = self.id();
        let args = ["display-message", "-p", "-t", id, &format, ";", "capture-pane", "-p", "-e", "-t", id];
        let said = self.tmux.run(&args, b"").map_err(|failure| gone(id, &failure.message))?;
        let (state, shown) = said.split_once('\n').unwrap_or((&said, ""));
        let fields: Vec<&str> = state.split('\t').collect();
        let [words, dead, mode, x, y] = fields[..] else {
            return Err(gone(id, "tmux no longer knows it"));
        };
        if words != self.identity.words() {
            return Err(gone(id, "another pane has its number now"));
        }
        if dead == "1" {
            return Err(gone(id, "what ran there has ended"));
        }
        let number = |text: &str| text.parse().unwrap_or(0);
        let mode = mode != "0" && !mode.is_empty();
        Ok(Look { mode, cursor: (number(x), number(y)), rows: screen::read(shown) })
    }

    /// What it shows, row by row.
    ///
    /// # Errors
    /// When it is gone.
    pub fn rows(&self) -> Result<Vec<String>, Failure> {
        Ok(self.look()?.rows.iter().map(Row::text).collect())
    }

    /// What it shows, after this many lines of history.
    ///
    /// # Errors
    /// When it is gone.
    pub fn text(&self, history: usize, styled: bool) -> Result<String, Failure> {
        let from = format!("-{history}");
        let mut args = vec!["capture-pane", "-p", "-t", self.id()];
        if history > 0 {
            args.extend(["-S", &from]);
        }
        if styled {
            args.push("-e");
        }
        self.tmux.run(&args, b"").map_err(|failure| gone(self.id(), &failure.message))
    }

    /// Where the cursor is: column and row, from 0.
    ///
    /// # Errors
    /// When it is gone.
    pub fn cursor(&self) -> Result<(usize, usize), Failure> {
        Ok(self.look()?.cursor)
    }

    /// The program there that works and does not read its terminal, if the kernel says so.
    #[must_use]
    pub fn busy(&self) -> Option<String> {
        match reading::of_terminal(Path::new(&self.tty), self.pid?) {
            Reading::Nobody { program } => Some(program),
            Reading::Somebody | Reading::Unknown => None,
        }
    }

    /// Whether the program there reads a line and does not show it.
    pub(super) fn hides_lines(&self) -> bool {
        reading::hides_lines(Path::new(&self.tty))
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
        Ok(self.holds_command(&self.look()?))
    }

    /// The shell that is in its foreground, by the kernel, or where that does not tell, by tmux.
    #[must_use]
    pub fn shell(&self) -> Option<String> {
        if let Some(shell) = self.pid.and_then(reading::shell_in_front) {
            return Some(shell);
        }
        if cfg!(all(target_os = "linux", not(outlast_portable))) {
            return None;
        }
        let args = ["display-message", "-p", "-t", self.id(), "#{pane_current_command}"];
        let said = self.tmux.run(&args, b"").ok()?;
        Some(said.trim().to_owned()).filter(|program| reading::is_shell(program))
    }

    /// Why the user's own command can't be typed now.
    pub(super) fn holds_command(&self, look: &Look) -> Option<Held> {
        if look.mode {
            return Some(Held::Mode);
        }
        if let Some(program) = self.busy() {
            return Some(Held::Busy(program));
        }
        if let Some(input) = look.input() {
            return holds_input(&input);
        }
        if self.asks(look) {
            return Some(Held::Menu);
        }
        if self.hides_lines() {
            return Some(Held::Password);
        }
        let draft = half_typed(&look.row(), look.cursor.0, self.prompt.as_ref());
        draft.or_else(|| look.under_cursor().filter(|_| self.shell().is_some())).map(Held::HalfTyped)
    }

    /// Whether a program there that reads keys shows choices. What a shell left on the screen asks nobody.
    pub(super) fn asks(&self, look: &Look) -> bool {
        !self.reads_lines() && look.has_menu() && self.shell().is_none()
    }

    /// Why a notice can't be typed now. It belongs into the empty input line of an agent, and nowhere else: not into
    /// a shell that nobody has named, and not where it would answer a question.
    pub(super) fn holds_notice(&self, look: &Look) -> Option<Held> {
        if look.mode {
            return Some(Held::Mode);
        }
        if let Some(named) = self.named_shell {
            return self.holds_in_shell(look, named);
        }
        if let Some(shell) = self.shell() {
            return Some(Held::Shell(shell));
        }
        if self.hides_lines() {
            return Some(Held::Password);
        }
        if look.has_menu() {
            return Some(Held::Menu);
        }
        if let Some(program) = self.another() {
            return Some(Held::Another(program));
        }
        if let Some(front) = self.front().filter(|front| front.waits == Some(false)) {
            return Some(Held::Works(front.program));
        }
        if let Some(input) = look.input().filter(|_| !self.reads_lines()) {
            return holds_input(&input);
        }
        let Some(prompt) = &self.prompt else { return Some(Held::NoInput) };
        // A line of which the user says that it is the agent's.
        let (row, column) = (look.row(), look.cursor.0);
        match before_cursor(&row, column, prompt) {
            None => Some(Held::NoInput),
            Some(draft) if !draft.is_empty() => Some(Held::HalfTyped(draft)),
            Some(_) => look.under_cursor().map(Held::HalfTyped),
        }
    }

    /// The program in the foreground, if another one was meant.
    pub(super) fn another(&self) -> Option<String> {
        let meant = self.identity.program?;
        self.front().filter(|front| front.leader != meant).map(|front| front.program)
    }

    /// What stands at the prompt that the user has described.
    pub(super) fn at_prompt(&self, look: &Look) -> Option<String> {
        before_cursor(&look.row(), look.cursor.0, self.prompt.as_ref()?)
    }

    /// Has tmux do something only if this is still the pane that was looked at, and nobody scrolls in it; with a
    /// cursor, only if that has not moved. False when it was not done.
    pub(super) fn only_if(
        &self,
        cursor: Option<(usize, usize)>,
        input: (&[&str], &[u8]),
        then: &str,
    ) -> Result<bool, Failure> {
        let condition = self.unchanged(cursor);
        let then = format!("{then} ; display-message -p done");
        let args = [input.0, &["if-shell", "-F", "-t", self.id(), &condition, &then]].concat();
        let said = self.tmux.run(&args, input.1).map_err(|failure| gone(self.id(), &failure.message))?;
        Ok(said.contains("done"))
    }

    /// A condition of tmux: that it is still the pane that was looked at, in no mode, with the cursor where it was.
    pub(super) fn unchanged(&self, cursor: Option<(usize, usize)>) -> String {
        let mut formats = format!("{}/#{{pane_in_mode}}", Identity::FORMAT);
        let mut values = format!("{}/0", self.identity.words());
        if let Some((x, y)) = cursor {
            formats.push_str("/#{cursor_x}/#{cursor_y}");
            values.push_str(&format!("/{x}/{y}"));
        }
        format!("#{{==:{formats},{values}}}")
    }

    /// Presses keys by tmux's names for them.
    ///
    /// # Errors
    /// When it is gone.
    pub fn press(&self, keys: &[&str]) -> Result<(), Failure> {
        self.tmux.run(&[&["send-keys", "-t", self.id()][..], keys].concat(), b"").map(drop)
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

fn holds_input(input: &Input) -> Option<Held> {
    if !input.is_empty() {
        return Some(Held::HalfTyped(input.draft().to_owned()));
    }
    if !input.is_for_messages() {
        return Some(Held::OtherInput);
    }
    input.works().then_some(Held::Turn)
}
