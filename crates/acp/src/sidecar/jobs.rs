//! The jobs of a conversation, shown to the editor as tool calls of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agent_client_protocol::v1::schema::{SessionNotification, SessionUpdate};
use outlast_job::client::{Given, Lines, Pace};
use outlast_job::registry::Home;
use outlast_job::registry::layout::JOBS;
use outlast_job::{Failure, Handle, Job};
use serde_json::json;

use super::queue::Queue;
use crate::showing::{ReadWith, View};

/// Keeps our tool calls apart from the agent's own.
const PREFIX: &str = "outlast-job-";

/// Sends a job's lines to the editor until it has ended, in a thread of its own.
pub(crate) fn follow(job: Job, session: String, terminals: bool, editor: Queue, closed: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let Ok(info) = job.until_started() else { return };
        let mut view = View::new(format!("{PREFIX}{}", info.handle), &info, terminals, ReadWith::CommandLine);
        let send = |update: SessionUpdate| {
            let params = SessionNotification::new(session.clone(), update);
            let message = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
            editor.push(format!("{message}\n").into_bytes());
        };
        send(view.started());
        let pace = Pace { drawn: terminals, ..Pace::default() };
        let ended = job.stream_lines(0, &pace, |lines: &Lines| {
            if closed.load(Ordering::Relaxed) {
                return Given::Stop;
            }
            if !editor.has_room() {
                return Given::Busy;
            }
            send(view.batch(lines, true));
            Given::Taken
        });
        if let Ok(Some(info)) = ended
            && !closed.load(Ordering::Relaxed)
        {
            send(view.ended(&info));
        }
    });
}

/// Reports every job that is started in a home from now on, in a thread of its own.
///
/// # Errors
/// If the user has no inotify instances left.
#[cfg(target_os = "linux")]
pub(crate) fn watch(home: &Home, tell: impl Fn(Handle) -> bool + Send + 'static) -> Result<(), Failure> {
    use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};
    let broken = |error| Failure::system("new jobs can't be followed", error);
    let inotify = init(CreateFlags::CLOEXEC).map_err(broken)?;
    // A job's folder is renamed to its number when it is complete.
    add_watch(&inotify, home.path().join(JOBS), WatchFlags::MOVED_TO | WatchFlags::CREATE).map_err(broken)?;
    std::thread::spawn(move || {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut events = Reader::new(inotify, &mut buffer);
        while let Ok(event) = events.next() {
            let handle = event.file_name().and_then(|name| name.to_str().ok()?.parse().ok());
            if let Some(handle) = handle
                && !tell(Handle::new(handle))
            {
                return;
            }
        }
    });
    Ok(())
}

/// On other systems the folder is polled twice a second.
#[cfg(not(target_os = "linux"))]
pub(crate) fn watch(home: &Home, tell: impl Fn(Handle) -> bool + Send + 'static) -> Result<(), Failure> {
    let home = Home::open(home.path())?;
    std::thread::spawn(move || {
        let mut known = home.handles();
        loop {
            std::thread::sleep(std::time::Duration::from_millis(500));
            let now = home.handles();
            if !now.iter().filter(|handle| !known.contains(handle)).all(|handle| tell(*handle)) {
                return;
            }
            known = now;
        }
    });
    Ok(())
}
