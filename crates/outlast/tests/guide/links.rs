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
