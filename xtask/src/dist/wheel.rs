//! The Python wheels: the program as a script, and the client in pure Python beside it. A wheel is a zip file with a list of
//! sums; the program is static, so that one wheel serves glibc and musl.

use super::agents::SERVER_NAME;
use super::tarball::LICENCES;
use super::tree::record_line;
use super::{Binary, Release};

/// The client library.
const SOURCE: &str = "sdk/python";

pub(super) fn write(release: &Release, binary: &Binary) -> Result<(), String> {
    let version = &release.version;
    let machine = binary.platform.machine();
    let platforms =
        ["manylinux_2_17", "manylinux2014", "musllinux_1_1"].map(|system| format!("{system}_{machine}"));
    let info = format!("outlast-{version}.dist-info");
    let tree = release.tree()?;
    tree.program(&format!("outlast-{version}.data/scripts/outlast"), &binary.path)?;
    package(release, &tree)?;
    for file in LICENCES {
        tree.file(&format!("{info}/licenses/{file}"), release.text(file)?)?;
    }
    let about = release.text(&format!("{SOURCE}/README.md"))?;
    let metadata = format!(
        "Metadata-Version: 2.4\nName: outlast\nVersion: {version}\nSummary: A shell runtime for AI agents: the program, and a client for it\nHome-page: https://outlast.dev\nAuthor: The Outlast developers\nLicense-Expression: MIT OR Apache-2.0\nLicense-File: LICENSE-APACHE\nLicense-File: LICENSE-MIT\nRequires-Python: >=3.9\nDescription-Content-Type: text/markdown\n\n{about}\nmcp-name: {SERVER_NAME}\n"
    );
    tree.file(&format!("{info}/METADATA"), metadata)?;
    // Inspect finds its sandbox providers by this.
    tree.file(&format!("{info}/entry_points.txt"), "[inspect_ai]\noutlast = outlast.inspect\n")?;
    let tags =
        platforms.iter().fold(String::new(), |tags, platform| tags + &format!("Tag: py3-none-{platform}\n"));
    tree.file(
        &format!("{info}/WHEEL"),
        format!("Wheel-Version: 1.0\nGenerator: outlast xtask\nRoot-Is-Purelib: false\n{tags}"),
    )?;
    let record = format!("{info}/RECORD");
    let mut sums = String::new();
    for name in tree.names()? {
        sums += &record_line(&name, &tree.path().join(&name))?;
    }
    tree.file(&record, format!("{sums}{record},,\n"))?;
    let name = format!("outlast-{version}-py3-none-{}.whl", platforms.join("."));
    tree.zip(&release.out.join(name), &record)
}

/// The files of the client library.
fn package(release: &Release, tree: &super::Tree) -> Result<(), String> {
    let mut left = vec![format!("{SOURCE}/outlast")];
    while let Some(folder) = left.pop() {
        let entries =
            std::fs::read_dir(release.root.join(&folder)).map_err(|error| format!("{folder}: {error}"))?;
        for entry in entries.flatten() {
            let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                left.extend((!name.ends_with("__pycache__")).then_some(name));
            } else if let Some(inside) = name.strip_prefix("sdk/python/") {
                tree.file(inside, release.text(&name)?)?;
            }
        }
    }
    Ok(())
}
