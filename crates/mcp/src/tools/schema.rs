//! Schemas from fields.

use outlast_job::Reason;
use rmcp::model::JsonObject;
use serde_json::{Map, Value, json};

/// The sort of a parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sort {
    Text,
    Number,
    Integer,
    Flag,
    Texts,
    Pairs,
}

/// A parameter.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    name: &'static str,
    sort: Sort,
    description: &'static str,
    required: bool,
    /// What each item of a list may be.
    items: String,
}

impl Field {
    fn new(sort: Sort, name: &'static str, description: &'static str) -> Self {
        Self { name, sort, description, required: false, items: String::new() }
    }

    pub(crate) fn text(name: &'static str, description: &'static str) -> Self {
        Self::new(Sort::Text, name, description)
    }

    pub(crate) fn number(name: &'static str, description: &'static str) -> Self {
        Self::new(Sort::Number, name, description)
    }

    pub(crate) fn integer(name: &'static str, description: &'static str) -> Self {
        Self::new(Sort::Integer, name, description)
    }

    pub(crate) fn flag(name: &'static str, description: &'static str) -> Self {
        Self::new(Sort::Flag, name, description)
    }

    pub(crate) fn texts(name: &'static str, description: &'static str) -> Self {
        Self::new(Sort::Texts, name, description)
    }

    pub(crate) fn pairs(name: &'static str, description: &'static str) -> Self {
        Self::new(Sort::Pairs, name, description)
    }

    /// The caller must give it.
    pub(crate) fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// What each item of it may be.
    pub(crate) fn items(mut self, items: impl Into<String>) -> Self {
        self.items = items.into();
        self
    }

    fn schema(&self) -> Value {
        let mut schema = match self.sort {
            Sort::Text => json!({"type": "string"}),
            Sort::Number => json!({"type": "number"}),
            Sort::Integer => json!({"type": "integer"}),
            Sort::Flag => json!({"type": "boolean"}),
            Sort::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Sort::Pairs => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        };
        if !self.items.is_empty() {
            schema["items"]["description"] = json!(self.items);
        }
        if !self.description.is_empty() {
            schema["description"] = json!(self.description);
        }
        schema
    }
}

/// The schema of an object with these fields.
pub(crate) fn object(fields: &[Field]) -> JsonObject {
    let properties: Map<String, Value> =
        fields.iter().map(|field| (field.name.to_owned(), field.schema())).collect();
    let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let mut schema = Map::from_iter([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), Value::Object(properties)),
    ]);
    if !required.is_empty() {
        schema.insert("required".into(), json!(required));
    }
    schema
}

/// What every answer about one job says.
pub(super) fn output_schema() -> JsonObject {
    let text = || json!({"type": "string"});
    let integer = || json!({"type": "integer"});
    let flag = || json!({"type": "boolean"});
    let reasons: Vec<&str> = Reason::ALL.iter().map(|reason| reason.name()).collect();
    let schema = json!({
        "type": "object",
        "properties": {
            "handle": integer(),
            "name": text(),
            "pid": integer(),
            "status": status(),
            "exit_code": integer(),
            "signal": text(),
            "reason": {"type": "string", "enum": reasons},
            "output": text(),
            "offset": integer(),
            "omitted_bytes": integer(),
            "output_file": text(),
            "transcript_file": text(),
            "awaiting_input": awaiting(),
            "port": integer(),
            "events_waiting": integer(),
            "match": {
                "type": "object",
                "properties": {
                    "pattern": integer(),
                    "text": text(),
                    "captures": {"type": "array", "items": text()}
                }
            },
            "screen": {
                "type": "object",
                "properties": {
                    "text": text(),
                    "cursor": {
                        "type": "object",
                        "properties": {"row": integer(), "column": integer(), "visible": flag()}
                    },
                    "columns": integer(),
                    "rows": integer(),
                    "title": text(),
                    "modes": {
                        "type": "object",
                        "properties": {
                            "alternate_screen": flag(),
                            "bracketed_paste": flag(),
                            "application_cursor": flag()
                        }
                    },
                    "scrollback": text()
                }
            }
        },
        "required": ["handle", "status", "output", "offset", "omitted_bytes", "output_file", "transcript_file"]
    });
    schema.as_object().cloned().unwrap_or_default()
}

/// What `jobs` answers.
pub(super) fn list_schema() -> JsonObject {
    let text = || json!({"type": "string"});
    let integer = || json!({"type": "integer"});
    let schema = json!({
        "type": "object",
        "properties": {"jobs": {"type": "array", "items": {
            "type": "object",
            "properties": {
                "handle": integer(),
                "name": text(),
                "pid": integer(),
                "status": status(),
                "activity": text(),
                "exit_code": integer(),
                "signal": text(),
                "command": text(),
                "description": text(),
                "session": text(),
                "this_session": {"type": "boolean"},
                "age_seconds": integer(),
                "last_line": text(),
                "ports": {"type": "array", "items": integer()},
                "awaiting_input": awaiting(),
                "unread_bytes": integer()
            },
            "required": ["handle", "status", "command"]
        }}, "events": {"type": "array", "items": {
            "type": "object",
            "properties": {
                "number": integer(),
                "handle": integer(),
                "name": text(),
                "event": text(),
                "count": integer(),
                "text": text(),
                "offset": integer(),
                "age_seconds": integer()
            }
        }}},
        "required": ["jobs"]
    });
    schema.as_object().cloned().unwrap_or_default()
}

fn status() -> Value {
    json!({"type": "string", "enum": ["starting", "running", "completed", "failed", "killed", "lost"]})
}

fn awaiting() -> Value {
    let text = || json!({"type": "string"});
    json!({
        "type": "object",
        "properties": {"level": text(), "kind": text(), "prompt": text(), "evidence": {"type": "object"}}
    })
}
