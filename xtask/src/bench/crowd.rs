//! Many jobs: what they cost while they sleep, and how long a list takes.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use outlast_job::{Job, JobSpec, Run};
use serde_json::json;

use super::plot::Plot;
use super::report::Section;
use super::server::Server;
use super::stats::{figure, middle, ms};
use super::{Bench, cpu_ms, private_kib, progress};

fn sleepers(bench: &Bench, home: &std::path::Path, count: usize) -> Result<Vec<Job>, String> {
    let outlast = bench.outlast_at(home)?;
    let spec = || JobSpec::new(Run::Program(vec!["sleep".into(), "100000".into()]));
    (0..count).map(|_| outlast.start(spec()).map_err(|failure| failure.to_string())).collect()
}

fn end_all(jobs: &[Job]) -> Result<(), String> {
    for job in jobs {
        job.kill(Duration::ZERO, "bench").map_err(|failure| failure.to_string())?;
    }
    Ok(())
}

/// Memory and processor of sleeping jobs, by their number.
pub(super) fn idle(bench: &Bench) -> Result<Section, String> {
    let (mut rows, mut memory, mut processor) = (Vec::new(), Vec::new(), Vec::new());
    let mut figures = Vec::new();
    for &count in bench.crowds {
        progress(&format!("{count} idle jobs"));
        let home = bench.home(&format!("idle-{count}"))?;
        let began = Instant::now();
        let jobs = sleepers(bench, &home, count)?;
        let started = ms(began.elapsed()) / count as f64;
        let mut ours = Vec::new();
        for job in &jobs {
            let info = job.info().map_err(|failure| failure.to_string())?;
            ours.extend([info.keeper, info.heir].into_iter().flatten().map(|process| process.pid));
        }
        std::thread::sleep(Duration::from_secs(1));
        let before: f64 = ours.iter().map(|&pid| cpu_ms(pid)).sum();
        std::thread::sleep(bench.idle_window);
        let cpu: f64 = ours.iter().map(|&pid| cpu_ms(pid)).sum::<f64>() - before;
        let private: f64 = ours.iter().map(|&pid| private_kib(pid)).sum::<f64>() / count as f64 / 1024.0;
        let began = Instant::now();
        end_all(&jobs)?;
        let ended = ms(began.elapsed()) / count as f64;
        rows.push(vec![count.to_string(), figure(private), figure(cpu), figure(started), figure(ended)]);
        if count == 1000 {
            figures.push(("idle-memory", private));
        }
        memory.push((count as f64, private));
        processor.push((count as f64, cpu.max(0.1)));
    }
    Ok(Section {
        title: "Idle jobs",
        about: "Private memory of keeper and heir together, and the processor time that all of them used in a window of 20 s (the kernel counts in steps of 10 ms or less).",
        head: vec![
            "jobs",
            "MiB of ours a job",
            "CPU ms in the window, all together",
            "start ms each",
            "kill ms each",
        ],
        rows,
        plots: vec![Plot {
            name: "idle-jobs",
            title: "Idle jobs: memory each, processor of all",
            x: "jobs",
            y: "MiB; ms",
            lines: vec![("MiB a job", memory), ("CPU ms, all", processor)],
        }],
        figures,
    })
}

/// `jobs` with most of them ended and 50 running.
pub(super) fn list(bench: &Bench) -> Result<Section, String> {
    let (mut rows, mut by_cli, mut by_mcp) = (Vec::new(), Vec::new(), Vec::new());
    for &count in bench.lists {
        progress(&format!("a list of {count} jobs"));
        let home = bench.home(&format!("list-{count}"))?;
        // More than are kept by default.
        let settings = home.join("settings.toml");
        std::fs::write(&settings, "[retention]\njobs = 100000\n").map_err(|e| e.to_string())?;
        let running = count.min(50);
        let jobs = sleepers(bench, &home, running)?;
        for _ in running..count {
            let ended = Command::new(&bench.program)
                .args(["run", "--", "true"])
                .env("OUTLAST_HOME", &home)
                .env("OUTLAST_CONFIG", &settings)
                .stdin(Stdio::null())
                .status();
            if !ended.is_ok_and(|status| status.success()) {
                return Err("a job did not run".into());
            }
        }
        let mut server = Server::start(&bench.program, &home)?;
        let (mut cli, mut mcp) = (Vec::new(), Vec::new());
        for _ in 0..bench.samples.min(20) {
            let began = Instant::now();
            let listed = Command::new(&bench.program)
                .args(["jobs", "--all", "--json"])
                .env("OUTLAST_HOME", &home)
                .stderr(Stdio::null())
                .output()
                .map_err(|error| error.to_string())?;
            cli.push(ms(began.elapsed()));
            let listed: serde_json::Value =
                serde_json::from_slice(&listed.stdout).map_err(|e| e.to_string())?;
            if listed["jobs"].as_array().map(Vec::len) != Some(count) {
                return Err(format!(
                    "{count} jobs were started, but {:?} are listed",
                    listed["jobs"].as_array().map(Vec::len)
                ));
            }
            let began = Instant::now();
            server.call("jobs", &json!({"all": true}))?;
            mcp.push(ms(began.elapsed()));
        }
        end_all(&jobs)?;
        let (cli, mcp) = (middle(&cli), middle(&mcp));
        rows.push(vec![count.to_string(), running.to_string(), cli.to_string(), mcp.to_string()]);
        by_cli.push((count as f64, cli.median));
        by_mcp.push((count as f64, mcp.median));
    }
    Ok(Section {
        title: "Lists",
        about: "`outlast jobs --all --json`, whole process, and the MCP tool `jobs`.",
        head: vec!["jobs", "of them running", "CLI ms", "MCP ms"],
        rows,
        plots: vec![Plot {
            name: "list",
            title: "A list of all jobs, by their number",
            x: "jobs",
            y: "ms",
            lines: vec![("CLI", by_cli), ("MCP", by_mcp)],
        }],
        ..Section::default()
    })
}
