//! The repository's own recordings: real programs that ran under Outlast. Folding each again gives the screen and the
//! lines that are kept beside it. `UPDATE_RECORDINGS=1` writes them anew; `cargo xtask record` makes more.

use std::path::{Path, PathBuf};

use outlast_stream::{Config, FoldOutput, Pipeline, Size};
use serde_json::Value;

fn folders() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(all)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        // Runs of known tools are read by tests of their own.
        .filter(|path| path.is_dir() && !path.ends_with("outcomes"))
        .collect();
    folders.sort();
    folders
}

fn size(text: &str) -> Size {
    let (cols, rows) = text.split_once('x').unwrap();
    Size { cols: cols.parse().unwrap(), rows: rows.parse().unwrap() }
}

/// Where the terminal got another size.
fn resizes(folder: &Path) -> Vec<(usize, Size)> {
    let timing = std::fs::read_to_string(folder.join("timing")).unwrap();
    let facts = timing.lines().skip(1).map(|line| line.split(' ').collect::<Vec<_>>());
    facts
        .filter_map(|words| match words.as_slice() {
            [_, offset, "size", cells] => Some((offset.parse().unwrap(), size(cells))),
            _ => None,
        })
        .collect()
}

/// Screen and lines of a recording, fed in pieces.
fn fold(folder: &Path, piece: usize) -> (String, String) {
    let input = std::fs::read(folder.join("input.bin")).unwrap();
    let info: Value = serde_json::from_slice(&std::fs::read(folder.join("info.json")).unwrap()).unwrap();
    let side = |name: &str| u16::try_from(info["started_size"][name].as_u64().unwrap()).unwrap();
    let size = Size { cols: side("cols"), rows: side("rows") };
    let mut fold = Pipeline::new(Config { size, ..Config::default() });
    let mut lines = Vec::new();
    let mut out = FoldOutput::default();
    let mut take = |out: &mut FoldOutput| {
        lines.truncate(lines.len() - usize::try_from(out.retract).unwrap());
        lines.extend_from_slice(&out.text);
        out.clear();
    };
    let mut at = 0;
    for (offset, size) in
        resizes(folder).into_iter().map(|(at, size)| (at, Some(size))).chain([(input.len(), None)])
    {
        for bytes in input[at..offset].chunks(piece) {
            fold.feed(bytes, &mut out);
            take(&mut out);
        }
        at = offset;
        if let Some(size) = size {
            fold.resize(size, &mut out);
            take(&mut out);
        }
    }
    fold.finish(&mut out);
    take(&mut out);
    let mut screen = fold.screen().rows.join("\n");
    screen.truncate(screen.trim_end().len());
    screen.push('\n');
    (screen, String::from_utf8(lines).unwrap())
}

#[test]
fn each_recording_folds_to_its_screen_and_lines() {
    let folders = folders();
    assert!(folders.len() >= 9, "{folders:?}");
    for folder in folders {
        let (screen, lines) = fold(&folder, usize::MAX);
        for piece in [1, 7, 100] {
            assert_eq!(
                fold(&folder, piece),
                (screen.clone(), lines.clone()),
                "{folder:?} in pieces of {piece}"
            );
        }
        for (name, now) in [("screen.txt", &screen), ("lines.txt", &lines)] {
            let file = folder.join(name);
            if std::env::var_os("UPDATE_RECORDINGS").is_some() {
                std::fs::write(&file, now).unwrap();
            }
            assert_eq!(&std::fs::read_to_string(&file).unwrap(), now, "{file:?}");
        }
        let bytes = std::fs::metadata(folder.join("input.bin")).unwrap().len();
        assert!(bytes < 50 << 10, "{folder:?} has {bytes} bytes");
    }
}
