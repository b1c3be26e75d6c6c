//! What the public conformance suite expects of a server besides its own tools: `--conformance-fixtures`, hidden.
//!
//! The suite can only test what a server offers: progress, questions, prompts, resources of every kind. A shell offers
//! few of them by itself. With these fixtures its scenarios run through the same handler, transports and library as
//! everything else, so that what they would find is found. Names and answers are the suite's own
//! (`@modelcontextprotocol/conformance`); nothing here is seen without the flag.

mod asking;
mod content;
mod prompts;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, GetPromptRequestParams, GetPromptResponse, Prompt,
    ReadResourceResult, Resource, ResourceTemplate, Tool,
};
use rmcp::service::RequestContext;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use content::PIXEL;

/// The fixtures of a server.
#[derive(Debug)]
pub(crate) struct Fixtures {
    asking: asking::Asking,
}

/// A value of the protocol, from what it looks like on the wire.
pub(crate) fn parsed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value)
        .map_err(|error| ErrorData::internal_error(format!("a fixture is wrong: {error}"), None))
}

impl Fixtures {
    pub(crate) fn new() -> Result<Self, outlast_job::Failure> {
        Ok(Self { asking: asking::Asking::new()? })
    }

    pub(crate) fn tools(&self) -> Vec<Tool> {
        content::tools().into_iter().chain(asking::tools()).filter_map(|tool| parsed(tool).ok()).collect()
    }

    /// Answers a call of a fixture; none when it is none.
    pub(crate) async fn call(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<CallToolResponse, ErrorData>> {
        if let Some(answer) = content::call(request, context).await {
            return Some(answer);
        }
        self.asking.call(request, context).await
    }

    /// Some fixtures are calls of our own tools under another name.
    pub(crate) fn in_our_words(&self, request: &mut CallToolRequestParams) {
        content::in_our_words(request);
    }

    pub(crate) fn prompts(&self) -> Result<Vec<Prompt>, ErrorData> {
        parsed(prompts::list())
    }

    pub(crate) fn prompt(&self, request: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(request)
    }

    pub(crate) fn resources(&self) -> Vec<Resource> {
        let one = |uri: &str, name: &str, mime: &str| json!({"uri": uri, "name": name, "description": "A fixture of the conformance suite", "mimeType": mime});
        parsed(json!([
            one("test://static-text", "static text", "text/plain"),
            one("test://static-binary", "static binary", "image/png"),
            one("test://watched-resource", "watched", "text/plain"),
        ]))
        .unwrap_or_default()
    }

    pub(crate) fn templates(&self) -> Vec<ResourceTemplate> {
        parsed(json!([{
            "uriTemplate": "test://template/{id}/data", "name": "template",
            "description": "A fixture of the conformance suite", "mimeType": "application/json",
        }]))
        .unwrap_or_default()
    }

    /// What a resource holds; none when it is no fixture.
    pub(crate) fn read(&self, uri: &str) -> Option<Result<ReadResourceResult, ErrorData>> {
        let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let contents = match (uri, id) {
            ("test://static-text", _) => {
                json!({"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."})
            }
            ("test://static-binary", _) => json!({"uri": uri, "mimeType": "image/png", "blob": PIXEL}),
            ("test://watched-resource", _) => {
                json!({"uri": uri, "mimeType": "text/plain", "text": "Nothing ever happens here."})
            }
            (_, Some(id)) => {
                let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()})
            }
            _ => return None,
        };
        Some(parsed(json!({"resultType": "complete", "contents": [contents]})))
    }

    /// Whether it can be subscribed to.
    pub(crate) fn is_watched(&self, uri: &str) -> bool {
        uri == "test://watched-resource"
    }
}
