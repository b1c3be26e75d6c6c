//! Frames: how messages of many streams share one pipe. Pure: bytes in, frames out. See `docs/formats/relay.md`.
//!
//! A frame is a header of ten bytes and a body. The header holds the length of the body, the number of the stream, the kind of the
//! message and flags. A message longer than one frame goes in several, all but the last flagged with [`MORE`], so that a large
//! answer does not hold up the small ones of other streams.

use std::collections::BTreeMap;
use std::fmt;

/// The length of a header, in bytes.
pub const HEADER: usize = 10;
/// The longest body of one frame.
pub const MAX_BODY: usize = 64 << 10;
/// The longest message, in bytes.
pub const MAX_MESSAGE: usize = 64 << 20;
/// What a relay writes before its first frame. Whatever comes earlier was printed by somebody else: a login shell, a banner.
pub const MARKER: &[u8] = b"\0outlast-relay\n";
/// How much may come before the marker.
const MAX_BEFORE_MARKER: usize = 64 << 10;
/// A flag: the message goes on in the next frame of this stream.
pub const MORE: u8 = 1;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessageKind {
    /// The first message of each side, on stream 0.
    Hello,
    /// A client opens a stream with a request.
    Request,
    /// A client opens a stream with a subscription.
    Subscribe,
    /// The answer to a request. The stream is over.
    Answer,
    /// Why there is no answer, or no subscription any more. The stream is over.
    Failure,
    /// What a subscriber is told.
    News,
    /// Where a wait began: what to ask for when it must be asked again.
    Began,
    /// The receiver has room for this many bytes more on this stream.
    Credit,
    /// The client wants no more of this stream.
    Cancel,
    /// Is anybody there?
    Ping,
    /// Yes.
    Pong,
    /// Answers to what the client will ask next about the same job. The answer to the request itself follows.
    Also,
}

impl MessageKind {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Hello,
        Self::Request,
        Self::Subscribe,
        Self::Answer,
        Self::Failure,
        Self::News,
        Self::Began,
        Self::Credit,
        Self::Cancel,
        Self::Ping,
        Self::Pong,
        Self::Also,
    ];

    /// The number in a header.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Hello => 0,
            Self::Request => 1,
            Self::Subscribe => 2,
            Self::Answer => 3,
            Self::Failure => 4,
            Self::News => 5,
            Self::Began => 6,
            Self::Credit => 7,
            Self::Cancel => 8,
            Self::Ping => 9,
            Self::Pong => 10,
            Self::Also => 11,
        }
    }

    /// The kind of a number; none for what a newer side may have invented.
    #[must_use]
    pub fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// The name in the conformance vectors.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::Request => "request",
            Self::Subscribe => "subscribe",
            Self::Answer => "answer",
            Self::Failure => "failure",
            Self::News => "news",
            Self::Began => "began",
            Self::Credit => "credit",
            Self::Cancel => "cancel",
            Self::Ping => "ping",
            Self::Pong => "pong",
            Self::Also => "also",
        }
    }

    /// Whether its bytes count against a stream's credit.
    #[must_use]
    pub fn takes_credit(self) -> bool {
        match self {
            Self::Answer | Self::Failure | Self::News | Self::Also => true,
            Self::Hello
            | Self::Request
            | Self::Subscribe
            | Self::Began
            | Self::Credit
            | Self::Cancel
            | Self::Ping
            | Self::Pong => false,
        }
    }
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The stream; 0 for what is about the whole connection.
    pub stream: u32,
    /// The [kind](MessageKind)'s number.
    pub kind: u8,
    /// The message goes on in another frame.
    pub more: bool,
    /// A piece of the message.
    pub body: Vec<u8>,
}

impl Frame {
    /// The frame as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + self.body.len());
        bytes.extend(u32::try_from(self.body.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend(self.stream.to_be_bytes());
        bytes.push(self.kind);
        bytes.push(if self.more { MORE } else { 0 });
        bytes.extend(&self.body);
        bytes
    }
}

/// A whole message as frames, one after the other.
#[must_use]
pub fn encode(stream: u32, kind: MessageKind, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    let mut rest = body;
    loop {
        let (piece, after) = rest.split_at(rest.len().min(MAX_BODY));
        rest = after;
        let more = !rest.is_empty();
        bytes.extend(Frame { stream, kind: kind.number(), more, body: piece.to_vec() }.encode());
        if !more {
            return bytes;
        }
    }
}

/// Why bytes are not frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// There is no relay at the other end. What came instead, as far as it is text.
    NoMarker(String),
    /// A body of this length is too long.
    BodyTooLong(usize),
    /// A message of this length is too long.
    MessageTooLong(usize),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMarker(said) => write!(f, "no relay answered, but: {said}"),
            Self::BodyTooLong(length) => write!(f, "a frame of {length} bytes is too long"),
            Self::MessageTooLong(length) => write!(f, "a message of {length} bytes is too long"),
        }
    }
}

impl std::error::Error for FrameError {}

/// Finds the frames in a stream of bytes.
#[derive(Debug)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// How much of the buffer was taken.
    taken: usize,
    awaits_marker: bool,
}

impl Decoder {
    /// For what comes from a client: frames from the first byte on.
    #[must_use]
    pub fn of_client() -> Self {
        Self { buffer: Vec::new(), taken: 0, awaits_marker: false }
    }

    /// For what comes from a relay: whatever comes before its marker is skipped.
    #[must_use]
    pub fn of_relay() -> Self {
        Self { awaits_marker: true, ..Self::of_client() }
    }

    /// Takes bytes in.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.taken > 0 {
            self.buffer.drain(..self.taken);
            self.taken = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// What was printed where a marker should have been.
    #[must_use]
    pub fn before_marker(&self) -> Option<String> {
        self.awaits_marker.then(|| shown(&self.buffer))
    }

    /// The next frame; none if more bytes are needed.
    ///
    /// # Errors
    /// There is no relay, or a frame is too long: nothing that follows can be understood.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        if self.awaits_marker {
            let found = self.buffer.windows(MARKER.len()).position(|window| window == MARKER);
            match found {
                Some(at) => {
                    self.taken = at + MARKER.len();
                    self.awaits_marker = false;
                }
                None if self.buffer.len() > MAX_BEFORE_MARKER => {
                    return Err(FrameError::NoMarker(shown(&self.buffer)));
                }
                None => return Ok(None),
            }
        }
        let rest = &self.buffer[self.taken..];
        let Some((header, rest)) = rest.split_first_chunk::<HEADER>() else { return Ok(None) };
        let [a, b, c, d, e, f, g, h, kind, flags] = *header;
        let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        if length > MAX_BODY {
            return Err(FrameError::BodyTooLong(length));
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let stream = u32::from_be_bytes([e, f, g, h]);
        let frame = Frame { stream, kind, more: flags & MORE != 0, body: body.to_vec() };
        self.taken += HEADER + length;
        Ok(Some(frame))
    }
}

/// The last readable line of what somebody else printed.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).take(200).collect()
}

/// A whole message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The stream.
    pub stream: u32,
    /// What it is.
    pub kind: MessageKind,
    /// JSON.
    pub body: Vec<u8>,
}

/// Joins frames to messages.
#[derive(Debug, Default)]
pub struct Assembler {
    parts: BTreeMap<(u32, u8), Vec<u8>>,
}

impl Assembler {
    /// Takes a frame in; a message when it is whole. Kinds that are not known are skipped.
    ///
    /// # Errors
    /// A message that is too long.
    pub fn push(&mut self, frame: Frame) -> Result<Option<Message>, FrameError> {
        let Some(kind) = MessageKind::of(frame.kind) else { return Ok(None) };
        let key = (frame.stream, frame.kind);
        let body = match self.parts.remove(&key) {
            None => frame.body,
            Some(mut before) => {
                before.extend(frame.body);
                before
            }
        };
        if body.len() > MAX_MESSAGE {
            return Err(FrameError::MessageTooLong(body.len()));
        }
        if frame.more {
            self.parts.insert(key, body);
            return Ok(None);
        }
        Ok(Some(Message { stream: frame.stream, kind, body }))
    }

    /// A stream is over: what was begun on it is not wanted any more.
    pub fn forget(&mut self, stream: u32) {
        self.parts.retain(|(of, _), _| *of != stream);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_of_kinds_are_as_the_format_says() {
        for (number, kind) in MessageKind::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(kind.number()), number);
            assert_eq!(MessageKind::of(kind.number()), Some(kind));
        }
        assert_eq!(MessageKind::of(200), None);
    }

    #[test]
    fn what_a_login_shell_prints_is_skipped_and_named_when_there_is_no_relay() {
        let mut decoder = Decoder::of_relay();
        decoder.push(b"Welcome to gpu1\n\0outlast-");
        assert_eq!(decoder.next_frame(), Ok(None));
        decoder.push(b"relay\n");
        decoder.push(&encode(0, MessageKind::Ping, b"{}"));
        assert_eq!(decoder.next_frame().unwrap().unwrap().kind, MessageKind::Ping.number());
        let mut decoder = Decoder::of_relay();
        decoder.push(b"sh: outlast: not found\n");
        assert_eq!(decoder.before_marker().unwrap(), "sh: outlast: not found");
        decoder.push(&vec![b'x'; MAX_BEFORE_MARKER]);
        assert!(matches!(decoder.next_frame(), Err(FrameError::NoMarker(_))));
    }

    proptest! {
        /// However the bytes are cut, and however streams are mixed, the messages come out as they went in.
        #[test]
        fn messages_survive_any_cut(
            messages in prop::collection::vec((1_u32..5, 0_usize..11, 0_usize..200_000), 1..6),
            cut in 1_usize..70_000,
        ) {
            let whole: Vec<Message> = messages
                .into_iter()
                .map(|(stream, kind, length)| Message {
                    stream,
                    kind: MessageKind::ALL[kind],
                    body: (0..length).map(|i| u8::try_from(i % 251).unwrap_or(0)).collect(),
                })
                .collect();
            let bytes: Vec<u8> = whole.iter().flat_map(|one| encode(one.stream, one.kind, &one.body)).collect();
            let (mut decoder, mut assembler) = (Decoder::of_client(), Assembler::default());
            let mut out = Vec::new();
            for piece in bytes.chunks(cut) {
                decoder.push(piece);
                while let Some(frame) = decoder.next_frame().unwrap() {
                    out.extend(assembler.push(frame).unwrap());
                }
            }
            prop_assert_eq!(out, whole);
        }
    }
}
