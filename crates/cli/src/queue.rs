//! Arguments of `outlast submit` and `outlast order`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::values::duration;

/// Order work from any machine of the fleet with a label.
///
/// The order waits in the broker until a host with that label has a free slot. It is carried out once, also when hosts, the broker or
/// this program die meanwhile. Prints the name of each order.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast submit --on build 'make test'
  outlast submit --on build --priority high --retry always ./idempotent.sh
  outlast submit --on build --file batch.jsonl
      one order a line: {\"command\": \"make a\", \"name\": \"a\"}
  outlast submit --on build --after 3f2a90b1c4d5e6f70812 './deploy.sh'
  outlast submit --on build --schedule '@every 1h' ./clean-up.sh
  outlast submit --on build --wait 'make test'        and exit with its code")]
pub struct SubmitOrderArgs {
    /// The command; not with --file.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND",
        required_unless_present = "file"
    )]
    pub command: Vec<String>,
    /// The label that a host must have.
    #[arg(long, value_name = "LABEL")]
    pub on: String,
    /// Orders from a file, a JSON object a line; `-` for standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub file: Option<PathBuf>,
    /// Which come first.
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = PriorityArg::Normal)]
    pub priority: PriorityArg,
    /// What to do when nobody can say whether it was carried out: leave that to a person, order it again if it certainly was not
    /// started, or order it again in any case.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = RetryArg::Never)]
    pub retry: RetryArg,
    /// Only after this order has ended well; may be given more than once.
    #[arg(long, value_name = "ORDER")]
    pub after: Vec<String>,
    /// Again and again, when the broker says so: `@every 1h`, or a cron line with seconds. Needs nats-server 2.14.
    #[arg(long, value_name = "WHEN", conflicts_with_all = ["wait", "after"])]
    pub schedule: Option<String>,
    /// A name for the job.
    #[arg(long)]
    pub name: Option<String>,
    /// The folder to start it in, on the host.
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Set an environment variable.
    #[arg(long = "env", short = 'e', value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// End the job after this long.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Wait until all have ended. The exit code is that of the first that did not end well.
    #[arg(long)]
    pub wait: bool,
}

/// Which orders come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "a doc comment would be shown beside each name in the help")]
pub enum PriorityArg {
    High,
    Normal,
    Low,
}

/// What to do with an order in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "a doc comment would be shown beside each name in the help")]
pub enum RetryArg {
    Never,
    IfNotStarted,
    Always,
}

/// See what became of orders, take them back, and settle those in doubt.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast order list
  outlast order show 3f2a90b1c4d5e6f70812
  outlast order cancel 3f2a90b1c4d5e6f70812
  outlast order results --follow --json
  outlast order resolve 3f2a90b1c4d5e6f70812 --again")]
pub struct OrderArgs {
    /// What to do.
    #[command(subcommand)]
    pub verb: OrderVerb,
}

/// What can be done with orders.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "a doc comment here would replace the help of the verb")]
pub enum OrderVerb {
    #[command(visible_alias = "ls")]
    List(OrderListArgs),
    Show(OrderShowArgs),
    Cancel(OrderCancelArgs),
    Resolve(OrderResolveArgs),
    Results(OrderResultsArgs),
}

/// List orders that hosts have taken, and how many wait.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outlast order list\n  outlast order list --open --json")]
pub struct OrderListArgs {
    /// Only those that are not over.
    #[arg(long)]
    pub open: bool,
}

/// Show what is known of an order.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  outlast order show 3f2a90b1c4d5e6f70812")]
pub struct OrderShowArgs {
    /// The order.
    pub order: String,
}

/// Take orders back. One that runs is ended.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  outlast order cancel 3f2a90b1c4d5e6f70812")]
pub struct OrderCancelArgs {
    /// The orders.
    #[arg(required = true)]
    pub orders: Vec<String>,
}

/// Settle an order whose host does not come back, or of which nobody knows whether it was carried out.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast order resolve 3f2a90b1c4d5e6f70812 --give-up
  outlast order resolve --of gpu1 --again     all that gpu1 has and did not end")]
pub struct OrderResolveArgs {
    /// The order.
    #[arg(required_unless_present = "of")]
    pub order: Option<String>,
    /// All open orders of a host, which was revoked or does not come back.
    #[arg(long, value_name = "HOST", conflicts_with = "order")]
    pub of: Option<String>,
    /// Order it again, under a new name: it may run twice.
    #[arg(long, conflicts_with = "give_up", required_unless_present = "give_up")]
    pub again: bool,
    /// Leave it as it is.
    #[arg(long)]
    pub give_up: bool,
}

/// Read how orders ended, from the oldest that the broker has.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outlast order results --json\n  outlast order results --follow")]
pub struct OrderResultsArgs {
    /// Go on as they come.
    #[arg(short, long)]
    pub follow: bool,
}
