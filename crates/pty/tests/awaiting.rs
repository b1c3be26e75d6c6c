//! Runs real programs on real terminals and checks what is said of them: each row of the table is a test.
//!
//! `cargo test -p outlast-pty --test awaiting -- python` runs the rows with "python" in their names, `--list` names them.
//! A row runs in a process of its own, which stands in for a keeper. A row whose program is not on this machine is left
//! out. At full size (`--include-ignored`) every row also runs as an ordinary user, and every row that does not wait also
//! where the kernel refuses evidence.
//!
//! With `OUTLAST_TABLE=FILE` what was seen is written there, as a page for the documentation, and every row runs only as it is.
#![cfg(all(target_os = "linux", not(outlast_portable)))]
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "tests fail by panicking, and say what was seen"
)]

#[path = "awaiting/asking.rs"]
mod asking;
#[path = "awaiting/debian.rs"]
mod debian;
#[path = "awaiting/libraries.rs"]
mod libraries;
#[path = "awaiting/programs.rs"]
mod programs;
#[path = "awaiting/row.rs"]
mod row;
#[path = "awaiting/screen.rs"]
mod screen;
#[path = "awaiting/stand.rs"]
mod stand;
#[path = "awaiting/tail.rs"]
mod tail;
#[path = "awaiting/timers.rs"]
mod timers;
#[path = "awaiting/waiting.rs"]
mod waiting;
#[path = "awaiting/working.rs"]
mod working;

use std::io::Write;
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use row::{Expect, Row, Who};

/// The first word of a process that is to run a single row.
const RUN_ROW: &str = "run-row";
/// The word for a list of all rows, as JSON: `clients/waiting.py` plays them.
const LIST_ROWS: &str = "rows";
/// Rows run side by side: most of them sleep. More would make a small machine's delays look like the programs'.
const SIDE_BY_SIDE: usize = 4;
/// A row that has not ended by then never will.
const ROW_ENDS_WITHIN: Duration = Duration::from_secs(40);
/// Becomes somebody who is not root.
const AS_NOBODY: &[&str] = &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];

/// How a row is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// As whoever runs the tests, or as an ordinary user where it must be one.
    Plain,
    /// By root, as an ordinary user: root sees everything, and most keepers are not root.
    OrdinaryUser,
    /// Without the right to attach. Fewer are found then, and still none may be called waiting that is not.
    Hardened,
}

fn table() -> Vec<Row> {
    let mut rows = waiting::rows();
    rows.extend(asking::rows());
    rows.extend(working::rows());
    rows.extend(timers::rows());
    rows.extend(tail::rows());
    rows.extend(programs::rows());
    rows.extend(libraries::rows());
    rows.extend(debian::rows());
    let mut names = std::collections::HashSet::new();
    // A row is run by its name.
    rows.iter().for_each(|row| assert!(names.insert(row.name), "two rows are called {}", row.name));
    rows
}

struct Line {
    row: Row,
    right: bool,
    latency: Option<u64>,
    samples: u32,
    note: String,
}

/// What was seen, of all rows that ran as they are.
type Seen = Arc<Mutex<Vec<Line>>>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [first, name, access] = words.as_slice()
        && first == RUN_ROW
    {
        return run_row(name, access == "hardened");
    }
    if words == [LIST_ROWS] {
        return list_rows();
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(SIDE_BY_SIDE);
    let seen = Seen::default();
    let began = Instant::now();
    let page = std::env::var_os("OUTLAST_TABLE");
    let modes: &[Mode] = match (arguments.include_ignored || arguments.ignored) && page.is_none() {
        true => &[Mode::Plain, Mode::OrdinaryUser, Mode::Hardened],
        // The others would only be listed as ignored.
        false => &[Mode::Plain],
    };
    let trials = modes.iter().flat_map(|mode| trials(*mode, &seen));
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    let lines = std::mem::take(&mut *seen.lock().expect("no panic"));
    if !lines.is_empty() {
        report(&lines, began.elapsed());
    }
    if let Some(file) = page {
        std::fs::write(file, markdown(&lines)).expect("the table's file");
    }
    conclusion.exit_code()
}

/// The tests of all rows that say something in a mode.
fn trials(mode: Mode, seen: &Seen) -> Vec<Trial> {
    let is_root = rustix::process::getuid().is_root();
    let says_something = |row: &Row| match mode {
        Mode::Plain => row.who != Who::Root || is_root,
        // Without root, the plain table has said it.
        Mode::OrdinaryUser => is_root && row.who == Who::Anybody,
        Mode::Hardened => !row.waits() && row.who != Who::User && (row.who != Who::Root || is_root),
    };
    let rows = table().into_iter().filter(says_something);
    let trial = |row: Row| {
        let (seen, full_size) = (Arc::clone(seen), row.full_size || mode != Mode::Plain);
        let kind = match mode {
            Mode::Plain => "",
            Mode::OrdinaryUser => "ordinary user",
            Mode::Hardened => "hardened",
        };
        let trial = Trial::ignorable_test(row.name, move || judge(&row, mode, &seen));
        trial.with_kind(kind).with_ignored_flag(full_size)
    };
    rows.map(trial).collect()
}

/// Runs a row, and says whether it was as it must be.
fn judge(row: &Row, mode: Mode, seen: &Seen) -> Result<Completion, Failed> {
    let as_nobody =
        mode == Mode::OrdinaryUser || (row.who == Who::User && rustix::process::getuid().is_root());
    if let Some(program) = row.absent(if as_nobody { AS_NOBODY.first().copied() } else { None }) {
        let why = format!("{program} is not installed");
        outlast_testkit::test_left_out(row.name, &why, &format!("apt-get install {program}, or what has it"));
        return Ok(Completion::ignored_with(why));
    }
    let line = run_apart(row, if as_nobody { AS_NOBODY } else { &[] }, mode);
    let right = match mode {
        Mode::Plain | Mode::OrdinaryUser => line.right,
        Mode::Hardened => {
            !["Likely", "Certain"].iter().any(|level| line.note.contains(&format!("waiting {level}")))
        }
    };
    let note = line.note.clone();
    if mode == Mode::Plain {
        seen.lock().expect("no panic").push(line);
    }
    if right { Ok(Completion::Completed) } else { Err(note.into()) }
}

/// Runs one row in this process, which is for nothing else.
fn run_row(name: &str, hardened: bool) -> ExitCode {
    let row = table().into_iter().find(|row| row.name == name).expect("a row of the table");
    let outcome = stand::run(&row, hardened);
    let latency = outcome.latency.map_or("-".to_owned(), |latency| latency.as_millis().to_string());
    let note = outcome.note.replace('\n', " | ");
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nOUTCOME\t{}\t{latency}\t{}\t{note}", outcome.right, outcome.samples).expect("stdout");
    ExitCode::SUCCESS
}

/// Prints what a row is, a line each.
fn list_rows() -> ExitCode {
    let mut out = std::io::stdout().lock();
    for row in table() {
        let (at_least, kind) = match row.expect {
            Expect::Waits { at_least, kind } => (Some(at_least), Some(kind)),
            Expect::Listens | Expect::Stopped | Expect::Never => (None, None),
        };
        let word = |word: String| word.to_lowercase();
        let argv: Vec<_> = row.command().iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let env: serde_json::Map<_, _> = stand::fixed_env()
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.to_string_lossy().into_owned().into()))
            .collect();
        let line = serde_json::json!({
            "name": row.name, "argv": argv, "sends": row.sends, "once": row.once, "who": format!("{:?}", row.who),
            "absent": row.absent(None), "waits": row.waits(), "must_be": must_be(&row), "env": env,
            "at_least": at_least.map(|level| word(format!("{level:?}"))), "kind": kind.map(|kind| word(format!("{kind:?}"))),
            "at_most": word(format!("{:?}", row.at_most)),
        });
        writeln!(out, "{line}").expect("stdout");
    }
    ExitCode::SUCCESS
}

fn run_apart(row: &Row, launcher: &[&str], mode: Mode) -> Line {
    let me = std::env::current_exe().expect("this program");
    let mut command = match launcher {
        [] => Command::new(me),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(me);
            command
        }
    };
    command.args([RUN_ROW, row.name, if mode == Mode::Hardened { "hardened" } else { "full" }]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("a process for the row");
    let pid = rustix::process::Pid::from_child(&child);
    let (done, ended) = std::sync::mpsc::channel::<()>();
    let guard = std::thread::spawn(move || {
        let late = ended.recv_timeout(ROW_ENDS_WITHIN) == Err(std::sync::mpsc::RecvTimeoutError::Timeout);
        if late {
            for process in outlast_pty::procfs::descendants(pid) {
                let _ = rustix::process::kill_process(process.pid, rustix::process::Signal::KILL);
            }
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    });
    let output = child.wait_with_output().expect("its output");
    drop(done);
    let _ = guard.join();
    let text = String::from_utf8_lossy(&output.stdout);
    let fields: Vec<&str> = text
        .lines()
        .find(|line| line.starts_with("OUTCOME\t"))
        .map(|line| line.split('\t').collect())
        .unwrap_or_default();
    match fields[..] {
        [_, right, latency, samples, note] => Line {
            row: row.clone(),
            right: right == "true",
            latency: latency.parse().ok(),
            samples: samples.parse().unwrap_or(0),
            note: note.to_owned(),
        },
        _ => {
            let note = format!("no outcome: {}", String::from_utf8_lossy(&output.stderr));
            Line { row: row.clone(), right: false, latency: None, samples: 0, note }
        }
    }
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

/// What all rows together say.
fn report(lines: &[Line], took: Duration) {
    let (waiting, working): (Vec<&Line>, Vec<&Line>) = lines.iter().partition(|line| line.row.waits());
    let right = |lines: &[&Line]| lines.iter().filter(|line| line.right).count();
    let mut latencies: Vec<u64> = waiting.iter().filter_map(|line| line.latency).collect();
    latencies.sort_unstable();
    let ninth = latencies.get(latencies.len() * 9 / 10).copied().unwrap_or(0);
    println!(
        "{} rows in {:.0} s: {} of {} found waiting (median {} ms, p90 {ninth} ms after the last byte); \
         {} of {} right about the rest, in {} samples",
        lines.len(),
        took.as_secs_f64(),
        right(&waiting),
        waiting.len(),
        median(latencies),
        right(&working),
        working.len(),
        working.iter().map(|line| line.samples).sum::<u32>(),
    );
}

/// What must be said of a row, in words.
fn must_be(row: &Row) -> String {
    match row.expect {
        Expect::Waits { at_least, kind } => {
            format!("waiting, at least {at_least:?}, {kind:?}").to_lowercase()
        }
        Expect::Listens => "listening".into(),
        Expect::Stopped => "stopped".into(),
        Expect::Never => "never waiting".into(),
    }
}

/// What was seen, as a page for the documentation.
fn markdown(lines: &[Line]) -> String {
    let mut lines: Vec<&Line> = lines.iter().collect();
    lines.sort_by_key(|line| (matches!(line.row.expect, Expect::Never), line.row.name));
    let mut page = String::from(
        "# The table of programs\n\nMade by running it: `OUTLAST_TABLE=FILE cargo test -p outlast-pty --test awaiting`.\n\
         Times are milliseconds from the last byte to the claim. What the verdicts mean: [awaiting-input.md](internals/awaiting-input.md).\n\n\
         | what it does | command | must be | said | ms |\n|---|---|---|---|---|\n",
    );
    for line in lines {
        let expect = must_be(&line.row);
        let cell = |text: &str| text.replace('|', "\\|").replace('`', "'").replace('\n', " ");
        let mut command = cell(&line.row.argv.join(" "));
        if command.chars().count() > 70 {
            command = command.chars().take(69).chain(std::iter::once('…')).collect();
        }
        let latency = line.latency.map_or("".to_owned(), |latency| latency.to_string());
        let said = cell(line.note.split(['(', '|']).next().unwrap_or_default().trim());
        page.push_str(&format!(
            "| {} | `{command}` | {expect} | {said} | {latency} |\n",
            cell(line.row.name)
        ));
    }
    page
}
