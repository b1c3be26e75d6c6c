//! Rate limits for waking an agent, so that it and its jobs cannot trigger each other forever.
//!
//! A quarter of an hour's turns may come as a burst, within the limit of a minute. The rest is spread over the hour, so that
//! a job that has something to tell all the time is heard all the time. The end of a job and a question have a reserve of
//! their own.

use std::time::Duration;

use serde::{Deserialize, Serialize};

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 3_600_000;

/// The limits.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Turns in a row without a prompt of the user; none for no such limit.
    pub in_a_row: Option<u32>,
    /// Turns in a minute.
    pub per_minute: u32,
    /// Turns in an hour.
    pub per_hour: u32,
    /// Bytes in an hour.
    pub bytes_per_hour: u64,
}

impl Limits {
    /// How many turns of an hour may come at once; and how many more, in an hour, for ends and questions alone.
    fn burst(&self) -> u32 {
        (self.per_hour / 4).max(self.per_minute.min(self.per_hour))
    }

    /// The time between two turns after a burst.
    fn spacing_ms(&self) -> u64 {
        let left = self.per_hour.saturating_sub(self.burst());
        HOUR_MS / u64::from(left.max(1))
    }
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
    /// When the reserve was used.
    reserve: Vec<u64>,
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
    /// Whether something is left. Urgent events have a reserve: printed lines do not use it up.
    pub(crate) fn check(&mut self, limits: &Limits, urgent: bool, now_ms: u64) -> Result<(), Exhausted> {
        self.turns.retain(|(at, _)| now_ms.saturating_sub(*at) < HOUR_MS);
        self.reserve.retain(|at| now_ms.saturating_sub(*at) < HOUR_MS);
        let row = if urgent { self.urgent_in_a_row } else { self.in_a_row };
        if limits.in_a_row.is_some_and(|most| row >= most) {
            let why = format!("it was woken {} times in a row without a prompt of yours", self.in_a_row);
            return Err(Exhausted { why, until_ms: None });
        }
        let plain = self.check_plain(limits, now_ms);
        if plain.is_ok() || (urgent && self.has_reserve(limits, now_ms)) { Ok(()) } else { plain }
    }

    fn check_plain(&self, limits: &Limits, now_ms: u64) -> Result<(), Exhausted> {
        let over = |why: String, until_ms| Err(Exhausted { why, until_ms: Some(until_ms) });
        let count = self.turns.len();
        if is_full(count, limits.per_hour) || limits.per_hour == 0 {
            let freed = self.turns.first().map_or(now_ms, |(at, _)| *at) + HOUR_MS;
            return over(format!("it was woken {count} times within an hour"), freed);
        }
        let bytes: u64 = self.turns.iter().map(|(_, bytes)| bytes).sum();
        if bytes >= limits.bytes_per_hour {
            let freed = self.turns.first().map_or(now_ms, |(at, _)| *at) + HOUR_MS;
            return over(format!("it was told {bytes} bytes within an hour"), freed);
        }
        let minute: Vec<u64> = self
            .turns
            .iter()
            .map(|(at, _)| *at)
            .filter(|at| now_ms.saturating_sub(*at) < MINUTE_MS)
            .collect();
        if is_full(minute.len(), limits.per_minute) {
            let freed = minute.first().copied().unwrap_or(now_ms) + MINUTE_MS;
            return over(format!("it was woken {} times within a minute", minute.len()), freed);
        }
        let last = self.turns.last().map_or(0, |(at, _)| *at);
        if is_full(count, limits.burst()) && now_ms < last + limits.spacing_ms() {
            return over(format!("it was woken {count} times within an hour"), last + limits.spacing_ms());
        }
        Ok(())
    }

    fn has_reserve(&self, limits: &Limits, now_ms: u64) -> bool {
        let minute = self.reserve.iter().filter(|at| now_ms.saturating_sub(**at) < MINUTE_MS).count();
        !is_full(self.reserve.len(), limits.burst()) && !is_full(minute, limits.per_minute)
    }

    /// Records a turn of ours.
    pub(crate) fn spend(&mut self, limits: &Limits, urgent: bool, now_ms: u64, bytes: usize) {
        self.in_a_row += 1;
        self.urgent_in_a_row += u32::from(urgent);
        if urgent && self.check_plain(limits, now_ms).is_err() {
            self.reserve.push(now_ms);
        } else {
            self.turns.push((now_ms, bytes as u64));
        }
    }

    /// Records a prompt of the user.
    pub(crate) fn user_spoke(&mut self) {
        (self.in_a_row, self.urgent_in_a_row) = (0, 0);
    }

    /// In words.
    pub(crate) fn describe(&self, limits: &Limits) -> String {
        let (row, hour, kept) = (self.in_a_row, self.turns.len(), self.reserve.len());
        format!(
            "woken {row} times since your last prompt, {hour} of {} times within the hour, and {kept} of {} times for \
             ends and questions alone",
            limits.per_hour,
            limits.burst()
        )
    }
}

fn is_full(count: usize, most: u32) -> bool {
    count >= usize::try_from(most).unwrap_or(usize::MAX)
}

/// The time until a moment.
pub(crate) fn until(at_ms: u64, now_ms: u64) -> Duration {
    Duration::from_millis(at_ms.saturating_sub(now_ms).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { in_a_row: None, per_minute: 4, per_hour: 60, bytes_per_hour: 1 << 20 };

    /// When a watcher that always has something to tell is heard within some minutes.
    fn heard(limits: &Limits, spent: &mut Spent, minutes: u64) -> Vec<u64> {
        let seconds = (0..minutes * 60).map(|second| second * 1000);
        seconds
            .filter(|now| {
                let may = spent.check(limits, false, *now).is_ok();
                if may {
                    spent.spend(limits, false, *now, 100);
                }
                may
            })
            .collect()
    }

    #[test]
    fn a_watcher_is_heard_for_the_whole_hour_and_longer() {
        let times = heard(&LIMITS, &mut Spent::default(), 180);
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] <= 3 * MINUTE_MS), "{times:?}");
        assert_eq!(times[..5], [0, 1000, 2000, 3000, MINUTE_MS], "four a minute at first");
        for start in (0..120 * MINUTE_MS).step_by(7000) {
            let hour = times.iter().filter(|at| (start..start + HOUR_MS).contains(*at)).count();
            assert!(hour <= 60, "{hour} from {start}");
        }
        let first = times.iter().filter(|at| **at < HOUR_MS).count();
        assert!(first > 50, "{first}");
    }

    #[test]
    fn ends_and_questions_have_a_reserve_that_cannot_loop() {
        let mut spent = Spent::default();
        heard(&LIMITS, &mut spent, 30);
        let mut urgent = 0;
        for now in (30 * MINUTE_MS..40 * MINUTE_MS).step_by(1000) {
            assert!(urgent > 0 || spent.check(&LIMITS, true, now).is_ok(), "the first is told at once");
            if spent.check(&LIMITS, true, now).is_ok() {
                spent.spend(&LIMITS, true, now, 100);
                urgent += 1;
            }
        }
        assert!((15..30).contains(&urgent), "{urgent}");
    }

    #[test]
    fn a_row_ends_with_a_prompt() {
        let limits = Limits { in_a_row: Some(3), ..LIMITS };
        let mut spent = Spent::default();
        (0..3).for_each(|turn| spent.spend(&limits, false, turn, 1));
        assert_eq!(spent.check(&limits, false, MINUTE_MS).unwrap_err().until_ms, None);
        assert_eq!(spent.check(&limits, true, MINUTE_MS), Ok(()), "a run of lines is not a run of ends");
        spent.user_spoke();
        assert_eq!(spent.check(&limits, false, MINUTE_MS + 3), Ok(()));
    }

    #[test]
    fn bytes_count_too() {
        let mut spent = Spent::default();
        spent.spend(&LIMITS, false, 0, 1 << 20);
        let exhausted = spent.check(&LIMITS, false, 1).unwrap_err();
        assert!(exhausted.why.contains("1048576 bytes") && exhausted.until_ms == Some(HOUR_MS));
    }
}
