//! Start times of processes on Linux, which are clock ticks since boot, as times of the day and back.

use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, clock_gettime};

fn since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec.cast_unsigned(), now.tv_nsec.try_into().unwrap_or(0))
}

fn since_1970() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}

/// When a process with this start time was started, since 1970.
#[must_use]
pub fn wall_time_of(start_time: u64) -> Duration {
    let a_second = rustix::param::clock_ticks_per_second().max(1);
    let moment = Duration::from_millis(start_time.saturating_mul(1000) / a_second);
    since_1970().saturating_sub(since_boot().saturating_sub(moment))
}

/// The start time of a process that is started at a moment, since 1970.
#[must_use]
pub fn start_time_at(moment: Duration) -> u64 {
    let ago = since_1970().saturating_sub(moment);
    let ticks =
        since_boot().saturating_sub(ago).as_millis() * u128::from(rustix::param::clock_ticks_per_second());
    u64::try_from(ticks / 1000).unwrap_or(u64::MAX)
}
