//! `outlast logs`.

use outlast_cli::LogsArgs;
use outlast_job::request::{Lines, ReadBytes};
use outlast_job::{Failure, Outlast};
use outlast_policy::OrderKind;

use crate::ask::allowed;
use crate::live;
use crate::output::Output;

pub(super) fn logs(outlast: &Outlast, args: &LogsArgs, out: &mut Output) -> Result<i32, Failure> {
    allowed(outlast.home(), OrderKind::Follow)?;
    let job = outlast.job(&args.job)?;
    let from = match args.tail {
        Some(lines) => job.borders(ReadBytes { lines: Some(Lines::Last(lines)), ..ReadBytes::default() })?.0,
        None => 0,
    };
    live::show(&job, &live::Show { from, follow: args.follow, raw: args.raw }, out)?;
    Ok(0)
}
