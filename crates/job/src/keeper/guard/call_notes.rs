//! Which calls the guard has begun, in memory that keeper and heir share.
//!
//! The kernel tells of a call once. If the keeper dies with it, only its id lets the heir answer; without an answer the
//! process would stand still forever.

use std::io;

use outlast_pty::exec_guard::{CALL_WORDS, ExecCall};
use outlast_pty::shared::SharedPage;

/// Which grants are used up: one bit each.
const USED_GRANTS: usize = 0;
/// The last call that was begun, plus one.
const LAST_CALL: usize = 1;
/// The number of the last question.
const LAST_QUESTION: usize = 2;
const FIRST_SLOT: usize = 8;
const SLOTS: usize = (SharedPage::WORDS - FIRST_SLOT) / CALL_WORDS;

/// A typed view of the shared page.
#[derive(Clone, Copy, Debug)]
pub(in crate::keeper) struct CallNotes {
    page: SharedPage,
}

impl CallNotes {
    pub(in crate::keeper) fn new() -> io::Result<Self> {
        Ok(Self { page: SharedPage::new()? })
    }

    /// Notes a call before anything is done about it.
    pub(super) fn begin(&self, call: &ExecCall) {
        let words = call.to_words();
        self.page.set(LAST_CALL, words[0]);
        let Some(slot) = (0..SLOTS).map(at).find(|slot| self.page.get(*slot) == 0) else { return };
        for (i, word) in words.iter().enumerate().skip(1) {
            self.page.set(slot + i, *word);
        }
        // Last: only now the place counts.
        self.page.set(slot, words[0]);
    }

    /// A call was answered.
    pub(super) fn end(&self, call: &ExecCall) {
        let id = call.to_words()[0];
        for slot in (0..SLOTS).map(at).filter(|slot| self.page.get(*slot) == id) {
            self.page.set(slot, 0);
        }
    }

    /// The calls that were begun and not answered.
    pub(super) fn begun(&self) -> Vec<ExecCall> {
        let call = |slot| ExecCall::from_words(std::array::from_fn(|i| self.page.get(slot + i)));
        (0..SLOTS).map(at).filter_map(call).collect()
    }

    /// The call that a keeper may have heard of and not noted before it died: ids are counted, so it is the next one.
    pub(super) fn lost_call(&self) -> Option<u64> {
        let last = self.page.get(LAST_CALL);
        (last != 0).then_some(last)
    }

    /// The number of a new question, also after another keeper's.
    pub(in crate::keeper) fn next_question(&self) -> u64 {
        self.page.count(LAST_QUESTION)
    }

    /// Uses a grant up; false if it was used before.
    pub(super) fn use_grant(&self, grant: usize) -> bool {
        let used = self.page.get(USED_GRANTS);
        let bit = 1_u64.checked_shl(u32::try_from(grant).unwrap_or(u32::MAX)).unwrap_or(0);
        let free = bit != 0 && used & bit == 0;
        self.page.set(USED_GRANTS, used | bit);
        free
    }
}

fn at(slot: usize) -> usize {
    FIRST_SLOT + slot * CALL_WORDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::Pid;

    fn call(id: u64) -> ExecCall {
        ExecCall { id, pid: Pid::INIT, at: id.is_multiple_of(2), arguments: [id, 2, 3, 4, 5] }
    }

    #[test]
    fn an_heir_finds_what_was_begun_and_not_answered() {
        let notes = CallNotes::new().unwrap();
        assert_eq!(notes.lost_call(), None);
        for id in 0..3 {
            notes.begin(&call(id));
        }
        notes.end(&call(1));
        assert_eq!(notes.begun(), [call(0), call(2)]);
        assert_eq!(notes.lost_call(), Some(3));
    }

    #[test]
    fn a_grant_is_used_once() {
        let notes = CallNotes::new().unwrap();
        assert!(notes.use_grant(3) && !notes.use_grant(3) && notes.use_grant(0));
        assert!(!notes.use_grant(64), "there is no place to note it");
    }
}
