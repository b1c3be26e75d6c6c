//! Asks the policy whether something is allowed and, if a person must agree, has the client ask them.

use std::time::Duration;

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    ToolCallContent, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use outlast_job::Failure;
use outlast_policy::{Answer, Judged, Order, OrderKind, Pass, Question};

use super::Client;
use crate::showing::visible;

/// Without an answer within this time, it is refused.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

const ALLOW: &str = "allow";
const ALLOW_FOR_JOB: &str = "allow-for-job";

/// Has an order judged, and asks the user if need be.
pub(super) fn pass(client: &Client, kind: OrderKind<'_>) -> Result<Pass, Failure> {
    let gate = &client.shared.gate;
    match gate.judge(&Order { session: &client.owner, kind })? {
        Judged::Free(pass) => Ok(pass),
        Judged::Refused(failure) => Err(failure),
        Judged::Asked(question) => gate.answered(&question, ask(client, &question)),
    }
}

/// Asks the user. Anything but a clear yes is a no.
fn ask(client: &Client, question: &Question) -> Answer {
    let text: ToolCallContent = visible(&question.text()).into();
    let fields =
        ToolCallUpdateFields::new().title(question.headline()).kind(ToolKind::Execute).content(vec![text]);
    let call = ToolCallUpdate::new(client.fresh_call_id("ask"), fields);
    let mut options = vec![PermissionOption::new(ALLOW, "Do it", PermissionOptionKind::AllowOnce)];
    if question.can_be_for_job() {
        let label = "Do it, and do not ask again for this job";
        options.push(PermissionOption::new(ALLOW_FOR_JOB, label, PermissionOptionKind::AllowAlways));
    }
    options.push(PermissionOption::new("reject", "Don't", PermissionOptionKind::RejectOnce));
    let request = RequestPermissionRequest::new(client.id.clone(), call, options);
    let answer = client.runtime.block_on(async {
        tokio::time::timeout(ANSWER_TIMEOUT, client.connection.send_request(request).block_task()).await
    });
    match answer {
        Ok(Ok(response)) => match response.outcome {
            RequestPermissionOutcome::Selected(selected) if *selected.option_id.0 == *ALLOW => Answer::Yes,
            RequestPermissionOutcome::Selected(selected) if *selected.option_id.0 == *ALLOW_FOR_JOB => {
                Answer::YesForJob
            }
            _ => Answer::No,
        },
        // A client that cannot ask answers with an error.
        Ok(Err(_)) => Answer::Unable,
        Err(_) => Answer::Late,
    }
}
