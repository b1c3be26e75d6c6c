//! Waits for what must come true: the only place in the tests that sleeps.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// How long a test waits for what should take a moment: long enough for a machine that is busy with other things,
/// and only ever used up by a test that fails.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How often it is looked at.
const ROUND: Duration = Duration::from_millis(4);

/// Looks until `look` is content; panics with what it saw last when it is not within the given time.
pub fn eventually<T, S: Debug>(what: &str, within: Duration, mut look: impl FnMut() -> Result<T, S>) -> T {
    let until = Instant::now() + within;
    loop {
        match look() {
            Ok(good) => return good,
            Err(seen) if Instant::now() >= until => {
                panic!("{what}: not within {} s; last seen: {seen:?}", within.as_secs_f64())
            }
            Err(_) => std::thread::sleep(ROUND),
        }
    }
}
