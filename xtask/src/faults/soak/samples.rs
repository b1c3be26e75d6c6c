//! Memory, descriptors and threads of long-lived processes, over time.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// How much a process may grow between the first third of a soak and the last: what is kept of a crowd is more than at the start.
const MAX_GROWTH: f64 = 1.25;
/// Growth below this is no growth, in MiB.
const NOISE_MIB: f64 = 2.0;

/// The picture, and its borders.
const W: f64 = 720.0;
const H: f64 = 320.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 46.0;
/// Told apart also by those who do not see colours: each line has its own dashes too.
const COLOURS: [&str; 4] = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd"];
const DASHES: [&str; 4] = ["", "6 3", "2 3", "8 3 2 3"];

/// One look at a process.
#[derive(Clone, Copy, Debug)]
struct Sample {
    minute: f64,
    mib: f64,
    descriptors: u64,
    threads: u64,
}

/// All looks, by process.
#[derive(Debug, Default)]
pub(super) struct Samples {
    of: BTreeMap<String, Vec<Sample>>,
}

impl Samples {
    pub(super) fn take(&mut self, name: &str, pid: u32, minute: f64) {
        let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { return };
        let field = |name: &str| -> u64 {
            let value = status.lines().find_map(|line| line.strip_prefix(name));
            value.and_then(|value| value.split_whitespace().next()?.parse().ok()).unwrap_or(0)
        };
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count) as u64;
        let mib = field("VmRSS:") as f64 / 1024.0;
        let sample = Sample { minute, mib, descriptors, threads: field("Threads:") };
        self.of.entry(name.to_owned()).or_default().push(sample);
    }

    /// The process that has grown, if one has.
    pub(super) fn grown(&self) -> Option<&str> {
        let has_grown = |samples: &Vec<Sample>| {
            let ((first, fds), (last, fds_then)) = (third(samples, 0), third(samples, 2));
            (last > first * MAX_GROWTH && last > first + NOISE_MIB) || fds_then > fds + 4
        };
        self.of
            .iter()
            .find(|(_, samples)| samples.len() > 5 && has_grown(samples))
            .map(|(name, _)| name.as_str())
    }

    pub(super) fn table(&self) -> String {
        let mut table = String::from(
            "| long-lived process | memory, first third | last third | most | descriptors, first third | last third | most threads |\n\
             |---|---|---|---|---|---|---|\n",
        );
        for (name, samples) in &self.of {
            let ((first, fds), (last, fds_then)) = (third(samples, 0), third(samples, 2));
            let most = samples.iter().map(|sample| sample.mib).fold(0.0, f64::max);
            let threads = samples.iter().map(|sample| sample.threads).max().unwrap_or(0);
            let _ = writeln!(
                table,
                "| {name} | {first:.1} MiB | {last:.1} MiB | {most:.1} MiB | {fds} | {fds_then} | {threads} |"
            );
        }
        table
    }

    /// Memory over time as a picture: a line for each process.
    pub(super) fn svg(&self) -> String {
        let all = || self.of.values().flatten();
        let minutes = all().map(|sample| sample.minute).fold(0.1, f64::max);
        let top = all().map(|sample| sample.mib).fold(1.0, f64::max) * 1.1;
        let x = |minute: f64| LEFT + minute / minutes * (W - LEFT - RIGHT);
        let y = |mib: f64| H - BOTTOM - mib / top * (H - TOP - BOTTOM);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {W} {H}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{W}\" height=\"{H}\" fill=\"white\"/>\n\
             <text x=\"{LEFT}\" y=\"20\" font-weight=\"bold\">Memory of long-lived processes during the soak (MiB over minutes)</text>\n"
        );
        for part in 0..=4 {
            let (minute, mib) = (minutes * f64::from(part) / 4.0, top * f64::from(part) / 4.0);
            let _ = writeln!(
                svg,
                "<path d=\"M{LEFT} {0:.1}H{1}\" stroke=\"#ddd\"/><text x=\"{2}\" y=\"{3:.1}\" text-anchor=\"end\">{mib:.1}</text>\
                 <text x=\"{4:.1}\" y=\"{5}\" text-anchor=\"middle\">{minute:.0}</text>",
                y(mib),
                W - RIGHT,
                LEFT - 6.0,
                y(mib) + 4.0,
                x(minute),
                H - BOTTOM + 16.0
            );
        }
        for (index, (name, samples)) in self.of.iter().enumerate() {
            let (colour, dashes) = (COLOURS[index % 4], DASHES[index % 4]);
            let points: Vec<String> = samples
                .iter()
                .map(|sample| format!("{:.1},{:.1}", x(sample.minute), y(sample.mib)))
                .collect();
            let end = samples.last().map_or(0.0, |sample| y(sample.mib));
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-dasharray=\"{dashes}\"/>\
                 <text x=\"{}\" y=\"{end:.1}\" fill=\"{colour}\">{name}</text>",
                points.join(" "),
                W - RIGHT + 6.0
            );
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// The median memory and the most descriptors of a third of the samples.
fn third(samples: &[Sample], which: usize) -> (f64, u64) {
    let (from, to) = (samples.len() * which / 3, samples.len() * (which + 1) / 3);
    let part = &samples[from..to.max(from)];
    let mut memory: Vec<f64> = part.iter().map(|sample| sample.mib).collect();
    memory.sort_by(f64::total_cmp);
    let descriptors = part.iter().map(|sample| sample.descriptors).max().unwrap_or(0);
    (memory.get(memory.len() / 2).copied().unwrap_or(0.0), descriptors)
}
