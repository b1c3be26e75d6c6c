//! All machines that a door may name: those of `hosts.toml` and of ssh first, and then the hosts of the fleet.

use std::sync::{Arc, Mutex, PoisonError};

use outlast_job::client::{Hosts, Link};
use outlast_protocol::{Failure, HostName, Kind};
use outlast_remote::fleet::Fleet;
use outlast_remote::link::Dial;

use crate::broker::{Broker, Patience};
use crate::config::FleetFile;
use crate::{names, pipe};

/// The machines that are reached directly, and those that are reached through the broker.
#[derive(Debug)]
pub struct Everywhere {
    near: Fleet,
    /// Made when the first host of the fleet is named.
    broker: Arc<Mutex<Option<Broker>>>,
}

impl Everywhere {
    /// Adds the fleet, if there is one, to the machines that are reached directly.
    #[must_use]
    pub fn with(near: Fleet) -> Self {
        Self { near, broker: Arc::default() }
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
        let open = move || {
            let mut held = broker.lock().unwrap_or_else(PoisonError::into_inner);
            let broker = match &*held {
                Some(broker) => broker.clone(),
                None => held.insert(Broker::connect(&file, file.user(), Patience::Fail)?).clone(),
            };
            drop(held);
            pipe::open(&broker, name.as_str())
        };
        Ok(Box::new(self.near.link_over(name, Dial::Pipe(Arc::new(open)))))
    }

    fn known(&self) -> Vec<HostName> {
        // A fleet may have thousands: its jobs are listed from what its hosts tell, without asking each.
        self.near.known()
    }
}
