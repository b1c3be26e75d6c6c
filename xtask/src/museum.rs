//! The real program of 0.1.0, built from its commit: what it says and does is what later versions must
//! understand.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The commit of 0.1.0.
const COMMIT: &str = "aebe19f51a6d523f77ab231650b1c2fece9f61dc";

/// The program of 0.1.0. It is built on the first call, into `target/museum`, which takes some minutes.
///
/// # Errors
/// When the commit is not in this clone, or does not build.
pub(crate) fn program(root: &Path) -> Result<PathBuf, String> {
    build(root, &[], "debug")
}

/// The same, as users had it: for measuring.
///
/// # Errors
/// When the commit is not in this clone, or does not build.
pub(crate) fn release_program(root: &Path) -> Result<PathBuf, String> {
    build(root, &["--release"], "release")
}

fn build(root: &Path, options: &[&str], profile: &str) -> Result<PathBuf, String> {
    let folder = root.join("target/museum");
    let built = folder.join("build").join(profile).join("outlast");
    // Written last: a build that was cut short is begun again.
    let done = folder.join(if profile == "debug" { "built".into() } else { format!("built-{profile}") });
    if built.is_file() && std::fs::read_to_string(&done).is_ok_and(|commit| commit == COMMIT) {
        return Ok(built);
    }
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(root).args(arguments).stdin(Stdio::null());
        git
    };
    let known = git(&["cat-file", "-e", &format!("{COMMIT}^{{commit}}")]).stderr(Stdio::null()).status();
    if !known.is_ok_and(|status| status.success()) {
        return Err(format!(
            "commit {COMMIT} (0.1.0) is not in this clone; get it with git fetch --unshallow"
        ));
    }
    let source = folder.join("0.1.0");
    let archive = folder.join("0.1.0.tar");
    let said = |error: std::io::Error| format!("{}: {error}", folder.display());
    let _ = std::fs::remove_dir_all(&source);
    std::fs::create_dir_all(&source).map_err(said)?;
    let succeeds = |command: &mut Command| match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}")),
        Err(error) => Err(format!("{command:?}: {error}")),
    };
    succeeds(git(&["archive", COMMIT, "-o"]).arg(&archive))?;
    succeeds(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&source))?;
    std::fs::remove_file(&archive).map_err(said)?;
    println!("building outlast 0.1.0");
    let mut build = Command::new("cargo");
    build.args(["build", "--quiet", "--locked"]).args(options).args(["--package", "outlast", "--target-dir"]);
    build.arg(folder.join("build")).current_dir(&source).stdin(Stdio::null());
    // What cargo has set for us is for this workspace.
    build.env_remove("CARGO_MANIFEST_DIR").env_remove("RUSTUP_TOOLCHAIN");
    succeeds(&mut build)?;
    std::fs::write(&done, COMMIT).map_err(said)?;
    Ok(built)
}
