//! `outlast jobs`: what needs attention first.

mod far;
pub(super) mod fleet;
pub(super) mod rows;
mod watch;

use outlast_cli::JobsArgs;
use outlast_job::agents::{Agent, agents};
use outlast_job::request::{AskKeepers, List as ListRequest, OverBudget};
use outlast_job::{Failure, Outlast, session};
use outlast_policy::OrderKind;
use outlast_protocol::AgentState;
use outlast_remote::hosts::HERE;
use serde::Serialize;

use crate::ask::allowed;
use crate::output::Output;
use crate::terminal;
use rows::{Filter, Row};

#[derive(Serialize)]
struct List<'a> {
    jobs: &'a [Row],
    #[serde(skip_serializing_if = "Option::is_none")]
    over_budget: Option<OverBudget>,
    /// Agents whose hooks tell how they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    agents: Vec<Agent>,
}

pub(super) fn jobs(outlast: &Outlast, args: &JobsArgs, out: &mut Output) -> Result<i32, Failure> {
    allowed(outlast.home(), OrderKind::List)?;
    let filter = Filter::new(args)?;
    if args.fleet {
        return fleet::list(args, &filter, out);
    }
    if args.watch {
        return watch::watch(outlast, args, &filter, out);
    }
    let (rows, troubles) = list(outlast, args, &filter)?;
    print(outlast, args, &rows, out);
    for trouble in &troubles {
        out.talk(&format!("outlast: {trouble}"));
    }
    Ok(0)
}

/// The jobs that are asked for, those that need attention first.
/// And what could not be had.
fn list(outlast: &Outlast, args: &JobsArgs, filter: &Filter) -> Result<(Vec<Row>, Vec<String>), Failure> {
    let mine = session::current();
    let now = outlast_job::clock::now_ms();
    let request = ListRequest {
        session: args.session.clone(),
        unfinished: false,
        running: args.running,
        keepers: AskKeepers::All,
        last_lines: !args.quiet,
        left_behind: true,
        pins: true,
    };
    let hosts = match args.on.as_deref() {
        None => outlast.known_hosts(),
        Some(HERE) => Vec::new(),
        Some(host) => vec![host.parse()?],
    };
    let is_here = args.on.as_deref().is_none_or(|on| on == HERE);
    let jobs = if is_here { outlast.list(request.clone()) } else { Vec::new() };
    let mut far = far::ask(outlast, &hosts, &request, &mine, now);
    if args.on.is_none() && args.session.is_none() {
        let (rows, trouble) = fleet::shown(outlast, &mine, now);
        far.rows.extend(rows);
        far.troubles.extend(trouble);
    }
    let wanted =
        |row: &Row| (args.all || args.session.is_some() || row.is_live() || row.mine) && filter.takes(row);
    let mut rows: Vec<Row> =
        jobs.into_iter().map(|job| Row::new(job, &mine, now)).chain(far.rows).filter(wanted).collect();
    if let Some(limit) = args.limit {
        // The newest are last so far.
        rows.drain(..rows.len().saturating_sub(limit));
    }
    rows.sort_by_key(|row| (row.attention(), std::cmp::Reverse(row.handle)));
    Ok((rows, far.troubles))
}

fn print(outlast: &Outlast, args: &JobsArgs, rows: &[Row], out: &mut Output) {
    let over_budget = outlast.over_budget();
    if out.json {
        out.value(&List { jobs: rows, over_budget, agents: agents(outlast.home()) });
        return;
    }
    if args.quiet {
        for row in rows {
            out.line(&row.handle.to_string());
        }
        return;
    }
    if let Some(over) = over_budget {
        out.talk(&over.words());
    }
    for agent in agents(outlast.home()).iter().filter(|agent| agent.state == AgentState::Asks) {
        out.talk(&format!("outlast: {} in {} waits for you: {}", agent.agent, agent.folder, agent.text));
    }
    if rows.is_empty() {
        out.talk(empty(args));
    }
    for line in rows::table(rows, terminal::columns(), out) {
        out.line(&line);
    }
}

fn empty(args: &JobsArgs) -> &'static str {
    let filtered = args.running || args.name.is_some() || args.cwd.is_some() || !args.status.is_empty();
    match (args.all || args.session.is_some(), filtered) {
        (true, false) => "no jobs",
        (true, true) => "no such jobs",
        (false, true) => "no such jobs of this session; all of them: outlast jobs --all",
        (false, false) => "no jobs of this session; all of them: outlast jobs --all",
    }
}
