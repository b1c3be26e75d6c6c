//! Output that the agent streams by itself, gathered before it becomes events: however fast updates come, only a few events
//! a second are written.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use outlast_job::outbox::Entry;
use outlast_job::wire::Reason;
use outlast_job::wire::event::EventKind;
use outlast_job::wire::watch::{Fired, LineTold};
use outlast_job::{EntryKind, Handle};

/// How long lines are gathered.
const BATCH: Duration = Duration::from_millis(200);
/// How much text of one call goes into an event; more is counted.
const MAX_TEXT_BYTES: usize = 8 << 10;
/// How many calls are told apart in a batch.
const MAX_CALLS: usize = 64;

/// Lines of the agent's own calls that are not events yet.
#[derive(Debug, Default)]
pub(crate) struct AgentStreams {
    since: Option<Instant>,
    calls: BTreeMap<String, Gathered>,
}

#[derive(Debug, Default)]
struct Gathered {
    lines: Vec<LineTold>,
    bytes: usize,
    count: u64,
}

impl AgentStreams {
    /// Adds the lines of an update.
    pub(crate) fn add(&mut self, call: &str, text: &str) {
        self.since.get_or_insert_with(Instant::now);
        let call = if self.calls.contains_key(call) || self.calls.len() < MAX_CALLS { call } else { "" };
        let gathered = self.calls.entry(call.to_owned()).or_default();
        for line in text.lines() {
            gathered.count += 1;
            let room = MAX_TEXT_BYTES.saturating_sub(gathered.bytes);
            // In order: after the first that has no room, all are only counted.
            if room == 0 || gathered.lines.len() as u64 + 1 < gathered.count {
                continue;
            }
            let mut text = line.to_owned();
            if text.len() > room {
                text.truncate(text.floor_char_boundary(room));
                text.push_str(outlast_stream::CUT_MARK);
            }
            gathered.bytes += text.len() + 1;
            gathered.lines.push(LineTold { text, to: 0 });
        }
    }

    /// When they become events; none without lines.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.since.map(|since| since + BATCH)
    }

    /// Takes them out as events, one for each call.
    pub(crate) fn take(&mut self) -> Vec<Entry> {
        self.since = None;
        std::mem::take(&mut self.calls).into_iter().map(|(call, gathered)| entry(&call, gathered)).collect()
    }
}

fn entry(call: &str, gathered: Gathered) -> Entry {
    let Gathered { lines, count, .. } = gathered;
    let first = lines.first().map_or("", |line| line.text.as_str());
    let mut entry = Entry::about(Handle::new(0), Some(call), EntryKind::Stream, first);
    entry.more = String::new();
    entry.count = count;
    let fired = Fired {
        watch: call.to_owned(),
        reason: Reason::Lines,
        count,
        from: 0,
        to: 0,
        found: None,
        lines,
        port: None,
    };
    entry.detail = Some(EventKind::Watch { fired: Box::new(fired) });
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_becomes_one_bounded_event_for_each_call() {
        let mut streams = AgentStreams::default();
        for n in 0..100_000 {
            streams.add(if n % 2 == 0 { "a" } else { "b" }, &format!("EV:{n}"));
        }
        assert!(streams.due().is_some());
        let entries = streams.take();
        assert_eq!(entries.iter().map(|entry| entry.count).collect::<Vec<_>>(), [50_000, 50_000]);
        assert!(entries.iter().all(|entry| serde_json::to_vec(entry).unwrap().len() < 64 << 10));
        assert_eq!(entries[1].text, "EV:1");
        assert!(streams.due().is_none() && streams.take().is_empty());
    }
}
