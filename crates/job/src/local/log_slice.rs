//! A part of a log in memory, to find out how many of its lines fit into an answer: that is known only by folding them.

use super::read::{Piece, Range};

/// A part of a log as text, and where its lines end.
pub(super) struct Folded {
    pub(super) text: String,
    /// For each line feed, the offset just after it, and how long the text before it is. Text that a program drew over
    /// later counts as long as what is left of it.
    pub(super) line_ends: Vec<(u64, usize)>,
}

enum Stored {
    Bytes(Vec<u8>),
    Lost(u64),
}

/// What a range holds, without its secrets.
pub(super) struct LogSlice {
    range: Range,
    pieces: Vec<(u64, Stored)>,
}

impl LogSlice {
    pub(super) fn of(range: Range) -> Self {
        let mut pieces = Vec::new();
        range.pieces_for_text(|at, piece| {
            pieces.push(match piece {
                Piece::Bytes(bytes) => (at, Stored::Bytes(bytes.to_vec())),
                Piece::Lost { to, .. } => (at, Stored::Lost(to)),
            });
            true
        });
        Self { range, pieces }
    }

    /// Where it ends.
    pub(super) fn to(&self) -> u64 {
        self.range.to()
    }

    /// The offset just after its first line feed, or after the first that is lost.
    pub(super) fn first_line_end(&self) -> Option<u64> {
        self.pieces.iter().find_map(|(at, piece)| match piece {
            Stored::Bytes(bytes) => {
                bytes.iter().position(|byte| *byte == b'\n').map(|feed| at + feed as u64 + 1)
            }
            Stored::Lost(end) => Some(*end),
        })
    }

    /// An offset, or if that is within a character, where the character begins.
    pub(super) fn character_at(&self, offset: u64) -> u64 {
        let is_within = |offset: u64| {
            self.pieces.iter().any(|(at, piece)| match piece {
                Stored::Bytes(bytes) => {
                    let byte = offset.checked_sub(*at).and_then(|i| bytes.get(usize::try_from(i).ok()?));
                    byte.is_some_and(|byte| byte & 0xc0 == 0x80)
                }
                Stored::Lost(_) => false,
            })
        };
        (offset.saturating_sub(3)..=offset).rev().find(|offset| !is_within(*offset)).unwrap_or(offset)
    }

    /// All of it from an offset on as text, with its lines: in one fold.
    pub(super) fn fold(&self, from: u64) -> Folded {
        let mut fold = self.range.fold_at(from);
        let mut line_ends: Vec<(u64, usize)> = Vec::new();
        let mut note = |end: u64, kept: usize, len: usize| {
            line_ends.iter_mut().rev().take_while(|(_, len)| *len > kept).for_each(|(_, len)| *len = kept);
            line_ends.push((end, len));
        };
        for (at, piece) in &self.pieces {
            match piece {
                Stored::Bytes(bytes) => {
                    let mut at = *at;
                    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                        let end = at + line.len() as u64;
                        if end > from {
                            let skipped = usize::try_from(from.saturating_sub(at)).unwrap_or(0);
                            let kept = fold.piece(at.max(from), &Piece::Bytes(&line[skipped..]));
                            if line.ends_with(b"\n") {
                                note(end, kept, fold.len());
                            }
                        }
                        at = end;
                    }
                }
                Stored::Lost(end) => {
                    let begin = (*at).max(from);
                    if begin < *end {
                        let kept = fold.piece(begin, &Piece::Lost { from: begin, to: *end });
                        note(*end, kept, fold.len());
                    }
                }
            }
        }
        Folded { text: self.range.finished(fold), line_ends }
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
                Stored::Lost(end) => {
                    let (begin, end) = ((*at).max(from), (*end).min(to));
                    if begin < end {
                        fold.piece(begin, &Piece::Lost { from: begin, to: end });
                    }
                }
            }
        }
        self.range.finished(fold)
    }
}

#[cfg(test)]
mod tests {
    use super::super::LocalJob;
    use crate::local::Local;
    use crate::registry::claim::Fresh;
    use crate::registry::layout;
    use crate::settings::LoadedSettings;
    use crate::spec::KeeperSpec;
    use outlast_protocol::request::{ReadText, Text};

    /// What a job's log reads as, within a bound.
    fn read(log: &str, max: usize) -> Text {
        let folder = tempfile::tempdir().unwrap();
        let local = Local::open(folder.path(), LoadedSettings::default()).unwrap();
        let fresh = Fresh::make(&local.home).unwrap();
        let (dir, info, _lock) = fresh.claim(&local.home, &KeeperSpec::shell("true"), 1).unwrap();
        std::fs::write(dir.file(layout::OUTPUT), log).unwrap();
        let job = LocalJob::new(local.job(info.handle).unwrap(), false);
        job.text(&ReadText { max, ..ReadText::default() }).unwrap()
    }

    #[test]
    fn as_many_whole_lines_as_fit_are_shown_from_both_ends() {
        let line = |i: usize| format!("line number {i}\n");
        let log: String = (0..20_000).map(|i| line(i).replace('\n', "\r\n")).collect();
        for max in [400, 1000, 5000, 16_384, 100_000] {
            let text = read(&log, max);
            let size = text.head.len() + text.tail.len();
            assert!(size <= max - 160 && size > max - 160 - 3 * line(20_000).len(), "{size} of {max}");
            let (from, to) = text.omitted.unwrap();
            let head: String = (0..).map(line).take(text.head.lines().count()).collect();
            let shown = text.tail.lines().count();
            let tail: String = (20_000 - shown..20_000).map(line).collect();
            assert_eq!((&text.head, &text.tail), (&head, &tail));
            // Each line has a carriage return in the log, and none in the text.
            assert_eq!(from as usize, head.len() + head.lines().count());
            assert_eq!(log.len() - to as usize, tail.len() + shown);
        }
    }

    #[test]
    fn what_was_drawn_over_takes_no_room() {
        // A bar that is redrawn for long, and then a line.
        let mut log = String::from("begin\r\n");
        for percent in 0..5000 {
            log.push_str(&format!("\r{} of 5000 {}", percent, "#".repeat(60)));
        }
        log.push_str("\r\nend\r\n");
        let text = read(&log, 2000);
        assert!(text.head.starts_with("begin\n"), "{text:?}");
        assert!(text.tail.ends_with("end\n"), "{text:?}");
        assert!(text.head.len() + text.tail.len() <= 2000);
        // Two lines that are redrawn by moving up.
        let mut log = String::new();
        for round in 0..30_000 {
            log.push_str(&format!("a {round}\r\nb {round}\r\n\x1b[2A"));
        }
        log.push_str("\x1b[2Bdone\r\n");
        let text = read(&log, 1000);
        assert!(text.tail.ends_with("a 29999\nb 29999\ndone\n"), "{text:?}");
        assert!(text.head.len() + text.tail.len() <= 1000, "{text:?}");
    }

    #[test]
    fn one_line_longer_than_all_room_is_cut_at_characters() {
        let text = read(&"ä".repeat(1 << 20), 1000);
        assert!(text.head.len() + text.tail.len() <= 1000 && text.omitted.is_some());
        assert!(text.head.chars().chain(text.tail.chars()).all(|c| c == 'ä'), "{text:?}");
        // Its beginning is shown also where a short line after it fits.
        let text = read(&format!("{}\r\nafter\r\n", "x".repeat(1 << 20)), 1000);
        assert!(text.head.starts_with("xxx") && text.tail == "after\n", "{text:?}");
    }
}
