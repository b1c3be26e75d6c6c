//! What a tool says of a run in its own machine format: the judge of a recipe's counts, which we did not write.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

type Counts = Vec<(String, u64)>;

/// The counts that a tool reports of itself.
pub(super) fn counts(kind: &str, project: &Path, said: &Output) -> Result<Counts, String> {
    let out = String::from_utf8_lossy(&said.stdout).into_owned();
    let err = String::from_utf8_lossy(&said.stderr).into_owned();
    let report =
        || std::fs::read_to_string(project.join("report")).map_err(|error| format!("report: {error}"));
    let broken = |error: serde_json::Error| format!("{kind}: {error}: {out} {err}");
    Ok(match kind {
        "cargo-json" => cargo(&objects(&out)),
        "gcc-json" => gcc(&objects(&err)),
        "junit" => junit(&report()?),
        "jest-json" => jest(&serde_json::from_str(&report()?).map_err(broken)?),
        "go-json" => go(&objects(&out)),
        "eslint-json" => eslint(&serde_json::from_str(&out).map_err(broken)?),
        "ruff-json" => {
            let all: Value = serde_json::from_str(&out).map_err(broken)?;
            vec![("errors".into(), all.as_array().map_or(0, Vec::len) as u64)]
        }
        "mypy-json" => {
            let errors = objects(&out).iter().filter(|entry| entry["severity"] == "error").count();
            vec![("errors".into(), errors as u64)]
        }
        _ => return Err(format!("unknown judge {kind}")),
    })
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Diagnostics with a place, each once: cargo prints one that two targets share only once.
fn cargo(messages: &[Value]) -> Counts {
    let mut seen = std::collections::BTreeSet::new();
    let mut count = |level: &str| {
        let of_level = messages.iter().map(|message| &message["message"]).filter(|message| {
            message["level"] == level && message["spans"].as_array().is_some_and(|spans| !spans.is_empty())
        });
        of_level.filter(|message| seen.insert(message["rendered"].to_string())).count() as u64
    };
    vec![("errors".into(), count("error")), ("warnings".into(), count("warning"))]
}

fn gcc(files: &[Value]) -> Counts {
    let kinds = |kind: &str| {
        let all = files.iter().filter_map(Value::as_array).flatten();
        all.filter(|entry| entry["kind"].as_str().is_some_and(|is| is.ends_with(kind))).count() as u64
    };
    vec![("errors".into(), kinds("error")), ("warnings".into(), kinds("warning"))]
}

/// The attributes of the first suite; passed ones are the rest.
fn junit(xml: &str) -> Counts {
    let attribute = |name: &str| -> u64 {
        let begin = xml.find(&format!(" {name}=\"")).map(|at| at + name.len() + 3);
        let digits = begin.map(|at| xml[at..].chars().take_while(char::is_ascii_digit).collect::<String>());
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
    };
    let (errors, failed, skipped) = (attribute("errors"), attribute("failures"), attribute("skipped"));
    let passed = attribute("tests").saturating_sub(errors + failed + skipped);
    // A skipped test in this format may also be one that was expected to fail.
    let expected = xml.matches("type=\"pytest.xfail\"").count() as u64;
    vec![
        ("failed".into(), failed),
        ("errors".into(), errors),
        ("skipped".into(), skipped - expected),
        ("xfailed".into(), expected),
        ("passed".into(), passed),
    ]
}

/// Jest's own form, which vitest writes as well.
fn jest(report: &Value) -> Counts {
    let number = |name: &str| report[name].as_u64().unwrap_or(0);
    vec![
        ("failed".into(), number("numFailedTests")),
        ("passed".into(), number("numPassedTests")),
        ("skipped".into(), number("numPendingTests")),
        ("todo".into(), number("numTodoTests")),
    ]
}

/// Tests, without subtests.
fn go(events: &[Value]) -> Counts {
    let of = |action: &str| {
        let top = |event: &&Value| {
            event["Action"] == action && event["Test"].as_str().is_some_and(|name| !name.contains('/'))
        };
        events.iter().filter(top).count() as u64
    };
    vec![("failed".into(), of("fail"))]
}

fn eslint(files: &Value) -> Counts {
    let sum = |name: &str| {
        files.as_array().into_iter().flatten().map(|file| file[name].as_u64().unwrap_or(0)).sum::<u64>()
    };
    vec![("errors".into(), sum("errorCount")), ("warnings".into(), sum("warningCount"))]
}
