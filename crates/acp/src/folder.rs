//! `<home>/acp`: what ACP conversations must know after a restart.

use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::time::{Duration, SystemTime};

use outlast_job::Failure;
use outlast_job::registry::Home;
use rustix::fs::{Mode, OFlags};

const FOLDER: &str = "acp";
/// A file that nobody has written for this long is removed.
const FILE_TTL: Duration = Duration::from_secs(90 * 86_400);

/// Opens the folder; makes it if it is missing, and removes old files.
pub(crate) fn open(home: &Home) -> Result<OwnedFd, Failure> {
    let path = home.path().join(FOLDER);
    let broken =
        |error: &dyn std::fmt::Display| Failure::system("the state of ACP sessions can't be kept", error);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(|error| broken(&error))?;
    forget_old(&path);
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(&path, flags, Mode::empty()).map_err(|error| broken(&error))
}

fn forget_old(folder: &std::path::Path) {
    let Ok(files) = std::fs::read_dir(folder) else { return };
    let now = SystemTime::now();
    for file in files.flatten() {
        let age = file
            .metadata()
            .and_then(|data| data.modified())
            .map(|at| now.duration_since(at).unwrap_or_default());
        if age.is_ok_and(|age| age > FILE_TTL) {
            let _ = std::fs::remove_file(file.path());
        }
    }
}
