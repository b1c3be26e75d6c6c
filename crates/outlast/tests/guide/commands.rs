//! The commands of the README and the guide. Those with a `$` before them are run in a terminal of tmux, in order, in
//! one sealed home for each page, and what a person sees is compared; `…` stands for anything. All others must be understood by the grammar
//! of the command line, so that a verb or option that was renamed is noticed.
//!
//! A comment right before a block says what is special about it:
//!
//! - `<!-- first: COMMANDS -->` is run before the block, and not shown
//! - `<!-- not run: REASON -->` keeps the block from being run; [`NOT_RUN`] lists the pages that may have one

use std::fmt::Write as _;

use clap::Parser;
use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually, has};

use crate::page::{Block, Page};

/// Pages with blocks that are not run, and how many: they need an agent's account, an editor or another machine.
const NOT_RUN: &[(&str, usize)] = &[("README.md", 1), ("docs/guide/install.md", 2)];

/// A command with what it must print.
struct Command {
    line: usize,
    words: String,
    expected: Vec<String>,
}

fn commands(block: &Block) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    let mut goes_on = false;
    for (number, line) in block.lines.iter().enumerate() {
        if let Some(words) = line.strip_prefix("$ ") {
            commands.push(Command { line: block.line + number, words: words.into(), expected: Vec::new() });
            goes_on = words.ends_with('\\');
        } else if goes_on {
            let command = commands.last_mut().unwrap();
            let _ = write!(command.words, "\n{line}");
            goes_on = line.ends_with('\\');
        } else if let Some(command) = commands.last_mut() {
            command.expected.push(line.clone());
        }
    }
    commands
}

fn is_run(block: &Block) -> bool {
    block.language == "console" && !block.comment.as_deref().is_some_and(|it| it.starts_with("not run:"))
}

/// Whether a printed line is the expected one, in which `…` stands for anything.
fn fits(expected: &str, printed: &str) -> bool {
    let mut pieces = expected.trim_end().split('…');
    let Some(mut rest) = printed.trim_end().strip_prefix(pieces.next().unwrap_or_default()) else {
        return false;
    };
    if !expected.contains('…') {
        return rest.is_empty();
    }
    let pieces: Vec<&str> = pieces.collect();
    for (n, piece) in pieces.iter().enumerate() {
        if n + 1 == pieces.len() {
            return rest.ends_with(piece);
        }
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    true
}

/// Whether printed lines are the expected ones; a line that is only `…` stands for any number of them.
fn all_fit(expected: &[String], printed: &[&str]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first.trim() == "…" => {
            (0..=printed.len()).any(|skipped| all_fit(rest, &printed[skipped..]))
        }
        Some((first, rest)) => match printed.split_first() {
            Some((line, others)) => fits(first, line) && all_fit(rest, others),
            None => false,
        },
    }
}

/// What stands between what two commands print.
const MARK: &str = "@@guide ";

/// A bash script that runs the commands of a page, each after a mark, and those commands.
fn script(page: &Page) -> (String, Vec<Command>) {
    let (mut script, mut wanted) = (String::from("clear\n"), Vec::new());
    for block in page.blocks().iter().filter(|block| is_run(block)) {
        if let Some(first) = block.comment.as_deref().and_then(|comment| comment.strip_prefix("first:")) {
            let _ = writeln!(script, "{{ {first}\n}} >/dev/null 2>&1 </dev/null");
        }
        for command in commands(block) {
            let _ = writeln!(script, "echo '{MARK}{}'\n{}", wanted.len(), command.words);
            wanted.push(command);
        }
    }
    let _ = writeln!(script, "echo '{MARK}end'; read rest");
    (script, wanted)
}

/// Runs a script in a terminal of tmux, and returns all that a person could read there.
fn run_in_tmux(script: &str) -> String {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_outlast"));
    let programs = sandbox.root().join("programs");
    std::fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink(sandbox.program(), programs.join("outlast")).unwrap();
    let file = sandbox.root().join("page.sh");
    std::fs::write(&file, script).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let tmux = |words: &[&str]| {
        let mut command = sandbox.command("tmux");
        command.env("PATH", &path).env("TERM", "xterm-256color").args(["-f", "/dev/null", "-S"]);
        let ran = command.arg(sandbox.root().join("tmux")).args(words).output().unwrap();
        assert!(ran.status.success(), "tmux {words:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    let bash = format!("bash {}", file.display());
    tmux(&["new-session", "-d", "-x", "100", "-y", "30", &bash, ";", "set", "-g", "history-limit", "9999"]);
    let seen = eventually("the end of the page", TEST_TIMEOUT, || {
        let seen = tmux(&["capture-pane", "-p", "-J", "-S", "-"]);
        if seen.contains(&format!("{MARK}end")) { Ok(seen) } else { Err(seen) }
    });
    tmux(&["kill-server"]);
    seen
}

/// Runs the commands of a page, and says where they print something else.
fn run(page: &Page) -> Vec<String> {
    let (script, wanted) = script(page);
    if wanted.is_empty() {
        return Vec::new();
    }
    let seen = run_in_tmux(&script);
    let printed = seen.split(MARK).skip(1);
    let mut wrong = Vec::new();
    for (command, printed) in wanted.iter().zip(printed) {
        let mut lines: Vec<&str> = printed.lines().skip(1).collect();
        let mut expected = command.expected.clone();
        while lines.last().is_some_and(|line| line.trim().is_empty()) {
            lines.pop();
        }
        while expected.last().is_some_and(|line| line.trim().is_empty()) {
            expected.pop();
        }
        if !all_fit(&expected, &lines) {
            wrong.push(format!(
                "{}:{}: {}\nexpected:\n{}\nprinted:\n{}\n",
                page.name(),
                command.line,
                command.words,
                expected.join("\n"),
                lines.join("\n")
            ));
        }
    }
    wrong
}

#[test]
fn commands_print_what_the_page_shows() {
    if !has("tmux") {
        return;
    }
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let pages: Vec<Page> = Page::all().into_iter().filter(Page::is_for_users).collect();
        let runs: Vec<_> = pages.into_iter().map(|page| scope.spawn(move || run(&page))).collect();
        runs.into_iter().flat_map(|run| run.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_listed_blocks_are_not_run() {
    let mut found = Vec::new();
    for page in Page::all().iter().filter(|page| page.is_for_users()) {
        let skipped = |block: &&Block| block.language == "console" && !is_run(block);
        let count = page.blocks().iter().filter(skipped).count();
        if count > 0 {
            found.push((page.name(), count));
        }
    }
    let listed: Vec<(String, usize)> = NOT_RUN.iter().map(|(page, count)| ((*page).into(), *count)).collect();
    assert_eq!(found, listed);
}

/// The words of a line as a shell would split them, up to a comment, a pipe or the like.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut quote) = (None::<String>, None);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '\\') => word.get_or_insert_default().extend(chars.next()),
            (None, ' ') => words.extend(word.take()),
            (None, '|' | ';' | '&' | '>' | '<' | '#' | ')') => break,
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[test]
fn every_other_command_line_is_understood() {
    let mut wrong = Vec::new();
    for page in Page::all().iter().filter(|page| page.is_for_users()) {
        for block in page.blocks() {
            for (number, line) in block.lines.iter().enumerate() {
                // In a console, only what is typed is a command.
                let line = match line.strip_prefix("$ ") {
                    Some(typed) => typed,
                    None if block.language == "console" => continue,
                    None => line,
                };
                if !line.starts_with("outlast ") {
                    continue;
                }
                // A description stands three blanks behind the command.
                let command = line.split("   ").next().unwrap_or(line);
                let words = words(command);
                let asks_for_help = words.iter().any(|word| word == "--help" || word == "--version");
                if let (Err(error), false) = (outlast_cli::Cli::try_parse_from(&words), asks_for_help) {
                    wrong.push(format!("{}:{}: {command}\n{error}", page.name(), block.line + number));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
