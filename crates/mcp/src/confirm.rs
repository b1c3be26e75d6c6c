//! Asks a person, through the client.
//!
//! In the older protocol a server asks in the middle of a call. In the newer one the call ends with the
//! question, and the client calls again with the answer. A client that cannot ask shows its own confirmation
//! of the call instead: there the call itself must say that the user agreed.

use std::collections::BTreeMap;
use std::time::Duration;

use rmcp::model::{
    BooleanSchema, CallToolRequestParams, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationSchema, InputRequest, InputRequiredResult, PrimitiveSchemaDefinition,
    ProtocolVersion, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use rmcp::{RoleServer, ServiceError};
use serde_json::Value;

/// The name of our one question.
const QUESTION: &str = "confirm";
const AGREE: &str = "agree";

/// The result of asking.
#[derive(Debug)]
pub(crate) enum Confirmed {
    Yes,
    No,
    /// Nobody answered in time.
    Late,
    /// The client must ask, and call again.
    Ask(Box<InputRequiredResult>),
    /// The client cannot ask.
    Unable,
}

/// Asks a yes or no question about a call. No answer is a no.
pub(crate) async fn confirm(
    question: String,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    patience: Duration,
) -> Confirmed {
    confirm_as(QUESTION, question, request, context, patience).await
}

/// The same for a question of another name: a call that is made again may answer both.
pub(crate) async fn confirm_as(
    name: &str,
    question: String,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    patience: Duration,
) -> Confirmed {
    if let Some(answer) = request.input_responses.as_ref().and_then(|responses| responses.get(name)) {
        return understood(answer);
    }
    if !can_ask(context) {
        return Confirmed::Unable;
    }
    let Some(params) = form(question) else { return Confirmed::Unable };
    let elicit = ElicitRequest::new(params);
    let newer = context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
    if newer {
        let requests = BTreeMap::from([(name.to_owned(), InputRequest::Elicitation(elicit))]);
        return Confirmed::Ask(Box::new(InputRequiredResult::from_input_requests(requests)));
    }
    let options = PeerRequestOptions::with_timeout(patience);
    let sent = context.peer.send_request_with_option(ServerRequest::ElicitRequest(elicit), options).await;
    let Ok(sent) = sent else { return Confirmed::No };
    match sent.await_response().await {
        Ok(ClientResult::ElicitResult(result)) => agreed(&result),
        Err(ServiceError::Timeout { .. }) => Confirmed::Late,
        Ok(_) | Err(_) => Confirmed::No,
    }
}

fn can_ask(context: &RequestContext<RoleServer>) -> bool {
    let elicitation = context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
    // A client that names no way of asking supports the first one that existed: forms.
    elicitation.is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
}

fn form(message: String) -> Option<ElicitRequestParams> {
    let agree = BooleanSchema::new().title("Do it").description("Whether the agent may do this");
    let requested_schema = ElicitationSchema::builder()
        .required_property(AGREE, PrimitiveSchemaDefinition::Boolean(agree))
        .build()
        .ok()?;
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

fn understood(answer: &Value) -> Confirmed {
    serde_json::from_value::<ElicitResult>(answer.clone()).map_or(Confirmed::No, |result| agreed(&result))
}

fn agreed(result: &ElicitResult) -> Confirmed {
    let said = result.content.as_ref().and_then(|content| content.get(AGREE)).and_then(Value::as_bool);
    if result.action == ElicitationAction::Accept && said == Some(true) {
        Confirmed::Yes
    } else {
        Confirmed::No
    }
}
