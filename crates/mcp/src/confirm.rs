//! Asks a person, through the client.
//!
//! In the older protocol a server asks in the middle of a call. In the newer one the call ends with the
//! question, and the client calls again with the answer. A client that cannot ask shows its own confirmation
//! of the call instead: there the call itself must say that the user agreed.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use outlast_policy::Gate;
use rmcp::model::{
    BooleanSchema, CallToolRequestParams, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationSchema, InputRequest, InputRequiredResult, PrimitiveSchemaDefinition,
    ProtocolVersion, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use rmcp::{RoleServer, ServiceError};
use serde_json::Value;

use crate::binding::Binding;

/// The name of the question about the call itself.
pub(crate) const QUESTION: &str = "confirm";
const AGREE: &str = "agree";
const FOR_JOB: &str = "for_this_job";

/// The result of asking.
#[derive(Debug)]
pub(crate) enum Confirmed {
    Yes,
    /// Yes, also to whatever is typed into this job later.
    YesForJob,
    No,
    /// Nobody answered in time.
    Late,
    /// The client must ask, and call again.
    Ask(Box<InputRequiredResult>),
    /// The client cannot ask.
    Unable,
}

/// A question about a call.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    /// Its name: a call that is made again may answer several.
    pub(crate) name: &'a str,
    pub(crate) text: String,
    /// Whether a yes can be for all that is typed into the job.
    pub(crate) can_be_for_job: bool,
    pub(crate) session: &'a str,
    /// The home, whose servers know the answers that were used.
    pub(crate) home: &'a Path,
}

/// Asks a yes or no question about a call. No answer is a no.
pub(crate) async fn confirm(
    asked: Asked<'_>,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    patience: Duration,
) -> Confirmed {
    let Asked { name, text, can_be_for_job, session, home } = asked;
    // A program that types into a job could answer for the person.
    if !can_ask(context) || Gate::is_in_a_job() {
        return Confirmed::Unable;
    }
    let newer = context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
    let binding = newer.then(|| Binding::new(home, session, (name, &text), request));
    if let Some(binding) = &binding
        && let Some(answer) = request.input_responses.as_ref().and_then(|responses| responses.get(name))
        && request.request_state.as_ref().is_some_and(|state| binding.use_up(state))
    {
        return understood(answer);
    }
    let Some(params) = form(text, can_be_for_job) else { return Confirmed::Unable };
    let elicit = ElicitRequest::new(params);
    if let Some(binding) = binding {
        let requests = BTreeMap::from([(name.to_owned(), InputRequest::Elicitation(elicit))]);
        let mut asks = InputRequiredResult::from_input_requests(requests);
        match binding.seal() {
            Ok(state) => asks.request_state = Some(state),
            Err(_) => return Confirmed::Unable,
        }
        return Confirmed::Ask(Box::new(asks));
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

fn form(message: String, can_be_for_job: bool) -> Option<ElicitRequestParams> {
    let agree = BooleanSchema::new().title("Do it").description("Whether the agent may do this");
    let mut schema =
        ElicitationSchema::builder().required_property(AGREE, PrimitiveSchemaDefinition::Boolean(agree));
    if can_be_for_job {
        let for_job = BooleanSchema::new()
            .title("Do not ask again for this job")
            .description("Whether the agent may type anything into this job from now on");
        schema = schema.property(FOR_JOB, PrimitiveSchemaDefinition::Boolean(for_job));
    }
    let requested_schema = schema.build().ok()?;
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

fn understood(answer: &Value) -> Confirmed {
    serde_json::from_value::<ElicitResult>(answer.clone()).map_or(Confirmed::No, |result| agreed(&result))
}

fn agreed(result: &ElicitResult) -> Confirmed {
    let says = |name: &str| {
        let content = result.content.as_ref();
        content.and_then(|content| content.get(name)).and_then(Value::as_bool) == Some(true)
    };
    if result.action != ElicitationAction::Accept || !says(AGREE) {
        Confirmed::No
    } else if says(FOR_JOB) {
        Confirmed::YesForJob
    } else {
        Confirmed::Yes
    }
}
