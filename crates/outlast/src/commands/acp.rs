//! `outlast acp`.

use outlast_acp::{agent, tap};
use outlast_job::{Failure, Outlast};

use crate::cli::{AcpArgs, AcpVerb, TapArgs};
use crate::output::Output;

pub(super) fn acp(
    open: impl FnOnce() -> Result<Outlast, Failure>,
    args: AcpArgs,
    out: &mut Output,
) -> Result<i32, Failure> {
    match args.verb {
        AcpVerb::Agent(_) => agent::serve(open()?).map(|()| 0),
        AcpVerb::Sidecar(_) => Ok(0),
        AcpVerb::Tap(args) => tap_or_show(&args, out),
    }
}

fn tap_or_show(args: &TapArgs, out: &mut Output) -> Result<i32, Failure> {
    if let Some(file) = &args.show {
        tap::show::show(file, |shown| if out.json { out.value(&shown.value) } else { out.line(&shown.line) })?;
        return Ok(0);
    }
    let out_file = args.out.clone().unwrap_or_else(|| {
        std::env::temp_dir().join(format!("acp-tap-{}.jsonl", outlast_job::clock::now_ms()))
    });
    out.talk(&format!("outlast: recording to {}", out_file.display()));
    tap::tap(&args.agent, &out_file)
}
