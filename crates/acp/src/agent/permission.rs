//! May it be done? The one place that decides, and the one that asks the user through the client.

use std::time::Duration;

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use outlast_job::{Failure, Job, Kind};

use super::Client;

/// No answer is a no, after this long.
const PATIENCE: Duration = Duration::from_secs(600);

/// What somebody wants to do.
#[derive(Debug)]
pub(crate) enum Action<'a> {
    /// Run a command line in a folder.
    Run,
    /// Type into a job.
    Type { job: &'a Job, text: &'a str },
    /// End a job.
    Kill { job: &'a Job },
}

/// Whether it may be done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Allow,
    /// Only if the user says so; the text tells why.
    Ask(String),
}

/// Decides: typing into a job of another session, and ending it, ask.
pub(crate) fn decide(action: &Action<'_>, session: &str) -> Result<Decision, Failure> {
    let (job, what) = match action {
        Action::Run => return Ok(Decision::Allow),
        Action::Type { job, text } => (job, format!("type {text:?} into")),
        Action::Kill { job } => (job, "end".to_owned()),
    };
    let info = job.info()?;
    if info.session == session {
        return Ok(Decision::Allow);
    }
    let (handle, owner, command) = (info.handle, &info.session, &info.command);
    Ok(Decision::Ask(format!("{what} job {handle} of another session ({owner}): {command}")))
}

/// Decides, and asks if need be. Anything but a clear yes is a no.
pub(crate) fn permitted(action: &Action<'_>, client: &Client) -> Result<(), Failure> {
    let Decision::Ask(why) = decide(action, &client.owner)? else { return Ok(()) };
    let call = ToolCallUpdate::new(
        client.fresh_call_id("ask"),
        ToolCallUpdateFields::new().title(crate::showing::one_line(&why)).kind(ToolKind::Execute),
    );
    let options = vec![
        PermissionOption::new("allow", "Do it", PermissionOptionKind::AllowOnce),
        PermissionOption::new("reject", "Don't", PermissionOptionKind::RejectOnce),
    ];
    let request = RequestPermissionRequest::new(client.id.clone(), call, options);
    let answer = client.runtime.block_on(async {
        tokio::time::timeout(PATIENCE, client.connection.send_request(request).block_task()).await
    });
    if let Ok(Ok(response)) = answer
        && let RequestPermissionOutcome::Selected(selected) = response.outcome
        && *selected.option_id.0 == *"allow"
    {
        return Ok(());
    }
    Err(Failure::new(Kind::Denied, format!("it was not allowed to {why}")))
}
