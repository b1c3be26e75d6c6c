//! Files that rules close to a job: found when it starts, and closed with mounts that only the job sees.
//!
//! A rule about a name counts below the folders that the job works in; one about a path counts there. What does not exist
//! yet is closed too, by a placeholder, where the rule has no wildcard. If more files or folders would have to be looked at
//! than is reasonable, that is an error: a rule is enforced, or the job does not start.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use outlast_pty::confine::{Closed, Mount, Namespaces, Placeholder};
use outlast_rules::files::{Access, FileRule, has_wildcard, matches};

use crate::failure::Failure;

/// How far below a folder a name is looked for.
const MAX_DEPTH: usize = 12;
/// How many folders are looked at.
const MAX_FOLDERS: usize = 20_000;
/// How many files can be closed.
const MAX_FILES: usize = 1_000;
/// Folders of installed packages, build results and repositories' own files: large, and no place for what people write.
const NOT_LOOKED_INTO: &[&str] = &["node_modules", "target", ".venv", "venv", "__pycache__", ".git"];

/// Whether files can be closed to a job on this machine, and why not. It is tried once.
///
/// # Errors
/// The reason, in words.
pub fn can_close_files() -> Result<(), String> {
    static KNOWN: OnceLock<Result<(), String>> = OnceLock::new();
    let attempt = || outlast_pty::confine::can_enclose().map_err(|error| format!("the system says: {error}"));
    KNOWN.get_or_init(attempt).clone()
}

/// What is mounted to close the files of these rules. `folders` are those that the job works in.
///
/// # Errors
/// A usage failure if that can't be done.
pub(crate) fn namespaces(rules: &[FileRule], folders: &[PathBuf]) -> Result<Namespaces, Failure> {
    let mut found = Namespaces { placeholders: placeholders(rules, folders), ..Namespaces::default() };
    let missing: Vec<PathBuf> = found.placeholders.iter().map(|missing| missing.path.clone()).collect();
    let mut closed: BTreeSet<(PathBuf, bool)> = BTreeSet::new();
    for rule in rules {
        for path in files_of(rule, folders)?
            .into_iter()
            .chain(missing.iter().filter(|path| is_of(rule, path)).cloned())
        {
            // What a symlink leads to is what must not be read.
            let path = path.canonicalize().unwrap_or(path);
            match rule.access {
                Access::Read => {
                    closed.insert((path.clone(), path.is_dir()));
                }
                Access::Write if found.mounts.iter().any(|mount| mount.target == path) => {}
                Access::Write => {
                    found.mounts.push(Mount { source: path.clone(), target: path, read_only: true });
                }
            }
        }
        if closed.len() + found.mounts.len() > MAX_FILES {
            return Err(too_many(rule, &format!("it is about more than {MAX_FILES} files")));
        }
    }
    // What is in a closed folder is closed with it.
    let is_below = |path: &Path| {
        closed.iter().any(|(folder, is_folder)| *is_folder && path.starts_with(folder) && path != folder)
    };
    found.closed = closed
        .iter()
        .filter(|(path, _)| !is_below(path))
        .map(|(path, is_folder)| Closed { path: path.clone(), is_folder: *is_folder })
        .collect();
    found.mounts.retain(|mount| !closed.iter().any(|(path, _)| mount.target.starts_with(path)));
    Ok(found)
}

/// What must be made first, because it does not exist.
pub(crate) fn placeholders(rules: &[FileRule], folders: &[PathBuf]) -> Vec<Placeholder> {
    let mut missing: BTreeSet<PathBuf> = BTreeSet::new();
    for rule in rules.iter().filter(|rule| rule.is_literal()) {
        let paths: Vec<PathBuf> = if rule.is_a_name() {
            bases(rule, folders).map(|folder| folder.join(&rule.pattern)).collect()
        } else {
            vec![rule.pattern.clone().into()]
        };
        let can_be_made = |path: &PathBuf| {
            Placeholder::is_missing(path)
                && path.parent().is_some_and(|parent| {
                    parent.is_dir() && rustix::fs::access(parent, rustix::fs::Access::WRITE_OK).is_ok()
                })
        };
        missing.extend(paths.into_iter().filter(can_be_made));
    }
    missing.into_iter().map(|path| Placeholder::of(path, false)).collect()
}

/// The folders below which a rule about a name counts.
fn bases<'a>(rule: &'a FileRule, folders: &'a [PathBuf]) -> impl Iterator<Item = &'a PathBuf> {
    folders.iter().chain(&rule.below)
}

fn is_of(rule: &FileRule, path: &Path) -> bool {
    if rule.is_a_name() {
        path.file_name().is_some_and(|name| matches(&rule.pattern, &name.to_string_lossy()))
    } else {
        matches(&rule.pattern, &path.to_string_lossy())
    }
}

/// The files of a rule that exist.
fn files_of(rule: &FileRule, folders: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    if !rule.is_a_name() {
        return Ok(expand(&rule.pattern));
    }
    let mut files = Vec::new();
    let mut looked: Vec<&PathBuf> = Vec::new();
    let mut bases: Vec<&PathBuf> = bases(rule, folders).collect();
    bases.sort();
    for base in bases {
        // A folder below one that was looked at was looked at with it.
        if looked.iter().any(|above| base.starts_with(above)) {
            continue;
        }
        looked.push(base);
        below(rule, base, &mut files)?;
    }
    Ok(files)
}

/// The files of a name below a folder.
fn below(rule: &FileRule, base: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let mut queue = vec![(base.to_owned(), 0)];
    let mut seen = 0;
    while let Some((folder, depth)) = queue.pop() {
        // What we may not read, the job may not read either.
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        seen += 1;
        if seen > MAX_FOLDERS {
            let why = format!("there are more than {MAX_FOLDERS} folders below {}", base.display());
            return Err(too_many(rule, &why));
        }
        for entry in entries.flatten() {
            let name = entry.file_name();
            if matches(&rule.pattern, &name.to_string_lossy()) {
                if !Placeholder::is_missing(&entry.path()) {
                    files.push(entry.path());
                }
            } else if depth < MAX_DEPTH
                && !NOT_LOOKED_INTO.iter().any(|known| name == **known)
                && entry.file_type().is_ok_and(|kind| kind.is_dir())
            {
                queue.push((entry.path(), depth + 1));
            }
        }
    }
    Ok(())
}

/// The paths of a pattern that exist, part by part.
fn expand(pattern: &str) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("/")];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        found = found
            .iter()
            .flat_map(|folder| {
                if !has_wildcard(part) {
                    return vec![folder.join(part)];
                }
                let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
                entries
                    .filter(|entry| matches(part, &entry.file_name().to_string_lossy()))
                    .map(|entry| entry.path())
                    .collect()
            })
            .take(MAX_FILES + 1)
            .collect();
    }
    found.retain(|path| !Placeholder::is_missing(path));
    found
}

fn too_many(rule: &FileRule, why: &str) -> Failure {
    Failure::usage(format!("the rule about {} ({}) can't be enforced: {why}", rule.pattern, rule.place))
        .hint("start the job in a narrower folder, or name the file with its path in the policy")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(pattern: &str, access: Access) -> FileRule {
        FileRule { pattern: pattern.into(), access, below: None, place: "policy.toml:1".into() }
    }

    #[test]
    fn names_are_found_in_every_folder_and_missing_ones_get_a_placeholder() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for folder in ["a/b", "node_modules/x", "keys"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        for file in ["a/.env", "a/b/.env", "node_modules/x/.env", "keys/x.pem", "a/real"] {
            std::fs::write(root.join(file), "x").unwrap();
        }
        std::os::unix::fs::symlink(root.join("a/real"), root.join("keys/link.pem")).unwrap();
        let rules = [rule(".env", Access::Read), rule("*.pem", Access::Read)];
        let found = namespaces(&rules, std::slice::from_ref(&root)).unwrap();
        let closed: Vec<PathBuf> = found.closed.iter().map(|closed| closed.path.clone()).collect();
        for file in ["a/.env", "a/b/.env", "keys/x.pem", "a/real", ".env"] {
            assert!(closed.contains(&root.join(file)), "{file}: {closed:?}");
        }
        assert_eq!(closed.len(), 5, "{closed:?}");
        assert_eq!(found.placeholders.len(), 1);
        let path = format!("{}/*/x.pem", root.display());
        let found = namespaces(&[rule(&path, Access::Write)], &[]).unwrap();
        assert_eq!(found.mounts.len(), 1);
        assert!(found.mounts[0].read_only && found.mounts[0].target == root.join("keys/x.pem"));
    }

    #[test]
    fn a_closed_folder_closes_what_is_in_it() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("secret/deep")).unwrap();
        std::fs::write(root.join("secret/deep/.env"), "x").unwrap();
        let rules = [rule("secret", Access::Read), rule(".env", Access::Read), rule(".env", Access::Write)];
        let found = namespaces(&rules, std::slice::from_ref(&root)).unwrap();
        let folder = Closed { path: root.join("secret"), is_folder: true };
        assert!(found.closed.contains(&folder), "{found:?}");
        assert!(!found.closed.iter().any(|closed| closed.path.ends_with("deep/.env")), "{found:?}");
    }
}
