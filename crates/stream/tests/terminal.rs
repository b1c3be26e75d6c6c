//! The terminal from the outside: what it shows, what it answers, and what hostile output cannot do to it.

use std::time::Instant;

use outlast_stream::{Config, FoldOutput, Pipeline, Size};

fn small() -> Pipeline {
    Pipeline::new(Config { size: Size { cols: 20, rows: 4 }, scrollback: 10, ..Config::default() })
}

fn fed(bytes: &[u8]) -> (Pipeline, FoldOutput) {
    let mut pipeline = small();
    let mut out = FoldOutput::default();
    pipeline.feed(bytes, &mut out);
    (pipeline, out)
}

fn replies(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&fed(bytes).1.replies).into_owned()
}

#[test]
fn a_snapshot_has_rows_cursor_title_and_bells() {
    let (mut pipeline, out) = fed(b"\x1b]0;build\x07one\r\ntwo\x07 >>> ");
    let screen = pipeline.screen();
    assert_eq!(screen.rows, ["one", "two >>>", "", ""]);
    assert_eq!((screen.cursor.row, screen.cursor.col, screen.cursor.visible), (1, 8, true));
    assert_eq!((screen.title.as_str(), screen.bells, screen.alternate), ("build", 1, false));
    assert_eq!(screen.text_before_cursor, "two >>> ");
    assert_eq!((out.title.as_deref(), out.bells), (Some("build"), 1));
}

#[test]
fn the_alternate_screen_comes_and_goes() {
    let (mut pipeline, mut out) = fed(b"shell\r\n\x1b[?1049h\x1b[H\x1b[?25l~ vim");
    let screen = pipeline.screen();
    assert!(screen.alternate && !screen.cursor.visible);
    assert_eq!(screen.rows[0], "~ vim");
    pipeline.feed(b"\x1b[?1049l", &mut out);
    assert_eq!(pipeline.screen().rows[0], "shell");
}

#[test]
fn an_open_synchronized_update_is_visible() {
    let (mut pipeline, _) = fed(b"\x1b[?2026hdrawing");
    assert_eq!(pipeline.screen().rows[0], "drawing");
}

#[test]
fn skipping_lines_that_scrolled_off_changes_nothing() {
    let mut bytes = Vec::new();
    for line in 0..5000 {
        bytes.extend_from_slice(format!("\x1b[3{}mline {line}\x1b[0m\r\n", line % 8).as_bytes());
    }
    let (mut lazy, _) = fed(&bytes);
    let mut eager = small();
    let mut out = FoldOutput::default();
    for chunk in bytes.chunks(1000) {
        eager.feed(chunk, &mut out);
        eager.screen();
    }
    assert_eq!(lazy.screen(), eager.screen());
    assert_eq!(lazy.scrollback(100), eager.scrollback(100));
    assert_eq!(lazy.scrollback(2), ["line 4995", "line 4996"]);
}

#[test]
fn queries_are_answered_in_order_with_fixed_texts() {
    assert_eq!(
        replies(b"\x1b[cab\x1b[6n\x1b[5n\x1b[>c\x1b[?2004h\x1b[?2004$p\x1b[?9999$p\x1b[4$p\x1b[?u\x1b[18t"),
        "\x1b[?6c\x1b[1;3R\x1b[0n\x1b[>0;2600;1c\x1b[?2004;1$y\x1b[?9999;0$y\x1b[4;2$y\x1b[?0u\x1b[8;4;20t"
    );
    assert_eq!(replies(b"\x1b]11;?\x07"), "\x1b]11;rgb:1818/1818/1818\x07");
    assert_eq!(replies(b"\x1b]4;9;?\x1b\\"), "\x1b]4;9;rgb:ffff/5555/5555\x1b\\");
    assert_eq!(replies(b"\x1bP+q544e\x1b\\"), "\x1bP0+r\x1b\\");
    assert!(replies(b"\x1b[>q").starts_with("\x1bP>|outlast("));
}

#[test]
fn unsafe_queries_are_not_answered() {
    for silent in [
        &b"\x1b]0;evil\x07\x1b[21t"[..],
        b"\x1b]52;c;?\x07",
        b"\x1bP$qm\x1b\\",
        b"\x05",
        b"\x1b]4;1;rgb:00/00/00\x07",
        b"\x1b[?6c\x1b[0n\x1b[3;1R",
    ] {
        assert_eq!(replies(silent), "", "{silent:?}");
    }
    let mut pipe = Pipeline::new(Config { terminal: false, ..Config::default() });
    let mut out = FoldOutput::default();
    pipe.feed(b"\x1b[c\x1b[6n\x1b]11;?\x07", &mut out);
    assert!(out.replies.is_empty());
}

#[test]
fn a_flood_of_queries_is_rate_limited() {
    let storm = b"\x1b[6n".repeat(100_000);
    let (mut answered, mut pipeline) = (0, small());
    let mut out = FoldOutput::default();
    for chunk in storm.chunks(4096) {
        pipeline.feed(chunk, &mut out);
        answered += out.replies.len();
        out.clear();
    }
    assert!(answered <= 4096 + storm.len(), "{answered} bytes of answers");
}

#[test]
fn a_repaint_draws_the_same_screen_elsewhere() {
    let (mut job, mut out) =
        fed(b"\x1b]0;t\x07\x1b[1;31mred\x1b[0m plain\r\n\x1b[44mblue\x1b[?1h\x1b[?2004h");
    let paint = job.repaint();
    assert!(!paint.windows(2).any(|pair| pair == b"\x1b]"));
    let mut viewer = small();
    viewer.feed(b"old text\r\nmore", &mut out);
    viewer.feed(&paint, &mut out);
    let (theirs, ours) = (viewer.screen(), job.screen());
    assert_eq!((theirs.rows, theirs.cursor), (ours.rows, ours.cursor));
    assert!(theirs.modes.application_cursor && theirs.modes.bracketed_paste);
    assert_eq!(viewer.styled_screen(), job.styled_screen());
    assert_eq!(job.styled_screen()[0], "\x1b[0;1;31mred\x1b[0m plain");
}

#[test]
fn resizing_lays_the_text_out_again() {
    let (mut pipeline, mut out) = fed(b"0123456789abcdefghij");
    pipeline.resize(Size { cols: 10, rows: 4 }, &mut out);
    // The engine may move the first row into the scrollback; no text is lost.
    let mut rows = pipeline.scrollback(10);
    rows.extend(pipeline.screen().rows);
    rows.retain(|row| !row.is_empty());
    assert_eq!(rows, ["0123456789", "abcdefghij"]);
    pipeline.resize(Size { cols: 0, rows: 0 }, &mut out);
    assert_eq!(pipeline.screen().size, Size { cols: 2, rows: 1 });
}

#[test]
fn expensive_sequences_are_bounded() {
    let bombs: [Vec<u8>; 8] = [
        b"a\x1b[65535b".repeat(2_000),
        b"\x1b[65535@".repeat(20_000),
        b"\x1b[65535L\x1b[65535M\x1b[65535S\x1b[65535T".repeat(2_000),
        [b"\x1b]0;".to_vec(), vec![b'x'; 4 << 20]].concat(),
        [b"\x1bP".to_vec(), vec![b'x'; 4 << 20]].concat(),
        "e\u{301}"
            .as_bytes()
            .iter()
            .copied()
            .chain("\u{301}".repeat(200_000).into_bytes())
            .chain(*b"\rx")
            .collect(),
        b"\x1b[H\x1b[2Jx\x1b[3J".repeat(5_000),
        b"\x1b#8\x1b[1A".repeat(2_000),
    ];
    for bomb in bombs {
        let start = Instant::now();
        let mut pipeline = Pipeline::new(Config::default());
        let mut out = FoldOutput::default();
        for chunk in bomb.chunks(4096) {
            pipeline.feed(chunk, &mut out);
            assert!(out.text.len() < 1 << 20);
            out.clear();
        }
        assert!(pipeline.screen().title.len() <= 4096);
        assert!(pipeline.checkpoint().prelude.len() <= 1024);
        // These took minutes before they were bounded. This does not measure speed.
        assert!(start.elapsed().as_secs() < 20, "{:?}", &bomb[..12]);
    }
}
