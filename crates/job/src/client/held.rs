//! A part of a log in memory, for whoever must look at it several times: how many of its lines fit into an answer is
//! known only by folding them.

use super::read::{Piece, Range};

/// After so many guesses the rest is halved, whatever they say.
const GUESSES: usize = 6;

enum Stored {
    Bytes(Vec<u8>),
    Gone(u64),
}

/// What a range holds, without its secrets.
pub(super) struct Held {
    range: Range,
    pieces: Vec<(u64, Stored)>,
}

impl Held {
    pub(super) fn of(range: Range) -> Self {
        let mut pieces = Vec::new();
        range.pieces(|at, piece| {
            pieces.push(match piece {
                Piece::Bytes(bytes) => (at, Stored::Bytes(bytes.to_vec())),
                Piece::Gone { to, .. } => (at, Stored::Gone(to)),
            });
            true
        });
        Self { range, pieces }
    }

    /// Where it ends.
    pub(super) fn to(&self) -> u64 {
        self.range.to()
    }

    /// The offsets just after each line feed, and after what is gone.
    pub(super) fn line_ends(&self) -> Vec<u64> {
        let mut ends = Vec::new();
        for (at, piece) in &self.pieces {
            match piece {
                Stored::Bytes(bytes) => {
                    let feeds = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
                    ends.extend(feeds.map(|(i, _)| at + i as u64 + 1));
                }
                Stored::Gone(to) => ends.push(*to),
            }
        }
        ends
    }

    /// A part of it as text.
    pub(super) fn text(&self, from: u64, to: u64) -> String {
        let mut fold = self.range.fold_at(from);
        for (at, piece) in &self.pieces {
            match piece {
                Stored::Bytes(bytes) => {
                    let clip = |offset: u64| {
                        usize::try_from(offset.saturating_sub(*at))
                            .map_or(bytes.len(), |i| i.min(bytes.len()))
                    };
                    let (begin, end) = (clip(from), clip(to));
                    if begin < end {
                        fold.piece(at + begin as u64, &Piece::Bytes(&bytes[begin..end]));
                    }
                }
                Stored::Gone(end) => {
                    let (begin, end) = ((*at).max(from), (*end).min(to));
                    if begin < end {
                        fold.piece(begin, &Piece::Gone { from: begin, to: end });
                    }
                }
            }
        }
        self.range.finished(fold)
    }
}

/// The largest of `count` candidates whose text is at most `budget` bytes, and which it is. They are in order of size, of
/// which `raw` tells the bytes. Text is about as long as its bytes, so a guess or two come close.
pub(super) fn most_that_fits(
    count: usize,
    budget: usize,
    raw: impl Fn(usize) -> u64,
    text: impl Fn(usize) -> String,
) -> Option<(String, usize)> {
    let (mut low, mut high) = (0, count);
    let mut best = None;
    let mut bytes_for_text = 1.0;
    for round in 0.. {
        if low >= high {
            break;
        }
        let i = if round < GUESSES {
            let wanted = budget as f64 * bytes_for_text;
            let (mut fit, mut not) = (low, high);
            while fit + 1 < not {
                let middle = usize::midpoint(fit, not);
                if raw(middle) as f64 <= wanted { fit = middle } else { not = middle }
            }
            fit
        } else {
            usize::midpoint(low, high)
        };
        let tried = text(i);
        bytes_for_text = raw(i) as f64 / tried.len().max(1) as f64;
        if tried.len() <= budget {
            best = Some((tried, i));
            low = i + 1;
        } else {
            high = i;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn the_most_that_fits_is_found_with_few_tries() {
        let tries = Cell::new(0);
        // Text is shorter than its bytes by a constant share, as it is without carriage returns or colours.
        for (share, budget) in
            [(1.0, 1000), (0.99, 15_000), (0.5, 3000), (0.1, 900), (1.0, 5), (1.0, 1 << 30)]
        {
            let length = |i: usize| ((i as f64 + 1.0) * 31.0 * share) as usize;
            tries.set(0);
            let found = most_that_fits(
                700,
                budget,
                |i| (i as u64 + 1) * 31,
                |i| {
                    tries.set(tries.get() + 1);
                    "x".repeat(length(i))
                },
            );
            let expected = (0..700).rev().find(|i| length(*i) <= budget);
            assert_eq!(found.as_ref().map(|(_, i)| *i), expected, "{share} {budget}");
            assert_eq!(found.map(|(text, _)| text.len()), expected.map(length));
            assert!(tries.get() <= 5, "{} tries with {share} {budget}", tries.get());
        }
        assert!(most_that_fits(0, 10, |_| 0, |_| String::new()).is_none());
    }
}
