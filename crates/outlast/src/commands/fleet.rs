//! `outlast fleet`: sets a fleet up, lets members in, and shows how it is. Also what other verbs need of it.

use std::collections::BTreeMap;

use outlast_cli::{FleetAddArgs, FleetInitArgs, FleetLogArgs, FleetVerb};
use outlast_fleet::broker::{Broker, Patience};
use outlast_fleet::config::FleetFile;
use outlast_fleet::directory::{self, Beat, Need};
use outlast_fleet::identity::{Bundle, Member, Owner, Tls};
use outlast_fleet::logs;
use outlast_fleet::queue::{self, Stage};
use outlast_job::{Failure, Outlast};
use outlast_policy::OrderKind;
use serde::Serialize;

use crate::ask::allowed;
use crate::human;
use crate::output::Output;

/// Comes to the broker as this user.
pub(super) fn broker() -> Result<Broker, Failure> {
    let file = FleetFile::required()?;
    Broker::connect(&file, file.user(), Patience::Fail)
}

pub(super) fn fleet(outlast: &Outlast, verb: &FleetVerb, out: &mut Output) -> Result<i32, Failure> {
    match verb {
        FleetVerb::Init(args) => init(args, out),
        FleetVerb::Add(args) => add(args, out),
        FleetVerb::Revoke(args) => {
            let mut owner = Owner::load(&args.folder)?;
            owner.revoke(&args.name)?;
            owner.write(&args.folder)?;
            let next = format!(
                "let the broker read it: nats-server --signal reload; orders it has: outlast order resolve --of {}",
                args.name
            );
            said(out, "revoked", &args.name, &next);
            Ok(0)
        }
        FleetVerb::Join(args) => {
            let bundle = Bundle::read(&args.file)?;
            let path = FleetFile::path()
                .ok_or_else(|| Failure::usage("there is no folder for settings: HOME is not set"))?;
            bundle.install(&path)?;
            let next = if bundle.is_host { "outlast node" } else { "outlast fleet status" };
            said(out, "joined", &bundle.name, &format!("{} is written; next: {next}", path.display()));
            Ok(0)
        }
        FleetVerb::Log(args) => {
            allowed(outlast.home(), OrderKind::Read)?;
            log(outlast, args, out)
        }
        FleetVerb::Status(_) => {
            allowed(outlast.home(), OrderKind::List)?;
            status(out)
        }
    }
}

/// The whole log of a job, as its host puts it at the broker.
fn log(outlast: &Outlast, args: &FleetLogArgs, out: &mut Output) -> Result<i32, Failure> {
    let handle = outlast.job(&args.job)?.handle();
    let host = handle.host().ok_or_else(|| {
        Failure::usage(format!("{} is a job of this machine", args.job))
            .hint(format!("read it here: outlast read {} --raw", args.job))
    })?;
    let broker = broker()?;
    let Some(path) = &args.to else {
        logs::fetch(&broker, host.as_str(), handle.number(), &mut std::io::stdout().lock())?;
        return Ok(0);
    };
    let file = std::fs::File::create(path);
    let mut file =
        file.map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))?;
    let bytes = logs::fetch(&broker, host.as_str(), handle.number(), &mut file)?;
    if out.json {
        out.value(&serde_json::json!({ "job": handle.to_string(), "bytes": bytes, "file": path }));
    } else {
        out.line(&format!("{bytes} bytes of {handle} are in {}", path.display()));
    }
    Ok(0)
}

fn said(out: &mut Output, what: &str, name: &str, next: &str) {
    if out.json {
        out.value(&serde_json::json!({ what: name, "next": next }));
    } else {
        out.line(&format!("{what} {name}; {next}"));
    }
}

fn init(args: &FleetInitArgs, out: &mut Output) -> Result<i32, Failure> {
    if Owner::load(&args.folder).is_ok() {
        return Err(Failure::usage(format!("there is a fleet in {} already", args.folder.display()))
            .hint("let members in: outlast fleet add"));
    }
    let full = |path: &std::path::Path| {
        std::path::absolute(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
    };
    let tls = match (&args.tls_cert, &args.tls_key, &args.tls_ca) {
        (Some(cert), Some(key), Some(ca)) => Some(Tls { cert: full(cert)?, key: full(key)?, ca: full(ca)? }),
        _ => None,
    };
    let servers = if args.servers.is_empty() {
        vec![format!("{}://{}", if tls.is_some() { "tls" } else { "nats" }, args.listen)]
    } else {
        args.servers.clone()
    };
    let owner = Owner {
        listen: args.listen.clone(),
        servers,
        tls,
        replicas: args.replicas.max(1),
        member: Vec::new(),
    };
    let folder = full(&args.folder)?;
    owner.write(&folder)?;
    let next = format!("nats-server -c {}/nats-server.conf", folder.display());
    said(out, "fleet", &folder.display().to_string(), &format!("add members, then run: {next}"));
    Ok(0)
}

fn add(args: &FleetAddArgs, out: &mut Output) -> Result<i32, Failure> {
    let mut owner = Owner::load(&args.folder)?;
    let member = Member {
        name: args.name.clone(),
        is_host: args.host,
        key: String::new(),
        labels: args.labels.clone(),
        hosts: args.reach.clone(),
    };
    let bundle = owner.admit(member)?;
    let to = args.to.clone().unwrap_or_else(|| format!("{}.toml", args.name).into());
    bundle.write(&to)?;
    owner.write(&args.folder)?;
    let next = format!("{} has the secret key: bring it there, and run: outlast fleet join", to.display());
    said(out, "added", &args.name, &next);
    Ok(0)
}

#[derive(Serialize)]
struct Status {
    servers: Vec<String>,
    version: String,
    hosts: Vec<HostStatus>,
    jobs: BTreeMap<&'static str, u64>,
    orders: BTreeMap<&'static str, u64>,
    queues: BTreeMap<String, u64>,
}

#[derive(Serialize)]
struct HostStatus {
    #[serde(flatten)]
    beat: Beat,
    /// It says that it is there.
    reachable: bool,
    /// How long it was not heard of, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    gone_ms: Option<u64>,
}

fn status(out: &mut Output) -> Result<i32, Failure> {
    let broker = broker()?;
    let status = broker.wait(look(&broker))?;
    if out.json {
        out.value(&status);
        return Ok(0);
    }
    out.line(&format!("broker {} at {}", status.version, status.servers.join(", ")));
    for HostStatus { beat, reachable, gone_ms } in &status.hosts {
        let how = match (reachable, gone_ms) {
            (true, _) if beat.draining => "draining".to_owned(),
            (true, _) => "here".to_owned(),
            (false, Some(ms)) => format!("unreachable for {}", human::age(*ms)),
            (false, None) => "unreachable".to_owned(),
        };
        let jobs: u32 = beat.jobs.iter().sum();
        out.line(&format!(
            "{:16} {how:24} {} of {} slots  load {}.{:02}  {jobs} jobs  {}  {}",
            beat.host,
            beat.used,
            beat.slots,
            beat.load / 100,
            beat.load % 100,
            beat.version,
            beat.labels.join(",")
        ));
    }
    let words = |counts: &BTreeMap<&str, u64>| {
        let words: Vec<String> =
            counts.iter().filter(|(_, n)| **n > 0).map(|(word, n)| format!("{n} {word}")).collect();
        if words.is_empty() { "none".to_owned() } else { words.join(", ") }
    };
    out.line(&format!("jobs: {}", words(&status.jobs)));
    out.line(&format!("orders: {}", words(&status.orders)));
    for (label, waiting) in &status.queues {
        out.line(&format!("queue {label}: {waiting} waiting"));
    }
    Ok(0)
}

async fn look(broker: &Broker) -> Result<Status, Failure> {
    let beats = directory::hosts(broker).await?;
    let now = outlast_job::clock::now_ms();
    let mut jobs: BTreeMap<&'static str, u64> = BTreeMap::new();
    for beat in beats.values() {
        for (need, count) in Need::ALL.iter().zip(beat.jobs) {
            *jobs.entry(need.word()).or_default() += u64::from(count);
        }
    }
    let gone = directory::members(broker)
        .await?
        .into_iter()
        .filter(|member| !member.left && !beats.contains_key(&member.host));
    let gone: Vec<HostStatus> = gone
        .map(|member| HostStatus {
            gone_ms: Some(now.saturating_sub(member.seen)),
            reachable: false,
            beat: Beat {
                host: member.host,
                labels: member.labels,
                version: member.version,
                ..Beat::default()
            },
        })
        .collect();
    let mut orders: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut labels: Vec<String> = beats.values().flat_map(|beat| beat.labels.clone()).collect();
    for record in queue::all(broker).await? {
        let is_here = beats.contains_key(&record.host);
        let word = match &record.stage {
            Stage::Claimed | Stage::Starting | Stage::Started { .. } if !is_here => "outcome unknown",
            Stage::Claimed | Stage::Starting => "claimed",
            Stage::Started { .. } => "running",
            Stage::Ended { .. } if record.is_well() => "done",
            Stage::Ended { .. } => "failed",
            Stage::Unknown { .. } => "outcome unknown",
            Stage::Cancelled { .. } => "cancelled",
        };
        *orders.entry(word).or_default() += 1;
        labels.push(record.order.label);
    }
    labels.sort();
    labels.dedup();
    let mut queues = BTreeMap::new();
    for label in labels.into_iter().filter(|label| !label.is_empty()) {
        if let Some(waiting) = queue::waiting(broker, &label).await {
            queues.insert(label, waiting);
        }
    }
    let here = beats.into_values().map(|beat| HostStatus { beat, reachable: true, gone_ms: None });
    Ok(Status {
        servers: broker.file.nats.clone(),
        version: broker.client.server_info().version,
        hosts: here.chain(gone).collect(),
        jobs,
        orders,
        queues,
    })
}
