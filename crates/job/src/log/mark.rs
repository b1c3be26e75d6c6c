//! What a log held when its job was over. A disk can lose the end of a file when the power fails, and keep a record that was
//! written later: with the mark in the record that is noticed, and readers are told.

use std::os::fd::AsFd;

use outlast_protocol::info::LogMark;
use rustix::fs::fstat;

use super::writer::read_exact_at;

/// So much of the start and of the end is in the sum.
const SUMMED: u64 = 1 << 20;

/// The mark of a log that ends at `end`. Without `sums`, only its length.
pub(crate) fn mark(log: impl AsFd, end: u64, sums: bool) -> LogMark {
    LogMark { end, crc: sums.then(|| sum(&log, end)) }
}

/// From where on a log lacks what its mark says that it held; none if it is all there. What a file system did not bring to the
/// disk is missing, or reads as zeros.
pub(crate) fn missing_from(log: impl AsFd, mark: LogMark) -> Option<u64> {
    let size = fstat(&log).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
    if size < mark.end {
        return Some(size);
    }
    match mark.crc {
        Some(crc) if crc != sum(&log, mark.end) => Some(end_of_text(&log, mark.end)),
        Some(_) | None => None,
    }
}

/// Just after the last byte that is not zero; the start of what was summed at the end if there is none.
fn end_of_text(log: impl AsFd, end: u64) -> u64 {
    let from = end.saturating_sub(SUMMED);
    let mut bytes = vec![0; usize::try_from(end - from).unwrap_or(0)];
    let got = read_exact_at(log, &mut bytes, from);
    bytes[..got].iter().rposition(|byte| *byte != 0).map_or(from, |at| from + at as u64 + 1)
}

fn sum(log: impl AsFd, end: u64) -> u32 {
    let head = end.min(SUMMED);
    let tail = end.saturating_sub(SUMMED).max(head);
    let mut crc = !0;
    for (from, to) in [(0, head), (tail, end)] {
        let mut at = from;
        let mut piece = vec![0; 64 << 10];
        while at < to {
            let len = usize::try_from(to - at).unwrap_or(usize::MAX).min(piece.len());
            let got = read_exact_at(&log, &mut piece[..len], at);
            piece[got..len].fill(0);
            crc = update(crc, &piece[..len]);
            at += len as u64;
        }
    }
    !crc
}

/// CRC-32 as in zlib and Ethernet.
fn update(mut crc: u32, bytes: &[u8]) -> u32 {
    for byte in bytes {
        crc = TABLE[((crc ^ u32::from(*byte)) & 0xff) as usize] ^ (crc >> 8);
    }
    crc
}

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    #[test]
    fn the_sum_is_that_of_every_other_program() {
        assert_eq!(!update(!0, b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn what_a_disk_lost_is_noticed() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&b"a line of output\n".repeat(200_000)).unwrap();
        let end = file.metadata().unwrap().len();
        let whole = mark(&file, end, true);
        assert_eq!(missing_from(&file, whole), None);
        file.write_all(b"more").unwrap();
        assert_eq!(missing_from(&file, whole), None, "it may grow");
        file.write_all_at(&[0; 4096], end - 4096).unwrap();
        assert_eq!(missing_from(&file, whole), Some(end - 4096), "zeros where text was");
        file.write_all_at(b"!", 3).unwrap();
        file.set_len(1000).unwrap();
        assert_eq!(missing_from(&file, whole), Some(1000), "cut off");
        assert_eq!(
            missing_from(&file, mark(&file, 1001, false)),
            Some(1000),
            "its length alone is enough for that"
        );
    }
}
