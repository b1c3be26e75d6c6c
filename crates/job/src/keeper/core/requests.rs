//! Answers to clients' requests. Each gets exactly one, at once or later, unless its client leaves.

use std::time::Duration;

use super::typing::LineModes;
use super::{Client, Core, Effect, Effects, Now};
use crate::clock::millis;
use crate::failure::Failure;
use crate::lifecycle::{EndedBy, Process};
use crate::wire::brief_status::BriefStatus;
use crate::wire::{Activity, Answer, Killed, Status, Verb};
use outlast_protocol::{Call, Hint};

/// Output that is newer than this means that a job is at work.
const RECENT_OUTPUT: Duration = Duration::from_secs(2);

impl Core {
    /// A client asks for something. `modes` are those of the job's terminal, for requests to type.
    pub(super) fn on_request(
        &mut self,
        client: Client,
        verb: Verb,
        modes: Option<LineModes>,
        now: Now,
        effects: &mut Effects,
    ) {
        match verb {
            Verb::Status { brief: true } => {
                let glance = self.glance(now);
                effects.reply(client, Answer::BriefStatus(Box::new(glance)));
            }
            Verb::Status { brief: false } => effects.push(Effect::ListProcesses(client)),
            Verb::Follow => {
                effects.push(Effect::Follow(client.peer));
                effects.push(Effect::ListProcesses(client));
            }
            Verb::Send(send) => self.on_send(client, &send, modes, now, effects),
            Verb::Typed => effects.reply(client, Answer::Typed(self.typing.typed())),
            Verb::Secret(secret) => self.on_secret(client, secret, modes, now, effects),
            Verb::Signal { signal, session } => self.on_signal(client, &signal, session, effects),
            Verb::Kill { grace_ms, session } => {
                let by = EndedBy::Kill { session, signal: "SIGTERM".into() };
                self.begin_ending(by, Duration::from_millis(grace_ms), Some(client), now, effects);
            }
            Verb::AnswerQuestion { question, allow, by } => {
                self.on_exec_answer(client, (question, allow), &by, now, effects);
            }
            Verb::Hold(hold) => self.on_hold(client, hold, now, effects),
            Verb::Resize { size } => self.on_resize(client, size, effects),
            Verb::Attach(attach) => self.on_attach(client, &attach, now, effects),
            Verb::Screen { styled, scrollback, masked } => {
                let answer = if self.record.has_terminal() {
                    self.screen(styled, scrollback, masked)
                } else {
                    let handle = self.record.handle();
                    let failure = Failure::usage("this job runs on pipes and has no screen")
                        .hint(Hint::call("read what it printed: ", Call::Read(handle.to_string())));
                    Answer::Error(failure.into())
                };
                effects.reply(client, answer);
            }
            Verb::Wait(wait) => self.on_wait(client, wait, now, effects),
            Verb::Step(order) => self.on_step(client, order, now, effects),
            Verb::Shell { brief } => self.on_shell_status(client, brief, effects),
            Verb::EndStep { step, grace_ms, session } => {
                let grace = Duration::from_millis(grace_ms);
                self.on_end_step(client, step, (grace, session), now, effects);
            }
            Verb::Watch { watch } => self.on_watch(client, watch, now, effects),
            Verb::Watches => self.show_watches(client, effects),
            Verb::Unwatch { watch } => self.on_unwatch(client, &watch, effects),
        }
    }

    /// One signal by name to the whole job; nothing follows it.
    fn on_signal(&mut self, client: Client, name: &str, session: String, effects: &mut Effects) {
        match crate::local::kill::signal_named(name) {
            Ok(signal) => {
                self.last_signal = Some((signal, session));
                effects.push(Effect::Signal { signal, client });
            }
            Err(failure) => effects.reply(client, Answer::Error(failure.into())),
        }
    }

    /// How many processes a requested signal was sent to.
    pub(super) fn on_signal_sent(&mut self, client: Client, signalled: usize, effects: &mut Effects) {
        let already_ended = self.phase.ended().is_some() && signalled == 0;
        effects.reply(client, Answer::Killed(Killed { signalled, already_ended, ..Killed::default() }));
    }

    /// What is known without a look at anything: lists ask for it, of every job at once.
    fn glance(&self, now: Now) -> BriefStatus {
        BriefStatus {
            grown: self.grown(),
            activity: self.activity(now),
            log_failing: self.log_failing(),
            awaiting_input: self.awaiting_now().cloned(),
            ports: self.ports.clone(),
            last_line: self.last_line(),
            held_by: self.held_by(),
            step: self.steps.shown_running(),
        }
    }

    fn activity(&self, now: Now) -> Activity {
        let silent = now.at.saturating_duration_since(self.last_output);
        match self.phase.running() {
            None => Activity::Ended,
            Some(running) if running.queued.is_some() => Activity::Queued,
            Some(running) if running.stopped => Activity::Stopped,
            Some(_) if self.questions.awaiting().is_some() => Activity::Asking,
            Some(_) if self.awaiting.is_some() => Activity::AwaitingInput,
            Some(_) if silent < RECENT_OUTPUT => Activity::Working,
            Some(_) if self.listening.is_some() => Activity::Listening { for_ms: millis(silent) },
            Some(_) => Activity::Quiet { for_ms: millis(silent) },
        }
    }

    /// The processes of the job are known: the answer to a full status.
    pub(super) fn on_processes(
        &mut self,
        client: Client,
        processes: Vec<Process>,
        now: Now,
        effects: &mut Effects,
    ) {
        let status = Status {
            info: self.info(),
            grown: self.grown(),
            activity: self.activity(now),
            queued_input: self.typing.queued(),
            log_failing: self.log_failing(),
            awaiting_input: self.awaiting_now().cloned(),
            questions: self.questions.all(),
            ports: self.ports.clone(),
            sockets: self.sockets.clone(),
            last_line: self.last_line(),
            held_by: self.held_by(),
            processes,
        };
        effects.reply(client, Answer::Status(Box::new(status)));
    }

    /// A client has left: nobody is answered there any more.
    pub(super) fn on_peer_left(&mut self, peer: super::PeerId, now: Now, effects: &mut Effects) {
        if let Some(Some(ending)) = self.phase.ending_slot() {
            ending.forget_peer(peer);
        }
        self.typing.forget_peer(peer);
        self.conditions.forget_clients(&[peer]);
        self.steps.forget_peer(peer);
        self.forget_viewer(peer, effects);
        self.stand_up(peer, now, effects);
        self.settle_hold(now.at);
    }
}
