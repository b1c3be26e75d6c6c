//! What operators count of a home's jobs, in the text form that Prometheus reads. A counter counts from when its process began to look,
//! as scrapers expect it; nothing is kept on the disk for it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Instant;

use outlast_protocol::request::ListedJob;

use crate::lifecycle::{EndedBy, Outcome, State};
use crate::wakes::spool::{Filed, Spool};
use crate::{Handle, Outlast};

/// What was seen of the jobs so far.
#[derive(Debug, Default)]
pub struct Census {
    /// Jobs that ran at the last look, and whether they waited for somebody.
    live: BTreeMap<Handle, bool>,
    /// The highest number that was seen: what is above it is new.
    highest: u64,
    looked: Option<Instant>,
    ends: BTreeMap<&'static str, u64>,
    waited_ms: u128,
    /// Of jobs that have ended.
    takeovers: u64,
}

impl Census {
    /// Takes in how the jobs are now.
    pub fn look(&mut self, outlast: &Outlast, jobs: &[ListedJob]) {
        let now = Instant::now();
        if let Some(before) = self.looked.replace(now) {
            let asked = self.live.values().filter(|asks| **asks).count() as u128;
            self.waited_ms += asked * now.duration_since(before).as_millis();
            let is_fresh = |job: Handle| self.live.contains_key(&job) || job.number() > self.highest;
            for one in jobs.iter().filter(|one| !one.is_live() && is_fresh(one.job.handle)) {
                *self.ends.entry(cause(&one.job.state)).or_default() += 1;
                self.takeovers += takeovers(outlast, one.job.handle);
            }
        }
        let asks = |one: &ListedJob| one.now.as_ref().is_some_and(|now| now.awaiting_input.is_some());
        self.live = jobs.iter().filter(|one| one.is_live()).map(|one| (one.job.handle, asks(one))).collect();
        let highest = jobs.iter().map(|one| one.job.handle.number()).max();
        self.highest = self.highest.max(highest.unwrap_or(0));
    }

    /// All of it, with how the jobs are now.
    #[must_use]
    pub fn text(&mut self, outlast: &Outlast, jobs: &[ListedJob]) -> String {
        self.look(outlast, jobs);
        let mut text = Text::default();
        let mut states: BTreeMap<&'static str, u64> = BTreeMap::new();
        for name in ["queued", "starting", "running", "completed", "failed", "killed", "lost"] {
            states.insert(name, 0);
        }
        for one in jobs {
            *states.entry(one.job.state.name()).or_default() += 1;
        }
        let queued = states.get("queued").copied().unwrap_or(0);
        text.labelled("jobs_by_state", "gauge", "Jobs of this home by their state.", "state", &states);
        let asking = self.live.values().filter(|asks| **asks).count() as u64;
        text.plain("jobs_asking", "gauge", "Jobs that wait for somebody's input.", asking);
        text.plain("jobs_queued", "gauge", "Jobs that wait for a place.", queued);
        text.plain("job_starts_total", "counter", "Jobs that were ever started in this home.", self.highest);
        text.labelled(
            "job_ends_total",
            "counter",
            "Jobs that have ended, by what ended them.",
            "cause",
            &self.ends,
        );
        let waited = self.waited_ms as f64 / 1000.0;
        text.plain("input_wait_seconds_total", "counter", "Seconds that jobs have waited for input.", waited);
        let live: u64 = self.live.keys().map(|job| takeovers(outlast, *job)).sum();
        let about = "Times that an heir went on with a job whose keeper was gone.";
        text.plain("takeovers_total", "counter", about, self.takeovers + live);
        let spool = Spool::existing(outlast.home());
        let (waiting, given_up): (Vec<_>, Vec<_>) =
            spool.iter().flat_map(Spool::all).partition(Filed::is_pending);
        let deliveries =
            BTreeMap::from([("waiting", waiting.len() as u64), ("given_up", given_up.len() as u64)]);
        text.labelled("deliveries", "gauge", "Wakes that are not delivered.", "state", &deliveries);
        let dropped = spool.map_or(0, |spool| spool.dropped());
        text.plain("deliveries_dropped_total", "counter", "Wakes for which there was no room.", dropped);
        text.0
    }
}

/// Lines as Prometheus reads them.
#[derive(Debug, Default)]
pub struct Text(pub String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP outlast_{name} {help}\n# TYPE outlast_{name} {kind}");
    }

    /// One value.
    pub fn plain(&mut self, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
        self.head(name, kind, help);
        let _ = writeln!(self.0, "outlast_{name} {value}");
    }

    /// A value for each word of a label.
    pub fn labelled<K: AsRef<str>>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        label: &str,
        rows: &BTreeMap<K, u64>,
    ) {
        self.head(name, kind, help);
        for (word, value) in rows {
            let _ = writeln!(self.0, "outlast_{name}{{{label}=\"{}\"}} {value}", word.as_ref());
        }
    }
}

fn takeovers(outlast: &Outlast, job: Handle) -> u64 {
    let info = outlast.job(&job.to_string()).and_then(|job| job.info());
    info.map_or(0, |info| u64::from(info.takeovers))
}

/// What ended a job, in a word.
fn cause(state: &State) -> &'static str {
    let Some(receipt) = state.receipt() else { return "lost" };
    if matches!(receipt.outcome, Outcome::NotStarted { .. }) {
        return "not_started";
    }
    match &receipt.ended_by {
        EndedBy::Itself => "itself",
        EndedBy::Kill { .. } => "kill",
        EndedBy::Timeout { .. } => "timeout",
        EndedBy::Inactivity { .. } => "inactivity",
        EndedBy::OomKiller => "oom",
        EndedBy::Key { .. } => "key",
        EndedBy::BrokenPipe => "broken_pipe",
        EndedBy::CpuLimit { .. } => "cpu_limit",
        EndedBy::Crash => "crash",
        EndedBy::Outside => "outside",
        EndedBy::Hangup => "hangup",
        EndedBy::Unknown => "unknown",
    }
}
