//! What is left to read of what was drawn: through a real terminal, from a real program.

use outlast_testkit::Sandbox;

use crate::{ends_with, lines, press, sandbox, tui_job, wait_to_show};

/// Runs a program to its end; what `read` says must be what `stdout.txt` holds.
fn read_to_end(sandbox: &Sandbox, args: &[&str]) -> Vec<String> {
    let job = tui_job(sandbox, args);
    ends_with(sandbox, job, 0);
    let read = lines(sandbox, job);
    let file = std::fs::read_to_string(sandbox.job(job).join("stdout.txt")).unwrap();
    assert_eq!(file.lines().collect::<Vec<_>>(), read, "read and stdout.txt");
    read
}

/// Whether a pattern is found in what a job has printed.
fn finds(sandbox: &Sandbox, job: u64, pattern: &str) -> bool {
    let job = job.to_string();
    let found = sandbox.json(["wait", &job, "--pattern", pattern, "--exit", "--since", "0"]);
    found["reason"] == "pattern"
}

#[test]
fn a_thousand_redraws_of_a_bar_are_one_line() {
    let sandbox = sandbox();
    let lines = read_to_end(&sandbox, &["bar", "1000"]);
    assert_eq!(lines, ["Downloading".to_owned(), format!("{} 100%", "\u{2588}".repeat(30)), "Saved".into()]);
}

#[test]
fn a_block_redrawn_with_the_cursor_is_each_line_once() {
    let sandbox = sandbox();
    let lines = read_to_end(&sandbox, &["block", "6", "100"]);
    let layers = (0..6).map(|i| format!("layer{i}: Pull complete"));
    let wanted: Vec<String> = std::iter::once("Pulling from library/thing".to_owned())
        .chain(layers)
        .chain(["Status: Downloaded".to_owned()])
        .collect();
    assert_eq!(lines, wanted);
}

#[test]
fn spinners_and_status_lines_leave_what_they_ended_as() {
    let sandbox = sandbox();
    assert_eq!(read_to_end(&sandbox, &["spinner", "500"]), ["\u{2714} added 12 packages"]);
    let lines = read_to_end(&sandbox, &["builder"]);
    assert_eq!(lines[0], "   Compiling memchr v2.8.0");
    assert_eq!(lines[3], "   Compiling thing v0.1.0 (/src/thing)");
    assert_eq!(lines[4], "warning: unused variable: `x`");
    assert_eq!(lines[6], "    Finished `dev` profile [unoptimized] target(s) in 0.42s");
    assert_eq!(lines.len(), 7, "{lines:?}");
}

#[test]
fn text_of_every_kind_stays_what_it_was() {
    let sandbox = sandbox();
    let lines = read_to_end(&sandbox, &["texts"]);
    assert_eq!(
        lines,
        [
            "wide \u{65e5}\u{672c}\u{8a9e} \u{1f600}|",
            "combining e\u{301} n\u{303}|",
            "a\tb\tc",
            "wrong!",
            "keep this",
            "insert|",
            "top|",
            "bad \u{fffd}\u{fffd}( utf-8",
            "titled",
        ]
    );
}

#[test]
fn bytes_that_come_one_by_one_mean_the_same() {
    let sandbox = sandbox();
    let job = tui_job(&sandbox, &["byte-by-byte"]);
    ends_with(&sandbox, job, 0);
    assert_eq!(lines(&sandbox, job), ["R", "last line"]);
    assert!(finds(&sandbox, job, "^last line$"));
    assert!(!finds(&sandbox, job, "\u{fffd}"));
}

#[test]
fn a_long_line_stays_one_line_and_is_found() {
    let sandbox = sandbox();
    let job = tui_job(&sandbox, &["long-line", "10000000"]);
    ends_with(&sandbox, job, 0);
    let text = std::fs::read(sandbox.job(job).join("stdout.txt")).unwrap();
    assert_eq!(text.len(), 10_000_000 + 3 + 6);
    assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), 2);
    assert!(finds(&sandbox, job, "x{50}>$"));
    let answer = sandbox.json(["read", &job.to_string()]);
    let output = answer["output"].as_str().unwrap();
    assert!(output.len() < 20_000, "{}", output.len());
    assert!(output.starts_with("<xxx") && output.ends_with("after\n"), "{output}");
    assert!(answer["omitted_bytes"].as_u64().unwrap() > 9_900_000, "{}", answer["omitted_bytes"]);
}

#[test]
fn a_soft_wrap_is_no_line_end() {
    let sandbox = sandbox();
    let job = sandbox.start(["--size", "20x5", "--", "seq", "-s", " ", "1", "60"]);
    ends_with(&sandbox, job, 0);
    let whole: Vec<String> = (1..=60).map(|i| i.to_string()).collect();
    assert_eq!(lines(&sandbox, job), [whole.join(" ")]);
    assert!(finds(&sandbox, job, "^1 2 3 .* 59 60$"));
}

#[test]
fn a_full_screen_program_leaves_no_line() {
    let sandbox = sandbox();
    let job = tui_job(&sandbox, &["full-screen", "before it"]);
    wait_to_show(&sandbox, job, "full screen");
    for key in ["a", "Up", "Enter", "F5"] {
        press(&sandbox, job, &[key]);
    }
    wait_to_show(&sandbox, job, "15~");
    press(&sandbox, job, &["q"]);
    ends_with(&sandbox, job, 0);
    assert_eq!(lines(&sandbox, job), ["before it", "left"]);
}

#[test]
fn of_a_page_that_is_cleared_and_drawn_for_hours_the_end_is_left() {
    let sandbox = sandbox();
    let lines = read_to_end(&sandbox, &["redraws-screen", "500"]);
    // The last page that was cleared away, and the one that stayed.
    let page = |round: usize| ["Every 2.0s: date".to_owned(), String::new(), format!("round {round}")];
    assert_eq!(lines[0], "before");
    assert_eq!(lines[1..], [page(498), page(499)].concat());
}

#[test]
fn offsets_in_the_middle_of_a_redrawn_line_lead_to_the_screen_of_that_moment() {
    let sandbox = sandbox();
    let job = tui_job(&sandbox, &["bar", "1000"]);
    ends_with(&sandbox, job, 0);
    let log = String::from_utf8(sandbox.log(job)).unwrap();
    let offset = log.find(" 50%").unwrap() + " 50%".len();
    let shot = sandbox.json(["replay", &job.to_string(), "--offset", &offset.to_string()]);
    assert_eq!(shot["offset"], offset);
    assert!(crate::rows(&shot)[1].ends_with(" 50%"), "{shot}");
    let rest = sandbox.json(["read", &job.to_string(), "--since", &(log.len() - 7).to_string()]);
    assert_eq!(rest["output"], "Saved\n");
}

#[test]
fn transcript_and_screen_are_whole_when_the_end_is_told() {
    let sandbox = sandbox();
    for _ in 0..5 {
        let job = sandbox.start(["--", "sh", "-c", "printf 'one\\ntwo without an end'"]);
        ends_with(&sandbox, job, 0);
        let file = |name: &str| std::fs::read_to_string(sandbox.job(job).join(name)).unwrap();
        assert_eq!(file("stdout.txt").trim_end(), "one\ntwo without an end");
        assert_eq!(file("screen.txt"), "one\ntwo without an end\n");
    }
}
