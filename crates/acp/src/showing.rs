//! A job as a tool call: how it begins, each batch of its output, and its end.
//!
//! An update's content is what is new: a reader of the stream sees each line once. In this protocol content replaces
//! earlier content, so the output so far, bounded, is in `_meta` for editors that want to draw it, and the final update
//! carries it as content.

use agent_client_protocol::v1::schema::{
    Meta, SessionUpdate, Terminal, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};
use outlast_job::Handle;
use outlast_job::client::Lines;
use outlast_job::lifecycle::State;
use outlast_job::registry::format::Info;
use outlast_job::request::Stream;
use outlast_stream::LeftOut;
use serde_json::{Value, json};

/// How much of a job's output a tool call shows.
const MAX_SHOWN_BYTES: usize = 16 << 10;

/// Marks a batch of output of a job that runs in the background. What is printed while its turn waits for it is not marked.
pub(crate) const STREAM_MARK: &str = "outlast.dev/stream_output";
/// The mark that Gemini CLI's sidecars look for.
pub(crate) const GEMINI_STREAM_MARK: &str = "gemini-cli/stream_output";
/// The new lines of a batch.
pub(crate) const NEW_LINES: &str = "outlast.dev/lines";
/// The output so far, bounded.
const OUTPUT_SO_FAR: &str = "outlast.dev/output";

/// Where the rest of a job's output is read: in words that fit the reader of the tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadWith {
    /// The command of our own agent.
    Slash,
    /// The command line, which a user of any editor has.
    CommandLine,
}

impl ReadWith {
    fn all(self, handle: Handle) -> String {
        match self {
            Self::Slash => format!("/read {handle}"),
            Self::CommandLine => format!("outlast read {handle}"),
        }
    }

    fn part(self, handle: Handle, stderr: bool, gap: LeftOut) -> String {
        let LeftOut { from, to, .. } = gap;
        match self {
            Self::Slash => format!("/read {handle} {from}-{to}"),
            Self::CommandLine => {
                let stderr = if stderr { " --stderr" } else { "" };
                format!("outlast read {handle}{stderr} --since {from} --until {to}")
            }
        }
    }
}

/// A job as its client sees it.
#[derive(Debug)]
pub(crate) struct View {
    id: String,
    handle: Handle,
    pid: Option<i32>,
    title: String,
    command: String,
    /// The client shows terminals that it does not own: output is sent there as raw bytes.
    terminal: bool,
    /// The job runs on pipes: its lines end with a line feed alone.
    pipes: bool,
    read_with: ReadWith,
    text: String,
    cut: bool,
}

impl View {
    /// A view of a job as the tool call of that id.
    pub(crate) fn new(id: String, info: &Info, terminal: bool, read_with: ReadWith) -> Self {
        let title = info.description.clone().unwrap_or_else(|| info.command.clone());
        Self {
            id,
            handle: info.handle,
            pid: info.process.as_ref().map(|process| process.pid),
            title: one_line(&title),
            command: info.command.clone(),
            terminal,
            pipes: !info.has_terminal(),
            read_with,
            text: String::new(),
            cut: false,
        }
    }

    /// The tool call's id.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The client has seen a part of the output before: what follows is not all of it.
    pub(crate) fn goes_on(&mut self) {
        self.cut = true;
    }

    /// The tool call when the job starts.
    pub(crate) fn started(&self) -> SessionUpdate {
        SessionUpdate::ToolCall(self.call(ToolCallStatus::InProgress))
    }

    fn call(&self, status: ToolCallStatus) -> ToolCall {
        let mut meta = self.meta();
        let mut call = ToolCall::new(self.id.clone(), self.title.clone())
            .kind(ToolKind::Execute)
            .status(status)
            .raw_input(json!({ "command": self.command }));
        if self.terminal {
            call = call.content(vec![ToolCallContent::Terminal(Terminal::new(self.id.clone()))]);
            meta.insert("terminal_info".into(), json!({ "terminal_id": self.id }));
        }
        call.meta(meta)
    }

    /// A job that ended before it was shown: all of it in one tool call.
    pub(crate) fn past(mut self, info: &Info, output: &str) -> SessionUpdate {
        self.terminal = false;
        self.text = visible(output);
        let call = self.call(status(&info.state)).raw_output(outcome(info));
        SessionUpdate::ToolCall(call.content(self.content()))
    }

    /// An update for a batch of output, marked if the job runs in the background.
    pub(crate) fn batch(&mut self, lines: &Lines, background: bool) -> SessionUpdate {
        let (handle, batch, read_with) = (self.handle, &lines.batch, self.read_with);
        let stderr = lines.stream == Stream::Stderr;
        let new = visible(&batch.text(|gap| missing(gap, &read_with.part(handle, stderr, gap))));
        let mut meta = self.meta();
        if background {
            meta.insert(STREAM_MARK.into(), true.into());
            meta.insert(GEMINI_STREAM_MARK.into(), true.into());
        }
        meta.insert("from".into(), batch.from.into());
        meta.insert("to".into(), batch.to.into());
        meta.insert("lines".into(), batch.lines.into());
        if stderr {
            meta.insert("stream".into(), "stderr".into());
        }
        if let Some(gap) = batch.left_out {
            let left_out =
                json!({ "lines": gap.lines, "bytes": gap.to - gap.from, "from": gap.from, "to": gap.to });
            meta.insert("left_out".into(), left_out);
        }
        let mut fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
        self.add(&new);
        if self.terminal {
            let data = String::from_utf8_lossy(&lines.drawn);
            let data = if self.pipes { data.replace('\n', "\r\n") } else { data.into_owned() };
            meta.insert("terminal_output".into(), json!({ "terminal_id": self.id, "data": data }));
        } else {
            meta.insert(OUTPUT_SO_FAR.into(), self.so_far().into());
            fields = fields.content(vec![new.clone().into()]);
        }
        meta.insert(NEW_LINES.into(), new.into());
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(self.id.clone(), fields).meta(meta))
    }

    /// The final update: no update of the job comes after it.
    pub(crate) fn ended(&self, info: &Info) -> SessionUpdate {
        let mut meta = self.meta();
        if self.terminal {
            let (code, signal) = (info.state.exit_code(), info.state.signal());
            let exit = json!({ "terminal_id": self.id, "exit_code": code, "signal": signal });
            meta.insert("terminal_exit".into(), exit);
        }
        let mut fields = ToolCallUpdateFields::new().status(status(&info.state)).raw_output(outcome(info));
        if !self.terminal && !self.text.is_empty() {
            fields = fields.content(self.content());
        }
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(self.id.clone(), fields).meta(meta))
    }

    fn meta(&self) -> Meta {
        let mut meta = Meta::new();
        meta.insert("handle".into(), json!(self.handle));
        meta.insert("pid".into(), self.pid.map_or(Value::Null, Into::into));
        meta
    }

    fn add(&mut self, new: &str) {
        if new.is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(new);
        if self.text.len() > MAX_SHOWN_BYTES {
            let at = self.text.ceil_char_boundary(self.text.len() - MAX_SHOWN_BYTES);
            let line = self.text[at..].find('\n').map_or(at, |end| at + end + 1);
            self.text.drain(..line);
            self.cut = true;
        }
    }

    /// The output so far.
    fn so_far(&self) -> String {
        if !self.cut {
            return self.text.clone();
        }
        format!("[... earlier output: {} ...]\n{}", self.read_with.all(self.handle), self.text)
    }

    fn content(&self) -> Vec<ToolCallContent> {
        if self.text.is_empty() { Vec::new() } else { vec![self.so_far().into()] }
    }
}

/// What is missing from a batch, and how to read it.
fn missing(gap: LeftOut, call: &str) -> String {
    let LeftOut { lines, from, to } = gap;
    let lines = match lines {
        0 => String::new(),
        1 => "1 line, ".into(),
        _ => format!("{lines} lines, "),
    };
    let bytes = to - from;
    format!("[... {lines}{bytes} bytes left out: {call} ...]")
}

/// Spells out control and invisible characters, except carriage returns, which show that a line was redrawn.
pub(crate) fn visible(text: &str) -> String {
    text.split('\r').map(outlast_stream::visible).collect::<Vec<_>>().join("\r")
}

/// A text as a title.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = visible(text).split(['\n', '\r']).next().unwrap_or_default().trim().to_owned();
    if line.len() > 200 {
        line.truncate(line.floor_char_boundary(200));
        line.push_str("...");
    }
    line
}

fn status(state: &State) -> ToolCallStatus {
    match state {
        State::Queued(_) => ToolCallStatus::Pending,
        State::Starting | State::Running { .. } => ToolCallStatus::InProgress,
        State::Completed(_) => ToolCallStatus::Completed,
        State::Failed(_) | State::Killed(_) | State::Lost { .. } => ToolCallStatus::Failed,
    }
}

/// How a job ended, for programs.
fn outcome(info: &Info) -> Value {
    let (exit_code, signal) = (info.state.exit_code(), info.state.signal());
    let ended_by = info.state.receipt().map(|receipt| receipt.ended_by.describe());
    json!({ "status": info.state.name(), "exit_code": exit_code, "signal": signal, "ended_by": ended_by })
}

/// How a job ended, in a few words.
pub(crate) fn ending(state: &State) -> String {
    let Some(receipt) = state.receipt() else { return state.name().into() };
    receipt.words().unwrap_or_else(|error| format!("it could not start: {}", error.message))
}
