//! Types into a job and stays until it has answered.

use std::time::{Duration, Instant};

use outlast_job::request::ReadText;
use outlast_job::wire::Sent;
use outlast_job::{Condition, Failure, Job, Reason, Send, Wait, Waited, check_wait};
use outlast_policy::{Pass, TypedInput};

use super::parked::Step;
use super::{Caller, Engine, Patience};
use crate::answer::Answer;
use crate::printed;

/// So long is left for the answer to the last line, however long the lines before it took.
const LAST_LOOK: Duration = Duration::from_millis(500);

/// What to type, and how long to stay.
#[derive(Debug)]
pub(crate) struct SendOrder {
    pub(crate) input: TypedInput,
    pub(crate) delay: Duration,
    pub(crate) pattern: Option<String>,
    pub(crate) budget: usize,
}

impl Engine {
    pub(crate) fn send(
        &self,
        caller: &Caller,
        job: &Job,
        order: SendOrder,
        pass: &Pass,
    ) -> Result<Step<Answer>, Failure> {
        let mut until = vec![Condition::Exit, Condition::AwaitingInput];
        until.extend(order.pattern.clone().map(Condition::Pattern));
        let wait = Wait::of(until);
        check_wait(&wait)?;
        caller.call.set_about(job.handle());
        let patience = self.patience(order.delay);
        let began = Instant::now();
        let limit = patience.allowed.max(Duration::from_secs(2));
        let sent = job.send(
            &Send { session: Some(caller.session.clone()), ..order.input.passed(pass).into_owned() },
            Some(limit),
        )?;
        let wait = self.about_its_step(job, wait.from(sent.offset))?;
        SentInput { job: job.clone(), caller: caller.clone(), order, sent, began, patience }.wait(self, wait)
    }
}

/// Input that was typed, and whose answer is waited for.
struct SentInput {
    job: Job,
    caller: Caller,
    order: SendOrder,
    sent: Sent,
    began: Instant,
    patience: Patience,
}

impl SentInput {
    /// Waits for what comes after the input. A terminal shows what is typed, and that must not be taken for
    /// the program's answer: a match inside the echo does not count.
    fn wait(self, engine: &Engine, wait: Wait) -> Result<Step<Answer>, Failure> {
        let patience = self.patience;
        // Several lines may have taken all the time.
        let left = patience.allowed.saturating_sub(self.began.elapsed()).max(LAST_LOOK.min(patience.allowed));
        let patience = Patience { allowed: left, ..patience };
        let (job, caller) = (self.job.clone(), self.caller.clone());
        engine.wait_then((&job, wait.clone()), patience, &caller, move |engine, waited| {
            if is_echo(&self.job, self.order.input.text(), self.sent.offset, &waited)? {
                return self.wait(engine, wait.from(waited.offset));
            }
            self.answer(engine, waited).map(Step::Done)
        })
    }

    fn answer(self, engine: &Engine, waited: Waited) -> Result<Answer, Failure> {
        let Self { job, caller, order, sent, began, patience } = self;
        let elapsed_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let waited = Waited { elapsed_ms, ..waited };
        let mut answer = engine.answer(&job, &caller, waited, (sent.offset, order.budget), patience)?;
        let typed = order.input.text().trim_end_matches('\n');
        answer.echo = (!typed.is_empty() && !typed.contains('\n')).then(|| printed::shown(typed));
        if let Some(left) = sent.left {
            answer.note(format!("the last {left} bytes of the input were not typed: the program had ended"));
        }
        if sent.queued > 0 && answer.is_live() {
            answer.note(format!("the program has not read {} bytes of the input yet", sent.queued));
        }
        Ok(answer)
    }
}

/// Whether a match lies in what the terminal showed while the input was typed.
fn is_echo(job: &Job, typed: &str, from: u64, waited: &Waited) -> Result<bool, Failure> {
    let Some(found) = &waited.found else { return Ok(false) };
    let typed = typed.trim_end();
    if waited.reason != Reason::Pattern || found.text.trim().is_empty() || !typed.contains(found.text.trim())
    {
        return Ok(false);
    }
    let shown = {
        let (to, max) = (Some(waited.offset), typed.len() + 4096);
        printed::text(job, ReadText { from, to, max, ..ReadText::default() })?.text
    };
    let shown = shown.trim_end();
    Ok(typed.starts_with(shown)
        || shown.ends_with(typed)
        || is_echo_of_a_line(typed, shown, found.text.trim()))
}

/// Whether what was shown ends in one of several lines that were typed one by one, up to what was found.
fn is_echo_of_a_line(typed: &str, shown: &str, found: &str) -> bool {
    let ends = |line: &str| {
        let mut found_at = line.match_indices(found).map(|(at, _)| &line[..at + found.len()]);
        found_at.any(|begun| begun != found && shown.ends_with(begun))
            || (line != found && shown.ends_with(line))
    };
    typed.lines().count() > 1 && typed.lines().filter(|line| line.contains(found)).any(ends)
}
