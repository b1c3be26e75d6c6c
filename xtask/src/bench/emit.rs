//! The programs that are run as jobs: `xtask emit KIND BYTES` prints that much and then waits for a line.

use std::io::{Read, Write};

/// The last thing a flood prints: both sides stop their clocks there.
pub(crate) const END: &str = "END-OF-FLOOD";

/// Kinds of output, and what each is called in a table.
pub(super) const KINDS: &[(&str, &str)] = &[
    ("log", "log lines"),
    ("lines", "log lines, a write each"),
    ("colour", "coloured log lines"),
    ("unicode", "wide and combining characters"),
    ("progress", "a bar redrawn with CR"),
    ("redraw", "three lines redrawn by cursor-up"),
    ("screen", "a full-screen program"),
];

const PIECE: usize = 64 << 10;

/// `xtask emit KIND BYTES`
///
/// # Errors
/// An unknown kind or number, or an output that is gone.
pub(crate) fn emit(kind: &str, bytes: &str) -> Result<(), String> {
    let total: usize = bytes.parse().map_err(|error| format!("{bytes}: {error}"))?;
    let lines: Vec<Vec<u8>> =
        (0..4096).map(|n| line(kind, n)).collect::<Option<_>>().ok_or("no such kind")?;
    let mut out = std::io::stdout().lock();
    let say = |error: std::io::Error| error.to_string();
    if kind == "screen" {
        // Past the buffer too: it must come before what is drawn.
        rustix_write(b"\x1b[?1049h")?;
    }
    let mut piece = Vec::with_capacity(PIECE + 1024);
    let (mut done, mut n) = (0, 0);
    while done < total {
        piece.clear();
        while piece.len() < PIECE && done + piece.len() < total {
            piece.extend_from_slice(&lines[n % lines.len()]);
            n += 1;
            if kind == "lines" {
                break;
            }
        }
        rustix_write(&piece)?;
        done += piece.len();
    }
    if kind == "screen" {
        rustix_write(b"\x1b[?1049l")?;
    }
    writeln!(out, "\n{END}").and_then(|()| out.flush()).map_err(say)?;
    // Until the measuring side has looked at everything.
    let _ = std::io::stdin().read(&mut [0]);
    Ok(())
}

/// `xtask mark-once MS`: is silent for so long, and then prints a line with the time at which it prints.
///
/// # Errors
/// No number, or an output that is gone.
pub(crate) fn mark_once(silence: &str) -> Result<(), String> {
    let silence = silence.parse().map_err(|error| format!("{silence}: {error}"))?;
    std::thread::sleep(std::time::Duration::from_millis(silence));
    rustix_write(format!("MARK {} .\n", super::monotonic_ns()).as_bytes())?;
    // A job is not done when it is ready.
    std::thread::sleep(std::time::Duration::from_millis(20));
    Ok(())
}

/// `xtask mark`: for each line it is sent, prints a line with the time at which it prints.
///
/// # Errors
/// An output that is gone.
pub(crate) fn mark() -> Result<(), String> {
    let mut line = String::new();
    while std::io::stdin().read_line(&mut line).is_ok_and(|n| n > 0) {
        line.clear();
        println!("MARK {} .", super::monotonic_ns());
    }
    Ok(())
}

/// Past the buffer of standard output, as programs that flood do.
fn rustix_write(mut bytes: &[u8]) -> Result<(), String> {
    while !bytes.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

fn line(kind: &str, n: usize) -> Option<Vec<u8>> {
    let text = match kind {
        "log" | "lines" => format!(
            "2026-11-15T10:{:02}:{:02} INFO server: request {n} handled in {} ms from 10.0.0.{}, ok\n",
            n / 60 % 60,
            n % 60,
            n % 977,
            n % 256
        ),
        "colour" => format!(
            "\x1b[1m\x1b[32m   Compiling\x1b[0m package-{n} v{}.{}.0 (\x1b[34m/src/{n}\x1b[0m)\n",
            n % 9,
            n % 31
        ),
        "unicode" => format!("{n}: 漢字かな交じり文 – “quotes” – naïve cafe\u{301} 🙂 line\n"),
        "progress" => format!("\r{:>3}% [{:<40}] {n} KB/s", n % 101, "#".repeat(n % 41)),
        "redraw" => {
            format!("\x1b[3A\x1b[2Klayer 1: {n}\n\x1b[2Klayer 2: {n}\n\x1b[2Klayer 3: {n}\n")
        }
        "screen" => format!("\x1b[{};{}H\x1b[3{}mcell {n}\x1b[K", n % 40 + 1, n % 90 + 1, n % 8),
        _ => return None,
    };
    Some(text.into_bytes())
}
