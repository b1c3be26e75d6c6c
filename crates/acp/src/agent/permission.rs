//! May it be done? The policy says, and where it says that a person must agree, the client asks them.

use std::collections::BTreeMap;
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    ToolCallContent, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use outlast_job::{Failure, Job, JobSpec, Send};
use outlast_policy::{Answer, Judged, Question, Wanted};

use super::Client;
use crate::showing::visible;

/// No answer is a no, after this long.
const PATIENCE: Duration = Duration::from_secs(600);

const ALLOW: &str = "allow";

/// May a job be started?
pub(super) fn may_run(client: &Client, spec: &JobSpec) -> Result<(), Failure> {
    let wanted = Wanted { run: &spec.run, folder: spec.cwd.as_ref(), env: &BTreeMap::new(), fed: false };
    settle(client, client.shared.gate.judge_run(&client.owner, &wanted)?)
}

/// May something be typed into a job? It comes back with what the keeper must know of what was typed before.
pub(super) fn may_type(client: &Client, job: &Job, send: Send) -> Result<Send, Failure> {
    let (judged, after) = client.shared.gate.judge_send(&client.owner, job, &send)?;
    settle(client, judged)?;
    Ok(Send { after, ..send })
}

/// May a job be ended?
pub(super) fn may_kill(client: &Client, job: &Job) -> Result<(), Failure> {
    settle(client, client.shared.gate.judge_kill(&client.owner, job, false)?)
}

fn settle(client: &Client, judged: Judged) -> Result<(), Failure> {
    match judged {
        Judged::Free => Ok(()),
        Judged::Refused(failure) => Err(failure),
        Judged::Asked(question) => {
            let answer = ask(client, &question);
            client.shared.gate.answered(&question, answer)
        }
    }
}

/// Asks the user. Anything but a clear yes is a no.
fn ask(client: &Client, question: &Question) -> Answer {
    let text: ToolCallContent = visible(&question.text()).into();
    let fields =
        ToolCallUpdateFields::new().title(question.headline()).kind(ToolKind::Execute).content(vec![text]);
    let call = ToolCallUpdate::new(client.fresh_call_id("ask"), fields);
    let options = vec![
        PermissionOption::new(ALLOW, "Do it", PermissionOptionKind::AllowOnce),
        PermissionOption::new("reject", "Don't", PermissionOptionKind::RejectOnce),
    ];
    let request = RequestPermissionRequest::new(client.id.clone(), call, options);
    let answer = client.runtime.block_on(async {
        tokio::time::timeout(PATIENCE, client.connection.send_request(request).block_task()).await
    });
    match answer {
        Ok(Ok(response)) => match response.outcome {
            RequestPermissionOutcome::Selected(selected) if *selected.option_id.0 == *ALLOW => Answer::Yes,
            _ => Answer::No,
        },
        // A client that can't ask says so with an error.
        Ok(Err(_)) => Answer::Unable,
        Err(_) => Answer::Late,
    }
}
