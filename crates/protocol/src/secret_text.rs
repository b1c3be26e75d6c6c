//! A secret on its way to a keeper: never shown, and overwritten as soon as it is not needed.

use std::fmt;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::wire::base64;

/// A secret on the wire, in base64: never shown, and overwritten when it is dropped.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    /// Wraps bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self(Zeroizing::new(base64::encode(bytes)))
    }

    /// The bytes; nothing if they are not base64.
    #[must_use]
    pub fn bytes(&self) -> Option<Zeroizing<Vec<u8>>> {
        base64::decode(&self.0).map(Zeroizing::new)
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a secret")
    }
}
