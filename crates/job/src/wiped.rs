//! Memory that held a secret, and is overwritten as soon as it is not needed.

use std::fmt;
use std::ops::Deref;

use zeroize::Zeroizing;

/// No core file of this process, and no other program of the same user that looks into its memory.
pub fn keep_memory_private() {
    // Where a system has no such thing, its own rules must do.
    let _ = outlast_pty::detach::keep_memory_private();
}

/// Bytes that are overwritten when they are dropped, and that are never shown.
#[derive(Default)]
pub(crate) struct Wiped(Zeroizing<Vec<u8>>);

impl Wiped {
    /// Appends bytes. A vector that grows by itself would leave a copy behind.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        if self.0.capacity() - self.0.len() < bytes.len() {
            let mut larger = Vec::with_capacity((self.0.len() + bytes.len()).next_power_of_two());
            larger.extend_from_slice(&self.0);
            *self = Self::from(larger);
        }
        self.0.extend_from_slice(bytes);
    }
}

impl From<Vec<u8>> for Wiped {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }
}

impl Deref for Wiped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Wiped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}
