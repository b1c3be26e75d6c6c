//! `outlast shell`: a person sits down in a shell that remembers.

use std::io::IsTerminal;

use outlast_cli::ShellArgs;
use outlast_job::shell::Shell;
use outlast_job::wire::Attach;
use outlast_job::{Failure, JobSpec, Outlast, Run, Streams};
use outlast_policy::{OrderKind, Start};

use super::run::in_shell::{default_kind, of_shell, scope};
use crate::answer;
use crate::ask::{CliGate, allowed};
use crate::choices;
use crate::live::Left;
use crate::output::Output;
use crate::terminal;
use crate::viewer::{self, Seat, ShowFrom};

pub(super) fn shell(outlast: &Outlast, args: &ShellArgs, out: &mut Output) -> Result<i32, Failure> {
    let name = args.name.as_str();
    allowed(outlast.home(), OrderKind::Attach { read_only: false })?;
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Failure::usage("to sit down in a shell needs a terminal of your own")
            .hint(format!("run one command in it: outlast run --shell {name} COMMAND")));
    }
    let place = outlast.place_of_shell(&scope(), name)?;
    let kind = place.kind_for(args.with.or(default_kind(outlast, &place)), name)?;
    let mut spec = JobSpec::new(Run::Program(Vec::new()));
    spec.streams = Streams::Terminal(terminal::size().unwrap_or_default());
    spec.cwd.clone_from(&place.begins_in);
    of_shell(&mut spec, Shell { rc: args.rc, scope: scope(), ..Shell::new(name, kind) });
    if !place.lives {
        let start =
            Start { run: &spec.run, folder: place.folder.as_ref(), env: &Default::default(), fed: false };
        spec.guard = CliGate::open(outlast.home())?.pass(OrderKind::Start(start))?.guard_request();
    }
    let (job, made) = outlast.open_shell(&spec)?;
    let handle = job.handle();
    let how = if made { "made" } else { "entered" };
    let detach_key = choices::detach_key(outlast, None, out);
    let leave = if detach_key.is_some() {
        format!("leave it with {detach_key}")
    } else {
        "it can only be left by its own end".to_owned()
    };
    // A prompt comes at once, so a hint that goes away with the first output would not be seen.
    out.talk(&format!("[shell {name} was {how}: job {handle}; steps of others wait; {leave}]"));
    if made && let Some(restored) = job.info()?.shell.and_then(|shell| shell.restored) {
        out.talk(&format!("[{restored}]"));
    }
    let attach = Attach { sits: true, ..Attach::default() };
    let seat = Seat { attach, detach_key, greeting: None };
    match viewer::view(&job, seat, ShowFrom::Now(super::attach::own_terminal()), out)? {
        Left::Ended => {
            let info = job.info_to_show()?;
            let ended = info.state.receipt().map_or_else(|| "lost".into(), answer::ending);
            out.talk(&format!("[shell {name} has ended: {ended}; the next step makes it again]"));
            Ok(super::run::exit_code(&info.state))
        }
        Left::Stopped | Left::Asked { .. } | Left::Detached => {
            out.talk(&format!("[left shell {name}; it stays; back to it: outlast shell {name}]"));
            Ok(0)
        }
    }
}
