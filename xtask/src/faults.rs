//! `cargo xtask faults`: the long part of the fault tests, counted. Each fault is tried many times against
//! the built program; what was lost, what hung and what was left behind is counted, not believed, and goes
//! into a table.

mod arena;
mod corners;
mod deaths;
mod ends;
mod exhaustion;
mod hostile;
mod more;
mod pauses;
pub(crate) mod soak;

use std::fmt::Write as _;

use arena::Arena;

use crate::choice::Choice;
use crate::page;

/// What a fault cost.
#[derive(Debug, Default)]
struct Tally {
    tried: u64,
    lost_bytes: u64,
    lost_receipts: u64,
    hung: u64,
    left: u64,
    /// What else was counted, or why it could not be tried here.
    note: String,
}

impl Tally {
    fn skipped(why: &str) -> Self {
        Self { note: format!("not tried here: {why}"), ..Self::default() }
    }

    fn is_clean(&self) -> bool {
        self.lost_bytes + self.lost_receipts + self.hung + self.left == 0
    }
}

type Fault = fn(&mut Arena) -> Result<Tally, String>;
const FAULTS: &[(&str, &str, Fault)] = &[
    ("keeper", "keeper killed (-9) while its job prints", deaths::keeper),
    ("keeper-at-end", "keeper killed (-9) around the end of its job", deaths::keeper_at_end),
    ("client", "clients killed (-9) in the middle of run, wait, send and logs -f", deaths::client),
    ("server", "MCP server killed (-9) in the middle of a call", deaths::server),
    ("both", "keeper and heir killed (-9): the one of twenty is lost, with all it had printed", deaths::both),
    ("stopped", "keeper, job and a reader stopped and continued (SIGSTOP)", pauses::stopped),
    ("clock", "the wall clock jumps a day forth and back", pauses::clock),
    ("descriptors", "a keeper without descriptors (RLIMIT_NOFILE)", exhaustion::descriptors),
    ("processes", "no more processes to be had (pids cgroup)", exhaustion::processes),
    ("disk", "the disk is full, and then has room again", exhaustion::disk),
    ("cap", "up to 10 GB of output against a cap of 64 MiB", exhaustion::cap),
    ("soup", "output that is random control sequences, and questions to the terminal", hostile::soup),
    ("endless", "an endless title, an endless line, a flood of titles", hostile::endless),
    ("garbage", "garbage, half lines and a line of 1 GB at the socket", hostile::garbage),
    ("crowd", "up to 10,000 connections to one keeper", hostile::crowd),
    ("deaf", "clients that never read what they asked for", hostile::deaf),
    ("stranger", "another user's client", hostile::stranger),
    (
        "again",
        "the keeper of a job on pipes killed (-9) three times, each time when it had taken over",
        corners::again,
    ),
    (
        "kill-begun",
        "keeper and client killed (-9) in the middle of ending a job that ignores SIGTERM",
        corners::kill_begun,
    ),
    (
        "strays",
        "keeper and heir killed (-9), a child with a session and streams of its own, then a kill",
        corners::strays,
    ),
    ("inherited", "started with a file size limit, a CPU limit and SIGCHLD ignored", corners::inherited),
    ("besieged", "a kill of a job whose keeper has as many idle clients as it takes", corners::besieged),
    ("unread", "many jobs of a session end together, under the default retention", corners::unread),
    ("folder", "the folder of a running job is removed", corners::folder_removed),
    (
        "power",
        "the power fails after an end was told (an image of the disk is copied in use)",
        corners::power,
    ),
    ("full-at-once", "a disk with room is full in a job's first moment", ends::full_at_once),
    ("told", "keeper killed (-9) as soon as its receipt is on the disk: the end is told, once", ends::told),
    (
        "all-done",
        "keeper killed (-9) together with the last process that its job left: nobody stays",
        ends::all_done,
    ),
    ("first", "the MCP server is the first process of a container", ends::first_process),
    ("unreadable", "requests over stdio that cannot be read", ends::unreadable),
    ("hung-up", "keeper and then the heir that took over killed (-9), on a terminal", more::hung_up),
    ("read-only", "the disk becomes read-only under running jobs", more::read_only),
    ("poison", "output and a request that keepers die of", more::poison),
    ("durable", "settings of `sync`, numbers after a crash, a restart of the machine", more::durable),
    ("hidden", "a lost job where /proc hides processes (hidepid)", more::hidden),
    ("late", "a start that nobody waits for any more", more::late_start),
    ("systemd", "the unit of whoever started a job is stopped, with a real systemd", more::systemd),
    ("skew", "programs of 0.1.0 and of today at the two ends", more::skew),
];

/// What runs with every change, a few times each and with the debug build.
const SAMPLED: &[&str] = &[
    "again",
    "kill-begun",
    "strays",
    "inherited",
    "unread",
    "folder",
    "power",
    "full-at-once",
    "told",
    "all-done",
    "first",
    "unreadable",
    "hung-up",
];

const MARKS: (&str, &str) = ("<!-- counted: cargo xtask faults -->", "<!-- end of what was counted -->");

/// `cargo xtask faults [--part N] [--write | --sample] [FAULT...]`
///
/// # Errors
/// When something was lost, hung or left behind, or could not be tried at all.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let known: Vec<&str> = FAULTS.iter().map(|(name, ..)| *name).collect();
    let (words, part) = match words {
        ["--part", part, rest @ ..] => {
            (rest, part.parse::<u64>().map_err(|error| format!("--part {part}: {error}"))?.max(1))
        }
        _ => (words, 1),
    };
    let choice = Choice::read(words, &["--write", "--sample"], "fault", &known)?;
    let mut table = String::from(
        "| fault | tried | bytes lost | receipts lost | calls hung | processes left | besides |\n|---|---|---|---|---|---|---|\n",
    );
    let mut unclean = Vec::new();
    for (name, title, fault) in FAULTS {
        if !choice.wants(name) {
            continue;
        }
        if choice.has("--sample") && choice.is_all() && !SAMPLED.contains(name) {
            continue;
        }
        eprintln!("… {title}");
        let mut arena = Arena::new(name, choice.has("--sample"), part)?;
        let mut tally = fault(&mut arena).map_err(|error| format!("{name}: {error}"))?;
        tally.left += arena.end_all();
        let Tally { tried, lost_bytes, lost_receipts, hung, left, note } = &tally;
        let row =
            format!("| {title} | {tried} | {lost_bytes} | {lost_receipts} | {hung} | {left} | {note} |");
        eprintln!("{row}");
        let _ = writeln!(table, "{row}");
        if tally.tried == 0 {
            outlast_testkit::test_left_out(name, note, "run it as root, with a C compiler");
        }
        if !tally.is_clean() {
            unclean.push(*name);
        }
    }
    println!("{table}");
    if choice.has("--write") && choice.is_all() {
        page::fill(&crate::bench::root().join("docs/faults.md"), MARKS, &table)?;
    }
    if unclean.is_empty() { Ok(()) } else { Err(format!("not clean: {}", unclean.join(", "))) }
}
