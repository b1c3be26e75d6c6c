//! What the tools do, without a word of MCP: each verb takes an order and a caller, and gives an answer, at once or as a
//! [step](parked::Step) that waits.
//!
//! What is here remembered between two calls is on disk, the jobs and the [cursors](crate::cursors), or can be read from
//! there again. So any number of servers can work on one home, and one that died is not missed.

pub(crate) mod adopted;
mod asking;
mod executable;
mod far;
pub(crate) mod in_shell;
pub(crate) mod jobs;
pub(crate) mod kill;
pub(crate) mod left;
pub(crate) mod news;
pub(crate) mod parked;
pub(crate) mod read;
pub(crate) mod run;
pub(crate) mod screen;
pub(crate) mod send;
pub(crate) mod view;
pub(crate) mod wait;

use std::sync::Arc;
use std::time::Duration;

use outlast_fleet::everywhere::Everywhere;
use outlast_job::registry::format::Info;
use outlast_job::request::{Lines, ReadBytes, ReadText, Stream};
use outlast_job::shell::StepState;
use outlast_job::wire::AwaitingKind;
use outlast_job::{Failure, Handle, Job, Kind, Outlast, Reason, Wait, Waited};
use outlast_policy::{Door, Gate};
use outlast_remote::fleet::Fleet;

use crate::answer::Answer;
use crate::call_handle::{CallHandle, Receipt};
use crate::call_log::CallLog;
use crate::cursors::{Cursor, Cursors};
use crate::options::Options;
use crate::printed;
use crate::screen_view;
use crate::subscriptions::JobList;
use crate::tasks::{Pending, Tasks};
use crate::words::Words;
use wait::WaitOutput;

/// A call that takes longer becomes a task, where the client knows tasks.
const TASK_AFTER: Duration = Duration::from_secs(2);
/// How long somebody who asks about a task waits for it: long enough for a keeper to look.
const TASK_LOOK: Duration = Duration::from_millis(250);

/// The jobs of a home, and what each session knows of them.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) outlast: Outlast,
    /// Who may do what.
    pub(crate) gate: Gate,
    cursors: Cursors,
    heard: news::Heard,
    /// What jobs on other machines had to tell.
    far_news: far::FarNews,
    /// Where calls are noted for who wants spans of them.
    pub(crate) call_log: CallLog,
    asking: asking::Asking,
    left: left::Told,
    pub(crate) job_list: JobList,
    staying: parked::Staying,
    screens: screen::Shown,
    adopted: adopted::Adopted,
    pub(crate) tasks: Tasks,
    longest_call: Duration,
    /// Somebody prompts the agent when something happened.
    prompted: bool,
    /// The key of the tags in answers that start jobs.
    call_key: Option<String>,
    /// What the tools are called here.
    pub(crate) words: Words,
}

/// Who calls, and the thread to the call.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) session: String,
    /// Variables by which the caller's own conversation is found again, for wakes.
    pub(crate) env: Vec<(String, String)>,
    /// Whether the client can be given a task instead of an answer.
    pub(crate) tasks: bool,
    pub(crate) call: Arc<CallHandle>,
}

/// How long a call may block, and whether that is less than was asked for.
#[derive(Clone, Copy, Debug)]
struct Patience {
    asked: Duration,
    allowed: Duration,
}

/// How much of a job's output an answer shows.
#[derive(Clone, Copy, Debug)]
struct Asked {
    from: u64,
    budget: usize,
    output: WaitOutput,
}

/// How an answer's output relates to what the session has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// The caller asked for it and has seen it all.
    Seen,
    /// It came along: a later wait still looks at it.
    Glimpsed,
}

impl Engine {
    pub(crate) fn open(options: &Options) -> Result<Self, Failure> {
        let outlast = match &options.home {
            Some(home) => Outlast::open_at(home)?,
            None => Outlast::open()?,
        };
        let hosts = outlast.settings().agents_hosts.clone();
        let fleet = Fleet::of_agents(outlast.home().path(), hosts);
        let outlast = outlast.masked().with_hosts(Everywhere::with(fleet, false));
        let cursors = Cursors::of(outlast.home());
        cursors.sweep();
        let adopted = adopted::Adopted::of(outlast.home());
        let tasks = Tasks::of(outlast.home());
        tasks.sweep();
        let gate = Gate::open(outlast.home(), Door::Mcp)?.own(options.own);
        let (longest_call, prompted) = (options.longest_call, options.prompted);
        let (heard, left) = (news::Heard::default(), left::Told::default());
        let (job_list, words) = (JobList::default(), Words(options.profile));
        let staying = parked::Staying::default();
        let call_log = CallLog::of(outlast.home().path());
        Ok(Self {
            outlast,
            gate,
            cursors,
            heard,
            call_log,
            far_news: far::FarNews::default(),
            asking: asking::Asking::default(),
            left,
            job_list,
            staying,
            screens: screen::Shown::default(),
            adopted,
            tasks,
            longest_call,
            prompted,
            call_key: options.call_key.clone(),
            words,
        })
    }

    /// The job of a handle, a name, or the pid of its command.
    pub(crate) fn job(&self, reference: &str) -> Result<Job, Failure> {
        // One on another machine is asked all at once for what every answer says.
        let found = if reference.contains('/') {
            self.outlast.expecting(far::asks()).job(reference.trim())
        } else {
            self.outlast.job(reference.trim())
        };
        match (found, reference.trim().parse::<u64>()) {
            (Err(failure), Ok(pid)) if failure.kind == Kind::NoSuchJob => match self.job_of_pid(pid) {
                // Where processes go by pid, one tool is not to be stricter than another.
                Ok(job) if self.words.says_pid() => Ok(job),
                Ok(job) => {
                    let why = format!("there is no job {pid}; that is the pid of job {}", job.handle());
                    Err(Failure::new(Kind::NoSuchJob, why)
                        .hint(format!("call again with handle=\"{}\"", job.handle())))
                }
                Err(_) => Err(failure),
            },
            (found, _) => found,
        }
    }

    /// The job whose command has this pid; the newest, if there were several.
    pub(crate) fn job_of_pid(&self, pid: u64) -> Result<Job, Failure> {
        let is_it =
            |info: &&Info| info.process.as_ref().is_some_and(|process| u64::try_from(process.pid) == Ok(pid));
        let jobs = self.outlast.jobs();
        match jobs.iter().rev().find(is_it) {
            Some(info) => self.job(&info.handle.to_string()),
            None => {
                Err(Failure::new(Kind::NoSuchJob, format!("no job has the pid {pid}"))
                    .hint("see them: jobs()"))
            }
        }
    }

    fn patience(&self, asked: Duration) -> Patience {
        Patience { asked, allowed: asked.min(self.longest_call) }
    }

    /// How long a call stays that can become a task: no longer than it takes to see what is quick.
    fn patience_of(&self, caller: &Caller, asked: Duration) -> Patience {
        if caller.tasks { Patience { asked, allowed: asked.min(TASK_AFTER) } } else { self.patience(asked) }
    }

    /// What is left to wait for when a call that can become a task has stayed long enough.
    fn pending(
        &self,
        (job, caller): (&Job, &Caller),
        wait: &Wait,
        waited: &Waited,
        (from, budget): (u64, usize),
        patience: Patience,
    ) -> Option<Pending> {
        let more = patience.asked.saturating_sub(patience.allowed);
        if !caller.tasks || waited.reason != Reason::Deadline || more.is_zero() || caller.call.is_cancelled()
        {
            return None;
        }
        let until = outlast_job::clock::now_ms().saturating_add(outlast_job::clock::millis(more));
        let (session, handle) = (caller.session.clone(), job.handle());
        Some(Pending { session, handle, wait: wait.clone(), from, until, budget })
    }

    /// The answer of a task, if it is known by now.
    pub(crate) fn resume(&self, caller: &Caller, pending: &Pending) -> Result<Option<Answer>, Failure> {
        let job = self.job(&pending.handle.to_string())?;
        let now = outlast_job::clock::now_ms();
        let patience = self.patience(TASK_LOOK);
        // Short enough to stay for it.
        let waited = job.wait(&pending.wait, Some(patience.allowed))?;
        if waited.reason == Reason::Deadline && now < pending.until {
            return Ok(None);
        }
        self.answer(&job, caller, waited, (pending.from, pending.budget), patience).map(Some)
    }

    /// The answer about a job after a wait: its output from an offset on, and what else is worth knowing.
    fn answer(
        &self,
        job: &Job,
        caller: &Caller,
        waited: Waited,
        (from, budget): (u64, usize),
        patience: Patience,
    ) -> Result<Answer, Failure> {
        let asked = Asked { from, budget, output: WaitOutput::New };
        self.answer_with(job, caller, waited, asked, patience)
    }

    /// The same, with as much of the output as was asked for.
    fn answer_with(
        &self,
        job: &Job,
        caller: &Caller,
        waited: Waited,
        Asked { from, budget, output }: Asked,
        patience: Patience,
    ) -> Result<Answer, Failure> {
        let reason = waited.reason;
        if waited.awaiting_input.as_ref().is_some_and(|awaiting| awaiting.kind == AwaitingKind::Approval) {
            self.note_asking(&caller.session, job.handle());
        }
        let info = job.info_to_show()?;
        let mut answer = Answer::of((job, self.words), &info).waited(waited.clone());
        if let (Some(step), Some(shell)) = (&waited.step, &info.shell) {
            answer = answer.of_step(shell, step);
        }
        // Once: a list may have said how it ended before, but not what it printed.
        let before = self.cursors.get(&caller.session, job.handle());
        let told = before.ended && before.read >= job.log_end();
        let has_outcome = !told && !answer.is_live() && waited.step.is_none();
        let budget = if has_outcome { answer.add_outcome(budget)? } else { budget };
        answer.budget = budget;
        let (from, to) = match &waited.step {
            Some(step) if step.state == StepState::Queued => (step.from, Some(step.from)),
            Some(step) => (from.max(step.from), step.to),
            None => (from, None),
        };
        let mut read = ReadText { from, to, ..ReadText::default() };
        match output {
            WaitOutput::New => answer = answer.showing(read, budget),
            WaitOutput::Tail => {
                let lines = Some(Lines::Last(wait::TAIL));
                let (begin, to) = job.borders(ReadBytes { from, to, lines, ..ReadBytes::default() })?;
                read = ReadText { from: begin, to: Some(to), ..read };
                answer = answer.showing(read, budget);
                // The rest counts as seen: it was not wanted.
                answer.range.0 = from;
            }
            WaitOutput::Nothing => answer.range = (from, from),
        }
        let errors = match output {
            WaitOutput::New | WaitOutput::Tail => self.add_errors((job, &info), caller, &mut answer)?,
            WaitOutput::Nothing => None,
        };
        if reason == Reason::Deadline && patience.allowed < patience.asked {
            let (asked, cut) = (patience.asked.as_secs_f64(), patience.allowed.as_secs_f64());
            answer.note(format!("the call was cut at {cut} s of {asked} s; wait_for waits on"));
        }
        if output != WaitOutput::Nothing {
            self.add_screen(job, caller, &mut answer, &waited);
        }
        let shown = if reason == Reason::Started || output == WaitOutput::Nothing {
            Shown::Glimpsed
        } else {
            Shown::Seen
        };
        self.remember(job, caller, &mut answer, (shown, &waited), errors);
        Ok(answer)
    }

    /// In pipe mode, what came on stderr since the last answer; says where it ended.
    fn add_errors(
        &self,
        (job, info): (&Job, &Info),
        caller: &Caller,
        answer: &mut Answer,
    ) -> Result<Option<u64>, Failure> {
        if info.has_terminal() {
            return Ok(None);
        }
        let from = self.cursors.get(&caller.session, job.handle()).errors;
        let (max, stream) = (answer.budget / 4, Stream::Stderr);
        let errors = printed::text(job, ReadText { stream, from, max, ..ReadText::default() })?;
        if let Some((from, to)) = errors.omitted {
            let call = self.words.read_errors(job.handle(), from, to);
            answer.note(format!("{} bytes of stderr left out (…): {call}", to - from));
        }
        answer.errors = errors.text;
        Ok(Some(errors.to))
    }

    /// A full-screen program or a menu prints nothing that can be read as lines: its screen says more. Only the rows that
    /// changed since the session saw it last.
    fn add_screen(&self, job: &Job, caller: &Caller, answer: &mut Answer, waited: &Waited) {
        let kind = waited.awaiting_input.as_ref().map(|awaiting| awaiting.kind);
        let menu = kind == Some(AwaitingKind::Menu);
        if waited.full_screen == Some(false) && !menu || !answer.is_live() {
            return;
        }
        let Ok(shot) = job.screen(true, 0) else { return };
        if shot.alternate || menu {
            let rows = screen_view::rows(&shot, menu);
            let shown = self.screens.show(&caller.session, job.handle(), rows);
            answer.show_rows(shown, &shot);
        }
    }

    /// Remembers that a call about a job was given up, so that the session can be told.
    pub(crate) fn note_cancelled(&self, session: &str, call: &CallHandle) {
        if let Some(handle) = call.about().filter(|_| call.note_once()) {
            self.note_given_up(session, handle);
        }
    }

    /// Remembers that nobody will read the answer of a call about a job.
    pub(crate) fn note_given_up(&self, session: &str, handle: Handle) {
        let before = self.cursors.get(session, handle);
        self.cursors.set(session, handle, Cursor { cancelled: true, ..before });
    }

    /// Moves the session's cursor past what the answer shows; an answer that nobody will read moves nothing.
    fn remember(
        &self,
        job: &Job,
        caller: &Caller,
        answer: &mut Answer,
        (shown, waited): (Shown, &Waited),
        errors: Option<u64>,
    ) {
        let before = self.cursors.get(&caller.session, job.handle());
        if caller.call.is_cancelled() {
            return self.note_cancelled(&caller.session, &caller.call);
        }
        let (from, to) = answer.range;
        if from > before.read {
            let missed = before.read;
            let call = self.words.read(job.handle(), missed, from);
            answer.note(format!("{} bytes before this were not shown yet: {call}", from - missed));
        }
        let waited = match (shown, waited.reason) {
            (Shown::Glimpsed, _) => before.waited,
            (Shown::Seen, Reason::Pattern) => waited.offset,
            (Shown::Seen, _) => to,
        };
        let after = Cursor {
            read: before.read.max(to),
            waited: before.waited.max(waited),
            errors: errors.unwrap_or(before.errors),
            cancelled: false,
            ended: before.ended || answer.job_has_ended(),
            at: outlast_job::clock::now_ms(),
        };
        if after != before {
            self.note_seen(caller, job.handle(), after);
        }
    }

    /// The answer of this call moves a cursor of its session.
    fn note_seen(&self, caller: &Caller, job: Handle, cursor: Cursor) {
        let session = caller.session.clone();
        let hold = self.cursors.hold(&session, job, cursor);
        caller.call.add_receipt(Receipt::Seen { session, job, hold });
    }

    /// Notes what the answer of a call said for the first time, now that it is out, or never will be.
    pub(crate) fn settle(&self, receipts: Vec<Receipt>, is_out: bool) {
        for receipt in receipts {
            match receipt {
                Receipt::Seen { session, job, hold } if is_out => self.cursors.confirm(&session, job, hold),
                Receipt::Seen { session, job, hold } => self.cursors.release(&session, job, hold),
                Receipt::Told { session, numbers } => self.settle_told(&session, &numbers, is_out),
            }
        }
    }
}
