//! The `timing` file: when the log had grown to which offset, and each resize. Enough for a replay.
//!
//! Text, one record per line, times in milliseconds since the start:
//! `<ms> <offset>` for output, `<ms> <offset> 2` for stderr in pipe mode, `<ms> <offset> size <cols>x<rows>`.

use std::os::fd::OwnedFd;
use std::time::Duration;

use super::super::clock::millis;
use super::super::registry::replace::write_all;
use super::super::spec::Size;

/// Bursts closer together than this are one record.
const MIN_INTERVAL_MS: u64 = 10;
/// For each further this many bytes, the interval grows. So even a job that prints a byte every few
/// milliseconds for weeks has a small file.
const COARSEN_EVERY_BYTES: u64 = 4 << 20;

/// The first line of the file.
pub const HEADER: &str = "outlast-timing 1\n";

/// The only writer of a `timing` file.
#[derive(Debug)]
pub struct TimingWriter {
    file: OwnedFd,
    size: u64,
    last: [Option<u64>; 2],
    held: [Option<(u64, u64)>; 2],
}

impl TimingWriter {
    /// Continues after what the file (opened in append mode) has.
    #[must_use]
    pub fn new(file: OwnedFd) -> Self {
        let size = rustix::fs::fstat(&file).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
        let mut timing = Self { file, size, last: [None; 2], held: [None; 2] };
        if size == 0 {
            timing.write(HEADER);
        }
        timing
    }

    /// The log of `stream` (0: output, 1: stderr) has grown to `offset`.
    pub fn grown(&mut self, at: Duration, stream: usize, offset: u64) {
        let at = millis(at);
        let step = MIN_INTERVAL_MS * (1 + self.size / COARSEN_EVERY_BYTES);
        if self.last[stream].is_some_and(|last| at < last + step) {
            self.held[stream] = Some((at, offset));
            return;
        }
        // The pending record ended before the pause: a replay shows it there, and not after it.
        self.release(stream);
        self.last[stream] = Some(at);
        self.write_growth(at, stream, offset);
    }

    /// The terminal has a new size.
    pub fn resized(&mut self, at: Duration, offset: u64, size: Size) {
        self.flush();
        let line = format!("{} {offset} size {}x{}\n", millis(at), size.cols, size.rows);
        self.write(&line);
    }

    /// Writes pending records: before a long silence, and at the end.
    pub fn flush(&mut self) {
        for stream in 0..2 {
            self.release(stream);
        }
    }

    /// Whether a record is pending.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.held.iter().any(Option::is_some)
    }

    fn release(&mut self, stream: usize) {
        if let Some((at, offset)) = self.held[stream].take() {
            self.last[stream] = Some(at);
            self.write_growth(at, stream, offset);
        }
    }

    fn write_growth(&mut self, at: u64, stream: usize, offset: u64) {
        let line = if stream == 0 { format!("{at} {offset}\n") } else { format!("{at} {offset} 2\n") };
        self.write(&line);
    }

    /// A full disk loses timing, but never harms the job.
    fn write(&mut self, line: &str) {
        if write_all(&self.file, line.as_bytes()).is_ok() {
            self.size += line.len() as u64;
        }
    }
}

/// One record of a `timing` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Milliseconds since the start.
    pub at_ms: u64,
    /// The end of the log at that time.
    pub offset: u64,
    /// What happened.
    pub what: FactKind,
}

/// What a [`Fact`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactKind {
    /// Output grew.
    Output,
    /// In pipe mode, stderr grew; the offset is that of its own log.
    Stderr,
    /// The terminal got a new size.
    Resized(Size),
}

/// Parses a `timing` file; torn or unknown lines are skipped.
#[must_use]
pub fn parse(text: &str) -> Vec<Fact> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Fact> {
    let mut words = line.split(' ');
    let at_ms = words.next()?.parse().ok()?;
    let offset = words.next()?.parse().ok()?;
    let what = match (words.next(), words.next()) {
        (None, _) => FactKind::Output,
        (Some("2"), _) => FactKind::Stderr,
        (Some("size"), Some(size)) => {
            let (cols, rows) = size.split_once('x')?;
            FactKind::Resized(Size { cols: cols.parse().ok()?, rows: rows.parse().ok()? })
        }
        _ => return None,
    };
    Some(Fact { at_ms, offset, what })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};

    #[test]
    fn bursts_are_merged_and_pauses_kept() {
        let mut file = tempfile::tempfile().unwrap();
        let mut timing = TimingWriter::new(file.try_clone().unwrap().into());
        for (ms, offset) in [(0, 10), (3, 20), (6, 30), (500, 40), (900, 50)] {
            timing.grown(Duration::from_millis(ms), 0, offset);
        }
        timing.resized(Duration::from_millis(950), 50, Size { cols: 80, rows: 24 });
        timing.grown(Duration::from_millis(951), 1, 7);
        timing.flush();
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "outlast-timing 1\n0 10\n6 30\n500 40\n900 50\n950 50 size 80x24\n951 7 2\n");
        let facts = parse(&text);
        assert_eq!(facts.len(), 6);
        let resized = FactKind::Resized(Size { cols: 80, rows: 24 });
        assert_eq!(facts[4], Fact { at_ms: 950, offset: 50, what: resized });
    }
}
