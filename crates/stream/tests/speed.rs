//! Nothing gets slower unnoticed: floods through the fold, beside a terminal engine alone on the same bytes, turn about.
//!
//! Builds for tests optimise this crate and the engine alike. Processor time, the least of some rounds. A bound is a third above what was measured when it was set.

use std::time::Duration;

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::term::{Config as EngineConfig, Term};
use alacritty_terminal::vte::ansi::Processor;
use outlast_stream::{Config, FoldOutput, PatternSet, Pipeline};

const BYTES: usize = 3 << 20;
const ROUNDS: usize = 5;
/// The size of a read from a terminal.
const READ: usize = 4095;

struct Screen;

impl Dimensions for Screen {
    fn total_lines(&self) -> usize {
        24
    }
    fn screen_lines(&self) -> usize {
        24
    }
    fn columns(&self) -> usize {
        80
    }
}

fn fill(begin: &str, mut piece: impl FnMut(usize) -> String) -> Vec<u8> {
    let mut bytes = begin.as_bytes().to_vec();
    for n in 0.. {
        bytes.extend_from_slice(piece(n).as_bytes());
        if bytes.len() > BYTES {
            break;
        }
    }
    bytes
}

/// Processor time of this thread, in seconds.
fn spent() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_else(|error| panic!("{error}")).as_secs_f64()
}

fn timed(work: impl FnOnce()) -> f64 {
    let began = spent();
    work();
    spent() - began
}

fn fold(bytes: &[u8]) {
    let mut pipeline = Pipeline::new(Config::default());
    let patterns = ["panicked at", r"error(\[E\d+\])?:", r"(?i)password:", r"listening on .*:(\d+)"];
    pipeline.watch(1, PatternSet::compile(&patterns).unwrap_or_else(|error| panic!("{error}")));
    let mut out = FoldOutput::default();
    for chunk in bytes.chunks(READ) {
        pipeline.feed(chunk, &mut out);
        out.clear();
    }
    let _ = pipeline.screen();
}

fn engine(bytes: &[u8]) {
    let config = EngineConfig { scrolling_history: 1000, ..EngineConfig::default() };
    let (mut term, mut parser): (_, Processor) = (Term::new(config, &Screen, VoidListener), Processor::new());
    for chunk in bytes.chunks(READ) {
        parser.advance(&mut term, chunk);
    }
}

/// How long the fold takes, by how long the engine does.
fn ratio(bytes: &[u8]) -> f64 {
    let (mut ours, mut engines) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        ours = ours.min(timed(|| fold(bytes)));
        engines = engines.min(timed(|| engine(bytes)));
    }
    ours / engines
}

#[test]
fn floods_cost_no_more_than_they_did() {
    let kinds: [(&str, f64, Vec<u8>); 5] = [
        (
            "log lines",
            0.3,
            fill("", |n| format!("2026-11-15 INFO server: request {n} handled in {} ms, ok\r\n", n % 977)),
        ),
        (
            "coloured lines",
            1.35,
            fill("", |n| {
                format!(
                    "\x1b[1m\x1b[32m   Compiling\x1b[0m package-{n} v{}.0 (\x1b[34m/src\x1b[0m)\r\n",
                    n % 9
                )
            }),
        ),
        (
            "a bar redrawn",
            0.66,
            fill("", |n| format!("\r{:>3}% [{:<40}] {n} KB/s", n % 101, "#".repeat(n % 41))),
        ),
        (
            "lines redrawn",
            3.8,
            fill("", |n| format!("\x1b[2A\x1b[2Klayer 1: {n}\r\n\x1b[2Klayer 2: {n}\r\n")),
        ),
        (
            "a full-screen program",
            1.45,
            fill("\x1b[?1049h", |n| {
                format!("\x1b[{};{}H\x1b[3{}mcell {n}\x1b[K", n % 24 + 1, n % 60 + 1, n % 8)
            }),
        ),
    ];
    let slower: Vec<String> = kinds
        .iter()
        .map(|(name, bound, bytes)| (name, bound, ratio(bytes)))
        .inspect(|(name, bound, ratio)| eprintln!("{name}: {ratio:.2} of the engine's time, at most {bound}"))
        .filter(|(_, bound, ratio)| ratio > bound)
        .map(|(name, bound, ratio)| {
            format!("{name} takes {ratio:.2} of the engine's time, and not at most {bound}")
        })
        .collect();
    assert!(slower.is_empty(), "{slower:?}");
}
