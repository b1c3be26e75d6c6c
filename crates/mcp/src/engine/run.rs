//! Starts a command and stays with it for a moment.

use std::collections::BTreeMap;
use std::time::Duration;

use outlast_job::notify::Notify;
use outlast_job::wakes::Will;
use outlast_job::{Failure, JobSpec, Reason, Run, Streams, Wait, Waited};

use super::{Caller, Engine};
use crate::answer::Answer;

/// How long a command that goes to the background is looked at: long enough to see one that does not exist.
const BRIEF: Duration = Duration::from_millis(20);

/// No pager takes an agent's screen by surprise.
const PAGERS: [&str; 3] = ["PAGER", "GIT_PAGER", "MANPAGER"];

/// What to run, and how long to stay.
#[derive(Debug)]
pub(crate) struct RunOrder {
    pub(crate) command: String,
    pub(crate) description: Option<String>,
    pub(crate) folder: Option<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) name: Option<String>,
    pub(crate) pty: bool,
    pub(crate) background: bool,
    pub(crate) delay: Duration,
    pub(crate) pattern: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) inactivity_timeout: Option<Duration>,
    pub(crate) budget: usize,
    /// What is worth an event; none for an end and a question.
    pub(crate) notify: Option<Notify>,
}

impl Engine {
    pub(crate) fn run(&self, caller: &Caller, order: RunOrder) -> Result<Answer, Failure> {
        let wait = Wait {
            exit: true,
            awaiting_input: true,
            // A caller who knows what to look for is not told of less.
            port: order.pattern.is_none().then_some(0),
            patterns: order.pattern.iter().cloned().collect(),
            from: Some(0),
            ..Wait::default()
        };
        wait.check()?;
        let spec = self.spec(caller, &order)?;
        let wakes = self.outlast.wakes_of(&spec);
        let job = self.outlast.start(spec)?;
        let patience =
            if order.background { self.patience(BRIEF) } else { self.patience_of(caller, order.delay) };
        let waited = if order.background {
            let waited = self.wait(&job, &Wait::for_exit().from(0), patience, caller)?;
            if waited.reason == Reason::Deadline {
                Waited { reason: Reason::Started, ..waited }
            } else {
                waited
            }
        } else {
            self.wait(&job, &wait, patience, caller)?
        };
        if let Some(pending) = self.pending((&job, caller), &wait, &waited, (0, order.budget), patience) {
            return Ok(Answer::later((&job, self.words), &job.info()?, pending));
        }
        let mut answer = self.answer(&job, caller, waited, (0, order.budget), patience)?;
        if answer.is_live() {
            self.promise(&mut answer, &wakes, order.notify.is_some());
        }
        Ok(answer)
    }

    fn spec(&self, caller: &Caller, order: &RunOrder) -> Result<JobSpec, Failure> {
        let mut spec = JobSpec::in_session(Run::Shell(order.command.clone()), &caller.session);
        for pager in PAGERS {
            spec.env.insert(pager.into(), "cat".into());
        }
        spec.env.extend(order.env.clone());
        if let Some(folder) = &order.folder {
            spec.cwd = absolute(folder)?;
        }
        if !order.pty {
            spec.streams = Streams::Pipes;
        }
        spec.description.clone_from(&order.description);
        spec.name.clone_from(&order.name);
        for (name, value) in &caller.env {
            spec.env.entry(name.clone()).or_insert_with(|| value.clone());
            spec.wake_env.insert(name.clone(), value.clone());
        }
        if let Some(notify) = &order.notify {
            spec.notify.clone_from(notify);
        }
        spec.timeout = order.timeout;
        spec.inactivity_timeout = order.inactivity_timeout;
        let settings = self.outlast.settings();
        spec.log_cap = settings.log_cap;
        spec.confine_for_agent(settings);
        Ok(spec)
    }

    /// Says honestly who will hear of what happens: the wakes that will really be tried, and what is left if there are none.
    fn promise(&self, answer: &mut Answer, wakes: &[Will], asked: bool) {
        for wake in wakes {
            let will = if wake.will { "will wake you" } else { "can't wake you" };
            answer.note(format!("{} {will}: {}", wake.kind, wake.why));
        }
        if self.prompted {
            answer.note(
                "you are prompted when it ends or asks something: you can end your turn instead of waiting",
            );
        } else if asked && !wakes.iter().any(|wake| wake.will) {
            answer.note("nothing calls you by itself: your next call of any tool says that events wait, jobs() shows them");
        }
    }
}

/// A folder as a person would give it: from where the server runs, or from home.
pub(crate) fn absolute(folder: &str) -> Result<String, Failure> {
    let path = match (folder.strip_prefix("~"), std::env::var("HOME")) {
        (Some(rest), Ok(home)) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
        _ => folder.to_owned(),
    };
    std::path::absolute(&path)
        .map(|path| path.to_string_lossy().into_owned())
        .map_err(|error| Failure::usage(format!("dir_path {folder:?} is no folder: {error}")))
}
