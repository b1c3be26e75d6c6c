//! `outlast events --fleet`: events of all hosts, each once for a reader with a name.

use std::time::Instant;

use outlast_cli::EventsArgs;
use outlast_fleet::broker::Broker;
use outlast_fleet::follow::{FleetEvent, Follower, Reader, Seen};
use outlast_job::request::SessionEvents;
use outlast_job::{Failure, Outlast};

use crate::commands::fleet::broker;
use crate::output::{DEADLINE, Output};

/// How often a broker that does not answer is asked again before the reader gives up; it waits a second in between.
const MAX_TRIES: u32 = 120;

pub(super) fn events(outlast: &Outlast, args: &EventsArgs, out: &mut Output) -> Result<i32, Failure> {
    let broker = broker()?;
    let mut reader = Reader::open(outlast.home().path(), args.reader.as_deref())?;
    let deadline = args.deadline.map(|limit| Instant::now() + limit);
    let mut follower = broker.wait(Follower::begin(&broker, reader.marks.stream, None))?;
    let mut tries = 0;
    loop {
        // Without --follow, only what is there.
        let until = if args.follow { deadline } else { Some(Instant::now()) };
        let found = match broker.wait(follower.next(until)) {
            Ok(found) => found,
            Err(failure) if tries < MAX_TRIES && args.follow => {
                tries += 1;
                std::thread::sleep(std::time::Duration::from_secs(1));
                if let Ok(again) = broker.wait(Follower::begin(&broker, reader.marks.stream, None)) {
                    follower = again;
                } else if tries == MAX_TRIES {
                    return Err(failure);
                }
                continue;
            }
            Err(failure) => return Err(failure),
        };
        tries = 0;
        let nothing = found.is_empty();
        let mut telling = Telling { outlast, broker: &broker, session: args.session.as_deref(), out };
        if !telling.tell(&mut reader, found)? {
            return Ok(0);
        }
        if nothing && !args.follow {
            return Ok(0);
        }
        if deadline.is_some_and(|at| Instant::now() >= at) {
            return Ok(DEADLINE);
        }
    }
}

struct Telling<'a> {
    outlast: &'a Outlast,
    broker: &'a Broker,
    session: Option<&'a str>,
    out: &'a mut Output,
}

impl Telling<'_> {
    /// Tells what is new; false when nobody reads any more.
    fn tell(&mut self, reader: &mut Reader, found: Vec<(u64, FleetEvent)>) -> Result<bool, Failure> {
        if found.is_empty() {
            return Ok(true);
        }
        let mut after = reader.marks.clone();
        for (_, event) in &found {
            after.note(event);
        }
        // Should we be killed before the lines are out and noted, the next one says of them that they may come again.
        reader.doubt(after)?;
        for (number, event) in found {
            if !self.one(reader, &event)? {
                return Ok(false);
            }
            reader.marks.stream = reader.marks.stream.max(number);
        }
        reader.keep()?;
        Ok(true)
    }

    fn one(&mut self, reader: &mut Reader, event: &FleetEvent) -> Result<bool, Failure> {
        match reader.marks.see(event) {
            Seen::Before => return Ok(true),
            Seen::Next => {}
            Seen::Gap { from, to } => {
                let missing = self.fetch(event, from, to);
                let found = missing.len() as u64;
                for one in &missing {
                    if !self.line(reader, one, false) {
                        return Ok(false);
                    }
                }
                if found < to - from + 1 && !self.gap(event, from, to, found) {
                    return Ok(false);
                }
            }
        }
        let again = reader.is_doubtful(event);
        let goes_on = self.line(reader, event, again);
        Ok(goes_on)
    }

    /// What the broker does not have, from the host itself.
    fn fetch(&self, event: &FleetEvent, from: u64, to: u64) -> Vec<FleetEvent> {
        let _ = self.broker;
        let ask = || -> Result<Vec<serde_json::Value>, Failure> {
            let host = self.outlast.on(event.host.parse()?)?;
            host.events(SessionEvents { session: event.session.clone(), after: Some(from - 1) })
        };
        let number = |entry: &serde_json::Value| entry.get("n").and_then(serde_json::Value::as_u64);
        ask()
            .unwrap_or_default()
            .into_iter()
            .filter_map(|entry| Some((number(&entry)?, entry)))
            .filter(|(n, _)| (from..=to).contains(n))
            .map(|(n, entry)| FleetEvent { n, event: entry, ..event.clone() })
            .collect()
    }

    fn line(&mut self, reader: &mut Reader, event: &FleetEvent, again: bool) -> bool {
        reader.marks.note(event);
        if self.session.is_some_and(|session| session != event.session) {
            return true;
        }
        if self.out.json {
            let mut value = serde_json::to_value(event).unwrap_or_default();
            if again {
                value["again"] = true.into();
            }
            return self.out.value(&value);
        }
        let text = |key: &str| match event.event.get(key) {
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        };
        let again = if again { "   (maybe told before)" } else { "" };
        let job = text("job");
        let job = job.rsplit('/').next().unwrap_or_default();
        let said = format!(
            "{} {} {}/{job} {}: {}{again}",
            event.host,
            event.n,
            event.host,
            text("event"),
            text("text")
        );
        self.out.line(&said)
    }

    fn gap(&mut self, event: &FleetEvent, from: u64, to: u64, found: u64) -> bool {
        let lost = to - from + 1 - found;
        if self.out.json {
            return self.out.value(&serde_json::json!({
                "host": event.host, "session": event.session, "gap": { "from": from, "to": to, "lost": lost },
            }));
        }
        self.out.line(&format!(
            "{} gap: {lost} of the events {from} to {to} of session {} are gone; see: outlast jobs --all --on {}",
            event.host, event.session, event.host
        ))
    }
}
