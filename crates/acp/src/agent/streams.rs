//! Sends a job's lines to the client, from its start to its final update.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use outlast_job::client::{Given, Lines, Pace};
use outlast_job::registry::format::Info;
use outlast_job::{Failure, Handle, Job};

use super::{Client, lock};
use crate::showing::{ReadWith, View};
use crate::shown::Place;

/// The tool call of a job.
pub(super) fn call_id(job: Handle) -> String {
    format!("job-{job}")
}

/// A job whose lines are being sent.
pub(super) struct Streaming {
    thread: JoinHandle<()>,
    background: Arc<AtomicBool>,
}

impl Streaming {
    /// The turn no longer waits for the job: what it prints from now on is a stream in the background.
    pub(super) fn to_background(&self) {
        self.background.store(true, Ordering::Relaxed);
    }

    /// Waits until the final update was sent.
    pub(super) fn join(self) {
        let _ = self.thread.join();
    }
}

/// Shows a job as a tool call and sends its lines, until it has ended, in a thread of its own.
pub(super) fn show(client: &Client, job: Job, info: &Info, background: bool) -> Streaming {
    let terminals = client.shared.terminals.load(Ordering::Relaxed);
    let view = View::new(call_id(info.handle), info, terminals, ReadWith::Slash);
    client.send(view.started());
    client.session.shown.begin(job.handle(), view.id());
    start(client, job, view, &Place::default(), background)
}

/// Like [`show`], for a job that was started earlier; does nothing if it is already shown.
pub(super) fn begin(client: &Client, job: Job) {
    if let Ok(info) = job.info()
        && !is_shown(client, &job)
    {
        drop(show(client, job, &info, true));
    }
}

/// Goes on with a tool call that the client knows; does nothing if its lines are being sent.
pub(super) fn go_on(client: &Client, job: Job, place: &Place) {
    if let Ok(info) = job.info()
        && !is_shown(client, &job)
    {
        let terminals = client.shared.terminals.load(Ordering::Relaxed);
        let mut view = View::new(place.call.clone(), &info, terminals, ReadWith::Slash);
        view.goes_on();
        drop(start(client, job, view, place, true));
    }
}

fn is_shown(client: &Client, job: &Job) -> bool {
    lock(&client.session.streaming).contains(&job.handle())
}

fn start(client: &Client, job: Job, view: View, from: &Place, background: bool) -> Streaming {
    lock(&client.session.streaming).push(job.handle());
    let background = Arc::new(AtomicBool::new(background));
    let (client, in_background, from) = (client.clone(), Arc::clone(&background), from.clone());
    let thread = std::thread::spawn(move || stream(&client, &job, view, &from, &in_background));
    Streaming { thread, background }
}

fn stream(client: &Client, job: &Job, mut view: View, from: &Place, background: &AtomicBool) {
    let drawn = client.shared.terminals.load(Ordering::Relaxed);
    let pace = Pace { drawn, stderr_from: from.stderr, ..Pace::default() };
    let shown = &client.session.shown;
    let give = |lines: &Lines| {
        if client.session.closed.load(Ordering::Relaxed) {
            Given::Stop
        } else if !client.has_room() {
            Given::Busy
        } else {
            client.send(view.batch(lines, background.load(Ordering::Relaxed)));
            shown.sent(job.handle(), lines);
            Given::Taken
        }
    };
    let ended: Result<Option<Info>, Failure> = job.stream_lines(from.output, &pace, give);
    match ended {
        // One thread sends both, so the last line is always before the end.
        Ok(Some(info)) => {
            client.send(view.ended(&info));
            shown.ended(job.handle());
        }
        Ok(None) => {}
        Err(failure) => {
            client.say(format!("The output of job {} can't be followed: {failure}", job.handle()))
        }
    }
    lock(&client.session.streaming).retain(|handle| *handle != job.handle());
}
