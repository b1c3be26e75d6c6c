//! Reads an outbox again and again, at the cost of only what is new.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, OFlags, fstat, openat, statat};

use super::{EVENTS, Entry, Outbox, PRIVATE, whole_entries};
use crate::log::writer::read_exact_at;

/// How much is read at once.
const READ_BYTES: usize = 64 << 10;

/// How far an outbox was read. The file is kept open, so that its inode number is not reused.
#[derive(Debug, Default)]
pub struct Tail {
    file: Option<OwnedFd>,
    offset: u64,
    last: u64,
}

/// What a read brought.
#[derive(Debug, PartialEq)]
pub enum Looked {
    /// These were appended.
    More(Vec<Entry>),
    /// The file was replaced or changed: these are all of its entries.
    Anew(Vec<Entry>),
}

impl Tail {
    /// The number of the last entry that was read; 0 before the first.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The entries since the last call.
    pub fn look(&mut self, outbox: &Outbox) -> Looked {
        let named = statat(&outbox.dir, EVENTS, AtFlags::SYMLINK_NOFOLLOW).ok();
        let known = self.file.as_ref().and_then(|file| fstat(file).ok());
        if let (Some(named), Some(known)) = (named, known)
            && (named.st_dev, named.st_ino) == (known.st_dev, known.st_ino)
        {
            let size = u64::try_from(known.st_size).unwrap_or(0);
            if size == self.offset {
                return Looked::More(Vec::new());
            }
            let expected = self.last + 1;
            // A writer that ran out of disk space may have truncated what we have read, and others may have
            // written over it.
            if size > self.offset
                && self.is_behind_a_line()
                && let Some(entries) = self.read_on(size)
                && entries.first().is_none_or(|first| first.n == expected)
            {
                return Looked::More(entries);
            }
        }
        *self = Self::default();
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.file = openat(&outbox.dir, EVENTS, flags, PRIVATE).ok();
        let size = self.file.as_ref().and_then(|file| fstat(file).ok()).map_or(0, |stat| stat.st_size);
        Looked::Anew(self.read_on(u64::try_from(size).unwrap_or(0)).unwrap_or_default())
    }

    fn is_behind_a_line(&self) -> bool {
        let mut last = [0];
        let at = self.offset.checked_sub(1);
        at.zip(self.file.as_ref())
            .is_none_or(|(at, file)| read_exact_at(file, &mut last, at) == 1 && last == *b"\n")
    }

    /// Reads complete lines up to a size, and advances past them.
    fn read_on(&mut self, size: u64) -> Option<Vec<Entry>> {
        let file = self.file.as_ref()?;
        let mut bytes = Vec::new();
        while self.offset + (bytes.len() as u64) < size {
            let at = bytes.len();
            let left = usize::try_from(size - self.offset).unwrap_or(usize::MAX) - at;
            bytes.resize(at + left.min(READ_BYTES), 0);
            let got = read_exact_at(file, &mut bytes[at..], self.offset + at as u64);
            bytes.truncate(at + got);
            if got == 0 {
                break;
            }
        }
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let entries: Vec<Entry> = whole_entries(&bytes[..whole]).collect();
        self.offset += whole as u64;
        self.last = entries.last().map_or(self.last, |entry| entry.n);
        Some(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Home;
    use crate::spec::Handle;

    fn told(outbox: &Outbox, text: &str) {
        outbox
            .append(&mut [Entry::about(Handle::new(1), None, crate::wire::event::EntryKind::Exit, text)])
            .unwrap();
    }

    fn numbers(entries: &[Entry]) -> Vec<u64> {
        entries.iter().map(|entry| entry.n).collect()
    }

    #[test]
    fn each_entry_is_read_once_and_a_shorter_file_from_its_start() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path()).unwrap();
        let outbox = Outbox::open(&home, "s").unwrap();
        let mut tail = Tail::default();
        assert_eq!(tail.look(&outbox), Looked::Anew(Vec::new()));
        told(&outbox, "a");
        let Looked::Anew(first) = tail.look(&outbox) else { panic!("there was no file before") };
        assert_eq!(numbers(&first), [1]);
        assert_eq!(tail.look(&outbox), Looked::More(Vec::new()));
        told(&outbox, "b");
        told(&outbox, "c");
        let Looked::More(more) = tail.look(&outbox) else { panic!("it is the same file") };
        assert_eq!((numbers(&more), tail.last()), (vec![2, 3], 3));
        // An acknowledgement replaces the file with a shorter one.
        outbox.ack(Some(2)).unwrap();
        told(&outbox, "d");
        let Looked::Anew(all) = tail.look(&outbox) else { panic!("it was replaced") };
        assert_eq!((numbers(&all).last(), tail.last()), (Some(&4), 4));
    }

    #[test]
    fn a_partial_line_waits_and_truncated_entries_are_read_again() {
        use std::io::Write;
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path()).unwrap();
        let outbox = Outbox::open(&home, "s").unwrap();
        let mut tail = Tail::default();
        told(&outbox, "a");
        tail.look(&outbox);
        let path = outbox.path.join(EVENTS);
        let size = std::fs::metadata(&path).unwrap().len();
        let mut file = std::fs::File::options().append(true).open(&path).unwrap();
        file.write_all(b"{\"n\":2,").unwrap();
        assert_eq!(tail.look(&outbox), Looked::More(Vec::new()));
        told(&outbox, "b, after the half line was cut off");
        let Looked::More(more) = tail.look(&outbox) else { panic!("nothing whole was lost") };
        assert_eq!(numbers(&more), [2]);
        // As a writer that runs out of disk space in the middle of several entries.
        file.set_len(size).unwrap();
        told(&outbox, "c");
        told(&outbox, "d, so that it is longer than before again");
        let Looked::Anew(all) = tail.look(&outbox) else { panic!("it was taken back") };
        assert_eq!(numbers(&all), [1, 2, 3]);
    }
}
