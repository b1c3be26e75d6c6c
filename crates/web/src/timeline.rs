//! What happened to a job and when: how much it printed, its events, and the sizes of its terminal.

use outlast_job::request::{Answer, Fact, FactKind, JobRequest};
use outlast_job::{Failure, Job};
use serde_json::{Value, json};

use crate::cards::ended_at;

/// How many parts a job's time is cut into.
const BINS: usize = 240;
/// The newest events that are shown, in bytes of the file.
const MAX_EVENTS: usize = 256 << 10;
/// Events so soon after the end belong to it.
const AFTER_END_MS: u64 = 1000;
/// Facts that are looked at: more is a job of days, whose last part is shown then.
const MAX_FACTS: usize = 2_000_000;

pub(crate) fn of(job: &Job) -> Result<Value, Failure> {
    let info = job.info()?;
    let facts = facts(job)?;
    let now = outlast_job::clock::now_ms();
    let until = ended_at(&info.state).unwrap_or(now).max(info.created_at);
    let last_fact = facts.last().map_or(0, |fact| fact.at_ms);
    let resizes: Vec<Value> = facts
        .iter()
        .filter_map(|fact| match fact.kind {
            FactKind::Resized(size) => Some(json!({ "at_ms": fact.at_ms, "size": size })),
            FactKind::Output | FactKind::Stderr => None,
        })
        .collect();
    let events: Vec<Value> = job
        .event_lines(MAX_EVENTS)?
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .map(|mut event| {
            let at = event["at"].as_u64().unwrap_or(0).saturating_sub(info.created_at);
            event["at_ms"] = json!(at);
            event
        })
        .collect();
    let last_event = events.iter().filter_map(|event| event["at_ms"].as_u64()).max().unwrap_or(0);
    let own = (until - info.created_at).max(last_fact);
    // The end is told a moment after it; what happens to left processes long after does not stretch the picture.
    let length = own.max(last_event.min(own + AFTER_END_MS)).max(1);
    Ok(json!({
        "job": job.handle().to_string(), "created_at": info.created_at, "length_ms": length,
        "live": info.state.is_live(), "bins": bins(&facts, length), "resizes": resizes, "events": events,
    }))
}

fn facts(job: &Job) -> Result<Vec<Fact>, Failure> {
    let (mut facts, mut from) = (Vec::new(), 0);
    loop {
        let Answer::Timing(timing) = job.ask(JobRequest::Timing { from })? else { return Ok(facts) };
        facts.extend(timing.facts);
        match timing.next {
            Some(next) if facts.len() < MAX_FACTS => from = next,
            Some(_) | None => return Ok(facts),
        }
    }
}

/// How many bytes were printed in each part of the time.
fn bins(facts: &[Fact], length: u64) -> Vec<u64> {
    let mut bins = vec![0; BINS];
    let mut before = [0; 2];
    for fact in facts {
        let stream = match fact.kind {
            FactKind::Output => 0,
            FactKind::Stderr => 1,
            FactKind::Resized(_) => continue,
        };
        let grown = fact.offset.saturating_sub(before[stream]);
        before[stream] = fact.offset.max(before[stream]);
        let place = u128::from(fact.at_ms) * BINS as u128 / u128::from(length);
        let place = usize::try_from(place).unwrap_or(BINS).min(BINS - 1);
        bins[place] += grown;
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_in_one_part() {
        let fact = |at_ms, offset, kind| Fact { at_ms, offset, kind };
        let facts = [
            fact(0, 10, FactKind::Output),
            fact(500, 15, FactKind::Output),
            fact(500, 7, FactKind::Stderr),
            fact(1000, 15, FactKind::Output),
            fact(2000, 40, FactKind::Output),
        ];
        let bins = bins(&facts, 1000);
        assert_eq!((bins[0], bins[BINS / 2], bins[BINS - 1]), (10, 12, 25));
        assert_eq!(bins.iter().sum::<u64>(), 47);
    }
}
