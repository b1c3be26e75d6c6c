//! Types into a job and stays until it has answered.

use std::time::{Duration, Instant};

use outlast_job::wire::Sent;
use outlast_job::{Failure, Job, Reason, Send, Wait, Waited};

use super::{Caller, Engine, Patience};
use crate::answer::Answer;
use crate::printed;
use crate::words::Words;

/// So long is left for the answer to the last line, however long the lines before it took.
const LAST_LOOK: Duration = Duration::from_millis(500);

/// What to type, and how long to stay.
#[derive(Debug)]
pub(crate) struct SendOrder {
    pub(crate) send: Send,
    pub(crate) delay: Duration,
    pub(crate) pattern: Option<String>,
    pub(crate) budget: usize,
}

impl Engine {
    pub(crate) fn send(&self, caller: &Caller, job: &Job, order: &SendOrder) -> Result<Answer, Failure> {
        let wait = Wait {
            exit: true,
            awaiting_input: true,
            patterns: order.pattern.iter().cloned().collect(),
            ..Wait::default()
        };
        wait.check()?;
        caller.watch.set_about(job.handle());
        let patience = self.patience(order.delay);
        let send = Send { after: caller.typed_after, ..order.send.clone() };
        let began = Instant::now();
        let sent = job.send(&send, Some(patience.allowed.max(Duration::from_secs(2))))?;
        let waited = self.wait_past_echo(job, caller, (&wait, &order.send.text), (sent, began), patience)?;
        let mut answer = self.answer(job, caller, waited, (sent.offset, order.budget), patience)?;
        if let Some(left) = sent.left {
            answer.note(format!("the last {left} bytes of the input were not typed: the program had ended"));
        }
        if sent.queued > 0 && answer.is_live() {
            answer.note(format!("the program has not read {} bytes of the input yet", sent.queued));
        }
        Ok(answer)
    }

    /// Waits for what comes after the input. A terminal shows what is typed, and that must not be taken for the
    /// program's answer: a match inside the echo does not count.
    fn wait_past_echo(
        &self,
        job: &Job,
        caller: &Caller,
        (wait, typed): (&Wait, &str),
        (sent, began): (Sent, Instant),
        patience: Patience,
    ) -> Result<Waited, Failure> {
        let mut from = sent.offset;
        loop {
            // Several lines may have taken all the time.
            let left = patience.allowed.saturating_sub(began.elapsed()).max(LAST_LOOK.min(patience.allowed));
            let wait = wait.clone().from(from);
            let waited = self.wait(job, &wait, Patience { allowed: left, ..patience }, caller)?;
            let elapsed_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            if !is_echo((job, self.words), typed, sent.offset, &waited)? {
                return Ok(Waited { elapsed_ms, ..waited });
            }
            from = waited.offset;
        }
    }
}

/// Whether a match lies in what the terminal showed while the input was typed.
fn is_echo((job, words): (&Job, Words), typed: &str, from: u64, waited: &Waited) -> Result<bool, Failure> {
    let Some(found) = &waited.found else { return Ok(false) };
    let typed = typed.trim_end();
    if waited.reason != Reason::Pattern || found.text.trim().is_empty() || !typed.contains(found.text.trim())
    {
        return Ok(false);
    }
    let shown = printed::text((job, words), from, Some(waited.offset), typed.len() + 4096)?.text;
    let shown = shown.trim_end();
    Ok(typed.starts_with(shown)
        || shown.ends_with(typed)
        || is_echo_of_a_line(typed, shown, found.text.trim()))
}

/// Whether what was shown ends in one of several lines that were typed one by one, up to what was found.
fn is_echo_of_a_line(typed: &str, shown: &str, found: &str) -> bool {
    let ends = |line: &str| {
        let mut found_at = line.match_indices(found).map(|(at, _)| &line[..at + found.len()]);
        found_at.any(|begun| begun != found && shown.ends_with(begun))
            || (line != found && shown.ends_with(line))
    };
    typed.lines().count() > 1 && typed.lines().filter(|line| line.contains(found)).any(ends)
}
