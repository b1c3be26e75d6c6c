//! Lengths of time, moments, sizes and widths, as people read them.

use chrono::{DateTime, Local, TimeZone};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A length of time in its two largest units: `850ms`, `12s`, `3m 05s`, `2h 10m`, `4d 3h`.
pub(crate) fn duration(ms: u64) -> String {
    match ms / 1000 {
        0 => format!("{ms}ms"),
        s @ 1..10 => format!("{s}.{}s", ms % 1000 / 100),
        s @ 10..60 => format!("{s}s"),
        s @ 60..3600 => format!("{}m {:02}s", s / 60, s % 60),
        s @ 3600..86400 => format!("{}h {:02}m", s / 3600, s % 3600 / 60),
        s => format!("{}d {}h", s / 86400, s % 86400 / 3600),
    }
}

/// A length of time in its largest unit: `12s`, `3m`, `2h`, `4d`.
pub(crate) fn age(ms: u64) -> String {
    match ms / 1000 {
        s @ 0..60 => format!("{s}s"),
        s @ 60..3600 => format!("{}m", s / 60),
        s @ 3600..86400 => format!("{}h", s / 3600),
        s => format!("{}d", s / 86400),
    }
}

/// A size: `512 B`, `1.5 KiB`, `34 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 || unit == "GiB" {
            let whole = unit == "B" || value >= 10.0;
            return if whole { format!("{value:.0} {unit}") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    format!("{bytes} B")
}

/// A moment, in the reader's time zone.
fn local(ms: u64) -> Option<DateTime<Local>> {
    Local.timestamp_millis_opt(i64::try_from(ms).ok()?).single()
}

/// Day and time, to the second.
pub(crate) fn moment(ms: u64) -> String {
    local(ms).map_or_else(|| ms.to_string(), |at| at.format("%Y-%m-%d %H:%M:%S").to_string())
}

/// Day and time with milliseconds and offset, as logs have it.
pub(crate) fn timestamp(ms: u64) -> String {
    local(ms).map_or_else(|| ms.to_string(), |at| at.format("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string())
}

/// How many columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// A text in one line without control characters, in at most this many columns.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if width(&line) <= most {
        return line;
    }
    let mut short = String::new();
    let mut used = 0;
    for c in line.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide + 1 > most {
            break;
        }
        used += wide;
        short.push(c);
    }
    if most > 0 {
        short.push('…');
    }
    short
}

/// A text as lines that fit, broken between words; all but the first are indented.
pub(crate) fn wrap(text: &str, columns: usize, indent: usize) -> String {
    let mut lines = String::new();
    let mut used = 0;
    for word in text.split(' ') {
        let long = width(word);
        if used > 0 && used + 1 + long > columns {
            lines.push('\n');
            lines.push_str(&" ".repeat(indent));
            used = indent;
        } else if used > 0 {
            lines.push(' ');
            used += 1;
        }
        lines.push_str(word);
        used += long;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_read_well() {
        let times = [850, 1_250, 12_000, 185_000, 7_800_000, 356_400_000].map(duration);
        assert_eq!(times, ["850ms", "1.2s", "12s", "3m 05s", "2h 10m", "4d 3h"]);
        assert_eq!(
            [0, 512, 1536, 35 << 20, 3 << 40].map(bytes),
            ["0 B", "512 B", "1.5 KiB", "35 MiB", "3072 GiB"]
        );
    }

    #[test]
    fn lines_break_between_words_and_a_long_word_stays_whole() {
        assert_eq!(
            wrap("ok   disk  one two three", 16, 11),
            "ok   disk  one\n           two\n           three"
        );
        assert_eq!(wrap("a /very/long/path b", 10, 2), "a\n  /very/long/path\n  b");
        assert_eq!(wrap("short", 80, 4), "short");
    }

    #[test]
    fn a_cut_counts_columns_and_not_characters() {
        assert_eq!(cut("日本語の名前", 7), "日本語…");
        assert_eq!(cut("a\tb\u{1b}[2J", 20), "a b [2J");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 0), "");
    }
}
