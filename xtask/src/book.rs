//! Builds the book of `docs` with mdBook, into `target/book`, and looks for links in it that lead nowhere.
//!
//! mdBook is taken from `PATH` if it is the wanted version, and else built once into `target/tools/mdbook`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::test::tools::workspace;

/// The version of mdBook. Its features that serve and watch a book are not needed.
const VERSION: &str = "0.5.4";

/// Builds the book and checks it.
///
/// # Errors
/// When it cannot be built, or when a link in it is dead.
pub(crate) fn run() -> Result<(), String> {
    let root = workspace();
    let mdbook = mdbook(&root)?;
    let built = Command::new(&mdbook).arg("build").arg(root.join("docs")).stderr(Stdio::piped()).output();
    let built = built.map_err(|error| format!("{}: {error}", mdbook.display()))?;
    let said = String::from_utf8_lossy(&built.stderr);
    if !built.status.success() || said.contains("WARN") || said.contains("ERROR") {
        return Err(format!("mdbook build docs: {said}"));
    }
    let book = root.join("target/book");
    let mut dead = Vec::new();
    let mut pages = Vec::new();
    collect_pages(&book, &mut pages)?;
    for page in &pages {
        let html = std::fs::read_to_string(page).map_err(|error| format!("{}: {error}", page.display()))?;
        let folder = page.parent().unwrap_or(&book);
        for target in html.split(" href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            let path = target.split('#').next().unwrap_or_default();
            let is_elsewhere = path.is_empty() || path.contains(':');
            if !is_elsewhere && !folder.join(path).exists() {
                dead.push(format!("{}: {target}", page.display()));
            }
        }
    }
    if !dead.is_empty() {
        return Err(format!("dead links in the book:\n{}", dead.join("\n")));
    }
    println!("{} pages in {}", pages.len(), book.display());
    Ok(())
}

/// All pages of the book but those that mdBook makes for itself: a page of all pages, and the one for missing ones.
fn collect_pages(folder: &Path, pages: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries.flatten().map(|entry| entry.path()) {
        let name = entry.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if entry.is_dir() {
            collect_pages(&entry, pages)?;
        } else if name.ends_with(".html") && name != "print.html" && name != "404.html" {
            pages.push(entry);
        }
    }
    Ok(())
}

/// The program, built first if it is missing.
pub(crate) fn mdbook(root: &Path) -> Result<PathBuf, String> {
    let tools = root.join("target/tools/mdbook");
    let built = tools.join("bin/mdbook");
    for candidate in [PathBuf::from("mdbook"), built.clone()] {
        let version = Command::new(&candidate).arg("--version").output();
        if version
            .is_ok_and(|said| String::from_utf8_lossy(&said.stdout).trim() == format!("mdbook v{VERSION}"))
        {
            return Ok(candidate);
        }
    }
    println!("building mdbook {VERSION} into {}", tools.display());
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["install", "mdbook", "--version", VERSION, "--locked", "--no-default-features", "--quiet"]);
    cargo.arg("--root").arg(&tools).stdin(Stdio::null());
    match cargo.status() {
        Ok(status) if status.success() => Ok(built),
        Ok(status) => Err(format!("cargo install mdbook: {status}")),
        Err(error) => Err(format!("cargo install mdbook: {error}")),
    }
}
