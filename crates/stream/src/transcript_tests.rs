//! What a reader of the transcript sees, for each kind of output.

use crate::{Config, FoldOutput, Pipeline, Size};

/// Feeds output in pieces of `step` bytes and keeps a transcript as a caller would.
fn transcript_in(config: Config, bytes: &[u8], step: usize) -> String {
    let mut pipeline = Pipeline::new(config);
    let mut transcript = Vec::new();
    let mut out = FoldOutput::default();
    for chunk in bytes.chunks(step) {
        pipeline.feed(chunk, &mut out);
        apply(&mut transcript, &mut out);
    }
    pipeline.finish(&mut out);
    apply(&mut transcript, &mut out);
    assert_eq!(pipeline.transcript_len(), transcript.len() as u64);
    String::from_utf8(transcript).unwrap()
}

fn apply(transcript: &mut Vec<u8>, out: &mut FoldOutput) {
    transcript.truncate(transcript.len() - usize::try_from(out.retract).unwrap());
    transcript.extend_from_slice(&out.text);
    out.clear();
}

/// The transcript at 20×6, whole and byte by byte.
fn transcript(bytes: impl AsRef<[u8]>) -> String {
    let config = Config { size: Size { cols: 20, rows: 6 }, ..Config::default() };
    let whole = transcript_in(config, bytes.as_ref(), usize::MAX);
    assert_eq!(transcript_in(config, bytes.as_ref(), 1), whole);
    whole
}

#[test]
fn colours_vanish_and_lines_stay() {
    assert_eq!(transcript("\x1b[1;32mok\x1b[0m done\x1b[K\r\n\r\nlast"), "ok done\n\nlast\n");
}

#[test]
fn a_bar_redrawn_a_thousand_times_is_one_line() {
    let mut bytes = String::from("start\r\n");
    for percent in 0..=1000 {
        bytes += &format!("\r{:>3}% [{:<10}]", percent / 10, "#".repeat(percent / 100));
    }
    bytes += "\r\nend\r\n";
    assert_eq!(transcript(&bytes), "start\n100% [##########]\nend\n");
}

#[test]
fn a_shorter_redraw_leaves_what_it_does_not_cover() {
    assert_eq!(transcript("abc\rX\r\n"), "Xbc\n");
    assert_eq!(transcript("abc\r\x1b[KX\r\n"), "X\n");
    assert_eq!(transcript("abc\x1b[2K\rX\r\n"), "X\n");
}

#[test]
fn edits_within_a_line_are_applied() {
    assert_eq!(transcript("abcdef\r\x1b[2C\x1b[2PX\r\n"), "abXf\n");
    assert_eq!(transcript("abcdef\r\x1b[2C\x1b[2@XY\r\n"), "abXYcdef\n");
    assert_eq!(transcript("abcdef\r\x1b[2X.\r\n"), ". cdef\n");
    assert_eq!(transcript("ab\x1b[10Gcd\r\n"), "ab       cd\n");
    assert_eq!(transcript("pass\x08\x08\x08\x08word\r\n"), "word\n");
    assert_eq!(transcript("ab\x1b[3b\r\n"), "abbbb\n");
}

#[test]
fn a_spinner_is_one_line_with_its_last_state() {
    let mut bytes = String::from("working ");
    for frame in "|/-\\".chars().cycle().take(400) {
        bytes.push(frame);
        bytes.push('\x08');
    }
    bytes += "done\r\n";
    assert_eq!(transcript(&bytes), "working done\n");
}

#[test]
fn tabs_wide_and_combining_characters_stay() {
    assert_eq!(transcript("a\tb\r\n漢字 e\u{301}\r\n"), "a\tb\n漢字 e\u{301}\n");
    assert_eq!(transcript("x\r\na\tb\rA\r\n"), "x\nA\tb\n");
}

#[test]
fn a_long_line_stays_one_line() {
    let long = "0123456789".repeat(9);
    assert_eq!(transcript(format!("{long}\r\nnext\r\n")), format!("{long}\nnext\n"));
}

/// indicatif and GNU parallel fill the row of a bar with blanks, and print what is next behind its edge.
#[test]
fn a_row_filled_with_blanks_is_a_line_of_its_own() {
    let bar = |text: &str| format!("{text:<20}");
    assert_eq!(transcript(format!("{}all done\r\n", bar("bar"))), "bar\nall done\n");
    assert_eq!(transcript(format!("{}all done", bar("bar"))), "bar\nall done\n");
    assert_eq!(transcript(format!("{}{}x\r\n", bar("a"), bar("b"))), "a\nb\nx\n");
    assert_eq!(
        transcript(format!("\r\x1b[K{}\rnew{}all done\r\n", bar("old"), " ".repeat(17))),
        "new\nall done\n"
    );
    // A word or two of a table at the edge is no padding.
    let words = "a word at the end of  the row";
    assert_eq!(transcript(format!("{words}\r\n")), format!("{words}\n"));
    // On a pipe there is no edge.
    let pipe = Config { terminal: false, size: Size { cols: 20, rows: 5 }, ..Config::default() };
    let text = format!("{}all done\n", bar("bar"));
    assert_eq!(transcript_in(pipe, text.as_bytes(), 7), text);
}

#[test]
fn a_carriage_return_in_a_wrapped_line_goes_to_the_start_of_its_row() {
    let long = "a".repeat(25);
    assert_eq!(transcript(format!("{long}\rb\r\n")), format!("{}baaaa\n", "a".repeat(20)));
}

#[test]
fn a_block_redrawn_by_moving_up_has_each_line_once() {
    let mut bytes = String::from("Pulling\r\n");
    for step in 0..100 {
        if step > 0 {
            bytes += "\x1b[3A";
        }
        for layer in 1..=3 {
            bytes += &format!("\x1b[2Klayer {layer}: {step}\r\n");
        }
    }
    bytes += "Done\r\n";
    assert_eq!(transcript(&bytes), "Pulling\nlayer 1: 99\nlayer 2: 99\nlayer 3: 99\nDone\n");
}

#[test]
fn a_block_erased_downwards_loses_its_text() {
    assert_eq!(transcript("a\r\nb\r\nc\r\n\x1b[2A\x1b[JX\r\n"), "a\nX\n");
    // The same at the very top of the screen.
    assert_eq!(transcript("b\r\nc\r\n\x1b[2A\x1b[JX\r\n"), "X\n");
}

#[test]
fn moving_up_counts_rows_of_wrapped_lines() {
    let long = "a".repeat(30);
    assert_eq!(
        transcript(format!("x\r\n{long}\r\n\x1b[1AB\r\n")),
        format!("x\n{}B{}\n", "a".repeat(20), "a".repeat(9))
    );
}

#[test]
fn lines_that_scrolled_off_cannot_be_edited() {
    let mut bytes = String::new();
    for line in 0..10 {
        bytes += &format!("line {line}\r\n");
    }
    bytes += "\x1b[99Atop\r\n\x1b[99Bend\r\n";
    let text = transcript(&bytes);
    assert_eq!(text, "line 0\nline 1\nline 2\nline 3\nline 4\ntope 5\nline 6\nline 7\nline 8\nline 9\nend\n");
}

#[test]
fn full_screen_programs_leave_no_lines() {
    for mode in ["1049", "1047", "47"] {
        let session = format!("$ vim\r\n\x1b[?{mode}h\x1b[2J\x1b[Hhello\r\n~\r\n~\x1b[?{mode}l$ \r\n");
        assert_eq!(transcript(&session), "$ vim\n$ \n");
    }
}

#[test]
fn a_cleared_screen_is_kept_once() {
    // What was there before the first clear stays.
    assert_eq!(transcript("one\r\ntwo\r\n\x1b[H\x1b[2Jthree\r\n"), "one\ntwo\nthree\n");
    // Pages between clears replace each other.
    let mut bytes = String::from("before\r\n");
    for page in 0..500 {
        bytes += &format!("\x1b[H\x1b[Jpage {page}\r\nbody\r\n");
    }
    assert_eq!(transcript(&bytes), "before\npage 498\nbody\npage 499\nbody\n");
    // A page that scrolled is output like any other.
    let long = "x\r\n".repeat(8);
    let text = transcript(format!("\x1b[H\x1b[2J{long}\x1b[H\x1b[2J{long}\x1bcend"));
    assert_eq!(text, format!("{}end\n", "x\n".repeat(16)));
}

#[test]
fn a_status_row_below_a_scroll_region_does_not_disturb_the_lines() {
    let mut bytes = String::from("\x1b[1;5r\x1b[1;1H");
    for package in 0..20 {
        bytes += &format!("Unpacking {package}\r\n\x1b7\x1b[6;1H\x1b[K[{package}%]\x1b8");
    }
    bytes += "\x1b[6;1H\x1b[K\x1b[r\x1b[5;1H";
    let expected: String = (0..20).map(|package| format!("Unpacking {package}\n")).collect();
    assert_eq!(transcript(&bytes), expected);
}

#[test]
fn bytes_that_are_not_utf8_and_stray_controls() {
    assert_eq!(transcript(b"a\x00\x01b\x7f\xff\xe4\xb8\xadc\r\n"), "ab\u{FFFD}中c\n");
}

#[test]
fn a_line_feed_alone_keeps_the_column_on_a_terminal_and_not_on_a_pipe() {
    assert_eq!(transcript("ab\ncd\r\n"), "ab\n  cd\n");
    let pipe = Config { terminal: false, ..Config::default() };
    assert_eq!(transcript_in(pipe, b"ab\ncd\r\nlast", usize::MAX), "ab\ncd\nlast\n");
}

#[test]
fn a_line_of_ten_megabytes_comes_out_whole_and_costs_little() {
    let mut pipeline = Pipeline::new(Config::default());
    let mut out = FoldOutput::default();
    let piece = "0123456789abcdef".repeat(256);
    let mut length = 0;
    for _ in 0..2560 {
        pipeline.feed(piece.as_bytes(), &mut out);
        assert!(out.text.len() <= 80 * 1024);
        length += out.text.len();
        out.clear();
    }
    pipeline.finish(&mut out);
    assert_eq!(length + out.text.len(), piece.len() * 2560 + 1);
}

#[test]
fn the_unfinished_line_keeps_its_trailing_blank() {
    let mut pipeline = Pipeline::new(Config::default());
    let mut out = FoldOutput::default();
    pipeline.feed(b"hello\r\n>>> ", &mut out);
    assert_eq!(pipeline.unfinished(), ">>> ");
    pipeline.feed(b"x\x08 \x08", &mut out);
    assert_eq!(pipeline.unfinished(), ">>>  ");
    pipeline.feed(b"\r\x1b[K$ ", &mut out);
    assert_eq!(pipeline.unfinished(), "$ ");
}

#[test]
fn drawn_boxes_read_as_lines() {
    assert_eq!(transcript("\x1b(0lqk\x1b(B ok\r\n"), "┌─┐ ok\n");
}

/// The transcript when the terminal is resized before the last bytes, in pieces of `step` bytes.
fn resized(before: &[u8], (cols, rows): (u16, u16), after: &[u8], step: usize) -> String {
    let mut pipeline = Pipeline::new(Config { size: Size { cols: 20, rows: 6 }, ..Config::default() });
    let (mut transcript, mut out) = (Vec::new(), FoldOutput::default());
    for chunk in before.chunks(step) {
        pipeline.feed(chunk, &mut out);
        apply(&mut transcript, &mut out);
    }
    pipeline.resize(Size { cols, rows }, &mut out);
    pipeline.feed(after, &mut out);
    pipeline.finish(&mut out);
    apply(&mut transcript, &mut out);
    String::from_utf8(transcript).unwrap()
}

#[test]
fn a_terminal_that_grows_loses_no_line_below_the_cursor() {
    let mut before: String = (0..20).map(|n| format!("line {n}\r\n")).collect();
    before += "last\x1b[H";
    let want: String = (0..20).map(|n| format!("line {n}\n")).collect::<String>() + "last\n";
    for step in [1, 7, usize::MAX] {
        for rows in [7, 9, 12, 30] {
            assert_eq!(resized(before.as_bytes(), (20, rows), b"", step), want, "{rows} rows, cut by {step}");
            // The cursor stays in its line, on whatever row that is now.
            let marked = resized(before.as_bytes(), (20, rows), b"\x1b[7C*", step);
            assert_eq!(marked, want.replace("line 15\n", "line 15*\n"), "{rows} rows, cut by {step}");
        }
    }
}

#[test]
fn a_very_long_line_reads_the_same_after_a_resize_for_every_cut() {
    let before = "0123456789".repeat(15_000);
    let after = b"\x1b[4A\x1b[3D******";
    let whole = resized(before.as_bytes(), (33, 6), after, usize::MAX);
    for step in [1000, 65_530, 100_001] {
        let cut = resized(before.as_bytes(), (33, 6), after, step);
        assert!(cut == whole, "cut by {step}: {:?} {:?}", cut.find('*'), whole.find('*'));
    }
}
