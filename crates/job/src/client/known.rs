//! What a client has read of a job's folder and need not read again.
//!
//! The record and the masks are replaced as a whole, by another file under the same name; only a record that can't be
//! replaced is written over. So what was read from a file holds for as long as the name leads to that very file, and it has
//! not been written since; it is kept open, so that no other can get its number.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};

use rustix::fs::{AtFlags, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

use crate::registry::replace::read_open;

/// A file that was read, and what it said.
#[derive(Debug)]
struct Read<T> {
    _file: OwnedFd,
    /// As it was before it was read.
    was: Stat,
    said: Arc<T>,
}

/// What the file of one name says, read again only when it is another file.
#[derive(Debug)]
pub(super) struct Known<T> {
    name: &'static str,
    limit: usize,
    read: Mutex<Option<Read<T>>>,
}

impl<T> Known<T> {
    pub(super) const fn new(name: &'static str, limit: usize) -> Self {
        Self { name, limit, read: Mutex::new(None) }
    }

    /// What it says now, as `parse` understands it. That there is none, or that it makes no sense, is not remembered.
    pub(super) fn get<E>(
        &self,
        dir: impl AsFd,
        parse: impl FnOnce(Result<Vec<u8>, Errno>) -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let Ok(mut read) = self.read.lock() else {
            return parse(self.open(&dir).and_then(|file| read_open(&file, self.limit))).map(Arc::new);
        };
        if let Some(read) = read.as_ref().filter(|read| self.is_still(read, &dir)) {
            return Ok(Arc::clone(&read.said));
        }
        *read = None;
        let file = match self.open(&dir) {
            Ok(file) => file,
            Err(error) => return parse(Err(error)).map(Arc::new),
        };
        let was = fstat(&file);
        let said = Arc::new(parse(read_open(&file, self.limit))?);
        *read = was.ok().map(|was| Read { _file: file, was, said: Arc::clone(&said) });
        Ok(said)
    }

    fn open(&self, dir: impl AsFd) -> Result<OwnedFd, Errno> {
        openat(dir, self.name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
    }

    /// Whether the name still leads to that file, as it was.
    fn is_still(&self, read: &Read<T>, dir: impl AsFd) -> bool {
        let marks = |stat: &Stat| (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
        let named = statat(dir, self.name, AtFlags::SYMLINK_NOFOLLOW);
        named.is_ok_and(|named| marks(&named) == marks(&read.was))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::replace::{Durability, replace};

    #[test]
    fn a_file_is_read_again_only_when_it_was_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let dir = std::fs::File::open(folder.path()).unwrap();
        let known = Known::new("x", 64);
        let mut reads = 0;
        let mut get = || {
            let said = known.get(&dir, |bytes| {
                reads += 1;
                bytes.map(|bytes| String::from_utf8(bytes).unwrap())
            });
            (said.map(|said| said.to_string()), reads)
        };
        assert_eq!(get(), (Err(Errno::NOENT), 1));
        for (round, text) in ["one", "two", "six"].into_iter().enumerate() {
            replace(&dir, "x", text.as_bytes(), Durability::Process).unwrap();
            for _ in 0..3 {
                assert_eq!(get(), (Ok(text.to_owned()), round + 2));
            }
        }
        std::fs::remove_file(folder.path().join("x")).unwrap();
        assert_eq!(get(), (Err(Errno::NOENT), 5));
    }
}
