//! Screens of recorded terminal sessions from other projects, compared with what those projects expect.
//!
//! The recordings are not part of this repository. They are read from `$OUTLAST_CORPORA`, or from a folder
//! beside the workspace; without them these tests are skipped. `docs/internals/screen.md` explains each difference.

#[cfg(test)]
#[path = "corpora/fuzzed.rs"]
mod fuzzed;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use outlast_stream::{Config, FoldOutput, Pipeline, Size};

fn corpora() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora");
    let folder = std::env::var_os("OUTLAST_CORPORA").map_or(beside, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    outlast_testkit::left_out(
        &format!("there are no recordings at {}", folder.display()),
        "put them there, or set OUTLAST_CORPORA",
    );
    None
}

fn screen(bytes: &[u8], cols: u16, rows: u16, step: usize) -> Vec<String> {
    let mut pipeline = Pipeline::new(Config { size: Size { cols, rows }, ..Config::default() });
    let mut out = FoldOutput::default();
    for chunk in bytes.chunks(step) {
        pipeline.feed(chunk, &mut out);
        out.clear();
    }
    pipeline.screen().rows
}

fn expected(text: &str, rows: u16) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.resize(usize::from(rows), String::new());
    lines
}

/// The value of a field in one object of the index, a file too simple to need a parser.
fn field<'a>(object: &'a str, name: &str) -> &'a str {
    let after = object.split_once(&format!("\"{name}\":")).map_or("", |(_, after)| after);
    after.trim_start().split([',', '\n', '}']).next().unwrap_or("").trim().trim_matches('"')
}

/// Recordings in which alacritty itself differs from xterm, and we do as xterm does.
const OWN_WAY: &[&str] = &["decaln_reset"];

#[test]
fn alacritty_recordings_give_their_screens() {
    let Some(folder) = corpora().map(|folder| folder.join("alacritty-ref")) else { return };
    let index = fs::read_to_string(folder.join("index.json")).unwrap();
    let mut wrong = Vec::new();
    let mut count = 0;
    for object in index.split('{').skip(1) {
        let (cols, rows) = (field(object, "cols").parse().unwrap(), field(object, "rows").parse().unwrap());
        let bytes = fs::read(folder.join(field(object, "input"))).unwrap();
        let want = expected(&fs::read_to_string(folder.join(field(object, "screen"))).unwrap(), rows);
        for step in [usize::MAX, 7] {
            if screen(&bytes, cols, rows, step) != want {
                wrong.push(field(object, "name").to_owned());
            }
        }
        count += 1;
    }
    assert!(count >= 31, "only {count} recordings");
    wrong.dedup();
    assert_eq!(wrong, OWN_WAY, "explained in docs/internals/screen.md");
}

#[test]
fn xterm_recordings_give_their_screens_except_for_known_differences() {
    let Some(folder) = corpora().map(|folder| folder.join("xtermjs")) else { return };
    let (mut right, mut wrong) = (0, BTreeSet::new());
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "in") {
            continue;
        }
        let want = expected(&String::from_utf8_lossy(&fs::read(path.with_extension("text")).unwrap()), 25);
        // The recordings were made on a terminal that turned line feeds into CR LF.
        let bytes = String::from_utf8_lossy(&fs::read(&path).unwrap()).replace('\n', "\r\n");
        let got = screen(bytes.as_bytes(), 80, 25, usize::MAX);
        if got == want {
            right += 1;
        } else {
            wrong.insert(path.file_stem().unwrap().to_string_lossy().into_owned());
        }
    }
    let explained = include_str!("../../../docs/internals/screen.md");
    let unexplained: Vec<&String> = wrong.iter().filter(|name| !explained.contains(name.as_str())).collect();
    // Of 45. The engines that score best on the whole suite reach about three quarters of it.
    assert!(right >= 39, "{right} right, wrong: {wrong:?}");
    assert_eq!(unexplained, Vec::<&String>::new(), "not explained in docs/internals/screen.md");
}
