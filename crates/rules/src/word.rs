//! A word of a command, as the shell would pass it on or as the kernel was given it.

/// How much is known about a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Exactly its text.
    Plain,
    /// A pattern for file names, which expands to one or more words.
    Glob,
    /// Computed when the command runs: it could be anything.
    Dynamic,
}

/// A word without its quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// What is known of its text.
    pub text: String,
    /// How much that is.
    pub kind: Kind,
}

impl Word {
    /// A word that is exactly this text.
    #[must_use]
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: Kind::Plain }
    }

    /// A word that could be anything.
    #[must_use]
    pub fn dynamic() -> Self {
        Self { text: String::new(), kind: Kind::Dynamic }
    }

    /// Appends another part.
    pub fn append(&mut self, part: &Self) {
        self.text.push_str(&part.text);
        self.kind = match (self.kind, part.kind) {
            (Kind::Dynamic, _) | (_, Kind::Dynamic) => Kind::Dynamic,
            (Kind::Glob, _) | (_, Kind::Glob) => Kind::Glob,
            (Kind::Plain, Kind::Plain) => Kind::Plain,
        };
    }

    /// Whether it is exactly its text.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.kind == Kind::Plain
    }

    /// The text, if it is certain.
    #[must_use]
    pub fn known(&self) -> Option<&str> {
        self.is_plain().then_some(self.text.as_str())
    }

    /// Whether it looks like an option.
    #[must_use]
    pub fn is_option(&self) -> bool {
        self.text.len() > 1 && self.text.starts_with('-') && self.kind != Kind::Dynamic
    }
}

/// The file name of a path.
#[must_use]
pub fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Plain words from arguments.
#[must_use]
pub fn plain_words(argv: &[String]) -> Vec<Word> {
    argv.iter().map(Word::plain).collect()
}
