//! `cargo xtask dist`: everything that is published, into `target/dist`: a static binary for each platform in tarballs, a Debian
//! package, npm packages, Python wheels, `.mcpb` bundles, and beside them sums, a list of all parts, a Homebrew formula and a shell installer.
//!
//! The version is that of the workspace, the time that of the last commit (or `SOURCE_DATE_EPOCH`), so that the same
//! source gives the same bytes. `--check` installs each of them in an empty prefix, as a user would, and tries it.

mod agents;
pub(crate) mod binary;
mod check;
mod deb;
mod emulated;
mod mcpb;
mod npm;
mod sbom;
mod scratch_root;
mod tarball;
mod texts;
mod tree;
mod wheel;

use std::path::{Path, PathBuf};
use std::process::Command;

use tree::Tree;

use crate::choice::Choice;
use crate::test::tools::workspace;

/// A kind of machine that packages are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Platform {
    X64,
    Arm64,
}

impl Platform {
    const ALL: [Platform; 2] = [Platform::X64, Platform::Arm64];

    /// As Rust and `uname -m` call it.
    fn machine(self) -> &'static str {
        match self {
            Platform::X64 => "x86_64",
            Platform::Arm64 => "aarch64",
        }
    }

    /// As Node calls it.
    fn node(self) -> &'static str {
        match self {
            Platform::X64 => "x64",
            Platform::Arm64 => "arm64",
        }
    }

    /// As Debian calls it.
    fn debian(self) -> &'static str {
        match self {
            Platform::X64 => "amd64",
            Platform::Arm64 => "arm64",
        }
    }

    fn target(self) -> String {
        format!("{}-unknown-linux-musl", self.machine())
    }

    fn is_here(self) -> bool {
        self.machine() == std::env::consts::ARCH
    }
}

/// A program for a platform.
struct Binary {
    platform: Platform,
    path: PathBuf,
}

/// What all packages are made from.
pub(crate) struct Release {
    root: PathBuf,
    /// Where packages go.
    out: PathBuf,
    version: String,
    /// Seconds since 1970 that all files are dated with.
    date: u64,
    binaries: Vec<Binary>,
    /// A program that runs on this machine, to have man pages and completions printed.
    program: PathBuf,
    /// Whether the binary is the debug build, which is only good to try the packages.
    is_debug: bool,
}

/// # Errors
/// What cannot be built, or does not work once it is installed.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let options = ["--check", "--debug-binary", "--no-build", "--twice"];
    let known = Platform::ALL.map(Platform::machine);
    let choice = Choice::read(words, &options, "platform", &known)?;
    let release = Release::begin(&choice)?;
    release.pack()?;
    if choice.has("--check") {
        check::run(&release)?;
        if !release.is_debug {
            release.note_checked()?;
        }
    }
    Ok(())
}

/// Where the sums of those packages are noted that were installed and tried.
pub(crate) fn checked_file(root: &Path) -> PathBuf {
    root.join("target/dist-checked")
}

impl Release {
    fn begin(choice: &Choice<'_>) -> Result<Self, String> {
        let root = workspace();
        let is_debug = choice.has("--debug-binary");
        let out = root.join(if is_debug { "target/dist-debug" } else { "target/dist" });
        empty(&out)?;
        let mut release = Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            date: date(&root)?,
            binaries: Vec::new(),
            program: root.join("target/debug/outlast"),
            root,
            out,
            is_debug,
        };
        for platform in Platform::ALL.into_iter().filter(|platform| choice.wants(platform.machine())) {
            if is_debug && !platform.is_here() {
                continue;
            }
            let path = if is_debug {
                binary::stripped(&release)?
            } else {
                let how = match (choice.has("--no-build"), choice.has("--twice")) {
                    (true, _) => binary::Build::No,
                    (false, false) => binary::Build::Once,
                    (false, true) => binary::Build::Twice,
                };
                binary::build(&release, platform, how)?
            };
            if platform.is_here() {
                release.program.clone_from(&path);
            }
            release.binaries.push(Binary { platform, path });
        }
        Ok(release)
    }

    fn pack(&self) -> Result<(), String> {
        for binary in &self.binaries {
            tarball::write(self, binary)?;
            deb::write(self, binary)?;
            npm::write_binary(self, binary)?;
            wheel::write(self, binary)?;
            mcpb::write(self, binary)?;
        }
        npm::write_launcher(self)?;
        sbom::write(self)?;
        agents::write(self)?;
        texts::write(self)?;
        println!("{}", self.out.display());
        for name in self.files()? {
            let size = std::fs::metadata(self.out.join(&name)).map_or(0, |file| file.len());
            println!("{size:>12}  {name}");
        }
        Ok(())
    }

    /// Notes that these very packages work, for `cargo xtask release`.
    fn note_checked(&self) -> Result<(), String> {
        let (sums, noted) = (self.out.join(texts::SUMS), checked_file(&self.root));
        std::fs::copy(&sums, &noted).map(drop).map_err(|error| format!("{}: {error}", noted.display()))
    }

    /// The names of the files that were made so far, sorted.
    fn files(&self) -> Result<Vec<String>, String> {
        let entries =
            std::fs::read_dir(&self.out).map_err(|error| format!("{}: {error}", self.out.display()))?;
        let files = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
        let mut names: Vec<String> =
            files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        Ok(names)
    }

    /// A new tree of files for a package.
    fn tree(&self) -> Result<Tree, String> {
        Tree::new(self.date, self.is_debug)
    }

    /// The text of a file of the repository, with `@VERSION@` replaced.
    fn text(&self, path: &str) -> Result<String, String> {
        let text =
            std::fs::read_to_string(self.root.join(path)).map_err(|error| format!("{path}: {error}"))?;
        Ok(text.replace("@VERSION@", &self.version))
    }

    /// Runs the program itself, for what it prints.
    fn ask(&self, words: &[&str]) -> Result<Vec<u8>, String> {
        let mut command = Command::new(&self.program);
        command.args(words);
        output(&mut command)
    }
}

/// When the source was last changed.
fn date(root: &Path) -> Result<u64, String> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => {
            let mut git = Command::new("git");
            git.args(["log", "-1", "--format=%ct"]).current_dir(root);
            String::from_utf8_lossy(&output(&mut git)?).into_owned()
        }
    };
    text.trim().parse().map_err(|error| format!("SOURCE_DATE_EPOCH: {error}"))
}

/// Makes a folder that has nothing in it.
fn empty(folder: &Path) -> Result<(), String> {
    let say = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(say)?;
    }
    std::fs::create_dir_all(folder).map_err(say)
}

/// Runs a command to its end and returns what it printed; what it said of errors is part of ours.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>, String> {
    let ran = command.stdin(std::process::Stdio::null()).output();
    let ran = ran.map_err(|error| format!("{command:?}: {error}"))?;
    if ran.status.success() {
        return Ok(ran.stdout);
    }
    let said = String::from_utf8_lossy(&ran.stderr).into_owned() + &String::from_utf8_lossy(&ran.stdout);
    Err(format!("{command:?}: {}\n{}", ran.status, said.trim()))
}
