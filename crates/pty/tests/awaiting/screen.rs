//! A screen for programs under test, and what it tells the prober.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use alacritty_terminal::event::{Event, EventListener};
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::{Config, Term, TermMode};
use alacritty_terminal::vte::ansi::Processor;
use outlast_pty::evidence::{Hints, Row, question_of_field, text};

struct Answers(Sender<String>);

impl EventListener for Answers {
    fn send_event(&self, event: Event) {
        if let Event::PtyWrite(answer) = event {
            let _ = self.0.send(answer);
        }
    }
}

struct Cells {
    rows: usize,
    cols: usize,
}

impl Dimensions for Cells {
    fn total_lines(&self) -> usize {
        self.rows
    }

    fn screen_lines(&self) -> usize {
        self.rows
    }

    fn columns(&self) -> usize {
        self.cols
    }
}

pub(crate) struct Screen {
    term: Term<Answers>,
    parser: Processor,
    answers: Receiver<String>,
    text_before_cursor: String,
    line_above: String,
    field: String,
    text_below: bool,
}

impl Screen {
    pub(crate) fn new(rows: usize, cols: usize) -> Self {
        let (send, answers) = channel();
        let term = Term::new(Config::default(), &Cells { rows, cols }, Answers(send));
        Self {
            term,
            parser: Processor::new(),
            answers,
            text_before_cursor: String::new(),
            line_above: String::new(),
            field: String::new(),
            text_below: false,
        }
    }

    /// Takes output, and returns what the terminal answers to questions in it.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> String {
        self.parser.advance(&mut self.term, bytes);
        let cursor = self.term.grid().cursor.point;
        self.text_before_cursor = self.row(cursor.line, cursor.column.0);
        let above = (0..cursor.line.0).rev().map(|line| self.row(Line(line), self.term.columns()));
        self.line_above =
            above.map(|row| row.trim_end().to_owned()).find(|row| !row.is_empty()).unwrap_or_default();
        let text = self.text();
        let rows: Vec<&str> = text.lines().collect();
        let (row, hidden) = (cursor.line.0 as usize, !self.term.mode().contains(TermMode::SHOW_CURSOR));
        let elsewhere = hidden || self.text_before_cursor.trim().is_empty();
        self.field = elsewhere.then(|| question_of_field(&rows, row)).flatten().unwrap_or_default();
        self.text_below = rows.iter().skip(row + 1).any(|row| !row.is_empty());
        self.answers.try_iter().collect()
    }

    fn row(&self, line: Line, up_to: usize) -> String {
        (0..up_to).map(|column| self.term.grid()[line][Column(column)].c).collect()
    }

    pub(crate) fn text(&self) -> String {
        let rows = self.term.screen_lines() as i32;
        let lines = (0..rows).map(|line| self.row(Line(line), self.term.columns()));
        lines.map(|line| line.trim_end().to_owned() + "\n").collect()
    }

    pub(crate) fn hints(&self, since_output: Duration, since_input: Duration) -> Hints<'_> {
        let mode = self.term.mode();
        Hints {
            text_before_cursor: &self.text_before_cursor,
            line_above: &self.line_above,
            alternate_screen: mode.contains(TermMode::ALT_SCREEN),
            bracketed_paste: mode.contains(TermMode::BRACKETED_PASTE),
            cursor_hidden: !mode.contains(TermMode::SHOW_CURSOR),
            since_output,
            since_input,
            row: Row::New,
            offers_choice: !mode.contains(TermMode::SHOW_CURSOR) && text::offers_choice(self.text().lines()),
            lists_choices: text::lists_choices(self.text().lines()),
            field: &self.field,
            text_below: self.text_below,
            answered: false,
        }
    }
}
