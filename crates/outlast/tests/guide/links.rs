//! Every link inside of the repository leads to a file and a heading that are there, and every page is in the book.

use crate::page::{Page, root};

/// The targets of links and pictures in a text.
fn targets(prose: &str) -> Vec<&str> {
    prose.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next()).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let pages = Page::all();
    let mut dead = Vec::new();
    for page in &pages {
        for target in targets(&page.prose()) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file =
                if path.is_empty() { page.path.clone() } else { page.path.parent().unwrap().join(path) };
            let Ok(file) = file.canonicalize() else {
                dead.push(format!("{}: {target}", page.name()));
                continue;
            };
            if anchor.is_empty() {
                continue;
            }
            let has_anchor =
                pages.iter().any(|page| page.path == file && page.anchors().contains(&anchor.to_owned()));
            if !has_anchor {
                dead.push(format!("{}: {target} (no such heading)", page.name()));
            }
        }
    }
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}

#[test]
fn every_page_is_in_the_book() {
    let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let missing: Vec<String> = Page::all()
        .iter()
        .map(Page::name)
        .filter_map(|name| name.strip_prefix("docs/").map(ToOwned::to_owned))
        .filter(|name| name != "SUMMARY.md" && !summary.contains(&format!("({name})")))
        .collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md does not have {missing:?}");
}

/// The paths that a text names, as `crate/file.rs`, with what is in braces written out.
fn paths(text: &str) -> Vec<String> {
    fn written_out(path: &str) -> Vec<String> {
        let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
        let Some((inside, after)) = rest.split_once('}') else { return Vec::new() };
        inside.split(',').flat_map(|one| written_out(&format!("{before}{one}{after}"))).collect()
    }
    let in_path = |c: char| c.is_ascii_alphanumeric() || "_-/.{},*".contains(c);
    let words = text.split(|c: char| !in_path(c)).map(|word| word.trim_matches(['.', ',']));
    words.filter(|word| word.contains('/') && word.contains(".rs")).flat_map(written_out).collect()
}

#[test]
fn every_file_that_the_map_names_is_there_and_every_crate_and_suite_is_on_it() {
    let map = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let crates = || std::fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let is_there = |path: &String| {
        let (start, rest) = path.split_once('/').unwrap();
        let below = |base: std::path::PathBuf, rest: &str| match rest.strip_suffix("*.rs") {
            Some(folder) => base.join(folder).is_dir(),
            None => base.join(rest).is_file(),
        };
        // Some are named from the folder of the file before them.
        below(root().join("crates").join(start).join("src"), rest)
            || below(root(), path)
            || crates().any(|one| below(one.join("src"), path))
    };
    let gone: Vec<String> = paths(&map).into_iter().filter(|path| !is_there(path)).collect();
    assert!(gone.is_empty(), "ARCHITECTURE.md names what is not there: {gone:?}");
    for one in crates() {
        let row = format!("| `crates/{}` |", one.file_name().unwrap().to_str().unwrap());
        assert!(map.contains(&row), "ARCHITECTURE.md has no row for {}", one.display());
    }
    let suites = std::fs::read_dir(root().join("crates/outlast/tests")).unwrap().map(|entry| entry.unwrap());
    for suite in suites.filter(|suite| suite.path().join("main.rs").is_file()) {
        let name = format!("`{}`", suite.file_name().to_str().unwrap());
        assert!(map.contains(&name), "ARCHITECTURE.md does not name the suite {name}");
    }
}
