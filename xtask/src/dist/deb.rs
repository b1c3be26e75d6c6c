//! The Debian package. It needs nothing: the program is static.

use std::process::Command;

use super::tarball::man_pages;
use super::{Binary, Release, output};

pub(super) fn write(release: &Release, binary: &Binary) -> Result<(), String> {
    let Release { version, date, .. } = release;
    let tree = release.tree()?;
    let doc = "usr/share/doc/outlast";
    tree.program("usr/bin/outlast", &binary.path)?;
    man_pages(release, &tree, "usr/share/man/man1")?;
    let completions = [
        ("bash", "usr/share/bash-completion/completions/outlast"),
        ("zsh", "usr/share/zsh/vendor-completions/_outlast"),
        ("fish", "usr/share/fish/vendor_completions.d/outlast.fish"),
    ];
    for (shell, file) in completions {
        tree.file(file, release.ask(&["completions", shell])?)?;
    }
    tree.file(&format!("{doc}/copyright"), release.text("packages/deb/copyright")?)?;
    tree.file(&format!("{doc}/NEWS"), release.text("CHANGELOG.md")?)?;
    let mut written = Command::new("date");
    written.args(["--utc", "--rfc-email", "--date"]).arg(format!("@{date}")).env("LC_ALL", "C");
    let written = String::from_utf8_lossy(&output(&mut written)?).trim().to_owned();
    let changes = format!(
        "outlast ({version}) unstable; urgency=medium\n\n  * Version {version}; what changed is in NEWS.gz.\n\n -- The Outlast developers <hello@outlast.dev>  {written}\n"
    );
    tree.file(&format!("{doc}/changelog"), changes)?;
    tree.file("usr/share/lintian/overrides/outlast", release.text("packages/deb/lintian-overrides")?)?;
    compress(&tree)?;
    let names = tree.names()?;
    let sizes = names.iter().filter_map(|name| std::fs::metadata(tree.path().join(name)).ok());
    let kib: u64 = sizes.map(|file| file.len().div_ceil(1024)).sum();
    let control = release.text("packages/deb/control")?;
    let control = control.replace("@ARCH@", binary.platform.debian()).replace("@SIZE@", &kib.to_string());
    tree.file("DEBIAN/control", control)?;
    tree.file("DEBIAN/md5sums", md5sums(&tree, &names)?)?;
    tree.deb(&release.out.join(format!("outlast_{version}_{}.deb", binary.platform.debian())))
}

/// Debian wants man pages and the texts beside them compressed.
fn compress(tree: &super::Tree) -> Result<(), String> {
    for name in tree.names()? {
        if name.starts_with("usr/share/man/") || name.ends_with("/NEWS") || name.ends_with("/changelog") {
            output(Command::new("gzip").args(["--no-name", "-9"]).arg(tree.path().join(name)))?;
        }
    }
    Ok(())
}

fn md5sums(tree: &super::Tree, names: &[String]) -> Result<Vec<u8>, String> {
    output(Command::new("md5sum").args(names).current_dir(tree.path()))
}
