//! What waits for a person: programs that ask before they execute something, passwords, other questions, and wakes that could not be
//! delivered; and what happened lately.

use outlast_job::clock::now_ms;
use outlast_job::wakes::spool::Spool;
use outlast_job::wire::AwaitingKind;
use outlast_job::{Job, Outlast};
use outlast_protocol::event::{Event, EventKind};
use outlast_protocol::request::{AskKeepers, List};
use serde_json::{Value, json};

use crate::cards::{Card, Rank};

/// Of how many jobs, the newest, events are shown, and how many events.
const JOBS_WITH_EVENTS: usize = 20;
const MAX_EVENTS: usize = 60;
/// How much of a job's events is looked at.
const EVENT_BYTES: usize = 16 << 10;

pub(crate) fn of(outlast: &Outlast) -> Value {
    let list = List { keepers: AskKeepers::All, last_lines: true, ..List::default() };
    let mut listed = outlast.list(list);
    listed.reverse();
    let now = now_ms();
    let cards: Vec<Card> = listed.into_iter().map(|one| Card::new(one, now)).collect();
    let mut items: Vec<Value> = Vec::new();
    for card in cards.iter().filter(|card| card.rank == Rank::Asks) {
        let Some(awaiting) = &card.awaiting else { continue };
        match awaiting.kind {
            AwaitingKind::Approval => items.extend(approvals(outlast, card)),
            AwaitingKind::Password => {
                items.push(item("password", card, json!({ "prompt": awaiting.prompt })))
            }
            AwaitingKind::Line
            | AwaitingKind::Key
            | AwaitingKind::Menu
            | AwaitingKind::Pager
            | AwaitingKind::Stdin
            | AwaitingKind::Repl => {
                items.push(item(
                    "question",
                    card,
                    json!({ "prompt": awaiting.prompt, "input": awaiting.kind }),
                ));
            }
        }
    }
    json!({ "items": items, "deliveries": deliveries(outlast), "events": events(outlast, &cards) })
}

fn item(kind: &str, card: &Card, more: Value) -> Value {
    let mut item = json!({ "kind": kind, "job": card.job, "name": card.name, "command": card.command, "session": card.session });
    if let (Some(item), Value::Object(more)) = (item.as_object_mut(), more) {
        item.extend(more);
    }
    item
}

fn approvals(outlast: &Outlast, card: &Card) -> Vec<Value> {
    let status = outlast.job(&card.job).and_then(|job| job.status()).ok().flatten();
    let questions = status.map(|status| status.questions).unwrap_or_default();
    questions.into_iter().map(|asked| item("approval", card, json!({ "asked": asked }))).collect()
}

/// Wakes that were given up.
fn deliveries(outlast: &Outlast) -> Vec<Value> {
    let filed = Spool::existing(outlast.home()).map(|spool| spool.all()).unwrap_or_default();
    let failed = filed.into_iter().filter(|filed| filed.progress.failed_at.is_some());
    failed
        .map(|filed| {
            json!({
                "wake": filed.id.to_string(), "job": filed.id.job.to_string(), "kind": filed.order.wake.kind().name(),
                "target": filed.order.wake.target(), "at": filed.progress.failed_at, "trouble": filed.progress.trouble,
            })
        })
        .collect()
}

fn events(outlast: &Outlast, cards: &[Card]) -> Vec<Value> {
    let mut all: Vec<(u64, Value)> = Vec::new();
    for card in cards.iter().take(JOBS_WITH_EVENTS) {
        let lines =
            outlast.job(&card.job).and_then(|job: Job| job.event_lines(EVENT_BYTES)).unwrap_or_default();
        let events = lines.lines().filter_map(|line| serde_json::from_str::<Event>(line).ok());
        for event in events {
            if let Some(text) = words(&event.what) {
                let shown = json!({
                    "at": event.at, "job": card.job, "name": card.name, "event": event.what.name(), "text": text,
                });
                all.push((event.at, shown));
            }
        }
    }
    all.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    all.into_iter().take(MAX_EVENTS).map(|(_, event)| event).collect()
}

/// An event in a line; none for what nobody has to know.
fn words(what: &EventKind) -> Option<String> {
    Some(match what {
        EventKind::Exit { state } => match state.receipt().map(outlast_protocol::lifecycle::Receipt::words) {
            Some(Ok(words)) => format!("{}: {words}", state.name()),
            Some(Err(error)) => error.message.clone(),
            None => state.name().to_owned(),
        },
        // A shell at its prompt and an editor wait, but nobody has to answer them.
        EventKind::AwaitingInput { awaiting } if !awaiting.kind.is_question() => return None,
        EventKind::AwaitingInput { awaiting } => format!("asks: {}", awaiting.prompt.trim()),
        EventKind::Port { port } => format!("listens on port {port}"),
        EventKind::ExecRefused { refused } => format!("not executed: {} ({})", refused.command, refused.why),
        EventKind::HostRefused { refused } => {
            format!("not connected to {}:{} ({})", refused.host, refused.port, refused.why)
        }
        EventKind::Asking { question } => format!("asks to execute: {}", question.command),
        EventKind::Answered { allowed, by, .. } => {
            format!("answered with {} by {by}", if *allowed { "yes" } else { "no" })
        }
        EventKind::Taken { by } => format!("taken over by {by}"),
        EventKind::GivenBack { why, .. } => format!("given back: {why}"),
        EventKind::LogFailing { error } => format!("its log can't be written: {error}"),
        EventKind::LogResumed { .. } => "its log is written again".to_owned(),
        EventKind::TookOver { .. } => "its keeper died; another took over".to_owned(),
        EventKind::Watch { fired } => format!("watch {}", fired.watch),
        EventKind::StepForged { why } => format!("the shell was ended: {why}"),
        EventKind::Queued { queued } => format!("queued: {}", queued.words()),
        EventKind::Started { .. }
        | EventKind::StepStarted { .. }
        | EventKind::Step { .. }
        | EventKind::StepChanged { .. }
        | EventKind::AllGone
        | EventKind::WentOn
        | EventKind::Listening { .. }
        | EventKind::Stopped
        | EventKind::Continued
        | EventKind::LogCapped { .. }
        | EventKind::HeirGone
        | EventKind::Agent { .. }
        | EventKind::Unknown => return None,
    })
}
