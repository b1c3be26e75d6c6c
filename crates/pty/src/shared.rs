//! A page of memory that a process shares with its forks: what a process stored there survives its death.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

/// One page of numbers, shared by all processes forked after it was created. It is never unmapped: it lives
/// as long as the processes that share it.
#[derive(Clone, Copy, Debug)]
pub struct SharedPage {
    words: &'static [AtomicU64; SharedPage::WORDS],
}

impl SharedPage {
    /// How many numbers fit into it.
    pub const WORDS: usize = 512;

    /// Maps a page of zeros.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new() -> io::Result<Self> {
        // SAFETY: a fresh anonymous mapping, page-aligned and zeroed, is a valid array of AtomicU64; it is
        // never unmapped, so 'static holds.
        #[expect(unsafe_code, reason = "shared memory has no safe wrapper")]
        unsafe {
            let at = mmap_anonymous(
                std::ptr::null_mut(),
                Self::WORDS * 8,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
            )?;
            Ok(Self { words: &*at.cast::<[AtomicU64; Self::WORDS]>() })
        }
    }

    /// The number at `index`; out of range reads as 0.
    #[must_use]
    pub fn get(&self, index: usize) -> u64 {
        self.words.get(index).map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Sets the number at `index`; out of range is ignored.
    pub fn set(&self, index: usize, value: u64) {
        if let Some(word) = self.words.get(index) {
            word.store(value, Ordering::Release);
        }
    }

    /// Adds one to the number at `index`, and returns what it is then. Several threads and processes may do so.
    #[must_use]
    pub fn count(&self, index: usize) -> u64 {
        self.words.get(index).map_or(0, |word| word.fetch_add(1, Ordering::AcqRel) + 1)
    }

    /// Writes bytes from `index` on, eight to a number, as many as fit.
    pub fn set_bytes(&self, index: usize, bytes: &[u8]) {
        for (i, chunk) in bytes.chunks(8).enumerate() {
            let mut word = [0_u8; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.set(index + i, u64::from_le_bytes(word));
        }
    }

    /// Reads `len` bytes from `index` on.
    #[must_use]
    pub fn get_bytes(&self, index: usize, len: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            (0..len.div_ceil(8)).flat_map(|i| self.get(index + i).to_le_bytes()).collect();
        bytes.truncate(len);
        bytes
    }
}
