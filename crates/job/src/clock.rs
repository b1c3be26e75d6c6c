//! The two clocks: one for people, one for measuring.

use std::time::{Instant, SystemTime};

/// Milliseconds since 1970, for what people and other machines read.
#[must_use]
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    millis(since)
}

pub use outlast_protocol::units::millis;

/// A deadline that may be never.
#[must_use]
pub fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// How long it is until a moment, as `poll` wants it; nothing if it has passed.
pub(crate) fn time_until(at: Instant) -> rustix::event::Timespec {
    let left = at.saturating_duration_since(Instant::now());
    rustix::event::Timespec {
        tv_sec: left.as_secs().min(1 << 30).cast_signed(),
        tv_nsec: left.subsec_nanos().into(),
    }
}
