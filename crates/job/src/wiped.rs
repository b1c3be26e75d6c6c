//! Memory that held a secret, and holds it no longer.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// Overwrites bytes, in a way that no optimiser leaves out.
pub(crate) fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    std::hint::black_box(bytes);
}

/// No core file of this process, and no other program of the same user that looks into its memory.
pub fn keep_memory_private() {
    // Where a system has no such thing, its own rules must do.
    let _ = outlast_pty::detach::keep_memory_private();
}

/// Bytes that are overwritten when they are let go of.
#[derive(Default)]
pub(crate) struct Wiped(pub(crate) Vec<u8>);

impl Wiped {
    /// Appends bytes; where the old place is too small, it is overwritten too.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        if self.0.capacity() - self.0.len() < bytes.len() {
            let mut larger = Vec::with_capacity((self.0.len() + bytes.len()).next_power_of_two());
            larger.extend_from_slice(&self.0);
            *self = Self(larger);
        }
        self.0.extend_from_slice(bytes);
    }
}

impl Deref for Wiped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Wiped {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

impl fmt::Debug for Wiped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// A secret on the wire, in base64: never shown, and overwritten when it is let go of.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretText(String);

impl SecretText {
    /// Wraps bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self(crate::wire::base64::encode(bytes))
    }

    pub(crate) fn bytes(&self) -> Option<Wiped> {
        crate::wire::base64::decode(&self.0).map(Wiped)
    }
}

impl Drop for SecretText {
    fn drop(&mut self) {
        wipe(&mut std::mem::take(&mut self.0).into_bytes());
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a secret")
    }
}
