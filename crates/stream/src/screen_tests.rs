//! What xterm does at the edges of the screen, and the engine alone does not.

use crate::{Config, FoldOutput, Pipeline, Size};

/// The rows of a screen of 10 columns and 4 rows, and the cursor (row, column).
fn shown(bytes: &str) -> (Vec<String>, (usize, usize)) {
    let mut pipeline = Pipeline::new(Config { size: Size { cols: 10, rows: 4 }, ..Config::default() });
    pipeline.feed(bytes.as_bytes(), &mut FoldOutput::default());
    let screen = pipeline.screen();
    (screen.rows, (screen.cursor.row, screen.cursor.col))
}

#[track_caller]
fn shows(bytes: &str, rows: [&str; 4]) {
    assert_eq!(shown(bytes).0, rows, "{bytes:?}");
}

fn replies(bytes: &str) -> String {
    let mut pipeline = Pipeline::new(Config { size: Size { cols: 10, rows: 4 }, ..Config::default() });
    let mut out = FoldOutput::default();
    pipeline.feed(bytes.as_bytes(), &mut out);
    String::from_utf8(out.replies).unwrap()
}

#[test]
fn erasing_above_the_second_row_erases_the_first() {
    shows("abc\r\ndef\r\nghi\x1b[2;3H\x1b[1J", ["", "", "ghi", ""]);
}

#[test]
fn a_soft_reset_removes_the_scroll_region_and_the_saved_cursor_and_moves_nothing() {
    shows("\x1b[3;4r\x1b[!p\x1b[4;1Hx\r\ny", ["", "", "x", "y"]);
    shows("\x1b[2;5H\x1b7\x1b[!p\x1b8x", ["x", "", "", ""]);
    assert_eq!(shown("\x1b[2;5H\x1b[!p").1, (1, 4));
}

#[test]
fn inserted_and_deleted_lines_leave_the_cursor_in_the_first_column() {
    shows("abc\r\ndef\x1b[1;3H\x1b[Lx", ["x", "abc", "def", ""]);
    shows("abc\r\ndef\x1b[1;3H\x1b[Mx", ["xef", "", "", ""]);
}

#[test]
fn only_a_character_right_before_is_repeated() {
    shows("ab\x1b[3b", ["abbbb", "", "", ""]);
    shows("ab\x1b[2;1H\x1b[3b", ["ab", "", "", ""]);
    shows("ab\r\n\x1b[3b", ["ab", "", "", ""]);
}

#[test]
fn a_move_forgets_that_the_last_column_was_filled() {
    shows("0123456789\x1bDx", ["0123456789", "         x", "", ""]);
    shows("0123456789\x0bx", ["0123456789", "         x", "", ""]);
    shows("0123456789\x0cx", ["0123456789", "         x", "", ""]);
    shows("0123456789\x1b7\x1b8x", ["012345678x", "", "", ""]);
    shows("0123456789\x1b[@x", ["012345678x", "", "", ""]);
}

#[test]
fn a_tab_stays_behind_the_last_column() {
    shows("0123456789\tx", ["0123456789", "x", "", ""]);
}

#[test]
fn newline_mode_returns_the_cursor_for_every_kind_of_line_feed() {
    shows("\x1b[20hab\ncd\x0bef\x0cg", ["ab", "cd", "ef", "g"]);
}

#[test]
fn the_alignment_pattern_goes_home_and_removes_the_scroll_region() {
    shows("\x1b[2;3r\x1b#8x", ["xEEEEEEEEE", "EEEEEEEEEE", "EEEEEEEEEE", "EEEEEEEEEE"]);
}

#[test]
fn the_cursor_is_reported_from_the_top_of_the_region_in_origin_mode() {
    assert_eq!(replies("\x1b[2;4r\x1b[?6h\x1b[2;3H\x1b[6n"), "\x1b[2;3R");
    assert_eq!(replies("\x1b[2;4r\x1b[?6l\x1b[3;3H\x1b[6n"), "\x1b[3;3R");
}

/// The rows that a terminal of 10 by 4 shows after some output, without empty ones at the end.
fn rows_after(output: &str) -> Vec<String> {
    let size = Size { cols: 10, rows: 4 };
    let mut pipeline = Pipeline::new(Config { size, ..Config::default() });
    pipeline.feed(output.as_bytes(), &mut FoldOutput::default());
    let mut rows: Vec<String> = pipeline.screen().rows.iter().map(|row| row.trim_end().to_owned()).collect();
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows
}

#[test]
fn whole_columns_are_inserted_and_removed() {
    let text = "abcd\r\nefgh";
    assert_eq!(rows_after(&format!("{text}\x1b[1;2H\x1b[2'}}")), ["a  bcd", "e  fgh"]);
    assert_eq!(rows_after(&format!("{text}\x1b[1;2H\x1b[2'~")), ["ad", "eh"]);
    assert_eq!(rows_after(&format!("{text}\x1b[1;3H\x1b[ A")), [" abcd", " efgh"]);
    assert_eq!(rows_after(&format!("{text}\x1b[1;3H\x1b[2 @")), ["cd", "gh"]);
    assert_eq!(rows_after(&format!("{text}\x1b[1;1H\x1b6")), [" abcd", " efgh"]);
    assert_eq!(rows_after(&format!("{text}\x1b[1;10H\x1b9")), ["bcd", "fgh"]);
    assert_eq!(
        rows_after(&format!("{text}\x1b[2;3r\x1b[1;1H\x1b6")),
        ["abcd", "efgh"],
        "outside of the region"
    );
}

#[test]
fn protected_text_outlives_selective_erasure() {
    let text = "a\x1b[1\"qb\x1b[0mc\x1b[0\"qd";
    assert_eq!(rows_after(&format!("{text}\x1b[?2J")), [" bc"]);
    assert_eq!(rows_after(&format!("{text}\x1b[?1K")), [" bc"]);
    assert_eq!(rows_after(&format!("{text}\x1b[2J")), Vec::<String>::new());
    let guarded = "a\x1bVb\x1bWc";
    assert_eq!(rows_after(&format!("{guarded}\x1b[2J")), [" b"]);
    assert_eq!(rows_after(&format!("{guarded}\x1b[1;1H\x1b[3X")), [" b"]);
    assert_eq!(rows_after(&format!("{guarded}\x1b[?2J")), Vec::<String>::new());
}

#[test]
fn steps_back_go_over_the_left_edge_if_asked_for() {
    assert_eq!(rows_after("0123456789ab\x1b[?45h\x08\x08\x08X"), ["012345678X", "ab"]);
    assert_eq!(rows_after("ab\r\ncd\x1b[?45h\x08\x08\x08X"), ["ab", "Xd"], "that row was not wrapped");
    assert_eq!(rows_after("\x1b[2;1H\x1b[?1045h\x08X"), ["         X"]);
    assert_eq!(rows_after("\x1b[?1045h\x1b[1;1H\x1b[DX"), ["", "", "", "         X"]);
}

#[test]
fn modes_and_the_cursor_are_saved_and_restored() {
    assert_eq!(rows_after("\x1b[?7l\x1b[?7s\x1b[?7h\x1b[?7r0123456789ab"), ["012345678b"]);
    assert_eq!(rows_after("ab\x1b[?1048h\r\ncd\x1b[?1048le"), ["abe", "cd"]);
    assert_eq!(rows_after("\x1b7\x1b[2;3r\x1b[?6h\x1b8\x1b[1;1HX"), ["X"], "origin mode was not saved");
}
