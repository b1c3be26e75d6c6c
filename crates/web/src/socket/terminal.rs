//! The open terminal: one snapshot, then every byte from its offset on, for xterm.js. A page that falls behind gets another snapshot.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::{BufMut, BytesMut};
use outlast_job::client::Waiting;
use outlast_job::request::{Answer, BytePart, JobRequest, ReadBytes};
use outlast_job::wire::{Attach, Attached, base64};
use outlast_job::{Failure, Job, Kind};
use outlast_protocol::request::{News, Subscription};
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio_tungstenite::tungstenite::Message;

use super::{Opened, Out, refused, send};
use crate::api::{Desk, screen};
use crate::rights::Visitor;

/// A page that is this far behind is given a new snapshot.
const MAX_BEHIND: u64 = 512 << 10;
/// How much of the log is sent at once.
const PIECE: usize = 64 << 10;
/// How many lines that have left the screen are sent along.
const HISTORY: usize = 2000;
/// Ended jobs with a log up to this length are played again.
const MAX_PLAYED: u64 = 2 << 20;

/// The kinds of binary messages.
const SNAPSHOT: u8 = 1;
const BYTES: u8 = 2;
const BEFORE: u8 = 3;

#[derive(Debug, Default)]
struct Told {
    news: Mutex<Unseen>,
    changed: Notify,
}

/// What a keeper said since we looked.
#[derive(Debug, Default)]
struct Unseen {
    attached: Option<Attached>,
    grown: u64,
    events: Vec<serde_json::Value>,
    over: bool,
}

impl Told {
    fn hear(&self, news: News) {
        let mut unseen = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        match news {
            News::Grown(grown) => unseen.grown = unseen.grown.max(grown.offset),
            News::Attached(attached) => {
                unseen.grown = unseen.grown.max(attached.offset);
                unseen.attached = Some(attached);
            }
            News::Event(event) => {
                if unseen.events.len() < 100 {
                    unseen.events.push(serde_json::to_value(event).unwrap_or_default());
                }
            }
            News::Over => unseen.over = true,
            News::Changed => {}
        }
        drop(unseen);
        self.changed.notify_one();
    }

    fn take(&self) -> Unseen {
        let mut unseen = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        let (grown, over) = (unseen.grown, unseen.over);
        let taken = std::mem::take(&mut *unseen);
        (unseen.grown, unseen.over) = (grown, over);
        taken
    }
}

/// Shows a terminal until the job is over. What was shown before goes when this is there.
pub(super) async fn show(
    desk: Desk,
    visitor: Visitor,
    opened: Opened,
    out: Out,
    before: Option<JoinHandle<()>>,
) {
    let name = opened.job.clone();
    let shown = Shown { desk, visitor, opened, out: out.clone(), found: Arc::default() };
    if let Err(failure) = shown.run(before).await {
        send(&out, &refused(&name, &failure)).await;
    }
}

#[derive(Clone)]
struct Shown {
    desk: Desk,
    visitor: Visitor,
    opened: Opened,
    out: Out,
    /// Found once, and not again for each piece.
    found: Arc<OnceLock<Job>>,
}

impl Shown {
    async fn run(self, before: Option<JoinHandle<()>>) -> Result<(), Failure> {
        let (own, told) = (self.clone(), Arc::new(Told::default()));
        let ours = Arc::clone(&told);
        let begun = blocking(move || own.subscribe(&own.job()?, &ours)).await;
        if let Some(before) = before {
            before.abort();
        }
        match begun {
            Ok(waiting) => self.follow(&told, waiting).await,
            Err(failure) if failure.kind == Kind::NotRunning => self.show_end().await,
            Err(failure) => Err(failure),
        }
    }

    fn job(&self) -> Result<Job, Failure> {
        if let Some(job) = self.found.get() {
            return Ok(job.clone());
        }
        let job = self.desk.job(&self.visitor, &self.opened.job)?;
        Ok(self.found.get_or_init(|| job).clone())
    }

    /// What has left the screen; nothing where that cannot be had.
    fn history(&self) -> Vec<u8> {
        let shot = self.job().and_then(|job| job.screen(true, HISTORY));
        let rows = shot.map(|shot| shot.scrollback).unwrap_or_default();
        rows.iter().flat_map(|row| [row.as_bytes(), b"\x1b[0m\r\n"].concat()).collect()
    }

    fn subscribe(&self, job: &Job, told: &Arc<Told>) -> Result<Waiting, Failure> {
        let Visitor::Owner { holder, .. } = &self.visitor else {
            return Err(Failure::new(Kind::Denied, "a guest sees rows alone"));
        };
        // A person who only looks does not change the size of what they look at.
        let attach = Attach {
            size: self.opened.size,
            read_only: self.opened.size.is_none(),
            shared: true,
            holder: Some(holder.clone()),
            sits: false,
        };
        let told = Arc::clone(told);
        let to = Subscription::Attach { job: job.handle(), attach };
        self.desk.outlast.subscribe(&to, move |news| {
            told.hear(news);
            true
        })
    }

    async fn follow(&self, told: &Arc<Told>, waiting: Waiting) -> Result<(), Failure> {
        let mut waiting = Some(waiting);
        let mut at: Option<u64> = None;
        let mut history = History::wanted(self.opened.history);
        loop {
            if let Some(rows) = history.take().await {
                // It goes above the screen, so that is drawn once more after it. An empty one says that there is none.
                self.frame(BEFORE, 0, &rows).await?;
                if !rows.is_empty() {
                    let (own, told) = (self.clone(), Arc::clone(told));
                    waiting = Some(blocking(move || own.subscribe(&own.job()?, &told)).await?);
                    at = None;
                }
            }
            let unseen = told.take();
            if let Some(attached) = &unseen.attached {
                let size = json!({
                    "t": "size", "job": self.opened.job, "channel": self.opened.channel, "size": attached.size,
                    "viewers": attached.viewers,
                });
                self.say(&size).await?;
                let repaint = base64::decode(&attached.repaint).unwrap_or_default();
                self.frame(SNAPSHOT, attached.offset, &repaint).await?;
                at = Some(attached.offset);
            }
            for event in &unseen.events {
                self.say(&json!({ "t": "event", "job": self.opened.job, "event": event })).await?;
            }
            if let Some(from) = at.filter(|from| *from < unseen.grown) {
                if unseen.grown - from > MAX_BEHIND && !unseen.over {
                    // Attach again: the screen as it is now.
                    let (own, told) = (self.clone(), Arc::clone(told));
                    waiting = Some(blocking(move || own.subscribe(&own.job()?, &told)).await?);
                    at = None;
                    continue;
                }
                at = Some(self.send_bytes(from, unseen.grown).await?);
                continue;
            }
            if unseen.over {
                drop(waiting.take());
                return self.over().await;
            }
            if at.is_some() {
                let own = self.clone();
                history.ask(move || own.history());
            }
            tokio::select! {
                () = told.changed.notified() => {}
                () = history.finished() => {}
            }
        }
    }

    /// Sends a piece of the log; says where to go on.
    async fn send_bytes(&self, from: u64, to: u64) -> Result<u64, Failure> {
        let own = self.clone();
        let bytes = blocking(move || {
            let read = ReadBytes { from, to: Some(to), max: PIECE, ..ReadBytes::default() };
            match own.job()?.ask(JobRequest::ReadBytes(read))? {
                Answer::Bytes(bytes) => Ok(bytes),
                other => Err(Failure::new(Kind::Keeper, format!("unexpected answer: {other:?}"))),
            }
        })
        .await?;
        for part in &bytes.parts {
            if let BytePart::Bytes(part) = part {
                self.frame(BYTES, bytes.next, part).await?;
            }
        }
        // What is not in the log any more does not come either.
        Ok(if bytes.parts.is_empty() { to } else { bytes.next.max(from + 1) })
    }

    /// A job that has ended: all that it printed if that is short, otherwise its last screen.
    async fn show_end(&self) -> Result<(), Failure> {
        let own = self.clone();
        let (end, size) = blocking(move || {
            let job = own.job()?;
            let size = match job.info()?.streams {
                outlast_job::Streams::Terminal(size) => Some(size),
                _ => None,
            };
            Ok((job.log_end(), size))
        })
        .await?;
        let (job, channel) = (&self.opened.job, self.opened.channel);
        self.say(&json!({ "t": "size", "job": job, "channel": channel, "size": size, "viewers": 0 })).await?;
        self.frame(SNAPSHOT, 0, b"\x1b[H\x1b[2J").await?;
        if end <= MAX_PLAYED {
            let mut from = 0;
            while from < end {
                from = self.send_bytes(from, end).await?;
            }
            return self.over().await;
        }
        let own = self.clone();
        let shot = blocking(move || screen(&own.job()?, None)).await?;
        let none = Vec::new();
        let rows = shot["rows"].as_array().unwrap_or(&none).iter().filter_map(|row| row.as_str());
        let text = rows.collect::<Vec<_>>().join("\x1b[0m\r\n");
        self.frame(BYTES, end, text.as_bytes()).await?;
        self.over().await
    }

    async fn over(&self) -> Result<(), Failure> {
        let (job, channel) = (&self.opened.job, self.opened.channel);
        self.say(&json!({ "t": "over", "job": job, "channel": channel })).await
    }

    async fn say(&self, value: &serde_json::Value) -> Result<(), Failure> {
        if send(&self.out, value).await { Ok(()) } else { Err(gone()) }
    }

    async fn frame(&self, kind: u8, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        let mut frame = BytesMut::with_capacity(bytes.len() + 12);
        frame.put_u8(kind);
        frame.put_u8(0);
        frame.put_u16(self.opened.channel);
        frame.put_u64(offset);
        frame.put_slice(bytes);
        self.out.send(Message::binary(frame.freeze())).await.map_err(|_| gone())
    }
}

/// What has left the screen: asked for when the screen is shown, so that nobody waits for it.
enum History {
    /// Nobody wants it, or it is sent.
    Over,
    Wanted,
    Asked(JoinHandle<Vec<u8>>),
    Come(Vec<u8>),
}

impl History {
    fn wanted(is_wanted: bool) -> Self {
        if is_wanted { Self::Wanted } else { Self::Over }
    }

    fn ask(&mut self, read: impl FnOnce() -> Vec<u8> + Send + 'static) {
        if matches!(self, Self::Wanted) {
            *self = Self::Asked(spawn_blocking(read));
        }
    }

    /// Until it is there; for ever, if nobody asked for it.
    async fn finished(&mut self) {
        if let Self::Asked(reading) = self {
            *self = Self::Come(reading.await.unwrap_or_default());
        } else {
            std::future::pending().await
        }
    }

    /// What has come, once.
    async fn take(&mut self) -> Option<Vec<u8>> {
        if matches!(self, Self::Asked(reading) if reading.is_finished()) {
            self.finished().await;
        }
        match std::mem::replace(self, Self::Over) {
            Self::Come(rows) => Some(rows),
            other @ (Self::Over | Self::Wanted | Self::Asked(_)) => {
                *self = other;
                None
            }
        }
    }
}

fn gone() -> Failure {
    Failure::new(Kind::Keeper, "the page is gone")
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(Failure::system("a thread of the server failed", error)),
    }
}
