//! What the scanner finds, wherever the reads end.

use super::*;
use proptest::prelude::*;

#[derive(Debug, Default, PartialEq)]
struct Found {
    items: Vec<String>,
    text_open: bool,
    ends: Vec<u64>,
}

impl Found {
    fn push(&mut self, item: String, end: u64) {
        self.items.push(item);
        self.ends.push(end);
        self.text_open = false;
    }
}

impl Sink for Found {
    fn text(&mut self, text: &str, end: u64) {
        if self.text_open
            && let (Some(item), Some(last)) = (self.items.last_mut(), self.ends.last_mut())
        {
            item.push_str(text);
            *last = end;
            return;
        }
        self.push(format!("text {text}"), end);
        self.text_open = true;
    }
    fn control(&mut self, byte: u8, end: u64) {
        self.push(format!("control {byte:02x}"), end);
    }
    fn csi(&mut self, csi: &Csi<'_>, end: u64) {
        let body = String::from_utf8_lossy(csi.body).into_owned();
        self.push(format!("csi {body} {}", char::from(csi.last)), end);
    }
    fn escape(&mut self, intermediates: &[u8], last: u8, end: u64) {
        let before = String::from_utf8_lossy(intermediates).into_owned();
        self.push(format!("escape {before}{}", char::from(last)), end);
    }
    fn osc(&mut self, body: &[u8], bell: bool, end: u64) {
        self.push(format!("osc {} {bell}", String::from_utf8_lossy(body)), end);
    }
    fn dcs(&mut self, body: &[u8], end: u64) {
        self.push(format!("dcs {}", String::from_utf8_lossy(body)), end);
    }
}

fn scan_in(chunks: &[&[u8]]) -> Found {
    let mut scanner = Scanner::new();
    let mut found = Found::default();
    let mut offset = 0;
    for chunk in chunks {
        scanner.scan(chunk, offset, &mut found);
        offset += chunk.len() as u64;
    }
    scanner.finish(offset, &mut found);
    found
}

fn items(bytes: &[u8]) -> Vec<String> {
    scan_in(&[bytes]).items
}

#[test]
fn text_controls_and_sequences_are_separated() {
    let found = items(b"hi\r\n\x1b[1;31mred\x1b[0m\x1b]0;t\x07\x1bP+q\x1b\\\x1b(0\x1b7x");
    assert_eq!(
        found,
        [
            "text hi",
            "control 0d",
            "control 0a",
            "csi 1;31 m",
            "text red",
            "csi 0 m",
            "osc 0;t true",
            "dcs +q",
            "escape \\",
            "escape (0",
            "escape 7",
            "text x"
        ]
    );
}

#[test]
fn controls_inside_a_sequence_act_at_once_and_cancel_ends_it() {
    assert_eq!(items(b"\x1b[1\r2mA"), ["control 0d", "csi 12 m", "text A"]);
    assert_eq!(items(b"\x1b[12\x18A\x1b]0;x\x1aB"), ["text AB"]);
}

#[test]
fn invalid_utf8_becomes_replacement_characters_and_c1_is_dropped() {
    assert_eq!(items(b"a\xffb\xe4\xb8c\xc2\x9bd\xe4\xb8"), ["text a\u{FFFD}b\u{FFFD}cd\u{FFFD}"]);
}

#[test]
fn an_endless_string_keeps_four_kilobytes_and_an_endless_csi_nothing() {
    let mut endless = b"\x1b]0;".to_vec();
    endless.extend(std::iter::repeat_n(b'x', 1_000_000));
    endless.extend(b"\x07ok\x1b[");
    endless.extend(std::iter::repeat_n(b'1', 1_000_000));
    endless.extend(b"mdone");
    let found = items(&endless);
    assert_eq!(found[0].len(), "osc  true".len() + MAX_STRING);
    assert_eq!(found[1..], ["text okdone"]);
}

#[test]
fn numbers_are_clamped_and_missing_ones_have_defaults() {
    let csi = Csi::new(b"?99999999;;7:3", b'H');
    let params = csi.params().unwrap();
    assert_eq!(
        (params.prefix, params.get(0, 1), params.get(1, 1), params.get(2, 1), params.get(3, 9)),
        (b'?', 65535, 1, 7, 9)
    );
    assert!(Csi::new(b"1?2", b'H').params().is_none());
    assert!(
        Csi::new(b"1;2", b'm').is_sgr() && Csi::new(b"", b'm').is_sgr() && !Csi::new(b">4;1", b'm').is_sgr()
    );
}

proptest! {
    #[test]
    fn every_cut_finds_the_same(
        pieces in proptest::collection::vec(prop_oneof![
            Just(b"\x1b[1;2H".to_vec()), Just(b"\x1b]2;ti\xc3\xbctle\x1b\\".to_vec()), Just("ä漢🙂".as_bytes().to_vec()),
            Just(b"\r\n".to_vec()), Just(b"\x1bPq#0\x1b\\".to_vec()), proptest::collection::vec(any::<u8>(), 0..12),
        ], 0..20),
        cuts in proptest::collection::vec(0usize..200, 0..12),
    ) {
        let bytes = pieces.concat();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(scan_in(&chunks), scan_in(&[&bytes]));
    }
}
