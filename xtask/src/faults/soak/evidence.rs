//! What is kept when something was lost, hung or left: the job's folder, what its processes were doing, and who asked.
//! Without it a fault that happens once in a thousand jobs can't be explained.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use outlast_pty::procfs::{self, Proc};

/// After so many, more would only fill the disk.
const MAX_CASES: usize = 40;

/// A folder with a folder for each case.
pub(super) struct Evidence {
    folder: PathBuf,
    cases: AtomicUsize,
}

impl Evidence {
    /// In the folder for temporary files, and not removed at the end.
    pub(super) fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("outlast-soak-evidence-{}", std::process::id()));
        Self { folder, cases: AtomicUsize::new(0) }
    }

    /// Says what happened and keeps what can be seen of it: the folder of the job, and all processes that could be part of it.
    pub(super) fn keep(&self, what: &str, job: Option<&Path>, processes: &[Proc]) {
        let case = self.cases.fetch_add(1, Ordering::Relaxed);
        if case >= MAX_CASES {
            eprintln!("  soak: {what}");
            return;
        }
        let folder = self.folder.join(case.to_string());
        eprintln!("  soak: {what} (see {})", folder.display());
        let mut text = format!("{what}\n");
        if std::fs::create_dir_all(&folder).is_err() {
            return;
        }
        if let Some(job) = job {
            let _ = writeln!(text, "folder: {}", job.display());
            for entry in std::fs::read_dir(job).into_iter().flatten().flatten() {
                let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
                if is_file {
                    let _ = std::fs::copy(entry.path(), folder.join(entry.file_name()));
                }
                let _ = writeln!(
                    text,
                    "  {:?} {:?} bytes",
                    entry.file_name(),
                    entry.metadata().map(|data| data.len())
                );
            }
        }
        for process in processes {
            text.push_str(&described(process));
        }
        let _ = std::fs::write(folder.join("case.txt"), text);
    }
}

/// What a process is and does: its words, where its threads are in the kernel, and what it has open.
pub(super) fn described(process: &Proc) -> String {
    let pid = process.pid.as_raw_nonzero();
    let read = |path: String| std::fs::read_to_string(path).unwrap_or_default();
    let words = procfs::arguments(process.pid).unwrap_or_default();
    let words: Vec<String> = words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let parent = process.ppid.map_or(0, |parent| parent.as_raw_nonzero().get());
    let mut text = format!(
        "process {pid} of {parent} ({}, state {:?}): {}\n",
        process.comm,
        process.state,
        words.join(" ")
    );
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let id = thread.file_name().to_string_lossy().into_owned();
        let at = read(format!("/proc/{pid}/task/{id}/wchan"));
        let call = read(format!("/proc/{pid}/task/{id}/syscall"));
        let _ = writeln!(text, "  thread {id}: {at} [{}]", call.trim());
        for line in read(format!("/proc/{pid}/task/{id}/stack")).lines() {
            let _ = writeln!(text, "    {line}");
        }
    }
    for file in std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
        let target = std::fs::read_link(file.path()).unwrap_or_default();
        let _ = writeln!(text, "  {} -> {}", file.file_name().to_string_lossy(), target.display());
    }
    text
}
