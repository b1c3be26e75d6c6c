//! The screen for a person's eyes: text with colours, and bytes that repaint it.
//!
//! Nothing goes out but SGR, cursor movement and mode switches that are built here: none of it is the job's own bytes.

use std::fmt::Write;

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::Term;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{Color, NamedColor};

use crate::modes::Modes;

/// All rows; each begins and ends in the default style.
pub(super) fn rows(term: &Term<VoidListener>) -> Vec<String> {
    (0..term.screen_lines()).map(|index| row(term, Line(i32::try_from(index).unwrap_or(0)))).collect()
}

fn row(term: &Term<VoidListener>, line: Line) -> String {
    let cells = &term.grid()[line];
    let used = (0..term.columns())
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
        if cell.flags.intersects(Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER) {
            continue;
        }
        let wanted = style(cell);
        if wanted != current {
            let _ = write!(text, "\x1b[0{wanted}m");
            current = wanted;
        }
        text.push(if cell.c == '\t' || cell.c.is_control() { ' ' } else { cell.c });
        text.extend(cell.zerowidth().unwrap_or_default());
    }
    if !current.is_empty() {
        text.push_str("\x1b[0m");
    }
    text
}

/// The SGR parameters of a cell, each with a semicolon before it; empty for the default style.
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

/// Draws rows, cursor and modes on a terminal of the same size, whatever it showed before.
pub(super) fn repaint(rows: &[String], cursor: (usize, usize), style: &str, modes: &Modes) -> Vec<u8> {
    let mut paint = String::from("\x1b[?25l\x1b[r\x1b[?6l\x1b[4l\x1b[0m");
    if modes.alternate_screen {
        paint.push_str("\x1b[?1049h");
    }
    paint.push_str("\x1b[?7l\x1b[H\x1b[2J");
    for (index, row) in rows.iter().enumerate() {
        if !row.is_empty() {
            let _ = write!(paint, "\x1b[{};1H{row}", index + 1);
        }
    }
    let switch = |on: bool| if on { 'h' } else { 'l' };
    for (number, on) in [
        (7, modes.autowrap),
        (1, modes.application_cursor),
        (1000, modes.mouse_click),
        (1002, modes.mouse_drag),
        (1003, modes.mouse_motion),
        (1006, modes.mouse_sgr),
        (2004, modes.bracketed_paste),
    ] {
        let _ = write!(paint, "\x1b[?{number}{}", switch(on));
    }
    paint.push_str(if modes.application_keypad { "\x1b=" } else { "\x1b>" });
    let _ = write!(paint, "\x1b[{};{}H\x1b[0{style}m", cursor.0 + 1, cursor.1 + 1);
    let _ = write!(paint, "\x1b[?25{}", switch(modes.cursor_visible));
    paint.into_bytes()
}
