//! Commands in a shell that remembers: each is a step, and answers are about the step.

use outlast_job::clock::millis;
use outlast_job::shell::{Shell, ShellKind, StepOrder, StepState};
use outlast_job::{Condition, Failure, Job, JobSpec, Reason, Run, StepBegun, Wait, Waited, check_wait};
use outlast_policy::{Pass, StepCommand};

use super::parked::Step;
use super::run::{BRIEF, RunOrder};
use super::{Caller, Engine};
use crate::answer::Answer;
use crate::calls::CallOrder;

/// Which shell a command is for.
#[derive(Clone, Debug)]
pub(crate) struct ShellOrder {
    pub(crate) name: String,
    /// A shell that is made reads the user's startup files.
    pub(crate) rc: bool,
    /// Which one it is, if that was said.
    pub(crate) with: Option<ShellKind>,
    /// Which one it is.
    pub(crate) kind: ShellKind,
    /// Where it must begin, if it has to be made again.
    pub(crate) begins_in: Option<String>,
    /// Run nothing if another step runs.
    pub(crate) if_idle: bool,
}

impl Engine {
    /// A command for a shell runs in the folder that the shell is in: that is what rules are about.
    pub(crate) fn place_in_shell(&self, caller: &Caller, order: &mut CallOrder) -> Result<(), Failure> {
        let CallOrder::Run(order) = order else { return Ok(()) };
        let Some(mut shell) = order.shell.clone() else { return Ok(()) };
        let Run::Shell(command) = &order.run else { return Err(Failure::usage("a shell takes a line")) };
        let place = self.outlast.place_of_shell(&caller.session, &shell.name)?;
        shell.kind = place.kind_for(shell.with, &shell.name)?;
        shell.begins_in.clone_from(&place.begins_in);
        let step = StepOrder {
            command: command.clone(),
            folder: order.cwd.clone(),
            env: order.env.iter().map(|(name, value)| (name.clone(), Some(value.clone()))).collect(),
            timeout_ms: order.timeout.map(millis),
            if_idle: shell.if_idle,
            session: caller.session.clone(),
        };
        order.step = Some((StepCommand::of(shell.kind, &step, &place.folder), step));
        order.shell = Some(shell);
        Ok(())
    }

    /// Runs a command as a step.
    pub(super) fn run_step(
        &self,
        caller: &Caller,
        order: RunOrder,
        shell: &ShellOrder,
        pass: &Pass,
    ) -> Result<Step<Answer>, Failure> {
        let Some((_, step)) = &order.step else { return Err(Failure::usage("a shell takes a line")) };
        if !order.pty {
            return Err(Failure::usage("a shell has a terminal: pty=false is not for it"));
        }
        let seen = order.pattern.clone().map_or(Condition::Port(None), Condition::Pattern);
        let wait = Wait::for_exit().or(Condition::AwaitingInput).or(seen);
        check_wait(&wait)?;
        let StepBegun { job, step, made } = self.outlast.step(&spec(caller, shell, pass), step)?;
        let patience =
            if order.background { self.patience(BRIEF) } else { self.patience_of(caller, order.delay) };
        let until = if order.background { Wait::for_exit() } else { wait.clone() }.of_step(step.step);
        let (of_job, whose) = (job.clone(), caller.clone());
        self.wait_then((&job, until), patience, caller, move |engine, waited| {
            let waited = if order.background && waited.reason == Reason::Deadline {
                Waited { reason: Reason::Started, ..waited }
            } else {
                waited
            };
            let (job, caller) = (&of_job, &whose);
            let wait = wait.of_step(step.step);
            let place = (step.from, order.budget);
            if let Some(pending) = engine.pending((job, caller), &wait, &waited, place, patience) {
                return Ok(Step::Done(Answer::later((job, engine.words), &job.info()?, pending)));
            }
            let mut answer = engine.answer(job, caller, waited, place, patience)?;
            if made && let Some(restored) = job.info()?.shell.and_then(|shell| shell.restored) {
                answer.note(restored);
            }
            Ok(Step::Done(answer))
        })
    }

    /// A wait on a shell is about the step that runs, or ran last.
    pub(super) fn about_its_step(&self, job: &Job, wait: Wait) -> Result<Wait, Failure> {
        if job.info()?.shell.is_none() {
            return Ok(wait);
        }
        Ok(match current(job)? {
            Some((step, _)) => wait.of_step(step),
            None => wait,
        })
    }

    /// The step of a shell that runs, if one does.
    pub(super) fn running_step(&self, job: &Job) -> Result<Option<u64>, Failure> {
        let info = job.info()?;
        if info.shell.is_none() || !info.state.is_live() {
            return Ok(None);
        }
        Ok(current(job)?.filter(|(_, state)| *state == StepState::Running).map(|(step, _)| step))
    }
}

/// The step that runs, or the last one.
fn current(job: &Job) -> Result<Option<(u64, StepState)>, Failure> {
    let steps = job.shell()?.steps;
    let running = steps.iter().find(|step| step.state == StepState::Running);
    Ok(running.or(steps.last()).map(|step| (step.step, step.state)))
}

/// The shell, should it have to be made.
fn spec(caller: &Caller, shell: &ShellOrder, pass: &Pass) -> JobSpec {
    let mut spec = JobSpec::new(Run::Program(vec![shell.kind.name().into()]));
    spec.session.clone_from(&caller.session);
    spec.caller_env.extend(caller.env.iter().map(|(name, value)| (name.clone(), value.clone())));
    spec.cwd.clone_from(&shell.begins_in);
    spec.shown_as = Some(format!("shell {}", shell.name));
    spec.for_agent = true;
    spec.guard = pass.guard_request();
    let scope = caller.session.clone();
    spec.shell = Some(Shell { rc: shell.rc, scope, ..Shell::new(&shell.name, shell.kind) });
    spec
}
