//! Formats of common keys. What follows a known prefix is hidden; the prefix stays, so that the key can be
//! recognised.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, Input, Match, MatchKind, Span, packed};

use super::FoundSecrets;

/// The most bytes of one key that are searched.
const MAX_KEY_BYTES: usize = 6 << 10;

/// What follows the prefix.
#[derive(Clone, Copy, Debug)]
enum Rest {
    /// At least this many characters of a set.
    Run(Set, usize),
    /// Three parts separated by dots.
    Token,
    /// Everything up to the end of the PEM block.
    Block,
    /// `user:password@` in a URL.
    Address,
    /// The value of a variable whose name ends in a word such as `KEY`.
    Value,
    /// What a name such as `password` is set to, in any of the ways that files set it.
    Named(Strength),
}

/// How surely what a name is set to is a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strength {
    /// A password: short ones count too.
    Strong,
    /// A key may be one of a map.
    Weak,
}

/// A set of characters.
#[derive(Clone, Copy, Debug)]
enum Set {
    /// Upper case letters and digits.
    Upper,
    /// Letters and digits.
    Plain,
    /// Letters, digits, `_` and `-`.
    Word,
    /// Those, and `.`, `~`, `+`, `/`, `=`.
    Base64,
}

impl Set {
    fn has(self, byte: u8) -> bool {
        match self {
            Set::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Set::Plain => byte.is_ascii_alphanumeric(),
            Set::Word => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Set::Base64 => {
                byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'~' | b'+' | b'/' | b'=')
            }
        }
    }
}

/// Prefixes, and what follows them.
const FORMATS: &[(&str, Rest)] = &[
    // AWS.
    ("AKIA", Rest::Run(Set::Upper, 16)),
    ("ASIA", Rest::Run(Set::Upper, 16)),
    // GitHub.
    ("ghp_", Rest::Run(Set::Plain, 30)),
    ("gho_", Rest::Run(Set::Plain, 30)),
    ("ghu_", Rest::Run(Set::Plain, 30)),
    ("ghs_", Rest::Run(Set::Plain, 30)),
    ("ghr_", Rest::Run(Set::Plain, 30)),
    ("github_pat_", Rest::Run(Set::Word, 22)),
    // GitLab.
    ("glpat-", Rest::Run(Set::Word, 20)),
    ("gldt-", Rest::Run(Set::Word, 20)),
    ("glrt-", Rest::Run(Set::Word, 20)),
    ("glcbt-", Rest::Run(Set::Word, 20)),
    ("glptt-", Rest::Run(Set::Word, 20)),
    // Slack.
    ("xoxb-", Rest::Run(Set::Word, 10)),
    ("xoxp-", Rest::Run(Set::Word, 10)),
    ("xoxa-", Rest::Run(Set::Word, 10)),
    ("xoxr-", Rest::Run(Set::Word, 10)),
    ("xoxs-", Rest::Run(Set::Word, 10)),
    ("xapp-", Rest::Run(Set::Word, 10)),
    ("hooks.slack.com/services/", Rest::Run(Set::Base64, 20)),
    // OpenAI, Anthropic and others with the same form.
    ("sk-", Rest::Run(Set::Word, 20)),
    // Stripe.
    ("sk_live_", Rest::Run(Set::Plain, 16)),
    ("sk_test_", Rest::Run(Set::Plain, 16)),
    ("rk_live_", Rest::Run(Set::Plain, 16)),
    ("rk_test_", Rest::Run(Set::Plain, 16)),
    ("whsec_", Rest::Run(Set::Base64, 16)),
    // Google.
    ("AIza", Rest::Run(Set::Word, 35)),
    ("ya29.", Rest::Run(Set::Word, 20)),
    ("GOCSPX-", Rest::Run(Set::Word, 20)),
    // Package registries and other services.
    ("npm_", Rest::Run(Set::Plain, 36)),
    ("pypi-", Rest::Run(Set::Word, 50)),
    ("hf_", Rest::Run(Set::Plain, 30)),
    ("dckr_pat_", Rest::Run(Set::Word, 20)),
    ("dop_v1_", Rest::Run(Set::Plain, 40)),
    ("hvs.", Rest::Run(Set::Word, 20)),
    ("SG.", Rest::Run(Set::Base64, 40)),
    ("lin_api_", Rest::Run(Set::Plain, 30)),
    ("AGE-SECRET-KEY-1", Rest::Run(Set::Upper, 40)),
    // Headers.
    ("Bearer ", Rest::Run(Set::Base64, 16)),
    ("bearer ", Rest::Run(Set::Base64, 16)),
    ("uthorization: Basic ", Rest::Run(Set::Base64, 8)),
    ("uthorization: basic ", Rest::Run(Set::Base64, 8)),
    ("uthorization: token ", Rest::Run(Set::Base64, 16)),
    ("eyJ", Rest::Token),
    ("-----BEGIN ", Rest::Block),
    ("://", Rest::Address),
    // As in the output of `env` and in `.env` files.
    ("KEY=", Rest::Value),
    ("TOKEN=", Rest::Value),
    ("SECRET=", Rest::Value),
    ("PASSWORD=", Rest::Value),
    ("PASSWD=", Rest::Value),
    ("PASSPHRASE=", Rest::Value),
    ("PASS=", Rest::Value),
    // As in YAML, JSON, INI files, headers, `.netrc` and connection strings.
    ("password", Rest::Named(Strength::Strong)),
    ("Password", Rest::Named(Strength::Strong)),
    ("PASSWORD", Rest::Named(Strength::Strong)),
    ("passwd", Rest::Named(Strength::Strong)),
    ("passphrase", Rest::Named(Strength::Strong)),
    ("dbpass", Rest::Named(Strength::Strong)),
    ("_pass", Rest::Named(Strength::Strong)),
    ("pwd=", Rest::Named(Strength::Strong)),
    ("Pwd=", Rest::Named(Strength::Strong)),
    ("secret", Rest::Named(Strength::Strong)),
    ("Secret", Rest::Named(Strength::Strong)),
    ("SECRET", Rest::Named(Strength::Strong)),
    ("secret_access_key", Rest::Named(Strength::Strong)),
    ("secret_key", Rest::Named(Strength::Strong)),
    ("SecretAccessKey", Rest::Named(Strength::Strong)),
    ("SessionToken", Rest::Named(Strength::Strong)),
    ("token", Rest::Named(Strength::Strong)),
    ("Token", Rest::Named(Strength::Strong)),
    ("TOKEN", Rest::Named(Strength::Strong)),
    ("api_key", Rest::Named(Strength::Strong)),
    ("api-key", Rest::Named(Strength::Strong)),
    ("Api-Key", Rest::Named(Strength::Strong)),
    ("API-Key", Rest::Named(Strength::Strong)),
    ("apikey", Rest::Named(Strength::Strong)),
    ("apiKey", Rest::Named(Strength::Strong)),
    ("_key", Rest::Named(Strength::Weak)),
    ("Key=", Rest::Named(Strength::Weak)),
    ("KEY", Rest::Named(Strength::Weak)),
    ("cookie: ", Rest::Named(Strength::Weak)),
    ("Cookie: ", Rest::Named(Strength::Weak)),
];

/// Searches for all prefixes at once, vectorised where the processor can.
fn prefixes() -> Option<&'static Prefixes> {
    static ALL: OnceLock<Option<Prefixes>> = OnceLock::new();
    ALL.get_or_init(|| {
        let words = || FORMATS.iter().map(|(beginning, _)| beginning);
        let fast = packed::Config::new()
            .match_kind(packed::MatchKind::LeftmostLongest)
            .heuristic_pattern_limits(false)
            .builder()
            .extend(words())
            .build();
        match fast {
            Some(searcher) => Some(Prefixes::Packed(searcher)),
            None => {
                let automaton = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(words());
                automaton.ok().map(Prefixes::Automaton)
            }
        }
    })
    .as_ref()
}

enum Prefixes {
    Packed(packed::Searcher),
    Automaton(AhoCorasick),
}

impl Prefixes {
    fn find(&self, text: &[u8], from: usize) -> Option<Match> {
        let span = Span { start: from, end: text.len() };
        match self {
            Self::Packed(searcher) => searcher.find_in(text, span),
            Self::Automaton(automaton) => automaton.find(Input::new(text).span(span)),
        }
    }
}

/// Finds keys in visible text.
pub(super) fn find(text: &[u8], found: &mut FoundSecrets) {
    let Some(beginnings) = prefixes() else { return };
    let mut from = 0;
    while let Some(hit) = beginnings.find(text, from) {
        from = hit.end();
        let (_, rest) = FORMATS[hit.pattern().as_usize()];
        let at = hit.end();
        let joined = hit.start().checked_sub(1).is_some_and(|before| text[before].is_ascii_alphanumeric());
        match rest {
            Rest::Run(..) | Rest::Token if joined && text[hit.start()] != b'u' => {}
            Rest::Run(set, least) => run(text, at, (set, least), found),
            Rest::Token => token(text, hit.start(), found),
            Rest::Block => block(text, at, found),
            Rest::Address => address(text, at, found),
            Rest::Value => value(text, at, found),
            Rest::Named(strength) => named(text, hit.start()..hit.end(), strength, found),
        }
    }
    blocks_without_beginning(text, found);
}

/// Where the run of characters that pass a test ends, and whether it only ends because the text does.
fn until(text: &[u8], from: usize, most: usize, fits: impl Fn(u8) -> bool) -> (usize, bool) {
    let len = text[from..].iter().take(most).take_while(|byte| fits(**byte)).count();
    (from + len, from + len == text.len())
}

fn run(text: &[u8], at: usize, (set, least): (Set, usize), found: &mut FoundSecrets) {
    let (end, open) = until(text, at, MAX_KEY_BYTES, |byte| set.has(byte));
    if end - at >= least {
        found.spans.push(at..end);
    } else if open {
        if end - at >= least / 2 {
            found.spans.push(at..end);
        }
        found.undecided_from(at);
    }
}

fn token(text: &[u8], start: usize, found: &mut FoundSecrets) {
    let (end, open) = until(text, start, MAX_KEY_BYTES, |byte| Set::Word.has(byte) || byte == b'.');
    let body = &text[start..end];
    let parts = body.split(|byte| *byte == b'.').filter(|part| part.len() >= 8).count();
    let is_token = parts >= 2 && body.len() >= 24;
    if is_token || (open && body.len() >= 24) {
        found.spans.push(start + 3..end);
    }
    if open && !is_token {
        found.undecided_from(start);
    }
}

fn block(text: &[u8], at: usize, found: &mut FoundSecrets) {
    let (end, open) =
        until(text, at, 48, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ');
    let kind = &text[at..end];
    let private = kind.ends_with(b"PRIVATE KEY") || kind.ends_with(b"PRIVATE KEY BLOCK");
    if !private || open || !text[end..].starts_with(b"-----") {
        return;
    }
    let from = end + 5;
    let body = &text[from..];
    let len = memchr::memmem::find(body, b"-----END").unwrap_or(body.len());
    found.spans.push(from..from + len);
}

fn address(text: &[u8], at: usize, found: &mut FoundSecrets) {
    let (end, open) = until(text, at, 512, |byte| {
        byte > b' ' && byte != 0x7f && !matches!(byte, b'/' | b'"' | b'\'' | b'<' | b'>' | b'`')
    });
    let authority = &text[at..end];
    let Some(colon) = memchr::memchr(b':', authority) else { return };
    match memchr::memrchr(b'@', authority) {
        Some(host) if host > colon + 1 => found.spans.push(at + colon + 1..at + host),
        Some(_) => {}
        // `localhost:3000` looks the same up to here.
        None if open => found.undecided_from(at + colon + 1),
        None => {}
    }
}

fn value(text: &[u8], at: usize, found: &mut FoundSecrets) {
    let quoted = text.get(at).is_some_and(|byte| matches!(byte, b'"' | b'\''));
    let at = at + usize::from(quoted);
    if at >= text.len() || matches!(text[at], b'$' | b'<' | b'/' | b'(' | b'{' | b'*') {
        return;
    }
    let (end, open) = until(text, at, MAX_KEY_BYTES, |byte| {
        byte > b' ' && byte != 0x7f && !matches!(byte, b'"' | b'\'' | b';' | b'&' | b'|' | b')' | b',')
    });
    let telling = text[at..end].iter().any(u8::is_ascii_digit) || end - at >= 16;
    if end - at >= 8 && telling {
        found.spans.push(at..end);
    } else if open {
        found.undecided_from(at);
    }
}

/// `password: v`, `"token": "v"`, `secret = v`, `x-api-key: v`, and `password v` in a `.netrc`.
fn named(text: &[u8], hit: std::ops::Range<usize>, strength: Strength, found: &mut FoundSecrets) {
    // The name may go on: `password_hash`, `tokens`.
    let word = text[hit.clone()].iter().rposition(u8::is_ascii_alphanumeric).map_or(0, |last| last + 1);
    let name_end = hit.start + word;
    let blanks = |from: usize| until(text, from, 64, |byte| matches!(byte, b' ' | b'\t')).0;
    let is_quote = |at: usize| text.get(at).is_some_and(|byte| matches!(byte, b'"' | b'\''));
    let mut at = name_end;
    while is_quote(at) || text.get(at) == Some(&b'\\') || (text.get(at) == Some(&b']') && at > name_end) {
        at += 1;
    }
    let after_name = at;
    at = blanks(at);
    let separated = match text.get(at) {
        Some(b':') if text.get(at + 1) == Some(&b':') => return,
        Some(b'=') if matches!(text.get(at + 1), Some(b'=' | b'~')) => return,
        Some(b'=') if text.get(at + 1) == Some(&b'>') => {
            at += 2;
            true
        }
        Some(b':' | b'=') => {
            at += 1;
            true
        }
        _ => false,
    };
    let netrc = !separated && after_name == name_end && at > name_end && is_netrc(&text[..hit.start]);
    if !separated && !netrc {
        return;
    }
    at = blanks(at);
    while is_quote(at) || text.get(at) == Some(&b'\\') {
        at += 1;
    }
    if at >= text.len() {
        return;
    }
    let (end, open) = until(text, at, MAX_KEY_BYTES, |byte| {
        byte > b' '
            && byte != 0x7f
            && !matches!(byte, b'"' | b'\'' | b'\\' | b';' | b'&' | b'|' | b',' | b'<' | b'>')
    });
    let value = &text[at..end];
    if is_secret_value(value, strength) || (netrc && value.len() >= 4) {
        found.spans.push(at..end);
    } else if open {
        found.undecided_from(at);
    }
}

/// Whether what a name is set to is a secret, and no word, type or expression.
fn is_secret_value(value: &[u8], strength: Strength) -> bool {
    const EXPRESSION: &[u8] = b"(){}[]$<*`";
    let least = match strength {
        Strength::Strong => 6,
        Strength::Weak => 16,
    };
    if value.len() < least || value.starts_with(b"/") || value.iter().any(|byte| EXPRESSION.contains(byte)) {
        return false;
    }
    let digits = value.iter().any(u8::is_ascii_digit);
    let letters = value.iter().any(u8::is_ascii_alphabetic);
    let mixed = value.iter().any(u8::is_ascii_uppercase) && value.iter().any(u8::is_ascii_lowercase);
    let signs = value.iter().any(|byte| b"!#%^@?+/=~".contains(byte));
    // Numbers alone are counts: `tokens: 128000`.
    (digits && letters) || (signs && letters && value.len() >= 8) || (mixed && value.len() >= 20)
}

/// Whether a line of a `.netrc` comes before.
fn is_netrc(before: &[u8]) -> bool {
    let near = &before[before.len().saturating_sub(256)..];
    memchr::memmem::find(near, b"login ").is_some() || memchr::memmem::find(near, b"machine ").is_some()
}

/// The least base64 at the beginning of a text that is taken for the middle of a private key.
const MIN_MIDDLE_BYTES: usize = 3 << 10;

/// Private keys whose first line is not in the text, because it is too far away.
fn blocks_without_beginning(text: &[u8], found: &mut FoundSecrets) {
    let lines = base64_lines(text);
    let rest = &text[lines..];
    let ends_key = rest.starts_with(b"-----END ")
        && rest
            .get(..64.min(rest.len()))
            .is_some_and(|line| memchr::memmem::find(line, b"PRIVATE KEY").is_some());
    if lines >= MIN_MIDDLE_BYTES || (lines > 0 && ends_key) {
        found.spans.push(0..lines);
    }
}

/// How long the lines of a key are: those of PEM and PGP, and those of OpenSSH. `base64` writes longer ones.
const KEY_LINES: [usize; 2] = [64, 70];

/// Whether a line of base64 can be one of a key: numbers and words of one case are not.
fn is_key_line(line: &[u8]) -> bool {
    KEY_LINES.contains(&line.len())
        && line.iter().any(u8::is_ascii_uppercase)
        && line.iter().any(u8::is_ascii_lowercase)
}

/// How far a text begins with lines of a key, the first of which may be cut.
fn base64_lines(text: &[u8]) -> usize {
    let mut at = 0;
    let mut first = true;
    while at < text.len() {
        let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |len| at + len);
        let line = text[at..end].strip_suffix(b"\r").unwrap_or(&text[at..end]);
        let plain =
            line.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
        let whole = is_key_line(line) || first || line.ends_with(b"=") || end == text.len();
        if !plain || line.is_empty() || line.len() > KEY_LINES[1] || !whole {
            // The last line of a key may be short.
            let is_last =
                plain && !line.is_empty() && text[(end + 1).min(text.len())..].starts_with(b"-----END ");
            return if is_last { end + 1 } else { at };
        }
        first = false;
        at = end + 1;
    }
    text.len()
}
