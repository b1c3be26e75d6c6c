//! Asks many keepers at once how their jobs are: as long as the slowest takes, and not longer than one deadline.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::connection::{Connection, Read};
use crate::registry::{Home, JobDir};
use crate::spec::Handle;
use crate::wire::brief_status::BriefStatus;
use crate::wire::{self, Line, Verb};

/// How long a list of jobs waits for keepers: one that does not answer must not keep the list from anyone.
pub(crate) const LIST_TIMEOUT: Duration = Duration::from_secs(1);
/// So many are asked at a time: a process may not open many more files.
const MAX_OPEN: usize = 256;

/// What became of a question.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The keeper says how the job is.
    Here(Box<BriefStatus>),
    /// The job has no keeper any more.
    Nobody,
    /// It has not answered in time, or nothing that makes sense.
    Silent,
}

/// Questions to many keepers, by the places that the answers are for. All are asked before the first is listened to. Then
/// each is listened to in turn: what the others say meanwhile is kept for us, so this costs no more than a look at each.
#[derive(Default)]
pub(crate) struct StatusPoll {
    asked: Vec<(usize, Asked)>,
    answered: Vec<(usize, Answer)>,
}

impl StatusPoll {
    /// Asks one more.
    pub(crate) fn ask(&mut self, home: &Home, place: usize, job: Handle, until: Instant) {
        if self.asked.len() >= MAX_OPEN {
            self.listen(until);
        }
        self.asked.push((place, home.job(job).map_or(Asked::Done(Answer::Nobody), ask)));
    }

    fn listen(&mut self, until: Instant) {
        let answers = self.asked.drain(..).map(|(place, one)| (place, listen(one, until)));
        self.answered.extend(answers);
    }

    /// What all of them say, those that have said it in time.
    pub(crate) fn answers(mut self, until: Instant) -> Vec<(usize, Answer)> {
        self.listen(until);
        self.answered
    }
}

/// A question that is asked, or already answered.
enum Asked {
    Waiting(JobDir, Connection),
    Done(Answer),
}

/// Knocks and asks, without waiting for the answer.
fn ask(job: JobDir) -> Asked {
    loop {
        match Connection::open(&job) {
            Ok(Some(mut connection)) => {
                // A keeper that dies between the two leaves the socket to its heir: knock again then.
                if connection.request(1, &Verb::Status { brief: true }).is_ok() {
                    return Asked::Waiting(job, connection);
                }
            }
            Ok(None) => return Asked::Done(Answer::Nobody),
            Err(_) => return Asked::Done(Answer::Silent),
        }
    }
}

/// Waits for the answer, until the deadline.
fn listen(mut one: Asked, until: Instant) -> Answer {
    loop {
        let (job, mut connection) = match one {
            Asked::Done(answer) => return answer,
            Asked::Waiting(job, connection) => (job, connection),
        };
        one = match connection.read_now() {
            Ok(Read::Line(line)) => match *line {
                Line::Reply(reply) => Asked::Done(match reply.answer {
                    wire::Answer::BriefStatus(glance) => Answer::Here(glance),
                    wire::Answer::Status(status) => Answer::Here(Box::new(BriefStatus::from(*status))),
                    _ => Answer::Silent,
                }),
                Line::Grown(_) | Line::Event(_) => Asked::Waiting(job, connection),
            },
            Ok(Read::Nothing) if wait(&connection, until) => Asked::Waiting(job, connection),
            Ok(Read::Closed) if Instant::now() < until => ask(job),
            Ok(Read::Nothing | Read::Closed) | Err(_) => Asked::Done(Answer::Silent),
        }
    }
}

/// Waits until there is something to hear; false when the time is up.
fn wait(connection: &Connection, until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return false;
    }
    let left =
        Timespec { tv_sec: left.as_secs().min(1 << 30).cast_signed(), tv_nsec: left.subsec_nanos().into() };
    let _ = poll(&mut [PollFd::from_borrowed_fd(connection.as_fd(), PollFlags::IN)], Some(&left));
    true
}
