//! A job inside the chat: one page that clients with the extension `io.modelcontextprotocol/ui` show beside a call, and the
//! tool that only the page calls.
//!
//! The page gets rows without secrets, never bytes, and what it types goes through the same gate as what a model types. It
//! reads nothing in the model's place: cursors and news stay as they are.

use std::sync::Arc;

use outlast_job::{Failure, Send};
use outlast_policy::TypedInput;
use outlast_protocol::AwaitingKind;
use rmcp::model::{
    ClientCapabilities, MetaObject, ReadResourceResult, Resource, ResourceContents, Tool, ToolAnnotations,
};
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::calls::{Call, CallOrder};
use crate::engine::Engine;
use crate::engine::view::ViewOrder;
use crate::tools::{Field, object};

/// Where the page is found.
pub(crate) const URI: &str = "ui://outlast/job";
/// The tool that the page calls.
pub(crate) const TOOL: &str = "job_view";
const EXTENSION: &str = "io.modelcontextprotocol/ui";
const MIME: &str = "text/html;profile=mcp-app";
const PAGE: &str = include_str!("app/job.html");
/// The tools beside whose answers the page is shown: those that start a job, by the names of each profile.
const STARTS: [&str; 3] = ["run_shell_command", "exec_command", "Bash"];

/// Whether a client shows pages.
pub(crate) fn is_shown_by(client: Option<&ClientCapabilities>) -> bool {
    let settings = client.and_then(|client| client.extensions.as_ref()?.get(EXTENSION));
    let types = settings.and_then(|settings| settings.get("mimeTypes")?.as_array());
    types.is_some_and(|types| types.iter().any(|mime| mime == MIME))
}

/// Tells a client that shows pages of the page, and of its tool.
pub(crate) fn announce(tools: &mut Vec<Tool>) {
    for tool in tools.iter_mut().filter(|tool| STARTS.contains(&tool.name.as_ref())) {
        tool.meta = Some(meta(json!({ "ui": { "resourceUri": URI } })));
    }
    tools.push(tool());
}

/// The tool that only the page calls. A client does not show it to its model.
pub(crate) fn tool() -> Tool {
    let fields = [
        Field::text("handle", "").required(),
        Field::integer("after", "Answer when there is more than this"),
        Field::flag("asking", "It was seen to ask"),
        Field::text("input", "A line to type"),
        Field::texts("keys", "Keys to press"),
    ];
    Tool::new(TOOL, "For the view of a job: its screen; types into it.", Arc::new(object(&fields)))
        .with_title("A job's view")
        .with_annotations(ToolAnnotations::new().read_only(false).destructive(true).open_world(true))
        .with_meta(meta(json!({ "ui": { "resourceUri": URI, "visibility": ["app"] } })))
}

/// What the page asks for.
pub(crate) fn parse(engine: &Engine, arguments: &Arguments) -> Result<Call, Failure> {
    let job = engine.job(&arguments.required("handle", "handle=\"3\"")?)?;
    let (text, keys) = (arguments.text("input")?, arguments.texts("keys")?);
    let mut input = None;
    if text.is_some() || !keys.is_empty() {
        let asked = job.status()?.and_then(|status| status.awaiting_input).map(|awaiting| awaiting.kind);
        if asked == Some(AwaitingKind::Password) {
            let handle = job.handle();
            return Err(Failure::usage(format!("job {handle} asks for a password, which is not typed here"))
                .hint(format!("the user types it in a terminal: outlast secret {handle}")));
        }
        // Where one key is wanted, Enter would be the answer to the next question.
        let newline = text.is_some() && asked != Some(AwaitingKind::Key);
        let send = Send { text: text.unwrap_or_default(), newline, keys, ..Send::default() };
        input = Some(TypedInput::new(send)?);
    }
    let (after, asking) = (arguments.count("after")?, arguments.flag("asking")?.unwrap_or(false));
    Ok(CallOrder::View { job, order: Box::new(ViewOrder { input, after, asking }) }.into())
}

fn meta(value: Value) -> MetaObject {
    let Value::Object(map) = value else { return MetaObject::default() };
    MetaObject(map)
}

/// Which job an answer is about, for the page: some clients get the words alone.
pub(crate) fn about(facts: &Value) -> Option<MetaObject> {
    facts.get("handle").map(|handle| meta(json!({ "outlast.dev/job": handle })))
}

/// How the page may be shown: it needs nothing from anywhere.
fn page_meta() -> MetaObject {
    meta(json!({ "ui": { "csp": {}, "prefersBorder": true } }))
}

/// The page in a list.
pub(crate) fn resource() -> Resource {
    Resource::new(URI, "job")
        .with_title("A job's screen, with keys")
        .with_mime_type(MIME)
        .with_meta(page_meta())
}

/// The page itself.
pub(crate) fn page() -> ReadResourceResult {
    let contents = ResourceContents::text(PAGE, URI).with_mime_type(MIME).with_meta(page_meta());
    ReadResourceResult::new(vec![contents])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Profile;
    use crate::tools;

    #[test]
    fn only_a_client_that_declares_the_page_s_kind_is_told() {
        let client = |extensions: Value| serde_json::from_value(json!({ "extensions": extensions })).unwrap();
        assert!(is_shown_by(Some(&client(json!({ EXTENSION: { "mimeTypes": [MIME] } })))));
        assert!(!is_shown_by(Some(&client(json!({ EXTENSION: {} })))));
        assert!(!is_shown_by(Some(&client(json!({ EXTENSION: { "mimeTypes": ["text/html"] } })))));
        assert!(!is_shown_by(Some(&client(json!({})))));
        assert!(!is_shown_by(None));
    }

    #[test]
    fn in_each_profile_the_page_is_beside_the_tool_that_starts_jobs() {
        for profile in [Profile::Plain, Profile::Gemini, Profile::Codex, Profile::Claude] {
            let mut told = tools::of(profile);
            let before = told.clone();
            announce(&mut told);
            let with_page = |tool: &&Tool| tool.meta.is_some() && tool.name != TOOL;
            assert_eq!(told.iter().filter(with_page).count(), 1, "{profile:?}");
            assert_eq!(told.len(), before.len() + 1);
        }
    }

    /// A model is told of no more tools and no more words; what a client reads besides costs it a few bytes.
    #[test]
    fn a_model_reads_no_more_than_before() {
        let mut told = tools::of(Profile::Plain);
        let before = told.clone();
        announce(&mut told);
        let app_only = |tool: &Tool| {
            let ui = tool.meta.as_ref().and_then(|meta| meta.0.get("ui").cloned()).unwrap_or_default();
            ui["visibility"] == json!(["app"])
        };
        told.retain(|tool| !app_only(tool));
        told.iter_mut().for_each(|tool| tool.meta = None);
        assert_eq!(serde_json::to_value(&told).unwrap(), serde_json::to_value(&before).unwrap());
        let own = serde_json::to_string(&tool()).unwrap();
        assert!(own.len() < 800, "{} bytes", own.len());
    }

    /// One file: nothing is fetched, and output never becomes markup.
    #[test]
    fn the_page_needs_nothing_and_makes_no_markup_of_output() {
        for word in [
            "src=",
            "href=",
            "@import",
            "url(",
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "eval(",
            "document.write",
            "fetch(",
        ] {
            assert!(!PAGE.contains(word), "{word}");
        }
        assert!(PAGE.len() < 16 << 10, "{} bytes", PAGE.len());
    }
}
