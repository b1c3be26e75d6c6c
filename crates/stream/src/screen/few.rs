//! Few plain lines on an empty screen: shown without an engine, which takes longer to make than a short command to run.

use crate::size::Size;

/// Rows of an empty screen on which only this was printed, the last of them up to the cursor; none where that takes more than
/// looking at it.
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
