//! Base64 on the wire, for bytes that are not text: with padding when written, with or without it when read.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Standard base64 with padding.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    ENGINE.encode(bytes)
}

/// The bytes, or nothing if it is not base64.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    ENGINE.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_every_length() {
        for len in 0..50_u8 {
            let bytes: Vec<u8> = (0..len).map(|b| b.wrapping_mul(37)).collect();
            assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
        assert_eq!(encode(b"any carnal pleas"), "YW55IGNhcm5hbCBwbGVhcw==");
        assert_eq!(decode("a*b="), None);
    }

    #[test]
    fn reads_what_clients_of_0_1_0_could_send() {
        assert_eq!(decode("YW55").as_deref(), Some(&b"any"[..]));
        assert_eq!(decode("YW4").as_deref(), Some(&b"an"[..]), "without padding");
        assert_eq!(decode("YW5=").as_deref(), Some(&b"an"[..]), "with bits that belong to no byte");
        assert_eq!(decode("Y"), None);
    }
}
