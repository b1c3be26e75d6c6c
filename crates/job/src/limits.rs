//! Resource limits of a job, and what enforces them: a cgroup for the whole job if one is available,
//! otherwise the kernel's limits for each process.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

pub use outlast_protocol::limits::{LimitedBy, Limits};

use crate::failure::Failure;

fn wants_group(limits: &Limits) -> bool {
    limits.memory.is_some() || limits.processes.is_some() || limits.cpu_milli.is_some()
}

fn controllers(limits: &Limits) -> Vec<&'static str> {
    let wanted = [
        ("memory", limits.memory.is_some()),
        ("pids", limits.processes.is_some()),
        ("cpu", limits.cpu_milli.is_some()),
    ];
    wanted.into_iter().filter(|(_, wanted)| *wanted).map(|(name, _)| name).collect()
}

/// Prepares the limits: what the command's process must do, and what enforces them.
///
/// # Errors
/// A usage failure, if one of them is not available here.
pub(crate) fn prepare(
    limits: &Limits,
    name: &str,
) -> Result<(outlast_pty::limits::Limits, Option<LimitedBy>), Failure> {
    let mut prepared = outlast_pty::limits::Limits {
        cpu_seconds: limits.cpu_time.map(|time| time.as_secs().max(1)),
        ..outlast_pty::limits::Limits::default()
    };
    if !wants_group(limits) {
        return Ok((prepared, limits.cpu_time.map(|_| LimitedBy::EachProcess)));
    }
    let why = match Group::make(name, limits) {
        Ok((group, procs)) => {
            prepared.group = Some(procs);
            return Ok((prepared, Some(LimitedBy::Cgroup(group))));
        }
        Err(why) => why,
    };
    if limits.cpu_milli.is_some() {
        return Err(Failure::usage(format!("processors can only be limited by a control group: {why}"))
            .hint("limit its CPU time instead: --cpu-time 10m"));
    }
    prepared.memory = limits.memory;
    if let Some(count) = limits.processes {
        if rustix::process::geteuid().is_root() {
            return Err(Failure::usage(format!(
                "root's processes can only be limited by a control group: {why}"
            ))
            .hint("run it as another user, or where control groups (version 2) are delegated"));
        }
        // The kernel counts all processes of a user together.
        prepared.processes = Some(processes_of_this_user() + count);
    }
    Ok((prepared, Some(LimitedBy::EachProcess)))
}

fn processes_of_this_user() -> u64 {
    use std::os::unix::fs::MetadataExt;
    let me = rustix::process::geteuid().as_raw();
    let Ok(entries) = std::fs::read_dir("/proc") else { return 0 };
    let ours = entries.filter_map(Result::ok).filter(|entry| {
        let number = entry.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok());
        number && std::fs::metadata(entry.path()).is_ok_and(|data| data.uid() == me)
    });
    // Threads count too.
    let threads = |entry: std::fs::DirEntry| {
        std::fs::read_dir(entry.path().join("task")).map_or(1, Iterator::count) as u64
    };
    ours.map(threads).sum()
}

/// A version 2 cgroup for one job.
#[derive(Debug)]
pub(crate) struct Group;

impl Group {
    /// Creates one and sets its limits; returns its path, and the file through which a process enters it.
    fn make(name: &str, limits: &Limits) -> Result<(PathBuf, OwnedFd), String> {
        let parent = Self::parent(&controllers(limits))?;
        let path = parent.join(format!("outlast-{name}"));
        std::fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let set = || -> std::io::Result<OwnedFd> {
            if let Some(bytes) = limits.memory {
                std::fs::write(path.join("memory.max"), bytes.to_string())?;
                // Without swap the memory limit is exact; a job that exceeds it is killed as a whole.
                let _ = std::fs::write(path.join("memory.swap.max"), "0");
                let _ = std::fs::write(path.join("memory.oom.group"), "1");
            }
            if let Some(count) = limits.processes {
                std::fs::write(path.join("pids.max"), count.to_string())?;
            }
            if let Some(milli) = limits.cpu_milli {
                std::fs::write(path.join("cpu.max"), format!("{} 100000", milli * 100))?;
            }
            Ok(std::fs::OpenOptions::new().write(true).open(path.join("cgroup.procs"))?.into())
        };
        set().map(|procs| (path.clone(), procs)).map_err(|error| {
            let _ = std::fs::remove_dir(&path);
            format!("{}: {error}", path.display())
        })
    }

    /// The nearest parent cgroup in which we may create others with these controllers.
    pub(crate) fn parent(controllers: &[&str]) -> Result<PathBuf, String> {
        let mount = mount_point(&read("/proc/self/mountinfo"))
            .ok_or("there is no control group file system of version 2")?;
        let groups = read("/proc/self/cgroup");
        let own = own_group(&groups).ok_or("this process is in no control group of version 2")?;
        let own = mount.join(own.trim_start_matches('/'));
        for folder in own.ancestors().take_while(|folder| folder.starts_with(&mount)) {
            let passed_on = read(folder.join("cgroup.subtree_control"));
            let has = |wanted: &&str| passed_on.split_whitespace().any(|known| known == *wanted);
            let writable = rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
                && rustix::fs::access(folder.join("cgroup.procs"), rustix::fs::Access::WRITE_OK).is_ok();
            if writable && controllers.iter().all(has) {
                return Ok(folder.to_owned());
            }
        }
        Err(format!("no group above us that we may use passes {} on", controllers.join(" and ")))
    }

    /// Whether the kernel killed something in it because it ran out of memory.
    pub(crate) fn ran_out_of_memory(path: &Path) -> bool {
        count_in(&read(path.join("memory.events")), "oom_kill") > 0
    }

    /// The processes in it.
    pub(crate) fn members(path: &Path) -> Vec<i32> {
        read(path.join("cgroup.procs")).lines().filter_map(|line| line.trim().parse().ok()).collect()
    }

    /// Removes it, once it is empty.
    pub(crate) fn remove(path: &Path) {
        let _ = std::fs::remove_dir(path);
    }
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn count_in(events: &str, name: &str) -> u64 {
    let line = events.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// Where cgroup version 2 is mounted.
fn mount_point(mountinfo: &str) -> Option<PathBuf> {
    mountinfo.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        kind.starts_with("cgroup2 ").then(|| mount.split(' ').nth(4).map(PathBuf::from))?
    })
}

/// Our own version 2 cgroup.
fn own_group(cgroup: &str) -> Option<&str> {
    cgroup.lines().find_map(|line| line.strip_prefix("0::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_cgroup_files_are_parsed() {
        let mounts = "25 30 0:23 / /sys rw - sysfs sysfs rw\n\
    35 25 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
        assert_eq!(mount_point(mounts), Some("/sys/fs/cgroup".into()));
        assert_eq!(mount_point("25 30 0:23 / /x rw - cgroup cgroup rw,pids\n"), None);
        assert_eq!(own_group("4:memory:/x\n0::/user.slice/a.scope\n"), Some("/user.slice/a.scope"));
        let events = "low 0\nhigh 0\nmax 7\noom 1\noom_kill 2\noom_group_kill 0\n";
        assert_eq!((count_in(events, "oom_kill"), count_in(events, "nothing")), (2, 0));
    }

    #[test]
    fn only_what_is_limited_needs_a_controller() {
        let limits = Limits { memory: Some(1), cpu_milli: Some(500), ..Limits::default() };
        assert_eq!(controllers(&limits), ["memory", "cpu"]);
        let time = Limits { cpu_time: Some(std::time::Duration::from_secs(3)), ..Limits::default() };
        let (prepared, by) = prepare(&time, "x").unwrap();
        assert_eq!((prepared.cpu_seconds, by), (Some(3), Some(LimitedBy::EachProcess)));
    }
}
