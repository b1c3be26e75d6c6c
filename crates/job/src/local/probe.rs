//! Checks that this machine can do what jobs need: tried, not assumed.

use std::time::{Duration, Instant};

use outlast_protocol::request::ReadText;

use super::{Local, LocalJob};

use crate::registry::format::FORMAT;
use crate::settings::SystemdScope;
use crate::spec::{JobSpec, Run, Streams};
use crate::systemd::Place;
use crate::wire::{PROTOCOL, Wait};

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at.
    pub what: &'static str,
    /// Whether it is as it should be.
    pub good: bool,
    /// What was found.
    pub said: String,
}

/// Looks at everything.
pub(crate) fn examine(local: &Local, mut begins: impl FnMut(&'static str)) -> Vec<Finding> {
    let mut look = |(what, check): &(&'static str, Check)| {
        begins(what);
        check(local)
    };
    CHECKS.iter().map(&mut look).collect()
}

type Check = fn(&Local) -> Finding;

/// Every check, and what is said while it runs.
const CHECKS: &[(&str, Check)] = &[
    ("home", home),
    ("disk", disk),
    ("settings", settings),
    ("disk used by jobs", budget),
    ("holes in files", holes),
    ("terminals", |_| terminals()),
    ("jobs", jobs),
    ("ends", unsaved),
    ("processes", |_| hidden()),
    ("builds of running jobs", builds),
    ("a job", run_one),
    ("sandbox", |_| sandbox()),
    ("loopback", |_| loopback()),
    ("control groups", |_| control_groups()),
    ("systemd", systemd),
    ("version", |_| version()),
];

fn finding(what: &'static str, good: bool, said: impl Into<String>) -> Finding {
    Finding { what, good, said: said.into() }
}

fn home(local: &Local) -> Finding {
    finding("home", true, format!("{} is yours alone", local.home.path().display()))
}

fn disk(local: &Local) -> Finding {
    let Ok(stat) = rustix::fs::fstatvfs(local.home.as_dir()) else {
        return finding("disk", false, "the file system does not say how full it is");
    };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let enough = free > 64 << 20;
    let mut said = format!("{} MiB free for logs", free >> 20);
    if !enough {
        said.push_str(
            "; jobs run on a full disk too, but their newest output is lost: free some, or outlast prune",
        );
    }
    finding("disk", enough, said)
}

fn settings(local: &Local) -> Finding {
    let file = crate::settings::Settings::path();
    match (local.settings.all(), file) {
        (Err(failure), _) => finding("settings", false, failure.to_string()),
        (Ok(()), Some(file)) if file.exists() => finding("settings", true, file.display().to_string()),
        (Ok(()), Some(file)) => {
            finding("settings", true, format!("defaults: there is no {}", file.display()))
        }
        (Ok(()), None) => finding("settings", true, "defaults: HOME is not set"),
    }
}

fn budget(local: &Local) -> Finding {
    match local.prune(&local.settings.settings.retention, true) {
        Ok(swept) => match swept.over {
            Some(over) => finding("budget", false, over.words()),
            None => {
                let (kept, mib) = (swept.kept, swept.kept_bytes.div_ceil(1 << 20));
                finding("budget", true, format!("{kept} finished jobs are kept, in {mib} MiB"))
            }
        },
        Err(failure) => finding("budget", false, failure.to_string()),
    }
}

/// Without holes a log can't give back its middle.
fn holes(local: &Local) -> Finding {
    use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};
    let name = format!(".probe-{}", std::process::id());
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let made = openat(local.home.as_dir(), &name, flags, Mode::RUSR | Mode::WUSR).and_then(|file| {
        rustix::fs::ftruncate(&file, 8192)?;
        outlast_pty::system::punch_hole(&file, 0, 4096)
    });
    let _ = unlinkat(local.home.as_dir(), &name, AtFlags::empty());
    match made {
        Ok(()) => finding("log cap", true, "this file system gives back the middle of a file"),
        Err(error) => {
            let said = format!(
                "this file system can't give back the middle of a file ({error}): logs may outgrow their cap"
            );
            finding("log cap", false, said)
        }
    }
}

fn terminals() -> Finding {
    let read = |name: &str| -> Option<u64> {
        std::fs::read_to_string(format!("/proc/sys/kernel/pty/{name}")).ok()?.trim().parse().ok()
    };
    match (read("nr"), read("max")) {
        (Some(used), Some(max)) => {
            finding("terminals", used + 8 < max, format!("{used} of {max} in use on this machine"))
        }
        _ => finding("terminals", true, "this system does not count them"),
    }
}

fn jobs(local: &Local) -> Finding {
    let jobs = local.jobs(false);
    let running = jobs.iter().filter(|info| info.state.is_live()).count();
    let lost: Vec<String> = jobs
        .iter()
        .filter(|info| !super::leftover::find_if_lost(info).is_empty())
        .map(|info| info.handle.to_string())
        .collect();
    let said = format!("{} kept, {running} running", jobs.len());
    if lost.is_empty() {
        return finding("jobs", true, said);
    }
    let said = format!("{said}; lost jobs left processes behind, end them: outlast kill {}", lost.join(" "));
    finding("jobs", false, said)
}

/// Jobs that have ended and whose end can't be written down: their keepers stay, and know it.
fn unsaved(local: &Local) -> Finding {
    let is_unsaved = |handle: &crate::spec::Handle| {
        local.home.job(*handle).is_ok_and(|job| crate::registry::claim::is_end_unsaved(&job))
    };
    let mut unsaved = local.home.handles();
    unsaved.retain(is_unsaved);
    unsaved.sort_unstable();
    if unsaved.is_empty() {
        return finding("ends", true, "how each job ended is on the disk");
    }
    let said = format!(
        "how these ended can't be written to the disk; their keepers know it and try again: {}; see outlast show, or let go of it: outlast kill",
        unsaved.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    );
    finding("ends", false, said)
}

/// Whether what a job starts as another user can be seen.
fn hidden() -> Finding {
    let said = if outlast_pty::procfs::hides_other_users() {
        "/proc hides other users' processes (hidepid): what a job starts with sudo is ended by its keeper, but can't be listed"
    } else {
        "every process of a job can be seen"
    };
    finding("processes", true, said)
}

/// Whether running jobs are kept by this very program: after an upgrade, those of before go on with the old one.
fn builds(local: &Local) -> Finding {
    let is_other = |info: &&outlast_protocol::info::Info| {
        let pid = info.keeper.as_ref().and_then(|keeper| rustix::process::Pid::from_raw(keeper.pid));
        pid.and_then(outlast_pty::procfs::executes_our_program) == Some(false)
    };
    let jobs = local.jobs(false);
    let running = jobs.iter().filter(|info| info.state.is_live());
    let others: Vec<String> = running.filter(is_other).map(|info| info.handle.to_string()).collect();
    let said = if others.is_empty() {
        "no job is kept by another build".to_owned()
    } else {
        format!("kept by another build of outlast until they end: {}", others.join(" "))
    };
    finding("builds", true, said)
}

/// The whole way once: keeper, terminal, log, exit code.
fn run_one(local: &Local) -> Finding {
    let began = Instant::now();
    let mut spec = JobSpec::new(Run::Shell("printf outlast-doctor".into()));
    spec.description = Some("outlast doctor".into());
    spec.streams = Streams::Terminal(crate::spec::Size::default());
    // It is removed below: an event would name a job that nobody finds.
    spec.notify = Some(Vec::new());
    let result = local.start(spec).and_then(|job| {
        let job = LocalJob::new(job, false);
        job.wait(&Wait::for_exit(), Some(Duration::from_secs(10)))?;
        let info = job.info()?;
        let text = job.text(&ReadText { max: 1024, ..ReadText::default() })?.head;
        Ok((info.handle, info.state.name(), text))
    });
    let ms = began.elapsed().as_millis();
    match result {
        Ok((handle, "completed", text)) if text.trim() == "outlast-doctor" => {
            // One that went wrong stays, to be looked at; this one is in nobody's way if it does too.
            let _ = local.remove(handle);
            finding("a job", true, format!("started, printed and ended in {ms} ms"))
        }
        Ok((handle, state, text)) => {
            finding("a job", false, format!("job {handle} is {state} and printed {text:?}"))
        }
        Err(failure) => finding("a job", false, failure.to_string()),
    }
}

/// What a sandbox of this kernel holds. That it can't is not a fault of ours: a caller that asks for one is told.
fn sandbox() -> Finding {
    #[cfg(all(target_os = "linux", not(outlast_portable)))]
    {
        use outlast_pty::confine::{OLDEST_LANDLOCK, SCOPED_LANDLOCK, landlock_abi};
        let bwrap = match crate::sandbox::bwrap() {
            Some(path) => format!("bubblewrap is {}", path.display()),
            None => "bubblewrap is not here".into(),
        };
        let said = match landlock_abi() {
            version if version < OLDEST_LANDLOCK => {
                format!(
                    "run --sandbox is refused: Landlock {OLDEST_LANDLOCK} is needed, this kernel has {version}"
                )
            }
            version if version < SCOPED_LANDLOCK => format!(
                "Landlock {version} and seccomp: files, network and sockets; signals to your other processes are not held back before Landlock {SCOPED_LANDLOCK}"
            ),
            version => format!("Landlock {version} and seccomp: files, network, sockets and signals"),
        };
        finding("sandbox", true, format!("{said}; {bwrap}"))
    }
    #[cfg(any(not(target_os = "linux"), outlast_portable))]
    finding("sandbox", true, "run --sandbox is refused: there is none for this system yet")
}

fn loopback() -> Finding {
    #[cfg(all(target_os = "linux", not(outlast_portable)))]
    let said = match outlast_pty::confine::has_namespaces() {
        Ok(()) => "run --sandbox --network loopback: works, a job can have a network of its own".into(),
        Err(error) => {
            format!("run --sandbox --network loopback is refused: cannot make a network namespace ({error})")
        }
    };
    #[cfg(any(not(target_os = "linux"), outlast_portable))]
    let said = "run --network loopback is refused on this system";
    finding("loopback", true, said)
}

fn control_groups() -> Finding {
    let said = |name: &str, controller: &str| match crate::limits::Group::parent(&[controller]) {
        Ok(_) => format!("{name} of a whole job"),
        Err(_) if controller == "cpu" => "no limit of processors".into(),
        Err(_) if controller == "pids" && rustix::process::geteuid().is_root() => {
            "no limit of processes for root".into()
        }
        Err(_) => format!("{name} of each process only"),
    };
    let all = [said("memory", "memory"), said("processes", "pids"), said("processors", "cpu")];
    finding("limits", true, all.join(", "))
}

/// Whether a unit of systemd, or a login, takes jobs along when it ends.
fn systemd(local: &Local) -> Finding {
    let place = Place::of_this_process();
    match (&place, local.settings.settings.systemd_scope) {
        (Place::CanLeave { unit, .. }, SystemdScope::Never) => {
            let said = format!("jobs are part of {unit} and end when it is stopped: systemd.scope is never");
            finding("systemd", true, said)
        }
        _ => finding("systemd", place.trouble().is_none(), place.words()),
    }
}

fn version() -> Finding {
    let version = env!("CARGO_PKG_VERSION");
    finding("version", true, format!("outlast {version}, job format {FORMAT}, protocol {PROTOCOL}"))
}
