//! `outlast replay`: a job again, at its own speed, as a recording, or as it was at one moment.

use std::io::IsTerminal;
use std::time::Duration;

use outlast_cli::{ExportFormat, ReplayArgs};
use outlast_job::client::signals::{Signal, Signals};
use outlast_job::client::{Played, Recording};
use outlast_job::request::Moment;
use outlast_job::{Failure, Job, Outlast};
use outlast_policy::OrderKind;
use outlast_stream::Passthrough;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::ask::allowed;
use crate::last_job::named_or_last;
use crate::output::Output;

pub(super) fn replay(outlast: &Outlast, args: &ReplayArgs, out: &mut Output) -> Result<i32, Failure> {
    allowed(outlast.home(), OrderKind::Replay)?;
    let job = named_or_last(outlast, args.job.as_deref(), out)?;
    if let Some(moment) = moment(args) {
        return at(&job, moment, out);
    }
    let recording = job.recording()?;
    if let Some(ExportFormat::Cast) = args.export {
        recording.write_cast(|line| out.line(line));
        return Ok(0);
    }
    if out.json {
        recording.events(|at, what| match what {
            Played::Output(bytes) => {
                out.value(&serde_json::json!({ "at_ms": at, "output": String::from_utf8_lossy(bytes) }))
            }
            Played::Resized(size) => out.value(&serde_json::json!({ "at_ms": at, "size": size })),
        });
        return Ok(0);
    }
    play(&recording, args, out)
}

fn moment(args: &ReplayArgs) -> Option<Moment> {
    args.at.map(|at| Moment::Time(outlast_job::clock::millis(at))).or(args.offset.map(Moment::Offset))
}

/// The screen as it was.
fn at(job: &Job, moment: Moment, out: &mut Output) -> Result<i32, Failure> {
    let shot = job.screen_at(moment, out.colour && !out.json)?;
    if out.json {
        out.value(&serde_json::json!({
            "rows": shot.rows, "offset": shot.offset, "title": shot.title, "alternate": shot.alternate,
            "cursor": { "row": shot.cursor.row, "col": shot.cursor.col },
            "size": { "cols": shot.size.cols, "rows": shot.size.rows }
        }));
        return Ok(0);
    }
    let mut rows = shot.rows;
    while rows.last().is_some_and(|row| row.trim().is_empty()) {
        rows.pop();
    }
    for row in rows {
        out.line(&row);
    }
    Ok(0)
}

fn play(recording: &Recording, args: &ReplayArgs, out: &mut Output) -> Result<i32, Failure> {
    if !(args.speed.is_finite() && args.speed > 0.0) {
        return Err(
            Failure::usage("the speed must be more than 0").hint("2 is twice as fast, 0.5 half as fast")
        );
    }
    let signals = Signals::catch(&[Signal::INT, Signal::TERM])
        .map_err(|error| Failure::system("signals can't be caught", error))?;
    let to_terminal = std::io::stdout().is_terminal();
    let mut filter = Passthrough::new();
    let mut last = 0;
    let mut stopped = false;
    recording.events(|at, what| {
        let gap =
            Duration::from_millis(at.saturating_sub(last)).min(args.idle_limit.unwrap_or(Duration::MAX));
        last = at;
        stopped = pause(&signals, gap.div_f64(args.speed));
        if let (Played::Output(bytes), false) = (what, stopped) {
            let mut safe = Vec::with_capacity(bytes.len());
            filter.pass(bytes, &mut safe);
            return out.draw(&safe);
        }
        !stopped
    });
    if to_terminal {
        crate::terminal::calm(out);
    }
    Ok(if stopped { 130 } else { 0 })
}

/// Sleeps; true when told to stop.
fn pause(signals: &Signals, gap: Duration) -> bool {
    let timeout =
        Timespec { tv_sec: gap.as_secs().min(1 << 30).cast_signed(), tv_nsec: gap.subsec_nanos().into() };
    let mut fds = [PollFd::new(signals, PollFlags::IN)];
    matches!(poll(&mut fds, Some(&timeout)), Ok(1..))
}
