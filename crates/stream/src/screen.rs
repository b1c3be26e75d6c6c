//! What the terminal shows now.
//!
//! A real terminal engine knows that exactly, but costs some fifty times what reading a log costs. So it is made when
//! first needed and fed late: bytes wait in a queue, and when they are only lines of text, those that have scrolled
//! out of screen and scrollback before anyone looked are never fed at all.
//!
//! Only sequences that draw reach the engine. Strings, queries and everything unknown stop at
//! [`crate::pipeline`], so nothing that output says can make the engine answer, grow or call out.

mod few;
mod queue;
mod snapshot;
mod styled;

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::term::{Config, Term};
use alacritty_terminal::vte::ansi::Processor;

use crate::charset::Charsets;
use crate::modes::Modes;
use crate::size::Size;
use queue::Queue;
pub use snapshot::{CursorPosition, Snapshot};

/// The screen, drawn when someone looks.
pub(crate) struct Screen {
    size: Size,
    scrollback: usize,
    queue: Queue,
    engine: Option<Box<Engine>>,
    /// Nobody will ever look.
    unseen: bool,
}

struct Engine {
    term: Term<VoidListener>,
    parser: Processor,
}

/// What is to be drawn of a screen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Paint<'a> {
    /// All of it, in place of whatever is shown.
    Whole,
    /// All of it, as lines below the cursor's.
    Lines,
    /// One row, or this text over it.
    Row(usize, Option<&'a str>),
}

/// What the engine does not know of a terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State<'a> {
    pub(crate) modes: &'a Modes,
    pub(crate) charsets: &'a Charsets,
    /// First and last row of the scroll region, where it is less than the screen.
    pub(crate) region: Option<(usize, usize)>,
}

impl Dimensions for Size {
    fn total_lines(&self) -> usize {
        self.lines()
    }
    fn screen_lines(&self) -> usize {
        self.lines()
    }
    fn columns(&self) -> usize {
        usize::from(self.cols)
    }
}

impl Screen {
    pub(crate) fn new(size: Size, scrollback: usize) -> Self {
        Self { size, scrollback, queue: Queue::new(), engine: None, unseen: false }
    }

    /// One that stays empty.
    pub(crate) fn unseen(size: Size) -> Self {
        Self { unseen: true, ..Self::new(size, 0) }
    }

    pub(crate) fn size(&self) -> Size {
        self.size
    }

    /// Text, or a sequence that stays in its line.
    pub(crate) fn line_local(&mut self, bytes: &[u8]) {
        self.queue.line_local(bytes, self.size.columns());
        self.relieve();
    }

    /// The end of a line. `at_column_zero` says that the next one begins at the left edge whatever came before.
    pub(crate) fn line_end(&mut self, bytes: &[u8], at_column_zero: bool) {
        let enough = self.enough();
        let waiting = self.queue.line_end(bytes, at_column_zero, enough);
        self.draw_first(waiting);
        self.relieve();
    }

    /// Whole lines, as they are drawn, that begin and end at the left edge.
    pub(crate) fn lines(&mut self, bytes: &[u8], count: usize, terminal: bool) {
        let enough = self.enough();
        let columns = self.size.columns();
        let waiting = self.queue.lines((bytes, count), terminal, (columns, enough));
        self.draw_first(waiting);
        self.relieve();
    }

    fn draw_first(&mut self, waiting: Option<Vec<u8>>) {
        // Where nothing was drawn yet, the cursor is at the left edge.
        if let Some(first) = waiting.filter(|first| self.engine.is_some() || first != b"\r") {
            self.feed(&first);
        }
    }

    /// So many rows push out all that was there before: the cursor may be at the top, and has to come down first.
    fn enough(&self) -> usize {
        2 * self.size.lines() + self.scrollback
    }

    /// Anything that reaches beyond its line: all that waits has to be drawn for it to be right.
    pub(crate) fn far_reaching(&mut self, bytes: &[u8]) {
        if self.unseen {
            return;
        }
        self.queue.far_reaching(bytes);
        self.relieve();
    }

    /// Keeps the queue bounded.
    fn relieve(&mut self) {
        if self.queue.is_full() {
            self.sync();
        }
    }

    /// Draws all that waits.
    pub(crate) fn sync(&mut self) {
        let bytes = self.queue.take();
        self.feed(&bytes);
    }

    fn feed(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            let engine = self.engine();
            engine.parser.advance(&mut engine.term, bytes);
        }
    }

    fn engine(&mut self) -> &mut Engine {
        let (size, scrollback) = (self.size, self.scrollback);
        self.engine.get_or_insert_with(|| {
            let config = Config { scrolling_history: scrollback, ..Config::default() };
            Box::new(Engine { term: Term::new(config, &size, VoidListener), parser: Processor::new() })
        })
    }

    /// The screen takes a new size, with what was on it laid out anew.
    pub(crate) fn resize(&mut self, size: Size) {
        self.sync();
        self.size = size;
        if let Some(engine) = &mut self.engine {
            engine.term.resize(size);
        }
    }

    /// Row and column of the cursor, from 0.
    pub(crate) fn cursor(&mut self) -> (usize, usize) {
        self.sync();
        self.engine.as_ref().map_or((0, 0), |engine| {
            let point = engine.term.grid().cursor.point;
            (usize::try_from(point.line.0).unwrap_or(0), point.column.0)
        })
    }

    /// The screen as text.
    pub(crate) fn snapshot(&mut self, modes: &Modes, title: &str, bells: u64) -> Snapshot {
        let mut snapshot = Snapshot::empty(self.size, modes, title, bells);
        if let Some(rows) = self.few_rows() {
            snapshot.show_few(&rows);
            return snapshot;
        }
        self.sync();
        if let Some(engine) = &self.engine {
            snapshot.show(&engine.term);
        }
        snapshot
    }

    /// All rows up to the cursor's, where no engine is needed to know them.
    fn few_rows(&self) -> Option<Vec<&str>> {
        if self.engine.is_some() { None } else { few::rows(self.queue.only_lines()?, self.size) }
    }

    /// The newest `lines` rows of scrollback, oldest first.
    pub(crate) fn scrollback(&mut self, lines: usize) -> Vec<String> {
        if self.few_rows().is_some() {
            return Vec::new();
        }
        self.sync();
        self.engine.as_ref().map_or_else(Vec::new, |engine| snapshot::scrollback(&engine.term, lines))
    }

    /// Rows with colours and styles and nothing else.
    pub(crate) fn styled(&mut self) -> Vec<String> {
        self.rows_within(self.size.columns())
    }

    fn rows_within(&mut self, columns: usize) -> Vec<String> {
        self.sync();
        match &self.engine {
            Some(engine) => styled::rows(&engine.term, columns),
            None => vec![String::new(); self.size.lines()],
        }
    }

    /// Bytes that draw on a person's terminal of the same size.
    pub(crate) fn paint(&mut self, what: Paint<'_>, state: &State<'_>) -> Vec<u8> {
        let rows = self.styled();
        let cursor = self.cursor();
        let (style, saved_cursor) = self.engine.as_ref().map_or_else(Default::default, |engine| {
            let saved = engine.term.grid().saved_cursor.point;
            let row = usize::try_from(saved.line.0).unwrap_or(0);
            (styled::cursor_style(&engine.term), (row, saved.column.0))
        });
        let State { modes, charsets, region } = *state;
        let rest = styled::Rest { cursor, saved_cursor, style, region, modes, charsets };
        match what {
            Paint::Whole => styled::repaint(&rows, &rest),
            Paint::Lines => styled::print(&rows, &rest),
            Paint::Row(index, over) => {
                let row = over.or_else(|| rows.get(index).map(String::as_str)).unwrap_or_default();
                styled::repaint_row(index, row, &rest)
            }
        }
    }

    /// Bytes that draw what fits of the screen on a person's terminal of another size.
    pub(crate) fn repaint_within(&mut self, own: Size, modes: &Modes) -> Vec<u8> {
        let rows = self.rows_within(own.columns());
        let cursor = self.cursor();
        styled::window(&rows, own, cursor, modes)
    }
}
