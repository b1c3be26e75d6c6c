//! Runs esctest2, the tests that xterm's author keeps for terminals, against our fold.
//!
//! The suite is not part of this repository: give the folder that has `esctest.py`. It reads the screen back with DECRQCRA,
//! which Outlast never answers, because output could then type what the screen shows. It is answered here alone, from what
//! `outlast screen` would show.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;

use outlast_pty::{Command, Pty, SessionLeader, Size, Stdio};
use outlast_stream::{Config, FoldOutput, Pipeline};
use rustix::event::{PollFd, PollFlags, Timespec};

type Done<T = ()> = Result<T, String>;

/// The suite's own size.
const SIZE: Size = Size { cols: 80, rows: 25 };
/// A suite that says nothing for so long has hung.
const SILENCE: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };
/// The longest query that is looked for at the end of a read.
const MAX_QUERY: usize = 40;

/// Runs the suite and prints what passed, by group.
pub(crate) fn run(folder: &str, options: &[&str]) -> Done {
    let folder = Path::new(folder);
    if !folder.join("esctest.py").is_file() {
        return Err(format!(
            "{} has no esctest.py; give the folder of esctest2 that has it",
            folder.display()
        ));
    }
    let log = std::env::temp_dir().join(format!("esctest-{}.log", std::process::id()));
    let master = start(folder, &log, options)?;
    serve(&master)?;
    let text = std::fs::read(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    println!("{}", by_group(&String::from_utf8_lossy(&text)));
    println!("The suite's own log: {}", log.display());
    Ok(())
}

fn start(folder: &Path, log: &Path, options: &[&str]) -> Done<OwnedFd> {
    let pty = Pty::open(SIZE).map_err(|error| format!("a terminal: {error}"))?;
    // Reverse wrap as in xterm since 2023.
    let fixed = [
        "python3",
        "esctest.py",
        "--expected-terminal=xterm",
        "--xterm-reverse-wrap=383",
        "--max-vt-level=4",
        "--timeout=1",
    ];
    let mut argv: Vec<OsString> = fixed.iter().map(OsString::from).collect();
    argv.push(format!("--logfile={}", log.display()).into());
    argv.extend(options.iter().map(OsString::from));
    let mut env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    env.push(("TERM".into(), "xterm-256color".into()));
    Command {
        argv,
        cwd: folder.to_owned(),
        env,
        stdio: Stdio::Terminal(pty.slave),
        session_leader: SessionLeader::Command,
        confinement: outlast_pty::spawn::Confinement::default(),
    }
    .spawn()
    .map_err(|error| format!("python3: {error}"))?;
    Ok(pty.master)
}

/// Is the suite's terminal until it ends.
fn serve(master: &OwnedFd) -> Done {
    let size = outlast_stream::Size { cols: SIZE.cols, rows: SIZE.rows };
    let mut fold = Pipeline::new(Config { size, ..Config::default() });
    let mut out = FoldOutput::default();
    let mut kept: Vec<u8> = Vec::new();
    let mut bytes = [0; 16 * 1024];
    loop {
        let mut fds = [PollFd::new(master, PollFlags::IN)];
        match rustix::event::poll(&mut fds, Some(&SILENCE)) {
            Ok(0) => return Err("the suite says nothing any more".into()),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("poll: {error}")),
        }
        match rustix::io::read(master, &mut bytes) {
            Ok(n) if n > 0 => kept.extend_from_slice(&bytes[..n]),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => continue,
            // A terminal that everybody has left.
            Ok(_) | Err(_) => return Ok(()),
        }
        while let Some((query, end)) = next_query(&kept) {
            fold.feed(&kept[..end], &mut out);
            send(master, &std::mem::take(&mut out.replies))?;
            out.clear();
            kept.drain(..end);
            let screen = fold.screen();
            let cell = screen.rows.get(query.row).and_then(|row| row.chars().nth(query.col)).unwrap_or(' ');
            let sum = 0x10000 - (u32::from(cell) & 0xffff);
            send(master, format!("\x1bP{}!~{sum:04X}\x1b\\", query.id).as_bytes())?;
        }
        // The beginning of a query may be at the end.
        let at = kept.iter().rposition(|byte| *byte == 0x1b).filter(|at| kept.len() - at < MAX_QUERY);
        let whole = at.filter(|at| is_unfinished(&kept[*at..])).unwrap_or(kept.len());
        fold.feed(&kept[..whole], &mut out);
        kept.drain(..whole);
        send(master, &std::mem::take(&mut out.replies))?;
        out.clear();
    }
}

/// A request for the checksum of one cell.
struct Query {
    id: u32,
    row: usize,
    col: usize,
}

/// The first DECRQCRA: `CSI id ; page ; top ; left ; bottom ; right * y`, and where it ends.
fn next_query(bytes: &[u8]) -> Option<(Query, usize)> {
    let end = bytes.windows(2).position(|two| two == b"*y")?;
    let begin = bytes[..end].windows(2).rposition(|two| two == b"\x1b[")?;
    let text = std::str::from_utf8(&bytes[begin + 2..end]).ok()?;
    let numbers: Vec<u32> = text.split(';').map(str::parse).collect::<Result<_, _>>().ok()?;
    let [id, _, top, left, ..] = numbers[..] else { return None };
    let place = |number: u32| usize::try_from(number.saturating_sub(1)).unwrap_or(0);
    Some((Query { id, row: place(top), col: place(left) }, end + 2))
}

fn is_unfinished(bytes: &[u8]) -> bool {
    let body = bytes.strip_prefix(b"\x1b[").unwrap_or_default();
    bytes == b"\x1b" || (bytes.starts_with(b"\x1b[") && !body.iter().any(|byte| (0x40..=0x7e).contains(byte)))
}

fn send(master: &OwnedFd, mut bytes: &[u8]) -> Done {
    while !bytes.is_empty() {
        match rustix::io::write(master, bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("the answer to a query: {error}")),
        }
    }
    Ok(())
}

/// What the log says, as a table: a group is a class of tests.
fn by_group(log: &str) -> String {
    let mut groups: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut failed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut running: Option<&str> = None;
    for line in log.lines() {
        if let Some(name) = line.strip_prefix("Run test: ") {
            running = name.split_whitespace().next();
        }
        let outcome = match line {
            _ if line.starts_with("Passed.") => 0,
            _ if line.starts_with("*** TEST ") => 1,
            _ if line.starts_with("Fails as expected") || line.starts_with("Skipped") => 2,
            _ => continue,
        };
        let Some(test) = running.take() else { continue };
        let (group, name) = test.split_once('.').unwrap_or((test, test));
        groups.entry(group).or_default()[outcome] += 1;
        if outcome == 1 {
            failed.entry(group).or_default().push(name);
        }
    }
    let mut page = String::from(
        "| group | passed | failed | known bug, skipped | which failed |\n|---|---|---|---|---|\n",
    );
    let mut sums = [0; 3];
    for (group, counts) in &groups {
        (0..3).for_each(|at| sums[at] += counts[at]);
        let names = failed.get(group).map(|names| names.join(", ")).unwrap_or_default();
        page.push_str(&format!("| {group} | {} | {} | {} | {names} |\n", counts[0], counts[1], counts[2]));
    }
    page.push_str(&format!("| all | {} | {} | {} | |\n", sums[0], sums[1], sums[2]));
    page
}
