//! Moves bytes from a pipe into the log with their secrets hidden.
//!
//! Undecided bytes stay in the pipe, which keeper and heir share. So nothing is held only in our memory, and
//! a keeper that dies loses nothing. Bytes are copied out of the pipe ([`tee`]), redacted, written, and only
//! then removed from it.

use std::os::fd::{BorrowedFd, OwnedFd};

use outlast_stream::{Masks, Redactor};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, tee};
use zeroize::Zeroize;

use super::writer::{Fate, LogWriter};

/// Hides secrets on the way into one log.
#[derive(Debug)]
pub(crate) struct Redaction {
    masks: Masks,
    redactor: Redactor,
    /// A second pipe, to inspect what is in the first one without removing it.
    copy: (OwnedFd, OwnedFd),
    holds: bool,
}

impl Redaction {
    /// # Errors
    /// `EMFILE`, if no pipe can be created.
    pub(crate) fn new(masks: Masks) -> Result<Self, Errno> {
        let copy = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let _ = fcntl_setpipe_size(&copy.1, 256 << 10);
        Ok(Self { masks, redactor: Redactor::default(), copy, holds: false })
    }

    /// Replaces the masks, when more secrets are known.
    pub(crate) fn set_masks(&mut self, masks: Masks) {
        self.masks = masks;
    }

    /// Whether the pipe has undecided bytes.
    pub(crate) fn holds(&self) -> bool {
        self.holds
    }

    /// Takes up to `len` bytes from `pipe`, and appends to `bytes` what was written to the log. With `last`,
    /// undecided bytes are taken too.
    ///
    /// # Errors
    /// `EAGAIN` if there is nothing, or nothing decided.
    pub(crate) fn take(
        &mut self,
        log: &mut LogWriter,
        (pipe, len): (BorrowedFd<'_>, usize),
        bytes: &mut Vec<u8>,
        last: bool,
    ) -> Result<Fate, Errno> {
        self.holds = false;
        let there = tee(pipe, &self.copy.1, len, SpliceFlags::NONBLOCK)?;
        if there == 0 {
            return Err(Errno::PIPE);
        }
        let mut offered = vec![0; there];
        read_all(&self.copy.0, &mut offered)?;
        let given = self.redactor.next(&self.masks, &mut offered, last);
        self.holds = given < there;
        if given == 0 {
            offered.zeroize();
            return Err(Errno::AGAIN);
        }
        let fate = log.append(&offered[..given]);
        bytes.extend_from_slice(&offered[..given]);
        read_all(pipe, &mut offered[..given])?;
        offered.zeroize();
        Ok(fate)
    }
}

fn read_all(pipe: impl std::os::fd::AsFd, buffer: &mut [u8]) -> Result<(), Errno> {
    let mut done = 0;
    while done < buffer.len() {
        match rustix::io::read(&pipe, &mut buffer[done..]) {
            Ok(0) => return Err(Errno::PIPE),
            Ok(n) => done += n,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::gone::Gone;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    #[test]
    fn undecided_bytes_stay_in_the_pipe_and_no_secret_reaches_the_log() {
        let file = tempfile::tempfile().unwrap();
        let mut log = LogWriter::new(file.try_clone().unwrap().into(), 1 << 30, Gone::default(), 0);
        let mut masks = Masks::new([3; 32]);
        masks.add("hunter2-hunter3", true);
        let mut redaction = Redaction::new(masks).unwrap();
        let (out, into) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        let mut bytes = Vec::new();
        let mut take = |redaction: &mut Redaction, last| {
            redaction.take(&mut log, (out.as_fd(), 1 << 16), &mut bytes, last)
        };
        rustix::io::write(&into, b"it is hunter2-").unwrap();
        assert_eq!(take(&mut redaction, false), Ok(Fate::Logged));
        assert!(redaction.holds());
        assert_eq!(take(&mut redaction, false), Err(Errno::AGAIN));
        rustix::io::write(&into, b"hunter3, yes ").unwrap();
        assert_eq!(take(&mut redaction, false), Ok(Fate::Logged));
        rustix::io::write(&into, b"hunter2").unwrap();
        assert_eq!(take(&mut redaction, true), Ok(Fate::Logged));
        assert_eq!(take(&mut redaction, true), Err(Errno::AGAIN));
        let expected = b"it is ***************, yes *******";
        assert_eq!((bytes.as_slice(), log.end()), (expected.as_slice(), expected.len() as u64));
        let mut read = vec![0; expected.len()];
        file.read_exact_at(&mut read, 0).unwrap();
        assert_eq!(read, expected);
    }
}
