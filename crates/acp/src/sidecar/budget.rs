//! Rate limits for waking an agent, so that it and its jobs cannot trigger each other forever.

use std::time::Duration;

use serde::{Deserialize, Serialize};

const HOUR_MS: u64 = 3_600_000;

/// The limits.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Turns in a row without a prompt of the user.
    pub in_a_row: u32,
    /// Turns in an hour.
    pub per_hour: u32,
    /// Bytes in an hour.
    pub bytes_per_hour: u64,
}

/// What was used up. It is saved to the disk, so that a restart does not reset it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Spent {
    in_a_row: u32,
    /// How many of those had urgent events: the end of a job, or a question.
    urgent_in_a_row: u32,
    /// When, in milliseconds since 1970, and how many bytes.
    turns: Vec<(u64, u64)>,
}

/// Why the agent is not woken now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Exhausted {
    /// The reason, for the user.
    pub(crate) why: String,
    /// When it may be woken again; `None` if only the user can change that.
    pub(crate) until_ms: Option<u64>,
}

impl Spent {
    /// Whether something is left. Urgent events have a limit of their own: printed lines do not use it up.
    pub(crate) fn check(&mut self, limits: &Limits, urgent: bool, now_ms: u64) -> Result<(), Exhausted> {
        let row = if urgent { self.urgent_in_a_row } else { self.in_a_row };
        self.turns.retain(|(at, _)| now_ms.saturating_sub(*at) < HOUR_MS);
        let over = |why: String, until_ms| Err(Exhausted { why, until_ms });
        let freed = self.turns.first().map(|(at, _)| at + HOUR_MS);
        let bytes: u64 = self.turns.iter().map(|(_, bytes)| bytes).sum();
        if row >= limits.in_a_row {
            return over(
                format!("it was woken {} times in a row without a prompt of yours", self.in_a_row),
                None,
            );
        }
        if self.turns.len() >= usize::try_from(limits.per_hour).unwrap_or(usize::MAX) {
            return over(format!("it was woken {} times within an hour", self.turns.len()), freed);
        }
        if bytes >= limits.bytes_per_hour {
            return over(format!("it was told {bytes} bytes within an hour"), freed);
        }
        Ok(())
    }

    /// Records a turn of ours.
    pub(crate) fn spend(&mut self, urgent: bool, now_ms: u64, bytes: usize) {
        self.in_a_row += 1;
        self.urgent_in_a_row += u32::from(urgent);
        self.turns.push((now_ms, bytes as u64));
    }

    /// Records a prompt of the user.
    pub(crate) fn user_spoke(&mut self) {
        (self.in_a_row, self.urgent_in_a_row) = (0, 0);
    }

    /// In words.
    pub(crate) fn describe(&self, limits: &Limits) -> String {
        let (row, hour) = (self.in_a_row, self.turns.len());
        format!(
            "woken {row} of {} times in a row, {hour} of {} times within the hour",
            limits.in_a_row, limits.per_hour
        )
    }
}

/// The time until a moment.
pub(crate) fn until(at_ms: u64, now_ms: u64) -> Duration {
    Duration::from_millis(at_ms.saturating_sub(now_ms).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { in_a_row: 3, per_hour: 5, bytes_per_hour: 1000 };

    #[test]
    fn a_row_ends_with_a_prompt_and_an_hour_by_itself() {
        let mut spent = Spent::default();
        for minute in 0..3 {
            assert_eq!(spent.check(&LIMITS, false, minute * 60_000), Ok(()));
            spent.spend(false, minute * 60_000, 10);
        }
        assert_eq!(spent.check(&LIMITS, false, 180_000).unwrap_err().until_ms, None);
        spent.user_spoke();
        spent.spend(false, 180_000, 10);
        spent.spend(false, 180_000, 10);
        let exhausted = spent.check(&LIMITS, false, 180_000).unwrap_err();
        assert_eq!(exhausted.until_ms, Some(HOUR_MS));
        assert_eq!(spent.check(&LIMITS, false, HOUR_MS), Ok(()));
    }

    #[test]
    fn urgent_events_are_sent_after_a_row_of_lines_and_cannot_loop() {
        let mut spent = Spent::default();
        (0..3).for_each(|turn| spent.spend(false, turn, 1));
        assert!(spent.check(&LIMITS, false, 3).is_err() && spent.check(&LIMITS, true, 3).is_ok());
        spent.user_spoke();
        (0..3).for_each(|turn| spent.spend(true, HOUR_MS + turn, 1));
        assert!(spent.check(&LIMITS, true, HOUR_MS + 3).is_err());
    }

    #[test]
    fn bytes_count_too() {
        let mut spent = Spent::default();
        spent.spend(false, 0, 1000);
        assert!(spent.check(&LIMITS, false, 1).unwrap_err().why.contains("1000 bytes"));
    }
}
