//! go build, go vet and go test.

use outlast_protocol::{Count, KnownTool, ToolOutcome};

use super::parse::place;
use super::{Reading, Text, finding};

pub(super) fn read(text: &Text<'_>) -> Option<ToolOutcome> {
    let mut reading = Reading::default();
    let (mut errors, mut exact) = (0, text.whole);
    let (mut failed, mut passed, mut skipped) = (0, 0, 0);
    let (mut packages, mut verbose, mut building) = (0, false, false);
    let mut missed = Vec::new();
    for (i, line) in text.numbered() {
        let said = line.text;
        if said.starts_with("# ") && !said.contains("  ") {
            building = true;
        } else if said.starts_with("=== RUN ") {
            verbose = true;
        } else if let Some(rest) = said.strip_prefix("--- FAIL: ") {
            failed += 1;
            let name = rest.split(' ').next();
            reading.errors.push(reason(text, i, name));
        } else if said.starts_with("--- PASS: ") {
            passed += 1;
        } else if said.starts_with("--- SKIP: ") {
            skipped += 1;
        } else if is_package(said) {
            packages += 1;
            building = false;
            if said.starts_with("FAIL") && said.ends_with(']') {
                missed.push(finding(line, None, None, said));
            }
        } else if (said.starts_with("panic: ") || said.starts_with("fatal error: ")) && text.names(&["go"]) {
            let at = text
                .below(i)
                .filter_map(|i| text.at(i).strip_prefix('\t'))
                .filter_map(place)
                .map(|(at, _)| at);
            let own = at.into_iter().find(|at| !at.file.contains("/go/src/") && !at.file.contains("/go-1."));
            if reading.errors.is_empty() || failed == 0 {
                reading.errors.push(finding(line, own, None, said));
            } else if let Some(last) = reading.errors.last_mut()
                && last.file.is_none()
            {
                let one = finding(line, own, None, said);
                (last.file, last.line, last.message) = (one.file, one.line, one.message);
            }
        } else if said == "too many errors" || said.ends_with(": too many errors") {
            exact = false;
        } else if (building || text.names(&["go"]))
            && let Some((at, message)) = compile_error(said)
        {
            errors += 1;
            reading.errors.push(finding(line, Some(at), None, message));
        } else if said.starts_with("go: ")
            && text.names(&["go"])
            && !said.starts_with("go: downloading ")
            && !said.starts_with("go: finding ")
        {
            missed.push(finding(line, None, None, &said[4..]));
        }
    }
    if reading.errors.is_empty() {
        reading.errors = missed;
        exact &= reading.errors.is_empty();
    }
    let tested = packages > 0;
    if !(tested || building || text.names(&["go"])) {
        return None;
    }
    if exact {
        if errors > 0 {
            reading.count(Count::Errors, errors);
        }
        if tested && (failed > 0 || errors == 0) {
            reading.count(Count::Failed, failed);
        }
        if verbose {
            reading.count(Count::Passed, passed);
            reading.count(Count::Skipped, skipped);
        }
    }
    reading.of(KnownTool::Go)
}

/// `ok  <TAB>example.com/a<TAB>0.01s`, or the same with FAIL, or `?   <TAB>…<TAB>[no test files]`.
fn is_package(line: &str) -> bool {
    ["ok  \t", "FAIL\t", "?   \t", "ok      ", "FAIL    ", "?       "]
        .iter()
        .any(|begin| line.starts_with(begin))
}

/// `./main.go:5:2: undefined: missing`.
fn compile_error(line: &str) -> Option<(super::parse::Place<'_>, &str)> {
    let line = line.strip_prefix("vet: ").unwrap_or(line);
    let (at, rest) = place(line)?;
    let message = rest.strip_prefix(": ")?;
    (at.file.ends_with(".go") && !line.starts_with([' ', '\t'])).then_some((at, message))
}

/// What a failed test says: its own first line, or that of a subtest of it.
fn reason(text: &Text<'_>, begin: usize, name: Option<&str>) -> outlast_protocol::Finding {
    let said = |i: usize| {
        let line = text.at(i);
        let inside = line.starts_with("    ").then(|| line.trim_start())?;
        let (at, rest) = place(inside)?;
        let message = rest.strip_prefix(": ")?;
        at.file.ends_with(".go").then_some((at, message))
    };
    let is_inside = |i: &usize| text.at(*i).starts_with("    ") || text.at(*i).is_empty();
    let below = text.below(begin).take_while(is_inside).find_map(said);
    // With -v, a test speaks before its verdict.
    let above = || {
        let run = name.map(|name| format!("=== RUN   {name}"))?;
        let from =
            (begin.saturating_sub(super::MAX_REPORT_LINES)..begin).rev().find(|i| text.at(*i) == run)?;
        (from..begin).find_map(said)
    };
    let line = &text.lines[begin];
    match below.or_else(above) {
        // What testify and others print stands below an empty first line.
        Some((at, "")) => finding(line, Some(at), name, error_below(text, begin).unwrap_or("failed")),
        Some((at, message)) => finding(line, Some(at), name, message),
        None => finding(line, None, name, "failed"),
    }
}

/// `Error:      Not equal:`, in a block of testify.
fn error_below<'a>(text: &Text<'a>, begin: usize) -> Option<&'a str> {
    let below = text.below(begin).map(|i| text.at(i).trim());
    below
        .take_while(|line| !line.starts_with("--- "))
        .find_map(|line| line.strip_prefix("Error:"))
        .map(str::trim)
}
