//! Arguments of the verbs that look: `jobs`, `top`, `read`, `logs`, `screen`, `replay`, `diff`, `wait`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::conditions::Conditions;
use crate::values::{bytes, duration};

/// List jobs: what runs, what ended and how.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast jobs
  outlast jobs -a --status failed -n 20
  outlast jobs --name 'web*' --cwd .
  outlast jobs --on gpu1
  outlast jobs --fleet --status asking
  outlast jobs --watch
  outlast kill $(outlast jobs -q --running)
  outlast jobs --all --json")]
pub struct JobsArgs {
    /// Those of all sessions, and all that are kept; otherwise this session's, and all that run.
    #[arg(short, long)]
    pub all: bool,
    /// Only those that run.
    #[arg(short, long)]
    pub running: bool,
    /// Only those of this name; * stands for any letters.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Only those that were started in this folder or below it.
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Only those in these states, separated by commas.
    #[arg(long, value_name = "STATES", value_delimiter = ',', value_enum)]
    pub status: Vec<StatusFilter>,
    /// Only those of this session.
    #[arg(long)]
    pub session: Option<String>,
    /// Only those of this host; `here` for this machine. Otherwise all hosts that were added are asked too.
    #[arg(long, value_name = "HOST")]
    pub on: Option<String>,
    /// Those of all hosts of the fleet: how many there are, and the first hundred by what they need.
    #[arg(long, conflicts_with_all = ["watch", "session", "cwd"])]
    pub fleet: bool,
    /// Only the newest; with --fleet, the first.
    #[arg(short = 'n', long = "limit", value_name = "COUNT")]
    pub limit: Option<usize>,
    /// With --fleet: without the first so many.
    #[arg(long, value_name = "COUNT", requires = "fleet")]
    pub skip: Option<usize>,
    /// Only their handles.
    #[arg(short, long)]
    pub quiet: bool,
    /// Stay, and show each change as it happens.
    #[arg(short, long)]
    pub watch: bool,
}

/// See all jobs on one screen, and act on them.
///
/// What needs you comes first: questions, then failures. The live screen of the chosen job is beside the list. `?` shows
/// the keys, and the bottom line the command that does the same. Leaving it ends no job. `outlast` alone does the same,
/// at a terminal, when there are jobs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast top
  outlast top --running
  outlast top --session claude-1f3a
  outlast top --fleet")]
pub struct TopArgs {
    /// With the first hundred jobs of the fleet, by what they need.
    #[arg(long)]
    pub fleet: bool,
    /// Only those that run.
    #[arg(short, long)]
    pub running: bool,
    /// Only those of this session.
    #[arg(long)]
    pub session: Option<String>,
}

/// A state to filter by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[expect(missing_docs, reason = "a doc comment would be shown beside each name in the help")]
pub enum StatusFilter {
    Running,
    Queued,
    Asking,
    Stopped,
    Completed,
    Failed,
    Killed,
    Lost,
}

/// Read what a job printed, as a person would have read it.
///
/// Colours are gone and redrawn lines collapsed. Offsets count bytes of the log and never move: an answer
/// says where the next read begins.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast read web                    the whole, bounded: head and tail
  outlast read web --since 4096       what came after an offset
  outlast read web --tail 20
  outlast read web --grep 'error|warn'
  outlast read web --raw > web.log    the exact bytes")]
pub struct ReadArgs {
    /// Its handle or name [default: the last job of this session].
    pub job: Option<String>,
    /// Only what this step of a shell printed.
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["since", "until"])]
    pub step: Option<u64>,
    /// Begin at this offset.
    #[arg(long, value_name = "OFFSET")]
    pub since: Option<u64>,
    /// End at this offset.
    #[arg(long, value_name = "OFFSET")]
    pub until: Option<u64>,
    /// Only the first lines.
    #[arg(long, value_name = "LINES", conflicts_with = "tail")]
    pub head: Option<usize>,
    /// Only the last lines.
    #[arg(long, value_name = "LINES")]
    pub tail: Option<usize>,
    /// Only the lines in which this regular expression is found.
    #[arg(long, value_name = "REGEX", conflicts_with = "raw")]
    pub grep: Option<String>,
    /// The exact bytes.
    #[arg(long)]
    pub raw: bool,
    /// In pipe mode: what it wrote to stderr.
    #[arg(long)]
    pub stderr: bool,
    /// At most this much text; 0 for all of it [default: 16KiB on a terminal or as JSON, else all].
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub max: Option<u64>,
}

/// Show what a job printed, and follow it.
///
/// `outlast tail JOB` is short for `outlast logs -f JOB`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast logs                the last job of this session
  outlast logs -f web
  outlast logs -f -n 20 web api worker
                              several at once, each line with its job's name
  outlast logs -t --since 10m web")]
pub struct LogsArgs {
    /// Handles or names [default: the last job of this session].
    pub jobs: Vec<String>,
    /// Go on until the jobs have ended.
    #[arg(short, long)]
    pub follow: bool,
    /// Begin with the last lines only.
    #[arg(short = 'n', long, value_name = "LINES")]
    pub tail: Option<usize>,
    /// Begin with what was printed this long ago.
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "tail")]
    pub since: Option<Duration>,
    /// Each line with the time at which it was printed.
    #[arg(short = 't', long)]
    pub timestamps: bool,
    /// The exact bytes, of one job.
    #[arg(long, conflicts_with = "timestamps")]
    pub raw: bool,
}

/// Show what a job's terminal shows now.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast screen editor
  outlast screen editor --scrollback 200 --json
  outlast screen editor --svg > editor.svg")]
pub struct ScreenArgs {
    /// Its handle or name [default: the last job of this session].
    pub job: Option<String>,
    /// Add lines that have left the screen.
    #[arg(long, value_name = "LINES", default_value_t = 0)]
    pub scrollback: usize,
    /// Without colours and styles.
    #[arg(long)]
    pub plain: bool,
    /// As a picture, with colours and cursor.
    #[arg(long, conflicts_with_all = ["plain", "scrollback"])]
    pub svg: bool,
}

/// Compare two runs, or two moments of one.
///
/// What two jobs printed, line by line; with --screen or --at, what their terminals showed. One job alone is compared with the last
/// run of the same command in the same folder before it. Exits with 0 if both are the same, with 1 if not, and with 2 or more
/// if they could not be compared.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast diff test                          with the run before it
  outlast diff 3 7 --ignore-numbers          times and counts may differ
  outlast diff 3 7 --screen                  what their terminals show, or
                                             showed last
  outlast diff web --at 10s --at 2m          two moments of one job
  outlast diff web --at 10s                  then and now")]
pub struct DiffArgs {
    /// The first job: its handle or name [default: the last job of this session].
    pub first: Option<String>,
    /// The second job.
    pub second: Option<String>,
    /// The screen as it was this long after the start; given twice, one for each side.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub at: Vec<Duration>,
    /// Compare screens, not what was printed.
    #[arg(long)]
    pub screen: bool,
    /// Lines that differ only in digits are the same.
    #[arg(long)]
    pub ignore_numbers: bool,
    /// How many lines that are the same are shown around a difference.
    #[arg(short = 'U', long, value_name = "LINES", default_value_t = 3)]
    pub context: usize,
}

/// Play a job again.
///
/// At its own speed in your terminal, as a recording for others, or its screen as it was at one moment. While it
/// plays: space holds it, the arrows go 5 seconds back and forth, q ends it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast replay build --speed 4 --idle-limit 1s
  outlast replay build --at 12.5s          the screen as it was then
  outlast replay build --export cast > build.cast
  outlast replay build --export svg --idle-limit 1s > build.svg
                                           a picture that plays, for a README
  outlast replay build --export svg --at 12.5s > build.svg
                                           a picture of one moment")]
pub struct ReplayArgs {
    /// Its handle or name [default: the last job of this session].
    pub job: Option<String>,
    /// How many times as fast.
    #[arg(long, default_value_t = 1.0)]
    pub speed: f64,
    /// Pauses are not longer than this.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub idle_limit: Option<Duration>,
    /// Print the screen as it was this long after the start.
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "offset")]
    pub at: Option<Duration>,
    /// Print the screen as it was at this offset of the log.
    #[arg(long)]
    pub offset: Option<u64>,
    /// Print the screen as this step of a shell left it.
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["at", "offset"])]
    pub step: Option<u64>,
    /// Print it as a recording.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub export: Option<ExportFormat>,
}

/// A format for recordings.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum ExportFormat {
    /// asciicast version 3, for asciinema and its player.
    #[value(alias = "cast3")]
    Cast,
    /// asciicast version 2, for asciinema before 3.0.
    Cast2,
    /// A picture that plays by itself; with --at or --offset, of that moment.
    Svg,
}

/// Wait until a condition holds; the first one wins.
///
/// Without a condition: until the job has ended. A pattern that was already printed counts, unless --since
/// says where to begin.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast wait build
  outlast wait web --pattern 'ready in (\\d+)' --deadline 20s
  outlast wait a b c --exit               the first of three
  outlast wait import --quiet-for 5s --exit
  outlast wait installer --awaiting-input until it asks something
  outlast wait web --port 5173 --exit     until it listens, or failed to
  outlast wait tui --stable --gone 'Loading'
  outlast wait build && ./deploy          only if it ended well

Exit codes: the job's own when its end was waited for, 0 when another condition
holds, 1 when the job ended without it, 3 when there is no such job, 4 at the
deadline.")]
pub struct WaitArgs {
    /// Handles or names [default: the last job of this session].
    pub jobs: Vec<String>,
    /// What to wait for.
    #[command(flatten)]
    pub until: Conditions,
    /// Look only at what is printed after this offset; `now` for its end now.
    #[arg(long, value_name = "OFFSET|now")]
    pub since: Option<String>,
    /// Not longer than this; then the exit code is 4.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub deadline: Option<Duration>,
}
