//! Schemas from fields.

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
    /// The only values that it, or an item of it, may have.
    choices: Vec<&'static str>,
}

impl Field {
    fn new(sort: Sort, name: &'static str, description: &'static str) -> Self {
        Self { name, sort, description, required: false, items: String::new(), choices: Vec::new() }
    }

    pub(crate) fn text(name: &'static str, description: &'static str) -> Self {
        Self::new(Sort::Text, name, description)
    }

    /// One of a few words.
    pub(crate) fn choice(name: &'static str, choices: &[&'static str], description: &'static str) -> Self {
        Self { choices: choices.to_vec(), ..Self::text(name, description) }
    }

    /// Each item is one of these.
    pub(crate) fn each_of(self, choices: Vec<&'static str>) -> Self {
        Self { choices, ..self }
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
        if !self.choices.is_empty() {
            let of = if matches!(self.sort, Sort::Texts) { &mut schema["items"] } else { &mut schema };
            of["enum"] = json!(self.choices);
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

/// What every answer about one job has at least. A client reads this at every start: it is short.
pub(super) fn output_schema() -> JsonObject {
    let schema = json!({
        "type": "object",
        "properties": {
            "handle": {"type": "integer"},
            "status": {"type": "string"},
            "exit_code": {"type": "integer"},
            "reason": {"type": "string"},
            "output": {"type": "string"},
            "offset": {"type": "integer"}
        },
        "required": ["handle", "status"]
    });
    schema.as_object().cloned().unwrap_or_default()
}

/// What `jobs` answers.
pub(super) fn list_schema() -> JsonObject {
    let list = || json!({"type": "array", "items": {"type": "object"}});
    let schema = json!({
        "type": "object",
        "properties": {"jobs": list(), "events": list()},
        "required": ["jobs"]
    });
    schema.as_object().cloned().unwrap_or_default()
}
