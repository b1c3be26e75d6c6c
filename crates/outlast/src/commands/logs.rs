//! `outlast logs`.

use outlast_job::client::read::Stream;
use outlast_job::{Failure, Outlast};

use crate::cli::LogsArgs;
use crate::live;
use crate::output::Output;

pub(super) fn logs(outlast: &Outlast, args: &LogsArgs, out: &mut Output) -> Result<i32, Failure> {
    let job = outlast.job(&args.job)?;
    let range = job.range(Stream::Output, 0, None)?;
    let from = args.tail.map_or(0, |lines| range.last_lines(lines).from());
    live::show(&job, &live::Show { from, follow: args.follow, raw: args.raw }, out)?;
    Ok(0)
}
