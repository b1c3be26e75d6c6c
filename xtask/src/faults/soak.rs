//! `cargo xtask soak --minutes N`: random jobs for a long time, while everything of ours is killed at random, the disk fills up and the clock
//! jumps. What was lost or left is counted, and long-lived processes are watched: their memory and descriptors must stay flat.

mod evidence;
mod samples;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use evidence::Evidence;
use outlast_job::lifecycle::{Outcome, State};
use outlast_job::{Job, Outlast, Streams};
use outlast_testkit::Dice;
use rustix::process::Signal;
use samples::Samples;
use serde_json::json;

use super::arena::{self, Arena, CALL_TIMEOUT, CODE, ended_in_time_or, grown_to, send, waited_for_end};
use super::pauses;
use crate::bench::Server;
use crate::page;

/// Workers that start jobs, each one after another.
const WORKERS: usize = 4;
/// How often the long-lived processes are looked at.
const SAMPLE_EVERY: Duration = Duration::from_secs(5);
/// So many calls before the lasting server is looked at.
const WARM_UP_CALLS: usize = 40;
/// The disk that the home is on.
const DISK_MIB: u64 = 192;
const MARKS: (&str, &str) = ("<!-- counted: cargo xtask soak -->", "<!-- end of the soak -->");

/// What was done, and what it cost.
#[derive(Default)]
struct Counts {
    done: BTreeMap<&'static str, u64>,
    lost_bytes: u64,
    lost_receipts: u64,
    hung: u64,
    untold: u64,
    left: u64,
    unwritten: u64,
}

impl Counts {
    fn add(&mut self, what: &'static str) {
        *self.done.entry(what).or_default() += 1;
    }

    fn is_clean(&self) -> bool {
        self.lost_bytes + self.lost_receipts + self.hung + self.untold + self.left == 0
    }
}

/// What every thread has.
struct Soak {
    arena: Arena,
    outlast: Outlast,
    home: PathBuf,
    jump: Option<PathBuf>,
    over: AtomicBool,
    /// How many workers are at work.
    busy: AtomicUsize,
    counts: Mutex<Counts>,
    /// How often the end of each job was told to whoever follows the session.
    told: Mutex<BTreeMap<u64, u64>>,
    evidence: Evidence,
}

impl Soak {
    fn count(&self, change: impl FnOnce(&mut Counts)) {
        if let Ok(mut counts) = self.counts.lock() {
            change(&mut counts);
        }
    }

    /// Says that something went wrong, and keeps what can be seen of it.
    fn blame(&self, what: &str, job: Option<&Job>) {
        let folder = job.map(|job| PathBuf::from(job.files().folder));
        self.evidence.keep(what, folder.as_deref(), &self.arena.processes(&self.home));
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// `cargo xtask soak [--write] --minutes N`
///
/// # Errors
/// When something was lost, hung or left, or a process grew.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let (minutes, write) = match words {
        ["--minutes", minutes] => (minutes, false),
        ["--minutes", minutes, "--write"] | ["--write", "--minutes", minutes] => (minutes, true),
        _ => return Err("cargo xtask soak --minutes N [--write]".into()),
    };
    let minutes: f64 = minutes.parse().map_err(|error| format!("{minutes}: {error}"))?;
    let arena = Arena::new("soak", false, 1)?;
    let disk = arena.scratch().join("disk");
    std::fs::create_dir(&disk).map_err(|error| error.to_string())?;
    let size = format!("size={DISK_MIB}m,mode=700");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "none"]).arg(&disk).status();
    let has_disk = mounted.is_ok_and(|status| status.success());
    let soaked = soak(arena, &disk, has_disk, Duration::from_secs_f64(minutes * 60.0));
    if has_disk {
        let _ = Command::new("umount").args(["--lazy"]).arg(&disk).status();
    }
    let (counts, samples) = soaked?;
    let text = report(minutes, &counts, &samples);
    println!("{text}");
    if write {
        let root = crate::bench::root();
        std::fs::write(root.join("docs/soak.svg"), samples.svg()).map_err(|error| error.to_string())?;
        page::fill(&root.join("docs/faults.md"), MARKS, &text)?;
    }
    match (counts.is_clean(), samples.grown()) {
        (true, None) => Ok(()),
        (false, _) => Err("something was lost, hung or left".into()),
        (true, Some(name)) => Err(format!("{name} has grown")),
    }
}

fn soak(arena: Arena, disk: &Path, has_disk: bool, time: Duration) -> Result<(Counts, Samples), String> {
    let home = disk.join("home");
    let jumping = pauses::program_with_jumping_clock(&arena);
    let (keeper, jump) = match jumping {
        Ok((keeper, jump)) => (keeper, Some(jump)),
        Err(_) => (arena.program.clone(), None),
    };
    let outlast = Outlast::at(&home).map_err(|failure| failure.to_string())?.kept_by(&keeper);
    let over = AtomicBool::new(false);
    let busy = AtomicUsize::new(WORKERS);
    let soak = Soak {
        arena,
        outlast,
        home,
        jump,
        over,
        busy,
        counts: Mutex::default(),
        told: Mutex::default(),
        evidence: Evidence::new(),
    };
    let mut samples = Samples::default();
    // One job that is there all the time, and one server.
    let mut server = Server::start(&soak.arena.program, &soak.home)?;
    let words = ["count", "100000000", "1", "100000"];
    let lasting = soak.outlast.start(soak.arena.spec(&words)).map_err(|failure| failure.to_string())?;
    let (mut follower, tells) = follow(&soak)?;
    let lasting_processes = ["keeper", "heir"].map(|role| (role, arena::process(&lasting, role)));
    // What a server keeps open of the jobs that it used last is bounded, and there from now on.
    for _ in 0..WARM_UP_CALLS {
        ask(&soak, &mut server);
    }
    let until = Instant::now() + time;
    let runs = std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| work(&soak));
        }
        scope.spawn(|| serve_and_kill(&soak));
        scope.spawn(|| hear(&soak, tells));
        scope.spawn(|| disturb(&soak, disk, has_disk));
        let began = Instant::now();
        while Instant::now() < until {
            let at = began.elapsed().as_secs_f64() / 60.0;
            samples.take("MCP server", server.pid(), at);
            samples.take("events --follow", follower.id(), at);
            for (role, process) in &lasting_processes {
                if let Some(process) = process {
                    samples.take(role, process.pid.as_raw_nonzero().get().unsigned_abs(), at);
                }
            }
            ask(&soak, &mut server);
            std::thread::sleep(SAMPLE_EVERY);
        }
        soak.over.store(true, Ordering::Relaxed);
        // Workers finish what they are at, and look whether it was told; the follower is ended when they are done.
        while soak.busy.load(Ordering::Relaxed) > 0 {
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = follower.kill();
        lasting.info().map(|info| info.state.is_live())
    });
    if !runs.as_ref().is_ok_and(|runs| *runs) {
        soak.blame(&format!("the lasting job: {runs:?}"), Some(&lasting));
        soak.count(|counts| counts.lost_receipts += 1);
    }
    let ended = lasting.kill(Duration::from_secs(1), "faults");
    if let Err(failure) = &ended {
        soak.blame(&format!("the lasting job could not be ended: {failure}"), Some(&lasting));
    }
    soak.count(|counts| counts.hung += u64::from(ended.is_err()));
    let _ = follower.wait();
    drop(server);
    let left = soak.arena.end_all_of(&soak.home, &|left| soak.evidence.keep("left at the end", None, left));
    let mut counts = soak.counts.into_inner().map_err(|_| "a worker panicked")?;
    counts.left += left;
    Ok((counts, samples))
}

/// Somebody who follows the session's events all the time.
fn follow(soak: &Soak) -> Result<(Child, ChildStdout), String> {
    let mut follower = Command::new(&soak.arena.program)
        .arg("--home")
        .arg(&soak.home)
        .args(["events", "--follow", "--json", "--session", "faults", "--reader", "soak"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let tells = follower.stdout.take().ok_or("no pipe")?;
    Ok((follower, tells))
}

/// Hears what the follower tells.
fn hear(soak: &Soak, tells: ChildStdout) {
    for line in BufReader::new(tells).lines().map_while(Result::ok) {
        let entry: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        if entry["event"] == "exit"
            && let Some(job) = entry["job"].as_u64()
            && let Ok(mut told) = soak.told.lock()
        {
            *told.entry(job).or_default() += 1;
        }
    }
}

/// The lasting server is asked, so that it has something to do.
fn ask(soak: &Soak, server: &mut Server) {
    let asked = server
        .call("jobs", &json!({"all": true}))
        .and_then(|_| server.call("run_shell_command", &json!({"command": "seq 100; exit 3"})));
    soak.count(|counts| {
        counts.add("calls of the lasting server");
        match asked {
            Ok(_) => {}
            Err(error) if error.contains("No space left") => counts.add("starts refused: no space"),
            Err(error) => {
                counts.hung += 1;
                soak.blame(&format!("the lasting server: {error}"), None);
            }
        }
    });
}

fn work(soak: &Soak) {
    let mut dice = Dice::new();
    while !soak.is_over() {
        let done = match dice.below(10) {
            0..=4 => counted(soak, &mut dice),
            5 | 6 => at_the_end(soak, &mut dice),
            7 | 8 => ended_tree(soak, &mut dice),
            _ => lost(soak, &mut dice),
        };
        if let Err(error) = done {
            soak.blame(&error, None);
            soak.count(|counts| counts.hung += 1);
        }
    }
    soak.busy.fetch_sub(1, Ordering::Relaxed);
}

/// A job that counts, whose keeper, heir, client or self is killed or stopped in the middle.
fn counted(soak: &Soak, dice: &mut Dice) -> Result<(), String> {
    let lines = 200 + dice.below(1500);
    let mut spec = soak.arena.spec(&["count", &lines.to_string(), "20", "2000"]);
    let on_pipes = dice.below(2) == 0;
    if on_pipes {
        spec.streams = Streams::Pipes;
    }
    let Some(job) = start(soak, spec)? else { return Ok(()) };
    let client = soak.arena.cli(&[
        "--home",
        &soak.home.to_string_lossy(),
        "wait",
        &job.handle().to_string(),
        "--exit",
    ])?;
    let mut client = Some(client);
    grown_to(&job, dice.below(lines * 9));
    match dice.below(6) {
        0 => {}
        1 | 2 => {
            for _ in 0..=if on_pipes { dice.below(3) } else { 0 } {
                super::corners::kill_keeper(&job);
                soak.count(|counts| counts.add("keepers killed"));
            }
        }
        3 if on_pipes => {
            send(&job, "heir", Signal::KILL);
            soak.count(|counts| counts.add("heirs killed"));
        }
        3 | 4 => {
            send(&job, "keeper", Signal::STOP);
            std::thread::sleep(Duration::from_millis(dice.below(200)));
            send(&job, "keeper", Signal::CONT);
            soak.count(|counts| counts.add("keepers stopped"));
        }
        _ => {
            if let Some(mut client) = client.take() {
                let _ = client.kill();
                let _ = client.wait();
            }
            soak.count(|counts| counts.add("clients killed"));
        }
    }
    check(soak, &job, lines);
    if let Some(mut client) = client {
        let in_time =
            ended_in_time_or(&mut client, || soak.blame("a client that waits for its end hangs", Some(&job)));
        soak.count(|counts| counts.hung += u64::from(!in_time));
    }
    Ok(())
}

/// A short job whose keeper is killed around its end.
fn at_the_end(soak: &Soak, dice: &mut Dice) -> Result<(), String> {
    let Some(job) = start(soak, soak.arena.spec(&["count", "40", "20", "2000"]))? else { return Ok(()) };
    grown_to(&job, 380);
    std::thread::sleep(Duration::from_micros(dice.below(4000)));
    send(&job, "keeper", Signal::KILL);
    soak.count(|counts| counts.add("keepers killed around the end"));
    check(soak, &job, 40);
    Ok(())
}

/// A tree that ignores SIGTERM and has left its session is ended; sometimes its keeper and the client are killed meanwhile.
fn ended_tree(soak: &Soak, dice: &mut Dice) -> Result<(), String> {
    let line = "trap '' TERM HUP; setsid sleep 1000 & (setsid sleep 1000 </dev/null >/dev/null 2>&1 &) ; \
                echo up; while :; do sleep 0.1; done";
    let Some(job) = start(soak, soak.arena.shell(line))? else { return Ok(()) };
    grown_to(&job, 3);
    if dice.below(3) == 0 {
        let killer = &["--home", &soak.home.to_string_lossy(), "kill", &job.handle().to_string()];
        let mut client = soak.arena.cli(killer)?;
        std::thread::sleep(Duration::from_millis(dice.below(250)));
        let _ = client.kill();
        let _ = client.wait();
        send(&job, "keeper", Signal::KILL);
        soak.count(|counts| counts.add("kills cut off"));
    }
    let killed = job.kill(Duration::from_millis(50), "faults");
    let ended = killed.as_ref().is_ok_and(|killed| killed.survivors.is_empty()) && waited_for_end(&job);
    let receipt = job.info().is_ok_and(|info| matches!(info.state, State::Killed(_) | State::Failed(_)));
    if !ended || !receipt {
        let what = format!("tree {}: ended {ended}, receipt {receipt}, {killed:?}", job.handle());
        soak.blame(&what, Some(&job));
    }
    soak.count(|counts| {
        counts.add("trees ended");
        counts.hung += u64::from(!ended);
        counts.lost_receipts += u64::from(!receipt);
    });
    finish(soak, &job);
    Ok(())
}

/// Keeper and heir at once: the job is lost, its log is not, and what is left of it can be ended.
fn lost(soak: &Soak, dice: &mut Dice) -> Result<(), String> {
    let lines = 3000;
    let Some(job) = start(soak, soak.arena.spec(&["count", "3000", "20", "4000"]))? else { return Ok(()) };
    grown_to(&job, dice.below(3000));
    send(&job, "heir", Signal::STOP);
    send(&job, "keeper", Signal::KILL);
    send(&job, "heir", Signal::KILL);
    let ended = waited_for_end(&job);
    let killed = job.kill(Duration::from_millis(50), "faults");
    let none_left = killed.as_ref().is_ok_and(|killed| killed.survivors.is_empty());
    // What was printed until then is there, from the first line on and without a gap.
    let log = arena::log(&job);
    let whole = String::from_utf8_lossy(&log);
    let printed = whole.lines().filter(|line| line.starts_with("line ")).count() as u64;
    let printed = printed.saturating_sub(u64::from(!whole.ends_with('\n')));
    let gone = job.info().map_or(0, |info| info.gone.bytes_in(0, u64::MAX));
    let missing = if gone == 0 { arena::missing(&log, printed.min(lines)) } else { 0 };
    if missing > 0 || !ended || !none_left {
        let what = format!(
            "lost job {}: ended {ended}, killed {killed:?}, {missing} bytes are missing",
            job.handle()
        );
        soak.blame(&what, Some(&job));
    }
    soak.count(|counts| {
        counts.add("jobs lost on purpose");
        counts.hung += u64::from(!ended || !none_left);
        counts.lost_bytes += missing;
    });
    finish(soak, &job);
    Ok(())
}

/// Starts a job. On a full disk it may be refused, with a reason.
fn start(soak: &Soak, spec: outlast_job::JobSpec) -> Result<Option<Job>, String> {
    match soak.outlast.start(spec) {
        Ok(job) => {
            soak.count(|counts| counts.add("jobs"));
            Ok(Some(job))
        }
        Err(failure) if failure.to_string().contains("No space left") => {
            soak.count(|counts| counts.add("starts refused: no space"));
            std::thread::sleep(Duration::from_millis(20));
            Ok(None)
        }
        Err(failure) => Err(failure.to_string()),
    }
}

fn check(soak: &Soak, job: &Job, lines: u64) {
    if !waited_for_end(job) {
        soak.blame(&format!("job {} did not end in {CALL_TIMEOUT:?}", job.handle()), Some(job));
        soak.count(|counts| counts.hung += 1);
        return;
    }
    let info = job.info().ok();
    let outcome = info.as_ref().and_then(|info| info.state.receipt()).map(|receipt| &receipt.outcome);
    let known = matches!(outcome, Some(Outcome::Exited { code: CODE }));
    if !known {
        let what = format!("job {}: {:?}", job.handle(), info.as_ref().map(|info| &info.state));
        soak.blame(&what, Some(job));
    }
    // What could not be written on the full disk is named; nothing else may be missing.
    let gone = info.as_ref().map_or(0, |info| info.gone.bytes_in(0, u64::MAX));
    let missing = if gone == 0 { arena::missing(&arena::log(job), lines) } else { 0 };
    if missing > 0 {
        soak.blame(&format!("job {}: {missing} bytes are missing", job.handle()), Some(job));
    }
    soak.count(|counts| {
        counts.lost_receipts += u64::from(!known);
        counts.lost_bytes += missing;
        counts.unwritten += gone;
    });
    finish(soak, job);
}

/// The end was told to whoever follows, once, and the job can be removed.
fn finish(soak: &Soak, job: &Job) {
    let handle: u64 = job.handle().to_string().parse().unwrap_or(0);
    let times = || soak.told.lock().map_or(0, |told| told.get(&handle).copied().unwrap_or(0));
    let told = eventually(|| times() > 0) && times() == 1;
    if !told {
        soak.blame(&format!("job {}: told {} times", job.handle(), times()), Some(job));
    }
    let removed = eventually(|| soak.outlast.remove(job).is_ok());
    if !removed {
        let why = soak.outlast.remove(job).err().map(|failure| failure.to_string());
        soak.blame(&format!("job {} can't be removed: {why:?}", job.handle()), Some(job));
    }
    soak.count(|counts| {
        counts.untold += u64::from(!told);
        counts.hung += u64::from(!removed);
    });
}

fn eventually(holds: impl Fn() -> bool) -> bool {
    let until = Instant::now() + CALL_TIMEOUT;
    while !holds() {
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// Servers that are killed in the middle of what they are asked.
fn serve_and_kill(soak: &Soak) {
    let mut dice = Dice::new();
    while !soak.is_over() {
        let Ok(mut server) = Server::start(&soak.arena.program, &soak.home) else {
            std::thread::sleep(Duration::from_millis(200));
            continue;
        };
        for _ in 0..dice.below(5) {
            let _ = server.call("run_shell_command", &json!({"command": "echo served"}));
        }
        let _ = server.send("run_shell_command", &json!({"command": "seq 1000"}));
        std::thread::sleep(Duration::from_millis(dice.below(30)));
        drop(server);
        soak.count(|counts| counts.add("servers killed"));
        std::thread::sleep(Duration::from_millis(200 + dice.below(2000)));
        // What they started is nobody's any more.
        for info in soak.outlast.jobs() {
            if info.session != "faults"
                && !info.state.is_live()
                && let Ok(job) = soak.outlast.job(&info.handle.to_string())
            {
                let _ = soak.outlast.remove(&job);
            }
        }
    }
}

/// The disk is full for a moment, and the keepers' clock jumps.
fn disturb(soak: &Soak, disk: &Path, has_disk: bool) {
    let mut dice = Dice::new();
    let pause = |time: u64| {
        let until = Instant::now() + Duration::from_millis(time);
        while Instant::now() < until && !soak.is_over() {
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    while !soak.is_over() {
        pause(5_000 + dice.below(15_000));
        if has_disk && dice.below(2) == 0 {
            let ballast = disk.join("ballast");
            let _ = std::fs::write(&ballast, vec![0; (DISK_MIB as usize) << 20]);
            pause(dice.below(1_500));
            let _ = std::fs::remove_file(&ballast);
            soak.count(|counts| counts.add("times the disk was full"));
        } else if let Some(jump) = &soak.jump {
            let by = dice.below(2 * 86_400).cast_signed() - 86_400;
            let _ = std::fs::write(jump, by.to_string());
            soak.count(|counts| counts.add("jumps of the clock"));
        }
    }
}

fn report(minutes: f64, counts: &Counts, samples: &Samples) -> String {
    let done: Vec<String> = counts.done.iter().map(|(what, count)| format!("{count} {what}")).collect();
    let Counts { lost_bytes, lost_receipts, hung, untold, left, unwritten, .. } = counts;
    format!(
        "{minutes} minutes: {}. Besides, {unwritten} bytes could not be written while the disk was full, and are named in the records.\n\n\
         | bytes lost | receipts lost | ends untold | calls hung | processes left |\n|---|---|---|---|---|\n\
         | {lost_bytes} | {lost_receipts} | {untold} | {hung} | {left} |\n\n{}\n",
        done.join(", "),
        samples.table()
    )
}
