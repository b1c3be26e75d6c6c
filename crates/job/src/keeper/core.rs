//! The keeper's heart: what happened goes in, what is to be done comes out.
//!
//! No process, file, socket or clock is in here. [`Core::turn`] takes one [`Input`] and the time, and adds
//! [`Effect`]s to a buffer that the shell around it ([`keeper`](super)) carries out in order. What comes of
//! an effect, if that matters, is another input. So every decision can be tested without a process: see
//! `core/tests.rs`.

mod command_end;
mod condition_answers;
mod effect;
mod exec_questions;
mod ending;
mod events;
mod hold;
mod notifier;
mod output;
mod phase;
mod probe_schedule;
mod queued;
mod record;
mod requests;
mod several_lines;
mod steps;
mod typing;
mod viewers;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use outlast_pty::evidence::Verdict;
use outlast_pty::reap::End;
use rustix::process::{Pid, Signal};

use super::conditions::{Conditions, Unread};
use super::peers::PeerId;
use super::proxy::Refused;
use super::watchdog::Watchdog;
use crate::clock::earliest;
use crate::failure::Failure;
use crate::lifecycle::{Process, StartError, State, Used};
use crate::log::gone::Gone;
use crate::outbox::Entry;
use crate::registry::format::Info;
use crate::registry::replace::Durability;
use crate::secrets::SharedMasks;
use crate::spec::{Handle, Size};
use crate::wire::event::{EventKind, ExecQuestion, ExecRefused};
use crate::wire::{Answer, Awaiting, Verb};
use outlast_protocol::Queued;
use phase::Phase;
use record::Record;

pub(super) use super::conditions::Client;
pub(super) use effect::{Effect, Effects};
pub(super) use notifier::{Notifier, is_pushed};
pub(super) use output::{Output, planted_panic};
pub(super) use phase::{CommandEnd, receipt_of};
pub(super) use probe_schedule::{Probe, ProbeResult};
pub(super) use steps::{KnownSteps, StepEnd};
pub(super) use typing::{HiddenInput, LineModes};

/// A moment, on both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) at: Instant,
    /// Milliseconds since 1970, for what people read.
    pub(super) unix_ms: u64,
}

impl Now {
    pub(super) fn read() -> Self {
        Self { at: Instant::now(), unix_ms: crate::clock::now_ms() }
    }
}

/// Everything that can happen to a keeper.
#[derive(Debug)]
pub(super) enum Input<'a> {
    /// The command runs.
    Started { command: Pid },
    /// The command waits at its gate, or what it waits for has changed.
    Queued { command: Option<Pid>, queued: Box<Queued> },
    /// The gate is open: the command runs now.
    Admitted,
    /// The command never goes through its gate.
    Refused(StartError),
    /// We were the heir of a dead keeper. So much of what was typed is lost; `last_line` is there if nobody
    /// was told of the job's end yet.
    /// `grace_end` is there if it was ending the job.
    /// `hung_up` if its terminal was hung up with it.
    TookOver {
        input_lost: u64,
        /// What the keeper died of.
        unreadable: Option<(u64, u64)>,
        untold_end: Option<String>,
        grace_end: Option<Instant>,
        hung_up: bool,
    },
    /// Bytes that are in the log now.
    Output { channel: usize, bytes: &'a [u8] },
    /// All that a log held when we began was fed.
    Replayed { channel: usize, end: u64 },
    /// What was logged until now was fed, as far as there was time.
    OutputPaused { channel: usize, end: u64 },
    /// A log fails (why), does no longer, or has lost more of its bytes.
    LogChanged { channel: usize, failing: Option<String>, lost: Gone },
    /// A client asks for something; with the modes of the terminal, if it wants to type.
    Request { client: Client, verb: Verb, modes: Option<LineModes> },
    /// A client has left.
    PeerLeft(PeerId),
    /// The program takes input again.
    SinkReady,
    /// So much of the input was taken; or the program has closed it.
    Written { taken: usize, refused: bool },
    /// The modes of the terminal, to end its input.
    LineModes(Option<LineModes>),
    /// A secret is known and hidden everywhere, or can't be.
    SecretLearned { secret: HiddenInput, failed: Option<Failure> },
    /// The terminal has a new size, or could not get it.
    SizeSet { before: Size, client: Option<Client>, failed: Option<String> },
    /// The command was stopped, or goes on.
    Stopped(bool),
    /// The command's process has ended, and all that it printed was fed.
    CommandEnded(Box<CommandEnd>),
    /// The kernel has forgotten the command. `last_line` is the last of its transcript, if it failed.
    Reaped { used: Option<Used>, last_line: String },
    /// What is left of the job.
    Surveyed { nothing_left: bool, processes: Vec<Process> },
    /// The processes of the job, for callers that ask for its status.
    Processes { client: Client, processes: Vec<Process> },
    /// How many processes the first signal of an ending reached.
    Signalled(usize),
    /// How many processes a requested signal reached.
    SignalSent { client: Client, count: usize },
    /// The record was written, or could not be.
    RecordWritten(bool),
    /// The job's folder was removed.
    FolderRemoved,
    /// Our heir died.
    HeirDied,
    /// A program of the job was not executed.
    ExecRefused(Box<ExecRefused>),
    /// A program of the job stands still: a person must agree to what it wants to execute.
    ExecAsked(Box<ExecQuestion>),
    /// The process that asked is gone.
    ExecWithdrawn(u64),
    /// The job was not connected to a host.
    HostRefused(Refused),
    /// The same, as a question with a number.
    HostAsked { refused: Refused, number: u64 },
    /// We were asked to end (`SIGTERM`).
    Terminated,
    /// A probe is done.
    Probed(Box<ProbeResult>),
    /// A probe could not be taken.
    ProbeFailed,
    /// Whether all that was typed has been read.
    AllRead(bool),
    /// How often a process has run.
    Runs { pid: Pid, runs: Option<u64> },
    /// Entries are in the outbox, or come back; and why orders to wake somebody for them could not be noted.
    OutboxAppended { entries: Vec<Entry>, written: bool, unfiled: Option<String> },
    /// The outbox is still being synced.
    SyncBusy,
    /// A helper that wakes was started; and why some orders could not be noted for it.
    HelperStarted { failed: Option<String> },
    /// A helper that wakes could not be started.
    HelperFailed(String),
    /// A helper that wakes has ended.
    HelperEnded(End),
    /// Bytes of the log that patterns have not seen; the log ends at `end`.
    Searched { piece: Unread, bytes: &'a [u8], end: u64 },
    /// Patterns have seen all that the command printed.
    SearchedAll,
    /// A step of a shell has ended, and all that it printed was fed.
    StepEnded(Box<StepEnd>),
    /// The person at a shell's prompt has typed a command, and it begins.
    StepBegan(String),
    /// A shell has told what was changed in it since it was made, by names.
    ShellChanged {
        /// Since it was made, by the kind of thing.
        all: std::collections::BTreeMap<String, Vec<String>>,
        /// Since it was last asked.
        new: Vec<String>,
    },
    /// Patterns have seen all that a step printed.
    StepSearched(u64),
    /// So many processes of a step got a signal.
    StepSignalled(usize),
    /// An end of a step came that the shell did not tell; what was wrong with it.
    StepForged(String),
    /// A shell reads from its terminal although a step runs; if it does so at its own prompt, what takes it back to us is gone.
    ShellReads { verdict: Box<Verdict>, is_lost: bool },
    /// What is due by now is done. Comes after each round of other inputs.
    Time,
    /// Nothing comes after this.
    Close,
}

/// The process that takes over should we die.
#[derive(Debug)]
enum Heir {
    Alive(Option<Process>),
    Gone,
}

/// The job's own limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeLimits {
    pub(super) started: Instant,
    pub(super) timeout: Option<Duration>,
    /// How long it may print nothing.
    pub(super) inactivity: Option<Duration>,
}

/// What a core begins with.
pub(super) struct Beginning {
    pub(super) info: Info,
    pub(super) command: Pid,
    /// Whether there is an heir.
    pub(super) has_heir: bool,
    pub(super) outputs: Vec<Output>,
    pub(super) limits: TimeLimits,
    pub(super) last_output: Instant,
    pub(super) next_event: u64,
    pub(super) notifier: Notifier,
    pub(super) conditions: Conditions,
    pub(super) watchdog: Watchdog,
    pub(super) masks: SharedMasks,
    pub(super) steps: KnownSteps,
}

/// All that a keeper knows and decides.
pub(super) struct Core {
    record: Record,
    phase: Phase,
    heir: Heir,
    limits: TimeLimits,
    outputs: Vec<Output>,
    typing: typing::Typing,
    viewers: viewers::Viewers,
    /// A person who has taken the job over.
    holding: Option<hold::Holding>,
    probing: probe_schedule::Probing,
    watchdog: Watchdog,
    conditions: Conditions,
    /// When memory that only patterns need is given back.
    tidy_at: Option<Instant>,
    /// What the job waits for, if it does.
    awaiting: Option<Awaiting>,
    /// Who takes input, of a job that does not wait for it.
    listening: Option<Awaiting>,
    /// What a person is asked about programs of the job.
    questions: exec_questions::ExecQuestions,
    ports: Vec<u16>,
    sockets: Vec<String>,
    notifier: Notifier,
    next_event: u64,
    /// The last signal somebody asked us to send: who, if the command dies of it.
    last_signal: Option<(Signal, String)>,
    /// The last key that its terminal turned into a signal: who typed it, if the command dies of it.
    last_key: Option<typing::SignalKey>,
    last_output: Instant,
    last_input: Instant,
    /// Whether the kernel has hung up the terminal.
    hung_up: bool,
    /// Whether the record on the disk lacks something.
    record_is_stale: bool,
    /// How far the log had grown when the last screen was written.
    screen_written_at: Option<u64>,
    masks: SharedMasks,
    /// The commands of a shell.
    steps: steps::Steps,
}

impl Core {
    pub(super) fn new(beginning: Beginning) -> Self {
        let Beginning { info, command, has_heir, outputs, limits, last_output, .. } = beginning;
        let (record, state, heir) = Record::new(info);
        Self {
            record,
            phase: Phase::of(state, command),
            heir: if has_heir { Heir::Alive(heir) } else { Heir::Gone },
            outputs,
            typing: typing::Typing::default(),
            viewers: viewers::Viewers::default(),
            holding: None,
            probing: probe_schedule::Probing::default(),
            watchdog: beginning.watchdog,
            conditions: beginning.conditions,
            tidy_at: None,
            awaiting: None,
            listening: None,
            questions: exec_questions::ExecQuestions::default(),
            ports: Vec::new(),
            sockets: Vec::new(),
            notifier: beginning.notifier,
            next_event: beginning.next_event,
            last_signal: None,
            last_key: None,
            last_output,
            last_input: limits.started,
            steps: steps::Steps::new(beginning.steps, Instant::now()),
            limits,
            hung_up: false,
            record_is_stale: false,
            screen_written_at: None,
            masks: beginning.masks,
        }
    }

    /// One thing happened.
    pub(super) fn turn(&mut self, input: Input<'_>, now: Now, effects: &mut Effects) {
        if let Phase::Closed(_) = self.phase {
            return;
        }
        match input {
            Input::Output { channel, bytes } => {
                if let Some(output) = self.outputs.get_mut(channel) {
                    output.feed(bytes);
                }
            }
            Input::OutputPaused { channel, end } => {
                self.on_output_paused(channel, end, now, effects);
                self.show_output(now, effects);
                self.note_activity(now, effects);
            }
            Input::Replayed { channel, end } => self.on_replayed(channel, end, effects),
            Input::LogChanged { channel, failing, lost } => {
                self.on_log_changed(channel, failing, &lost, now, effects);
            }
            Input::Started { command } => self.on_started(command, now, effects),
            Input::Queued { command, queued } => self.on_queued(command, queued, now, effects),
            Input::Admitted => self.on_admitted(now, effects),
            Input::Refused(error) => self.on_refused(error, effects),
            Input::TookOver { input_lost, unreadable, untold_end, grace_end, hung_up } => {
                self.hung_up |= hung_up;
                self.on_take_over((input_lost, unreadable), untold_end, now, effects);
                if let Some(until) = grace_end {
                    self.go_on_with_ending(until, now, effects);
                }
            }
            Input::Request { client, verb, modes } => self.on_request(client, verb, modes, now, effects),
            Input::PeerLeft(peer) => self.on_peer_left(peer, now, effects),
            Input::SinkReady => effects.push(Effect::WriteInput),
            Input::Written { taken, refused } => self.on_input_written(taken, refused, effects),
            Input::LineModes(modes) => self.end_terminal_input(modes, effects),
            Input::SecretLearned { secret, failed } => {
                self.on_secret_learned(&secret, failed, now, effects);
            }
            Input::SizeSet { before, client, failed } => self.on_size_set(before, client, failed, effects),
            Input::Stopped(stopped) => self.on_stopped(stopped, now, effects),
            Input::CommandEnded(end) => self.on_command_end(*end, now, effects),
            Input::Reaped { used, last_line } => self.on_reaped(used, last_line, now, effects),
            Input::Surveyed { nothing_left, processes } => {
                self.on_surveyed(nothing_left, processes, now, effects);
            }
            Input::Processes { client, processes } => self.on_processes(client, processes, now, effects),
            Input::Signalled(count) => self.on_signalled(count, effects),
            Input::SignalSent { client, count } => self.on_signal_sent(client, count, effects),
            Input::RecordWritten(written) => self.on_record_written(written, now.at, effects),
            Input::FolderRemoved => self.on_folder_removed(),
            Input::ExecRefused(mut refused) => {
                refused.command = self.hide(&refused.command);
                self.event(EventKind::ExecRefused { refused }, now, effects);
            }
            Input::ExecAsked(question) => self.on_exec_asked(*question, now, effects),
            Input::ExecWithdrawn(question) => self.on_exec_withdrawn(question, now, effects),
            Input::HostRefused(refused) => self.on_host_refused(refused, now, effects),
            Input::HostAsked { refused, number } => self.on_host_asked(&refused, number, now, effects),
            Input::HeirDied => self.on_heir_died(now, effects),
            Input::Terminated => self.on_terminated(now, effects),
            Input::Probed(result) => self.on_probed(*result, now, effects),
            Input::ProbeFailed => self.on_probe_failed(),
            Input::AllRead(all) => self.on_input_read(all, now.at, effects),
            Input::Runs { pid, runs } => self.on_runs(pid, runs, now),
            Input::OutboxAppended { entries, written, unfiled } => {
                self.notifier.on_appended(entries, written, now.at);
                if let Some(why) = unfiled {
                    self.notifier.wake_failed(&why, now);
                }
                if let Phase::Leaving { .. } = self.phase {
                    self.go_on_leaving(now, effects);
                } else {
                    self.notifier.wake_if_free(effects);
                }
            }
            Input::SyncBusy => self.notifier.on_sync_busy(now.at),
            Input::HelperStarted { failed } => {
                if let Some(why) = failed {
                    self.notifier.wake_failed(&why, now);
                }
                self.go_on_leaving(now, effects);
            }
            Input::HelperFailed(why) => self.on_helper_ended(Err(why), now, effects),
            Input::HelperEnded(end) => self.on_helper_ended(Ok(end), now, effects),
            Input::Searched { piece, bytes, end } => self.on_searched((&piece, end), bytes, now, effects),
            Input::SearchedAll => self.on_searched_all(now, effects),
            Input::StepEnded(end) => self.on_step_ended(*end, now, effects),
            Input::StepBegan(command) => self.on_step_began(&command, now, effects),
            Input::ShellChanged { all, new } => self.on_shell_changed(all, new, now, effects),
            Input::StepSearched(step) => self.on_step_searched(step, now, effects),
            Input::StepSignalled(count) => self.on_step_signalled(count),
            Input::StepForged(why) => self.on_step_forged(why, now, effects),
            Input::ShellReads { verdict, is_lost } => self.on_shell_reads(&verdict, is_lost, now, effects),
            Input::Time => self.on_time(now, effects),
            Input::Close => self.on_close(now, effects),
        }
    }

    /// What is due by now.
    fn on_time(&mut self, now: Now, effects: &mut Effects) {
        self.end_on_time(now, effects);
        self.expire_questions(now, effects);
        self.end_hold_on_time(now, effects);
        self.probe_if_due(now.at, effects);
        self.waits_on_time(now, effects);
        self.steps_on_time(now, effects);
        if let Phase::Leaving { .. } = self.phase {
            self.go_on_leaving(now, effects);
        } else {
            self.notifier.on_time(now, effects);
        }
        if self.record_is_stale && !self.is_end_unsaved() {
            effects.push(Effect::WriteRecord(Durability::Process));
        }
    }

    /// The next moment at which time itself is an input.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let next = earliest(self.next_end(), self.probing.next());
        let next = earliest(next, self.conditions.next_deadline(self.silent_since()));
        let next = earliest(next, self.tidy_at);
        let next = earliest(next, self.questions.next_deadline());
        let next = earliest(next, self.steps.next_deadline());
        let next = earliest(next, self.hold_deadline());
        earliest(next, self.notifier.next_deadline())
    }

    fn on_take_over(
        &mut self,
        (input_lost, unreadable): (u64, Option<(u64, u64)>),
        untold_end: Option<String>,
        now: Now,
        effects: &mut Effects,
    ) {
        self.forget_what_was_typed();
        // Attached clients connect again if they still can.
        self.settle_size(None, effects);
        effects.push(Effect::WriteRecord(Durability::Process));
        self.event(EventKind::TookOver { input_lost, unreadable }, now, effects);
        if matches!(self.heir, Heir::Gone) {
            // This kernel does not tell anybody but its parent how a process ended: there is no second net.
            self.event(EventKind::HeirGone, now, effects);
        }
        self.take_up_steps(now, effects);
        self.watch_seat(now);
        if let Some(last_line) = untold_end {
            // The receipt was on the disk, and its keeper was killed before it could tell of it.
            self.note_end(last_line, now, effects);
        }
    }

    /// All that could be answered is answered.
    fn on_close(&mut self, now: Now, effects: &mut Effects) {
        self.end_of_ending(ending::Left::default(), now, effects);
        self.answer_senders(true, effects);
        self.close_waits(now, effects);
        match std::mem::replace(&mut self.phase, Phase::Starting) {
            Phase::Left(ended) | Phase::Ended(ended) | Phase::Leaving { ended, .. } => {
                self.phase = Phase::Closed(ended);
            }
            other @ (Phase::Starting | Phase::Running(_) | Phase::Judging { .. } | Phase::Closed(_)) => {
                self.phase = other
            }
        }
    }

    /// The record as it is now.
    pub(super) fn info(&self) -> Info {
        let heir = match &self.heir {
            Heir::Alive(process) => process.clone(),
            Heir::Gone => None,
        };
        self.record.with(self.phase.state(), heir)
    }

    pub(super) fn state(&self) -> State {
        self.phase.state()
    }

    pub(super) fn handle(&self) -> Handle {
        self.record.handle()
    }

    pub(super) fn has_terminal(&self) -> bool {
        self.record.has_terminal()
    }

    /// The process of the command, while it is not known how it ended.
    pub(super) fn command(&self) -> Option<Pid> {
        match &self.phase {
            Phase::Running(running) => Some(running.command),
            Phase::Starting
            | Phase::Judging { .. }
            | Phase::Ended(_)
            | Phase::Leaving { .. }
            | Phase::Left(_)
            | Phase::Closed(_) => None,
        }
    }

    /// Whether the command has ended and it is not known yet who ended it: until then its process is left
    /// alone.
    pub(super) fn is_judging(&self) -> bool {
        matches!(self.phase, Phase::Judging { .. })
    }

    /// Whether the command has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.phase.ended().is_some()
    }

    pub(super) fn has_heir(&self) -> bool {
        matches!(self.heir, Heir::Alive(_))
    }

    /// Whether all is done, but for requests that came in the last moment.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Left(_) | Phase::Closed(_))
    }

    /// Whether the record on the disk lacks something.
    pub(super) fn is_record_stale(&self) -> bool {
        self.record_is_stale
    }

    fn is_end_unsaved(&self) -> bool {
        self.phase.ended().is_some_and(|ended| !matches!(ended.saving, phase::Saving::Saved))
    }

    pub(super) fn last_output(&self) -> Instant {
        self.last_output
    }
}
