//! `outlast attach`.

use std::io::IsTerminal;

use outlast_cli::AttachArgs;
use outlast_job::wire::Attach;
use outlast_job::{Failure, Outlast};
use outlast_policy::OrderKind;

use crate::answer;
use crate::ask::allowed;
use crate::last_job::named_or_last_running;
use crate::live::Left;
use crate::output::Output;
use crate::viewer::{self, ShowFrom};

pub(super) fn attach(outlast: &Outlast, args: &AttachArgs, out: &mut Output) -> Result<i32, Failure> {
    let job = named_or_last_running(outlast, args.job.as_deref(), out)?;
    let read_only = args.read_only;
    allowed(outlast.home(), OrderKind::Attach { read_only })?;
    let handle = job.handle();
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Failure::usage("attach needs a terminal of your own").hint(format!(
            "follow it: outlast logs -f {handle}   type into it: outlast send {handle} TEXT"
        )));
    }
    let info = job.info_to_show()?;
    if !info.state.is_live() {
        let ended = info.state.receipt().map_or_else(|| "lost".into(), answer::ending);
        return Err(Failure::new(outlast_job::Kind::NotRunning, format!("job {handle} has ended: {ended}"))
            .hint(format!("see it again: outlast replay {handle}")));
    }
    let how = if args.read_only { ", only to look" } else { "" };
    let greeting = format!("[attached to job {handle}{how}; leave it with Ctrl-] (nothing is sent)]");
    let attach = Attach { size: None, read_only: args.read_only, shared: args.shared };
    match viewer::view(&job, &attach, ShowFrom::Now, Some(greeting), out)? {
        Left::Ended => {
            let info = job.info_to_show()?;
            let ended = info.state.receipt().map_or_else(|| "lost".into(), answer::ending);
            out.talk(&format!("[job {handle} has ended: {ended}]"));
            Ok(super::run::exit_code(&info.state))
        }
        Left::Asked(_) | Left::Detached => {
            out.talk(&format!("[left job {handle}; it runs on; back to it: outlast attach {handle}]"));
            Ok(0)
        }
    }
}
