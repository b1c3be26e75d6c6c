//! Shells that remember: steps with exact codes and output, whatever a command does to its shell.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ends;
mod kinds;
mod memory;
mod recorded;
mod steps;

use std::time::Duration;

use outlast_job::request::ReadText;
use outlast_job::shell::{Shell, ShellKind, Step, StepOrder};
use outlast_job::{Condition, Job, JobSpec, Outlast, Reason, Run, Wait, Waited};
use outlast_testkit::{Sandbox, TEST_TIMEOUT};

/// A fresh home for the program under test.
fn sandbox() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_outlast"))
}

/// A client of one shell.
struct Main {
    outlast: Outlast,
    spec: JobSpec,
}

impl Main {
    fn new(sandbox: &Sandbox) -> Self {
        Self::of(sandbox, ShellKind::Bash)
    }

    fn of(sandbox: &Sandbox, kind: ShellKind) -> Self {
        let outlast = Outlast::at(sandbox.home()).unwrap().kept_by(sandbox.program());
        let mut spec = JobSpec::new(Run::Program(vec![kind.name().into()]));
        spec.cwd = Some(sandbox.work().to_str().unwrap().to_owned());
        spec.set_env("HOME", sandbox.root().join("user").to_str().unwrap());
        spec.shell = Some(Shell::new("main", kind));
        Self { outlast, spec }
    }

    fn begin_order(&self, order: &StepOrder) -> (Job, Step) {
        let begun = self.outlast.step(&self.spec, order).unwrap();
        (begun.job, begun.step)
    }

    fn begin(&self, command: &str) -> (Job, Step) {
        self.begin_order(&StepOrder { command: command.into(), ..StepOrder::default() })
    }

    /// Runs a command to its end: how it ended, and what it printed.
    #[track_caller]
    fn run(&self, command: &str) -> (Step, String) {
        let (job, step) = self.begin(command);
        finished(&job, step.step)
    }

    #[track_caller]
    fn run_order(&self, order: &StepOrder) -> (Step, String) {
        let (job, step) = self.begin_order(order);
        finished(&job, step.step)
    }

    /// What a command printed, which must end well.
    #[track_caller]
    fn says(&self, command: &str) -> String {
        let (step, output) = self.run(command);
        assert_eq!(step.exit_code, Some(0), "{command}: {step:?}: {output}");
        output
    }
}

#[track_caller]
fn finished(job: &Job, step: u64) -> (Step, String) {
    let waited = job.wait(&Wait::for_exit().of_step(step), Some(TEST_TIMEOUT)).unwrap();
    assert_eq!(waited.reason, Reason::Exit, "{waited:?}: {:?}", job.read_text(0, 4096));
    let step = *waited.step.unwrap();
    let read = ReadText { from: step.from, to: step.to, max: 4 << 20, ..ReadText::default() };
    let text = job.read(read).unwrap();
    (step, text.head + &text.tail)
}

/// Waits until a step has printed something.
#[track_caller]
fn printed(job: &Job, step: u64, pattern: &str) -> Waited {
    let wait = Wait::of([Condition::Pattern(pattern.into()), Condition::Exit]).of_step(step);
    let waited = job.wait(&wait, Some(TEST_TIMEOUT)).unwrap();
    assert_eq!(waited.reason, Reason::Pattern, "{waited:?}: {:?}", job.read_text(0, 4096));
    waited
}

const GRACE: Duration = Duration::from_millis(300);
