//! What happened to a job, and when: how much it printed, what it asked, how it ended; and any moment of it again.

use outlast_job::request::{Answer, FactKind, JobRequest};
use outlast_job::wire::event::{Event, EventKind};
use outlast_job::{Failure, Job};

use crate::answer;

/// How much of a job's events is read: the newest.
const MAX_EVENTS: usize = 256 << 10;
const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A job's life so far.
#[derive(Debug, Default)]
pub(super) struct Story {
    /// How long it is, in milliseconds.
    pub(super) total_ms: u64,
    /// When how much was printed.
    printed: Vec<(u64, u64)>,
    pub(super) events: Vec<Moment>,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) at_ms: u64,
    pub(super) sign: char,
    pub(super) text: String,
}

impl Story {
    /// Reads it.
    pub(super) fn of(job: &Job) -> Result<Self, Failure> {
        let info = job.info()?;
        let started = info.created_at;
        let ended = info.state.receipt().map(|receipt| receipt.ended_at);
        let mut story = Self::default();
        let mut from = Some(0);
        let mut last = 0;
        while let Some(at) = from {
            let Answer::Timing(timing) = job.ask(JobRequest::Timing { from: at })? else { break };
            for fact in timing.facts {
                match fact.kind {
                    FactKind::Output => {
                        story.printed.push((fact.at_ms, fact.offset.saturating_sub(last)));
                        last = fact.offset;
                    }
                    FactKind::Stderr => story.printed.push((fact.at_ms, 1)),
                    FactKind::Resized(size) => {
                        let text = format!("resized to {}x{}", size.cols, size.rows);
                        story.events.push(Moment { at_ms: fact.at_ms, sign: '+', text });
                    }
                }
            }
            from = timing.next;
        }
        for line in job.event_lines(MAX_EVENTS)?.lines() {
            let Ok(event) = serde_json::from_str::<Event>(line) else { continue };
            if let Some((sign, text)) = words(&event.what) {
                story.events.push(Moment { at_ms: event.at.saturating_sub(started), sign, text });
            }
        }
        story.events.sort_by_key(|moment| moment.at_ms);
        let end = ended.unwrap_or_else(outlast_job::clock::now_ms).saturating_sub(started);
        let last =
            story.printed.iter().map(|(at, _)| *at).chain(story.events.iter().map(|one| one.at_ms)).max();
        story.total_ms = end.max(last.unwrap_or(0)).max(1);
        Ok(story)
    }

    /// How much was printed in each of this many equal parts, as bars.
    pub(super) fn bars(&self, columns: u16) -> String {
        let columns = usize::from(columns.max(1));
        let mut sums = vec![0_u64; columns];
        for (at, bytes) in &self.printed {
            sums[self.column(*at, columns)] += bytes;
        }
        let most = sums.iter().copied().max().unwrap_or(0);
        let bar = |sum: &u64| {
            // By its size in digits: one flood does not flatten the rest.
            let level = match (*sum, most) {
                (0, _) => 0,
                (_, most) if most <= 1 => LEVELS.len() - 1,
                (sum, most) => {
                    let share = ((sum as f64).ln_1p() / (most as f64).ln_1p()) * (LEVELS.len() - 1) as f64;
                    (share.round() as usize).clamp(1, LEVELS.len() - 1)
                }
            };
            LEVELS[level]
        };
        sums.iter().map(bar).collect()
    }

    /// A row with a sign for each thing that happened.
    pub(super) fn signs(&self, columns: u16) -> String {
        let mut signs = vec![' '; usize::from(columns.max(1))];
        for event in &self.events {
            let column = self.column(event.at_ms, signs.len());
            signs[column] = event.sign;
        }
        signs.into_iter().collect()
    }

    /// In which of this many parts a moment is.
    pub(super) fn column(&self, at_ms: u64, columns: usize) -> usize {
        let part = u128::from(at_ms) * columns as u128 / u128::from(self.total_ms.max(1));
        usize::try_from(part).unwrap_or(usize::MAX).min(columns.saturating_sub(1))
    }

    /// The next thing that happened after a moment, or the last one before it.
    pub(super) fn beside(&self, at_ms: u64, later: bool) -> Option<u64> {
        let mut times = self.events.iter().map(|moment| moment.at_ms);
        if later { times.find(|at| *at > at_ms) } else { times.rev().find(|at| *at < at_ms) }
    }

    /// What happened last at a moment.
    pub(super) fn at(&self, at_ms: u64) -> Option<&Moment> {
        self.events.iter().rev().find(|moment| moment.at_ms <= at_ms)
    }
}

/// A sign and words for what is worth a place on the line.
fn words(what: &EventKind) -> Option<(char, String)> {
    Some(match what {
        EventKind::Queued { queued } => ('q', format!("queued: {}", queued.words())),
        EventKind::Started { .. } => ('|', "started".into()),
        EventKind::Exit { state } => {
            let how = state.receipt().map_or_else(|| state.name().into(), answer::ending);
            ('x', format!("ended: {how}"))
        }
        EventKind::AllGone => ('x', "what it left behind has ended".into()),
        EventKind::AwaitingInput { awaiting } => ('?', format!("asked: {}", awaiting.prompt.trim())),
        EventKind::WentOn | EventKind::Listening { .. } => return None,
        EventKind::Stopped => ('z', "stopped".into()),
        EventKind::Continued => ('c', "continued".into()),
        EventKind::Port { port } => (':', format!("listens on port {port}")),
        EventKind::Watch { .. } => ('w', "a watch told".into()),
        EventKind::LogFailing { error } => ('!', format!("its log can't be written: {error}")),
        EventKind::LogResumed { .. } => ('!', "its log is written again".into()),
        EventKind::LogCapped { .. } => ('!', "its log has reached its cap".into()),
        EventKind::TookOver { .. } => ('!', "its keeper died, and another took over".into()),
        EventKind::HeirGone => ('!', "nobody would take over now".into()),
        EventKind::Agent { .. } => return None,
        EventKind::ExecRefused { .. } => ('!', "a program was refused".into()),
        EventKind::HostRefused { refused } => {
            ('!', format!("not connected to {}:{}", refused.host, refused.port))
        }
        EventKind::Asking { .. } => ('?', "a person must agree to a program".into()),
        EventKind::Answered { allowed, by, .. } => {
            ('a', format!("{} by {by}", if *allowed { "allowed" } else { "refused" }))
        }
        EventKind::Taken { by } => ('t', format!("taken over by {by}")),
        EventKind::GivenBack { why, .. } => ('g', format!("given back: {why}")),
        EventKind::StepStarted { step } => ('$', format!("step {}: {}", step.step, step.command)),
        EventKind::Step { step } => ('.', format!("step {} is over", step.step)),
        EventKind::StepChanged { step, changed } => {
            ('=', format!("step {step} changed {}", changed.join(", ")))
        }
        EventKind::StepForged { why } => ('!', format!("the shell was ended: {why}")),
        EventKind::Unknown => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_and_signs_have_their_place_in_time() {
        let moment = |at_ms, sign| Moment { at_ms, sign, text: String::new() };
        let story = Story {
            total_ms: 1000,
            printed: vec![(0, 1), (999, 1_000_000)],
            events: vec![moment(0, '|'), moment(500, '?'), moment(1000, 'x')],
        };
        let bars: Vec<char> = story.bars(10).chars().collect();
        assert_eq!((bars[0], bars[5], bars[9]), ('▁', ' ', '█'));
        assert_eq!(story.signs(10), "|    ?   x");
        assert_eq!((story.beside(0, true), story.beside(500, false)), (Some(500), Some(0)));
        assert_eq!(story.beside(1000, true), None);
    }
}
