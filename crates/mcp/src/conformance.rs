//! What the public conformance suite expects of a server besides its own tools. Only the binary `outlast-conformance`
//! has it, which is built with the feature `conformance`.
//!
//! The suite can only test what a server offers: progress, questions, prompts, resources of every kind. A shell offers
//! few of them by itself. With these fixtures its scenarios run through the same handler, transports and library as
//! everything else, so that what they would find is found. Names and answers are the suite's own
//! (`@modelcontextprotocol/conformance`).

mod asking;
mod content;
mod prompts;

use std::sync::Arc;

use outlast_job::Failure;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ErrorData, GetPromptRequestParams, GetPromptResponse, Prompt, ReadResourceResult,
    Resource, ResourceTemplate, Tool,
};
use rmcp::service::RequestContext;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use content::PIXEL;

use crate::extras::{ExtraAnswer, Extras};
use crate::options::Options;

/// The fixtures of a server.
#[derive(Debug)]
struct Fixtures {
    asking: asking::Asking,
}

/// A value of the protocol, from what it looks like on the wire.
pub(crate) fn parsed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value)
        .map_err(|error| ErrorData::internal_error(format!("a fixture is wrong: {error}"), None))
}

impl Options {
    /// Also what the conformance suite asks for.
    ///
    /// # Errors
    /// When there are no random numbers for a key.
    pub fn with_conformance_fixtures(self) -> Result<Self, Failure> {
        let fixtures = Fixtures { asking: asking::Asking::new()? };
        Ok(Self { extras: Some(Arc::new(fixtures)), ..self })
    }
}

impl Extras for Fixtures {
    fn tools(&self) -> Vec<Tool> {
        content::tools().into_iter().chain(asking::tools()).filter_map(|tool| parsed(tool).ok()).collect()
    }

    fn call<'a>(
        &'a self,
        request: &'a CallToolRequestParams,
        context: &'a RequestContext<RoleServer>,
    ) -> ExtraAnswer<'a> {
        Box::pin(async move {
            if let Some(answer) = content::call(request, context).await {
                return Some(answer);
            }
            self.asking.call(request, context).await
        })
    }

    fn translate(&self, request: &mut CallToolRequestParams) {
        content::in_our_words(request);
    }

    fn prompts(&self) -> Result<Vec<Prompt>, ErrorData> {
        parsed(prompts::list())
    }

    fn prompt(&self, request: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(request)
    }

    fn resources(&self) -> Vec<Resource> {
        let one = |uri: &str, name: &str, mime: &str| json!({"uri": uri, "name": name, "description": "A fixture of the conformance suite", "mimeType": mime});
        parsed(json!([
            one("test://static-text", "static text", "text/plain"),
            one("test://static-binary", "static binary", "image/png"),
            one("test://watched-resource", "watched", "text/plain"),
        ]))
        .unwrap_or_default()
    }

    fn templates(&self) -> Vec<ResourceTemplate> {
        parsed(json!([{
            "uriTemplate": "test://template/{id}/data", "name": "template",
            "description": "A fixture of the conformance suite", "mimeType": "application/json",
        }]))
        .unwrap_or_default()
    }

    fn read(&self, uri: &str) -> Option<Result<ReadResourceResult, ErrorData>> {
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

    fn is_watched(&self, uri: &str) -> bool {
        uri == "test://watched-resource"
    }
}
