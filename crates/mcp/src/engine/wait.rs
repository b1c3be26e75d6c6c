//! Waits on one or more jobs, each from where the session has got to with it.

use std::time::Duration;

use outlast_job::clock::millis;
use outlast_job::condition::{ConditionWord, TakesValue};
use outlast_job::{Condition, Failure, Job, Reason, Wait, Waited, check_wait};

use super::parked::Step;
use super::{Asked, Caller, Engine, Patience};
use crate::answer::{Answer, ending};
use crate::cursors::Cursor;

/// How long we look for a pattern in what was shown before, once the time is up.
const SECOND_LOOK: Duration = Duration::from_millis(200);

/// How long a job must print nothing, unless the call says it.
const QUIET_MS: u64 = 2000;

/// How many lines `tail` shows.
pub(super) const TAIL: usize = 10;

/// How much of a job's output comes with the end of a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WaitOutput {
    /// What the session has not seen yet.
    #[default]
    New,
    /// The last lines of that.
    Tail,
    /// None: it can be read later.
    Nothing,
}

impl WaitOutput {
    pub(crate) const NAMED: [(&str, Self); 3] =
        [("new", Self::New), ("tail", Self::Tail), ("none", Self::Nothing)];
}

/// What to wait for.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitOrder {
    pub(crate) until: Vec<String>,
    pub(crate) pattern: Option<String>,
    pub(crate) quiet: Option<Duration>,
    pub(crate) stable_checks: Option<u64>,
    pub(crate) port: Option<u16>,
    pub(crate) offset: Option<u64>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) output: WaitOutput,
    pub(crate) budget: usize,
}

impl WaitOrder {
    /// The conditions. What a parameter says needs no word in `until`; and a job that has ended ends every wait.
    fn wait(&self) -> Result<Wait, Failure> {
        let mut until = vec![Condition::Exit];
        for text in &self.until {
            let (word, value) = text.split_once('=').map_or((text.as_str(), None), |(w, v)| (w, Some(v)));
            let row = ConditionWord::of(word)?;
            let value = value.map(ToOwned::to_owned).or_else(|| self.value_of(row.reason));
            if value.is_none() && row.takes == TakesValue::Required {
                let word = row.word();
                return Err(crate::arguments::missing(
                    "pattern",
                    &format!("until=[{word:?}], pattern=\"ready\", or until=[\"{word}=ready\"]"),
                ));
            }
            add(&mut until, row.with(value.as_deref())?);
        }
        // What a parameter says needs no word in `until`. A pattern is looked for in the output, unless it is to go.
        let gone = until.iter().any(|condition| condition.reason() == Reason::Gone);
        let given = [
            self.pattern.as_ref().filter(|_| !gone).map(|_| Reason::Pattern),
            self.quiet.map(|_| Reason::Quiet),
            self.stable_checks.map(|_| Reason::Stable),
            self.port.map(|_| Reason::Port),
        ];
        for reason in given.into_iter().flatten() {
            add(&mut until, ConditionWord::of(reason.name())?.with(self.value_of(reason).as_deref())?);
        }
        if self.until.is_empty() && until == [Condition::Exit] {
            until.push(Condition::AwaitingInput);
        }
        let wait = Wait::of(until);
        check_wait(&wait)?;
        Ok(wait)
    }

    /// The value that a parameter of the call gives to a condition.
    fn value_of(&self, reason: Reason) -> Option<String> {
        let quiet = self.quiet.map_or(QUIET_MS, millis);
        let values = [
            (Reason::Pattern, self.pattern.clone()),
            (Reason::Gone, self.pattern.clone()),
            (Reason::Quiet, Some(format!("{quiet}ms"))),
            (Reason::Stable, self.stable_checks.map(|checks| checks.to_string())),
            (Reason::Port, self.port.map(|port| port.to_string())),
        ];
        values.into_iter().find(|(of, _)| *of == reason).and_then(|(_, value)| value)
    }

    fn begin(&self, wait: &Wait, cursor: Cursor) -> u64 {
        self.offset.unwrap_or(if wait.has(Reason::Output) { cursor.read } else { cursor.waited })
    }
}

/// Adds a condition that is not there yet.
fn add(until: &mut Vec<Condition>, condition: Condition) {
    if !until.contains(&condition) {
        until.push(condition);
    }
}

/// A command that has ended may have left a server running (`serve &`): a wait for its port is not over because the command is.
fn without_an_end_that_was(job: &Job, mut wait: Wait) -> Wait {
    let is_port = |condition: &Condition| matches!(condition.reason(), Reason::Port | Reason::Http);
    if wait.until.iter().any(is_port)
        && let Ok(info) = job.info()
        && !info.state.is_live()
        && !job.left_behind(&info).is_empty()
    {
        wait.until.retain(|condition| *condition != Condition::Exit);
    }
    wait
}

impl Engine {
    pub(crate) fn wait_for(
        &self,
        caller: &Caller,
        jobs: Vec<Job>,
        order: WaitOrder,
    ) -> Result<Step<Answer>, Failure> {
        let wait = order.wait()?;
        let asked = order.timeout.unwrap_or(self.longest_call);
        // Silence and a still screen are counted from where a wait begins, so one that is asked about again and
        // again would never see them.
        let can_pend = jobs.len() == 1 && !wait.until.iter().any(Condition::counts_from_wait);
        let patience = if can_pend { self.patience_of(caller, asked) } else { self.patience(asked) };
        if jobs.is_empty() {
            return Err(crate::arguments::missing("handle", "handle=\"3\""));
        }
        let cursors: Vec<Cursor> =
            jobs.iter().map(|job| self.cursors.get(&caller.session, job.handle())).collect();
        let begins: Vec<u64> = cursors.iter().map(|cursor| order.begin(&wait, *cursor)).collect();
        let about = |(job, begin): (&Job, &u64)| {
            let wait = without_an_end_that_was(job, wait.clone().from(*begin));
            Ok((job.clone(), self.about_its_step(job, wait)?))
        };
        let waits: Vec<(Job, Wait)> = jobs.iter().zip(&begins).map(about).collect::<Result<_, Failure>>()?;
        let waits: Vec<(&Job, Wait)> = waits.iter().map(|(job, wait)| (job, wait.clone())).collect();
        let call =
            WaitCall { caller: caller.clone(), jobs, order, wait, cursors, begins, can_pend, patience };
        self.wait_any_then(&waits, patience, caller, move |engine, (first, waited)| {
            call.answer(engine, first, waited).map(Step::Done)
        })
    }

    /// Gives a job some time, unless it ends before; then goes on.
    pub(crate) fn pause_then<T: 'static>(
        &self,
        job: &Job,
        caller: &Caller,
        time: Duration,
        then: impl FnOnce(&Engine) -> Result<T, Failure> + Send + 'static,
    ) -> Result<Step<T>, Failure> {
        let wait = (job, Wait::for_exit());
        self.wait_then(wait, self.patience(time), caller, move |engine, _| then(engine).map(Step::Done))
    }

    /// The time is up; but what was waited for may be in what the caller was shown before.
    fn look_again(&self, job: &Job, wait: &Wait, begin: u64, answer: &mut Answer) {
        if !wait.has(Reason::Pattern) || begin == 0 {
            return;
        }
        let patterns: Vec<Condition> = wait.patterns().into_iter().map(Condition::Pattern).collect();
        let before = Wait::of(patterns).from(0);
        if let Ok(waited) = job.wait(&before, Some(SECOND_LOOK))
            && waited.reason == Reason::Pattern
            && waited.offset <= begin
        {
            let at = waited.offset;
            answer.note(format!(
                "the pattern is in output you were shown before (it ends at byte {at}); wait_for(offset=0) counts that too"
            ));
        }
    }
}

/// A call that waits, and what it needs to know when the wait is over.
struct WaitCall {
    caller: Caller,
    jobs: Vec<Job>,
    order: WaitOrder,
    wait: Wait,
    /// How far the session had got with each job.
    cursors: Vec<Cursor>,
    /// Where the wait on each began.
    begins: Vec<u64>,
    /// Whether it can become a task.
    can_pend: bool,
    patience: Patience,
}

impl WaitCall {
    fn answer(self, engine: &Engine, first: usize, waited: Waited) -> Result<Answer, Failure> {
        let Self { caller, jobs, order, wait, cursors, begins, can_pend, patience } = &self;
        let job = &jobs[first];
        let begin = without_an_end_that_was(job, wait.clone().from(begins[first]));
        let from = cursors[first].read;
        if *can_pend
            && let Some(pending) =
                engine.pending((job, caller), &begin, &waited, (from, order.budget), *patience)
        {
            return Ok(Answer::later((job, engine.words), &job.info()?, pending));
        }
        let already = waited.already && waited.reason == Reason::Pattern;
        let timed_out = waited.reason == Reason::Deadline;
        let asked = Asked { from: cursors[first].read, budget: order.budget, output: order.output };
        let mut answer = engine.answer_with(job, caller, waited, asked, *patience)?;
        if already {
            answer.note("the pattern was already there when this call began");
        }
        if timed_out && !caller.call.is_cancelled() {
            engine.look_again(job, wait, begins[first], &mut answer);
        }
        for (i, other) in jobs.iter().enumerate().filter(|(i, _)| *i != first) {
            if let Ok(info) = other.info_to_show() {
                let left = other.left_behind(&info);
                let how = ending((&info.state, &left), &info.session, engine.words)
                    .unwrap_or_else(|| info.state.name().into());
                answer.note(format!("job {} · {how}", jobs[i].handle()));
            }
        }
        Ok(answer)
    }
}
