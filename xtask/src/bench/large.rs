//! A home with very many jobs, and very many jobs at once.

use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use outlast_job::{JobSpec, Outlast, Run};

use super::report::Section;
use super::stats::{figure, middle, ms, ratios};
use super::{Bench, bare, own_program, progress};

/// A client that starts jobs once it is told to.
struct Client {
    child: Child,
    says: BufReader<std::process::ChildStdout>,
}

/// `xtask start-many PROGRAM HOME COUNT ARGV...`: says that it is ready, reads a line, starts so many jobs, and says so.
///
/// # Errors
/// A job that does not start.
pub(crate) fn start_many(program: &str, home: &str, count: &str, argv: &[&str]) -> Result<(), String> {
    let count: usize = count.parse().map_err(|error| format!("{count}: {error}"))?;
    let say = |failure: outlast_job::Failure| failure.to_string();
    let outlast = Outlast::open_at(Path::new(home)).map_err(say)?.kept_by(program);
    let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
    println!("ready");
    std::io::stdin().read_line(&mut String::new()).map_err(|error| error.to_string())?;
    for _ in 0..count {
        outlast.start(JobSpec::new(Run::Program(argv.clone()))).map_err(say)?;
    }
    println!("started");
    Ok(())
}

impl Client {
    fn new(bench: &Bench, home: &Path, count: usize, argv: &[&str]) -> Result<Self, String> {
        // More than are kept by default.
        let settings = home.join("settings.toml");
        std::fs::write(&settings, "[retention]\njobs = 100000\n").map_err(|error| error.to_string())?;
        let mut command = Command::new(own_program());
        command.arg("start-many").arg(&bench.program).arg(home).arg(count.to_string()).args(argv);
        command.env("OUTLAST_CONFIG", settings).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let says = child.stdout.take().map(BufReader::new).ok_or("no pipe")?;
        let mut client = Self { child, says };
        client.hear("ready")?;
        Ok(client)
    }

    fn hear(&mut self, expected: &str) -> Result<(), String> {
        let mut line = String::new();
        self.says.read_line(&mut line).map_err(|error| error.to_string())?;
        if line.trim() == expected { Ok(()) } else { Err(format!("a client says {line:?}, not {expected}")) }
    }

    fn go(&mut self) -> Result<(), String> {
        let Some(stdin) = &mut self.child.stdin else { return Err("no pipe".into()) };
        stdin.write_all(b"\n").map_err(|error| error.to_string())
    }

    fn done(mut self) -> Result<(), String> {
        self.hear("started")?;
        self.child.wait().map(|_| ()).map_err(|error| error.to_string())
    }
}

/// Starts jobs by some clients at once; how long until the last of them runs.
fn start_by(
    bench: &Bench,
    home: &Path,
    (clients, each): (usize, usize),
    argv: &[&str],
) -> Result<f64, String> {
    let mut all: Vec<Client> =
        (0..clients).map(|_| Client::new(bench, home, each, argv)).collect::<Result<_, _>>()?;
    let began = Instant::now();
    all.iter_mut().try_for_each(Client::go)?;
    all.into_iter().try_for_each(Client::done)?;
    Ok(ms(began.elapsed()))
}

fn end_running(outlast: &Outlast) -> Result<(), String> {
    for info in outlast.jobs().iter().filter(|info| info.state.is_live()) {
        let job = outlast.job(&info.handle.to_string()).map_err(|failure| failure.to_string())?;
        job.kill(Duration::ZERO, "bench").map_err(|failure| failure.to_string())?;
    }
    Ok(())
}

/// A list and a start in a home with very many jobs, by the same in an empty one.
pub(super) fn home(bench: &Bench) -> Result<Section, String> {
    let (jobs, running) = bench.large;
    progress(&format!("a home of {jobs} jobs"));
    let (large, empty) = (bench.home("large")?, bench.home("empty")?);
    start_by(bench, &large, (4, (jobs - running) / 4), &["true"])?;
    start_by(bench, &large, (4, running / 4), &["sleep", "100000"])?;
    let (mut lists, mut starts, mut floors) = (Vec::new(), Vec::new(), Vec::new());
    let (in_large, in_empty) = (bench.outlast_at(&large)?, bench.outlast_at(&empty)?);
    let start = |outlast: &Outlast| {
        let began = Instant::now();
        let job = outlast.start(JobSpec::new(Run::Program(vec!["sleep".into(), "100000".into()])));
        let took = ms(began.elapsed());
        let job = job.map_err(|failure| failure.to_string())?;
        job.kill(Duration::ZERO, "bench").map_err(|failure| failure.to_string())?;
        Ok::<f64, String>(took)
    };
    for _ in 0..bench.samples.min(30) {
        lists.push(bench.whole_process("large", &["jobs", "--json"])?);
        starts.push(start(&in_large)?);
        floors.push(start(&in_empty)?);
    }
    end_running(&in_large)?;
    let slower = ratios(&starts, &floors);
    Ok(Section {
        title: "A large home",
        about: "`outlast jobs --json`, whole process, and a start, in a home with very many jobs; the start beside one in an empty home.",
        head: vec!["jobs", "of them running", "`jobs` ms", "start ms", "start in an empty home ms", "ratio"],
        rows: vec![vec![
            jobs.to_string(),
            running.to_string(),
            middle(&lists).to_string(),
            middle(&starts).to_string(),
            middle(&floors).to_string(),
            slower.to_string(),
        ]],
        figures: vec![("large-list", middle(&lists).median), ("large-start", slower.median)],
        ..Section::default()
    })
}

/// Many jobs at once, by many clients, beside a loop that forks and executes as many.
pub(super) fn burst(bench: &Bench) -> Result<Section, String> {
    let (clients, each) = bench.burst;
    progress(&format!("{} jobs at once", clients * each));
    let (mut ours, mut floors) = (Vec::new(), Vec::new());
    for round in 0..bench.rounds.min(3) {
        let home = bench.home(&format!("burst-{round}"))?;
        ours.push(start_by(bench, &home, bench.burst, &["sleep", "100000"])?);
        end_running(&bench.outlast_at(&home)?)?;
        let began = Instant::now();
        let jobs: Vec<bare::Bare> = (0..clients * each)
            .map(|_| bare::Bare::start(&["sleep", "100000"], true))
            .collect::<Result<_, _>>()?;
        floors.push(ms(began.elapsed()));
        jobs.into_iter().for_each(bare::Bare::end);
    }
    let ratio = ratios(&ours, &floors);
    Ok(Section {
        title: "Many jobs at once",
        about: "Milliseconds until the last of them runs, and a loop that forks and executes as many on terminals.",
        head: vec!["clients", "jobs", "ours ms", "a loop ms", "ratio"],
        rows: vec![vec![
            clients.to_string(),
            (clients * each).to_string(),
            figure(middle(&ours).median),
            figure(middle(&floors).median),
            ratio.to_string(),
        ]],
        figures: vec![("burst", ratio.median)],
        ..Section::default()
    })
}
