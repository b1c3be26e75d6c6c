//! The first five minutes of a new user: every command of the README's console blocks, typed into a shell in tmux, and
//! what comes compared with what the README shows. A block after a comment that begins with `not run:` is left out;
//! the line of a comment that begins with `first:` is run before its block.

use outlast_testkit::{TEST_TIMEOUT, eventually};

use crate::judges::Shell;
use crate::sandbox;

const README: &str = include_str!("../../../../README.md");
/// Stands for any lines, or for the rest of a line.
const ANYTHING: &str = "…";

/// A command, and what the README shows below it.
#[derive(Debug, Default)]
struct Step {
    first: Option<String>,
    command: String,
    shows: Vec<String>,
}

/// The steps of the console blocks that are to be run.
fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut first, mut skipped, mut in_block) = (None, false, false);
    for line in text.lines() {
        if let Some(note) = line.strip_prefix("<!-- ").and_then(|line| line.strip_suffix(" -->")) {
            first = note.strip_prefix("first: ").map(str::to_owned);
            skipped = note.starts_with("not run:");
        } else if line.starts_with("```") {
            skipped &= !in_block;
            in_block = !in_block && line == "```console";
        } else if in_block && !skipped {
            match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => {
                    let command = command.to_owned();
                    steps.push(Step { first: first.take(), command, ..Step::default() });
                }
                (None, Some(step)) => step.shows.push(line.to_owned()),
                (None, None) => panic!("output before any command: {line}"),
            }
        }
    }
    steps
}

/// Whether what came is what was shown.
fn is_as_shown(came: &[String], shown: &[String]) -> bool {
    let fits = |came: &str, shown: &str| match shown.strip_suffix(ANYTHING) {
        Some(start) => came.starts_with(start.trim_end()),
        None => came == shown.trim_end(),
    };
    match (shown.split_first(), came.split_first()) {
        (None, rest) => rest.is_none(),
        (Some((any, after)), _) if any == ANYTHING => {
            (0..=came.len()).any(|skipped| is_as_shown(&came[skipped..], after))
        }
        (Some((line, after)), Some((first, rest))) => fits(first, line) && is_as_shown(rest, after),
        (Some(_), None) => false,
    }
}

#[test]
fn the_readme_can_be_typed_as_it_is_and_shows_what_it_says() {
    let sandbox = sandbox();
    // As wide as the page: nothing wraps.
    let Some(mut shell) = Shell::start_sized(&sandbox, (160, 50)) else { return };
    let steps = steps(README);
    assert!(steps.len() >= 5, "{steps:?}");
    for (number, step) in (1..).zip(&steps) {
        if let Some(line) = &step.first {
            let line = line.replace("outlast ", &format!("'{}' ", sandbox.program().display()));
            sandbox.shell(&line).cwd(sandbox.work()).env("OUTLAST_SESSION", "person").run().ok();
        }
        shell.calls(&step.command);
        let typed = Shell::typed(number, &step.command);
        eventually(&step.command, TEST_TIMEOUT, || {
            let lines = shell.lines();
            let from = lines.iter().rposition(|line| *line == typed).map_or(0, |at| at + 1);
            let came = &lines[from..lines.len() - 1];
            if is_as_shown(came, &step.shows) { Ok(()) } else { Err((came.to_vec(), step.shows.clone())) }
        });
    }
    sandbox.call(["kill", "--all"]).env("OUTLAST_SESSION", "person").run().ok();
}

#[test]
fn dots_stand_for_lines_and_ends_of_lines() {
    let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    assert!(is_as_shown(&lines("a\nb\nc"), &lines("a\n…\nc")));
    assert!(is_as_shown(&lines("claude  found"), &lines("claude …")));
    assert!(!is_as_shown(&lines("a\nb"), &lines("a")));
    assert!(!is_as_shown(&lines("a"), &lines("a\nb")));
}
