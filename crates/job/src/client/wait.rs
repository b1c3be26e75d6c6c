//! Checks waits before anything is asked.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::failure::Failure;
use crate::wire::Wait;

/// How many patterns are remembered to be valid.
const MAX_CHECKED: usize = 8;

/// Checks the patterns, before anything else is done.
///
/// # Errors
/// [`Kind::Usage`](crate::Kind::Usage) with what is wrong and where.
pub fn check_wait(wait: &Wait) -> Result<(), Failure> {
    // Callers check before they do anything else, and so does the wait itself; compiling takes a while.
    static VALID: Mutex<VecDeque<Vec<String>>> = Mutex::new(VecDeque::new());
    let valid = || VALID.lock().unwrap_or_else(PoisonError::into_inner);
    let patterns = wait.patterns();
    if patterns.is_empty() || valid().contains(&patterns) {
        return Ok(());
    }
    crate::search::compile(&patterns)?;
    let mut valid = valid();
    valid.truncate(MAX_CHECKED - 1);
    valid.push_front(patterns);
    Ok(())
}
