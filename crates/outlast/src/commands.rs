//! One file a verb.

mod acp;
mod attach;
mod config;
mod cp;
mod diff;
mod doctor;
mod events;
mod fleet;
mod hook;
mod host;
mod install;
mod jobs;
mod kill;
mod logs;
mod mcp;
mod node;
mod order;
mod pin;
mod policy;
mod prune;
mod read;
mod reference;
mod relay;
mod replay;
mod rerun;
mod resize;
mod rm;
mod run;
mod screen;
mod secret;
mod send;
mod shell;
mod show;
mod telemetry;
mod tmux;
mod top;
mod wait;
mod wakes;
mod watch;
mod web;

use std::io::Write;
use std::sync::Arc;

use outlast_cli::{Cli, LogsArgs, Verb};
use outlast_fleet::everywhere::Everywhere;
use outlast_job::registry::Home;
use outlast_job::{Failure, Kind, Outlast};
use outlast_policy::Gate;

use outlast_remote::fleet::Fleet;

use crate::output::Output;

/// Runs the verb; returns the exit code.
pub(crate) fn run(cli: Cli, out: &mut Output) -> Result<i32, Failure> {
    let makes_home = matches!(
        &cli.verb,
        Verb::Run(_)
            | Verb::Shell(_)
            | Verb::Mcp(_)
            | Verb::Acp(_)
            | Verb::Relay(_)
            | Verb::Host(_)
            | Verb::Cp(_)
            | Verb::Tmux(_)
            | Verb::Doctor(_)
            | Verb::Web(_)
            | Verb::Node(_)
            | Verb::Fleet(_)
            | Verb::Submit(_)
            | Verb::Order(_)
    );
    let is_relay = matches!(&cli.verb, Verb::Relay(_));
    let shows_fleet = match &cli.verb {
        Verb::Top(args) => args.fleet,
        Verb::Web(args) => args.fleet,
        _ => false,
    };
    let open = || {
        if let Some(home) = cli.home.as_ref().filter(|home| !home.exists() && !makes_home) {
            let home = home.display();
            return Err(Failure::new(
                Kind::BadHome,
                format!("there are no jobs at {home}: it does not exist"),
            )
            .hint(format!("check --home; a first job makes it: outlast --home {home} run COMMAND")));
        }
        let outlast = match &cli.home {
            Some(home) => Outlast::open_at(home),
            None => Outlast::open(),
        }?;
        // What dead keepers have left to deliver.
        outlast_job::wakes::go_on(outlast.home());
        let outlast = with_hosts(outlast, is_relay, shows_fleet);
        Ok(if masks(cli.mask) { outlast.masked() } else { outlast })
    };
    match cli.verb {
        Verb::Run(args) => run::run(&open()?, *args, out),
        Verb::Jobs(args) => jobs::jobs(&open()?, &args, out),
        Verb::Top(args) => top::top(&open()?, &args, out),
        Verb::Show(args) => show::show(&open()?, &args, out),
        Verb::Read(args) => read::read(&open()?, &args, out),
        Verb::Logs(args) => logs::logs(&open()?, &args, out),
        Verb::Tail(args) => logs::logs(&open()?, &LogsArgs { follow: true, ..args }, out),
        Verb::Screen(args) => screen::screen(&open()?, &args, out),
        Verb::Send(args) => send::send(&open()?, &args, out),
        Verb::Secret(args) => secret::secret(&open()?, &args, out),
        Verb::Resize(args) => resize::resize(&open()?, &args, out),
        Verb::Attach(args) => attach::attach(&open()?, &args, out),
        Verb::Shell(args) => shell::shell(&open()?, &args, out),
        Verb::Replay(args) => replay::replay(&open()?, &args, out),
        Verb::Diff(args) => diff::diff(&open()?, &args, out),
        Verb::Wait(args) => wait::wait(&open()?, &args, out),
        Verb::Events(args) => events::events(&open()?, &args, out),
        Verb::Watch(args) => watch::watch(&open()?, &args, out),
        Verb::Wakes(args) => wakes::wakes(&open()?, &args, out),
        Verb::Tmux(args) => tmux::tmux(open, args, out),
        Verb::Kill(args) => kill::kill(&open()?, &args, out),
        Verb::Rerun(args) => rerun::rerun(&open()?, &args, out),
        Verb::Pin(args) => pin::pin(&open()?, &args, out),
        Verb::Rm(args) => rm::rm(&open()?, &args, out),
        Verb::Prune(args) => prune::prune(&open()?, &args, out),
        Verb::Host(args) => host::host(&open()?, &args, out),
        Verb::Cp(args) => cp::cp(&open()?, &args, out),
        Verb::Node(args) => node::node(&open()?, &args, out),
        Verb::Fleet(args) => fleet::fleet(&open()?, &args.verb, out),
        Verb::Submit(args) => order::submit(&open()?, &args, out),
        Verb::Order(args) => order::order(&open()?, &args.verb, out),
        Verb::Telemetry(args) => telemetry::telemetry(&open()?, &args, out),
        Verb::Policy(args) => policy::policy(&args, out),
        Verb::Config(args) => config::config(&args, out),
        Verb::Web(args) => web::web(&open()?, &args, out),
        Verb::Mcp(args) => mcp::mcp(cli.home.clone(), &args, out),
        Verb::Acp(args) => acp::acp(open, args, out),
        Verb::Relay(args) => {
            mcp::for_a_program(
                "frames",
                "to reach another machine: outlast host add NAME ssh:USER@HOST",
                out,
            );
            relay::relay(open()?, &args)
        }
        Verb::Install(args) => install::install(cli.home.as_deref(), &args, out),
        Verb::Uninstall(args) => install::uninstall(&args, out),
        Verb::Hook(args) => Ok(hook::hook(open, &args)),
        Verb::Doctor(_) => Ok(doctor::doctor(open(), out)),
        Verb::Completions(args) => Ok(reference::completions(args.shell, out)),
        Verb::Man(args) => reference::man(&args.folder, out),
    }
}

/// The names of all settings.
pub(crate) fn setting_names() -> impl Iterator<Item = &'static str> {
    config::names()
}

/// Whether a call without any words shows all jobs: a person is there, and so are jobs. In a job nobody is.
pub(crate) fn shows_jobs() -> bool {
    let has_jobs = || {
        let home = Home::default_path().ok().filter(|home| home.is_dir());
        home.and_then(|home| Outlast::open_at(&home).ok()).is_some_and(|outlast| !outlast.jobs().is_empty())
    };
    top::is_possible() && !Gate::is_in_a_job() && has_jobs()
}

/// With the other machines that jobs may be on.
fn with_hosts(outlast: Outlast, is_relay: bool, shows_fleet: bool) -> Outlast {
    let home = outlast.home().path().to_owned();
    if is_relay {
        return outlast.with_hosts(Fleet::of_relay(&home));
    }
    let near = Fleet::of_command_line(&home, Arc::new(|text: &str| waits_for_host(text)));
    let shows_fleet = shows_fleet || outlast.settings().fleet_shown;
    outlast.with_hosts(Everywhere::with(near, shows_fleet))
}

/// A person who waits for a machine is told so. In a terminal that is attached to a job, lines end as they must there.
fn waits_for_host(text: &str) {
    let _ = std::io::stderr().lock().write_all(format!("outlast: {text}\r\n").as_bytes());
}

/// Variables by which agents mark the commands that they run.
const AGENTS: [&str; 6] =
    ["CLAUDECODE", "GEMINI_CLI", "CODEX_CI", "CODEX_SANDBOX_NETWORK_DISABLED", "OPENCODE", "CURSOR_AGENT"];

/// Whether secrets are hidden: when asked for, and when an agent reads. Who reads inside of a job may be its program, which sets
/// what variables it likes.
fn masks(asked: bool) -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let by_environment = match set("OUTLAST_MASK") {
        Some(value) => value != "0",
        None => is_an_agent(),
    };
    asked || by_environment || Gate::is_in_a_job()
}

/// Whether an agent says that it runs us.
pub(crate) fn is_an_agent() -> bool {
    AGENTS.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}
