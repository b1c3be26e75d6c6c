//! `outlast attach`.

use std::io::IsTerminal;

use outlast_cli::AttachArgs;
use outlast_job::request::JobRequest;
use outlast_job::wire::{Activity, Attach};
use outlast_job::{Failure, Outlast, session};
use outlast_policy::OrderKind;

use crate::answer;
use crate::ask::allowed;
use crate::choices;
use crate::last_job::named_or_last_running;
use crate::live::Left;
use crate::output::Output;
use crate::terminal;
use crate::viewer::{self, OwnTerminal, Seat, ShowFrom};

/// What our terminal says of its cursor.
pub(super) fn own_terminal() -> OwnTerminal {
    let answer = terminal::ask_for_cursor();
    let answer_is_late = answer.asked && answer.cursor.is_none();
    OwnTerminal { cursor: answer.cursor, answer_is_late, typed: answer.typed }
}

pub(super) fn attach(outlast: &Outlast, args: &AttachArgs, out: &mut Output) -> Result<i32, Failure> {
    let job = named_or_last_running(
        &outlast.expecting([answer::SHOWN, JobRequest::Status]),
        args.job.as_deref(),
        out,
    )?;
    let read_only = args.read_only;
    allowed(outlast.home(), OrderKind::Attach { read_only })?;
    let handle = job.handle();
    let info = job.info_to_show()?;
    if !info.state.is_live() {
        let ended = info.state.receipt().map_or_else(|| "lost".into(), answer::ending);
        return Err(Failure::new(outlast_job::Kind::NotRunning, format!("job {handle} has ended: {ended}"))
            .hint(format!("see it again: outlast replay {handle}   run it again: outlast rerun {handle}")));
    }
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Failure::usage("attach needs a terminal of your own").hint(format!(
            "follow it: outlast logs -f {handle}   type into it: outlast send {handle} TEXT"
        )));
    }
    let how = if args.read_only { ", only to look" } else { "" };
    let detach_key = choices::detach_key(outlast, args.detach_key, out);
    let leave = if detach_key.is_some() {
        format!("leave it with {detach_key} (nothing is sent)")
    } else {
        "no key leaves it".to_owned()
    };
    let greeting = Some(format!("[attached to job {handle}{how}; {leave}]"));
    let attach = Attach { read_only: args.read_only, shared: args.shared, ..Attach::default() };
    // A person who attaches to a stopped job wants it to go on.
    let is_stopped = job.status()?.is_some_and(|status| status.activity == Activity::Stopped);
    if is_stopped && !args.read_only {
        job.signal("CONT", &session::current())?;
    }
    match viewer::view(&job, Seat { attach, detach_key, greeting }, ShowFrom::Now(own_terminal()), out)? {
        Left::Ended => {
            let info = job.info_to_show()?;
            let ended = info.state.receipt().map_or_else(|| "lost".into(), answer::ending);
            out.talk(&format!("[job {handle} has ended: {ended}]"));
            Ok(super::run::exit_code(&info.state))
        }
        Left::Stopped => {
            out.talk(&format!("[job {handle} is stopped; go on with it: outlast attach {handle}]"));
            Ok(super::run::STOPPED)
        }
        Left::Asked { .. } | Left::Detached => {
            out.talk(&format!("[left job {handle}; it runs on; back to it: outlast attach {handle}]"));
            Ok(0)
        }
    }
}
