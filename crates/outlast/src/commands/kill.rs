//! `outlast kill`.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use outlast_cli::KillArgs;
use outlast_job::client::signals::{Signal, Signals};
use outlast_job::request::List;
use outlast_job::settings::Section;
use outlast_job::wire::Killed;
use outlast_job::{Failure, Job, Outlast};
use outlast_policy::OrderKind;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::answer;
use crate::ask::CliGate;
use crate::output::Output;
use crate::terminal;

/// A job that has not ended by then may take its whole grace: a person is told, and how to hurry.
const SAY_AFTER: Duration = Duration::from_secs(1);

pub(super) fn kill(outlast: &Outlast, args: &KillArgs, out: &mut Output) -> Result<i32, Failure> {
    let gate = CliGate::open(outlast.home())?;
    let jobs = if args.all { all_that_run(outlast, gate.session())? } else { named(outlast, args)? };
    if jobs.is_empty() {
        out.talk("no job of this session runs; those of others: outlast jobs --all");
        return Ok(0);
    }
    let force = args.force;
    // All or none: the first that may not be ended stops it.
    for job in &jobs {
        let _pass = gate.pass(match args.signal {
            Some(_) => OrderKind::Signal { job, force },
            None => OrderKind::Kill { job, force },
        })?;
    }
    let session = gate.session();
    if let (Some(step), [job]) = (args.step, jobs.as_slice()) {
        let grace = args.grace.unwrap_or(outlast.settings().kill.grace);
        let killed = job.end_step(Some(step), grace, session)?;
        tell_of_step(step, &killed, out);
        return Ok(0);
    }
    for job in &jobs {
        let report = if out.json { answer::report_asks() } else { Vec::new() };
        job.expect([vec![answer::SHOWN], report].concat());
    }
    let killed = match &args.signal {
        Some(signal) => jobs.iter().map(|job| job.signal(signal, session)).collect(),
        None => end_all(&jobs, args.grace.unwrap_or_else(|| default_grace(outlast, out)), session, out)?,
    };
    let mut code = 0;
    for (job, killed) in jobs.iter().zip(killed) {
        let killed = killed?;
        if !killed.survivors.is_empty() {
            code = 1;
        }
        tell(job, &killed, args.signal.as_deref(), out)?;
    }
    Ok(code)
}

fn tell_of_step(step: u64, killed: &Killed, out: &mut Output) {
    if out.json {
        out.value(
            &serde_json::json!({ "step": step, "already_ended": killed.already_ended, "note": killed.note }),
        );
    } else if killed.already_ended {
        out.talk(&format!("step {step} does not run"));
    } else if let Some(note) = &killed.note {
        out.talk(note);
    }
}

fn named(outlast: &Outlast, args: &KillArgs) -> Result<Vec<Job>, Failure> {
    let jobs: Result<Vec<Job>, Failure> =
        args.jobs.iter().map(|job| outlast.expecting([answer::RECORD]).job(job)).collect();
    jobs.map_err(|failure| nothing_was_done(failure, args.jobs.len()))
}

/// Every job of a session that runs.
fn all_that_run(outlast: &Outlast, session: &str) -> Result<Vec<Job>, Failure> {
    let list = List { session: Some(session.to_owned()), running: true, ..List::default() };
    outlast.list(list).iter().map(|listed| outlast.job(&listed.job.handle.to_string())).collect()
}

fn nothing_was_done(failure: Failure, named: usize) -> Failure {
    if named < 2 {
        return failure;
    }
    Failure { message: format!("{}; none of the {named} was ended", failure.message), ..failure }
}

/// A person's programs get the time to save; scripts and agents go on soon.
pub(super) fn default_grace(outlast: &Outlast, out: &mut Output) -> Duration {
    if let Err(failure) = outlast.loaded_settings().section(Section::Kill) {
        out.talk(&format!("outlast: {}; the default grace is used", failure.message));
    }
    let set = outlast.settings().kill;
    if terminal::is_a_person() { set.at_terminal } else { set.grace }
}

/// Ends all jobs at the same time. Ctrl-C ends them at once.
fn end_all(
    jobs: &[Job],
    grace: Duration,
    session: &str,
    out: &mut Output,
) -> Result<Vec<Result<Killed, Failure>>, Failure> {
    if !terminal::is_a_person() && jobs.len() == 1 {
        return Ok(jobs.iter().map(|job| job.kill(grace, session)).collect());
    }
    let signals = terminal::is_a_person()
        .then(|| Signals::catch(&[Signal::INT]))
        .transpose()
        .map_err(|error| Failure::system("signals can't be caught", error))?;
    let (done, results) = channel();
    let (all_done, alive) =
        outlast_job::system::pipe().map_err(|error| Failure::system("a pipe can't be made", error))?;
    let alive = std::sync::Arc::new(alive);
    for (index, job) in jobs.iter().enumerate() {
        let (job, session, done, alive) = (job.clone(), session.to_owned(), done.clone(), alive.clone());
        std::thread::spawn(move || {
            let _ = done.send((index, job.kill(grace, &session)));
            drop(alive);
        });
    }
    drop((done, alive));
    wait(jobs, session, (signals.as_ref(), &all_done), grace, out);
    Ok(in_order(&results, jobs.len()))
}

/// Waits until all threads are done; meanwhile a person may hurry.
fn wait(
    jobs: &[Job],
    session: &str,
    (signals, all_done): (Option<&Signals>, &OwnedFd),
    grace: Duration,
    out: &mut Output,
) {
    let mut say_at = signals.map(|_| Instant::now() + SAY_AFTER);
    loop {
        let mut fds = vec![PollFd::new(all_done, PollFlags::IN)];
        fds.extend(signals.map(|signals| PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)));
        let left = say_at.map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        let _ = poll(&mut fds, timeout.as_ref());
        if !fds[0].revents().is_empty() {
            return;
        }
        if signals.is_some_and(|signals| !signals.take().is_empty()) {
            say_at = None;
            for job in jobs {
                let (job, session) = (job.clone(), session.to_owned());
                std::thread::spawn(move || job.kill(Duration::ZERO, &session));
            }
        } else if say_at.is_some_and(|at| at <= Instant::now()) {
            say_at = None;
            out.talk(&format!(
                "outlast: asked to end, and given {}; Ctrl-C ends it at once",
                outlast_job::units::print_millis(outlast_job::clock::millis(grace))
            ));
        }
    }
}

fn in_order(
    results: &Receiver<(usize, Result<Killed, Failure>)>,
    count: usize,
) -> Vec<Result<Killed, Failure>> {
    let mut all: Vec<(usize, Result<Killed, Failure>)> = results.iter().take(count).collect();
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, result)| result).collect()
}

fn tell(job: &Job, killed: &Killed, signal: Option<&str>, out: &mut Output) -> Result<(), Failure> {
    let info = job.info_to_show()?;
    if out.json {
        let mut value = serde_json::to_value(answer::report(job, &info)).unwrap_or_default();
        value["signalled"] = killed.signalled.into();
        value["already_ended"] = killed.already_ended.into();
        value["survivors"] = serde_json::to_value(&killed.survivors).unwrap_or_default();
        if killed.unseen {
            value["unseen"] = true.into();
        }
        if let Some(note) = &killed.note {
            value["note"] = note.as_str().into();
        }
        out.value(&value);
        return Ok(());
    }
    let handle = job.handle();
    let names: Vec<String> =
        killed.survivors.iter().map(|process| format!("{} ({})", process.program, process.pid)).collect();
    let said = match (signal, killed.already_ended, info.state.receipt()) {
        (_, true, _) => format!("job {handle} had already ended"),
        (Some(signal), _, _) => {
            let count = killed.signalled;
            let processes = if count == 1 { "process" } else { "processes" };
            format!("{signal} sent to {count} {processes} of job {handle}")
        }
        (None, _, _) if !names.is_empty() => format!("job {handle}: still there: {}", names.join(", ")),
        (None, _, Some(receipt)) if killed.unseen => format!("job {handle}: {}", answer::ending(receipt)),
        (None, _, None) if killed.unseen => format!("job {handle}: what could be seen of it is ended"),
        (None, _, Some(receipt)) => {
            format!("job {handle}: {}; nothing is left", answer::ending(receipt))
        }
        (None, _, None) => format!("job {handle}: nothing is left"),
    };
    out.line(&said);
    if let Some(note) = &killed.note {
        out.talk(&format!("outlast: job {handle}: {note}"));
    }
    Ok(())
}
