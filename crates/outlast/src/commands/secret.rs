//! `outlast secret`.

use std::io::{IsTerminal, Read};

use outlast_cli::SecretArgs;
use outlast_job::{Failure, Kind, Outlast};
use outlast_policy::OrderKind;

use crate::ask::allowed;
use crate::output::Output;
use crate::terminal::{self, Unseen};

/// The longest secret: more than a terminal takes in one line.
const MAX_SECRET: usize = 64 << 10;

pub(super) fn secret(outlast: &Outlast, args: &SecretArgs, out: &mut Output) -> Result<i32, Failure> {
    let job = outlast.job(&args.job)?;
    allowed(outlast.home(), OrderKind::Secret)?;
    // No core file, and nobody looks into our memory.
    outlast_job::wiped::keep_memory_private();
    let handle = job.handle();
    let value = if args.stdin {
        from_stdin()?
    } else if std::io::stdin().is_terminal() {
        let asked = job.status()?.and_then(|status| status.awaiting_input);
        let asked =
            asked.map(|awaiting| awaiting.prompt.trim().to_owned()).filter(|prompt| !prompt.is_empty());
        let asked = asked.map(|prompt| format!(" asks {prompt:?};")).unwrap_or_default();
        from_person(&format!("outlast: job {handle}{asked} type the secret (nothing is shown): "))?
    } else {
        return Err(Failure::usage("standard input is no terminal")
            .hint("run it in your own terminal; or, if the secret comes from a program: PROGRAM | outlast secret JOB --stdin"));
    };
    let sent = job.send_secret(&value, args.force)?;
    if out.json {
        out.value(&serde_json::json!({
            "handle": handle, "typed": true, "offset": sent.offset, "queued": sent.queued
        }));
    } else if sent.queued > 0 {
        out.talk(&format!("outlast: it is typed; job {handle} has not read it yet"));
    } else {
        out.talk(&format!("outlast: job {handle} has it; see how it goes on: outlast screen {handle}"));
    }
    Ok(0)
}

/// One line, or all of it if there is none.
fn from_stdin() -> Result<Unseen, Failure> {
    let mut value = Unseen::with_room(MAX_SECRET);
    let mut stdin = std::io::stdin().lock();
    let mut byte = [0];
    while value.len() < MAX_SECRET {
        let n =
            stdin.read(&mut byte).map_err(|error| Failure::system("standard input can't be read", error))?;
        if n == 0 || byte[0] == b'\n' {
            break;
        }
        value.push(byte[0]);
    }
    if value.last() == Some(&b'\r') {
        value.pop();
    }
    Ok(value)
}

fn from_person(question: &str) -> Result<Unseen, Failure> {
    terminal::ask_unseen(question, MAX_SECRET)
        .ok_or_else(|| Failure::new(Kind::Denied, "nothing was typed").hint("the job still waits for it"))
}
