//! Moves bytes from a pipe into the log with their secrets hidden.
//!
//! Undecided bytes stay in the pipe, which keeper and heir share. So nothing is held only in our memory, and
//! a keeper that dies loses nothing. Bytes are copied out of the pipe (`tee`), redacted, written, and only
//! then removed from it. Where a pipe can't be looked into, undecided bytes are held here, and die with the keeper.

use std::os::fd::{BorrowedFd, OwnedFd};

use outlast_pty::system;
use outlast_stream::{Masks, Redactor};
use rustix::io::Errno;
use zeroize::{Zeroize, Zeroizing};

use super::writer::{Fate, LogWriter};

/// Hides secrets on the way into one log.
#[derive(Debug)]
pub(crate) struct Redaction {
    masks: Masks,
    redactor: Redactor,
    /// A second pipe, to inspect what is in the first one without removing it.
    copy: (OwnedFd, OwnedFd),
    /// Undecided bytes that could not be left in the pipe.
    held: Zeroizing<Vec<u8>>,
    holds: bool,
}

impl Redaction {
    /// # Errors
    /// `EMFILE`, if no pipe can be created.
    pub(crate) fn new(masks: Masks) -> Result<Self, Errno> {
        let copy = system::pipe_that_never_blocks()?;
        system::ask_for_room(&copy.1, 256 << 10);
        Ok(Self { masks, redactor: Redactor::default(), copy, held: Zeroizing::default(), holds: false })
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
        let there = match system::copy_between_pipes(pipe, &self.copy.1, len) {
            Err(Errno::INVAL) => return self.take_out(log, (pipe, len), bytes, last),
            there => there?,
        };
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

    /// The same where the pipe can't be looked into: bytes are taken out of it, and what is undecided is held.
    fn take_out(
        &mut self,
        log: &mut LogWriter,
        (pipe, len): (BorrowedFd<'_>, usize),
        bytes: &mut Vec<u8>,
        last: bool,
    ) -> Result<Fate, Errno> {
        let mut more = Zeroizing::new(vec![0; len]);
        match rustix::io::retry_on_intr(|| rustix::io::read(pipe, more.as_mut_slice())) {
            Ok(n) if n > 0 => self.held.extend_from_slice(&more[..n]),
            Ok(_) if self.held.is_empty() => return Err(Errno::PIPE),
            Err(error) if self.held.is_empty() || !last => {
                self.holds = !self.held.is_empty();
                return Err(error);
            }
            // With nothing more to come, what is held is decided.
            Ok(_) | Err(_) => {}
        }
        let given = self.redactor.next(&self.masks, &mut self.held, last);
        self.holds = given < self.held.len();
        if given == 0 {
            return Err(Errno::AGAIN);
        }
        let decided: Zeroizing<Vec<u8>> = Zeroizing::new(self.held.drain(..given).collect());
        let fate = log.append(&decided);
        bytes.extend_from_slice(&decided);
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
        let (out, into) = system::pipe_that_never_blocks().unwrap();
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
