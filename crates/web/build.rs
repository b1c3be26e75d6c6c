//! Embeds xterm.js, if `cargo xtask assets` has fetched it: each file only if it is the one that `npm/integrity` names. There is no
//! network in a build. With `OUTLAST_REQUIRE_ASSETS=1`, as in CI and for packages, a build without them fails.

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
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
    let fetched = own.join("../../target/assets/node_modules");
    println!("cargo::rerun-if-changed={}", own.join("../../target/assets/package-lock.json").display());
    let list = read(&own.join("npm/integrity"))?;
    let list = String::from_utf8_lossy(&list).into_owned();
    let is_there = fetched.is_dir();
    if !is_there && std::env::var_os("OUTLAST_REQUIRE_ASSETS").is_some_and(|value| value == "1") {
        return Err("xterm.js is not there: run cargo xtask assets first".into());
    }
    let mut code = String::from("const XTERM: &[Asset] = &[\n");
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
        let copy = out.join(name);
        std::fs::write(&copy, &bytes).map_err(|error| format!("{}: {error}", copy.display()))?;
        let _ = writeln!(code, "    Asset {{ path: \"/xterm/{name}\", bytes: include_bytes!({copy:?}) }},");
    }
    code.push_str("];\n");
    let to = out.join("xterm.rs");
    std::fs::write(&to, code).map_err(|error| format!("{}: {error}", to.display()))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}
