//! Corners that need a disk of their own or one death more, and those that a test of the real program tries as a whole.

use std::process::Command;

use outlast_job::lifecycle::Outcome;
use outlast_job::{Outlast, Send};
use rustix::process::Signal;

use super::Tally;
use super::arena::{Arena, grown_to, send, waited_for_end};
use super::corners::kill_keeper;

/// The keeper of a job on a terminal is killed, and then the heir that took over: the terminal is hung up, and somebody saw it.
pub(super) fn hung_up(arena: &mut Arena) -> Result<Tally, String> {
    let mut tally = Tally { tried: arena.times(40), ..Tally::default() };
    for _ in 0..tally.tried {
        let spec = arena.shell("echo up; exec sleep 1000");
        let job = arena.outlast.start(spec).map_err(|failure| failure.to_string())?;
        grown_to(&job, 3);
        kill_keeper(&job);
        kill_keeper(&job);
        tally.hung += u64::from(!waited_for_end(&job));
        let told = job.info().is_ok_and(|info| {
            info.state.receipt().is_some_and(
                |receipt| matches!(&receipt.outcome, Outcome::Signalled { signal, .. } if signal == "SIGHUP"),
            )
        });
        tally.lost_receipts += u64::from(!told);
    }
    tally.note = "each has a receipt that says SIGHUP".into();
    Ok(tally)
}

/// The disk becomes read-only under running jobs: their codes are known all the same, also after the keeper was killed.
pub(super) fn read_only(arena: &mut Arena) -> Result<Tally, String> {
    let (image, disk) = (arena.scratch().join("image"), arena.scratch().join("disk"));
    std::fs::create_dir(&disk).map_err(|error| error.to_string())?;
    let (image, at) = (image.display().to_string(), disk.display().to_string());
    let run =
        |line: String| Command::new("sh").args(["-ec", &line]).status().is_ok_and(|status| status.success());
    if !run(format!(
        "truncate -s 32M '{image}' && mkfs.ext4 -q '{image}' && mount -o loop '{image}' '{at}' && chmod 700 '{at}'"
    )) {
        return Ok(Tally::skipped("no file system may be mounted from an image"));
    }
    let tried =
        on_failing_disk(arena, &disk, &|| run(format!("mount -o remount,abort '{at}' 2>/dev/null || true")));
    run(format!("umount --lazy '{at}'"));
    tried
}

fn on_failing_disk(arena: &Arena, disk: &std::path::Path, fail: &dyn Fn() -> bool) -> Result<Tally, String> {
    let home = disk.join("home");
    let outlast = Outlast::at(&home).map_err(|failure| failure.to_string())?.kept_by(&arena.program);
    let mut tally = Tally { tried: arena.times(30), ..Tally::default() };
    let mut jobs = Vec::new();
    for _ in 0..tally.tried {
        let job = outlast.start(arena.shell("echo up; read x; exit 5")).map_err(|f| f.to_string())?;
        grown_to(&job, 3);
        jobs.push(job);
    }
    fail();
    if std::fs::write(disk.join("probe"), "x").is_ok() {
        return Ok(Tally::skipped("the file system could not be made to fail"));
    }
    let line = Send { text: "x".into(), newline: true, ..Send::default() };
    for (number, job) in jobs.iter().enumerate() {
        job.send(&line, None).map_err(|failure| failure.to_string())?;
        tally.hung += u64::from(!waited_for_end(job));
        if number % 2 == 1 {
            send(job, "keeper", Signal::KILL);
            tally.hung += u64::from(!waited_for_end(job));
        }
        let code = outlast.jobs().into_iter().find(|info| info.handle == job.handle());
        let code = code.and_then(|info| info.state.exit_code());
        tally.lost_receipts += u64::from(code != Some(5));
        let _ = job.kill(std::time::Duration::ZERO, "faults");
    }
    tally.left += arena.end_all_of(&home, &|_| ());
    tally.note = "every second one with its keeper killed after the end".into();
    Ok(tally)
}

/// Tests of the real program, with the debug build, as many as have this in their name; one that fails is a receipt lost.
fn by_test(binary: &str, name: &str, set: &[(&str, std::path::PathBuf)]) -> Result<Tally, String> {
    let out = Command::new(env!("CARGO"))
        .args(["test", "--quiet", "--package", "outlast", "--test", binary, "--", "--include-ignored", name])
        .envs(set.iter().map(|(name, value)| (name, value)))
        .env("OUTLAST_NO_SKIPS", "1")
        .current_dir(crate::bench::root())
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&out.stdout);
    let count = |word: &str| {
        let result = text.lines().find(|line| line.starts_with("test result:"))?;
        result.split(['.', ';']).find_map(|part| part.trim().strip_suffix(word)?.trim().parse::<u64>().ok())
    };
    let (Some(passed), Some(failed)) = (count("passed"), count("failed")) else {
        return Err(format!("{binary} {name}: {text}{}", String::from_utf8_lossy(&out.stderr)));
    };
    if failed > 0 {
        eprintln!("{text}");
    }
    let note = format!("tests of `{binary}` named {name}");
    Ok(Tally { tried: passed + failed, lost_receipts: failed, note, ..Tally::default() })
}

pub(super) fn poison(_: &mut Arena) -> Result<Tally, String> {
    by_test("it", "that_kills_a_keeper", &[]).and_then(|requests| {
        let bytes = by_test("it", "what_kills_a_keeper", &[])?;
        Ok(Tally {
            tried: requests.tried + bytes.tried,
            lost_receipts: requests.lost_receipts + bytes.lost_receipts,
            note: "bytes and a request that a debug build dies of".into(),
            ..Tally::default()
        })
    })
}

pub(super) fn durable(_: &mut Arena) -> Result<Tally, String> {
    by_test("it", "durable::", &[])
}

pub(super) fn hidden(_: &mut Arena) -> Result<Tally, String> {
    by_test("it", "kill_says_what_it_cannot_see", &[])
}

pub(super) fn late_start(_: &mut Arena) -> Result<Tally, String> {
    by_test("it", "what_nobody_waits_for_any_more", &[])
}

pub(super) fn systemd(_: &mut Arena) -> Result<Tally, String> {
    by_test("it", "systemd::", &[])
}

pub(super) fn skew(_: &mut Arena) -> Result<Tally, String> {
    match crate::museum::program(crate::bench::root()) {
        Ok(program) => by_test("museum", "", &[("OUTLAST_MUSEUM_PROGRAM", program)]),
        Err(why) => Ok(Tally::skipped(&why)),
    }
}
