//! The static binary in a root that has nothing but busybox, `/proc` and terminals: no library, no `/etc`.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::check::expect;
use super::tree::file_ending;
use super::{Release, output};

/// What is run in there. Its output must be [`SAID`].
const SCRIPT: &str = r#"
set -e
export HOME=/root
[ ! -e /dev/null ]
/outlast run 'echo hello; exit 3' || echo "code $?"
/outlast run -d --name waits 'echo asks; read x; echo got $x; sleep 600' >/tmp/said
/outlast wait waits --pattern asks >/tmp/said
/outlast send waits yes >/tmp/said
/outlast wait waits --pattern 'got yes' >/tmp/said && echo waited
/outlast kill waits >/tmp/said && echo killed
/outlast --json jobs --all --running
"#;

const SAID: &str = "hello\ncode 3\nwaited\nkilled\n";

pub(super) fn check(release: &Release, folder: &Path) -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("only root can make such a root".into());
    }
    let here = release.binaries.iter().find(|binary| binary.platform.is_here());
    let here = here.ok_or("nothing was built for this machine")?;
    let root = folder.join("root");
    for name in ["bin", "proc", "dev/pts", "root", "tmp"] {
        std::fs::create_dir_all(root.join(name)).map_err(|error| error.to_string())?;
    }
    let busybox = busybox(folder)?;
    for (from, to) in [(&busybox, "bin/busybox"), (&here.path, "outlast")] {
        std::fs::copy(from, root.join(to)).map_err(|error| error.to_string())?;
    }
    for name in ["sh", "sleep", "echo"] {
        std::os::unix::fs::symlink("busybox", root.join("bin").join(name))
            .map_err(|error| error.to_string())?;
    }
    std::fs::write(root.join("script"), SCRIPT).map_err(|error| error.to_string())?;
    // Mounts of their own, which are gone with the last process in there.
    let mounts = "mount -t proc proc proc && mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts && \
                  ln -s pts/ptmx dev/ptmx && exec chroot . /bin/sh /script";
    let mut inside = Command::new("unshare");
    inside.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", mounts]).current_dir(&root);
    inside.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let said = String::from_utf8_lossy(&output(&mut inside)?).replace('\r', "");
    match said.strip_prefix(SAID) {
        // Nothing runs any more.
        Some(rest) if !rest.contains("\"running\"") => Ok(()),
        _ => expect("inside", &said, SAID),
    }
}

/// A static busybox. Debian's package of it cannot be installed beside the other one, and need not be.
fn busybox(folder: &Path) -> Result<PathBuf, String> {
    output(Command::new("apt-get").args(["download", "--quiet", "busybox-static"]).current_dir(folder))?;
    let package = file_ending(folder, ".deb")?;
    output(Command::new("dpkg-deb").arg("--extract").arg(package).arg(folder.join("busybox")))?;
    let found = ["bin/busybox", "usr/bin/busybox"].map(|path| folder.join("busybox").join(path));
    found.into_iter().find(|path| path.is_file()).ok_or("no busybox in its package".into())
}
