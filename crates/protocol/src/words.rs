//! Enums whose words users see: each is declared once, by [`words!`], with its older spellings.

use crate::failure::Failure;

/// A word that is not one of the known ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {noun} {word:?}; known: {}", known.join(", "))]
pub struct UnknownWord {
    /// What the word should have named, for example `reason`.
    pub noun: &'static str,
    /// The word as it was given.
    pub word: String,
    /// All words that are known, without older spellings.
    pub known: Vec<&'static str>,
}

impl From<UnknownWord> for Failure {
    fn from(unknown: UnknownWord) -> Self {
        let UnknownWord { noun, word, known } = unknown;
        Self::usage(format!("unknown {noun} {word:?}")).hint(format!("choose among: {}", known.join(", ")))
    }
}

/// Declares an enum of words: `Variant = "word" | "older spelling"`.
///
/// It gives `ALL`, `name()`, `older()`, `Display`, `FromStr` with an error that lists the known words, and serde in the
/// same words. Older spellings are read, never written.
macro_rules! words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident ($noun:literal) {
            $($(#[$variant_meta:meta])* $variant:ident = $word:literal $(| $older:literal)*,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$variant_meta])* #[serde(rename = $word $(, alias = $older)*)] $variant,)+
        }

        impl $name {
            /// All of them, in the order in which they are listed for users.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word for it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// Older spellings, which are still understood.
            #[must_use]
            pub const fn older(self) -> &'static [&'static str] {
                match self {
                    $(Self::$variant => &[$($older),*],)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                let known = |of: &&Self| of.name() == word || of.older().contains(&word);
                Self::ALL.iter().find(known).copied().ok_or_else(|| $crate::UnknownWord {
                    noun: $noun,
                    word: word.to_owned(),
                    known: Self::ALL.iter().map(|of| of.name()).collect(),
                })
            }
        }
    };
}
pub(crate) use words;
