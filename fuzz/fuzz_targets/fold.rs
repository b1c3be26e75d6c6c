//! Any bytes, any cuts, any sizes: the fold does not panic, says the same for every way of cutting the same bytes,
//! and a repaint brings another fold to the same screen.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_stream::{Config, Outcome, Pipeline, Size, Snapshot};

struct Caller {
    fold: Pipeline,
    transcript: Vec<u8>,
    replies: Vec<u8>,
    out: Outcome,
}

impl Caller {
    fn new(size: Size) -> Self {
        let fold = Pipeline::new(Config { size, scrollback: 20, ..Config::default() });
        Self { fold, transcript: Vec::new(), replies: Vec::new(), out: Outcome::default() }
    }

    fn take(&mut self) {
        let retract = usize::try_from(self.out.retract).unwrap();
        self.transcript.truncate(self.transcript.len().checked_sub(retract).unwrap());
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
        (shot, scrollback, String::from_utf8(self.transcript).unwrap(), self.replies)
    }
}

fuzz_target!(|data: &[u8]| {
    let [cols, rows, step, part, bytes @ ..] = data else { return };
    let size = |cols: u8, rows: u8| Size { cols: u16::from(cols % 64), rows: u16::from(rows % 20) };
    let (mut whole, mut cut) = (Caller::new(size(*cols, *rows)), Caller::new(size(*cols, *rows)));
    let part = if *part == 0 { bytes.len().max(1) } else { usize::from(*part) };
    for (i, bytes) in bytes.chunks(part).enumerate() {
        if i > 0 {
            let new = size(cols.wrapping_mul(i as u8 | 1), rows.wrapping_add(i as u8));
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
});
