//! A terminal's screen as a picture: one moment, or a recording that plays by itself wherever a picture is shown.
//!
//! No scripts, nothing from elsewhere: text, rectangles, and for a recording one animation of CSS that moves a strip of
//! screens. A row that is shown more than once is written once.

mod style;

use std::collections::HashMap;
use std::fmt::Write;

use outlast_job::wire::ScreenShot;
use unicode_width::UnicodeWidthChar;

use style::{BACKGROUND, FOREGROUND, Style};

/// The size of a cell and of its letters, in pixels.
const CELL: (f64, f64) = (8.4, 18.0);
const FONT_SIZE: u32 = 14;
/// From the top of a row to the line that letters stand on.
const BASELINE: f64 = 13.5;
/// The frame around the screen.
const MARGIN: f64 = 12.0;
const FONTS: &str =
    "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace";
/// How long the last screen of a recording stays before it begins again, in milliseconds.
const LAST_MS: u64 = 3000;

/// The screen of one moment.
pub(crate) fn still(shot: &ScreenShot) -> String {
    let mut rows = Rows::default();
    let screen = screen(shot, &mut rows);
    let size = (usize::from(shot.size.cols), usize::from(shot.size.rows));
    page(size, "", &rows, &format!("<g>{screen}</g>"))
}

/// A recording that is being made into a picture.
#[derive(Debug, Default)]
pub(crate) struct Strip {
    rows: Rows,
    /// What each screen shows, and from when on.
    screens: Vec<(u64, String)>,
    cols: usize,
    lines: usize,
}

impl Strip {
    /// Adds a screen. One that is like the last is not added again.
    pub(crate) fn add(&mut self, at_ms: u64, shot: &ScreenShot) {
        self.cols = self.cols.max(usize::from(shot.size.cols));
        self.lines = self.lines.max(usize::from(shot.size.rows));
        let screen = screen(shot, &mut self.rows);
        if self.screens.last().is_none_or(|(_, last)| *last != screen) {
            self.screens.push((at_ms, screen));
        }
    }

    /// The picture.
    pub(crate) fn finish(self) -> String {
        let height = self.lines as f64 * CELL.1;
        let begin = self.screens.first().map_or(0, |(at, _)| *at);
        let total = self.screens.last().map_or(0, |(at, _)| *at - begin) + LAST_MS;
        let (mut frames, mut strip) = (String::new(), String::new());
        for (index, (at, screen)) in self.screens.iter().enumerate() {
            let percent = (*at - begin) as f64 * 100.0 / total as f64;
            let top = index as f64 * height;
            let _ = write!(frames, "{}%{{transform:translateY(-{top}px)}}", rounded(percent));
            let _ = write!(strip, "<g transform=\"translate(0 {top})\">{screen}</g>");
        }
        let last = self.screens.len().saturating_sub(1) as f64 * height;
        let seconds = total as f64 / 1000.0;
        let style = format!(
            "@keyframes p{{{frames}100%{{transform:translateY(-{last}px)}}}}\
             .p{{animation:p {seconds}s steps(1,end) infinite}}"
        );
        page((self.cols, self.lines), &style, &self.rows, &format!("<g class=\"p\">{strip}</g>"))
    }
}

/// A number with as many digits as matter.
fn rounded(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Every row that is shown, once.
#[derive(Debug, Default)]
struct Rows {
    known: HashMap<String, usize>,
    drawn: Vec<String>,
}

impl Rows {
    /// The number of a row.
    fn number(&mut self, row: &str) -> usize {
        if let Some(number) = self.known.get(row) {
            return *number;
        }
        let number = self.drawn.len();
        self.drawn.push(draw(row));
        self.known.insert(row.to_owned(), number);
        number
    }
}

/// The rows and the cursor of a screen.
fn screen(shot: &ScreenShot, rows: &mut Rows) -> String {
    let mut text = String::new();
    for (at, row) in shot.rows.iter().enumerate().filter(|(_, row)| !row.is_empty()) {
        let _ = write!(text, "<use href=\"#r{}\" y=\"{}\"/>", rows.number(row), at as f64 * CELL.1);
    }
    if shot.cursor.visible {
        let (x, y) = (f64::from(shot.cursor.col) * CELL.0, f64::from(shot.cursor.row) * CELL.1);
        let _ = write!(text, "<use href=\"#c\" x=\"{}\" y=\"{y}\"/>", rounded(x));
    }
    text
}

/// A row of styled text.
fn draw(row: &str) -> String {
    let (mut ground, mut ink) = (String::new(), String::new());
    for piece in pieces(row) {
        let (x, width) = (rounded(piece.col as f64 * CELL.0), rounded(piece.width as f64 * CELL.0));
        if let Some(colour) = piece.style.behind() {
            let height = CELL.1;
            let _ =
                write!(ground, "<rect x=\"{x}\" width=\"{width}\" height=\"{height}\" fill=\"{colour}\"/>");
        }
        if piece.style.hides_text() || piece.text.trim().is_empty() {
            continue;
        }
        // However wide the letters of the reader's font are, columns stay below each other.
        let length = if piece.width > 1 { format!(" textLength=\"{width}\"") } else { String::new() };
        let attributes = piece.style.attributes();
        let text = escaped(&piece.text);
        let _ = write!(ink, "<text x=\"{x}\" y=\"{BASELINE}\"{length}{attributes}>{text}</text>");
    }
    ground + &ink
}

/// Text of one style that takes the same number of columns for each of its characters.
struct Piece {
    col: usize,
    width: usize,
    text: String,
    style: Style,
}

fn pieces(row: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut style = Style::default();
    let mut col = 0;
    let mut rest = row;
    while let Some(c) = rest.chars().next() {
        if let Some((parameters, after)) = rest.strip_prefix("\x1b[").and_then(|rest| rest.split_once('m')) {
            style.apply(parameters);
            rest = after;
            continue;
        }
        rest = &rest[c.len_utf8()..];
        let wide = c.width().unwrap_or(0);
        match pieces.last_mut() {
            // What has no width belongs to the letter before.
            Some(last) if wide == 0 => last.text.push(c),
            // Wide characters stand alone: fonts do not agree on how wide they are.
            Some(last) if wide == 1 && last.style == style && last.width == last.text.chars().count() => {
                last.text.push(c);
                last.width += 1;
            }
            _ => pieces.push(Piece { col, width: wide.max(1), text: c.to_string(), style: style.clone() }),
        }
        col += wide;
    }
    pieces
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            // XML has no way to write these.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// The whole file.
fn page((cols, lines): (usize, usize), style: &str, rows: &Rows, body: &str) -> String {
    let (width, height) = (cols as f64 * CELL.0, lines as f64 * CELL.1);
    let (outer_width, outer_height) = (rounded(width + 2.0 * MARGIN), rounded(height + 2.0 * MARGIN));
    let mut defs = String::new();
    for (number, row) in rows.drawn.iter().enumerate() {
        let _ = write!(defs, "<g id=\"r{number}\">{row}</g>");
    }
    let (cell_width, cell_height) = CELL;
    let width = rounded(width);
    // Font and colour are those of the picture, which texts inherit: a rule about texts would be stronger than the colour and
    // weight that a text has as attributes. Blanks are not inherited: browsers have a rule of their own for them.
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{outer_width}\" height=\"{outer_height}\" \
         viewBox=\"0 0 {outer_width} {outer_height}\">\
         <style>svg{{font:{FONT_SIZE}px {FONTS};fill:{FOREGROUND}}}text{{white-space:pre}}{style}</style>\
         <defs>{defs}<rect id=\"c\" width=\"{cell_width}\" height=\"{cell_height}\" fill=\"{FOREGROUND}\" \
         fill-opacity=\".6\"/></defs>\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\
         <svg x=\"{MARGIN}\" y=\"{MARGIN}\" width=\"{width}\" height=\"{height}\">{body}</svg></svg>\n"
    )
}

#[cfg(test)]
mod tests {
    use outlast_job::Size;
    use outlast_job::wire::Cursor;

    use super::*;

    fn shot(rows: &[&str]) -> ScreenShot {
        ScreenShot {
            size: Size { cols: 10, rows: 2 },
            rows: rows.iter().map(|row| (*row).to_owned()).collect(),
            scrollback: Vec::new(),
            cursor: Cursor { row: 1, col: 2, visible: true },
            title: String::new(),
            alternate: false,
            bracketed_paste: false,
            application_cursor: false,
            bells: 0,
            offset: 0,
        }
    }

    #[test]
    fn wide_characters_keep_the_columns_after_them_in_place() {
        let pieces = pieces("a\u{65e5}\u{672c}b\x1b[0;31mc\x1b[0m");
        let places: Vec<(usize, usize, &str)> =
            pieces.iter().map(|piece| (piece.col, piece.width, piece.text.as_str())).collect();
        assert_eq!(places, [(0, 1, "a"), (1, 2, "\u{65e5}"), (3, 2, "\u{672c}"), (5, 1, "b"), (6, 1, "c")]);
    }

    #[test]
    fn no_rule_is_stronger_than_the_colour_of_a_text() {
        let svg = still(&shot(&["\x1b[1;32mgreen\x1b[0m"]));
        let rules = svg.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
        assert!(rules.starts_with("svg{font:") && rules.contains("text{white-space:pre}"), "{rules}");
        assert!(svg.contains("fill=\"#98c379\" font-weight=\"bold\">green<"), "{svg}");
    }

    #[test]
    fn what_the_job_printed_is_text_and_nothing_else() {
        let svg = still(&shot(&["<script>&", "\u{7}"]));
        assert!(svg.contains(">&lt;script&gt;&amp;</text>") && !svg.contains("<script"), "{svg}");
        assert!(svg.contains('\u{fffd}'), "{svg}");
    }

    #[test]
    fn a_row_and_a_screen_that_are_shown_twice_are_written_once() {
        let mut strip = Strip::default();
        strip.add(0, &shot(&["same", "one"]));
        strip.add(500, &shot(&["same", "one"]));
        strip.add(1000, &shot(&["same", "two"]));
        let svg = strip.finish();
        assert_eq!(svg.matches(">same</text>").count(), 1, "{svg}");
        assert!(svg.contains("0%{transform:translateY(-0px)}25%{transform:translateY(-36px)}100%"), "{svg}");
    }
}
