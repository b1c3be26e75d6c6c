//! What is read from recorded runs of real tools, beside what is true of them. Set `a` was there while the readers were
//! written; the sets after it were recorded when the readers were frozen.

use outlast_protocol::JobOutcome;
use outlast_protocol::request::Stream;
use outlast_stream::outcome::{self, LocatedText, Run};
use outlast_stream::{Config, Size};
use outlast_testkit::outcomes::{RecordedRun, recorded_runs, sets};

fn read(run: &RecordedRun) -> Option<JobOutcome> {
    let size = run.size.map_or_else(Size::default, |(cols, rows)| Size { cols, rows });
    let config = Config { size, terminal: run.size.is_some(), ..Config::default() };
    let (out, err) = (LocatedText::fold(&run.log, config), LocatedText::fold(&run.stderr, config));
    let mut lines = out.lines(Stream::Output);
    lines.extend(err.lines(Stream::Stderr));
    outcome::read(&Run { command: &run.command, lines: &lines, whole: true, succeeded: run.exit_code == 0 })
}

/// What is wrong in what was read.
fn wrong(run: &RecordedRun, outcome: &JobOutcome) -> Vec<String> {
    let mut wrong = Vec::new();
    if !outcome.tools.iter().any(|tool| tool.tool.name() == run.tool) {
        wrong.push(format!("{} is not among its tools", run.tool));
    }
    for tool in &outcome.tools {
        for (what, count) in &tool.counts {
            // Of a run with several tools, only one has something to count.
            let own = run.counts.get(what.name()).filter(|_| tool.tool.name() == run.tool);
            let truth = own.copied().unwrap_or(0);
            if *count != truth {
                wrong.push(format!("{what}: {count}, in truth {truth}"));
            }
        }
        for one in &tool.findings {
            let log = if one.stream == Stream::Output { &run.log } else { &run.stderr };
            let at = usize::try_from(one.offset).unwrap_or(usize::MAX);
            if at > 0 && log.get(at - 1) != Some(&b'\n') {
                wrong.push(format!("{one}: no line begins at {at}"));
            }
        }
    }
    let says_failed = outcome
        .tools
        .iter()
        .any(|tool| tool.failed || tool.counts.iter().any(|(what, count)| what.is_failure() && *count > 0));
    if run.exit_code != 0 && !outcome.tools.is_empty() && !says_failed {
        wrong.push("it failed, and nothing says so".into());
    }
    wrong
}

/// Whether the first real error is among the lines.
fn has_first_error(run: &RecordedRun, lines: &[String]) -> bool {
    let Some(first) = run.first_error.as_deref() else { return true };
    let ends = |rest: &str| {
        !first.ends_with(|c: char| c.is_ascii_digit()) || !rest.starts_with(|c: char| c.is_ascii_digit())
    };
    lines.iter().any(|line| line.split_once(first).is_some_and(|(_, rest)| ends(rest)))
}

#[test]
fn counts_are_exact_and_the_first_error_is_named() {
    for set in sets() {
        let runs = recorded_runs(&set);
        let (mut spoke, mut failing, mut named) = (0, 0, 0);
        let mut complaints = Vec::new();
        let mut silent = Vec::new();
        for run in &runs {
            let outcome = read(run).filter(|outcome| !outcome.tools.is_empty());
            let lines = outcome.as_ref().map(JobOutcome::lines).unwrap_or_default();
            if let Some(outcome) = &outcome {
                spoke += 1;
                complaints.extend(
                    wrong(run, outcome).iter().map(|wrong| format!("{}: {wrong}: {lines:#?}", run.name)),
                );
            } else {
                silent.push(run.name.clone());
            }
            if run.first_error.is_some() {
                failing += 1;
                if has_first_error(run, &lines) {
                    named += 1;
                } else {
                    silent.push(format!("{}: no {:?} in {lines:#?}", run.name, run.first_error));
                }
            }
        }
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
        assert!(
            100 * spoke >= 80 * runs.len(),
            "{set}: speaks in {spoke} of {}: {}",
            runs.len(),
            silent.join("\n")
        );
        assert!(100 * named >= 95 * failing, "{set}: names {named} of {failing}: {}", silent.join("\n"));
        if set == "a" {
            assert!(silent.is_empty(), "{}", silent.join("\n"));
        }
    }
}

#[test]
fn a_finding_has_its_place_in_the_log() {
    let runs = recorded_runs("a");
    let run = runs.iter().find(|run| run.name == "a/cargo-build-error").unwrap();
    let outcome = read(run).unwrap();
    let at = usize::try_from(outcome.tools[0].findings[1].offset).unwrap();
    let line = run.log[at..].split(|byte| *byte == b'\n').next().unwrap();
    assert!(String::from_utf8_lossy(line).contains("cannot find function `missing`"), "{line:?}");
}
