//! A served home, and a client that says exactly what a test wants it to say.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use outlast_testkit::{Running, Sandbox, TEST_TIMEOUT, eventually};
use serde_json::{Value, json};

/// How long an answer may take on a loaded machine.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// A server of a home.
pub(crate) struct Served {
    pub(crate) running: Running,
    pub(crate) said: Value,
}

impl Served {
    pub(crate) fn start(sandbox: &Sandbox, options: &[&str]) -> Self {
        let running = sandbox.call(["--json", "web", "--no-open"]).args(options).spawn();
        let said = eventually("the server says where it is", TEST_TIMEOUT, || {
            let text = String::from_utf8(running.stdout_so_far()).unwrap();
            match text.split_once('\n') {
                Some((line, _)) => Ok(serde_json::from_str::<Value>(line).unwrap()),
                None => Err(text),
            }
        });
        Self { running, said }
    }

    pub(crate) fn url(&self) -> &str {
        self.said["url"].as_str().unwrap()
    }

    /// `127.0.0.1:port`.
    pub(crate) fn host(&self) -> String {
        self.said["address"].as_str().unwrap().trim_start_matches("http://").to_owned()
    }

    pub(crate) fn ticket(&self) -> String {
        self.url().split("#ticket=").nth(1).unwrap().to_owned()
    }

    /// A browser that came in with the link.
    pub(crate) fn page(&self) -> Page {
        self.enter(json!({ "ticket": self.ticket() })).expect("the link gets somebody in")
    }

    pub(crate) fn enter(&self, with: Value) -> Option<Page> {
        let page = Page { host: self.host(), cookie: String::new(), key: String::new() };
        let answer = page.request("/api/enter").body(&with).send();
        if answer.status != 200 {
            return None;
        }
        let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        let key = answer.json()["key"].as_str().unwrap().to_owned();
        Some(Page { cookie, key, ..page })
    }
}

/// A browser that is known to the server.
#[derive(Clone)]
pub(crate) struct Page {
    pub(crate) host: String,
    pub(crate) cookie: String,
    pub(crate) key: String,
}

impl Page {
    /// A request as our own page makes it; a test changes what it wants to be different.
    pub(crate) fn request(&self, path: &str) -> Request {
        let headers = [
            ("Host", self.host.clone()),
            ("Origin", format!("http://{}", self.host)),
            ("Sec-Fetch-Site", "same-origin".into()),
            ("Content-Type", "application/json".into()),
            ("Cookie", self.cookie.clone()),
            ("X-Outlast-Key", self.key.clone()),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value)).to_vec();
        Request { method: "POST", path: path.into(), headers, body: Vec::new(), to: self.host.clone() }
    }

    /// A call that succeeds.
    #[track_caller]
    pub(crate) fn call(&self, call: &Value) -> Value {
        let answer = self.try_call(call);
        assert_eq!(answer.status, 200, "{call}: {}", answer.text());
        answer.json()
    }

    pub(crate) fn try_call(&self, call: &Value) -> Answer {
        self.request("/api").body(call).send()
    }

    /// Asks for a socket as our own page does.
    pub(crate) fn socket_request(&self) -> Request {
        let mut request = self.request("/ws").get();
        for (name, value) in [
            ("Upgrade", "websocket".to_owned()),
            ("Connection", "Upgrade".to_owned()),
            ("Sec-WebSocket-Version", "13".to_owned()),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==".to_owned()),
            ("Sec-WebSocket-Protocol", format!("outlast.1, outlast.key.{}", self.key)),
        ] {
            request = request.with(name, &value);
        }
        request
    }

    pub(crate) fn socket(&self) -> WebSocket {
        let (status, stream) = self.socket_request().open();
        assert_eq!(status, 101);
        WebSocket { stream }
    }
}

/// A request, header by header.
#[derive(Clone)]
pub(crate) struct Request {
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    to: String,
}

impl Request {
    pub(crate) fn get(mut self) -> Self {
        self.method = "GET";
        self
    }

    pub(crate) fn body(mut self, value: &Value) -> Self {
        self.body = value.to_string().into_bytes();
        self
    }

    /// With another value of a header.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self = self.without(name);
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if !self.body.is_empty() {
            text.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        [text.as_bytes(), b"\r\n", &self.body].concat()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.to).unwrap();
        stream.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
        stream
    }

    /// Sends it on a connection of its own, and reads the whole answer.
    pub(crate) fn send(self) -> Answer {
        let request = self.with("Connection", "close");
        let mut stream = request.connect();
        stream.write_all(&request.bytes()).unwrap();
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        Answer::parse(&bytes)
    }

    /// Sends it, and reads the head of the answer.
    pub(crate) fn open(self) -> (u16, TcpStream) {
        let mut stream = self.connect();
        stream.write_all(&self.bytes()).unwrap();
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
            head.push(byte[0]);
        }
        (Answer::parse(&head).status, stream)
    }
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Answer {
    fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(bytes.len());
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
        let headers = lines.filter_map(|line| line.split_once(": "));
        Self {
            status: status.unwrap_or(0),
            headers: headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect(),
            body: bytes.get(end + 4..).unwrap_or_default().to_vec(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

/// A socket of a page.
pub(crate) struct WebSocket {
    stream: TcpStream,
}

impl WebSocket {
    /// Sends a text; false when the other side is gone.
    pub(crate) fn say(&mut self, value: &Value) -> bool {
        self.frame(0x81, value.to_string().as_bytes())
    }

    pub(crate) fn frame(&mut self, first: u8, payload: &[u8]) -> bool {
        let mut bytes = vec![first];
        match payload.len() {
            short @ 0..126 => bytes.push(0x80 | u8::try_from(short).unwrap()),
            middle @ 126..65_536 => {
                bytes.push(0x80 | 126);
                bytes.extend(u16::try_from(middle).unwrap().to_be_bytes());
            }
            long => {
                bytes.push(0x80 | 127);
                bytes.extend((long as u64).to_be_bytes());
            }
        }
        // A mask of zeros leaves the bytes as they are.
        bytes.extend([0; 4]);
        bytes.extend(payload);
        self.stream.write_all(&bytes).is_ok()
    }

    /// The next message: its kind and its bytes; none when the other side is gone.
    pub(crate) fn hear(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 2];
        self.stream.read_exact(&mut head).ok()?;
        let mut length = u64::from(head[1] & 0x7f);
        if length == 126 {
            let mut more = [0; 2];
            self.stream.read_exact(&mut more).ok()?;
            length = u64::from(u16::from_be_bytes(more));
        } else if length == 127 {
            let mut more = [0; 8];
            self.stream.read_exact(&mut more).ok()?;
            length = u64::from_be_bytes(more);
        }
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.stream.read_exact(&mut payload).ok()?;
        match head[0] & 0x0f {
            8 => None,
            kind => Some((kind, payload)),
        }
    }

    /// The next JSON message with that word.
    pub(crate) fn hear_of(&mut self, word: &str) -> Option<Value> {
        loop {
            let (kind, payload) = self.hear()?;
            if kind == 1 {
                let value: Value = serde_json::from_slice(&payload).unwrap();
                if value["t"] == word {
                    return Some(value);
                }
            }
        }
    }
}
