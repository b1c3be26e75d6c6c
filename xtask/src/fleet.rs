//! `cargo xtask fleet`: the parts of `docs/fleet.md` that are measured, each by a script of `clients/fleet`.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::page;
use crate::test::tools::{fetch_nats_server, workspace};

/// A part of the page.
struct Part {
    name: &'static str,
    /// A debug build: only that can be told to die at a chosen step.
    is_debug: bool,
    /// It needs the program that plays many hosts.
    plays_hosts: bool,
}

const PARTS: [Part; 4] = [
    Part { name: "faults", is_debug: true, plays_hosts: false },
    Part { name: "scale", is_debug: false, plays_hosts: true },
    Part { name: "idle", is_debug: false, plays_hosts: false },
    Part { name: "beside", is_debug: false, plays_hosts: false },
];

/// Measures one part and writes it into the page. `--debug` takes the debug build, to try the script out.
///
/// # Errors
/// No such part, a build that fails, or a script that fails: then the page stays as it was.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let [name, rest @ ..] = words else { return Err("which part? faults, scale, idle or beside".into()) };
    let part = PARTS.iter().find(|part| part.name == *name);
    let part = part.ok_or_else(|| format!("there is no part {name}: faults, scale, idle or beside"))?;
    let is_debug = part.is_debug || rest.contains(&"--debug");
    let root = workspace();
    fetch_nats_server(&root)?;
    build(is_debug)?;
    let built = root.join("target").join(if is_debug { "debug" } else { "release" });
    let mut command = Command::new("python3");
    command.arg(root.join(format!("clients/fleet/{name}.py"))).env("PYTHONDONTWRITEBYTECODE", "1");
    command.arg(built.join("outlast")).arg(root.join("target/tools/nats/bin/nats-server"));
    if part.plays_hosts {
        command.arg(built.join("examples/fleet_hosts"));
    }
    command.args(rest.iter().filter(|word| **word != "--debug"));
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| error.to_string())?;
    let measured = String::from_utf8_lossy(&output.stdout);
    println!("{measured}");
    if !output.status.success() {
        return Err(format!("clients/fleet/{name}.py: {}", output.status));
    }
    write(&root, name, measured.trim_end())
}

fn build(is_debug: bool) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "-p", "outlast", "-p", "outlast-fleet", "--bins", "--examples"]);
    if !is_debug {
        command.arg("--release");
    }
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("the program does not build".into()),
        Err(error) => Err(error.to_string()),
    }
}

fn write(root: &Path, name: &str, measured: &str) -> Result<(), String> {
    let begin = format!("<!-- measured: cargo xtask fleet {name} -->");
    let end = format!("<!-- end of {name} -->");
    page::fill(&root.join("docs/fleet.md"), (&begin, &end), measured)
}
