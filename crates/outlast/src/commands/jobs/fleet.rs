//! `outlast jobs --fleet`: from what the hosts of the fleet tell, without asking each.

use std::collections::BTreeMap;

use outlast_cli::{JobsArgs, StatusFilter};
use outlast_fleet::broker::Broker;
use outlast_fleet::directory::{self, Beat, Card, Need};
use outlast_job::Failure;
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
    jobs: &'a [Row],
}

pub(super) fn list(args: &JobsArgs, filter: &Filter, out: &mut Output) -> Result<i32, Failure> {
    let broker = broker()?;
    let now = outlast_job::clock::now_ms();
    let Found { beats, gone, cards } = broker.wait(look(&broker, args))?;
    let row = |(host, card): (String, Card)| -> Option<Row> {
        let name: HostName = host.parse().ok()?;
        let row = Row::new(card.listed(name), "", now);
        Some(match gone.get(&host) {
            None => row,
            Some(seen) => row.unreachable(now.saturating_sub(*seen)),
        })
    };
    let mut rows: Vec<Row> = cards.into_iter().filter_map(row).filter(|row| filter.takes(row)).collect();
    rows.truncate(args.limit.unwrap_or(FIRST));
    let mut totals: BTreeMap<&'static str, u64> = BTreeMap::new();
    for beat in beats.values() {
        for (need, count) in Need::ALL.iter().zip(beat.jobs) {
            *totals.entry(need.word()).or_default() += u64::from(count);
        }
    }
    let unreachable: Vec<String> = gone.into_keys().collect();
    if out.json {
        out.value(&List { hosts: beats.len(), unreachable, totals, jobs: &rows });
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
    Ok(0)
}

struct Found {
    beats: BTreeMap<String, Beat>,
    /// Hosts that are not there, and when they were seen last.
    gone: BTreeMap<String, u64>,
    cards: Vec<(String, Card)>,
}

async fn look(broker: &Broker, args: &JobsArgs) -> Result<Found, Failure> {
    let beats = directory::hosts(broker).await?;
    let members = directory::members(broker).await?;
    let gone = members.into_iter().filter(|member| !beats.contains_key(&member.host));
    let gone = gone.map(|member| (member.host, member.seen)).collect();
    // What is filtered by more than its class is looked for among all.
    let limit = args.limit.unwrap_or(FIRST);
    let most = if args.name.is_some() || !args.status.is_empty() { usize::MAX } else { limit };
    let mut cards = Vec::new();
    for need in Need::ALL.into_iter().filter(|need| is_wanted(*need, args)) {
        if cards.len() < most {
            cards.extend(directory::jobs(broker, need, args.on.as_deref(), most - cards.len()).await?);
        }
    }
    Ok(Found { beats, gone, cards })
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
