//! Things that run out: descriptors, processes, the disk.

use std::process::Command;
use std::time::Duration;

use outlast_job::{JobSpec, Outlast, Streams, Wait};

use super::Tally;
use super::arena::{Arena, CALL_TIMEOUT, ended_in_time, log, waited_for_end};

/// Runs a job by the command line after a line of shell that takes something away; whether it ran, or was
/// refused with a reason.
fn run_after(arena: &Arena, first: &str, tally: &mut Tally) -> Result<bool, String> {
    let line = format!("{first} && exec '{}' run -- echo hello", arena.program.display());
    let talk = arena.scratch().join("talk");
    let file = std::fs::File::create(&talk).map_err(|error| error.to_string())?;
    let mut client = Command::new("sh")
        .args(["-c", &line])
        .env("OUTLAST_HOME", arena.home())
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(file)
        .spawn()
        .map_err(|error| error.to_string())?;
    tally.tried += 1;
    tally.hung += u64::from(!ended_in_time(&mut client));
    let ran = client.wait().is_ok_and(|status| status.success());
    let said = std::fs::read_to_string(&talk).unwrap_or_default();
    if !ran && said.trim().is_empty() {
        return Err(format!("refused without a word after: {first}"));
    }
    Ok(ran)
}

/// Every job that was claimed has an end, soon.
fn unfinished(arena: &Arena) -> u64 {
    let live = || arena.outlast.jobs().iter().filter(|info| info.state.is_live()).count() as u64;
    for _ in 0..100 {
        if live() == 0 {
            return 0;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    live()
}

pub(super) fn descriptors(arena: &mut Arena) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let mut ran = 0;
    for limit in 4..64 {
        ran += u64::from(run_after(arena, &format!("ulimit -n {limit}"), &mut tally)?);
    }
    tally.lost_receipts += unfinished(arena);
    tally.note = format!("limits 4 to 63: {ran} ran, {} were refused, each with a reason", tally.tried - ran);
    Ok(tally)
}

pub(super) fn processes(arena: &mut Arena) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let mut ran = 0;
    for most in 1..20 {
        // One each: an init that is slow to reap leaves the dead counted.
        let name = format!("outlast-faults-{}-{most}", std::process::id());
        let group = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"]
            .iter()
            .map(|root| std::path::Path::new(root).join(&name))
            .find(|group| std::fs::create_dir(group).is_ok() && group.join("pids.max").exists());
        let Some(group) = group else { return Ok(Tally::skipped("no pids cgroup that may be written")) };
        std::fs::write(group.join("pids.max"), most.to_string()).map_err(|error| error.to_string())?;
        let first = format!("echo $$ > '{}'", group.join("cgroup.procs").display());
        ran += u64::from(run_after(arena, &first, &mut tally)?);
        tally.left += arena.end_all();
        let _ = std::fs::remove_dir(&group);
    }
    tally.lost_receipts += unfinished(arena);
    tally.note = format!("limits 1 to 19: {ran} ran, {} were refused, each with a reason", tally.tried - ran);
    Ok(tally)
}

pub(super) fn disk(arena: &mut Arena) -> Result<Tally, String> {
    let folder = arena.scratch().join("small");
    std::fs::create_dir(&folder).map_err(|error| error.to_string())?;
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=4m,mode=700", "none"]).arg(&folder).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return Ok(Tally::skipped("no file system may be mounted"));
    }
    let tried = fill(arena, &folder);
    let _ = Command::new("umount").arg("--lazy").arg(&folder).status();
    tried
}

fn fill(arena: &mut Arena, folder: &std::path::Path) -> Result<Tally, String> {
    let mut tally = Tally { tried: arena.times(10), ..Tally::default() };
    let outlast =
        Outlast::at(&folder.join("home")).map_err(|failure| failure.to_string())?.kept_by(&arena.program);
    let mut told = 0;
    for _ in 0..tally.tried {
        let job = outlast
            .start(arena.spec(&["count", "2000", "20", "2000"]))
            .map_err(|failure| failure.to_string())?;
        super::arena::grown_to(&job, arena.below(8000));
        let ballast = folder.join("ballast");
        let _ = std::fs::write(&ballast, vec![0; 4 << 20]);
        std::thread::sleep(Duration::from_millis(arena.below(100)));
        let _ = std::fs::remove_file(&ballast);
        if !waited_for_end(&job) {
            tally.hung += 1;
            continue;
        }
        let info = job.info().map_err(|failure| failure.to_string())?;
        tally.lost_receipts += u64::from(info.state.name() != "failed");
        // What could not be written is told exactly; nothing else may be missing.
        let gone: u64 = info.gone.bytes_in(0, job.log_end());
        let whole = log(&job).iter().filter(|byte| **byte != 0).count() as u64;
        let wanted: u64 = (0..2000_u64).map(|n| format!("line {n}\r\n").len() as u64).sum();
        tally.lost_bytes += wanted.saturating_sub(whole + gone);
        told += gone;
    }
    tally.note = format!("{told} bytes could not be written while it was full; each range is in the record");
    Ok(tally)
}

pub(super) fn cap(arena: &mut Arena) -> Result<Tally, String> {
    const CAP: u64 = 64 << 20;
    let bytes = arena.times(10_000_000_000);
    let spec = arena.spec(&["emit", "log", &bytes.to_string()]);
    let spec = JobSpec { streams: Streams::Pipes, log_cap: Some(CAP), ..spec };
    let job = arena.outlast.start(spec).map_err(|failure| failure.to_string())?;
    let keeper = super::arena::process(&job, "keeper").ok_or("no keeper")?;
    let mut tally = Tally { tried: 1, ..Tally::default() };
    let done = job.wait(&Wait::for_pattern(crate::bench::emit::END), Some(CALL_TIMEOUT * 40));
    tally.hung += u64::from(done.is_err());
    let peak = crate::bench::peak_kib(keeper.pid.as_raw_nonzero().get());
    job.type_line("").map_err(|failure| failure.to_string())?;
    tally.hung += u64::from(!waited_for_end(&job));
    let info = job.info().map_err(|failure| failure.to_string())?;
    let end = job.log_end();
    let gone = info.gone.bytes_in(0, end);
    let file = std::fs::metadata(job.files().output).map_err(|error| error.to_string())?;
    let on_disk = std::os::unix::fs::MetadataExt::blocks(&file) * 512;
    tally.lost_receipts += u64::from(info.state.name() != "completed");
    tally.lost_bytes += u64::from(end < bytes);
    tally.note = format!(
        "{end} bytes were written, the record says that {gone} are gone, {} MiB are on the disk; keeper at most {:.1} MiB",
        on_disk >> 20,
        peak / 1024.0
    );
    if on_disk > CAP + (1 << 20) {
        return Err(format!("the cap is {CAP}, but {on_disk} bytes are on the disk"));
    }
    Ok(tally)
}
