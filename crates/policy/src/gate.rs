//! What every front door asks before it acts, in the same words: may this session do that?
//!
//! A door has its [`Order`] [judged](Gate::judge) first, whatever it is. [`Judged::Asked`] is put to a person
//! in whatever way the door has, now or over several calls, and the answer is given [back](Gate::answered),
//! which notes it. Only with the [`Pass`] that comes of it the door goes on.

mod inside;
mod reader;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use outlast_job::registry::Home;
use outlast_job::registry::format::Info;
use outlast_job::{Failure, Handle, Job, Kind};
use outlast_protocol::Door;
use outlast_protocol::event::ExecQuestion;
use outlast_protocol::{Call, Hint};
use outlast_rules::exec::ExecRules;

use crate::audit::{Audit, Noted};
use crate::decision::{Decision, Tool};
use crate::judge::{Finding, Verdict};
use crate::order::{Order, OrderKind, Pass, Start, TypedInput};
use crate::policy::Policy;
use crate::question::{Answer, Question, Topic, typed};

/// A key that makes a line into something unknown.
const UNSEEN: u8 = 0x1b;
/// How many answers are remembered.
const MAX_REMEMBERED: usize = 10_000;

/// What a door is told.
#[derive(Debug)]
pub enum Judged {
    /// Go ahead.
    Free(Pass),
    /// Ask, and give the answer back.
    Asked(Box<Question>),
    /// No; it is noted.
    Refused(Failure),
}

/// The policy in force for a door, and the log of what it asked.
#[derive(Debug)]
pub struct Gate {
    policy: Policy,
    /// Where the door stands.
    here: Option<PathBuf>,
    audit: Audit,
    door: Door,
    /// What agents may do to their own jobs, if the server was started with that.
    own: Option<Decision>,
    /// Jobs that a person has let a session type into without being asked again.
    remembered: Mutex<HashSet<(String, Handle)>>,
}

/// Who wants something, and what.
struct Act<'a> {
    session: &'a str,
    tool: Tool,
    job: Option<&'a Info>,
    what: String,
    /// What a person is shown instead, who must know it to decide.
    typed: Option<String>,
    /// After how much input it is judged.
    typed_after: Option<u64>,
    /// The rules for what the job executes.
    guard: Option<ExecRules>,
}

impl<'a> Act<'a> {
    fn of(session: &'a str, tool: Tool, what: String) -> Self {
        Self { session, tool, job: None, what, typed: None, typed_after: None, guard: None }
    }

    fn free(&self) -> Judged {
        Judged::Free(Pass { typed_after: self.typed_after, guard: self.guard.clone() })
    }
}

impl Judged {
    fn free() -> Self {
        Self::Free(Pass { typed_after: None, guard: None })
    }
}

/// What an agent may do to a job of its own session.
#[derive(Clone, Copy)]
struct OwnJob {
    may: Decision,
    /// Whether somebody said so: then it is a rule.
    is_said: bool,
    verb: &'static str,
}

impl Gate {
    /// Loads the policy for a door: the user's, and that of the project it stands in.
    ///
    /// # Errors
    /// A usage failure that names file and line when a policy does not load.
    pub fn open(home: &Home, door: Door) -> Result<Self, Failure> {
        let here = std::env::current_dir().ok();
        // A long-lived process learns at once that a policy is wrong; and what is there then stays in force.
        let folders: Vec<&Path> = here.as_deref().filter(|_| door.is_agents()).into_iter().collect();
        let policy = Policy::load(&folders)?;
        Ok(Self { here, ..Self::with(home, door, policy) })
    }

    /// A door with a policy of its own.
    #[must_use]
    pub fn with(home: &Home, door: Door, policy: Policy) -> Self {
        Self {
            policy,
            here: None,
            audit: Audit::of(home.path()),
            door,
            own: None,
            remembered: Mutex::default(),
        }
    }

    /// Says what agents may do to their own jobs where no policy does.
    #[must_use]
    pub fn own(mut self, own: Option<Decision>) -> Self {
        self.own = own;
        self
    }

    /// The policy in force.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// May this be done?
    ///
    /// # Errors
    /// When a policy does not load, or a job that it is about can't be asked.
    pub fn judge(&self, order: &Order<'_>) -> Result<Judged, Failure> {
        let (session, tool) = (order.session, order.kind.tool());
        match order.kind {
            OrderKind::Start(start) => self.judge_start(session, &start),
            OrderKind::TypeLine(line) => self.judge_line(session, line),
            OrderKind::Send { job, input } => self.judge_send(session, job, input),
            // A person at a terminal of their own types what they like. A command that would do it is judged
            // as a command.
            OrderKind::Secret | OrderKind::Attach { read_only: false } => Ok(Judged::free()),
            OrderKind::Kill { job, force } | OrderKind::Signal { job, force } => {
                self.judge_kill(session, job, force)
            }
            OrderKind::Resize { job }
            | OrderKind::Watch { job }
            | OrderKind::Unwatch { job }
            | OrderKind::Pin { job, pinned: _ }
            | OrderKind::Remove { job } => self.judge_change(session, tool, job),
            OrderKind::Ack { session: whose } => Ok(self.judge_ack(session, whose)),
            OrderKind::Prune { dry_run: false } => Ok(self.judge_prune(session)),
            OrderKind::Attach { read_only: true }
            | OrderKind::Prune { dry_run: true }
            | OrderKind::Watches
            | OrderKind::List
            | OrderKind::Read
            | OrderKind::Follow
            | OrderKind::Replay
            | OrderKind::Screen
            | OrderKind::Wait
            | OrderKind::Events => Ok(self.judge_look(session, tool)),
        }
    }

    /// May this command be run there?
    fn judge_start(&self, session: &str, start: &Start<'_>) -> Result<Judged, Failure> {
        let mut policy = self.policy_at(start.folder)?;
        let mut said = policy.judge_run(start.run, start.env, start.fed);
        if let Some(nested) = policy.at_nested(start.folder, &said)? {
            policy = nested;
            said = policy.judge_run(start.run, start.env, start.fed);
        }
        let verdict = policy.judge_tool(Tool::Run).and(said);
        let mut act = Act::of(session, Tool::Run, start.run.display());
        act.typed = self.with_surroundings(start);
        if self.door.is_agents() || Self::is_in_a_job() {
            act.guard = policy.exec_rules();
            if let Some(guard) = act.guard.as_mut().filter(|_| verdict.decision == Decision::Ask) {
                guard.granted = policy.asked_commands(start.run);
                // Who agrees to a text that names a file opens it, where the rule asks.
                let opened = |place: &str| {
                    let of_finding = |finding: &Finding| finding.rule.clone();
                    verdict.findings.iter().filter_map(of_finding).any(|rule| {
                        rule.files.is_some()
                            && rule.decision == Decision::Ask
                            && rule.place.to_string() == place
                    })
                };
                guard.files.retain(|file| !opened(&file.place));
            }
        }
        if verdict.decision == Decision::Allow && self.door.is_agents() && !verdict.reaches.is_empty() {
            let others = policy.for_agents(self.own).others;
            let why = "it uses outlast itself, and so could touch any job";
            return Ok(self.decided(others, &act, Topic::Others, why));
        }
        Ok(self.judged(&act, &verdict))
    }

    /// What a person must see of a start besides its command: where it is, if that is elsewhere, and the variables that it
    /// sets, which can make another program of the same words.
    fn with_surroundings(&self, start: &Start<'_>) -> Option<String> {
        let elsewhere = self.here.as_deref().is_some_and(|here| here != start.folder);
        let set = start.env.iter().filter(|(name, _)| !crate::grammar::is_harmless_variable(name));
        let set: Vec<String> = set.map(|(name, value)| format!("\nwith {name}={value}")).collect();
        if !elsewhere && set.is_empty() {
            return None;
        }
        let place = if elsewhere { format!("\nin {}", start.folder.display()) } else { String::new() };
        Some(format!("{}{place}{}", start.run.display(), set.concat()))
    }

    /// May this line be typed somewhere that is not a job of ours?
    fn judge_line(&self, session: &str, line: &str) -> Result<Judged, Failure> {
        let policy = self.policy.at(&self.here.as_deref().into_iter().collect::<Vec<_>>())?;
        let act = Act::of(session, Tool::Send, line.to_owned());
        let verdict = policy
            .judge_tool(Tool::Send)
            .and(policy.judge_line(Tool::Send, line))
            .and(policy.judge_named_files(line));
        Ok(self.judged(&act, &verdict))
    }

    /// A person must agree to what a program of a job wants to execute.
    #[must_use]
    pub fn exec_question(&self, session: &str, job: Handle, asked: &ExecQuestion) -> Question {
        let reason = asked.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        Question {
            door: self.door,
            topic: if asked.host.is_some() { Topic::Host } else { Topic::Exec },
            session: session.to_owned(),
            tool: Tool::Run,
            job: Some(job),
            what: asked.command.clone(),
            typed: None,
            why: match &asked.host {
                Some(host) => format!("{host} is none of the hosts that it may connect to"),
                None => format!("the rule \"{}\" is about what it executes{reason}", asked.rule),
            },
            rule: Some(asked.rule.clone()),
            place: Some(asked.place.clone()),
            typed_after: None,
            unattended: self.policy.for_agents(self.own).unattended,
            confirmed: self.policy.for_agents(self.own).confirmed,
            parts: Vec::new(),
            guard: None,
        }
    }

    /// Whether this process runs in some job, of any home.
    #[must_use]
    pub fn is_in_a_job() -> bool {
        inside::we_are_in_any()
    }

    /// Whether this process is in front at its terminal, and so may read from it.
    #[must_use]
    pub fn is_in_front() -> bool {
        inside::we_are_in_front()
    }

    /// Whether anything that is typed into the job could be asked for or denied.
    ///
    /// # Errors
    /// When the job's record can't be read, or the policy of its project does not load.
    pub fn checks_input(&self, job: &Job) -> Result<bool, Failure> {
        let policy = self.policy_of(&job.info()?)?;
        Ok(self.door.is_agents() || !policy.is_empty())
    }

    /// May this be typed into the job? Should somebody type in between, it must be judged again.
    fn judge_send(&self, session: &str, job: &Job, input: &TypedInput) -> Result<Judged, Failure> {
        let info = job.info()?;
        let mut act = Act {
            job: Some(&info),
            typed: Some(typed(input)),
            ..Act::of(session, Tool::Send, "some keys".into())
        };
        let policy = self.policy_of(&info)?;
        let mut verdict = policy.judge_tool(Tool::Send);
        if policy.can_restrict(Tool::Send) && info.state.is_live() {
            let (before, count) = typed_before(job)?;
            act.typed_after = count;
            verdict = policy.judge_typed(&reader::of(job)?, &before, input);
        }
        if info.state.is_live() {
            verdict = verdict.and(policy.judge_named_files(input.text()));
        }
        // What is not a command may be a password: a person sees all of it, but only what a rule is about is
        // noted.
        if let Some(finding) = verdict.first().filter(|finding| finding.decision > Decision::Allow) {
            act.what.clone_from(&finding.part);
        } else if !input.as_given().text.is_empty() {
            act.what = format!("{} characters", input.text().chars().count());
        }
        Ok(match self.judged(&act, &verdict) {
            Judged::Free(_) => {
                let agents = policy.for_agents(self.own);
                let own = OwnJob { may: agents.input, is_said: agents.input_is_said, verb: "type into jobs" };
                self.owned(&act, &info, own, &policy)
            }
            judged @ (Judged::Asked(_) | Judged::Refused(_)) => judged,
        })
    }

    /// May this job be ended, or sent a signal? Never the one that the caller runs in, unless a person at
    /// the command line insists.
    fn judge_kill(&self, session: &str, job: &Job, insists: bool) -> Result<Judged, Failure> {
        let info = job.info()?;
        let act = Act { job: Some(&info), ..Act::of(session, Tool::Kill, format!("$ {}", info.command)) };
        let may_insist = insists && !self.door.is_agents();
        if info.state.is_live() && !may_insist && is_here(&info) && inside::we_are_in(&info) {
            let why = format!("job {} is the one that this runs in: it would end who asks", info.handle);
            return Ok(self.refused(&act, &why, None));
        }
        let policy = self.policy_of(&info)?;
        let verdict = policy.judge_tool(Tool::Kill);
        Ok(match self.judged(&act, &verdict) {
            Judged::Free(_) => {
                let agents = policy.for_agents(self.own);
                let own = OwnJob { may: agents.kill, is_said: agents.kill_is_said, verb: "end jobs" };
                self.owned(&act, &info, own, &policy)
            }
            judged @ (Judged::Asked(_) | Judged::Refused(_)) => judged,
        })
    }

    /// May something about the job be changed that its command does not notice as input? An agent's own jobs
    /// are its own to change.
    fn judge_change(&self, session: &str, tool: Tool, job: &Job) -> Result<Judged, Failure> {
        let info = job.info()?;
        let act = Act { job: Some(&info), ..Act::of(session, tool, format!("$ {}", info.command)) };
        let policy = self.policy_of(&info)?;
        Ok(match self.judged(&act, &policy.judge_tool(tool)) {
            Judged::Free(_) => {
                let own = OwnJob { may: Decision::Allow, is_said: false, verb: "change jobs" };
                self.owned(&act, &info, own, &policy)
            }
            judged @ (Judged::Asked(_) | Judged::Refused(_)) => judged,
        })
    }

    /// May it be noted how far a session has got? An agent notes it for itself.
    fn judge_ack(&self, session: &str, whose: &str) -> Judged {
        let act = Act::of(session, Tool::Events, format!("events of {whose}"));
        match self.judged(&act, &self.policy.judge_tool(Tool::Events)) {
            Judged::Free(_) if self.door.is_agents() && session != whose => {
                let why = format!("these are events of another session ({whose})");
                self.decided(self.policy.for_agents(self.own).others, &act, Topic::Others, &why)
            }
            judged @ (Judged::Free(_) | Judged::Asked(_) | Judged::Refused(_)) => judged,
        }
    }

    /// May finished jobs be removed? They may be of any session.
    fn judge_prune(&self, session: &str) -> Judged {
        let act = Act::of(session, Tool::Prune, "finished jobs".into());
        match self.judged(&act, &self.policy.judge_tool(Tool::Prune)) {
            Judged::Free(_) if self.door.is_agents() => {
                let others = self.policy.for_agents(self.own).others;
                self.decided(others, &act, Topic::Others, "jobs of other sessions would be removed too")
            }
            judged @ (Judged::Free(_) | Judged::Asked(_) | Judged::Refused(_)) => judged,
        }
    }

    /// May this tool be used, only to look?
    fn judge_look(&self, session: &str, tool: Tool) -> Judged {
        let act = Act::of(session, tool, tool.name().to_owned());
        self.judged(&act, &self.policy.judge_tool(tool))
    }

    /// The policy for something that is done in a folder.
    fn policy_at(&self, folder: &Path) -> Result<Policy, Failure> {
        let here = self.here.as_deref().filter(|here| *here != folder);
        Ok(self.policy.at(&here.into_iter().chain([folder]).collect::<Vec<_>>())?)
    }

    /// The policy for something that is done to a job. The folder of a job on another machine is not one of ours.
    fn policy_of(&self, info: &Info) -> Result<Policy, Failure> {
        if is_here(info) {
            return self.policy_at(Path::new(&info.cwd));
        }
        Ok(self.policy.at(&self.here.as_deref().into_iter().collect::<Vec<_>>())?)
    }

    /// What came of a question: notes it, and says whether to go on.
    ///
    /// # Errors
    /// [`Kind::Denied`] unless it is a yes; [`Kind::System`] when a yes can't be noted.
    pub fn answered(&self, question: &Question, answer: Answer) -> Result<Pass, Failure> {
        let pass = Pass { typed_after: question.typed_after, guard: question.guard.clone() };
        if answer == Answer::Unable && question.allows(answer) {
            return Ok(pass);
        }
        let noted = self.audit.note(question, Noted::Asked(answer));
        if !question.allows(answer) {
            return Err(question.refusal(answer));
        }
        noted.map_err(|error| {
            let file = self.audit.file();
            Failure::system(
                format!("the answer can't be noted in {}, so nothing is done", file.display()),
                error,
            )
        })?;
        if answer == Answer::YesForJob
            && question.can_be_for_job()
            && let Some(job) = question.job
        {
            let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
            if remembered.len() < MAX_REMEMBERED {
                remembered.insert((question.session.clone(), job));
            }
        }
        Ok(pass)
    }

    /// Whose job it is, and what that means for an agent.
    fn owned(&self, act: &Act<'_>, info: &Info, own: OwnJob, policy: &Policy) -> Judged {
        if !self.door.is_agents()
            || !info.state.is_live()
            || self.is_remembered(act.session, info.handle) && act.tool == Tool::Send
        {
            return act.free();
        }
        if info.session != act.session {
            let why = format!("job {} belongs to another session ({})", info.handle, info.session);
            return self.decided(policy.for_agents(self.own).others, act, Topic::Others, &why);
        }
        let why = match own.may {
            Decision::Allow | Decision::Ask => {
                "agents are asked about before they end jobs or type into them ([agents] in policy.toml)"
                    .into()
            }
            Decision::Deny => format!("agents may not {} ([agents] in policy.toml)", own.verb),
        };
        // What the user wrote down is a rule: that nobody can be asked does not lift it.
        let topic = if own.is_said { Topic::Rule } else { Topic::Own };
        self.decided(own.may, act, topic, &why)
    }

    fn is_remembered(&self, session: &str, job: Handle) -> bool {
        let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.contains(&(session.to_owned(), job))
    }

    fn decided(&self, decision: Decision, act: &Act<'_>, topic: Topic, why: &str) -> Judged {
        match decision {
            Decision::Allow => act.free(),
            Decision::Ask => Judged::Asked(Box::new(self.question(act, topic, why, None))),
            Decision::Deny => self.refused(act, why, None),
        }
    }

    fn judged(&self, act: &Act<'_>, verdict: &Verdict) -> Judged {
        let Some(finding) = verdict.first() else { return act.free() };
        match finding.decision {
            Decision::Allow => {
                if finding.rule.is_some() && act.tool == Tool::Run && self.door.is_agents() {
                    let question = self.question(act, Topic::Rule, &finding.why, Some(finding));
                    let _ = self.audit.note(&question, Noted::Allowed);
                }
                act.free()
            }
            Decision::Ask => {
                let mut question = self.question(act, Topic::Rule, &finding.why, Some(finding));
                // A person agrees to all of it, so they see all that is asked for.
                let asked = verdict.findings.iter().filter(|finding| finding.decision == Decision::Ask);
                question.parts = asked.map(|finding| finding.part.clone()).collect();
                if question.can_be_shown() {
                    return Judged::Asked(Box::new(question));
                }
                let _ = self.audit.note(&question, Noted::Denied);
                Judged::Refused(question.too_long())
            }
            Decision::Deny => self.refused(act, &finding.why, Some(finding)),
        }
    }

    fn question(
        &self,
        act: &Act<'_>,
        topic: Topic,
        why: &str,
        finding: Option<&crate::judge::Finding>,
    ) -> Question {
        let rule = finding.and_then(|finding| finding.rule.as_ref());
        let reason =
            rule.and_then(|rule| rule.why.as_ref()).map(|why| format!(": {why}")).unwrap_or_default();
        Question {
            door: self.door,
            topic,
            session: act.session.to_owned(),
            tool: act.tool,
            job: act.job.map(|info| info.handle),
            what: act.what.clone(),
            typed: act.typed.clone(),
            why: format!("{why}{reason}"),
            rule: rule.map(|rule| rule.shown()),
            place: rule.map(|rule| rule.place.to_string()),
            typed_after: act.typed_after,
            unattended: self.policy.for_agents(self.own).unattended,
            confirmed: self.policy.for_agents(self.own).confirmed,
            parts: finding.map(|finding| finding.part.clone()).into_iter().collect(),
            guard: act.guard.clone(),
        }
    }

    fn refused(&self, act: &Act<'_>, why: &str, finding: Option<&crate::judge::Finding>) -> Judged {
        let question = self.question(act, Topic::Rule, why, finding);
        // It does not happen, noted or not.
        let _ = self.audit.note(&question, Noted::Denied);
        let place = question.place.map(|place| format!(" ({place})")).unwrap_or_default();
        let hint = match act.tool {
            Tool::Kill if finding.is_none() => {
                Hint::text("end it from outside; on the command line, --force does it anyway")
            }
            Tool::Run
            | Tool::Send
            | Tool::Kill
            | Tool::Screen
            | Tool::Read
            | Tool::Wait
            | Tool::Jobs
            | Tool::Events
            | Tool::Watch
            | Tool::Resize
            | Tool::Prune => Hint::call("see why: ", Call::ExplainPolicy)
                .and("; do not try to get around it: ask the user"),
        };
        Judged::Refused(Failure::new(Kind::Denied, format!("denied: {}{place}", question.why)).hint(hint))
    }
}

/// Whether a job is on this machine: what this machine's kernel and files say of any other is about something else.
fn is_here(info: &Info) -> bool {
    info.handle.host().is_none()
}

/// What was typed before, and how often. A keeper of an older version does not know: then the line can't be
/// seen.
fn typed_before(job: &Job) -> Result<(Vec<u8>, Option<u64>), Failure> {
    match job.typed() {
        Ok(typed) => Ok((typed.bytes(), Some(typed.count))),
        Err(failure) if failure.kind == Kind::Usage => Ok((vec![UNSEEN], None)),
        Err(failure) => Err(failure),
    }
}
