//! `outlast relay`: serves another machine over a pipe. What comes from there is judged by this machine's own policy, as if it were asked here.

use std::collections::BTreeMap;
use std::path::PathBuf;

use outlast_cli::RelayArgs;
use outlast_job::client::signals;
use outlast_job::request::{JobRequest, Request};
use outlast_job::shell::ShellKind;
use outlast_job::wakes::Wake;
use outlast_job::wire::INPUT_PIECE;
use outlast_job::{Failure, Outlast};
use outlast_policy::{Answer, Door, Gate, Judged, Order, OrderKind, Pass, Start, StepCommand, TypedInput};
use outlast_remote::message::Caller;
use outlast_remote::relay::{Judge, Served, serve};

pub(super) fn relay(outlast: Outlast, args: &RelayArgs) -> Result<i32, Failure> {
    // A connection that is cut must not end what was begun.
    signals::ignore_keys();
    let judge = HostJudge::open(&outlast)?;
    let input = rustix::io::dup(rustix::stdio::stdin())
        .map_err(|error| Failure::system("cannot read standard input", error))?;
    serve(Served { outlast, judge, reaches_others: args.hosts, proven: None }, input, std::io::stdout())?;
    Ok(0)
}

/// The policy of this machine, for what another one asks.
pub(super) struct HostJudge {
    people: Gate,
    agents: Gate,
    outlast: Outlast,
}

impl Judge for HostJudge {
    fn judge(&self, caller: &Caller, request: &mut Request) -> Result<(), Failure> {
        match request {
            Request::Start(spec) => {
                let folder = match &spec.cwd {
                    Some(cwd) => PathBuf::from(cwd),
                    None => std::env::current_dir().map_err(|_| outlast_job::spec::deleted_folder())?,
                };
                let env: BTreeMap<String, String> = spec
                    .env
                    .iter()
                    .filter_map(|(name, value)| Some((name.clone(), value.clone()?)))
                    .collect();
                let start = Start { run: &spec.run, folder: &folder, env: &env, fed: false };
                let pass = self.pass(caller, &spec.session, OrderKind::Start(start))?;
                // A wake runs here too, outside of the job and its walls.
                for wake in &spec.wakes {
                    let Some(run) = Wake::effect_of(wake)?.as_command() else { continue };
                    let start = Start { run: &run, ..start };
                    let _pass = self.pass(caller, &spec.session, OrderKind::Start(start))?;
                }
                // Rules of both machines hold where both have some; those that came along are the caller's own.
                if let Some(own) = pass.guard_request() {
                    spec.guard = Some(both(spec.guard.take(), own));
                }
                Ok(())
            }
            Request::Job { job, ask } => {
                let found = || self.outlast.job(&job.number().to_string());
                match ask {
                    JobRequest::Send { send, .. } if send.text.len() <= INPUT_PIECE => {
                        let input = TypedInput::new(send.clone())?;
                        let session = send.session.clone().unwrap_or_default();
                        let kind = OrderKind::Send { job: &found()?, input: &input };
                        let pass = self.pass(caller, &session, kind)?;
                        let before = send.after;
                        *send = input.passed(&pass).into_owned();
                        send.after = before.or(send.after);
                        Ok(())
                    }
                    JobRequest::Step(order) => {
                        let shell = found()?;
                        let kind = shell.info()?.shell.map_or(ShellKind::Bash, |shell| shell.kind);
                        let command = StepCommand::of(kind, order, &shell.shell_folder()?);
                        self.pass(caller, &order.session, OrderKind::Start(command.start())).map(|_| ())
                    }
                    JobRequest::EndStep { session, .. } | JobRequest::Kill { session, .. } => {
                        let kind = OrderKind::Kill { job: &found()?, force: true };
                        self.pass(caller, session, kind).map(|_| ())
                    }
                    JobRequest::Signal { session, .. } => {
                        let kind = OrderKind::Signal { job: &found()?, force: true };
                        self.pass(caller, session, kind).map(|_| ())
                    }
                    JobRequest::Send { .. }
                    | JobRequest::Info { .. }
                    | JobRequest::Receipt
                    | JobRequest::Status
                    | JobRequest::Shell { .. }
                    | JobRequest::Details
                    | JobRequest::Pin { .. }
                    | JobRequest::Processes
                    | JobRequest::LeftBehind
                    | JobRequest::Hide { .. }
                    | JobRequest::Files
                    | JobRequest::End { .. }
                    | JobRequest::ReadText(_)
                    | JobRequest::ReadBytes(_)
                    | JobRequest::Grep(_)
                    | JobRequest::Screen(_)
                    | JobRequest::LastScreen
                    | JobRequest::Outcome
                    | JobRequest::Timing { .. }
                    | JobRequest::EventLines { .. }
                    | JobRequest::Secret { .. }
                    | JobRequest::Typed
                    | JobRequest::Hold(_)
                    | JobRequest::Resize { .. }
                    | JobRequest::AnswerQuestion { .. }
                    | JobRequest::Watch { .. }
                    | JobRequest::Watches
                    | JobRequest::Unwatch { .. } => Ok(()),
                }
            }
            Request::PlanWakes(_)
            | Request::Find { .. }
            | Request::FindShell { .. }
            | Request::List(_)
            | Request::Load {}
            | Request::Wait(_)
            | Request::Events(_)
            | Request::Ack(_)
            | Request::Remove { .. }
            | Request::Prune { .. } => Ok(()),
        }
    }
}

impl HostJudge {
    pub(super) fn open(outlast: &Outlast) -> Result<Self, Failure> {
        Ok(Self {
            people: Gate::open(outlast.home(), Door::CommandLine)?,
            agents: Gate::open(outlast.home(), Door::Mcp)?,
            outlast: outlast.clone(),
        })
    }

    fn pass(&self, caller: &Caller, session: &str, kind: OrderKind<'_>) -> Result<Pass, Failure> {
        let gate = if caller.agent { &self.agents } else { &self.people };
        match gate.judge(&Order { session, kind })? {
            Judged::Free(pass) => Ok(pass),
            Judged::Refused(failure) => Err(failure),
            // The one who could be asked is on another machine.
            Judged::Asked(question) => gate.answered(&question, Answer::Unable),
        }
    }
}

/// Rules for what a job executes, from both machines.
fn both(theirs: Option<serde_json::Value>, mut own: serde_json::Value) -> serde_json::Value {
    let Some(mut theirs) = theirs else { return own };
    for key in ["rules", "files"] {
        let Some(add) = theirs.get_mut(key).and_then(serde_json::Value::as_array_mut) else { continue };
        match own.get_mut(key).and_then(serde_json::Value::as_array_mut) {
            Some(list) => list.append(add),
            None => own[key] = std::mem::take(add).into(),
        }
    }
    own
}
