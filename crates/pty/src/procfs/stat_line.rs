//! The line of a process in `/proc/P/stat`.

use rustix::process::Pid;

use super::{Proc, State, number};

impl State {
    fn of(letter: u8) -> Self {
        match letter {
            b'R' => Self::Running,
            b'S' | b'I' => Self::Sleeping,
            b'D' => Self::Disk,
            b'T' => Self::Stopped,
            b't' => Self::Traced,
            b'Z' | b'X' | b'x' => Self::Dead,
            _ => Self::Other,
        }
    }
}

/// Parses a `stat` line. The name in it may contain blanks and brackets, so the last `)` ends it.
pub(super) fn parse_stat(line: &[u8]) -> Option<Proc> {
    let open = line.iter().position(|byte| *byte == b'(')?;
    let close = line.iter().rposition(|byte| *byte == b')')?;
    let pid = Pid::from_raw(number(line[..open].trim_ascii())?)?;
    let comm = String::from_utf8_lossy(line.get(open + 1..close)?).into_owned();
    let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = State::of(*fields.next()?.as_bytes().first()?);
    let mut int = || fields.next()?.parse::<i32>().ok();
    let (ppid, pgrp, session, tty_nr, tpgid) = (int()?, int()?, int()?, int()?, int()?);
    // Numbered as in proc(5): tpgid is field 8, num_threads 20, starttime 22.
    let threads = fields.nth(11)?.parse().ok()?;
    let start_time = fields.nth(1)?.parse().ok()?;
    let ppid = Pid::from_raw(ppid);
    Some(Proc { pid, ppid, pgrp, session, tty_nr, tpgid, start_time, state, threads, comm })
}
