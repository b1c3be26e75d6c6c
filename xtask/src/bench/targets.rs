//! What is aimed at, held against what was measured in the same run.

use super::report::Section;
use super::stats::figure;

/// One aim: the figure of that name must not be above the bound.
struct Target {
    what: &'static str,
    aim: &'static str,
    figure: &'static str,
    bound: f64,
}

const fn target(what: &'static str, aim: &'static str, figure: &'static str, bound: f64) -> Target {
    Target { what, aim, figure, bound }
}

const TARGETS: &[Target] = &[
    target("pattern printed to caller told, cold", "2.5 × the caller's own read", "pattern", 2.5),
    target("job started in the background, cold", "3 ms more than 1.5 × fork and exec", "background", 3.0),
    target("line into `python3 -i`, no pattern, cold", "0.8 ms", "python", 0.8),
    target("MCP `echo hi` with output and code, cold", "1.2 × the floor", "echo", 1.2),
    target("`outlast run -- true`, hot", "3 × a bare fork on a terminal", "run-true", 3.0),
    target("told that it waits: question", "first look + 10 ms", "told-question", FIRST_LOOK_AND_MORE),
    target("told that it waits: prompt", "first look + 10 ms", "told-prompt", FIRST_LOOK_AND_MORE),
    target("told that it waits: silent read", "first look + 10 ms", "told-silent", FIRST_LOOK_AND_MORE),
    target("flood of coloured lines", "1.05 × a bare loop", "colour", 1.05),
    target("flood: a bar redrawn with CR", "1.1 ×", "progress", 1.1),
    target("flood: lines redrawn by cursor-up", "1.2 ×", "redraw", 1.2),
    target("flood: a full-screen program", "1.5 ×", "screen", 1.5),
    target("200 MB on pipes", "1.67 × a loop that writes them to a file", "pipes", 1.0 / 0.6),
    target("kill of a stubborn tree, beyond the grace", "5 ms", "kill-stubborn", 5.0),
    target("kill of an obeying tree", "5 ms", "kill-obeying", 5.0),
    target("`jobs` in a home of 10,000, 1,000 running", "30 ms", "large-list", 30.0),
    target("start in that home, by an empty one", "1.1 ×", "large-start", 1.1),
    target("memory of 1,000 idle jobs, each", "0.22 MiB", "idle-memory", 0.225),
    target(
        "1,000 jobs at once by 50 clients, until the last runs",
        "3 × a loop of fork and exec",
        "burst",
        3.0,
    ),
];

/// A program that may wait is first looked at after 20 ms of silence.
const FIRST_LOOK_AND_MORE: f64 = 30.0;

/// The table; only of what was measured.
pub(super) fn table(sections: &[Section]) -> Option<Section> {
    let measured = |name: &str| {
        let mut figures = sections.iter().flat_map(|section| &section.figures);
        figures.find(|(figure, _)| *figure == name).map(|(_, value)| *value)
    };
    let rows: Vec<Vec<String>> = TARGETS
        .iter()
        .filter_map(|target| {
            let value = measured(target.figure)?;
            let verdict = if value <= target.bound {
                "met".to_owned()
            } else {
                format!("missed: {} × that", figure(value / target.bound))
            };
            Some(vec![target.what.to_owned(), target.aim.to_owned(), figure(value), verdict])
        })
        .collect();
    let met = rows.iter().filter(|row| row.last().is_some_and(|verdict| verdict == "met")).count();
    println!("{met} of {} targets are met", rows.len());
    (!rows.is_empty()).then(|| Section {
        title: "Against the targets",
        about: "From the tables below, of the same run.",
        head: vec!["what", "target", "measured", ""],
        rows,
        ..Section::default()
    })
}
