//! A call of a tool, parsed once: what the gate judges is what the engine carries out.
//!
//! Each profile's definitions say how their arguments become a [`Call`]. After that nobody knows by which
//! name, or in which profile, it came, but for how its answer is worded.

use std::time::Duration;

use outlast_job::{Failure, Job};
use outlast_policy::{OrderKind, Pass, Start};
use rmcp::model::CallToolRequestParams;
use serde_json::Value;

use crate::answer::Answer;
use crate::arguments::Arguments;
use crate::engine::jobs::ListOrder;
use crate::engine::kill::KillOrder;
use crate::engine::parked::Step;
use crate::engine::read::ReadOrder;
use crate::engine::run::RunOrder;
use crate::engine::send::SendOrder;
use crate::engine::view::ViewOrder;
use crate::engine::wait::WaitOrder;
use crate::engine::{Caller, Engine};
use crate::printed::budget;
use crate::profiles::codex;
use crate::tasks::Pending;
use crate::tools::Parse;

/// A call as it comes in, and how it is parsed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming<'a> {
    pub(crate) parse: Parse,
    pub(crate) arguments: &'a Arguments,
    pub(crate) request: &'a CallToolRequestParams,
}

/// What a call asks for.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) order: CallOrder,
    /// How its answer is worded.
    pub(crate) wording: Wording,
}

/// In whose words an answer is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wording {
    /// Our own.
    Own,
    /// Those that Codex's models know.
    Codex,
}

/// What is to be done, to which jobs, how long to stay and how much to print.
#[derive(Debug)]
pub(crate) enum CallOrder {
    /// Start a job.
    Run(Box<RunOrder>),
    /// Type into a job.
    Send {
        job: Job,
        order: Box<SendOrder>,
        /// Show its screen afterwards, instead of what it printed.
        show_screen: bool,
    },
    /// Show a job's screen.
    Screen { job: Job, scrollback: usize, budget: usize },
    /// Read what a job printed.
    Read {
        job: Job,
        order: ReadOrder,
        /// Give the job so long first.
        delay: Option<Duration>,
    },
    /// Show a job to the page in a chat, after typing into it if need be.
    View { job: Job, order: Box<ViewOrder> },
    /// Wait for jobs.
    Wait { jobs: Vec<Job>, order: WaitOrder },
    /// List jobs.
    List(ListOrder),
    /// End a job, or send it a signal.
    Kill { job: Job, order: KillOrder },
}

impl From<CallOrder> for Call {
    fn from(order: CallOrder) -> Self {
        Self { order, wording: Wording::Own }
    }
}

impl CallOrder {
    /// What it is for the gate: the same values, not a copy of them.
    pub(crate) fn kind(&self) -> OrderKind<'_> {
        match self {
            Self::Run(order) => OrderKind::Start(match &order.step {
                Some((step, _)) => step.start(),
                None => Start { run: &order.run, folder: &order.folder, env: &order.env, fed: false },
            }),
            Self::Send { job, order, .. } => OrderKind::Send { job, input: &order.input },
            Self::Screen { .. } => OrderKind::Screen,
            Self::View { job, order } => match &order.input {
                Some(input) => OrderKind::Send { job, input },
                None => OrderKind::Screen,
            },
            Self::Read { .. } => OrderKind::Read,
            Self::Wait { .. } => OrderKind::Wait,
            Self::List(_) => OrderKind::List,
            Self::Kill { job, order: KillOrder { signal: None, .. } } => {
                OrderKind::Kill { job, force: false }
            }
            Self::Kill { job, order: KillOrder { signal: Some(_), .. } } => {
                OrderKind::Signal { job, force: false }
            }
        }
    }
}

/// What goes back: words first, and the same as facts.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) facts: Value,
    /// What is still waited for, if the answer is to be asked for later.
    pub(crate) pending: Option<Pending>,
}

/// Puts an answer into words, with what happened elsewhere meanwhile.
fn reply(engine: &Engine, caller: &Caller, mut answer: Answer, wording: Wording) -> Result<Reply, Failure> {
    let (lines, events) =
        if answer.pending.is_some() { (Vec::new(), Vec::new()) } else { engine.tell(caller) };
    let status = match wording {
        Wording::Own => answer.status(),
        Wording::Codex => codex::status(&answer),
    };
    let text = answer.text(&status, &lines)?;
    let mut facts = serde_json::to_value(&answer.facts).unwrap_or_default();
    if !events.is_empty() {
        facts["events"] = serde_json::to_value(events).unwrap_or_default();
    }
    Ok(Reply { text, facts, pending: answer.pending })
}

/// Does what a call asks for, once, up to where it has to wait.
pub(crate) fn carry_out(
    engine: &Engine,
    caller: &Caller,
    call: Call,
    pass: Pass,
) -> Result<Step<Reply>, Failure> {
    let answer = match call.order {
        CallOrder::List(order) => {
            let list = engine.jobs(caller, order)?;
            let facts = serde_json::to_value(&list).unwrap_or_default();
            return Ok(Step::Done(Reply { text: list.text(budget(None)), facts, pending: None }));
        }
        // The page is not the model: nothing is told here.
        CallOrder::View { job, order } => {
            let viewed = engine.view(caller, &job, *order, &pass)?;
            let reply =
                |_: &Engine, facts: Value| Ok(Reply { text: facts.to_string(), facts, pending: None });
            return viewed.and_then(engine, reply);
        }
        CallOrder::Run(order) => engine.run(caller, *order, &pass)?,
        CallOrder::Send { job, order, show_screen } => {
            let (budget, whose) = (order.budget, caller.session.clone());
            engine.send(caller, &job, *order, &pass)?.and_then(engine, move |engine, sent| {
                if show_screen && sent.is_live() { engine.screen(&whose, &job, 0, budget) } else { Ok(sent) }
            })?
        }
        CallOrder::Screen { job, scrollback, budget } => {
            Step::Done(engine.screen(&caller.session, &job, scrollback, budget)?)
        }
        CallOrder::Read { job, order, delay: None } => Step::Done(engine.read(caller, &job, &order)?),
        CallOrder::Read { job, order, delay: Some(delay) } => {
            let (of_job, whose) = (job.clone(), caller.clone());
            engine.pause_then(&job, caller, delay, move |engine| engine.read(&whose, &of_job, &order))?
        }
        CallOrder::Wait { jobs, order } => engine.wait_for(caller, jobs, order)?,
        CallOrder::Kill { job, order } => engine.kill(caller, &job, order, &pass)?,
    };
    let (whose, wording) = (caller.clone(), call.wording);
    answer.and_then(engine, move |engine, answer| reply(engine, &whose, answer, wording))
}

/// The answer of a task, if it is known by now.
pub(crate) fn resume(engine: &Engine, caller: &Caller, pending: &Pending) -> Result<Option<Reply>, Failure> {
    let answer = engine.resume(caller, pending)?;
    answer.map(|answer| reply(engine, caller, answer, Wording::Own)).transpose()
}
