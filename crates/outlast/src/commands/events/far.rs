//! Events of another machine: a session's outbox there, looked at again whenever that machine says that it has changed. After a cut
//! the link asks again by itself, and events have numbers: none is lost or shown twice.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use outlast_cli::EventsArgs;
use outlast_job::outbox::Entry;
use outlast_job::request::{Ack, Answer, Request, SessionEvents, Subscription};
use outlast_job::{Failure, Kind, Outlast};

use crate::output::{DEADLINE, Output};

/// How long an answer to an acknowledgement may take; the link itself gives up sooner.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

pub(super) fn events(
    outlast: &Outlast,
    args: &EventsArgs,
    session: &str,
    out: &mut Output,
) -> Result<i32, Failure> {
    if args.ack.is_some() || args.ack_all {
        return acknowledge(outlast, args, session, out);
    }
    let (tell, changed) = mpsc::channel();
    let to = Subscription::Session { session: session.to_owned() };
    // Before the first look: nothing can come in between unnoticed.
    let _subscribed = match args.follow {
        true => Some(outlast.subscribe(&to, move |_| tell.send(()).is_ok())?),
        false => None,
    };
    let deadline = args.deadline.map(|limit| Instant::now() + limit);
    let mut after = args.since;
    loop {
        for value in outlast.events(SessionEvents { session: session.to_owned(), after })? {
            let number = value.get("n").and_then(serde_json::Value::as_u64);
            after = after.max(number);
            if !show(named_here(value), out) {
                return Ok(0);
            }
        }
        if !args.follow {
            return Ok(0);
        }
        let heard = match deadline {
            None => changed.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(at) => changed.recv_timeout(at.saturating_duration_since(Instant::now())),
        };
        match heard {
            // Several changes are one reason to look.
            Ok(()) => while changed.try_recv().is_ok() {},
            Err(RecvTimeoutError::Timeout) => return Ok(DEADLINE),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::new(Kind::Unreachable, "there is nobody to listen to any more"));
            }
        }
    }
}

/// The call that reads more, as it reads here: the job with its host.
fn named_here(mut value: serde_json::Value) -> serde_json::Value {
    let job = value.get("job").and_then(serde_json::Value::as_str).map(ToOwned::to_owned);
    if let Some((job, (_, number))) = job.as_deref().and_then(|job| Some((job, job.split_once('/')?)))
        && let Some(more) = value.get("more").and_then(serde_json::Value::as_str)
    {
        let words: Vec<&str> = more.split(' ').map(|word| if word == number { job } else { word }).collect();
        value["more"] = words.join(" ").into();
    }
    value
}

fn show(value: serde_json::Value, out: &mut Output) -> bool {
    if out.json {
        return out.value(&value);
    }
    match serde_json::from_value::<Entry>(value.clone()) {
        Ok(entry) => out.line(&entry.line()),
        Err(_) => out.line(&value.to_string()),
    }
}

fn acknowledge(
    outlast: &Outlast,
    args: &EventsArgs,
    session: &str,
    out: &mut Output,
) -> Result<i32, Failure> {
    let ack = Ack { session: session.to_owned(), up_to: args.ack, reader: args.reader.clone() };
    let (tell, answer) = mpsc::channel();
    let _asked = outlast.begin(Request::Ack(ack), Box::new(move |answer| drop(tell.send(answer))))?;
    let late = |_| Failure::new(Kind::Unreachable, "no answer came");
    let number = match answer.recv_timeout(ANSWER_TIMEOUT).map_err(late)?? {
        Answer::Acknowledged(number) => number,
        other => return Err(Failure::new(Kind::Keeper, format!("unexpected answer: {other:?}"))),
    };
    if out.json {
        out.value(&serde_json::json!({ "session": session, "acked": number }));
    } else {
        out.line(&format!("everything up to {number} is acknowledged"));
    }
    Ok(0)
}
