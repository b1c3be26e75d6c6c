//! Regular expressions that can be matched while output streams by.
//!
//! All patterns of a set become one lazily built automaton, which looks at each byte once however many patterns there
//! are. Where every match begins with one of a few words, those are looked for first, and the automaton only sees the
//! lines that have one. It only says *that* a pattern matched; what exactly matched is found out afterwards, on that line alone,
//! by an ordinary regex that is built when it is first needed.

use std::sync::{Arc, OnceLock};

use memchr::memmem::Finder;
use regex_automata::hybrid::dfa::DFA;
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::prefilter::Prefilter;
use regex_automata::{MatchKind, Span, meta};
use regex_syntax::hir::literal::{ExtractKind, Extractor};
use regex_syntax::hir::{Hir, HirKind, Look};

/// Longest pattern that is taken.
pub const MAX_PATTERN_BYTES: usize = 1024;
/// Most patterns in one set.
pub const MAX_PATTERNS: usize = 256;
/// What the automaton's description may take; a pattern such as `(\w{1000}){1000}` does not fit.
const NFA_BYTES: usize = 8 << 20;
/// What the automaton may remember of itself before it starts to forget.
const CACHE_BYTES: usize = 2 << 20;
/// Words that matches begin with: so many for a pattern, so many for a set (more can't be looked for at once), and so
/// much of each.
const MOST_BEGINNINGS_EACH: usize = 16;
const MOST_BEGINNINGS: usize = 64;
const LONGEST_BEGINNING: usize = 8;
/// A few short words are looked for apart, so that the others have this length or nearly.
const ENOUGH: usize = 4;
const MOST_APART: usize = 3;

/// Why a pattern was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.describe())]
pub struct PatternError {
    /// Which pattern of the set, from 0.
    pub index: usize,
    /// The pattern as it was given (cut short if very long).
    pub pattern: String,
    /// What is wrong with it.
    pub problem: String,
    /// The character, from 0, at which it is wrong, where that is known.
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
    /// Finds where a match could begin, much faster than the automaton; none where a match could begin anywhere.
    prefilter: Option<Beginnings>,
    hirs: Vec<Hir>,
    regexes: Vec<OnceLock<Option<meta::Regex>>>,
}

impl PatternSet {
    /// Compiles patterns in Rust's regex syntax: Unicode is on, `^` and `$` are the ends of a line, and `\b`, `\<` and
    /// their kin look at ASCII words only.
    ///
    /// # Errors
    /// Names the first pattern that is too long, wrong or too large, and where.
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
        let prefilter = beginnings(&hirs);
        Ok(Self { compiled: Arc::new(Compiled { dfa, prefilter, hirs, regexes }) })
    }

    /// The same patterns, found by the automaton alone.
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

    pub(crate) fn prefilter(&self) -> Option<&Beginnings> {
        self.compiled.prefilter.as_ref()
    }

    /// The ordinary regex of one pattern, to find out what it matched.
    pub(crate) fn regex(&self, index: usize) -> Option<&meta::Regex> {
        self.compiled.regexes[index]
            .get_or_init(|| {
                let config = meta::Regex::config().utf8_empty(true).nfa_size_limit(Some(NFA_BYTES));
                meta::Regex::builder().configure(config).build_from_hir(&self.compiled.hirs[index]).ok()
            })
            .as_ref()
    }
}

/// Finds the words that matches begin with, if each of them does, and they are few and long enough to be rare.
fn beginnings(hirs: &[Hir]) -> Option<Beginnings> {
    let mut extractor = Extractor::new();
    extractor.kind(ExtractKind::Prefix).limit_total(MOST_BEGINNINGS_EACH);
    let mut words: Vec<Vec<u8>> = Vec::new();
    for hir in hirs {
        let mut beginnings = extractor.extract(hir);
        beginnings.keep_first_bytes(LONGEST_BEGINNING);
        // Lines are looked at without what ends them.
        let in_a_line = |word: &[u8]| word.split(|byte| *byte == b'\n').next().unwrap_or_default().to_vec();
        words.extend(beginnings.literals()?.iter().map(|literal| in_a_line(literal.as_bytes())));
    }
    words.sort();
    words.dedup();
    let shortest = words.iter().map(Vec::len).min()?;
    let rare = shortest >= 2 || (shortest == 1 && words.len() <= 3);
    if !rare || words.len() > MOST_BEGINNINGS {
        return None;
    }
    Beginnings::new(words)
}

/// Words that every match begins with one of.
#[derive(Debug)]
pub(crate) struct Beginnings {
    together: Option<Prefilter>,
    /// How much of a word is looked at at once is up to the shortest of them: a few short ones are better looked for apart.
    apart: Vec<Finder<'static>>,
    longest: usize,
}

impl Beginnings {
    fn new(words: Vec<Vec<u8>>) -> Option<Self> {
        let longest = words.iter().map(Vec::len).max()?;
        let are_few = |len: &usize| words.iter().filter(|word| word.len() < *len).count() <= MOST_APART;
        let enough = (2..=ENOUGH).rev().find(are_few).unwrap_or(0);
        let (short, long): (Vec<_>, Vec<_>) = words.into_iter().partition(|word| word.len() < enough);
        let together =
            if long.is_empty() { None } else { Some(Prefilter::new(MatchKind::LeftmostFirst, &long)?) };
        let apart = short.iter().map(|word| Finder::new(word).into_owned()).collect();
        Some(Self { together, apart, longest })
    }

    /// The length of the longest.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Where the first begins in a part of a text.
    pub(crate) fn find(&self, text: &[u8], span: Span) -> Option<usize> {
        let found = self.together.as_ref().and_then(|words| words.find(text, span)).map(|found| found.start);
        self.apart.iter().fold(found, |found, word| {
            // Only what begins before the one that is known.
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

/// A lazy automaton cannot look around for Unicode words, so word borders become ASCII ones.
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
    fn a_wrong_pattern_is_named_with_its_place() {
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
    fn beginnings_are_known_where_every_match_has_one() {
        let known = |patterns: &[&str]| PatternSet::compile(patterns).unwrap().prefilter().is_some();
        assert!(known(&["panicked at", r"error(\[E\d+\])?:", r"^\$ $", "(?i)password:", r"\bword\b.*done"]));
        assert!(known(&["x"]));
        assert!(!known(&["error", r"\d+ passed"]), "a match can begin with any digit");
        assert!(!known(&["error", ".*"]), "a match can be empty");
        assert!(!known(&["a|b|c|d"]), "found in every line");
    }

    #[test]
    fn unicode_word_borders_are_accepted() {
        assert!(PatternSet::compile(&[r"\bfoo\b", r"(?:a|\Bb)+", r"\b{start}x\b{end}"]).is_ok());
    }
}
