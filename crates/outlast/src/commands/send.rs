//! `outlast send`.

use std::io::Read;
use std::time::Duration;

use outlast_job::client::read::MAX_OUTPUT;
use outlast_job::wire::{INPUT_PIECE, Sent, base64};
use outlast_job::{Failure, Job, Kind, Outlast, Reason, Send, Wait};

use crate::answer::Answer;
use crate::ask::AtTheDoor;
use crate::cli::SendArgs;
use crate::output::{DEADLINE, Output};

pub(super) fn send(outlast: &Outlast, args: &SendArgs, out: &mut Output) -> Result<i32, Failure> {
    let job = outlast.job(&args.job)?;
    if args.text.is_none() && args.keys.is_empty() && !args.eof && !args.stdin {
        return Err(Failure::usage("there is nothing to type")
            .hint("give a text, --key KEY, --eof or --stdin; for example: outlast send 3 yes"));
    }
    // Before any of the standard input is typed.
    outlast_job::keys::parse(&args.keys)?;
    let wait = Wait { exit: true, awaiting_input: true, patterns: args.pattern.clone(), ..Wait::default() };
    wait.check()?;
    let send = Send {
        text: args.text.clone().unwrap_or_default(),
        newline: args.text.is_some() && !args.no_newline,
        keys: args.keys.clone(),
        eof: args.eof,
        paste: (args.paste || args.no_paste).then_some(args.paste),
        ..Send::default()
    };
    let door = AtTheDoor::open(outlast.home())?;
    let streamed = if args.stdin { from_stdin(&job, &door)? } else { None };
    let send = judged(&job, &door, send)?;
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
                "handle": job.handle().0, "offset": sent.offset, "taken": sent.taken, "queued": sent.queued
            }));
        }
        return Ok(0);
    }
    let default = if args.pattern.is_empty() { ANSWER } else { PATTERN };
    let waited = job.wait(&wait.from(sent.offset), Some(args.deadline.unwrap_or(default)))?;
    let info = job.info_to_show()?;
    let answer = Answer::of(&job, &info).waited(&waited).with_output(&job, sent.offset, MAX_OUTPUT)?;
    if out.json {
        out.value(&answer);
    } else {
        out.data(answer.output.unwrap_or_default().as_bytes());
    }
    // Without a pattern there is nothing that could have failed to come.
    Ok(if waited.reason == Reason::Deadline && !args.pattern.is_empty() { DEADLINE } else { 0 })
}

/// What is to be typed, if the policy lets it.
fn judged(job: &Job, door: &AtTheDoor, send: Send) -> Result<Send, Failure> {
    let (judged, after) = door.gate().judge_send(door.session(), job, &send)?;
    door.pass(judged)?;
    Ok(Send { after, ..send })
}

/// How long an answer may take, unless told otherwise.
const ANSWER: Duration = Duration::from_secs(3);
/// How long a pattern may take to come, unless told otherwise.
const PATTERN: Duration = Duration::from_secs(30);

/// Input of any size: the keeper answers each piece when it has room for the next. None when there was nothing.
fn from_stdin(job: &Job, door: &AtTheDoor) -> Result<Option<Sent>, Failure> {
    let mut stdin = std::io::stdin().lock();
    let mut piece = vec![0; INPUT_PIECE];
    let mut total: Option<Sent> = None;
    let minded = door.gate().minds_typing(job)?;
    loop {
        let n =
            stdin.read(&mut piece).map_err(|error| Failure::system("standard input can't be read", error))?;
        if n == 0 {
            return Ok(total);
        }
        let send = Send { bytes: base64::encode(&piece[..n]), ..Send::default() };
        let send = if minded { judged(job, door, send)? } else { send };
        let sent = job.send(&send, None)?;
        let before = total.map_or(Sent { taken: 0, ..sent }, |total| total);
        total = Some(Sent { taken: before.taken + sent.taken, queued: sent.queued, ..before });
    }
}
