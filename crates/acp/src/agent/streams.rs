//! Sends a job's lines to the client, from its start to its final update.

use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use outlast_job::client::{Given, Lines, Pace};
use outlast_job::registry::format::Info;
use outlast_job::{Failure, Job};

use super::{Client, lock};
use crate::showing::View;

/// The prefix of our tool calls.
pub(super) const PREFIX: &str = "job-";

/// Shows a job as a tool call and sends its lines, until it has ended, in a thread of its own.
pub(super) fn show(client: &Client, job: Job, info: &Info) -> JoinHandle<()> {
    let terminals = client.shared.terminals.load(Ordering::Relaxed);
    let view = View::new(PREFIX, info, terminals);
    client.send(view.started());
    lock(&client.session.streaming).push(job.handle());
    let client = client.clone();
    std::thread::spawn(move || stream(&client, &job, view))
}

/// Like [`show`], for a job that was started earlier; does nothing if it is already shown.
pub(super) fn begin(client: &Client, job: Job) {
    let already = lock(&client.session.streaming).contains(&job.handle());
    if let Ok(info) = job.info()
        && !already
    {
        drop(show(client, job, &info));
    }
}

fn stream(client: &Client, job: &Job, mut view: View) {
    let pace = Pace { drawn: client.shared.terminals.load(Ordering::Relaxed), ..Pace::default() };
    let give = |lines: &Lines| {
        if client.session.closed.load(Ordering::Relaxed) {
            Given::Stop
        } else if !client.has_room() {
            Given::Busy
        } else {
            client.send(view.batch(lines));
            Given::Taken
        }
    };
    let ended: Result<Option<Info>, Failure> = job.stream_lines(0, &pace, give);
    match ended {
        // One thread sends both, so the last line is always before the end.
        Ok(Some(info)) => client.send(view.ended(&info)),
        Ok(None) => {}
        Err(failure) => {
            client.say(format!("The output of job {} can't be followed: {failure}", job.handle()))
        }
    }
    lock(&client.session.streaming).retain(|handle| *handle != job.handle());
}
