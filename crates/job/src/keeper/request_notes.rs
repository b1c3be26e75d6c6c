//! What a keeper has begun, in memory that it shares with its heir: so that a request is never carried out
//! twice, and one that killed a keeper is not tried on its heir.
//!
//! A client gives each request a key of its own. Before a request is looked at, its key is noted as the
//! current one; before something is done that must not be done twice, its key is noted as begun. Should the
//! keeper die, the client sends the same request to the heir. What was begun is not done again, and what a
//! keeper crashed over is not even read.

use std::hash::{Hash, Hasher};
use std::io;

use outlast_pty::shared::SharedPage;

/// Where the key of the request is that is being dealt with.
const CURRENT: usize = 0;
/// Where the keys of those begin that were begun, one a word.
const BEGUN: usize = 1;
const SLOTS: usize = SharedPage::WORDS - BEGUN;
/// Set in a word when its request was answered: its place may be taken by another.
const FINISHED: u64 = 1;
/// What a line with a key begins with, so that the key is known before anything else of it is read.
const KEY_FIELD: &[u8] = br#"{"key":""#;
const MAX_KEY: usize = 64;

/// The key of a request, as it is noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotedKey(u64);

impl NotedKey {
    /// The key of a line from a client, if it has one.
    pub(super) fn of_line(line: &[u8]) -> Option<Self> {
        let rest = line.strip_prefix(KEY_FIELD)?;
        let end = rest.iter().take(MAX_KEY + 1).position(|byte| *byte == b'"')?;
        let mut hasher = Fnv::default();
        rest[..end].hash(&mut hasher);
        // Never 0, which is an empty place; the last bit is for other things.
        Some(Self((hasher.finish() | 2) & !FINISHED))
    }
}

/// FNV-1a: one that both processes have in common, whatever they were built with.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The page that keeper and heir share.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestPage {
    page: SharedPage,
}

impl RequestPage {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { page: SharedPage::new()? })
    }

    /// The keeper was killed from outside: what it was dealing with then is not to blame.
    pub(super) fn forgive_current(&self) {
        self.page.set(CURRENT, 0);
    }
}

/// The notes of one keeper.
#[derive(Debug)]
pub(super) struct RequestNotes {
    page: SharedPage,
    /// What a dead keeper was dealing with when it died.
    killed_a_keeper: Option<NotedKey>,
    next: usize,
}

impl RequestNotes {
    /// Takes up what a dead keeper has left.
    pub(super) fn new(page: RequestPage) -> Self {
        let page = page.page;
        let current = page.get(CURRENT);
        Self { page, killed_a_keeper: (current != 0).then_some(NotedKey(current)), next: 0 }
    }

    /// A request is looked at from now on.
    pub(super) fn set_current(&self, key: NotedKey) {
        self.page.set(CURRENT, key.0);
    }

    /// It is dealt with, or waits for something.
    pub(super) fn clear_current(&self) {
        self.page.set(CURRENT, 0);
    }

    /// Whether a keeper died while it dealt with this very request.
    pub(super) fn has_killed_a_keeper(&self, key: NotedKey) -> bool {
        self.killed_a_keeper == Some(key)
    }

    fn place_of(&self, key: NotedKey) -> Option<usize> {
        (BEGUN..BEGUN + SLOTS).find(|at| self.page.get(*at) & !FINISHED == key.0)
    }

    /// Whether something that must not be done twice was begun.
    pub(super) fn was_begun(&self, key: NotedKey) -> bool {
        self.place_of(key).is_some()
    }

    /// Notes that something is begun, in the place of something finished; false when there is no place.
    pub(super) fn begin(&mut self, key: NotedKey) -> bool {
        for _ in 0..SLOTS {
            let at = BEGUN + self.next;
            self.next = (self.next + 1) % SLOTS;
            let word = self.page.get(at);
            if word == 0 || word & FINISHED != 0 {
                self.page.set(at, key.0);
                return true;
            }
        }
        false
    }

    /// It was answered: its place may be taken, the oldest first.
    pub(super) fn finish(&self, key: NotedKey) {
        if let Some(at) = self.place_of(key) {
            self.page.set(at, key.0 | FINISHED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> NotedKey {
        NotedKey::of_line(format!(r#"{{"key":"client-{number}","id":1,"verb":"status"}}"#).as_bytes())
            .unwrap()
    }

    #[test]
    fn a_key_is_known_before_the_rest_of_a_line_is_read() {
        assert_eq!(NotedKey::of_line(br#"{"key":"a","id":1}"#), NotedKey::of_line(br#"{"key":"a" no json"#));
        assert_ne!(NotedKey::of_line(br#"{"key":"a"}"#), NotedKey::of_line(br#"{"key":"b"}"#));
        for line in [&br#"{"id":1,"key":"a"}"#[..], br#"{"key":7}"#, br#"{"key":"endless"#, b""] {
            assert_eq!(NotedKey::of_line(line), None);
        }
    }

    #[test]
    fn an_heir_knows_what_was_begun_and_what_its_keeper_died_of() {
        let page = RequestPage::new().unwrap();
        let mut keeper = RequestNotes::new(page);
        keeper.set_current(key(1));
        assert!(keeper.begin(key(1)));
        keeper.clear_current();
        keeper.set_current(key(2));
        let heir = RequestNotes::new(page);
        assert!(heir.was_begun(key(1)) && !heir.has_killed_a_keeper(key(1)));
        assert!(!heir.was_begun(key(2)) && heir.has_killed_a_keeper(key(2)));
        assert!(!heir.was_begun(key(3)) && !heir.has_killed_a_keeper(key(3)));
    }

    #[test]
    fn what_is_not_finished_is_not_forgotten() {
        let mut notes = RequestNotes::new(RequestPage::new().unwrap());
        assert!(notes.begin(key(0)));
        for number in 1..5 * SLOTS {
            assert!(notes.begin(key(number)));
            notes.finish(key(number));
        }
        assert!(notes.was_begun(key(0)) && notes.was_begun(key(5 * SLOTS - 1)));
        assert!(!notes.was_begun(key(1)), "the oldest of those that are finished are forgotten");
        let mut full = RequestNotes::new(RequestPage::new().unwrap());
        assert!((0..SLOTS).all(|number| full.begin(key(number))));
        assert!(!full.begin(key(SLOTS)), "there is no place for more");
    }
}
