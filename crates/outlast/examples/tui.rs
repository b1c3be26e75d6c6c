//! Programs that do to a terminal what real ones do, for the tests: `tui VERB [ARGUMENT...]`.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a program for tests")]

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use outlast_pty::open::size_of;
use outlast_pty::signals::Signals;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;
use rustix::stdio::{stdin, stdout};
use rustix::termios::{OptionalActions, tcdrain, tcgetattr, tcsetattr};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["asks-terminal"] => asks_terminal(),
        ["shows-size"] => shows_size(),
        ["shows-keys", modes @ ..] => shows_keys(modes),
        ["bar", redraws] => bar(number(redraws)),
        ["block", lines, rounds] => block(number(lines), number(rounds)),
        ["installer"] => installer(),
        ["builder"] => builder(),
        ["spinner", turns] => spinner(number(turns)),
        ["texts"] => say(TEXTS),
        ["long-line", bytes] => long_line(number(bytes)),
        ["byte-by-byte"] => byte_by_byte(),
        ["redraws-screen", rounds] => redraws_screen(number(rounds)),
        ["full-screen", rest @ ..] => full_screen(rest),
        ["half-a-sequence"] => half_a_sequence(),
        ["wants", requests @ ..] => wants(requests),
        other => {
            eprintln!("tui does not know {other:?}");
            std::process::exit(64);
        }
    }
}

fn number(text: &str) -> usize {
    text.parse().unwrap()
}

fn say(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(bytes).unwrap();
    stdout.flush().unwrap();
}

fn raw() {
    let mut modes = tcgetattr(stdin()).unwrap();
    modes.make_raw();
    tcsetattr(stdin(), OptionalActions::Now, &modes).unwrap();
}

/// What can be read now, after waiting for some of it.
fn read_some() -> Vec<u8> {
    let mut bytes = [0; 4096];
    let n = std::io::stdin().lock().read(&mut bytes).unwrap();
    bytes[..n].to_vec()
}

/// A line for the reader: what a terminal sent, with nothing that acts.
fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\x1b', "ESC ").chars().flat_map(char::escape_default).collect()
}

/// Asks and waits for the answer, with a question behind it that every terminal answers.
fn ask(question: &str) -> Vec<u8> {
    const LAST: &[u8] = b"\x1b[0n";
    say(format!("{question}\x1b[5n").as_bytes());
    let mut answer = Vec::new();
    while !answer.ends_with(LAST) {
        answer.extend(read_some());
    }
    answer.truncate(answer.len() - LAST.len());
    answer
}

/// What programs ask a terminal when they start, and what must never be answered.
fn asks_terminal() {
    raw();
    let questions = [
        ("DA1", "\x1b[c"),
        ("DA2", "\x1b[>c"),
        ("CPR", "\x1b[3;7H\x1b[6n"),
        ("DECRQM-set", "\x1b[?2004h\x1b[?2004$p"),
        ("DECRQM-reset", "\x1b[?2004l\x1b[?2004$p"),
        ("DECRQM-unknown", "\x1b[?9999$p"),
        ("XTVERSION", "\x1b[>q"),
        ("OSC-4", "\x1b]4;1;?\x07"),
        ("OSC-10", "\x1b]10;?\x1b\\"),
        ("OSC-11", "\x1b]11;?\x07"),
        ("kitty", "\x1b[?u"),
        ("size", "\x1b[18t"),
        ("title-report", "\x1b]2;rm -rf\x07\x1b[21t"),
        ("clipboard", "\x1b]52;c;?\x07"),
        ("move-window", "\x1b[3;1;1t\x1b[8;10;10t\x1b[2t"),
        ("answerback", "\x05"),
    ];
    let answers: Vec<_> = questions.iter().map(|(name, question)| (name, ask(question))).collect();
    say(b"\x1b[H\x1b[2J");
    for (name, answer) in answers {
        say(format!("{name}: <{}>\r\n", shown(&answer)).as_bytes());
    }
    say(b"all asked\r\n");
}

/// Says its size, now and whenever it is told of a new one.
fn shows_size() {
    let signals = Signals::catch(&[Signal::WINCH]).unwrap();
    loop {
        let size = size_of(stdin()).unwrap();
        say(format!("size {}x{}\n", size.cols, size.rows).as_bytes());
        while signals.take().is_empty() {
            let _ = poll(&mut [PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)], None);
        }
    }
}

/// Says what each key sends, in the modes that are asked for; `q` ends it.
fn shows_keys(modes: &[&str]) {
    raw();
    for mode in modes {
        say(match *mode {
            "application" => b"\x1b[?1h\x1b=",
            "paste" => b"\x1b[?2004h",
            "other-keys" => b"\x1b[>4;2m",
            _ => b"",
        });
    }
    say(b"ready\r\n");
    loop {
        let keys = read_some();
        if keys == b"q" {
            return;
        }
        say(format!("<{}>\r\n", shown(&keys)).as_bytes());
    }
}

/// A bar that is drawn over itself with CR, as wget and pip do.
fn bar(redraws: usize) {
    say(b"Downloading\n");
    for i in 1..=redraws {
        let done = i * 30 / redraws;
        let bar = format!(
            "\r\x1b[32m{}\x1b[0m{} {:3}%",
            "\u{2588}".repeat(done),
            " ".repeat(30 - done),
            i * 100 / redraws
        );
        say(bar.as_bytes());
    }
    say(b"\nSaved\n");
}

/// Lines that are redrawn as a block by moving the cursor up, as docker pull does.
fn block(lines: usize, rounds: usize) {
    say(b"Pulling from library/thing\n");
    for line in 0..lines {
        say(format!("layer{line}: Waiting\n").as_bytes());
    }
    for round in 1..=rounds {
        for line in 0..lines {
            let state = if round == rounds {
                "Pull complete".to_owned()
            } else {
                format!("Downloading {:3}%", round * 100 / rounds)
            };
            let up = lines - line;
            say(format!("\x1b[{up}A\r\x1b[2Klayer{line}: {state}\r\x1b[{up}B").as_bytes());
        }
    }
    say(b"Status: Downloaded\n");
}

/// Questions, one of them without echo, as installers have them.
fn installer() {
    say(b"\x1b[1mInstaller\x1b[0m\nInstall to [/opt/thing]? ");
    let place = String::from_utf8(read_some()).unwrap();
    say(format!("Installing to {}\n", place.trim_end()).as_bytes());
    spinner(40);
    say(b"Password: ");
    let before = tcgetattr(stdin()).unwrap();
    let mut silent = before.clone();
    silent.local_modes -= rustix::termios::LocalModes::ECHO;
    tcsetattr(stdin(), OptionalActions::Now, &silent).unwrap();
    read_some();
    tcsetattr(stdin(), OptionalActions::Now, &before).unwrap();
    say(b"\nContinue? [y/N] ");
    read_some();
    say(b"Done.\n");
}

/// A status line at the bottom, with lines that come above it, as cargo does.
fn builder() {
    for (i, name) in
        ["memchr v2.8.0", "libc v0.2.1", "regex v1.12.0", "thing v0.1.0 (/src/thing)"].iter().enumerate()
    {
        say(format!("\x1b[36m\x1b[1m    Building\x1b[0m [{:<20}] {i}/4: {name}\r", "=".repeat(i * 5))
            .as_bytes());
        say(format!("\x1b[K\x1b[32m\x1b[1m   Compiling\x1b[0m {name}\n").as_bytes());
    }
    say(b"\x1b[33m\x1b[1mwarning\x1b[0m\x1b[1m: unused variable: `x`\x1b[0m\n");
    say(b"\x1b[34m\x1b[1m --> \x1b[0msrc/main.rs:2:9\n");
    say(b"\x1b[36m\x1b[1m    Building\x1b[0m [====================] 4/4\r\x1b[K");
    say(b"\x1b[32m\x1b[1m    Finished\x1b[0m `dev` profile [unoptimized] target(s) in 0.42s\n");
}

/// A spinner that erases its line each time, as npm's does.
fn spinner(turns: usize) {
    say(b"\x1b[?25l");
    for (_, frame) in (0..turns).zip("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏".chars().cycle()) {
        say(format!("\x1b[2K\x1b[1G\x1b[36m{frame}\x1b[0m installing").as_bytes());
    }
    say("\x1b[2K\x1b[1G\x1b[?25h✔ added 12 packages\n".as_bytes());
}

/// Wide and combining characters, a tab, backspaces, erased and inserted text, and bytes that are not text.
const TEXTS: &[u8] = b"wide \xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e \xf0\x9f\x98\x80|\n\
combining e\xcc\x81 n\xcc\x83|\n\
a\tb\tc\n\
wrongg\x08 \x08!\n\
keep this not this\x1b[9D\x1b[K\n\
inert\x1b[3D\x1b[@s\x1b[3C|\n\
xtop\x1b[4D\x1b[P\x1b[3C|\n\
bad \xff\xc3( utf-8\n\
\x1b]0;a title\x07titled\n";

fn long_line(bytes: usize) {
    let piece = vec![b'x'; 1 << 16];
    let mut left = bytes;
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(b"<").unwrap();
    while left > 0 {
        let n = left.min(piece.len());
        stdout.write_all(&piece[..n]).unwrap();
        left -= n;
    }
    stdout.write_all(b">\nafter\n").unwrap();
    stdout.flush().unwrap();
}

/// Every byte on its own, so that sequences and characters come in pieces.
fn byte_by_byte() {
    let text = "\x1b[1;31mred\x1b[0m \u{65e5}\u{672c} \x1b]0;title\x1b\\e\u{301}\u{1f600} \x1b[38;2;1;2;3mrgb\x1b[0m\rR\x1b[K\n\
                \x1b[4mlast\x1b[0m line\n";
    for byte in text.bytes() {
        say(&[byte]);
        tcdrain(stdout()).unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Clears and draws a page again and again, as watch does.
fn redraws_screen(rounds: usize) {
    say(b"before\n");
    for round in 0..rounds {
        say(format!("\x1b[H\x1b[2JEvery 2.0s: date\n\nround {round}\n").as_bytes());
    }
}

/// A full-screen program: takes the other screen, shows each key, and leaves with `q`.
fn full_screen(says: &[&str]) {
    for line in says {
        say(format!("{line}\n").as_bytes());
    }
    let before = tcgetattr(stdin()).unwrap();
    raw();
    say(b"\x1b[?1049h\x1b[?1h\x1b[2J\x1b[H\x1b[7m full screen \x1b[0m\x1b[5;3H");
    loop {
        let keys = read_some();
        if keys.contains(&b'q') {
            break;
        }
        say(format!("<{}>", shown(&keys)).as_bytes());
    }
    say(b"\x1b[?1l\x1b[?1049l");
    tcsetattr(stdin(), OptionalActions::Now, &before).unwrap();
    say(b"left\n");
}

/// Stops in the middle of a sequence until a key comes.
fn half_a_sequence() {
    raw();
    say(b"plain \x1b[1;3");
    read_some();
    say(b"1mred\x1b[0m done\r\n");
    read_some();
}

/// Asks for what output must never get, then says so.
fn wants(requests: &[&str]) {
    for request in requests {
        say(match *request {
            "clipboard" => b"\x1b]52;c;c3RvbGVu\x07",
            "title" => b"\x1b]2;a title\x07",
            "link" => b"\x1b]8;;http://example.com\x07link\x1b]8;;\x07",
            "window" => b"\x1b[8;5;5t\x1b[9;1t",
            "print" => b"\x1b[5i",
            _ => b"",
        });
    }
    say(b"asked for\n");
    let _ = read_some();
}
