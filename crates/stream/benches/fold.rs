//! Measures how fast the fold is, by kind of output and number of patterns. Prints MB/s and judges nothing.
//! `cargo bench -p outlast-stream -- TUI` measures only what has that in its name.
#![expect(clippy::print_stdout, reason = "printing figures is what this is for")]

use outlast_stream::{Config, FoldOutput, PatternSet, Pipeline};

/// The size of a read from a PTY.
const READ: usize = 4095;
const BYTES: usize = 16 << 20;

fn fill(mut line: impl FnMut(usize) -> String) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BYTES + 1024);
    let mut count = 0;
    while bytes.len() < BYTES {
        bytes.extend_from_slice(line(count).as_bytes());
        count += 1;
    }
    bytes
}

fn corpora() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        (
            "plain log",
            fill(|n| {
                format!(
                    "2026-11-15T10:{:02}:{:02} INFO server: request {n} handled in {} ms from 10.0.0.{}, ok\r\n",
                    n / 60 % 60,
                    n % 60,
                    n % 977,
                    n % 256
                )
            }),
        ),
        (
            "colour log",
            fill(|n| {
                format!(
                    "\x1b[1m\x1b[32m   Compiling\x1b[0m package-{n} v{}.{}.0 (\x1b[34m/src/{n}\x1b[0m)\r\n",
                    n % 9,
                    n % 31
                )
            }),
        ),
        ("unicode log", fill(|n| format!("{n}: 漢字かな交じり文 – “quotes” – naïve café 🙂 line\r\n"))),
        ("CR progress", fill(|n| format!("\r{:>3}% [{:<40}] {n} KB/s", n % 101, "#".repeat(n % 41)))),
        (
            "block redraw",
            fill(|n| format!("\x1b[3A\x1b[2Klayer 1: {n}\r\n\x1b[2Klayer 2: {n}\r\n\x1b[2Klayer 3: {n}\r\n")),
        ),
        ("TUI", {
            let mut bytes = b"\x1b[?1049h".to_vec();
            bytes.append(&mut fill(|n| {
                format!("\x1b[{};{}H\x1b[3{}mcell {n}\x1b[K", n % 40 + 1, n % 90 + 1, n % 8)
            }));
            bytes
        }),
        ("one long line", fill(|n| format!("{{\"id\":{n},\"name\":\"value\"}},"))),
    ]
}

fn patterns(count: usize) -> PatternSet {
    let all: Vec<String> =
        ["panicked at", r"error(\[E\d+\])?:", r"^\$ $", r"(?i)password:", r"listening on .*:(\d+)"]
            .iter()
            .map(|&pattern| pattern.to_owned())
            .chain((5..20).map(|n| format!(r"\bword{n}\b.*done")))
            .take(count)
            .collect();
    PatternSet::compile(&all).unwrap_or_else(|error| panic!("{error}"))
}

fn run(bytes: &[u8], count: usize) -> f64 {
    let mut pipeline = Pipeline::new(Config::default());
    if count > 0 {
        pipeline.watch(1, patterns(count));
    }
    let mut out = FoldOutput::default();
    let start = cpu_seconds();
    for chunk in bytes.chunks(READ) {
        pipeline.feed(chunk, &mut out);
        out.clear();
    }
    let _ = pipeline.screen();
    cpu_seconds() - start
}

/// Processor time that this thread has used: other work on the machine is not counted.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    println!("{:<16}{:>12}{:>12}{:>12}   (MB/s with 0, 1 and 20 patterns)", "output", 0, 1, 20);
    for (name, bytes) in corpora() {
        if !wanted.is_empty() && !wanted.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        let megabytes = bytes.len() as f64 / 1e6;
        let speeds: Vec<String> = [0, 1, 20]
            .iter()
            .map(|&count| {
                let best = (0..3).map(|_| run(&bytes, count)).fold(f64::INFINITY, f64::min);
                format!("{:>12.0}", megabytes / best)
            })
            .collect();
        println!("{name:<16}{}", speeds.concat());
    }
}
