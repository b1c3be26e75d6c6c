//! Programs that rules name, and what other files have to do with them.
//!
//! A copy or a link of `rm` under another name is `rm`. But content alone is not an identity: `git-upload-pack` is the same file
//! as `git`, and all applets are busybox. So a file that has several names where it lies is judged by the name it is called
//! by, if that is one of them.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use outlast_pty::exec_guard::program::{Identity, Program};
use outlast_rules::loader::{HEADER_BYTES, MANY_IN_ONE, Shebang, shebang};
use rustix::io::pread;

use super::elf;

/// Where programs lie, besides the job's own `PATH`.
const SYSTEM_FOLDERS: &[&str] =
    &["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];
/// Where the dynamic loaders lie.
const LOADERS: &[&str] = &[
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-linux-armhf.so.3",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
];
/// More files than this are not remembered.
const MAX_REMEMBERED: usize = 4096;
/// How much of two files is compared at once.
const PIECE: usize = 64 << 10;
/// What has changed more recently is not remembered: clocks of file systems tick slowly, so it could change again, or another
/// file take its place, and look the same.
const SETTLED: Duration = Duration::from_secs(1);

/// What is known of a file.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The programs that rules name and that this is a copy of.
    pub(super) copy_of: Vec<String>,
    pub(super) loader: bool,
    pub(super) many_in_one: bool,
    pub(super) shebang: Option<Shebang>,
    /// What the kernel loads with it, if that is not one of the system's dynamic loaders.
    pub(super) interpreter: Option<String>,
}

#[derive(Debug)]
enum Kind {
    /// A rule names it.
    Named(String),
    Loader,
    ManyInOne,
}

#[derive(Debug)]
struct Known {
    kind: Kind,
    path: PathBuf,
    program: Program,
    /// Its names in the folder where it lies, once that was of interest.
    names: Option<HashSet<String>>,
}

/// Everything about a file but for its name, which is another in each call.
#[derive(Debug)]
struct Looked {
    same_as: Vec<usize>,
    shebang: Option<Shebang>,
    interpreter: Option<String>,
}

/// The programs that are looked for.
#[derive(Debug)]
pub(super) struct KnownPrograms {
    known: Vec<Known>,
    looked: HashMap<Identity, Arc<Looked>>,
    /// Since when programs are judged. Names that a program was given later do not count as its own.
    since: SystemTime,
}

impl KnownPrograms {
    /// Looks for these in `path` and where the system has its programs.
    pub(super) fn find<'a>(named: impl Iterator<Item = &'a str>, path: Option<&str>) -> Self {
        let mut folders: Vec<PathBuf> = path.map(std::env::split_paths).into_iter().flatten().collect();
        folders.extend(SYSTEM_FOLDERS.iter().map(PathBuf::from));
        let mut this = Self { known: Vec::new(), looked: HashMap::new(), since: SystemTime::now() };
        for name in named {
            let kind = |name: &str| Kind::Named(name.to_owned());
            if name.contains('/') {
                this.add(kind(name), Path::new(name));
            } else {
                folders.iter().for_each(|folder| this.add(kind(name), &folder.join(name)));
            }
        }
        for name in MANY_IN_ONE {
            folders.iter().for_each(|folder| this.add(Kind::ManyInOne, &folder.join(name)));
        }
        LOADERS.iter().for_each(|path| this.add(Kind::Loader, Path::new(path)));
        this
    }

    fn add(&mut self, kind: Kind, path: &Path) {
        let Ok(program) = Program::ours(path) else { return };
        let name = |kind: &Kind| match kind {
            Kind::Named(name) => Some(name.clone()),
            Kind::Loader | Kind::ManyInOne => None,
        };
        let is_known = |known: &Known| {
            known.program.identity == program.identity
                && std::mem::discriminant(&known.kind) == std::mem::discriminant(&kind)
                && name(&known.kind) == name(&kind)
        };
        if program.is_executable() && path.is_absolute() && !self.known.iter().any(is_known) {
            self.known.push(Known { kind, path: path.to_owned(), program, names: None });
        }
    }

    /// What a program is that lies under this name, and is called (`argv[0]`) by another or by the same.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn look(&mut self, program: &Program, name: &str, called: &str) -> io::Result<Found> {
        let looked = self.looked(program)?;
        let mut found = Found {
            shebang: looked.shebang.clone(),
            interpreter: looked.interpreter.clone(),
            ..Found::default()
        };
        for index in &looked.same_as {
            let known = &mut self.known[*index];
            match &known.kind {
                Kind::Loader => found.loader = true,
                Kind::ManyInOne => found.many_in_one = true,
                Kind::Named(of) if of != name => {
                    let names = known.names.get_or_insert_with(|| names_of(&known.path, self.since));
                    // Some choose by what they are called what they are.
                    if !names.contains(name) || called == of {
                        found.copy_of.push(of.clone());
                    }
                }
                Kind::Named(_) => {}
            }
        }
        Ok(found)
    }

    fn looked(&mut self, program: &Program) -> io::Result<Arc<Looked>> {
        if let Some(looked) = self.looked.get(&program.identity) {
            return Ok(Arc::clone(looked));
        }
        let file = program.open()?;
        let mut header = [0; HEADER_BYTES];
        let read = pread(&file, &mut header, 0)?;
        let mut same_as = Vec::new();
        for (index, known) in self.known.iter().enumerate() {
            let (theirs, ours) = (program.identity, known.program.identity);
            let is_same = (theirs.device, theirs.inode) == (ours.device, ours.inode)
                || (theirs.size == ours.size && same_content(&file, &known.program)?);
            if is_same {
                same_as.push(index);
            }
        }
        if self.looked.len() >= MAX_REMEMBERED {
            self.looked.clear();
        }
        let interpreter = elf::interpreter(&file, &header[..read])?;
        let interpreter = interpreter.filter(|path| !LOADERS.contains(&path.as_str()));
        let looked = Arc::new(Looked { same_as, shebang: shebang(&header[..read]), interpreter });
        if program.identity.is_older_than(SETTLED) {
            self.looked.insert(program.identity, Arc::clone(&looked));
        }
        Ok(looked)
    }
}

fn same_content(file: &OwnedFd, other: &Program) -> io::Result<bool> {
    let other = other.open()?;
    let (mut ours, mut theirs) = (vec![0; PIECE], vec![0; PIECE]);
    let mut at = 0;
    loop {
        let read = pread(file, &mut ours, at)?;
        if read != pread(&other, &mut theirs, at)? || ours[..read] != theirs[..read] {
            return Ok(false);
        }
        if read == 0 {
            return Ok(true);
        }
        at += read as u64;
    }
}

/// The names of a file in the folder where it really lies, links to it included, that it had before a time.
fn names_of(path: &Path, before: SystemTime) -> HashSet<String> {
    let Ok(real) = path.canonicalize() else { return HashSet::new() };
    let Ok(wanted) = real.metadata() else { return HashSet::new() };
    let folder = real.parent().and_then(|folder| std::fs::read_dir(folder).ok());
    let is_older = |entry: &std::fs::Metadata| {
        let changed = (entry.ctime(), u32::try_from(entry.ctime_nsec()).unwrap_or(0));
        let changed = Duration::new(u64::try_from(changed.0).unwrap_or(0), changed.1);
        SystemTime::UNIX_EPOCH + changed < before
    };
    folder
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            std::fs::metadata(entry.path())
                .is_ok_and(|found| (found.dev(), found.ino()) == (wanted.dev(), wanted.ino()))
                // Of the link itself: a new name of the file changes the file, a new link is new.
                && std::fs::symlink_metadata(entry.path()).is_ok_and(|link| is_older(&link))
        })
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_and_links_are_what_they_are_copies_of() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::copy("/bin/rm", at("copied")).unwrap();
        std::os::unix::fs::symlink("/bin/rm", at("linked")).unwrap();
        std::fs::copy("/bin/true", at("rm2")).unwrap();
        let mut programs = KnownPrograms::find(["rm"].into_iter(), None);
        let mut copy_of = |name: &str| {
            let program = Program::ours(&at(name)).unwrap();
            programs.look(&program, name, name).unwrap().copy_of
        };
        assert_eq!(copy_of("copied"), ["rm"]);
        assert_eq!(copy_of("linked"), ["rm"]);
        assert!(copy_of("rm2").is_empty());
    }

    #[test]
    fn a_file_with_several_names_is_judged_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::copy("/bin/true", at("tool")).unwrap();
        std::fs::hard_link(at("tool"), at("tool-helper")).unwrap();
        let mut programs = KnownPrograms::find(["tool"].into_iter(), folder.path().to_str());
        let mut copy_of = |name: &str, path: &Path, called: &str| {
            programs.look(&Program::ours(path).unwrap(), name, called).unwrap().copy_of
        };
        assert!(copy_of("tool-helper", &at("tool-helper"), "tool-helper").is_empty());
        assert_eq!(copy_of("tool-helper", &at("tool-helper"), "tool"), ["tool"]);
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(at("tool"), elsewhere.path().join("x")).unwrap();
        assert_eq!(copy_of("x", &elsewhere.path().join("x"), "x"), ["tool"]);
    }
}
