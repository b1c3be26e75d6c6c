//! What was measured, as Markdown with pictures beside it.

use std::fmt::Write as _;
use std::path::Path;

use super::plot::Plot;
use crate::page;

/// One thing that was measured.
#[derive(Default)]
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    pub(super) head: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
    pub(super) plots: Vec<Plot>,
    /// Figures that a target is set for, by the name that the target has for them.
    pub(super) figures: Vec<(&'static str, f64)>,
}

const MARKS: (&str, &str) = ("<!-- measured: cargo xtask bench -->", "<!-- end of what was measured -->");

/// The tables as text.
pub(super) fn markdown(sections: &[Section]) -> String {
    let mut text = String::new();
    for section in sections {
        let _ = writeln!(text, "### {}\n\n{}\n", section.title, section.about);
        let _ = writeln!(text, "| {} |", section.head.join(" | "));
        let _ = writeln!(text, "|{}", "---|".repeat(section.head.len()));
        for row in &section.rows {
            let _ = writeln!(text, "| {} |", row.join(" | "));
        }
        text.push('\n');
        for plot in &section.plots {
            let _ = writeln!(text, "![{}](performance/{}.svg)\n", plot.title, plot.name);
        }
    }
    text
}

/// Puts the tables between the marks of `docs/performance.md`, and the pictures beside it.
pub(super) fn write(docs: &Path, machine: &str, sections: &[Section]) -> Result<(), String> {
    let say = |error: std::io::Error| error.to_string();
    let measured = format!("{machine}\n\n{}", markdown(sections).trim_end());
    page::fill(&docs.join("performance.md"), MARKS, &format!("{measured}\n"))?;
    let pictures = docs.join("performance");
    std::fs::create_dir_all(&pictures).map_err(say)?;
    for plot in sections.iter().flat_map(|section| &section.plots) {
        std::fs::write(pictures.join(format!("{}.svg", plot.name)), plot.svg()).map_err(say)?;
    }
    Ok(())
}
