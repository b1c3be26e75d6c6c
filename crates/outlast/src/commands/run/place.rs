//! Where a job runs that is to run on another machine: a host by its name, or the better one of those with a label.

use outlast_fleet::config::FleetFile;
use outlast_fleet::directory;
use outlast_job::request::{AskKeepers, JobRequest, List};
use outlast_job::{Failure, Job, JobSpec, Kind, Outlast};
use outlast_protocol::{HostName, Load, Slot};
use outlast_remote::hosts::{HERE, Host, HostFile};

use crate::commands::fleet;

/// A machine that could run the job.
pub(super) struct Place {
    pub(super) outlast: Outlast,
    /// The slot that its jobs of this kind share, and how many places that has there.
    slot: Option<Slot>,
    /// Whether it said that there is a free place.
    is_free: bool,
}

/// The machine of that name; else, of two with that label, both with something to say, the better one first.
pub(super) fn choose(outlast: &Outlast, on: &str, slot: Option<&str>) -> Result<Vec<Place>, Failure> {
    let hosts = HostFile::load()?;
    if on == HERE {
        return Ok(vec![Place { outlast: outlast.clone(), slot: None, is_free: true }]);
    }
    let labelled = hosts.labelled(on);
    if labelled.is_empty()
        && !hosts.all().any(|host| host.name.as_str() == on)
        && let Some(name) = in_fleet(on)?
    {
        let slot = slot.map(Slot::new);
        return Ok(vec![Place { outlast: outlast.on(name)?, slot, is_free: true }]);
    }
    let named: Option<HostName> = on.parse().ok();
    if let Some(name) = named
        && (hosts.all().any(|host| host.name == name) || labelled.is_empty())
    {
        let known = hosts.all().find(|host| host.name == name);
        let places = known.and_then(|host| host.slots);
        let slot = slot.map(|slot| Slot { places, ..Slot::new(slot) });
        return Ok(vec![Place { outlast: outlast.on(name)?, slot, is_free: true }]);
    }
    if labelled.is_empty() {
        return Err(Failure::usage(format!("there is no host and no label {on:?}"))
            .hint("see them: outlast host list"));
    }
    let mut reached: Vec<(Busy, Place)> = Vec::new();
    let mut failure = None;
    // Should one be away, the next is asked.
    for host in two_first(labelled) {
        if reached.len() == 2 {
            break;
        }
        match look(outlast, host, slot.unwrap_or(on)) {
            Ok(place) => reached.push(place),
            Err(error) => failure = Some(error),
        }
    }
    reached.sort_by_key(|(busy, _)| *busy);
    match (reached.is_empty(), failure) {
        (true, Some(failure)) => Err(failure),
        (_, _) => Ok(reached.into_iter().map(|(_, place)| place).collect()),
    }
}

/// Starts the job on the first machine that has a place for it; if none has, it is queued on the better one.
pub(super) fn start(
    outlast: &Outlast,
    places: &[Place],
    spec: JobSpec,
    expected: &[JobRequest],
) -> Result<Job, Failure> {
    let Some(best) = places.first() else { return outlast.start(spec) };
    let expecting = |place: &Place| place.outlast.expecting(expected.iter().cloned());
    let with = |place: &Place, or_refuse: bool| {
        let mut spec = spec.clone();
        spec.slot = match (spec.slot.take(), &place.slot) {
            (Some(asked), there) => {
                let places = there.as_ref().and_then(|there| there.places);
                Some(Slot { places, or_refuse: asked.or_refuse || or_refuse, ..asked })
            }
            (None, Some(there)) => Some(Slot { or_refuse, ..there.clone() }),
            (None, None) => None,
        };
        spec
    };
    if places.len() > 1 {
        for place in places.iter().filter(|place| place.is_free) {
            match expecting(place).start(with(place, true)) {
                // Somebody else was faster.
                Err(failure) if failure.kind == Kind::Busy => {}
                started => return started,
            }
        }
    }
    expecting(best).start(with(best, false))
}

/// How busy a machine is; less comes first.
type Busy = (bool, bool, usize, usize);

fn look(outlast: &Outlast, host: &Host, slot: &str) -> Result<(Busy, Place), Failure> {
    let there = if host.name.as_str() == HERE { outlast.clone() } else { outlast.on(host.name)? };
    let wanted = host.slots.map(|places| Slot { places: Some(places), ..Slot::new(slot) });
    let (busy, is_free) = match there.load() {
        Ok(load) => {
            let is_free = free(&load, slot, host.slots) > 0;
            let queued = load.slots.iter().find(|one| one.name == slot).map_or(0, |one| one.queued.len());
            let share = load.running * 1000 / load.processors.max(1);
            ((!is_free, load.pressure.is_some(), queued, share), is_free)
        }
        // It is too old to say: how many jobs run is better than nothing.
        Err(failure) if failure.kind == Kind::Usage => {
            let list = List { running: true, keepers: AskKeepers::None, ..List::default() };
            let jobs = if host.name.as_str() == HERE {
                outlast.list(list)
            } else {
                outlast.list_on(host.name, list)?
            };
            ((false, false, 0, jobs.len() * 1000), true)
        }
        Err(failure) => return Err(failure),
    };
    Ok((busy, Place { outlast: there, slot: wanted, is_free }))
}

/// How many places are free, as far as the machine knows the slot.
fn free(load: &Load, slot: &str, asked: Option<u32>) -> usize {
    match load.slots.iter().find(|one| one.name == slot) {
        Some(known) => known.free(asked),
        None => 1,
    }
}

/// Two of them, by chance, come first: many callers then do not all choose the same one.
fn two_first(mut hosts: Vec<&Host>) -> Vec<&Host> {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().subsec_nanos();
    let mut by_chance = usize::try_from(now).unwrap_or(0);
    for at in 0..hosts.len().min(2) {
        let left = hosts.len() - at;
        hosts.swap(at, at + by_chance % left);
        by_chance /= 7919;
    }
    hosts
}

/// The host of the fleet of that name, or one with that label; none when there is no fleet, or none such in it.
fn in_fleet(on: &str) -> Result<Option<HostName>, Failure> {
    if FleetFile::load()?.is_none() {
        return Ok(None);
    }
    let broker = fleet::broker()?;
    broker.wait(directory::choose(&broker, on))?.map(|name| name.parse()).transpose()
}
