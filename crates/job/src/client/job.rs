//! One job, and what can be asked of it.

use std::time::Duration;

use outlast_protocol::JobOutcome;
use outlast_protocol::request::{
    Answer, BytePart, Details, Files, Grep, JobRequest, Matches, Moment, ProcessDetail, ReadBytes, ReadText,
    Screen, Stream, Text,
};
use outlast_protocol::secret_text::SecretText;
use outlast_protocol::shell::{ShellStatus, Step, StepOrder, StepState};

use super::attach::View;
use super::follow::FollowerPlace;
use super::{Follower, Piece, Recording, Viewing};
use crate::clock::millis;
use crate::elsewhere::ElsewhereJob;
use crate::failure::{Failure, Kind};
use crate::lifecycle::Process;
use crate::local::LocalJob;
use crate::local::wait::{PendingWait, wait_any};
use crate::registry::format::Info;
use crate::spec::{Handle, Size};
use crate::wire::watch::Watch;
use crate::wire::{Attach, Hold, Killed, ScreenShot, Send, Sent, Status, Typed, Wait, Waited, base64};

/// The value of the answer that a request gets; anything else is a fault of the host.
macro_rules! answered {
    ($answer:expr, $pattern:pat => $value:expr) => {
        match $answer {
            $pattern => Ok($value),
            other => Err(Failure::new(Kind::Keeper, format!("unexpected answer from the host: {other:?}"))),
        }
    };
}

/// One job, wherever it is. Clones share what is cached of it.
#[derive(Clone, Debug)]
pub struct Job {
    pub(crate) place: Place,
}

/// The machine that a job is on.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Here(LocalJob),
    There(ElsewhereJob),
}

impl Job {
    pub(crate) fn here(job: LocalJob) -> Self {
        Self { place: Place::Here(job) }
    }

    pub(crate) fn there(job: ElsewhereJob) -> Self {
        Self { place: Place::There(job) }
    }

    /// Its handle.
    #[must_use]
    pub fn handle(&self) -> Handle {
        match &self.place {
            Place::Here(job) => job.handle(),
            Place::There(job) => job.handle(),
        }
    }

    /// Asks its host about it, or to do something to it.
    ///
    /// # Errors
    /// What is wrong with the request or the job.
    pub fn ask(&self, ask: JobRequest) -> Result<Answer, Failure> {
        match &self.place {
            Place::Here(job) => job.answer(ask),
            Place::There(job) => job.ask(ask),
        }
    }

    /// Names what will be asked after the next request, in this order. Another machine answers it along with that, which saves the time of a
    /// way there and back for each question; here it changes nothing.
    pub fn expect(&self, asks: impl IntoIterator<Item = JobRequest>) {
        match &self.place {
            Place::Here(_) => {}
            Place::There(job) => job.expect(asks.into_iter().collect()),
        }
    }

    /// From now on for an agent: secrets are hidden in all that is read.
    #[must_use]
    pub fn masked(self) -> Self {
        match self.place {
            Place::Here(job) => Self::here(job.masked()),
            Place::There(job) => Self::there(job.masked()),
        }
    }

    /// Text about this job as an agent may see it.
    ///
    /// # Errors
    /// When what must be hidden cannot be read.
    pub fn hide(&self, text: &str) -> Result<String, Failure> {
        match &self.place {
            Place::Here(job) => job.hide(text),
            Place::There(job) => {
                answered!(job.ask(JobRequest::Hide { text: text.into() })?, Answer::Hidden(text) => text)
            }
        }
    }

    /// Where its files are, to be shown.
    #[must_use]
    pub fn files(&self) -> Files {
        match self.ask(JobRequest::Files) {
            Ok(Answer::Files(files)) => files,
            _ => Files::default(),
        }
    }

    /// What it uses, and whether it is kept.
    ///
    /// # Errors
    /// When its keeper does not answer.
    pub fn details(&self) -> Result<Details, Failure> {
        answered!(self.ask(JobRequest::Details)?, Answer::Details(details) => details)
    }

    /// Keeps it whatever its age, or no longer.
    ///
    /// # Errors
    /// When its folder cannot be written.
    pub fn pin(&self, pinned: bool) -> Result<(), Failure> {
        answered!(self.ask(JobRequest::Pin { pinned })?, Answer::Done {} => ())
    }

    /// Its record, true at this moment.
    ///
    /// # Errors
    /// An unknown format, or damage; and when it is not known whether the job still runs.
    pub fn info(&self) -> Result<Info, Failure> {
        answered!(self.ask(JobRequest::Info { shown: false })?, Answer::Info(info) => *info)
    }

    /// As [`info`](Self::info), for an answer that shows it: if the job has ended, its result counts as read.
    ///
    /// # Errors
    /// As [`info`](Self::info).
    pub fn info_to_show(&self) -> Result<Info, Failure> {
        answered!(self.ask(JobRequest::Info { shown: true })?, Answer::Info(info) => *info)
    }

    /// Whether its record says that it has ended: cheaper than [`info`](Self::info), and later to know.
    #[must_use]
    pub fn has_ended_on_record(&self) -> bool {
        match &self.place {
            Place::Here(job) => job.record().is_ok_and(|info| !info.state.is_live()),
            Place::There(_) => self.info().is_ok_and(|info| !info.state.is_live()),
        }
    }

    /// The processes that it left behind, and that still run: none while it runs itself.
    #[must_use]
    pub fn left_behind(&self, info: &Info) -> Vec<Process> {
        match &self.place {
            Place::Here(_) => crate::local::leftover::find(info),
            Place::There(job) => match job.ask(JobRequest::LeftBehind) {
                Ok(Answer::LeftBehind(processes)) => processes,
                _ => Vec::new(),
            },
        }
    }

    /// How it is right now, from its keeper; none when it has no keeper any more.
    ///
    /// # Errors
    /// When the keeper does not answer.
    pub fn status(&self) -> Result<Option<Status>, Failure> {
        answered!(self.ask(JobRequest::Status)?, Answer::Status(status) => status.map(|status| *status))
    }

    /// Gives the terminal a new size.
    ///
    /// # Errors
    /// [`Kind::Usage`] for an impossible size or a job on pipes.
    pub fn resize(&self, size: Size) -> Result<(), Failure> {
        answered!(self.ask(JobRequest::Resize { size })?, Answer::Done {} => ())
    }

    /// Takes the job over, so that nobody else types into it, or gives it back.
    ///
    /// # Errors
    /// [`Kind::NotRunning`] when it has ended, [`Kind::Denied`] for a process that runs inside a job.
    pub fn hold(&self, hold: Hold) -> Result<(), Failure> {
        answered!(self.ask(JobRequest::Hold(hold))?, Answer::Done {} => ())
    }

    /// Answers what a program of the job wants to execute. `by` says who does, in words.
    ///
    /// # Errors
    /// [`Kind::Usage`] if that is not asked (any more), [`Kind::Denied`] for a process that runs inside a job.
    pub fn answer_question(&self, question: u64, allow: bool, by: &str) -> Result<(), Failure> {
        let by = by.to_owned();
        answered!(self.ask(JobRequest::AnswerQuestion { question, allow, by })?, Answer::Done {} => ())
    }

    /// Makes an event of something from now on; returns all watches.
    ///
    /// # Errors
    /// [`Kind::Usage`] for a bad pattern, [`Kind::NotRunning`] when the
    /// job has ended.
    pub fn watch(&self, watch: Watch) -> Result<Vec<Watch>, Failure> {
        answered!(self.ask(JobRequest::Watch { watch })?, Answer::Watches(watches) => watches)
    }

    /// All watches.
    ///
    /// # Errors
    /// [`Kind::NotRunning`] when the job has ended.
    pub fn watches(&self) -> Result<Vec<Watch>, Failure> {
        answered!(self.ask(JobRequest::Watches)?, Answer::Watches(watches) => watches)
    }

    /// Removes a watch; returns those that are left.
    ///
    /// # Errors
    /// [`Kind::Usage`] when there is none of that name,
    /// [`Kind::NotRunning`] when the job has ended.
    pub fn unwatch(&self, watch: &str) -> Result<Vec<Watch>, Failure> {
        let ask = JobRequest::Unwatch { watch: watch.into() };
        answered!(self.ask(ask)?, Answer::Watches(watches) => watches)
    }

    /// What the terminal shows now.
    ///
    /// # Errors
    /// [`Kind::NotRunning`] when the job has ended: see [`last_screen`](Self::last_screen).
    pub fn screen(&self, styled: bool, scrollback: usize) -> Result<ScreenShot, Failure> {
        let ask = JobRequest::Screen(Screen { at: None, styled, scrollback });
        answered!(self.ask(ask)?, Answer::Screen(screen) => *screen)
    }

    /// What the terminal showed at a moment.
    ///
    /// # Errors
    /// When the job's record cannot be read.
    pub fn screen_at(&self, at: Moment, styled: bool) -> Result<ScreenShot, Failure> {
        let ask = JobRequest::Screen(Screen { at: Some(at), styled, scrollback: 0 });
        answered!(self.ask(ask)?, Answer::Screen(screen) => *screen)
    }

    /// What the terminal of a job that has ended showed last; none where that was not saved.
    ///
    /// # Errors
    /// When what must be hidden cannot be read.
    pub fn last_screen(&self) -> Result<Option<String>, Failure> {
        answered!(self.ask(JobRequest::LastScreen)?, Answer::LastScreen(screen) => screen)
    }

    /// What its tools reported: counts, and the first errors with their places in the log. None while it runs, and where
    /// nothing is certain.
    ///
    /// # Errors
    /// When its log or what must be hidden cannot be read.
    pub fn outcome(&self) -> Result<Option<JobOutcome>, Failure> {
        answered!(self.ask(JobRequest::Outcome)?, Answer::Outcome(outcome) => outcome.map(|outcome| *outcome))
    }

    /// Its own events as they are on the disk, a JSON object a line: the newest that fit into `max` bytes.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn event_lines(&self, max: usize) -> Result<String, Failure> {
        answered!(self.ask(JobRequest::EventLines { max })?, Answer::EventLines(lines) => lines)
    }

    /// Waits until a condition holds or the time is up.
    ///
    /// # Errors
    /// A bad pattern, or a keeper that does not answer.
    pub fn wait(&self, wait: &Wait, deadline: Option<Duration>) -> Result<Waited, Failure> {
        let wait = PendingWait::new([(self.place.clone(), wait.clone())], deadline)?;
        wait_any(wait, None).map(|(_, waited)| waited)
    }

    /// The end of the log.
    #[must_use]
    pub fn log_end(&self) -> u64 {
        self.stream_end(Stream::Output)
    }

    /// A range as text, within its bound: the head and the tail.
    ///
    /// # Errors
    /// When the job's record cannot be read.
    pub fn read(&self, read: ReadText) -> Result<Text, Failure> {
        answered!(self.ask(JobRequest::ReadText(read))?, Answer::Text(text) => text)
    }

    /// The text from an offset on, at most `max` bytes of it: the head and the tail.
    ///
    /// # Errors
    /// When the job's record cannot be read.
    pub fn read_text(&self, from: u64, max: usize) -> Result<Text, Failure> {
        self.read(ReadText { from, max, ..ReadText::default() })
    }

    /// Hands out the bytes of a range in order, `read.max` of them at a time, until `each` says stop; returns where the
    /// range ends.
    ///
    /// # Errors
    /// When the job's record cannot be read.
    pub fn read_pieces(
        &self,
        mut read: ReadBytes,
        mut each: impl FnMut(Piece<'_>) -> bool,
    ) -> Result<u64, Failure> {
        loop {
            let bytes = answered!(self.ask(JobRequest::ReadBytes(read))?, Answer::Bytes(bytes) => bytes)?;
            for part in &bytes.parts {
                let piece = match part {
                    BytePart::Bytes(bytes) => Piece::Bytes(bytes),
                    BytePart::Lost { from, to } => Piece::Lost { from: *from, to: *to },
                };
                if !each(piece) {
                    return Ok(bytes.end);
                }
            }
            // Nothing more is there, whatever was expected.
            if bytes.next >= bytes.end || bytes.parts.is_empty() {
                return Ok(bytes.end);
            }
            // From here on the range is known: what is printed meanwhile is not part of it.
            (read.from, read.to, read.lines) = (bytes.next, Some(bytes.end), None);
        }
    }

    /// Where a range begins and ends, without its bytes.
    ///
    /// # Errors
    /// When the job's record cannot be read.
    pub fn borders(&self, read: ReadBytes) -> Result<(u64, u64), Failure> {
        let ask = JobRequest::ReadBytes(ReadBytes { max: 0, ..read });
        answered!(self.ask(ask)?, Answer::Bytes(bytes) => (bytes.from, bytes.end))
    }

    /// The lines of a range that match a regular expression.
    ///
    /// # Errors
    /// When the pattern is not a regular expression, or the job's record cannot be read.
    pub fn grep(&self, grep: Grep) -> Result<Matches, Failure> {
        answered!(self.ask(JobRequest::Grep(grep))?, Answer::Matches(matches) => matches)
    }

    /// Hands out the bytes of a stream in order, each piece with its offset, until `each` says stop.
    pub(super) fn pieces(
        &self,
        stream: Stream,
        from: u64,
        to: Option<u64>,
        each: impl FnMut(u64, Piece<'_>) -> bool,
    ) -> Result<(), Failure> {
        match &self.place {
            Place::Here(job) => {
                job.range(stream, from, to)?.pieces(each);
                Ok(())
            }
            Place::There(job) => job.pieces(ReadBytes { stream, from, to, ..ReadBytes::default() }, each),
        }
    }

    /// The end of one stream's log.
    pub(super) fn stream_end(&self, stream: Stream) -> u64 {
        match self.ask(JobRequest::End { stream }) {
            Ok(Answer::End(end)) => end,
            _ => 0,
        }
    }

    /// All of a range as text, without a bound, for files and pipes, until `each` says stop.
    ///
    /// The fold goes on from piece to piece: bounded answers would each begin it anew, and a program that redraws across
    /// their border would read differently.
    ///
    /// # Errors
    /// When the job's record cannot be read.
    pub fn write_text(&self, read: &ReadText, each: impl FnMut(&[u8]) -> bool) -> Result<(), Failure> {
        match &self.place {
            Place::Here(job) => {
                job.range_of(read)?.fold(each);
                Ok(())
            }
            Place::There(job) => {
                crate::local::read::text_from_elsewhere(job, self.info()?.streams, read, each)
            }
        }
    }

    /// Begins to follow.
    ///
    /// # Errors
    /// When the keeper cannot be reached.
    pub fn follow(&self) -> Result<Follower, Failure> {
        Ok(Follower::new(match &self.place {
            Place::Here(job) => FollowerPlace::Here(job.follow()?),
            Place::There(job) => FollowerPlace::There(job.follow()?),
        }))
    }

    /// Attaches a terminal to the job; none when it has no keeper any more.
    ///
    /// # Errors
    /// A job on pipes has no terminal.
    pub fn attach(&self, attach: &Attach) -> Result<Option<Viewing>, Failure> {
        let view = match &self.place {
            Place::Here(job) => job.attach(attach)?.map(View::Here),
            Place::There(job) => job.attach(attach)?.map(View::There),
        };
        view.map(Viewing::new).transpose()
    }

    /// Ends the job and all that it started: `SIGTERM`, and `SIGKILL` after the grace. That it has already ended
    /// is not an error. What is left of a lost job is found and ended too.
    ///
    /// # Errors
    /// When the keeper cannot be reached, or refuses.
    pub fn kill(&self, grace: Duration, session: &str) -> Result<Killed, Failure> {
        let ask = JobRequest::Kill { grace_ms: millis(grace), session: session.into() };
        answered!(self.ask(ask)?, Answer::Killed(killed) => killed)
    }

    /// Sends one signal to every process of the job.
    ///
    /// # Errors
    /// [`Kind::Usage`] for an unknown signal; when the keeper cannot be reached, or refuses.
    pub fn signal(&self, signal: &str, session: &str) -> Result<Killed, Failure> {
        let ask = JobRequest::Signal { signal: signal.into(), session: session.into() };
        answered!(self.ask(ask)?, Answer::Killed(killed) => killed)
    }

    /// Types a line: the text, then Enter.
    ///
    /// # Errors
    /// [`Kind::NotRunning`] when the job has ended.
    pub fn type_line(&self, text: impl Into<String>) -> Result<Sent, Failure> {
        self.send(&Send { text: text.into(), newline: true, ..Send::default() }, None)
    }

    /// Types something. Text of any size goes in pieces; `timeout` limits how long a program that does not read may
    /// hold them up.
    ///
    /// # Errors
    /// [`Kind::NotRunning`] when the job has ended; [`Kind::Usage`] for
    /// an unknown key or a line that a terminal cannot take: then nothing is typed.
    /// [`Kind::OutcomeUnknown`] when the keeper died meanwhile.
    pub fn send(&self, send: &Send, timeout: Option<Duration>) -> Result<Sent, Failure> {
        let ask = JobRequest::Send { send: send.clone(), timeout_ms: timeout.map(millis) };
        answered!(self.ask(ask)?, Answer::Sent(sent) => sent)
    }

    /// Its processes, with what a policy must know of them.
    ///
    /// # Errors
    /// When the keeper does not answer.
    pub fn processes(&self) -> Result<Vec<ProcessDetail>, Failure> {
        answered!(self.ask(JobRequest::Processes)?, Answer::Processes(processes) => processes)
    }

    /// What was typed into it last.
    ///
    /// # Errors
    /// [`Kind::NotRunning`] when the job has ended.
    pub fn typed(&self) -> Result<Typed, Failure> {
        answered!(self.ask(JobRequest::Typed)?, Answer::Typed(typed) => typed)
    }

    /// Types raw bytes, at most [`INPUT_PIECE`](crate::wire::INPUT_PIECE) of them.
    ///
    /// # Errors
    /// As [`Job::send`].
    pub fn send_bytes(&self, bytes: &[u8]) -> Result<Sent, Failure> {
        self.send(&Send { bytes: base64::encode(bytes), ..Send::default() }, None)
    }

    /// Types what nobody may see, then Enter. It is in no log, event or answer, and is hidden wherever the program
    /// prints it all the same. Without `force`, only at a prompt that does not show what is typed.
    ///
    /// # Errors
    /// [`Kind::Denied`] when the job is at no such prompt,
    /// [`Kind::NotRunning`] when it has ended.
    pub fn send_secret(&self, value: &[u8], force: bool) -> Result<Sent, Failure> {
        let ask = JobRequest::Secret { value: SecretText::new(value), force };
        answered!(self.ask(ask)?, Answer::Sent(sent) => sent)
    }

    /// Runs a command in a shell, when the steps before it are over.
    ///
    /// # Errors
    /// [`Kind::NotRunning`] when the shell has ended, [`Kind::Usage`] for a job that is not a shell.
    pub fn step(&self, order: StepOrder) -> Result<Step, Failure> {
        answered!(self.ask(JobRequest::Step(Box::new(order)))?, Answer::Step(step) => *step)
    }

    /// How a shell is, with its last steps.
    ///
    /// # Errors
    /// [`Kind::Usage`] for a job that is not a shell.
    pub fn shell(&self) -> Result<ShellStatus, Failure> {
        answered!(self.ask(JobRequest::Shell { brief: false })?, Answer::Shell(status) => *status)
    }

    /// The folder that a shell is in.
    ///
    /// # Errors
    /// As [`shell`](Self::shell).
    pub fn shell_folder(&self) -> Result<String, Failure> {
        answered!(self.ask(JobRequest::Shell { brief: true })?, Answer::Shell(status) => status.folder)
    }

    /// When each step of a shell began, in milliseconds since the shell was made, and what it is; nothing for other jobs.
    ///
    /// # Errors
    /// When the job's record cannot be read.
    pub fn step_marks(&self) -> Result<Vec<(u64, String)>, Failure> {
        let info = self.info()?;
        if info.shell.is_none() {
            return Ok(Vec::new());
        }
        let at = |step: &Step| step.started_at.saturating_sub(info.created_at);
        let began = |step: &Step| step.state != StepState::Queued && step.state != StepState::NotRun;
        let steps = self.shell()?.steps;
        let steps = steps.iter().filter(|step| began(step));
        Ok(steps.map(|step| (at(step), format!("step {}: {}", step.step, step.command))).collect())
    }

    /// Ends a step of a shell, the one that runs unless told; the shell stays.
    ///
    /// # Errors
    /// [`Kind::NotRunning`] when the shell has ended, [`Kind::Usage`] for a job that is not a shell.
    pub fn end_step(&self, step: Option<u64>, grace: Duration, session: &str) -> Result<Killed, Failure> {
        let ask = JobRequest::EndStep { step, grace_ms: millis(grace), session: session.into() };
        answered!(self.ask(ask)?, Answer::Killed(killed) => killed)
    }

    /// What is needed to play it again, as far as it has got.
    ///
    /// # Errors
    /// When the job's record cannot be read.
    pub fn recording(&self) -> Result<Recording, Failure> {
        match &self.place {
            Place::Here(job) => job.recording(),
            Place::There(job) => {
                let ends = [Stream::Output, Stream::Stderr].map(|stream| self.stream_end(stream));
                Recording::of_elsewhere(job, self.info()?, ends)
            }
        }
    }
}
