//! Programs that are run as jobs by the fault tests.

use std::io::{Read, Write};
use std::time::Duration;

/// `xtask count LINES BURST PAUSE_US`: prints numbered lines, some at a time, and ends with code 7.
///
/// # Errors
/// Numbers that are none.
pub(crate) fn count(lines: &str, burst: &str, pause: &str) -> Result<(), String> {
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
    let (lines, burst, pause) = (number(lines)?, number(burst)?, Duration::from_micros(number(pause)?));
    let mut out = std::io::stdout().lock();
    for n in 0..lines {
        let written = writeln!(out, "line {n}");
        if n % burst == 0 {
            let _ = out.flush();
            std::thread::sleep(pause);
        }
        written.map_err(|error| error.to_string())?;
    }
    let _ = out.flush();
    leave(7)
}

/// `xtask soup SEED`: prints control sequences at random, questions to the terminal among them, looks at what
/// the terminal types back, and says how often that was a line's end or anything but a known answer. Ends
/// with 7.
///
/// # Errors
/// A seed that is not a number, or no terminal.
pub(crate) fn soup(seed: &str) -> Result<(), String> {
    let mut state: u64 = seed.parse().map_err(|error| format!("{seed}: {error}"))?;
    let mut below = |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    let terminal = rustix::stdio::stdin();
    let mut modes = rustix::termios::tcgetattr(terminal).map_err(|error| error.to_string())?;
    modes.make_raw();
    rustix::termios::tcsetattr(terminal, rustix::termios::OptionalActions::Now, &modes)
        .map_err(|error| error.to_string())?;
    let asks: &[&str] = &[
        "\x1b[6n",
        "\x1b[c",
        "\x1b[>c",
        "\x1b[5n",
        "\x1b[21t",
        "\x1b[18t",
        "\x1b]10;?\x07",
        "\x1b]52;c;?\x07",
        "\x1b[?2026$p",
        "\x1bP$qm\x1b\\",
        "\x1b[>q",
        "\x1b]0;\nrm -rf x\n\x07",
        "\x1b[0x",
        "\x05",
        "\x1bZ",
        "\x1b]4;1;?\x07",
        "\x1b[?u",
        "\x1b[20t",
        "\x1bP+q544e\x1b\\",
    ];
    let mut bytes = Vec::new();
    for _ in 0..400 {
        match below(5) {
            0 => bytes.extend_from_slice(asks[below(asks.len() as u64) as usize].as_bytes()),
            1 => bytes.extend_from_slice(
                format!("\x1b[{};{}{}", below(99_999), below(300), char::from(b'@' + below(62) as u8))
                    .as_bytes(),
            ),
            2 => bytes.extend_from_slice(format!("\x1b{}", char::from(b' ' + below(94) as u8)).as_bytes()),
            3 => bytes.push(below(256) as u8),
            _ => bytes.extend_from_slice(b"text "),
        }
    }
    // Back to the ground state, whatever was begun.
    bytes.extend_from_slice(b"\x18\x1bc\x1b[6n");
    let _ = rustix::io::write(rustix::stdio::stdout(), &bytes);
    let typed = typed_back();
    let harm = typed.iter().filter(|byte| matches!(byte, b'\r' | b'\n' | 3 | 4 | 26)).count();
    let told = format!("\r\nRUNS {harm} of {}\r\n", typed.len());
    let _ = rustix::io::write(rustix::stdio::stdout(), told.as_bytes());
    leave(7)
}

/// What comes within a quarter of a second of the last byte.
fn typed_back() -> Vec<u8> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut typed = Vec::new();
    let limit = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    loop {
        let stdin = rustix::stdio::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        if !poll(&mut fds, Some(&limit)).is_ok_and(|ready| ready > 0) || typed.len() > 1 << 16 {
            return typed;
        }
        let mut piece = [0; 4096];
        match rustix::io::read(rustix::stdio::stdin(), &mut piece) {
            Ok(n) if n > 0 => typed.extend_from_slice(&piece[..n]),
            _ => return typed,
        }
    }
}

/// `xtask knock SOCKET`: ends with 42 when the keeper there serves us.
///
/// # Errors
/// None that matter: who is not served has no error.
pub(crate) fn knock(socket: &str) -> Result<(), String> {
    let Ok(mut stream) = std::os::unix::net::UnixStream::connect(socket) else { return Ok(()) };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
    let _ = stream.write_all(b"{\"id\":1,\"verb\":\"status\"}\n");
    let mut text = Vec::new();
    let _ = stream.take(1 << 16).read_to_end(&mut text);
    if String::from_utf8_lossy(&text).contains("\"status\"") { leave(42) } else { Ok(()) }
}

#[expect(clippy::exit, reason = "the code is what is looked at")]
fn leave(code: i32) -> ! {
    std::process::exit(code)
}
