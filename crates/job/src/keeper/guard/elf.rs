//! The interpreter that a program of the kernel's own format names: the kernel loads that file too, and begins there.
//!
//! It is a dynamic loader, as a rule. But any program can be named, and then it is that one that runs.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::pread;

const MAGIC: &[u8] = b"\x7fELF";
/// The class of programs with addresses of 64 bits.
const WIDE: u8 = 2;
const PT_INTERP: u32 = 3;
/// The kernel reads no table that is longer, and no longer path.
const MAX_TABLE: usize = 64 << 10;
const MAX_PATH: usize = 4096;

/// Where a class of programs has its fields.
struct Layout {
    /// Of the file: where its table is, how long an entry is, and how many there are.
    table: usize,
    entry_size: usize,
    entries: usize,
    /// Of an entry: where its part of the file begins, and how long it is.
    offset: usize,
    length: usize,
    /// How many bytes an address has.
    address: usize,
}

const LAYOUT_64: Layout =
    Layout { table: 0x20, entry_size: 0x36, entries: 0x38, offset: 0x08, length: 0x20, address: 8 };
const LAYOUT_32: Layout =
    Layout { table: 0x1c, entry_size: 0x2a, entries: 0x2c, offset: 0x04, length: 0x10, address: 4 };

/// The path of the interpreter that a program names; none if it names none, or is no such program.
///
/// # Errors
/// It cannot be read.
pub(super) fn interpreter(file: &OwnedFd, header: &[u8]) -> io::Result<Option<String>> {
    if !header.starts_with(MAGIC) {
        return Ok(None);
    }
    let layout = if header.get(4) == Some(&WIDE) { LAYOUT_64 } else { LAYOUT_32 };
    let (table, size, entries) = (
        number(header, layout.table, layout.address),
        number(header, layout.entry_size, 2),
        number(header, layout.entries, 2),
    );
    let (Some(table), Some(size), Some(entries)) = (table, size, entries) else { return Ok(None) };
    let size = usize::try_from(size).unwrap_or(0);
    let length = size.saturating_mul(usize::try_from(entries).unwrap_or(0)).min(MAX_TABLE);
    if size == 0 {
        return Ok(None);
    }
    let bytes = read(file, table, length)?;
    let is_named = |entry: &&[u8]| number(entry, 0, 4) == Some(u64::from(PT_INTERP));
    // The kernel takes the first.
    let Some(entry) = bytes.chunks_exact(size).find(is_named) else { return Ok(None) };
    let (offset, length) =
        (number(entry, layout.offset, layout.address), number(entry, layout.length, layout.address));
    let (Some(offset), Some(length)) = (offset, length) else { return Ok(None) };
    let path = read(file, offset, usize::try_from(length).unwrap_or(MAX_PATH).min(MAX_PATH))?;
    let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(Some(String::from_utf8_lossy(path).into_owned()))
}

fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + length)?;
    let mut number = [0; 8];
    // Both supported processors have the lowest byte first.
    number[..length].copy_from_slice(bytes);
    Some(u64::from_le_bytes(number))
}

fn read(file: &OwnedFd, at: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut have = 0;
    while have < length {
        match pread(file, &mut bytes[have..], at.saturating_add(have as u64)) {
            Ok(0) => break,
            Ok(read) => have += read,
            // A place that no file has.
            Err(rustix::io::Errno::INVAL) => break,
            Err(error) => return Err(error.into()),
        }
    }
    bytes.truncate(have);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    fn of(bytes: &[u8]) -> Option<String> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        interpreter(&file.into(), &bytes[..bytes.len().min(256)]).unwrap()
    }

    #[test]
    fn a_program_names_its_loader() {
        let mut bytes = Vec::new();
        std::fs::File::open("/bin/true").unwrap().read_to_end(&mut bytes).unwrap();
        let path = of(&bytes).unwrap();
        assert!(outlast_rules::loader::is_loader_name(&path), "{path}");
        // Whatever it names instead is what runs.
        let at = bytes.windows(path.len()).position(|piece| piece == path.as_bytes()).unwrap();
        bytes[at..at + path.len()].fill(0);
        bytes[at..at + 12].copy_from_slice(b"/bin/busybox");
        assert_eq!(of(&bytes).as_deref(), Some("/bin/busybox"));
    }

    #[test]
    fn what_is_cut_or_no_program_names_nothing() {
        let mut bytes = Vec::new();
        std::fs::File::open("/bin/true").unwrap().read_to_end(&mut bytes).unwrap();
        for length in [0, 3, 5, 40, 64, 100] {
            assert_eq!(of(&bytes[..length]), None, "{length}");
        }
        assert_eq!(of(b"#!/bin/sh\n"), None);
        let mut far = bytes[..64].to_vec();
        far[0x20..0x28].fill(0xff);
        assert_eq!(of(&far), None);
    }
}
