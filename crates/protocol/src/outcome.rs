//! What the tools of a job reported: counts and first errors, read from its output when it ended.
//!
//! Everything but the words declared here is text of the job: bounded, masked like its output, and shown as such.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::request::Stream;
use crate::words::words;

/// How many bytes of the output come with a report that stands for most of it.
pub const BESIDE_OUTCOME: usize = 1200;

words! {
    /// A tool whose output is understood.
    pub enum KnownTool ("tool") {
        /// cargo and rustc.
        Cargo = "cargo",
        /// gcc, and a linker that it runs.
        Gcc = "gcc",
        /// clang.
        Clang = "clang",
        /// pytest.
        Pytest = "pytest",
        /// Python's unittest.
        Unittest = "unittest",
        /// jest.
        Jest = "jest",
        /// vitest.
        Vitest = "vitest",
        /// go build, go vet and go test.
        Go = "go",
        /// The compiler of TypeScript.
        Tsc = "tsc",
        /// eslint.
        Eslint = "eslint",
        /// ruff.
        Ruff = "ruff",
        /// mypy.
        Mypy = "mypy",
        /// make.
        Make = "make",
        /// npm.
        Npm = "npm",
        /// pnpm.
        Pnpm = "pnpm",
        /// pip.
        Pip = "pip",
        /// git.
        Git = "git",
    }
}

words! {
    /// What is counted. What went wrong comes first.
    pub enum Count ("count") {
        /// Tests that failed.
        Failed = "failed",
        /// Errors.
        Errors = "errors",
        /// Files that could not be merged.
        Conflicts = "conflicts",
        /// Tests that passed.
        Passed = "passed",
        /// Tests that were run, where it is not known how many of them passed.
        Tests = "tests",
        /// Warnings.
        Warnings = "warnings",
        /// Tests that were not run.
        Skipped = "skipped",
        /// Tests that failed as expected.
        Xfailed = "xfailed",
        /// Tests that passed although they were expected to fail.
        Xpassed = "xpassed",
        /// Tests that are still to be written.
        Todo = "todo",
        /// Packages that were added.
        Added = "added",
        /// Packages that were removed.
        Removed = "removed",
        /// Packages that were changed.
        Changed = "changed",
        /// Files that were changed.
        Files = "files",
        /// Lines that were added.
        Insertions = "insertions",
        /// Lines that were removed.
        Deletions = "deletions",
    }
}

impl Count {
    /// Whether more than none of it means that something went wrong.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Errors | Self::Conflicts)
    }
}

/// One error, or where there is none one warning, as its tool reported it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// In which file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// In which line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The tool's code for it, or the name of the test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What it says.
    pub message: String,
    /// Where its first line begins in the log.
    pub offset: u64,
    /// In which log.
    #[serde(default, skip_serializing_if = "is_output")]
    pub stream: Stream,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_output(stream: &Stream) -> bool {
    *stream == Stream::Output
}

impl std::fmt::Display for Finding {
    /// `file:line code message`, in one line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut gap = "";
        if let Some(file) = &self.file {
            write!(f, "{file}")?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
            }
            gap = " ";
        }
        for part in self.code.as_ref().into_iter().chain([&self.message]).filter(|part| !part.is_empty()) {
            write!(f, "{gap}{part}")?;
            gap = " ";
        }
        Ok(())
    }
}

/// What one tool reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOutcome {
    /// Which tool.
    pub tool: KnownTool,
    /// What it counted; what is not certain is not there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<Count, u64>,
    /// Its first errors, or if it has none its first warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Whether the findings are errors.
    #[serde(default)]
    pub failed: bool,
}

impl ToolOutcome {
    /// The tool and its counts, in a line.
    #[must_use]
    pub fn headline(&self) -> String {
        let some = self.counts.iter().filter(|(_, count)| **count > 0);
        let mut said: Vec<String> =
            some.map(|(what, count)| format!("{count} {}", noun(*what, *count))).collect();
        if said.is_empty() {
            said.extend(self.counts.keys().next().map(|what| format!("0 {what}")));
        }
        if said.is_empty() { self.tool.to_string() } else { format!("{}: {}", self.tool, said.join(", ")) }
    }
}

/// One error, two errors.
fn noun(what: Count, count: u64) -> &'static str {
    let word = what.name();
    match what {
        Count::Errors
        | Count::Conflicts
        | Count::Tests
        | Count::Warnings
        | Count::Files
        | Count::Insertions
        | Count::Deletions
            if count == 1 =>
        {
            word.strip_suffix('s').unwrap_or(word)
        }
        Count::Failed
        | Count::Errors
        | Count::Conflicts
        | Count::Passed
        | Count::Tests
        | Count::Warnings
        | Count::Skipped
        | Count::Xfailed
        | Count::Xpassed
        | Count::Todo
        | Count::Added
        | Count::Removed
        | Count::Changed
        | Count::Files
        | Count::Insertions
        | Count::Deletions => word,
    }
}

/// Lines of an unknown tool that are alike but for their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeated {
    /// The first of them.
    pub text: String,
    /// How many there are.
    pub count: u64,
    /// Not all of the log was looked at, so there may be more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// Where the first begins in the log.
    pub offset: u64,
    /// In which log.
    #[serde(default, skip_serializing_if = "is_output")]
    pub stream: Stream,
}

/// What a job's output says about its result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobOutcome {
    /// What known tools reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolOutcome>,
    /// Where no tool is known: which lines came again and again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeated: Vec<Repeated>,
    /// Whether the command is nothing but these tools, so that there is little else to know of what it printed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

impl JobOutcome {
    /// Whether what is said here can stand for most of the output: the errors are named, or all went well and nothing
    /// but known tools was run.
    #[must_use]
    pub fn stands_for_output(&self) -> bool {
        self.tools.iter().any(|tool| tool.failed) || self.all && !self.tools.is_empty()
    }

    /// In lines, for a reader. A line that begins with `> ` is text of the job; after `@` is its offset in the log.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let at = |offset: u64, stream: Stream| match stream {
            Stream::Output => format!("@{offset}"),
            Stream::Stderr => format!("@{offset} of stderr"),
        };
        let mut lines = Vec::new();
        for tool in &self.tools {
            lines.push(tool.headline());
            lines.extend(tool.findings.iter().map(|one| format!("> {one} {}", at(one.offset, one.stream))));
        }
        lines.extend(self.repeated.iter().map(|one| {
            let more = if one.at_least { " or more" } else { "" };
            format!("> {} ({}{more} lines like this) {}", one.text, one.count, at(one.offset, one.stream))
        }));
        lines
    }
}
