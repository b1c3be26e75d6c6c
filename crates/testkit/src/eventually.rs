//! Waits for a condition: the only place in the tests that sleeps.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// How long a test waits for something that should take a moment. Long enough for a busy machine; only a
/// failing test uses it up.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// How often the condition is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(4);

/// Calls `look` until it returns `Ok`; panics after the given time, with the last `Err`.
pub fn eventually<T, S: Debug>(what: &str, within: Duration, mut look: impl FnMut() -> Result<T, S>) -> T {
    let until = Instant::now() + within;
    loop {
        match look() {
            Ok(good) => return good,
            Err(seen) if Instant::now() >= until => {
                panic!("{what}: not within {} s; last seen: {seen:?}", within.as_secs_f64())
            }
            Err(_) => std::thread::sleep(POLL_INTERVAL),
        }
    }
}
