//! `cargo xtask shots`: the pictures of the web view in the guide, made anew from real jobs in a home of their own.

use std::process::Command;

use crate::test::tools::{fetch_npm_packages, workspace};

/// # Errors
/// When there is no browser, or a picture cannot be made.
pub(crate) fn run() -> Result<(), String> {
    let root = workspace();
    fetch_npm_packages(&root)?;
    let home = tempfile::tempdir().map_err(|error| error.to_string())?;
    let folder = |name: &str| {
        let path = home.path().join(name);
        std::fs::create_dir_all(&path).map(|()| path).map_err(|error| error.to_string())
    };
    let program = root.join("target/debug/outlast");
    let mut node = Command::new("node");
    node.arg(root.join("clients/web/shots.mjs"))
        .arg("shots")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder("user")?)
        .env("XDG_CONFIG_HOME", folder("config")?)
        .env("OUTLAST_HOME", home.path().join("home"))
        .env("OUTLAST_SESSION", "agent-1")
        .env("PROGRAM", &program)
        .env("TOOLS", root.join("target/tools/web"))
        .env("SHOTS", root.join("docs/guide/images"))
        .current_dir(folder("orders")?);
    let made = node.status().map_err(|error| format!("node: {error}"))?;
    let mut end = Command::new(&program);
    end.args(["kill", "--all"])
        .env("OUTLAST_HOME", home.path().join("home"))
        .env("OUTLAST_SESSION", "agent-1");
    let _ = end.output();
    if made.success() { Ok(()) } else { Err(format!("clients/web/shots.mjs: {made}")) }
}
