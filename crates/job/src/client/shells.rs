//! Shells that remember, for front ends: found by their name, made when a step needs one.

use std::sync::Arc;
use std::time::Duration;

use outlast_protocol::request::{Answer, Request};
use outlast_protocol::shell::{ShellKind, Step, StepOrder};

use super::{Job, Outlast};
use crate::elsewhere::{Ahead, ElsewhereJob};
use crate::failure::{Failure, Kind};
use crate::spec::JobSpec;
use crate::wire::Wait;

/// How often a shell that has just ended, or is made by others too, is tried again.
const MAX_TRIES: usize = 8;
/// How long a shell that takes no more steps may take to end.
const ENDING_SHELL: Duration = Duration::from_secs(5);

/// A step that a shell has taken.
#[derive(Clone, Debug)]
pub struct StepBegun {
    /// The shell.
    pub job: Job,
    /// The step: it runs, or waits for its turn.
    pub step: Step,
    /// Whether the shell was made for it.
    pub made: bool,
}

/// Where a shell is, and which one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellPlace {
    /// The folder it is in; for one that must be made, where it will begin.
    pub folder: String,
    /// Which kind it is, or was.
    pub kind: Option<ShellKind>,
    /// Whether it is there.
    pub lives: bool,
    /// The folder of a shell of this name that has ended: the next one must begin there, because its first step is judged there.
    pub begins_in: Option<String>,
}

impl ShellPlace {
    /// The kind that a step gets which asks for one, or for none.
    ///
    /// # Errors
    /// When the shell is of another kind.
    pub fn kind_for(&self, asked: Option<ShellKind>, name: &str) -> Result<ShellKind, Failure> {
        match (self.kind, asked) {
            (Some(kind), Some(asked)) if self.lives && kind != asked => {
                Err(Failure::usage(format!("shell {name} is {kind}, not {asked}"))
                    .hint(format!("give the {asked} another name, or end this one: outlast kill {name}")))
            }
            (_, Some(asked)) => Ok(asked),
            (known, None) => Ok(known.unwrap_or(ShellKind::Bash)),
        }
    }
}

impl Outlast {
    /// The shell of a name, which may have ended; none if there never was one.
    ///
    /// # Errors
    /// When the host cannot be asked.
    pub fn find_shell(&self, scope: &str, name: &str) -> Result<Option<Job>, Failure> {
        let ask = Request::FindShell { scope: scope.to_owned(), name: name.to_owned() };
        match (self.ask(ask)?, &self.at) {
            (Answer::FoundShell(None), _) => Ok(None),
            (Answer::FoundShell(Some(handle)), None) => self.job(&handle.to_string()).map(Some),
            (Answer::FoundShell(Some(handle)), Some(host)) => {
                let there = ElsewhereJob::new(Arc::clone(host), handle, self.masked, Ahead::default());
                Ok(Some(Job::there(there)))
            }
            (other, _) => Err(crate::elsewhere::unexpected(&other)),
        }
    }

    /// Where the shell of a name is, and which kind it is. One that has ended begins where it was, as far as that is known;
    /// where there never was one, in this process's own folder.
    ///
    /// # Errors
    /// When the host cannot be asked, or this process's folder was deleted.
    pub fn place_of_shell(&self, scope: &str, name: &str) -> Result<ShellPlace, Failure> {
        let known = self.find_shell(scope, name)?;
        let kind = match &known {
            Some(job) => job.info().ok().and_then(|info| info.shell).map(|shell| shell.kind),
            None => None,
        };
        if let Some(job) = known
            && let Ok(folder) = job.shell_folder()
        {
            if !job.has_ended_on_record() {
                return Ok(ShellPlace { folder, kind, lives: true, begins_in: None });
            }
            if self.at.is_none() && std::path::Path::new(&folder).is_dir() {
                return Ok(ShellPlace { begins_in: Some(folder.clone()), folder, kind, lives: false });
            }
        }
        let own = std::env::current_dir().map_err(|_| crate::spec::deleted_folder())?;
        Ok(ShellPlace { folder: own.to_string_lossy().into_owned(), kind, lives: false, begins_in: None })
    }

    /// The shell that `spec` names, and whether it was made just now.
    ///
    /// # Errors
    /// Why there can be no shell.
    pub fn open_shell(&self, spec: &JobSpec) -> Result<(Job, bool), Failure> {
        let Some(shell) = &spec.shell else { return Err(Failure::usage("a step needs a shell")) };
        shell.check()?;
        let mut tries = 0;
        loop {
            tries += 1;
            let known = self.find_shell(&shell.scope, &shell.name)?;
            if let Some(job) = known.filter(|job| !job.has_ended_on_record()) {
                return Ok((job, false));
            }
            match self.start(spec.clone()) {
                Ok(job) => return Ok((job, true)),
                // Somebody else was faster.
                Err(failure) if failure.kind == Kind::Usage && tries < MAX_TRIES => {
                    if self.find_shell(&shell.scope, &shell.name)?.is_none() {
                        return Err(failure);
                    }
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Runs a command in a shell that remembers. A shell that is not there, or has ended, is made first, as `spec` says;
    /// then it says whether it was. What becomes of the step is to be waited for: [`Wait::of_step`].
    ///
    /// # Errors
    /// What is wrong with the command, or why there can be no shell.
    pub fn step(&self, spec: &JobSpec, order: &StepOrder) -> Result<StepBegun, Failure> {
        order.check()?;
        let mut made = false;
        let mut tries = 0;
        loop {
            tries += 1;
            let (job, is_new) = self.open_shell(spec)?;
            made |= is_new;
            match job.step(order.clone()) {
                Ok(step) => return Ok(StepBegun { job, step, made }),
                // It ended just now: its record says so in a moment.
                Err(failure) if failure.kind == Kind::NotRunning && tries < MAX_TRIES => {
                    let _ = job.wait(&Wait::for_exit(), Some(ENDING_SHELL));
                }
                Err(failure) => return Err(failure),
            }
        }
    }
}
