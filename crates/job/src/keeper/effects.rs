//! Carries out what the core decides, and tells it what came of it.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use outlast_pty::{procfs, reap, signal};
use rustix::io::Errno;
use rustix::process::Signal;
use rustix::termios::{LocalModes, SpecialCodeIndex, Termios, tcgetattr};

use super::channel::log_masks;
use super::core::{Effect, Input, LineModes, Now, Probe};
use super::inherited::Ends;
use super::probe::{InputEnd, ProbeThread};
use super::proxy::Refused;
use super::watches::SearchBuffer;
use super::{Keeper, Net};
use crate::failure::Failure;
use crate::lifecycle::{self, Process, State};
use crate::registry::claim::set_end_unsaved;
use crate::sandbox::hosts::AllowedHost;
use crate::secrets;
use crate::spec::Size;

impl Keeper {
    /// Lets the core know what happened, and does what it decides.
    pub(super) fn feed(&mut self, input: Input<'_>) {
        self.core.turn(input, Now::read(), &mut self.effects);
        self.perform_all();
    }

    /// Does all that is to be done, and what comes of that.
    pub(super) fn perform_all(&mut self) {
        while let Some(effect) = self.effects.next() {
            if let Some(result) = self.perform(effect) {
                self.core.turn(result, Now::read(), &mut self.effects);
            }
        }
    }

    fn perform(&mut self, effect: Effect) -> Option<Input<'static>> {
        match effect {
            Effect::Reply { client, answer } => {
                self.peers.reply(client.peer, client.request, answer);
                if let Some(key) = self.noted.remove(&(client.peer, client.request)) {
                    self.request_notes.finish(key);
                }
            }
            Effect::Repaint { client, answer } => self.peers.reply_again(client.peer, client.request, answer),
            Effect::Follow(peer) => self.peers.follow(peer),
            Effect::Hold { peer, held } => self.peers.hold(peer, held),
            Effect::Event(event) => {
                self.events.add(&event);
                self.peers.tell_event(&event);
            }
            Effect::WriteTranscript { channel } => {
                if let Some(channel) = self.channels.get_mut(channel) {
                    channel.write_transcript(&mut self.core);
                }
            }
            Effect::NoteProgress { channel } => {
                if let Some(channel) = self.channels.get(channel) {
                    channel.note_progress(&self.core);
                }
            }
            Effect::WriteScreen(text) => self.write_last_screen(&text),
            Effect::WriteInput => return Some(self.write_input()),
            Effect::ReadLineModes => return Some(Input::LineModes(self.line_modes())),
            Effect::CloseInput => self.close_input(),
            Effect::LearnSecret(secret) => {
                let failed = self.learn_secret(&secret.value).err();
                return Some(Input::SecretLearned { secret, failed });
            }
            Effect::SetSize { size, before, client } => {
                let failed = self.set_size(size).err().map(|error| error.to_string());
                return Some(Input::SizeSet { before, client, failed });
            }
            Effect::SignalAll { signals, counts } => return self.signal_all(signals, counts),
            Effect::Signal { signal, client } => {
                return Some(Input::SignalSent { client, count: self.signal(signal) });
            }
            Effect::Survey { lists } => return Some(self.survey(lists)),
            Effect::ListProcesses(client) => {
                return Some(Input::Processes { client, processes: self.processes() });
            }
            Effect::WriteRecord(durability) => {
                return Some(Input::RecordWritten(self.write_record(durability).is_ok()));
            }
            Effect::GiveReserveBack => self.give_reserve_back(),
            Effect::MarkEndUnsaved(unsaved) => set_end_unsaved(&self.inherited.events, unsaved),
            Effect::RememberEnd { end, at_ms } => self.inherited.shared.set_end(end, at_ms),
            Effect::RememberGrace(until) => {
                let since_start = |at: Instant| at.saturating_duration_since(self.inherited.started);
                self.inherited.shared.set_grace_end(until.map(since_start));
            }
            Effect::CheckFolder => return self.check_folder(),
            Effect::Reap(pid) => {
                let used = reap::reap(pid).map(lifecycle::used);
                return Some(Input::Reaped { used, last_line: self.line_of_failure() });
            }
            Effect::SearchAll => {
                while self.search() {}
                return Some(Input::SearchedAll);
            }
            Effect::FeedStep { step, order } => self.feed_step(step, &order),
            Effect::ShowPrompt(step) => self.show_prompt(step),
            Effect::SearchStep(step) => {
                while self.search() {}
                return Some(Input::StepSearched(step));
            }
            Effect::CaptureShell => self.ask_shell_for_state(),
            Effect::LeavePrompt => self.leave_prompt(),
            Effect::LookForLostShell(verdict) => {
                return Some(Input::ShellReads { verdict, is_lost: self.is_shell_lost() });
            }
            Effect::InterruptForeground => self.interrupt_foreground(),
            Effect::SignalStep { signals, since } => {
                return Some(Input::StepSignalled(self.signal_step(signals, since)));
            }
            Effect::SaveWatches(watches) => self.save_watches(&watches),
            Effect::GiveMemoryBack => {
                self.search_buffer = SearchBuffer::default();
                outlast_pty::memory::give_back();
            }
            Effect::AnswerExec { question, allow } => {
                if let Some(guard) = &self.guard {
                    guard.answer(question, allow);
                }
            }
            Effect::NumberQuestion(refused) => return self.number_question(refused),
            Effect::AllowHost(host) => self.allow_host(&host),
            Effect::Probe(probe) => return self.start_probe(probe),
            Effect::StopProbes => self.probe = None,
            Effect::CheckInputRead => return Some(Input::AllRead(self.is_input_read())),
            Effect::CountRuns(pid) => return Some(Input::Runs { pid, runs: procfs::times_run(pid) }),
            Effect::AppendOutbox(entries) => return Some(self.append_outbox(entries)),
            Effect::SyncOutbox => return self.sync_outbox(),
            Effect::Wake(entries) => return Some(self.wake(&entries)),
        }
        None
    }

    fn number_question(&self, refused: Refused) -> Option<Input<'static>> {
        let number = self.inherited.guard_ends.as_ref()?.notes.next_question();
        Some(Input::HostAsked { refused, number })
    }

    fn allow_host(&self, host: &str) {
        if let (Some(proxy), Ok(host)) = (&self.proxy, AllowedHost::parse(host)) {
            proxy.allow(host);
        }
    }

    /// Gives the program what it takes of the input now.
    fn write_input(&mut self) -> Input<'static> {
        let (front, back) = self.core.input();
        let mut taken = 0;
        let mut refused = false;
        match self.inherited.ends.input() {
            Some(sink) => {
                for part in [front, back] {
                    match write_some(sink, part) {
                        Ok(n) => taken += n,
                        // Nobody will ever read it: the program closed its input.
                        Err(_) => refused = true,
                    }
                    if taken < front.len() || refused {
                        break;
                    }
                }
            }
            None => refused = true,
        }
        let left = self.core.queued_input().saturating_sub(taken as u64);
        self.inherited.shared.set_queued_input(if refused { 0 } else { left });
        Input::Written { taken, refused }
    }

    /// How the terminal passes on what is typed; none on pipes.
    pub(super) fn line_modes(&self) -> Option<LineModes> {
        match &self.inherited.ends {
            Ends::Terminal { master, .. } => tcgetattr(master).ok().map(|modes| line_modes_of(&modes)),
            Ends::Pipes { .. } => None,
        }
    }

    fn close_input(&mut self) {
        // The thread that looks has an end of the pipe, too.
        self.probe = None;
        self.inherited.close_stdin();
        self.inherited.shared.set_stdin_closed();
        let heir = match self.net {
            Net::Parent => rustix::process::getppid().filter(|_| self.core.has_heir()),
            Net::Child(heir) => Some(heir),
            Net::None => None,
        };
        if let Some(heir) = heir {
            // It holds the pipe too, and must let go of it.
            let _ = rustix::process::kill_process(heir, Signal::USR1);
        }
    }

    /// From now on a secret is hidden everywhere, in the log too.
    pub(super) fn learn_secret(&mut self, value: &[u8]) -> Result<(), Failure> {
        // Bytes that are not text can't be found in text; the terminal does not show them either.
        let Ok(text) = std::str::from_utf8(value) else { return Ok(()) };
        let is_new = match self.inherited.masks.write() {
            Ok(mut masks) => masks.add(text, true),
            Err(_) => false,
        };
        if !is_new {
            return Ok(());
        }
        secrets::with(&self.inherited.masks, |masks| secrets::write(&self.inherited.job, masks)).map_err(
            |error| Failure::system("what must be hidden can't be written down, so nothing was typed", error),
        )?;
        secrets::share_typed(self.inherited.home.path(), text);
        let Some(masks) = log_masks(&self.inherited) else { return Ok(()) };
        for channel in &mut self.channels {
            channel.redact(&masks).map_err(|error| Failure::system("the log can't be redacted", error))?;
        }
        Ok(())
    }

    fn set_size(&mut self, size: Size) -> std::io::Result<()> {
        let Ends::Terminal { master, .. } = &self.inherited.ends else { return Ok(()) };
        outlast_pty::open::resize(master, size)?;
        let since = Instant::now().saturating_duration_since(self.inherited.started);
        self.timing.resized(since, self.core.grown().offset, size);
        Ok(())
    }

    fn signal_all(&self, signals: &[Signal], counts: bool) -> Option<Input<'static>> {
        let reached: Vec<usize> = signals.iter().map(|signal| self.signal(*signal)).collect();
        counts.then(|| Input::Signalled(reached.first().copied().unwrap_or(0)))
    }

    /// Signals every process of the job, and says how many got it.
    fn signal(&self, signal: Signal) -> usize {
        let members = self.members();
        let sent = members.iter().filter(|process| signal::send(process, signal).is_ok()).count();
        // Where `/proc` does not show it (`hidepid`, and a program of another user), the kernel still knows our child.
        match self.core.command() {
            Some(command) if self.watched.is_none() && members.iter().all(|member| member.pid != command) => {
                let reached = rustix::process::kill_process(command, signal).is_ok();
                // It leads a group of its own, whose number is taken for as long as we have not reaped it.
                let _ = rustix::process::kill_process_group(command, signal);
                sent + usize::from(reached)
            }
            Some(_) | None => sent,
        }
    }

    fn survey(&mut self, lists: bool) -> Input<'static> {
        let nothing_left = self.nothing_left();
        if !nothing_left {
            self.watch_strays();
        }
        let mut processes = if nothing_left || !lists { Vec::new() } else { self.processes() };
        if processes.is_empty() && lists && !nothing_left {
            processes.push(self.hidden_process());
        }
        Input::Surveyed { nothing_left, processes }
    }

    /// The kernel says that a child of ours is there, and `/proc` does not show it.
    fn hidden_process(&self) -> Process {
        let pid = self.core.command().map_or(0, |pid| pid.as_raw_nonzero().get());
        Process { pid, started: 0, program: "a process that /proc does not show".into(), ports: Vec::new() }
    }

    fn check_folder(&self) -> Option<Input<'static>> {
        if self.core.is_record_stale() {
            // A client that looked at the lock just when we took it may have kept us from it.
            set_end_unsaved(&self.inherited.events, true);
        }
        let removed = rustix::fs::fstat(&self.inherited.job).is_ok_and(|stat| stat.st_nlink == 0);
        removed.then_some(Input::FolderRemoved)
    }

    /// The last line of what a job printed that failed: why, more often than not.
    fn line_of_failure(&self) -> String {
        match self.core.state() {
            State::Failed(_) => self.last_line_of_transcript(),
            State::Queued(_)
            | State::Starting
            | State::Running { .. }
            | State::Completed(_)
            | State::Killed(_)
            | State::Lost { .. } => String::new(),
        }
    }

    fn start_probe(&mut self, probe: Box<Probe>) -> Option<Input<'static>> {
        if self.probe.is_none() {
            let end = match &self.inherited.ends {
                Ends::Terminal { master, .. } => master.try_clone().map(InputEnd::Terminal),
                Ends::Pipes { stdin: Some(stdin), .. } => stdin.try_clone().map(InputEnd::Pipe),
                Ends::Pipes { stdin: None, .. } => Ok(InputEnd::Closed),
            };
            self.probe = end.and_then(ProbeThread::start).ok();
        }
        let asked = self.probe.as_ref().is_some_and(|thread| thread.ask(probe));
        (!asked).then_some(Input::ProbeFailed)
    }

    /// Whether nothing that was typed waits to be read.
    fn is_input_read(&self) -> bool {
        match &self.inherited.ends {
            Ends::Terminal { slave, .. } => rustix::io::ioctl_fionread(slave).is_ok_and(|left| left == 0),
            Ends::Pipes { .. } => false,
        }
    }
}

/// Writes as much as is taken now.
fn write_some(sink: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    let mut written = 0;
    while written < bytes.len() {
        match rustix::io::write(sink.as_fd(), &bytes[written..]) {
            Ok(0) | Err(Errno::AGAIN) => break,
            Ok(n) => written += n,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

fn line_modes_of(modes: &Termios) -> LineModes {
    use SpecialCodeIndex as Code;
    let local = modes.local_modes;
    let code = |index| modes.special_codes[index];
    LineModes {
        canonical: local.contains(LocalModes::ICANON),
        echo: local.contains(LocalModes::ECHO),
        signals: local.contains(LocalModes::ISIG),
        extended: local.contains(LocalModes::IEXTEN),
        end_of_file: code(Code::VEOF),
        erase_line: code(Code::VKILL),
        interrupt: code(Code::VINTR),
        quit: code(Code::VQUIT),
        erase: code(Code::VERASE),
        quote_next: code(Code::VLNEXT),
    }
}
