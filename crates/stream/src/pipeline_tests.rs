//! The guarantees of the fold: the result does not depend on how output is cut, where it is resumed, or how
//! hostile it is.

use super::*;
use proptest::prelude::*;

fn config(cols: u16, rows: u16) -> Config {
    Config { size: Size { cols, rows }, scrollback: 50, ..Config::default() }
}

/// Everything that a fold reports, put together as a caller would.
#[derive(Debug, PartialEq)]
struct Reported {
    transcript: String,
    replies: String,
    rows: Vec<String>,
    cursor: (usize, usize),
    scrollback: Vec<String>,
    modes: Modes,
    unfinished: String,
}

struct Caller {
    pipeline: Pipeline,
    transcript: Vec<u8>,
    replies: Vec<u8>,
    out: FoldOutput,
}

impl Caller {
    fn new(config: Config) -> Self {
        Self {
            pipeline: Pipeline::new(config),
            transcript: Vec::new(),
            replies: Vec::new(),
            out: FoldOutput::default(),
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.pipeline.feed(bytes, &mut self.out);
        self.take();
    }

    fn take(&mut self) {
        let retract = usize::try_from(self.out.retract).unwrap();
        self.transcript.truncate(self.transcript.len().checked_sub(retract).unwrap());
        self.transcript.extend_from_slice(&self.out.text);
        self.replies.extend_from_slice(&self.out.replies);
        self.out.clear();
    }

    fn reported(mut self) -> Reported {
        let unfinished = self.pipeline.unfinished();
        let screen = self.pipeline.screen();
        let scrollback = self.pipeline.scrollback(1000);
        self.pipeline.finish(&mut self.out);
        self.take();
        assert_eq!(self.pipeline.transcript_len(), self.transcript.len() as u64);
        Reported {
            transcript: String::from_utf8(self.transcript).unwrap(),
            replies: String::from_utf8(self.replies).unwrap(),
            rows: screen.rows,
            cursor: (screen.cursor.row, screen.cursor.col),
            scrollback,
            modes: screen.modes,
            unfinished,
        }
    }
}

fn reported(config: Config, chunks: &[&[u8]]) -> Reported {
    let mut caller = Caller::new(config);
    for chunk in chunks {
        caller.feed(chunk);
    }
    caller.reported()
}

fn simple_piece() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z ]{0,14}",
        2 => Just("\r\n".to_owned()),
        1 => Just("\r".to_owned()),
        1 => Just("\x1b[1;31m".to_owned()),
        1 => Just("\x1b[K".to_owned()),
        1 => Just("漢字".to_owned()),
        1 => Just("e\u{301}".to_owned()),
        1 => Just("\t".to_owned()),
        1 => Just("\x08".to_owned()),
        1 => (1u8..9).prop_map(|n| format!("\x1b[{n}C")),
        1 => (1u8..9).prop_map(|n| format!("\x1b[{n}D")),
        1 => (1u8..25).prop_map(|n| format!("\x1b[{n}G")),
        1 => (1u8..5).prop_map(|n| format!("\x1b[{n}P")),
        1 => (1u8..5).prop_map(|n| format!("\x1b[{n}@")),
        1 => (1u8..5).prop_map(|n| format!("\x1b[{n}X")),
        1 => (1u8..20).prop_map(|n| format!("-\x1b[{n}b")),
        1 => (0u8..3).prop_map(|n| format!("\x1b[{n}K")),
        1 => Just("\n".to_owned()),
    ]
}

fn block_piece() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => simple_piece(),
        1 => (1u8..7).prop_map(|n| format!("\x1b[{n}A")),
        1 => (1u8..7).prop_map(|n| format!("\x1b[{n}B")),
        1 => (1u8..4).prop_map(|n| format!("\x1b[{n}F")),
        1 => (1u8..7, 1u8..20).prop_map(|(row, col)| format!("\x1b[{row};{col}H")),
        // Both go to the first column, which the emulator does not do by itself.
        1 => (1u8..3).prop_map(|n| format!("\x1b[{n}L\r")),
        1 => (1u8..3).prop_map(|n| format!("\x1b[{n}M\r")),
        1 => Just("\x1bM".to_owned()),
        1 => Just("\x1b7".to_owned()),
        1 => Just("\x1b8".to_owned()),
        1 => (1u8..3).prop_map(|n| format!("\x1b[{n}S")),
        1 => (1u8..3).prop_map(|n| format!("\x1b[{n}T")),
    ]
}

fn wild_piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => block_piece().prop_map(String::into_bytes),
        1 => (0u8..4).prop_map(|n| format!("\x1b[{n}J").into_bytes()),
        1 => Just(b"\x1b[H".to_vec()),
        1 => Just(b"\x1b[?1049h".to_vec()),
        1 => Just(b"\x1b[?1049l".to_vec()),
        1 => Just(b"\x1b[2;4r".to_vec()),
        1 => Just(b"\x1b[r".to_vec()),
        1 => Just(b"\x1bc".to_vec()),
        1 => Just(b"\x1b[6n\x1b[c\x1b[?2004$p".to_vec()),
        1 => Just(b"\x1b[4h".to_vec()),
        1 => Just(b"\x1b[?7l\x1b[?6h".to_vec()),
        1 => Just(b"\x1b]0;title\x07".to_vec()),
        1 => Just(b"\x1b(0".to_vec()),
        1 => Just(b"\x1b#8".to_vec()),
        1 => Just(b"\x1b[65535b\x1b[65535@\x1b[65535L\x1b[65535S".to_vec()),
        2 => proptest::collection::vec(any::<u8>(), 0..10),
    ]
}

/// Mostly plain lines, some with words that the patterns match, and occasionally something else.
fn lines_piece() -> impl Strategy<Value = Vec<u8>> {
    let lines = |line: &'static str, count| Just(line.repeat(count).into_bytes());
    prop_oneof![
        4 => (1usize..30, "[a-z\t é]{0,50}").prop_map(|(n, line)| format!("{line}\r\n").repeat(n).into_bytes()),
        2 => (1usize..30, "[a-z ]{0,9}").prop_map(|(n, line)| format!("{line}\n").repeat(n).into_bytes()),
        1 => lines("an error, ok\r\n", 2),
        1 => lines("fatal: begin\r\n", 1),
        1 => lines("the end\r\n", 1),
        1 => lines("fatal", 1),
        1 => lines("\r\n", 70),
        2 => simple_piece().prop_map(|piece| piece.replace("漢字", "").into_bytes()),
    ]
}

fn size() -> impl Strategy<Value = (u16, u16)> {
    prop_oneof![
        12 => (0u16..40, 0u16..12),
        1 => Just((0, 0)),
        1 => Just((65535, 3)),
        1 => Just((4, 65535)),
    ]
}

/// Rows of the emulator with its history. An emulator does not keep tabs, so the unit tests compare those.
/// Half of a wide character that was drawn over leaves it with a blank that was never printed, so those are
/// printed but not edited. Wrapped rows are one line, and blanks at the ends do not count.
fn emulator_lines(config: Config, bytes: &[u8]) -> Vec<String> {
    use alacritty_terminal::event::VoidListener;
    use alacritty_terminal::grid::Dimensions;
    use alacritty_terminal::index::{Column, Line};
    use alacritty_terminal::term::cell::Flags;
    use alacritty_terminal::term::{Config as TermConfig, Term};
    let mut term = Term::new(TermConfig::default(), &config.size, VoidListener);
    let mut parser =
        alacritty_terminal::vte::ansi::Processor::<alacritty_terminal::vte::ansi::StdSyncHandler>::new();
    parser.advance(&mut term, bytes);
    let mut lines = Vec::new();
    let mut text = String::new();
    let history = i32::try_from(term.history_size()).unwrap();
    for line in -history..i32::from(config.size.rows) {
        for col in 0..usize::from(config.size.cols) {
            let cell = &term.grid()[Line(line)][Column(col)];
            if !cell.flags.intersects(Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER) {
                text.push(if cell.c == '\t' { ' ' } else { cell.c });
                text.extend(cell.zerowidth().unwrap_or_default());
            }
        }
        if !term.grid()[Line(line)][term.last_column()].flags.contains(Flags::WRAPLINE) {
            lines.push(text.trim_end().to_owned());
            text.clear();
        }
    }
    if !text.trim_end().is_empty() {
        lines.push(text.trim_end().to_owned());
    }
    without_blank_end(lines)
}

fn without_blank_end(mut lines: Vec<String>) -> Vec<String> {
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// What was drawn, without tabs and wide characters (see [`emulator_lines`]), and with a visible sign for each printed blank: many
/// of them at the edge are padding, which an emulator can't tell from cells that nobody printed on.
fn without_printed_blanks(pieces: &[String]) -> String {
    pieces.concat().replace('\t', "").replace("漢字", "..").replace(' ', "_")
}

/// Lines of the transcript, with tabs expanded as on the screen.
fn transcript_lines(transcript: &str) -> Vec<String> {
    without_blank_end(transcript.lines().map(|line| line.trim_end().to_owned()).collect())
}

proptest! {
    // No seed files: a failure prints its input, which becomes a test of its own.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn printed_lines_equal_those_of_an_emulator(
        pieces in proptest::collection::vec(prop_oneof!["([a-z 漢字é]|e\u{301}){0,30}", Just("\r\n".to_owned()), Just("\x1b[1m".to_owned())], 0..60),
    ) {
        let bytes = pieces.concat();
        let config = config(20, 6);
        let ours = reported(config, &[bytes.as_bytes()]);
        prop_assert_eq!(transcript_lines(&ours.transcript), emulator_lines(config, bytes.as_bytes()));
    }

    #[test]
    fn edited_lines_equal_those_of_an_emulator(pieces in proptest::collection::vec(simple_piece(), 0..60)) {
        let bytes = without_printed_blanks(&pieces);
        let config = config(20, 6);
        let ours = reported(config, &[bytes.as_bytes()]);
        prop_assert_eq!(transcript_lines(&ours.transcript), emulator_lines(config, bytes.as_bytes()));
    }

    #[test]
    fn redrawn_lines_equal_those_of_an_emulator(pieces in proptest::collection::vec(block_piece(), 0..60)) {
        let bytes = without_printed_blanks(&pieces);
        let config = config(20, 6);
        let ours = reported(config, &[bytes.as_bytes()]);
        prop_assert_eq!(transcript_lines(&ours.transcript), emulator_lines(config, bytes.as_bytes()));
    }

    #[test]
    fn every_cut_gives_the_same_result(
        pieces in proptest::collection::vec(wild_piece(), 0..40),
        cuts in proptest::collection::vec(0usize..400, 0..20),
    ) {
        let bytes = pieces.concat();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(reported(config(20, 6), &chunks), reported(config(20, 6), &[&bytes]));
    }

    #[test]
    fn lines_in_batches_give_the_same_as_byte_by_byte(
        pieces in proptest::collection::vec(lines_piece(), 0..60),
        terminal in any::<bool>(),
    ) {
        let bytes = pieces.concat();
        let config = Config { terminal, ..config(20, 6) };
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        let (mut together, mut apart) = (reported(config, &[&bytes]), reported(config, &single));
        // The length of the scrollback is not guaranteed.
        (together.scrollback, apart.scrollback) = (Vec::new(), Vec::new());
        prop_assert_eq!(together, apart);
        let patterns = PatternSet::compile(&["error", "(?s)begin.*end", r"\bok$", "^fatal"]).unwrap();
        for only_patterns in [false, true] {
            let config = Config { only_patterns, ..config };
            let hits = |chunks: &[&[u8]]| scan(config, patterns.clone(), chunks.iter().copied());
            prop_assert_eq!(hits(&[&bytes]), hits(&single));
        }
    }

    #[test]
    fn any_bytes_with_any_sizes_do_not_panic(
        steps in proptest::collection::vec((wild_piece(), proptest::option::weighted(0.3, size())), 0..30),
    ) {
        let mut caller = Caller::new(config(20, 6));
        for (bytes, size) in steps {
            caller.feed(&bytes);
            if let Some((cols, rows)) = size {
                caller.pipeline.resize(Size { cols, rows }, &mut caller.out);
                caller.take();
            }
        }
        caller.reported();
    }

    /// A few plain lines are shown without the engine, exactly as the engine would have shown them.
    #[test]
    fn a_screen_without_an_engine_is_the_same_as_with_one(
        lines in proptest::collection::vec("[ -~]{0,22}|\t|\r|é", 0..8),
        cut in any::<proptest::sample::Index>(),
    ) {
        let bytes = lines.join("\r\n").into_bytes();
        let mut caller = Caller::new(config(20, 6));
        caller.feed(&bytes[..cut.index(bytes.len() + 1)]);
        let (shown, above) = (caller.pipeline.screen(), caller.pipeline.scrollback(50));
        caller.pipeline.fold.screen.sync();
        prop_assert_eq!(shown, caller.pipeline.screen());
        prop_assert_eq!(above, caller.pipeline.scrollback(50));
    }

    #[test]
    fn from_a_keyframe_on_the_screen_is_the_same(
        before in proptest::collection::vec(wild_piece(), 0..20),
        after in proptest::collection::vec(wild_piece(), 0..20),
    ) {
        let config = config(20, 6);
        let mut whole = Caller::new(config);
        whole.feed(&before.concat());
        let keyframe = whole.pipeline.keyframe(config);
        prop_assume!(keyframe.is_some());
        let keyframe = keyframe.unwrap();
        let mut later = Pipeline::from_keyframe(config, &keyframe);
        let mut out = FoldOutput::default();
        let mut left = false;
        for piece in &after {
            whole.feed(piece);
            later.feed(piece, &mut out);
            left |= keyframe.is_alternate() && !later.screen().alternate;
            if left {
                break;
            }
            let (there, here) = (later.screen(), whole.pipeline.screen());
            prop_assert_eq!(there.rows, here.rows);
            prop_assert_eq!(there.cursor, here.cursor);
            prop_assert_eq!((there.title, there.bells, there.alternate), (here.title, here.bells, here.alternate));
            prop_assert_eq!(later.styled_screen(), whole.pipeline.styled_screen());
        }
        prop_assert_eq!(later.offset(), whole.pipeline.offset());
    }

    #[test]
    fn a_checkpoint_resumes_as_if_nothing_had_happened(
        before in proptest::collection::vec(block_piece(), 0..10),
        lines in proptest::collection::vec(proptest::collection::vec(simple_piece(), 0..4), 0..30),
        modes in prop_oneof![Just(""), Just("\x1b[?2004h\x1b[?1h\x1b="), Just("\x1b(0"), Just("\x1b]2;name\x07")],
        after in proptest::collection::vec(wild_piece(), 0..20),
    ) {
        let config = config(20, 6);
        let mut bytes = before.concat().into_bytes();
        bytes.extend_from_slice(modes.as_bytes());
        for line in &lines {
            // A bare line feed keeps the column, so these lines would not be plain.
            bytes.extend_from_slice(line.concat().replace('\n', "").as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        let mut first = Caller::new(config);
        first.feed(&bytes);
        let checkpoint = first.pipeline.checkpoint();
        prop_assert!(checkpoint.prelude.len() <= 1024);
        let offset = usize::try_from(checkpoint.offset).unwrap();
        if lines.len() > 20 {
            prop_assert!(offset > 0);
        }
        let mut heir = Caller {
            pipeline: Pipeline::resume(config, &checkpoint),
            transcript: first.transcript[..usize::try_from(checkpoint.transcript_len).unwrap()].to_vec(),
            replies: first.replies.clone(),
            out: FoldOutput::default(),
        };
        heir.feed(&bytes[offset..]);
        heir.replies = first.replies.clone();
        for piece in &after {
            first.feed(piece);
            heir.feed(piece);
        }
        prop_assert_eq!(heir.pipeline.offset(), first.pipeline.offset());
        let (mut first, mut heir) = (first.reported(), heir.reported());
        // The length of the scrollback is not guaranteed.
        (first.scrollback, heir.scrollback) = (Vec::new(), Vec::new());
        prop_assert_eq!(heir, first);
    }
}
