//! `outlast wakes`: deliveries that wait or were given up, and pauses.

use std::collections::BTreeMap;

use outlast_cli::{WakesArgs, WakesVerb};
use outlast_job::clock::{millis, now_ms};
use outlast_job::registry::Home;
use outlast_job::wakes::paused::{Pause, Whom};
use outlast_job::wakes::spool::{Filed, OrderId, Spool};
use outlast_job::{Failure, Outlast, session, wakes};
use outlast_policy::OrderKind;
use outlast_tmux::Tmux;
use serde::Serialize;

use crate::ask::allowed;
use crate::output::Output;

pub(super) fn wakes(outlast: &Outlast, args: &WakesArgs, out: &mut Output) -> Result<i32, Failure> {
    let home = outlast.home();
    match &args.verb {
        WakesVerb::List(_) => {
            allowed(home, OrderKind::Events)?;
            list(home, out);
        }
        WakesVerb::Retry(retry) => each(home, &retry.numbers, wakes::retry, ("is tried again", out))?,
        WakesVerb::Cancel(cancel) => each(home, &cancel.numbers, wakes::cancel, ("is cancelled", out))?,
        WakesVerb::Pause(pause) => {
            let whom = whom(pause.pane.as_deref(), pause.session.as_deref(), pause.socket.as_deref())?;
            may_change(home, &whom)?;
            let until = pause.time.map(|time| now_ms() + millis(time));
            spool(home)?.pause(Pause { whom, until })?;
            say(out, "paused", "nothing is delivered there until: outlast wakes resume");
        }
        WakesVerb::Resume(resume) => {
            let whom = if resume.all {
                allowed(home, OrderKind::Ack { session: "" })?;
                None
            } else {
                let whom = whom(resume.pane.as_deref(), resume.session.as_deref(), resume.socket.as_deref())?;
                may_change(home, &whom)?;
                Some(whom)
            };
            let ended = spool(home)?.resume(whom.as_ref())?;
            if out.json {
                out.value(&serde_json::json!({ "resumed": ended }));
            } else {
                out.line(if ended == 0 { "nothing was paused" } else { "what has waited is delivered now" });
            }
        }
    }
    Ok(0)
}

fn spool(home: &Home) -> Result<Spool, Failure> {
    Spool::made(home).map_err(|error| Failure::system("the spool of wakes can't be opened", error))
}

fn say(out: &mut Output, key: &str, text: &str) {
    if out.json {
        out.value(&serde_json::json!({ key: true }));
    } else {
        out.line(text);
    }
}

/// Deliveries may be another session's: the policy hears whose.
fn may_change(home: &Home, whom: &Whom) -> Result<(), Failure> {
    let session = match whom {
        Whom::Session(session) => session.as_str(),
        Whom::Pane(_) => "",
    };
    allowed(home, OrderKind::Ack { session })
}

fn whom(pane: Option<&str>, session: Option<&str>, socket: Option<&str>) -> Result<Whom, Failure> {
    let Some(pane) = pane else {
        return Ok(Whom::Session(session.map_or_else(session::current, ToOwned::to_owned)));
    };
    let env: BTreeMap<String, String> = std::env::vars().collect();
    let tmux = socket.map_or_else(|| Tmux::of_env(&env), |socket| Tmux::at(Some(socket.to_owned())));
    Ok(Whom::Pane(tmux.pane(pane)?.identity().clone()))
}

fn each(
    home: &Home,
    numbers: &[String],
    act: impl Fn(&Home, OrderId) -> Result<(), Failure>,
    (done, out): (&str, &mut Output),
) -> Result<(), Failure> {
    let spool = Spool::existing(home);
    let mut ids = Vec::new();
    for number in numbers {
        let id: OrderId = number.parse()?;
        if let Some(filed) = spool.as_ref().and_then(|spool| spool.get(id)) {
            allowed(home, OrderKind::Ack { session: &filed.order.session })?;
        }
        ids.push(id);
    }
    for id in ids {
        act(home, id)?;
        if out.json {
            out.value(&serde_json::json!({ "wake": id.to_string(), "done": done }));
        } else {
            out.line(&format!("{id} {done}"));
        }
    }
    Ok(())
}

/// A delivery, as it is shown.
#[derive(Serialize)]
struct Row {
    wake: String,
    state: &'static str,
    kind: &'static str,
    target: String,
    session: String,
    job: u64,
    events: usize,
    /// Older ones that did not fit into the order.
    left_out: usize,
    tries: u32,
    age_ms: u64,
    /// When it is tried again, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
}

fn row(spool: &Spool, filed: Filed) -> Row {
    let Filed { id, order, progress } = filed;
    let state = if progress.failed_at.is_some() {
        "failed"
    } else if spool.pause_of(&order).is_some() {
        "paused"
    } else {
        "waiting"
    };
    Row {
        wake: id.to_string(),
        state,
        kind: order.wake.kind().name(),
        target: order.wake.target(),
        session: order.session,
        job: id.job.number(),
        events: order.events.len() - progress.done.min(order.events.len()),
        left_out: order.left_out,
        tries: progress.tries,
        age_ms: now_ms().saturating_sub(order.made_at),
        next_at: Some(progress.next_at).filter(|at| *at > 0 && progress.failed_at.is_none()),
        trouble: progress.trouble,
    }
}

fn list(home: &Home, out: &mut Output) {
    let spool = Spool::existing(home);
    let rows: Vec<Row> = spool
        .as_ref()
        .map(|spool| spool.all().into_iter().map(|filed| row(spool, filed)).collect())
        .unwrap_or_default();
    let dropped = spool.as_ref().map_or(0, Spool::dropped);
    let pauses = spool.as_ref().map(Spool::pauses).unwrap_or_default();
    if out.json {
        out.value(&serde_json::json!({ "wakes": rows, "dropped": dropped, "pauses": pauses }));
        return;
    }
    for pause in &pauses {
        let whom = match &pause.whom {
            Whom::Pane(pane) => format!("pane {}", pane.id()),
            Whom::Session(session) => format!("session {session}"),
        };
        out.talk(&format!("paused: {whom}"));
    }
    if dropped > 0 {
        out.talk(&format!("{dropped} were never taken on: the spool was full"));
    }
    if rows.is_empty() {
        out.talk("nothing waits to be delivered");
    }
    for row in rows {
        let Row { wake, state, kind, target, events, .. } = &row;
        let events = if *events == 1 { "1 event".to_owned() } else { format!("{events} events") };
        let trouble = row.trouble.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        out.line(&format!("{wake:<8} {state:<8} {kind} {target:?}, {events}{trouble}"));
    }
}
