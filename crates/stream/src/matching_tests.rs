//! What patterns see, and when they report.

use crate::pipeline::scan;
use crate::{Config, FoldOutput, Hit, PatternSet, Pipeline};
use proptest::prelude::*;

fn hits_in(patterns: &[&str], chunks: &[&[u8]]) -> Vec<Hit> {
    let mut pipeline = Pipeline::new(Config::default());
    pipeline.watch(7, PatternSet::compile(patterns).unwrap());
    let mut out = FoldOutput::default();
    for chunk in chunks {
        pipeline.feed(chunk, &mut out);
    }
    out.hits
}

fn texts(patterns: &[&str], bytes: &[u8]) -> Vec<String> {
    let set = PatternSet::compile(patterns).unwrap();
    let whole: Vec<String> =
        scan(Config::default(), set.clone(), [bytes]).into_iter().map(|hit| hit.text).collect();
    let split: Vec<String> =
        scan(Config::default(), set, bytes.chunks(1)).into_iter().map(|hit| hit.text).collect();
    assert_eq!(whole, split);
    whole
}

#[test]
fn a_hit_has_text_groups_and_the_offset_after_the_match() {
    let hits = hits_in(
        &["nope", r"listening on port (?<port>\d+)( tls)?"],
        &[b"\x1b[32mlistening on port 8080\x1b[0m\r\n"],
    );
    assert_eq!(hits.len(), 1);
    assert_eq!((hits[0].watch, hits[0].pattern, hits[0].offset), (7, 1, 5 + 22));
    assert_eq!(hits[0].text, "listening on port 8080");
    assert_eq!(hits[0].captures, [Some("8080".to_owned()), None]);
    assert_eq!(hits[0].names, [("port".to_owned(), "8080".to_owned())]);
}

#[test]
fn a_word_before_a_line_break_is_found() {
    assert_eq!(texts(&["one\n"], b"no\r\none\r\ntwo\r\n"), ["one\n"]);
    assert_eq!(texts(&["one\ntwo"], b"no\r\none\r\ntwo\r\n"), ["one\ntwo"]);
}

#[test]
fn a_match_may_span_chunks_and_colours() {
    assert_eq!(hits_in(&["error: foo"], &[b"err", b"or\x1b[", b"1m: f", b"oo\r\n"])[0].text, "error: foo");
}

#[test]
fn the_unfinished_line_counts_at_the_end_of_the_input() {
    assert_eq!(hits_in(&["^>>> $"], &[b"Python\r\n>>", b"> "]).len(), 1);
    assert_eq!(hits_in(&["^>>> $"], &[b"Python\r\n>>> x"]).len(), 0);
    // And only once, however often it is checked.
    assert_eq!(hits_in(&["^>>> $"], &[b">>> ", b"\x1b[0m", b""]).len(), 1);
}

#[test]
fn each_pattern_reports_once_a_line() {
    assert_eq!(texts(&["a+", "b"], b"aa a b\r\nxa\r\nb b\r\n"), ["aa", "b", "a", "b"]);
}

#[test]
fn a_carriage_return_restarts_the_line() {
    assert_eq!(texts(&["^done$"], b"working\rdone\r\n"), ["done"]);
    assert_eq!(texts(&["^50%$"], b"10%\r50%\r100%\r\n"), ["50%"]);
    assert_eq!(texts(&["^text$"], b"text\r\r\n"), ["text"]);
}

#[test]
fn backspaces_erase_and_small_gaps_are_blanks() {
    assert_eq!(texts(&["^working ok$"], b"working |\x08/\x08-\x08ok\r\n"), ["working ok"]);
    assert_eq!(texts(&["^a  b$"], b"a\x1b[2Cb\r\n"), ["a  b"]);
    assert_eq!(texts(&["ab"], b"a\x1b[60Cb\r\n"), Vec::<String>::new());
}

#[test]
fn text_on_the_alternate_screen_matches() {
    assert_eq!(texts(&["INSERT"], b"\x1b[?1049h\x1b[24;1H-- INSERT --\x1b[1;1H"), ["INSERT"]);
}

#[test]
fn a_watch_starts_where_it_is_added() {
    let mut pipeline = Pipeline::new(Config::default());
    let mut out = FoldOutput::default();
    pipeline.feed(b"ready\r\n>>> ", &mut out);
    pipeline.watch(1, PatternSet::compile(&["ready", "^1", ">>> "]).unwrap());
    pipeline.feed(b"1+1\r\n2\r\n", &mut out);
    assert_eq!(out.hits, []);
    pipeline.watch(2, PatternSet::compile(&["^3"]).unwrap());
    pipeline.feed(b"3\r\n>>> ", &mut out);
    assert_eq!(out.hits.iter().map(|hit| (hit.watch, hit.pattern)).collect::<Vec<_>>(), [(2, 0), (1, 2)]);
    pipeline.unwatch(1);
    out.clear();
    pipeline.feed(b"ready 3\r\n3\r\n", &mut out);
    assert_eq!(out.hits.iter().map(|hit| hit.watch).collect::<Vec<_>>(), [2]);
}

#[test]
fn a_pattern_may_span_lines() {
    let found =
        texts(&[r"Traceback(?s:.*)Error: \w+"], b"Traceback (most)\r\n  File\r\nValueError: bad\r\nmore\r\n");
    assert_eq!(found, ["Traceback (most)\n  File\nValueError: bad"]);
}

#[test]
fn a_pattern_that_overflows_the_dfa_cache_still_matches() {
    let noise: String = (0..4000u32).map(|n| char::from_u32(0x4e00 + n * 5 % 20000).unwrap()).collect();
    let bytes = format!("{noise}\r\n{noise}KEY{}\r\n", "x".repeat(30));
    assert_eq!(texts(&[r"[\w]{0,40}KEY\w{30}$", r"(\p{L}\p{L}){20,40}x"], bytes.as_bytes()).len(), 2);
}

proptest! {
    #[test]
    fn every_cut_gives_the_same_hits(
        pieces in proptest::collection::vec(prop_oneof![
            Just("foo"), Just("bar 12"), Just("\r\n"), Just("\r"), Just("\x1b[31m"), Just("\x08"), Just(" "),
            Just("\x1b[3C"), Just("\x1b[2A"), Just("\n"), Just("é漢"), Just("\x1b[K"), Just("\x1b[5G"),
        ], 0..40),
        step in 1usize..9,
    ) {
        let bytes = pieces.concat();
        let set = PatternSet::compile(&[r"fo+\b", r"^bar (\d+)", "r 12$", r"漢\s*f"]).unwrap();
        let whole = scan(Config::default(), set.clone(), [bytes.as_bytes()]);
        prop_assert_eq!(scan(Config::default(), set, bytes.as_bytes().chunks(step)), whole);
    }

    #[test]
    fn the_prefilter_does_not_change_the_hits(
        pieces in proptest::collection::vec(prop_oneof![
            Just("foo"), Just("fo"), Just("o bar"), Just("bar 12"), Just("\r\n"), Just("\r"), Just("\x1b[31m"),
            Just("\x08"), Just(" "), Just("\x1b[3C"), Just("\x1b[2A"), Just("\n"), Just("error"), Just(": x"),
        ], 0..60),
        step in 1usize..9,
    ) {
        let bytes = pieces.concat();
        let patterns = [r"foo\b.*12$", r"^bar (\d+)", r"(?i)ERROR:\s+(bar|foo)", r"foo\s*\n\s*bar"];
        let set = PatternSet::compile(&patterns).unwrap();
        prop_assert!(set.prefilter().is_some());
        let slow = scan(Config::default(), set.without_prefilter(), [bytes.as_bytes()]);
        prop_assert_eq!(&scan(Config::default(), set.clone(), bytes.as_bytes().chunks(step)), &slow);
        let patterns = Config { only_patterns: true, ..Config::default() };
        prop_assert_eq!(scan(patterns, set, bytes.as_bytes().chunks(step)), slow);
    }
}
