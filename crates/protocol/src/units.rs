//! Lengths of time, sizes and processors, as people write them: on the command line, in settings, in tool calls.

use std::time::Duration;

use fundu::{CustomDurationParser, CustomTimeUnit, TimeUnit};
use parse_size::Config;

use crate::failure::Failure;

const TIME_UNITS: [CustomTimeUnit<'static>; 5] = [
    CustomTimeUnit::with_default(TimeUnit::MilliSecond, &["ms"]),
    CustomTimeUnit::with_default(TimeUnit::Second, &["s", "sec"]),
    CustomTimeUnit::with_default(TimeUnit::Minute, &["m", "min"]),
    CustomTimeUnit::with_default(TimeUnit::Hour, &["h"]),
    CustomTimeUnit::with_default(TimeUnit::Day, &["d"]),
];

/// Whole milliseconds, as the formats have them.
#[must_use]
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Reads durations such as `7d`, `12h`, `30m`, `45s`, `200ms` or plain seconds.
///
/// # Errors
/// A usage failure that shows the forms.
pub fn parse_duration(text: &str) -> Result<Duration, Failure> {
    let parser = CustomDurationParser::builder()
        .time_units(&TIME_UNITS)
        .allow_time_unit_delimiter()
        .disable_exponent()
        .disable_infinity()
        .build();
    let parsed = parser.parse(text.trim()).ok().and_then(|duration| Duration::try_from(duration).ok());
    parsed.ok_or_else(|| {
        Failure::usage(format!("{text:?} is not a duration"))
            .hint("write for example 200ms, 1.5s, 30s, 5m, 2h, 7d, or plain seconds")
    })
}

/// Writes milliseconds so that [`parse_duration`] reads the same: `30s`, `1.5s`, `200ms`.
#[must_use]
pub fn print_millis(ms: u64) -> String {
    if ms < 1000 { format!("{ms}ms") } else { format!("{}s", ms as f64 / 1000.0) }
}

/// Reads sizes such as `64KiB`, `10M`, `1.5GiB` or plain bytes; units are powers of 1024.
///
/// # Errors
/// A usage failure that shows the forms.
pub fn parse_bytes(text: &str) -> Result<u64, Failure> {
    Config::new().with_binary().parse_size(text).map_err(|_| {
        Failure::usage(format!("{text:?} is not a size"))
            .hint("write for example 64KiB, 10MiB, 5GiB or plain bytes")
    })
}

/// A number of processors, as thousandths.
///
/// # Errors
/// A usage failure where no machine has that many.
pub fn parse_processors(count: f64) -> Result<u64, Failure> {
    if (0.01..=4096.0).contains(&count) {
        return Ok((count * 1000.0).round() as u64);
    }
    Err(Failure::usage(format!("{count} is not a number of processors")).hint("write for example 0.5 or 2"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_that_0_1_0_accepted_mean_the_same() {
        let ms = [
            ("0", 0),
            ("45", 45_000),
            ("1.5", 1500),
            (".5", 500),
            ("2.", 2000),
            ("200ms", 200),
            ("0.5ms", 0),
            ("45s", 45_000),
            ("45 s", 45_000),
            ("45s ", 45_000),
            ("3sec", 3000),
            ("1.5m", 90_000),
            ("2min", 120_000),
            ("12h", 43_200_000),
            ("0.1234h", 444_240),
            ("7d", 604_800_000),
            (".33333333333333333333s", 333),
        ];
        for (text, expected) in ms {
            assert_eq!(parse_duration(text).unwrap().as_millis(), expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_not_a_duration_is_refused() {
        for text in
            ["", " ", ".", "s", "-1s", "+", "1e3", "1x", "1.2.3s", "inf", "infinity", "1 2 x", "5M", "٣s"]
        {
            let failure = parse_duration(text).unwrap_err();
            assert!(failure.message.contains("is not a duration"), "{text:?}: {}", failure.message);
        }
    }

    #[test]
    fn sizes_that_0_1_0_accepted_mean_the_same() {
        let sizes = [
            ("0", 0),
            ("12", 12),
            ("12B", 12),
            ("12b", 12),
            ("1K", 1 << 10),
            ("1k", 1 << 10),
            ("1kB", 1 << 10),
            ("64KiB", 64 << 10),
            ("10M", 10 << 20),
            ("10Mi", 10 << 20),
            ("10 mb", 10 << 20),
            ("5GiB", 5 << 30),
            ("1T", 1 << 40),
        ];
        for (text, expected) in sizes {
            assert_eq!(parse_bytes(text).unwrap(), expected, "{text:?}");
        }
        for text in ["", "K", "-1", "1x", "1KiBit", "99999999999999999999", "99999999999G"] {
            let failure = parse_bytes(text).unwrap_err();
            assert!(failure.message.contains("is not a size"), "{text:?}: {}", failure.message);
        }
    }

    #[test]
    fn processors_are_counted_in_thousandths() {
        assert_eq!(parse_processors(1.5).unwrap(), 1500);
        assert!(parse_processors(0.0).is_err());
        assert!(parse_processors(f64::NAN).is_err());
    }
}
