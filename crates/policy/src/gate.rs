//! What every front door asks before it acts, in the same words: may this session do that?
//!
//! A door [judges](Gate::judge_run) first. [`Judged::Asked`] is put to a person in whatever way the door has, now or
//! over several calls, and the answer is given [back](Gate::answered), which notes it and says whether to go on.

mod inside;
mod reader;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use outlast_job::registry::Home;
use outlast_job::registry::format::Info;
use outlast_job::wire::Send;
use outlast_job::{Failure, Job, Kind, Run};

use crate::audit::Audit;
use crate::decision::{Decision, Tool};
use crate::judge::Verdict;
use crate::policy::Policy;
use crate::question::{Answer, Door, Question, Topic, typed};

/// A key that makes a line into something unknown.
const UNSEEN: u8 = 0x1b;
/// How many answers are remembered.
const MOST_REMEMBERED: usize = 10_000;

/// What a door is told.
#[derive(Debug)]
pub enum Judged {
    /// Go ahead.
    Free,
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
    /// What agents may do to their own jobs, if whoever started the server said so.
    own: Option<Decision>,
    /// Jobs that a person has let a session type into.
    remembered: Mutex<HashSet<(String, u64)>>,
}

/// A command to be run.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The command.
    pub run: &'a Run,
    /// The folder it runs in.
    pub folder: &'a Path,
    /// What the caller adds to their own environment.
    pub env: &'a BTreeMap<String, String>,
    /// Whether something that we do not see is fed to it.
    pub fed: bool,
}

/// Who wants something, and what.
struct Act<'a> {
    session: &'a str,
    tool: Tool,
    job: Option<&'a Info>,
    what: String,
    /// What a person is shown instead, who must know it to decide.
    typed: Option<String>,
}

impl Gate {
    /// Loads the policy for a door: the user's, and that of the project it stands in.
    ///
    /// # Errors
    /// A usage failure that names file and line when a policy does not load.
    pub fn open(home: &Home, door: Door) -> Result<Self, Failure> {
        let here = std::env::current_dir().ok();
        // Whoever stays is told at once that a policy is wrong; and what is there then stays in force.
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

    /// May this command be run there?
    ///
    /// # Errors
    /// When the policy of the project around the folder does not load.
    pub fn judge_run(&self, session: &str, wanted: &Wanted<'_>) -> Result<Judged, Failure> {
        let policy = self.policy_at(wanted.folder)?;
        let said = policy.judge_run(wanted.run, wanted.env, wanted.fed);
        let verdict = policy.judge_tool(Tool::Run).and(said);
        let act = Act { session, tool: Tool::Run, job: None, what: wanted.run.display(), typed: None };
        if verdict.decision == Decision::Allow && self.door.is_agents() && !verdict.reaches.is_empty() {
            let others = policy.for_agents(self.own).others;
            return Ok(self.decided(
                others,
                &act,
                Topic::Others,
                "it uses outlast itself, and so could touch any job",
            ));
        }
        Ok(self.judged(&act, &verdict))
    }

    /// May this line be typed somewhere that is no job of ours?
    ///
    /// # Errors
    /// When the policy of the project around us does not load.
    pub fn judge_line(&self, session: &str, line: &str) -> Result<Judged, Failure> {
        let policy = self.policy.at(&self.here.as_deref().into_iter().collect::<Vec<_>>())?;
        let act = Act { session, tool: Tool::Send, job: None, what: line.to_owned(), typed: None };
        let verdict = policy.judge_tool(Tool::Send).and(policy.judge_line(Tool::Send, line));
        Ok(self.judged(&act, &verdict))
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
    pub fn minds_typing(&self, job: &Job) -> Result<bool, Failure> {
        let policy = self.policy_at(Path::new(&job.info()?.cwd))?;
        Ok(self.door.is_agents() || !policy.is_empty())
    }

    /// May this be typed into the job? What is returned beside it belongs into [`Send::after`]: should somebody
    /// type in between, the keeper refuses, and it must be judged again.
    ///
    /// # Errors
    /// For a key that does not exist, and when the job can't be asked what was typed into it.
    pub fn judge_send(
        &self,
        session: &str,
        job: &Job,
        send: &Send,
    ) -> Result<(Judged, Option<u64>), Failure> {
        // Nobody is asked about keys that can't be pressed.
        outlast_job::keys::parse(&send.keys)?;
        let info = job.info()?;
        let mut act = Act {
            session,
            tool: Tool::Send,
            job: Some(&info),
            what: "some keys".into(),
            typed: Some(typed(send)),
        };
        let policy = self.policy_at(Path::new(&info.cwd))?;
        let mut after = None;
        let mut verdict = policy.judge_tool(Tool::Send);
        if policy.has_teeth(Tool::Send) && info.state.is_live() {
            let (before, count) = typed_before(job)?;
            after = count;
            verdict = policy.judge_typed(&reader::of(job)?, &before, send);
        }
        // What is no command may be a password: a person sees all of it, but only what a rule is about is
        // noted.
        if let Some(finding) = verdict.first().filter(|finding| finding.decision > Decision::Allow) {
            act.what.clone_from(&finding.part);
        } else if !send.text.is_empty() {
            act.what = format!("{} characters", send.text.chars().count());
        }
        let judged = match self.judged(&act, &verdict) {
            Judged::Free => self.owned(&act, &info, policy.for_agents(self.own).input, &policy),
            judged => judged,
        };
        Ok((judged, after))
    }

    /// May this job be ended, or sent a signal? Never the one that whoever asks runs in, unless a person at the
    /// command line insists.
    ///
    /// # Errors
    /// When the job's record can't be read.
    pub fn judge_kill(&self, session: &str, job: &Job, insists: bool) -> Result<Judged, Failure> {
        let info = job.info()?;
        let act = Act {
            session,
            tool: Tool::Kill,
            job: Some(&info),
            what: format!("$ {}", info.command),
            typed: None,
        };
        let may_insist = insists && !self.door.is_agents();
        if info.state.is_live() && !may_insist && inside::we_are_in(&info) {
            let why = format!("job {} is the one that this runs in: it would end who asks", info.handle);
            return Ok(self.refused(&act, &why, None));
        }
        let policy = self.policy_at(Path::new(&info.cwd))?;
        let verdict = policy.judge_tool(Tool::Kill);
        Ok(match self.judged(&act, &verdict) {
            Judged::Free => self.owned(&act, &info, policy.for_agents(self.own).kill, &policy),
            judged => judged,
        })
    }

    /// May this tool be used? For tools that only look.
    #[must_use]
    pub fn judge_look(&self, session: &str, tool: Tool) -> Judged {
        let act = Act { session, tool, job: None, what: tool.name().to_owned(), typed: None };
        self.judged(&act, &self.policy.judge_tool(tool))
    }

    /// The policy for something that is done in a folder.
    fn policy_at(&self, folder: &Path) -> Result<Policy, Failure> {
        let here = self.here.as_deref().filter(|here| *here != folder);
        Ok(self.policy.at(&here.into_iter().chain([folder]).collect::<Vec<_>>())?)
    }

    /// What came of a question: notes it, and says whether to go on.
    ///
    /// # Errors
    /// [`Kind::Denied`] unless it is a yes; [`Kind::System`] when a yes can't be noted.
    pub fn answered(&self, question: &Question, answer: Answer) -> Result<(), Failure> {
        if answer == Answer::Unable && question.allows(answer) {
            return Ok(());
        }
        let noted = self.audit.note(question, Some(answer));
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
        if answer == Answer::Yes
            && question.tool == Tool::Send
            && question.topic != Topic::Rule
            && let Some(job) = question.job
        {
            let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
            if remembered.len() < MOST_REMEMBERED {
                remembered.insert((question.session.clone(), job));
            }
        }
        Ok(())
    }

    /// Whose job it is, and what that means for an agent.
    fn owned(&self, act: &Act<'_>, info: &Info, own: Decision, policy: &Policy) -> Judged {
        if !self.door.is_agents()
            || !info.state.is_live()
            || self.is_remembered(act.session, info.handle.0) && act.tool == Tool::Send
        {
            return Judged::Free;
        }
        if info.session != act.session {
            let why = format!("job {} belongs to another session ({})", info.handle, info.session);
            return self.decided(policy.for_agents(self.own).others, act, Topic::Others, &why);
        }
        let why = "agents are asked about before they end jobs or type into them ([agents] in policy.toml)";
        // What the user wrote down is a rule: that nobody can be asked does not lift it.
        let topic = if policy.for_agents(self.own).own_is_said { Topic::Rule } else { Topic::Own };
        self.decided(own, act, topic, why)
    }

    fn is_remembered(&self, session: &str, job: u64) -> bool {
        let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.contains(&(session.to_owned(), job))
    }

    fn decided(&self, decision: Decision, act: &Act<'_>, topic: Topic, why: &str) -> Judged {
        match decision {
            Decision::Allow => Judged::Free,
            Decision::Ask => Judged::Asked(Box::new(self.question(act, topic, why, None))),
            Decision::Deny => self.refused(act, why, None),
        }
    }

    fn judged(&self, act: &Act<'_>, verdict: &Verdict) -> Judged {
        let Some(finding) = verdict.first() else { return Judged::Free };
        match finding.decision {
            Decision::Allow => Judged::Free,
            Decision::Ask => {
                Judged::Asked(Box::new(self.question(act, Topic::Rule, &finding.why, Some(finding))))
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
            job: act.job.map(|info| info.handle.0),
            what: act.what.clone(),
            typed: act.typed.clone(),
            why: format!("{why}{reason}"),
            rule: rule.map(|rule| rule.shown()),
            place: rule.map(|rule| rule.place.to_string()),
        }
    }

    fn refused(&self, act: &Act<'_>, why: &str, finding: Option<&crate::judge::Finding>) -> Judged {
        let question = self.question(act, Topic::Rule, why, finding);
        // It does not happen, noted or not.
        let _ = self.audit.note(&question, None);
        let place = question.place.map(|place| format!(" ({place})")).unwrap_or_default();
        let hint = match act.tool {
            Tool::Kill if finding.is_none() => {
                "end it from outside; on the command line, --force does it anyway".to_owned()
            }
            _ => {
                "see why: outlast policy check --explain 'COMMAND'; do not try to get around it: ask the user"
                    .to_owned()
            }
        };
        Judged::Refused(Failure::new(Kind::Denied, format!("denied: {}{place}", question.why)).hint(hint))
    }
}

/// What was typed before, and how often. A keeper of an older version does not know: then the line can't be seen.
fn typed_before(job: &Job) -> Result<(Vec<u8>, Option<u64>), Failure> {
    match job.typed() {
        Ok(typed) => Ok((typed.bytes(), Some(typed.count))),
        Err(failure) if failure.kind == Kind::Usage => Ok((vec![UNSEEN], None)),
        Err(failure) => Err(failure),
    }
}
