//! Shows a recording: one line per message.

use std::io::{BufRead, BufReader};
use std::path::Path;

use outlast_job::{Failure, Kind};
use serde_json::{Value, json};

use super::{FORMAT, From, Header, Record};
use crate::showing::{GEMINI_STREAM_MARK, NEW_LINES, STREAM_MARK, visible};

/// How much of a text is shown.
const MAX_SHOWN_CHARS: usize = 160;

/// A message of a recording.
#[derive(Debug)]
pub struct Shown {
    /// The readable line.
    pub line: String,
    /// The same for programs.
    pub value: Value,
}

/// Reads a recording and passes on each message, while `each` returns true.
///
/// # Errors
/// If the file cannot be read, or is not a recording.
pub fn show(path: &Path, mut each: impl FnMut(Shown) -> bool) -> Result<(), Failure> {
    let shown = path.display();
    let file = std::fs::File::open(path)
        .map_err(|error| Failure::usage(format!("{shown} can't be read: {error}")))?;
    let mut lines = BufReader::new(file).lines();
    let first = lines.next().and_then(Result::ok).unwrap_or_default();
    let Ok(header) = serde_json::from_str::<Header>(&first) else {
        return Err(Failure::usage(format!("{shown} is not a recording"))
            .hint("make one: outlast acp tap --out FILE -- AGENT"));
    };
    if header.outlast_tap > FORMAT {
        let format = header.outlast_tap;
        return Err(Failure::new(
            Kind::UnknownFormat,
            format!("{shown} was written in format {format}; this outlast knows up to {FORMAT}"),
        ));
    }
    // The last line of a recording in progress may be unfinished.
    let records = lines.map_while(Result::ok).filter_map(|line| serde_json::from_str::<Record>(&line).ok());
    for record in records {
        if !each(render(&record)) {
            break;
        }
    }
    Ok(())
}

fn render(record: &Record) -> Shown {
    let message: Value =
        record.message.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let (what, mut value) = match &record.text {
        Some(text) => (visible(text), json!({ "kind": "text", "text": text })),
        None => describe(&message),
    };
    value["ms"] = record.ms.into();
    value["from"] = serde_json::to_value(record.from).unwrap_or_default();
    let arrow = match record.from {
        From::Client => "client →",
        From::Agent => "agent  ←",
        From::AgentStderr => "stderr  ",
    };
    Shown { line: format!("{:>10.3} {arrow} {}", record.ms / 1e3, what.trim_end()), value }
}

fn describe(message: &Value) -> (String, Value) {
    let id = message.get("id").map(|id| format!(" #{id}")).unwrap_or_default();
    let Some(method) = message["method"].as_str() else {
        let (kind, body) = match message.get("error") {
            Some(error) => ("error", error),
            None => ("result", &message["result"]),
        };
        return (
            format!("{}{} {}", kind, id, short(&body.to_string())),
            json!({ "kind": "response", "id": message["id"], kind: body }),
        );
    };
    let params = &message["params"];
    let kind = if message.get("id").is_some() { "request" } else { "notification" };
    let mut value = json!({ "kind": kind, "method": method, "session": params["sessionId"] });
    if let Some(id) = message.get("id") {
        value["id"] = id.clone();
    }
    let text = match method {
        "session/update" => {
            let (text, update) = describe_update(&params["update"]);
            value["update"] = update;
            text
        }
        "session/prompt" => {
            value["text"] = texts(&params["prompt"]).into();
            format!("{method}{id} {}", short(&texts(&params["prompt"])))
        }
        _ => format!("{method}{id} {}", short(&params.to_string())),
    };
    (text, value)
}

fn describe_update(update: &Value) -> (String, Value) {
    let kind = update["sessionUpdate"].as_str().unwrap_or("update");
    let meta = &update["_meta"];
    let marked = meta[STREAM_MARK] == true || meta[GEMINI_STREAM_MARK] == true;
    let text = match kind {
        "tool_call" | "tool_call_update" => {
            meta[NEW_LINES].as_str().map_or_else(|| texts(&update["content"]), ToOwned::to_owned)
        }
        _ => texts(&update["content"]),
    };
    let word = |name: &str| update[name].as_str().map(|word| format!(" {word}")).unwrap_or_default();
    let title = update["title"].as_str().map(|title| format!(" {:?}", short(title))).unwrap_or_default();
    let stream = if marked {
        format!(" [stream pid {} {}..{}]", meta["pid"], meta["from"], meta["to"])
    } else {
        String::new()
    };
    let line = format!("{kind}{}{}{title}{stream} {}", word("toolCallId"), word("status"), short(&text));
    let value = json!({
        "update": kind, "tool_call": update["toolCallId"],
        "status": update["status"], "title": update["title"],
        "text": text, "stream": marked, "meta": meta,
    });
    (line, value)
}

/// The texts in a content block, or in a list of them.
fn texts(content: &Value) -> String {
    match content {
        Value::Array(blocks) => blocks.iter().map(texts).collect::<Vec<_>>().join("\n"),
        Value::Object(block) => match (block.get("text"), block.get("content")) {
            (Some(Value::String(text)), _) => text.clone(),
            (_, Some(inner)) => texts(inner),
            _ => String::new(),
        },
        _ => String::new(),
    }
}

/// One line, cut to a readable length.
fn short(text: &str) -> String {
    let mut line = visible(text).replace('\n', "⏎").replace('\r', "␍");
    if line.len() > MAX_SHOWN_CHARS {
        line.truncate(line.floor_char_boundary(MAX_SHOWN_CHARS));
        line.push('…');
    }
    line
}
