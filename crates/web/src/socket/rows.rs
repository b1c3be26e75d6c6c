//! A screen as rows of styled text: for tiles, for guests, and where there is no xterm.js. Only rows that have changed are sent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use outlast_job::client::Waiting;
use outlast_job::wire::Attach;
use outlast_job::{Failure, Job};
use outlast_protocol::request::{News, Subscription};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::{Opened, Out, refused, send};
use crate::api::{Desk, screen};
use crate::rights::Visitor;

/// How often a screen is shown at most.
const TILE_INTERVAL: Duration = Duration::from_millis(200);
const OPEN_INTERVAL: Duration = Duration::from_millis(50);

/// A screen that is shown.
pub(super) struct View {
    desk: Desk,
    visitor: Visitor,
    job: String,
    channel: Option<u16>,
    interval: Duration,
    /// As whom the owner sits in front of it; a tile is only looked at.
    attach: Option<Attach>,
    /// Found once, and not again for each look.
    found: OnceLock<Job>,
}

/// What a keeper said since we looked.
#[derive(Debug, Default)]
struct Told {
    changed: Notify,
    over: AtomicBool,
    /// Something happened that the page should ask about.
    event: AtomicBool,
}

impl View {
    pub(super) fn tile(desk: Desk, visitor: Visitor, job: String) -> Self {
        Self {
            desk,
            visitor,
            job,
            channel: None,
            interval: TILE_INTERVAL,
            attach: None,
            found: OnceLock::new(),
        }
    }

    pub(super) fn open(desk: Desk, visitor: Visitor, opened: &Opened) -> Self {
        let attach = match &visitor {
            Visitor::Owner { holder, .. } => Some(Attach {
                size: opened.size,
                read_only: opened.size.is_none(),
                shared: true,
                holder: Some(holder.clone()),
                sits: false,
            }),
            Visitor::Guest { .. } => None,
        };
        let (job, channel) = (opened.job.clone(), Some(opened.channel));
        Self { desk, visitor, job, channel, interval: OPEN_INTERVAL, attach, found: OnceLock::new() }
    }

    /// Shows it until the job is over. What was shown before goes when this is there.
    pub(super) async fn show(self, out: Out, before: Option<JoinHandle<()>>) {
        let view = Arc::new(self);
        let told = Arc::new(Told::default());
        let subscribed = {
            let (view, told) = (Arc::clone(&view), Arc::clone(&told));
            tokio::task::spawn_blocking(move || view.subscribe(&told)).await
        };
        if let Some(before) = before {
            before.abort();
        }
        let waiting = match subscribed {
            Ok(Ok(waiting)) => Some(waiting),
            // It has ended, or runs on pipes: what it showed last is shown.
            Ok(Err(_)) => None,
            Err(_) => return,
        };
        let mut shown: Option<Value> = None;
        loop {
            let over = waiting.is_none() || told.over.load(Ordering::SeqCst);
            let tells = told.event.swap(false, Ordering::SeqCst) && view.channel.is_some();
            if tells && !send(&out, &json!({ "t": "event", "job": view.job })).await {
                return;
            }
            let now = {
                let view = Arc::clone(&view);
                tokio::task::spawn_blocking(move || view.look()).await
            };
            match now {
                Ok(Ok(now)) => {
                    if let Some(change) = view.change(shown.as_ref(), &now)
                        && !send(&out, &change).await
                    {
                        return;
                    }
                    shown = Some(now);
                }
                Ok(Err(failure)) => {
                    send(&out, &refused(&view.job, &failure)).await;
                    return;
                }
                Err(_) => return,
            }
            if over {
                send(&out, &json!({ "t": "over", "job": view.job, "channel": view.channel })).await;
                return;
            }
            tokio::time::sleep(view.interval).await;
            told.changed.notified().await;
        }
    }

    fn subscribe(&self, told: &Arc<Told>) -> Result<Waiting, Failure> {
        let job = self.desk.outlast.job(&self.job)?.handle();
        let to = match &self.attach {
            Some(attach) => Subscription::Attach { job, attach: attach.clone() },
            None => Subscription::Job { job },
        };
        let told = Arc::clone(told);
        self.desk.outlast.subscribe(&to, move |news| {
            match news {
                News::Over => told.over.store(true, Ordering::SeqCst),
                News::Event(_) => told.event.store(true, Ordering::SeqCst),
                News::Grown(_) | News::Attached(_) | News::Changed => {}
            }
            told.changed.notify_one();
            true
        })
    }

    fn found(&self) -> Result<Job, Failure> {
        if let Some(job) = self.found.get() {
            return Ok(job.clone());
        }
        let job = self.desk.job(&self.visitor, &self.job)?;
        Ok(self.found.get_or_init(|| job).clone())
    }

    fn look(&self) -> Result<Value, Failure> {
        screen(&self.found()?, None)
    }

    /// What has changed, for the page.
    fn change(&self, before: Option<&Value>, now: &Value) -> Option<Value> {
        let none = Vec::new();
        let rows = now["rows"].as_array().unwrap_or(&none);
        let same_size = before.filter(|before| before["size"] == now["size"]);
        let old = same_size.and_then(|before| before["rows"].as_array()).unwrap_or(&none);
        let changed: Vec<Value> = rows
            .iter()
            .enumerate()
            .filter(|(index, row)| old.get(*index) != Some(row))
            .map(|(index, row)| json!([index, row]))
            .collect();
        let is_same = before.is_some_and(|before| {
            before["cursor"] == now["cursor"] && before["title"] == now["title"] && old.len() == rows.len()
        });
        if changed.is_empty() && is_same && same_size.is_some() {
            return None;
        }
        Some(json!({
            "t": "rows", "job": self.job, "channel": self.channel, "full": same_size.is_none(), "count": rows.len(),
            "rows": changed, "size": now["size"], "cursor": now["cursor"], "title": now["title"],
            "application_cursor": now["application_cursor"], "alternate": now["alternate"],
        }))
    }
}
