//! Answers the [closed set of requests](outlast_protocol::request) from this machine's own home. Requests and answers are
//! moved as values: nothing is serialised on the way.

use std::time::{Duration, Instant};

use outlast_protocol::request::{
    Ack, Answer, AskKeepers, BytePart, Bytes, Fact, FactKind, Files, JobRequest, List, ListedJob,
    ProcessDetail, PruneLimits, Pruned, ReadBytes, Request, Screen, SessionEvents, Timing, WaitAny,
};
use outlast_pty::procfs;
use rustix::process::Pid;

use super::read::Piece;
use super::replay::shot;
use super::status_poll::LIST_TIMEOUT;
use super::wait::{PendingWait, wait_any};
use super::{Local, LocalJob, grep};
use crate::client::Place;
use crate::failure::{Failure, Kind};
use crate::lifecycle::{Outcome, Process, Receipt, State};
use crate::log::timing;
use crate::outbox::{Outbox, reader};
use crate::registry::sweep::Swept;
use crate::registry::{layout, orders};
use crate::settings::{Retention, Section};
use crate::slots;
use crate::spec::{Handle, JobSpec, KeeperSpec};
use crate::wakes::WakePlan;
use crate::wire::ScreenShot;

/// How many facts of a recording one answer holds.
const MAX_FACTS: usize = 10_000;
/// How long a keeper may take to run a command that it has noted, and how often that is looked at.
const STARTING_TIMEOUT: Duration = Duration::from_secs(10);
const STARTING_POLL: Duration = Duration::from_millis(10);

impl Local {
    /// # Errors
    /// What is wrong with the request, the job or the home.
    pub(crate) fn answer(&self, masked: bool, request: Request) -> Result<Answer, Failure> {
        Ok(match request {
            Request::Start(spec) => match spec.order.clone() {
                None => Answer::Started(self.start(*spec)?.dir.handle()),
                Some(order) => self.start_once(&order, *spec)?,
            },
            Request::PlanWakes(spec) => Answer::Wakes(self.plan_wakes(*spec)?),
            Request::Find { job } => Answer::Found(self.find(&job)?.dir.handle()),
            Request::FindShell { scope, name } => Answer::FoundShell(self.find_shell(&scope, &name)),
            Request::List(list) => Answer::Jobs(self.listed(masked, &list)),
            Request::Load {} => Answer::Load(Box::new(self.load())),
            Request::Job { job, ask } => LocalJob::new(self.job(job)?, masked).answer(ask)?,
            Request::Wait(wait) => self.wait(masked, wait)?,
            Request::Events(events) => Answer::Events(self.events(&events)?),
            Request::Ack(ack) => Answer::Acknowledged(self.acknowledge(&ack)?),
            Request::Remove { job } => Answer::Removed { freed: self.remove(job)? },
            Request::Prune { dry_run, limits } => {
                let Swept { removed, freed, kept, kept_bytes: _, over } =
                    self.prune(&self.keep(&limits)?, dry_run)?;
                Answer::Pruned(Pruned { removed, freed, kept, over })
            }
        })
    }

    /// How busy this machine is.
    fn load(&self) -> outlast_protocol::Load {
        let unfinished = self.list_unfinished(false, |_| false, Duration::ZERO);
        let is_at_work = |one: &&super::list::Listed| one.is_live() && one.job.state.queued().is_none();
        let running = unfinished.iter().filter(is_at_work).count();
        slots::load(&self.home, &self.settings.settings, running)
    }

    /// As [`answer`](Self::answer), for an order that may have been given before: it is carried out once.
    pub(crate) fn answer_once(
        &self,
        masked: bool,
        order: &str,
        mut request: Request,
    ) -> Result<Answer, Failure> {
        if let Request::Start(spec) = &mut request {
            spec.order = Some(order.to_owned());
        } else if request.is_order() {
            return orders::once(&self.home, order, || self.answer(masked, request));
        }
        self.answer(masked, request)
    }

    fn start_once(&self, order: &str, spec: JobSpec) -> Result<Answer, Failure> {
        let start = || Ok(Answer::Started(self.start(spec)?.dir.handle()));
        // An earlier attempt started it: it may also have failed to.
        let find = |handle| match self.past_start(handle)?.receipt() {
            Some(Receipt { outcome: Outcome::NotStarted { error }, .. }) => {
                let said = format!("job {handle} could not start: {}", error.message);
                Err(Failure::new(Kind::CannotStart, said).hint(error.hint.clone()))
            }
            _ => Ok(Answer::Started(handle)),
        };
        orders::start_once(&self.home, order, start, find)
    }

    /// Where a job is whose keeper may still be about to run it, or to find that it may not.
    fn past_start(&self, handle: Handle) -> Result<State, Failure> {
        let job = LocalJob::new(self.job(handle)?, false);
        let give_up = Instant::now() + STARTING_TIMEOUT;
        loop {
            let state = job.info()?.state;
            if !matches!(state, State::Starting) || Instant::now() >= give_up {
                return Ok(state);
            }
            std::thread::sleep(STARTING_POLL);
        }
    }

    /// As all lists have it.
    fn listed(&self, masked: bool, list: &List) -> Vec<ListedJob> {
        let asked = |session: &str| match &list.keepers {
            AskKeepers::None => false,
            AskKeepers::OfSession(of) => of == session,
            AskKeepers::All => true,
        };
        let timeout = if list.keepers == AskKeepers::None { Duration::ZERO } else { LIST_TIMEOUT };
        let asked = |job: &outlast_protocol::request::Summary| asked(&job.session);
        let mut listed = match list.running || list.unfinished {
            true => self.list_unfinished(masked, asked, timeout),
            false => self.list(masked, asked, timeout),
        };
        listed.retain(|one| {
            list.session.as_ref().is_none_or(|session| *session == one.job.session)
                && (!list.running || one.is_live())
        });
        let whole = |one: super::list::Listed| ListedJob {
            last_line: if list.last_lines { self.last_line(masked, &one) } else { String::new() },
            left_behind: if list.left_behind { one.left_behind() } else { Vec::new() },
            pinned: list.pins && self.is_pinned(one.job.handle),
            job: outlast_protocol::request::Summary { command: shown_command(&one), ..one.job },
            log_end: one.log_end,
            now: one.now,
        };
        listed.into_iter().map(whole).collect()
    }

    fn wait(&self, masked: bool, wait: WaitAny) -> Result<Answer, Failure> {
        let (which, waited) = wait_any(self.pending(masked, wait)?, None)?;
        Ok(Answer::Waited { which, waited })
    }

    /// A wait that nobody waits for yet.
    pub(crate) fn pending(&self, masked: bool, wait: WaitAny) -> Result<PendingWait, Failure> {
        let jobs = wait.waits.into_iter().map(|one| {
            let job = self.job(one.job)?;
            Ok((Place::Here(LocalJob::new(job, masked)), one.wait))
        });
        let jobs = jobs.collect::<Result<Vec<_>, Failure>>()?;
        PendingWait::new(jobs, wait.timeout_ms.map(Duration::from_millis))
    }

    fn plan_wakes(&self, spec: JobSpec) -> Result<Vec<WakePlan>, Failure> {
        let spec = KeeperSpec::resolve(spec, &self.settings.settings)?;
        let set = self.settings.settings.wakes.iter();
        let set = set.filter(|wake| wake.applies(&spec.session, &spec.wake_env));
        let all = spec.wakes.iter().chain(set);
        let (whose, tells) = ((&self.home, spec.session.as_str()), !spec.notify.is_nothing());
        Ok(all.map(|wake| wake.will_for(whose, &spec.wake_env, tells)).collect())
    }

    /// What a prune keeps: what this home's settings say, where it does not say otherwise.
    fn keep(&self, limits: &PruneLimits) -> Result<Retention, Failure> {
        if limits.all {
            return Ok(Retention::nothing());
        }
        let set = &self.settings.settings.retention;
        let says_all = limits.age_ms.is_some() && limits.jobs.is_some() && limits.bytes.is_some();
        if !says_all {
            self.settings.section(Section::Retention)?;
        }
        if *limits == PruneLimits::default() {
            return Ok(set.clone());
        }
        if limits.unread {
            return Ok(Retention { unread: Duration::ZERO, ..set.clone() });
        }
        let age = limits.age_ms.map_or(set.age, Duration::from_millis);
        Ok(Retention::at_once(age, limits.jobs.unwrap_or(set.jobs), limits.bytes.unwrap_or(set.bytes)))
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
            JobRequest::Processes => Answer::Processes(self.processes()?),
            JobRequest::LeftBehind => Answer::LeftBehind(super::leftover::find(&self.info()?)),
            JobRequest::Hide { text } => Answer::Hidden(self.masked().hide(&text)?),
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
            JobRequest::Hold(hold) => {
                self.hold(hold)?;
                Answer::Done {}
            }
            JobRequest::Resize { size } => {
                self.resize(size)?;
                Answer::Done {}
            }
            JobRequest::AnswerQuestion { question, allow, by } => {
                self.answer_question(question, allow, by)?;
                Answer::Done {}
            }
            JobRequest::Step(order) => Answer::Step(Box::new(self.step(*order)?)),
            JobRequest::Shell { brief } => Answer::Shell(Box::new(self.shell_status(brief)?)),
            JobRequest::EndStep { step, grace_ms, session } => {
                Answer::Killed(self.end_step(step, Duration::from_millis(grace_ms), &session)?)
            }
            JobRequest::Watch { watch } => Answer::Watches(self.watch(watch)?),
            JobRequest::Watches => Answer::Watches(self.watches()?),
            JobRequest::Unwatch { watch } => Answer::Watches(self.unwatch(&watch)?),
        })
    }

    /// Its processes, and what the kernel says of them.
    fn processes(&self) -> Result<Vec<ProcessDetail>, Failure> {
        let Some(status) = self.status()? else { return Ok(Vec::new()) };
        let detail = |process: Process| {
            let is_same = |pid: &Pid| procfs::start_time(*pid) == Some(process.started);
            let pid = Pid::from_raw(process.pid).filter(is_same);
            let arguments = pid.and_then(procfs::arguments).unwrap_or_default();
            let word = |argument: &Vec<u8>| String::from_utf8_lossy(argument).into_owned();
            ProcessDetail {
                arguments: arguments.iter().map(word).collect(),
                file: pid.and_then(procfs::program_file),
                process,
            }
        };
        Ok(status.processes.into_iter().map(detail).collect())
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
        if read.as_is && read.max > 0 && range.draws_a_secret(self.stream_end(read.stream)) {
            let said = "a known secret is drawn there in another order than it is read, so it can't be cut out of the bytes";
            return Err(Failure::new(Kind::Denied, said)
                .hint("read it as text, without the escapes: there it is hidden"));
        }
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

/// What a job runs; of a shell, also the step that it is at.
fn shown_command(one: &super::list::Listed) -> String {
    match one.now.as_ref().and_then(|now| now.step.as_ref()) {
        Some(step) => format!("{}, step {}: {}", one.job.command, step.step, step.command),
        None => one.job.command.clone(),
    }
}
