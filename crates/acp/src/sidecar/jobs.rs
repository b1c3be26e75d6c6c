//! The jobs of a conversation, shown to the editor: in the agent's call that started each, or as tool calls of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agent_client_protocol::v1::schema::{SessionNotification, SessionUpdate};
use outlast_job::client::{Given, Lines, Pace};
use outlast_job::registry::Home;
use outlast_job::registry::layout::JOBS;
use outlast_job::{Failure, Handle, Job};
use serde_json::json;

use super::calls::{Decision, Held, ShownAs};
use super::queue::Queue;
use crate::showing::{ReadWith, View};
use crate::shown::{Place, Shown};

/// Keeps our tool calls apart from the agent's own.
const PREFIX: &str = "outlast-job-";

/// The editor's side of a session, for a thread that shows a job there.
#[derive(Clone, Debug)]
pub(crate) struct ToEditor {
    pub(crate) session: String,
    pub(crate) queue: Queue,
    pub(crate) closed: Arc<AtomicBool>,
    /// The editor shows terminals that it does not own.
    pub(crate) terminals: bool,
    pub(crate) shown: Arc<Shown>,
    pub(crate) held: Held,
}

impl ToEditor {
    fn send(&self, update: SessionUpdate) {
        let params = SessionNotification::new(self.session.clone(), update);
        let message = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
        self.queue.push(format!("{message}\n").into_bytes());
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }
}

/// How a job is shown.
#[derive(Debug)]
pub(crate) enum Begin {
    /// From its start, where that is decided.
    Anew(Arc<Decision>),
    /// In a call that the editor knows, from where it was.
    GoOn(Place),
}

/// Sends a job's lines to the editor until it has ended, in a thread of its own.
pub(crate) fn follow(job: Job, editor: ToEditor, begin: Begin) {
    std::thread::spawn(move || {
        let Ok(info) = job.until_started() else { return };
        let view = |id: String, terminal| View::new(id, &info, terminal, ReadWith::CommandLine);
        let shown = match &begin {
            Begin::GoOn(_) => None,
            Begin::Anew(decision) => Some(decision.wait()),
        };
        let (view, from) = match (shown, &begin) {
            (Some(ShownAs::Nothing), _) => return,
            (Some(ShownAs::Own), _) | (None, Begin::Anew(_)) => {
                let view = view(format!("{PREFIX}{}", info.handle), editor.terminals);
                editor.send(view.started());
                editor.shown.begin(job.handle(), view.id());
                (view, Place::default())
            }
            // The call is the agent's: what it looks like is not ours to change.
            (Some(ShownAs::AgentsCall(call)), _) => {
                editor.shown.begin(job.handle(), &call);
                (view(call, false), Place::default())
            }
            (None, Begin::GoOn(place)) => {
                let own = place.call.starts_with(PREFIX);
                let mut view = view(place.call.clone(), own && editor.terminals);
                view.goes_on();
                (view, place.clone())
            }
        };
        stream(&job, &editor, view, &from, &begin);
    });
}

fn stream(job: &Job, editor: &ToEditor, mut view: View, from: &Place, begin: &Begin) {
    let pace = Pace { drawn: editor.terminals, stderr_from: from.stderr, ..Pace::default() };
    let ended = job.stream_lines(from.output, &pace, |lines: &Lines| {
        if editor.is_closed() {
            return Given::Stop;
        }
        if !editor.queue.has_room() {
            return Given::Busy;
        }
        let background = match begin {
            Begin::Anew(decision) => decision.is_background(),
            Begin::GoOn(_) => true,
        };
        editor.send(view.batch(lines, background));
        editor.shown.sent(job.handle(), lines);
        Given::Taken
    });
    if let Ok(Some(info)) = ended
        && !editor.is_closed()
    {
        editor.send(view.ended(&info));
        editor.held.release(view.id());
        editor.shown.ended(job.handle());
    }
}

/// Reports every job that is started in a home from now on, in a thread of its own.
///
/// # Errors
/// If the user has no inotify instances left.
#[cfg(all(target_os = "linux", not(outlast_portable)))]
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
#[cfg(any(not(target_os = "linux"), outlast_portable))]
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
