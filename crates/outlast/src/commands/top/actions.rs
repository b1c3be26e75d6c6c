//! What is done to jobs. Where nobody has to be asked it is done here, and otherwise by the verb itself.

use std::time::{Duration, Instant};

use outlast_cli::{AttachArgs, KillArgs, LogsArgs, ReplayArgs, RerunArgs, SecretArgs, SendArgs};
use outlast_job::{Failure, Handle, Job, Run, Send};
use outlast_policy::{OrderKind, TypedInput};

use super::input::Mode;
use super::looker::Found;
use super::{Next, Top};
use crate::answer;
use crate::ask::{CliGate, is_free};
use crate::commands::{attach, kill, logs, policy, replay, rerun, secret, send};
use crate::last_job::reference;
use crate::output::Output;

/// How long a program that does not read may hold up what is typed.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// What a line that is typed for a job means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Typing {
    /// A line, with Enter at its end.
    Line,
    /// Names of keys, with blanks between them.
    Keys,
}

/// What is done by a verb, in the terminal as it was.
#[derive(Debug)]
pub(super) enum Errand {
    Attach(Handle),
    Secret(Handle),
    Kill(Handle),
    Rerun(Handle),
    Send(Handle, Send),
    Logs(Vec<Handle>),
    Replay(Handle),
}

impl Top<'_> {
    /// Runs a verb.
    pub(super) fn run(&mut self, errand: Errand, out: &mut Output) {
        let outlast = self.outlast;
        let job = |handle: Handle| Some(handle.to_string());
        let ran = match errand {
            Errand::Attach(handle) => {
                let args = AttachArgs { job: job(handle), read_only: false, shared: false, detach_key: None };
                attach::attach(outlast, &args, out)
            }
            Errand::Secret(handle) => {
                let args =
                    SecretArgs { verb: None, job: Some(handle.to_string()), stdin: false, force: false };
                secret::secret(outlast, &args, out)
            }
            Errand::Kill(handle) => {
                let jobs = vec![handle.to_string()];
                let args = KillArgs { jobs, all: false, step: None, grace: None, signal: None, force: false };
                kill::kill(outlast, &args, out)
            }
            Errand::Rerun(handle) => {
                let args = RerunArgs { job: job(handle), background: true, env: Vec::new(), quiet: false };
                rerun::rerun(outlast, &args, out)
            }
            Errand::Send(handle, what) => send::send(outlast, &send_args(handle, what), out),
            Errand::Logs(handles) => {
                let args = LogsArgs {
                    jobs: handles.iter().map(ToString::to_string).collect(),
                    follow: false,
                    tail: None,
                    since: None,
                    timestamps: false,
                    raw: false,
                };
                logs::logs(outlast, &args, out)
            }
            Errand::Replay(handle) => {
                let args = ReplayArgs {
                    job: job(handle),
                    speed: 1.0,
                    idle_limit: None,
                    at: None,
                    offset: None,
                    step: None,
                    export: None,
                };
                replay::replay(outlast, &args, out)
            }
        };
        self.message = ran.err().map(|failure| failure.message);
    }

    fn job(&self, handle: Handle) -> Result<Job, Failure> {
        self.outlast.job(&handle.to_string())
    }

    fn gate(&self) -> Result<CliGate, Failure> {
        CliGate::open(self.outlast.home())
    }

    pub(super) fn is_free(&self, kind: OrderKind<'_>) -> bool {
        is_free(self.outlast.home(), kind)
    }

    /// Says why something was not done.
    fn unless_failed(&mut self, done: Result<Next, Failure>) -> Next {
        done.unwrap_or_else(|failure| {
            self.message = Some(failure.message);
            Next::Stay
        })
    }

    /// Ends a job: with the time to end by itself that a person's programs get; at once, if it was told before.
    pub(super) fn kill(&mut self, handle: Handle) -> Next {
        let done = self.try_kill(handle);
        self.unless_failed(done)
    }

    fn try_kill(&mut self, handle: Handle) -> Result<Next, Failure> {
        let (gate, job) = (self.gate()?, self.job(handle)?);
        if gate.pass_unasked(OrderKind::Kill { job: &job, force: false })?.is_none() {
            return Ok(Next::Errand(Errand::Kill(handle)));
        }
        let hurry = self.ending.insert(handle, Instant::now()).is_some();
        let grace = if hurry { Duration::ZERO } else { self.outlast.settings().kill.at_terminal };
        let (session, to) = (gate.session().to_owned(), self.mailbox.sender.clone());
        std::thread::spawn(move || {
            let said = match job.kill(grace, &session) {
                Err(failure) => failure.message,
                Ok(killed) if killed.already_ended => format!("job {handle} had already ended"),
                Ok(killed) if !killed.survivors.is_empty() => {
                    let left: Vec<&str> = killed.survivors.iter().map(|one| one.program.as_str()).collect();
                    format!("job {handle}: still there: {}", left.join(", "))
                }
                Ok(_) => {
                    let info = job.info_to_show();
                    let how = info.ok().and_then(|info| info.state.receipt().map(answer::ending));
                    format!("job {handle}: {}", how.unwrap_or_else(|| "nothing is left of it".into()))
                }
            };
            to.found(Found::Killed(handle, said));
        });
        self.message = Some(format!("job {handle} was told to end; k again ends it at once"));
        Ok(Next::Stay)
    }

    /// Types into a job.
    pub(super) fn send(&mut self, handle: Handle, typing: Typing, text: String) -> Next {
        let what = match typing {
            Typing::Line => Send { text, newline: true, ..Send::default() },
            Typing::Keys => {
                let keys: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
                if keys.is_empty() {
                    return Next::Stay;
                }
                Send { keys, ..Send::default() }
            }
        };
        let done = self.try_send(handle, what);
        self.unless_failed(done)
    }

    fn try_send(&mut self, handle: Handle, what: Send) -> Result<Next, Failure> {
        let (gate, job) = (self.gate()?, self.job(handle)?);
        let input = TypedInput::new(what.clone())?;
        let Some(pass) = gate.pass_unasked(OrderKind::Send { job: &job, input: &input })? else {
            return Ok(Next::Errand(Errand::Send(handle, what)));
        };
        let (send, to) = (input.passed(&pass).into_owned(), self.mailbox.sender.clone());
        std::thread::spawn(move || {
            let said = match job.send(&send, Some(REPLY_TIMEOUT)) {
                Err(failure) => failure.message,
                Ok(sent) if sent.queued > 0 => {
                    format!("job {handle} has not read {} bytes of it yet", sent.queued)
                }
                Ok(_) => format!("typed into job {handle}"),
            };
            to.found(Found::Said(said));
        });
        Ok(Next::Stay)
    }

    /// Shows what a program of a job wants to execute.
    pub(super) fn ask_approval(&mut self, handle: Handle) {
        let status = self.job(handle).and_then(|job| job.status());
        match status.map(|status| status.and_then(|status| status.questions.into_iter().next())) {
            Ok(Some(asked)) => {
                let why = asked.why.map(|why| format!(" ({why})")).unwrap_or_default();
                let text = format!("may it execute: {}{why}", asked.command);
                self.mode = Mode::Approve(handle, asked.question, text);
            }
            Ok(None) => self.message = Some(format!("job {handle} asks nothing any more")),
            Err(failure) => self.message = Some(failure.message),
        }
    }

    pub(super) fn answer(&mut self, handle: Handle, question: u64, allow: bool) {
        let answered =
            self.job(handle).and_then(|job| policy::answer_one(self.outlast, &job, question, allow));
        self.message = Some(match answered {
            Ok(()) if allow => "it is executed".into(),
            Ok(()) => "it is not executed".into(),
            Err(failure) => failure.message,
        });
    }

    /// The command line that does the same as what is on the screen.
    pub(super) fn command(&self) -> String {
        let words = |words: &[&str]| {
            let all = std::iter::once("outlast").chain(words.iter().copied());
            Run::Program(all.map(str::to_owned).collect()).display()
        };
        let name = |handle: Handle| {
            let row = self.jobs.find(handle);
            reference(handle, row.and_then(|row| row.name.as_deref()))
        };
        match &self.mode {
            Mode::Browse | Mode::Help => match self.jobs.chosen() {
                Some(row) => words(&["screen", &name(row.handle)]),
                None => words(&["jobs", "--all", "--watch"]),
            },
            Mode::Filter => words(&["jobs", "--all", "--watch"]),
            Mode::Type(handle, Typing::Line, text) => words(&["send", &name(*handle), text]),
            Mode::Type(handle, Typing::Keys, text) => {
                let name = name(*handle);
                let mut all = vec!["send", &name];
                all.extend(text.split_whitespace().flat_map(|key| ["--key", key]));
                words(&all)
            }
            Mode::Kill(handle) => words(&["kill", &name(*handle)]),
            Mode::Rerun(handle) => words(&["rerun", "-d", &name(*handle)]),
            Mode::Approve(handle, question, _) => {
                words(&["policy", "answer", &handle.to_string(), &question.to_string(), "yes"])
            }
            Mode::Merged(handles) => {
                let names: Vec<String> = handles.iter().map(|handle| name(*handle)).collect();
                let names = names.iter().map(String::as_str);
                words(&["logs", "-f", "-n", "200"].into_iter().chain(names).collect::<Vec<_>>())
            }
            Mode::Timeline(handle, at) => match at {
                &u64::MAX => words(&["replay", &name(*handle)]),
                at => words(&["replay", &name(*handle), "--at", &format!("{at}ms")]),
            },
        }
    }
}

fn send_args(handle: Handle, what: Send) -> SendArgs {
    SendArgs {
        job: handle.to_string(),
        text: what.newline.then_some(what.text),
        no_newline: false,
        paste: false,
        no_paste: false,
        keys: what.keys,
        eof: false,
        stdin: false,
        no_wait: true,
        pattern: Vec::new(),
        deadline: None,
        patience: REPLY_TIMEOUT,
    }
}
