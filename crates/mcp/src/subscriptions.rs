//! Tells clients when a resource has changed, in both eras. A keeper says when its job prints or something
//! happens; nobody polls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use outlast_job::Job;
use outlast_job::client::follow::News;
use outlast_job::outbox::follow::Changes;
use rmcp::RoleServer;
use rmcp::model::{
    ErrorData, ResourceListChangedNotification, ResourceUpdatedNotification,
    ResourceUpdatedNotificationParam, ServerNotification,
};
use rmcp::service::{Peer, SubscriptionContext};
use rustix::event::{PollFd, PollFlags, poll};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use crate::engine::Engine;
use crate::resources::{Part, job_of};
use crate::watch::Watch;

/// Changes that follow each other this closely are told as one.
const BATCH: Duration = Duration::from_millis(200);

/// Stands for the list itself among the resources that are followed.
const LIST: &str = "";

/// The subscriptions of one connection, by resource.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    running: Mutex<HashMap<String, Arc<Watch>>>,
    /// What tells of the list.
    list: Mutex<Option<AbortHandle>>,
}

/// Follows the list of jobs once for all connections of a server, from the first that wants to know: the kernel gives a
/// user few watchers of folders.
#[derive(Debug, Default)]
pub(crate) struct JobList(Mutex<Option<watch::Receiver<()>>>);

impl JobList {
    /// From now on, each change of the list.
    fn follow(&self, engine: &Engine) -> Result<watch::Receiver<()>, ErrorData> {
        let mut followed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(changes) = &*followed {
            let mut changes = changes.clone();
            changes.mark_unchanged();
            return Ok(changes);
        }
        let failed = |failure: outlast_job::Failure| ErrorData::internal_error(failure.to_string(), None);
        let jobs = Changes::of_jobs(engine.outlast.home()).map_err(failed)?;
        let (tell, told) = watch::channel(());
        std::thread::Builder::new()
            .name("follow jobs".into())
            .spawn(move || {
                loop {
                    jobs.wait_for_change();
                    if tell.send(()).is_err() {
                        return;
                    }
                    // Jobs that come together are told as one change.
                    std::thread::sleep(BATCH);
                }
            })
            .map_err(|error| ErrorData::internal_error(format!("cannot start a thread: {error}"), None))?;
        Ok(followed.insert(told).clone())
    }
}

impl Subscriptions {
    /// Begins to tell a client of the older era about a resource.
    pub(crate) fn begin(&self, engine: &Engine, uri: &str, peer: Peer<RoleServer>) -> Result<(), ErrorData> {
        let (job, part) = job_of(engine, uri)?;
        let (watch, mut changes) = follow(job, part)?;
        let before = self.lock().insert(uri.to_owned(), watch);
        if let Some(before) = before {
            before.stop();
        }
        let uri = uri.to_owned();
        tokio::spawn(async move {
            while changes.recv().await.is_some() {
                if peer
                    .notify_resource_updated(ResourceUpdatedNotificationParam::new(uri.clone()))
                    .await
                    .is_err()
                {
                    break;
                }
            }
        });
        Ok(())
    }

    /// Begins to tell a client of the older era when jobs appear or are removed.
    pub(crate) fn begin_list(&self, engine: &Engine, peer: Peer<RoleServer>) -> Result<(), ErrorData> {
        let mut changes = engine.job_list.follow(engine)?;
        let task = tokio::spawn(async move {
            while changes.changed().await.is_ok() {
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

    /// Stops telling it. That nobody was told is no error.
    pub(crate) fn end(&self, uri: &str) {
        if let Some(watch) = self.lock().remove(uri) {
            watch.stop();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Watch>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        for watch in self.lock().values() {
            watch.stop();
        }
        self.tell_list_by(None);
    }
}

/// Tells a client of the newer era about its resources until it hangs up.
pub(crate) async fn listen(engine: &Engine, context: SubscriptionContext) -> Result<(), ErrorData> {
    let (tell, mut told) = mpsc::channel::<String>(16);
    let mut watches = Vec::new();
    if context.accepted().resources_list_changed == Some(true) {
        let mut changes = engine.job_list.follow(engine)?;
        let tell = tell.clone();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    changed = changes.changed() => {
                        if changed.is_err() || tell.send(LIST.to_owned()).await.is_err() {
                            break;
                        }
                    }
                    () = tell.closed() => break,
                }
            }
        });
    }
    for uri in context.accepted().resource_subscriptions.iter().flatten() {
        let (job, part) = job_of(engine, uri)?;
        let (watch, changes) = follow(job, part)?;
        watches.push(watch);
        pass_on(changes, tell.clone(), uri.clone());
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
    for watch in watches {
        watch.stop();
    }
    Ok(())
}

/// Passes changes on under a name.
fn pass_on(mut changes: mpsc::Receiver<()>, tell: mpsc::Sender<String>, name: String) {
    tokio::spawn(async move {
        while changes.recv().await.is_some() {
            if tell.send(name.clone()).await.is_err() {
                break;
            }
        }
    });
}

/// Follows a job in a thread of its own; each message is a change. Ends when the job is over or the watch stops it.
fn follow(job: Job, part: Part) -> Result<(Arc<Watch>, mpsc::Receiver<()>), ErrorData> {
    let watch = Watch::new().map_err(|failure| ErrorData::internal_error(failure.to_string(), None))?;
    let watch = Arc::new(watch);
    let (tell, told) = mpsc::channel(1);
    let stop = Arc::clone(&watch);
    std::thread::Builder::new()
        .name(format!("follow {}", job.handle()))
        .spawn(move || follow_until(&job, part, &stop, &tell))
        .map_err(|error| ErrorData::internal_error(format!("no thread can be had: {error}"), None))?;
    Ok((watch, told))
}

fn follow_until(job: &Job, part: Part, stop: &Watch, tell: &mpsc::Sender<()>) {
    let Ok(mut follower) = job.follow() else { return };
    let mut first = true;
    while let Some(fd) = follower.fd() {
        let mut fds = [
            PollFd::from_borrowed_fd(fd, PollFlags::IN),
            PollFd::from_borrowed_fd(stop.bell(), PollFlags::IN),
        ];
        if poll(&mut fds, None).is_err() || !fds[1].revents().is_empty() {
            return;
        }
        let began = Instant::now();
        let mut changed = false;
        let mut over = false;
        loop {
            match follower.next(Some(began + BATCH)) {
                // The first line only says how things are.
                Ok(Some(News::Grown(_))) => changed |= part != Part::Events && !std::mem::take(&mut first),
                Ok(Some(News::Event(_))) => changed = true,
                Ok(Some(News::Over)) | Err(_) => {
                    over = true;
                    changed = true;
                    break;
                }
                Ok(None) => break,
            }
        }
        // A client that is slow to listen is told once of all that happened meanwhile.
        if changed && matches!(tell.try_send(()), Err(mpsc::error::TrySendError::Closed(()))) || over {
            return;
        }
    }
}
