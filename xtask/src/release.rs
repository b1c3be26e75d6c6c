//! `cargo xtask release`: walks through the checklist of a release, does none of it by itself, and says what is missing.

use std::path::Path;
use std::process::Command;

use crate::dist::{self, output};
use crate::test::tools::workspace;

/// A point of the list: what must hold, and what to do if it does not.
struct Point {
    what: &'static str,
    holds: Result<(), String>,
}

/// # Errors
/// Something is missing.
pub(crate) fn run() -> Result<(), String> {
    let root = workspace();
    let version = env!("CARGO_PKG_VERSION");
    let points = [
        Point { what: "nothing is uncommitted", holds: clean(&root) },
        Point {
            what: "the changelog has a dated section of this version, and nothing unreleased",
            holds: changelog(&root, version),
        },
        Point { what: "no tag of this version yet", holds: no_tag(&root, version) },
        Point {
            what: "every package is in target/dist, with the right sums",
            holds: packages(&root, version),
        },
        Point { what: "these packages were installed and tried", holds: checked(&root) },
        Point { what: "their program says this version and this commit", holds: says_itself(&root, version) },
    ];
    let mut missing = 0;
    for Point { what, holds } in &points {
        match holds {
            Ok(()) => println!("[x] {what}"),
            Err(todo) => {
                missing += 1;
                println!("[ ] {what}\n      {todo}");
            }
        }
    }
    println!("[ ] .ci/run on a clean checkout, and cargo xtask test --full: by you");
    if missing > 0 {
        return Err(format!("{missing} points are missing for {version}"));
    }
    println!("then: git tag -a v{version} -m 'Outlast {version}', and publish target/dist");
    Ok(())
}

fn clean(root: &Path) -> Result<(), String> {
    let said = output(Command::new("git").args(["status", "--porcelain"]).current_dir(root))?;
    if said.is_empty() { Ok(()) } else { Err("commit it, or take it back: git status".into()) }
}

fn changelog(root: &Path, version: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(root.join("CHANGELOG.md")).map_err(|error| error.to_string())?;
    dated(&text, version)
}

fn dated(changelog: &str, version: &str) -> Result<(), String> {
    let sections: Vec<&str> = changelog.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let first = sections.first().copied().unwrap_or_default();
    let is_date = |text: &str| {
        text.len() == 10
            && text.split('-').map(str::len).eq([4, 2, 2])
            && text.replace('-', "").parse::<u32>().is_ok()
    };
    let date = first
        .trim_start_matches('[')
        .strip_prefix(version)
        .map(|rest| rest.trim_matches(|c| " -–—]()".contains(c)));
    match date {
        Some(date) if is_date(date) => Ok(()),
        _ => Err(format!(
            "its first section is {first:?}; write `## {version} - YYYY-MM-DD`, and raise the version in Cargo.toml"
        )),
    }
}

fn no_tag(root: &Path, version: &str) -> Result<(), String> {
    let tag = format!("v{version}");
    let said = output(Command::new("git").args(["tag", "--list", &tag]).current_dir(root))?;
    if said.is_empty() { Ok(()) } else { Err(format!("{tag} is there: raise the version in Cargo.toml")) }
}

fn packages(root: &Path, version: &str) -> Result<(), String> {
    let folder = root.join("target/dist");
    let todo = |why: String| format!("cargo xtask dist --check --twice ({why})");
    for name in ["x86_64", "aarch64"].map(|machine| format!("outlast-{version}-{machine}-linux.tar.gz")) {
        if !folder.join(&name).is_file() {
            return Err(todo(format!("{name} is not there")));
        }
    }
    let mut sums = Command::new("sha256sum");
    sums.args(["--check", "--quiet", "--strict", "SHA256SUMS"]).current_dir(&folder);
    output(&mut sums).map(drop).map_err(todo)
}

/// Packages that were made again since are not the ones that were tried.
fn checked(root: &Path) -> Result<(), String> {
    let made = std::fs::read(root.join("target/dist/SHA256SUMS")).map_err(|_| "there are no packages")?;
    match std::fs::read(dist::checked_file(root)) {
        Ok(tried) if tried == made => Ok(()),
        Ok(_) | Err(_) => Err("cargo xtask dist --check".into()),
    }
}

/// What the program for this machine says of itself.
fn says_itself(root: &Path, version: &str) -> Result<(), String> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let program = root.join("target/dist-build").join(target).join("release/outlast");
    let said = output(Command::new(&program).args(["--version", "--json"]))?;
    let said: serde_json::Value = serde_json::from_slice(&said).map_err(|error| error.to_string())?;
    let head = output(Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root))?;
    let head = String::from_utf8_lossy(&head).trim().to_owned();
    if said["version"] == version && said["commit"] == head.as_str() {
        return Ok(());
    }
    Err(format!(
        "it is {} of {}, and not {version} of {head}: cargo xtask dist --check",
        said["version"], said["commit"]
    ))
}

#[cfg(test)]
mod tests {
    use super::dated;

    #[test]
    fn a_release_needs_a_dated_section_of_its_version_on_top() {
        assert!(dated("# Changelog\n\n## 0.2.0 - 2026-11-18\n\n## 0.1.0 - 2026-01-01\n", "0.2.0").is_ok());
        assert!(dated("## Unreleased\n\n## 0.2.0 - 2026-11-18\n", "0.2.0").is_err());
        assert!(dated("## 0.2.0\n", "0.2.0").is_err());
        assert!(dated("## 0.1.0 - 2026-11-18\n", "0.2.0").is_err());
    }
}
