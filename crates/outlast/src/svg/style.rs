//! Styles of terminal text: read from the colour sequences of a styled row, and written as SVG.

/// The first 16 colours, as most terminals have them on a dark ground.
const NAMED: [&str; 16] = [
    "#1c1f26", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#c8ccd4", "#6b7280",
    "#ff7b86", "#b5e08f", "#ffd68a", "#7cc4ff", "#dd94f5", "#6fd3df", "#ffffff",
];
/// What text is drawn with, and on.
pub(super) const FOREGROUND: &str = "#c8ccd4";
pub(super) const BACKGROUND: &str = "#1c1f26";

/// How a piece of text looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Style {
    foreground: Option<String>,
    background: Option<String>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
    strike: bool,
    inverse: bool,
    hidden: bool,
}

impl Style {
    /// Applies the parameters of one sequence, as in `0;1;38;5;12`.
    pub(super) fn apply(&mut self, parameters: &str) {
        let mut codes = parameters.split(';').map(|code| code.parse::<u16>().unwrap_or(0));
        while let Some(code) = codes.next() {
            match code {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                3 => self.italic = true,
                4 => self.underline = true,
                7 => self.inverse = true,
                8 => self.hidden = true,
                9 => self.strike = true,
                30..=37 => self.foreground = named(code - 30),
                90..=97 => self.foreground = named(code - 82),
                38 => self.foreground = extended(&mut codes),
                40..=47 => self.background = named(code - 40),
                100..=107 => self.background = named(code - 92),
                48 => self.background = extended(&mut codes),
                _ => {}
            }
        }
    }

    /// The colour behind the text, if it is not the ground.
    pub(super) fn behind(&self) -> Option<&str> {
        if self.inverse {
            return Some(self.foreground.as_deref().unwrap_or(FOREGROUND));
        }
        self.background.as_deref()
    }

    /// Whether nothing of the text is to be seen.
    pub(super) fn hides_text(&self) -> bool {
        self.hidden
    }

    /// The attributes of a text element.
    pub(super) fn attributes(&self) -> String {
        let ink = if self.inverse {
            self.background.as_deref().or(Some(BACKGROUND))
        } else {
            self.foreground.as_deref()
        };
        let mut text = String::new();
        let mut add = |attribute: &str| {
            text.push(' ');
            text.push_str(attribute);
        };
        if let Some(ink) = ink {
            add(&format!("fill=\"{ink}\""));
        }
        if self.bold {
            add("font-weight=\"bold\"");
        }
        if self.dim {
            add("opacity=\".6\"");
        }
        if self.italic {
            add("font-style=\"italic\"");
        }
        match (self.underline, self.strike) {
            (true, true) => add("text-decoration=\"underline line-through\""),
            (true, false) => add("text-decoration=\"underline\""),
            (false, true) => add("text-decoration=\"line-through\""),
            (false, false) => {}
        }
        text
    }
}

fn named(index: u16) -> Option<String> {
    NAMED.get(usize::from(index)).map(|colour| (*colour).to_owned())
}

/// A colour of 256, or of all.
fn extended(codes: &mut impl Iterator<Item = u16>) -> Option<String> {
    match codes.next()? {
        5 => Some(indexed(codes.next()?)),
        2 => {
            let (red, green, blue) = (codes.next()?, codes.next()?, codes.next()?);
            Some(format!("#{red:02x}{green:02x}{blue:02x}"))
        }
        _ => None,
    }
}

/// The colours after the named ones: a cube of 6 by 6 by 6, and 24 greys.
fn indexed(index: u16) -> String {
    let step = |level: u16| if level == 0 { 0 } else { 55 + 40 * level };
    match index {
        0..16 => NAMED[usize::from(index)].to_owned(),
        16..232 => {
            let cube = index - 16;
            format!("#{:02x}{:02x}{:02x}", step(cube / 36), step(cube / 6 % 6), step(cube % 6))
        }
        _ => {
            let grey = 8 + 10 * (index.min(255) - 232);
            format!("#{grey:02x}{grey:02x}{grey:02x}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(parameters: &str) -> Style {
        let mut style = Style::default();
        style.apply(parameters);
        style
    }

    #[test]
    fn every_kind_of_colour_is_understood() {
        assert_eq!(of("0;31").attributes(), " fill=\"#e06c75\"");
        assert_eq!(of("0;38;5;196").attributes(), " fill=\"#ff0000\"");
        assert_eq!(of("0;38;5;244").attributes(), " fill=\"#808080\"");
        assert_eq!(of("0;38;2;1;2;255").attributes(), " fill=\"#0102ff\"");
        assert_eq!(of("0;104").behind(), Some("#7cc4ff"));
        assert_eq!(of("0;7").behind(), Some(FOREGROUND));
        assert_eq!(
            of("0;1;4;9").attributes(),
            " font-weight=\"bold\" text-decoration=\"underline line-through\""
        );
        assert_eq!(of("1;31;0"), Style::default());
    }
}
