//! Reads a page of the documentation: its blocks of code, headings and links.

use std::path::{Path, PathBuf};

/// The folder of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A file of the documentation.
pub(crate) struct Page {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// A block of code.
#[derive(Debug)]
pub(crate) struct Block {
    /// The line of the page on which its code begins, counted from 1.
    pub(crate) line: usize,
    /// The word behind the fence; empty for an indented block.
    pub(crate) language: String,
    pub(crate) lines: Vec<String>,
    /// The HTML comment right before it, if there is one.
    pub(crate) comment: Option<String>,
}

impl Page {
    /// The README, and every page below `docs`.
    pub(crate) fn all() -> Vec<Self> {
        let mut pages = vec![Self::read(root().join("README.md"))];
        let mut folders = vec![root().join("docs")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if entry.is_dir() {
                    folders.push(entry);
                } else if entry.extension().is_some_and(|end| end == "md") {
                    pages.push(Self::read(entry));
                }
            }
        }
        pages.sort_by(|a, b| a.path.cmp(&b.path));
        pages
    }

    fn read(path: PathBuf) -> Self {
        let text = std::fs::read_to_string(&path).unwrap();
        Self { path, text }
    }

    /// Its path below the repository.
    pub(crate) fn name(&self) -> String {
        self.path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned()
    }

    /// Whether it is written for users: the README and the guide.
    pub(crate) fn is_for_users(&self) -> bool {
        self.name() == "README.md" || self.name().starts_with("docs/guide/")
    }

    /// Its blocks of code, fenced or indented.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        let mut fenced: Option<Block> = None;
        let (mut comment, mut before_is_blank, mut in_indented) = (None, true, false);
        for (number, line) in self.text.lines().enumerate() {
            if let Some(fence) = line.trim_start().strip_prefix("```") {
                match fenced.take() {
                    Some(block) => blocks.push(block),
                    None => {
                        let language = fence.trim().to_owned();
                        let comment = comment.take();
                        fenced = Some(Block { line: number + 2, language, lines: Vec::new(), comment });
                    }
                }
            } else if let Some(block) = &mut fenced {
                block.lines.push(line.to_owned());
            } else if line.starts_with("    ") && (in_indented || before_is_blank) {
                if !in_indented {
                    let comment = comment.take();
                    blocks.push(Block {
                        line: number + 1,
                        language: String::new(),
                        lines: Vec::new(),
                        comment,
                    });
                }
                in_indented = true;
                blocks.last_mut().unwrap().lines.push(line[4..].to_owned());
            } else if !line.trim().is_empty() {
                in_indented = false;
                let inside = line.trim().strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->"));
                comment = inside.map(|inside| inside.trim().to_owned());
            }
            before_is_blank = line.trim().is_empty();
        }
        assert!(fenced.is_none(), "{}: a fence is not closed", self.name());
        blocks
    }

    /// The text without blocks of code and without code in a line: where links are.
    pub(crate) fn prose(&self) -> String {
        let mut prose = String::new();
        let mut is_fenced = false;
        for line in self.text.lines() {
            if line.trim_start().starts_with("```") {
                is_fenced = !is_fenced;
            } else if !is_fenced && !line.starts_with("    ") {
                // Every second piece between backticks is code.
                prose.extend(line.split('`').step_by(2));
                prose.push('\n');
            }
        }
        prose
    }

    /// The anchors of its headings, as public forges and mdBook make them.
    pub(crate) fn anchors(&self) -> Vec<String> {
        let mut is_fenced = false;
        let mut anchors = Vec::new();
        for line in self.text.lines() {
            is_fenced ^= line.trim_start().starts_with("```");
            if is_fenced || !line.starts_with('#') {
                continue;
            }
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            anchors.push(kept.collect::<String>().replace(' ', "-"));
        }
        anchors
    }
}
