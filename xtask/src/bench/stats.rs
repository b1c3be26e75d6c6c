//! Medians, and how figures are written.

use std::time::Duration;

/// The middle one, and the spread of the middle half around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Middle {
    pub(super) median: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// Of at least one value.
pub(super) fn middle(values: &[f64]) -> Middle {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |part: f64| {
        let place = part * (sorted.len().saturating_sub(1)) as f64;
        sorted.get(place.round() as usize).copied().unwrap_or(f64::NAN)
    };
    Middle { median: at(0.5), low: at(0.25), high: at(0.75) }
}

/// Paired: each of ours by the one beside it in the same round.
pub(super) fn ratios(ours: &[f64], theirs: &[f64]) -> Middle {
    let pairs: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
    middle(&pairs)
}

pub(super) fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Three digits that mean something.
pub(super) fn figure(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 0.1 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

impl std::fmt::Display for Middle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}–{})", figure(self.median), figure(self.low), figure(self.high))
    }
}
