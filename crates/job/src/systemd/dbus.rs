//! As much D-Bus as it takes to ask systemd something: method calls, their replies, and the signal that a job of systemd is done.
//!
//! A whole client would be a dependency of many times the size of what is used here: one connection, little-endian or big-endian as
//! the machine is, strings, numbers and arrays.

use std::io::{Error, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long systemd may take to answer.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);
/// No message that concerns us is longer.
const MAX_MESSAGE: usize = 1 << 20;
/// At most so many other messages are skipped while a reply is awaited.
const MAX_SKIPPED: usize = 10_000;

const CALL: u8 = 1;
const REPLY: u8 = 2;
const ERROR: u8 = 3;
const SIGNAL: u8 = 4;

/// A method, and where it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Method<'a> {
    pub(super) destination: &'a str,
    pub(super) path: &'a str,
    pub(super) interface: &'a str,
    pub(super) member: &'a str,
}

/// The arguments of a call.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    signature: &'static str,
    bytes: Vec<u8>,
}

impl Arguments {
    pub(super) fn new(signature: &'static str) -> Self {
        Self { signature, bytes: Vec::new() }
    }

    fn align(&mut self, to: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(to), 0);
    }

    pub(super) fn number(&mut self, number: u32) {
        self.align(4);
        self.bytes.extend(number.to_ne_bytes());
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(u32::try_from(text.len()).unwrap_or(0));
        self.bytes.extend(text.as_bytes());
        self.bytes.push(0);
    }

    fn signature(&mut self, signature: &str) {
        self.bytes.push(u8::try_from(signature.len()).unwrap_or(0));
        self.bytes.extend(signature.as_bytes());
        self.bytes.push(0);
    }

    /// An array whose elements begin at multiples of `align`.
    pub(super) fn array(&mut self, align: usize, elements: impl FnOnce(&mut Self)) {
        self.number(0);
        let length_at = self.bytes.len() - 4;
        self.align(align);
        let from = self.bytes.len();
        elements(self);
        let length = u32::try_from(self.bytes.len() - from).unwrap_or(0);
        self.bytes[length_at..length_at + 4].copy_from_slice(&length.to_ne_bytes());
    }

    /// One element of an array of properties: its name and a value of any type.
    pub(super) fn property(&mut self, name: &str, signature: &str, value: impl FnOnce(&mut Self)) {
        self.align(8);
        self.text(name);
        self.signature(signature);
        value(self);
    }
}

/// What came back.
#[derive(Debug)]
pub(super) struct Message {
    kind: u8,
    reply_to: Option<u32>,
    member: Option<String>,
    error: Option<String>,
    body: Vec<u8>,
}

impl Message {
    /// The strings that the body begins with, after `skip` numbers.
    pub(super) fn texts(&self, skip: usize) -> Vec<String> {
        let mut reader = Reader { bytes: &self.body, at: skip * 4 };
        std::iter::from_fn(|| reader.text()).take(4).collect()
    }

    /// The truth value of a variant that holds one.
    pub(super) fn truth(&self) -> Option<bool> {
        let mut reader = Reader { bytes: &self.body, at: 0 };
        (reader.signature()? == "b").then(|| reader.number()).flatten().map(|value| value != 0)
    }
}

/// A line to systemd, or to a bus.
#[derive(Debug)]
pub(super) struct Bus {
    stream: UnixStream,
    serial: u32,
    /// Signals that came while a reply was awaited.
    signals: Vec<Message>,
}

impl Bus {
    /// Whether the process at the other end has a number here.
    pub(super) fn is_of_our_pid_namespace(&self) -> bool {
        outlast_pty::procfs::peer_of(&self.stream).is_some()
    }

    /// Opens a line to a socket that is a service's own.
    pub(super) fn connect(socket: &Path) -> std::io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
        let mut bus = Self { stream, serial: 0, signals: Vec::new() };
        let user = rustix::process::geteuid().as_raw().to_string();
        let user: String = user.bytes().map(|byte| format!("{byte:02x}")).collect();
        // All at once, as systemd's own programs do: it loses a message that it reads together with a BEGIN that came alone.
        let greeting = format!("\0AUTH EXTERNAL {user}\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n");
        bus.stream.write_all(greeting.as_bytes())?;
        if !bus.line()?.starts_with("OK") {
            return Err(ErrorKind::PermissionDenied.into());
        }
        bus.line()?;
        Ok(bus)
    }

    /// Opens a line to a bus, which wants to be greeted.
    pub(super) fn connect_to_bus(socket: &Path) -> std::io::Result<Self> {
        const BUS: &str = "org.freedesktop.DBus";
        let mut bus = Self::connect(socket)?;
        let hello =
            Method { destination: BUS, path: "/org/freedesktop/DBus", interface: BUS, member: "Hello" };
        bus.call(&hello, &Arguments::new(""))?.map_err(Error::other)?;
        Ok(bus)
    }

    fn line(&mut self) -> std::io::Result<String> {
        let mut line = Vec::new();
        let mut byte = [0];
        while !line.ends_with(b"\r\n") && line.len() < 512 {
            self.stream.read_exact(&mut byte)?;
            line.push(byte[0]);
        }
        Ok(String::from_utf8_lossy(&line).into_owned())
    }

    /// Calls a method and waits for its reply; the inner error is the name of the one that came back.
    pub(super) fn call(
        &mut self,
        method: &Method<'_>,
        arguments: &Arguments,
    ) -> std::io::Result<Result<Message, String>> {
        self.serial += 1;
        let serial = self.serial;
        self.stream.write_all(&message(method, arguments, serial))?;
        for _ in 0..MAX_SKIPPED {
            let message = self.message()?;
            match message.kind {
                REPLY if message.reply_to == Some(serial) => return Ok(Ok(message)),
                ERROR if message.reply_to == Some(serial) => {
                    return Ok(Err(message.error.unwrap_or_default()));
                }
                SIGNAL => self.signals.push(message),
                _ => {}
            }
        }
        Err(ErrorKind::TimedOut.into())
    }

    /// Waits for a signal of this name that `is_meant`.
    pub(super) fn signal(
        &mut self,
        member: &str,
        is_meant: impl Fn(&Message) -> bool,
    ) -> std::io::Result<()> {
        let wanted = |message: &Message| message.member.as_deref() == Some(member) && is_meant(message);
        if self.signals.drain(..).any(|message| wanted(&message)) {
            return Ok(());
        }
        for _ in 0..MAX_SKIPPED {
            let message = self.message()?;
            if message.kind == SIGNAL && wanted(&message) {
                return Ok(());
            }
        }
        Err(ErrorKind::TimedOut.into())
    }

    fn message(&mut self) -> std::io::Result<Message> {
        let mut head = [0; 16];
        self.stream.read_exact(&mut head)?;
        let number = |at: usize| {
            head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes)
        };
        let (body, fields) = (number(4) as usize, number(12) as usize);
        if head[0] != ENDIAN || body > MAX_MESSAGE || fields > MAX_MESSAGE {
            return Err(ErrorKind::InvalidData.into());
        }
        let padded = (16 + fields).next_multiple_of(8) - 16;
        let mut rest = vec![0; padded + body];
        self.stream.read_exact(&mut rest)?;
        let mut message = Message {
            kind: head[1],
            reply_to: None,
            member: None,
            error: None,
            body: rest.split_off(padded),
        };
        read_fields(&rest[..fields], &mut message);
        Ok(message)
    }
}

#[cfg(target_endian = "little")]
const ENDIAN: u8 = b'l';
#[cfg(target_endian = "big")]
const ENDIAN: u8 = b'B';

/// The bytes of a call.
fn message(method: &Method<'_>, arguments: &Arguments, serial: u32) -> Vec<u8> {
    let mut message = Arguments::new("");
    message.bytes.extend([ENDIAN, CALL, 0, 1]);
    message.number(u32::try_from(arguments.bytes.len()).unwrap_or(0));
    message.number(serial);
    message.array(8, |fields| {
        let named = [
            (1, "o", method.path),
            (2, "s", method.interface),
            (3, "s", method.member),
            (6, "s", method.destination),
        ];
        for (code, signature, text) in named {
            fields.align(8);
            fields.bytes.push(code);
            fields.signature(signature);
            fields.text(text);
        }
        if !arguments.signature.is_empty() {
            fields.align(8);
            fields.bytes.push(8);
            fields.signature("g");
            fields.signature(arguments.signature);
        }
    });
    message.align(8);
    message.bytes.extend(&arguments.bytes);
    message.bytes
}

/// Reads the fields of a message's head; one of an unknown kind ends that.
fn read_fields(bytes: &[u8], message: &mut Message) {
    let mut reader = Reader { bytes, at: 0 };
    loop {
        reader.align(8);
        let Some(code) = reader.byte() else { return };
        let Some(signature) = reader.signature() else { return };
        let (mut text, mut number) = (None, None);
        match signature.as_str() {
            "s" | "o" => text = reader.text(),
            "g" => text = reader.signature(),
            "u" => number = reader.number(),
            _ => return,
        }
        match code {
            3 => message.member = text,
            4 => message.error = text,
            5 => message.reply_to = number,
            _ => {}
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn align(&mut self, to: usize) {
        self.at = self.at.next_multiple_of(to);
    }

    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    fn number(&mut self) -> Option<u32> {
        self.align(4);
        self.take(4)?.try_into().ok().map(u32::from_ne_bytes)
    }

    fn text(&mut self) -> Option<String> {
        let length = self.number()? as usize;
        let text = String::from_utf8_lossy(self.take(length)?).into_owned();
        self.byte().map(|_| text)
    }

    fn signature(&mut self) -> Option<String> {
        let length = usize::from(self.byte()?);
        let text = String::from_utf8_lossy(self.take(length)?).into_owned();
        self.byte().map(|_| text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLED: Method<'_> = Method { destination: "a.b", path: "/a", interface: "a.b", member: "Do" };

    /// The head of a call can be read back, and its body begins at a multiple of eight.
    #[test]
    fn a_call_is_aligned_and_can_be_read_back() {
        let mut arguments = Arguments::new("sau");
        arguments.text("x.scope");
        arguments.array(4, |pids| {
            pids.number(1);
            pids.number(2);
        });
        let bytes = message(&CALLED, &arguments, 7);
        assert_eq!(&bytes[..4], [ENDIAN, CALL, 0, 1]);
        let number = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let body = (16 + number(12)).next_multiple_of(8);
        assert_eq!(bytes.len() - body, number(4));
        let mut read =
            Message { kind: CALL, reply_to: None, member: None, error: None, body: bytes[body..].to_vec() };
        read_fields(&bytes[16..16 + number(12)], &mut read);
        assert_eq!(read.member.as_deref(), Some("Do"));
        assert_eq!(read.texts(0)[0], "x.scope");
    }

    #[test]
    fn what_is_cut_off_is_read_as_far_as_it_goes() {
        let whole = message(&CALLED, &Arguments::new(""), 1);
        for end in 16..whole.len() {
            let mut read =
                Message { kind: CALL, reply_to: None, member: None, error: None, body: Vec::new() };
            read_fields(&whole[16..end], &mut read);
            assert!(read.texts(0).is_empty() && read.truth().is_none());
        }
    }
}
