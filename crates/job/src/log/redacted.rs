//! Takes bytes out of a pipe into the log with their secrets hidden.
//!
//! What is not decided yet stays in the pipe, which keeper and heir share: so nothing is held only in our memory, and a
//! keeper that dies loses none of it. Bytes are copied out of the pipe ([`tee`]), hidden, written, and only then taken
//! from it.

use std::os::fd::{BorrowedFd, OwnedFd};

use outlast_stream::{Masks, Redactor};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, tee};

use super::writer::{Fate, LogWriter};
use crate::wiped::wipe;

/// Hides secrets on the way into one log.
#[derive(Debug)]
pub(crate) struct Redaction {
    masks: Masks,
    redactor: Redactor,
    /// Where what is in the pipe can be looked at without being taken from it.
    copy: (OwnedFd, OwnedFd),
    holds: bool,
}

impl Redaction {
    /// # Errors
    /// `EMFILE`, when no pipe can be had.
    pub(crate) fn new(masks: Masks) -> Result<Self, Errno> {
        let copy = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let _ = fcntl_setpipe_size(&copy.1, 256 << 10);
        Ok(Self { masks, redactor: Redactor::default(), copy, holds: false })
    }

    /// More is known that must be hidden.
    pub(crate) fn set_masks(&mut self, masks: Masks) {
        self.masks = masks;
    }

    /// Whether something is in the pipe that is not decided yet.
    pub(crate) fn holds(&self) -> bool {
        self.holds
    }

    /// Takes up to `len` bytes that wait in `pipe`, and appends what went into the log to `bytes`. With `last`, what is not
    /// decided yet is taken too.
    ///
    /// # Errors
    /// `EAGAIN` when there is nothing, or nothing that is decided.
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
            wipe(&mut offered);
            return Err(Errno::AGAIN);
        }
        let fate = log.append(&offered[..given]);
        bytes.extend_from_slice(&offered[..given]);
        read_all(pipe, &mut offered[..given])?;
        wipe(&mut offered);
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
    fn what_is_not_decided_stays_in_the_pipe_and_no_secret_reaches_the_log() {
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
