//! gcc and clang, and the linker that they run.

use outlast_protocol::{Count, KnownTool, ToolOutcome};

use super::parse::{number_before, place};
use super::{Reading, Text, finding};

const NAMES: &[&str] = &[
    "gcc",
    "g++",
    "cc",
    "c++",
    "clang",
    "clang++",
    "make",
    "gmake",
    "cmake",
    "ninja",
    "meson",
    "configure",
    "autoreconf",
    "ld",
    "bazel",
];
/// How the names of files end that these compilers read.
const SOURCES: &[&str] = &[
    "c", "cc", "cpp", "cxx", "h", "hh", "hpp", "hxx", "ipp", "tcc", "m", "mm", "S", "s", "inc", "def", "cu",
];

pub(super) fn read(text: &Text<'_>) -> Option<ToolOutcome> {
    let mut reading = Reading::default();
    let (mut errors, mut warnings, mut linking) = (0, 0, false);
    let mut totals = (None, None);
    let mut clang = text.names(&["clang", "clang++"]);
    for line in text.lines {
        if let Some((severity, at, message)) = diagnostic(line.text) {
            let (message, code) = option(message);
            let one = finding(line, at, code, message);
            match severity {
                "warning" => {
                    warnings += 1;
                    reading.warnings.push(one);
                }
                _ => {
                    errors += 1;
                    reading.errors.push(one);
                }
            }
        } else if let Some(message) = linked(line.text) {
            linking = true;
            let (at, message) = message;
            reading.errors.push(finding(line, at, Some("ld"), message));
        } else if line.text.ends_with(" generated.")
            && (line.text.contains(" error") || line.text.contains(" warning"))
        {
            // Clang's own count, a source file each.
            let add = |sum: &mut Option<u64>, word: &str| {
                if let Some(count) = number_before(line.text, word) {
                    *sum = Some(sum.unwrap_or(0) + count);
                }
            };
            add(&mut totals.0, " error");
            add(&mut totals.1, " warning");
            clang = true;
        }
    }
    if errors + warnings == 0 && !linking {
        return None;
    }
    let agree = !clang || (totals.0.unwrap_or(0), totals.1.unwrap_or(0)) == (errors, warnings);
    if text.whole && agree {
        // How many errors a linker has is a matter of taste.
        if !linking {
            reading.count(Count::Errors, errors);
        }
        reading.count(Count::Warnings, warnings);
    }
    let known =
        text.names(NAMES) || reading.errors.iter().chain(&reading.warnings).all(|one| one.file.is_some());
    reading.of(if clang { KnownTool::Clang } else { KnownTool::Gcc }).filter(|_| known)
}

/// `file.c:3:5: error: message`, or one without a place: `cc1: error: message`.
fn diagnostic(line: &str) -> Option<(&'static str, Option<super::parse::Place<'_>>, &str)> {
    const SEVERITIES: [(&str, &str); 3] =
        [(": fatal error: ", "error"), (": error: ", "error"), (": warning: ", "warning")];
    let (mark, severity) = SEVERITIES
        .into_iter()
        .filter_map(|(mark, severity)| line.find(mark).map(|at| (at, mark, severity)))
        .min()
        .map(|(_, mark, severity)| (mark, severity))?;
    let (before, message) = line.split_once(mark)?;
    match place(before) {
        Some((at, rest)) if rest.is_empty() && is_source(at.file) => Some((severity, Some(at), message)),
        Some(_) => None,
        None => {
            let program = before.rsplit('/').next().unwrap_or(before);
            // "collect2: error: ld returned 1" only repeats what the linker has said.
            let compiler = matches!(
                program,
                "gcc" | "g++" | "cc" | "c++" | "clang" | "clang++" | "cc1" | "cc1plus" | "clang-14"
            );
            (compiler
                && severity == "error"
                && message != "linker command failed with exit code 1 (use -v to see invocation)")
                .then_some((severity, None, message))
        }
    }
}

fn is_source(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    match name.rsplit_once('.') {
        Some((_, end)) => SOURCES.contains(&end),
        // Headers of the C++ library have no ending.
        None => file.contains("/include/"),
    }
}

/// The option in brackets that a warning ends with.
fn option(message: &str) -> (&str, Option<&str>) {
    match message.strip_suffix(']').and_then(|rest| rest.rsplit_once(" [-W")) {
        Some((said, _)) => {
            let code = &message[said.len() + 2..message.len() - 1];
            (said, Some(code))
        }
        None => (message, None),
    }
}

/// What a linker says: `main.c:(.text+0x5): undefined reference to`, `multiple definition of`, `cannot find -lx`.
fn linked(line: &str) -> Option<(Option<super::parse::Place<'_>>, &str)> {
    const SAID: [&str; 4] =
        ["undefined reference to ", "undefined symbol: ", "multiple definition of ", "cannot find -l"];
    let begin = SAID.iter().filter_map(|said| line.find(said)).min()?;
    let before = line[..begin].trim_end_matches([' ', ':']);
    let is_linker = before.ends_with(')')
        || before.ends_with("ld")
        || before.contains("ld: ")
        || before.contains("ld.lld")
        || before.contains(".o:");
    let at = place(before.rsplit("ld: ").next().unwrap_or(before))
        .map(|(at, _)| at)
        .filter(|at| is_source(at.file));
    (is_linker || at.is_some()).then_some((at, &line[begin..]))
}
