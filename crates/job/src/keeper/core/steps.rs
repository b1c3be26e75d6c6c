//! Steps of a shell: commands wait for their turn, run one at a time, and each end is an event before anybody is told.
//!
//! The shell gets a command and says how it ended over a line of its own; how that is written is the business of
//! [`shell_line`](super::super::shell_line). Here it is decided when, what becomes of waiting callers, and how a step is
//! ended while its shell stays.

mod ending;
mod person;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use outlast_protocol::shell::{RunningStep, Shell, ShellStatus, Step, StepOrder, StepState};

use ending::StepEnding;
use person::Seat;

use super::{Client, Core, Effect, Effects, Now, PeerId};
use crate::clock::{earliest, millis};
use crate::failure::{Failure, Kind};
use crate::lifecycle::{EndedBy, Outcome, State};
use crate::shells;
use crate::wire::event::EventKind;
use crate::wire::{Answer, Killed, Reason, Wait, Waited};
use outlast_protocol::{Call, Hint};

/// How many steps may wait for their turn.
const MAX_QUEUED: usize = 256;
/// How many steps are remembered; older ones are in the log of events.
const REMEMBERED: usize = 64;
/// How much of a command is written down.
const SHOWN_COMMAND: usize = 8 << 10;
/// How long a shell must have had nothing to do before it is asked what it remembers.
const IDLE_BEFORE_CAPTURE: Duration = Duration::from_millis(40);
/// It is asked so seldom: to tell everything takes it longer than most steps.
const CAPTURES_APART: Duration = Duration::from_millis(300);

/// How a step ended, as its shell says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StepEnd {
    pub(crate) step: u64,
    pub(crate) code: i32,
    pub(crate) pipeline: Vec<i32>,
    /// Where the shell is now; none if it did not say.
    pub(crate) folder: Option<String>,
    /// What runs on in the background.
    pub(crate) background: Vec<i32>,
}

/// What is known of the steps of a shell when a keeper begins.
#[derive(Debug, Default)]
pub(crate) struct KnownSteps {
    pub(crate) shell: Option<Shell>,
    pub(crate) folder: String,
    /// Oldest first; one that is not over was running when a keeper died.
    pub(crate) steps: Vec<Step>,
    /// A frame was only half written when a keeper died: the shell can't be told anything any more.
    pub(crate) torn: bool,
    /// The step that the person at the prompt may type.
    pub(crate) prompt: Option<u64>,
}

/// The steps of a shell.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    /// None for a job that is not a shell.
    shell: Option<Shell>,
    next: u64,
    folder: String,
    running: Option<Running>,
    queue: VecDeque<Queued>,
    done: VecDeque<Step>,
    /// Waits for steps whose turn has not come.
    held: Vec<HeldWait>,
    /// Whose waits are about which step.
    waits: Vec<(Client, u64)>,
    /// When the shell is asked what it remembers.
    capture_at: Option<Instant>,
    /// When it was last asked.
    captured_at: Option<Instant>,
    /// What was changed since the shell was made, by names.
    changed: BTreeMap<String, Vec<String>>,
    /// The person who sits at its prompt.
    seat: Seat,
    torn: bool,
}

#[derive(Debug)]
struct Running {
    step: Step,
    began: Instant,
    limit: Option<Duration>,
    ending: Option<StepEnding>,
}

#[derive(Debug)]
struct Queued {
    step: Step,
    order: StepOrder,
}

#[derive(Debug)]
struct HeldWait {
    client: Client,
    wait: Wait,
    step: u64,
    began: Instant,
    deadline: Option<Instant>,
}

impl Steps {
    pub(super) fn new(known: KnownSteps, now: Instant) -> Self {
        let KnownSteps { shell, folder, steps, torn, prompt } = known;
        let seat = Seat::at(prompt);
        let mut this = Self { shell, folder, torn, seat, next: 1, ..Self::default() };
        for step in steps {
            this.next = step.step + 1;
            if let Some(folder) = &step.folder {
                this.folder.clone_from(folder);
            }
            if step.is_over() {
                this.done.retain(|known| known.step != step.step);
                this.remember(step);
                this.running = None;
            } else {
                this.running = Some(Running { step, began: now, limit: None, ending: None });
            }
        }
        this
    }

    /// Whether it is a shell that has nothing to do: it waits for its next step, and for nothing else.
    pub(super) fn is_idle_shell(&self) -> bool {
        let has_left_some = self.done.back().is_some_and(|step| !step.background.is_empty());
        self.shell.is_some() && self.running.is_none() && !self.seat.is_taken() && !has_left_some
    }

    /// The step that runs, for lists.
    pub(super) fn shown_running(&self) -> Option<RunningStep> {
        let step = &self.running.as_ref()?.step;
        Some(RunningStep { step: step.step, command: first_line(&step.command).to_owned() })
    }

    /// Whether a step runs.
    pub(super) fn has_running(&self) -> bool {
        self.running.is_some()
    }

    fn remember(&mut self, step: Step) {
        if self.done.len() >= REMEMBERED {
            self.done.pop_front();
        }
        self.done.push_back(step);
    }

    fn take_number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn find(&self, number: u64) -> Option<&Step> {
        let running = self.running.iter().map(|running| &running.step);
        let queued = self.queue.iter().map(|queued| &queued.step);
        running.chain(queued).chain(&self.done).find(|step| step.step == number)
    }

    fn all(&self) -> Vec<Step> {
        let running = self.running.iter().map(|running| &running.step);
        let queued = self.queue.iter().map(|queued| &queued.step);
        self.done.iter().chain(running).chain(queued).cloned().collect()
    }

    /// The step that a client's wait is about, as it is; the client waits no longer.
    pub(super) fn waited_for(&mut self, client: Client) -> Option<Box<Step>> {
        let at = self.waits.iter().position(|(of, _)| *of == client)?;
        let (_, number) = self.waits.swap_remove(at);
        self.find(number).cloned().map(Box::new)
    }

    pub(super) fn forget_peer(&mut self, peer: PeerId) {
        self.held.retain(|held| held.client.peer != peer);
        self.waits.retain(|(client, _)| client.peer != peer);
        if let Some(Running { ending: Some(ending), .. }) = &mut self.running {
            ending.asked.retain(|client| client.peer != peer);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let limit = self.running.as_ref().and_then(|running| match &running.ending {
            Some(ending) => Some(ending.next),
            None => running.limit.and_then(|limit| running.began.checked_add(limit)),
        });
        let held = self.held.iter().fold(None, |next, held| earliest(next, held.deadline));
        earliest(earliest(earliest(limit, held), self.capture_at), self.seat.next_deadline())
    }

    /// How many steps and waits are kept.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.queue.len() + self.held.len() + self.waits.len()
    }

    /// What runs, in words.
    fn busy(&self) -> Option<String> {
        let name = self.shell.as_ref().map_or("", |shell| shell.name.as_str());
        let Some(running) = &self.running else {
            return self.seat.is_taken().then(|| format!("a person sits at the prompt of shell {name}"));
        };
        Some(format!("shell {name}, step {} runs: {}", running.step.step, first_line(&running.step.command)))
    }
}

fn first_line(command: &str) -> &str {
    let line = command.lines().next().unwrap_or_default();
    &line[..line.floor_char_boundary(80)]
}

impl Core {
    /// Somebody wants a command run.
    pub(super) fn on_step(&mut self, client: Client, order: StepOrder, now: Now, effects: &mut Effects) {
        match self.accept_step(order, now, effects) {
            Ok(step) => effects.reply(client, Answer::Step(Box::new(step))),
            Err(failure) => effects.reply(client, Answer::Error(failure.into())),
        }
    }

    fn accept_step(&mut self, order: StepOrder, now: Now, effects: &mut Effects) -> Result<Step, Failure> {
        order.check()?;
        let handle = self.record.handle().to_string();
        if self.steps.shell.is_none() {
            return Err(Failure::usage(format!("job {handle} is not a shell: it takes no steps"))
                .hint(Hint::call("type into it: ", Call::Send(handle))));
        }
        if self.phase.running().is_none_or(|running| running.ending.is_some()) || self.steps.torn {
            return Err(Failure::new(Kind::NotRunning, "the shell has ended"));
        }
        if let Some(busy) = self.steps.busy()
            && (order.if_idle || self.steps.queue.len() >= MAX_QUEUED)
        {
            return Err(Failure::new(Kind::Denied, format!("nothing was run: {busy}"))
                .hint(Hint::call("wait for it, read it, or end it: ", Call::Kill(handle))));
        }
        let number = self.steps.take_number();
        let step = self.new_step((number, &order.command), order.session.clone(), now);
        let accepted = step.clone();
        self.steps.queue.push_back(Queued { step, order });
        self.begin_next_step(now, effects);
        Ok(self.steps.find(number).cloned().unwrap_or(accepted))
    }

    fn new_step(&mut self, (number, command): (u64, &str), by: String, now: Now) -> Step {
        let shown = &command[..command.floor_char_boundary(SHOWN_COMMAND)];
        Step {
            step: number,
            command: self.hide(shown),
            state: StepState::Queued,
            by,
            from: self.grown().offset,
            to: None,
            exit_code: None,
            pipeline: Vec::new(),
            started_at: now.unix_ms,
            took_ms: None,
            folder_before: self.steps.folder.clone(),
            folder: None,
            changed: Vec::new(),
            background: Vec::new(),
            note: None,
        }
    }

    /// The next step's turn comes, if none runs and nobody sits at the prompt.
    fn begin_next_step(&mut self, now: Now, effects: &mut Effects) {
        if self.steps.running.is_some() || self.phase.running().is_none() || self.keep_seat(effects) {
            return;
        }
        let Some(Queued { mut step, order }) = self.steps.queue.pop_front() else { return };
        // Afterwards there may be no shell that could tell.
        let is_due = self.steps.capture_at.take().is_some();
        if is_due && shells::may_end_shell(&order.command) {
            effects.push(Effect::CaptureShell);
        }
        step.state = StepState::Running;
        step.from = self.grown().offset;
        step.started_at = now.unix_ms;
        step.folder_before.clone_from(&self.steps.folder);
        let number = step.step;
        // On the disk before the shell has it: an heir must know what ends.
        self.event(EventKind::StepStarted { step: Box::new(step.clone()) }, now, effects);
        let limit = order.timeout_ms.map(Duration::from_millis);
        self.steps.running = Some(Running { step, began: now.at, limit, ending: None });
        effects.push(Effect::FeedStep { step: number, order: Box::new(order) });
        self.begin_held_waits(number, now, effects);
        // A program may wait for input without ever printing anything.
        self.plan_probe(now.at);
    }

    fn begin_held_waits(&mut self, number: u64, now: Now, effects: &mut Effects) {
        let (due, rest): (Vec<HeldWait>, Vec<HeldWait>) =
            std::mem::take(&mut self.steps.held).into_iter().partition(|held| held.step == number);
        self.steps.held = rest;
        for held in due {
            let left = held.deadline.map(|at| millis(at.saturating_duration_since(now.at)));
            let wait = Wait { from: None, deadline_ms: left, ..held.wait };
            self.on_step_wait(held.client, wait, number, now, effects);
        }
    }

    /// A client waits for something of a step.
    pub(super) fn on_step_wait(
        &mut self,
        client: Client,
        wait: Wait,
        number: u64,
        now: Now,
        effects: &mut Effects,
    ) {
        let Some(step) = self.steps.find(number) else {
            let failure = Failure::usage(format!("there is no step {number} any more"))
                .hint("see its steps: outlast show shell NAME");
            return effects.reply(client, Answer::Error(failure.into()));
        };
        match step.state {
            StepState::Queued => {
                let deadline = wait.deadline_ms.and_then(|ms| now.at.checked_add(Duration::from_millis(ms)));
                self.steps.held.push(HeldWait { client, wait, step: number, began: now.at, deadline });
            }
            StepState::Running | StepState::Ended => {
                let from = wait.from.unwrap_or(step.from).max(step.from);
                let over = step.is_over();
                self.steps.waits.push((client, number));
                self.begin_wait(
                    client,
                    &Wait { from: Some(from), ..wait },
                    Some((number, over)),
                    now,
                    effects,
                );
            }
            StepState::NotRun => {
                let waited = Waited {
                    step: Some(Box::new(step.clone())),
                    ..Waited::because(Reason::Exit, self.grown().offset)
                };
                effects.reply(client, Answer::Waited(waited));
            }
        }
    }

    /// A step has ended, and all that it printed was fed.
    pub(super) fn on_step_ended(&mut self, end: StepEnd, now: Now, effects: &mut Effects) {
        if self.steps.running.is_none() && self.steps.seat.leave_prompt(end.step) {
            // Nothing was typed there: unless others have come since, the number is free again.
            if self.steps.next == end.step + 1 {
                self.steps.next = end.step;
            }
            // What was waited for at the prompt is no question of the next step.
            self.note_activity(now, effects);
            return self.begin_next_step(now, effects);
        }
        if self.steps.running.as_ref().is_none_or(|running| running.step.step != end.step) {
            // Told once more to an heir: the end is on the disk already.
            return;
        }
        let StepEnd { code, pipeline, folder, background, .. } = end;
        if let Some(running) = &mut self.steps.running {
            running.step.background = background;
        }
        self.finish_step(Some(code), pipeline, folder, now, effects);
    }

    /// The step is over; waiting callers are answered when patterns have seen all of it.
    fn finish_step(
        &mut self,
        code: Option<i32>,
        pipeline: Vec<i32>,
        folder: Option<String>,
        now: Now,
        effects: &mut Effects,
    ) {
        let Some(Running { mut step, ending, .. }) = self.steps.running.take() else { return };
        step.state = StepState::Ended;
        step.to = Some(self.grown().offset);
        step.exit_code = code;
        step.pipeline = if pipeline.len() > 1 { pipeline } else { Vec::new() };
        step.took_ms = Some(now.unix_ms.saturating_sub(step.started_at));
        if let Some(folder) = folder {
            self.steps.folder.clone_from(&folder);
            step.folder = Some(folder);
        }
        if let Some(ending) = &ending {
            step.note.get_or_insert(format!("ended {}", ending.by.describe()));
        }
        if self.awaiting.take().is_some() {
            self.event(EventKind::WentOn, now, effects);
        }
        let number = step.step;
        let shown = Box::new(step.clone());
        self.steps.remember(step);
        let heard = self.steps.waits.iter().any(|(_, of)| *of == number);
        self.step_event(shown, heard, now, effects);
        effects.push(Effect::SearchStep(number));
        for client in ending.iter().flat_map(|ending| ending.asked.iter().copied()) {
            let signalled = ending.as_ref().map_or(0, |ending| ending.signalled);
            let note = Some(format!("step {number} was ended; the shell stays"));
            effects.reply(client, Answer::Killed(Killed { signalled, note, ..Killed::default() }));
        }
    }

    /// Patterns have seen all that a step printed: waiting callers are answered, and the next step begins.
    pub(super) fn on_step_searched(&mut self, number: u64, now: Now, effects: &mut Effects) {
        self.show_step_end(number, now, effects);
        self.begin_next_step(now, effects);
        let is_idle = self.steps.running.is_none() && !self.steps.seat.is_taken();
        self.plan_probe(now.at);
        if is_idle && self.phase.running().is_some() {
            let soonest = self.steps.captured_at.map(|at| at + CAPTURES_APART);
            let idle = now.at + IDLE_BEFORE_CAPTURE;
            self.steps.capture_at = Some(soonest.map_or(idle, |soonest| soonest.max(idle)));
        }
    }

    /// The shell has told what was changed in it since it was made, and what of that since it was last asked.
    pub(super) fn on_shell_changed(
        &mut self,
        all: BTreeMap<String, Vec<String>>,
        new: Vec<String>,
        now: Now,
        effects: &mut Effects,
    ) {
        self.steps.changed = all;
        let Some(step) = self.steps.done.back_mut() else { return };
        let changed: Vec<String> = new.into_iter().filter(|name| !step.changed.contains(name)).collect();
        if !changed.is_empty() {
            step.changed.extend_from_slice(&changed);
            let step = step.step;
            self.event(EventKind::StepChanged { step, changed }, now, effects);
        }
    }

    /// The shell has ended: so has what ran in it, and what waits never will.
    pub(super) fn end_steps(&mut self, now: Now, effects: &mut Effects) {
        if self.steps.shell.is_none() {
            return;
        }
        let state = self.phase.state();
        if let Some(running) = &mut self.steps.running {
            running.step.note.get_or_insert_with(|| "the shell ended with it".into());
        }
        self.finish_step(code_of(&state), Vec::new(), None, now, effects);
        for Queued { mut step, .. } in std::mem::take(&mut self.steps.queue) {
            step.state = StepState::NotRun;
            step.note = Some("it never ran: the shell ended before its turn".into());
            let shown = Box::new(step.clone());
            self.steps.remember(step);
            self.step_event(shown, true, now, effects);
        }
        for held in std::mem::take(&mut self.steps.held) {
            self.on_step_wait(held.client, held.wait, held.step, now, effects);
        }
    }

    /// We were the heir: a shell that has only half of a command can't be told anything any more.
    pub(super) fn take_up_steps(&mut self, now: Now, effects: &mut Effects) {
        if self.steps.torn {
            self.begin_ending(EndedBy::Unknown, super::ending::GRACE, None, now, effects);
        }
    }

    /// Somebody who is not the shell said that a step had ended.
    pub(super) fn on_step_forged(&mut self, why: String, now: Now, effects: &mut Effects) {
        self.event(EventKind::StepForged { why: why.clone() }, now, effects);
        if let Some(running) = &mut self.steps.running {
            running.step.note = Some(why);
        }
        self.steps.torn = true;
        self.begin_ending(EndedBy::Unknown, Duration::ZERO, None, now, effects);
    }

    /// The shell stands at its own prompt: a command has removed what brings it back to us, and then threw it out of the step.
    pub(super) fn on_shell_lost(&mut self, now: Now, effects: &mut Effects) {
        let Some(running) = &mut self.steps.running else { return };
        running.step.note = Some("the shell lost its way back to Outlast and was ended with it".into());
        self.steps.torn = true;
        self.begin_ending(EndedBy::Unknown, Duration::ZERO, None, now, effects);
    }

    /// What time alone decides about steps.
    pub(super) fn steps_on_time(&mut self, now: Now, effects: &mut Effects) {
        if self.steps.shell.is_none() {
            return;
        }
        let due = |held: &HeldWait| held.deadline.is_some_and(|at| now.at >= at);
        let (late, rest): (Vec<HeldWait>, Vec<HeldWait>) =
            std::mem::take(&mut self.steps.held).into_iter().partition(due);
        self.steps.held = rest;
        for held in late {
            let waited = Waited {
                elapsed_ms: millis(now.at.saturating_duration_since(held.began)),
                step: self.steps.find(held.step).cloned().map(Box::new),
                ..Waited::because(Reason::Deadline, self.grown().offset)
            };
            effects.reply(held.client, Answer::Waited(waited));
        }
        if self.steps.capture_at.is_some_and(|at| now.at >= at) {
            self.steps.capture_at = None;
            self.steps.captured_at = Some(now.at);
            effects.push(Effect::CaptureShell);
        }
        self.call_back_on_time(now, effects);
        self.end_step_on_time(now, effects);
    }

    /// The folder that the shell is in.
    pub(crate) fn shell_folder(&self) -> &str {
        &self.steps.folder
    }

    /// How the shell is.
    pub(super) fn on_shell_status(&self, client: Client, brief: bool, effects: &mut Effects) {
        if self.steps.shell.is_none() {
            let failure = Failure::usage("this job is not a shell: it has no steps");
            return effects.reply(client, Answer::Error(failure.into()));
        }
        let (folder, seated) = (self.steps.folder.clone(), self.steps.seat.is_taken());
        let status = if brief {
            ShellStatus { folder, seated, ..ShellStatus::default() }
        } else {
            let (steps, changed) = (self.steps.all(), self.steps.changed.clone());
            ShellStatus { folder, steps, changed, seated }
        };
        effects.reply(client, Answer::Shell(Box::new(status)));
    }
}

/// The code of a step whose shell ended with it.
fn code_of(state: &State) -> Option<i32> {
    match &state.receipt()?.outcome {
        Outcome::Exited { code } => Some(*code),
        Outcome::Signalled { signal, .. } => {
            outlast_pty::signal::parse(signal).map(|signal| 128 + signal.as_raw())
        }
        Outcome::NotStarted { .. } => None,
    }
}
