//! The static binary: Rust's musl targets, C parts by Zig, which PyPI has as `ziglang`, linked by the LLD that comes with Rust.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::tree::{hex, sum};
use super::{Platform, Release, output};

/// Zig as a C compiler for every target, and the cargo command that uses it.
const TOOLS: [&str; 2] = ["ziglang==0.17.0", "cargo-zigbuild==0.24.0"];

/// How it is compiled and linked: small. A panic aborts, so nobody walks the stack, and the tables for that are left out, also those
/// of the standard library. Addresses that are set when the program is loaded are packed, and functions that are the same are there
/// once. The script's path is relative to the root of the source, so that it is the same wherever that is.
const RUST_FLAGS: [&str; 7] = [
    "-Cforce-unwind-tables=no",
    "-Clinker=rust-lld",
    "-Clinker-flavor=ld.lld",
    "-Clink-arg=--pack-dyn-relocs=relr",
    "-Clink-arg=--icf=all",
    "-Clink-arg=--no-eh-frame-hdr",
    "-Clink-arg=-Txtask/src/dist/no-unwinding.ld",
];

/// The largest binary that may be published.
const MAX_BYTES: u64 = 16 << 20;

/// How the binary comes to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// It is there already, from an earlier call or another machine.
    No,
    Once,
    /// From a second folder as well: the bytes must be the same.
    Twice,
}

/// The program for a platform, statically linked.
pub(super) fn build(release: &Release, platform: Platform, how: Build) -> Result<PathBuf, String> {
    let target = platform.target();
    let base =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| release.root.join("target"), PathBuf::from);
    let folder = base.join("dist-build");
    let first = if how == Build::No {
        folder.join(&target).join("release/outlast")
    } else {
        add_target(&release.root, &target)?;
        compile(release, &release.root, &target, &tools(&release.root)?, &folder)?
    };
    let size = std::fs::metadata(&first).map_err(|error| format!("{}: {error}", first.display()))?.len();
    if size > MAX_BYTES {
        return Err(format!("{} has {size} bytes; at most {MAX_BYTES} may be", first.display()));
    }
    if how == Build::Twice {
        let elsewhere = tempfile::tempdir().map_err(|error| error.to_string())?;
        let source = elsewhere.path().join("source");
        let mut git = Command::new("git");
        git.args(["clone", "--quiet"]).arg(&release.root).arg(&source);
        output(&mut git)?;
        let second =
            compile(release, &source, &target, &tools(&release.root)?, &elsewhere.path().join("target"))?;
        let (first, second) = (hex(sum(&first)?), hex(sum(&second)?));
        if first != second {
            return Err(format!("built twice, {target} is not the same: {first}, {second}"));
        }
        println!("{target}: built twice, from two folders, the same: {first}");
    }
    Ok(first)
}

fn compile(
    release: &Release,
    source: &Path,
    target: &str,
    tools: &Path,
    to: &Path,
) -> Result<PathBuf, String> {
    println!("building {target}");
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cargo_home = std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    // No path of this machine in the binary.
    let paths = [(source, "/outlast"), (cargo_home.as_path(), "/cargo"), (to, "/target")];
    let rust: Vec<String> =
        paths.iter().map(|(path, name)| format!("--remap-path-prefix={}={name}", path.display())).collect();
    let rust = rust.into_iter().chain(RUST_FLAGS.map(str::to_owned)).collect::<Vec<_>>();
    let c: Vec<String> =
        paths.iter().map(|(path, name)| format!("-ffile-prefix-map={}={name}", path.display())).collect();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut cargo = Command::new("cargo");
    cargo.args(["zigbuild", "--locked", "--release", "--package", "outlast", "--target", target]);
    cargo.current_dir(source).env("PATH", format!("{}:{path}", tools.display()));
    cargo.env("CARGO_TARGET_DIR", to).env("RUSTFLAGS", rust.join(" ")).env("CFLAGS", c.join(" "));
    cargo.env("SOURCE_DATE_EPOCH", release.date.to_string());
    cargo.env("OUTLAST_COMMIT", commit(&release.root)?);
    // Those of the cargo that runs us belong to another build.
    for name in ["CARGO", "CARGO_MANIFEST_DIR", "RUSTUP_TOOLCHAIN", "CARGO_ENCODED_RUSTFLAGS"] {
        cargo.env_remove(name);
    }
    output(&mut cargo)?;
    Ok(to.join(target).join("release/outlast"))
}

fn commit(root: &Path) -> Result<String, String> {
    let mut git = Command::new("git");
    git.args(["rev-parse", "HEAD"]).current_dir(root);
    Ok(String::from_utf8_lossy(&output(&mut git)?).trim().to_owned())
}

/// The debug build of this machine without its debug information: good enough to try packages with.
pub(super) fn stripped(release: &Release) -> Result<PathBuf, String> {
    let to = release.root.join("target/dist-debug-program");
    let mut strip = Command::new("strip");
    strip.arg(&release.program).arg("-o").arg(&to);
    output(&mut strip)?;
    Ok(to)
}

/// The folder with Zig and its cargo command, installed once.
pub(crate) fn tools(root: &Path) -> Result<PathBuf, String> {
    let venv = root.join("target/tools/dist");
    let bin = venv.join("bin");
    if !bin.join("cargo-zigbuild").is_file() {
        println!("installing {} into {}", TOOLS.join(" and "), venv.display());
        let mut python = Command::new("python3");
        output(python.args(["-m", "venv"]).arg(&venv))?;
        let mut pip = Command::new(bin.join("pip"));
        output(pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(TOOLS))?;
    }
    Ok(bin)
}

/// Rust's own library for a target, if it is not there yet.
pub(crate) fn add_target(root: &Path, target: &str) -> Result<(), String> {
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", target]).current_dir(root);
    rustup.env_remove("RUSTUP_TOOLCHAIN");
    output(&mut rustup).map(drop)
}
