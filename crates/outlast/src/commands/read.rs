//! `outlast read`.

use std::io::IsTerminal;

use outlast_job::client::read::{MAX_OUTPUT, Piece, Range, Stream, Text};
use outlast_job::{Failure, Outlast, Wait};

use crate::answer::Answer;
use crate::cli::ReadArgs;
use crate::output::Output;

pub(super) fn read(outlast: &Outlast, args: &ReadArgs, out: &mut Output) -> Result<i32, Failure> {
    let job = outlast.job(&args.job)?;
    // Whoever reads what an ended job printed has its result.
    let _ = job.info_to_show();
    if let Some(pattern) = &args.grep {
        Wait::for_pattern(pattern).check()?;
    }
    let stream = if args.stderr { Stream::Errors } else { Stream::Output };
    let mut range = job.range(stream, args.since.unwrap_or(0), args.until)?;
    if let Some(lines) = args.head {
        range = range.first_lines(lines);
    }
    if let Some(lines) = args.tail {
        range = range.last_lines(lines);
    }
    if args.raw && !out.json {
        raw(&range, out);
        return Ok(0);
    }
    let bounded = out.json || std::io::stdout().is_terminal();
    let max = match args.max {
        Some(0) => usize::MAX,
        Some(max) => usize::try_from(max).unwrap_or(usize::MAX),
        None if bounded => MAX_OUTPUT,
        None => usize::MAX,
    };
    let reference = if args.stderr { format!("{} --stderr", args.job) } else { args.job.clone() };
    if let Some(pattern) = &args.grep {
        return grep(&range, pattern, max, out);
    }
    if max == usize::MAX && !out.json {
        range.fold(|text| out.data(text));
        return Ok(0);
    }
    let text = range.text(max.min(1 << 30), &reference);
    if out.json {
        let info = job.info()?;
        out.value(&Answer::of(&job, &info).with_text(text));
    } else {
        out.data(text.text.as_bytes());
    }
    Ok(0)
}

/// Exact bytes; on a terminal, without what could do harm there.
fn raw(range: &Range, out: &mut Output) {
    let mut safe = std::io::stdout().is_terminal().then(outlast_stream::Passthrough::new);
    let mut filtered = Vec::new();
    range.pieces(|_, piece| match piece {
        Piece::Bytes(bytes) => match &mut safe {
            Some(safe) => {
                filtered.clear();
                safe.pass(bytes, &mut filtered);
                out.draw(&filtered)
            }
            None => out.draw(bytes),
        },
        Piece::Gone { from, to } => {
            out.talk(&format!("outlast: {} bytes are gone, from {from} to {to}", to - from));
            true
        }
    });
}

/// Lines in which the pattern is found. Like grep, it is a failure if there are none.
fn grep(range: &Range, pattern: &str, max: usize, out: &mut Output) -> Result<i32, Failure> {
    let regex =
        regex_automata::meta::Regex::new(pattern).map_err(|error| Failure::usage(error.to_string()))?;
    let mut found = Text { from: range.from(), offset: range.to(), ..Text::default() };
    let mut lines = 0_usize;
    let mut rest = Vec::new();
    range.fold(|text| {
        rest.extend_from_slice(text);
        let whole = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        for line in rest[..whole].split_inclusive(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(line);
            if regex.is_match(line.trim_end_matches('\n')) {
                lines += 1;
                if found.text.len() + line.len() <= max {
                    found.text.push_str(&line);
                } else {
                    found.omitted_bytes += line.len() as u64;
                }
            }
        }
        rest.drain(..whole);
        true
    });
    let last = String::from_utf8_lossy(&rest).into_owned();
    if !last.is_empty() && regex.is_match(&last) {
        lines += 1;
        found.text.push_str(&last);
        found.text.push('\n');
    }
    if out.json {
        out.value(&serde_json::json!({
            "output": found.text, "lines": lines, "offset": found.offset, "omitted_bytes": found.omitted_bytes
        }));
    } else {
        out.data(found.text.as_bytes());
        if found.omitted_bytes > 0 {
            out.talk(&format!(
                "outlast: {} more bytes of matching lines; all of them: --max 0",
                found.omitted_bytes
            ));
        }
    }
    Ok(i32::from(lines == 0))
}
