//! `outlast policy`.

mod init;

use std::path::Path;

use outlast_cli::{
    PolicyAnswerArgs, PolicyArgs, PolicyCheckArgs, PolicyInitArgs, PolicyLogArgs, PolicyPendingArgs,
    PolicyVerb, YesNo,
};
use outlast_job::clock::now_ms;
use outlast_job::registry::format::Info;
use outlast_job::sandbox::Network;
use outlast_job::wire::Activity;
use outlast_job::{Failure, Job, Kind, Outlast, Run};
use outlast_policy::{
    Answer, Audit, Decision, Door, Finding, Gate, OrderKind, Policy, Tool, Verdict, visible,
};
use outlast_protocol::request::{AskKeepers, List};
use serde_json::json;

use crate::ask::allowed;
use crate::output::{DENIED, Output};

pub(super) fn policy(args: &PolicyArgs, out: &mut Output) -> Result<i32, Failure> {
    match &args.verb {
        PolicyVerb::Check(check) => self::check(check, out),
        PolicyVerb::Pending(PolicyPendingArgs {}) => pending(&Outlast::open()?, out),
        PolicyVerb::Answer(args) => answer(&Outlast::open()?, args, out),
        PolicyVerb::Log(args) => log(&Outlast::open()?, args, out),
        PolicyVerb::Init(PolicyInitArgs { dry_run }) => init::init(*dry_run, out),
    }
}

/// What programs of jobs want to execute, and hosts that they were not connected to: what a person can agree to.
fn pending(outlast: &Outlast, out: &mut Output) -> Result<i32, Failure> {
    allowed(outlast.home(), OrderKind::List)?;
    let listed = outlast.list(List { running: true, keepers: AskKeepers::All, ..List::default() });
    let mut all = Vec::new();
    for listed in &listed {
        let handle = listed.job.handle;
        let job = outlast.job(&handle.to_string())?;
        let asks = listed.now.as_ref().is_some_and(|now| now.activity == Activity::Asking);
        if !asks && !job.info().is_ok_and(|info| reaches_hosts(&info)) {
            continue;
        }
        let status = job.status()?;
        for question in status.into_iter().flat_map(|status| status.questions) {
            if !out.json {
                let seconds = question.until.saturating_sub(now_ms()) / 1000;
                let asked = Gate::open(outlast.home(), Door::CommandLine)?.exec_question(
                    &listed.job.session,
                    handle,
                    &question,
                );
                out.line(&asked.text());
                out.line(&format!(
                    "  yes: outlast policy answer {handle} {0} yes   no: outlast policy answer {handle} {0} no   ({seconds} s left)",
                    question.question
                ));
            }
            all.push(json!({ "job": handle.number(), "session": listed.job.session, "asked": question }));
        }
    }
    if out.json {
        out.value(&json!({ "pending": all }));
    } else if all.is_empty() {
        out.line("nothing waits for an answer");
    }
    Ok(0)
}

/// Whether a job may connect to some hosts only: others can be allowed while it runs on.
fn reaches_hosts(info: &Info) -> bool {
    info.sandbox.as_ref().is_some_and(|sandbox| sandbox.network == Network::Hosts)
}

/// Answers one of these, and notes it.
fn answer(outlast: &Outlast, args: &PolicyAnswerArgs, out: &mut Output) -> Result<i32, Failure> {
    let job = outlast.job(&args.job)?;
    let allow = args.answer == YesNo::Yes;
    answer_one(outlast, &job, args.question, allow)?;
    if out.json {
        out.value(&json!({ "job": job.handle().number(), "question": args.question, "allowed": allow }));
    } else {
        out.talk(if allow { "it is allowed" } else { "it is not allowed" });
    }
    Ok(0)
}

/// A person at the command line answers what a program of a job wants to execute.
pub(super) fn answer_one(outlast: &Outlast, job: &Job, question: u64, allow: bool) -> Result<(), Failure> {
    if Gate::is_in_a_job() {
        let said = "a process inside a job can't answer what its user is asked";
        return Err(Failure::new(Kind::Denied, said).hint("answer it in a terminal of your own"));
    }
    let status = job.status()?;
    let mut questions = status.into_iter().flat_map(|status| status.questions);
    let Some(asked) = questions.find(|asked| asked.question == question) else {
        return Err(Failure::usage(format!("question {question} is not asked, or not any more"))
            .hint("see what is asked: outlast policy pending"));
    };
    let gate = Gate::open(outlast.home(), Door::CommandLine)?;
    let put = gate.exec_question(&job.info()?.session, job.handle(), &asked);
    let noted = gate.answered(&put, if allow { Answer::Yes } else { Answer::No });
    if allow {
        let _pass = noted?;
    }
    job.answer_question(question, allow, "a person at the command line")
}

/// The audit log, as a person reads it.
fn log(outlast: &Outlast, args: &PolicyLogArgs, out: &mut Output) -> Result<i32, Failure> {
    allowed(outlast.home(), OrderKind::List)?;
    let read = Audit::of(outlast.home().path()).read();
    let from = read.entries.len().saturating_sub(args.lines);
    let entries = read.entries.get(from..).unwrap_or_default();
    if out.json {
        out.value(&json!({ "entries": entries, "damage": read.damage }));
    } else {
        if entries.is_empty() {
            out.line("nothing was asked about, refused, or allowed by a rule");
        }
        for entry in entries {
            out.line(&logged(entry));
        }
        for damage in &read.damage {
            out.talk(&format!("warning: {damage}"));
        }
    }
    Ok(i32::from(!read.damage.is_empty()))
}

/// One entry: when, what was decided, who wanted it, what, and by which rule.
fn logged(entry: &serde_json::Value) -> String {
    let text = |name: &str| entry[name].as_str().unwrap_or_default();
    let at = crate::human::moment(entry["at"].as_u64().unwrap_or(0));
    let answer = entry["answer"].as_str().map(|answer| format!(", {answer}")).unwrap_or_default();
    let job = entry["job"].as_u64().map(|job| format!(" job {job}")).unwrap_or_default();
    let mut line = format!("{at}  {}{answer}", text("decision"));
    if !text("session").is_empty() {
        line.push_str(&format!("  {} ({}) {}{job}", visible(text("session")), text("door"), text("tool")));
    }
    for what in text("what").lines() {
        line.push_str(&format!("\n    {}", visible(what)));
    }
    line.push_str(&format!("\n  because {}", visible(text("why"))));
    if !text("place").is_empty() {
        line.push_str(&format!(" ({})", text("place")));
    }
    line
}

fn check(args: &PolicyCheckArgs, out: &mut Output) -> Result<i32, Failure> {
    let here = std::env::current_dir().ok();
    let folders: Vec<&Path> = [here.as_deref(), args.cwd.as_deref()].into_iter().flatten().collect();
    let mut policy = Policy::load(&folders)?;
    if args.command.is_empty() {
        return Ok(files(&policy, out));
    }
    let mut verdict = judged(&policy, args)?;
    let folder = args.cwd.as_deref().or(here.as_deref()).unwrap_or(Path::new(""));
    if let Some(nested) = policy.at_nested(folder, &verdict)? {
        policy = nested;
        verdict = judged(&policy, args)?;
    }
    if out.json {
        out.value(&as_json(&policy, &verdict));
    } else {
        out.line(verdict.decision.name());
        let shown = if args.explain { verdict.findings.len() } else { 1 };
        for finding in verdict.findings.iter().take(shown) {
            out.line(&explained(finding));
        }
        if verdict.findings.is_empty() && args.explain {
            out.line(&format!("  {}", nothing_said(&policy)));
        }
        if !verdict.reaches.is_empty() && args.explain {
            out.line("  it uses outlast itself: an agent is asked about");
        }
        notes(&policy, out);
    }
    Ok(if verdict.decision == Decision::Deny { DENIED } else { 0 })
}

fn judged(policy: &Policy, args: &PolicyCheckArgs) -> Result<Verdict, Failure> {
    let tool = match &args.tool {
        None => Tool::Run,
        Some(name) => name.parse()?,
    };
    let about_tool = policy.judge_tool(tool);
    Ok(match (tool, args.command.as_slice()) {
        (Tool::Send, words) => about_tool.and(policy.judge_line(Tool::Send, &words.join(" "))),
        (Tool::Run, [line]) => about_tool.and(policy.judge_line(Tool::Run, line)),
        (Tool::Run, argv) => {
            about_tool.and(policy.judge_run(&Run::Program(argv.to_vec()), &Default::default(), false))
        }
        (
            Tool::Kill
            | Tool::Screen
            | Tool::Read
            | Tool::Wait
            | Tool::Jobs
            | Tool::Events
            | Tool::Watch
            | Tool::Resize
            | Tool::Prune,
            _,
        ) => about_tool,
    })
}

/// Without a command: which files are in force, and what is odd about them.
fn files(policy: &Policy, out: &mut Output) -> i32 {
    if out.json {
        let files: Vec<String> = policy.files().iter().map(|file| file.display().to_string()).collect();
        out.value(&json!({ "files": files, "notes": policy.notes() }));
        return 0;
    }
    if policy.is_empty() {
        let file = Policy::user_file().map(|file| file.display().to_string()).unwrap_or_default();
        out.line(&format!("there is no policy; it would be {file}, or .outlast/policy.toml in a project"));
    }
    for file in policy.files() {
        out.line(&format!("in force: {}", file.display()));
    }
    notes(policy, out);
    0
}

fn notes(policy: &Policy, out: &mut Output) {
    for note in policy.notes() {
        out.talk(&format!("note: {note}"));
    }
}

fn nothing_said(policy: &Policy) -> &'static str {
    if policy.is_empty() { "there is no policy" } else { "no rule is about it" }
}

fn explained(finding: &Finding) -> String {
    let mut text = format!(
        "  {}: {}\n    in: {}",
        finding.decision.name(),
        finding.why,
        finding.part.replace('\n', "\n        ")
    );
    if let Some(rule) = &finding.rule {
        text.push_str(&format!("\n    rule: {} ({})", rule.shown(), rule.place));
        if let Some(why) = &rule.why {
            text.push_str(&format!("\n    reason: {why}"));
        }
    }
    text
}

fn as_json(policy: &Policy, verdict: &Verdict) -> serde_json::Value {
    let findings: Vec<_> = verdict
        .findings
        .iter()
        .map(|finding| {
            json!({
                "decision": finding.decision,
                "why": finding.why,
                "part": finding.part,
                "rule": finding.rule.as_ref().map(|rule| json!({
                    "rule": rule.shown(),
                    "file": rule.place.file.display().to_string(),
                    "line": rule.place.line,
                    "reason": rule.why,
                })),
            })
        })
        .collect();
    let reaches: Vec<&str> = verdict.reaches.iter().map(|tool| tool.name()).collect();
    json!({ "decision": verdict.decision, "findings": findings, "uses_tools": reaches, "notes": policy.notes() })
}
