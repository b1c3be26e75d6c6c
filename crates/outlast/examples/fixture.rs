//! Small programs that behave as real ones do when they are difficult, for the tests: `fixture VERB [ARGUMENT...]`.

#![expect(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "a program for tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Command;
use std::time::Duration;

use outlast_pty::detach::{Forked, fork};
use outlast_pty::signals;
use rustix::process::Signal;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["floods", bytes] => floods(number(bytes)),
        ["counts", lines, every, pause_ms, code] => {
            counts(number(lines), number(every), number(pause_ms));
            exit(code);
        }
        ["says", text] => says(text),
        ["says-and-sleeps", text] => {
            says(text);
            sleep_for_ever();
        }
        ["says-when-told", texts @ ..] => texts.iter().for_each(|text| {
            let _ = line();
            says(text);
        }),
        ["echo-args", rest @ ..] => rest.iter().for_each(|arg| says(&format!("[{arg}]"))),
        ["exits", code] => exit(code),
        ["asks"] => asks(),
        ["both"] => {
            says("to stdout");
            eprintln!("to stderr");
        }
        ["eats-stdin", chunk, pause_ms] => eats_stdin(number(chunk), number(pause_ms)),
        ["closes-stdin"] => {
            rustix::stdio::dup2_stdin(outlast_pty::open::dev_null().unwrap()).unwrap();
            says("closed");
            sleep_for_ever();
        }
        ["raw-mode"] => raw_mode(),
        ["ignores-term"] => ignores_term(),
        ["family"] => family(),
        ["setsids"] => setsids(),
        ["double-forks"] => double_forks(),
        ["respawns"] => respawns(),
        ["listens"] => listens(),
        ["leaves-child", code, gate] => leaves_child(code, gate),
        ["says-at-gate", gate, text] => {
            wait_at(gate);
            says(text);
            wait_at(gate);
        }
        ["starts-a-job", keeper, home, line] => starts_a_job(keeper, home, line),
        other => {
            eprintln!("fixture does not know {other:?}");
            exit("64");
        }
    }
}

/// A client whose jobs another program keeps.
fn starts_a_job(keeper: &str, home: &str, line: &str) {
    let outlast = outlast_job::Outlast::at(std::path::Path::new(home)).unwrap().kept_by(keeper);
    outlast.start(outlast_job::JobSpec::shell(line)).unwrap();
}

fn number(text: &str) -> u64 {
    text.parse().unwrap()
}

fn exit(code: &str) -> ! {
    #[expect(clippy::exit, reason = "the exit code is what is asked for")]
    std::process::exit(code.parse().unwrap())
}

fn says(text: &str) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{text}").unwrap();
    stdout.flush().unwrap();
}

fn sleep_for_ever() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

fn line() -> String {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

/// Numbered lines of 63 bytes and a newline, as fast as they are taken.
fn floods(bytes: u64) {
    let mut stdout = std::io::stdout().lock();
    let mut block = Vec::with_capacity(64 << 10);
    for i in 0..bytes / 64 {
        writeln!(block, "{i:063}").unwrap();
        if block.len() >= 32 << 10 {
            stdout.write_all(&block).unwrap();
            block.clear();
        }
    }
    stdout.write_all(&block).unwrap();
    stdout.flush().unwrap();
}

/// Numbered lines, with a pause after every so many.
fn counts(lines: u64, every: u64, pause_ms: u64) {
    let mut stdout = std::io::stdout().lock();
    for i in 0..lines {
        writeln!(stdout, "line {i}").unwrap();
        if every > 0 && i % every == every - 1 {
            stdout.flush().unwrap();
            std::thread::sleep(Duration::from_millis(pause_ms));
        }
    }
    stdout.flush().unwrap();
}

fn asks() {
    print!("What is your name? ");
    std::io::stdout().flush().unwrap();
    let name = line();
    says(&format!("Hello, {name}!"));
}

/// Reads all of its input, a little at a time, and says how much it was and a sum over it.
fn eats_stdin(chunk: u64, pause_ms: u64) {
    let mut stdin = std::io::stdin().lock();
    let mut bytes = vec![0; usize::try_from(chunk).unwrap()];
    let (mut count, mut sum) = (0_u64, 0_u64);
    loop {
        let n = stdin.read(&mut bytes).unwrap();
        if n == 0 {
            break;
        }
        count += n as u64;
        sum = bytes[..n].iter().fold(sum, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
        std::thread::sleep(Duration::from_millis(pause_ms));
    }
    says(&format!("ate {count} bytes, sum {sum}"));
}

/// Takes keys one by one, as a full-screen program does, and says what they were; `q` ends it.
fn raw_mode() {
    let mut modes = rustix::termios::tcgetattr(rustix::stdio::stdin()).unwrap();
    modes.make_raw();
    rustix::termios::tcsetattr(rustix::stdio::stdin(), rustix::termios::OptionalActions::Now, &modes)
        .unwrap();
    print!("ready\r\n");
    std::io::stdout().flush().unwrap();
    let mut byte = [0];
    while std::io::stdin().read(&mut byte).unwrap() == 1 && byte[0] != b'q' {
        print!("<{:02x}>\r\n", byte[0]);
        std::io::stdout().flush().unwrap();
    }
}

fn listens() -> ! {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    says(&format!("listening on {}", listener.local_addr().unwrap().port()));
    sleep_for_ever()
}

fn ignores_term() -> ! {
    signals::ignore(&[Signal::TERM, Signal::HUP, Signal::INT]);
    says(&format!("deaf {}", std::process::id()));
    sleep_for_ever()
}

/// Runs this program again, in a process of its own, until it says its first line.
fn child(verb: &str) -> std::process::Child {
    let program = std::env::current_exe().unwrap();
    let mut child = Command::new(program).arg(verb).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
    print!("{first}");
    child
}

/// One of each kind that gets away from a plain kill.
fn family() {
    let mut deaf = child("ignores-term");
    let mut apart = child("setsids");
    let mut daemon = child("double-forks");
    daemon.wait().unwrap();
    says("family complete");
    deaf.wait().unwrap();
    apart.wait().unwrap();
}

/// Leaves the session, and has a child there.
fn setsids() -> ! {
    let _ = rustix::process::setsid();
    let mut deaf = child("ignores-term");
    says(&format!("apart {}", std::process::id()));
    deaf.wait().unwrap();
    sleep_for_ever()
}

/// Forks twice and lets go of its parent, as daemons do.
fn double_forks() {
    if let Forked::Parent { .. } = fork().unwrap() {
        return;
    }
    let _ = rustix::process::setsid();
    if let Forked::Parent { .. } = fork().unwrap() {
        return;
    }
    ignores_term();
}

/// Never the same process for long: each forks the next and ends.
fn respawns() -> ! {
    signals::ignore(&[Signal::TERM, Signal::HUP]);
    for generation in 0_u64.. {
        if let Forked::Parent { .. } = fork().unwrap() {
            exit("0");
        }
        let _ = rustix::process::setsid();
        if generation == 20 {
            says("twenty generations");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    exit("0")
}

/// Ends at once, and leaves a child that says something when a gate (a FIFO) is opened.
fn leaves_child(code: &str, gate: &str) {
    let program = std::env::current_exe().unwrap();
    let child = Command::new(program).args(["says-at-gate", gate, "still here"]).spawn().unwrap();
    // Not waited for: that it is left behind is the point.
    std::mem::forget(child);
    says("leaving");
    exit(code);
}

/// Waits until somebody opens a FIFO for writing.
fn wait_at(gate: &str) {
    std::fs::read(gate).unwrap();
}
