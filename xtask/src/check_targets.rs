//! `cargo xtask check-targets`: what compiles for which target, tried; and the portable twins on this machine. A target whose
//! standard library is not available is reported as unchecked. What is compiled and what was run: docs/internals/portable.md.

use std::path::Path;
use std::process::Command;

use crate::dist;
use crate::test::tools::workspace;

/// The crates that know no kernel.
const PORTABLE: &[&str] = &["outlast-protocol", "outlast-rules", "outlast-cli"];
/// What compiles for macOS: everything below the doors.
const MACOS: &[&str] = &["outlast-protocol", "outlast-rules", "outlast-cli", "outlast-job"];
/// The whole program.
const PROGRAM: &[&str] = &["outlast"];

/// Targets, and what must compile for them.
const TARGETS: [(&str, &[&str]); 4] = [
    ("x86_64-unknown-linux-musl", PROGRAM),
    ("aarch64-unknown-linux-musl", PROGRAM),
    ("aarch64-apple-darwin", MACOS),
    ("x86_64-pc-windows-gnu", PORTABLE),
];

/// # Errors
/// Something that must compile does not.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let known = TARGETS.map(|(target, _)| target);
    let choice = crate::choice::Choice::read(words, &[], "target", &known)?;
    let root = workspace();
    let tools = dist::binary::tools(&root)?;
    let mut failed = Vec::new();
    for (target, packages) in TARGETS.into_iter().filter(|(target, _)| choice.wants(target)) {
        if let Err(why) = dist::binary::add_target(&root, target) {
            println!(
                "unchecked  {target}: rustup has no library for it here: {}",
                why.lines().last().unwrap_or_default()
            );
            continue;
        }
        match check(&root, &tools, target, packages) {
            Ok(()) => println!("compiles   {target}: {}", packages.join(", ")),
            Err(why) => {
                println!("FAIL       {target}: {why}");
                failed.push(target);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("does not compile: {}", failed.join(", "))) }
}

fn check(root: &Path, tools: &Path, target: &str, packages: &[&str]) -> Result<(), String> {
    let mut cargo = Command::new(tools.join("cargo-zigbuild"));
    cargo.args(["check", "--locked", "--quiet", "--target", target]).current_dir(root);
    cargo.args(packages.iter().flat_map(|package| ["--package", package]));
    let path = std::env::var("PATH").unwrap_or_default();
    cargo
        .env("PATH", format!("{}:{path}", tools.display()))
        .env("CARGO_TARGET_DIR", root.join("target/dist-build"));
    for name in ["CARGO", "CARGO_MANIFEST_DIR", "RUSTUP_TOOLCHAIN"] {
        cargo.env_remove(name);
    }
    dist::output(&mut cargo).map(drop)
}
