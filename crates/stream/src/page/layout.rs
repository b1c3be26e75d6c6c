//! How a line of text fills rows of a given width: where it wraps, and how many rows it takes.

use super::row::{Row, width};

/// A row made from text, and where in the text it begins.
#[derive(Debug)]
pub(crate) struct LaidOut {
    pub(crate) row: Row,
    pub(crate) start: usize,
}

/// Walks through text as a terminal would print it.
struct Walk {
    cols: usize,
    col: usize,
    pending: bool,
}

enum Step {
    Put { col: usize, width: usize, wrapped: bool, filler: bool },
    Mark { col: usize },
    Tab { col: usize },
    TabWrap,
    Nothing,
}

impl Walk {
    fn step(&mut self, character: char) -> Step {
        if character == '\t' {
            if self.pending {
                (self.col, self.pending) = (0, false);
                return Step::TabWrap;
            }
            let col = self.col;
            self.col = ((col / 8 + 1) * 8).min(self.cols - 1);
            return Step::Tab { col };
        }
        let Some(width) = width(character) else { return Step::Nothing };
        if width == 0 {
            return Step::Mark { col: if self.pending { self.col } else { self.col.saturating_sub(1) } };
        }
        let mut wrapped = self.pending;
        if wrapped {
            (self.col, self.pending) = (0, false);
        }
        let filler = width == 2 && self.col + 1 >= self.cols;
        if filler {
            wrapped = true;
            self.col = 0;
        }
        let col = self.col;
        if col + width < self.cols {
            self.col += width;
        } else {
            self.col = self.cols - 1;
            self.pending = true;
        }
        Step::Put { col, width, wrapped, filler }
    }
}

/// How many rows a line takes.
pub(crate) fn rows_of(text: &[u8], cols: usize) -> usize {
    if text.len() <= cols && text.is_ascii() && memchr::memchr(b'\t', text).is_none() {
        return 1;
    }
    let text = std::str::from_utf8(text).unwrap_or_default();
    let mut walk = Walk { cols, col: 0, pending: false };
    let mut rows = 1;
    for character in text.chars() {
        if matches!(walk.step(character), Step::Put { wrapped: true, .. } | Step::TabWrap) {
            rows += 1;
        }
    }
    rows
}

/// Where the last `count` rows of a line start in its text, and how many rows these are (fewer if the line is
/// short).
pub(crate) fn row_start_from_end(text: &[u8], cols: usize, count: usize) -> (usize, usize) {
    if text.is_ascii() && memchr::memchr(b'\t', text).is_none() {
        let rows = text.len().div_ceil(cols).max(1);
        let kept = count.min(rows);
        return ((rows - kept) * cols, kept);
    }
    let text = std::str::from_utf8(text).unwrap_or_default();
    let mut walk = Walk { cols, col: 0, pending: false };
    let mut starts = std::collections::VecDeque::from([0]);
    for (at, character) in text.char_indices() {
        let start = match walk.step(character) {
            Step::Put { wrapped: true, .. } => at,
            Step::TabWrap => at + 1,
            Step::Put { .. } | Step::Mark { .. } | Step::Tab { .. } | Step::Nothing => continue,
        };
        starts.push_back(start);
        if starts.len() > count {
            starts.pop_front();
        }
    }
    (starts.front().copied().unwrap_or(text.len()), starts.len().min(count))
}

/// Lays a line out on rows. Returns the rows, the cursor's column after the text, and whether the next
/// character would start a new row. There is always at least one row.
pub(crate) fn lay_out(text: &[u8], cols: usize) -> (Vec<LaidOut>, usize, bool) {
    if text.len() < cols && text.is_ascii() && memchr::memchr(b'\t', text).is_none() {
        return (vec![LaidOut { row: Row::of_ascii(text), start: 0 }], text.len(), false);
    }
    let text = std::str::from_utf8(text).unwrap_or_default();
    let mut walk = Walk { cols, col: 0, pending: false };
    let mut rows: Vec<LaidOut> = Vec::new();
    let mut row = Row::default();
    let mut start = 0;
    for (at, character) in text.char_indices() {
        match walk.step(character) {
            Step::Put { col, width, wrapped, filler } => {
                if wrapped {
                    if filler {
                        row.set_filler(cols);
                    }
                    row.set_wrapped(cols);
                    rows.push(LaidOut { row: std::mem::take(&mut row), start });
                    start = at;
                }
                row.put(col, character, width);
            }
            Step::Mark { col } => row.add_mark(col, character),
            Step::Tab { col } => row.put_tab(col),
            Step::TabWrap => {
                row.set_wrapped(cols);
                rows.push(LaidOut { row: std::mem::take(&mut row), start });
                start = at + 1;
            }
            Step::Nothing => {}
        }
    }
    rows.push(LaidOut { row, start });
    (rows, walk.col, walk.pending)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str, cols: usize) -> Vec<String> {
        let (rows, ..) = lay_out(text.as_bytes(), cols);
        assert_eq!(rows.len(), rows_of(text.as_bytes(), cols), "{text}");
        rows.iter()
            .map(|laid| {
                let mut bytes = Vec::new();
                laid.row.push_text(cols, &mut bytes);
                String::from_utf8(bytes).unwrap()
            })
            .collect()
    }

    #[test]
    fn a_full_row_wraps_only_when_another_character_follows() {
        assert_eq!(texts("abcd", 4), ["abcd"]);
        assert_eq!(texts("abcde", 4), ["abcd", "e"]);
        assert_eq!(texts("", 4), [""]);
    }

    #[test]
    fn a_wide_character_that_does_not_fit_wraps_whole() {
        assert_eq!(texts("abc漢d", 4), ["abc", "漢d"]);
        assert_eq!(texts("漢漢漢", 4), ["漢漢", "漢"]);
    }

    #[test]
    fn tabs_and_combining_marks_survive() {
        assert_eq!(texts("a\tb\te\u{301}", 40), ["a\tb\te\u{301}"]);
        assert_eq!(texts("a\t", 40), ["a\t"]);
    }

    #[test]
    fn rows_begin_where_the_text_says() {
        let (rows, col, pending) = lay_out("abcdefgh".as_bytes(), 4);
        assert_eq!(rows.iter().map(|laid| laid.start).collect::<Vec<_>>(), [0, 4]);
        assert_eq!((col, pending), (3, true));
    }
}
