//! What the terminal shows now.
//!
//! A real terminal engine knows this exactly, but feeding it costs some fifty times what reading a log costs.
//! So it is created lazily and fed late. Bytes wait in a queue. While they are only lines of text, those that
//! scroll out of screen and scrollback before anyone looks are never fed at all. What is drawn over and over in its place
//! goes to a [canvas] once it is a flood, and only the last of it is fed.
//!
//! Only sequences that draw reach the engine. Strings, queries and everything unknown stop in
//! [`crate::pipeline`], so output cannot make the engine answer, grow or call out.

mod alternate;
mod canvas;
mod corrected;
mod edits;
mod flood;
mod plain_rows;
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
pub(crate) use alternate::Switch;
use canvas::Canvas;
use corrected::Corrected;
pub(crate) use edits::{Area, ReverseWrap};
use queue::Queue;
pub use snapshot::{CursorPosition, Snapshot};

/// The screen, drawn on demand.
pub(crate) struct Screen {
    size: Size,
    scrollback: usize,
    queue: Queue,
    engine: Option<Box<Engine>>,
    /// What modes 47 and 1047 leave behind, which the engine does not know.
    left: alternate::Left,
    /// What a flood draws in place. While it is there, nothing waits in the queue.
    canvas: Option<Box<Canvas>>,
    /// So much was drawn in place since the last look that a canvas pays.
    flooded: bool,
    /// The screen is not needed: nothing is drawn.
    disabled: bool,
}

struct Engine {
    term: Term<VoidListener>,
    parser: Processor,
}

/// What to draw of a screen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Paint<'a> {
    /// All rows, in place of whatever is shown.
    Whole,
    /// All rows, printed as lines from the cursor's line on.
    Lines(usize),
    /// One row, or this text in its place.
    Row(usize, Option<&'a str>),
}

/// The state of a terminal that the engine does not know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State<'a> {
    pub(crate) modes: &'a Modes,
    pub(crate) charsets: &'a Charsets,
    /// First and last row of the scroll region, if it is less than the screen.
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
        Self {
            size,
            scrollback,
            queue: Queue::new(),
            engine: None,
            left: alternate::Left::default(),
            canvas: None,
            flooded: false,
            disabled: false,
        }
    }

    /// A screen that stays empty.
    pub(crate) fn disabled(size: Size) -> Self {
        Self { disabled: true, ..Self::new(size, 0) }
    }

    pub(crate) fn size(&self) -> Size {
        self.size
    }

    /// Adds text, or a sequence that stays within its line.
    pub(crate) fn feed_in_line(&mut self, bytes: &[u8]) {
        self.close_canvas();
        self.queue.push_in_line(bytes, self.size.columns());
        self.flush_if_full();
    }

    /// Ends a line. `at_column_zero` means that the next one certainly starts at the left edge.
    pub(crate) fn line_end(&mut self, bytes: &[u8], at_column_zero: bool) {
        self.close_canvas();
        let rows_to_fill = self.rows_to_fill();
        let waiting = self.queue.line_end(bytes, at_column_zero, rows_to_fill);
        self.feed_first(waiting);
        self.flush_if_full();
    }

    /// Adds whole lines, as they are drawn, that start and end at the left edge.
    pub(crate) fn lines(&mut self, bytes: &[u8], count: usize, terminal: bool) {
        self.close_canvas();
        let rows_to_fill = self.rows_to_fill();
        let columns = self.size.columns();
        let waiting = self.queue.lines((bytes, count), terminal, (columns, rows_to_fill));
        self.feed_first(waiting);
        self.flush_if_full();
    }

    fn feed_first(&mut self, waiting: Option<Vec<u8>>) {
        // As long as nothing was drawn, the cursor is at the left edge.
        if let Some(first) = waiting.filter(|first| self.engine.is_some() || first != b"\r") {
            self.feed(&first);
        }
    }

    /// This many rows push out all earlier ones. The cursor may be at the top, and must first move down.
    fn rows_to_fill(&self) -> usize {
        2 * self.size.lines() + self.scrollback
    }

    /// Adds a sequence that acts beyond its line. Everything before it must be drawn for it to act correctly.
    pub(crate) fn feed_cursor_move(&mut self, bytes: &[u8]) {
        if self.disabled {
            return;
        }
        self.close_canvas();
        self.queue.push_cursor_move(bytes);
        self.flush_if_full();
    }

    /// Bounds the queue.
    fn flush_if_full(&mut self) {
        if self.queue.is_full() {
            self.sync();
            self.flooded = true;
        }
    }

    /// Draws everything that waits in the queue or on the canvas.
    pub(crate) fn sync(&mut self) {
        self.close_canvas();
        self.draw_queue();
    }

    /// The same for a look that changes nothing: the canvas goes on.
    fn sync_for_look(&mut self) {
        if let (Some(canvas), Some(engine)) = (&mut self.canvas, &mut self.engine) {
            canvas.put_into(&mut engine.term);
        }
        self.draw_queue();
    }

    fn draw_queue(&mut self) {
        let bytes = self.queue.take();
        self.feed(&bytes);
    }

    fn feed(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            let engine = self.engine();
            engine.parser.advance(&mut Corrected(&mut engine.term), bytes);
        }
    }

    fn engine(&mut self) -> &mut Engine {
        let (size, scrollback) = (self.size, self.scrollback);
        self.engine.get_or_insert_with(|| {
            let config = Config { scrolling_history: scrollback, ..Config::default() };
            Box::new(Engine { term: Term::new(config, &size, VoidListener), parser: Processor::new() })
        })
    }

    /// Resizes the screen and lays its text out again.
    pub(crate) fn resize(&mut self, size: Size) {
        self.sync();
        self.size = size;
        if let Some(engine) = &mut self.engine {
            engine.term.resize(size);
        }
    }

    /// Row and column of the cursor, from 0.
    pub(crate) fn cursor(&mut self) -> (usize, usize) {
        if let Some(canvas) = &self.canvas {
            return canvas.cursor();
        }
        self.draw_queue();
        self.engine.as_ref().map_or((0, 0), |engine| {
            let point = engine.term.grid().cursor.point;
            (usize::try_from(point.line.0).unwrap_or(0), point.column.0)
        })
    }

    /// The screen as text.
    pub(crate) fn snapshot(&mut self, modes: &Modes, title: &str, bells: u64) -> Snapshot {
        let mut snapshot = Snapshot::empty(self.size, modes, title, bells);
        if let Some(rows) = self.plain_rows() {
            snapshot.show_plain(&rows);
            return snapshot;
        }
        self.sync_for_look();
        if let Some(engine) = &self.engine {
            snapshot.show(&engine.term);
        }
        snapshot
    }

    /// All rows up to the cursor's, if they are known without an engine.
    fn plain_rows(&self) -> Option<Vec<&str>> {
        if self.engine.is_some() { None } else { plain_rows::rows(self.queue.only_lines()?, self.size) }
    }

    /// The newest `lines` rows of scrollback, oldest first.
    pub(crate) fn scrollback(&mut self, lines: usize) -> Vec<String> {
        if self.plain_rows().is_some() {
            return Vec::new();
        }
        self.sync_for_look();
        self.engine.as_ref().map_or_else(Vec::new, |engine| snapshot::scrollback(&engine.term, lines))
    }

    /// The rows with colours and styles, without other sequences.
    pub(crate) fn styled(&mut self) -> Vec<String> {
        self.rows_within(self.size.columns())
    }

    fn rows_within(&mut self, columns: usize) -> Vec<String> {
        self.sync_for_look();
        match &self.engine {
            Some(engine) => styled::rows(&engine.term, columns),
            None => vec![String::new(); self.size.lines()],
        }
    }

    /// The cursor and the saved one, with their styles and character sets, as the engine has them.
    pub(crate) fn cursors(&mut self) -> impl PartialEq + use<> {
        self.sync_for_look();
        self.engine.as_ref().map_or_else(Default::default, |engine| {
            let grid = engine.term.grid();
            (grid.cursor.clone(), grid.saved_cursor.clone())
        })
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
            Paint::Lines(first) => styled::print(&rows[first.min(rows.len())..], &rest),
            Paint::Row(index, over) => {
                let row = over.or_else(|| rows.get(index).map(String::as_str)).unwrap_or_default();
                styled::repaint_row(index, row, &rest)
            }
        }
    }

    /// Bytes that draw the part of the screen that fits on a person's terminal of another size.
    pub(crate) fn repaint_within(&mut self, own: Size, modes: &Modes) -> Vec<u8> {
        let rows = self.rows_within(own.columns());
        let cursor = self.cursor();
        styled::window(&rows, own, cursor, modes)
    }
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
