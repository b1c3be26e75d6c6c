//! Measures what one look costs: `cargo run --release -p outlast-pty --example probe_cost`.
//!
//! Starts a few programs as jobs of this process, one at a time, and samples each as a keeper would.
#![expect(clippy::print_stdout, reason = "a measurement prints its numbers")]

use std::error::Error;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use outlast_pty::evidence::{Hints, Prober, Row};
use outlast_pty::{Command, Pty, SessionLeader, Size, Stdio, detach, ports, procfs};
use rustix::process::{Pid, Signal, WaitOptions};

const LOOKS: usize = 200;

const PROGRAMS: [(&str, &[&str]); 7] = [
    ("a read in a shell", &["sh", "-c", "read x"]),
    ("sleep", &["sleep", "60"]),
    ("an interactive shell", &["bash", "--norc", "-i"]),
    ("a pipeline", &["sh", "-c", "cat | sort | wc"]),
    ("python, interactive", &["python3", "-q"]),
    ("node, interactive", &["node"]),
    ("jshell", &["jshell"]),
];

fn main() -> Result<(), Box<dyn Error>> {
    detach::become_subreaper()?;
    let root = rustix::process::getpid();
    println!("{:<24}{:>10}{:>10}{:>10}{:>12}", "", "p50 us", "p90 us", "cpu us", "ports us");
    for (name, argv) in PROGRAMS {
        let measured = measure(root, argv);
        end_all_below(root);
        match measured {
            Ok([p50, p90, cpu, ports]) => println!("{name:<24}{p50:>10}{p90:>10}{cpu:>10}{ports:>12}"),
            Err(error) => println!("{name:<24} left out: {error}"),
        }
    }
    Ok(())
}

fn measure(root: Pid, argv: &[&str]) -> Result<[u128; 4], Box<dyn Error>> {
    let pty = Pty::open(Size::default())?;
    let env = std::env::vars_os().collect();
    let command = Command {
        argv: argv.iter().map(OsString::from).collect(),
        cwd: std::env::temp_dir(),
        env,
        stdio: Stdio::Terminal(pty.slave),
        session_leader: SessionLeader::Command,
        confinement: outlast_pty::spawn::Confinement::default(),
    };
    command.spawn()?;
    // Long enough for the slowest of them to have come to rest.
    std::thread::sleep(Duration::from_secs(3));
    let hints = Hints {
        text_before_cursor: "> ",
        line_above: "",
        alternate_screen: false,
        bracketed_paste: false,
        cursor_hidden: false,
        since_output: Duration::from_secs(3),
        since_input: Duration::from_secs(3),
        row: Row::New,
        offers_choice: false,
        lists_choices: false,
        field: "",
        text_below: false,
        answered: false,
    };
    let mut prober = Prober::new(root);
    let mut watch = ports::PortWatch::new(root);
    let (mut looks, mut port_looks) = (Vec::new(), Vec::new());
    let before = processor_time();
    let mut spent_on_ports = Duration::ZERO;
    for _ in 0..LOOKS {
        let begun = Instant::now();
        let _ = prober.sample(pty.master.as_fd(), &hints);
        looks.push(begun.elapsed().as_micros());
        std::thread::sleep(Duration::from_millis(11));
        let begun = Instant::now();
        watch.refresh();
        port_looks.push(begun.elapsed().as_micros());
        spent_on_ports += begun.elapsed();
    }
    let cpu = processor_time().saturating_sub(before).saturating_sub(spent_on_ports);
    looks.sort_unstable();
    port_looks.sort_unstable();
    Ok([looks[LOOKS / 2], looks[LOOKS * 9 / 10], cpu.as_micros() / LOOKS as u128, port_looks[LOOKS / 2]])
}

fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn end_all_below(root: Pid) {
    loop {
        let left = procfs::descendants(root);
        for process in left.iter().filter(|process| process.is_alive()) {
            let _ = rustix::process::kill_process(process.pid, Signal::KILL);
        }
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
        if left.is_empty() {
            return;
        }
    }
}
