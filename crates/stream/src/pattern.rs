//! Regular expressions that can be matched while output streams by.
//!
//! All patterns of a set become one lazily built DFA, which reads each byte once however many patterns there
//! are. Where every match starts with one of a few literals, a prefilter searches for those first, and the
//! DFA only sees the lines that have one. The DFA only says *that* a pattern matched. What exactly matched is
//! found afterwards, on that line alone, by an ordinary regex that is built when it is first needed.

use std::sync::{Arc, OnceLock};

use memchr::memmem::Finder;
use regex_automata::hybrid::dfa::DFA;
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::prefilter::Prefilter;
use regex_automata::{MatchKind, Span, meta};
use regex_syntax::hir::literal::{ExtractKind, Extractor};
use regex_syntax::hir::{Hir, HirKind, Look};

/// The longest pattern that is accepted.
pub const MAX_PATTERN_BYTES: usize = 1024;
/// The most patterns in one set.
pub const MAX_PATTERNS: usize = 256;
/// The memory limit of the NFA. A pattern such as `(\w{1000}){1000}` does not fit.
const NFA_BYTES: usize = 8 << 20;
/// The memory limit of the lazy DFA's cache; beyond it, the cache is cleared.
const CACHE_BYTES: usize = 2 << 20;
/// The most literal prefixes that one pattern may have.
const MAX_PREFIXES_PER_PATTERN: usize = 16;
/// The most literal prefixes of a whole set. More cannot be searched for at once.
const MAX_PREFIXES: usize = 64;
/// The most patterns of a set that is made ready ahead of time.
const MAX_READY_PATTERNS: usize = 4;
/// Prefixes are cut to this length.
const MAX_PREFIX_BYTES: usize = 8;
/// Prefixes shorter than this are searched for one by one, so that the others have about this length.
const SHORT_PREFIX_BYTES: usize = 4;
/// How many short prefixes may be searched for one by one.
const MAX_SHORT_PREFIXES: usize = 3;

/// Why a pattern was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.describe())]
pub struct PatternError {
    /// Which pattern of the set, from 0.
    pub index: usize,
    /// The pattern as the caller passed it (cut short if very long).
    pub pattern: String,
    /// What is wrong with the pattern.
    pub problem: String,
    /// The character, from 0, at which it is wrong, if that is known.
    pub column: Option<usize>,
}

impl PatternError {
    fn describe(&self) -> String {
        let mut text = format!("pattern {} is not usable: {}", self.index + 1, self.problem);
        if let Some(column) = self.column
            && !self.pattern.contains('\n')
        {
            text.push_str(&format!("\n  {}\n  {}^", self.pattern, " ".repeat(column)));
        }
        text
    }
}

/// Compiled patterns. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct PatternSet {
    compiled: Arc<Compiled>,
}

#[derive(Debug)]
struct Compiled {
    dfa: DFA,
    /// Finds where a match could start, much faster than the DFA. `None` if a match could start anywhere.
    prefilter: Option<Prefixes>,
    hirs: Vec<Hir>,
    regexes: Vec<OnceLock<Option<meta::Regex>>>,
}

impl PatternSet {
    /// Compiles patterns in Rust's regex syntax. Unicode is on, `^` and `$` match at line ends, and `\b`,
    /// `\<` and similar only know ASCII words.
    ///
    /// # Errors
    /// Names the first pattern that is too long, invalid or too large, and where it is invalid.
    pub fn compile<S: AsRef<str>>(patterns: &[S]) -> Result<Self, PatternError> {
        let mut hirs = Vec::with_capacity(patterns.len());
        for (index, pattern) in patterns.iter().enumerate() {
            hirs.push(parse(index, pattern.as_ref())?);
        }
        if hirs.len() > MAX_PATTERNS {
            return Err(refuse(MAX_PATTERNS, "", format!("at most {MAX_PATTERNS} patterns fit in one set")));
        }
        for (index, hir) in hirs.iter().enumerate() {
            build_nfa(std::slice::from_ref(hir))
                .map_err(|error| refuse(index, patterns[index].as_ref(), error))?;
        }
        let last = hirs.len().saturating_sub(1);
        let all = |problem: String| refuse(last, patterns.last().map_or("", AsRef::as_ref), problem);
        let nfa =
            build_nfa(&hirs).map_err(|error| all(format!("the patterns together are too large: {error}")))?;
        let config = DFA::config()
            .match_kind(MatchKind::All)
            .cache_capacity(CACHE_BYTES)
            .skip_cache_capacity_check(true);
        let dfa =
            DFA::builder().configure(config).build_from_nfa(nfa).map_err(|error| all(error.to_string()))?;
        let regexes = hirs.iter().map(|_| OnceLock::new()).collect();
        let prefilter = literal_prefixes(&hirs);
        Ok(Self { compiled: Arc::new(Compiled { dfa, prefilter, hirs, regexes }) })
    }

    /// The same patterns, without the prefilter.
    #[cfg(test)]
    pub(crate) fn without_prefilter(&self) -> Self {
        let Compiled { dfa, hirs, .. } = &*self.compiled;
        let regexes = hirs.iter().map(|_| OnceLock::new()).collect();
        let compiled = Compiled { dfa: dfa.clone(), prefilter: None, hirs: hirs.clone(), regexes };
        Self { compiled: Arc::new(compiled) }
    }

    /// How many patterns there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.compiled.hirs.len()
    }

    /// Whether there is no pattern.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.compiled.hirs.is_empty()
    }

    pub(crate) fn dfa(&self) -> &DFA {
        &self.compiled.dfa
    }

    pub(crate) fn prefilter(&self) -> Option<&Prefixes> {
        self.compiled.prefilter.as_ref()
    }

    /// Makes ahead of time what the first match would have to wait for. Of a large set nothing: most of it is never needed.
    pub fn get_ready(&self) {
        if self.len() <= MAX_READY_PATTERNS {
            for regex in (0..self.len()).filter_map(|index| self.regex(index)) {
                let mut captures = regex.create_captures();
                regex.captures("\n", &mut captures);
            }
        }
    }

    /// The ordinary regex of one pattern, to find what it matched.
    pub(crate) fn regex(&self, index: usize) -> Option<&meta::Regex> {
        self.compiled.regexes[index]
            .get_or_init(|| {
                // One thread uses it. To find out how many there could be takes a dozen files of `/proc` and `/sys`.
                let config =
                    meta::Regex::config().utf8_empty(true).nfa_size_limit(Some(NFA_BYTES)).pool_capacity(1);
                meta::Regex::builder().configure(config).build_from_hir(&self.compiled.hirs[index]).ok()
            })
            .as_ref()
    }
}

/// The literals that matches start with, if every match starts with one, and they are few and long enough to
/// be rare.
fn literal_prefixes(hirs: &[Hir]) -> Option<Prefixes> {
    let mut extractor = Extractor::new();
    extractor.kind(ExtractKind::Prefix).limit_total(MAX_PREFIXES_PER_PATTERN);
    let mut words: Vec<Vec<u8>> = Vec::new();
    for hir in hirs {
        let mut prefixes = extractor.extract(hir);
        prefixes.keep_first_bytes(MAX_PREFIX_BYTES);
        // Lines are searched without their line ends.
        let in_a_line = |word: &[u8]| word.split(|byte| *byte == b'\n').next().unwrap_or_default().to_vec();
        words.extend(prefixes.literals()?.iter().map(|literal| in_a_line(literal.as_bytes())));
    }
    words.sort();
    words.dedup();
    let shortest = words.iter().map(Vec::len).min()?;
    let rare = shortest >= 2 || (shortest == 1 && words.len() <= 3);
    if !rare || words.len() > MAX_PREFIXES {
        return None;
    }
    Prefixes::new(words)
}

/// Literals such that every match starts with one of them.
#[derive(Debug)]
pub(crate) struct Prefixes {
    together: Option<Prefilter>,
    /// A multi-literal search looks at as many bytes at once as the shortest literal has. So short ones are
    /// searched for one by one.
    short: Vec<Finder<'static>>,
    longest: usize,
}

impl Prefixes {
    fn new(words: Vec<Vec<u8>>) -> Option<Self> {
        let longest = words.iter().map(Vec::len).max()?;
        let are_few =
            |len: &usize| words.iter().filter(|word| word.len() < *len).count() <= MAX_SHORT_PREFIXES;
        let min_bytes = (2..=SHORT_PREFIX_BYTES).rev().find(are_few).unwrap_or(0);
        let (short, long): (Vec<_>, Vec<_>) = words.into_iter().partition(|word| word.len() < min_bytes);
        let together =
            if long.is_empty() { None } else { Some(Prefilter::new(MatchKind::LeftmostFirst, &long)?) };
        let short = short.iter().map(|word| Finder::new(word).into_owned()).collect();
        Some(Self { together, short, longest })
    }

    /// The length of the longest one.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Where the first one starts in a span of the text.
    pub(crate) fn find(&self, text: &[u8], span: Span) -> Option<usize> {
        let found = self.together.as_ref().and_then(|words| words.find(text, span)).map(|found| found.start);
        self.short.iter().fold(found, |found, word| {
            // Only search before the one already found.
            let end = found.map_or(span.end, |at| (at + word.needle().len() - 1).min(span.end));
            word.find(&text[span.start..end]).map(|at| span.start + at).or(found)
        })
    }
}

fn refuse(index: usize, pattern: &str, problem: String) -> PatternError {
    PatternError { index, pattern: pattern.chars().take(200).collect(), problem, column: None }
}

fn build_nfa(hirs: &[Hir]) -> Result<thompson::NFA, String> {
    thompson::Compiler::new()
        .configure(
            thompson::NFA::config()
                .utf8(false)
                .nfa_size_limit(Some(NFA_BYTES))
                .which_captures(WhichCaptures::None),
        )
        .build_many_from_hir(hirs)
        .map_err(|error| error.to_string())
}

fn parse(index: usize, pattern: &str) -> Result<Hir, PatternError> {
    if pattern.len() > MAX_PATTERN_BYTES {
        let problem = format!("it has {} bytes, at most {MAX_PATTERN_BYTES} are taken", pattern.len());
        return Err(refuse(index, pattern, problem));
    }
    let parsed =
        regex_syntax::ParserBuilder::new().multi_line(true).utf8(true).nest_limit(100).build().parse(pattern);
    let (problem, column) = match parsed {
        Ok(hir) => return Ok(ascii_words(&hir)),
        Err(regex_syntax::Error::Parse(error)) => (error.kind().to_string(), Some(error.span().start.offset)),
        Err(regex_syntax::Error::Translate(error)) => {
            (error.kind().to_string(), Some(error.span().start.offset))
        }
        Err(other) => (other.to_string(), None),
    };
    let column = column.map(|offset| pattern.get(..offset).map_or(0, |before| before.chars().count()));
    Err(PatternError { index, pattern: pattern.to_owned(), problem, column })
}

/// A lazy DFA cannot look around for Unicode words, so word boundaries become ASCII ones.
fn ascii_words(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Look(look) => Hir::look(match look {
            Look::WordUnicode => Look::WordAscii,
            Look::WordUnicodeNegate => Look::WordAsciiNegate,
            Look::WordStartUnicode => Look::WordStartAscii,
            Look::WordEndUnicode => Look::WordEndAscii,
            Look::WordStartHalfUnicode => Look::WordStartHalfAscii,
            Look::WordEndHalfUnicode => Look::WordEndHalfAscii,
            other => *other,
        }),
        HirKind::Repetition(repetition) => {
            let mut repetition = repetition.clone();
            repetition.sub = Box::new(ascii_words(&repetition.sub));
            Hir::repetition(repetition)
        }
        HirKind::Capture(capture) => {
            let mut capture = capture.clone();
            capture.sub = Box::new(ascii_words(&capture.sub));
            Hir::capture(capture)
        }
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(ascii_words).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(ascii_words).collect()),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) => hir.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_pattern_is_named_with_the_position_of_the_error() {
        let error = PatternSet::compile(&["ok", "über(foo"]).unwrap_err();
        assert_eq!((error.index, error.column), (1, Some(4)));
        assert_eq!(error.to_string(), "pattern 2 is not usable: unclosed group\n  über(foo\n      ^");
    }

    #[test]
    fn patterns_too_long_or_too_large_are_refused() {
        let long = "x".repeat(MAX_PATTERN_BYTES + 1);
        assert!(PatternSet::compile(&[long]).unwrap_err().problem.contains("at most 1024"));
        let error = PatternSet::compile(&["fine", r"(\w{500}){500}"]).unwrap_err();
        assert_eq!(error.index, 1);
        assert!(PatternSet::compile(&["("; 1]).is_err());
        assert!(PatternSet::compile(&vec!["a"; MAX_PATTERNS + 1]).is_err());
    }

    #[test]
    fn prefixes_are_known_where_every_match_has_one() {
        let known = |patterns: &[&str]| PatternSet::compile(patterns).unwrap().prefilter().is_some();
        assert!(known(&["panicked at", r"error(\[E\d+\])?:", r"^\$ $", "(?i)password:", r"\bword\b.*done"]));
        assert!(known(&["x"]));
        assert!(!known(&["error", r"\d+ passed"]), "a match can begin with any digit");
        assert!(!known(&["error", ".*"]), "a match can be empty");
        assert!(!known(&["a|b|c|d"]), "found in every line");
    }

    #[test]
    fn unicode_word_boundaries_are_accepted() {
        assert!(PatternSet::compile(&[r"\bfoo\b", r"(?:a|\Bb)+", r"\b{start}x\b{end}"]).is_ok());
    }
}
