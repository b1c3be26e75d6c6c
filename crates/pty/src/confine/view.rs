//! A view of the file system for one command, in its own mount namespace: all of it read-only but what it may change, and of
//! some folders, such as the user's home, nothing but what it may use.
//!
//! Landlock decides what is read and written. It does not see changes of modes, owners, times and extended attributes, nor who
//! watches a folder or looks for names in it.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::View;
use super::enclosure::{Tree, make_read_only, mount};

/// A view, ready to be made by a child that only makes system calls.
#[derive(Debug)]
pub(super) struct PreparedView {
    writable: Vec<Kept>,
    readable: Vec<Kept>,
    hidden: Vec<CString>,
    /// What is made in the empty folders to mount on: folders above others first.
    points: Vec<(CString, Point)>,
    /// The same as paths.
    shown: Vec<PathBuf>,
    hidden_paths: Vec<PathBuf>,
}

/// Something that is still there, and where it is held while what is above it is hidden.
#[derive(Debug)]
struct Kept {
    path: CString,
    tree: Tree,
}

/// What is made to mount on.
#[derive(Debug)]
enum Point {
    Folder,
    File,
    /// A link like the one that was there.
    Link(CString),
}

impl PreparedView {
    pub(super) fn new(view: &View) -> io::Result<Self> {
        // A device can be written to wherever it is mounted.
        let is_file = |path: &Path| path.is_dir() || path.is_file();
        let writable = outermost(view.writable.iter().filter(|path| is_file(path)).cloned().collect());
        // What can be changed altogether hides nothing.
        let hidden = view.hidden.iter().filter(|folder| folder.is_dir());
        let hidden = hidden.filter(|folder| !writable.iter().any(|path| folder.starts_with(path)));
        let hidden = outermost(hidden.cloned().collect());
        let is_hidden = |path: &Path| hidden.iter().any(|folder| path.starts_with(folder) && path != folder);
        let mut links = BTreeMap::new();
        let mut readable = Vec::new();
        for path in view.readable.iter().filter(|path| is_hidden(path)) {
            match std::fs::read_link(path) {
                Ok(target) => {
                    links.insert(path.clone(), Point::Link(c(&target)?));
                    readable.extend(path.canonicalize().ok().filter(|path| is_hidden(path)));
                }
                Err(_) => readable.push(path.clone()),
            }
        }
        readable.retain(|path| is_file(path) && !writable.iter().any(|above| path.starts_with(above)));
        let readable = outermost(readable);
        links.retain(|link, _| !readable.iter().chain(&writable).any(|above| link.starts_with(above)));
        let shown: Vec<PathBuf> =
            writable.iter().filter(|path| is_hidden(path)).chain(&readable).cloned().collect();
        let points = points(&hidden, &shown, links)?;
        let kept = |paths: Vec<PathBuf>| {
            paths
                .iter()
                .map(|path| Ok(Kept { path: c(path)?, tree: Tree::none() }))
                .collect::<io::Result<Vec<_>>>()
        };
        Ok(Self {
            writable: kept(writable)?,
            readable: kept(readable)?,
            hidden: hidden.iter().map(|path| c(path)).collect::<io::Result<_>>()?,
            points,
            shown,
            hidden_paths: hidden,
        })
    }

    /// Whether a path is still there.
    pub(super) fn shows(&self, path: &Path) -> bool {
        !self.hidden_paths.iter().any(|folder| path.starts_with(folder))
            || self.shown.iter().any(|shown| path.starts_with(shown))
    }

    /// Runs between fork and exec, so it only makes system calls.
    pub(super) fn enter(&self) -> io::Result<()> {
        for kept in &self.writable {
            kept.tree.take(&kept.path)?;
        }
        make_read_only(c"/", libc::AT_RECURSIVE)?;
        for kept in &self.readable {
            kept.tree.take(&kept.path)?;
        }
        for folder in &self.hidden {
            let flags = libc::MS_NOSUID | libc::MS_NODEV;
            mount(Some(c"none"), folder, Some(c"tmpfs"), flags, Some(c"mode=755,size=1m"))?;
        }
        for (path, point) in &self.points {
            make(path, point)?;
        }
        for folder in &self.hidden {
            make_read_only(folder, 0)?;
        }
        for kept in self.readable.iter().chain(&self.writable) {
            kept.tree.attach(&kept.path)?;
            kept.tree.close();
        }
        Ok(())
    }
}

fn make(path: &CString, point: &Point) -> io::Result<()> {
    // SAFETY: the strings outlive the calls.
    #[expect(unsafe_code, reason = "runs between fork and exec")]
    let made = unsafe {
        match point {
            Point::Folder => libc::mkdir(path.as_ptr(), 0o755),
            Point::File => libc::mknod(path.as_ptr(), libc::S_IFREG | 0o644, 0),
            Point::Link(target) => libc::symlink(target.as_ptr(), path.as_ptr()),
        }
    };
    if made < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Those that are not below another.
fn outermost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in paths {
        if !kept.iter().any(|above| path.starts_with(above)) {
            kept.push(path);
        }
    }
    kept
}

/// What must be made in the hidden folders to mount these.
fn points(
    hidden: &[PathBuf],
    shown: &[PathBuf],
    links: BTreeMap<PathBuf, Point>,
) -> io::Result<Vec<(CString, Point)>> {
    let mut points = links;
    let linked: Vec<PathBuf> = points.keys().cloned().collect();
    for path in shown {
        let point = if path.is_dir() { Point::Folder } else { Point::File };
        points.insert(path.clone(), point);
    }
    for path in shown.iter().chain(&linked) {
        let Some(folder) = hidden.iter().find(|folder| path.starts_with(folder)) else { continue };
        let above = path.ancestors().skip(1);
        for above in above.take_while(|above| above.starts_with(folder) && above != folder) {
            points.insert(above.to_owned(), Point::Folder);
        }
    }
    points.into_iter().map(|(path, point)| Ok((c(&path)?, point))).collect()
}

fn c(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_folder_has_what_can_be_used_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for folder in ["home/work/deep", "home/.tool/bin", "home/.ssh", "home/real"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::fs::write(root.join("home/.rc"), "x").unwrap();
        std::os::unix::fs::symlink("real", root.join("home/linked")).unwrap();
        let at = |name: &str| root.join("home").join(name);
        let view = View {
            writable: vec![at("work"), at("work/deep")],
            hidden: vec![root.join("home")],
            readable: vec![at(".tool/bin"), at(".rc"), at("linked"), "/usr".into()],
        };
        let prepared = PreparedView::new(&view).unwrap();
        let made: Vec<String> = prepared
            .points
            .iter()
            .map(|(path, point)| {
                format!("{} {point:?}", path.to_str().unwrap().rsplit("home/").next().unwrap())
            })
            .collect();
        assert_eq!(
            made,
            [
                ".rc File",
                ".tool Folder",
                ".tool/bin Folder",
                "linked Link(\"real\")",
                "real Folder",
                "work Folder"
            ]
        );
        assert_eq!((prepared.writable.len(), prepared.readable.len()), (1, 3));
        assert!(
            prepared.shows(&at("work/x"))
                && prepared.shows(Path::new("/usr"))
                && !prepared.shows(&at(".ssh/id"))
        );
    }
}
