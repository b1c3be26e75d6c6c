//! Ends a job, or sends it a signal.

use std::time::Duration;

use outlast_job::lifecycle::Process;
use outlast_job::request::JobRequest;
use outlast_job::wire::Killed;
use outlast_job::{Failure, Job, Reason, Wait, Waited};
use outlast_policy::Pass;

use super::parked::Step;
use super::wait::WaitOutput;
use super::{Asked, Caller, Engine, Patience};
use crate::answer::{Answer, named};

/// How to end it.
#[derive(Clone, Debug)]
pub(crate) struct KillOrder {
    /// One signal and no more; none ends the job for sure.
    pub(crate) signal: Option<String>,
    pub(crate) grace: Duration,
    pub(crate) budget: usize,
}

impl Engine {
    pub(crate) fn kill(
        &self,
        caller: &Caller,
        job: &Job,
        order: KillOrder,
        _pass: &Pass,
    ) -> Result<Step<Answer>, Failure> {
        caller.call.set_about(job.handle());
        let patience = self.patience(order.grace);
        let before = job.info()?;
        let left = if before.state.is_live() { Vec::new() } else { job.left_behind(&before) };
        if order.signal.is_none()
            && let Some(step) = self.running_step(job)?
        {
            return self.kill_step(caller, job, step, &order);
        }
        let live = JobRequest::Info { shown: false };
        job.expect([live].into_iter().chain(super::far::asks()));
        let killed = match &order.signal {
            Some(signal) => job.signal(signal, &caller.session)?,
            None => job.kill(patience.allowed, &caller.session)?,
        };
        let end = job.log_end();
        let (of_job, whose) = (job.clone(), caller.clone());
        let finish = move |engine: &Engine, waited: Waited| {
            engine.killed(&of_job, &whose, (&order, killed, &left), (waited, patience)).map(Step::Done)
        };
        if job.info()?.state.is_live() {
            return self.wait_then((job, Wait::for_exit()), patience, caller, finish);
        }
        finish(self, Waited::because(Reason::Exit, end))
    }

    /// Ends the step that runs; its shell stays.
    fn kill_step(
        &self,
        caller: &Caller,
        job: &Job,
        step: u64,
        order: &KillOrder,
    ) -> Result<Step<Answer>, Failure> {
        let patience = self.patience(order.grace);
        let killed = job.end_step(Some(step), patience.allowed, &caller.session)?;
        let waited = job.wait(&Wait::for_exit().of_step(step), Some(patience.allowed))?;
        let asked = Asked { from: 0, budget: order.budget, output: WaitOutput::Nothing };
        let mut answer = self.answer_with(job, caller, waited, asked, patience)?;
        answer.elapsed_ms = None;
        if let Some(note) = killed.note {
            answer.note(note);
        }
        Ok(Step::Done(answer))
    }

    fn killed(
        &self,
        job: &Job,
        caller: &Caller,
        (order, killed, left): (&KillOrder, Killed, &[Process]),
        (waited, patience): (Waited, Patience),
    ) -> Result<Answer, Failure> {
        let seen = self.cursors.get(&caller.session, job.handle()).read;
        // A caller that ends a job does not want its output in the answer; it can be read later.
        let output = if order.signal.is_some() { WaitOutput::New } else { WaitOutput::Nothing };
        let asked = Asked { from: seen, budget: order.budget, output };
        let mut answer = self.answer_with(job, caller, waited, asked, patience)?;
        answer.elapsed_ms = None;
        if killed.already_ended {
            answer.note("it had already ended");
        } else if order.signal.is_some() {
            answer.note(format!("{} processes got the signal", killed.signalled));
        } else if !left.is_empty() {
            answer.note(format!("ended what it had left running: {}", named(left)));
        } else if killed.signalled > 1 {
            answer.note(format!("ended {} processes", killed.signalled));
        }
        if let Some(note) = killed.note {
            answer.note(note);
        }
        for process in killed.survivors {
            answer.note(format!("{} (pid {}) can't be ended", process.program, process.pid));
        }
        Ok(answer)
    }
}
