//! `outlast submit` and `outlast order`: work for any machine with a label.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use outlast_cli::{OrderResolveArgs, OrderResultsArgs, OrderVerb, PriorityArg, RetryArg, SubmitOrderArgs};
use outlast_fleet::broker::Broker;
use outlast_fleet::names::token;
use outlast_fleet::queue::results::Results;
use outlast_fleet::queue::{self, Cancelled, Decision, End, Order, Priority, Record, Retry, Stage};
use outlast_job::request::JobSpec;
use outlast_job::{Failure, Input, Kind, Outlast, Run, session};
use outlast_policy::{OrderKind, Start};
use serde::Deserialize;

use super::fleet::broker;
use crate::ask::{CliGate, allowed};
use crate::output::Output;

/// How long a broker that does not answer is left alone.
const AGAIN: Duration = Duration::from_secs(1);

/// One line of a file of orders.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    command: Command,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    after: Vec<String>,
    #[serde(default)]
    priority: Option<Priority>,
    #[serde(default)]
    retry: Option<Retry>,
}

/// A line for the shell, or a program with its arguments.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Command {
    Line(String),
    Words(Vec<String>),
}

pub(super) fn submit(outlast: &Outlast, args: &SubmitOrderArgs, out: &mut Output) -> Result<i32, Failure> {
    token("label", &args.on)?;
    let mut orders = match &args.file {
        Some(path) => read_file(path)?.into_iter().map(|line| made(args, line)).collect(),
        None => {
            let command = match args.command.as_slice() {
                [one] => Command::Line(one.clone()),
                words => Command::Words(words.to_vec()),
            };
            let mut env = BTreeMap::new();
            for setting in &args.env {
                let Some((name, value)) = setting.split_once('=') else {
                    return Err(Failure::usage(format!("--env {setting:?} has no value")));
                };
                env.insert(name.to_owned(), value.to_owned());
            }
            let line = Line {
                command,
                env,
                id: None,
                name: args.name.clone(),
                cwd: args.cwd.as_ref().map(|cwd| cwd.to_string_lossy().into_owned()),
                after: args.after.clone(),
                priority: None,
                retry: None,
            };
            vec![made(args, line)]
        }
    };
    // Judged here too, as a job that is started elsewhere is.
    let gate = CliGate::open(outlast.home())?;
    let folder = std::env::current_dir().map_err(|_| outlast_job::spec::deleted_folder())?;
    for order in &mut orders {
        order.spec.check()?;
        let set = order.spec.env.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
        let env = set.collect();
        let start = Start { run: &order.spec.run, folder: &folder, env: &env, fed: false };
        order.spec.guard = gate.pass(OrderKind::Start(start))?.guard_request();
    }
    let broker = broker()?;
    let results = args.wait.then(|| broker.wait(Results::begin(&broker, true))).transpose()?;
    broker.wait(queue::submit(&broker, &orders, args.schedule.as_deref()))?;
    if out.json && results.is_none() {
        let ids: Vec<&str> = orders.iter().map(|order| order.id.as_str()).collect();
        out.value(&serde_json::json!({ "orders": ids }));
    } else if results.is_none() {
        for order in &orders {
            out.line(&order.id);
        }
    }
    match results {
        Some(results) => wait(&broker, results, &orders, out),
        None => Ok(0),
    }
}

fn made(args: &SubmitOrderArgs, line: Line) -> Order {
    let run = match line.command {
        Command::Line(line) => Run::Shell(line),
        Command::Words(words) => Run::Program(words),
    };
    let mut spec = JobSpec::new(run);
    spec.cwd = line.cwd;
    spec.name = line.name;
    spec.input = Input::Nothing;
    spec.timeout = args.timeout;
    spec.session = session::current();
    for (name, value) in line.env {
        spec.set_env(&name, &value);
    }
    let priority = match args.priority {
        PriorityArg::High => Priority::High,
        PriorityArg::Normal => Priority::Normal,
        PriorityArg::Low => Priority::Low,
    };
    let retry = match args.retry {
        RetryArg::Never => Retry::Never,
        RetryArg::IfNotStarted => Retry::IfNotStarted,
        RetryArg::Always => Retry::Always,
    };
    Order {
        id: line.id.unwrap_or_else(queue::new_id),
        label: args.on.clone(),
        priority: line.priority.unwrap_or(priority),
        retry: line.retry.unwrap_or(retry),
        after: line.after,
        by: String::new(),
        at: outlast_job::clock::now_ms(),
        repeats: args.schedule.is_some(),
        spec,
    }
}

fn read_file(path: &Path) -> Result<Vec<Line>, Failure> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
    };
    read.map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            serde_json::from_str(line).map_err(|error| {
                Failure::usage(format!("{}, line {}: {error}", path.display(), number + 1))
                    .hint("a line is for example {\"command\": \"make test\", \"name\": \"test\"}")
            })
        })
        .collect()
}

/// Waits until all have ended; the code of the first that did not end well. A broker that is gone for a while is waited for.
fn wait(broker: &Broker, mut results: Results, orders: &[Order], out: &mut Output) -> Result<i32, Failure> {
    let mut open: Vec<&str> = orders.iter().map(|order| order.id.as_str()).collect();
    let mut code = 0;
    while !open.is_empty() {
        let records = match broker.wait(results.next()) {
            Ok(records) => records,
            Err(_) => {
                std::thread::sleep(AGAIN);
                if let Ok(again) = broker.wait(Results::begin(broker, true)) {
                    results = again;
                }
                // What was told meanwhile.
                broker.wait(over(broker, &open))
            }
        };
        for record in records {
            let Some(at) = open.iter().position(|id| *id == record.order.id) else { continue };
            open.swap_remove(at);
            show(&record, out);
            if code == 0 && !record.is_well() {
                code = exit_code(&record);
            }
        }
    }
    Ok(code)
}

/// Those of these orders that are over, or in doubt.
async fn over(broker: &Broker, ids: &[&str]) -> Vec<Record> {
    let Ok(orders) = broker.orders().await else { return Vec::new() };
    let mut found = Vec::new();
    for id in ids {
        if let Ok(Some((record, _))) = queue::look(&orders, id).await
            && (record.is_over() || matches!(record.stage, Stage::Unknown { .. }))
        {
            found.push(record);
        }
    }
    found
}

fn exit_code(record: &Record) -> i32 {
    match &record.stage {
        Stage::Ended { end: End::Job { state }, .. } => state.exit_code().unwrap_or(1),
        Stage::Ended { .. }
        | Stage::Claimed
        | Stage::Starting
        | Stage::Started { .. }
        | Stage::Unknown { .. }
        | Stage::Cancelled { .. } => 1,
    }
}

fn show(record: &Record, out: &mut Output) -> bool {
    if out.json {
        return out.value(record);
    }
    let name = record.order.spec.name.clone().unwrap_or_else(|| record.order.spec.run.display());
    out.line(&format!("{} {}: {}", record.order.id, name, record.words()))
}

pub(super) fn order(outlast: &Outlast, verb: &OrderVerb, out: &mut Output) -> Result<i32, Failure> {
    match verb {
        OrderVerb::List(args) => {
            allowed(outlast.home(), OrderKind::List)?;
            let broker = broker()?;
            let records = broker.wait(queue::all(&broker))?;
            let mut records: Vec<Record> =
                records.into_iter().filter(|record| !args.open || !record.is_over()).collect();
            records.sort_by_key(|record| record.since);
            if out.json {
                out.value(&serde_json::json!({ "orders": records }));
            } else {
                for record in &records {
                    show(record, out);
                }
            }
            Ok(0)
        }
        OrderVerb::Show(args) => {
            allowed(outlast.home(), OrderKind::List)?;
            let broker = broker()?;
            queue::check_id(&args.order)?;
            let record = broker.wait(async { queue::look(&broker.orders().await?, &args.order).await })?;
            match record {
                Some((record, _)) => {
                    show(&record, out);
                    Ok(0)
                }
                None => Err(Failure::new(
                    Kind::NoSuchJob,
                    format!("no host has taken an order {} yet", args.order),
                )
                .hint("it waits, or there is none of that name; how many wait: outlast fleet status")),
            }
        }
        OrderVerb::Cancel(args) => {
            let broker = broker()?;
            for id in &args.orders {
                cancel(outlast, &broker, id, out)?;
            }
            Ok(0)
        }
        OrderVerb::Resolve(args) => resolve(outlast, args, out),
        OrderVerb::Results(args) => {
            allowed(outlast.home(), OrderKind::Events)?;
            results(args, out)
        }
    }
}

/// What is known of an order; none when no host has taken it.
fn known(broker: &Broker, id: &str) -> Result<Option<Record>, Failure> {
    queue::check_id(id)?;
    let found = broker.wait(async { queue::look(&broker.orders().await?, id).await })?;
    Ok(found.map(|(record, _)| record))
}

fn cancel(outlast: &Outlast, broker: &Broker, id: &str, out: &mut Output) -> Result<(), Failure> {
    // Judged before anything is taken back: a refusal must not leave an order cancelled whose job runs on.
    if let Some(Record { host, stage: Stage::Started { job }, .. }) = known(broker, id)? {
        let job = outlast.job(&format!("{host}/{job}"))?;
        let _pass = CliGate::open(outlast.home())?.pass(OrderKind::Kill { job: &job, force: true })?;
    }
    let what = match broker.wait(queue::cancel(broker, id))? {
        Cancelled::Before => "will never run",
        Cancelled::TooLate => "was over already",
        Cancelled::Claimed { job: None } => "is ended by its host before it runs, or at once",
        Cancelled::Claimed { job: Some(job) } => {
            let grace = outlast.settings().kill.grace;
            let job = outlast.job(&job)?;
            let gate = CliGate::open(outlast.home())?;
            let _pass = gate.pass(OrderKind::Kill { job: &job, force: true })?;
            job.kill(grace, &session::current())?;
            "was running, and is ended"
        }
    };
    if out.json {
        out.value(&serde_json::json!({ "order": id, "cancelled": what }));
    } else {
        out.line(&format!("{id} {what}"));
    }
    Ok(())
}

fn resolve(outlast: &Outlast, args: &OrderResolveArgs, out: &mut Output) -> Result<i32, Failure> {
    let broker = broker()?;
    let open: Vec<String> = match &args.of {
        Some(host) => {
            let is_its = |record: &Record| record.host == *host && !record.is_over();
            let all = broker.wait(queue::all(&broker))?;
            all.into_iter().filter(is_its).map(|record| record.order.id).collect()
        }
        None => args.order.iter().cloned().collect(),
    };
    if open.is_empty() {
        out.talk("outlast: no order is open there");
    }
    for order in &open {
        resolve_one(outlast, &broker, order, args.again, out)?;
    }
    Ok(0)
}

fn resolve_one(
    outlast: &Outlast,
    broker: &Broker,
    order: &str,
    again: bool,
    out: &mut Output,
) -> Result<(), Failure> {
    // To order it again is to order it: judged like any other.
    if again && let Some(record) = known(broker, order)? {
        let folder = std::env::current_dir().map_err(|_| outlast_job::spec::deleted_folder())?;
        let env = BTreeMap::new();
        let start = Start { run: &record.order.spec.run, folder: &folder, env: &env, fed: false };
        let _pass = CliGate::open(outlast.home())?.pass(OrderKind::Start(start))?;
    }
    let decision = if again { Decision::Again } else { Decision::GiveUp };
    let again = broker.wait(queue::resolve(broker, order, decision))?;
    if out.json {
        out.value(&serde_json::json!({ "order": order, "again": again }));
    } else {
        out.line(&again.unwrap_or_else(|| format!("{order} is given up")));
    }
    Ok(())
}

fn results(args: &OrderResultsArgs, out: &mut Output) -> Result<i32, Failure> {
    let broker = broker()?;
    let results = broker.wait(Results::begin(&broker, false))?;
    loop {
        let found = if args.follow { results.next() } else { results.there() };
        let records = broker.wait(found)?;
        if records.is_empty() && !args.follow {
            return Ok(0);
        }
        if !records.iter().all(|record| show(record, out)) {
            return Ok(0);
        }
    }
}
