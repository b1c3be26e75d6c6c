//! The person's terminal as something to draw on: what differs from the last picture is written, and nothing else.

use std::fmt::Write;

use outlast_job::Failure;
use outlast_job::client::signals::{Signal, Signals};
use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier};

use crate::human;
use crate::output::Output;
use crate::terminal::{self, Raw, Taken};

/// Another screen, no cursor, and rows that do not wrap.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[2J\x1b[?25l\x1b[?7l";
/// A terminal that knows it shows the picture when it is whole.
const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";

/// The terminal while it is ours. It is given back when this is dropped, and by somebody else should we be killed.
pub(super) struct Canvas {
    pub(super) signals: Signals,
    raw: Raw,
    last: Buffer,
}

impl Canvas {
    /// Takes the terminal.
    pub(super) fn enter(out: &mut Output) -> Result<Self, Failure> {
        let signals = Signals::catch(&[Signal::INT, Signal::TERM, Signal::HUP, Signal::WINCH])
            .map_err(|error| Failure::system("signals can't be caught", error))?;
        let mut raw = Raw::enter()
            .ok_or_else(|| Failure::usage("keys can't be read: this needs a terminal of your own"))?;
        raw.taken(Taken { screen: true, origin: false });
        out.draw(ENTER);
        Ok(Self { signals, raw, last: Buffer::empty(Rect::ZERO) })
    }

    /// Gives the terminal back as it was.
    pub(super) fn leave(mut self, out: &mut Output) {
        self.raw.give_back(Taken { screen: true, origin: false }, out);
    }

    /// The size of the terminal.
    pub(super) fn area() -> Rect {
        terminal::size().map_or(Rect::new(0, 0, 80, 24), |size| Rect::new(0, 0, size.cols, size.rows))
    }

    /// Shows a picture; a cursor in it, if there is one to be seen.
    pub(super) fn show(&mut self, next: Buffer, cursor: Option<(u16, u16)>, out: &mut Output) -> bool {
        let mut text = BEGIN.to_owned();
        if self.last.area != next.area {
            // The terminal has laid out its rows by rules of its own.
            text.push_str("\x1b[0m\x1b[2J");
            self.last = Buffer::empty(next.area);
        }
        text.push_str("\x1b[?25l");
        write_changes(&self.last, &next, &mut text);
        if let Some((x, y)) = cursor {
            let _ = write!(text, "\x1b[{};{}H\x1b[?25h", y + 1, x + 1);
        }
        text.push_str(END);
        self.last = next;
        out.draw(text.as_bytes())
    }
}

/// What makes one picture of another.
fn write_changes(last: &Buffer, next: &Buffer, text: &mut String) {
    let mut at = None;
    let mut style = None;
    for (x, y, cell) in last.diff(next) {
        if at != Some((x, y)) {
            let _ = write!(text, "\x1b[{};{}H", y + 1, x + 1);
        }
        let look = (cell.fg, cell.bg, cell.modifier);
        if style != Some(look) {
            write_style(cell, text);
            style = Some(look);
        }
        text.push_str(cell.symbol());
        // Terminals do not agree on how wide some characters are: after one, the place is said again.
        let is_plain = cell.symbol().is_ascii() && human::width(cell.symbol()) == 1;
        at = is_plain.then_some((x + 1, y));
    }
    text.push_str("\x1b[0m");
}

fn write_style(cell: &Cell, text: &mut String) {
    const MODIFIERS: [(Modifier, u8); 7] = [
        (Modifier::BOLD, 1),
        (Modifier::DIM, 2),
        (Modifier::ITALIC, 3),
        (Modifier::UNDERLINED, 4),
        (Modifier::REVERSED, 7),
        (Modifier::HIDDEN, 8),
        (Modifier::CROSSED_OUT, 9),
    ];
    text.push_str("\x1b[0");
    for (modifier, code) in MODIFIERS {
        if cell.modifier.contains(modifier) {
            let _ = write!(text, ";{code}");
        }
    }
    write_colour(cell.fg, 30, text);
    write_colour(cell.bg, 40, text);
    text.push('m');
}

/// A colour by its number; those that this screen uses have one, and those of a job are indexed or exact.
fn write_colour(colour: Color, ground: u8, text: &mut String) {
    let extended = ground + 8;
    let _ = match colour {
        Color::Reset => Ok(()),
        Color::Indexed(index @ 0..8) => write!(text, ";{}", ground + index),
        Color::Indexed(index @ 8..16) => write!(text, ";{}", ground + 60 + index - 8),
        Color::Indexed(index) => write!(text, ";{extended};5;{index}"),
        Color::Rgb(red, green, blue) => write!(text, ";{extended};2;{red};{green};{blue}"),
        Color::Black => write!(text, ";{ground}"),
        Color::Red => write!(text, ";{}", ground + 1),
        Color::Green => write!(text, ";{}", ground + 2),
        Color::Yellow => write!(text, ";{}", ground + 3),
        Color::Blue => write!(text, ";{}", ground + 4),
        Color::Magenta => write!(text, ";{}", ground + 5),
        Color::Cyan => write!(text, ";{}", ground + 6),
        Color::Gray => write!(text, ";{}", ground + 7),
        Color::DarkGray => write!(text, ";{}", ground + 60),
        Color::LightRed => write!(text, ";{}", ground + 61),
        Color::LightGreen => write!(text, ";{}", ground + 62),
        Color::LightYellow => write!(text, ";{}", ground + 63),
        Color::LightBlue => write!(text, ";{}", ground + 64),
        Color::LightMagenta => write!(text, ";{}", ground + 65),
        Color::LightCyan => write!(text, ";{}", ground + 66),
        Color::White => write!(text, ";{}", ground + 67),
    };
}

#[cfg(test)]
mod tests {
    use ratatui_core::style::Style;

    use super::*;

    #[test]
    fn only_what_differs_is_written_and_wide_characters_keep_their_place() {
        let area = Rect::new(0, 0, 10, 2);
        let (mut before, mut after) = (Buffer::empty(area), Buffer::empty(area));
        before.set_string(0, 0, "same", Style::default());
        after.set_string(0, 0, "same", Style::default());
        after.set_string(2, 1, "日x", Style::default().fg(Color::Red));
        let mut text = String::new();
        write_changes(&before, &after, &mut text);
        assert_eq!(text, "\x1b[2;3H\x1b[0;31m日\x1b[2;5Hx\x1b[0m");
    }
}
