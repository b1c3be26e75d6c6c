//! The grammar of the command line, and nothing else: clap types whose doc comments are the help.
//!
//! The binary parses its own arguments with [`Cli`]. The policy reads an `outlast …` inside another command
//! with the same type, so the two cannot disagree. For that, nothing here looks at the environment, at files
//! or at the clock: the same words always give the same [`Cli`].

mod acp;
mod conditions;
mod config;
mod end;
mod events;
mod fleet;
mod host;
mod input;
mod install;
mod look;
mod manage;
mod policy;
mod queue;
mod run;
mod sandbox;
mod setup;
mod tmux;
mod wakes;
mod values;
mod web;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

pub use acp::{AcpAgentArgs, AcpArgs, AcpVerb, SidecarArgs, TapArgs};
pub use conditions::{ComesBackAt, Conditions};
pub use config::{
    ConfigArgs, ConfigGetArgs, ConfigListArgs, ConfigPathArgs, ConfigSetArgs, ConfigUnsetArgs, ConfigVerb,
};
pub use end::{KillArgs, PruneArgs};
pub use events::{EventsArgs, WatchArgs};
pub use fleet::{
    FleetAddArgs, FleetArgs, FleetInitArgs, FleetJoinArgs, FleetLogArgs, FleetRevokeArgs, FleetStatusArgs,
    FleetVerb, NodeArgs, TelemetryArgs,
};
pub use host::{CpArgs, HostAddArgs, HostArgs, HostListArgs, HostRemoveArgs, HostTestArgs, HostVerb};
pub use input::{
    AttachArgs, ResizeArgs, SecretArgs, SecretForgetArgs, SecretListArgs, SecretVerb, SendArgs, ShellArgs,
};
pub use install::{Agents, Client, HookArgs, InstallArgs, Scope, Target, UninstallArgs};
pub use look::{
    DiffArgs, ExportFormat, JobsArgs, LogsArgs, ReadArgs, ReplayArgs, ScreenArgs, StatusFilter, TopArgs,
    WaitArgs,
};
pub use manage::{PinArgs, RerunArgs, RmArgs, ShowArgs};
pub use policy::{
    PolicyAnswerArgs, PolicyArgs, PolicyCheckArgs, PolicyInitArgs, PolicyLogArgs, PolicyPendingArgs,
    PolicyVerb, YesNo,
};
pub use queue::{
    OrderArgs, OrderCancelArgs, OrderListArgs, OrderResolveArgs, OrderResultsArgs, OrderShowArgs, OrderVerb,
    PriorityArg, RetryArg, SubmitOrderArgs,
};
pub use run::RunArgs;
pub use sandbox::{BoundsArgs, NetworkArg, SandboxBy};
pub use setup::{CompletionsArgs, DoctorArgs, ManArgs, McpArgs, RelayArgs, Shell};
pub use tmux::{NOTICE, SubmitArgs, TmuxArgs, TmuxReadArgs, TmuxVerb, TmuxWatchArgs};
pub use wakes::{
    WakesArgs, WakesCancelArgs, WakesListArgs, WakesPauseArgs, WakesResumeArgs, WakesRetryArgs, WakesVerb,
};
pub use web::{WebArgs, WebRevokeArgs, WebShareArgs, WebSharesArgs, WebVerb};

/// Runs commands as jobs that outlast the call, the terminal and a crash.
///
/// A job keeps every byte it prints, can be typed into, waited for and ended as a whole, and goes on when
/// the program that started it is gone.
#[derive(Debug, Parser)]
#[command(name = "outlast", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    /// Print machine-readable JSON.
    #[arg(long, global = true)]
    pub json: bool,
    /// The folder of all jobs [default: $OUTLAST_HOME, else the user's state folder].
    #[arg(long, global = true, value_name = "DIR", help_heading = "Global options")]
    pub home: Option<PathBuf>,
    /// Hide secrets, as agents get to see it; $OUTLAST_MASK=1 does the same, =0 shows them.
    #[arg(long, global = true, help_heading = "Global options")]
    pub mask: bool,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  outlast run 'make -j2 && make test'        in the foreground, like any command
  outlast run -d --name web npm run dev      run in the background
  outlast run --pattern 'ready in \\d+' npm run dev
                                             come back when it says so
  outlast jobs                               what runs, what ended and how
  outlast top                                all of it on one screen, with keys
  outlast show web                           all about one, and who ended it
  outlast logs -f web                        follow what it prints
  outlast send web 'rs'                      type a line into it
  outlast attach web                         its terminal, left with Ctrl-]
  outlast wait web --exit --deadline 10m     wait until it has ended
  outlast kill web                           end it and all that it started
  outlast rerun web                          the same again, under the same name

Exit codes: 0 done, 1 failed, 2 usage, 3 no such job, 4 the job runs on (not
finished in time, asks, was left), 5 denied.
A foreground run, and a wait for the end, exit with the job's own code, or 128 +
the signal that ended it.";

/// What can be asked for. The help of a verb is the doc comment of its arguments.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "a doc comment here would replace the help of the verb")]
pub enum Verb {
    Run(Box<RunArgs>),
    #[command(visible_aliases = ["ps", "ls"], alias = "list")]
    Jobs(JobsArgs),
    Top(TopArgs),
    Show(ShowArgs),
    Read(ReadArgs),
    Logs(LogsArgs),
    /// Follow what a job prints, as `logs -f` does.
    #[command(hide = true)]
    Tail(LogsArgs),
    Screen(ScreenArgs),
    Send(SendArgs),
    Secret(SecretArgs),
    Resize(ResizeArgs),
    #[command(visible_alias = "fg")]
    Attach(AttachArgs),
    Shell(ShellArgs),
    Replay(ReplayArgs),
    Diff(DiffArgs),
    Wait(WaitArgs),
    Events(EventsArgs),
    Watch(WatchArgs),
    Wakes(WakesArgs),
    Tmux(TmuxArgs),
    #[command(visible_alias = "stop")]
    Kill(KillArgs),
    Rerun(RerunArgs),
    Pin(PinArgs),
    Rm(RmArgs),
    Prune(PruneArgs),
    Host(HostArgs),
    Cp(CpArgs),
    Node(NodeArgs),
    Fleet(FleetArgs),
    Submit(Box<SubmitOrderArgs>),
    Order(OrderArgs),
    Telemetry(TelemetryArgs),
    Policy(PolicyArgs),
    Config(ConfigArgs),
    Web(Box<WebArgs>),
    Mcp(McpArgs),
    Acp(AcpArgs),
    Relay(RelayArgs),
    Install(InstallArgs),
    Uninstall(UninstallArgs),
    #[command(hide = true)]
    Hook(HookArgs),
    Doctor(DoctorArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}
