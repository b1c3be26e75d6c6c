//! Ends or signals a job, also when its keeper is stopped or does not answer.
//!
//! A job can stop its own keeper (`kill -STOP $PPID`). So a stopped keeper is continued, and if there is still no
//! answer, the job's processes are signalled from here.

use std::time::{Duration, Instant};

use outlast_protocol::near::nearest;
use outlast_pty::procfs::{self, Proc};
use outlast_pty::signal;
use rustix::process::{Pid, Signal, getpid};

use super::connection::{Answered, Connection, RequestKey};
use super::{LocalJob, REPLY_TIMEOUT, leftover, unexpected};
use crate::failure::Failure;
use crate::keeper::nested::without_nested_jobs;
use crate::lifecycle::{self, State};
use crate::wire::{Answer, Killed, Verb, Wait};

/// A keeper that does not even greet for so long counts as unresponsive.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);
/// How often we look whether the keeper was stopped while it is asked.
const LOOK_EVERY: Duration = Duration::from_millis(100);

const CONTINUED: &str = "its keeper was stopped, and was continued first";
const SIGNALLED: &str = "its keeper did not answer, so its processes were signalled directly";

/// What came of asking a keeper.
enum Asked {
    Answered { answer: Box<Answer>, continued: bool },
    NoKeeper,
    Silent,
}

impl LocalJob {
    /// Ends the job and all that it started: `SIGTERM`, and `SIGKILL` after the grace. That it has already ended
    /// is not an error. What is left of a lost job is found and ended too.
    ///
    /// # Errors
    /// When the keeper can't be reached, or refuses.
    pub(crate) fn kill(&self, grace: Duration, session: &str) -> Result<Killed, Failure> {
        let verb = Verb::Kill { grace_ms: crate::clock::millis(grace), session: session.into() };
        let until = Instant::now() + grace + REPLY_TIMEOUT;
        let killed = loop {
            match self.ask_urgently(&verb, grace + REPLY_TIMEOUT)? {
                Asked::Answered { answer, continued } => break killed(*answer, continued)?,
                // One that was killed has closed its socket, and not yet all it holds; or its heir is on the way.
                Asked::NoKeeper if self.info()?.state.is_live() && Instant::now() < until => {
                    std::thread::sleep(LOOK_EVERY);
                }
                Asked::NoKeeper => return self.kill_without_keeper(grace),
                Asked::Silent => break self.kill_directly(grace),
            }
        };
        self.wait_for_receipt();
        Ok(killed)
    }

    /// Sends one signal to every process of the job.
    ///
    /// # Errors
    /// [`Kind::Usage`](crate::Kind::Usage) for an unknown signal; when the keeper can't be reached, or refuses.
    pub(crate) fn signal(&self, signal: &str, session: &str) -> Result<Killed, Failure> {
        let verb = Verb::Signal { signal: signal.into(), session: session.into() };
        match self.ask_urgently(&verb, REPLY_TIMEOUT)? {
            Asked::Answered { answer, continued } => killed(*answer, continued),
            Asked::NoKeeper => Ok(Killed { already_ended: true, ..Killed::default() }),
            Asked::Silent => {
                let signal = signal_named(signal)?;
                let signalled = leftover::signal_all(&self.members(), signal);
                Ok(Killed { signalled, note: Some(SIGNALLED.into()), ..Killed::default() })
            }
        }
    }

    /// Without a keeper there is either nothing left, or what a lost job left.
    fn kill_without_keeper(&self, grace: Duration) -> Result<Killed, Failure> {
        match self.info()? {
            info if matches!(info.state, State::Lost { .. }) => Ok(leftover::end(&info, grace)),
            _ => Ok(Killed { already_ended: true, ..Killed::default() }),
        }
    }

    fn kill_directly(&self, grace: Duration) -> Killed {
        let signalled = leftover::end_all(|| self.members(), grace);
        self.continue_keeper();
        let survivors = self.members().into_iter().map(lifecycle::process).collect();
        Killed { signalled, survivors, already_ended: false, unseen: false, note: Some(SIGNALLED.into()) }
    }

    /// A keeper that is done leaves at once; the record is complete when it has.
    fn wait_for_receipt(&self) {
        if let Ok(info) = self.info()
            && info.state.is_live()
        {
            let _ = self.wait(&Wait::for_exit(), Some(Duration::from_secs(1)));
        }
    }

    /// Asks over a connection of its own, and keeps the keeper awake meanwhile: it may be stopped at any moment.
    fn ask_urgently(&self, verb: &Verb, patience: Duration) -> Result<Asked, Failure> {
        let began = Instant::now();
        if self.foreign_namespace().is_some() && self.keeper_process().is_some() {
            return Ok(Asked::Silent);
        }
        let mut continued = false;
        let key = RequestKey::new();
        let mut again = None;
        loop {
            continued |= self.continue_keeper();
            let Some(mut connection) = again.take().or(Connection::open(&self.open.dir)?) else {
                return Ok(Asked::NoKeeper);
            };
            if connection.ask(verb, &key).is_err() {
                continue;
            }
            loop {
                match connection.answer(Instant::now() + LOOK_EVERY)? {
                    Answered::With(answer) => {
                        let answer = Box::new(self.unless_unknown(*answer, verb)?);
                        return Ok(Asked::Answered { answer, continued });
                    }
                    // A keeper that has not even greeted has read nothing.
                    Answered::Closed if !connection.is_greeted() => break,
                    Answered::Closed => {
                        again = self.connect_again(verb, began + patience)?;
                        if again.is_none() {
                            return Ok(Asked::NoKeeper);
                        }
                        break;
                    }
                    Answered::Late => continued |= self.continue_keeper(),
                }
                let limit = if connection.is_greeted() { patience } else { GREETING_TIMEOUT };
                if began.elapsed() >= limit {
                    return Ok(Asked::Silent);
                }
            }
            // Its heir comes, or a keeper of an older version has no place for us.
            if began.elapsed() >= patience {
                return Ok(Asked::Silent);
            }
        }
    }

    /// The namespace of processes that the keeper lives in, if it is not ours: it was started from inside a job that has its own.
    /// Such a keeper can't see who we are, and does not listen to us.
    fn foreign_namespace(&self) -> Option<u64> {
        let of_keeper = self.record().ok()?.pid_namespace?;
        procfs::pid_namespace().filter(|ours| *ours != of_keeper).map(|_| of_keeper)
    }

    /// The keeper's process, by pid and start time.
    fn keeper_process(&self) -> Option<Proc> {
        let known = self.record().ok()?.keeper.clone()?;
        let process = match self.foreign_namespace() {
            Some(namespace) => procfs::find_in(namespace, known.pid, known.started)?,
            None => Pid::from_raw(known.pid).and_then(procfs::stat)?,
        };
        (process.start_time == known.started && process.is_alive()).then_some(process)
    }

    /// Continues a stopped keeper; true if it was one.
    fn continue_keeper(&self) -> bool {
        let stopped = self.keeper_process().filter(|keeper| keeper.state == procfs::State::Stopped);
        stopped.is_some_and(|keeper| signal::send(&keeper, Signal::CONT).is_ok())
    }

    /// The living processes of the job, as far as they can be told from outside: all below its keeper but other jobs,
    /// and but us, should we run in it.
    fn members(&self) -> Vec<Proc> {
        let below = self.keeper_process().map(|keeper| procfs::descendants(keeper.pid));
        let mut members = without_nested_jobs(below.unwrap_or_default());
        members.retain(|process| process.pid != getpid());
        members
    }
}

fn killed(answer: Answer, continued: bool) -> Result<Killed, Failure> {
    match answer {
        Answer::Killed(killed) => {
            let notes: Vec<String> =
                continued.then(|| CONTINUED.into()).into_iter().chain(killed.note).collect();
            Ok(Killed { note: (!notes.is_empty()).then(|| notes.join("; ")), ..killed })
        }
        other => Err(unexpected(&other)),
    }
}

/// The signal of a name or a number.
pub(crate) fn signal_named(name: &str) -> Result<Signal, Failure> {
    signal::parse(name).ok_or_else(|| {
        let upper = name.trim().to_ascii_uppercase();
        let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
        let near = nearest(bare, signal::names()).map(|near| format!("did you mean {near}? "));
        let known = signal::names().join(", ");
        Failure::usage(format!("there is no signal {name:?}"))
            .hint(format!("{}known: {known}", near.unwrap_or_default()))
    })
}
