//! Corners in which 0.1.0 lost a result, left a process or locked somebody out.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::{Duration, Instant};

use outlast_job::{Job, Streams};
use rustix::process::Signal;

use super::Tally;
use super::arena::{Arena, CODE, ended_in_time, grown_to, log, process, send, waited_for_end};

const LINES: u64 = 1500;

/// The keeper of a job on pipes is killed, then the heir that takes over, then the one after that.
pub(super) fn again(arena: &mut Arena) -> Result<Tally, String> {
    let mut tally = Tally { tried: arena.times(60), ..Tally::default() };
    let mut kills = 0;
    for _ in 0..tally.tried {
        let mut spec = arena.spec(&["count", &LINES.to_string(), "20", "4000"]);
        spec.streams = Streams::Pipes;
        let job = arena.outlast.start(spec).map_err(|failure| failure.to_string())?;
        for part in 1..=3 {
            grown_to(&job, part * 3000 + arena.below(1000));
            kills += u64::from(kill_keeper(&job));
        }
        arena.check(&job, LINES, &mut tally);
    }
    tally.note = format!("{kills} keepers killed, each when it had taken over");
    Ok(tally)
}

/// Kills the keeper of a job, and waits until another has taken over, or the job has ended.
pub(super) fn kill_keeper(job: &Job) -> bool {
    let Ok(before) = job.info() else { return false };
    if !send(job, "keeper", Signal::KILL) {
        return false;
    }
    let until = Instant::now() + Duration::from_secs(10);
    while Instant::now() < until {
        match job.info() {
            Ok(info) if info.takeovers == before.takeovers && info.state.is_live() => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Ok(_) | Err(_) => break,
        }
    }
    true
}

/// Keeper and asking client are killed while a job is being ended that does not listen to SIGTERM.
pub(super) fn kill_begun(arena: &mut Arena) -> Result<Tally, String> {
    let mut tally = Tally { tried: arena.times(40), ..Tally::default() };
    for _ in 0..tally.tried {
        let spec = arena.shell("trap '' TERM HUP; echo up; while :; do sleep 0.05; done");
        let job = arena.outlast.start(spec).map_err(|failure| failure.to_string())?;
        grown_to(&job, 3);
        let mut client = arena.cli(&["kill", &job.handle().to_string(), "--grace", "1s"])?;
        let until = Instant::now() + Duration::from_secs(10);
        while !has_begun(&job) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = client.kill();
        let _ = client.wait();
        send(&job, "keeper", Signal::KILL);
        if !waited_for_end(&job) {
            tally.hung += 1;
            let _ = job.kill(Duration::ZERO, "faults");
            continue;
        }
        let by_kill = job.info().is_ok_and(|info| {
            let receipt = info.state.receipt();
            receipt.is_some_and(|receipt| {
                matches!(receipt.ended_by, outlast_job::lifecycle::EndedBy::Kill { .. })
            })
        });
        tally.lost_receipts += u64::from(!by_kill);
    }
    Ok(tally)
}

fn has_begun(job: &Job) -> bool {
    use outlast_job::lifecycle::State;
    job.info().is_ok_and(|info| matches!(info.state, State::Running { ending: Some(_) }))
}

/// Keeper and heir are killed; a process of the job has left its session and holds none of its ends. `kill` must end it, and
/// the session must be told that the job is lost.
pub(super) fn strays(arena: &mut Arena) -> Result<Tally, String> {
    let mut tally = Tally { tried: arena.times(20), ..Tally::default() };
    for _ in 0..tally.tried {
        let mut spec = arena.shell("setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo up; sleep 1000");
        spec.session = "faults".into();
        let job = arena.outlast.start(spec).map_err(|failure| failure.to_string())?;
        grown_to(&job, 3);
        send(&job, "heir", Signal::STOP);
        send(&job, "keeper", Signal::KILL);
        send(&job, "heir", Signal::KILL);
        tally.hung += u64::from(!waited_for_end(&job));
        let killed = job.kill(Duration::from_millis(100), "faults").map_err(|failure| failure.to_string())?;
        tally.left += killed.survivors.len() as u64;
    }
    let outbox = std::fs::read_to_string(arena.home().join("outbox/faults/events.jsonl")).unwrap_or_default();
    let told = outbox.lines().filter(|line| line.contains("nobody saw how it ended")).count() as u64;
    tally.lost_receipts += tally.tried.saturating_sub(told);
    tally.note = format!("{told} told to their session");
    Ok(tally)
}

/// The client that starts a job has a limit for files that its output exceeds, and ignores SIGCHLD.
pub(super) fn inherited(arena: &mut Arena) -> Result<Tally, String> {
    let mut tally = Tally { tried: arena.times(30), ..Tally::default() };
    for _ in 0..tally.tried {
        let own = crate::bench::own_program();
        let line = format!(
            "trap '' CHLD; ulimit -S -f 8; ulimit -S -t 1; umask 077; exec '{}' run -d --pipe -- sh -c \
             'ulimit -S -t unlimited; exec {own} count 3000 100 100'",
            arena.program.display()
        );
        let mut client = arena.command("sh", &["-c", &line])?;
        tally.hung += u64::from(!ended_in_time(&mut client));
        let newest = arena.outlast.jobs().into_iter().map(|info| info.handle).max();
        let Some(job) = newest.and_then(|handle| arena.outlast.job(&handle.to_string()).ok()) else {
            tally.lost_receipts += 1;
            continue;
        };
        if waited_for_end(&job) {
            let code = job.info().ok().and_then(|info| info.state.exit_code());
            tally.lost_receipts += u64::from(code != Some(CODE));
            tally.lost_bytes += super::arena::missing(&log(&job), 3000);
        } else {
            tally.hung += 1;
        }
    }
    Ok(tally)
}

/// As many connections as a keeper takes, all idle: the job can still be ended.
pub(super) fn besieged(arena: &mut Arena) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let crowds: &[usize] = if arena.is_sample() { &[256, 1000] } else { &[256, 1000, 5000] };
    for &connections in crowds {
        let spec = arena.shell("echo up; sleep 1000");
        let job = arena.outlast.start(spec).map_err(|failure| failure.to_string())?;
        grown_to(&job, 3);
        let socket = arena.home().join("jobs").join(job.handle().to_string()).join("keeper.sock");
        let mut held: Vec<UnixStream> = Vec::new();
        for _ in 0..connections {
            match UnixStream::connect(&socket) {
                Ok(mut line) => {
                    let _ = line.set_read_timeout(Some(Duration::from_millis(1)));
                    let _ = line.read(&mut [0; 64]);
                    held.push(line);
                }
                Err(_) => break,
            }
        }
        tally.tried += 1;
        let began = Instant::now();
        let killed = job.kill(Duration::from_millis(100), "faults");
        tally.hung += u64::from(killed.is_err() || began.elapsed() > super::arena::CALL_TIMEOUT);
        tally.lost_receipts += u64::from(!waited_for_end(&job));
    }
    tally.note = format!("{crowds:?} idle connections, then a kill");
    Ok(tally)
}

/// Many jobs of one session end together, under the default retention: nothing is removed that nobody has read.
pub(super) fn unread(arena: &mut Arena) -> Result<Tally, String> {
    let mut tally = Tally { tried: arena.times(300), ..Tally::default() };
    let mut handles = Vec::new();
    for _ in 0..tally.tried {
        let job = arena.outlast.start(arena.shell("sleep 0.5; echo result")).map_err(|f| f.to_string())?;
        handles.push(job.handle());
    }
    for handle in handles {
        let result = arena.outlast.job(&handle.to_string()).ok();
        let whole = result.is_some_and(|job| waited_for_end(&job) && log(&job).starts_with(b"result"));
        tally.lost_receipts += u64::from(!whole);
    }
    Ok(tally)
}

/// The folder of a running job is removed: SIGTERM to its keeper ends all of it.
pub(super) fn folder_removed(arena: &mut Arena) -> Result<Tally, String> {
    let mut tally = Tally { tried: arena.times(20), ..Tally::default() };
    for _ in 0..tally.tried {
        let job = arena.outlast.start(arena.shell("echo up; sleep 1000")).map_err(|f| f.to_string())?;
        grown_to(&job, 3);
        let keeper = process(&job, "keeper");
        let _ = std::fs::remove_dir_all(arena.home().join("jobs").join(job.handle().to_string()));
        // What is left to end it with is its keeper.
        if let Some(keeper) = keeper {
            let _ = outlast_pty::signal::send(&keeper, Signal::TERM);
        }
    }
    tally.left += arena.end_all();
    tally.note = "the folder is removed under a running job; SIGTERM to its keeper ends it".into();
    Ok(tally)
}

/// A disk is cut off at some moment after a job was said to have ended: an image of it is copied while it is in use, and looked at.
/// Where there is a record of the end there is the log, or it is said what of it is gone.
pub(super) fn power(arena: &mut Arena) -> Result<Tally, String> {
    let (image, disk, copy) =
        (arena.scratch().join("image"), arena.scratch().join("disk"), arena.scratch().join("copy"));
    for folder in [&disk, &copy] {
        std::fs::create_dir(folder).map_err(|error| error.to_string())?;
    }
    let run =
        |line: String| Command::new("sh").args(["-ec", &line]).status().is_ok_and(|status| status.success());
    let image = image.display().to_string();
    let mount = format!(
        "truncate -s 64M '{image}' && mkfs.ext4 -q '{image}' && mount -o loop '{image}' '{}' && chmod 700 '{}'",
        disk.display(),
        disk.display()
    );
    if !run(mount) {
        return Ok(Tally::skipped("no file system may be mounted from an image"));
    }
    let tried = cut(arena, &disk, &copy, &image, &run);
    run(format!("umount '{}'", disk.display()));
    tried
}

fn cut(
    arena: &mut Arena,
    disk: &std::path::Path,
    copy: &std::path::Path,
    image: &str,
    run: &dyn Fn(String) -> bool,
) -> Result<Tally, String> {
    use outlast_job::Outlast;
    let mut tally = Tally { tried: arena.times(12), ..Tally::default() };
    let mut records = 0;
    for round in 0..tally.tried {
        let outlast =
            Outlast::at(&disk.join("home")).map_err(|failure| failure.to_string())?.kept_by(&arena.program);
        let mut job = arena.spec(&["count", "200", "20", "100"]);
        job.streams = Streams::Pipes;
        let job = outlast.start(job).map_err(|failure| failure.to_string())?;
        tally.hung += u64::from(!waited_for_end(&job));
        std::thread::sleep(Duration::from_millis(arena.below(3000)));
        let cut = format!("{image}.{round}");
        // The copy is not of one moment, as a cut of the power would be; the file system's own journal makes it whole.
        let mounted = run(format!(
            "cp --sparse=always '{image}' '{cut}' && mount -o loop '{cut}' '{}'",
            copy.display()
        ));
        if mounted {
            if let Ok(after) = Outlast::at(&copy.join("home"))
                && let Ok(found) = after.job(&job.handle().to_string())
                && let Ok(info) = found.info()
                && info.state.receipt().is_some()
            {
                records += 1;
                let lost = info.gone.bytes_in(0, u64::MAX);
                let missing = super::arena::missing(&log(&found), 200);
                tally.lost_bytes += if lost == 0 { missing } else { 0 };
            }
            run(format!("umount '{}'; rm '{cut}'", copy.display()));
        }
    }
    tally.note = format!("{records} of the copies had the receipt, up to 3 s after the end was told");
    Ok(tally)
}
