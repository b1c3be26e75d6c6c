//! A tree of files that becomes an archive. The same files give the same bytes: sorted, dated, of nobody in particular.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::output;

const PLAIN: u32 = 0o644;
const PROGRAM: u32 = 0o755;

pub(super) struct Tree {
    folder: tempfile::TempDir,
    date: u64,
    /// Pack fast, not small.
    fast: bool,
}

impl Tree {
    pub(super) fn new(date: u64, fast: bool) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("outlast-dist-").tempdir();
        let folder = folder.map_err(|error| error.to_string())?;
        Ok(Self { folder, date, fast })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Adds a file.
    pub(super) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<(), String> {
        self.add(name, PLAIN, |to| std::fs::write(to, bytes))
    }

    /// Adds a program of this text.
    pub(super) fn script(&self, name: &str, text: &str) -> Result<(), String> {
        self.add(name, PROGRAM, |to| std::fs::write(to, text))
    }

    /// Adds a copy of a program.
    pub(super) fn program(&self, name: &str, from: &Path) -> Result<(), String> {
        self.add(name, PROGRAM, |to| std::fs::copy(from, to).map(drop))
    }

    fn add(
        &self,
        name: &str,
        mode: u32,
        write: impl FnOnce(&Path) -> std::io::Result<()>,
    ) -> Result<(), String> {
        let to = self.path().join(name);
        let made = match to.parent() {
            Some(folder) => std::fs::create_dir_all(folder),
            None => Ok(()),
        };
        let done = made.and_then(|()| write(&to));
        let done = done.and_then(|()| std::fs::set_permissions(&to, PermissionsExt::from_mode(mode)));
        done.map_err(|error| format!("{}: {error}", to.display()))
    }

    /// The names of all files, sorted.
    pub(super) fn names(&self) -> Result<Vec<String>, String> {
        let mut names = Vec::new();
        let mut left = vec![self.path().to_owned()];
        while let Some(folder) = left.pop() {
            let entries =
                std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            for path in entries.flatten().map(|entry| entry.path()) {
                if path.is_dir() {
                    left.push(path);
                } else if let Ok(name) = path.strip_prefix(self.path()) {
                    names.push(name.to_string_lossy().into_owned());
                }
            }
        }
        names.sort();
        Ok(names)
    }

    /// Gives every file and folder the date and the modes that they have in all packages.
    fn settle(&self) -> Result<(), String> {
        let mut folders = Command::new("find");
        folders.arg(self.path()).args(["-type", "d", "-exec", "chmod", "755", "{}", "+"]);
        output(&mut folders)?;
        let mut dates = Command::new("find");
        dates.arg(self.path()).args(["-depth", "-exec", "touch", "-h", "-d"]);
        dates.arg(format!("@{}", self.date)).args(["{}", "+"]);
        output(&mut dates).map(drop)
    }

    /// Writes what is below `top` as a tarball.
    pub(super) fn tar(&self, to: &Path, top: &str) -> Result<(), String> {
        self.settle()?;
        let level = if self.fast { "-1" } else { "-9" };
        let mut tar = Command::new("tar");
        tar.arg("--create").arg("--file").arg(to).arg("--directory").arg(self.path());
        tar.args(["--format=ustar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
        tar.arg(format!("--mtime=@{}", self.date)).arg("--use-compress-program");
        // Without its name and date.
        tar.arg(format!("gzip --no-name {level}")).arg(top);
        output(&mut tar).map(drop)
    }

    /// Writes all of it as a zip file; `last` is what must come last.
    pub(super) fn zip(&self, to: &Path, last: &str) -> Result<(), String> {
        self.settle()?;
        let (end, names): (Vec<String>, Vec<String>) =
            self.names()?.into_iter().partition(|name| name == last);
        let level = if self.fast { "-1" } else { "-9" };
        let mut zip = Command::new("zip");
        zip.args(["-q", "-X", level]).arg(to).args(names).args(end);
        // The dates in a zip file are local ones.
        zip.env("TZ", "UTC").current_dir(self.path());
        output(&mut zip).map(drop)
    }

    /// Writes all of it as a Debian package.
    pub(super) fn deb(&self, to: &Path) -> Result<(), String> {
        self.settle()?;
        let packing: &[&str] = if self.fast { &["-Zgzip", "-z1"] } else { &["-Zxz"] };
        let mut deb = Command::new("dpkg-deb");
        deb.arg("--root-owner-group").args(packing).arg("--build").arg(self.path()).arg(to);
        deb.env("SOURCE_DATE_EPOCH", self.date.to_string());
        output(&mut deb).map(drop)
    }
}

/// The SHA-256 of a file.
pub(super) fn sum(path: &Path) -> Result<[u8; 32], String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let digest = ring::digest::digest(&ring::digest::SHA256, &bytes);
    digest.as_ref().try_into().map_err(|_| "a sum of another length".to_owned())
}

/// As `sha256sum` writes it.
pub(super) fn hex(sum: [u8; 32]) -> String {
    sum.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// As a wheel's `RECORD` writes it.
pub(super) fn record_line(name: &str, path: &Path) -> Result<String, String> {
    let size = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    Ok(format!("{name},sha256={},{size}\n", URL_SAFE_NO_PAD.encode(sum(path)?)))
}

/// Where packages of a kind are in a folder.
pub(super) fn file_ending(folder: &Path, end: &str) -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let found = entries.flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = found.filter(|path| path.to_string_lossy().ends_with(end)).collect();
    found.sort();
    found.into_iter().next().ok_or(format!("no *{end} in {}", folder.display()))
}
