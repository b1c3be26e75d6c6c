//! Reads all recorded runs of real tools, compares what is said of them with what is true, and writes the tables of
//! `docs/outcomes.md`.

use std::fmt::Write as _;

use outlast_protocol::outcome::BESIDE_OUTCOME;
use outlast_protocol::request::Stream;
use outlast_protocol::{JobOutcome, ToolOutcome};
use outlast_stream::outcome::{self, LocatedText, Run};
use outlast_stream::{Config, Size};
use outlast_testkit::outcomes::{RecordedRun, recorded_runs, sets};

use crate::page;
use crate::test::tools::workspace;

/// How much text an answer has unless the caller says otherwise.
const USUAL_ANSWER: usize = outlast_job::client::MAX_OUTPUT;
const MARKS: (&str, &str) = ("<!-- begin: cargo xtask outcomes -->", "<!-- end: cargo xtask outcomes -->");

/// What became of one run.
struct Row {
    name: String,
    said: Option<JobOutcome>,
    exact: bool,
    judged: bool,
    /// Whether the first error is in the report; none for a run that has no error.
    named: Option<bool>,
    /// Whether it is in the answer: the report and the output that comes with it.
    kept: Option<bool>,
    /// The text of the output, the answer without a report, and with it.
    bytes: [usize; 3],
}

/// Measures, and writes the page.
///
/// # Errors
/// When the page cannot be written.
pub(crate) fn run() -> Result<(), String> {
    let mut tables = String::new();
    let mut all = Vec::new();
    for set in sets() {
        let rows: Vec<Row> = recorded_runs(&set).iter().map(row).collect();
        let _ = writeln!(tables, "| set {set} | |\n|---|---|");
        summary(&mut tables, &rows);
        tables.push('\n');
        all.extend(rows);
    }
    let _ = writeln!(tables, "| all | |\n|---|---|");
    summary(&mut tables, &all);
    let _ = writeln!(
        tables,
        "\n| run | what is said first | counts | judged | first error | output | answer without | answer with |\n|---|---|---|---|---|---|---|---|"
    );
    for row in &all {
        let said = row
            .said
            .as_ref()
            .map(|said| said.tools.iter().map(ToolOutcome::headline).collect::<Vec<_>>().join("; "));
        let counts = match (&row.said, row.exact) {
            (None, _) => "–",
            (Some(said), _) if said.tools.iter().all(|tool| tool.counts.is_empty()) => "none given",
            (Some(_), true) => "exact",
            (Some(_), false) => "WRONG",
        };
        let named = match row.named {
            None => "–",
            Some(true) => "named",
            Some(false) if row.kept == Some(true) => "in the output only",
            Some(false) => "MISSING",
        };
        let [output, without, with] = row.bytes;
        let judged = if row.judged { "yes" } else { "" };
        let said = said.unwrap_or_else(|| "(nothing)".into());
        let _ = writeln!(
            tables,
            "| {} | {said} | {counts} | {judged} | {named} | {output} | {without} | {with} |",
            row.name
        );
    }
    print!("{tables}");
    page::fill(&workspace().join("docs/outcomes.md"), MARKS, &tables)
}

fn summary(table: &mut String, rows: &[Row]) {
    let of = |part: usize, whole: usize| {
        format!("{part} of {whole} ({} %)", (100 * part).checked_div(whole).unwrap_or(0))
    };
    let spoke = rows.iter().filter(|row| row.said.is_some()).count();
    let exact = rows.iter().filter(|row| row.said.is_some() && row.exact).count();
    let failing = rows.iter().filter(|row| row.named.is_some()).count();
    let count = |is: fn(&Row) -> Option<bool>| rows.iter().filter(|row| is(row) == Some(true)).count();
    let sum = |which: usize| rows.iter().map(|row| row.bytes[which]).sum::<usize>();
    let (without, with) = (sum(1), sum(2));
    let saved = 100.0 * (without as f64 - with as f64) / without as f64;
    let large: Vec<&Row> = rows.iter().filter(|row| row.bytes[0] > BESIDE_OUTCOME).collect();
    let (large_without, large_with): (usize, usize) =
        (large.iter().map(|row| row.bytes[1]).sum(), large.iter().map(|row| row.bytes[2]).sum());
    let large_saved = 100.0 * (large_without as f64 - large_with as f64) / large_without.max(1) as f64;
    let lines = [
        ("runs", rows.len().to_string()),
        ("it speaks in", of(spoke, rows.len())),
        ("of those, no count is wrong in", of(exact, spoke)),
        (
            "counts confirmed by the tool's own machine format",
            rows.iter().filter(|row| row.judged).count().to_string(),
        ),
        ("first real error in the report", of(count(|row| row.named), failing)),
        ("first real error in the answer", of(count(|row| row.kept), failing)),
        ("bytes of all outputs as text", sum(0).to_string()),
        (
            "bytes of all answers, without and with the report",
            format!("{without}, {with}: {saved:.1} % less"),
        ),
        (
            "the same, of runs that print more than the answer shows beside a report",
            format!("{} runs, {large_without}, {large_with}: {large_saved:.1} % less", large.len()),
        ),
    ];
    for (what, value) in lines {
        let _ = writeln!(table, "| {what} | {value} |");
    }
}

fn row(run: &RecordedRun) -> Row {
    let size = run.size.map_or_else(Size::default, |(cols, rows)| Size { cols, rows });
    let config = Config { size, terminal: run.size.is_some(), ..Config::default() };
    let (out, err) = (LocatedText::fold(&run.log, config), LocatedText::fold(&run.stderr, config));
    let mut lines = out.lines(Stream::Output);
    lines.extend(err.lines(Stream::Stderr));
    let said = outcome::read(&Run {
        command: &run.command,
        lines: &lines,
        whole: true,
        succeeded: run.exit_code == 0,
    });
    let said = said.filter(|said| !said.tools.is_empty());
    let text = format!("{}{}", out.text, err.text);
    let without = excerpt(&text, USUAL_ANSWER);
    let report = said.as_ref().map(JobOutcome::lines).unwrap_or_default();
    let with = match &said {
        None => without.clone(),
        Some(said) => {
            let shown =
                if said.stands_for_output() { excerpt(&text, BESIDE_OUTCOME) } else { without.clone() };
            let heads: Vec<String> = said.tools.iter().map(ToolOutcome::headline).collect();
            let words = if shown.len() == text.len() { &heads } else { &report };
            format!("{}\n{shown}", words.join("\n"))
        }
    };
    let finds =
        |text: &str| run.first_error.as_deref().map(|first| has(text, first) || has(&places(text), first));
    let exact = said.iter().flat_map(|said| &said.tools).all(|tool| {
        let own = tool.tool.name() == run.tool;
        tool.counts
            .iter()
            .all(|(what, count)| *count == run.counts.get(what.name()).filter(|_| own).copied().unwrap_or(0))
    });
    let bytes = [text.len(), without.len(), with.len()];
    // Where nothing is cut, everything is kept.
    let named = finds(&report.join("\n"));
    let kept = if with.len() >= text.len() { named.map(|_| true) } else { finds(&with) };
    Row { name: run.name.clone(), said, exact, judged: run.judged, named, kept, bytes }
}

/// Whether a text has what the first error is known by; a line number must not go on.
fn has(text: &str, first: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit();
    text.match_indices(first)
        .any(|(at, _)| !first.ends_with(is_digit) || !text[at + first.len()..].starts_with(is_digit))
}

/// Places in the forms that tools print besides `file:line`.
fn places(text: &str) -> String {
    text.replace("\", line ", ":").replace(".ts(", ".ts:")
}

/// A quarter of the room for the first lines, the rest for the last.
fn excerpt(text: &str, room: usize) -> String {
    if text.len() <= room {
        return text.to_owned();
    }
    let head: String = first(text.split_inclusive('\n'), room / 4).concat();
    let mut tail = first(text.split_inclusive('\n').rev(), room - head.len());
    tail.reverse();
    format!("{head}…\n{}", tail.concat())
}

fn first<'a>(lines: impl Iterator<Item = &'a str>, room: usize) -> Vec<&'a str> {
    let mut used = 0;
    lines
        .take_while(|line| {
            used += line.len();
            used <= room
        })
        .collect()
}
