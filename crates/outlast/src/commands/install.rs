//! `outlast install` and `outlast uninstall`.

mod plugin;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::ValueEnum;
use outlast_cli::{Client, InstallArgs, Scope, Target, UninstallArgs};
use outlast_job::{Failure, Kind};
use outlast_mcp::Profile;
use serde_json::{Value, json};

use crate::install::clients::{CommandLine, KnownClient, NAME, Server};
use crate::install::hooks::{self, Changed, Keep};
use crate::install::settings::{Known, Settings, is_nothing};
use crate::output::Output;
use crate::progress::Busy;
use crate::table::{Column, fit, line};
use crate::terminal;

/// What was, or would be, done.
struct Done {
    client: Client,
    scope: Scope,
    what: &'static str,
    file: PathBuf,
    backup: Option<PathBuf>,
    command: Option<CommandLine>,
    /// What changes in the file, where it is changed in place.
    diff: Option<String>,
}

impl Done {
    /// Nothing so far.
    fn of(client: Client, target: &Target, settings: &Settings, what: &'static str) -> Self {
        let file = settings.path.clone();
        Self { client, scope: target.scope, what, file, backup: None, command: None, diff: None }
    }
}

impl Done {
    /// What is kept of a file with hooks, which may be the one that was just changed.
    fn keep(&self, hooks: &Path, dry_run: bool) -> Keep {
        let same = hooks.canonicalize().is_ok_and(|hooks| hooks == self.file);
        Keep::of(dry_run, self.backup.is_some() && same)
    }
}

pub(super) fn install(home: Option<&Path>, args: &InstallArgs, out: &mut Output) -> Result<i32, Failure> {
    if let Some(profile) = &args.profile {
        Profile::from_name(profile)?;
    }
    if args.list {
        return list(home, args, out);
    }
    let clients = args.agents.all();
    if clients.is_empty() {
        return Err(which(("install", "on this machine"), args.target.scope, |client| {
            is_found(client, args.target.scope)
        }));
    }
    Ok(each(&clients, out, |client, out| {
        let server = server(client, home, args.profile.as_deref())?;
        if args.print {
            return print(client, args.target.scope, &server, out);
        }
        if let Some(folder) = &args.plugin_folder {
            return plugin::write(client, &server, folder, out);
        }
        if args.plugin {
            return plugin::install(client, server, home, &args.target, out);
        }
        let done = install_one(client, &args.target, &server)?;
        tell(&done, args.target.dry_run, out);
        if args.hooks {
            install_hooks(&done, home, args.target.dry_run, out)?;
        }
        if !out.json && !args.target.dry_run && ["installed", "updated"].contains(&done.what) {
            out.talk(&format!("  now    {}", client.what_now()));
        }
        Ok(())
    }))
}

/// No agent was named: says which ones it could be, and what to type for them.
fn which((verb, how): (&str, &str), scope: Scope, could_be: impl Fn(Client) -> bool) -> Failure {
    let names: Vec<String> = Client::value_variants()
        .iter()
        .filter(|client| could_be(**client))
        .map(|client| client.name())
        .collect();
    let project = if scope == Scope::Project { " --scope project" } else { "" };
    let (message, hint) = match names.as_slice() {
        [] => (format!("which agent? none is {how}"), String::new()),
        found => {
            let (list, words) = (found.join(", "), found.join(" "));
            (format!("which agent? {how}: {list}"), format!("write: outlast {verb} {words}{project}   "))
        }
    };
    Failure::usage(message).hint(format!("{hint}all that are known: outlast install --list"))
}

/// Whether an agent is on this machine: its program, or its settings.
fn is_found(client: Client, scope: Scope) -> bool {
    let Some(file) = client.file(scope) else { return false };
    // Of most clients the folder of their settings is theirs alone, and a sign that they are here.
    let folder_is_its_own = scope == Scope::User && client != Client::Claude;
    client.program().and_then(on_path).is_some()
        || file.exists()
        || folder_is_its_own && file.parent().is_some_and(Path::exists)
}

/// Does it for each agent, also after one that failed; returns the exit code.
fn each(
    clients: &[Client],
    out: &mut Output,
    mut one: impl FnMut(Client, &mut Output) -> Result<(), Failure>,
) -> i32 {
    let mut code = 0;
    for &client in clients {
        if let Err(failure) = one(client, out) {
            let name = client.name();
            // The next call, for this very agent.
            let hint = failure.hint.map(|hint| hint.to_string().replace("CLIENT", &name));
            let message =
                if clients.len() > 1 { format!("{name}: {}", failure.message) } else { failure.message };
            let failure = Failure::new(failure.kind, message);
            let failure = match hint {
                Some(hint) => failure.hint(hint),
                None => failure,
            };
            code = out.failure(&failure).max(code);
        }
    }
    code
}

pub(super) fn uninstall(args: &UninstallArgs, out: &mut Output) -> Result<i32, Failure> {
    let (clients, scope) = (args.agents.all(), args.target.scope);
    if clients.is_empty() {
        let has_entry = |client| {
            let settings = file(client, scope).and_then(|file| Settings::read(client, file));
            settings.is_ok_and(|settings| settings.has_entry())
        };
        return Err(which(("uninstall", "installed"), scope, has_entry));
    }
    Ok(each(&clients, out, |client, out| {
        plugin::uninstall(client, &args.target, out)?;
        let done = uninstall_one(client, &args.target)?;
        tell(&done, args.target.dry_run, out);
        if let Some(file) = hooks::file(client, args.target.scope)
            && hooks::uninstall(client, &file, done.keep(&file, args.target.dry_run))? == Changed::Yes
        {
            tell_hooks(client, "removed", &file, args.target.dry_run, out);
        }
        Ok(())
    }))
}

fn install_hooks(done: &Done, home: Option<&Path>, dry_run: bool, out: &mut Output) -> Result<(), Failure> {
    let client = done.client;
    let Some(file) = hooks::file(client, done.scope) else {
        return Err(Failure::usage(format!("no hooks of {} are known", client.name()))
            .hint("claude, codex, gemini and opencode have some"));
    };
    let program =
        std::env::current_exe().map_err(|error| Failure::system("our own program can't be found", error))?;
    let mut words = vec![program.to_string_lossy().into_owned()];
    if let Some(home) = home {
        words.extend(["--home".to_owned(), home.to_string_lossy().into_owned()]);
    }
    let what = match hooks::install(client, &file, &words, done.keep(&file, dry_run))? {
        Changed::Yes => "installed",
        Changed::No => "already there",
    };
    tell_hooks(client, what, &file, dry_run, out);
    Ok(())
}

fn tell_hooks(client: Client, what: &str, file: &Path, dry_run: bool, out: &mut Output) {
    if out.json {
        let file = file.to_string_lossy();
        out.value(&json!({ "client": client.name(), "hooks": what, "file": file, "dry_run": dry_run }));
        return;
    }
    let would = if dry_run { "would be " } else { "" };
    out.line(&format!("{}: hooks {would}{what}: {}", client.name(), file.display()));
}

fn install_one(client: Client, target: &Target, server: &Server) -> Result<Done, Failure> {
    let settings = Settings::read(client, file(client, target.scope)?)?;
    let mut done = Done::of(client, target, &settings, "installed");
    let known = settings.knows(server);
    if known == Known::Yes {
        done.what = "already there";
        return Ok(done);
    }
    // Such commands refuse, or overwrite, what is there under that name: then the file is better changed in
    // place.
    done.command = client.adds(target.scope, server).filter(|_| known == Known::No && usable(client, target));
    if known == Known::Otherwise {
        done.what = "updated";
    }
    let text = settings.with(server)?;
    if target.dry_run {
        done.backup = settings.backup_path();
        done.diff = Some(settings.diff(&text));
        return Ok(done);
    }
    done.backup = settings.back_up()?;
    let Some(line) = &done.command else {
        settings.write(&text)?;
        return Ok(done);
    };
    run(line)?;
    // Its own command can't set everything that belongs into the entry.
    let settings = Settings::read(client, done.file.clone())?;
    if settings.knows(server) == Known::Otherwise {
        settings.write(&settings.with(server)?)?;
    }
    // One of them hands the work to a program that may still be starting.
    if client != Client::Vscode && Settings::read(client, done.file.clone())?.knows(server) != Known::Yes {
        return Err(Failure::new(
            Kind::System,
            format!("{} said that it is done, but {} does not have the server", line[0], done.file.display()),
        )
        .hint("change the file instead: outlast install --client CLIENT --no-command"));
    }
    Ok(done)
}

fn uninstall_one(client: Client, target: &Target) -> Result<Done, Failure> {
    let settings = Settings::read(client, file(client, target.scope)?)?;
    let mut done = Done::of(client, target, &settings, "removed");
    if !settings.has_entry() {
        done.what = "not there";
        return Ok(done);
    }
    done.command = client.removes(target.scope).filter(|_| usable(client, target));
    let text = settings.without()?;
    // A file that was not there before us, and holds nothing any more, goes too.
    let was_ours = !settings.has_backup() && is_nothing(&text);
    if target.dry_run {
        done.backup = settings.backup_path().filter(|_| !was_ours);
        done.diff = Some(settings.diff(if was_ours { "" } else { &text }));
        return Ok(done);
    }
    if was_ours && done.command.is_none() {
        settings.remove_file()?;
        return Ok(done);
    }
    done.backup = settings.back_up()?;
    match &done.command {
        None => settings.write(&text)?,
        Some(line) => {
            run(line)?;
            // Gemini says that it is done, and does nothing, in a folder that it does not trust.
            let left = Settings::read(client, done.file.clone())?;
            if left.has_entry() {
                left.write(&left.without()?)?;
                done.command = None;
            }
        }
    }
    Ok(done)
}

/// Whether the client's own command is there and may be used.
fn usable(client: Client, target: &Target) -> bool {
    !target.no_command && client.program().and_then(on_path).is_some()
}

fn file(client: Client, scope: Scope) -> Result<PathBuf, Failure> {
    client.file(scope).ok_or_else(|| {
        Failure::usage(format!("{} has no settings for a {}", client.name(), scope.name())).hint(
            match scope {
                Scope::User => "HOME is not set.",
                Scope::Project => "Use --scope user.",
            },
        )
    })
}

/// How the server is to be started: this very program.
fn server(client: Client, home: Option<&Path>, profile: Option<&str>) -> Result<Server, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::system("can't tell where this program is", error))?;
    let text = |path: &Path| {
        path.to_str().map(ToOwned::to_owned).ok_or_else(|| {
            Failure::usage(format!("{} can't be written into settings: not UTF-8", path.display()))
        })
    };
    let mut args = Vec::new();
    if let Some(home) = home {
        let home = std::path::absolute(home).map_err(|error| Failure::system("the home", error))?;
        args.extend(["--home".to_owned(), text(&home)?]);
    }
    args.push("mcp".to_owned());
    let profile = profile.unwrap_or(client.profile());
    if profile != "plain" {
        args.extend(["--profile".to_owned(), profile.to_owned()]);
    }
    if let Some(longest) = client.longest_call() {
        args.extend(["--longest-call".to_owned(), format!("{}m", longest.as_secs() / 60)]);
    }
    Ok(Server { command: text(&program)?, args })
}

/// Runs a command of a client's own. What it says is shown only when it fails.
fn run(line: &CommandLine) -> Result<(), Failure> {
    let Some((program, args)) = line.split_first() else { return Ok(()) };
    let busy = Busy::new(format!("running {}", shown(line)));
    let ran = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Failure::system(format!("can't run {program}"), error));
    drop(busy);
    let ran = ran?;
    if ran.status.success() {
        return Ok(());
    }
    let said = [ran.stdout, ran.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    Err(Failure::new(Kind::System, format!("{} failed ({}): {}", shown(line), ran.status, said.trim()))
        .hint("change the file instead: outlast install --client CLIENT --no-command"))
}

fn shown(line: &CommandLine) -> String {
    let word = |word: &String| {
        let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c));
        if plain && !word.is_empty() { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) }
    };
    line.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn on_path(program: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let runs = |file: &PathBuf| {
        std::fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(program)).find(runs)
}

fn tell(done: &Done, dry_run: bool, out: &mut Output) {
    let Done { client, scope, what, file, backup, command, diff } = done;
    if out.json {
        out.value(&json!({
            "client": client.name(), "scope": scope.name(), "result": what, "dry_run": dry_run,
            "file": file, "backup": backup, "command": command, "diff": diff,
        }));
        return;
    }
    let changes = matches!(*what, "installed" | "updated" | "removed");
    let would = if dry_run && changes { "would be " } else { "" };
    out.line(&format!("{}: {would}{what}", client.name()));
    match command {
        Some(line) => out.talk(&format!("  with   {}", shown(line))),
        None => out.talk(&format!("  in     {}", file.display())),
    }
    if let Some(backup) = backup {
        out.talk(&format!("  backup {}", backup.display()));
    }
    if let Some(diff) = diff {
        for line in diff.lines() {
            let style = match line.as_bytes().first() {
                Some(b'+') => "32",
                Some(b'-') => "31",
                _ => "0",
            };
            out.line(&out.styled(style, line));
        }
    }
}

fn print(client: Client, scope: Scope, server: &Server, out: &mut Output) -> Result<(), Failure> {
    let file = file(client, scope)?;
    let snippet = Settings::snippet(client, &file, server)?;
    if out.json {
        let entry: Value = client.entry(server);
        out.value(&json!({
            "client": client.name(), "scope": scope.name(), "file": file, "key": [client.key(), NAME],
            "entry": entry, "snippet": snippet, "command": client.adds(scope, server),
        }));
    } else {
        out.talk(&format!("into {}:", file.display()));
        out.line(snippet.trim_end());
        if let Some(line) = client.adds(scope, server) {
            out.talk(&format!("or: {}", shown(&line)));
        }
    }
    Ok(())
}

/// The list of agents.
const COLUMNS: &[Column] = &[
    Column { title: "AGENT", min: 14, leave_out: 0 },
    Column { title: "HERE", min: 5, leave_out: 0 },
    Column { title: "SERVER", min: 13, leave_out: 0 },
    Column { title: "SETTINGS", min: 20, leave_out: 1 },
];

fn list(home: Option<&Path>, args: &InstallArgs, out: &mut Output) -> Result<i32, Failure> {
    let mut rows = Vec::new();
    for &client in Client::value_variants() {
        let program = client.program().and_then(on_path);
        let Some(file) = client.file(args.target.scope) else { continue };
        let found = is_found(client, args.target.scope);
        let server = server(client, home, args.profile.as_deref())?;
        let state = match Settings::read(client, file.clone()).map(|settings| settings.knows(&server)) {
            Ok(Known::Yes) => "installed",
            Ok(Known::Otherwise) => "installed otherwise",
            Ok(Known::No) => "not installed",
            Err(_) => "unreadable settings",
        };
        rows.push((client, found, state, file, program));
    }
    if out.json {
        let clients: Vec<Value> = rows
            .iter()
            .map(|(client, found, state, file, program)| {
                json!({
                    "client": client.name(), "found": found, "state": state, "file": file, "program": program,
                })
            })
            .collect();
        out.value(&json!({ "scope": args.target.scope.name(), "clients": clients }));
    } else {
        let home = std::env::var("HOME").unwrap_or_default();
        let cells = |(client, found, state, file, _): &(Client, bool, &str, PathBuf, _)| {
            let below_home = file.strip_prefix(&home).ok().filter(|_| !home.is_empty());
            let file =
                below_home.map_or(file.display().to_string(), |below| format!("~/{}", below.display()));
            let found = if *found { "found" } else { "-" };
            vec![client.name(), found.to_owned(), (*state).to_owned(), file]
        };
        let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
        let widths = fit(COLUMNS, &cells, terminal::columns());
        let titles: Vec<String> = COLUMNS.iter().map(|column| column.title.to_owned()).collect();
        let head = out.styled("1", &line(&titles, &widths, |_, title| title.to_owned()));
        out.line(&head);
        for row in &cells {
            out.line(&line(row, &widths, |_, cell| cell.to_owned()));
        }
    }
    Ok(0)
}
