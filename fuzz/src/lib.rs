//! What must hold for any input: the fuzz targets call these, and so does a test of `crates/stream` that runs the
//! saved corpus with a stable compiler.

use outlast_stream::{Config, FoldOutput, Key, Modes, Passthrough, Pipeline, Size, Snapshot, encode};

struct Caller {
    fold: Pipeline,
    transcript: Vec<u8>,
    replies: Vec<u8>,
    out: FoldOutput,
}

impl Caller {
    fn new(size: Size) -> Self {
        let fold = Pipeline::new(Config { size, scrollback: 20, ..Config::default() });
        Self { fold, transcript: Vec::new(), replies: Vec::new(), out: FoldOutput::default() }
    }

    fn take(&mut self) {
        let retracted = usize::try_from(self.out.retract).ok();
        let kept = retracted.and_then(|count| self.transcript.len().checked_sub(count));
        let Some(kept) = kept else { panic!("took back {} of {}", self.out.retract, self.transcript.len()) };
        self.transcript.truncate(kept);
        self.transcript.extend_from_slice(&self.out.text);
        self.replies.extend_from_slice(&self.out.replies);
        self.out.clear();
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.fold.feed(bytes, &mut self.out);
        self.take();
    }

    fn resize(&mut self, size: Size) {
        self.fold.resize(size, &mut self.out);
        self.take();
    }

    fn end(mut self) -> (Snapshot, Vec<String>, String, Vec<u8>) {
        let shot = self.fold.screen();
        let scrollback = self.fold.scrollback(100);
        self.fold.finish(&mut self.out);
        self.take();
        assert_eq!(self.fold.transcript_len(), self.transcript.len() as u64);
        let Ok(transcript) = String::from_utf8(self.transcript) else {
            panic!("the transcript is not UTF-8")
        };
        (shot, scrollback, transcript, self.replies)
    }
}

/// Any bytes, any cuts, any sizes: the fold does not panic, says the same for every way of cutting the same bytes,
/// and a repaint brings another fold to the same screen. The first four bytes choose sizes and cuts.
pub fn fold(data: &[u8]) {
    let [cols, rows, step, part, bytes @ ..] = data else { return };
    let size = |cols: u8, rows: u8| Size { cols: u16::from(cols % 64), rows: u16::from(rows % 20) };
    let (mut whole, mut cut) = (Caller::new(size(*cols, *rows)), Caller::new(size(*cols, *rows)));
    let part = if *part == 0 { bytes.len().max(1) } else { usize::from(*part) };
    for (i, bytes) in bytes.chunks(part).enumerate() {
        if i > 0 {
            let i = i.to_le_bytes()[0];
            let new = size(cols.wrapping_mul(i | 1), rows.wrapping_add(i));
            whole.resize(new);
            cut.resize(new);
        }
        whole.feed(bytes);
        for piece in bytes.chunks(usize::from(*step).max(1)) {
            cut.feed(piece);
            // Looking must change nothing.
            if *step > 128 {
                let _ = (cut.fold.screen(), cut.fold.unfinished(), cut.fold.styled_screen());
            }
        }
    }
    let repaint = whole.fold.repaint();
    let (shot, scrollback, transcript, replies) = whole.end();
    assert_eq!(cut.end(), (shot.clone(), scrollback, transcript, replies));
    // The first screen of a person who attaches: the same text, the cursor in the same place.
    let mut person = Caller::new(shot.size);
    person.feed(&repaint);
    let seen = person.fold.screen();
    assert_eq!((seen.rows, seen.cursor, seen.alternate), (shot.rows, shot.cursor, shot.alternate));
    let _ = person.fold.repaint_within(size(*rows, *cols));
}

fn passed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let (mut filter, mut safe) = (Passthrough::new(), Vec::new());
    for piece in pieces {
        filter.pass(piece, &mut safe);
    }
    safe
}

/// Any bytes, any cuts: what reaches a person's terminal is the same for every cut, is nothing that a terminal would
/// answer or act on, and passes unchanged when it is passed again. The first byte chooses the cuts.
pub fn passthrough(data: &[u8]) {
    let [step, bytes @ ..] = data else { return };
    let whole = passed([bytes]);
    assert_eq!(passed(bytes.chunks(usize::from(*step).max(1))), whole);
    assert_eq!(passed([whole.as_slice()]), whole);
    let mut out = FoldOutput::default();
    let mut terminal = Pipeline::new(Config::default());
    terminal.feed(&whole, &mut out);
    assert!(out.replies.is_empty() && out.title.is_none(), "{out:?}");
}

/// The name of a key, as a model may invent it: it is a key that sends something, or an error that names it and suggests only
/// keys that exist.
pub fn keys(data: &[u8]) {
    let name = String::from_utf8_lossy(data);
    match Key::parse(&name) {
        Ok(key) => assert!(!encode(&[key], &Modes::fresh(false)).is_empty(), "{name:?} sends nothing"),
        Err(error) => {
            assert!(name.starts_with(&error.name), "{error:?}");
            assert!(error.near.iter().all(|near| Key::parse(near).is_ok()), "{error:?}");
        }
    }
}
