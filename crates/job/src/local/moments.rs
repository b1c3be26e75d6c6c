//! What is kept of a job's past between two questions about it: when it printed what, and keyframes, so that any moment of a long
//! log is near one.
//!
//! It is in the memory of the program that asks, not in the job's folder, which only its keeper writes: a server or a screen that is
//! asked for one moment after the other has it, and a single command does not need it. It is bounded, and gone when the job is
//! not looked at any more.

use std::sync::Arc;

use outlast_protocol::gone::Gone;
use outlast_protocol::request::Moment;
use outlast_stream::{Config, Keyframe, Pipeline};

use crate::log::timing::{Fact, FactKind};

/// Keyframes are this far apart in the log, as long as there are few of them.
const SPACING: u64 = 1 << 20;
/// Nearer than this there is none, whatever happens.
const MIN_SPACING: u64 = 16 << 10;
/// More of them, or more bytes of them, are thinned out: a log of 1 GiB keeps them 1 MiB apart.
const MAX_KEYFRAMES: usize = 1280;
const MAX_WEIGHT: usize = 16 << 20;

/// Where a recording is: the fact that comes next, and how much of each stream came before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) fact: usize,
    pub(crate) at: [u64; 2],
}

/// A screen of the past.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) place: Place,
    /// When the last came that is on it.
    last_ms: u64,
    offset: u64,
    pub(crate) keyframe: Arc<Keyframe>,
}

/// What is kept of one job.
#[derive(Debug)]
pub(crate) struct Moments {
    facts: Option<(u64, Arc<Vec<Fact>>)>,
    kept: Vec<Kept>,
    spacing: u64,
    least: u64,
    /// Which bytes of its log were gone: others are on no screen any more.
    gone: Gone,
}

impl Default for Moments {
    fn default() -> Self {
        Self { facts: None, kept: Vec::new(), spacing: SPACING, least: MIN_SPACING, gone: Gone::default() }
    }
}

impl Moments {
    /// With keyframes nearer to each other.
    #[cfg(test)]
    pub(super) fn near(spacing: u64, least: u64) -> Self {
        Self { spacing, least, ..Self::default() }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.kept.len()
    }

    /// The facts of a timing file that is so long.
    pub(crate) fn facts(&mut self, length: u64, read: impl FnOnce() -> Vec<Fact>) -> Arc<Vec<Fact>> {
        match &self.facts {
            Some((known, facts)) if *known == length => Arc::clone(facts),
            _ => {
                let facts = Arc::new(read());
                self.facts = Some((length, Arc::clone(&facts)));
                facts
            }
        }
    }

    /// Forgets the screens of a log that has lost bytes since.
    pub(crate) fn check(&mut self, gone: &Gone) {
        if self.gone != *gone {
            self.gone = gone.clone();
            self.kept.clear();
        }
    }

    /// The nearest keyframe before a moment. A terminal that gets another size takes rows out of its scrollback, which keyframes do
    /// not have; what is beneath the alternate screen neither.
    pub(crate) fn nearest(&self, facts: &[Fact], moment: Moment, beneath: bool) -> Option<Kept> {
        let is_before = |kept: &&Kept| match moment {
            Moment::Time(ms) => kept.last_ms <= ms,
            Moment::Offset(offset) => kept.offset <= offset,
        };
        let kept = self
            .kept
            .iter()
            .rev()
            .filter(is_before)
            .find(|kept| !(beneath && kept.keyframe.is_alternate()))?;
        let is_later = |fact: &Fact| match moment {
            Moment::Time(ms) => fact.at_ms > ms,
            Moment::Offset(offset) => fact.offset > offset,
        };
        let until = facts.iter().skip(kept.place.fact).take_while(|fact| !is_later(fact));
        let is_resized = until.into_iter().any(|fact| matches!(fact.what, FactKind::Resized(_)));
        (!is_resized).then(|| kept.clone())
    }

    /// Adds a keyframe where one is due; says whether one is there now.
    pub(crate) fn keep(&mut self, fold: &mut Pipeline, config: Config, at: (Place, u64), soon: bool) -> bool {
        let (place, last_ms) = at;
        let offset = fold.offset();
        let index = self.kept.partition_point(|kept| kept.offset <= offset);
        let is_far = |distance: u64| {
            let before = index.checked_sub(1).map_or(0, |before| self.kept[before].offset);
            let after = self.kept.get(index).is_none_or(|next| next.offset - offset >= distance);
            offset - before >= distance && after
        };
        if !is_far(if soon { self.least } else { self.spacing }) {
            return false;
        }
        let Some(keyframe) = fold.keyframe(config) else { return false };
        self.kept.insert(index, Kept { place, last_ms, offset, keyframe: Arc::new(keyframe) });
        let weight: usize = self.kept.iter().map(|kept| kept.keyframe.weight()).sum();
        if self.kept.len() > MAX_KEYFRAMES || weight > MAX_WEIGHT {
            let mut number = 0;
            self.kept.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.spacing = self.spacing.saturating_mul(2);
            self.least = self.least.saturating_mul(2);
        }
        true
    }
}
