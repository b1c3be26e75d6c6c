//! A row of a job's screen, with its colours, as pieces of text that can be drawn.

use ratatui_core::style::{Color, Modifier, Style};

/// Text of one style.
pub(super) type Piece = (String, Style);

/// The pieces of a styled row. Without colours, what is bold or reversed stays so.
pub(super) fn pieces(row: &str, colour: bool) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut style = Style::default();
    let mut rest = row;
    while let Some(first) = rest.chars().next() {
        if let Some((parameters, after)) = rest.strip_prefix("\x1b[").and_then(|rest| rest.split_once('m')) {
            style = applied(style, parameters);
            rest = after;
            continue;
        }
        // Nothing but colours comes from a screen; should it, it is not passed on.
        let after = first.len_utf8();
        let end = rest[after..].find('\x1b').map_or(rest.len(), |at| at + after);
        let drawn = if colour { style } else { Style { fg: None, bg: None, ..style } };
        pieces.push((rest[..end].to_owned(), drawn));
        rest = &rest[end..];
    }
    pieces
}

fn applied(before: Style, parameters: &str) -> Style {
    let mut style = before;
    let mut codes = parameters.split(';').map(|code| code.parse::<u8>().unwrap_or(0));
    while let Some(code) = codes.next() {
        style = match code {
            0 => Style::default(),
            1 => style.add_modifier(Modifier::BOLD),
            2 => style.add_modifier(Modifier::DIM),
            3 => style.add_modifier(Modifier::ITALIC),
            4 => style.add_modifier(Modifier::UNDERLINED),
            7 => style.add_modifier(Modifier::REVERSED),
            8 => style.add_modifier(Modifier::HIDDEN),
            9 => style.add_modifier(Modifier::CROSSED_OUT),
            30..=37 => style.fg(Color::Indexed(code - 30)),
            90..=97 => style.fg(Color::Indexed(code - 82)),
            40..=47 => style.bg(Color::Indexed(code - 40)),
            100..=107 => style.bg(Color::Indexed(code - 92)),
            38 => Style { fg: extended(&mut codes), ..style },
            48 => Style { bg: extended(&mut codes), ..style },
            _ => style,
        };
    }
    style
}

/// A colour of 256, or of all.
fn extended(codes: &mut impl Iterator<Item = u8>) -> Option<Color> {
    match codes.next()? {
        5 => Some(Color::Indexed(codes.next()?)),
        2 => Some(Color::Rgb(codes.next()?, codes.next()?, codes.next()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_read_and_left_out_where_they_are_not_wanted() {
        let row = "a\x1b[0;1;31mb\x1b[0;38;5;200;48;2;1;2;3mc\x1b[0md";
        let coloured = pieces(row, true);
        let texts: Vec<&str> = coloured.iter().map(|piece| piece.0.as_str()).collect();
        assert_eq!(texts, ["a", "b", "c", "d"]);
        assert_eq!(coloured[1].1, Style::default().add_modifier(Modifier::BOLD).fg(Color::Indexed(1)));
        assert_eq!(coloured[2].1, Style::default().fg(Color::Indexed(200)).bg(Color::Rgb(1, 2, 3)));
        assert_eq!(coloured[3].1, Style::default());
        let plain = pieces(row, false);
        assert!(plain.iter().all(|(_, style)| style.fg.is_none() && style.bg.is_none()));
        assert_eq!(plain[1].1.add_modifier, Modifier::BOLD);
    }

    #[test]
    fn what_is_no_colour_does_not_stop_it() {
        let text: String =
            pieces("日本\x1b[0;31mé\x1b]0;x\x07日", true).into_iter().map(|piece| piece.0).collect();
        assert!(text.contains('é') && text.contains('日'));
    }
}
