//! `outlast host`: which other machines there are, and whether they can be reached.

use std::io::IsTerminal;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use outlast_cli::{HostAddArgs, HostArgs, HostVerb};
use outlast_job::{Failure, Outlast, Run};
use outlast_policy::{OrderKind, Start};
use outlast_protocol::HostName;
use outlast_remote::bootstrap;
use outlast_remote::fleet::LastKnown;
use outlast_remote::hosts::{Host, HostFile, Reach, Sharing, ssh_names};
use outlast_remote::link::{Dial, LinkOptions, probe};
use outlast_remote::message::Caller;
use serde_json::json;

use crate::ask::CliGate;
use crate::human;
use crate::output::Output;

pub(super) fn host(outlast: &Outlast, args: &HostArgs, out: &mut Output) -> Result<i32, Failure> {
    match &args.verb {
        HostVerb::Add(args) => add(outlast, args, out),
        HostVerb::List(_) => list(outlast, out),
        HostVerb::Test(args) => test(&HostFile::load()?.find(args.name.parse()?)?, out),
        HostVerb::Remove(args) => remove(outlast, args.name.parse()?, out),
    }
}

fn add(outlast: &Outlast, args: &HostAddArgs, out: &mut Output) -> Result<i32, Failure> {
    let name: HostName = args.name.parse()?;
    let reach: Reach = args.reach.parse()?;
    may_be_run(outlast, &reach)?;
    let mut file = HostFile::load()?;
    let (program, labels) = (args.program.clone(), args.labels.clone());
    let mut host = Host { name, reach, program, labels, slots: args.slots };
    if args.bootstrap {
        let installed = bootstrap::install(&host.reach, args.binary.as_deref())
            .map_err(|failure| failure.seen_from_here(name))?;
        out.talk(&format!(
            "put outlast {} on {name}: {} ({})",
            installed.version,
            installed.path,
            human::bytes(installed.bytes as u64)
        ));
        host.program = host.program.or(Some(installed.path));
    }
    file.add(host.clone())?;
    if out.json {
        out.value(&shown(&host, true, None));
    } else {
        out.line(&format!("{name} is {}; try it: outlast host test {name}", host.reach));
    }
    Ok(0)
}

/// What reaches the host is a command of this machine, and judged as one.
fn may_be_run(outlast: &Outlast, reach: &Reach) -> Result<(), Failure> {
    let run = match reach {
        Reach::Command(line) => Run::Shell(line.clone()),
        Reach::Ssh(_) | Reach::Docker(_) | Reach::Podman(_) | Reach::Kubectl { .. } => {
            let mut words = reach.relay(None, Sharing::Own);
            // The last word is for the other machine, whose own policy judges what comes there.
            words.pop();
            Run::Program(words)
        }
    };
    let folder = std::env::current_dir().unwrap_or_else(|_| Path::new("/").to_owned());
    let start = Start { run: &run, folder: &folder, env: &Default::default(), fed: false };
    CliGate::open(outlast.home())?.pass(OrderKind::Start(start)).map(|_| ())
}

fn shown(host: &Host, added: bool, last: Option<&LastKnown>) -> serde_json::Value {
    json!({
        "name": host.name.as_str(),
        "reach": host.reach.to_string(),
        "labels": host.labels,
        "slots": host.slots,
        "program": host.program,
        "added": added,
        "last_known_ms": last.map(|last| u64::try_from(last.age().as_millis()).unwrap_or(u64::MAX)),
        "jobs": last.map(|last| last.jobs.len()),
    })
}

fn list(outlast: &Outlast, out: &mut Output) -> Result<i32, Failure> {
    let file = HostFile::load()?;
    let added: Vec<&Host> = file.all().collect();
    let by_ssh: Vec<Host> = ssh_names()
        .into_iter()
        .filter_map(|name| name.parse::<HostName>().ok())
        .filter(|name| !added.iter().any(|host| host.name == *name))
        .filter_map(|name| file.find(name).ok())
        .collect();
    let home = outlast.home().path();
    let rows: Vec<(&Host, bool, Option<LastKnown>)> = added
        .iter()
        .map(|host| (*host, true))
        .chain(by_ssh.iter().map(|host| (host, false)))
        .map(|(host, added)| (host, added, LastKnown::load(home, host.name)))
        .collect();
    if out.json {
        let hosts: Vec<_> =
            rows.iter().map(|(host, added, last)| shown(host, *added, last.as_ref())).collect();
        out.value(&json!({ "hosts": hosts }));
        return Ok(0);
    }
    if rows.is_empty() {
        out.talk("no hosts; add one: outlast host add gpu1 ssh:me@gpu1");
    }
    for (host, added, last) in rows {
        let slots = host.slots.map(|count| format!(" x {count}")).unwrap_or_default();
        let labels = match host.labels.as_slice() {
            [] => String::new(),
            labels => format!("  [{}{slots}]", labels.join(", ")),
        };
        let seen = match last {
            Some(last) => format!(
                "{} jobs, seen {} ago",
                last.jobs.len(),
                human::age(u64::try_from(last.age().as_millis()).unwrap_or(u64::MAX))
            ),
            None if added => "not seen yet".into(),
            None => "of the ssh configuration".into(),
        };
        out.line(&format!("{:<16} {:<32} {seen}{labels}", host.name.as_str(), host.reach.to_string()));
    }
    Ok(0)
}

fn test(host: &Host, out: &mut Output) -> Result<i32, Failure> {
    if let Reach::Ssh(to) = &host.reach
        && std::io::stdin().is_terminal()
        && std::io::stderr().is_terminal()
    {
        ask_once(&host.reach, to);
    }
    let began = Instant::now();
    let hello = probe(&LinkOptions {
        name: host.name.to_string(),
        dial: Dial::Command(host.reach.relay(host.program.as_deref(), Sharing::Shared)),
        patience: std::time::Duration::from_secs(20),
        caller: Caller::here(),
        notice: None,
    })
    .map_err(|failure| explained(failure, host).seen_from_here(host.name))?;
    let ms = began.elapsed().as_millis();
    let machine = hello.machine.unwrap_or_default();
    if out.json {
        out.value(&json!({
            "name": host.name.as_str(), "reachable": true, "program": hello.program, "machine": machine,
            "frames": hello.frames, "ms": u64::try_from(ms).unwrap_or(u64::MAX),
        }));
    } else {
        out.line(&format!("{} answers: {} on {machine}, in {ms} ms", host.name, hello.program));
    }
    Ok(0)
}

/// Lets ssh ask the person at the terminal whatever it has to ask. The connection stays for a minute, and is shared.
fn ask_once(reach: &Reach, to: &str) {
    let mut words = reach.run("true", Sharing::Shared);
    words.iter_mut().filter(|word| *word == "BatchMode=yes").for_each(|word| *word = "BatchMode=no".into());
    debug_assert!(words.iter().any(|word| word == to));
    if let Some((program, arguments)) = words.split_first() {
        // What is wrong is found out, and said, by the real attempt.
        let _ = Command::new(program).args(arguments).status();
    }
}

/// What to do about the usual troubles.
fn explained(failure: Failure, host: &Host) -> Failure {
    let said = failure.message.to_ascii_lowercase();
    let name = host.name;
    if said.contains("not found") || said.contains("no such file") {
        return failure.hint(format!(
            "outlast is not there; put it there: outlast host add {name} {} --bootstrap",
            host.reach
        ));
    }
    if said.contains("permission denied") || said.contains("host key") || said.contains("passphrase") {
        return failure.hint(format!("let ssh ask you once, at a terminal: outlast host test {name}"));
    }
    failure
}

fn remove(outlast: &Outlast, name: HostName, out: &mut Output) -> Result<i32, Failure> {
    let removed = HostFile::load()?.remove(name)?;
    LastKnown::forget(outlast.home().path(), name);
    if out.json {
        out.value(&json!({ "name": name.as_str(), "removed": removed }));
    } else if removed {
        out.line(&format!("{name} is forgotten; its jobs go on"));
    } else {
        out.talk(&format!("{name} was not added"));
    }
    Ok(i32::from(!removed) * 3)
}
