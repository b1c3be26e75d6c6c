//! An answer for every request, also for one that can't be read: text that is not UTF-8, half a surrogate pair (valid output of JavaScript's
//! `JSON.stringify`), nesting without end, a line that is too long.
//!
//! The transport drops such a line without a word, and its caller would wait until its own timeout. So lines are looked at before: one
//! that can't be read, but is a request with an id, is replaced by a request of the same id that the server answers with an error.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rmcp::model::{CustomRequest, ErrorData};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, ReadBuf};

/// The longest line: a megabyte of input, with room for its escapes.
const MAX_LINE: usize = 16 << 20;
/// How much of the beginning and of the end of a longer one is searched for its id.
const SEARCHED: usize = 64 << 10;
/// What the replaced request is called.
const METHOD: &str = "outlast/unreadable";
/// More brackets than this may be nested deeper than the transport reads.
const MAX_BRACKETS: usize = 100;
const CHUNK: usize = 16 << 10;

/// Lines in which every request can be read.
#[derive(Debug)]
pub(crate) struct Readable<R> {
    inner: R,
    chunk: Box<[u8]>,
    /// The line that has begun; past its limit only its beginning and its end.
    line: Vec<u8>,
    /// How long the line is, if it is too long.
    too_long: Option<usize>,
    /// What is given on, and how far.
    out: Vec<u8>,
    given: usize,
}

impl<R> Readable<R> {
    pub(crate) fn new(inner: R) -> Self {
        let chunk = vec![0; CHUNK].into_boxed_slice();
        Self { inner, chunk, line: Vec::new(), too_long: None, out: Vec::new(), given: 0 }
    }

    fn take(&mut self, mut bytes: &[u8]) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at(end + 1);
            self.add(line);
            self.end_line();
            bytes = rest;
        }
        self.add(bytes);
    }

    fn add(&mut self, bytes: &[u8]) {
        self.line.extend_from_slice(bytes);
        if let Some(length) = &mut self.too_long {
            *length += bytes.len();
        } else if self.line.len() > MAX_LINE {
            self.too_long = Some(self.line.len());
        }
        if self.too_long.is_some() && self.line.len() > 2 * SEARCHED {
            self.line.drain(SEARCHED..self.line.len() - SEARCHED);
            self.line.shrink_to(4 * SEARCHED);
        }
    }

    fn end_line(&mut self) {
        let why = match self.too_long.take() {
            Some(length) => {
                Some(format!("the request is {length} bytes long, and {MAX_LINE} are read at most"))
            }
            None => trouble(&self.line),
        };
        match why {
            None => self.out.extend_from_slice(&self.line),
            Some(why) => {
                // What has no id, or is an answer, is nobody's question.
                if let Some(id) = id_of_request(&self.line) {
                    let request =
                        json!({"jsonrpc": "2.0", "id": id, "method": METHOD, "params": {"why": why}});
                    self.out.extend_from_slice(request.to_string().as_bytes());
                    self.out.push(b'\n');
                }
            }
        }
        self.line.clear();
        self.line.shrink_to(1 << 20);
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Readable<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let this = self.get_mut();
        while this.given == this.out.len() {
            this.out.clear();
            this.out.shrink_to(1 << 20);
            this.given = 0;
            let mut chunk = std::mem::take(&mut this.chunk);
            let mut read = ReadBuf::new(&mut chunk);
            let polled = Pin::new(&mut this.inner).poll_read(context, &mut read);
            let count = read.filled().len();
            if matches!(polled, Poll::Ready(Ok(()))) {
                this.take(&chunk[..count]);
            }
            this.chunk = chunk;
            ready!(polled)?;
            if count == 0 {
                return Poll::Ready(Ok(()));
            }
        }
        let left = &this.out[this.given..];
        let count = left.len().min(into.remaining());
        into.put_slice(&left[..count]);
        this.given += count;
        Poll::Ready(Ok(()))
    }
}

/// The error that a replaced request is answered with.
pub(crate) fn error(request: &CustomRequest) -> Option<ErrorData> {
    let why = request.params.as_ref()?["why"].as_str()?;
    (request.method == METHOD).then(|| ErrorData::parse_error(why.to_owned(), None))
}

/// Why the transport can't read a line; none if it can. A line without anything odd is only skimmed.
fn trouble(line: &[u8]) -> Option<String> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return None;
    }
    if let Err(error) = std::str::from_utf8(line) {
        return Some(format!("the request is not UTF-8: {error}"));
    }
    let is_odd = || {
        let surrogate =
            |four: &[u8]| matches!(four, [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F']);
        line.windows(4).any(surrogate)
            || line.iter().filter(|byte| matches!(byte, b'[' | b'{')).count() > MAX_BRACKETS
    };
    let read = serde_json::from_slice::<IgnoredAny>(line).map(|_| ());
    let read = match read {
        Ok(()) if is_odd() => serde_json::from_slice::<Value>(line).map(|_| ()),
        read => read,
    };
    read.err().map(|error| format!("the request can't be read: {error}"))
}

/// The id of a request, from a text that may be anything: what stands for `id` beside `method`, outside of all that is nested.
fn id_of_request(line: &[u8]) -> Option<Value> {
    let mut scan = Scan { line, at: 0 };
    let (mut id, mut is_request, mut depth) = (None, false, 0_usize);
    while let Some(byte) = scan.next() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let text = scan.text();
                let is_key = depth == 1 && scan.next_is(b':');
                match (is_key, text) {
                    (true, b"method") => is_request = true,
                    (true, b"id") => id = scan.value().or(id),
                    (true | false, _) => {}
                }
            }
            _ => {}
        }
    }
    let whole_is_long = line.len() >= 2 * SEARCHED;
    id.or_else(|| whole_is_long.then(|| id_at_end(line)).flatten()).filter(|_| is_request)
}

/// Where the middle is missing nothing is known of the nesting at the end, but the last `id` is the request's.
fn id_at_end(line: &[u8]) -> Option<Value> {
    let key = b"\"id\":";
    let at = line.windows(key.len()).rposition(|part| part == key)?;
    Scan { line, at: at + key.len() }.value()
}

struct Scan<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    fn next(&mut self) -> Option<u8> {
        let byte = self.line.get(self.at).copied();
        self.at += 1;
        byte
    }

    /// The rest of a string whose opening quote has been read.
    fn text(&mut self) -> &'a [u8] {
        let from = self.at;
        while let Some(byte) = self.next() {
            match byte {
                b'\\' => self.at += 1,
                b'"' => return &self.line[from..self.at - 1],
                _ => {}
            }
        }
        &[]
    }

    fn skip_blanks(&mut self) {
        while self.line.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn next_is(&mut self, wanted: u8) -> bool {
        self.skip_blanks();
        let is = self.line.get(self.at) == Some(&wanted);
        self.at += usize::from(is);
        is
    }

    /// A number or a string.
    fn value(&mut self) -> Option<Value> {
        self.skip_blanks();
        let from = self.at;
        if self.next_is(b'"') {
            self.text();
        } else {
            while self.line.get(self.at).is_some_and(|byte| byte.is_ascii_digit() || *byte == b'-') {
                self.at += 1;
            }
        }
        serde_json::from_slice(self.line.get(from..self.at)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[test]
    fn ids_are_found_in_what_cannot_be_read() {
        let id = |text: &[u8]| id_of_request(text);
        assert_eq!(id(b"{\"id\":7,\"method\":\"x\",\"params\":{\"id\":8,\"a\":\"\xff\"}}"), Some(json!(7)));
        assert_eq!(
            id(b"{\"params\":{\"method\":\"id\",\"id\":1},\"method\":\"x\", \"id\" : \"a\"}"),
            Some(json!("a"))
        );
        assert_eq!(id(b"{\"id\":7,\"result\":{\"a\":\"\xff\"}}"), None, "an answer is nobody's question");
        assert_eq!(id(b"{\"method\":\"x\",\"params\":{\"id\":8}}"), None, "nor is a notification");
        assert_eq!(id(b"{\"id\":7,\"method\":\"x\",\"params\":[[[["), Some(json!(7)));
        assert_eq!(id(b"nothing of the kind"), None);
    }

    #[test]
    fn what_the_transport_reads_has_no_trouble_and_what_it_drops_has() {
        for good in ["{\"a\":\"\\ud83d\\ude00\"}", "{\"a\":[1,2,{}]}", "  {}  ", ""] {
            assert_eq!(trouble(good.as_bytes()), None, "{good}");
        }
        let deep = format!("{}{}", "[".repeat(2000), "]".repeat(2000));
        for bad in [b"{\"a\":\"\\ud800\"}".as_slice(), b"\xff", b"{\"a\":nope}", deep.as_bytes(), b"{"] {
            assert!(trouble(bad).is_some(), "{:?}", String::from_utf8_lossy(bad));
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_line_of_any_length_is_answered_and_the_next_is_read() {
        let mut sent = b"{\"id\":1,\"method\":\"x\",\"params\":\"".to_vec();
        sent.resize(MAX_LINE + 10, b'a');
        sent.extend_from_slice(b"\"}\n{\"id\":2}\n{\"params\":\"");
        sent.resize(sent.len() + MAX_LINE + 10, b'a');
        sent.extend_from_slice(b"\",\"method\":\"x\",\"id\":3}\n");
        let mut read = String::new();
        Readable::new(sent.as_slice()).read_to_string(&mut read).await.unwrap();
        let lines: Vec<Value> = read.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((&lines[0]["id"], &lines[0]["method"]), (&json!(1), &json!(METHOD)));
        assert_eq!(lines[1], json!({"id": 2}));
        assert_eq!((lines[2]["id"].clone(), lines.len()), (json!(3), 3), "{lines:?}");
    }
}
