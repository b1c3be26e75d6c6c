//! `outlast doctor`: what this machine can do for jobs, tried and not assumed.

use outlast_job::client::probe::{self, Finding};
use outlast_job::{Failure, Outlast};

use crate::output::Output;

pub(super) fn doctor(outlast: Result<Outlast, Failure>, out: &mut Output) -> i32 {
    let findings = match &outlast {
        Ok(outlast) => probe::examine(outlast),
        Err(failure) => vec![Finding { what: "home", good: false, said: failure.to_string() }],
    };
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
            out.line(&format!("{mark} {:<10} {}", finding.what, finding.said));
        }
    }
    i32::from(!healthy)
}
