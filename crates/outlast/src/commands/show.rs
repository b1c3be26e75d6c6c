//! `outlast show`: all that is known of one job.

mod shell;

use outlast_cli::ShowArgs;
use outlast_job::lifecycle::{Receipt, State};
use outlast_job::limits::{LimitedBy, Limits};
use outlast_job::registry::format::Info;
use outlast_job::request::{Details, JobRequest};
use outlast_job::sandbox::Sandbox;
use outlast_job::units::print_millis;
use outlast_job::wire::{Activity, Status};
use outlast_job::{Failure, Input, Outlast, Streams, session};
use outlast_policy::OrderKind;
use outlast_protocol::{JobOutcome, JobReport};
use serde::Serialize;

use crate::answer;
use crate::ask::allowed;
use crate::human;
use crate::last_job::named_or_last;
use crate::output::Output;

/// The facts of a job, as JSON.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    report: JobReport,
    command: &'a str,
    description: Option<&'a str>,
    cwd: &'a str,
    session: &'a str,
    mine: bool,
    started_at: u64,
    ended_at: Option<u64>,
    duration_ms: u64,
    terminal: Option<outlast_job::Size>,
    input: Input,
    activity: Option<Activity>,
    ports: &'a [u16],
    processes: &'a [outlast_job::lifecycle::Process],
    timeout_ms: Option<u64>,
    inactivity_timeout_ms: Option<u64>,
    log_cap: u64,
    limits: &'a Limits,
    sandbox: Option<&'a Sandbox>,
    sandbox_by: Option<&'a str>,
    env_names: &'a [String],
    cpu_ms: Option<u64>,
    memory_bytes: Option<u64>,
    disk_bytes: u64,
    pinned: bool,
}

pub(super) fn show(outlast: &Outlast, args: &ShowArgs, out: &mut Output) -> Result<i32, Failure> {
    allowed(outlast.home(), OrderKind::List)?;
    match (args.job.as_deref(), args.name.as_deref()) {
        (Some("shell"), Some(name)) => return shell::show(outlast, name, out),
        (Some(job), Some(name)) => {
            return Err(Failure::usage(format!("show takes one job, not {job} and {name}"))
                .hint(format!("outlast show {job}; a shell that remembers: outlast show shell {name}")));
        }
        (_, None) | (None, Some(_)) => {}
    }
    let mut asks = vec![answer::SHOWN, JobRequest::Status, JobRequest::Details, JobRequest::Outcome];
    asks.extend(answer::report_asks());
    let job = named_or_last(&outlast.expecting(asks), args.job.as_deref(), out)?;
    let info = job.info_to_show()?;
    // A keeper that does not answer hides nothing of what the files say.
    let status = if info.state.is_live() { job.status().ok().flatten() } else { None };
    let details = job.details().unwrap_or_default();
    let mut report = answer::report(&job, &info);
    report.outcome = job.outcome()?;
    report.awaiting_input = status.as_ref().and_then(|status| status.awaiting_input.clone());
    let facts = Facts { info: &info, status: status.as_ref(), details, report };
    if out.json {
        out.value(&facts.json());
    } else {
        facts.print(out);
    }
    Ok(0)
}

struct Facts<'a> {
    info: &'a Info,
    status: Option<&'a Status>,
    details: Details,
    report: JobReport,
}

impl Facts<'_> {
    fn receipt(&self) -> Option<&Receipt> {
        self.info.state.receipt()
    }

    fn ended_at(&self) -> Option<u64> {
        match &self.info.state {
            State::Queued(_) | State::Starting | State::Running { .. } => None,
            State::Lost { found_at, .. } => Some(*found_at),
            ended @ (State::Completed(_) | State::Failed(_) | State::Killed(_)) => {
                ended.receipt().map(|receipt| receipt.ended_at)
            }
        }
    }

    fn duration_ms(&self) -> u64 {
        let until = self.ended_at().unwrap_or_else(outlast_job::clock::now_ms);
        until.saturating_sub(self.info.started_at.unwrap_or(self.info.created_at))
    }

    /// CPU time and memory: now, or all that was used.
    fn used(&self) -> (Option<u64>, Option<u64>) {
        match (self.details.usage, self.receipt().and_then(|receipt| receipt.used.as_ref())) {
            (_, Some(used)) => (Some(used.user_ms + used.system_ms), Some(used.max_rss_kib * 1024)),
            (Some(usage), None) => (Some(usage.cpu_ms), Some(usage.memory_bytes)),
            (None, None) => (None, None),
        }
    }

    fn json(&self) -> Shown<'_> {
        let info = self.info;
        let (cpu_ms, memory_bytes) = self.used();
        Shown {
            report: self.report.clone(),
            command: &info.command,
            description: info.description.as_deref(),
            cwd: &info.cwd,
            session: &info.session,
            mine: info.session == session::current(),
            started_at: info.created_at,
            ended_at: self.ended_at(),
            duration_ms: self.duration_ms(),
            terminal: match info.streams {
                Streams::Terminal(size) => Some(size),
                Streams::Pipes => None,
            },
            input: info.input,
            activity: self.status.map(|status| status.activity),
            ports: self.status.map_or(&[], |status| &status.ports),
            processes: self.status.map_or(&[], |status| &status.processes),
            timeout_ms: info.timeout_ms,
            inactivity_timeout_ms: info.inactivity_timeout_ms,
            log_cap: info.log_cap,
            limits: &info.limits,
            sandbox: info.sandbox.as_ref(),
            sandbox_by: info.sandbox_by.as_deref(),
            env_names: &info.env_names,
            cpu_ms,
            memory_bytes,
            disk_bytes: self.details.disk_bytes,
            pinned: self.details.pinned,
        }
    }

    fn print(&self, out: &mut Output) {
        let name = self.info.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        let title = format!("job {}{name}: {}", self.info.handle, self.state());
        out.line(&out.styled("1", &title));
        let mut rows = self.about();
        rows.extend(self.life());
        rows.extend(self.bounds());
        rows.extend(self.files());
        for (what, said) in rows {
            let what = out.styled("2", &format!("{what:<11}"));
            out.line(&format!("  {what}{}", human::cut(&said, usize::MAX)));
        }
    }

    fn state(&self) -> String {
        let state = self.info.state.name();
        if let Some(receipt) = self.receipt() {
            return format!("{state}, {}", answer::ending(receipt));
        }
        match self.status.map(|status| status.activity) {
            Some(Activity::Quiet { for_ms }) => format!("{state}, quiet for {}", human::duration(for_ms)),
            Some(Activity::Stopped) => {
                format!("stopped; let it go on: outlast kill {} -s CONT", self.info.handle)
            }
            Some(Activity::Listening { for_ms }) => {
                format!("{state}, listening, quiet for {}", human::duration(for_ms))
            }
            Some(Activity::AwaitingInput) => format!("{state}, asks for input"),
            Some(Activity::Asking) => format!("{state}, a person must agree: outlast policy pending"),
            Some(Activity::Queued | Activity::Working | Activity::Ended) => match self.info.state.queued() {
                Some(queued) => format!("{state}, {}", queued.words()),
                None => state.to_owned(),
            },
            None => match self.info.state.why_lost() {
                Some(why) => format!("{state}, {why}"),
                None => state.to_owned(),
            },
        }
    }

    fn about(&self) -> Vec<(&'static str, String)> {
        let info = self.info;
        let mut rows = vec![("command", info.command.clone())];
        rows.extend(info.description.iter().map(|text| ("for", text.clone())));
        rows.push(("folder", info.cwd.clone()));
        if let Some(awaiting) = &self.report.awaiting_input {
            let answer = format!("answer it: outlast send {} TEXT", info.handle);
            rows.push(("asks", format!("{:?}; {answer}", awaiting.prompt)));
        }
        let lines = self.report.outcome.iter().flat_map(JobOutcome::lines);
        rows.extend(lines.enumerate().map(|(i, line)| (if i == 0 { "result" } else { "" }, line)));
        let ports: Vec<String> =
            self.status.iter().flat_map(|status| &status.ports).map(ToString::to_string).collect();
        if !ports.is_empty() {
            rows.push(("listens on", ports.join(", ")));
        }
        rows
    }

    fn life(&self) -> Vec<(&'static str, String)> {
        let now = outlast_job::clock::now_ms();
        let moment = |at: u64| format!("{}, {} ago", human::moment(at), human::age(now.saturating_sub(at)));
        let mut rows = match (self.info.state.queued(), self.info.started_at) {
            (Some(_), _) => vec![("queued", moment(self.info.created_at))],
            (None, Some(started)) => {
                vec![("queued", moment(self.info.created_at)), ("started", moment(started))]
            }
            (None, None) => vec![("started", moment(self.info.created_at))],
        };
        let took = human::duration(self.duration_ms());
        match (self.ended_at(), self.receipt()) {
            (Some(at), Some(receipt)) => {
                rows.push(("ended", format!("{}, {}", moment(at), answer::ended_by(receipt))));
                rows.push(("took", took));
            }
            (Some(at), None) => rows.push(("found lost", moment(at))),
            (None, _) if self.info.state.queued().is_some() => {}
            (None, _) => rows.push(("runs for", took)),
        }
        let (cpu, memory) = self.used();
        rows.extend(cpu.map(|ms| ("CPU time", human::duration(ms))));
        let peak = if self.receipt().is_some() { " at most" } else { " now" };
        rows.extend(memory.map(|bytes| ("memory", format!("{}{peak}", human::bytes(bytes)))));
        let named = |processes: &[outlast_job::lifecycle::Process]| {
            let one = |p: &outlast_job::lifecycle::Process| {
                let ports: String = p.ports.iter().map(|port| format!(", port {port}")).collect();
                format!("{} ({}{ports})", p.program, p.pid)
            };
            let names: Vec<String> = processes.iter().take(8).map(one).collect();
            let more = processes.len().saturating_sub(names.len());
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{}{more}", names.join(", "))
        };
        if let Some(status) = self.status.filter(|status| !status.processes.is_empty()) {
            rows.push(("processes", named(&status.processes)));
        }
        if !self.report.left_behind.is_empty() {
            let end = format!("; end them: outlast kill {}", self.info.handle);
            rows.push(("left over", named(&self.report.left_behind) + &end));
        }
        rows
    }

    fn bounds(&self) -> Vec<(&'static str, String)> {
        let info = self.info;
        let mut bounds = Vec::new();
        bounds.extend(info.timeout_ms.map(|ms| format!("ends after {}", print_millis(ms))));
        bounds.extend(
            info.inactivity_timeout_ms.map(|ms| format!("ends when silent for {}", print_millis(ms))),
        );
        bounds.extend(info.limits.memory.map(|bytes| format!("memory {}", human::bytes(bytes))));
        bounds.extend(info.limits.processes.map(|count| format!("{count} processes")));
        bounds.extend(info.limits.cpu_milli.map(|milli| format!("{} processors", milli as f64 / 1000.0)));
        bounds.extend(
            info.limits
                .cpu_time
                .map(|time| format!("CPU time {}", print_millis(outlast_job::clock::millis(time)))),
        );
        let mut rows = Vec::new();
        if !bounds.is_empty() {
            let by = match &info.limited_by {
                Some(LimitedBy::Cgroup(_)) => " (by a control group, for the whole job)",
                Some(LimitedBy::EachProcess) => " (by the kernel, for each process)",
                None => "",
            };
            rows.push(("limits", bounds.join(", ") + by));
        }
        rows.extend(
            info.sandbox
                .as_ref()
                .map(|_| ("sandbox", info.sandbox_by.clone().unwrap_or_else(|| "yes".into()))),
        );
        rows
    }

    fn files(&self) -> Vec<(&'static str, String)> {
        let info = self.info;
        let input = match info.input {
            Input::Typed => "",
            Input::Given => ", input from the file or pipe that it was given",
            Input::Nothing => ", no input",
        };
        let streams = match info.streams {
            Streams::Terminal(size) => format!("terminal of {}x{}{input}", size.cols, size.rows),
            Streams::Pipes => format!("pipes{input}"),
        };
        let whose = if info.session == session::current() { " (this one)" } else { "" };
        let mut rows = vec![
            ("runs on", streams),
            ("session", format!("{}{whose}", info.session)),
            ("output", format!("{} in {}", human::bytes(self.report.offset), self.report.output_file)),
            ("disk", human::bytes(self.details.disk_bytes)),
        ];
        let gone = info.gone.bytes_in(0, u64::MAX) + info.errors_gone.bytes_in(0, u64::MAX);
        if gone > 0 {
            rows.push((
                "gone",
                format!("{} of it are gone: past the cap, or lost by the disk", human::bytes(gone)),
            ));
        }
        if matches!(info.state, State::Running { .. }) && info.heir.is_none() {
            rows.push(("keeper", "it has no heir any more: if its keeper dies too, the job is lost".into()));
        }
        if self.details.pinned {
            rows.push(("pinned", "it is kept; let it go: outlast pin --remove".into()));
        }
        rows
    }
}
