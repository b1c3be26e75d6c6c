//! What the page in a chat shows of a job, and what it types. Nothing of it counts as read by the model.

use std::time::Duration;

use outlast_job::registry::format::Info;
use outlast_job::request::{Lines, ReadText};
use outlast_job::wire::Activity;
use outlast_job::{Condition, Failure, Job, Kind, Send, Wait};
use outlast_policy::{Pass, TypedInput};
use serde::Serialize;
use serde_json::Value;

use super::parked::Step;
use super::{Caller, Engine};
use crate::printed;

/// How long a look waits for something new.
const LONG_LOOK: Duration = Duration::from_secs(20);
/// How long a job may take to answer what was typed before it is shown anyway.
const ANSWER: Duration = Duration::from_millis(1500);
/// How long a program that does not read may hold up what is typed.
const TYPE_TIMEOUT: Duration = Duration::from_secs(2);
/// How much is shown of a job without a screen.
const LAST_LINES: usize = 50;
const MAX_TEXT: usize = 16 << 10;

/// What a page wants.
#[derive(Debug)]
pub(crate) struct ViewOrder {
    /// Type this first.
    pub(crate) input: Option<TypedInput>,
    /// Answer when more than this was printed, or something else has changed.
    pub(crate) after: Option<u64>,
    /// The page knows already that the job asks.
    pub(crate) asking: bool,
}

/// What a page shows.
#[derive(Debug, Serialize)]
struct View {
    handle: String,
    status: String,
    /// Rows with their colours, as SGR sequences.
    rows: Vec<String>,
    /// The end of what was printed.
    offset: u64,
    ended: bool,
    /// What kind of input it asks for.
    asks: Option<&'static str>,
    prompt: String,
}

impl Engine {
    pub(crate) fn view(
        &self,
        caller: &Caller,
        job: &Job,
        order: ViewOrder,
        pass: &Pass,
    ) -> Result<Step<Value>, Failure> {
        let (wait, time) = match (&order.input, order.after) {
            (Some(input), _) => {
                let typed = input.passed(pass).into_owned();
                let send = Send { session: Some(caller.session.clone()), ..typed };
                let sent = job.send(&send, Some(TYPE_TIMEOUT))?;
                (Wait::of(vec![Condition::Exit, Condition::AwaitingInput]).from(sent.offset), ANSWER)
            }
            (None, Some(after)) => {
                let mut until = vec![Condition::Exit, Condition::Output];
                until.extend((!order.asking).then_some(Condition::AwaitingInput));
                (Wait::of(until).from(after), LONG_LOOK)
            }
            (None, None) => return picture(job).map(Step::Done),
        };
        let of_job = job.clone();
        let patience = self.patience(time);
        self.wait_then((job, wait), patience, caller, move |_, _| picture(&of_job).map(Step::Done))
    }
}

fn picture(job: &Job) -> Result<Value, Failure> {
    let info = job.info()?;
    let offset = job.log_end();
    let status = if info.state.is_live() { job.status()? } else { None };
    let awaiting = status.as_ref().and_then(|status| status.awaiting_input.as_ref());
    let asks = awaiting.map(|awaiting| awaiting.kind.name());
    let prompt = awaiting.map(|awaiting| awaiting.prompt.trim().to_owned()).unwrap_or_default();
    let activity = status.as_ref().map(|status| status.activity);
    let view = View {
        handle: job.handle().to_string(),
        status: words(&info, activity),
        rows: rows(job, &info)?,
        offset,
        ended: !info.state.is_live(),
        asks,
        prompt,
    };
    serde_json::to_value(view).map_err(|error| Failure::system("cannot tell how a job is", error))
}

/// How a job is, in a line.
fn words(info: &Info, activity: Option<Activity>) -> String {
    let how = match (info.state.receipt().map(|receipt| receipt.words()), activity) {
        (Some(Ok(words)), _) => words,
        (Some(Err(error)), _) => format!("could not start: {}", error.message),
        (None, Some(Activity::AwaitingInput)) => "asks for input".into(),
        (None, Some(Activity::Asking)) => "asks for approval".into(),
        (None, Some(Activity::Stopped)) => "stopped".into(),
        (None, Some(Activity::Listening { .. })) => "listening".into(),
        (
            None,
            Some(Activity::Queued | Activity::Working | Activity::Quiet { .. } | Activity::Ended) | None,
        ) => match info.state.queued() {
            Some(queued) => format!("queued, {}", queued.words()),
            None => info.state.name().into(),
        },
    };
    let name = info.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
    format!("job {}{name} · {how} · {}", info.handle, info.command)
}

fn rows(job: &Job, info: &Info) -> Result<Vec<String>, Failure> {
    if info.has_terminal() {
        match job.screen(true, 0) {
            Ok(mut shot) => {
                let last = shot.rows.iter().rposition(|row| !row.trim().is_empty());
                shot.rows.truncate(last.map_or(0, |last| last + 1));
                return Ok(shot.rows);
            }
            Err(failure) if failure.kind == Kind::NotRunning => {
                if let Some(screen) = job.last_screen()?.filter(|screen| !screen.trim().is_empty()) {
                    return Ok(lines(&screen));
                }
            }
            Err(failure) => return Err(failure),
        }
    }
    let read = ReadText { lines: Some(Lines::Last(LAST_LINES)), max: MAX_TEXT, ..ReadText::default() };
    Ok(lines(&printed::text(job, read)?.text))
}

fn lines(text: &str) -> Vec<String> {
    text.trim_end().lines().map(str::to_owned).collect()
}
