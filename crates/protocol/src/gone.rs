//! Which ranges of a log are lost: no longer on the disk, or never written.

use serde::{Deserialize, Serialize};

/// Ranges of offsets, sorted and disjoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Gone {
    ranges: Vec<(u64, u64)>,
}

impl Gone {
    /// More ranges than this are joined with their neighbours, so that the record stays small.
    const MAX_RANGES: usize = 256;

    /// Whether nothing is lost.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges, each from its first byte to just after its last.
    #[must_use]
    pub fn ranges(&self) -> &[(u64, u64)] {
        &self.ranges
    }

    /// Just after the last lost byte; 0 if nothing is lost.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.ranges.last().map_or(0, |range| range.1)
    }

    /// Adds a range, merging it with those it touches.
    pub fn add(&mut self, from: u64, to: u64) {
        if from >= to {
            return;
        }
        let mut joined = (from, to);
        self.ranges.retain(|range| {
            let apart = range.1 < joined.0 || joined.1 < range.0;
            if !apart {
                joined = (joined.0.min(range.0), joined.1.max(range.1));
            }
            apart
        });
        let at = self.ranges.partition_point(|range| range.0 < joined.0);
        self.ranges.insert(at, joined);
        if self.ranges.len() > Self::MAX_RANGES {
            // Recording slightly more than was lost is better than a record that grows without bound.
            let next = self.ranges.remove(1);
            self.ranges[0].1 = next.1;
        }
    }

    /// How many bytes of `from..to` are lost.
    #[must_use]
    pub fn bytes_in(&self, from: u64, to: u64) -> u64 {
        self.ranges.iter().map(|range| range.1.min(to).saturating_sub(range.0.max(from))).sum()
    }

    /// The first lost range that ends after `offset`.
    #[must_use]
    pub fn next(&self, offset: u64) -> Option<(u64, u64)> {
        self.ranges.iter().copied().find(|range| range.1 > offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_ranges_are_merged() {
        let mut gone = Gone::default();
        gone.add(10, 20);
        gone.add(30, 40);
        gone.add(20, 30);
        gone.add(5, 5);
        assert_eq!(gone.ranges(), [(10, 40)]);
        assert_eq!(gone.bytes_in(0, 15), 5);
        assert_eq!(gone.next(39), Some((10, 40)));
        assert_eq!(gone.next(40), None);
    }

    #[test]
    fn the_record_stays_small() {
        let mut gone = Gone::default();
        for i in 0..10_000 {
            gone.add(i * 10, i * 10 + 1);
        }
        assert!(gone.ranges().len() <= Gone::MAX_RANGES);
        assert_eq!(gone.ranges().last(), Some(&(99_990, 99_991)));
    }
}
