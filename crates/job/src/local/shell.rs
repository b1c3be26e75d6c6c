//! Shells of this machine: found by the session and their name, asked to run steps, and known from their files when they
//! are gone.

use std::time::Duration;

use outlast_protocol::shell::{ShellStatus, Step, StepOrder, StepState};

use super::{Local, LocalJob, REPLY_TIMEOUT, unexpected};
use crate::failure::Failure;
use crate::registry::event_lines::steps_of;
use crate::registry::replace::read_small;
use crate::registry::{layout, names};
use crate::shells::state::go_to;
use crate::spec::{Handle, KeeperSpec};
use crate::wire::event::Event;
use crate::wire::{Answer, Killed, Verb};

/// How much of the log of events is read for the last steps of a shell that is gone.
const EVENTS_TAIL: usize = 4 << 20;
/// More than any state of a shell has.
const MAX_STATE: usize = 8 << 20;
/// Beyond the grace, how long a step may take to be over.
const END_SLACK: Duration = Duration::from_secs(15);

impl Local {
    /// The job that is, or was last, the shell of this name.
    pub(crate) fn find_shell(&self, scope: &str, name: &str) -> Option<Handle> {
        names::shell(&self.home, scope, name)
    }
}

impl Local {
    /// A shell that is made anew gets back what the last one of its name remembered.
    pub(super) fn remember_shell(&self, spec: &mut KeeperSpec) {
        let Some(shell) = &mut spec.shell else { return };
        let Some(old) = self.find_shell(&shell.scope, &shell.name) else { return };
        let Ok(job) = self.home.job(old) else { return };
        // Another sandbox, or other startup files, make another shell.
        let is_same = job.info().is_ok_and(|info| {
            info.sandbox == spec.sandbox
                && info.shell.is_some_and(|old| {
                    old.rc == shell.rc && old.kind == shell.kind && !old.in_memory && !shell.in_memory
                })
        });
        if !is_same {
            return;
        }
        let state = read_small(&job, layout::SHELL_STATE, MAX_STATE).ok();
        let state = state.and_then(|state| String::from_utf8(state).ok());
        let mut state = state.unwrap_or_else(|| "# folder\n".into());
        // It may have ended before it could be asked what it remembers; where it was is known from its last step.
        if let Some(folder) = job.shell_folder() {
            let go = go_to(shell.kind, &folder);
            if !state.ends_with(&go) {
                state += &go;
            }
            // Known before its first step has said so.
            if std::path::Path::new(&folder).is_dir() {
                spec.cwd = folder;
            }
        }
        let words = state.lines().next().unwrap_or_default().trim_start_matches("# ");
        shell.restored = Some(format!(
            "the shell was made anew; restored: {words}; plain variables, traps and background jobs are gone"
        ));
        spec.shell_state = Some(state);
    }
}

impl LocalJob {
    pub(crate) fn step(&self, mut order: StepOrder) -> Result<Step, Failure> {
        order.check()?;
        if order.session.is_empty() {
            order.session = crate::session::current();
        }
        match self.ask(&Verb::Step(order), REPLY_TIMEOUT)? {
            Some(Answer::Step(step)) => Ok(*step),
            Some(other) => Err(unexpected(&other)),
            None => Err(self.not_running()),
        }
    }

    pub(crate) fn end_step(
        &self,
        step: Option<u64>,
        grace: Duration,
        session: &str,
    ) -> Result<Killed, Failure> {
        let grace_ms = crate::clock::millis(grace);
        let verb = Verb::EndStep { step, grace_ms, session: session.to_owned() };
        match self.ask(&verb, grace * 2 + END_SLACK)? {
            Some(Answer::Killed(killed)) => Ok(killed),
            Some(other) => Err(unexpected(&other)),
            None => Err(self.not_running()),
        }
    }

    /// How a shell is, or was; only where it is, if that is enough. That is on the disk, and nobody has to be woken for it.
    pub(crate) fn shell_status(&self, brief: bool) -> Result<ShellStatus, Failure> {
        if brief && let Some(folder) = self.open.dir.shell_folder() {
            return Ok(ShellStatus { folder, ..ShellStatus::default() });
        }
        self.shell(brief)
    }

    fn shell(&self, brief: bool) -> Result<ShellStatus, Failure> {
        match self.ask(&Verb::Shell { brief }, REPLY_TIMEOUT)? {
            Some(Answer::Shell(status)) => Ok(*status),
            Some(other) => Err(unexpected(&other)),
            None => self.shell_that_was(),
        }
    }

    fn shell_that_was(&self) -> Result<ShellStatus, Failure> {
        let info = self.record()?;
        if info.shell.is_none() {
            return Err(Failure::usage("this job is not a shell: it has no steps"));
        }
        let steps = self.steps_on_record()?;
        let folder = steps.iter().rev().find_map(|step| step.folder.clone());
        Ok(ShellStatus {
            folder: folder.unwrap_or_else(|| info.cwd.clone()),
            steps,
            ..ShellStatus::default()
        })
    }

    /// The last steps, as the log of events has them.
    fn steps_on_record(&self) -> Result<Vec<Step>, Failure> {
        let lines = self.event_lines(EVENTS_TAIL)?;
        let events = lines.lines().filter_map(|line| serde_json::from_str::<Event>(line).ok());
        let mut steps: Vec<Step> = steps_of(events).into_values().collect();
        if !self.record()?.state.is_live() {
            for step in steps.iter_mut().filter(|step| step.state == StepState::Running) {
                step.state = StepState::Ended;
                step.note = Some("the shell ended with it, and nobody saw how".into());
            }
        }
        Ok(steps)
    }

    /// A step, wherever it is known from.
    pub(crate) fn known_step(&self, number: u64) -> Option<Step> {
        let remembered = self.shell(false).ok()?.steps.into_iter().find(|step| step.step == number);
        remembered.or_else(|| self.steps_on_record().ok()?.into_iter().find(|step| step.step == number))
    }
}
