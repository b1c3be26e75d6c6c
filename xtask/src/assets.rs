//! `cargo xtask assets`: fetches xterm.js for the web view, as `crates/web/npm/package-lock.json` names it. A build embeds what is there.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::test::tools::workspace;

/// Where the packages are named, and where `build.rs` looks for them.
const FROM: &str = "crates/web/npm";
const TO: &str = "target/assets";

/// # Errors
/// When npm is not there, or fails.
pub(crate) fn run() -> Result<(), String> {
    let root = workspace();
    let (from, to) = (root.join(FROM), root.join(TO));
    if is_there(&from, &to) {
        println!("{TO} is up to date");
        return Ok(());
    }
    let say = |error: std::io::Error| format!("{}: {error}", to.display());
    std::fs::create_dir_all(&to).map_err(say)?;
    std::fs::copy(from.join("package.json"), to.join("package.json")).map_err(say)?;
    std::fs::copy(from.join("package-lock.json"), to.join("package-lock.json")).map_err(say)?;
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]).current_dir(&to);
    npm.env("npm_config_update_notifier", "false").stdin(Stdio::null());
    match npm.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("npm ci in {} failed: {status}", to.display())),
        Err(error) => Err(format!("npm cannot be run: {error}")),
    }
}

/// Whether what the lock file names was fetched. npm writes its own lock file last.
fn is_there(from: &Path, to: &Path) -> bool {
    let lock = |folder: &Path| std::fs::read(folder.join("package-lock.json")).ok();
    to.join("node_modules/.package-lock.json").is_file() && lock(from).is_some() && lock(from) == lock(to)
}
