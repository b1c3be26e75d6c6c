//! `outlast send`.

use std::io::Read;
use std::time::Duration;

use outlast_cli::SendArgs;
use outlast_job::client::MAX_OUTPUT;
use outlast_job::wire::{INPUT_PIECE, Sent};
use outlast_job::{Condition, Failure, Job, Kind, Outlast, Reason, Send, Wait, check_wait};
use outlast_policy::{OrderKind, TypedInput};

use crate::answer;
use crate::ask::CliGate;
use crate::output::{DEADLINE, Output};

pub(super) fn send(outlast: &Outlast, args: &SendArgs, out: &mut Output) -> Result<i32, Failure> {
    let job = outlast.expecting([answer::RECORD]).job(&args.job)?;
    if args.text.is_none() && args.keys.is_empty() && !args.eof && !args.stdin {
        return Err(Failure::usage("there is nothing to type")
            .hint("give a text, --key KEY, --eof or --stdin; for example: outlast send 3 yes"));
    }
    let mut until = vec![Condition::Exit, Condition::AwaitingInput];
    until.extend(args.pattern.iter().cloned().map(Condition::Pattern));
    let wait = Wait::of(until);
    check_wait(&wait)?;
    // A wrong key is told before any of the standard input is typed.
    let input = TypedInput::new(Send {
        text: args.text.clone().unwrap_or_default(),
        newline: args.text.is_some() && !args.no_newline,
        keys: args.keys.clone(),
        eof: args.eof,
        paste: (args.paste || args.no_paste).then_some(args.paste),
        ..Send::default()
    })?;
    let gate = CliGate::open(outlast.home())?;
    let streamed = if args.stdin { from_stdin(&job, &gate)? } else { None };
    let pass = gate.pass(OrderKind::Send { job: &job, input: &input })?;
    let send = input.passed(&pass);
    let sent = match streamed {
        None => job.send(&send, Some(args.patience))?,
        Some(streamed) if args.keys.is_empty() && !args.eof => streamed,
        Some(streamed) => match job.send(&send, Some(args.patience)) {
            Ok(last) => Sent { taken: streamed.taken + last.taken, queued: last.queued, ..streamed },
            // It has read all it wanted and ended: there is no input left to end.
            Err(failure) if failure.kind == Kind::NotRunning && args.keys.is_empty() => streamed,
            Err(failure) => return Err(failure),
        },
    };
    if let Some(left) = sent.left {
        out.talk(&format!("the last {left} bytes were not typed: the program had ended"));
    }
    if sent.queued > 0 {
        out.talk(&format!("{} bytes wait until the program reads them", sent.queued));
    }
    if args.no_wait {
        if out.json {
            out.value(&serde_json::json!({
                "handle": job.handle(), "offset": sent.offset, "taken": sent.taken, "queued": sent.queued
            }));
        }
        return Ok(0);
    }
    let default = if args.pattern.is_empty() { ANSWER } else { PATTERN };
    job.expect(answer::waited_asks(sent.offset, MAX_OUTPUT));
    let waited = job.wait(&wait.from(sent.offset), Some(args.deadline.unwrap_or(default)))?;
    let info = job.info_to_show()?;
    let answer = answer::waited((&job, &info), &waited, (sent.offset, MAX_OUTPUT))?;
    if out.json {
        out.value(&answer);
    } else {
        out.data(answer.output.unwrap_or_default().as_bytes());
    }
    // Without a pattern there is nothing that could have failed to come.
    Ok(if waited.reason == Reason::Deadline && !args.pattern.is_empty() { DEADLINE } else { 0 })
}

/// How long an answer may take, unless told otherwise.
const ANSWER: Duration = Duration::from_secs(3);
/// How long a pattern may take to come, unless told otherwise.
const PATTERN: Duration = Duration::from_secs(30);

/// Input of any size: the keeper answers each piece when it has room for the next. None when there was
/// nothing.
fn from_stdin(job: &Job, gate: &CliGate) -> Result<Option<Sent>, Failure> {
    let mut stdin = std::io::stdin().lock();
    let mut piece = vec![0; INPUT_PIECE];
    let mut total: Option<Sent> = None;
    let checked = gate.checks_input(job)?;
    loop {
        let n =
            stdin.read(&mut piece).map_err(|error| Failure::system("standard input can't be read", error))?;
        if n == 0 {
            return Ok(total);
        }
        let input = TypedInput::bytes(&piece[..n]);
        let sent = if checked {
            let pass = gate.pass(OrderKind::Send { job, input: &input })?;
            job.send(&input.passed(&pass), None)?
        } else {
            job.send(input.as_given(), None)?
        };
        let before = total.map_or(Sent { taken: 0, ..sent }, |total| total);
        total = Some(Sent { taken: before.taken + sent.taken, queued: sent.queued, ..before });
    }
}
