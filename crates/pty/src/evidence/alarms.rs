//! When a sleeping thread wakes by itself: the timeouts of the system calls it can sleep in.
//!
//! A thread that has a timeout continues without input. So a job with such a thread is never certain to wait,
//! and its prompt only counts once the screen has been unchanged for as long as the timer runs.

use std::time::Duration;

use rustix::process::Pid;
use rustix::time::{ClockId, clock_gettime};

use super::sets::read_memory;

/// When a sleeping thread wakes by itself, if it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alarm {
    /// It has no timeout.
    Never,
    /// The system call could not be read: it may have one.
    Unknown,
    /// A thread of the language's runtime: it wakes regularly, without visible effect.
    Housekeeping,
    /// This long after it fell asleep.
    After(Duration),
    /// This long from now: it sleeps until a point in time, and when it fell asleep is unknown.
    In(Duration),
}

/// How wide the numbers of a time are in the memory of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// 64 bits.
    Native,
    /// 32 bits, in calls of 32-bit programs that were made before 2038 was in sight.
    #[cfg(target_arch = "x86_64")]
    Narrow,
}

/// A timeout this long counts as none.
const EFFECTIVELY_NEVER: Duration = Duration::from_secs(3600);
/// Anything that moves on a screen moves at least this often.
pub(super) const MAX_REDRAW_PERIOD: Duration = Duration::from_secs(1);

impl Alarm {
    /// Whether it will certainly fire, and soon.
    pub(super) fn is_near(self) -> bool {
        match self {
            Self::Never | Self::Unknown | Self::Housekeeping => false,
            Self::After(time) | Self::In(time) => time < EFFECTIVELY_NEVER,
        }
    }

    /// Whether it could fire often enough to animate something on the screen.
    pub(super) fn may_move_the_screen(self) -> bool {
        match self {
            Self::Never | Self::Housekeeping => false,
            Self::Unknown => true,
            Self::After(time) | Self::In(time) => time <= MAX_REDRAW_PERIOD,
        }
    }

    /// Combines two alarms of one thread: the slower of two that could animate the screen, otherwise the
    /// earlier one.
    pub(super) fn with(self, other: Self) -> Self {
        let time = |alarm| match alarm {
            Self::Never | Self::Unknown | Self::Housekeeping => None,
            Self::After(time) | Self::In(time) => Some(time),
        };
        let (Some(mine), Some(others)) = (time(self), time(other)) else {
            return if self == Self::Never || other == Self::Unknown { other } else { self };
        };
        let slower_wins = self.may_move_the_screen() && other.may_move_the_screen();
        if slower_wins == (mine >= others) { self } else { other }
    }

    /// `poll` and `epoll_wait` count milliseconds; a negative count means no timeout.
    pub(super) fn milliseconds(count: i32) -> Self {
        u64::try_from(count).map_or(Self::Never, |count| Self::After(Duration::from_millis(count)))
    }

    /// A timeout behind a pointer; a null pointer means none. `None` if it cannot be read.
    pub(super) fn relative(pid: Pid, pointer: u64, width: Width) -> Option<Self> {
        if pointer == 0 { Some(Self::Never) } else { Some(Self::After(timespec(pid, pointer, width)?)) }
    }

    /// The same in seconds and microseconds, as `select` has it.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn relative_micros(pid: Pid, pointer: u64, width: Width) -> Option<Self> {
        if pointer == 0 {
            return Some(Self::Never);
        }
        let (seconds, micros) = two_words(pid, pointer, width)?;
        Some(Self::After(Duration::from_secs(seconds).saturating_add(Duration::from_micros(micros))))
    }

    /// A point in time behind a pointer, by this clock.
    fn until(pid: Pid, pointer: u64, clock: ClockId, width: Width) -> Option<Self> {
        if pointer == 0 {
            return Some(Self::Never);
        }
        let now = clock_gettime(clock);
        let now = Duration::new(u64::try_from(now.tv_sec).ok()?, u32::try_from(now.tv_nsec).ok()?);
        Some(Self::In(timespec(pid, pointer, width)?.saturating_sub(now)))
    }

    /// `futex(word, operation, value, timeout, …)`.
    pub(super) fn of_futex(pid: Pid, args: &[u64; 6], width: Width) -> Option<Self> {
        let operation = args[1] as i32;
        let real_time = operation & libc::FUTEX_CLOCK_REALTIME != 0;
        let clock = if real_time { ClockId::Realtime } else { ClockId::Monotonic };
        match operation & libc::FUTEX_CMD_MASK {
            libc::FUTEX_WAIT => Self::relative(pid, args[3], width),
            libc::FUTEX_LOCK_PI => Self::until(pid, args[3], ClockId::Realtime, width),
            _ => Self::until(pid, args[3], clock, width),
        }
    }

    /// `futex_waitv(words, count, flags, timeout, clock)`.
    pub(super) fn of_futex_waitv(pid: Pid, args: &[u64; 6]) -> Option<Self> {
        let real_time = args[4] as i32 == libc::CLOCK_REALTIME;
        let clock = if real_time { ClockId::Realtime } else { ClockId::Monotonic };
        Self::until(pid, args[3], clock, Width::Native)
    }

    /// `clock_nanosleep(clock, flags, time, …)`.
    pub(super) fn of_clock_nanosleep(pid: Pid, args: &[u64; 6], width: Width) -> Self {
        let real_time = args[0] as i32 == libc::CLOCK_REALTIME;
        let clock = if real_time { ClockId::Realtime } else { ClockId::Monotonic };
        let absolute = args[1] as i32 & libc::TIMER_ABSTIME != 0;
        let alarm = if absolute {
            Self::until(pid, args[2], clock, width)
        } else {
            Self::relative(pid, args[2], width)
        };
        alarm.unwrap_or(Self::Unknown)
    }

    /// From the `fdinfo` of a timerfd: `it_value: (seconds, nanoseconds)`, and `it_interval`, which is zero
    /// if it fires only once.
    pub(super) fn of_timerfd(value: Option<&[u8]>, interval: Option<&[u8]>) -> Self {
        match (pair(value), pair(interval)) {
            (Some(Duration::ZERO), _) => Self::Never,
            (Some(left), Some(Duration::ZERO)) => Self::In(left),
            (Some(_), Some(interval)) => Self::After(interval),
            _ => Self::Unknown,
        }
    }
}

fn pair(field: Option<&[u8]>) -> Option<Duration> {
    let inner = std::str::from_utf8(field?).ok()?.strip_prefix('(')?.strip_suffix(')')?;
    let (seconds, nanos) = inner.split_once(',')?;
    Some(Duration::new(seconds.trim().parse().ok()?, nanos.trim().parse().ok()?))
}

fn timespec(pid: Pid, pointer: u64, width: Width) -> Option<Duration> {
    let (seconds, nanos) = two_words(pid, pointer, width)?;
    Some(Duration::from_secs(seconds).saturating_add(Duration::from_nanos(nanos)))
}

/// The kernel refuses negative values, so no thread sleeps with them.
fn two_words(pid: Pid, pointer: u64, width: Width) -> Option<(u64, u64)> {
    match width {
        Width::Native => {
            let mut words = [0_u8; 16];
            read_memory(pid, pointer, &mut words)?;
            let (first, second) = words.split_at(8);
            Some((u64::from_ne_bytes(first.try_into().ok()?), u64::from_ne_bytes(second.try_into().ok()?)))
        }
        #[cfg(target_arch = "x86_64")]
        Width::Narrow => {
            let mut words = [0_u8; 8];
            read_memory(pid, pointer, &mut words)?;
            let (first, second) = words.split_at(4);
            let word = |bytes: &[u8]| Some(u64::from(u32::from_ne_bytes(bytes.try_into().ok()?)));
            Some((word(first)?, word(second)?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn futex_timeouts_are_relative_or_absolute_by_their_operation() {
        let me = rustix::process::getpid();
        let in_a_second = [1_u64, 0];
        let pointer = in_a_second.as_ptr() as u64;
        let futex = |operation: i32, pointer| {
            Alarm::of_futex(me, &[0, u64::from(operation.cast_unsigned()), 0, pointer, 0, 0], Width::Native)
        };
        let private = libc::FUTEX_PRIVATE_FLAG;
        assert_eq!(futex(libc::FUTEX_WAIT | private, 0), Some(Alarm::Never));
        assert_eq!(futex(libc::FUTEX_WAIT | private, pointer), Some(Alarm::After(MS(1000))));
        assert_eq!(futex(libc::FUTEX_WAIT_BITSET | private, pointer), Some(Alarm::In(Duration::ZERO)));
        assert_eq!(futex(libc::FUTEX_WAIT | private, 8), None, "an invalid pointer");
        let now = clock_gettime(ClockId::Monotonic);
        let later = [now.tv_sec.cast_unsigned() + 100, 0];
        let Some(Alarm::In(left)) = futex(libc::FUTEX_WAIT_BITSET, later.as_ptr() as u64) else {
            panic!("a time");
        };
        assert!((MS(98_000)..=MS(100_000)).contains(&left), "{left:?}");
    }

    #[test]
    fn a_timerfd_says_when_it_fires() {
        let of = |value: &str, interval: &str| {
            Alarm::of_timerfd(Some(value.as_bytes()), Some(interval.as_bytes()))
        };
        assert_eq!(of("(0, 0)", "(0, 0)"), Alarm::Never);
        assert_eq!(of("(0, 49406829)", "(1, 0)"), Alarm::After(MS(1000)));
        assert_eq!(of("(2, 500000000)", "(0, 0)"), Alarm::In(MS(2500)));
        assert_eq!(of("nonsense", "(0, 0)"), Alarm::Unknown);
        assert_eq!(Alarm::of_timerfd(None, None), Alarm::Unknown);
    }

    #[test]
    fn of_two_alarms_the_slower_one_that_animates_counts() {
        let (short, long, hours) = (Alarm::After(MS(80)), Alarm::In(MS(400)), Alarm::After(MS(7_200_000)));
        for (one, other, both) in [
            (short, long, long),
            (short, hours, short),
            (long, Alarm::Never, long),
            (short, Alarm::Unknown, Alarm::Unknown),
            (Alarm::Never, Alarm::Never, Alarm::Never),
        ] {
            assert_eq!((one.with(other), other.with(one)), (both, both), "{one:?} and {other:?}");
        }
        assert!(short.is_near() && !hours.is_near() && !Alarm::Never.is_near());
        assert!(!hours.may_move_the_screen() && Alarm::Unknown.may_move_the_screen());
    }
}
