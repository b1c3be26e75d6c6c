//! Caches of the small files in a job's folder: the record and the masks.
//!
//! Both are replaced as a whole, by another file under the same name; only a record that cannot be replaced is written
//! over. So a cached value holds for as long as the name leads to that very file, and the file has not been written
//! since. The file stays open, so that no other file can get its inode number.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};

use rustix::fs::{AtFlags, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

use crate::registry::replace::read_open;

/// A file that was read, and what was parsed from it.
#[derive(Debug)]
struct Cached<T> {
    _file: OwnedFd,
    /// As it was before it was read.
    was: Stat,
    value: Arc<T>,
}

/// The parsed value of the file of one name, read again only when it is another file.
#[derive(Debug)]
pub(super) struct CachedFile<T> {
    name: &'static str,
    limit: usize,
    cached: Mutex<Option<Cached<T>>>,
}

impl<T> CachedFile<T> {
    pub(super) const fn new(name: &'static str, limit: usize) -> Self {
        Self { name, limit, cached: Mutex::new(None) }
    }

    /// The value as it is now. A missing file, or one that `parse` refuses, is not cached.
    pub(super) fn get<E>(
        &self,
        dir: impl AsFd,
        parse: impl FnOnce(Result<Vec<u8>, Errno>) -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let Ok(mut slot) = self.cached.lock() else {
            return parse(self.open(&dir).and_then(|file| read_open(&file, self.limit))).map(Arc::new);
        };
        if let Some(cached) = slot.as_ref().filter(|cached| self.is_current(cached, &dir)) {
            return Ok(Arc::clone(&cached.value));
        }
        *slot = None;
        let file = match self.open(&dir) {
            Ok(file) => file,
            Err(error) => return parse(Err(error)).map(Arc::new),
        };
        let was = fstat(&file);
        let value = Arc::new(parse(read_open(&file, self.limit))?);
        *slot = was.ok().map(|was| Cached { _file: file, was, value: Arc::clone(&value) });
        Ok(value)
    }

    fn open(&self, dir: impl AsFd) -> Result<OwnedFd, Errno> {
        openat(dir, self.name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
    }

    /// Whether the name still leads to that file, unchanged.
    fn is_current(&self, cached: &Cached<T>, dir: impl AsFd) -> bool {
        let marks = |stat: &Stat| (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
        let named = statat(dir, self.name, AtFlags::SYMLINK_NOFOLLOW);
        named.is_ok_and(|named| marks(&named) == marks(&cached.was))
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
        let cache = CachedFile::new("x", 64);
        let mut reads = 0;
        let mut get = || {
            let value = cache.get(&dir, |bytes| {
                reads += 1;
                bytes.map(|bytes| String::from_utf8(bytes).unwrap())
            });
            (value.map(|value| value.to_string()), reads)
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
