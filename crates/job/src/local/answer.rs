//! Answers the [closed set of requests](outlast_protocol::request) from this machine's own home. Requests and answers are
//! moved as values: nothing is serialised on the way.

use std::time::Duration;

use outlast_protocol::request::{
    Ack, Answer, AskKeepers, BytePart, Bytes, Fact, FactKind, Files, JobRequest, List, ListedJob, Pruned,
    ReadBytes, Request, Screen, SessionEvents, Start, Timing, WaitAny,
};

use super::read::Piece;
use super::replay::shot;
use super::status_poll::LIST_TIMEOUT;
use super::wait::{PendingWait, wait_any};
use super::{Local, LocalJob, grep};
use crate::failure::Failure;
use crate::log::timing;
use crate::notify::Notify;
use crate::outbox::{Outbox, reader};
use crate::registry::layout;
use crate::settings::{Section, Settings};
use crate::spec::JobSpec;
use crate::wire::ScreenShot;

/// How many facts of a recording one answer holds.
const MAX_FACTS: usize = 10_000;

impl Local {
    /// # Errors
    /// What is wrong with the request, the job or the home.
    pub(crate) fn answer(&self, masked: bool, request: Request) -> Result<Answer, Failure> {
        Ok(match request {
            Request::Start(start) => {
                let job = self.start(spec_of(*start, &self.settings.settings)?)?;
                Answer::Started(job.dir.handle())
            }
            Request::Find { job } => Answer::Found(self.find(&job)?.dir.handle()),
            Request::List(list) => Answer::Jobs(self.listed(masked, &list)),
            Request::Job { job, ask } => LocalJob::new(self.job(job)?, masked).answer(ask)?,
            Request::Wait(wait) => self.wait(masked, wait)?,
            Request::Events(events) => Answer::Events(self.events(&events)?),
            Request::Ack(ack) => Answer::Acknowledged(self.acknowledge(&ack)?),
            Request::Remove { job } => Answer::Removed { freed: self.remove(job)? },
            Request::Prune { dry_run } => {
                self.settings.section(Section::Retention)?;
                let swept = self.prune(&self.settings.settings.retention, dry_run)?;
                Answer::Pruned(Pruned { removed: swept.removed, freed: swept.freed, kept: swept.kept })
            }
        })
    }

    fn listed(&self, masked: bool, list: &List) -> Vec<ListedJob> {
        let asked = |session: &str| match &list.keepers {
            AskKeepers::None => false,
            AskKeepers::OfSession(of) => of == session,
            AskKeepers::All => true,
        };
        let timeout = if list.keepers == AskKeepers::None { Duration::ZERO } else { LIST_TIMEOUT };
        let mut listed = self.list(masked, |job| asked(&job.session), timeout);
        listed.retain(|one| {
            list.session.as_ref().is_none_or(|session| *session == one.job.session)
                && (!list.running || one.is_live())
        });
        let whole = |one: super::list::Listed| ListedJob {
            last_line: if list.last_lines { self.last_line(masked, &one) } else { String::new() },
            left_behind: if list.left_behind { one.left_behind() } else { Vec::new() },
            pinned: list.pins && self.is_pinned(one.job.handle),
            job: one.job,
            log_end: one.log_end,
            now: one.now,
        };
        listed.into_iter().map(whole).collect()
    }

    fn wait(&self, masked: bool, wait: WaitAny) -> Result<Answer, Failure> {
        let jobs = wait.waits.into_iter().map(|one| {
            let job = self.job(one.job)?;
            Ok((LocalJob::new(job, masked), one.wait))
        });
        let jobs = jobs.collect::<Result<Vec<_>, Failure>>()?;
        let timeout = wait.timeout_ms.map(Duration::from_millis);
        let (which, waited) = wait_any(PendingWait::new(jobs, timeout)?, None)?;
        Ok(Answer::Waited { which, waited })
    }

    fn events(&self, events: &SessionEvents) -> Result<Vec<serde_json::Value>, Failure> {
        let Some(outbox) = Outbox::existing(&self.home, &events.session) else { return Ok(Vec::new()) };
        let entries = outbox.settled(events.after.unwrap_or_else(|| outbox.acked()));
        let value = |entry| {
            serde_json::to_value(entry).map_err(|error| Failure::system("cannot tell an event", error))
        };
        entries.into_iter().map(value).collect()
    }

    fn acknowledge(&self, ack: &Ack) -> Result<u64, Failure> {
        let outbox = Outbox::open(&self.home, &ack.session)?;
        match &ack.reader {
            None => outbox.ack(ack.up_to),
            Some(name) => {
                let last = outbox.entries(0).last().map_or_else(|| outbox.acked(), |entry| entry.n);
                reader::acknowledge(&outbox, name, ack.up_to.unwrap_or(last).min(last))
            }
        }
    }
}

/// What a keeper is told, from what was asked for and what this host decides.
fn spec_of(start: Start, settings: &Settings) -> Result<JobSpec, Failure> {
    let mut spec = JobSpec::in_session(start.run, start.session);
    if start.for_agent {
        spec.without_pagers();
        spec.confine_for_agent(settings);
    }
    spec.env.extend(start.env);
    if let Some(folder) = start.folder {
        spec.cwd = folder;
    }
    if let Some(words) = &start.notify {
        spec.notify = Notify::parse(words)?;
    }
    let duration = |ms: Option<u64>| ms.map(Duration::from_millis);
    Ok(JobSpec {
        description: start.description,
        name: start.name,
        streams: start.streams,
        timeout: duration(start.timeout_ms),
        inactivity_timeout: duration(start.inactivity_timeout_ms),
        log_cap: settings.log_cap,
        ..spec
    })
}

impl LocalJob {
    /// # Errors
    /// What is wrong with the request or the job.
    pub(crate) fn answer(&self, ask: JobRequest) -> Result<Answer, Failure> {
        Ok(match ask {
            JobRequest::Info { shown: false } => Answer::Info(Box::new(self.info()?)),
            JobRequest::Info { shown: true } => Answer::Info(Box::new(self.info_to_show()?)),
            JobRequest::Receipt => Answer::Receipt(self.info()?.state.receipt().cloned().map(Box::new)),
            JobRequest::Status => Answer::Status(self.status()?.map(Box::new)),
            JobRequest::Details => Answer::Details(self.details()?),
            JobRequest::Pin { pinned } => {
                self.pin(pinned)?;
                Answer::Done {}
            }
            JobRequest::Files => Answer::Files(self.files()),
            JobRequest::End { stream } => Answer::End(self.stream_end(stream)),
            JobRequest::ReadText(read) => Answer::Text(self.text(&read)?),
            JobRequest::ReadBytes(read) => Answer::Bytes(self.bytes(&read)?),
            JobRequest::Grep(grep) => Answer::Matches(grep::grep(&self.range_of(&grep.range)?, &grep)?),
            JobRequest::Screen(screen) => Answer::Screen(Box::new(self.screen_at(screen)?)),
            JobRequest::LastScreen => Answer::LastScreen(self.last_screen()?),
            JobRequest::Outcome => Answer::Outcome(self.outcome()?.map(Box::new)),
            JobRequest::Timing { from } => Answer::Timing(self.timing(from)),
            JobRequest::EventLines { max } => Answer::EventLines(self.event_lines(max)?),
            JobRequest::Send { send, timeout_ms } => {
                Answer::Sent(self.send(&send, timeout_ms.map(Duration::from_millis))?)
            }
            JobRequest::Secret { value, force } => Answer::Sent(self.send_secret(value, force)?),
            JobRequest::Typed => Answer::Typed(self.typed()?),
            JobRequest::Kill { grace_ms, session } => {
                Answer::Killed(self.kill(Duration::from_millis(grace_ms), &session)?)
            }
            JobRequest::Signal { signal, session } => Answer::Killed(self.signal(&signal, &session)?),
            JobRequest::Resize { size } => {
                self.resize(size)?;
                Answer::Done {}
            }
            JobRequest::AnswerQuestion { question, allow, by } => {
                self.answer_question(question, allow, by)?;
                Answer::Done {}
            }
            JobRequest::Watch { watch } => Answer::Watches(self.watch(watch)?),
            JobRequest::Watches => Answer::Watches(self.watches()?),
            JobRequest::Unwatch { watch } => Answer::Watches(self.unwatch(&watch)?),
        })
    }

    fn files(&self) -> Files {
        let file = |name| self.open.dir.file(name).to_string_lossy().into_owned();
        Files {
            folder: self.open.dir.path().to_string_lossy().into_owned(),
            output: file(layout::OUTPUT),
            transcript: file(layout::TRANSCRIPT),
        }
    }

    fn bytes(&self, read: &ReadBytes) -> Result<Bytes, Failure> {
        let range = self.range(read.stream, read.from, read.to)?.only(read.lines);
        let mut bytes = Bytes { from: range.from(), parts: Vec::new(), next: range.from(), end: range.to() };
        let mut left = read.max;
        if left > 0 {
            range.pieces(|at, piece| {
                match piece {
                    Piece::Bytes(piece) => {
                        let piece = &piece[..piece.len().min(left)];
                        left -= piece.len();
                        bytes.next = at + piece.len() as u64;
                        match bytes.parts.last_mut() {
                            Some(BytePart::Bytes(before)) => before.extend_from_slice(piece),
                            _ => bytes.parts.push(BytePart::Bytes(piece.to_vec())),
                        }
                    }
                    Piece::Lost { from, to } => {
                        bytes.next = to;
                        bytes.parts.push(BytePart::Lost { from, to });
                    }
                }
                left > 0
            });
        }
        Ok(bytes)
    }

    fn screen_at(&self, screen: Screen) -> Result<ScreenShot, Failure> {
        let Some(moment) = screen.at else { return self.screen(screen.styled, screen.scrollback) };
        Ok(shot(&mut self.recording()?.fold_until(moment), screen.styled))
    }

    fn timing(&self, from: u64) -> Timing {
        let facts = self.facts();
        let skipped = usize::try_from(from).unwrap_or(usize::MAX).min(facts.len());
        let part = &facts[skipped..facts.len().min(skipped + MAX_FACTS)];
        let next = skipped + part.len();
        let kind = |what: timing::FactKind| match what {
            timing::FactKind::Output => FactKind::Output,
            timing::FactKind::Stderr => FactKind::Stderr,
            timing::FactKind::Resized(size) => FactKind::Resized(size),
        };
        let fact =
            |fact: &timing::Fact| Fact { at_ms: fact.at_ms, offset: fact.offset, kind: kind(fact.what) };
        Timing { facts: part.iter().map(fact).collect(), next: (next < facts.len()).then_some(next as u64) }
    }
}
