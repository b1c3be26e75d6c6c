//! Runs real programs on real terminals and checks what is said of them.
//!
//! Each row of the table gets a process of its own, which stands in for a keeper. Rows whose programs are not on
//! this machine are left out, by name.
//!
//! `OUTLAST_ROWS=python cargo test -p outlast-pty --test awaiting -- --nocapture` runs only the rows with "python"
//! in their names, and prints each.
#![cfg(target_os = "linux")]
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "tests fail by panicking and say what they left out"
)]

#[path = "awaiting/asking.rs"]
mod asking;
#[path = "awaiting/row.rs"]
mod row;
#[path = "awaiting/screen.rs"]
mod screen;
#[path = "awaiting/stand.rs"]
mod stand;
#[path = "awaiting/timers.rs"]
mod timers;
#[path = "awaiting/waiting.rs"]
mod waiting;
#[path = "awaiting/working.rs"]
mod working;

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use outlast_pty::evidence::{Access, Level};
use row::{Expect, Row, Who};

/// Names the row that a process is to run; set by the table for its children.
const ROW: &str = "OUTLAST_ROW";
const ACCESS: &str = "OUTLAST_ROW_ACCESS";
/// Rows run side by side. More would make a small machine's delays look like the programs'.
const SIDE_BY_SIDE: usize = 4;
/// A row that has not ended by then never will.
const ROW_ENDS_WITHIN: Duration = Duration::from_secs(40);

fn table() -> Vec<Row> {
    let mut rows = waiting::rows();
    rows.extend(asking::rows());
    rows.extend(working::rows());
    rows.extend(timers::rows());
    rows
}

/// Runs the one row that the environment names, and nothing otherwise.
#[test]
fn one_row() {
    let Ok(name) = std::env::var(ROW) else { return };
    let mut row = table().into_iter().find(|row| row.name == name).expect("a row of the table");
    let hardened = std::env::var_os(ACCESS).is_some();
    if let (true, Expect::Waits { at_least, .. }) = (hardened, &mut row.expect) {
        *at_least = Level::Possible;
    }
    let outcome = stand::run(&row, if hardened { Access::Hardened } else { Access::Full });
    let latency = outcome.latency.map_or("-".to_owned(), |latency| latency.as_millis().to_string());
    let note = outcome.note.replace('\n', " | ");
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nOUTCOME\t{}\t{latency}\t{}\t{note}", outcome.right, outcome.samples).expect("stdout");
}

struct Line {
    row: Row,
    right: bool,
    latency: Option<u64>,
    samples: u32,
    note: String,
}

fn run_apart(row: &Row, launcher: &[&str], env: &[(&str, &str)]) -> Line {
    let me = std::env::current_exe().expect("this program");
    let mut command = match launcher {
        [] => Command::new(me),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(me);
            command
        }
    };
    command.args(["--exact", "one_row", "--nocapture", "--test-threads=1"]);
    command.env(ROW, row.name).envs(env.iter().copied());
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

/// Runs rows a few at a time.
fn run_all(rows: &[Row], launcher: &[&str], env: &[(&str, &str)]) -> Vec<Line> {
    let next = AtomicUsize::new(0);
    let lines = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let line = run_apart(row, launcher, env);
                    lines.lock().expect("no panic").push(line);
                }
            });
        }
    });
    lines.into_inner().expect("no panic")
}

/// The rows that can run here, and as this user.
fn selected(as_root: bool) -> Vec<Row> {
    let cannot_run = if as_root { Who::User } else { Who::Root };
    let wanted = std::env::var("OUTLAST_ROWS").unwrap_or_default();
    let long = std::env::var_os("OUTLAST_LONG_TESTS").is_some();
    table()
        .into_iter()
        .filter(|row| row.name.contains(&wanted) && row.who != cannot_run && (long || !row.full_size))
        .filter(|row| match row.absent() {
            Some(program) => {
                let why = format!("{program} is not installed, for the row {:?}", row.name);
                outlast_testkit::left_out(&why, &format!("apt-get install {program}, or what has it"));
                false
            }
            None => true,
        })
        .collect()
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

fn report(lines: &[Line], took: Duration) {
    let waits = |line: &&Line| matches!(line.row.expect, Expect::Waits { .. });
    let (waiting, working): (Vec<&Line>, Vec<&Line>) = lines.iter().partition(|line| waits(line));
    let found = waiting.iter().filter(|line| line.right).count();
    let silent = working.iter().filter(|line| line.right).count();
    let mut latencies: Vec<u64> = waiting.iter().filter_map(|line| line.latency).collect();
    latencies.sort_unstable();
    let ninth = latencies.get(latencies.len() * 9 / 10).copied().unwrap_or(0);
    println!(
        "{} rows in {:.0} s: {found} of {} found waiting (median {} ms, p90 {ninth} ms after the last byte); {silent} of {} right about the rest, in {} samples",
        lines.len(),
        took.as_secs_f64(),
        waiting.len(),
        median(latencies),
        working.len(),
        working.iter().map(|line| line.samples).sum::<u32>(),
    );
    let verbose = std::env::var_os("OUTLAST_ROWS").is_some();
    for line in lines.iter().filter(|line| verbose || !line.right) {
        let mark = if line.right { "right" } else { "WRONG" };
        println!("{mark} {} [{} ms]: {}", line.row.name, line.latency.unwrap_or(0), line.note);
    }
}

fn check(rows: &[Row], launcher: &[&str], env: &[(&str, &str)]) -> Vec<Line> {
    let started = Instant::now();
    let lines = run_all(rows, launcher, env);
    report(&lines, started.elapsed());
    if let Some(file) = std::env::var_os("OUTLAST_TABLE") {
        std::fs::write(file, markdown(&lines)).expect("the table's file");
    }
    lines
}

/// What was seen, as a page for the documentation.
fn markdown(lines: &[Line]) -> String {
    let mut lines: Vec<&Line> = lines.iter().collect();
    lines.sort_by_key(|line| (matches!(line.row.expect, Expect::Never), line.row.name));
    let mut page = String::from(
        "# The table of programs\n\nMade by running it: `OUTLAST_TABLE=$PWD/docs/awaiting-input-table.md cargo test -p outlast-pty --test awaiting`.\n\
         Times are milliseconds from the last byte to the claim. What the verdicts mean: [awaiting-input.md](awaiting-input.md).\n\n\
         | what it does | command | must be | said | ms |\n|---|---|---|---|---|\n",
    );
    for line in lines {
        let expect = match line.row.expect {
            Expect::Waits { at_least, kind } => {
                format!("waiting, at least {at_least:?}, {kind:?}").to_lowercase()
            }
            Expect::Listens => "listening".into(),
            Expect::Stopped => "stopped".into(),
            Expect::Never => "never waiting".into(),
        };
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

fn wrong(lines: &[Line]) -> Vec<&str> {
    lines.iter().filter(|line| !line.right).map(|line| line.row.name).collect()
}

#[test]
fn the_table() {
    if std::env::var_os(ROW).is_some() {
        return;
    }
    let lines = check(&selected(rustix::process::getuid().is_root()), &[], &[]);
    assert!(wrong(&lines).is_empty(), "wrong about {:?}", wrong(&lines));
}

/// Root sees everything; most keepers are not root.
#[test]
#[ignore = "takes as long as the table itself, and needs root to become somebody else"]
fn the_table_as_an_ordinary_user() {
    if !rustix::process::getuid().is_root() {
        println!("not root, so the table has run as an ordinary user already");
        return;
    }
    let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];
    let lines = check(&selected(false), &user, &[]);
    assert!(wrong(&lines).is_empty(), "wrong about {:?}", wrong(&lines));
}

/// Without the right to attach, fewer are found, and still none is called waiting that is not.
#[test]
#[ignore = "takes as long as the table itself"]
fn the_table_on_a_hardened_kernel() {
    let lines = check(&selected(rustix::process::getuid().is_root()), &[], &[(ACCESS, "hardened")]);
    let says = |line: &Line, what: &str| line.note.contains(&format!("waiting {what}"));
    let waits = |line: &&Line| matches!(line.row.expect, Expect::Waits { .. });
    for level in ["Certain", "Likely", "Possible"] {
        let (waiting, working): (Vec<&Line>, Vec<&Line>) =
            lines.iter().filter(|line| says(line, level)).partition(waits);
        println!("{level}: {} that wait, {} that do not", waiting.len(), working.len());
    }
    let falsely = lines.iter().filter(|line| !waits(line) && (says(line, "Likely") || says(line, "Certain")));
    let falsely: Vec<&str> = falsely.map(|line| line.row.name).collect();
    assert!(falsely.is_empty(), "wrong about {falsely:?}");
}
