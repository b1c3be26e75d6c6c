//! What of a job is worth an entry in its session's outbox.

use serde::{Deserialize, Serialize};

use crate::clock::millis;
use crate::failure::Failure;
use crate::registry::sweep::parse_duration;
use crate::wire::watch::Watch;
use crate::wire::{Stable, Wait};

/// A finished line with something in it.
pub(crate) const LINE: &str = r".+\n";

/// What a job tells its session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Notify {
    /// That it has ended; trouble with its log too.
    pub exit: bool,
    /// That it waits for input, and that it no longer does.
    pub input: bool,
    /// That it listens on a port.
    pub port: bool,
    /// What else: patterns, silence, a screen that stands still.
    pub watches: Vec<Watch>,
}

impl Notify {
    /// What a job that nobody looks at should tell.
    #[must_use]
    pub fn in_background() -> Self {
        Self { exit: true, input: true, ..Self::default() }
    }

    /// Whether nothing will ever be told.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        !self.exit && !self.input && !self.port && self.watches.is_empty()
    }

    /// Every line that it prints is worth an entry: those of 200 ms are one, with a count and offsets.
    pub fn stream_lines(&mut self) {
        self.watch("lines", Wait { patterns: vec![LINE.into()], from: Some(0), ..Wait::default() });
    }

    /// Reads `exit,input,port,lines,pattern=REGEX,quiet=30s,stable`. A comma that no known word follows belongs to the
    /// pattern before it.
    ///
    /// # Errors
    /// A usage failure that names the word.
    pub fn parse(texts: &[impl AsRef<str>]) -> Result<Self, Failure> {
        let mut notify = Self::default();
        for text in texts {
            for word in words(text.as_ref()) {
                notify.add(&word)?;
            }
        }
        Ok(notify)
    }

    fn add(&mut self, word: &str) -> Result<(), Failure> {
        let (key, value) = word.split_once('=').map_or((word, None), |(key, value)| (key, Some(value)));
        match (key, value) {
            ("none", None) => {}
            ("exit", None) => self.exit = true,
            ("input", None) => self.input = true,
            ("port", None) => self.port = true,
            ("lines", None) => self.stream_lines(),
            ("pattern", Some(pattern)) => {
                let patterns = vec![pattern.to_owned()];
                outlast_stream::PatternSet::compile(&patterns)
                    .map_err(|error| Failure::usage(error.to_string()))?;
                self.watch("pattern", Wait { patterns, from: Some(0), ..Wait::default() });
            }
            ("quiet", Some(time)) => {
                let quiet_ms = Some(millis(parse_duration(time)?));
                self.watch("quiet", Wait { quiet_ms, ..Wait::default() });
            }
            ("stable", checks) => {
                let bad = |_| Failure::usage(format!("{word:?}: give a number of checks"));
                let checks = checks.map_or(Ok(3), str::parse).map_err(bad)?;
                let stable = Some(Stable { checks, ..Stable::default() });
                self.watch("stable", Wait { stable, ..Wait::default() });
            }
            _ => {
                return Err(Failure::usage(format!("{word:?} is nothing that a job can tell")).hint(
                    "choose among: exit, input, port, lines, pattern=REGEX, quiet=30s, stable, stable=5, none",
                ));
            }
        }
        Ok(())
    }

    fn watch(&mut self, kind: &str, on: Wait) {
        let number = self.watches.len() + 1;
        self.watches.push(Watch { id: format!("{kind}-{number}"), on, each: true });
    }
}

/// Splits at commas, but not inside of a pattern.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for piece in text.split(',') {
        let key = piece.split_once('=').map_or(piece, |(key, _)| key);
        let known = ["none", "exit", "input", "port", "lines", "pattern", "quiet", "stable"].contains(&key);
        match words.last_mut() {
            Some(last) if !known && last.starts_with("pattern=") => {
                last.push(',');
                last.push_str(piece);
            }
            _ => words.push(piece.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_keeps_its_commas() {
        let notify = Notify::parse(&["exit,pattern=a{2,3},quiet=30s", "port"]).unwrap();
        assert!(notify.exit && notify.port && !notify.input);
        assert_eq!(notify.watches[0].on.patterns, ["a{2,3}"]);
        assert_eq!(notify.watches[1].on.quiet_ms, Some(30_000));
    }

    #[test]
    fn an_unknown_word_is_named() {
        let failure = Notify::parse(&["exit,exits"]).unwrap_err();
        assert!(failure.message.contains("exits"), "{failure}");
        assert!(Notify::parse(&["pattern=("]).is_err());
    }
}
