//! How much of the machine other work took while a suite ran. A budget is for two cores of its own: on a machine that is
//! busy with something else, a suite may take longer by as much.

use std::time::Duration;

use rustix::param::clock_ticks_per_second;

/// However busy the machine is: so many times as long and no more.
const MAX_STRETCH: u32 = 6;
/// What hangs is ended after so much more than its budget at the latest.
const MAX_MORE: Duration = Duration::from_secs(30 * 60);

/// What the processors had done by then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cpu {
    /// Work of the whole machine.
    all: Duration,
    /// That of programs which have ended and were ours.
    ours: Duration,
}

impl Cpu {
    /// As the kernel counts it; nothing where it does not say.
    pub(super) fn now() -> Self {
        let count = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        Self { all: busy(&count("/proc/stat")), ours: of_children(&count("/proc/self/stat")) }
    }

    /// How long something may take whose budget is for a machine of its own.
    pub(super) fn allowed(self, before: Self, took: Duration, budget: Duration) -> Duration {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        stretched(
            budget,
            self.all.saturating_sub(before.all),
            self.ours.saturating_sub(before.ours),
            took,
            cores,
        )
    }
}

/// The longest that a suite is let run, whatever others do.
pub(super) fn longest(budget: Duration) -> Duration {
    (budget * MAX_STRETCH).min(budget + MAX_MORE)
}

fn stretched(budget: Duration, all: Duration, ours: Duration, took: Duration, cores: usize) -> Duration {
    let whole = took.as_secs_f64() * cores as f64;
    if whole <= 0.0 {
        return budget;
    }
    let others = (all.saturating_sub(ours).as_secs_f64() / whole).clamp(0.0, 1.0);
    budget.mul_f64((1.0 / (1.0 - others).max(f64::EPSILON)).min(f64::from(MAX_STRETCH)))
}

fn ticks(count: u64) -> Duration {
    Duration::from_secs_f64(count as f64 / clock_ticks_per_second().max(1) as f64)
}

/// All but idle and waiting for a disk, from the first line of `/proc/stat`.
fn busy(stat: &str) -> Duration {
    let fields = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
    let work = fields.take(8).enumerate().filter(|(at, _)| ![3, 4].contains(at));
    ticks(work.filter_map(|(_, field)| field.parse::<u64>().ok()).sum())
}

/// Of children that were waited for, from `/proc/self/stat`.
fn of_children(stat: &str) -> Duration {
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields = after_name.split_whitespace().skip(13).take(2);
    ticks(fields.filter_map(|field| field.parse::<u64>().ok()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_budget_grows_by_what_others_took_and_not_by_our_own_work() {
        let budget = |all: u64, ours: u64| {
            stretched(MINUTE, Duration::from_secs(all), Duration::from_secs(ours), MINUTE, 2).as_secs()
        };
        assert_eq!(budget(0, 0), 60);
        assert_eq!(budget(120, 120), 60);
        assert_eq!(budget(120, 60), 120);
        assert_eq!(budget(120, 0), 360);
    }

    #[test]
    fn the_kernels_counts_are_read() {
        let second = clock_ticks_per_second();
        let stat = format!("cpu  {second} 0 {second} 900 100 0 0 {second} 7 7\ncpu0 1 1\n");
        assert_eq!(busy(&stat), Duration::from_secs(3));
        let own = format!("1 (x) y) S 1 2 3 4 5 6 7 8 9 10 11 12 {second} {second} 20 0");
        assert_eq!(of_children(&own), Duration::from_secs(2));
        let began = Cpu::now();
        assert!(began.all > Duration::ZERO);
    }
}
