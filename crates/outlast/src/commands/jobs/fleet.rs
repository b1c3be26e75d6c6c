//! `outlast jobs --fleet`: from what the hosts of the fleet tell, without asking each.

use std::collections::BTreeMap;

use outlast_cli::{JobsArgs, StatusFilter};
use outlast_fleet::directory::{Card, Need};
use outlast_fleet::overview::{self, Overview, Wanted};
use outlast_job::client::Told;
use outlast_job::request::ListedJob;
use outlast_job::{Failure, Outlast};
use outlast_protocol::HostName;
use serde::Serialize;

use super::rows::{self, Filter, Row};
use crate::commands::fleet::broker;
use crate::output::Output;
use crate::terminal;

/// How many are shown unless told otherwise.
const FIRST: usize = 100;

#[derive(Serialize)]
struct List<'a> {
    hosts: usize,
    unreachable: Vec<String>,
    /// How many jobs there are, by what they need.
    totals: BTreeMap<&'static str, u64>,
    /// How many are before these.
    skipped: usize,
    jobs: &'a [Row],
}

pub(super) fn list(args: &JobsArgs, filter: &Filter, out: &mut Output) -> Result<i32, Failure> {
    let broker = broker()?;
    let now = outlast_job::clock::now_ms();
    let (first, skip) = (args.limit.unwrap_or(FIRST), args.skip.unwrap_or(0));
    // What is filtered by more than its class is looked for among all.
    let is_filtered = args.name.is_some() || !args.status.is_empty();
    let wanted = Wanted {
        needs: Need::ALL.into_iter().filter(|need| is_wanted(*need, args)).collect(),
        host: args.on.clone(),
        most: if is_filtered { usize::MAX } else { first.saturating_add(skip) },
    };
    let found = broker.wait(overview::look(&broker, &wanted))?;
    let totals = found.totals();
    let Overview { beats, gone, cards } = found;
    let row = |(host, card): (String, Card)| -> Option<Row> {
        let name: HostName = host.parse().ok()?;
        let row = Row::new(card.listed(name), "", now);
        Some(match gone.get(&host) {
            None => row,
            Some(seen) => row.unreachable(now.saturating_sub(*seen)),
        })
    };
    let rows = cards.into_iter().filter_map(row).filter(|row| filter.takes(row));
    let rows: Vec<Row> = rows.skip(skip).take(first).collect();
    let unreachable: Vec<String> = gone.into_keys().collect();
    if out.json {
        let totals = totals.into_iter().collect();
        out.value(&List { hosts: beats.len(), unreachable, totals, skipped: skip, jobs: &rows });
        return Ok(0);
    }
    if args.quiet {
        for row in &rows {
            out.line(&row.handle.to_string());
        }
        return Ok(0);
    }
    let counts: Vec<String> = totals.iter().map(|(word, count)| format!("{count} {word}")).collect();
    let away = if unreachable.is_empty() {
        String::new()
    } else {
        format!(", unreachable: {}", unreachable.join(", "))
    };
    out.talk(&format!("{} hosts{away}; jobs: {}", beats.len(), counts.join(", ")));
    for line in rows::table(&rows, terminal::columns(), out) {
        out.line(&line);
    }
    if rows.len() == first {
        out.talk(&format!("the next: outlast jobs --fleet --skip {}", skip + first));
    }
    Ok(0)
}

/// The jobs that hosts of the fleet tell of, where every list shows them; and what could not be had.
pub(super) fn shown(outlast: &Outlast, mine: &str, now: u64) -> (Vec<Row>, Option<String>) {
    match outlast.told(FIRST) {
        None => (Vec::new(), None),
        Some(Err(failure)) => (Vec::new(), Some(failure.message)),
        Some(Ok(told)) => (rows_of(told, mine, now), None),
    }
}

/// What hosts tell, as rows.
pub(in crate::commands) fn rows_of(told: Told, mine: &str, now: u64) -> Vec<Row> {
    let Told { jobs, away, .. } = told;
    let row = |job: ListedJob| {
        let gone = job.job.handle.host().and_then(|host| away.get(&host).copied());
        let row = Row::new(job, mine, now);
        match gone {
            Some(ms) => row.unreachable(ms),
            None => row,
        }
    };
    jobs.into_iter().map(row).collect()
}

/// Whether jobs of this class are looked for.
fn is_wanted(need: Need, args: &JobsArgs) -> bool {
    let live = matches!(need, Need::Asks | Need::Runs);
    let by_status = |status: &StatusFilter| match status {
        StatusFilter::Running | StatusFilter::Queued | StatusFilter::Stopped => live,
        StatusFilter::Asking => need == Need::Asks,
        StatusFilter::Completed => need == Need::Done,
        StatusFilter::Failed | StatusFilter::Killed | StatusFilter::Lost => need == Need::Failed,
    };
    (!args.running || live) && (args.status.is_empty() || args.status.iter().any(by_status))
}
