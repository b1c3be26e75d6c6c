//! `outlast show shell`: where a shell that remembers is, what was changed in it, and its steps.

use std::collections::BTreeMap;

use outlast_job::lifecycle::Process;
use outlast_job::shell::{Step, StepState};
use outlast_job::{Failure, Kind, Outlast};
use serde::Serialize;

use super::super::run::in_shell::scope;
use crate::human;
use crate::output::Output;

/// So many of the last steps are printed.
const STEPS: usize = 20;

/// The facts of a shell, as JSON.
#[derive(Serialize)]
struct Shown<'a> {
    shell: &'a str,
    kind: &'a str,
    handle: String,
    status: &'a str,
    folder: &'a str,
    rc: bool,
    seated: bool,
    restored: Option<&'a str>,
    changed: &'a BTreeMap<String, Vec<String>>,
    background: &'a [Process],
    steps: &'a [Step],
}

pub(super) fn show(outlast: &Outlast, name: &str, out: &mut Output) -> Result<i32, Failure> {
    let Some(job) = outlast.find_shell(&scope(), name)? else {
        return Err(Failure::new(Kind::NoSuchJob, format!("there is no shell {name}"))
            .hint(format!("its first step makes it: outlast run --shell {name} COMMAND")));
    };
    let info = job.info_to_show()?;
    let Some(shell) = &info.shell else { return Err(Failure::usage("this job is no shell")) };
    let status = job.shell()?;
    let processes = job.status().ok().flatten().map(|status| status.processes).unwrap_or_default();
    let own = info.process.as_ref().map(|process| process.pid);
    let runs = status.steps.iter().any(|step| step.state == StepState::Running);
    // While a step runs, what it started can't be told from what others left.
    let background: Vec<Process> =
        processes.into_iter().filter(|process| !runs && Some(process.pid) != own).collect();
    let shown = Shown {
        shell: name,
        kind: shell.kind.name(),
        handle: info.handle.to_string(),
        status: info.state.name(),
        folder: &status.folder,
        rc: shell.rc,
        seated: status.seated,
        restored: shell.restored.as_deref(),
        changed: &status.changed,
        background: &background,
        steps: &status.steps,
    };
    if out.json {
        out.value(&shown);
    } else {
        print(&shown, out);
    }
    Ok(0)
}

fn print(shown: &Shown<'_>, out: &mut Output) {
    let title = format!("shell {}, {}, job {}: {}", shown.shell, shown.kind, shown.handle, shown.status);
    out.line(&out.styled("1", &title));
    let mut rows = vec![("folder".to_owned(), shown.folder.to_owned())];
    if shown.seated {
        rows.push(("person".into(), "sits at its prompt; steps of others wait".into()));
    }
    if shown.rc {
        rows.push(("startup".into(), "it has read your startup files".into()));
    }
    rows.extend(shown.restored.map(|text| ("restored".to_owned(), text.to_owned())));
    rows.extend(shown.changed.iter().map(|(what, names)| (what.clone(), names.join(", "))));
    if !shown.background.is_empty() {
        let named = shown.background.iter().map(|process| format!("{} ({})", process.program, process.pid));
        rows.push(("background".into(), named.collect::<Vec<_>>().join(", ")));
    }
    for (what, said) in rows {
        let what = out.styled("2", &format!("{what:<11}"));
        out.line(&format!("  {what}{}", human::cut(&said, usize::MAX)));
    }
    let older = shown.steps.len().saturating_sub(STEPS);
    for step in &shown.steps[older..] {
        let state = match (step.state, step.exit_code) {
            (StepState::Ended, Some(code)) => format!("exit {code}"),
            (state, _) => state.name().to_owned(),
        };
        let took = step.took_ms.map(human::duration).unwrap_or_default();
        let whose = if step.by == "a person" { "  (typed by a person)" } else { "" };
        let command = human::cut(&step.command, 80);
        let line = format!("  {:>5}  {state:<8}  {took:>7}  {command}{whose}", step.step);
        out.line(line.trim_end());
    }
}
