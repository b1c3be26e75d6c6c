//! Processes that stand still, and a clock that does not.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use outlast_job::{Outlast, Reason, Wait};
use rustix::process::Signal;

use super::Tally;
use super::arena::{Arena, CALL_TIMEOUT, ended_in_time, grown_to, send};

pub(super) fn stopped(arena: &mut Arena) -> Result<Tally, String> {
    let mut tally = Tally::default();
    for role in ["keeper", "command", "reader"] {
        for _ in 0..arena.times(20) {
            tally.tried += 1;
            let job = arena.counting(1000)?;
            let mut reader = arena.cli(&["logs", "-f", &job.handle().to_string()])?;
            grown_to(&job, arena.below(8000));
            let pause = Duration::from_millis(50 + arena.below(200));
            if role == "reader" {
                let pid = i32::try_from(reader.id()).unwrap_or(0);
                let process = rustix::process::Pid::from_raw(pid).and_then(outlast_pty::procfs::stat);
                let process = process.ok_or("the reader is gone")?;
                let _ = outlast_pty::signal::send(&process, Signal::STOP);
                std::thread::sleep(pause);
                let _ = outlast_pty::signal::send(&process, Signal::CONT);
            } else {
                send(&job, role, Signal::STOP);
                std::thread::sleep(pause);
                send(&job, role, Signal::CONT);
            }
            arena.check(&job, 1000, &mut tally);
            tally.hung += u64::from(!ended_in_time(&mut reader));
        }
    }
    tally.note = format!("{} each", tally.tried / 3);
    Ok(tally)
}

/// What the keeper sees as the time of day; monotonic time stays what it is.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, at);
    if (id == CLOCK_REALTIME) {
        char text[32] = {0};
        int file = open(JUMP, O_RDONLY | O_CLOEXEC);
        if (file >= 0) { (void)!read(file, text, sizeof text - 1); close(file); }
        at->tv_sec += atol(text);
    }
    return result;
}
"#;

/// A program that keeps jobs by a clock that can be jumped, and the file that says by how many seconds.
///
/// # Errors
/// There is no C compiler.
pub(super) fn program_with_jumping_clock(arena: &Arena) -> Result<(PathBuf, PathBuf), String> {
    let folder = arena.scratch().to_owned();
    let (source, shim, jump) = (folder.join("shim.c"), folder.join("shim.so"), folder.join("jump"));
    std::fs::write(&source, SHIM).map_err(|error| error.to_string())?;
    let built = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&shim)
        .arg(format!("-DJUMP=\"{}\"", jump.display()))
        .arg(&source)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return Err("no C compiler".into());
    }
    // Keepers run without the caller's environment: the shim comes in by the program itself.
    let wrapper = folder.join("wrapper");
    let script =
        format!("#!/bin/sh\nLD_PRELOAD='{}' exec '{}' \"$@\"\n", shim.display(), arena.program.display());
    std::fs::write(&wrapper, script).map_err(|error| error.to_string())?;
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&wrapper, all).map_err(|error| error.to_string())?;
    Ok((wrapper, jump))
}

pub(super) fn clock(arena: &mut Arena) -> Result<Tally, String> {
    let (wrapper, jump) = match program_with_jumping_clock(arena) {
        Ok(made) => made,
        Err(why) => return Ok(Tally::skipped(&why)),
    };
    arena.outlast = Outlast::at(&arena.home()).map_err(|failure| failure.to_string())?.kept_by(&wrapper);
    let mut tally = Tally { tried: arena.times(20), ..Tally::default() };
    let mut off = 0;
    for round in 0..tally.tried {
        std::fs::write(&jump, "0").map_err(|error| error.to_string())?;
        let mut spec = arena.spec(&["count", "600", "20", "20000"]);
        spec.timeout = Some(Duration::from_secs(25));
        let job = arena.outlast.start(spec).map_err(|failure| failure.to_string())?;
        grown_to(&job, arena.below(2000));
        let jumps = if round % 2 == 0 { "86400" } else { "-86400" };
        std::fs::write(&jump, jumps).map_err(|error| error.to_string())?;
        // A wait of a quarter of a second takes that long, whatever the wall says; the job takes longer.
        let (quarter, began) = (Duration::from_millis(250), Instant::now());
        let waited =
            job.wait(&Wait::for_pattern("never"), Some(quarter)).map_err(|failure| failure.to_string())?;
        let on_time =
            waited.reason == Reason::Deadline && began.elapsed() >= quarter && began.elapsed() < CALL_TIMEOUT;
        off += u64::from(!on_time);
        arena.check(&job, 600, &mut tally);
    }
    tally.hung += off;
    tally.note = "timeouts and waits go by a clock that does not jump".into();
    Ok(tally)
}
