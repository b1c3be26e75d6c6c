//! Protected names: files below writable folders that programs outside of the sandbox run or obey later.
//!
//! A job sees them, and can't change, replace or make them. It is done with mounts in the job's own mount
//! namespace; where a name does not exist yet, a placeholder is made to mount over.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use outlast_pty::confine::{Mount, Namespaces, Placeholder};

pub(crate) use outlast_protocol::sandbox::{Git, Protect};

use super::Folders;

/// Folders that are protected, whether or not they exist.
pub(crate) const FOLDERS: &[&str] = &[
    ".git",
    ".outlast",
    ".vscode",
    ".idea",
    ".agents",
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
    ".opencode",
];
/// Files that are protected, whether or not they exist.
pub(crate) const FILES: &[&str] = &[
    ".mcp.json",
    ".envrc",
    ".gitconfig",
    ".gitmodules",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".ripgreprc",
];
/// What stays closed in a repository that may be written to.
const GIT_FOLDERS: &[&str] = &["hooks", "info", "modules"];
const GIT_FILES: &[&str] = &["config", "config.worktree"];
/// Names another folder whose configuration counts. Git refuses to work with one that it cannot read.
const COMMONDIR: &str = "commondir";

/// How far below a writable folder other repositories are looked for.
const MAX_DEPTH: usize = 5;
/// How many folders are looked at.
const MAX_FOLDERS: usize = 2_000;
/// In so many repositories further down, names that do not exist are protected too.
const MAX_REPOSITORIES: usize = 16;
/// Folders of installed packages and of build results: large, and nobody works in them.
const NOT_LOOKED_INTO: &[&str] = &["node_modules", "target", ".venv", "venv", "__pycache__"];

/// What is mounted for the protected names below these folders. Somebody works in some of them: `works_in`.
pub(crate) fn namespaces(folders: &Folders, works_in: [&Path; 2], git: Git) -> Namespaces {
    let mut found = Found { git, folders, namespaces: Namespaces::default(), repositories: 0 };
    let mut roots: Vec<&PathBuf> = folders.shared().collect();
    roots.sort();
    roots.dedup();
    for root in roots {
        found.names_in(root, true);
        for folder in works_in.iter().filter_map(|folder| folder.canonicalize().ok()) {
            found.on_the_way(root, &folder);
        }
        found.nested(root);
    }
    // Folders before what is in them: what is mounted later takes the mounts below it along.
    found.namespaces.mounts.sort_by_key(|mount| (mount.read_only, mount.target.components().count()));
    found.namespaces
}

struct Found<'a> {
    git: Git,
    folders: &'a Folders,
    namespaces: Namespaces,
    /// How many repositories were found further down.
    repositories: usize,
}

impl Found<'_> {
    /// Protects the names in one folder; if asked for, also those that do not exist.
    fn names_in(&mut self, folder: &Path, missing_too: bool) {
        let missing_too = missing_too && can_write(folder);
        for (names, is_folder) in [(FOLDERS, true), (FILES, false)] {
            for name in names {
                let path = folder.join(name);
                let is_missing = Placeholder::is_missing(&path);
                if *name == ".git" && !is_missing && path.is_dir() && !path.is_symlink() {
                    self.repository(&path);
                } else {
                    self.name(path, is_folder, missing_too);
                }
            }
        }
        self.linked_repository(&folder.join(".git"));
    }

    /// Protects one name.
    fn name(&mut self, path: PathBuf, is_folder: bool, missing_too: bool) {
        if Placeholder::is_missing(&path) {
            if !missing_too {
                return;
            }
            let placeholder = Placeholder::of(path.clone(), is_folder);
            if !self.namespaces.placeholders.contains(&placeholder) {
                self.namespaces.placeholders.push(placeholder);
            }
        }
        // What a symlink leads to may be changed in its own place.
        if path.is_symlink()
            && let Ok(target) = path.canonicalize()
            && self.is_writable(&target)
        {
            self.mount(target, true);
        }
        self.mount(path, true);
    }

    /// Protects a repository: all of it, or what its configuration and its hooks are made of.
    fn repository(&mut self, path: &Path) {
        match self.git {
            Git::Read => self.mount(path.to_owned(), true),
            Git::Write => {
                // Mounted over itself it can't be moved away.
                self.mount(path.to_owned(), false);
                self.repository_parts(path);
                for worktree in entries(&path.join("worktrees")) {
                    self.repository_parts(&path.join("worktrees").join(worktree));
                }
            }
        }
    }

    fn repository_parts(&mut self, path: &Path) {
        let can_write = can_write(path);
        for (names, is_folder) in [(GIT_FOLDERS, true), (GIT_FILES, false)] {
            for name in names {
                self.name(path.join(name), is_folder, can_write);
            }
        }
        let commondir = path.join(COMMONDIR);
        let exists = !Placeholder::is_missing(&commondir);
        if !exists && can_write {
            self.namespaces.placeholders.push(Placeholder::with_dot(commondir.clone()));
        }
        if exists || can_write {
            self.mount(commondir, true);
        }
    }

    /// A worktree or a submodule: `.git` is a file that names the repository.
    fn linked_repository(&mut self, path: &Path) {
        let Ok(text) = small_file(path) else { return };
        let Some(named) = text.trim().strip_prefix("gitdir:") else { return };
        let base = path.parent().unwrap_or(path);
        let Ok(repository) = base.join(named.trim()).canonicalize() else { return };
        let common = std::fs::read_to_string(repository.join(COMMONDIR)).ok();
        let common = common.and_then(|common| repository.join(common.trim()).canonicalize().ok());
        for path in [Some(repository), common].into_iter().flatten() {
            if self.is_writable(&path) && !self.is_mounted(&path) {
                self.repository(&path);
            }
        }
    }

    /// Protects the names in every folder between a root and one that is worked in, and keeps these folders where they are.
    fn on_the_way(&mut self, root: &Path, folder: &Path) {
        if !folder.starts_with(root) {
            return;
        }
        self.pin(root, folder);
        let mut between: Vec<&Path> = folder.ancestors().take_while(|above| *above != root).collect();
        between.reverse();
        for folder in between {
            self.names_in(folder, true);
        }
    }

    /// Protects what exists in the folders below, and in repositories also what does not.
    fn nested(&mut self, root: &Path) {
        let mut queue = VecDeque::from([(root.to_owned(), 0)]);
        let mut seen = 0;
        while let Some((folder, depth)) = queue.pop_front() {
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            seen += 1;
            if seen > MAX_FOLDERS {
                return;
            }
            let (mut holds_one, mut is_repository) = (false, false);
            for entry in entries.flatten() {
                let name = entry.file_name();
                let is = |names: &[&str]| names.iter().any(|known| name == **known);
                if is(FOLDERS) || is(FILES) {
                    holds_one = true;
                    is_repository |= name == ".git" && !Placeholder::is_missing(&entry.path());
                } else if depth < MAX_DEPTH
                    && !is(NOT_LOOKED_INTO)
                    && entry.file_type().is_ok_and(|kind| kind.is_dir())
                {
                    queue.push_back((entry.path(), depth + 1));
                }
            }
            if is_repository && depth > 0 {
                self.pin(root, &folder);
                self.repositories += 1;
            }
            if holds_one && depth > 0 {
                self.names_in(&folder, is_repository && self.repositories <= MAX_REPOSITORIES);
            }
        }
    }

    /// Keeps a repository where it is: mounted over itself, neither it nor a folder above it can be moved away, and another be
    /// put in its place.
    fn pin(&mut self, root: &Path, repository: &Path) {
        let mut above: Vec<&Path> = repository.ancestors().take_while(|above| *above != root).collect();
        above.reverse();
        for folder in above {
            self.mount(folder.to_owned(), false);
        }
    }

    fn is_writable(&self, path: &Path) -> bool {
        self.folders.shared().any(|root| path.starts_with(root))
    }

    fn is_mounted(&self, path: &Path) -> bool {
        self.namespaces.mounts.iter().any(|mount| mount.read_only && path.starts_with(&mount.target))
    }

    fn mount(&mut self, path: PathBuf, read_only: bool) {
        if !self.namespaces.mounts.iter().any(|mount| mount.target == path) {
            self.namespaces.mounts.push(Mount { source: path.clone(), target: path, read_only });
        }
    }
}

/// The first bytes of a small regular file.
fn small_file(path: &Path) -> std::io::Result<String> {
    let found = std::fs::symlink_metadata(path)?;
    if !found.is_file() || found.len() > 4096 {
        return Err(std::io::ErrorKind::InvalidData.into());
    }
    std::fs::read_to_string(path)
}

fn entries(folder: &Path) -> Vec<std::ffi::OsString> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect()
}

/// Whether something could be made there, by us and so by the job.
fn can_write(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}
