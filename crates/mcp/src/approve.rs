//! Whether a call may go ahead: what the policy says of it, and what a person says when that is a question.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use outlast_job::spec::deleted_folder;
use outlast_job::{Failure, Kind, Run};
use outlast_policy::{Answer, Judged, Question, Tool};
use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, InputRequiredResult};
use rmcp::service::RequestContext;

use crate::arguments::Arguments;
use crate::calls::{Wanted, wanted};
use crate::confirm::{Confirmed, confirm};
use crate::engine::{Engine, run::absolute};
use crate::headless::is_headless;

/// How long a person may take to answer a question.
const PERSON: Duration = Duration::from_secs(45);

/// What came of it, when it is no refusal.
#[derive(Debug)]
pub(crate) enum Approved {
    /// Go ahead.
    Yes,
    /// The client must ask, and call again.
    Ask(Box<InputRequiredResult>),
}

/// Asks a person what the policy leaves to them.
pub(crate) async fn ask(
    engine: &Arc<Engine>,
    question: Box<Question>,
    (request, arguments): (&CallToolRequestParams, &Arguments),
    context: &RequestContext<RoleServer>,
) -> Result<Approved, Failure> {
    let says_so = || arguments.flag("confirmed").ok().flatten() == Some(true);
    let client = context.client_info().map(|info| info.name.clone()).unwrap_or_default();
    if question.allows(Answer::Headless) && is_headless(&client) {
        return note(engine, question, Answer::Headless).await.map(|()| Approved::Yes);
    }
    let answer = match confirm(question.text(), request, context, PERSON).await {
        Confirmed::Ask(asks) => return Ok(Approved::Ask(asks)),
        Confirmed::Yes => Answer::Yes,
        Confirmed::No => Answer::No,
        Confirmed::Late => Answer::Late,
        Confirmed::Unable if question.allows(Answer::Confirmed) && says_so() => Answer::Confirmed,
        Confirmed::Unable => Answer::Unable,
    };
    note(engine, question, answer).await.map(|()| Approved::Yes)
}

/// Notes the answer, in a thread that may wait for the disk.
async fn note(engine: &Arc<Engine>, question: Box<Question>, answer: Answer) -> Result<(), Failure> {
    let engine = Arc::clone(engine);
    tokio::task::spawn_blocking(move || engine.gate.answered(&question, answer))
        .await
        .unwrap_or_else(|error| Err(Failure::system("the answer could not be noted", error)))
}

/// What the policy says of a call, and after which input that holds. It may wait for the disk and for a keeper.
pub(crate) fn judge(
    engine: &Engine,
    session: &str,
    name: &str,
    arguments: &Arguments,
) -> Result<(Judged, Option<u64>), Failure> {
    let tool = Tool::from_name(name)
        .ok_or_else(|| Failure::new(Kind::Denied, format!("nothing is known of the tool {name:?}")))?;
    match wanted(engine, name, arguments)? {
        Wanted::Run { command, folder, env } => {
            let folder = match folder {
                Some(folder) => PathBuf::from(absolute(&folder)?),
                None => std::env::current_dir().map_err(|_| deleted_folder())?,
            };
            let run = Run::Shell(command);
            let wanted = outlast_policy::Wanted { run: &run, folder: &folder, env: &env, fed: false };
            Ok((engine.gate.judge_run(session, &wanted)?, None))
        }
        Wanted::Type { job, send } => engine.gate.judge_send(session, &job, &send),
        Wanted::End { job } => Ok((engine.gate.judge_kill(session, &job, false)?, None)),
        Wanted::Look => Ok((engine.gate.judge_look(session, tool), None)),
    }
}
