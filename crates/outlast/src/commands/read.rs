//! `outlast read`.

use std::io::IsTerminal;

use outlast_cli::ReadArgs;
use outlast_job::client::{MAX_OUTPUT, Piece};
use outlast_job::request::{Grep, Lines, ReadBytes, ReadText, Stream};
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
    let job = named_or_last(outlast, args.job.as_deref(), out)?;
    // Reading what an ended job printed is reading its result.
    let _ = job.info_to_show();
    if let Some(pattern) = &args.grep {
        check_wait(&Wait::for_pattern(pattern))?;
    }
    let stream = if args.stderr { Stream::Stderr } else { Stream::Output };
    let (mut from, mut to) = match args.step {
        Some(number) => {
            let step = find_step(&job, number)?;
            (step.from, step.to)
        }
        None => (args.since.unwrap_or(0), args.until),
    };
    if let (Some(head), Some(_)) = (args.head, args.tail) {
        // The last lines of the first ones.
        let lines = Some(Lines::First(head));
        let (begin, end) = job.borders(ReadBytes { stream, from, to, lines, ..ReadBytes::default() })?;
        (from, to) = (begin, Some(end));
    }
    let lines = args.tail.map(Lines::Last).or(args.head.map(Lines::First));
    if args.raw && !out.json {
        return raw(&job, ReadBytes { stream, from, to, lines, max: RAW_PIECE, as_is: true }, out)
            .map(|()| 0);
    }
    let bounded = out.json || std::io::stdout().is_terminal();
    let max = match args.max {
        Some(0) => usize::MAX,
        Some(max) => usize::try_from(max).unwrap_or(usize::MAX),
        None if bounded => MAX_OUTPUT,
        None => usize::MAX,
    };
    let range = ReadText { stream, from, to, lines, max, reserve: None };
    if let Some(pattern) = &args.grep {
        return grep(&job, Grep { range, pattern: pattern.clone() }, out);
    }
    if max == usize::MAX && !out.json {
        job.write_text(&range, |text| out.data(text))?;
        return Ok(0);
    }
    let named = args.job.clone().unwrap_or_else(|| job.handle().to_string());
    let reference = if args.stderr { format!("{named} --stderr") } else { named };
    let text = job.read(ReadText { max: max.min(1 << 30), ..range })?;
    if out.json {
        let info = job.info()?;
        out.value(&answer::with_text(answer::report(&job, &info), &text, &reference));
    } else {
        out.data(answer::joined(&text, &reference).as_bytes());
    }
    Ok(0)
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
