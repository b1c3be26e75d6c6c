//! All machines that a door may name: those of `hosts.toml` and of ssh first, and then the hosts of the fleet.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast_job::client::{Hosts, Link, Told};
use outlast_protocol::{Failure, HostName, Kind};
use outlast_remote::fleet::Fleet;
use outlast_remote::link::Dial;

use crate::broker::{Broker, Patience};
use crate::config::FleetFile;
use crate::directory::Need;
use crate::overview::{self, Changes, Wanted};
use crate::{names, pipe};

/// The machines that are reached directly, and those that are reached through the broker.
#[derive(Debug)]
pub struct Everywhere {
    near: Fleet,
    /// Lists show the fleet.
    shown: bool,
    /// Made when the first host of the fleet is named, or the fleet is first looked at.
    broker: Arc<Mutex<Option<Broker>>>,
    changes: Mutex<Option<Arc<Changes>>>,
}

impl Everywhere {
    /// Adds the fleet, if there is one, to the machines that are reached directly. Its hosts can be named; whether lists show what they
    /// tell is said here.
    #[must_use]
    pub fn with(near: Fleet, shown: bool) -> Self {
        Self { near, shown, broker: Arc::default(), changes: Mutex::default() }
    }

    fn look(&self, file: &FleetFile, most: usize) -> Result<Told, Failure> {
        let broker = connected(&self.broker, file)?;
        let has_changes = || self.changes.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if !has_changes()
            && let Ok(changes) = broker.wait(Changes::begin(&broker))
        {
            // Before the look: nothing can come in between unnoticed. While no host has joined, there is nothing to watch.
            *self.changes.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(changes));
        }
        let wanted = Wanted { needs: Need::ALL.to_vec(), host: None, most };
        let found = broker.wait(overview::look(&broker, &wanted))?;
        let mut told = found.told(outlast_job::clock::now_ms());
        told.jobs.retain(|job| job.job.handle.host().is_none_or(|host| self.near.may_name(host)));
        Ok(told)
    }
}

/// The connection, made when it is first needed.
fn connected(broker: &Mutex<Option<Broker>>, file: &FleetFile) -> Result<Broker, Failure> {
    let mut held = broker.lock().unwrap_or_else(PoisonError::into_inner);
    match &*held {
        Some(broker) => Ok(broker.clone()),
        None => Ok(held.insert(Broker::connect(file, file.user(), Patience::Fail)?).clone()),
    }
}

impl Hosts for Everywhere {
    fn link(&self, name: HostName) -> Result<Box<dyn Link>, Failure> {
        let failure = match self.near.link(name) {
            Err(failure) if failure.kind == Kind::NoSuchJob => failure,
            other => return other,
        };
        let Some(file) = FleetFile::load()? else { return Err(failure) };
        names::token("host of the fleet", name.as_str())?;
        let broker = Arc::clone(&self.broker);
        let open = move || pipe::open(&connected(&broker, &file)?, name.as_str());
        Ok(Box::new(self.near.link_over(name, Dial::Pipe(Arc::new(open)))))
    }

    fn known(&self) -> Vec<HostName> {
        // A fleet may have thousands: its jobs are listed from what its hosts tell, without asking each.
        self.near.known()
    }

    fn shows_fleet(&self) -> bool {
        self.shown && FleetFile::load().is_ok_and(|file| file.is_some())
    }

    fn told(&self, most: usize) -> Option<Result<Told, Failure>> {
        if !self.shown {
            return None;
        }
        match FleetFile::load() {
            Ok(Some(file)) => Some(self.look(&file, most)),
            Ok(None) => None,
            Err(failure) => Some(Err(failure)),
        }
    }

    fn wait_for_change(&self, at_most: Duration) {
        let broker = self.broker.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (Some(broker), Some(changes)) = (broker, changes) else { return std::thread::sleep(at_most) };
        if broker.wait(changes.wait(at_most)).is_err() {
            // A server that is gone has forgotten what we have read: the next look begins again.
            *self.changes.lock().unwrap_or_else(PoisonError::into_inner) = None;
            std::thread::sleep(at_most);
        }
    }
}
