//! Random numbers that can be repeated: the seed is printed when a test fails.

use std::time::{SystemTime, UNIX_EPOCH};

/// A small generator (splitmix64); `OUTLAST_SEED` repeats an earlier run.
#[derive(Debug)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// Seeded by `OUTLAST_SEED`, or by the clock. The seed goes to stderr, which a failing test shows.
    #[must_use]
    pub fn new() -> Self {
        let given = std::env::var("OUTLAST_SEED").ok().and_then(|seed| seed.parse().ok());
        let clock =
            || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.subsec_nanos().into());
        let seed = given.unwrap_or_else(clock);
        #[expect(clippy::print_stderr, reason = "seen only when the test fails")]
        {
            eprintln!("seed: OUTLAST_SEED={seed}");
        }
        Self { state: seed }
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit.max(1)
    }
}

impl Default for Dice {
    fn default() -> Self {
        Self::new()
    }
}
