//! The jobs on the screen: which are taken, in which order, and which is chosen.

use std::collections::BTreeSet;
use std::time::Instant;

use outlast_job::Handle;
use outlast_job::lifecycle::State;

use crate::commands::jobs::rows::Row;

/// How much a job needs a person; the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Need {
    Asks,
    Failed,
    Runs,
    Done,
}

impl Need {
    pub(super) fn of(row: &Row) -> Self {
        match &row.state {
            State::Running { .. } if row.needs_answer() || row.log_failing.is_some() => Self::Asks,
            State::Queued(_) | State::Running { .. } | State::Starting => Self::Runs,
            State::Completed(_) | State::Failed(_) | State::Killed(_) | State::Lost { .. } => {
                if row.state.went_wrong() { Self::Failed } else { Self::Done }
            }
        }
    }

    /// A sign that also tells without colours.
    pub(super) fn sign(self) -> char {
        match self {
            Self::Asks => '?',
            Self::Failed => '!',
            Self::Runs => '>',
            Self::Done => '.',
        }
    }
}

/// The list.
#[derive(Debug)]
pub(super) struct Jobs {
    rows: Vec<Row>,
    /// Those that the filter takes, as places in `rows`.
    taken: Vec<usize>,
    chosen: Option<Handle>,
    /// Where the chosen one is, or was.
    at: usize,
    pub(super) marked: BTreeSet<Handle>,
    pub(super) filter: String,
    listed: Instant,
    /// A job newer than this one is chosen when it comes.
    expect_after: Option<Handle>,
}

/// The newest job of this machine.
fn newest_here(rows: &[Row]) -> Option<Handle> {
    rows.iter().map(|row| row.handle).filter(|handle| handle.host().is_none()).max()
}

impl Jobs {
    pub(super) fn new() -> Self {
        Self {
            rows: Vec::new(),
            taken: Vec::new(),
            chosen: None,
            at: 0,
            marked: BTreeSet::new(),
            filter: String::new(),
            listed: Instant::now(),
            expect_after: None,
        }
    }

    /// Takes over a new list.
    pub(super) fn replace(&mut self, mut rows: Vec<Row>) {
        rows.sort_by_key(|row| (Need::of(row), std::cmp::Reverse(row.handle)));
        self.marked.retain(|handle| rows.iter().any(|row| row.handle == *handle));
        let newest = newest_here(&rows);
        if self.expect_after.is_some_and(|last| newest > Some(last)) {
            self.expect_after = None;
            self.chosen = newest;
        }
        self.rows = rows;
        self.listed = Instant::now();
        self.take();
    }

    /// The next new job is the one to look at.
    pub(super) fn expect_new(&mut self) {
        self.expect_after = newest_here(&self.rows);
    }

    pub(super) fn set_filter(&mut self, filter: String) {
        self.filter = filter;
        self.take();
    }

    fn take(&mut self) {
        let words: Vec<String> = self.filter.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let is_taken = |row: &Row| {
            let text = row.searchable().to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        self.taken = (0..self.rows.len()).filter(|at| is_taken(&self.rows[*at])).collect();
        let found = self.taken.iter().position(|at| Some(self.rows[*at].handle) == self.chosen);
        self.at = found.unwrap_or(self.at).min(self.taken.len().saturating_sub(1));
        self.chosen = self.taken.get(self.at).map(|at| self.rows[*at].handle);
    }

    /// Moves this many rows down, or up.
    pub(super) fn step(&mut self, by: isize) {
        self.at = self.at.saturating_add_signed(by).min(self.taken.len().saturating_sub(1));
        self.chosen = self.taken.get(self.at).map(|at| self.rows[*at].handle);
    }

    pub(super) fn chosen(&self) -> Option<&Row> {
        self.taken.get(self.at).map(|at| &self.rows[*at])
    }

    /// Where the chosen one is in the list.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn find(&self, handle: Handle) -> Option<&Row> {
        self.rows.iter().find(|row| row.handle == handle)
    }

    /// Those that are shown, from the top.
    pub(super) fn shown(&self) -> impl Iterator<Item = &Row> {
        self.taken.iter().map(|at| &self.rows[*at])
    }

    pub(super) fn all(&self) -> &[Row] {
        &self.rows
    }

    /// How long ago the list was made, in milliseconds.
    pub(super) fn age_ms(&self) -> u64 {
        outlast_job::clock::millis(self.listed.elapsed())
    }

    /// The chosen one is marked, or no longer.
    pub(super) fn toggle_mark(&mut self) {
        if let Some(handle) = self.chosen
            && !self.marked.remove(&handle)
        {
            self.marked.insert(handle);
        }
    }

    /// The marked ones; the chosen one if none is.
    pub(super) fn marked_or_chosen(&self) -> Vec<Handle> {
        if self.marked.is_empty() {
            return self.chosen.into_iter().collect();
        }
        self.marked.iter().copied().collect()
    }
}
