//! `outlast read`.

use std::io::IsTerminal;

use outlast_cli::ReadArgs;
use outlast_job::client::{MAX_OUTPUT, Piece, first_bytes};
use outlast_job::request::{Grep, JobRequest, Lines, ReadBytes, ReadText, Stream};
use outlast_job::shell::Step;
use outlast_job::{Failure, Job, Outlast, Wait, check_wait};
use outlast_policy::OrderKind;

use crate::answer;
use crate::ask::allowed;
use crate::last_job::named_or_last;
use crate::output::Output;
use crate::terminal::Shown;

/// How much is read at once where exact bytes are wanted.
const RAW_PIECE: usize = 256 << 10;

pub(super) fn read(outlast: &Outlast, args: &ReadArgs, out: &mut Output) -> Result<i32, Failure> {
    allowed(outlast.home(), OrderKind::Read)?;
    let mut range = asked_range(args, out);
    let job = named_or_last(&outlast.expecting(expected(args, &range, out)), args.job.as_deref(), out)?;
    // Reading what an ended job printed is reading its result.
    let _ = job.info_to_show();
    if let Some(pattern) = &args.grep {
        check_wait(&Wait::for_pattern(pattern))?;
    }
    if let Some(number) = args.step {
        let step = find_step(&job, number)?;
        (range.from, range.to) = (step.from, step.to);
    }
    if let (Some(head), Some(_)) = (args.head, args.tail) {
        // The last lines of the first ones.
        let ReadText { stream, from, to, .. } = range;
        let lines = Some(Lines::First(head));
        let (begin, end) = job.borders(ReadBytes { stream, from, to, lines, ..ReadBytes::default() })?;
        (range.from, range.to) = (begin, Some(end));
    }
    if args.raw && !out.json {
        return raw(&job, raw_bytes(&range), out).map(|()| 0);
    }
    if let Some(pattern) = &args.grep {
        return grep(&job, Grep { range, pattern: pattern.clone() }, out);
    }
    if range.max == usize::MAX && !out.json {
        job.write_text(&range, |text| out.data(text))?;
        return Ok(0);
    }
    let named = args.job.clone().unwrap_or_else(|| job.handle().to_string());
    let reference = if args.stderr { format!("{named} --stderr") } else { named };
    let text = job.read(bounded(&range))?;
    if out.json {
        let info = job.info()?;
        out.value(&answer::with_text(answer::report(&job, &info), &text, &reference));
    } else {
        out.data(answer::joined(&text, &reference).as_bytes());
    }
    Ok(0)
}

/// The range that the options name, where that needs no look at the job.
fn asked_range(args: &ReadArgs, out: &Output) -> ReadText {
    let is_bounded = out.json || std::io::stdout().is_terminal();
    let max = match args.max {
        Some(0) => usize::MAX,
        Some(max) => usize::try_from(max).unwrap_or(usize::MAX),
        None if is_bounded => MAX_OUTPUT,
        None => usize::MAX,
    };
    ReadText {
        stream: if args.stderr { Stream::Stderr } else { Stream::Output },
        from: args.since.unwrap_or(0),
        to: args.until,
        lines: args.tail.map(Lines::Last).or(args.head.map(Lines::First)),
        max,
        reserve: None,
    }
}

/// What is asked of the job first.
fn expected(args: &ReadArgs, range: &ReadText, out: &Output) -> Vec<JobRequest> {
    let mut asks = vec![answer::SHOWN];
    if args.step.is_some() || args.head.is_some() && args.tail.is_some() {
        // The range is not known yet.
    } else if args.raw && !out.json {
        asks.extend([answer::RECORD, JobRequest::ReadBytes(raw_bytes(range))]);
    } else if let Some(pattern) = &args.grep {
        asks.push(JobRequest::Grep(Grep { range: *range, pattern: pattern.clone() }));
    } else if range.max == usize::MAX && !out.json {
        asks.extend([answer::RECORD, JobRequest::ReadBytes(first_bytes(range))]);
    } else {
        asks.push(JobRequest::ReadText(bounded(range)));
        if out.json {
            asks.push(answer::RECORD);
            asks.extend(answer::report_asks());
        }
    }
    asks
}

fn raw_bytes(range: &ReadText) -> ReadBytes {
    let ReadText { stream, from, to, lines, .. } = *range;
    ReadBytes { stream, from, to, lines, max: RAW_PIECE, as_is: true }
}

/// One answer, however much is wanted.
fn bounded(range: &ReadText) -> ReadText {
    ReadText { max: range.max.min(1 << 30), ..*range }
}

/// A step of a shell by its number.
pub(super) fn find_step(job: &Job, number: u64) -> Result<Step, Failure> {
    let steps = job.shell()?.steps;
    let hint = match (steps.first(), steps.last()) {
        (Some(first), Some(last)) => format!("it remembers steps {} to {}", first.step, last.step),
        _ => "nothing was run in it yet".to_owned(),
    };
    let found = steps.into_iter().find(|step| step.step == number);
    found.ok_or_else(|| Failure::usage(format!("there is no step {number} in this shell")).hint(hint))
}

/// Exact bytes; on a terminal, without what could do harm there.
fn raw(job: &Job, read: ReadBytes, out: &mut Output) -> Result<(), Failure> {
    let info = job.info()?;
    let fold = || Shown::new(outlast_job::client::fold_from(&info, read.from));
    let mut shown = std::io::stdout().is_terminal().then(fold);
    let show = |piece: Piece<'_>| match piece {
        Piece::Bytes(bytes) => match &mut shown {
            Some(shown) => out.draw(&shown.pass(bytes)),
            None => out.draw(bytes),
        },
        Piece::Lost { from, to } => {
            out.talk(&format!("outlast: {} bytes are gone, from {from} to {to}", to - from));
            true
        }
    };
    job.read_pieces(read, show)?;
    if let Some(shown) = &mut shown {
        out.draw(&shown.way_back());
    }
    Ok(())
}

/// Lines in which the pattern is found. Like grep, it is a failure if there are none.
fn grep(job: &Job, grep: Grep, out: &mut Output) -> Result<i32, Failure> {
    let matches = job.grep(grep)?;
    let text: String = matches.lines.iter().flat_map(|line| [line.text.as_str(), "\n"]).collect();
    if out.json {
        out.value(&serde_json::json!({
            "output": text, "lines": matches.found, "offset": matches.offset, "omitted_bytes": matches.omitted_bytes
        }));
    } else {
        out.data(text.as_bytes());
        if matches.omitted_bytes > 0 {
            out.talk(&format!(
                "outlast: {} more bytes of matching lines; all of them: --max 0",
                matches.omitted_bytes
            ));
        }
    }
    Ok(i32::from(matches.found == 0))
}
