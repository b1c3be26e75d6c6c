//! `outlast events`.

mod far;
mod fleet;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Instant;

use outlast_cli::EventsArgs;
use outlast_job::outbox::follow::Changes;
use outlast_job::outbox::reader::{self, Reader};
use outlast_job::outbox::{Entry, Outbox};
use outlast_job::{Failure, Outlast, session};
use outlast_policy::OrderKind;

use crate::ask::allowed;
use crate::human::{cut, width};
use crate::output::{DEADLINE, Output};
use crate::terminal;

pub(super) fn events(outlast: &Outlast, args: &EventsArgs, out: &mut Output) -> Result<i32, Failure> {
    let home = outlast.home();
    let session = args.session.clone().unwrap_or_else(session::current);
    let acks = args.ack.is_some() || args.ack_all;
    allowed(home, if acks { OrderKind::Ack { session: &session } } else { OrderKind::Events })?;
    if args.fleet {
        return fleet::events(outlast, args, out);
    }
    if let Some(host) = &args.on {
        return far::events(&outlast.on(host.parse()?)?, args, &session, out);
    }
    // Before the first look: nothing can come in between unnoticed.
    let changes = if args.follow { Some(Changes::new(home)?) } else { None };
    if args.all {
        let mut places = BTreeMap::new();
        return follow(changes.as_ref(), args, || everything(outlast, changes.as_ref(), &mut places, out));
    }
    let outbox = Outbox::open(home, &session)?;
    if acks {
        return acknowledge(&outbox, args, out);
    }
    let mut place = match &args.reader {
        Some(name) => Place::Named(Reader::open(&outbox, name, args.hold)?),
        None => Place::Number(args.since.unwrap_or_else(|| outbox.acked())),
    };
    if let Some(changes) = &changes {
        changes.add(&outbox)?;
    }
    follow(changes.as_ref(), args, || {
        let mut shown = false;
        for entry in outbox.settled(place.number()) {
            if !place.show(&entry, out)? {
                return Ok(false);
            }
            shown = true;
        }
        if let (true, Place::Named(reader)) = (shown, &place) {
            reader.sync();
        }
        Ok(true)
    })
}

/// Looks once, or again whenever something has changed, until the deadline or nobody reads any more.
fn follow(
    changes: Option<&Changes>,
    args: &EventsArgs,
    mut look: impl FnMut() -> Result<bool, Failure>,
) -> Result<i32, Failure> {
    let deadline = args.deadline.map(|limit| Instant::now() + limit);
    loop {
        if !look()? {
            return Ok(0);
        }
        let Some(changes) = changes else { return Ok(0) };
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
            Place::Named(reader) => reader.seen(),
        }
    }

    /// Shows one entry; false when nobody reads any more.
    fn show(&mut self, entry: &Entry, out: &mut Output) -> Result<bool, Failure> {
        match self {
            Place::Number(number) => {
                *number = entry.n;
                Ok(out.data(&line(entry, None, false, out.json)))
            }
            Place::Named(reader) => {
                let line = |again| line(entry, None, again, out.json);
                reader.hand_over(entry, rustix::stdio::stdout(), line)
            }
        }
    }
}

fn line(entry: &Entry, session: Option<&str>, again: bool, json: bool) -> Vec<u8> {
    let mut line = if json {
        let mut value = serde_json::to_value(entry).unwrap_or_default();
        if again {
            value["again"] = true.into();
        }
        if let Some(session) = session {
            value["session"] = session.into();
        }
        value.to_string()
    } else {
        let session = session.map(|session| format!("{session} ")).unwrap_or_default();
        let again = if again { "   (maybe told before)" } else { "" };
        // The name of one's own session tells a person nothing.
        let own = format!(" from session {}", session::current());
        if std::io::stdout().is_terminal() {
            let words = entry.line().replace(&own, " from this session");
            let long = format!("{session}{words}{again}");
            let columns = terminal::columns().unwrap_or(usize::MAX);
            if width(&long) <= columns {
                long
            } else {
                // What to type next is worth less than a line that is read at a glance.
                let words = words.strip_suffix(&entry.more).unwrap_or(&words).trim_end();
                cut(&format!("{session}{words}{again}"), columns)
            }
        } else {
            format!("{session}{}{again}", entry.line())
        }
    };
    line.push('\n');
    line.into_bytes()
}

fn acknowledge(outbox: &Outbox, args: &EventsArgs, out: &mut Output) -> Result<i32, Failure> {
    let number = match &args.reader {
        Some(name) => {
            let last = outbox.entries(0).last().map_or_else(|| outbox.acked(), |entry| entry.n);
            reader::acknowledge(outbox, name, args.ack.unwrap_or(last).min(last))?
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

/// What is new in all outboxes, those of sessions that have appeared meanwhile too.
fn everything(
    outlast: &Outlast,
    changes: Option<&Changes>,
    places: &mut BTreeMap<String, u64>,
    out: &mut Output,
) -> Result<bool, Failure> {
    let mut all: Vec<(Entry, String)> = Vec::new();
    for outbox in Outbox::all(outlast.home()) {
        if let Some(changes) = changes {
            changes.add(&outbox)?;
        }
        let session = outbox.session().to_owned();
        let place = places.entry(session.clone()).or_insert_with(|| outbox.acked());
        let entries = outbox.settled(*place);
        *place = entries.last().map_or(*place, |entry| entry.n);
        all.extend(entries.into_iter().map(|entry| (entry, session.clone())));
    }
    all.sort_by(|(a, of_a), (b, of_b)| (a.at, of_a, a.n).cmp(&(b.at, of_b, b.n)));
    Ok(all.iter().all(|(entry, session)| out.data(&line(entry, Some(session), false, out.json))))
}
