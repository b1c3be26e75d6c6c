//! `outlast events`.

use std::time::Instant;

use outlast_job::outbox::follow::Changes;
use outlast_job::outbox::reader::Reader;
use outlast_job::outbox::{Entry, Outbox};
use outlast_job::{Failure, Outlast, session};

use crate::cli::EventsArgs;
use crate::output::{DEADLINE, Output};

pub(super) fn events(outlast: &Outlast, args: &EventsArgs, out: &mut Output) -> Result<i32, Failure> {
    let home = outlast.home();
    if args.all {
        let sessions = Outbox::sessions(home);
        let boxes: Vec<Outbox> =
            sessions.iter().map(|session| Outbox::open(home, session)).collect::<Result<_, _>>()?;
        return everything(&boxes, args, out);
    }
    let session = args.session.clone().unwrap_or_else(session::current);
    let outbox = Outbox::open(home, &session)?;
    if args.ack.is_some() || args.ack_all {
        return acknowledge(&outbox, args, out);
    }
    let mut place = match &args.reader {
        Some(name) => Place::Named(Reader::open(&outbox, name)?),
        None => Place::Number(args.since.unwrap_or_else(|| outbox.acked())),
    };
    let deadline = args.deadline.map(|limit| Instant::now() + limit);
    // Before the first look: nothing can come in between unnoticed.
    let changes = if args.follow { Some(Changes::of(&[&outbox])?) } else { None };
    loop {
        for entry in outbox.entries(place.number()) {
            if !place.show(&entry, out)? {
                return Ok(0);
            }
        }
        let Some(changes) = &changes else { return Ok(0) };
        if deadline.is_some_and(|at| Instant::now() >= at) {
            return Ok(DEADLINE);
        }
        changes.wait(deadline);
    }
}

/// How far a reader has come: in its own head, or on the disk.
enum Place {
    Number(u64),
    Named(Reader),
}

impl Place {
    fn number(&self) -> u64 {
        match self {
            Place::Number(number) => *number,
            Place::Named(reader) => reader.done(),
        }
    }

    /// Shows one entry; false when nobody reads any more.
    fn show(&mut self, entry: &Entry, out: &mut Output) -> Result<bool, Failure> {
        match self {
            Place::Number(number) => {
                *number = entry.n;
                Ok(print(entry, None, false, out))
            }
            Place::Named(reader) => reader.hand_over(entry, |again| print(entry, None, again, out)),
        }
    }
}

fn print(entry: &Entry, session: Option<&str>, again: bool, out: &mut Output) -> bool {
    if out.json {
        let mut value = serde_json::to_value(entry).unwrap_or_default();
        if again {
            value["again"] = true.into();
        }
        if let Some(session) = session {
            value["session"] = session.into();
        }
        return out.value(&value);
    }
    let session = session.map(|session| format!("{session} ")).unwrap_or_default();
    let again = if again { "   (maybe told before)" } else { "" };
    out.line(&format!("{session}{}{again}", entry.line()))
}

fn acknowledge(outbox: &Outbox, args: &EventsArgs, out: &mut Output) -> Result<i32, Failure> {
    let number = match &args.reader {
        Some(name) => {
            let last = outbox.entries(0).last().map_or_else(|| outbox.acked(), |entry| entry.n);
            let mut reader = Reader::open(outbox, name)?;
            reader.ack(args.ack.unwrap_or(last).min(last))?;
            reader.done()
        }
        None => outbox.ack(args.ack)?,
    };
    if out.json {
        out.value(&serde_json::json!({ "session": outbox.session(), "acked": number }));
    } else {
        out.line(&format!("everything up to {number} is acknowledged"));
    }
    Ok(0)
}

fn everything(boxes: &[Outbox], args: &EventsArgs, out: &mut Output) -> Result<i32, Failure> {
    let deadline = args.deadline.map(|limit| Instant::now() + limit);
    let borrowed: Vec<&Outbox> = boxes.iter().collect();
    let changes = if args.follow { Some(Changes::of(&borrowed)?) } else { None };
    let mut places: Vec<u64> = boxes.iter().map(Outbox::acked).collect();
    loop {
        let mut all: Vec<(usize, Entry)> = Vec::new();
        for (i, outbox) in boxes.iter().enumerate() {
            all.extend(outbox.entries(places[i]).into_iter().map(|entry| (i, entry)));
        }
        all.sort_by_key(|(i, entry)| (entry.at, *i, entry.n));
        for (i, entry) in &all {
            places[*i] = places[*i].max(entry.n);
            if !print(entry, Some(boxes[*i].session()), false, out) {
                return Ok(0);
            }
        }
        let Some(changes) = &changes else { return Ok(0) };
        if deadline.is_some_and(|at| Instant::now() >= at) {
            return Ok(DEADLINE);
        }
        changes.wait(deadline);
    }
}
