//! `outlast secret`.

use std::io::{IsTerminal, Read};

use outlast_cli::{SecretArgs, SecretForgetArgs, SecretListArgs, SecretVerb};
use outlast_job::clock::now_ms;
use outlast_job::{Failure, Kind, Outlast, secrets};
use outlast_policy::{Gate, OrderKind};

use crate::ask::allowed;
use crate::output::Output;
use crate::terminal::{self, Unseen};

/// The longest secret: more than a terminal takes in one line.
const MAX_SECRET: usize = 64 << 10;

pub(super) fn secret(outlast: &Outlast, args: &SecretArgs, out: &mut Output) -> Result<i32, Failure> {
    match &args.verb {
        Some(SecretVerb::List(SecretListArgs {})) => return list(outlast, out),
        Some(SecretVerb::Forget(forget)) => return self::forget(outlast, forget, out),
        None => {}
    }
    let job = outlast.job(args.job.as_deref().unwrap_or_default())?;
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
        return Err(Failure::usage("standard input is not a terminal")
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

/// What all jobs know, without its values.
fn list(outlast: &Outlast, out: &mut Output) -> Result<i32, Failure> {
    allowed(outlast.home(), OrderKind::List)?;
    let known = secrets::list(outlast.home().path())?;
    if out.json {
        out.value(&serde_json::json!({ "secrets": known }));
        return Ok(0);
    }
    if known.is_empty() {
        out.line("no secret is known to all jobs");
    }
    let days = |ms: u64| ms / (24 * 60 * 60 * 1000);
    for secret in known {
        let (given, left) =
            (days(now_ms().saturating_sub(secret.given_at)), days(secret.until.saturating_sub(now_ms())));
        out.line(&format!(
            "{}  {}, {} bytes, last given {given} days ago, forgotten in {left} days",
            secret.id, secret.from, secret.bytes
        ));
    }
    Ok(0)
}

fn forget(outlast: &Outlast, args: &SecretForgetArgs, out: &mut Output) -> Result<i32, Failure> {
    if Gate::is_in_a_job() {
        let said = "a process inside a job can't let secrets be shown";
        return Err(Failure::new(Kind::Denied, said).hint("do it in a terminal of your own"));
    }
    let home = outlast.home().path();
    let ids = (!args.all).then_some(args.ids.as_slice());
    let known = secrets::list(home)?;
    let is_known = |id: &String| known.iter().any(|secret| secret.id == *id);
    if let Some(unknown) = args.ids.iter().find(|id| !is_known(id)) {
        return Err(Failure::usage(format!("no secret {unknown} is known"))
            .hint("see which there are: outlast secret list"));
    }
    let forgotten = secrets::forget(home, ids)?;
    if out.json {
        out.value(&serde_json::json!({ "forgotten": forgotten }));
    } else {
        out.talk(&format!(
            "forgotten: {}; what jobs were given themselves, they still hide",
            forgotten.len()
        ));
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
