//! Embeds the page, each file also compressed; and xterm.js, if `cargo xtask assets` has fetched it: each file of it only if it is the
//! one that `npm/integrity` names. There is no network in a build. With `OUTLAST_REQUIRE_ASSETS=1`, as in CI and for packages, a
//! build without it fails.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=assets");
    println!("cargo::rerun-if-changed=npm/integrity");
    println!("cargo::rerun-if-env-changed=OUTLAST_REQUIRE_ASSETS");
    match generate() {
        Ok(()) => {}
        Err(error) => println!("cargo::error={error}"),
    }
}

fn generate() -> Result<(), String> {
    let folder =
        |name: &str| std::env::var(name).map(PathBuf::from).map_err(|error| format!("{name}: {error}"));
    let (own, out) = (folder("CARGO_MANIFEST_DIR")?, folder("OUT_DIR")?);
    let code = format!(
        "const ASSETS: &[Asset] = &[\n{}];\nconst XTERM: &[Asset] = &[\n{}];\n",
        page(&own.join("assets"), &out)?,
        xterm(&own, &out)?
    );
    let to = out.join("assets.rs");
    std::fs::write(&to, code).map_err(|error| format!("{}: {error}", to.display()))
}

/// The files of the page.
fn page(from: &Path, out: &Path) -> Result<String, String> {
    let broken = |error: std::io::Error| format!("{}: {error}", from.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(from).map_err(broken)? {
        files.push(entry.map_err(broken)?.path());
    }
    files.sort();
    let is_served = |file: &PathBuf| {
        let kind = file.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
        ["html", "css", "js", "svg", "webmanifest"].contains(&kind)
    };
    let mut code = String::new();
    for file in files.iter().filter(|file| is_served(file)) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        code.push_str(&asset(&format!("/{name}"), &name, &read(file)?, out)?);
    }
    Ok(code)
}

/// The files of xterm.js, or none.
fn xterm(own: &Path, out: &Path) -> Result<String, String> {
    let fetched = own.join("../../target/assets/node_modules");
    println!("cargo::rerun-if-changed={}", own.join("../../target/assets/package-lock.json").display());
    let list = read(&own.join("npm/integrity"))?;
    let list = String::from_utf8_lossy(&list).into_owned();
    let is_there = fetched.is_dir();
    if !is_there && std::env::var_os("OUTLAST_REQUIRE_ASSETS").is_some_and(|value| value == "1") {
        return Err("xterm.js is not there: run cargo xtask assets first".into());
    }
    let mut code = String::new();
    for line in list.lines().filter(|line| is_there && !line.is_empty() && !line.starts_with('#')) {
        let (hash, file) = line.split_once("  ").ok_or_else(|| format!("npm/integrity: {line}"))?;
        let path = fetched.join(file);
        let bytes = read(&path)?;
        let digest = ring::digest::digest(&ring::digest::SHA256, &bytes);
        let found: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        if found != hash {
            return Err(format!(
                "{} is not the file that npm/integrity names: its SHA-256 is {found}",
                path.display()
            ));
        }
        let name = file.rsplit('/').next().unwrap_or(file);
        code.push_str(&asset(&format!("/xterm/{name}"), name, &bytes, out)?);
    }
    Ok(code)
}

/// The code for one file, which is written beside it: as it is, and compressed.
fn asset(path: &str, name: &str, bytes: &[u8], out: &Path) -> Result<String, String> {
    let (plain, small) = (out.join(name), out.join(format!("{name}.gz")));
    let broken = |error: std::io::Error| format!("{}: {error}", plain.display());
    std::fs::write(&plain, bytes).map_err(broken)?;
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(bytes).map_err(broken)?;
    std::fs::write(&small, packer.finish().map_err(broken)?).map_err(broken)?;
    let mut code = String::new();
    let _ = writeln!(
        code,
        "    Asset {{ path: {path:?}, bytes: include_bytes!({plain:?}), gzipped: include_bytes!({small:?}) }},"
    );
    Ok(code)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}
