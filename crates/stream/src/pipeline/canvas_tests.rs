//! A screen drawn by way of the canvas is the screen that the engine alone draws.

use proptest::prelude::*;

use crate::{Config, FoldOutput, Pipeline, Size};

/// Feeds pieces to two folds, one of which is in a flood all the time, and compares what they show.
fn compare(size: Size, pieces: &[impl AsRef<[u8]>], look: impl Fn(usize) -> bool) {
    let config = Config { size, scrollback: 20, ..Config::default() };
    let (mut plain, mut flooded) = (Pipeline::new(config), Pipeline::new(config));
    let (mut out, mut other) = (FoldOutput::default(), FoldOutput::default());
    for (at, piece) in pieces.iter().enumerate() {
        plain.feed(piece.as_ref(), &mut out);
        flooded.fold.screen.pretend_flood();
        flooded.feed(piece.as_ref(), &mut other);
        if look(at) || at + 1 == pieces.len() {
            assert_eq!(flooded.screen(), plain.screen(), "after piece {at}");
            assert_eq!(flooded.styled_screen(), plain.styled_screen(), "after piece {at}");
            assert_eq!(flooded.repaint(), plain.repaint(), "after piece {at}");
            assert_eq!(flooded.scrollback(100), plain.scrollback(100), "after piece {at}");
            assert!(flooded.fold.screen.cursors() == plain.fold.screen.cursors(), "cursors after piece {at}");
        }
    }
    assert_eq!((out.replies, out.text), (other.replies, other.text));
}

/// What redraws: moves, erasures, colours and text, and now and then what a canvas leaves to the engine.
fn piece() -> impl Strategy<Value = String> {
    let number = || prop_oneof![Just(String::new()), (0u16..14).prop_map(|n| n.to_string())];
    prop_oneof![
        6 => "[a-z ]{1,9}",
        2 => "[─█é]{1,4}",
        1 => "[漢字]{1,2}",
        1 => "e\u{301}",
        3 => (number(), number()).prop_map(|(row, col)| format!("\x1b[{row};{col}H")),
        4 => (number(), "[ABCDEFGdeaf`]").prop_map(|(count, last)| format!("\x1b[{count}{last}")),
        3 => (0u16..4, "[JK]").prop_map(|(how, last)| format!("\x1b[{how}{last}")),
        1 => number().prop_map(|count| format!("\x1b[{count}X")),
        3 => "(0|1|4|7|27|3[0-9]|4[0-9]|38;5;[0-9]{1,3}|48;2;1;2;[0-9]|4:3|58;5;[0-9])".prop_map(|sgr| format!("\x1b[{sgr}m")),
        1 => Just("\x1b[m".to_owned()),
        3 => prop_oneof![Just("\r"), Just("\n"), Just("\r\n"), Just("\x08"), Just("\t"), Just("\x0b")].prop_map(str::to_owned),
        2 => prop_oneof![
            Just("\x1b[6n"), Just("\x1b[?25l"), Just("\x1b[?25h"), Just("\x1b7"), Just("\x1b8"), Just("\x1bM"),
            Just("\x1b[2;4r"), Just("\x1b[r"), Just("\x1b[?6h"), Just("\x1b[?6l"), Just("\x1b[?7l"), Just("\x1b[?7h"),
            Just("\x1b[4h"), Just("\x1b[4l"), Just("\x1b[L"), Just("\x1b[P"), Just("\x1b[?1049h"), Just("\x1b[?1049l"),
            Just("\x1b(0"), Just("\x1b(B"), Just("\x1b)0"), Just("\x0e"), Just("\x0f"), Just("\x1b[1\"q"), Just("\x1b[0\"q"),
            Just("\x1b[?J"), Just("\x1b[3b"), Just("\x1b[?45h"), Just("\x1b[!p"), Just("\x1bc"), Just("\x1b#8"),
        ].prop_map(str::to_owned),
    ]
}

proptest! {
    #[test]
    fn any_redraw_is_drawn_as_the_engine_draws_it(
        pieces in proptest::collection::vec(piece(), 0..60),
        every in 1usize..20,
    ) {
        compare(Size { cols: 12, rows: 5 }, &pieces, |at| at % every == 0);
    }
}

#[test]
fn so_are_the_recordings() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings");
    let mut seen = 0;
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(bytes) = std::fs::read(&path)
                && bytes.contains(&0x1b)
            {
                seen += 1;
                let pieces: Vec<&[u8]> = bytes.chunks(97).collect();
                compare(Size { cols: 80, rows: 24 }, &pieces, |at| at % 50 == 0);
            }
        }
    }
    assert!(seen > 5, "recordings: {seen}");
}

#[test]
fn many_styles_and_cells_are_no_harm() {
    let styles: Vec<String> = (0..5000u32)
        .map(|n| format!("\x1b[38;2;{};{};7m\x1b[{};1Hx{n}", n % 256, n / 256, n % 24 + 1))
        .collect();
    compare(Size { cols: 80, rows: 24 }, &styles, |at| at % 1000 == 0);
    compare(Size { cols: 1000, rows: 100 }, &["\x1b[5;5Habc", "\x1b[99;990Hend"], |_| true);
}
