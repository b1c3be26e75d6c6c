//! `outlast doctor`: what this machine can do for jobs, tried and not assumed.

use outlast_job::client::Finding;
use outlast_job::{Failure, Outlast};

use outlast_policy::Policy;

use crate::human;
use crate::output::Output;
use crate::progress::Busy;
use crate::terminal;

/// Where the words of a finding begin.
const SAID_COLUMN: usize = 16;

pub(super) fn doctor(outlast: Result<Outlast, Failure>, out: &mut Output) -> i32 {
    let mut findings = match &outlast {
        Ok(outlast) => {
            let busy = Busy::new("looking at this machine");
            outlast.examine(|what| busy.now(format!("looking at this machine: {what}")))
        }
        Err(failure) => vec![Finding { what: "home", good: false, said: failure.to_string() }],
    };
    findings.push(policy());
    let healthy = findings.iter().all(|finding| finding.good);
    if out.json {
        let list: Vec<_> = findings
            .iter()
            .map(|f| serde_json::json!({ "check": f.what, "ok": f.good, "detail": f.said }))
            .collect();
        out.value(&serde_json::json!({ "ok": healthy, "checks": list }));
    } else {
        for finding in &findings {
            let mark = if finding.good { out.styled("32", "ok  ") } else { out.styled("31", "bad ") };
            let said = format!("{mark} {:<10} {}", finding.what, finding.said);
            out.line(&match terminal::columns() {
                Some(columns) => human::wrap(&said, columns, SAID_COLUMN),
                None => said,
            });
        }
    }
    i32::from(!healthy)
}

/// Whether the policy loads.
fn policy() -> Finding {
    let here = std::env::current_dir().ok();
    let folders: Vec<&std::path::Path> = here.as_deref().into_iter().collect();
    let (good, said) = match Policy::load(&folders) {
        Ok(policy) if policy.is_empty() => (true, "there is none: nothing is denied".into()),
        Ok(policy) => {
            let files: Vec<String> = policy.files().iter().map(|file| file.display().to_string()).collect();
            let notes = policy.notes().len();
            let odd = if notes > 0 {
                format!("; {notes} rules never decide: outlast policy check")
            } else {
                String::new()
            };
            (true, format!("{}{odd}", files.join(", ")))
        }
        Err(error) => (false, error.to_string()),
    };
    Finding { what: "policy", good, said }
}
