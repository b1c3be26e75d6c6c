//! Whether the job waits for input, and which ports it listens on: when to probe, and what to make of what
//! was found.
//!
//! Probes are taken by a thread of its own (see [`probe`](super::super::probe)), because reading `/proc` can
//! block. They are taken soon and often while somebody waits for the answer, seldom otherwise, and not at all
//! once a silent job has been probed often enough.

use std::time::{Duration, Instant};

use outlast_pty::evidence::{
    self, Claim, Hints, InputKind, LAST_RESORT_SILENCE, Level, MIN_SAMPLE_GAP_AT_PROMPT, Row,
    SETTLE_TIME_AT_PROMPT, Verdict, question_of_field, text,
};
use rustix::process::Pid;

use super::phase::Phase;
use super::typing::Typing;
use super::{Core, Effect, Effects, Now};
use crate::clock::earliest;
use crate::keeper::conditions::Moment;
use crate::keeper::conditions::check::{Fact, HttpAnswer, HttpTarget};
use crate::wire::event::EventKind;
use crate::wire::{self, Awaiting, AwaitingKind, Evidence};

/// How far apart probes for a port are while somebody waits for one.
const PORT_PROBE: Duration = Duration::from_millis(50);
/// How far apart they are while a port is worth an event, and nobody waits.
const PORT_WATCH: Duration = Duration::from_secs(1);
/// After which silences a job that nobody waits for is probed.
const UNATTENDED: &[Duration] = &[
    Duration::from_millis(250),
    Duration::from_millis(300),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
    LAST_RESORT_SILENCE.saturating_add(Duration::from_secs(1)),
];
/// How far apart the probes after those are.
const UNATTENDED_LATER: Duration = Duration::from_secs(300);
/// A probe is taken this much later than the prober requires, so that rounding does not waste it.
const MARGIN: Duration = Duration::from_micros(5);
/// When a program that may be back at a known prompt is first probed so that it counts.
const QUICK: Duration = SETTLE_TIME_AT_PROMPT.saturating_add(MARGIN);
/// How far apart the first two quick probes are. Each later gap is twice as long.
const QUICK_APART: Duration = MIN_SAMPLE_GAP_AT_PROMPT.saturating_add(MARGIN);
/// The gap between quick probes is doubled at most this often.
const QUICK_DOUBLINGS: usize = 5;
/// When the probe before the quick ones is taken. It only notes who sleeps: two must agree.
const EARLY: Duration = Duration::from_micros(60);
/// How many quick probes there are; later ones are taken as for any other program.
const MAX_QUICK_PROBES: usize = 8;
/// A probe that takes longer is stuck on a hung file system; it is not waited for.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Input that has not woken its reader by then does not wake it: half a line, for example.
const SLOWEST_WAKE: Duration = Duration::from_millis(700);
/// How much of the text before the cursor is looked at.
const MAX_PROMPT: usize = 200;

/// What the screen and the clock know, for one probe.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    pub(super) text: String,
    line_above: String,
    alternate: bool,
    bracketed_paste: bool,
    cursor_hidden: bool,
    since_output: Duration,
    since_input: Duration,
    row: Row,
    offers_choice: bool,
    lists_choices: bool,
    field: String,
    text_below: bool,
    answered: bool,
    /// When a first sign of waiting is looked at again, without another word of the keeper: two looks must agree, and each change
    /// of threads costs the caller time.
    again: Option<Instant>,
    /// Whether ports are looked for, too.
    pub(crate) ports: bool,
    /// What ports of the job are asked for over HTTP.
    pub(in crate::keeper) http: Vec<HttpTarget>,
    pub(crate) activity: u64,
}

impl Probe {
    /// What the evidence is weighed with.
    pub(crate) fn hints(&self) -> Hints<'_> {
        Hints {
            text_before_cursor: &self.text,
            line_above: &self.line_above,
            alternate_screen: self.alternate,
            bracketed_paste: self.bracketed_paste,
            cursor_hidden: self.cursor_hidden,
            since_output: self.since_output,
            since_input: self.since_input,
            row: self.row,
            offers_choice: self.offers_choice,
            lists_choices: self.lists_choices,
            field: &self.field,
            text_below: self.text_below,
            answered: self.answered,
        }
    }

    /// When to look again, if the look that began then saw a first sign.
    pub(crate) fn again_at(&self, began: Instant) -> Option<Instant> {
        self.again.map(|at| at.max(began + QUICK_APART))
    }

    /// It is looked at again, so much later.
    pub(crate) fn put_off(&mut self, by: Duration) {
        self.since_output += by;
        self.since_input += by;
        self.again = None;
    }
}

/// What one probe found.
#[derive(Debug)]
pub(crate) struct ProbeResult {
    pub(crate) verdict: Verdict,
    pub(crate) unconfirmed: bool,
    /// Ports and sockets, where they were looked for.
    pub(crate) listening: Option<(Vec<u16>, Vec<String>)>,
    /// How ports answered that were asked over HTTP, now or at an earlier probe.
    pub(in crate::keeper) http: Vec<HttpAnswer>,
    /// Who waits, and how often it had run until then.
    pub(crate) reader: Option<(Pid, u64)>,
    pub(crate) activity: u64,
}

/// What is known from probes.
#[derive(Debug, Default)]
pub(crate) struct Probing {
    /// A probe is under way since then.
    under_way: Option<Instant>,
    next: Option<Instant>,
    unconfirmed: bool,
    probes_since_activity: usize,
    /// Quick probes since the last activity.
    quick_probes: usize,
    /// Counts output and input: a probe of what was before does not count.
    activity: u64,
    /// What stood before the cursor at the last probe.
    text: String,
    /// What was asked at the last probe: that, or the question above it.
    prompt: String,
    /// It was told that the job listens, and nothing was typed since.
    listening_told: bool,
    /// What stood there when it last waited.
    last_prompt: Option<String>,
    /// Who was last seen to wait, and how often it had run until then.
    reader: Option<(Pid, u64)>,
    /// The same, from before the last input: until it has run again, it has not even seen that input.
    reader_before_input: Option<(Pid, u64)>,
}

impl Probing {
    pub(super) fn next(&self) -> Option<Instant> {
        match self.under_way {
            Some(since) => Some(since + PROBE_TIMEOUT),
            None => self.next,
        }
    }
}

impl Core {
    /// The job printed something or was typed into: what was known of its waiting no longer holds.
    pub(super) fn note_activity(&mut self, now: Now, effects: &mut Effects) {
        self.probing.activity += 1;
        self.probing.probes_since_activity = 0;
        self.probing.quick_probes = 0;
        self.probing.unconfirmed = false;
        if self.awaiting.take().is_some() {
            self.event(EventKind::WentOn, now, effects);
        }
        self.plan_probe(now.at);
    }

    /// Something was typed: earlier waits are about what came before.
    pub(super) fn note_input(&mut self, now: Now, effects: &mut Effects) {
        self.last_input = now.at;
        self.probing.listening_told = false;
        let reader = self.probing.reader.take().or(self.probing.reader_before_input.take());
        if let Some((pid, _)) = reader {
            effects.push(Effect::CountRuns(pid));
        }
        self.note_activity(now, effects);
    }

    /// How often the program that waited before the last input had run until then.
    pub(super) fn on_runs(&mut self, pid: Pid, runs: Option<u64>, now: Now) {
        self.probing.reader_before_input = runs.map(|runs| (pid, runs));
        self.plan_probe(now.at);
    }

    /// Whether a claim is about a program that a busy machine has not woken for its input yet.
    fn is_stale(&self, reader: Option<(Pid, u64)>, now: Instant) -> bool {
        reader.is_some()
            && reader == self.probing.reader_before_input
            && now.saturating_duration_since(self.last_input) < SLOWEST_WAKE
    }

    /// Decides when to probe next.
    pub(crate) fn plan_probe(&mut self, now: Instant) {
        if self.phase.at_work().is_none() {
            // A look that is planned stays: output must not put it off again and again.
            let planned = self.probing.next.filter(|next| *next > now);
            let next = planned.map_or(now + PORT_PROBE, |planned| planned.min(now + PORT_PROBE));
            self.probing.next = self.is_port_of_left_wanted().then_some(next);
            return;
        }
        let wanted = self.conditions.wanted();
        let asked = wanted.awaiting_input || wanted.port || wanted.port_event || !wanted.http.is_empty();
        if self.steps.is_idle_shell() && !asked {
            self.probing.next = None;
            return;
        }
        let quiet_since = self.last_output.max(self.last_input);
        let quiet = now.saturating_duration_since(quiet_since);
        let mut next = if wanted.awaiting_input && self.may_probe_quickly() {
            Some(match self.probing.quick_probes.checked_sub(1) {
                None => quiet_since + EARLY,
                Some(before) => {
                    let apart = QUICK_APART * (1 << before.min(QUICK_DOUBLINGS));
                    (now + apart).max(quiet_since + QUICK)
                }
            })
        } else if wanted.awaiting_input {
            let probe = Probe { since_output: quiet, since_input: quiet, ..Probe::default() };
            Some(now + evidence::next_look(&probe.hints(), self.probing.unconfirmed))
        } else {
            let step = UNATTENDED.get(self.probing.probes_since_activity);
            let at = quiet_since + step.copied().unwrap_or(quiet + UNATTENDED_LATER);
            Some(at.max(now + Duration::from_millis(20)))
        };
        let last_resort = quiet_since + self.watchdog.after();
        if last_resort > now {
            next = earliest(next, Some(last_resort + Duration::from_millis(20)));
        }
        if wanted.port {
            next = earliest(next, Some(now + PORT_PROBE));
        }
        if wanted.port_event {
            next = earliest(next, Some(now + PORT_WATCH));
        }
        self.probing.next = next;
    }

    /// Whether the command has ended and somebody waits for a port of what it left running.
    fn is_port_of_left_wanted(&self) -> bool {
        let left = match &self.phase {
            Phase::Ended(ended) => {
                ended.state.receipt().is_some_and(|receipt| !receipt.left_behind.is_empty())
            }
            Phase::Starting
            | Phase::Running(_)
            | Phase::Judging { .. }
            | Phase::Leaving { .. }
            | Phase::Left(_)
            | Phase::Closed(_) => false,
        };
        left && self.conditions.wanted().port
    }

    /// Whether the program may be back at the prompt it was last seen to wait at, after input that it has
    /// seen: a line typed into an interpreter is mostly answered within a millisecond, and so should its
    /// sender be.
    fn may_probe_quickly(&self) -> bool {
        self.probing.quick_probes < MAX_QUICK_PROBES
            && self.probing.last_prompt.is_some()
            && self.probing.reader_before_input.is_some()
            && !self.typing.has_more()
    }

    /// Probes if it is time to.
    pub(super) fn probe_if_due(&mut self, now: Instant, effects: &mut Effects) {
        if let Some(since) = self.probing.under_way {
            if now >= since + PROBE_TIMEOUT {
                // Given up on: its thread ends by itself when it comes back.
                self.probing.under_way = None;
                effects.push(Effect::StopProbes);
                self.plan_probe(now);
            }
            return;
        }
        if self.probing.next.is_none_or(|at| now < at) {
            return;
        }
        self.probing.next = None;
        if self.phase.at_work().is_none() && !self.is_port_of_left_wanted() {
            return;
        }
        if self.conditions.wanted().awaiting_input && self.may_probe_quickly() {
            // Only worth it if nothing that was typed waits to be read.
            effects.push(Effect::CheckInputRead);
        } else {
            let due = |(at, target): (Instant, HttpTarget)| (at <= now).then_some(target);
            let http = self.conditions.wanted().http.into_iter().filter_map(due).collect();
            let probe = Probe { ports: true, http, ..self.make_probe(now) };
            self.probe(probe, now, effects);
        }
    }

    /// Whether the program has read all that was typed: then it may be back at its prompt already.
    pub(super) fn on_input_read(&mut self, all: bool, now: Instant, effects: &mut Effects) {
        if self.probing.under_way.is_some() || self.phase.at_work().is_none() {
            return;
        }
        let is_early = self.probing.quick_probes == 0;
        self.probing.quick_probes += 1;
        let probe = self.make_probe(now);
        if all && probe.row == Row::SamePrompt {
            // What an interpreter does about its next line is not to listen, as a rule: a later probe will
            // tell.
            let settled = self.last_output.max(self.last_input) + QUICK;
            let again = is_early.then_some(settled);
            self.probe(Probe { ports: self.conditions.wanted().port, again, ..probe }, now, effects);
            return;
        }
        if !is_early {
            // Not back yet; whatever it prints next is another chance.
            self.probing.quick_probes = MAX_QUICK_PROBES;
        }
        self.plan_probe(now);
    }

    fn probe(&mut self, probe: Probe, now: Instant, effects: &mut Effects) {
        self.probing.under_way = Some(now);
        self.probing.probes_since_activity += 1;
        effects.push(Effect::Probe(Box::new(probe)));
    }

    /// A probe could not be taken.
    pub(super) fn on_probe_failed(&mut self) {
        self.probing.under_way = None;
    }

    fn make_probe(&mut self, now: Instant) -> Probe {
        let mut probe = Probe {
            since_output: now.saturating_duration_since(self.last_output),
            since_input: now.saturating_duration_since(self.last_input),
            activity: self.probing.activity,
            ..Probe::default()
        };
        let Some(output) = self.outputs.first_mut() else { return probe };
        if self.record.has_terminal() {
            let shot = output.fold.screen();
            probe.text = end_of_text(&shot.text_before_cursor);
            probe.alternate = shot.alternate;
            probe.bracketed_paste = shot.modes.bracketed_paste;
            probe.cursor_hidden = !shot.cursor.visible;
            probe.offers_choice =
                probe.cursor_hidden && text::offers_choice(shot.rows.iter().map(String::as_str));
            probe.lists_choices = text::lists_choices(shot.rows.iter().map(String::as_str));
            let above = shot.rows.iter().take(shot.cursor.row).rev();
            let above = above.map(|row| row.trim_end()).find(|row| !row.is_empty()).unwrap_or_default();
            probe.line_above = end_of_text(above);
            let rows: Vec<&str> = shot.rows.iter().map(|row| row.trim_end()).collect();
            if probe.cursor_hidden || probe.text.trim().is_empty() {
                let question = question_of_field(&rows, shot.cursor.row).unwrap_or_default();
                probe.field = end_of_text(&question);
            }
            probe.text_below = rows.iter().skip(shot.cursor.row + 1).any(|row| !row.is_empty());
            probe.answered = !self.typing.lines_since_prompt().0.is_empty();
            let row = shot.rows.get(shot.cursor.row).map_or("", String::as_str);
            let behind_cursor = row.strip_prefix(&probe.text).unwrap_or_default();
            probe.row = match &self.probing.last_prompt {
                Some(last) => row_after(last, &probe.text, behind_cursor, &self.typing),
                None => Row::New,
            };
        } else {
            let (text, above) = (output.fold.unfinished(), output.last_finished.clone());
            // Some ask on stderr.
            let errors = self.outputs.get(1).map(|errors| errors.fold.unfinished());
            let text = errors.filter(|errors| text.is_empty() && !errors.is_empty()).unwrap_or(text);
            (probe.text, probe.line_above) = (end_of_text(&text), end_of_text(&above));
        }
        self.probing.text.clone_from(&probe.text);
        self.probing.prompt = probe.hints().prompt().to_owned();
        probe
    }

    /// A probe is done: what it found goes to waits, events and status.
    pub(super) fn on_probed(&mut self, result: ProbeResult, now: Now, effects: &mut Effects) {
        self.probing.under_way = None;
        let at_work = self.phase.at_work().is_some();
        if !at_work && !self.is_port_of_left_wanted() {
            effects.push(Effect::StopProbes);
            return;
        }
        if let Some((ports, sockets)) = result.listening {
            self.sockets = sockets;
            self.note_ports(ports, now, effects);
        }
        for answer in &result.http {
            let (end, last_output) = (self.grown().offset, self.last_output);
            let moment = Moment { now: now.at, end, last_output, running: at_work };
            let met = self.conditions.on_fact(Fact::Http(answer), &moment);
            self.deliver(met, now, effects);
        }
        if !at_work {
            // What is left running is not asked what it waits for.
        } else if self.is_stale(result.reader, now.at) {
            self.probing.unconfirmed = true;
        } else if result.activity == self.probing.activity {
            if result.reader.is_some() {
                self.probing.reader = result.reader;
            }
            self.probing.unconfirmed = result.unconfirmed;
            let reader = result.verdict.waiting().and_then(|claim| claim.evidence.pid);
            if reader.is_some() && reader == self.command() && self.steps.has_running() {
                effects.push(Effect::LookForLostShell(Box::new(result.verdict)));
            } else {
                self.note_verdict(&result.verdict, now, effects);
            }
        }
        let wanted = self.conditions.wanted();
        if !wanted.awaiting_input && !wanted.port && wanted.http.is_empty() && !self.probing.unconfirmed {
            effects.push(Effect::StopProbes);
        }
        self.plan_probe(now.at);
    }

    /// A shell reads from its terminal while a step runs: a command of the step asks, or the shell is at its own prompt.
    pub(super) fn on_shell_reads(
        &mut self,
        verdict: &Verdict,
        is_lost: bool,
        now: Now,
        effects: &mut Effects,
    ) {
        if is_lost {
            self.on_shell_lost(now, effects);
        } else {
            self.note_verdict(verdict, now, effects);
        }
    }

    fn note_verdict(&mut self, verdict: &Verdict, now: Now, effects: &mut Effects) {
        let claim = verdict.waiting().map(described).filter(|claim| self.is_worth_telling(claim));
        let silent = now.at.saturating_duration_since(self.last_output.max(self.last_input));
        let claim = claim.or_else(|| self.watchdog.judge(&self.probing.prompt, silent, verdict));
        self.note_listening(verdict, now, effects);
        match (claim, &self.awaiting) {
            (Some(mut awaiting), None) => {
                awaiting.prompt = self.hide(&awaiting.prompt);
                self.probing.last_prompt = Some(self.probing.text.clone());
                self.typing.note_prompt();
                self.awaiting = Some(awaiting.clone());
                self.event(EventKind::AwaitingInput { awaiting: Box::new(awaiting) }, now, effects);
                self.show_awaiting(now, effects);
            }
            (Some(mut surer), Some(before)) if surer.level < before.level => {
                surer.prompt = self.hide(&surer.prompt);
                self.awaiting = Some(surer);
                self.show_awaiting(now, effects);
            }
            (None, Some(_)) if *verdict != Verdict::Unknown => {
                self.awaiting = None;
                self.event(EventKind::WentOn, now, effects);
            }
            (Some(_), Some(_)) | (None, _) => {}
        }
    }

    /// A program that idles at an empty pipe may be a server that speaks a protocol. Unless it has asked something, that is
    /// only told to somebody who asks.
    fn is_worth_telling(&self, claim: &Awaiting) -> bool {
        claim.kind != AwaitingKind::Stdin
            || self.awaiting.is_some()
            || self.conditions.wanted().awaiting_input
            || text::is_question(&claim.prompt)
            || text::is_prompt_like(&self.probing.text)
    }

    /// Whether the job takes input without waiting for it. Told once until something is typed: a program may change
    /// between that and work at each look.
    fn note_listening(&mut self, verdict: &Verdict, now: Now, effects: &mut Effects) {
        let claim = match verdict {
            Verdict::Listening(claim) => claim,
            Verdict::Unknown => return,
            Verdict::Waiting(_) | Verdict::Busy | Verdict::Stopped { .. } | Verdict::OutputBlocked => {
                self.listening = None;
                return;
            }
        };
        let mut listening = Awaiting { level: wire::Level::Listening, ..described(claim) };
        listening.prompt = self.hide(&listening.prompt);
        if listening.kind == AwaitingKind::Stdin {
            return;
        }
        if self.listening.replace(listening.clone()).is_none() {
            let met = self.conditions.on_awaiting(&listening, &self.moment(now.at));
            self.deliver(met, now, effects);
        }
        if !std::mem::replace(&mut self.probing.listening_told, true) {
            self.event(EventKind::Listening { awaiting: Box::new(listening) }, now, effects);
        }
    }

    fn note_ports(&mut self, ports: Vec<u16>, now: Now, effects: &mut Effects) {
        if ports == self.ports {
            return;
        }
        let opened: Vec<u16> = ports.iter().copied().filter(|port| !self.ports.contains(port)).collect();
        self.ports = ports;
        for port in opened {
            self.event(EventKind::Port { port }, now, effects);
            self.show_port(port, now, effects);
        }
    }
}

/// The last characters of the text before the cursor.
fn end_of_text(text: &str) -> String {
    let before: Vec<char> = text.chars().collect();
    before[before.len().saturating_sub(MAX_PROMPT)..].iter().collect()
}

/// What the cursor's row has to do with the prompt that the job last waited at.
fn row_after(last: &str, text: &str, behind_cursor: &str, typing: &Typing) -> Row {
    if last.trim().is_empty() {
        return Row::New;
    }
    if let Some(added) = text.strip_prefix(last) {
        let whole = format!("{added}{behind_cursor}");
        if !whole.trim().is_empty() {
            let (ended, open) = typing.lines_since_prompt();
            if ended.iter().any(|line| line.starts_with(whole.trim_end())) {
                return Row::Echo;
            }
            // Half a line: it waits at the same prompt for the rest of it.
            if ended.is_empty() && !open.is_empty() && open == added && !typing.has_more() {
                return Row::LikePrompt;
            }
        }
    }
    if typing.has_more() {
        Row::New
    } else if text == last {
        Row::SamePrompt
    } else if text::differ_in_numbers_only(text, last) {
        Row::LikePrompt
    } else {
        Row::New
    }
}

/// A claim in the words of the wire.
fn described(claim: &Claim) -> Awaiting {
    let level = match claim.level {
        Level::Certain => wire::Level::Certain,
        Level::Likely => wire::Level::Likely,
        Level::Possible => wire::Level::Possible,
    };
    let kind = match claim.kind {
        InputKind::Line => AwaitingKind::Line,
        InputKind::Password => AwaitingKind::Password,
        InputKind::Key => AwaitingKind::Key,
        InputKind::Menu => AwaitingKind::Menu,
        InputKind::Pager => AwaitingKind::Pager,
        InputKind::Repl => AwaitingKind::Repl,
        InputKind::Stdin => AwaitingKind::Stdin,
    };
    let evidence = &claim.evidence;
    Awaiting {
        level,
        kind,
        prompt: claim.prompt.clone(),
        evidence: Evidence {
            pid: evidence.pid.map_or(0, |pid| pid.as_raw_nonzero().get()),
            program: evidence.program.clone(),
            syscall: evidence.syscall.into(),
            fd: evidence.fd,
            why: evidence.why.clone(),
        },
    }
}
