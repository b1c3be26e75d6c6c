//! Starts a command and stays with it for a moment.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use outlast_job::call_tag::{call_note, call_tag};
use outlast_job::notify::Notify;
use outlast_job::request::{List as ListRequest, ListedJob, Summary};
use outlast_job::shell::StepOrder;
use outlast_job::spec::deleted_folder;
use outlast_job::wakes::WakePlan;
use outlast_job::{Condition, Failure, Job, JobSpec, Kind, Reason, Run, Streams, Wait, Waited, check_wait};
use outlast_policy::{Pass, StepCommand};
use outlast_protocol::{After, HostName, Slot};

use super::executable::is_missing;
use super::in_shell::ShellOrder;
use super::parked::Step;
use super::{Caller, Engine};
use crate::answer::Answer;
use crate::printed::budget;

/// How long a command that goes to the background is looked at where nothing can be known of it before: in a shell that
/// remembers, and on another machine.
pub(super) const BRIEF: Duration = Duration::from_millis(20);
/// How long one is waited for of which it is known that it will fail at once.
const FAILS_SOON: Duration = Duration::from_millis(500);

/// What becomes of a second start of what runs already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecondStart {
    /// Nothing is started: the answer is about what runs.
    Refused,
    /// It is started, and the answer names what runs: for tools that have no parameter to insist.
    Told,
    /// It is meant.
    Wanted,
}

/// What to run, and how long to stay.
#[derive(Debug)]
pub(crate) struct RunOrder {
    pub(crate) run: Run,
    pub(crate) description: Option<String>,
    /// Where it would run on this machine, which is what rules are about.
    pub(crate) folder: PathBuf,
    /// Where it runs; none for where the host runs.
    pub(crate) cwd: Option<String>,
    /// The machine it runs on; none for this one.
    pub(crate) host: Option<HostName>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) name: Option<String>,
    pub(crate) pty: bool,
    pub(crate) background: bool,
    pub(crate) delay: Duration,
    pub(crate) pattern: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) inactivity_timeout: Option<Duration>,
    pub(crate) budget: usize,
    /// What to do when the same runs already.
    pub(crate) second: SecondStart,
    /// What is worth an event; none for an end and a question.
    pub(crate) notify: Option<Notify>,
    /// It is a step in this shell.
    pub(crate) shell: Option<ShellOrder>,
    /// That step, and as it is judged.
    pub(crate) step: Option<(StepCommand, StepOrder)>,
    /// It waits in line for a place in this slot.
    pub(crate) slot: Option<String>,
    /// It runs once these jobs have succeeded.
    pub(crate) after: Vec<String>,
}

impl RunOrder {
    /// Runs it on another machine, in a folder there.
    pub(crate) fn on_host(self, host: Option<String>, folder: Option<String>) -> Result<Self, Failure> {
        let Some(host) = host else { return Ok(self) };
        Ok(Self { host: Some(host.parse()?), cwd: folder, ..self })
    }

    /// A line for the shell in a folder, else where the server runs, with everything else as it is when
    /// nothing is said.
    pub(crate) fn new(command: String, folder: Option<String>) -> Result<Self, Failure> {
        let given = folder.map(|folder| absolute(&folder)).transpose()?;
        let cwd = given.as_ref().map(|folder| folder.to_string_lossy().into_owned());
        let folder = match given {
            Some(folder) => folder,
            None => std::env::current_dir().map_err(|_| deleted_folder())?,
        };
        Ok(Self {
            run: Run::Shell(command),
            description: None,
            folder,
            cwd,
            host: None,
            env: BTreeMap::new(),
            name: None,
            pty: true,
            background: false,
            delay: Duration::ZERO,
            pattern: None,
            timeout: None,
            inactivity_timeout: None,
            budget: budget(None),
            second: SecondStart::Told,
            notify: None,
            shell: None,
            step: None,
            slot: None,
            after: Vec::new(),
        })
    }
}

impl RunOrder {
    /// How long a command that goes to the background is looked at: none for one that does not.
    fn looked_at(&self) -> Option<Duration> {
        let fails = |line: &str| {
            let given = self.env.get("PATH").map(Into::into);
            let path: Option<std::ffi::OsString> = given.or_else(|| std::env::var_os("PATH"));
            is_missing(line, &self.folder, path.as_deref())
        };
        self.background.then(|| match &self.run {
            _ if self.host.is_some() => BRIEF,
            Run::Shell(line) if fails(line) => FAILS_SOON,
            // That it is executed is known from the exec itself.
            Run::Shell(_) | Run::Program(_) => Duration::ZERO,
        })
    }
}

impl Engine {
    pub(crate) fn run(&self, caller: &Caller, order: RunOrder, pass: &Pass) -> Result<Step<Answer>, Failure> {
        if let Some(shell) = order.shell.clone() {
            return self.run_step(caller, order, &shell, pass);
        }
        // A caller who knows what to look for is not told of less.
        let seen = order.pattern.clone().map_or(Condition::Port(None), Condition::Pattern);
        let wait = Wait::for_exit().or(Condition::AwaitingInput).or(seen).from(0);
        check_wait(&wait)?;
        let mut spec = spec(caller, &order);
        let outlast = self.on(order.host)?;
        let mut twin = match order.second {
            SecondStart::Refused | SecondStart::Told if order.host.is_none() => self.running_twin(&order),
            SecondStart::Refused | SecondStart::Told | SecondStart::Wanted => None,
        };
        if let (SecondStart::Refused, Some(found)) = (order.second, &twin) {
            match self.not_again(caller, found) {
                // It ended and was removed meanwhile.
                Err(failure) if failure.kind == Kind::NoSuchJob => twin = None,
                answer => return answer.map(Step::Done),
            }
        }
        let twin = twin.map(|twin| {
            format!("the same command runs here already{}: job {}", whose(&twin, caller), twin.handle)
        });
        spec.guard = pass.guard_request();
        let wakes = outlast.wakes_of(&spec)?;
        let job = outlast.start(spec)?;
        if let Some(host) = order.host {
            self.listen(caller, host);
        }
        let looked_at = order.looked_at();
        let patience = match looked_at {
            Some(brief) => self.patience(brief),
            None => self.patience_of(caller, order.delay),
        };
        let until = if order.background { Wait::for_exit().from(0) } else { wait.clone() };
        let (of_job, whose) = (job.clone(), caller.clone());
        let then = move |engine: &Engine, waited: Waited| {
            let waited = if order.background && waited.reason == Reason::Deadline {
                Waited { reason: Reason::Started, ..waited }
            } else {
                waited
            };
            let (job, caller) = (&of_job, &whose);
            if let Some(pending) = engine.pending((job, caller), &wait, &waited, (0, order.budget), patience)
            {
                let mut answer = Answer::later((job, engine.words), &job.info()?, pending);
                twin.into_iter().for_each(|twin| answer.note(twin));
                engine.tag(&mut answer, job);
                return Ok(Step::Done(answer));
            }
            let mut answer = engine.answer(job, caller, waited, (0, order.budget), patience)?;
            twin.into_iter().for_each(|twin| answer.note(twin));
            if answer.is_live() {
                engine.promise(&mut answer, &wakes, order.notify.is_some());
            }
            engine.tag(&mut answer, job);
            Ok(Step::Done(answer))
        };
        if looked_at.is_some_and(|brief| brief.is_zero()) {
            caller.call.set_about(job.handle());
            let started = Waited { full_screen: Some(false), ..Waited::because(Reason::Started, 0) };
            return then(self, started);
        }
        self.wait_then((&job, until), patience, caller, then)
    }

    /// The newest job that runs the same command in the same folder, of any session. One that was put into the background by
    /// its own line (`serve &`) runs as long as what it left.
    fn running_twin(&self, order: &RunOrder) -> Option<Summary> {
        let Run::Shell(command) = &order.run else { return None };
        let command = without_ampersand(command).0;
        let folder = order.folder.to_string_lossy();
        let listed = self.outlast.list(ListRequest { unfinished: true, ..ListRequest::default() });
        let is_it = |one: &ListedJob| {
            let (own, in_background) = without_ampersand(&one.job.command);
            let runs = || one.is_live() || in_background && !self.left_running(&one.job).is_empty();
            own == command && one.job.cwd == folder && runs()
        };
        listed.into_iter().rev().find(is_it).map(|one| one.job)
    }

    /// A second start of the same thing is mostly a mistake: the answer is about what runs already.
    fn not_again(&self, caller: &Caller, twin: &Summary) -> Result<Answer, Failure> {
        let job = self.job(&twin.handle.to_string())?;
        let mut answer = Answer::of((&job, self.words), &job.info_to_show()?);
        answer.note(format!(
            "nothing was started: the same command runs here already{}; again=true starts another",
            whose(twin, caller)
        ));
        Ok(answer)
    }

    /// Lets the program that started the server see which call has started which job.
    fn tag(&self, answer: &mut Answer, job: &Job) {
        if let Some(key) = &self.call_key {
            answer.note(call_note(&call_tag(key, job.handle())));
        }
    }

    /// Says honestly who will hear of what happens: the wakes that will really be tried, and what is left if
    /// there are none.
    fn promise(&self, answer: &mut Answer, wakes: &[WakePlan], asked: bool) {
        for wake in wakes {
            let will = if wake.fires { "will wake you" } else { "can't wake you" };
            answer.note(format!("{} {will}: {}", wake.kind, wake.why));
        }
        if self.prompted {
            answer.note(
                "you are prompted when it ends or asks something: you can end your turn instead of waiting",
            );
        } else if asked && !wakes.iter().any(|wake| wake.fires) {
            answer.note(
                "nothing calls you by itself: the next answer of any tool tells what happened meanwhile",
            );
        }
    }
}

fn whose(twin: &Summary, caller: &Caller) -> &'static str {
    if twin.session == caller.session { "" } else { " in another session" }
}

/// A line without the `&` at its end, and whether it has one. What else leaves processes (a build with its daemon) has done
/// its work and may be run again.
fn without_ampersand(line: &str) -> (&str, bool) {
    let line = line.trim();
    match line.strip_suffix('&') {
        Some(rest) if !rest.ends_with(['&', '|', '\\', '>', '<']) => (rest.trim_end(), true),
        Some(_) | None => (line, false),
    }
}

/// What the host is asked for.
fn spec(caller: &Caller, order: &RunOrder) -> JobSpec {
    let mut spec = JobSpec::new(order.run.clone());
    spec.session.clone_from(&caller.session);
    spec.env.extend(order.env.iter().map(|(name, value)| (name.clone(), Some(value.clone()))));
    spec.caller_env.extend(caller.env.iter().map(|(name, value)| (name.clone(), value.clone())));
    spec.cwd.clone_from(&order.cwd);
    if !order.pty {
        spec.streams = Streams::Pipes;
    }
    spec.description.clone_from(&order.description);
    spec.name.clone_from(&order.name);
    spec.notify = order.notify.clone().map(Notify::into_conditions);
    spec.timeout = order.timeout;
    spec.inactivity_timeout = order.inactivity_timeout;
    spec.slot = order.slot.as_ref().map(Slot::new);
    spec.after = order.after.iter().map(|job| After { job: job.clone(), any_end: false }).collect();
    spec.for_agent = true;
    spec
}

/// A folder as a person would give it: from where the server runs, or from home.
fn absolute(folder: &str) -> Result<PathBuf, Failure> {
    let path = match (folder.strip_prefix("~"), std::env::var("HOME")) {
        (Some(rest), Ok(home)) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
        _ => folder.to_owned(),
    };
    std::path::absolute(&path)
        .map_err(|error| Failure::usage(format!("dir_path {folder:?} is not a folder: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_ampersand_that_ends_the_line_puts_it_into_the_background() {
        assert_eq!(without_ampersand(" serve 8000 & "), ("serve 8000", true));
        for line in ["serve", "a &&", r"echo \&", "serve & wait", "a 2>&1", "a >&", "a |&"] {
            assert_eq!(without_ampersand(line), (line, false));
        }
    }
}
