//! `outlast install --plugin`: as a plugin of the agent, added and removed by its own commands.

use std::path::Path;

use outlast_cli::{Client, Scope, Target};
use outlast_job::Failure;
use serde_json::json;

use super::{on_path, run, shown};
use crate::install::clients::{CommandLine, KnownClient, Server};
use crate::install::plugin::Plugin;
use crate::install::settings::Settings;
use crate::output::Output;

/// Writes the plugin into a folder, as it is published: it calls the program from the `PATH`.
pub(super) fn write(client: Client, server: &Server, folder: &Path, out: &mut Output) -> Result<(), Failure> {
    let server = Server { command: "outlast".into(), args: server.args.clone() };
    plugin(client, server, vec!["outlast".into()])?.write(folder)?;
    tell(client, "written", folder, &[], false, out);
    Ok(())
}

pub(super) fn install(
    client: Client,
    server: Server,
    home: Option<&Path>,
    target: &Target,
    out: &mut Output,
) -> Result<(), Failure> {
    if target.scope == Scope::Project {
        return Err(Failure::usage("a plugin is installed for the user")
            .hint("outlast install --client CLIENT --scope project"));
    }
    let mut words = vec![server.command.clone()];
    if let Some(home) = home {
        words.extend(["--home".to_owned(), home.to_string_lossy().into_owned()]);
    }
    let plugin = plugin(client, server, words)?;
    let program = client.program().unwrap_or_default();
    if on_path(program).is_none() {
        return Err(Failure::usage(format!("{program} is not on the PATH; only it can add a plugin"))
            .hint("write the settings instead: outlast install --client CLIENT"));
    }
    // The same server twice would be two sets of tools.
    let has_entry = |file| Settings::read(client, file).is_ok_and(|settings| settings.has_entry());
    if client.file(Scope::User).is_some_and(has_entry) {
        return Err(Failure::usage(format!("{} has the server in its settings already", client.name()))
            .hint("take that out first: outlast uninstall --client CLIENT"));
    }
    let folder = folder(&plugin)?;
    let adds = plugin.adds(&folder);
    if !target.dry_run {
        let is_new = !folder.exists();
        plugin.write(&folder)?;
        // What was there before is added anew: the agent keeps a copy.
        if !is_new {
            for line in plugin.removes() {
                let _ = run(&line);
            }
        }
        for line in &adds {
            run(line)?;
        }
    }
    tell(client, "installed as a plugin", &folder, &adds, target.dry_run, out);
    if !out.json && !target.dry_run {
        out.talk(&format!("  now    {}", client.what_now()));
    }
    Ok(())
}

/// Takes the plugin out, if there is one.
pub(super) fn uninstall(client: Client, target: &Target, out: &mut Output) -> Result<(), Failure> {
    let server = Server { command: String::new(), args: Vec::new() };
    let Some(plugin) = Plugin::of(client, server, Vec::new()) else { return Ok(()) };
    let Some(folder) = plugin.folder().filter(|folder| folder.exists()) else { return Ok(()) };
    if target.scope == Scope::Project {
        return Ok(());
    }
    let removes = plugin.removes();
    if !target.dry_run {
        if client.program().and_then(on_path).is_some() {
            for line in &removes {
                run(line)?;
            }
        }
        std::fs::remove_dir_all(&folder)
            .map_err(|error| Failure::system(format!("{} cannot be removed", folder.display()), error))?;
    }
    tell(client, "plugin removed", &folder, &removes, target.dry_run, out);
    Ok(())
}

fn plugin(client: Client, server: Server, words: Vec<String>) -> Result<Plugin, Failure> {
    Plugin::of(client, server, words).ok_or_else(|| {
        Failure::usage(format!("no plugins of {} are known", client.name()))
            .hint("outlast install --client CLIENT")
    })
}

fn folder(plugin: &Plugin) -> Result<std::path::PathBuf, Failure> {
    plugin.folder().ok_or_else(|| {
        Failure::usage("there is no place for plugins: neither $XDG_DATA_HOME nor $HOME is set")
    })
}

fn tell(
    client: Client,
    what: &str,
    folder: &Path,
    commands: &[CommandLine],
    dry_run: bool,
    out: &mut Output,
) {
    if out.json {
        out.value(&json!({
            "client": client.name(), "plugin": what, "folder": folder, "commands": commands, "dry_run": dry_run,
        }));
        return;
    }
    let would = if dry_run { "would be " } else { "" };
    out.line(&format!("{}: {would}{what}", client.name()));
    out.talk(&format!("  in     {}", folder.display()));
    for line in commands {
        out.talk(&format!("  with   {}", shown(line)));
    }
}
