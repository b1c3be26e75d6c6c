//! `cargo xtask bench`: the built program against a bare read loop in the same run, interleaved, as medians
//! and ratios. Absolute times mean little on a shared machine: read the ratios and the curves.

mod against;
mod bare;
mod cold;
mod crowd;
pub(crate) mod emit;
mod hour;
pub(crate) mod large;
mod latency;
pub(crate) mod peers;
mod plot;
mod reading;
mod report;
mod server;
mod stats;
mod targets;
mod throughput;
pub(crate) mod told;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use outlast_job::Outlast;

use crate::choice::Choice;

pub(crate) use server::Server;

/// Where and how much is measured.
struct Bench {
    program: PathBuf,
    scratch: tempfile::TempDir,
    rounds: usize,
    samples: usize,
    flood: usize,
    log_sizes: &'static [u64],
    crowds: &'static [usize],
    lists: &'static [usize],
    idle_window: Duration,
    /// A home with so many jobs, and how many of them run.
    large: (usize, usize),
    /// How many clients start how many jobs each, all at once.
    burst: (usize, usize),
    /// How long the model thinks in an agent's hour.
    silence: Duration,
}

type Measure = fn(&Bench) -> Result<report::Section, String>;
const MEASURES: &[(&str, Measure)] = &[
    ("floods", throughput::terminal),
    ("pipes", throughput::pipes),
    ("server", throughput::server),
    ("cold", cold::cold),
    ("round-trips", latency::round_trips),
    ("patterns", latency::patterns),
    ("interpreter", latency::interpreter),
    ("waits", told::waits),
    ("kills", told::kills),
    ("idle", crowd::idle),
    ("list", crowd::list),
    ("large", large::home),
    ("burst", large::burst),
    ("hour", hour::hour),
    ("reading", reading::tails),
];

/// `cargo xtask bench [--quick] [--write] [MEASURE...]`, or `cargo xtask bench [--quick] --against PROGRAM`, where `0.1.0`
/// stands for that version, built from its commit.
///
/// # Errors
/// Whatever could not be measured.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    if let Some(at) = words.iter().position(|word| *word == "--against") {
        let other = words.get(at + 1).ok_or("--against needs a program, or 0.1.0")?;
        return against_other(other, words.contains(&"--quick"));
    }
    let known: Vec<&str> = MEASURES.iter().map(|(name, _)| *name).collect();
    let choice = Choice::read(words, &["--quick", "--write"], "measure", &known)?;
    if choice.has("--write") && (choice.has("--quick") || !choice.is_all()) {
        return Err("only a whole run is written down: leave out --quick and names".into());
    }
    let bench = Bench::new(choice.has("--quick"))?;
    let (mut sections, mut failed) = (Vec::new(), Vec::new());
    for (name, measure) in MEASURES {
        if choice.wants(name) {
            match measure(&bench) {
                Ok(section) => sections.push(section),
                // The others are still worth having.
                Err(error) => failed.push(format!("{name}: {error}")),
            }
        }
    }
    if let Some(table) = targets::table(&sections) {
        sections.insert(0, table);
    }
    println!("{}\n\n{}", machine(), report::markdown(&sections));
    if choice.has("--write") {
        report::write(&root().join("docs"), &machine(), &sections)?;
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// The built program and another version of it, turn about.
fn against_other(other: &str, quick: bool) -> Result<(), String> {
    let other = if other == "0.1.0" { crate::museum::release_program(root())? } else { other.into() };
    let section = against::compare(&Bench::new(quick)?, &other)?;
    println!("{}\n\n{}", machine(), report::markdown(&[section]));
    Ok(())
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// The program as users have it; `OUTLAST_PROGRAM` names another one.
pub(crate) fn built_program() -> Result<PathBuf, String> {
    if let Some(program) = std::env::var_os("OUTLAST_PROGRAM") {
        return std::path::absolute(program).map_err(|error| error.to_string());
    }
    progress("building the program");
    let built = std::process::Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "--package", "outlast"])
        .current_dir(root())
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return Err("the program does not build".into());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Ok(target.join("release/outlast"))
}

/// The program as tests have it.
pub(crate) fn debug_program() -> Result<PathBuf, String> {
    if let Some(program) = std::env::var_os("OUTLAST_PROGRAM") {
        return std::path::absolute(program).map_err(|error| error.to_string());
    }
    let built = std::process::Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "outlast"])
        .current_dir(root())
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return Err("the program does not build".into());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Ok(target.join("debug/outlast"))
}

/// This program, which is also what the jobs run.
pub(crate) fn own_program() -> String {
    std::env::current_exe().map_or_else(|_| "xtask".into(), |path| path.to_string_lossy().into_owned())
}

pub(crate) fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    format!(
        "{} ({cores} cores), Linux {}, load {} at the end of the run.",
        model.unwrap_or("an unnamed processor").trim(),
        kernel.trim(),
        load.split(' ').next().unwrap_or("?")
    )
}

/// On stderr, for the person who waits.
fn progress(text: &str) {
    eprintln!("… {text}");
}

/// The clock that all processes of a machine share.
pub(crate) fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

impl Bench {
    fn new(quick: bool) -> Result<Self, String> {
        let program = built_program()?;
        let scratch =
            tempfile::Builder::new().prefix("outlast-bench-").tempdir().map_err(|e| e.to_string())?;
        let (rounds, samples, flood) = if quick { (3, 30, 20_000_000) } else { (5, 200, 200_000_000) };
        Ok(Self {
            program,
            scratch,
            rounds,
            samples,
            flood,
            log_sizes: if quick {
                &[1 << 10, 1 << 20, 16 << 20]
            } else {
                &[1 << 10, 1 << 15, 1 << 20, 1 << 25, 1 << 30]
            },
            crowds: if quick { &[1, 10] } else { &[1, 10, 100, 1000] },
            lists: if quick { &[10, 60] } else { &[10, 100, 1000] },
            idle_window: Duration::from_secs(if quick { 3 } else { 20 }),
            large: if quick { (200, 20) } else { (10_000, 1000) },
            burst: if quick { (5, 10) } else { (50, 20) },
            silence: Duration::from_secs(if quick { 2 } else { 60 }),
        })
    }

    /// A home of its own for a measure.
    fn home(&self, name: &str) -> Result<PathBuf, String> {
        let home = self.scratch.path().join(name);
        std::fs::create_dir_all(&home).map_err(|error| error.to_string())?;
        let owner_only = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&home, owner_only).map_err(|error| error.to_string())?;
        Ok(home)
    }

    /// Milliseconds that the whole program takes, in the home of a measure.
    fn whole_process(&self, home: &str, arguments: &[&str]) -> Result<f64, String> {
        let mut command = std::process::Command::new(&self.program);
        command.args(arguments).env("OUTLAST_HOME", self.home(home)?);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let began = Instant::now();
        match command.status() {
            Ok(status) if status.success() => Ok(stats::ms(began.elapsed())),
            Ok(status) => Err(format!("{arguments:?}: {status}")),
            Err(error) => Err(error.to_string()),
        }
    }

    fn outlast_at(&self, home: &Path) -> Result<Outlast, String> {
        let outlast = Outlast::open_at(home).map_err(|failure| failure.to_string())?;
        Ok(outlast.kept_by(&self.program))
    }

    fn outlast(&self) -> Result<Outlast, String> {
        self.outlast_at(&self.home("floods")?)
    }
}

/// Processor time that a process has used so far.
fn cpu_ms(pid: i32) -> f64 {
    // In nanoseconds; the fields of `stat` are too coarse for a process that sleeps.
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e6
}

/// The most memory that a process ever had.
pub(crate) fn peak_kib(pid: i32) -> f64 {
    kib(&format!("/proc/{pid}/status"), &["VmHWM"])
}

/// The memory that a process shares with nobody.
fn private_kib(pid: i32) -> f64 {
    kib(&format!("/proc/{pid}/smaps_rollup"), &["Private_Clean", "Private_Dirty"])
}

fn kib(path: &str, fields: &[&str]) -> f64 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| fields.contains(name))
        .filter_map(|(_, value)| value.trim().trim_end_matches(" kB").parse::<f64>().ok())
        .sum()
}
