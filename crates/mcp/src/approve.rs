//! What a person says of a call, where the policy leaves it to them.

use std::sync::Arc;
use std::time::Duration;

use outlast_job::{Failure, Job};
use outlast_policy::{Answer, Pass, Question};
use outlast_protocol::event::ExecQuestion;
use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, InputRequiredResult};
use rmcp::service::RequestContext;

use crate::calls::Incoming;
use crate::confirm::{Asked, Confirmed, QUESTION, confirm};
use crate::engine::Engine;
use crate::headless::is_headless;

/// How long a person may take to answer a question.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(45);

/// What came of it, when it is not a refusal.
#[derive(Debug)]
pub(crate) enum Approved {
    /// Go ahead.
    Yes(Pass),
    /// The client must ask, and call again.
    Ask(Box<InputRequiredResult>),
}

/// Asks a person what the policy leaves to them.
pub(crate) async fn ask(
    engine: &Arc<Engine>,
    question: Box<Question>,
    call: Incoming<'_>,
    context: &RequestContext<RoleServer>,
) -> Result<Approved, Failure> {
    let says_so = || call.arguments.flag("confirmed").ok().flatten() == Some(true);
    let client = context.client_info().map(|info| info.name.clone()).unwrap_or_default();
    // Known before anything is asked: a refusal that the agent makes by itself is not a person's.
    if is_headless(&client) {
        return note(engine, question, Answer::Headless).await.map(Approved::Yes);
    }
    let session = question.session();
    let asked = Asked {
        name: QUESTION,
        text: question.text(),
        can_be_for_job: question.can_be_for_job(),
        session,
        home: engine.outlast.home().path(),
    };
    let answer = match confirm(asked, call.request, context, ANSWER_TIMEOUT).await {
        Confirmed::Ask(asks) => return Ok(Approved::Ask(asks)),
        Confirmed::Yes => Answer::Yes,
        Confirmed::YesForJob => Answer::YesForJob,
        Confirmed::No => Answer::No,
        Confirmed::Late => Answer::Late,
        Confirmed::Unable if question.allows(Answer::Confirmed) && says_so() => Answer::Confirmed,
        Confirmed::Unable => Answer::Unable,
    };
    note(engine, question, answer).await.map(Approved::Yes)
}

/// Notes the answer, in a thread that may wait for the disk.
async fn note(engine: &Arc<Engine>, question: Box<Question>, answer: Answer) -> Result<Pass, Failure> {
    let engine = Arc::clone(engine);
    tokio::task::spawn_blocking(move || engine.gate.answered(&question, answer))
        .await
        .unwrap_or_else(|error| Err(Failure::system("the answer could not be noted", error)))
}

/// Asks a person about what programs of the session's jobs want to execute, before the next call of the session is looked
/// at. Returns what the client must ask first, if it asks by being called again.
pub(crate) async fn ask_for_jobs(
    engine: &Arc<Engine>,
    session: &str,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Option<Box<InputRequiredResult>> {
    for (job, asked) in pending(engine, session).await {
        let question = engine.gate.exec_question(session, job.handle(), &asked);
        let name = format!("execute-{}-{}", job.handle(), asked.question);
        let asked_as = Asked {
            name: &name,
            text: question.text(),
            can_be_for_job: question.can_be_for_job(),
            session,
            home: engine.outlast.home().path(),
        };
        let answer = match confirm(asked_as, request, context, ANSWER_TIMEOUT).await {
            Confirmed::Ask(asks) => return Some(asks),
            Confirmed::Yes | Confirmed::YesForJob => Answer::Yes,
            Confirmed::No => Answer::No,
            // It goes on waiting: someone else may answer.
            Confirmed::Late | Confirmed::Unable => continue,
        };
        let allow = note(engine, Box::new(question), answer).await.is_ok();
        // Somebody else may have answered meanwhile.
        let told = move || job.answer_question(asked.question, allow, "a person, in the client's dialogue");
        let _ = tokio::task::spawn_blocking(told).await;
    }
    None
}

async fn pending(engine: &Arc<Engine>, session: &str) -> Vec<(Job, ExecQuestion)> {
    let (engine, session) = (Arc::clone(engine), session.to_owned());
    if !engine.may_ask_for_jobs(&session) {
        return Vec::new();
    }
    tokio::task::spawn_blocking(move || engine.exec_questions(&session)).await.unwrap_or_default()
}
