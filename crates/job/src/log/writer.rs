//! Appends to a log, directly from the pipe that holds the bytes.
//!
//! Bytes move by `splice`: at every moment each of them is in the terminal, in the pipe or in the file, and
//! the kernel moves it in one step. So a keeper that is killed at any point loses nothing: its heir holds the
//! same pipe and continues. The bytes are then read back from the page cache for the fold.
//!
//! A failing write never stops the job: the bytes are still read and folded, their range is recorded as lost,
//! and the next write is tried at its true offset. But not before the record names that range: were we killed in between, the
//! log would have a gap that nobody knows of.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use outlast_pty::system;
use rustix::fs::fstat;
use rustix::io::Errno;

use super::gone::Gone;

/// How much of the start of a log is always kept when it is capped.
pub const KEPT_HEAD_BYTES: u64 = 1 << 20;
/// Holes are punched in whole pages.
const PAGE: u64 = 4096;

/// What happened to the bytes that were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// They are in the log.
    Logged,
    /// They could not be written.
    Lost(Errno),
}

/// The only writer of one log file.
#[derive(Debug)]
pub struct LogWriter {
    file: OwnedFd,
    end: u64,
    cap: u64,
    gone: Gone,
    hole_end: u64,
    failing: Option<Errno>,
    changed: bool,
    /// Why bytes were lost of which the record does not tell yet.
    unnamed: Option<Errno>,
}

impl LogWriter {
    /// Continues after what the file has. `end` is the true end, if it is known to be further: an earlier writer could not
    /// write what is between them.
    #[must_use]
    pub fn new(file: OwnedFd, cap: u64, mut gone: Gone, end: u64) -> Self {
        let size = fstat(&file).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
        let unnamed = (end > size && gone.bytes_in(size, end) < end - size).then_some(Errno::IO);
        if unnamed.is_some() {
            gone.add(size, end);
        }
        let hole_end =
            gone.ranges().iter().find(|range| range.0 <= KEPT_HEAD_BYTES).map_or(0, |range| range.1);
        Self {
            file,
            end: size.max(end),
            cap: cap.max(16 * PAGE),
            gone,
            hole_end,
            failing: unnamed,
            changed: unnamed.is_some(),
            unnamed,
        }
    }

    /// Goes back to a known end: what was written after it comes again.
    pub(crate) fn go_back_to(&mut self, end: u64) {
        if end < self.end && rustix::fs::ftruncate(&self.file, end).is_ok() {
            self.end = end;
        }
    }

    /// The offset of the next byte.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Why the last write failed, if it did.
    #[must_use]
    pub fn failing(&self) -> Option<Errno> {
        self.failing
    }

    /// Which ranges are lost.
    #[must_use]
    pub fn gone(&self) -> &Gone {
        &self.gone
    }

    /// Whether [`gone`](Self::gone) or [`failing`](Self::failing) changed since this was last asked.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Whether bytes were lost of which the record does not tell yet: until it does, nothing is written.
    #[must_use]
    pub fn has_unnamed(&self) -> bool {
        self.unnamed.is_some()
    }

    /// The record tells of all that was lost, or can't.
    pub fn set_named(&mut self) {
        self.unnamed = None;
    }

    /// Takes up to `len` bytes from `pipe`, and also appends them to `bytes`.
    ///
    /// # Errors
    /// `EAGAIN` if the pipe is empty.
    pub fn take(&mut self, pipe: BorrowedFd<'_>, len: usize, bytes: &mut Vec<u8>) -> Result<Fate, Errno> {
        if let Some(error) = self.unnamed {
            return self.take_by_copy(pipe, len, bytes, Some(error));
        }
        match system::move_into_file(pipe, &self.file, self.end, len) {
            Ok(0) => Err(Errno::PIPE),
            Ok(n) => {
                let from = self.end;
                self.wrote(n);
                let start = bytes.len();
                bytes.resize(start + n, 0);
                let got = read_exact_at(&self.file, &mut bytes[start..], from);
                bytes.truncate(start + got);
                Ok(Fate::Logged)
            }
            Err(Errno::AGAIN) => Err(Errno::AGAIN),
            Err(Errno::INTR) => Ok(Fate::Logged),
            // Not every file system supports splice, and no other system. A copy has a moment in which a kill could lose the
            // chunk.
            Err(Errno::INVAL) => self.take_by_copy(pipe, len, bytes, None),
            Err(error) => self.take_by_copy(pipe, len, bytes, Some(error)),
        }
    }

    fn take_by_copy(
        &mut self,
        pipe: BorrowedFd<'_>,
        len: usize,
        bytes: &mut Vec<u8>,
        refused: Option<Errno>,
    ) -> Result<Fate, Errno> {
        let start = bytes.len();
        bytes.resize(start + len, 0);
        let n = match rustix::io::read(pipe, &mut bytes[start..]) {
            Ok(0) => {
                bytes.truncate(start);
                return Err(Errno::PIPE);
            }
            Ok(n) => n,
            Err(error) => {
                bytes.truncate(start);
                return Err(error);
            }
        };
        bytes.truncate(start + n);
        match refused {
            Some(error) => Ok(self.lose(n, error)),
            None => Ok(self.append(&bytes[start..])),
        }
    }

    /// Appends bytes that are already in memory.
    pub fn append(&mut self, bytes: &[u8]) -> Fate {
        if let Some(error) = self.unnamed {
            return self.lose(bytes.len(), error);
        }
        let mut done = 0;
        while done < bytes.len() {
            match rustix::io::pwrite(&self.file, &bytes[done..], self.end) {
                Ok(n) => {
                    self.wrote(n);
                    done += n;
                }
                Err(Errno::INTR) => {}
                Err(error) => return self.lose(bytes.len() - done, error),
            }
        }
        Fate::Logged
    }

    fn wrote(&mut self, n: usize) {
        self.end += n as u64;
        if self.failing.take().is_some() {
            self.changed = true;
        }
        if self.end - self.gone.bytes_in(0, self.end) > self.cap {
            self.make_room();
        }
    }

    fn lose(&mut self, n: usize, error: Errno) -> Fate {
        self.gone.add(self.end, self.end + n as u64);
        self.end += n as u64;
        self.changed = true;
        self.failing = Some(error);
        self.unnamed = Some(error);
        Fate::Lost(error)
    }

    /// Frees the oldest part after the head, a large piece at a time.
    fn make_room(&mut self) {
        let head = KEPT_HEAD_BYTES.min(self.cap / 4) / PAGE * PAGE;
        let step = (self.cap / 16).max(PAGE);
        let tail = self.cap - head - step;
        let to = self.end.saturating_sub(tail) / PAGE * PAGE;
        let from = self.hole_end.max(head);
        if to <= from {
            return;
        }
        if system::punch_hole(&self.file, from, to - from).is_ok() {
            self.gone.add(from, to);
            self.hole_end = to;
            self.changed = true;
        }
        // If the file system cannot punch holes, the log outgrows its cap; `doctor` reports such a home.
    }
}

impl AsFd for LogWriter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Fills `buffer` with what the file has at `offset`.
pub(crate) fn read_exact_at(file: impl AsFd, buffer: &mut [u8], offset: u64) -> usize {
    let mut done = 0;
    while done < buffer.len() {
        match rustix::io::pread(&file, &mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    fn log(cap: u64) -> (std::fs::File, LogWriter) {
        let file = tempfile::tempfile().unwrap();
        let writer = LogWriter::new(file.try_clone().unwrap().into(), cap, Gone::default(), 0);
        (file, writer)
    }

    #[test]
    fn bytes_go_from_the_pipe_to_the_file_and_to_the_caller() {
        let (file, mut log) = log(1 << 30);
        let (out, into) = system::pipe_that_never_blocks().unwrap();
        rustix::io::write(&into, b"hello").unwrap();
        let mut bytes = Vec::new();
        assert_eq!(log.take(out.as_fd(), 1 << 16, &mut bytes), Ok(Fate::Logged));
        assert_eq!(log.take(out.as_fd(), 1 << 16, &mut bytes), Err(Errno::AGAIN));
        assert_eq!((bytes.as_slice(), log.end()), (b"hello".as_slice(), 5));
        let mut read = [0; 5];
        file.read_exact_at(&mut read, 0).unwrap();
        assert_eq!(&read, b"hello");
    }

    #[test]
    fn nothing_is_written_behind_a_loss_before_the_record_names_it() {
        let file = tempfile::tempfile().unwrap();
        rustix::io::write(&file, b"whole").unwrap();
        let open = |gone| LogWriter::new(file.try_clone().unwrap().into(), 1 << 30, gone, 8);
        // The writer before could not write three bytes, and its record does not say so.
        let mut log = open(Gone::default());
        assert!(log.take_changed() && log.has_unnamed());
        assert_eq!(log.append(b"ab"), Fate::Lost(Errno::IO));
        assert_eq!(log.gone().ranges(), [(5, 10)]);
        log.set_named();
        assert_eq!((log.append(b"rest"), log.end()), (Fate::Logged, 14));
        // Had it said so, all would be well.
        let mut known = Gone::default();
        known.add(5, 8);
        assert!(!open(known).has_unnamed());
    }

    #[test]
    fn past_the_cap_the_middle_is_freed_and_offsets_stay_valid() {
        let (file, mut log) = log(1 << 20);
        let line = |i: u64| format!("{i:063}\n").into_bytes();
        for i in 0..100_000 {
            log.append(&line(i));
        }
        let end = 64 * 100_000;
        assert_eq!(log.end(), end);
        let &[(from, to)] = log.gone().ranges() else { panic!("one hole: {:?}", log.gone()) };
        assert!(end - (to - from) <= 1 << 20, "at most the cap is kept");
        let mut read = [0; 64];
        for i in [0, from / 64 - 1, to / 64, 99_999] {
            file.read_exact_at(&mut read, i * 64).unwrap();
            assert_eq!(read.to_vec(), line(i), "line {i}");
        }
        let blocks = std::os::unix::fs::MetadataExt::blocks(&file.metadata().unwrap());
        assert!(blocks * 512 <= (1 << 20) + 64 * PAGE, "the disk has it back: {blocks} blocks");
    }
}
