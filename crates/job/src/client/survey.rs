//! Asks many keepers at once how their jobs are: as long as the slowest takes, and not longer than one deadline.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Job;
use super::connection::{Connection, Heard};
use crate::wire::{Answer, Line, Status, Verb};

/// How long a list of jobs waits for keepers: one that does not answer must not keep the list from anyone.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// So many are asked at a time: a process may not open many more files.
const AT_ONCE: usize = 256;

/// How jobs are right now, each from its keeper; none for one that has no keeper any more, or that has not answered
/// in time.
#[must_use]
pub fn statuses(jobs: &[&Job], patience: Duration) -> Vec<Option<Status>> {
    let until = Instant::now() + patience;
    jobs.chunks(AT_ONCE).flat_map(|some| ask_all(some, until)).collect()
}

enum Asked {
    Waiting(Connection),
    Done(Option<Box<Status>>),
}

fn ask_all(jobs: &[&Job], until: Instant) -> Vec<Option<Status>> {
    let mut asked: Vec<Asked> = jobs.iter().map(|job| begin(job)).collect();
    loop {
        for (one, job) in asked.iter_mut().zip(jobs) {
            advance(one, job);
        }
        let waiting = asked.iter().filter_map(|one| match one {
            Asked::Waiting(connection) => Some(PollFd::from_borrowed_fd(connection.as_fd(), PollFlags::IN)),
            Asked::Done(_) => None,
        });
        let mut waiting: Vec<PollFd<'_>> = waiting.collect();
        let left = until.saturating_duration_since(Instant::now());
        if waiting.is_empty() || left.is_zero() {
            break;
        }
        let left = Timespec {
            tv_sec: left.as_secs().min(1 << 30).cast_signed(),
            tv_nsec: left.subsec_nanos().into(),
        };
        let _ = poll(&mut waiting, Some(&left));
    }
    let status = |one| match one {
        Asked::Done(status) => status.map(|status| *status),
        Asked::Waiting(_) => None,
    };
    asked.into_iter().map(status).collect()
}

/// Knocks and asks, without waiting for the answer.
fn begin(job: &Job) -> Asked {
    while let Ok(Some(mut connection)) = Connection::open(&job.dir) {
        // A keeper that dies between the two leaves the socket to its heir: knock again then.
        if connection.request(1, &Verb::Status).is_ok() {
            return Asked::Waiting(connection);
        }
    }
    Asked::Done(None)
}

/// Takes what has come.
fn advance(one: &mut Asked, job: &Job) {
    while let Asked::Waiting(connection) = one {
        match connection.hear_now() {
            Ok(Heard::Line(line)) => match *line {
                Line::Reply(reply) => {
                    let status = match reply.answer {
                        Answer::Status(status) => Some(status),
                        _ => None,
                    };
                    *one = Asked::Done(status);
                }
                Line::Grown(_) | Line::Event(_) => {}
            },
            Ok(Heard::Nothing) => return,
            Ok(Heard::Gone) => *one = begin(job),
            Err(_) => *one = Asked::Done(None),
        }
    }
}
