//! `outlast acp`.

use std::sync::Arc;

use outlast_acp::sidecar::MoreCall;
use outlast_acp::sidecar::budget::Limits;
use outlast_acp::{agent, sidecar, tap};
use outlast_cli::{AcpArgs, AcpVerb, SidecarArgs, TapArgs};
use outlast_job::{Failure, Outlast};

use crate::output::Output;

pub(super) fn acp(
    open: impl FnOnce() -> Result<Outlast, Failure>,
    args: AcpArgs,
    out: &mut Output,
) -> Result<i32, Failure> {
    match args.verb {
        AcpVerb::Agent(_) => {
            let instead = "name this command in your editor's settings for agents: outlast acp agent";
            super::mcp::for_a_program("ACP", instead, out);
            agent::serve(open()?).map(|()| 0)
        }
        AcpVerb::Sidecar(args) => side(open()?, args),
        AcpVerb::Tap(args) => tap_or_show(&args, out),
    }
}

fn tap_or_show(args: &TapArgs, out: &mut Output) -> Result<i32, Failure> {
    if let Some(file) = &args.show {
        tap::show::show(
            file,
            |shown| if out.json { out.value(&shown.value) } else { out.line(&shown.line) },
        )?;
        return Ok(0);
    }
    let out_file = args.out.clone().unwrap_or_else(|| {
        std::env::temp_dir().join(format!("acp-tap-{}.jsonl", outlast_job::clock::now_ms()))
    });
    out.talk(&format!("outlast: recording to {}", out_file.display()));
    tap::tap(&args.agent, &out_file)
}

fn side(outlast: Outlast, args: SidecarArgs) -> Result<i32, Failure> {
    let words = outlast_mcp::Words(outlast_mcp::Profile::from_name(&args.profile)?);
    let program =
        std::env::current_exe().map_err(|error| Failure::system("our own program can't be found", error))?;
    let program = program.to_string_lossy();
    let home = outlast.home().path().to_string_lossy().into_owned();
    let mut server = vec![&*program, "--home", &home, "mcp", "--profile", &args.profile];
    if !args.no_wake {
        server.push("--prompted");
    }
    let options = sidecar::Options {
        limits: Limits {
            in_a_row: args.turns,
            per_minute: args.per_minute,
            per_hour: args.per_hour,
            bytes_per_hour: args.bytes_per_hour,
        },
        prompt_bytes: usize::try_from(args.prompt_bytes).unwrap_or(usize::MAX),
        window: args.window,
        events: args.events,
        no_wake: args.no_wake,
        no_jobs: args.no_jobs,
        server: server.into_iter().map(ToOwned::to_owned).collect(),
        unknown: Arc::new(outlast_mcp::unseen),
        words: Arc::new(move |call| match call {
            MoreCall::ReadFrom(job, offset) => words.read_from(job, offset),
            MoreCall::ReadNew(job) => words.read_new(&job.to_string()),
            MoreCall::Type(job) => words.type_into(&job.to_string()),
            MoreCall::Screen(job) => words.screen(&job.to_string()),
        }),
    };
    sidecar::run(outlast, options, &args.agent)
}
