//! What a job's tools reported, read from the text of its output after it ended.
//!
//! One file a tool. A reader says only what it is sure of: a count that is summed up from lines is given only where all
//! lines are there, and where the tool prints a total as well, only if both agree. What is said of a run that failed is
//! never that all went well. Where no reader speaks, lines that came again and again are counted.
//!
//! The readers see lines of the transcript, so colours, progress bars and redrawn rows are out of the way.

mod cargo;
mod command;
mod compiler;
mod eslint;
mod git;
mod go;
mod jest;
mod located;
mod make;
mod mypy;
mod npm;
mod parse;
mod pip;
mod pytest;
mod repeated;
mod ruff;
mod traceback;
mod tsc;
mod unittest;
mod vitest;

use std::collections::BTreeMap;

use outlast_protocol::request::Stream;
use outlast_protocol::{Count, Finding, JobOutcome, KnownTool, ToolOutcome};

use self::command::Programs;

/// How many findings of a tool are kept.
const MAX_FINDINGS: usize = 5;
/// The most characters of a finding's message.
const MAX_MESSAGE_CHARS: usize = 240;
/// The most characters of a file's name or of a code.
const MAX_NAME_CHARS: usize = 160;

/// How many lines below its first one a report is looked for. It keeps the readers linear.
const MAX_REPORT_LINES: usize = 300;

/// A line of the transcript, and where it begins in the log.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Its text, without the line feed.
    pub text: &'a str,
    /// Its offset.
    pub at: u64,
    /// In which log.
    pub stream: Stream,
}

/// A run that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The command, as it was given to a shell.
    pub command: &'a str,
    /// What it printed: all of it, or its first and last lines.
    pub lines: &'a [Line<'a>],
    /// Whether `lines` is all of it.
    pub whole: bool,
    /// Whether it ended with exit code 0.
    pub succeeded: bool,
}

/// What is known of a run's result; none where nothing is certain.
#[must_use]
pub fn read(run: &Run<'_>) -> Option<JobOutcome> {
    let programs = Programs::of(run.command);
    if programs.only_show() {
        return None;
    }
    let all = programs.are_known();
    let whole = run.whole && !programs.filter();
    let text = Text { lines: run.lines, whole, succeeded: run.succeeded, programs };
    let mut tools: Vec<ToolOutcome> =
        READERS.iter().filter_map(|reader| reader(&text)).map(bounded).collect();
    // A tool that runs others says only that one of them failed.
    if tools.iter().any(|tool| has_failed(tool) && !runs_others(tool.tool)) {
        tools.retain(|tool| !runs_others(tool.tool));
    }
    if !run.succeeded && !tools.iter().any(has_failed) {
        tools.clear();
    }
    tools.sort_by_key(|tool| !has_failed(tool));
    let repeated = if tools.is_empty() { repeated::read(run.lines, run.whole) } else { Vec::new() };
    let known = !tools.is_empty() || !repeated.is_empty();
    known.then_some(JobOutcome { all: all && !tools.is_empty(), tools, repeated })
}

pub use located::LocatedText;
pub use repeated::fold_repeated;

type Reader = fn(&Text<'_>) -> Option<ToolOutcome>;

const READERS: &[Reader] = &[
    cargo::read,
    compiler::read,
    pytest::read,
    unittest::read,
    jest::read,
    vitest::read,
    go::read,
    tsc::read,
    eslint::read,
    ruff::read,
    mypy::read,
    make::read,
    npm::read,
    pip::read,
    git::read,
];

fn runs_others(tool: KnownTool) -> bool {
    matches!(tool, KnownTool::Make | KnownTool::Npm | KnownTool::Pnpm)
}

fn has_failed(tool: &ToolOutcome) -> bool {
    tool.failed || tool.counts.iter().any(|(what, count)| what.is_failure() && *count > 0)
}

/// What a reader looks at.
struct Text<'a> {
    lines: &'a [Line<'a>],
    /// Whether no line is missing.
    whole: bool,
    succeeded: bool,
    programs: Programs<'a>,
}

impl<'a> Text<'a> {
    /// Each line with its number.
    fn numbered(&self) -> impl DoubleEndedIterator<Item = (usize, &'a Line<'a>)> {
        self.lines.iter().enumerate()
    }

    /// The text of a line; empty past the end.
    fn at(&self, index: usize) -> &'a str {
        self.lines.get(index).map_or("", |line| line.text)
    }

    /// The numbers of the lines below one, as far as a report reaches.
    fn below(&self, index: usize) -> std::ops::Range<usize> {
        let end = self.lines.len().min(index + 1 + MAX_REPORT_LINES);
        (index + 1).min(end)..end
    }

    fn names(&self, programs: &[&str]) -> bool {
        self.programs.name(programs)
    }
}

/// What a reader found, while it reads.
#[derive(Default)]
struct Reading {
    counts: BTreeMap<Count, u64>,
    errors: Vec<Finding>,
    warnings: Vec<Finding>,
}

impl Reading {
    fn count(&mut self, what: Count, count: u64) {
        self.counts.insert(what, count);
    }

    fn add(&mut self, what: Count, count: u64) {
        let sum = self.counts.entry(what).or_default();
        *sum = sum.saturating_add(count);
    }

    /// The result, if anything is known.
    fn of(self, tool: KnownTool) -> Option<ToolOutcome> {
        let failed = !self.errors.is_empty();
        let findings = if failed { self.errors } else { self.warnings };
        let known = !self.counts.is_empty() || failed;
        known.then_some(ToolOutcome { tool, counts: self.counts, findings, failed })
    }
}

/// A finding that begins in a line.
fn finding(line: &Line<'_>, place: Option<parse::Place<'_>>, code: Option<&str>, message: &str) -> Finding {
    Finding {
        file: place.map(|place| place.file.to_owned()),
        line: place.map(|place| place.line),
        code: code.map(ToOwned::to_owned),
        message: message.trim().to_owned(),
        offset: line.at,
        stream: line.stream,
    }
}

/// Keeps the first findings, each in one short line.
fn bounded(mut tool: ToolOutcome) -> ToolOutcome {
    tool.findings.truncate(MAX_FINDINGS);
    for one in &mut tool.findings {
        one.message = parse::one_line(&one.message, MAX_MESSAGE_CHARS);
        for name in [&mut one.file, &mut one.code].into_iter().flatten() {
            *name = parse::one_line(name, MAX_NAME_CHARS);
        }
    }
    tool
}

#[cfg(test)]
mod tests;
