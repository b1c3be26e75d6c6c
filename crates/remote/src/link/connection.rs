//! One connection of a link: a child process or a socket with a relay at its other end.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use outlast_job::client::News;
use outlast_job::request::Answer;
use outlast_job::wire::WireFailure;
use outlast_job::{Failure, Kind};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use super::pending::{Asked, Pending};
use super::{CONNECT_TIMEOUT, Dial, IDLE_CLOSE, IDLE_PING, LinkOptions, PING_AFTER, PONG_TIMEOUT, as_fds};
use crate::frame::{Assembler, Decoder, Frame, Message, MessageKind, encode};
use crate::message::{Also, Began, Credit, Hello};

/// How much a relay may send on a stream before it is given credit.
const WINDOW: u64 = 1 << 20;
/// Questions for missed events go by these numbers: those of their subscription, and this bit.
const CATCH_UP: u32 = 1 << 31;
/// How much of what a command says about its own trouble is kept.
const MAX_SAID: usize = 4096;
/// How long a command that has closed its pipe may take to say why.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// What came.
pub(super) enum Heard {
    Nothing,
    Something,
    /// The relay is there.
    Hello,
    /// There will be no more, and why.
    End(String),
}

pub(super) struct Connection {
    child: Option<Child>,
    to: OwnedFd,
    from: OwnedFd,
    said: Option<ChildStderr>,
    /// What the command said about its own trouble.
    trouble: Vec<u8>,
    decoder: Decoder,
    assembler: Assembler,
    unsent: Vec<u8>,
    /// What was taken of each stream without giving credit for it.
    taken: BTreeMap<u32, u64>,
    pub(super) is_greeted: bool,
    /// What the relay says of itself.
    pub(super) hello: Option<Hello>,
    pub(super) heard_at: Instant,
    pub(super) said_at: Instant,
    pub(super) pinged_at: Option<Instant>,
}

/// The ends of a pipe to a relay, which do not block.
struct Pipes {
    child: Option<Child>,
    to: OwnedFd,
    from: OwnedFd,
    /// What a command says about its own trouble.
    said: Option<ChildStderr>,
}

impl Pipes {
    fn of_command(command: &[String]) -> Result<Self, Failure> {
        let (program, arguments) =
            command.split_first().ok_or_else(|| Failure::usage("there is no command to run"))?;
        let cannot = |error: &dyn std::fmt::Display| {
            Failure::new(Kind::Unreachable, format!("cannot run {program}: {error}"))
        };
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Keys at our terminal are not meant for it.
            .process_group(0)
            .spawn()
            .map_err(|error| cannot(&error))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(to), Some(from), Some(said)) = pipes else { return Err(cannot(&"it has no pipes")) };
        let (to, from) = (OwnedFd::from(to), OwnedFd::from(from));
        for fd in [&to, &from] {
            nonblocking(fd).map_err(|error| cannot(&error))?;
        }
        nonblocking(&said).map_err(|error| cannot(&error))?;
        Ok(Self { child: Some(child), to, from, said: Some(said) })
    }

    fn of_stream(stream: UnixStream) -> Result<Self, Failure> {
        let cannot = |error: std::io::Error| Failure::system("cannot use a pipe", error);
        stream.set_nonblocking(true).map_err(cannot)?;
        let to = OwnedFd::from(stream.try_clone().map_err(cannot)?);
        Ok(Self { child: None, to, from: OwnedFd::from(stream), said: None })
    }
}

impl Connection {
    pub(super) fn run(options: &LinkOptions) -> Result<Self, Failure> {
        let Pipes { child, to, from, said } = match &options.dial {
            Dial::Command(command) => Pipes::of_command(command)?,
            Dial::Pipe(open) => Pipes::of_stream(open()?)?,
        };
        let now = Instant::now();
        let mut connection = Self {
            child,
            to,
            from,
            said,
            trouble: Vec::new(),
            decoder: Decoder::of_relay(),
            assembler: Assembler::default(),
            unsent: Vec::new(),
            taken: BTreeMap::new(),
            is_greeted: false,
            hello: None,
            heard_at: now,
            said_at: now,
            pinged_at: None,
        };
        let hello = Hello {
            window: Some(WINDOW),
            ping_ms: u64::try_from(IDLE_PING.as_millis()).ok(),
            caller: Some(options.caller.clone()),
            ..Hello::new()
        };
        connection.say(0, MessageKind::Hello, &serde_json::to_vec(&hello).unwrap_or_default());
        Ok(connection)
    }

    fn say(&mut self, stream: u32, kind: MessageKind, body: &[u8]) {
        self.unsent.extend(encode(stream, kind, body));
        self.said_at = Instant::now();
        self.flush();
    }

    fn flush(&mut self) {
        while !self.unsent.is_empty() {
            match rustix::io::write(&self.to, &self.unsent) {
                Ok(n) => drop(self.unsent.drain(..n)),
                Err(Errno::INTR) => {}
                // Full, or gone: that is noticed where it is read from.
                Err(_) => return,
            }
        }
    }

    /// Asks for something, perhaps again.
    pub(super) fn ask(&mut self, id: u32, pending: &mut Pending) {
        if let Some(missed) = pending.missed() {
            self.say(id | CATCH_UP, MessageKind::Request, &missed);
        }
        let (kind, body) = pending.message();
        self.say(id, kind, &body);
    }

    pub(super) fn cancel(&mut self, id: u32) {
        self.taken.remove(&id);
        self.assembler.forget(id);
        self.say(id, MessageKind::Cancel, b"{}");
    }

    pub(super) fn ping(&mut self, now: Instant) {
        self.pinged_at = Some(now);
        self.say(0, MessageKind::Ping, b"{}");
    }

    pub(super) fn poll<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        let writing = (!self.unsent.is_empty()).then_some((&self.to, PollFlags::OUT));
        fds.extend(as_fds([(&self.from, PollFlags::IN)].into_iter().chain(writing)));
    }

    /// When to look at it again, whatever comes.
    pub(super) fn due(&self, idle: bool) -> Instant {
        if !self.is_greeted {
            return self.heard_at + CONNECT_TIMEOUT;
        }
        if idle {
            return (self.said_at + IDLE_PING).min(self.heard_at + IDLE_CLOSE);
        }
        self.pinged_at.map_or(self.heard_at + PING_AFTER, |at| at + PONG_TIMEOUT)
    }

    /// Takes what has come.
    pub(super) fn hear(&mut self, asked: &mut Asked) -> Heard {
        self.flush();
        self.listen_for_trouble();
        let mut bytes = vec![0; 64 << 10];
        let n = match rustix::io::read(&self.from, &mut bytes) {
            Ok(0) => return Heard::End("the connection was closed".into()),
            Ok(n) => n,
            Err(Errno::AGAIN | Errno::INTR) => return Heard::Nothing,
            Err(error) => return Heard::End(error.to_string()),
        };
        self.heard_at = Instant::now();
        self.pinged_at = None;
        self.decoder.push(&bytes[..n]);
        let was_greeted = self.is_greeted;
        loop {
            let frame = match self.decoder.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => return Heard::End(error.to_string()),
            };
            self.credit(&frame);
            match self.assembler.push(frame) {
                Ok(None) => {}
                Ok(Some(message)) => {
                    if let Err(why) = self.understand(message, asked) {
                        return Heard::End(why);
                    }
                }
                Err(error) => return Heard::End(error.to_string()),
            }
        }
        if self.is_greeted && !was_greeted { Heard::Hello } else { Heard::Something }
    }

    /// Gives back room for what was taken.
    fn credit(&mut self, frame: &Frame) {
        let takes = MessageKind::of(frame.kind).is_some_and(MessageKind::takes_credit);
        if !takes || frame.stream == 0 {
            return;
        }
        let taken = self.taken.entry(frame.stream).or_default();
        *taken += frame.body.len() as u64;
        if *taken >= WINDOW / 4 {
            let bytes = std::mem::take(taken);
            self.say(
                frame.stream,
                MessageKind::Credit,
                &serde_json::to_vec(&Credit { bytes }).unwrap_or_default(),
            );
        }
    }

    fn understand(&mut self, message: Message, asked: &mut Asked) -> Result<(), String> {
        let Message { stream, kind, body } = message;
        let broken = |error: serde_json::Error| format!("it sent what cannot be read: {error}");
        match kind {
            MessageKind::Hello => {
                let hello: Hello = serde_json::from_slice(&body).map_err(broken)?;
                Hello::new().common(&hello).map_err(|failure| failure.message)?;
                self.is_greeted = true;
                self.hello = Some(hello);
            }
            MessageKind::Answer => {
                let answer = serde_json::from_slice::<Answer>(&body).map_err(broken);
                self.over(stream, answer.map_err(|why| Failure::new(Kind::Keeper, why)), asked);
            }
            MessageKind::Failure => {
                let failure: WireFailure = serde_json::from_slice(&body).map_err(broken)?;
                if stream == 0 {
                    return Err(failure.message);
                }
                self.over(stream, Err(failure.into()), asked);
            }
            MessageKind::News => {
                let news: News = serde_json::from_slice(&body).map_err(broken)?;
                let is_over = matches!(news, News::Over);
                if !asked.tell(stream, news) {
                    self.taken.remove(&stream);
                    if !is_over {
                        self.cancel(stream);
                    }
                }
            }
            MessageKind::Also => {
                let also: Also = serde_json::from_slice(&body).map_err(broken)?;
                asked.also(stream, also.answers.into_iter().map(Into::into).collect());
            }
            MessageKind::Began => {
                let began: Began = serde_json::from_slice(&body).map_err(broken)?;
                asked.began(stream, &began.from);
            }
            MessageKind::Request
            | MessageKind::Subscribe
            | MessageKind::Credit
            | MessageKind::Cancel
            | MessageKind::Ping
            | MessageKind::Pong => {}
        }
        Ok(())
    }

    fn over(&mut self, stream: u32, answer: Result<Answer, Failure>, asked: &mut Asked) {
        self.taken.remove(&stream);
        if stream & CATCH_UP != 0 {
            let lines = match answer {
                Ok(Answer::EventLines(lines)) => lines,
                _ => String::new(),
            };
            let id = stream & !CATCH_UP;
            asked.caught_up(id, &lines);
            return;
        }
        asked.answered(stream, answer);
    }

    fn listen_for_trouble(&mut self) {
        let mut bytes = [0; 1024];
        let Some(said) = &mut self.said else { return };
        while let Ok(n @ 1..) = said.read(&mut bytes) {
            self.trouble.extend_from_slice(&bytes[..n]);
            let over = self.trouble.len().saturating_sub(MAX_SAID);
            self.trouble.drain(..over);
        }
    }

    /// Ends what is left of it; says why it ended, in the words of the command if it has any.
    pub(super) fn end(mut self, why: String) -> String {
        let until = Instant::now() + LAST_WORDS;
        while let Some(child) = &mut self.child
            && Instant::now() < until
            && child.try_wait().is_ok_and(|ended| ended.is_none())
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.listen_for_trouble();
        let printed = self.decoder.before_marker().unwrap_or_default();
        let trouble = String::from_utf8_lossy(&self.trouble).into_owned();
        let said = trouble.lines().rev().map(str::trim).find(|line| !line.is_empty());
        match (said, printed.as_str()) {
            (Some(said), _) => said.chars().filter(|c| !c.is_control()).take(300).collect(),
            (None, "") => why,
            (None, printed) => printed.to_owned(),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child
            && child.try_wait().is_ok_and(|ended| ended.is_none())
        {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn nonblocking(fd: &impl std::os::fd::AsFd) -> Result<(), Errno> {
    fcntl_setfl(fd, fcntl_getfl(fd)? | OFlags::NONBLOCK)
}
