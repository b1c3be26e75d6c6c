//! The screen for a person: text with colours, and bytes that repaint it.
//!
//! The output contains only SGR, cursor moves and mode switches that are built here, never bytes of the job.

use std::fmt::Write;

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::Term;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{Color, NamedColor};

use super::snapshot::{Drawn, drawn};
use crate::charset::Charsets;
use crate::modes::Modes;
use crate::size::Size;

/// All rows, cut to `columns`. Each starts and ends in the default style.
pub(super) fn rows(term: &Term<VoidListener>, columns: usize) -> Vec<String> {
    let columns = columns.min(term.columns());
    (0..term.screen_lines())
        .map(|index| row(term, Line(i32::try_from(index).unwrap_or(0)), columns))
        .collect()
}

fn row(term: &Term<VoidListener>, line: Line, columns: usize) -> String {
    let cells = &term.grid()[line];
    let used = (0..columns)
        .rev()
        .find(|&col| {
            let cell = &cells[Column(col)];
            !matches!(cell.c, ' ' | '\t') || !style(cell).is_empty() || cell.zerowidth().is_some()
        })
        .map_or(0, |last| last + 1);
    let mut text = String::new();
    let mut current = String::new();
    for col in 0..used {
        let cell = &cells[Column(col)];
        let drawn = drawn(cells, col, columns);
        if matches!(drawn, Drawn::Nothing) {
            continue;
        }
        let wanted = style(cell);
        if wanted != current {
            let _ = write!(text, "\x1b[0{wanted}m");
            current = wanted;
        }
        if matches!(drawn, Drawn::Blank) {
            text.push(' ');
            continue;
        }
        text.push(if cell.c == '\t' || cell.c.is_control() { ' ' } else { cell.c });
        text.extend(cell.zerowidth().unwrap_or_default());
    }
    if !current.is_empty() {
        text.push_str("\x1b[0m");
    }
    text
}

/// The SGR parameters of a cell, each after a semicolon; empty for the default style.
fn style(cell: &Cell) -> String {
    let mut codes = String::new();
    for (flag, code) in [
        (Flags::BOLD, ";1"),
        (Flags::DIM, ";2"),
        (Flags::ITALIC, ";3"),
        (Flags::INVERSE, ";7"),
        (Flags::HIDDEN, ";8"),
        (Flags::STRIKEOUT, ";9"),
    ] {
        if cell.flags.contains(flag) {
            codes.push_str(code);
        }
    }
    if cell.flags.intersects(Flags::ALL_UNDERLINES) {
        codes.push_str(";4");
    }
    colour(cell.fg, 30, &mut codes);
    colour(cell.bg, 40, &mut codes);
    codes
}

fn colour(colour: Color, base: u8, codes: &mut String) {
    let _ = match colour {
        Color::Named(name) => {
            let index = name as usize;
            match index {
                0..=7 => write!(codes, ";{}", usize::from(base) + index),
                8..=15 => write!(codes, ";{}", usize::from(base) + 52 + index),
                _ if name == NamedColor::Foreground || name == NamedColor::Background => Ok(()),
                _ => Ok(()),
            }
        }
        Color::Indexed(index) => write!(codes, ";{};5;{index}", base + 8),
        Color::Spec(rgb) => write!(codes, ";{};2;{};{};{}", base + 8, rgb.r, rgb.g, rgb.b),
    };
}

/// The style that the next printed text will have.
pub(super) fn cursor_style(term: &Term<VoidListener>) -> String {
    style(&term.grid().cursor.template)
}

/// What a repaint needs besides the rows.
pub(super) struct Rest<'a> {
    pub(super) cursor: (usize, usize),
    pub(super) saved_cursor: (usize, usize),
    /// The style of the next printed text.
    pub(super) style: String,
    /// First and last row of the scroll region, if it is less than the screen.
    pub(super) region: Option<(usize, usize)>,
    pub(super) modes: &'a Modes,
    pub(super) charsets: &'a Charsets,
}

/// Brings a terminal into a known state, whatever it was doing. This also moves the cursor home.
const CLEAN: &str = "\x1b[?25l\x0f\x1b(B\x1b)B\x1b[r\x1b[?6l\x1b[4l\x1b[0m\x1b[?7l";

/// Draws rows, cursor and modes on a terminal of the same size, whatever it showed before.
pub(super) fn repaint(rows: &[String], rest: &Rest<'_>) -> Vec<u8> {
    let mut paint = String::new();
    // This comes first: it saves the cursor that the normal screen restores later.
    paint.push_str(if rest.modes.alternate_screen { "\x1b[?1049h" } else { "\x1b[?1049l" });
    paint.push_str(CLEAN);
    paint.push_str("\x1b[H\x1b[2J");
    for (index, row) in rows.iter().enumerate() {
        if !row.is_empty() {
            let _ = write!(paint, "\x1b[{};1H{row}", index + 1);
        }
    }
    finish(paint, rest)
}

/// Prints all rows from the cursor's line on, as a command prints lines, on a terminal of the same size. What
/// it showed before scrolls up into its history. The rows fill the screen exactly, so each is at the same
/// place as in the job.
pub(super) fn print(rows: &[String], rest: &Rest<'_>) -> Vec<u8> {
    let mut paint = String::from("\x1b[?25l\x0f\x1b(B\x1b)B\x1b[4l\x1b[0m\x1b[?7l\r\x1b[J");
    paint.push_str(&rows.join("\r\n"));
    finish(paint, rest)
}

/// Draws one row, or something else in its place, on a terminal that shows all the others.
pub(super) fn repaint_row(index: usize, row: &str, rest: &Rest<'_>) -> Vec<u8> {
    finish(format!("{CLEAN}\x1b[{};1H\x1b[2K{row}\x1b[0m", index + 1), rest)
}

/// Adds the cursor and the modes after the rows.
fn finish(mut paint: String, rest: &Rest<'_>) -> Vec<u8> {
    let Rest { modes, region, .. } = *rest;
    let place = |(row, col): (usize, usize)| format!("\x1b[{};{}H", row + 1, col + 1);
    // Some terminals have one saved cursor for both screens: on the alternate one, theirs is left alone if it can be.
    if !modes.alternate_screen || rest.saved_cursor != (0, 0) {
        let _ = write!(paint, "{}\x1b7", place(rest.saved_cursor));
    }
    keys(modes, &mut paint);
    if let Some((top, bottom)) = region {
        let _ = write!(paint, "\x1b[{};{}r", top + 1, bottom + 1);
    }
    let (mut row, col) = rest.cursor;
    if modes.origin {
        paint.push_str("\x1b[?6h");
        row -= region.map_or(0, |(top, _)| top).min(row);
    }
    let _ = write!(paint, "{}\x1b[0{}m", place((row, col)), rest.style);
    if modes.insert {
        paint.push_str("\x1b[4h");
    }
    let switch = |on: bool| if on { 'h' } else { 'l' };
    let _ = write!(paint, "\x1b[?7{}\x1b[?25{}", switch(modes.autowrap), switch(modes.cursor_visible));
    let mut paint = paint.into_bytes();
    rest.charsets.prelude(&mut paint);
    paint
}

/// The modes that affect how keys and the mouse are sent.
fn keys(modes: &Modes, paint: &mut String) {
    for (number, on) in [
        (1, modes.application_cursor),
        (1000, modes.mouse_click),
        (1002, modes.mouse_drag),
        (1003, modes.mouse_motion),
        (1006, modes.mouse_sgr),
        (1004, modes.focus_events),
        (2004, modes.bracketed_paste),
    ] {
        let _ = write!(paint, "\x1b[?{number}{}", if on { 'h' } else { 'l' });
    }
    paint.push_str(if modes.application_keypad { "\x1b=" } else { "\x1b>" });
}

/// Draws the part of a screen around its cursor on a terminal of another size. Rows are cut to its width and
/// replace what it showed before.
pub(super) fn window(rows: &[String], own: Size, cursor: (usize, usize), modes: &Modes) -> Vec<u8> {
    let height = own.lines();
    let first = (cursor.0 + 1).saturating_sub(height);
    let mut paint = format!("\x1b[?2026h{CLEAN}");
    for (index, row) in rows.iter().skip(first).take(height).enumerate() {
        let _ = write!(paint, "\x1b[{};1H\x1b[2K{row}", index + 1);
    }
    if rows.len() < height {
        let _ = write!(paint, "\x1b[{};1H\x1b[J", rows.len() + 1);
    }
    keys(modes, &mut paint);
    let col = cursor.1.min(own.columns() - 1);
    let visible = if modes.cursor_visible { 'h' } else { 'l' };
    let _ = write!(paint, "\x1b[{};{}H\x1b[?25{visible}\x1b[?2026l", cursor.0 - first + 1, col + 1);
    paint.into_bytes()
}
