//! Reading what is there: the end of a large log, and a whole job again.

use std::time::Instant;

use outlast_job::{JobSpec, Run, Wait};
use serde_json::json;

use super::latency::size;
use super::plot::Plot;
use super::report::Section;
use super::server::Server;
use super::stats::{figure, middle, ms};
use super::{Bench, progress};

/// The last 16 KiB, and the job folded again from its first byte, by size of the log.
pub(super) fn tails(bench: &Bench) -> Result<Section, String> {
    let (mut rows, mut tail_curve, mut replay_curve) = (Vec::new(), Vec::new(), Vec::new());
    for &bytes in bench.log_sizes {
        progress(&format!("reading {bytes} bytes"));
        let home = bench.home(&format!("reading-{bytes}"))?;
        let outlast = bench.outlast_at(&home)?;
        let say = |failure: outlast_job::Failure| failure.to_string();
        let line = format!("head -c {bytes} /dev/zero | tr '\\0' x | fold -w 99");
        let mut spec = JobSpec::new(Run::Shell(line));
        spec.log_cap = Some(4 << 30);
        let job = outlast.start(spec).map_err(say)?;
        job.wait(&Wait::for_exit(), None).map_err(say)?;
        let mut server = Server::start(&bench.program, &home)?;
        let arguments = json!({"handle": job.handle(), "tail": 165, "max_output_size": 16384});
        let mut tails = Vec::new();
        for _ in 0..bench.samples.min(30) {
            let began = Instant::now();
            server.call("read_output", &arguments)?;
            tails.push(ms(began.elapsed()));
        }
        let began = Instant::now();
        let _ = job.screen_at(outlast_job::request::Moment::Offset(u64::MAX), false).map_err(say)?;
        let replay = ms(began.elapsed());
        let tail = middle(&tails);
        let speed = bytes as f64 / 1e6 / (replay / 1e3);
        rows.push(vec![size(bytes), tail.to_string(), figure(replay), figure(speed)]);
        tail_curve.push((bytes as f64, tail.median));
        replay_curve.push((bytes as f64, replay));
    }
    Ok(Section {
        title: "Reading a log again",
        about: "The last 16 KiB over MCP, and a whole job folded again from its first byte, as `replay` and an heir do.",
        head: vec!["log", "last 16 KiB, ms", "folded again, ms", "MB/s"],
        rows,
        plots: vec![Plot {
            name: "reading",
            title: "Reading, by size of the log",
            x: "bytes in the log",
            y: "ms",
            lines: vec![("last 16 KiB", tail_curve), ("all of it", replay_curve)],
        }],
        ..Section::default()
    })
}
