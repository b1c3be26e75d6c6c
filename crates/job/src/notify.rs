//! What of a job is worth an entry in its session's outbox: a set of conditions that are watched from the start.

use outlast_protocol::Condition;
use outlast_protocol::condition::split_list;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::wire::watch::Watch;

/// The word for nothing at all.
const NONE: &str = "none";

/// What a job tells its session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Notify {
    conditions: Vec<Condition>,
}

impl Notify {
    /// What a job that nobody looks at should tell.
    #[must_use]
    pub fn in_background() -> Self {
        Self { conditions: vec![Condition::Exit, Condition::AwaitingInput] }
    }

    /// These conditions.
    pub(crate) fn of(conditions: Vec<Condition>) -> Self {
        Self { conditions }
    }

    /// The conditions, to ask a host for.
    #[must_use]
    pub fn into_conditions(self) -> Vec<Condition> {
        self.conditions
    }

    /// Whether nothing will ever be told.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Whether the end is told.
    #[must_use]
    pub fn tells_end(&self) -> bool {
        self.conditions.contains(&Condition::Exit)
    }

    /// Every line that it prints is worth an entry: those of 200 ms are one, with a count and offsets.
    pub fn stream_lines(&mut self) {
        self.conditions.push(Condition::Lines);
    }

    /// Reads `exit,awaiting_input,port,lines,pattern=REGEX,quiet=30s,stable` or `none`. A comma that no known word
    /// follows belongs to the value before it.
    ///
    /// # Errors
    /// A usage failure that names the word.
    pub fn parse(texts: &[impl AsRef<str>]) -> Result<Self, Failure> {
        let mut notify = Self::default();
        for text in texts {
            for word in split_list(text.as_ref(), &[NONE]) {
                if word != NONE {
                    notify.conditions.push(word.parse()?);
                }
            }
        }
        crate::search::check(&notify.conditions)?;
        Ok(notify)
    }

    /// The conditions.
    pub(crate) fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// A watch for each condition that has no event of its own.
    pub(crate) fn watches(&self) -> Vec<Watch> {
        let watched = self.conditions.iter().filter(|condition| !condition.has_own_event());
        let watch = |(i, condition): (usize, &Condition)| Watch {
            id: format!("{}-{}", condition.reason(), i + 1),
            until: vec![condition.clone()],
            from: Some(0),
            each: true,
        };
        watched.enumerate().map(watch).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_keeps_its_commas() {
        let notify = Notify::parse(&["exit,pattern=a{2,3},quiet=30s", "port,none"]).unwrap();
        let wanted = [
            Condition::Exit,
            Condition::Pattern("a{2,3}".into()),
            Condition::Quiet { ms: 30_000 },
            Condition::Port(None),
        ];
        assert_eq!(notify.conditions(), wanted);
        let names: Vec<String> = notify.watches().into_iter().map(|watch| watch.id).collect();
        assert_eq!(names, ["pattern-1", "quiet-2"]);
    }

    #[test]
    fn an_unknown_word_is_named() {
        let failure = Notify::parse(&["exit,exits"]).unwrap_err();
        assert!(failure.message.contains("exits"), "{failure}");
        assert!(Notify::parse(&["pattern=("]).is_err());
        assert!(Notify::parse(&["gone=("]).is_err());
    }
}
