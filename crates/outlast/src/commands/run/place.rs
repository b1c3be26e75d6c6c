//! Where a job runs that is to run on another machine: a host by its name, or the better one of those with a label.

use outlast_job::request::{AskKeepers, List};
use outlast_job::{Failure, Outlast};
use outlast_protocol::HostName;
use outlast_remote::hosts::HostFile;

/// The machine of that name; else, of two with that label, the one with less to do.
pub(super) fn choose(outlast: &Outlast, on: &str) -> Result<Outlast, Failure> {
    let hosts = HostFile::load()?;
    let named: Option<HostName> = on.parse().ok();
    if let Some(name) = named
        && (hosts.all().any(|host| host.name == name) || hosts.labelled(on).is_empty())
    {
        return outlast.on(name);
    }
    let labelled: Vec<HostName> = hosts.labelled(on).iter().map(|host| host.name).collect();
    if labelled.is_empty() {
        return Err(Failure::usage(format!("there is no host and no label {on:?}"))
            .hint("see them: outlast host list"));
    }
    let mut candidates = two(&labelled);
    let mut reached: Vec<(usize, HostName)> = Vec::new();
    let mut failure = None;
    // Should both be away, the others are asked too.
    let rest: Vec<HostName> = labelled.iter().copied().filter(|name| !candidates.contains(name)).collect();
    candidates.extend(rest);
    for name in candidates {
        if reached.len() == 2 {
            break;
        }
        let list = List { running: true, keepers: AskKeepers::None, ..List::default() };
        match outlast.list_on(name, list) {
            Ok(jobs) => reached.push((jobs.len(), name)),
            Err(error) => failure = Some(error),
        }
    }
    match (reached.into_iter().min(), failure) {
        (Some((_, name)), _) => outlast.on(name),
        (None, Some(failure)) => Err(failure),
        (None, None) => Err(Failure::usage(format!("there is no host with the label {on:?}"))),
    }
}

/// Two of them, by chance: many callers then do not all choose the same one.
fn two(names: &[HostName]) -> Vec<HostName> {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().subsec_nanos();
    let first = usize::try_from(now).unwrap_or(0) % names.len();
    let second =
        (first + 1 + usize::try_from(now / 7919).unwrap_or(0) % names.len().max(2).saturating_sub(1))
            % names.len();
    let mut two = vec![names[first]];
    two.extend((second != first).then(|| names[second]));
    two
}
