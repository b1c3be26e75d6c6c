//! A descriptor that becomes readable when it is rung, and stays so until it is heard: wakes a `poll` from another thread.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// Rung from any thread, heard by one.
#[derive(Debug)]
pub struct Bell {
    hears: OwnedFd,
    /// Where it is rung, if that is another descriptor.
    rings: Option<OwnedFd>,
}

impl Bell {
    /// A bell that nobody has rung yet.
    ///
    /// # Errors
    /// `EMFILE`.
    #[cfg(all(target_os = "linux", not(outlast_portable)))]
    pub fn new() -> io::Result<Self> {
        use rustix::event::{EventfdFlags, eventfd};
        Ok(Self { hears: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?, rings: None })
    }

    /// A bell that nobody has rung yet.
    ///
    /// # Errors
    /// `EMFILE`.
    #[cfg(any(not(target_os = "linux"), outlast_portable))]
    pub fn new() -> io::Result<Self> {
        let (hears, rings) = super::pipe_that_never_blocks()?;
        Ok(Self { hears, rings: Some(rings) })
    }

    /// Rings it. A bell that is full of rings has been rung.
    pub fn ring(&self) {
        let _ = rustix::io::write(self.rings.as_ref().unwrap_or(&self.hears), &1_u64.to_ne_bytes());
    }

    /// Hears it: it is silent until it is rung again.
    pub fn hear(&self) {
        let mut rings = [0_u8; 512];
        while rustix::io::read(&self.hears, &mut rings).is_ok_and(|n| n == rings.len()) {}
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.hears.as_fd()
    }
}

impl AsRawFd for Bell {
    fn as_raw_fd(&self) -> RawFd {
        self.hears.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    #[test]
    fn it_rings_until_it_is_heard_however_often_it_was_rung() {
        let bell = Bell::new().unwrap();
        let rings = || poll(&mut [PollFd::new(&bell, PollFlags::IN)], Some(&Timespec::default())) == Ok(1);
        assert!(!rings());
        for _ in 0..20_000 {
            bell.ring();
        }
        assert!(rings());
        bell.hear();
        assert!(!rings());
        bell.ring();
        assert!(rings());
    }
}
