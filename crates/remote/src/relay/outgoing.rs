//! What a relay has to send: messages of many streams, cut into frames, each stream within its credit and all in turn.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use outlast_protocol::request::News;

use crate::frame::{Frame, MARKER, MAX_BODY, MessageKind, encode};

/// More news than this on one stream, and its reader is told that there is no more: it looks again then.
const MAX_UNSENT_NEWS: usize = 4096;

/// A message that is not sent yet, or only a part of it.
#[derive(Debug)]
struct Unsent {
    kind: MessageKind,
    body: Vec<u8>,
    sent: usize,
    /// How far a log has grown: replaced by what is said of it later.
    is_growth: bool,
}

#[derive(Debug, Default)]
struct Stream {
    queue: VecDeque<Unsent>,
    /// How many bytes its reader has room for; none for any number.
    credit: Option<u64>,
    /// Nothing more will be queued.
    is_over: bool,
}

#[derive(Debug, Default)]
struct State {
    /// Goes first, and takes no credit.
    control: VecDeque<Vec<u8>>,
    streams: BTreeMap<u32, Stream>,
    /// Streams with something to send, in turn.
    turns: VecDeque<u32>,
    window: Option<u64>,
    closed: bool,
}

/// What is to be sent. One thread [writes](Outgoing::write_to); any may queue.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    state: Mutex<State>,
    changed: Condvar,
}

impl Outgoing {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much each stream may send before it is given credit.
    pub(super) fn set_window(&self, window: Option<u64>) {
        self.lock().window = window;
    }

    /// Something about the connection itself, or that must not wait for credit.
    pub(super) fn control(&self, stream: u32, kind: MessageKind, body: &[u8]) {
        self.lock().control.push_back(encode(stream, kind, body));
        self.changed.notify_one();
    }

    pub(super) fn open(&self, stream: u32) {
        let mut state = self.lock();
        let credit = state.window;
        state.streams.insert(stream, Stream { credit, ..Stream::default() });
    }

    /// A message of a stream that goes on.
    pub(super) fn say(&self, stream: u32, kind: MessageKind, body: Vec<u8>) {
        let mut state = self.lock();
        queue(&mut state, stream, Unsent { kind, body, sent: 0, is_growth: false });
        self.changed.notify_one();
    }

    /// The last message of a stream.
    pub(super) fn finish(&self, stream: u32, kind: MessageKind, body: Vec<u8>) {
        let mut state = self.lock();
        let Some(one) = state.streams.get_mut(&stream) else { return };
        one.is_over = true;
        queue(&mut state, stream, Unsent { kind, body, sent: 0, is_growth: false });
        self.changed.notify_one();
    }

    /// News of a subscription; false when nobody wants more, or takes it.
    pub(super) fn tell(&self, stream: u32, news: &News) -> bool {
        let Ok(body) = serde_json::to_vec(news) else { return false };
        let mut state = self.lock();
        let Some(one) = state.streams.get_mut(&stream).filter(|one| !one.is_over) else { return false };
        let is_growth = matches!(news, News::Grown(_));
        if is_growth
            && let Some(last) = one.queue.back_mut()
            && last.is_growth
            && last.sent == 0
        {
            last.body = body;
            return true;
        }
        let body = if one.queue.len() < MAX_UNSENT_NEWS {
            one.is_over = matches!(news, News::Over);
            body
        } else {
            one.is_over = true;
            serde_json::to_vec(&News::Over).unwrap_or_default()
        };
        let wants_more = !one.is_over;
        queue(&mut state, stream, Unsent { kind: MessageKind::News, body, sent: 0, is_growth });
        self.changed.notify_one();
        wants_more
    }

    pub(super) fn credit(&self, stream: u32, bytes: u64) {
        let mut state = self.lock();
        if let Some(one) = state.streams.get_mut(&stream)
            && let Some(credit) = &mut one.credit
        {
            *credit = credit.saturating_add(bytes);
            if !one.queue.is_empty() && !state.turns.contains(&stream) {
                state.turns.push_back(stream);
            }
            self.changed.notify_one();
        }
    }

    /// Nobody wants this stream any more.
    pub(super) fn drop_stream(&self, stream: u32) {
        let mut state = self.lock();
        // What was begun is finished: half a message would never be forgotten at the other end.
        match state.streams.get_mut(&stream) {
            Some(one) if one.queue.front().is_some_and(|unsent| unsent.sent > 0) => {
                one.queue.truncate(1);
                one.is_over = true;
                one.credit = None;
                if !state.turns.contains(&stream) {
                    state.turns.push_back(stream);
                }
                self.changed.notify_one();
            }
            _ => {
                state.streams.remove(&stream);
            }
        }
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Writes until it is closed or nobody reads any more.
    pub(super) fn write_to(&self, mut output: impl Write) {
        let mut begun = output.write_all(MARKER).and_then(|()| output.flush());
        while begun.is_ok() {
            let mut state = self.lock();
            let bytes = loop {
                if let Some(bytes) = state.next() {
                    break bytes;
                }
                if state.closed {
                    return;
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            };
            drop(state);
            begun = output.write_all(&bytes).and_then(|()| output.flush());
        }
        self.close();
    }
}

fn queue(state: &mut State, stream: u32, unsent: Unsent) {
    if let Some(one) = state.streams.get_mut(&stream) {
        one.queue.push_back(unsent);
        if !state.turns.contains(&stream) {
            state.turns.push_back(stream);
        }
    }
}

impl State {
    /// The next bytes to write: one frame, of the stream whose turn it is.
    fn next(&mut self) -> Option<Vec<u8>> {
        if let Some(control) = self.control.pop_front() {
            return Some(control);
        }
        while let Some(stream) = self.turns.pop_front() {
            let Some(one) = self.streams.get_mut(&stream) else { continue };
            let Some(unsent) = one.queue.front_mut() else { continue };
            let room = one
                .credit
                .map_or(MAX_BODY, |credit| usize::try_from(credit).unwrap_or(usize::MAX).min(MAX_BODY));
            let left = unsent.body.len() - unsent.sent;
            if room == 0 && left > 0 {
                // It gets its turn again with its credit.
                continue;
            }
            let length = left.min(room);
            let body = unsent.body[unsent.sent..unsent.sent + length].to_vec();
            unsent.sent += length;
            let more = unsent.sent < unsent.body.len();
            let frame = Frame { stream, kind: unsent.kind.number(), more, body };
            if unsent.kind.takes_credit()
                && let Some(credit) = &mut one.credit
            {
                *credit -= length as u64;
            }
            if !more {
                one.queue.pop_front();
            }
            if one.queue.is_empty() {
                if one.is_over {
                    self.streams.remove(&stream);
                }
            } else {
                self.turns.push_back(stream);
            }
            return Some(frame.encode());
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Decoder;

    fn frames(outgoing: &Outgoing) -> Vec<Frame> {
        let mut decoder = Decoder::of_client();
        while let Some(bytes) = outgoing.lock().next() {
            decoder.push(&bytes);
        }
        std::iter::from_fn(|| decoder.next_frame().unwrap()).collect()
    }

    #[test]
    fn a_large_answer_lets_small_ones_pass_and_keeps_to_its_credit() {
        let outgoing = Outgoing::default();
        outgoing.set_window(Some(100_000));
        outgoing.open(1);
        outgoing.open(3);
        outgoing.finish(1, MessageKind::Answer, vec![b'x'; 250_000]);
        outgoing.finish(3, MessageKind::Answer, b"{}".to_vec());
        let sent = frames(&outgoing);
        let streams: Vec<u32> = sent.iter().map(|frame| frame.stream).collect();
        assert_eq!(streams, [1, 3, 1]);
        assert_eq!(
            sent.iter().filter(|one| one.stream == 1).map(|one| one.body.len()).sum::<usize>(),
            100_000
        );
        outgoing.credit(1, 1_000_000);
        let rest = frames(&outgoing);
        assert_eq!(rest.iter().map(|one| one.body.len()).sum::<usize>(), 150_000);
        assert!(!rest.last().unwrap().more);
        assert!(outgoing.lock().streams.is_empty());
    }

    #[test]
    fn growth_that_was_not_sent_is_replaced_and_a_reader_that_takes_nothing_is_let_go() {
        let outgoing = Outgoing::default();
        outgoing.set_window(Some(0));
        outgoing.open(1);
        for offset in 0..10 {
            let grown = outlast_job::wire::Grown { offset, errors: 0 };
            assert!(outgoing.tell(1, &News::Grown(grown)));
        }
        assert_eq!(outgoing.lock().streams[&1].queue.len(), 1);
        for _ in 1..MAX_UNSENT_NEWS {
            assert!(outgoing.tell(1, &News::Changed));
        }
        assert!(!outgoing.tell(1, &News::Changed), "it does not take what it is told");
        outgoing.credit(1, 1 << 20);
        let last = frames(&outgoing).pop().unwrap();
        assert_eq!(last.body, b"\"over\"");
    }
}
