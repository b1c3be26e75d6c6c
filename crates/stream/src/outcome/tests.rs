//! Cases that recordings do not have.

use super::*;

fn read_all(command: &str, output: &str, succeeded: bool) -> Option<JobOutcome> {
    let mut at = 0;
    let mut lines = Vec::new();
    for text in output.split_inclusive('\n') {
        lines.push(Line { text: text.trim_end_matches('\n'), at, stream: Stream::Output });
        at += text.len() as u64;
    }
    read(&Run { command, lines: &lines, whole: true, succeeded })
}

#[test]
fn says_nothing_of_success_when_the_run_failed() {
    let passed = "===== 3 passed in 0.10s =====\n";
    assert_eq!(read_all("pytest --cov-fail-under=90", passed, false), None);
    let outcome = read_all("pytest", passed, true).unwrap();
    assert_eq!(outcome.lines(), ["pytest: 3 passed"]);
}

#[test]
fn shown_logs_are_not_results() {
    let old = "===== 3 failed in 0.10s =====\n";
    assert_eq!(read_all("cat old.log", old, true), None);
    assert_eq!(read_all("tail -5 old.log | grep failed", old, true), None);
}

#[test]
fn sums_are_not_given_where_lines_are_left_out() {
    let one =
        "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
    let whole = format!("running 3 tests\n{one}");
    assert!(read_all("cargo test", &whole, true).is_some());
    assert_eq!(read_all("cargo test 2>&1 | tail -5", one, true), None);
}

#[test]
fn repeated_lines_are_counted() {
    let mut output = String::from("start\n");
    for i in 0..400 {
        output.push_str(&format!("retry {i}: connection 0xdeadbeef{i} refused\n"));
    }
    let outcome = read_all("./sync", &output, false).unwrap();
    assert_eq!(outcome.lines(), ["> retry 0: connection 0xdeadbeef0 refused (400 lines like this) @6"]);
}

#[test]
fn only_lines_that_are_the_same_are_folded() {
    let (folded, left_out) = fold_repeated("a\nb\nb\nb\nb\nb\nc 1\nc 2\nc 3\nc 4\nc 5\n", "…\n");
    assert_eq!((folded.as_str(), left_out), ("a\nb\n…\nc 1\nc 2\nc 3\nc 4\nc 5\n", 4));
}

/// Beginnings that make a reader look closer.
const PIECES: &[&str] = &[
    "error[E0308]: x",
    "error: could not compile `x` due to 2 previous errors",
    " --> a.rs:3:4",
    "running 3 tests",
    "test result: FAILED. 1 passed; 2 failed; 0 ignored;",
    "---- a stdout ----",
    "failures:",
    "thread 'a' panicked at src/a.rs:1:2:",
    "thread 'a' panicked at 'é', é:1",
    "a.c:3:5: error: é [-Wx]",
    "ld: undefined reference to `",
    "3 errors generated.",
    "____ é ____",
    "E   é",
    "E  ",
    "==== 1 failed in 0.1s ====",
    "FAILED a.py::b - c",
    "Ran 3 tests in 0.1s",
    "FAILED (failures=1)",
    "ERROR: a",
    "-----",
    "Traceback (most recent call last):",
    "  File \"a.py\", line 3, in x",
    "Tests:  1 failed, 2 total",
    "Test Suites: 1 failed",
    "  ● é",
    "    > 3 |",
    "      at x (a.js:3:4)",
    " FAIL  a.js > b",
    " ❯ a.js:3:4",
    " Test Files  1 failed (1)",
    "      Tests  1 failed (1)",
    "--- FAIL: TestA (0.00s)",
    "    a_test.go:3: ",
    "FAIL\tx [build failed]",
    "# a",
    "panic: é",
    "go: é",
    "a.ts(1,2): error TS1: x",
    "a.ts:1:2 - error TS99999999999999999999: x",
    "✖ 3 problems (1 error, 2 warnings)",
    "  1:2  error  é  rule",
    "F401 [*] é",
    "Found 99999999999999999999 errors.",
    "a.py:1: error: x  [y]",
    "make[1]: *** [Makefile:3: é] Error 1",
    "npm error code é",
    "npm error é",
    "Packages: é +",
    "ELIFECYCLE é",
    "Successfully installed a b",
    "× é",
    "╰─> [3 lines of output]",
    "[end of output]",
    "CONFLICT (é",
    " ! [rejected]",
    " 2 files changed, 18446744073709551615 insertions(+)",
    "",
    "é",
    "\u{202e}",
];

proptest::proptest! {
    /// Any lines, in any order, of any run: bounded, in one line each, and no panic.
    #[test]
    fn reads_anything_without_harm(
        picks in proptest::collection::vec((0..PIECES.len(), 0..40_usize, ".{0,12}"), 0..60),
        command in "(cargo|gcc|clang|pytest|go|ruff|npm|pnpm|pip|git|mypy|x) .{0,10}",
        succeeded: bool,
        whole: bool,
    ) {
        let texts: Vec<String> = picks
            .iter()
            .map(|(piece, cut, more)| {
                let text = PIECES[*piece];
                format!("{}{more}", &text[..text.floor_char_boundary(text.len().saturating_sub(cut.saturating_sub(30)))])
            })
            .collect();
        let line = |(i, text)| Line { text, at: i as u64, stream: Stream::Output };
        let lines: Vec<Line<'_>> = texts.iter().map(String::as_str).enumerate().map(line).collect();
        let outcome = read(&Run { command: &command, lines: &lines, whole, succeeded }).unwrap_or_default();
        proptest::prop_assert!(succeeded || outcome.tools.is_empty() || outcome.tools.iter().any(has_failed));
        for tool in &outcome.tools {
            proptest::prop_assert!(tool.findings.len() <= MAX_FINDINGS);
            for one in &tool.findings {
                let text = one.to_string();
                proptest::prop_assert!(text.chars().count() <= MAX_MESSAGE_CHARS + 2 * MAX_NAME_CHARS + 30);
                let hidden = text.contains(['\n', '\u{1b}', '\u{202e}']);
                proptest::prop_assert!(!hidden, "{text:?}");
            }
        }
    }
}

#[test]
fn a_flood_of_reports_is_read_in_time() {
    let mut output = String::new();
    for i in 0..30_000 {
        output.push_str(&format!(" FAIL  a{i}\n  ● b{i}\n--- FAIL: c{i}\npanic: d\n"));
    }
    let begin = std::time::Instant::now();
    let _ = read_all("go test", &output, false);
    assert!(begin.elapsed() < std::time::Duration::from_secs(20), "{:?}", begin.elapsed());
}
