//! A job as a tool call: how it begins, each batch of its output, and its end.
//!
//! In this protocol, content replaces earlier content. So each update has the output so far, bounded, and the
//! new lines alone are in its `_meta`, for programs.

use agent_client_protocol::v1::schema::{
    Meta, SessionUpdate, Terminal, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};
use outlast_job::client::Lines;
use outlast_job::lifecycle::State;
use outlast_job::registry::format::Info;
use outlast_job::request::Stream;
use outlast_stream::LeftOut;
use serde_json::{Value, json};

/// How much of a job's output a tool call shows.
const MAX_SHOWN_BYTES: usize = 16 << 10;

/// Marks every batch of output.
pub(crate) const STREAM_MARK: &str = "outlast.dev/stream_output";
/// The mark that Gemini CLI's sidecars look for.
pub(crate) const GEMINI_STREAM_MARK: &str = "gemini-cli/stream_output";
/// The new lines of a batch.
pub(crate) const NEW_LINES: &str = "outlast.dev/lines";

/// A job as its client sees it.
#[derive(Debug)]
pub(crate) struct View {
    id: String,
    handle: u64,
    pid: Option<i32>,
    title: String,
    command: String,
    /// The client shows terminals that it does not own: output is sent there as raw bytes.
    terminal: bool,
    /// The job runs on pipes: its lines end with a line feed alone.
    pipes: bool,
    text: String,
    cut: bool,
}

impl View {
    /// A view of a job. The prefix keeps its tool calls apart from others.
    pub(crate) fn new(prefix: &str, info: &Info, terminal: bool) -> Self {
        let title = info.description.clone().unwrap_or_else(|| info.command.clone());
        Self {
            id: format!("{prefix}{}", info.handle),
            handle: info.handle.0,
            pid: info.process.as_ref().map(|process| process.pid),
            title: one_line(&title),
            command: info.command.clone(),
            terminal,
            pipes: !info.has_terminal(),
            text: String::new(),
            cut: false,
        }
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

    /// An update for a batch of output.
    pub(crate) fn batch(&mut self, lines: &Lines) -> SessionUpdate {
        let (handle, batch) = (self.handle, &lines.batch);
        let stderr = if lines.stream == Stream::Stderr { " --stderr" } else { "" };
        let new = visible(&batch.text(|gap| missing(handle, stderr, gap)));
        let mut meta = self.meta();
        meta.insert(STREAM_MARK.into(), true.into());
        meta.insert(GEMINI_STREAM_MARK.into(), true.into());
        meta.insert("from".into(), batch.from.into());
        meta.insert("to".into(), batch.to.into());
        meta.insert("lines".into(), batch.lines.into());
        if lines.stream == Stream::Stderr {
            meta.insert("stream".into(), "stderr".into());
        }
        if let Some(gap) = batch.left_out {
            let left_out =
                json!({ "lines": gap.lines, "bytes": gap.to - gap.from, "from": gap.from, "to": gap.to });
            meta.insert("left_out".into(), left_out);
        }
        let mut fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
        if self.terminal {
            let data = String::from_utf8_lossy(&lines.drawn);
            let data = if self.pipes { data.replace('\n', "\r\n") } else { data.into_owned() };
            meta.insert("terminal_output".into(), json!({ "terminal_id": self.id, "data": data }));
        } else {
            self.add(&new);
            fields = fields.content(self.content());
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
        let fields = ToolCallUpdateFields::new().status(status(&info.state)).raw_output(outcome(info));
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(self.id.clone(), fields).meta(meta))
    }

    fn meta(&self) -> Meta {
        let mut meta = Meta::new();
        meta.insert("handle".into(), self.handle.into());
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

    fn content(&self) -> Vec<ToolCallContent> {
        if self.text.is_empty() {
            return Vec::new();
        }
        let earlier = if self.cut {
            format!("[... earlier output: outlast read {} ...]\n", self.handle)
        } else {
            String::new()
        };
        vec![format!("{earlier}{}", self.text).into()]
    }
}

/// What is missing from a batch, and how to read it.
fn missing(handle: u64, stderr: &str, gap: LeftOut) -> String {
    let LeftOut { lines, from, to } = gap;
    let lines = if lines > 0 { format!("{lines} lines, ") } else { String::new() };
    let bytes = to - from;
    format!(
        "[... {lines}{bytes} bytes left out: outlast read {handle}{stderr} --since {from} --until {to} ...]"
    )
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
