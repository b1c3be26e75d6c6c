//! Small disks of their own, for tests that fill or break them. They need root.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A mounted file system; dropping it unmounts it.
pub(crate) struct Disk {
    at: PathBuf,
}

fn works(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

impl Disk {
    /// One in memory, of a size such as `1m`; none where it can't be mounted.
    pub(crate) fn tmpfs(at: &Path, size: &str) -> Option<Self> {
        std::fs::create_dir(at).unwrap();
        let options = format!("size={size},mode=700");
        works("mount", &["-t", "tmpfs", "-o", &options, "none", at.to_str().unwrap()])
            .then(|| Self { at: at.to_owned() })
    }

    /// A real one in a file, which becomes read-only on the first error; none where it can't be mounted.
    pub(crate) fn ext4(at: &Path, size: u64) -> Option<Self> {
        std::fs::create_dir(at).unwrap();
        let image = at.with_extension("image");
        std::fs::File::create(&image).unwrap().set_len(size).unwrap();
        let (image, folder) = (image.to_str().unwrap(), at.to_str().unwrap());
        let mounted = works("mkfs.ext4", &["-q", "-O", "^has_journal", image])
            && works("mount", &["-o", "loop,errors=remount-ro", image, folder]);
        mounted.then(|| Self { at: at.to_owned() })
    }

    /// Has the kernel find an error on it: from then on nothing can be written. Needs ext4.
    pub(crate) fn fail(&self) {
        let found = Command::new("findmnt").args(["-no", "SOURCE"]).arg(&self.at).output().unwrap();
        let device = String::from_utf8(found.stdout).unwrap();
        let name = device.trim().trim_start_matches("/dev/");
        std::fs::write(format!("/sys/fs/ext4/{name}/trigger_fs_error"), "tests").unwrap();
        let error = std::fs::write(self.at.join("probe"), "").unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ReadOnlyFilesystem, "{error}");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: a job that still runs is ended by the sandbox, a moment later.
        works("umount", &["-l", self.at.to_str().unwrap()]);
    }
}
