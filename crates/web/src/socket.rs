//! One socket of a page: the list of jobs, the screens that are in view, the open terminal, and keys the other way.
//!
//! Whatever is shown is the newest that there is: a page that reads slowly is given a new snapshot instead of a queue. Messages are
//! JSON; the bytes of the open terminal are binary: a kind, a channel, an offset in the log, and the bytes.

mod rows;
mod terminal;
mod typist;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use http::{HeaderMap, HeaderValue, header};
use outlast_job::{Failure, Size};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::api::Said;
use crate::cards::Card;
use crate::limits::MAX_MESSAGE;
use crate::rights::{Needs, Visitor};
use crate::server::Door;
use typist::Typist;

/// What waits to be sent to a page; more is not made before there is room.
const OUT_QUEUE: usize = 16;
/// A page that takes nothing for this long is gone.
const SEND_TIMEOUT: Duration = Duration::from_secs(20);
/// How often a page is asked whether it is there, and whether it may still see what it sees.
const PING: Duration = Duration::from_secs(5);
/// A page that says nothing for this long is gone.
const SILENCE: Duration = Duration::from_secs(30);
/// How many messages a page may send in a second.
const MESSAGES_PER_SECOND: u32 = 400;
/// The most tiles with live screens.
const MAX_TILES: usize = 24;

/// What a page says.
#[derive(Debug, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case")]
enum Spoken {
    /// Tell of the list.
    Jobs,
    /// Show these screens in small, and no others.
    Tiles { jobs: Vec<String> },
    /// Show this terminal.
    Open(Opened),
    /// No longer.
    Close,
    /// Type this.
    Keys { job: String, data: String },
}

/// A terminal that is shown.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Opened {
    job: String,
    /// Named by the page: what still comes of an earlier one is not shown.
    channel: u16,
    /// The bytes, for xterm.js; otherwise rows.
    #[serde(default)]
    bytes: bool,
    /// With what has left the screen.
    #[serde(default)]
    history: bool,
    /// The size of the page's terminal, where the person has taken the job over.
    size: Option<Size>,
}

/// What is sent to a page.
pub(crate) type Out = mpsc::Sender<Message>;

pub(crate) async fn send(out: &Out, value: &Value) -> bool {
    out.send(Message::text(value.to_string())).await.is_ok()
}

pub(crate) fn refused(job: &str, failure: &Failure) -> Value {
    json!({ "t": "refused", "job": job, "error": Said::from(failure) })
}

/// The answer to a browser that asks for a socket; none when it does not.
pub(crate) fn accept_key(headers: &HeaderMap) -> Option<String> {
    const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    let is = |name, wanted: &str| {
        headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
            .is_some_and(|value| value.split(',').any(|word| word.trim().eq_ignore_ascii_case(wanted)))
    };
    let asked = is(header::UPGRADE, "websocket")
        && is(header::CONNECTION, "upgrade")
        && is(header::SEC_WEBSOCKET_VERSION, "13");
    let key = headers.get(header::SEC_WEBSOCKET_KEY)?.to_str().ok()?;
    let digest =
        ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{GUID}").as_bytes());
    asked.then(|| outlast_job::wire::base64::encode(digest.as_ref()))
}

/// Serves a socket until it is over.
pub(crate) async fn serve<S>(stream: S, door: Door, visitor: Visitor, still_known: impl Fn(&Door) -> bool)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE))
        .max_write_buffer_size(4 << 20);
    let stream = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
    let (mut sink, mut source) = stream.split();
    let (out, mut queue) = mpsc::channel::<Message>(OUT_QUEUE);
    let mut writer = tokio::spawn(async move {
        while let Some(message) = queue.recv().await {
            match tokio::time::timeout(SEND_TIMEOUT, sink.send(message)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return,
            }
        }
        let _ = tokio::time::timeout(Duration::from_secs(1), sink.close()).await;
    });
    let mut page = Page::new(door, visitor, out.clone());
    let (mut heard, mut ping) = (Instant::now(), tokio::time::interval(PING));
    let mut rate = Rate::default();
    loop {
        tokio::select! {
            message = source.next() => {
                let Some(Ok(message)) = message else { break };
                heard = Instant::now();
                if !rate.admits(heard) {
                    break;
                }
                match message {
                    Message::Text(text) => {
                        let Ok(said) = serde_json::from_str::<Spoken>(&text) else { break };
                        page.hear(said).await;
                    }
                    Message::Ping(_) | Message::Pong(_) => {}
                    Message::Close(_) | Message::Binary(_) | Message::Frame(_) => break,
                }
            }
            _ = ping.tick() => {
                if heard.elapsed() > SILENCE || !still_known(&page.door) {
                    break;
                }
                // One that is in the queue already is enough.
                let _ = out.try_send(Message::Ping(Default::default()));
            }
            _ = &mut writer => break,
        }
    }
    page.stop();
    drop((page, out));
    let _ = tokio::time::timeout(Duration::from_secs(2), &mut writer).await;
    writer.abort();
}

/// How often a page speaks.
#[derive(Debug, Default)]
struct Rate {
    second: Option<Instant>,
    count: u32,
}

impl Rate {
    fn admits(&mut self, now: Instant) -> bool {
        if self.second.is_none_or(|since| now.duration_since(since) >= Duration::from_secs(1)) {
            (self.second, self.count) = (Some(now), 0);
        }
        self.count += 1;
        self.count <= MESSAGES_PER_SECOND
    }
}

/// What a page is shown.
struct Page {
    door: Door,
    visitor: Visitor,
    out: Out,
    list: Option<JoinHandle<()>>,
    tiles: BTreeMap<String, JoinHandle<()>>,
    terminal: Option<JoinHandle<()>>,
    typist: Typist,
}

impl Page {
    fn new(door: Door, visitor: Visitor, out: Out) -> Self {
        let typist = Typist::new(&door.desk, &visitor, out.clone());
        Self { door, visitor, out, list: None, tiles: BTreeMap::new(), terminal: None, typist }
    }

    async fn hear(&mut self, said: Spoken) {
        let needs = match &said {
            Spoken::Jobs | Spoken::Tiles { .. } => Needs::Look,
            Spoken::Open(opened) => Needs::Screen(&opened.job),
            Spoken::Close => Needs::Nothing,
            Spoken::Keys { .. } => Needs::Act,
        };
        if let Err(failure) = self.visitor.may(needs) {
            send(&self.out, &refused("", &failure)).await;
            return;
        }
        match said {
            Spoken::Jobs => self.tell_of_list(),
            Spoken::Tiles { jobs } => self.show_tiles(jobs),
            Spoken::Open(opened) => self.open(opened),
            Spoken::Close => self.close(),
            Spoken::Keys { job, data } => self.typist.press(job, data).await,
        }
    }

    fn tell_of_list(&mut self) {
        if self.list.is_some() {
            return;
        }
        let (mut cards, out) = (self.door.feed.subscribe(), self.out.clone());
        cards.mark_unchanged();
        let is_there = !cards.borrow().cards.is_empty();
        self.list = Some(tokio::spawn(async move {
            let mut shown: BTreeMap<String, Card> = BTreeMap::new();
            let mut first = is_there;
            loop {
                if !std::mem::take(&mut first) && cards.changed().await.is_err() {
                    return;
                }
                let all = cards.borrow_and_update().clone();
                let changed: Vec<&Card> =
                    all.cards.iter().filter(|card| shown.get(&card.job) != Some(card)).collect();
                let gone: Vec<&String> =
                    shown.keys().filter(|job| !all.cards.iter().any(|card| card.job == **job)).collect();
                let said = json!({
                    "t": "jobs", "changed": changed, "gone": gone, "troubles": all.troubles, "fleet": all.fleet,
                });
                if !send(&out, &said).await {
                    return;
                }
                shown = all.cards.iter().map(|card| (card.job.clone(), card.clone())).collect();
            }
        }));
        // A home without jobs has a list, too.
        if !is_there {
            let _ = self
                .out
                .try_send(Message::text(json!({ "t": "jobs", "changed": [], "gone": [] }).to_string()));
        }
    }

    fn show_tiles(&mut self, mut jobs: Vec<String>) {
        jobs.truncate(MAX_TILES);
        self.tiles.retain(|job, task| {
            let stays = jobs.contains(job);
            if !stays {
                task.abort();
            }
            stays
        });
        for job in jobs {
            if !self.tiles.contains_key(&job) {
                let view = rows::View::tile(self.door.desk.clone(), self.visitor.clone(), job.clone());
                self.tiles.insert(job, tokio::spawn(view.show(self.out.clone(), None)));
            }
        }
    }

    fn open(&mut self, opened: Opened) {
        let before = self.terminal.take();
        let (desk, visitor, out) = (self.door.desk.clone(), self.visitor.clone(), self.out.clone());
        // Bytes are for the owner alone: a guest sees rows without secrets.
        self.terminal = Some(if opened.bytes && visitor.is_owner() {
            tokio::spawn(terminal::show(desk, visitor, opened, out, before))
        } else {
            let view = rows::View::open(desk, visitor, &opened);
            tokio::spawn(view.show(out, before))
        });
    }

    fn close(&mut self) {
        if let Some(task) = self.terminal.take() {
            task.abort();
        }
    }

    fn stop(&mut self) {
        self.close();
        let tiles = std::mem::take(&mut self.tiles).into_values();
        tiles.chain(self.list.take()).for_each(|task| task.abort());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_accepted_as_the_standard_says() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("upgrade", "websocket"),
            ("connection", "keep-alive, Upgrade"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        assert_eq!(accept_key(&headers).as_deref(), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        headers.remove("upgrade");
        assert_eq!(accept_key(&headers), None);
    }

    #[test]
    fn a_page_that_floods_is_cut_off() {
        let mut rate = Rate::default();
        let now = Instant::now();
        assert!((0..MESSAGES_PER_SECOND).all(|_| rate.admits(now)));
        assert!(!rate.admits(now));
        assert!(rate.admits(now + Duration::from_secs(1)));
    }
}
