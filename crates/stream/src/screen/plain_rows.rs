//! A few plain lines on an empty screen are shown without an engine: making one takes longer than a short
//! command runs.

use crate::size::Size;

/// The rows of an empty screen on which only this was printed, up to the cursor. `None` if that takes an
/// engine.
pub(super) fn rows(printed: &[u8], size: Size) -> Option<Vec<&str>> {
    if printed.len() >= size.lines() * (usize::from(size.cols) + 1) {
        return None;
    }
    let text = std::str::from_utf8(printed).ok()?;
    let rows: Vec<&str> = text.split("\r\n").collect();
    let is_plain = |row: &&str| {
        row.len() < usize::from(size.cols) && row.bytes().all(|byte| matches!(byte, b' '..=b'~'))
    };
    (rows.len() <= size.lines() && rows.iter().all(is_plain)).then_some(rows)
}
