//! Waits on one or more jobs, each from where the session has got to with it.

use std::sync::mpsc;
use std::time::Duration;

use outlast_job::client::read::Stream;
use outlast_job::wire::Stable;
use outlast_job::{Failure, Job, Reason, Wait, Waited};

use super::{Caller, Engine, Patience};
use crate::answer::{Answer, ending};
use crate::cursors::Cursor;
use crate::words::Words;

/// How long we look for a pattern in what was shown before, once the time is up.
const SECOND_LOOK: Duration = Duration::from_millis(200);

/// What to wait for.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitOrder {
    pub(crate) until: Vec<String>,
    pub(crate) pattern: Option<String>,
    pub(crate) quiet: Option<Duration>,
    pub(crate) stable_checks: Option<u64>,
    pub(crate) port: Option<u16>,
    pub(crate) offset: Option<u64>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) budget: usize,
}

impl WaitOrder {
    /// The conditions. What a parameter says needs no word in `until`; and a job that has ended ends every wait.
    fn wait(&self) -> Result<Wait, Failure> {
        let mut wait = Wait { exit: true, ..Wait::default() };
        let mut gone = false;
        for word in &self.until {
            match word.as_str() {
                "exit" => {}
                "pattern" if self.pattern.is_some() => {}
                "pattern" => return Err(crate::arguments::missing("pattern", "pattern=\"ready\"")),
                "gone" if self.pattern.is_some() => gone = true,
                "gone" => {
                    return Err(crate::arguments::missing(
                        "pattern",
                        "until=[\"gone\"], pattern=\"Loading\"",
                    ));
                }
                "awaiting_input" => wait.awaiting_input = true,
                "quiet" => wait.quiet_ms = Some(2000),
                "stable" => wait.stable = Some(Stable::default()),
                "port" => wait.port = Some(0),
                "output" => wait.output = true,
                other => {
                    return Err(Failure::usage(format!("until knows no {other:?}")).hint(
                        "it knows exit, pattern, awaiting_input, quiet, stable, port, output and gone",
                    ));
                }
            }
        }
        let patterns: Vec<String> = self.pattern.iter().cloned().collect();
        if gone {
            wait.gone = patterns
        } else {
            wait.patterns = patterns
        }
        if let Some(quiet) = self.quiet {
            wait.quiet_ms = Some(u64::try_from(quiet.as_millis()).unwrap_or(u64::MAX));
        }
        if let Some(checks) = self.stable_checks {
            wait.stable =
                Some(Stable { checks: u32::try_from(checks).unwrap_or(u32::MAX), ..Stable::default() });
        }
        if self.port.is_some() {
            wait.port = self.port;
        }
        let named = !self.until.is_empty() || wait != Wait::for_exit();
        wait.awaiting_input |= !named;
        wait.check()?;
        Ok(wait)
    }

    fn begin(&self, wait: &Wait, cursor: Cursor) -> u64 {
        self.offset.unwrap_or(if wait.output { cursor.read } else { cursor.waited })
    }
}

impl Engine {
    pub(crate) fn wait_for(
        &self,
        caller: &Caller,
        jobs: &[Job],
        order: &WaitOrder,
    ) -> Result<Answer, Failure> {
        let wait = order.wait()?;
        let asked = order.timeout.unwrap_or(self.longest_call);
        // Silence and a still screen are counted from where a wait begins, so one that is asked about again and
        // again would never see them.
        let can_pend =
            jobs.len() == 1 && wait.quiet_ms.is_none() && wait.stable.is_none() && wait.gone.is_empty();
        let patience = if can_pend { self.patience_of(caller, asked) } else { self.patience(asked) };
        let cursors: Vec<Cursor> =
            jobs.iter().map(|job| self.cursors.get(&caller.session, job.handle())).collect();
        let begins: Vec<u64> = cursors.iter().map(|cursor| order.begin(&wait, *cursor)).collect();
        let (first, waited) = match jobs {
            [] => return Err(crate::arguments::missing("handle", "handle=3")),
            [job] => (0, self.wait(job, &wait.clone().from(begins[0]), patience, caller)?),
            several => self.first_of(caller, several, (&wait, &begins), patience)?,
        };
        let job = &jobs[first];
        let (begin, from) = (wait.clone().from(begins[first]), cursors[first].read);
        if can_pend
            && let Some(pending) =
                self.pending((job, caller), &begin, &waited, (from, order.budget), patience)
        {
            return Ok(Answer::later((job, self.words), &job.info()?, pending));
        }
        let already_shown = waited.reason == Reason::Pattern && waited.offset <= cursors[first].read;
        let shown_line = if already_shown {
            matched_line((job, self.words), begins[first], waited.offset)?
        } else {
            String::new()
        };
        let already = waited.already && waited.reason == Reason::Pattern;
        let timed_out = waited.reason == Reason::Deadline;
        let mut answer = self.answer(job, caller, waited, (cursors[first].read, order.budget), patience)?;
        answer.facts.output.insert_str(0, &shown_line);
        if already {
            answer.note("the pattern was already there when this call began");
        }
        if timed_out && !caller.watch.is_cancelled() {
            self.look_again(job, &wait, begins[first], &mut answer);
        }
        for (i, other) in jobs.iter().enumerate().filter(|(i, _)| *i != first) {
            if let Ok(info) = other.info_to_show() {
                let how = ending(&info.state, self.words).map(|how| format!(" ({how})")).unwrap_or_default();
                answer.note(format!("job {} is {}{how}", jobs[i].handle(), info.state.name()));
            }
        }
        Ok(answer)
    }

    /// Gives a job some time, unless it ends before.
    pub(crate) fn pause(&self, job: &Job, caller: &Caller, time: Duration) -> Result<(), Failure> {
        self.wait(job, &Wait::for_exit(), self.patience(time), caller).map(|_| ())
    }

    /// Waits on each job in a thread of its own; the first that is done ends the others.
    fn first_of(
        &self,
        caller: &Caller,
        jobs: &[Job],
        (wait, begins): (&Wait, &[u64]),
        patience: Patience,
    ) -> Result<(usize, Waited), Failure> {
        let (tell, told) = mpsc::channel();
        std::thread::scope(|scope| {
            for (i, job) in jobs.iter().enumerate() {
                let tell = tell.clone();
                let wait = wait.clone().from(begins[i]);
                scope.spawn(move || {
                    let _ = tell.send((i, self.wait(job, &wait, patience, caller)));
                });
            }
            drop(tell);
            let mut last = None;
            for (i, waited) in told {
                let by_time = matches!(&waited, Ok(waited) if waited.reason == Reason::Deadline);
                if !by_time {
                    caller.watch.stop();
                    return waited.map(|waited| (i, waited));
                }
                last = Some((i, waited));
            }
            match last {
                Some((_, waited)) => waited.map(|waited| (0, waited)),
                None => Err(Failure::usage("there is no job to wait for")),
            }
        })
    }

    /// The time is up; but what was waited for may be in what the caller was shown before.
    fn look_again(&self, job: &Job, wait: &Wait, begin: u64, answer: &mut Answer) {
        if wait.patterns.is_empty() || begin == 0 {
            return;
        }
        let before = Wait { patterns: wait.patterns.clone(), ..Wait::default() }.from(0);
        if let Ok(waited) = job.wait(&before, Some(SECOND_LOOK))
            && waited.reason == Reason::Pattern
            && waited.offset <= begin
        {
            let at = waited.offset;
            answer.note(format!(
                "the pattern does occur before offset {begin}, in output you were shown (it ends at {at}); wait_for(offset=0) counts that too"
            ));
        }
    }
}

/// The line in which a pattern was found, if it was shown in an earlier answer.
fn matched_line((job, words): (&Job, Words), begin: u64, end: u64) -> Result<String, Failure> {
    let range = job.range(Stream::Output, begin, Some(end))?.last_lines(1);
    let mut line = crate::printed::of((job, words), &range, 1024).text;
    if !line.ends_with('\n') {
        line.push('\n');
    }
    Ok(line)
}
