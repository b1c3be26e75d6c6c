//! `outlast tmux`: panes as places to type into, and as jobs.

mod mirror;

use std::collections::BTreeMap;
use std::path::Path;

use outlast_job::tmux::Tmux;
use outlast_job::tmux::submit::{self, Done, Submission};
use outlast_job::wire::Stable;
use outlast_job::{Failure, Job, JobSpec, Outlast, Reason, Run, Streams};

use crate::answer::Answer;
use crate::ask::AtTheDoor;
use crate::cli::{SubmitArgs, TmuxArgs, TmuxVerb};
use crate::output::{DEADLINE, Output};

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
        TmuxVerb::Work { number } => work(&number, out),
        TmuxVerb::Read(read) => {
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
            answer(&open()?.start(spec)?, out)
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

fn answer(job: &Job, out: &mut Output) -> Result<i32, Failure> {
    let info = job.info()?;
    if out.json {
        out.value(&Answer::of(job, &info).because(Reason::Started));
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
        command: args.command.join(" "),
        notice: args.notice.clone(),
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
        number: std::path::PathBuf::new(),
    };
    let door = AtTheDoor::open(outlast.home())?;
    door.pass(door.gate().judge_line(door.session(), &wanted.command)?)?;
    let wanted = submit::prepare(outlast.home().path(), wanted, env)?;
    let number = wanted.number.display().to_string();
    let mut spec = own_job(vec!["tmux".to_owned(), "work".to_owned(), number]);
    let shown: String = args.command.join(" ").chars().take(120).collect();
    spec.description = Some(format!("typed into tmux pane {}: {shown}", wanted.pane));
    spec.streams = Streams::Pipes;
    let job = outlast.start(spec)?;
    if !out.json {
        out.talk(&format!("job {} types it into {} when that is free", job.handle(), wanted.pane));
    }
    answer(&job, out)
}

/// The command of a submission's job.
fn work(number: &Path, out: &mut Output) -> Result<i32, Failure> {
    let done = submit::read(number).and_then(|wanted| {
        submit::work(&wanted, &mut |line| {
            out.line(line);
        })
    });
    match done {
        Ok(Done::Still) => Ok(0),
        Ok(Done::Capped) => Ok(DEADLINE),
        Err(failure) => {
            // On stdout: it is what the job says last.
            out.line(&failure.message);
            Ok(1)
        }
    }
}
