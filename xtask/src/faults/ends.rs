//! Ends that must be known and told, and requests that must be answered, whatever happens around them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use outlast_job::{Outlast, Send, Streams};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::Tally;
use super::arena::{Arena, CALL_TIMEOUT, send, waited_for_end};
use crate::bench::Server;

/// More is free than what makes a keeper careful at once, and in the job's first moment nothing is.
pub(super) fn full_at_once(arena: &mut Arena) -> Result<Tally, String> {
    let disk = arena.scratch().join("small");
    std::fs::create_dir(&disk).map_err(|error| error.to_string())?;
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=72m,mode=700", "none"]).arg(&disk).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return Ok(Tally::skipped("no file system may be mounted"));
    }
    let mut tally = Tally { tried: arena.times(30), ..Tally::default() };
    let outlast =
        Outlast::at(&disk.join("home")).map_err(|failure| failure.to_string())?.kept_by(&arena.program);
    let filler = disk.join("filler");
    for round in 0..tally.tried {
        let kills = round % 2 == 1;
        let last = if kills { "sleep 0.2; " } else { "" };
        let fill = format!("head -c 200M /dev/zero 2>/dev/null >'{}'; {last}exit 5", filler.display());
        let job = outlast.start(arena.shell(&fill)).map_err(|failure| failure.to_string())?;
        if kills {
            std::thread::sleep(Duration::from_millis(arena.below(300)));
            send(&job, "keeper", Signal::KILL);
        }
        tally.hung += u64::from(!waited_for_end(&job));
        let code = job.info().ok().and_then(|info| info.state.exit_code());
        tally.lost_receipts += u64::from(code != Some(5));
        let _ = std::fs::remove_file(&filler);
    }
    tally.left += arena.end_all_of(&disk.join("home"), &|_| ());
    let _ = Command::new("umount").arg("--lazy").arg(&disk).status();
    tally.note = "every second one with its keeper killed while nothing is free".into();
    Ok(tally)
}

/// The keeper is killed as soon as its receipt is on the disk: the end must be told, once.
pub(super) fn told(arena: &mut Arena) -> Result<Tally, String> {
    let mut tally = Tally { tried: arena.times(150), ..Tally::default() };
    let mut handles = Vec::new();
    for _ in 0..tally.tried {
        let job = arena.outlast.start(arena.shell("exit 3")).map_err(|failure| failure.to_string())?;
        let until = Instant::now() + CALL_TIMEOUT;
        while !job.has_ended_on_record() && Instant::now() < until {
            std::hint::spin_loop();
        }
        std::thread::sleep(Duration::from_micros(arena.below(1000)));
        send(&job, "keeper", Signal::KILL);
        tally.hung += u64::from(!waited_for_end(&job));
        handles.push(serde_json::to_value(job.handle()).map_err(|error| error.to_string())?);
    }
    // Whoever takes over may still be at it.
    let until = Instant::now() + CALL_TIMEOUT;
    let times_told = || {
        let outbox =
            std::fs::read_to_string(arena.home().join("outbox/faults/events.jsonl")).unwrap_or_default();
        let ends: Vec<Value> = outbox.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let of = |handle: &Value| {
            let is_end = |entry: &&Value| entry["event"] == "exit" && entry["job"] == *handle;
            ends.iter().filter(is_end).count()
        };
        handles.iter().map(of).collect::<Vec<usize>>()
    };
    while times_told().contains(&0) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
    let told = times_told();
    let twice = told.iter().filter(|times| **times > 1).count();
    tally.lost_receipts += told.iter().filter(|times| **times != 1).count() as u64;
    tally.note = format!("{} told once, {twice} twice", told.iter().filter(|times| **times == 1).count());
    Ok(tally)
}

/// What a job left ends together with its keeper, or with the one that has taken over: whoever is left then must see that all is
/// done, and leave.
pub(super) fn all_done(arena: &mut Arena) -> Result<Tally, String> {
    let mut tally = Tally { tried: arena.times(150), ..Tally::default() };
    for round in 0..tally.tried {
        let mut spec = arena.shell("setsid sleep 1000 </dev/null >/dev/null 2>&1 & read x; exit 7");
        let on_pipes = round % 2 == 1;
        if on_pipes {
            spec.streams = Streams::Pipes;
        }
        let job = arena.outlast.start(spec).map_err(|failure| failure.to_string())?;
        // On pipes a second one takes over too, who is not the parent of what is left.
        for _ in 0..if on_pipes { arena.below(3) } else { 0 } {
            super::corners::kill_keeper(&job);
        }
        let line = Send { text: "x".into(), newline: true, ..Send::default() };
        job.send(&line, None).map_err(|failure| failure.to_string())?;
        tally.hung += u64::from(!waited_for_end(&job));
        let info = job.info().map_err(|failure| failure.to_string())?;
        tally.lost_receipts += u64::from(info.state.exit_code() != Some(7));
        let left = info.state.receipt().and_then(|receipt| receipt.left_behind.first());
        let left = left.and_then(|left| rustix::process::Pid::from_raw(left.pid));
        let end_left = || left.map(|left| rustix::process::kill_process(left, Signal::KILL));
        match arena.below(4) {
            0 => {
                end_left();
                std::thread::sleep(Duration::from_micros(arena.below(2000)));
                send(&job, "keeper", Signal::KILL);
            }
            1 => {
                send(&job, "keeper", Signal::KILL);
                std::thread::sleep(Duration::from_micros(arena.below(2000)));
                end_left();
            }
            2 => {
                send(&job, "keeper", Signal::STOP);
                end_left();
                send(&job, "keeper", Signal::KILL);
            }
            _ => drop(end_left()),
        }
    }
    tally.note = "every second one on pipes, with up to two keepers killed before".into();
    Ok(tally)
}

/// The server is the first process of a container: whatever ends there is its to reap.
pub(super) fn first_process(arena: &mut Arena) -> Result<Tally, String> {
    let works = Command::new("unshare").args(["-pf", "--mount-proc", "true"]).status();
    if !works.is_ok_and(|status| status.success()) {
        return Ok(Tally::skipped("no PID namespace may be made"));
    }
    let wrapper = arena.scratch().join("contained");
    let script = format!(
        "#!/bin/sh\nexec unshare -pf --mount-proc --kill-child '{}' \"$@\"\n",
        arena.program.display()
    );
    std::fs::write(&wrapper, script).map_err(|error| error.to_string())?;
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&wrapper, all).map_err(|error| error.to_string())?;
    let mut server = Server::start(&wrapper, &arena.home())?;
    let mut tally = Tally { tried: arena.times(60), ..Tally::default() };
    for _ in 0..tally.tried {
        let ended = server.call("run_shell_command", &json!({"command": "(sleep 0.01 &) ; exit 5"}))?;
        tally.lost_receipts += u64::from(ended["exit_code"] != 5);
    }
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let count = "n=0; for s in /proc/[0-9]*/stat; do read -r _ _ state _ <$s && [ \"$state\" = Z ] && n=$((n+1)); done; echo zombies=$n";
        let zombies = server.call("run_shell_command", &json!({"command": count}))?;
        let text = zombies["output"].as_str().unwrap_or_default().to_owned();
        let left: u64 = text.trim().rsplit('=').next().and_then(|n| n.parse().ok()).unwrap_or(1);
        if left == 0 || Instant::now() >= until {
            tally.left += left;
            break;
        }
    }
    tally.note = "zombies are what is left".into();
    Ok(tally)
}

/// Requests that can't be read: each has an id, and its caller waits for an answer.
pub(super) fn unreadable(arena: &mut Arena) -> Result<Tally, String> {
    let mut child = Command::new(&arena.program)
        .arg("mcp")
        .env("OUTLAST_HOME", arena.home())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let (Some(mut to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("no pipes".into());
    };
    let (give, answers) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let _ = give.send(serde_json::from_str::<Value>(&line).unwrap_or_default());
        }
    });
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "f", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello});
    let begun = format!("{hello}\n{}\n", json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    to.write_all(begun.as_bytes()).map_err(|error| error.to_string())?;
    let mut tally = Tally::default();
    let call = |id: u64, inside: &[u8]| {
        let mut line =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":").into_bytes();
        line.extend_from_slice(inside);
        line.extend_from_slice(b"}\n");
        line
    };
    let long = format!("\"{}\"", "a".repeat(17 << 20));
    let deep = format!("{}{}", "[".repeat(2000), "]".repeat(2000));
    let odd: [&[u8]; 6] =
        [b"\"\\ud800\"", b"\"\xff\xfe\"", deep.as_bytes(), long.as_bytes(), b"nothing", b"[]"];
    let mut peak = 0.0_f64;
    for round in 0..arena.times(30) {
        for (index, inside) in odd.iter().enumerate() {
            let id = 1 + round * 10 + index as u64;
            to.write_all(&call(id, inside)).map_err(|error| error.to_string())?;
            tally.tried += 1;
            let until = Instant::now() + CALL_TIMEOUT;
            let answered = std::iter::from_fn(|| {
                answers.recv_timeout(until.saturating_duration_since(Instant::now())).ok()
            })
            .any(|answer| answer["id"] == id || (inside == b"[]" && answer["id"].is_null()));
            tally.hung += u64::from(!answered);
        }
        peak = peak.max(crate::bench::peak_kib(child.id().cast_signed()));
    }
    let _ = child.kill();
    let _ = child.wait();
    tally.note = format!(
        "half a surrogate pair, not UTF-8, nesting of 2,000, a line of 17 MB, words that are not JSON, parameters of the wrong kind; \
         server at most {:.1} MiB",
        peak / 1024.0
    );
    Ok(tally)
}
