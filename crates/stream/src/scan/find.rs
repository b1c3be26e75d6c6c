//! Finds the next control character, many bytes at a time.
//!
//! This loop sees every byte of every job. It works on whole words with ordinary arithmetic, so it needs
//! neither `unsafe` nor a particular processor.

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Sets the top bit of each byte that is below 0x20 or is 0x7f. Marks above the lowest one may be wrong.
fn controls(word: u64) -> u64 {
    let below_space = word.wrapping_sub(LOW * 0x20) & !word;
    let delete = word ^ (LOW * 0x7f);
    let is_delete = delete.wrapping_sub(LOW) & !delete;
    (below_space | is_delete) & HIGH
}

/// The block size of the fast scan. The loop over a block is simple enough for the compiler to vectorise.
const BLOCK: usize = 32;

/// Whether a block has a control character, and (in the top bit) whether it has non-ASCII bytes.
fn scan_block(block: &[u8; BLOCK]) -> (bool, u8) {
    let (mut control, mut all) = (0, 0);
    for &byte in block {
        control |= u8::from(byte < 0x20) | u8::from(byte == 0x7f);
        all |= byte;
    }
    (control != 0, all)
}

/// The index of the first C0 control or DEL (or the length), and whether all bytes before it are ASCII.
pub(crate) fn find_control(bytes: &[u8]) -> (usize, bool) {
    let mut seen = 0u64;
    let mut at = 0;
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    for block in blocks {
        let (control, all) = scan_block(block);
        if control {
            break;
        }
        seen |= u64::from(all);
        at += BLOCK;
    }
    let (words, rest) = bytes[at..].as_chunks::<8>();
    for chunk in words {
        let word = u64::from_le_bytes(*chunk);
        let found = controls(word);
        if found != 0 {
            let index = found.trailing_zeros() as usize / 8;
            let before = if index == 0 { 0 } else { word << (64 - index * 8) };
            return (at + index, (seen | before) & HIGH == 0);
        }
        seen |= word;
        at += 8;
    }
    for &byte in rest {
        if byte < 0x20 || byte == 0x7f {
            return (at, seen & HIGH == 0);
        }
        seen |= u64::from(byte);
        at += 1;
    }
    (at, seen & HIGH == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_byte_by_byte_search(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let index = bytes.iter().position(|&b| b < 0x20 || b == 0x7f).unwrap_or(bytes.len());
            prop_assert_eq!(find_control(&bytes), (index, bytes[..index].is_ascii()));
        }

        #[test]
        fn agrees_on_mostly_text(bytes in proptest::collection::vec(0x1eu8..=0x84, 0..200)) {
            let index = bytes.iter().position(|&b| b < 0x20 || b == 0x7f).unwrap_or(bytes.len());
            prop_assert_eq!(find_control(&bytes), (index, bytes[..index].is_ascii()));
        }
    }
}
