//! `outlast replay`: a job again, at its own speed, as a recording, or as it was at one moment.

mod player;

use outlast_cli::{ExportFormat, ReplayArgs};
use outlast_job::client::{CastVersion, Played, Recording};
use outlast_job::request::Moment;
use outlast_job::{Failure, Job, Outlast};
use outlast_policy::OrderKind;

use super::read::find_step;
use crate::ask::allowed;
use crate::last_job::named_or_last;
use crate::output::Output;
use crate::progress::Progress;
use crate::svg;

/// Screens of a picture are at least this far apart, in milliseconds.
const FRAME_MS: u64 = 50;

pub(super) fn replay(outlast: &Outlast, args: &ReplayArgs, out: &mut Output) -> Result<i32, Failure> {
    allowed(outlast.home(), OrderKind::Replay)?;
    let job = named_or_last(outlast, args.job.as_deref(), out)?;
    if !(args.speed.is_finite() && args.speed > 0.0) {
        return Err(
            Failure::usage("the speed must be more than 0").hint("2 is twice as fast, 0.5 half as fast")
        );
    }
    if let Some(moment) = moment(args, &job)? {
        return match args.export {
            None => at(&job, moment, out),
            Some(ExportFormat::Svg) => {
                out.data(svg::still(&job.screen_at(moment, true)?).as_bytes());
                Ok(0)
            }
            Some(ExportFormat::Cast | ExportFormat::Cast2) => {
                Err(Failure::usage("a recording has no single moment")
                    .hint("leave out --at, --offset and --step"))
            }
        };
    }
    let recording = job.recording()?;
    match args.export {
        Some(ExportFormat::Cast) => {
            recording.write_cast(CastVersion::Three, &job.step_marks()?, |line| out.line(line));
            return Ok(0);
        }
        Some(ExportFormat::Cast2) => {
            recording.write_cast(CastVersion::Two, &job.step_marks()?, |line| out.line(line));
            return Ok(0);
        }
        Some(ExportFormat::Svg) => {
            out.data(animation(&recording, args).as_bytes());
            return Ok(0);
        }
        None => {}
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
    player::play(&recording, args, out)
}

fn moment(args: &ReplayArgs, job: &Job) -> Result<Option<Moment>, Failure> {
    if let Some(number) = args.step {
        // One that runs has left nothing yet: how it is now.
        let moment = find_step(job, number)?.to.map_or(Moment::Time(u64::MAX), Moment::Offset);
        return Ok(Some(moment));
    }
    let time = args.at.map(|at| Moment::Time(outlast_job::clock::millis(at)));
    Ok(time.or(args.offset.map(Moment::Offset)))
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

/// A picture that plays, at the speed and with the pauses that were asked for.
fn animation(recording: &Recording, args: &ReplayArgs) -> String {
    let mut strip = svg::Strip::default();
    let mut progress = Progress::new("screens drawn");
    let longest = args.idle_limit.map_or(u64::MAX, outlast_job::clock::millis);
    let (mut last, mut shown) = (0, 0.0);
    recording.screens(FRAME_MS, |at, shot| {
        shown += at.saturating_sub(last).min(longest) as f64 / args.speed;
        last = at;
        strip.add(shown as u64, shot);
        progress.step();
        true
    });
    strip.finish()
}
