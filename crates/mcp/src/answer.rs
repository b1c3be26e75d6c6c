//! An answer: the facts in the words of the contract, and the same as text that a model reads as it is.

use outlast_job::lifecycle::{EndedBy, Outcome, Process, State};
use outlast_job::registry::format::Info;
use outlast_job::request::ReadText;
use outlast_job::shell::{Shell, Step, StepState};
use outlast_job::wire::{Awaiting, AwaitingKind, Level, ScreenShot};
use outlast_job::{Failure, Job, Reason, Waited};
use outlast_protocol::outcome::BESIDE_OUTCOME;
use outlast_protocol::{JobIdentity, JobReport, Queued};
use serde::ser::Error as _;
use serde::{Serialize, Serializer};

use crate::printed::{Printed, budget};
use crate::screen_view::{self, ShownRows};
use crate::tasks::Pending;
use crate::words::Words;

/// Room for what is said about a screen, and about stderr.
const SCREEN_WORDS: usize = 300;
const STDERR_WORDS: usize = 40;
/// More blank lines than this in a row are shown as one.
const MAX_BLANK: usize = 3;

/// What every answer about one job says: its `structuredContent`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Facts {
    #[serde(flatten, serialize_with = "without_nulls")]
    pub(crate) report: JobReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) screen: Option<Screen>,
}

/// Writes what is known: the schema of an answer has no `null`.
pub(crate) fn without_nulls<T: Serialize, S: Serializer>(facts: &T, to: S) -> Result<S::Ok, S::Error> {
    let mut facts = serde_json::to_value(facts).map_err(S::Error::custom)?;
    if let Some(facts) = facts.as_object_mut() {
        facts.retain(|_, fact| !fact.is_null());
    }
    facts.serialize(to)
}

/// The job's number, and its name if it has one.
pub(crate) fn title(job: &JobIdentity) -> String {
    let name = job.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    format!("job {}{name}", job.handle)
}

/// What a terminal shows.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Screen {
    pub(crate) text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cursor: Option<Position>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) columns: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rows: Option<u16>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) modes: Option<Modes>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) scrollback: String,
}

/// Where the cursor is, from 0.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Position {
    pub(crate) row: u16,
    pub(crate) column: u16,
    pub(crate) visible: bool,
}

/// What the program has set.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Modes {
    pub(crate) alternate_screen: bool,
    pub(crate) bracketed_paste: bool,
    pub(crate) application_cursor: bool,
}

impl Screen {
    /// What is known of a screen, with the text that is shown of it.
    pub(crate) fn with_text(shot: &ScreenShot, text: String) -> Self {
        let cursor = shot.cursor;
        Self {
            text,
            cursor: Some(Position { row: cursor.row, column: cursor.col, visible: cursor.visible }),
            columns: Some(shot.size.cols),
            rows: Some(shot.size.rows),
            title: crate::printed::shown(&shot.title),
            modes: Some(Modes {
                alternate_screen: shot.alternate,
                bracketed_paste: shot.bracketed_paste,
                application_cursor: shot.application_cursor,
            }),
            scrollback: crate::printed::shown(&shot.scrollback.join("\n")),
        }
    }
}

/// What a job printed, as far as an answer shows it.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// Nothing was looked for.
    Nothing,
    /// A range, read when it is known how much room the other words leave.
    Text(ReadText),
    /// It is here already.
    Ready(Printed),
    /// The rows of a screen.
    Rows(String),
}

/// An answer about one job, before it is put into words.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) facts: Facts,
    pub(crate) job: Job,
    words: Words,
    /// How it ended, if it has.
    ending: Option<String>,
    /// How long the job has run, or ran, in milliseconds.
    ran_ms: u64,
    /// How long the call waited.
    pub(crate) elapsed_ms: Option<u64>,
    /// More to say, each in a sentence.
    pub(crate) notes: Vec<String>,
    /// What was printed first and last: the offsets of `output`.
    pub(crate) range: (u64, u64),
    pub(crate) body: Body,
    /// In pipe mode, what came on stderr; it comes after the output.
    pub(crate) errors: String,
    /// At most this many bytes of text.
    pub(crate) budget: usize,
    /// A line that was typed: its echo says nothing new.
    pub(crate) echo: Option<String>,
    /// What the call still waits for, if its answer is to be asked for later.
    pub(crate) pending: Option<Pending>,
    /// Whether the job itself runs: a step of a shell may be over before.
    job_runs: bool,
}

impl Answer {
    /// What is known of a job, without its output.
    pub(crate) fn of((job, words): (&Job, Words), info: &Info) -> Self {
        let mut report = JobReport::new(info, job.files(), job.log_end());
        report.output = Some(String::new());
        report.left_behind = job.left_behind(info);
        let ending = ending((&info.state, &report.left_behind), &info.session, words);
        let facts = Facts { report, screen: None };
        let ended_at =
            info.state.receipt().map_or_else(outlast_job::clock::now_ms, |receipt| receipt.ended_at);
        Self {
            facts,
            job: job.clone(),
            words,
            ending,
            ran_ms: ended_at.saturating_sub(info.started_at.unwrap_or(info.created_at)),
            elapsed_ms: None,
            notes: Vec::new(),
            range: (0, 0),
            body: Body::Nothing,
            errors: String::new(),
            budget: budget(None),
            echo: None,
            pending: None,
            job_runs: info.state.is_live(),
        }
    }

    /// Nothing yet: it is asked for later.
    pub(crate) fn later(job: (&Job, Words), info: &Info, pending: Pending) -> Self {
        Self { pending: Some(pending), ..Self::of(job, info) }
    }

    /// Adds how a wait ended.
    pub(crate) fn waited(mut self, waited: Waited) -> Self {
        let mut report = self.facts.report.waited(waited);
        // It is in the headline, not among the facts.
        self.elapsed_ms = report.elapsed_ms.take();
        if let Some(found) = &mut report.found {
            // A group that took no part is empty.
            found.captures.iter_mut().for_each(|group| *group = Some(group.take().unwrap_or_default()));
        }
        if let Some(awaiting) = &mut report.awaiting_input {
            awaiting.prompt = crate::printed::shown(&awaiting.prompt);
        }
        self.facts.report = report;
        self
    }

    /// It is about a step of a shell.
    pub(crate) fn of_step(mut self, shell: &Shell, step: &Step) -> Self {
        self.facts.report = self.facts.report.of_step(&shell.name, step);
        self.ending = match (step.state, step.exit_code) {
            (StepState::Queued | StepState::Running, _) => None,
            (StepState::Ended, Some(code)) => Some(format!("exit {code}")),
            (StepState::Ended, None) => Some("ended".into()),
            (StepState::NotRun, _) => Some("not run".into()),
        };
        self.ran_ms =
            step.took_ms.unwrap_or_else(|| outlast_job::clock::now_ms().saturating_sub(step.started_at));
        if let Some(folder) = step.new_folder() {
            self.note(format!("now in {folder}"));
        }
        if !step.pipeline.is_empty() {
            let codes: Vec<String> = step.pipeline.iter().map(ToString::to_string).collect();
            self.note(format!("pipeline: {}", codes.join(" ")));
        }
        if let Some(note) = &step.note {
            self.note(note.clone());
        }
        if !step.background.is_empty() {
            let pids: Vec<String> = step.background.iter().map(ToString::to_string).collect();
            self.note(format!("runs on in the background: pid {}", pids.join(", ")));
        }
        if step.exit_code == Some(127) && !shell.rc {
            self.note("this shell has not read the user's startup files; one made with rc=true has");
        }
        self
    }

    /// Whether the job itself has ended, and not only a step of it.
    pub(crate) fn job_has_ended(&self) -> bool {
        !self.job_runs
    }

    /// Shows a range of what was printed, with all that fits into `budget` bytes beside the other words.
    pub(crate) fn showing(self, read: ReadText, budget: usize) -> Self {
        let to = read.to.unwrap_or_else(|| self.job.log_end());
        let range = (read.from.min(to), to);
        Self { range, body: Body::Text(ReadText { to: Some(to), ..read }), budget, ..self }
    }

    /// Shows what was read already.
    pub(crate) fn printed(mut self, printed: Printed, budget: usize) -> Self {
        self.range = (printed.from, printed.to);
        self.facts.report.offset = printed.to;
        self.facts.report.omitted_bytes = printed.omitted_bytes();
        self.facts.report.output = Some(printed.text.clone());
        Self { body: Body::Ready(printed), budget, ..self }
    }

    /// Shows rows of a screen instead of what was printed.
    pub(crate) fn show_rows(&mut self, shown: ShownRows, shot: &ScreenShot) {
        let (rows, what) = match shown {
            ShownRows::All(rows) => (rows, "screen"),
            ShownRows::Changed(rows) if rows.is_empty() => (rows, "the screen is as before"),
            ShownRows::Changed(rows) => (rows, "rows that changed"),
        };
        let cursor = shot.cursor;
        let place = format!("cursor {}:{}", cursor.row + 1, cursor.col + 1);
        let place = if cursor.visible { format!(", {place}") } else { String::new() };
        self.note(format!("{what}{place}"));
        let mut text = screen_view::lines(&rows);
        text.truncate(text.floor_char_boundary(self.budget.saturating_sub(SCREEN_WORDS)));
        self.facts.screen = Some(Screen::with_text(shot, screen_view::plain(shot)));
        self.body = Body::Rows(text);
    }

    /// Adds what the job's tools reported; returns how many bytes the answer may have. Where the report stands for most of
    /// the output, and the caller did not say how much of that is wanted, only the first and last lines come with it.
    pub(crate) fn add_outcome(&mut self, budget: usize) -> Result<usize, Failure> {
        let Some(outcome) = self.job.outcome()? else { return Ok(budget) };
        let is_default = budget == outlast_job::client::MAX_OUTPUT;
        let stands = outcome.stands_for_output();
        let room: usize = outcome.lines().iter().map(|line| line.len() + 1).sum();
        self.facts.report.outcome = Some(outcome);
        Ok(if is_default && stands { budget.min(BESIDE_OUTCOME + room) } else { budget })
    }

    /// What the job's tools reported, in at most half of the room. Where all of the output is shown, the errors are in it.
    fn outcome_lines(&self, all_is_shown: bool) -> Vec<String> {
        let Some(outcome) = &self.facts.report.outcome else { return Vec::new() };
        if all_is_shown {
            return outcome.tools.iter().map(outlast_protocol::ToolOutcome::headline).collect();
        }
        let mut room = self.budget / 2;
        let fits = |line: &String| {
            let fits = line.len() < room;
            room = room.saturating_sub(line.len() + 1);
            fits
        };
        outcome.lines().into_iter().take_while(fits).collect()
    }

    /// Adds a sentence.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    pub(crate) fn is_live(&self) -> bool {
        matches!(self.facts.report.job.status, "starting" | "running" | "queued")
    }

    /// The whole answer as text: first everything that we say, a line each, then a blank line, then what the job printed,
    /// and nothing after that. So nothing that a job prints can pass for words of ours.
    pub(crate) fn text(&mut self, status: &str, more: &[String]) -> Result<String, Failure> {
        let mut said = vec![status.to_owned()];
        said.append(&mut self.notes);
        said.extend(self.next());
        said.extend_from_slice(more);
        said.iter_mut().for_each(|line| *line = one_line(line));
        let reported = self.outcome_lines(false);
        let used: usize = said.iter().chain(&reported).map(|line| line.len() + 1).sum::<usize>() + 1;
        let room = self.budget.saturating_sub(used);
        let errors = if self.errors.is_empty() { 0 } else { self.errors.len() + STDERR_WORDS };
        let mut body = self.take_body(&mut said, room.saturating_sub(errors))?;
        if !self.errors.is_empty() {
            let lines = self.errors.trim_end_matches('\n').lines().count();
            said.push(if lines == 1 {
                "stderr: the last line".into()
            } else {
                format!("stderr: the last {lines} lines")
            });
            if !body.is_empty() && !body.ends_with('\n') {
                body.push('\n');
            }
            body.push_str(&self.errors);
            self.facts.report.stderr = Some(self.errors.clone());
        }
        let mut body = without_blank_rows(&body);
        if !self.is_live() {
            let (folded, left_out) = outlast_stream::outcome::fold_repeated(&body, "…\n");
            if left_out > 0 {
                said.push(format!("{left_out} lines that repeat the one before are left out (…)"));
                body = folded;
            }
        }
        let cut = self.facts.report.omitted_bytes > 0 || self.range.0 > 0 || !self.errors.is_empty();
        let all_is_shown = !body.is_empty() && !cut;
        let reported = self.outcome_lines(all_is_shown);
        said.splice(1..1, reported);
        let said = said.join("\n");
        Ok(if body.is_empty() { said } else { format!("{said}\n\n{body}") })
    }

    /// What comes last: at most `room` bytes of it, and of what is said about it.
    fn take_body(&mut self, said: &mut Vec<String>, room: usize) -> Result<String, Failure> {
        let printed = match std::mem::replace(&mut self.body, Body::Nothing) {
            Body::Nothing => {
                if let Some(prompt) = self.prompt() {
                    said[0].push_str(&format!(": {prompt:?}"));
                }
                return Ok(String::new());
            }
            Body::Rows(rows) => return Ok(rows),
            Body::Ready(printed) => printed,
            Body::Text(read) => {
                // No offset in it has more digits than that of the end.
                let longest = self.left_out((self.range.1, self.range.1), self.range.1).len() + 1;
                let room = room.saturating_sub(self.prompt().map_or(0, str::len));
                let read = ReadText { max: room, reserve: Some(longest), ..read };
                let printed = crate::printed::text(&self.job, read)?;
                let report = &mut self.facts.report;
                report.offset = printed.to;
                report.omitted_bytes = printed.omitted_bytes();
                report.output = Some(printed.text.clone());
                printed
            }
        };
        if let Some((from, to)) = printed.omitted {
            said.push(self.left_out((from, to), to - from));
        }
        let echo = self.echo.as_deref().and_then(|echo| printed.text.strip_prefix(echo)?.strip_prefix('\n'));
        let text = echo.unwrap_or(&printed.text).to_owned();
        if let Some(prompt) = self.prompt()
            && !text.trim_end().ends_with(prompt.trim())
        {
            said[0].push_str(&format!(": {prompt:?}"));
        }
        if text.is_empty() && self.facts.report.reason.is_none() {
            said[0].push_str(" · no new output");
        }
        Ok(text)
    }

    /// What it asks, if it does so in a line.
    fn prompt(&self) -> Option<&str> {
        let report = &self.facts.report;
        let awaiting =
            report.awaiting_input.as_ref().filter(|_| report.reason == Some(Reason::AwaitingInput))?;
        Some(awaiting.prompt.as_str()).filter(|prompt| !prompt.trim().is_empty())
    }

    /// That something was left out, and the call that reads it.
    fn left_out(&self, (from, to): (u64, u64), bytes: u64) -> String {
        format!("{bytes} bytes left out (…): {}", self.words.read(self.job.handle(), from, to))
    }

    /// The job, how it is and why the call came back, in a line.
    pub(crate) fn status(&self) -> String {
        let job = &self.facts.report.job;
        let mut parts = vec![title(job)];
        if let (Some(shell), Some(step)) = (&self.facts.report.shell, self.facts.report.step) {
            parts.push(format!("shell {shell}, step {step}"));
        }
        match &self.ending {
            Some(ending) => {
                parts.push(ending.clone());
                parts.extend((self.ran_ms >= 1000).then(|| format!("ran {}", seconds(self.ran_ms))));
            }
            None => {
                parts.push(self.why());
                if let Some(pid) = job.pid.filter(|_| self.words.says_pid()) {
                    parts.push(format!("pid {pid}"));
                }
            }
        }
        parts.join(" · ")
    }

    /// Why the call came back, of a job that runs.
    pub(crate) fn why(&self) -> String {
        let report = &self.facts.report;
        let running = || match report.job.status {
            _ if report.queued.is_some() => {
                format!("queued: {}", report.queued.as_ref().map(Queued::words).unwrap_or_default())
            }
            "queued" => "waits for the step before it".to_owned(),
            _ => format!("running for {}", seconds(self.ran_ms)),
        };
        let Some(reason) = report.reason else { return running() };
        match reason {
            Reason::Pattern => match &report.found {
                Some(found) => format!("pattern {:?}", found.text),
                None => "pattern".into(),
            },
            Reason::AwaitingInput => report.awaiting_input.as_ref().map_or("awaiting input".into(), awaits),
            Reason::Port => report.port.map_or("port".into(), |port| format!("port {port} open")),
            Reason::Deadline if report.listening.is_some() => format!("{}, listening", running()),
            Reason::Deadline => running(),
            Reason::Started if report.queued.is_some() => running(),
            reason @ (Reason::Exit
            | Reason::Quiet
            | Reason::Stable
            | Reason::Http
            | Reason::Output
            | Reason::Gone
            | Reason::Lines
            | Reason::Started) => reason.name().replace('_', " "),
        }
    }

    /// What to call next, where that is not plain from the tools.
    pub(crate) fn next(&self) -> Option<String> {
        let report = &self.facts.report;
        let handle = self.job.handle();
        if !self.is_live() {
            return (report.job.status == "lost").then(|| {
                let call = self.words.read(handle, 0, report.offset);
                format!("its keepers vanished; what it printed is whole: {call}")
            });
        }
        let kind = report.awaiting_input.as_ref().map(|awaiting| awaiting.kind);
        match kind {
            Some(AwaitingKind::Password) => {
                Some(format!("the user types it with: outlast secret {handle}; do not type one here"))
            }
            Some(AwaitingKind::Approval) => Some(
                "the user must agree to what it executes: in your client's dialogue at your next call, or with: \
                 outlast policy pending; do not try to get around it"
                    .into(),
            ),
            Some(
                AwaitingKind::Line
                | AwaitingKind::Key
                | AwaitingKind::Menu
                | AwaitingKind::Pager
                | AwaitingKind::Stdin
                | AwaitingKind::Repl,
            )
            | None => None,
        }
    }
}

/// What a job waits for, in words.
fn awaits(awaiting: &Awaiting) -> String {
    let what = match awaiting.kind {
        AwaitingKind::Line | AwaitingKind::Repl => "awaiting input",
        AwaitingKind::Stdin => "awaiting input on stdin",
        AwaitingKind::Password => "awaiting a password",
        AwaitingKind::Key => "awaiting a key",
        AwaitingKind::Menu => "awaiting keys",
        AwaitingKind::Pager => "awaiting keys (pager)",
        AwaitingKind::Approval => "standing still until a person agrees",
    };
    match awaiting.level {
        // Nearly always right; who cares finds it among the facts.
        Level::Certain | Level::Likely => what.into(),
        Level::Possible => format!("{what} (possible)"),
        Level::Listening => "listening: it takes input, and goes on without".into(),
    }
}

/// Without what a full-screen program leaves when it goes: blank lines at both ends, and many in a row.
fn without_blank_rows(text: &str) -> String {
    let mut rows = String::new();
    let mut blank = 0;
    for line in text.split('\n') {
        if line.trim().is_empty() && !line.ends_with(' ') {
            blank += 1;
            continue;
        }
        if !rows.is_empty() {
            rows.push_str(&"\n".repeat(if blank > MAX_BLANK { 2 } else { blank + 1 }));
        }
        blank = 0;
        rows.push_str(line);
    }
    rows
}

/// Words of ours stay in their line, whatever is quoted in them.
pub(crate) fn one_line(text: &str) -> String {
    text.lines().filter(|line| !line.trim().is_empty()).collect::<Vec<_>>().join("; ")
}

/// A time as a person would say it.
pub(crate) fn seconds(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        10_000..600_000 => format!("{} s", ms / 1000),
        600_000..3_600_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// How it ended, in a few words; none while it runs.
pub(crate) fn ending((state, left): (&State, &[Process]), owner: &str, words: Words) -> Option<String> {
    if let Some(why) = state.why_lost() {
        return Some(format!("lost: {why}"));
    }
    let receipt = state.receipt()?;
    let how = match &receipt.outcome {
        Outcome::Exited { code } => format!("exit {code}"),
        Outcome::Signalled { signal, .. } => signal.clone(),
        Outcome::NotStarted { error } => {
            format!("could not start: {} ({})", error.message, words.hint(&error.hint))
        }
    };
    let mut said = match &receipt.ended_by {
        EndedBy::Itself => how,
        EndedBy::Kill { session, .. } if session == owner => format!("{how}, ended by kill"),
        EndedBy::Key { key, .. } => format!("{how}, ended by {key}"),
        // Each of the others has its own words.
        by => format!("{how}, ended {}", by.describe()),
    };
    if !left.is_empty() {
        said.push_str(&format!(", left running: {}", named(left)));
    }
    Some(said)
}

/// Processes, with their pids and ports.
pub(crate) fn named(processes: &[Process]) -> String {
    let one = |p: &Process| {
        let ports: String = p.ports.iter().map(|port| format!(", port {port}")).collect();
        format!("{} (pid {}{ports})", p.program, p.pid)
    };
    processes.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A failure as text: what is wrong, and what to call next, in the words of the tools.
pub(crate) fn failure_text(failure: &Failure, words: Words) -> String {
    let mut text = format!("error ({}): {}", failure.kind.name(), one_line(&failure.message));
    if let Some(hint) = &failure.hint {
        text.push('\n');
        text.push_str(&one_line(&words.hint(hint)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_as_exact_as_a_reader_needs_them() {
        let said: Vec<String> = [40, 999, 1200, 9_940, 59_999, 90_400, 3_600_000].map(seconds).into();
        assert_eq!(said, ["0.0 s", "0.9 s", "1.2 s", "9.9 s", "59 s", "90 s", "1 h 0 min"]);
    }

    #[test]
    fn blank_rows_are_left_out() {
        assert_eq!(without_blank_rows("\n\na\n\n\nb\n\n\n\n\nc\n> \n"), "a\n\n\nb\n\nc\n> ");
        assert_eq!(without_blank_rows("\n\n"), "");
    }

    #[test]
    fn our_words_have_no_blank_line() {
        assert_eq!(one_line("a\n\n b\n"), "a;  b");
    }
}
