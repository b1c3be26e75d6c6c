//! Tells clients when a resource has changed, in both eras. A keeper says when its job prints or something
//! happens; nobody polls, and all subscriptions of a server share its one waiting thread.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use outlast_job::request::{News, Subscription};
use outlast_job::{Failure, Job, Waiting};
use rmcp::RoleServer;
use rmcp::model::{
    ErrorData, ResourceListChangedNotification, ResourceUpdatedNotification,
    ResourceUpdatedNotificationParam, ServerNotification,
};
use rmcp::service::{Peer, SubscriptionContext};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};

use crate::engine::Engine;
use crate::resources::{Part, job_of};

/// Debounce: changes that follow each other this closely are told as one.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// Stands for the list itself among the resources that are followed.
const LIST: &str = "";

/// The subscriptions of one connection.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    /// What tells of each resource.
    running: Mutex<HashMap<String, AbortHandle>>,
    /// What tells of the list.
    list: Mutex<Option<AbortHandle>>,
}

/// Follows the list of jobs once for all connections of a server, from the first that wants to know.
#[derive(Debug, Default)]
pub(crate) struct JobList(Mutex<Option<(Waiting, watch::Receiver<()>)>>);

impl JobList {
    /// From now on, each change of the list.
    fn follow(&self, engine: &Engine) -> Result<watch::Receiver<()>, ErrorData> {
        let mut followed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, changes)) = &*followed {
            let mut changes = changes.clone();
            changes.mark_unchanged();
            return Ok(changes);
        }
        let (tell, told) = watch::channel(());
        let waiting = engine.outlast.subscribe(&Subscription::JobList, move |_| tell.send(()).is_ok());
        *followed = Some((waiting.map_err(|failure| failed(&failure))?, told.clone()));
        Ok(told)
    }
}

fn failed(failure: &Failure) -> ErrorData {
    ErrorData::internal_error(failure.to_string(), None)
}

/// Waits for the next change of the list; false when there will be none.
async fn list_changed(changes: &mut watch::Receiver<()>) -> bool {
    if changes.changed().await.is_err() {
        return false;
    }
    tokio::time::sleep(DEBOUNCE).await;
    changes.mark_unchanged();
    true
}

impl Subscriptions {
    /// Begins to tell a client of the older era about a resource.
    pub(crate) fn begin(&self, engine: &Engine, uri: &str, peer: Peer<RoleServer>) -> Result<(), ErrorData> {
        let (job, part) = job_of(engine, uri)?;
        let mut changes = follow(engine, &job, part)?;
        let told = uri.to_owned();
        let task = tokio::spawn(async move {
            while changes.next().await {
                let update = ResourceUpdatedNotificationParam::new(told.clone());
                if peer.notify_resource_updated(update).await.is_err() {
                    break;
                }
            }
        });
        let before = self.lock().insert(uri.to_owned(), task.abort_handle());
        if let Some(before) = before {
            before.abort();
        }
        Ok(())
    }

    /// Begins to tell a client of the older era when jobs appear or are removed.
    pub(crate) fn begin_list(&self, engine: &Engine, peer: Peer<RoleServer>) -> Result<(), ErrorData> {
        let mut changes = engine.job_list.follow(engine)?;
        let task = tokio::spawn(async move {
            while list_changed(&mut changes).await {
                if peer.notify_resource_list_changed().await.is_err() {
                    break;
                }
            }
        });
        self.tell_list_by(Some(task.abort_handle()));
        Ok(())
    }

    fn tell_list_by(&self, task: Option<AbortHandle>) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = std::mem::replace(&mut *list, task) {
            before.abort();
        }
    }

    /// Stops telling it. Not having told it is not an error.
    pub(crate) fn end(&self, uri: &str) {
        if let Some(task) = self.lock().remove(uri) {
            task.abort();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, AbortHandle>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        for task in self.lock().values() {
            task.abort();
        }
        self.tell_list_by(None);
    }
}

/// Tells a client of the newer era about its resources until it hangs up.
pub(crate) async fn listen(engine: &Engine, context: SubscriptionContext) -> Result<(), ErrorData> {
    let (tell, mut told) = mpsc::channel::<String>(16);
    // Dropped at the end, which ends all of them.
    let mut tasks = JoinSet::new();
    if context.accepted().resources_list_changed == Some(true) {
        let mut changes = engine.job_list.follow(engine)?;
        let tell = tell.clone();
        tasks.spawn(async move {
            while list_changed(&mut changes).await && tell.send(LIST.to_owned()).await.is_ok() {}
        });
    }
    for uri in context.accepted().resource_subscriptions.iter().flatten() {
        let (job, part) = job_of(engine, uri)?;
        let mut changes = follow(engine, &job, part)?;
        let (tell, uri) = (tell.clone(), uri.clone());
        tasks.spawn(async move { while changes.next().await && tell.send(uri.clone()).await.is_ok() {} });
    }
    loop {
        tokio::select! {
            () = context.cancelled() => break,
            // We hold a sender ourselves, so this never ends by itself.
            Some(uri) = told.recv() => {
                let update = if uri == LIST {
                    ServerNotification::ResourceListChangedNotification(ResourceListChangedNotification::default())
                } else {
                    let params = ResourceUpdatedNotificationParam::new(uri);
                    ServerNotification::ResourceUpdatedNotification(ResourceUpdatedNotification::new(params))
                };
                if context.sink().send(update).await.is_err() {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// The changes of one resource, until its job is over.
struct Changes {
    told: mpsc::Receiver<()>,
    _waiting: Waiting,
}

impl Changes {
    /// Waits for the next change; false when there will be none.
    async fn next(&mut self) -> bool {
        if self.told.recv().await.is_none() {
            return false;
        }
        tokio::time::sleep(DEBOUNCE).await;
        while self.told.try_recv().is_ok() {}
        true
    }
}

fn follow(engine: &Engine, job: &Job, part: Part) -> Result<Changes, ErrorData> {
    let (tell, told) = mpsc::channel(1);
    let mut first = true;
    let waiting = engine.outlast.subscribe(&Subscription::Job { job: job.handle() }, move |news| {
        let changed = match news {
            // The first only says how things are.
            News::Grown(_) => part != Part::Events && !std::mem::take(&mut first),
            News::Event(_) | News::Over => true,
            News::Changed | News::Attached(_) => false,
        };
        // A client that is slow to listen is told once of all that happened meanwhile.
        !changed || !matches!(tell.try_send(()), Err(mpsc::error::TrySendError::Closed(())))
    });
    Ok(Changes { told, _waiting: waiting.map_err(|failure| failed(&failure))? })
}
