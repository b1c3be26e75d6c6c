//! What is hidden, wherever it is cut, and what is not.

use super::*;
use proptest::prelude::*;

const SECRET: &str = "hunter2-Zx9/correct+horse";

fn masks() -> Masks {
    let mut masks = Masks::new([7; 32]);
    assert!(masks.add(SECRET, false));
    masks
}

fn hidden(masks: &Masks, text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    masks.hide(&mut bytes);
    assert_eq!(bytes.len(), text.len(), "offsets stay valid");
    String::from_utf8(bytes).unwrap()
}

/// Asserts that no four consecutive bytes of the secret are visible.
fn assert_hidden(text: &str) {
    for piece in SECRET.as_bytes().windows(MIN_SECRET_BYTES) {
        let piece = std::str::from_utf8(piece).unwrap();
        assert!(!text.contains(piece), "{piece:?} is in {text:?}");
    }
}

#[test]
fn a_known_value_is_hidden_and_the_text_around_it_stays() {
    let text = format!("token={SECRET};\nnext");
    let stars = "*".repeat(SECRET.len());
    assert_eq!(hidden(&masks(), &text), format!("token={stars};\nnext"));
    assert_eq!(masks().text(&text), hidden(&masks(), &text));
}

#[test]
fn colours_cursor_moves_and_line_breaks_do_not_break_a_secret() {
    for between in ["\x1b[31m", "\x1b[0;1m\x1b[K", "\r\n", "\n", "\x1b]0;title\x07", "\x1b(B", "\x1b[5;3H"] {
        for cut in 4..SECRET.len() {
            let text = format!("a {}{between}{} b", &SECRET[..cut], &SECRET[cut..]);
            let hidden = hidden(&masks(), &text);
            assert_hidden(&hidden);
            assert!(hidden.starts_with("a *") && hidden.ends_with("* b"), "{hidden:?}");
            let plain = between.trim_matches(['\r', '\n']);
            assert!(plain.is_empty() || hidden.contains(plain), "sequences stay intact: {hidden:?}");
        }
    }
}

#[test]
fn a_secret_with_backspaces_is_hidden() {
    let bold: String = SECRET.chars().map(|c| format!("{c}\x08{c}")).collect();
    let hidden = hidden(&masks(), &bold);
    assert!(!hidden.contains('Z') && !hidden.contains('9'), "{hidden:?}");
}

#[test]
fn what_was_printed_and_taken_back_is_hidden_in_raw_output() {
    assert_hidden(&hidden(&masks(), &format!("{SECRET}\x08\x08\x08xxx\n")));
}

#[test]
fn the_beginning_of_a_value_is_left_to_the_text_that_the_bytes_become() {
    let mut drawn = format!("XXXXXX{}\r{}\r\n", &SECRET[6..], &SECRET[..6]).into_bytes();
    let before = drawn.clone();
    masks().hide_complete(&mut drawn);
    assert_eq!(drawn, before);
    let mut whole = format!("{SECRET} {}", &SECRET[..6]).into_bytes();
    masks().hide_complete(&mut whole);
    assert_eq!(whole, format!("{} {}", "*".repeat(SECRET.len()), &SECRET[..6]).into_bytes());
}

#[test]
fn a_secret_in_a_title_is_hidden_in_raw_output() {
    assert_hidden(&hidden(&masks(), &format!("\x1b]0;run {SECRET}\x07$ ")));
    assert_hidden(&hidden(&masks(), &format!("\x1b]0;run {SECRET}")));
}

#[test]
fn a_secret_that_continues_in_the_next_row_is_hidden_in_both() {
    let mut rows = vec![
        "before".to_owned(),
        format!("│ {} │", &SECRET[..12]),
        format!("│ {}   │", &SECRET[12..]),
        "after".into(),
    ];
    let lengths: Vec<usize> = rows.iter().map(String::len).collect();
    masks().rows(&mut rows, 80);
    assert_hidden(&rows.join("\n"));
    assert_hidden(&rows.concat());
    assert_eq!(rows.iter().map(String::len).collect::<Vec<_>>(), lengths);
    assert_eq!((rows[0].as_str(), rows[3].as_str()), ("before", "after"));
}

#[test]
fn a_key_that_is_wrapped_by_the_screen_is_hidden() {
    let key = format!("see ghp_{}", "aB3d".repeat(9));
    let mut rows: Vec<String> =
        key.as_bytes().chunks(10).map(|row| String::from_utf8(row.to_vec()).unwrap()).collect();
    Masks::new([0; 32]).rows(&mut rows, 10);
    assert_eq!(rows.concat(), format!("see ghp_{}", "*".repeat(36)));
}

#[test]
fn the_start_of_a_secret_at_the_end_of_the_text_is_hidden() {
    for cut in 0..=SECRET.len() {
        let text = hidden(&masks(), &format!("key: {}", &SECRET[..cut]));
        let seen = text.strip_prefix("key: ").unwrap().bytes().filter(|byte| *byte != b'*').count();
        assert!(seen < MIN_SECRET_BYTES, "{text:?}");
    }
}

#[test]
fn text_that_only_starts_like_a_secret_stays() {
    let text = format!("{}other words\n{}", &SECRET[..10], &SECRET[..3]);
    assert_eq!(hidden(&masks(), &text), text);
}

#[test]
fn the_file_format_has_no_values_and_finds_the_same() {
    let mut masks = masks();
    masks.add("typed-by-hand", true);
    masks.add_pattern("corp-[0-9]{6}").unwrap();
    let text = masks.to_text();
    assert_hidden(&text);
    assert!(!text.contains("typed-by-hand"));
    let read = Masks::parse(&text).unwrap();
    assert_eq!(read.to_text(), text);
    let said = format!("{SECRET} typed-by-hand corp-123456 corp-12");
    assert_eq!(hidden(&read, &said), hidden(&masks, &said));
    assert!(hidden(&read, &said).ends_with("* corp-12"));
    let typed = read.typed_only().unwrap();
    assert_eq!(hidden(&typed, &said).replace('*', ""), format!("{SECRET}  corp-123456 corp-12"));
    assert!(Masks::parse("something else").is_none());
}

#[test]
fn a_pattern_hides_its_group_and_a_bad_one_says_why() {
    let mut masks = Masks::new([1; 32]);
    masks.add_pattern(r"pin: (\d+)").unwrap();
    assert_eq!(hidden(&masks, "pin: 1234, pin: 99\n"), "pin: ****, pin: **\n");
    assert!(masks.add_pattern("(").unwrap_err().to_string().contains("pattern"));
    assert!(masks.add_pattern("x*").unwrap_err().to_string().contains("nothing"));
}

/// An example of each format, split so that secret scanners do not take them for real ones.
fn samples() -> Vec<(String, String)> {
    let body = |n: usize| "aB3dE5gH1jK2mN4pQ6rS8tU0vW9xY7zA".chars().cycle().take(n).collect::<String>();
    let upper = |n: usize| body(n).to_uppercase();
    [
        ("AKIA", upper(16)),
        ("ASIA", upper(16)),
        ("ghp_", body(36)),
        ("github_pat_", body(60)),
        ("glpat-", body(20)),
        ("xoxb-", format!("{}-{}", "123456789012", body(24))),
        ("sk-", format!("ant-api03-{}", body(60))),
        ("sk-", format!("proj-{}", body(40))),
        ("sk_live_", body(24)),
        ("AIza", body(35)),
        ("npm_", body(36)),
        ("pypi-", body(80)),
        ("hf_", body(34)),
        ("Authorization: Bearer ", body(30)),
        ("Authorization: Basic ", body(20)),
        ("eyJ", format!("{}.{}.{}", body(30), body(60), body(40))),
        ("postgres://app:", body(12)),
        ("DB_PASSWORD=", body(14)),
        ("AWS_SECRET_ACCESS_KEY=\"", body(40)),
    ]
    .map(|(start, rest)| (start.to_owned(), rest))
    .to_vec()
}

#[test]
fn common_formats_are_hidden_and_their_prefixes_stay() {
    for (start, rest) in samples() {
        let end = if start.contains("://") {
            "@host/db"
        } else if start.ends_with('"') {
            "\""
        } else {
            ""
        };
        let text = format!("see {start}{rest}{end} ok\n");
        let hidden = hidden(&Masks::new([0; 32]), &text);
        assert_eq!(hidden, format!("see {start}{}{end} ok\n", "*".repeat(rest.len())), "{start}");
    }
}

#[test]
fn a_private_key_is_hidden_between_its_lines() {
    let key = |body: &str| {
        format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----\nok\n")
    };
    let (text, expected) = (key("b3BlbnNzaC1r\nZXktdjEAAAAA"), key("************\n************"));
    assert_eq!(hidden(&Masks::new([0; 32]), &text), expected);
    let public = "-----BEGIN PUBLIC KEY-----\nb3BlbnNzaC1r\n-----END PUBLIC KEY-----\n";
    assert_eq!(hidden(&Masks::new([0; 32]), public), public);
}

#[test]
fn ordinary_output_is_unchanged() {
    for text in [
        "  Local:   http://localhost:3000/\n  Network: http://192.168.1.7:5173",
        "task-runner-with-a-very-long-name disk-usage-of-the-whole-machine\n",
        "let token = read_token()?; password: String, KEY=$(pass show x) TOKEN=\"$TOKEN\"\n",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8\nsha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n",
        "git@github.com:owner/name.git https://user@host/x?a=b:c\n",
        "npm_config_cache=/root/.npm npm_lifecycle_event=test SSH_KEY=/home/me/.ssh/id\n",
        "eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbImEuanMiXX0=\n",
        "The Bearer of this letter\n",
    ] {
        assert_eq!(hidden(&Masks::new([0; 32]), text), text);
    }
}

/// Offers bytes in pieces, as a caller does. With `flush_each`, what is held back is taken after each piece.
fn redact(masks: &Masks, pieces: &[&[u8]], flush_each: bool) -> Vec<u8> {
    let mut redactor = Redactor::default();
    let (mut out, mut held) = (Vec::new(), Vec::new());
    for (i, piece) in pieces.iter().enumerate() {
        held.extend_from_slice(piece);
        let last = flush_each || i + 1 == pieces.len();
        let mut offered = held.clone();
        let given = redactor.next(masks, &mut offered, last);
        out.extend_from_slice(&offered[..given]);
        held.drain(..given);
    }
    assert!(held.is_empty());
    out
}

#[test]
fn a_stream_cut_anywhere_leaks_nothing() {
    let mut masks = masks();
    masks.add_pattern("corp-[0-9]{6}").unwrap();
    let text =
        format!("\x1b[1mstart\x1b[0m {} and {SECRET} \x1b[32mcorp-123456\n{SECRET}\r\nend", "ghp_a1B2");
    let whole = redact(&masks, &[text.as_bytes()], false);
    assert_eq!(whole.len(), text.len());
    assert_hidden(std::str::from_utf8(&whole).unwrap());
    for cut in 0..=text.len() {
        let (a, b) = text.as_bytes().split_at(cut);
        assert_eq!(redact(&masks, &[a, b], false), whole, "cut at {cut}");
        let slow = redact(&masks, &[a, b], true);
        assert_hidden(std::str::from_utf8(&slow).unwrap());
    }
    let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
    assert_eq!(redact(&masks, &bytes, false), whole, "byte by byte");
}

#[test]
fn a_secret_that_ends_where_a_piece_ends_is_hidden_to_its_end() {
    let mut masks = Masks::new([7; 32]);
    masks.add(SECRET, true);
    let masks = masks.typed_only().unwrap();
    let text = format!("you typed {SECRET}\r\n{SECRET}\r\nthanks\r\n");
    let hidden = text.replace(SECRET, &"*".repeat(SECRET.len()));
    for length in 1..12 {
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(length).collect();
        assert_eq!(String::from_utf8(redact(&masks, &pieces, false)).unwrap(), hidden, "by {length}");
    }
}

#[test]
fn a_key_longer_than_a_piece_stays_hidden_to_its_end() {
    let (start, rest) = ("sk-", "aB3-".repeat(1000));
    let text = format!("{start}{rest} done");
    let pieces: Vec<&[u8]> = text.as_bytes().chunks(100).collect();
    let out = String::from_utf8(redact(&Masks::new([0; 32]), &pieces, false)).unwrap();
    assert_eq!(out, format!("{start}{} done", "*".repeat(rest.len())));
}

proptest! {
    /// Whatever surrounds the secret and wherever the pieces end, the same bytes come out as from one piece,
    /// and nothing of the secret.
    #[test]
    fn no_cut_and_no_surrounding_text_leaks_a_secret(
        before in "[ -~\n]{0,40}",
        after in "[ -~\n]{0,40}",
        secret in "[!-~]{8,40}",
        colour in 0..40_usize,
        cuts in prop::collection::vec(0..200_usize, 0..6),
    ) {
        let mut masks = Masks::new([9; 32]);
        masks.add(&secret, false);
        let colour = colour.min(secret.len());
        let text = format!("{before}{}\x1b[3{}m{}{after}", &secret[..colour], colour % 8, &secret[colour..]);
        let mut whole = text.clone().into_bytes();
        masks.hide(&mut whole);
        let shown = String::from_utf8(whole).unwrap().replace(&format!("\x1b[3{}m", colour % 8), "");
        prop_assert!(!shown.contains(&secret), "{shown:?}");
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([text.len()]) {
            pieces.push(&text.as_bytes()[from..cut]);
            from = cut;
        }
        let out = String::from_utf8(redact(&masks, &pieces, false)).unwrap();
        let out = out.replace(&format!("\x1b[3{}m", colour % 8), "");
        prop_assert!(!out.contains(&secret), "{out:?}");
        for piece in secret.as_bytes().windows(MIN_SECRET_BYTES) {
            let piece = std::str::from_utf8(piece).unwrap();
            let joined = format!("{before}{after}");
            let elsewhere = [&before, &after, &joined].iter().any(|text| text.contains(piece));
            let twice = secret.matches(piece).count() > 1;
            prop_assume!(!elsewhere && !twice && !piece.contains('*'));
            prop_assert!(!out.contains(piece), "{piece:?} of {secret:?} in {out:?}");
        }
    }
}

/// Lines of numbers, of hexadecimal digits, and of a picture in base64 are not keys, however many there are.
#[test]
fn long_runs_of_ordinary_lines_are_not_taken_for_a_key() {
    let picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9";
    for line in [&format!("{:063}", 17), &format!("{:064}", 17), &"deadbeef".repeat(8), &picture.to_owned()] {
        let mut text = format!("{line}\n").repeat(200).into_bytes();
        Masks::new([7; 32]).hide(&mut text);
        assert!(!text.contains(&b'*'), "{line}");
    }
}
