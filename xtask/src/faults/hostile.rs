//! Output that means harm, and peers at the socket that do.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use outlast_job::{Job, Wait};

use super::Tally;
use super::arena::{self, Arena, CALL_TIMEOUT, waited_for_end};
use crate::bench::own_program;

fn connect(job: &Job) -> std::io::Result<UnixStream> {
    let stream = UnixStream::connect(Path::new(&job.files().folder).join("keeper.sock"))?;
    stream.set_read_timeout(Some(CALL_TIMEOUT))?;
    stream.set_write_timeout(Some(CALL_TIMEOUT))?;
    Ok(stream)
}

/// Whether a keeper still answers.
fn answers(job: &Job) -> bool {
    job.status().is_ok_and(|status| status.is_some())
}

fn peak_kib(job: &Job) -> f64 {
    let keeper = arena::process(job, "keeper");
    keeper.map_or(0.0, |keeper| crate::bench::peak_kib(keeper.pid.as_raw_nonzero().get()))
}

pub(super) fn soup(arena: &mut Arena) -> Result<Tally, String> {
    let mut tally = Tally { tried: arena.times(500), ..Tally::default() };
    let (mut harm, mut typed, mut peak) = (0, 0, 0.0_f64);
    for _ in 0..tally.tried {
        let seed = arena.below(u64::MAX).to_string();
        let job = arena.outlast.start(arena.spec(&["soup", &seed])).map_err(|failure| failure.to_string())?;
        // It prints what it was sent by the terminal as its last line, and ends with the usual code.
        let told = job.wait(&Wait::for_pattern(r"RUNS (\d+) of (\d+)"), Some(CALL_TIMEOUT));
        tally.hung += u64::from(!answers(&job) && job.info().is_ok_and(|info| info.state.is_live()));
        peak = peak.max(peak_kib(&job));
        if let Ok(told) = told
            && let Some(found) = told.found
        {
            let number = |at: usize| found.captures.get(at).cloned().flatten()?.parse::<u64>().ok();
            harm += number(0).unwrap_or(1);
            typed += number(1).unwrap_or(0);
        }
        tally.hung += u64::from(!waited_for_end(&job));
        tally.lost_receipts += u64::from(job.info().map_or(true, |info| info.state.name() != "failed"));
    }
    if harm > 0 || typed == 0 {
        return Err(format!("of {typed} bytes that the terminal answered, {harm} could have run a command"));
    }
    tally.note = format!(
        "of {typed} bytes that the terminal answered, {harm} were a line's end or a control character; keeper at most {:.1} MiB",
        peak / 1024.0
    );
    Ok(tally)
}

pub(super) fn endless(arena: &mut Arena) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let mut peak = 0.0_f64;
    let lines = [
        "printf '\\033]0;'; head -c 200000000 /dev/zero | tr '\\0' x; printf '\\007'; exit 7",
        "printf '\\033P'; head -c 100000000 /dev/zero | tr '\\0' x; exit 7",
        "head -c 200000000 /dev/zero | tr '\\0' x; exit 7",
        "i=0; while [ $i -lt 30000 ]; do printf '\\033]0;title %s\\007' $i; i=$((i+1)); done; exit 7",
        "yes \"$(printf '\\033[6n\\033[c\\033[5n')\" | head -c 5000000; exit 7",
    ];
    for line in lines {
        tally.tried += 1;
        let job = arena.outlast.start(arena.shell(line)).map_err(|failure| failure.to_string())?;
        let began = Instant::now();
        while job.info().is_ok_and(|info| info.state.is_live()) && began.elapsed() < CALL_TIMEOUT * 4 {
            peak = peak.max(peak_kib(&job));
            std::thread::sleep(Duration::from_millis(20));
        }
        tally.hung += u64::from(!waited_for_end(&job));
        tally.lost_receipts += u64::from(job.info().map_or(true, |info| info.state.name() != "failed"));
    }
    tally.note = format!("keeper at most {:.1} MiB", peak / 1024.0);
    Ok(tally)
}

pub(super) fn garbage(arena: &mut Arena) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let job = arena.outlast.start(arena.shell("read x; exit 7")).map_err(|failure| failure.to_string())?;
    for round in 0..arena.times(300) {
        tally.tried += 1;
        let Ok(mut stream) = connect(&job) else { continue };
        let len = usize::try_from(arena.below(4096)).unwrap_or(0);
        let bytes: Vec<u8> = (0..len).map(|_| u8::try_from(arena.below(256)).unwrap_or(0)).collect();
        let _ = stream.write_all(&bytes);
        if round % 3 == 0 {
            let _ = stream.write_all(b"{\"id\":1,\"verb\":\"sta");
        }
        // Gone in the middle of it, or after a look at the answer.
        if round % 2 == 0 {
            let _ = stream.read(&mut [0; 64]);
        }
        drop(stream);
        tally.hung += u64::from(!answers(&job));
    }
    tally.tried += 1;
    let mut stream = connect(&job).map_err(|error| error.to_string())?;
    let piece = vec![b'a'; 1 << 20];
    let sent = (0..1000).take_while(|_| stream.write_all(&piece).is_ok()).count();
    tally.hung += u64::from(!answers(&job));
    tally.note = format!(
        "the long line was cut off after {sent} MiB; keeper at most {:.1} MiB",
        peak_kib(&job) / 1024.0
    );
    job.type_line("").map_err(|failure| failure.to_string())?;
    tally.hung += u64::from(!waited_for_end(&job));
    Ok(tally)
}

pub(super) fn crowd(arena: &mut Arena) -> Result<Tally, String> {
    let mut tally = Tally { tried: arena.times(10_000), ..Tally::default() };
    let job = arena.outlast.start(arena.shell("read x; exit 7")).map_err(|failure| failure.to_string())?;
    let mut held = Vec::new();
    let mut refused = 0;
    for _ in 0..tally.tried {
        match connect(&job) {
            Ok(stream) if held.len() < 500 => held.push(stream),
            Ok(_) => {}
            Err(_) => refused += 1,
        }
    }
    drop(held);
    tally.hung += u64::from(!answers(&job));
    tally.note = format!(
        "up to 500 held at once, {refused} refused; keeper at most {:.1} MiB",
        peak_kib(&job) / 1024.0
    );
    job.type_line("").map_err(|failure| failure.to_string())?;
    tally.hung += u64::from(!waited_for_end(&job));
    Ok(tally)
}

pub(super) fn deaf(arena: &mut Arena) -> Result<Tally, String> {
    let mut tally = Tally::default();
    for _ in 0..arena.times(5) {
        let job = arena.counting(3000)?;
        let mut deaf = Vec::new();
        for _ in 0..40 {
            tally.tried += 1;
            if let Ok(mut stream) = connect(&job) {
                let _ = stream.write_all(b"{\"id\":1,\"verb\":\"follow\"}\n");
                deaf.push(stream);
            }
        }
        arena.check(&job, 3000, &mut tally);
    }
    tally.note = "40 at a time, each following and never reading".into();
    Ok(tally)
}

pub(super) fn stranger(arena: &mut Arena) -> Result<Tally, String> {
    if !rustix::process::geteuid().is_root() {
        return Ok(Tally::skipped("only root can become another user"));
    }
    let mut tally = Tally { tried: arena.times(50), ..Tally::default() };
    let job = arena.outlast.start(arena.shell("read x; exit 7")).map_err(|failure| failure.to_string())?;
    let folder = PathBuf::from(job.files().folder);
    // The folders are closed to others; here they are opened, so that the keeper itself must say no.
    for folder in [arena.scratch(), &arena.home(), &arena.home().join("jobs"), &folder] {
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(folder, all).map_err(|error| error.to_string())?;
    }
    let socket = folder.join("keeper.sock");
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&socket, all).map_err(|error| error.to_string())?;
    let copy = arena.scratch().join("stranger");
    std::fs::copy(own_program(), &copy).map_err(|error| error.to_string())?;
    let mut served = 0;
    let owner = std::process::Command::new(&copy).arg("knock").arg(&socket).status();
    if owner.map_err(|error| error.to_string())?.code() != Some(42) {
        return Err("not even its owner is answered".into());
    }
    for _ in 0..tally.tried {
        let status = std::os::unix::process::CommandExt::uid(&mut std::process::Command::new(&copy), 65534)
            .arg("knock")
            .arg(&socket)
            .status()
            .map_err(|error| error.to_string())?;
        served += u64::from(status.code() == Some(42));
    }
    if served > 0 {
        return Err(format!("{served} strangers were answered"));
    }
    tally.note = "none was answered; the owner was".into();
    tally.hung += u64::from(!answers(&job));
    job.type_line("").map_err(|failure| failure.to_string())?;
    tally.hung += u64::from(!waited_for_end(&job));
    Ok(tally)
}
