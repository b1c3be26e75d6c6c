//! The command line: clap types whose doc comments are the help.

mod acp;
mod conditions;
mod policy;
mod guard;
mod tell;

use std::path::PathBuf;
use std::time::Duration;

pub(crate) use acp::*;
use clap::{Args, Parser, Subcommand};
use conditions::Conditions;
pub(crate) use guard::*;
use outlast_job::Size;
use outlast_job::registry::sweep::parse_duration;
use outlast_job::settings::parse_bytes;
pub(crate) use policy::*;
pub(crate) use tell::*;

use crate::install::args::{InstallArgs, UninstallArgs};

/// Runs commands as jobs that outlast the call, the terminal and a crash.
///
/// A job keeps every byte it prints, can be typed into, waited for and ended as a whole, and goes on when
/// whoever started it is gone.
#[derive(Debug, Parser)]
#[command(name = "outlast", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// Print machine-readable JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// The folder of all jobs [default: $OUTLAST_HOME, else the user's state folder].
    #[arg(long, global = true, value_name = "DIR", help_heading = "Global options")]
    pub(crate) home: Option<PathBuf>,
    /// Hide secrets, as agents get to see it; $OUTLAST_MASK=1 does the same, =0 shows them.
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) mask: bool,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  outlast run 'make -j2 && make test'        run in the foreground; closing the terminal does not end it
  outlast run -d --name web npm run dev      run in the background
  outlast run --pattern 'ready in \\d+' npm run dev
                                             come back when it says so
  outlast jobs                               what runs, what ended and how
  outlast logs -f web                        follow what it prints
  outlast send web 'rs'                      type a line into it
  outlast attach web                         its terminal, in yours; Ctrl-] leaves it
  outlast wait web --exit --deadline 10m     wait until it has ended
  outlast kill web                           end it and all that it started

Exit codes: 0 done, 1 failed, 2 usage, 3 no such job, 4 not finished in time or for want of input, 5 denied.
A foreground run, and a wait for the end, exit with the job's own code, or 128 + the signal that ended it.";

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Run(Box<RunArgs>),
    Jobs(JobsArgs),
    Read(ReadArgs),
    Logs(LogsArgs),
    Screen(ScreenArgs),
    Send(SendArgs),
    Secret(SecretArgs),
    Resize(ResizeArgs),
    Attach(AttachArgs),
    Replay(ReplayArgs),
    Wait(WaitArgs),
    Events(EventsArgs),
    Watch(WatchArgs),
    Tmux(TmuxArgs),
    Kill(KillArgs),
    Prune(PruneArgs),
    Policy(PolicyArgs),
    Mcp(McpArgs),
    Acp(AcpArgs),
    Install(InstallArgs),
    Uninstall(UninstallArgs),
    Doctor(DoctorArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// Run a command as a job.
///
/// One argument is a line for the shell; more are a program and its arguments. In the foreground, output comes
/// live, keys go to the job, and the exit code is the job's own. Standard input that is no terminal is what the job
/// reads, to its end.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast run 'cargo build 2>&1 | tee build.log'
  outlast run -- grep -r 'two words' src
  outlast run -d --name db --cwd /srv postgres -D data
  outlast run --pattern 'listening on \\S+:(\\d+)' --deadline 20s node server.js
  outlast run --pipe 'make 2>errors'     no terminal: stdout and stderr apart
  outlast run 'sort | uniq -c' < words   it reads the file, byte for byte
  outlast run --sandbox --memory 2GiB 'npm test'")]
pub(crate) struct RunArgs {
    /// The command.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    /// Start it and come back at once.
    #[arg(short = 'd', long, conflicts_with_all = ["pattern", "quiet_for", "port", "input"])]
    pub(crate) background: bool,
    /// Come back when it waits for input; it goes on in the background.
    #[arg(long)]
    pub(crate) input: bool,
    /// Come back when it listens on a TCP port: this one, or any; it goes on in the background.
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "0", require_equals = true)]
    pub(crate) port: Option<u16>,
    /// Come back when this regular expression is found in what it prints; it goes on in the background.
    #[arg(long, value_name = "REGEX")]
    pub(crate) pattern: Vec<String>,
    /// Come back when it has printed nothing for so long; it goes on in the background.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) quiet_for: Option<Duration>,
    /// With --pattern, --port, --input or --quiet-for: come back after so long at the latest.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    pub(crate) deadline: Duration,
    /// End the job after so long.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// End the job when it has printed nothing for so long.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) inactivity_timeout: Option<Duration>,
    /// A name to call it by.
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// What it is for.
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// The folder to start it in.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Set an environment variable; without a value, remove it.
    #[arg(long = "env", short = 'e', value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// Run it on pipes instead of a terminal.
    #[arg(long, conflicts_with = "size")]
    pub(crate) pipe: bool,
    /// The size of its terminal [default: that of yours, else 120x40].
    #[arg(long, value_name = "COLSxROWS", value_parser = size)]
    pub(crate) size: Option<Size>,
    /// How much of its output is kept; past it, the middle goes [default: 1GiB].
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) log_cap: Option<u64>,
    /// What goes to the session's outbox: exit, input, port, lines, pattern=REGEX, quiet=30s, stable, or none [default:
    /// exit,input, and nothing in the foreground].
    #[arg(long, value_name = "WHAT")]
    pub(crate) notify: Vec<String>,
    /// Whom to wake for it: exec:COMMAND, tmux:PANE, codex, webhook:URL, file:PATH; may be given more than once.
    #[arg(long, value_name = "HOW")]
    pub(crate) wake: Vec<String>,
    #[command(flatten)]
    pub(crate) bounds: BoundsArgs,
    /// Give the job no input: whatever it reads ends at once.
    #[arg(short = 'n', long)]
    pub(crate) no_stdin: bool,
    /// In the foreground: say nothing of our own.
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,
}

/// List jobs: what runs, what ended and how.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outlast jobs\n  outlast jobs --all --json")]
pub(crate) struct JobsArgs {
    /// Those of all sessions, and all that are kept; otherwise this session's, and whatever runs.
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Only those that run.
    #[arg(short, long)]
    pub(crate) running: bool,
}

/// Read what a job printed, as a person would have read it.
///
/// Colours are gone and redrawn lines collapsed. Offsets count bytes of the log and never move: an answer says
/// where the next read begins.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast read web                    the whole, bounded: head and tail
  outlast read web --since 4096       what came after an offset
  outlast read web --tail 20
  outlast read web --grep 'error|warn'
  outlast read web --raw > web.log    the exact bytes")]
pub(crate) struct ReadArgs {
    /// Its handle or name.
    pub(crate) job: String,
    /// Begin at this offset.
    #[arg(long, value_name = "OFFSET")]
    pub(crate) since: Option<u64>,
    /// End at this offset.
    #[arg(long, value_name = "OFFSET")]
    pub(crate) until: Option<u64>,
    /// Only the first lines.
    #[arg(long, value_name = "LINES", conflicts_with = "tail")]
    pub(crate) head: Option<usize>,
    /// Only the last lines.
    #[arg(long, value_name = "LINES")]
    pub(crate) tail: Option<usize>,
    /// Only the lines in which this regular expression is found.
    #[arg(long, value_name = "REGEX", conflicts_with = "raw")]
    pub(crate) grep: Option<String>,
    /// The exact bytes.
    #[arg(long)]
    pub(crate) raw: bool,
    /// In pipe mode: what it wrote to stderr.
    #[arg(long)]
    pub(crate) stderr: bool,
    /// At most so much text; 0 for all of it [default: 16KiB on a terminal or as JSON, else all].
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) max: Option<u64>,
}

/// Show what a job printed, and follow it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  outlast logs web\n  outlast logs -f web\n  outlast logs -f --tail 0 web"
)]
pub(crate) struct LogsArgs {
    /// Its handle or name.
    pub(crate) job: String,
    /// Go on until the job has ended.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Begin with the last lines only.
    #[arg(long, value_name = "LINES")]
    pub(crate) tail: Option<usize>,
    /// The exact bytes.
    #[arg(long)]
    pub(crate) raw: bool,
}

/// Show what a job's terminal shows now.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outlast screen editor\n  outlast screen editor --scrollback 200 --json")]
pub(crate) struct ScreenArgs {
    /// Its handle or name.
    pub(crate) job: String,
    /// Add lines that have left the screen.
    #[arg(long, value_name = "LINES", default_value_t = 0)]
    pub(crate) scrollback: usize,
    /// Without colours and styles.
    #[arg(long)]
    pub(crate) plain: bool,
}

/// Type into a job.
///
/// The text is typed as it is, then Enter, then the keys; several lines one by one where the program reads
/// lines. What the program prints in answer is shown, until it asks for more, ends, or the time is up.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast send repl 'print(2 + 2)'
  outlast send repl --no-newline 'par' --key Tab
  outlast send server --key Ctrl-C
  outlast send counter --eof
  outlast send importer --stdin < data.csv")]
pub(crate) struct SendArgs {
    /// Its handle or name.
    pub(crate) job: String,
    /// The text.
    #[arg(allow_hyphen_values = true)]
    pub(crate) text: Option<String>,
    /// No Enter after the text.
    #[arg(long)]
    pub(crate) no_newline: bool,
    /// Several lines as one paste; otherwise as suits the program that reads.
    #[arg(long, conflicts_with_all = ["no_paste", "stdin"])]
    pub(crate) paste: bool,
    /// Several lines one by one, each when the program asks again.
    #[arg(long, conflicts_with = "stdin")]
    pub(crate) no_paste: bool,
    /// Press a key: Enter, Tab, Up, F5, Ctrl-C, Alt-x and so on; may be given more than once.
    #[arg(long = "key", short = 'k', value_name = "KEY")]
    pub(crate) keys: Vec<String>,
    /// Then end the input, as Ctrl-D does.
    #[arg(long)]
    pub(crate) eof: bool,
    /// Type what comes on standard input, of any size.
    #[arg(long, conflicts_with = "text")]
    pub(crate) stdin: bool,
    /// Come back at once; otherwise what it prints in answer is shown, until it asks again.
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Show the answer until this regular expression is found in it.
    #[arg(long, value_name = "REGEX")]
    pub(crate) pattern: Vec<String>,
    /// Show the answer for so long at the most [default: 3s, with --pattern 30s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) deadline: Option<Duration>,
    /// How long a program that does not read may hold it up.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    pub(crate) patience: Duration,
}

/// Give a job's terminal another size.
///
/// The program is told (SIGWINCH), and the screen is laid out anew. While people are attached to type, their
/// terminals come first: the job has the size that was asked for when they have left.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  outlast resize editor 80x24")]
pub(crate) struct ResizeArgs {
    /// Its handle or name.
    pub(crate) job: String,
    /// Columns and rows, for example 120x40.
    #[arg(value_name = "COLSxROWS", value_parser = size)]
    pub(crate) size: Size,
}

/// Sit down in front of a job: its terminal, in yours.
///
/// The screen is there at once, keys go to the job, Ctrl-] leaves it and sends nothing. While you type, agents
/// can't, unless you share. The job takes the size of the smallest terminal that is attached to type.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outlast attach web\n  outlast attach --read-only web")]
pub(crate) struct AttachArgs {
    /// Its handle or name.
    pub(crate) job: String,
    /// Only look.
    #[arg(short, long)]
    pub(crate) read_only: bool,
    /// Let others type at the same time.
    #[arg(long, conflicts_with = "read_only")]
    pub(crate) shared: bool,
}

/// Play a job again.
///
/// At its own speed in your terminal, as a recording for others, or its screen as it was at one moment.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast replay build --speed 4 --idle-limit 1s
  outlast replay build --at 12.5s          the screen as it was then
  outlast replay build --export cast > build.cast")]
pub(crate) struct ReplayArgs {
    /// Its handle or name.
    pub(crate) job: String,
    /// How many times as fast.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) speed: f64,
    /// Pauses are not longer than this.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) idle_limit: Option<Duration>,
    /// Print the screen as it was so long after the start.
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with_all = ["offset", "export"])]
    pub(crate) at: Option<Duration>,
    /// Print the screen as it was at this offset of the log.
    #[arg(long, conflicts_with = "export")]
    pub(crate) offset: Option<u64>,
    /// Print it as a recording.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) export: Option<ExportFormat>,
}

/// A format for recordings.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum ExportFormat {
    /// asciicast version 3, for asciinema and its player.
    Cast,
}

/// Wait until something holds; the first condition wins.
///
/// Without a condition: until the job has ended. A pattern that was already printed counts, unless --since says
/// where to begin.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast wait build
  outlast wait web --pattern 'ready in (\\d+)' --deadline 20s
  outlast wait a b c --exit               the first of three
  outlast wait import --quiet-for 5s --exit
  outlast wait installer --input          until it asks something
  outlast wait web --port 5173 --exit     until it listens, or failed to
  outlast wait tui --stable --gone 'Loading'
  outlast wait build && ./deploy          only if it ended well

Exit codes: the job's own when its end was waited for, 0 when another condition holds, 1 when the job
ended without it, 3 when there is no such job, 4 at the deadline.")]
pub(crate) struct WaitArgs {
    /// Handles or names.
    #[arg(required = true)]
    pub(crate) jobs: Vec<String>,
    #[command(flatten)]
    pub(crate) until: Conditions,
    /// It prints anything.
    #[arg(long)]
    pub(crate) output: bool,
    /// This regular expression is no longer on the screen; may be given more than once.
    #[arg(long, value_name = "REGEX")]
    pub(crate) gone: Vec<String>,
    /// Look only at what is printed after this offset; `now` for its end now.
    #[arg(long, value_name = "OFFSET|now")]
    pub(crate) since: Option<String>,
    /// Not longer than this; then the exit code is 4.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) deadline: Option<Duration>,
}

/// End a job and all that it started.
///
/// SIGTERM first, SIGKILL after the grace, to every process, also those that left its session. With --signal,
/// only that signal is sent.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  outlast kill web\n  outlast kill web --grace 5s\n  outlast kill web --signal HUP"
)]
pub(crate) struct KillArgs {
    /// Handles or names.
    #[arg(required = true)]
    pub(crate) jobs: Vec<String>,
    /// How long it may take to end by itself.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "200ms")]
    pub(crate) grace: Duration,
    /// Send this signal, and nothing else.
    #[arg(long, short, value_name = "NAME")]
    pub(crate) signal: Option<String>,
    /// Also the job that this very command runs in.
    #[arg(long)]
    pub(crate) force: bool,
}

/// Remove finished jobs that are past retention.
///
/// Without limits, what the settings say. Limits given here also take results that are young or that nobody has read.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  outlast prune --dry-run\n  outlast prune --age 1h\n  outlast prune --all"
)]
pub(crate) struct PruneArgs {
    /// Keep those that ended less than this ago.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) age: Option<Duration>,
    /// Keep at most so many.
    #[arg(long, value_name = "COUNT")]
    pub(crate) keep: Option<usize>,
    /// Keep at most so much.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) size: Option<u64>,
    /// Remove every finished job.
    #[arg(long, conflicts_with_all = ["age", "keep", "size"])]
    pub(crate) all: bool,
    /// Only say what would be removed.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Serve agents over MCP.
///
/// On standard input and output, or over HTTP on this machine. Jobs are kept by their keepers: a server can be
/// ended and started again at any time.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  outlast mcp\n  outlast mcp --profile claude\n  outlast mcp --http 127.0.0.1:8390"
)]
pub(crate) struct McpArgs {
    /// Serve streamable HTTP here instead; a bearer token is made and its file is named.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) http: Option<std::net::SocketAddr>,
    /// Which names the tools go by: plain, gemini, codex or claude.
    #[arg(long, default_value = "plain")]
    pub(crate) profile: String,
    /// Who owns what is started [default: told from what the client sends].
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// May agents end and type into jobs of their own: allow, ask or deny [default: what the policy says, else ask
    /// where the client can].
    #[arg(long, value_name = "DECISION")]
    pub(crate) own: Option<String>,
    /// No call blocks longer than this [default: 50s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) longest_call: Option<Duration>,
    /// Whoever starts this prompts the agent when something happened.
    #[arg(long, hide = true)]
    pub(crate) prompted: bool,
    /// Also offer what the public conformance suite expects of a server.
    #[arg(long, hide = true)]
    pub(crate) conformance_fixtures: bool,
}

/// Check that this machine can do what jobs need.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {}

/// Print completions for a shell.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  outlast completions bash > ~/.local/share/bash-completion/completions/outlast"
)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}

/// Write the man pages into a folder.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The folder.
    pub(crate) folder: PathBuf,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|failure| failure.to_string())
}

fn bytes(text: &str) -> Result<u64, String> {
    parse_bytes(text).map_err(|failure| failure.to_string())
}

fn size(text: &str) -> Result<Size, String> {
    let sides =
        text.split_once(['x', 'X']).and_then(|(cols, rows)| Some((cols.parse().ok()?, rows.parse().ok()?)));
    let (cols, rows) = sides.ok_or_else(|| format!("{text:?} is no size; write for example 120x40"))?;
    Size { cols, rows }.checked().map_err(|failure| failure.to_string())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::CommandFactory;
    use outlast_policy::{Decision, Policy, Tool};

    use super::Cli;

    /// The policy reads our own command line too: an option of `run` that it does not know would hide the command.
    #[test]
    fn the_policy_knows_which_options_of_run_have_a_value() {
        let rule = "[[rule]]\ndecision = \"deny\"\nprefix = [\"rm\", \"-rf\"]\n";
        let policy = Policy::parse(Path::new("policy.toml"), rule).unwrap();
        let mut cli = Cli::command();
        cli.build();
        let run = cli.find_subcommand("run").unwrap();
        let options = run.get_arguments().filter(|argument| !argument.is_positional());
        let mut tried = 0;
        for option in options {
            let value = option.get_action().takes_values() && !option.is_require_equals_set();
            let long = option.get_long().map(|long| format!("--{long}"));
            let short = option.get_short().map(|short| format!("-{short}"));
            for name in [long, short].into_iter().flatten() {
                let value = if value { " some" } else { "" };
                for dashes in ["", "-- "] {
                    let line = format!("outlast run {name}{value} {dashes}rm -rf x");
                    let verdict = policy.judge_line(Tool::Run, &line);
                    assert_eq!(verdict.decision, Decision::Deny, "{line}");
                    tried += 1;
                }
            }
        }
        assert!(tried > 40, "{tried}");
    }
}
