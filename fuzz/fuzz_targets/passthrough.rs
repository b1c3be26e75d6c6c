//! Any bytes, any cuts: what reaches a person's terminal is the same for every cut, is nothing that a terminal would
//! answer or act on, and passes unchanged when it is passed again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_stream::{Config, Outcome, Passthrough, Pipeline};

fn passed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let (mut filter, mut safe) = (Passthrough::new(), Vec::new());
    for piece in pieces {
        filter.pass(piece, &mut safe);
    }
    safe
}

fuzz_target!(|data: &[u8]| {
    let [step, bytes @ ..] = data else { return };
    let whole = passed([bytes]);
    assert_eq!(passed(bytes.chunks(usize::from(*step).max(1))), whole);
    assert_eq!(passed([whole.as_slice()]), whole);
    let mut out = Outcome::default();
    let mut terminal = Pipeline::new(Config::default());
    terminal.feed(&whole, &mut out);
    assert!(out.replies.is_empty() && out.title.is_none(), "{out:?}");
});
