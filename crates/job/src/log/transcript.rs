//! Writes the transcript: text that only grows, except for lines that a program redraws.

use std::os::fd::OwnedFd;

use rustix::fs::ftruncate;
use rustix::io::Errno;

/// The only writer of a transcript file.
#[derive(Debug)]
pub struct TranscriptWriter {
    file: OwnedFd,
    len: u64,
    cap: u64,
    hole_end: u64,
    lost: u64,
}

impl TranscriptWriter {
    /// Continues at `len`; what comes after it is cut off.
    #[must_use]
    pub fn new(file: OwnedFd, len: u64, cap: u64) -> Self {
        let _ = ftruncate(&file, len);
        Self { file, len, cap: cap.max(1 << 16), hole_end: 0, lost: 0 }
    }

    /// The length of the transcript, which is the length of the file.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing was written yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes the last `retract` bytes, then appends `text`.
    pub fn write(&mut self, retract: u64, text: &[u8]) {
        if retract > 0 {
            self.len = self.len.saturating_sub(retract);
            let _ = ftruncate(&self.file, self.len);
        }
        let mut text = text;
        while !text.is_empty() {
            match rustix::io::pwrite(&self.file, text, self.len) {
                Ok(n) => {
                    self.len += n as u64;
                    text = &text[n..];
                }
                Err(Errno::INTR) => {}
                Err(_) => {
                    // The log may have the bytes; offsets in this file stay valid either way.
                    self.lost += text.len() as u64;
                    self.len += text.len() as u64;
                    break;
                }
            }
        }
        if self.len - self.hole_end > self.cap {
            self.make_room();
        }
    }

    /// As in the log, the head and the newest part are kept.
    fn make_room(&mut self) {
        let head = super::writer::KEPT_HEAD_BYTES.min(self.cap / 4) / 4096 * 4096;
        let from = self.hole_end.max(head);
        let to = (self.len - (self.cap - head - self.cap / 16)) / 4096 * 4096;
        if to > from && outlast_pty::system::punch_hole(&self.file, from, to - from).is_ok() {
            self.hole_end = to;
        }
    }
}
