//! `outlast tmux`: panes as places to type into, and as jobs.

mod mirror;

use std::collections::BTreeMap;
use std::path::Path;

use outlast_cli::{NOTICE, SubmitArgs, TmuxArgs, TmuxVerb};
use outlast_job::wakes::{Delivery, SUBMISSION_ASKS, SUBMISSION_DEADLINE, Says, Wake, WakePlan};
use outlast_job::wire::Stable;
use outlast_job::{EntryKind, Failure, Job, JobSpec, Outlast, Reason, Run, Streams};
use outlast_policy::OrderKind;
use outlast_protocol::JobReport;
use outlast_tmux::Tmux;
use outlast_tmux::submit::{self, Done, Submission};

use crate::answer;
use crate::ask::{CliGate, allowed};
use crate::output::Output;

pub(super) fn tmux(
    open: impl Fn() -> Result<Outlast, Failure>,
    args: TmuxArgs,
    out: &mut Output,
) -> Result<i32, Failure> {
    let env: BTreeMap<String, String> = std::env::vars().collect();
    let server = || match &args.socket {
        Some(socket) => Tmux::at(Some(socket.clone())),
        None => Tmux::of_env(&env),
    };
    match args.verb {
        TmuxVerb::Submit(submit) => self::submit(&open()?, args.socket, &submit, &env, out),
        TmuxVerb::Work { number } => Ok(work(&number, out)),
        TmuxVerb::Read(read) => {
            allowed(open()?.home(), OrderKind::Screen)?;
            let pane = server().pane(&read.pane)?;
            let text = pane.text(read.scrollback, false)?;
            let text = text.trim_end();
            if out.json {
                let (column, row) = pane.cursor()?;
                let rows: Vec<&str> = text.lines().collect();
                out.value(&serde_json::json!({
                    "pane": pane.id(), "rows": rows, "cursor": { "row": row, "col": column },
                    "busy": pane.busy(), "held": pane.free()?.map(|held| held.to_string()),
                }));
            } else {
                out.line(text);
            }
            Ok(0)
        }
        TmuxVerb::Watch(watch) => {
            let outlast = open()?;
            // A pane becomes a screen. What is typed into its job is judged then.
            allowed(outlast.home(), OrderKind::Screen)?;
            let pane = server().pane(&watch.pane)?;
            let mut argv = vec!["tmux".to_owned(), "mirror".to_owned(), pane.id().to_owned()];
            if let Some(socket) = pane.tmux().socket() {
                argv.extend(["--socket".to_owned(), socket.to_owned()]);
            }
            let mut spec = own_job(argv);
            spec.description = Some(format!("tmux pane {}", pane.id()));
            if let Some(size) = mirror::size(&pane)? {
                spec.streams = Streams::Terminal(size);
            }
            answer(&outlast.start(spec)?, Vec::new(), out)
        }
        TmuxVerb::Mirror(watch) => mirror::mirror(&server().pane(&watch.pane)?, out),
    }
}

/// A job that runs this program again.
fn own_job(argv: Vec<String>) -> JobSpec {
    let program =
        std::env::current_exe().map_or_else(|_| "outlast".into(), |path| path.display().to_string());
    JobSpec::new(Run::Program([vec![program], argv].concat()))
}

fn answer(job: &Job, wakes: Vec<WakePlan>, out: &mut Output) -> Result<i32, Failure> {
    let info = job.info()?;
    if out.json {
        out.value(&JobReport { reason: Some(Reason::Started), wakes, ..answer::report(job, &info) });
    } else {
        out.line(&job.handle().to_string());
    }
    Ok(0)
}

fn submit(
    outlast: &Outlast,
    socket: Option<String>,
    args: &SubmitArgs,
    env: &BTreeMap<String, String>,
    out: &mut Output,
) -> Result<i32, Failure> {
    let ms = outlast_job::clock::millis;
    let wanted = Submission {
        socket,
        pane: args.target.clone().unwrap_or_default(),
        told: args.tell.clone().unwrap_or_default(),
        pinned: None,
        command: args.command.join(" "),
        stable: Stable {
            checks: args.checks,
            interval_ms: ms(args.interval),
            ignore: args.ignore.clone(),
            ignore_rows: args.ignore_row.clone(),
        },
        settle_ms: ms(args.settle),
        cap_ms: ms(args.cap),
        patience_ms: ms(args.patience),
        prompt: args.prompt.clone(),
        clear: args.clear,
        keys: args.keys,
        number: std::path::PathBuf::new(),
    };
    let gate = CliGate::open(outlast.home())?;
    let _pass = gate.pass(OrderKind::TypeLine(&wanted.command))?;
    let says = match args.notice.as_str() {
        "" => None,
        NOTICE => Some(Says::HowItWent),
        own => {
            // It is typed as well, no matter which program reads it there.
            let _pass = gate.pass(OrderKind::TypeLine(own))?;
            Some(Says::own(own)?)
        }
    };
    let wanted = submit::prepare(wanted, env)?;
    // The notice is a wake of the job that types the command: it comes however that ends.
    let wake = says.map(|says| Wake {
        how: Delivery::Tmux {
            pane: wanted.told.clone(),
            prompt: args.prompt.clone(),
            shell: None,
            timeout_ms: ms(args.patience),
            pinned: wanted.told().cloned(),
            says: Some(says),
        },
        on: vec![EntryKind::Exit],
    });
    let wakes: Vec<WakePlan> = wake.iter().map(|wake| wake.will(env, true)).collect();
    let number = wanted.number.display().to_string();
    let home = outlast.home().path().display().to_string();
    let mut spec = own_job(["--home", &home, "tmux", "work", &number].map(ToOwned::to_owned).to_vec());
    let shown: String = args.command.join(" ").chars().take(120).collect();
    spec.description = Some(format!("typed into tmux pane {}: {shown}", wanted.pane));
    spec.streams = Streams::Pipes;
    spec.shown_as = Some(args.command.join(" "));
    spec.wakes.extend(wake.as_ref().map(Wake::to_request));
    let job = outlast.start(spec)?;
    if !out.json {
        out.talk(&format!("job {} types it into {} when that is free", job.handle(), wanted.pane));
        for wake in wakes.iter().filter(|wake| !wake.fires) {
            out.talk(&format!("the notice will not be typed into {}: {}", wake.target, wake.why));
        }
    }
    answer(&job, wakes, out)
}

/// The command of a submission's job.
fn work(number: &Path, out: &mut Output) -> i32 {
    let worked = submit::read(number).and_then(|wanted| {
        submit::work(&wanted, &mut |line| {
            out.line(line);
        })
    });
    match worked {
        Ok(Done::Still) => 0,
        Ok(Done::Asks) => SUBMISSION_ASKS,
        Ok(Done::Capped) => SUBMISSION_DEADLINE,
        Err(failure) => {
            // On stdout: it is what the job says last.
            out.line(&failure.message);
            1
        }
    }
}
