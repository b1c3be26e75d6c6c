//! Arguments of `events` and `watch`.

use std::time::Duration;

use clap::Args;

use crate::conditions::Conditions;
use crate::values::duration;

/// Read the events of jobs: the session's outbox.
///
/// Every event has a number. It stays until it is acknowledged. Without --since and --reader, everything that
/// is not acknowledged comes; a reader with a name goes on where it was, also after a restart: whenever it is
/// killed, each event goes into its pipe exactly once. With --hold the reader of the pipe says how
/// far it has come.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast events                              what is not acknowledged yet
  outlast events --follow --reader agent      each once, as they come
  outlast events --follow --reader agent --hold
  outlast events --reader agent --ack 15      the agent has dealt with
                                              everything up to 15
  outlast events --since 12 --json
  outlast events --fleet --follow --reader bot
  outlast events --on gpu1 --follow           what jobs on gpu1 have to tell
  outlast events --ack 15                     everything up to 15 is dealt with")]
pub struct EventsArgs {
    /// Only those after this number.
    #[arg(long, value_name = "NUMBER", conflicts_with = "reader")]
    pub since: Option<u64>,
    /// Go on as they come.
    #[arg(short, long)]
    pub follow: bool,
    /// Acknowledge everything up to this number; with --reader, for that reader.
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["since", "follow", "ack_all"])]
    pub ack: Option<u64>,
    /// Acknowledge everything.
    #[arg(long, conflicts_with_all = ["since", "follow"])]
    pub ack_all: bool,
    /// Read under a name: how far it has come is kept.
    #[arg(long, value_name = "NAME")]
    pub reader: Option<String>,
    /// With --reader: do not move on by oneself, but only to what --ack says for that reader.
    #[arg(long, requires = "reader")]
    pub hold: bool,
    /// The outbox of another session than this one.
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub session: Option<String>,
    /// The outbox on another machine: what jobs of this session there have to tell.
    #[arg(long, value_name = "HOST", conflicts_with_all = ["all", "hold"])]
    pub on: Option<String>,
    /// Those of all sessions.
    #[arg(short, long, conflicts_with_all = ["ack", "ack_all", "reader", "since"])]
    pub all: bool,
    /// Those of all hosts of the fleet, each once for a reader with a name.
    #[arg(long, conflicts_with_all = ["ack", "ack_all", "all", "since", "hold", "on"])]
    pub fleet: bool,
    /// With --follow: not longer than this; then the exit code is 4.
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "follow")]
    pub deadline: Option<Duration>,
}

/// Choose which events a job reports from now on.
///
/// A watch lives in the job's keeper and needs no client; it looks at what is printed from now on. It tells
/// once, or with --each every time; a flood becomes one event with a count.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast watch web --pattern 'ERROR' --each
  outlast watch build --stable --quiet-for 30s
  outlast watch web --list
  outlast watch web --remove w1")]
pub struct WatchArgs {
    /// Its handle or name.
    pub job: String,
    /// What to look for.
    #[command(flatten)]
    pub on: Conditions,
    /// Every time, instead of once.
    #[arg(long)]
    pub each: bool,
    /// What to call it; an older one of that name is replaced.
    #[arg(long, value_name = "NAME")]
    pub id: Option<String>,
    /// Only show the watches that are set.
    #[arg(short, long)]
    pub list: bool,
    /// Remove a watch.
    #[arg(long, value_name = "NAME")]
    pub remove: Option<String>,
}
