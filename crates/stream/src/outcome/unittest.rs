//! Python's unittest.

use outlast_protocol::{Count, KnownTool, ToolOutcome};

use super::parse::digits;
use super::{Reading, Text, finding, traceback};

pub(super) fn read(text: &Text<'_>) -> Option<ToolOutcome> {
    let mut reading = Reading::default();
    let (mut ran, mut verdict, mut runs) = (None, None, 0);
    for (i, line) in text.numbered() {
        let said = line.text.trim_end();
        if let Some(count) =
            said.strip_prefix("Ran ").filter(|rest| rest.contains(" test") && rest.contains(" in "))
        {
            runs += 1;
            ran = digits(count).0;
            verdict = None;
        } else if ran.is_some()
            && (said == "OK"
                || said == "FAILED"
                || said.starts_with("OK (")
                || said.starts_with("FAILED (")
                || said.starts_with("NO TESTS RAN"))
        {
            verdict = Some(said);
        } else if let Some(name) = said.strip_prefix("FAIL: ").or_else(|| said.strip_prefix("ERROR: "))
            && text.at(i + 1).starts_with("-----") | text.at(i + 2).starts_with("-----")
        {
            let begin = (i..i + 8).find(|i| text.at(*i).starts_with("Traceback (most recent call last)"));
            let name = name.split(' ').next();
            if let Some((at, raised)) = begin.and_then(|begin| traceback::read(text, begin)) {
                reading.errors.push(finding(line, at, name, raised));
            } else {
                reading.errors.push(finding(line, None, name, said));
            }
        }
    }
    let (ran, verdict) = (ran?, verdict?);
    if runs > 1 {
        return reading.of(KnownTool::Unittest);
    }
    let mut bad = 0;
    reading.count(Count::Tests, ran);
    let inside = verdict.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or_default();
    for part in inside.split(", ").filter(|part| !part.is_empty()) {
        let (word, count) = part.split_once('=')?;
        let count = count.parse().ok()?;
        let what = match word {
            "failures" => Count::Failed,
            "errors" => Count::Errors,
            "skipped" => Count::Skipped,
            "expected failures" => Count::Xfailed,
            "unexpected successes" => Count::Xpassed,
            _ => return None,
        };
        bad += count;
        reading.count(what, count);
    }
    // A test may fail more than once, in subtests; so only where none failed is it known how many passed.
    if verdict.starts_with("OK") {
        reading.count(Count::Passed, ran.saturating_sub(bad));
    }
    if verdict.starts_with("FAILED")
        && reading.errors.is_empty()
        && !reading.counts.iter().any(|(what, _)| what.is_failure())
    {
        return None;
    }
    reading.of(KnownTool::Unittest)
}
