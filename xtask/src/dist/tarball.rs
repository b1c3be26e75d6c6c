//! The tarball: the program, man pages, completions, licences.

use super::tree::Tree;
use super::{Binary, Release};

/// Which file of completions belongs to which shell.
pub(super) const COMPLETIONS: [(&str, &str); 4] =
    [("bash", "outlast.bash"), ("zsh", "_outlast"), ("fish", "outlast.fish"), ("elvish", "outlast.elv")];

/// Texts that every package has.
pub(super) const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

pub(super) fn write(release: &Release, binary: &Binary) -> Result<(), String> {
    let name = name(release, binary);
    let tree = release.tree()?;
    tree.program(&format!("{name}/bin/outlast"), &binary.path)?;
    man_pages(release, &tree, &format!("{name}/share/man/man1"))?;
    for (shell, file) in COMPLETIONS {
        tree.file(&format!("{name}/share/completions/{file}"), release.ask(&["completions", shell])?)?;
    }
    for file in LICENCES.iter().chain(&["README.md", "CHANGELOG.md"]) {
        tree.file(&format!("{name}/{file}"), release.text(file)?)?;
    }
    tree.tar(&release.out.join(format!("{name}.tar.gz")), &name)
}

pub(super) fn name(release: &Release, binary: &Binary) -> String {
    format!("outlast-{}-{}-linux", release.version, binary.platform.machine())
}

pub(super) fn man_pages(release: &Release, tree: &Tree, folder: &str) -> Result<(), String> {
    let written = tempfile::tempdir().map_err(|error| error.to_string())?;
    release.ask(&["man", &written.path().to_string_lossy()])?;
    let pages = std::fs::read_dir(written.path()).map_err(|error| error.to_string())?;
    for page in pages.flatten() {
        let text = std::fs::read(page.path()).map_err(|error| error.to_string())?;
        tree.file(&format!("{folder}/{}", page.file_name().to_string_lossy()), text)?;
    }
    Ok(())
}
