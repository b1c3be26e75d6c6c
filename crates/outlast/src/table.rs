//! Tables that fit a terminal: long cells are cut, and what does not fit at all is left out, least important first.

use crate::human::{cut, width};

/// Two blanks between columns.
const GAP: usize = 2;
/// Where the width is not known, no cell is longer than this.
const MAX_CELL: usize = 200;

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    /// What stands above it.
    pub(crate) title: &'static str,
    /// It is not cut below this.
    pub(crate) min: usize,
    /// Those with a higher number are left out first; 0 is never left out.
    pub(crate) leave_out: u8,
}

/// The widths of the columns, in their order; 0 for one that is left out.
pub(crate) fn fit(columns: &[Column], rows: &[Vec<String>], total: Option<usize>) -> Vec<usize> {
    let natural: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| {
            let longest = rows.iter().map(|row| width(&row[at])).max().unwrap_or(0);
            // An empty column says nothing.
            if longest == 0 { 0 } else { longest.max(width(column.title)).min(MAX_CELL) }
        })
        .collect();
    let Some(total) = total else { return natural };
    let mut widths = natural.clone();
    loop {
        shrink(columns, &mut widths, total);
        if taken(&widths) <= total {
            return widths;
        }
        let last = columns
            .iter()
            .enumerate()
            .filter(|(at, column)| widths[*at] > 0 && column.leave_out > 0)
            .max_by_key(|(_, column)| column.leave_out);
        let Some((out, _)) = last else { return widths };
        // The others may have their room back.
        let gone: Vec<bool> = widths.iter().map(|width| *width == 0).collect();
        widths.clone_from(&natural);
        for (at, width) in widths.iter_mut().enumerate() {
            if gone[at] || at == out {
                *width = 0;
            }
        }
    }
}

/// Takes columns from the widest that may still be cut, until all fit or none can be cut.
fn shrink(columns: &[Column], widths: &mut [usize], total: usize) {
    while taken(widths) > total {
        let widest =
            (0..widths.len()).filter(|at| widths[*at] > columns[*at].min).max_by_key(|at| widths[*at]);
        let Some(widest) = widest else { return };
        widths[widest] -= 1;
    }
}

fn taken(widths: &[usize]) -> usize {
    let shown = widths.iter().filter(|width| **width > 0);
    shown.map(|width| width + GAP).sum::<usize>().saturating_sub(GAP)
}

/// One row; `style` may wrap a cell, by its number, in what takes no columns.
pub(crate) fn line(cells: &[String], widths: &[usize], style: impl Fn(usize, &str) -> String) -> String {
    let mut text = String::new();
    let mut blanks = 0;
    for (at, (cell, wide)) in cells.iter().zip(widths).enumerate().filter(|(_, (_, wide))| **wide > 0) {
        let cell = cut(cell, *wide);
        if !cell.is_empty() {
            text.extend(std::iter::repeat_n(' ', blanks));
            blanks = 0;
            text.push_str(&style(at, &cell));
        }
        blanks += wide - width(&cell).min(*wide) + GAP;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[
        Column { title: "A", min: 3, leave_out: 0 },
        Column { title: "B", min: 5, leave_out: 2 },
        Column { title: "C", min: 5, leave_out: 1 },
    ];

    fn rows() -> Vec<Vec<String>> {
        vec![vec!["one".into(), "x".repeat(30), "y".repeat(20)]]
    }

    #[test]
    fn no_row_is_wider_than_the_terminal() {
        for total in [3, 10, 13, 14, 15, 24, 40, 200] {
            let widths = fit(COLUMNS, &rows(), Some(total));
            let line = line(&rows()[0], &widths, |_, cell| cell.to_owned());
            assert!(width(&line) <= total, "{total}: {line:?}");
        }
    }

    #[test]
    fn what_matters_least_goes_first_and_the_rest_has_its_room() {
        assert_eq!(fit(COLUMNS, &rows(), Some(200)), [3, 30, 20]);
        assert_eq!(fit(COLUMNS, &rows(), Some(17)), [3, 5, 5]);
        assert_eq!(fit(COLUMNS, &rows(), Some(14)), [3, 0, 9]);
        assert_eq!(fit(COLUMNS, &rows(), None), [3, 30, 20]);
    }
}
