//! What each verb of the command line does, for the policy.

mod fleet;

use std::path::Path;

use outlast_cli::{
    AcpAgentArgs, AcpArgs, AcpVerb, AttachArgs, CompletionsArgs, ConfigArgs, ConfigGetArgs, ConfigListArgs,
    ConfigPathArgs, ConfigSetArgs, ConfigUnsetArgs, ConfigVerb, CpArgs, DiffArgs, DoctorArgs, EventsArgs,
    HookArgs, HostAddArgs, HostArgs, HostListArgs, HostRemoveArgs, HostTestArgs, HostVerb, InstallArgs,
    JobsArgs, KillArgs, LogsArgs, ManArgs, McpArgs, PinArgs, PolicyAnswerArgs, PolicyArgs, PolicyCheckArgs,
    PolicyInitArgs, PolicyLogArgs, PolicyPendingArgs, PolicyVerb, PruneArgs, ReadArgs, RelayArgs, ReplayArgs,
    RerunArgs, ResizeArgs, RmArgs, RunArgs, ScreenArgs, SecretArgs, SecretForgetArgs, SecretListArgs,
    SecretVerb, SendArgs, ShellArgs, ShowArgs, SidecarArgs, SubmitArgs, TapArgs, TmuxArgs, TmuxReadArgs,
    TmuxVerb, TmuxWatchArgs, TopArgs, UninstallArgs, Verb, WaitArgs, WakesArgs, WakesCancelArgs,
    WakesListArgs, WakesPauseArgs, WakesResumeArgs, WakesRetryArgs, WakesVerb, WatchArgs, WebArgs,
    WebRevokeArgs, WebShareArgs, WebSharesArgs, WebVerb,
};

use super::Words;
use crate::decision::Tool;
use crate::reading::StdinSource;
use crate::typed;
use crate::unwrap::{Inner, MADE, line_of};
use crate::word::{Word, known_text};
use outlast_job::Run;
use outlast_protocol::wake::WakeEffect;
use outlast_protocol::with_interpreter;

const ANSWERS: &str = "it answers what only a person may answer";
const FED: &str = "what is fed to it is typed";
const SERVES: &str = "it takes orders that are not seen here";
const SHOWS: &str = "it shows a job to others";
const AGAIN: &str = "it runs the command of an earlier job";
const ELSEWHERE: &str = "it acts on another machine";
const OWN_SETTINGS: &str = "it changes the user's settings";
const SETTINGS: &str = "it changes the settings of an agent";

/// What a verb does. The options that are named and not looked at do not change that.
pub(super) fn of(verb: Verb, words: Words<'_>) -> Vec<Inner> {
    match verb {
        Verb::Run(args) => run(*args, words),
        Verb::Jobs(args) => jobs(&args),
        // Its keys end jobs, type into them and start them again.
        Verb::Top(TopArgs { fleet: _, running: _, session: _ }) => serves(),
        Verb::Show(ShowArgs { job: _, name: _ }) => looks(Tool::Jobs),
        Verb::Read(args) => read(&args),
        Verb::Logs(LogsArgs { jobs: _, follow: _, tail: _, since: _, timestamps: _, raw: _ })
        | Verb::Tail(LogsArgs { jobs: _, follow: _, tail: _, since: _, timestamps: _, raw: _ }) => {
            looks(Tool::Read)
        }
        Verb::Screen(ScreenArgs { job: _, scrollback: _, plain: _, svg: _ }) => looks(Tool::Screen),
        Verb::Replay(ReplayArgs {
            job: _,
            speed: _,
            idle_limit: _,
            at: _,
            offset: _,
            step: _,
            export: _,
        }) => looks(Tool::Read),
        Verb::Diff(DiffArgs { first: _, second: _, at: _, screen: _, ignore_numbers: _, context: _ }) => {
            looks(Tool::Read)
        }
        // Conditions are only looked at.
        Verb::Wait(WaitArgs { jobs: _, until: _, since: _, deadline: _ }) => looks(Tool::Wait),
        Verb::Send(args) => send(args, words),
        Verb::Secret(args) => secret(&args),
        Verb::Attach(AttachArgs { job: _, read_only, shared: _, detach_key: _ }) => {
            if read_only {
                looks(Tool::Screen)
            } else {
                acts(Tool::Send)
            }
        }
        // A person would type into it what nobody has judged.
        Verb::Shell(ShellArgs { name: _, with: _, rc: _ }) => serves(),
        Verb::Resize(ResizeArgs { job: _, size: _ }) => acts(Tool::Resize),
        Verb::Events(args) => events(&args),
        Verb::Watch(args) => watch(&args, words),
        Verb::Wakes(WakesArgs { verb }) => wakes(&verb),
        Verb::Tmux(TmuxArgs { socket: _, verb }) => tmux(verb, words),
        Verb::Kill(KillArgs { jobs: _, all: _, grace: _, step: _, signal: _, force: _ }) => acts(Tool::Kill),
        Verb::Rerun(RerunArgs { job: _, background: _, env: _, quiet: _ }) => {
            vec![Inner::Tool(Tool::Run), Inner::Tool(Tool::Kill), Inner::Opaque(AGAIN)]
        }
        // It changes nothing but how long the job is kept.
        Verb::Pin(PinArgs { jobs: _, remove }) => {
            if remove {
                acts(Tool::Prune)
            } else {
                looks(Tool::Jobs)
            }
        }
        Verb::Rm(RmArgs { jobs: _, force }) => {
            let mut inner = acts(Tool::Prune);
            inner.extend(force.then_some(Inner::Tool(Tool::Kill)));
            inner
        }
        Verb::Prune(PruneArgs { age: _, keep: _, size: _, all: _, unread: _, dry_run }) => {
            if dry_run {
                looks(Tool::Jobs)
            } else {
                acts(Tool::Prune)
            }
        }
        Verb::Host(HostArgs { verb }) => host(verb),
        Verb::Cp(CpArgs { source: _, target, stderr: _ }) => {
            vec![Inner::Look(Tool::Read), Inner::Write(Word::plain(target)), Inner::Opaque(ELSEWHERE)]
        }
        Verb::Node(args) => fleet::node(&args),
        Verb::Fleet(args) => fleet::fleet(&args),
        Verb::Submit(args) => fleet::submit(&args, words),
        Verb::Order(args) => fleet::order(&args),
        Verb::Telemetry(args) => fleet::telemetry(&args),
        Verb::Policy(PolicyArgs { verb }) => policy(&verb),
        Verb::Web(args) => web(&args),
        Verb::Config(ConfigArgs { verb }) => config(verb.as_ref()),
        Verb::Mcp(args) => mcp(&args),
        Verb::Acp(AcpArgs { verb }) => acp(verb, words),
        Verb::Relay(RelayArgs { hosts: _ }) => serves(),
        Verb::Install(args) => install(&args),
        Verb::Uninstall(UninstallArgs { agents: _, target }) => {
            if target.dry_run {
                Vec::new()
            } else {
                vec![Inner::Opaque(SETTINGS)]
            }
        }
        Verb::Hook(HookArgs { client: _, state: _, wake: _ }) => acts(Tool::Events),
        Verb::Doctor(DoctorArgs {}) => Vec::new(),
        Verb::Completions(CompletionsArgs { shell: _ }) => Vec::new(),
        Verb::Man(ManArgs { folder }) => vec![Inner::Write(path(&folder))],
    }
}

fn policy(verb: &PolicyVerb) -> Vec<Inner> {
    match verb {
        PolicyVerb::Check(PolicyCheckArgs { command: _, explain: _, tool: _, cwd: _ })
        | PolicyVerb::Init(PolicyInitArgs { dry_run: true }) => Vec::new(),
        PolicyVerb::Pending(PolicyPendingArgs {}) | PolicyVerb::Log(PolicyLogArgs { lines: _ }) => {
            looks(Tool::Jobs)
        }
        PolicyVerb::Answer(PolicyAnswerArgs { job: _, question: _, answer: _ }) => {
            vec![Inner::Opaque(ANSWERS)]
        }
        PolicyVerb::Init(PolicyInitArgs { dry_run: false }) => vec![Inner::Opaque(SETTINGS)],
    }
}

/// It shows settings, or changes them: also what agents' jobs may do.
fn config(verb: Option<&ConfigVerb>) -> Vec<Inner> {
    match verb {
        None
        | Some(
            ConfigVerb::List(ConfigListArgs {})
            | ConfigVerb::Get(ConfigGetArgs { key: _ })
            | ConfigVerb::Path(ConfigPathArgs {}),
        ) => Vec::new(),
        Some(
            ConfigVerb::Set(ConfigSetArgs { key: _, value: _ })
            | ConfigVerb::Unset(ConfigUnsetArgs { key: _ }),
        ) => vec![Inner::Opaque(OWN_SETTINGS)],
    }
}

fn looks(tool: Tool) -> Vec<Inner> {
    vec![Inner::Look(tool)]
}

fn acts(tool: Tool) -> Vec<Inner> {
    vec![Inner::Tool(tool)]
}

fn path(path: &Path) -> Word {
    Word::plain(path.to_string_lossy())
}

/// The command at the end of the words.
fn command(found: &[String], words: Words<'_>) -> Vec<Inner> {
    match words.at_end(found) {
        None => vec![Inner::Mention(known_text(words.all)), Inner::Opaque(MADE)],
        // One argument is a line for the shell.
        Some(one) if one.len() == 1 => line_of(&one),
        Some(command) => vec![Inner::Words(command)],
    }
}

/// It runs its command: in that folder, with those variables, and with whatever is run when something
/// happens.
fn run(args: RunArgs, words: Words<'_>) -> Vec<Inner> {
    let RunArgs {
        command,
        cwd,
        env,
        wake,
        on,
        background: _,
        // Conditions are only looked at.
        until: _,
        deadline: _,
        timeout: _,
        inactivity_timeout: _,
        name: _,
        description: _,
        pipe: _,
        size: _,
        log_cap: _,
        notify: _,
        // Walls around a command do not make another of it.
        bounds: _,
        no_stdin: _,
        tty: _,
        quiet: _,
        // A command is the same command in a shell that remembers.
        shell: _,
        rc: _,
        if_idle: _,
        slot: _,
        if_free: _,
        after: _,
        after_any: _,
        with,
        detach_key: _,
    } = args;
    if words.at_end(&command).is_none() {
        return self::command(&command, words);
    }
    let mut inner: Vec<Inner> = cwd.filter(|_| on.is_none()).map(Inner::Folder).into_iter().collect();
    inner.extend(self::command(&command, words));
    inner.extend(with.into_iter().flat_map(|program| read_by(&program, &command.join(" "))));
    inner.extend(on.map(|_| Inner::Opaque(ELSEWHERE)));
    let set = env.iter().filter_map(|setting| setting.split_once('='));
    inner.extend(set.map(|(name, value)| Inner::Set(name.to_owned(), Word::plain(value))));
    // One of an unknown kind is refused before anything is run.
    let effects = wake.iter().filter_map(|wake| WakeEffect::of(wake).ok()?.as_command());
    inner.extend(effects.map(|run| match run {
        Run::Shell(line) => Inner::Line(line),
        Run::Program(_) => Inner::Line(run.display()),
    }));
    inner
}

/// A line that another program than bash reads: judged as a call of that program, too.
fn read_by(program: &str, line: &str) -> Vec<Inner> {
    match with_interpreter(program, line) {
        Ok(Run::Program(argv)) => vec![Inner::Words(argv.into_iter().map(Word::plain).collect())],
        Ok(Run::Shell(line)) => vec![Inner::Line(line)],
        // It is refused before anything is run.
        Err(_) => Vec::new(),
    }
}

/// To name a machine is to let jobs run there; what reaches it is run here.
fn host(verb: HostVerb) -> Vec<Inner> {
    match verb {
        HostVerb::Add(HostAddArgs {
            name: _,
            reach,
            labels: _,
            slots: _,
            program: _,
            bootstrap: _,
            binary: _,
        }) => {
            let line = reach.strip_prefix("command:").map(|line| Inner::Line(line.to_owned()));
            line.into_iter().chain([Inner::Opaque(ELSEWHERE)]).collect()
        }
        HostVerb::List(HostListArgs {}) => looks(Tool::Jobs),
        HostVerb::Test(HostTestArgs { name: _ }) => vec![Inner::Opaque(ELSEWHERE)],
        HostVerb::Remove(HostRemoveArgs { name: _ }) => vec![Inner::Opaque(ELSEWHERE)],
    }
}

fn jobs(args: &JobsArgs) -> Vec<Inner> {
    let JobsArgs {
        all: _,
        running: _,
        name: _,
        cwd: _,
        status: _,
        session: _,
        on: _,
        fleet: _,
        limit: _,
        skip: _,
        quiet: _,
        watch: _,
    } = args;
    looks(Tool::Jobs)
}

fn read(args: &ReadArgs) -> Vec<Inner> {
    let ReadArgs {
        job: _,
        step: _,
        since: _,
        until: _,
        head: _,
        tail: _,
        grep: _,
        raw: _,
        stderr: _,
        max: _,
    } = args;
    looks(Tool::Read)
}

/// It types: text, then keys, or what comes on its standard input.
fn send(args: SendArgs, words: Words<'_>) -> Vec<Inner> {
    let SendArgs {
        text,
        keys,
        stdin,
        job: _,
        no_newline: _,
        paste: _,
        no_paste: _,
        eof: _,
        no_wait: _,
        pattern: _,
        deadline: _,
        patience: _,
    } = args;
    let mut inner = acts(Tool::Send);
    if !words.are_literal() {
        inner.extend([Inner::Mention(known_text(words.all)), Inner::Opaque(MADE)]);
    }
    let (line, unseen) = typed::line_of(&text.unwrap_or_default(), &keys);
    if !line.trim().is_empty() {
        inner.push(Inner::Line(line));
    }
    if unseen {
        inner.push(Inner::Opaque("its keys make a line that can't be seen from here"));
    }
    if stdin {
        inner.extend(fed_text(words.fed));
    }
    inner
}

/// What is typed because it is fed.
fn fed_text(fed: &StdinSource) -> Option<Inner> {
    match fed {
        StdinSource::Text(text) => Some(Inner::Line(text.clone())),
        StdinSource::Unknown => Some(Inner::Opaque(FED)),
        StdinSource::Outside => None,
    }
}

/// It types, but only into a prompt that hides it: with `--force` anywhere.
fn secret(args: &SecretArgs) -> Vec<Inner> {
    let SecretArgs { verb, job: _, stdin, force } = args;
    match verb {
        Some(SecretVerb::List(SecretListArgs {})) => return looks(Tool::Jobs),
        // What is forgotten is shown: a person decides that.
        Some(SecretVerb::Forget(SecretForgetArgs { ids: _, all: _ })) => {
            return vec![Inner::Opaque("it lets jobs show what is hidden")];
        }
        None => {}
    }
    let mut inner = acts(Tool::Send);
    if *stdin && *force {
        inner.push(Inner::Opaque(FED));
    }
    inner
}

/// It looks, and notes how far a reader of this session has come; what another session was told is not ours
/// to note.
fn wakes(verb: &WakesVerb) -> Vec<Inner> {
    match verb {
        WakesVerb::List(WakesListArgs {}) => looks(Tool::Events),
        // Deliveries may be anybody's.
        WakesVerb::Retry(WakesRetryArgs { numbers: _ })
        | WakesVerb::Cancel(WakesCancelArgs { numbers: _ })
        | WakesVerb::Pause(WakesPauseArgs { pane: _, session: _, socket: _, time: _ })
        | WakesVerb::Resume(WakesResumeArgs { pane: _, session: _, socket: _, all: _ }) => acts(Tool::Events),
    }
}

fn events(args: &EventsArgs) -> Vec<Inner> {
    let EventsArgs {
        since: _,
        follow: _,
        ack,
        ack_all,
        reader,
        hold: _,
        session,
        on: _,
        all: _,
        fleet: _,
        deadline: _,
    } = args;
    let moves = ack.is_some() || *ack_all || reader.is_some();
    if moves && session.is_some() { acts(Tool::Events) } else { looks(Tool::Events) }
}

fn watch(args: &WatchArgs, words: Words<'_>) -> Vec<Inner> {
    let WatchArgs { job: _, on: _, each: _, id: _, list, remove } = args;
    if *list && remove.is_none() && words.are_literal() { looks(Tool::Watch) } else { acts(Tool::Watch) }
}

fn tmux(verb: TmuxVerb, words: Words<'_>) -> Vec<Inner> {
    match verb {
        TmuxVerb::Submit(args) => submit(*args, words),
        // What is typed into its job goes to the pane.
        TmuxVerb::Watch(TmuxWatchArgs { pane: _ }) | TmuxVerb::Mirror(TmuxWatchArgs { pane: _ }) => {
            acts(Tool::Send)
        }
        TmuxVerb::Read(TmuxReadArgs { pane: _, scrollback: _ }) => looks(Tool::Screen),
        TmuxVerb::Work { number: _ } => {
            vec![Inner::Tool(Tool::Send), Inner::Opaque("it types what was written down elsewhere")]
        }
    }
}

/// It types a line into a pane, and a notice when that is done.
fn submit(args: SubmitArgs, words: Words<'_>) -> Vec<Inner> {
    let SubmitArgs {
        command,
        notice,
        target: _,
        tell: _,
        checks: _,
        interval: _,
        ignore: _,
        ignore_row: _,
        cap: _,
        settle: _,
        patience: _,
        prompt: _,
        clear: _,
        keys: _,
    } = args;
    let mut inner = acts(Tool::Send);
    match words.at_end(&command) {
        Some(command) => inner.extend(line_of(&command)),
        None => inner.extend([Inner::Mention(known_text(words.all)), Inner::Opaque(MADE)]),
    }
    inner.push(Inner::Mention(notice));
    inner
}

/// It serves tools to the program at its other end. It has a gate of its own, but who started it says what
/// agents may do.
fn mcp(args: &McpArgs) -> Vec<Inner> {
    let McpArgs { http: _, profile: _, session: _, own: _, longest_call: _, prompted: _, call_key: _ } = args;
    serves()
}

/// It lets anyone who has its link see all jobs and type into them; a share shows one job to others.
fn web(args: &WebArgs) -> Vec<Inner> {
    let WebArgs {
        verb,
        bind: _,
        port: _,
        read_only: _,
        fleet: _,
        metrics_token: _,
        no_open: _,
        tls_cert: _,
        tls_key: _,
        behind_proxy: _,
        hosts: _,
    } = args;
    match verb {
        None => serves(),
        Some(WebVerb::Share(WebShareArgs { job: _, read_only: _, time: _ })) => {
            vec![Inner::Tool(Tool::Screen), Inner::Opaque(SHOWS)]
        }
        Some(WebVerb::Shares(WebSharesArgs {})) => looks(Tool::Jobs),
        Some(WebVerb::Revoke(WebRevokeArgs { number: _ })) => acts(Tool::Jobs),
    }
}

fn serves() -> Vec<Inner> {
    vec![Inner::Tool(Tool::Run), Inner::Tool(Tool::Send), Inner::Tool(Tool::Kill), Inner::Opaque(SERVES)]
}

fn acp(verb: AcpVerb, words: Words<'_>) -> Vec<Inner> {
    match verb {
        AcpVerb::Agent(AcpAgentArgs {}) => serves(),
        AcpVerb::Sidecar(SidecarArgs {
            agent,
            turns: _,
            per_minute: _,
            per_hour: _,
            prompt_bytes: _,
            bytes_per_hour: _,
            window: _,
            events: _,
            no_wake: _,
            no_jobs: _,
            profile: _,
        }) => program(&agent, words),
        AcpVerb::Tap(TapArgs { agent, out, show: _ }) => {
            let mut inner = if agent.is_empty() { Vec::new() } else { program(&agent, words) };
            inner.extend(out.map(|file| Inner::Write(path(&file))));
            inner
        }
    }
}

/// A program and its arguments at the end of the words; one word is a program too.
fn program(found: &[String], words: Words<'_>) -> Vec<Inner> {
    match words.at_end(found) {
        Some(program) => vec![Inner::Words(program)],
        None => vec![Inner::Mention(known_text(words.all)), Inner::Opaque(MADE)],
    }
}

fn install(args: &InstallArgs) -> Vec<Inner> {
    let InstallArgs { agents: _, target, profile: _, hooks: _, plugin: _, plugin_folder: _, print, list } =
        args;
    if *print || *list || target.dry_run { Vec::new() } else { vec![Inner::Opaque(SETTINGS)] }
}
