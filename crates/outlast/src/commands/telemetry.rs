//! `outlast telemetry`: sends a span for each job that has ended, and for each tool call, to an OpenTelemetry collector. It may be ended at any time: what was sent
//! is noted, and a job that is sent twice has the same span.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use outlast_cli::TelemetryArgs;
use outlast_fleet::identity::write_private;
use outlast_fleet::machine::{LocalMachine, Machine};
use outlast_fleet::telemetry::{Exporter, call_span, span};
use outlast_job::calls;
use outlast_job::wakes::{PostTrouble, post_json};
use outlast_job::{Failure, Kind, Outlast};
use outlast_policy::OrderKind;
use serde::{Deserialize, Serialize};

use super::relay::HostJudge;
use crate::ask::allowed;
use crate::output::Output;

/// How many spans one request has.
const BATCH: usize = 200;
/// Changes are gathered for so long.
const GATHER: Duration = Duration::from_millis(500);
/// Tool calls are looked for this often.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// After a collector did not answer: the first pause, and the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Which jobs were sent.
#[derive(Default, Serialize, Deserialize)]
struct Sent {
    /// All up to this number.
    up_to: u64,
    /// And these.
    also: BTreeSet<u64>,
    /// How far the log of tool calls was sent.
    #[serde(default)]
    calls: calls::Place,
}

impl Sent {
    fn has(&self, job: u64) -> bool {
        job <= self.up_to || self.also.contains(&job)
    }

    fn note(&mut self, jobs: &[u64]) {
        self.also.extend(jobs);
    }

    /// Everything below the first job that is still open was sent, or is gone.
    fn compact(&mut self, first_open: u64) {
        self.up_to = self.up_to.max(first_open.saturating_sub(1));
        self.also = self.also.split_off(&first_open);
    }
}

pub(super) fn telemetry(outlast: &Outlast, args: &TelemetryArgs, out: &mut Output) -> Result<i32, Failure> {
    allowed(outlast.home(), OrderKind::Events)?;
    let exporter = Exporter::from_environment(|name| std::env::var(name).ok())?;
    let path = outlast.home().path().join(calls::TELEMETRY_FILE);
    let mut sent: Sent =
        std::fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let machine = LocalMachine::new(outlast.clone(), Arc::new(HostJudge::open(outlast)?));
    let (knock, knocked) = mpsc::sync_channel(1);
    if !args.once {
        let again = move || {
            // Full: somebody has knocked already.
            let _ = knock.try_send(());
        };
        machine.watch(Arc::new(again), Arc::new(|| {}))?;
    }
    let seed = outlast_remote::message::machine_name();
    let mut pause = FIRST_PAUSE;
    let mut total = (0, 0);
    loop {
        match send_new(outlast, &machine, &exporter, (&seed, args.commands), &path, &mut sent) {
            Ok(counts) => {
                total = (total.0 + counts.0, total.1 + counts.1);
                pause = FIRST_PAUSE;
            }
            Err(failure) if args.once || failure.kind != Kind::Unreachable => return Err(failure),
            Err(failure) => {
                out.aside(&format!("outlast: {}", failure.message));
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
                continue;
            }
        }
        if args.once {
            if out.json {
                out.value(&serde_json::json!({ "sent": total.0, "calls": total.1 }));
            } else {
                out.line(&format!("{} jobs and {} tool calls sent to {}", total.0, total.1, exporter.url));
            }
            return Ok(0);
        }
        // Nobody knocks for a tool call.
        if knocked.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Disconnected) {
            return Ok(0);
        }
        std::thread::sleep(GATHER);
    }
}

/// Sends what has ended since; how many jobs and how many tool calls that were.
fn send_new(
    outlast: &Outlast,
    machine: &LocalMachine,
    exporter: &Exporter,
    (seed, with_command): (&str, bool),
    path: &Path,
    sent: &mut Sent,
) -> Result<(usize, usize), Failure> {
    let jobs = machine.jobs();
    let first_open = jobs.iter().filter(|job| job.is_live()).map(|job| job.job.handle.number()).min();
    let ended = jobs.iter().filter(|job| !job.is_live() && !sent.has(job.job.handle.number()));
    let ended: Vec<u64> = ended.map(|job| job.job.handle.number()).collect();
    let masked = outlast.clone().masked();
    for some in ended.chunks(BATCH) {
        let spans: Vec<serde_json::Value> = some
            .iter()
            .filter_map(|job| masked.job(&job.to_string()).ok()?.info().ok())
            .filter_map(|info| span(&info, seed, with_command))
            .collect();
        post(exporter, &spans)?;
        sent.note(some);
        keep(path, sent)?;
    }
    let next = || jobs.iter().map(|job| job.job.handle.number()).max().map_or(0, |last| last + 1);
    sent.compact(first_open.unwrap_or_else(next));
    let (found, end) = calls::after(outlast.home().path(), sent.calls);
    for some in found.chunks(BATCH) {
        let spans: Vec<serde_json::Value> =
            some.iter().map(|(place, call)| call_span(call, *place, seed)).collect();
        post(exporter, &spans)?;
    }
    sent.calls = end;
    keep(path, sent)?;
    Ok((ended.len(), found.len()))
}

fn post(exporter: &Exporter, spans: &[serde_json::Value]) -> Result<(), Failure> {
    let body = serde_json::to_vec(&exporter.request(spans)).unwrap_or_default();
    post_json(&exporter.url, &exporter.headers, &body).map_err(|trouble| match trouble {
        PostTrouble::Retry(why) => {
            Failure::new(Kind::Unreachable, format!("the collector did not take spans: {why}"))
        }
        PostTrouble::Final(why) => Failure::usage(format!("the collector refuses spans: {why}")),
    })
}

fn keep(path: &Path, sent: &Sent) -> Result<(), Failure> {
    let text =
        serde_json::to_vec(sent).map_err(|error| Failure::system("cannot note what was sent", error))?;
    write_private(path, &text)
}
