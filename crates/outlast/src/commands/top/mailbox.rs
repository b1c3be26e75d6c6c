//! What the screen is told: by keepers that something has changed, and by threads what they have found.
//!
//! Keepers are never asked in between. However much they tell, what is kept is bounded: that a job has changed is known or
//! it is not.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

use outlast_job::client::{News, Waiting};
use outlast_job::request::Subscription;
use outlast_job::{Failure, Handle, Outlast};

use super::looker::Found;

/// What has come since it was last looked at.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    /// A job was started or removed, or something happened to one.
    pub(super) happened: bool,
    /// These have printed something.
    pub(super) grown: BTreeSet<Handle>,
    pub(super) found: Vec<Found>,
}

/// Where threads leave what they have to tell.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    inbox: Arc<Mutex<Inbox>>,
    wake: Arc<UnixStream>,
}

impl Sender {
    fn put(&self, change: impl FnOnce(&mut Inbox)) {
        change(&mut self.inbox.lock().unwrap_or_else(PoisonError::into_inner));
        // Full means that somebody will look anyway.
        let _ = (&*self.wake).write(b"!");
    }

    /// A job has printed something.
    pub(super) fn grown(&self, job: Handle) {
        self.put(|inbox| {
            inbox.grown.insert(job);
        });
    }

    pub(super) fn found(&self, found: Found) {
        self.put(|inbox| inbox.found.push(found));
    }
}

/// The other end, and the subscriptions.
#[derive(Debug)]
pub(super) struct Mailbox {
    pub(super) sender: Sender,
    pub(super) ours: UnixStream,
    jobs: BTreeMap<Handle, Waiting>,
    _list: Waiting,
}

impl Mailbox {
    pub(super) fn open(outlast: &Outlast) -> Result<Self, Failure> {
        let broken = |error| Failure::system("changes can't be told", error);
        let (ours, theirs) = UnixStream::pair().map_err(broken)?;
        ours.set_nonblocking(true).map_err(broken)?;
        theirs.set_nonblocking(true).map_err(broken)?;
        let sender = Sender { inbox: Arc::default(), wake: Arc::new(theirs) };
        let told = sender.clone();
        let list = outlast.subscribe(&Subscription::JobList, move |_| {
            told.put(|inbox| inbox.happened = true);
            true
        })?;
        Ok(Self { sender, ours, jobs: BTreeMap::new(), _list: list })
    }

    /// Follows these jobs, and no others.
    pub(super) fn follow(&mut self, outlast: &Outlast, live: &BTreeSet<Handle>) {
        self.jobs.retain(|handle, _| live.contains(handle));
        for handle in live {
            if self.jobs.contains_key(handle) {
                continue;
            }
            let (told, job) = (self.sender.clone(), *handle);
            let tell = move |news: News| {
                told.put(|inbox| match news {
                    News::Grown(_) => {
                        inbox.grown.insert(job);
                    }
                    News::Event(_) | News::Over | News::Changed | News::Attached(_) => {
                        inbox.happened = true;
                        inbox.grown.insert(job);
                    }
                });
                true
            };
            // One that is gone by now is not in the next list.
            if let Ok(waiting) = outlast.subscribe(&Subscription::Job { job }, tell) {
                self.jobs.insert(*handle, waiting);
            }
        }
    }

    /// All that has come.
    pub(super) fn take(&mut self) -> Inbox {
        let mut bytes = [0; 256];
        while matches!(self.ours.read(&mut bytes), Ok(1..)) {}
        std::mem::take(&mut *self.sender.inbox.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
