//! Messages as lines: inspected, and changed in one place, without rewriting what is not ours.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The envelope of a message.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl<'a> Message<'a> {
    /// Parses a line; `None` if it is not a message of the protocol.
    pub(crate) fn peek(line: &'a str) -> Option<Self> {
        // serde would read a list as the fields in their order.
        if line.trim_start().starts_with('{') { serde_json::from_str(line).ok() } else { None }
    }

    /// Its id as it is written.
    pub(crate) fn id(&self) -> Option<&'a str> {
        self.id.map(RawValue::get)
    }

    /// Whether it answers a request.
    pub(crate) fn is_response(&self) -> bool {
        self.method.is_none() && self.id.is_some()
    }

    pub(crate) fn is_error(&self) -> bool {
        self.error.is_some()
    }

    /// Why the request was refused.
    pub(crate) fn error_text(&self) -> String {
        #[derive(Deserialize)]
        struct Error {
            message: String,
        }
        let error = self.error.and_then(|error| serde_json::from_str::<Error>(error.get()).ok());
        error.map_or_else(|| "without a word".into(), |error| error.message)
    }

    /// The part of its parameters that the type knows.
    pub(crate) fn params<T: Deserialize<'a>>(&self) -> Option<T> {
        serde_json::from_str(self.params?.get()).ok()
    }

    /// The part of its result that the type knows.
    pub(crate) fn result<T: Deserialize<'a>>(&self) -> Option<T> {
        serde_json::from_str(self.result?.get()).ok()
    }
}

/// Parameters or results with a session id.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OfSession<'a> {
    #[serde(borrow)]
    pub(crate) session_id: Cow<'a, str>,
}

/// The part of an update that matters here.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Update<'a> {
    #[serde(borrow)]
    pub(crate) session_id: Cow<'a, str>,
    pub(crate) update: serde_json::Value,
}

impl Update<'_> {
    pub(crate) fn kind(&self) -> &str {
        self.update["sessionUpdate"].as_str().unwrap_or_default()
    }

    /// The text of its content.
    pub(crate) fn text(&self) -> String {
        fn texts(value: &serde_json::Value) -> String {
            match value {
                serde_json::Value::Array(blocks) => blocks.iter().map(texts).collect::<Vec<_>>().join("\n"),
                block => match block["text"].as_str() {
                    Some(text) => text.to_owned(),
                    None if block["content"].is_null() => String::new(),
                    None => texts(&block["content"]),
                },
            }
        }
        texts(&self.update["content"])
    }
}

/// Appends an element to a list in the parameters; creates the list if it is missing. All other bytes are
/// unchanged.
pub(crate) fn add_to_list(line: &str, list: &str, element: &str) -> Option<String> {
    use std::collections::HashMap;
    let params = Message::peek(line)?.params?.get();
    let fields: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(params).ok()?;
    let inserted = |at: usize, text: String| format!("{}{text}{}", &line[..at], &line[at..]);
    let place = |part: &str| part.as_ptr() as usize - line.as_ptr() as usize;
    match fields.get(list).map(|value| value.get()) {
        Some(value) if value.starts_with('[') => {
            let at = place(value) + value.len() - 1;
            let comma = if value[1..value.len() - 1].trim().is_empty() { "" } else { "," };
            Some(inserted(at, format!("{comma}{element}")))
        }
        Some(_) => None,
        None => {
            let comma = if fields.is_empty() { "" } else { "," };
            Some(inserted(place(params) + 1, format!("\"{list}\":[{element}]{comma}")))
        }
    }
}

/// Whether a prompt is one of the agent's own commands, which must stay alone.
pub(crate) fn begins_with_command(line: &str) -> bool {
    first_text(line).is_some_and(|text| text.trim_start().starts_with('/'))
}

/// The first text of a prompt.
pub(crate) fn first_text(line: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Prompt {
        prompt: Vec<serde_json::Value>,
    }
    let prompt = Message::peek(line)?.params::<Prompt>()?;
    prompt.prompt.first()?["text"].as_str().map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_list_grows_and_every_other_byte_stays() {
        let line = concat!(
            r#"{ "jsonrpc":"2.0","id":1e2, "method":"session/new","params":{"cwd":"/\u0061", "#,
            r#""mcpServers" : [ {"name":"x"} ],"_future":{"n":12345678901234567890123}}}"#,
            "\n"
        );
        let added = add_to_list(line, "mcpServers", "{\"name\":\"y\"}").unwrap();
        assert_eq!(added.replace(",{\"name\":\"y\"}", ""), line);
        assert_eq!(Message::peek(&added).unwrap().id(), Some("1e2"));
        let empty = "{\"id\":1,\"params\":{\"mcpServers\":[ ]}}";
        assert_eq!(
            add_to_list(empty, "mcpServers", "1").unwrap(),
            "{\"id\":1,\"params\":{\"mcpServers\":[ 1]}}"
        );
        let none = "{\"id\":1,\"params\":{\"cwd\":\"/\"}}";
        assert_eq!(
            add_to_list(none, "mcpServers", "1").unwrap(),
            "{\"id\":1,\"params\":{\"mcpServers\":[1],\"cwd\":\"/\"}}"
        );
        assert_eq!(add_to_list("{\"id\":1,\"params\":{\"mcpServers\":3}}", "mcpServers", "1"), None);
        assert_eq!(add_to_list("not json", "mcpServers", "1"), None);
    }

    #[test]
    fn requests_answers_and_notifications_are_distinguished() {
        let request =
            Message::peek("{\"id\":\"a\",\"method\":\"x\\/y\",\"params\":{\"sessionId\":\"s\"}}").unwrap();
        assert_eq!((request.id(), request.method.as_deref()), (Some("\"a\""), Some("x/y")));
        assert_eq!(request.params::<OfSession<'_>>().unwrap().session_id, "s");
        let response = Message::peek("{\"id\":3,\"result\":{}}").unwrap();
        assert!(response.is_response() && !response.is_error());
        assert!(Message::peek("[]").is_none());
    }
}
