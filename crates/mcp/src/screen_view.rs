//! A terminal's screen as a model reads it: rows with their numbers, without frames and blank rows, and with a mark at what
//! is selected. Programs show a selection by colour, reverse video or the cursor alone; as plain text it would be lost.

use outlast_job::wire::ScreenShot;

/// What stands around a selected item.
const SELECTED: (&str, &str) = ("»", "«");

/// A row as it is shown: its number, from 1, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    number: usize,
    text: String,
}

/// Which rows of a screen are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShownRows {
    /// All that say something.
    All(Vec<Row>),
    /// Those that are new.
    Changed(Vec<Row>),
}

/// A character on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cell {
    text: char,
    /// What is behind it: its background, or its own colour where the two are swapped.
    ground: String,
}

/// The rows of a screen that say something. `styled` has the same rows with their colours; `menu` marks the row of the
/// cursor where nothing else is marked.
pub(crate) fn rows(styled: &ScreenShot, menu: bool) -> Vec<Row> {
    let cells: Vec<Vec<Cell>> = styled.rows.iter().map(|row| cells(row)).collect();
    let mut marks = selections(&cells);
    if menu && marks.iter().all(Option::is_none) && styled.cursor.visible {
        let (row, column) = (usize::from(styled.cursor.row), usize::from(styled.cursor.col));
        if let (Some(item), Some(mark)) = (item_at(&cells, row, column), marks.get_mut(row)) {
            *mark = Some(item);
        }
    }
    let mut rows: Vec<Row> = Vec::new();
    for (index, (row, mark)) in cells.iter().zip(&marks).enumerate() {
        let text = row_text(row, *mark);
        if !is_frame(&text) {
            rows.push(Row { number: index + 1, text });
        }
    }
    let indent = |text: &str| text.len() - text.trim_start_matches(' ').len();
    let common = rows.iter().map(|row| indent(&row.text)).min().unwrap_or(0);
    rows.iter_mut().for_each(|row| row.text = row.text.split_off(common));
    rows
}

/// The text of a screen with colours, as it is.
pub(crate) fn plain(styled: &ScreenShot) -> String {
    let row =
        |row: &String| cells(row).iter().map(|cell| cell.text).collect::<String>().trim_end().to_owned();
    let rows: Vec<String> = styled.rows.iter().map(row).collect();
    crate::printed::shown(rows.join("\n").trim_end())
}

/// Rows as lines.
pub(crate) fn lines<'a>(rows: impl IntoIterator<Item = &'a Row>) -> String {
    let lines: Vec<String> = rows.into_iter().map(|row| format!("{} {}", row.number, row.text)).collect();
    lines.join("\n")
}

/// Those rows that were not shown before; a row that is empty now has only its number.
pub(crate) fn changed(before: &[Row], now: &[Row]) -> Vec<Row> {
    let mut changed: Vec<Row> = now.iter().filter(|row| !before.contains(row)).cloned().collect();
    let gone = before.iter().filter(|old| !now.iter().any(|row| row.number == old.number));
    changed.extend(gone.map(|old| Row { number: old.number, text: String::new() }));
    changed.sort_by_key(|row| row.number);
    changed
}

/// Whether a row is only there to be looked at: a part of a frame, or the marks of an editor below the text.
fn is_frame(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || is_drawn(c)) || text.trim() == "~"
}

fn is_drawn(c: char) -> bool {
    ('\u{2500}'..='\u{259f}').contains(&c)
}

/// A row's text without the frame around it, and with its mark.
fn row_text(row: &[Cell], mark: Option<(usize, usize)>) -> String {
    let plain: String = row.iter().map(|cell| cell.text).collect();
    let is_edge = |c: char| is_drawn(c) || c == ' ';
    let end = plain.trim_end_matches(is_edge).chars().count();
    let lead = plain.chars().take_while(|c| is_edge(*c)).count();
    let mut text = String::new();
    for (at, cell) in row[..end.max(mark.map_or(0, |mark| mark.1))].iter().enumerate() {
        if mark.is_some_and(|mark| mark.0 == at) {
            text.push_str(SELECTED.0);
        }
        // What is left of a frame keeps its place, so that columns stay below each other.
        text.push(if at < lead { ' ' } else { cell.text });
        if mark.is_some_and(|mark| mark.1 == at + 1) {
            text.push_str(SELECTED.1);
        }
    }
    text.truncate(text.trim_end().len());
    crate::printed::shown(&text)
}

/// The text of a row with its colours, cell by cell.
fn cells(styled: &str) -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut ground = String::new();
    let mut rest = styled;
    while let Some(c) = rest.chars().next() {
        if let Some((codes, after)) = rest.strip_prefix("\x1b[").and_then(|rest| rest.split_once('m')) {
            ground = ground_of(codes);
            rest = after;
            continue;
        }
        cells.push(Cell { text: c, ground: ground.clone() });
        rest = &rest[c.len_utf8()..];
    }
    cells
}

/// What a style, as our screens write it, puts behind the text.
fn ground_of(codes: &str) -> String {
    let (mut swapped, mut front, mut back) = (false, String::new(), String::new());
    let mut codes = codes.split(';');
    while let Some(code) = codes.next() {
        let number: u16 = code.parse().unwrap_or(0);
        match number {
            7 => swapped = true,
            38 | 48 => {
                let kind = codes.next().unwrap_or_default();
                let count = if kind == "2" { 3 } else { 1 };
                let colour: Vec<&str> = codes.by_ref().take(count).collect();
                *(if number == 38 { &mut front } else { &mut back }) = colour.join(";");
            }
            30..=37 | 90..=97 => front = (number - 30).to_string(),
            40..=47 | 100..=107 => back = (number - 40).to_string(),
            _ => {}
        }
    }
    if swapped { format!("7;{front}") } else { back }
}

/// In each row, what is selected: an item of a list on another ground than those beside it, or one button of several.
fn selections(rows: &[Vec<Cell>]) -> Vec<Option<(usize, usize)>> {
    let spans: Vec<Vec<(usize, usize)>> = rows.iter().map(|row| spans(row)).collect();
    // A bar of labels may have the same colour, but not at the same place.
    let rows_on = |ground: &str, begin: usize| {
        let on = |(row, spans): &(&Vec<Cell>, &Vec<(usize, usize)>)| {
            spans.iter().any(|span| span.0 == begin && row[begin].ground == ground)
        };
        rows.iter().zip(&spans).filter(on).count()
    };
    let marks = spans.iter().enumerate().map(|(index, spans)| {
        let row = &rows[index];
        let is_item = |(begin, end): &(usize, usize)| {
            let own = &row[*begin].ground;
            let beside = [index.checked_sub(1), Some(index + 1)];
            let beside = beside.into_iter().flatten().filter_map(|other| rows.get(other));
            let is_other = |other: &Vec<Cell>| {
                let first = first_text(row, *begin, *end);
                let sibling =
                    other.get(first).filter(|cell| !cell.text.is_whitespace() && !is_drawn(cell.text));
                sibling.is_some_and(|cell| cell.ground != *own)
            };
            !own.is_empty() && rows_on(own, *begin) == 1 && beside.into_iter().any(is_other)
        };
        spans.iter().copied().find(is_item).or_else(|| button(row))
    });
    marks.collect()
}

/// The row that the cursor is at the beginning of, if rows beside it begin at the same place: an item of a list.
fn item_at(rows: &[Vec<Cell>], row: usize, column: usize) -> Option<(usize, usize)> {
    let begin =
        |row: &Vec<Cell>| row.iter().position(|cell| !cell.text.is_whitespace() && !is_drawn(cell.text));
    let own = begin(rows.get(row)?)?;
    let beside = [row.checked_sub(1), Some(row + 1)];
    let is_list = beside
        .into_iter()
        .flatten()
        .filter_map(|other| rows.get(other))
        .any(|other| begin(other) == Some(own) && !is_frame(&row_text(other, None)));
    (is_list && column <= own + 4).then_some((own, rows[row].len()))
}

/// Runs of one ground that have text.
fn spans(row: &[Cell]) -> Vec<(usize, usize)> {
    let mut spans = Vec::new();
    let mut begin = 0;
    while begin < row.len() {
        let len = row[begin..].iter().take_while(|cell| cell.ground == row[begin].ground).count();
        if row[begin..begin + len].iter().any(|cell| cell.text.is_alphanumeric()) {
            spans.push((begin, begin + len));
        }
        begin += len;
    }
    spans
}

fn first_text(row: &[Cell], begin: usize, end: usize) -> usize {
    (begin..end).find(|at| row[*at].text.is_alphanumeric()).unwrap_or(begin)
}

/// Of several buttons in a row, the one that is on another ground than the rest.
fn button(row: &[Cell]) -> Option<(usize, usize)> {
    let mut buttons: Vec<(usize, usize)> = Vec::new();
    let mut open = None;
    for (at, cell) in row.iter().enumerate() {
        match cell.text {
            '<' | '[' => open = Some(at),
            '>' | ']' => buttons.extend(open.take().map(|begin| (begin, at + 1))),
            _ => {}
        }
    }
    let ground = |(begin, end): &(usize, usize)| &row[first_text(row, *begin, *end)].ground;
    let is_alone =
        |one: &&(usize, usize)| buttons.iter().filter(|other| ground(other) == ground(one)).count() == 1;
    let before = buttons.first().and_then(|(begin, _)| begin.checked_sub(1));
    let plain = before.map(|before| &row[before].ground);
    let alone: Vec<&(usize, usize)> = buttons.iter().filter(is_alone).collect();
    match alone.as_slice() {
        [one] if buttons.len() > 1 => Some(**one),
        // Of two that differ, the one that stands out.
        [one, other] if buttons.len() == 2 => {
            let stands_out = |button: &(usize, usize)| Some(ground(button)) != plain;
            match (stands_out(one), stands_out(other)) {
                (true, false) => Some(**one),
                (false, true) => Some(**other),
                (true, true) | (false, false) => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(rows: &[&str]) -> Vec<String> {
        let cells: Vec<Vec<Cell>> = rows.iter().map(|row| cells(row)).collect();
        selections(&cells).into_iter().zip(&cells).map(|(mark, row)| row_text(row, mark)).collect()
    }

    #[test]
    fn a_selected_item_is_marked_by_reverse_video_or_colour() {
        let plain = "\x1b[0;30;47m│ b  Banana │\x1b[0m";
        let selected = "\x1b[0;30;47m│ \x1b[0;37;44ma  Apple \x1b[0;30;47m │\x1b[0m";
        assert_eq!(marked(&[plain, selected, plain]), ["  b  Banana", "  »a  Apple «", "  b  Banana"]);
        assert_eq!(marked(&["one", "\x1b[0;7mtwo\x1b[0m", "three"]), ["one", "»two«", "three"]);
    }

    #[test]
    fn a_focused_button_is_marked() {
        let row = "   \x1b[0;7m<Yes>\x1b[0m   <No>";
        assert_eq!(marked(&["Go on?", "", row]), ["Go on?", "", "   »<Yes>«   <No>"]);
        let row = "  \x1b[0;47m  <Yes>  \x1b[0;41m<No>\x1b[0;47m  \x1b[0m";
        assert_eq!(marked(&[row]), ["    <Yes>  »<No>«"]);
    }

    #[test]
    fn a_line_of_an_editor_with_nothing_but_marks_below_it_is_no_item() {
        let rows = |rows: &[&str]| rows.iter().map(|row| cells(row)).collect::<Vec<_>>();
        assert_eq!(item_at(&rows(&["hello", "~", "~"]), 0, 4), None);
        assert_eq!(item_at(&rows(&["one", "two"]), 1, 0), Some((0, 3)));
    }

    #[test]
    fn a_title_bar_is_no_selection() {
        assert_eq!(marked(&["\x1b[0;7m  nano  file\x1b[0m", "", "text"]), ["  nano  file", "", "text"]);
    }

    #[test]
    fn only_rows_that_changed_are_shown_again() {
        let row = |number, text: &str| Row { number, text: text.into() };
        let before = [row(2, "»a«"), row(3, "b"), row(9, "x")];
        let now = [row(2, "a"), row(3, "»b«")];
        assert_eq!(lines(&changed(&before, &now)), "2 a\n3 »b«\n9 ");
    }
}
