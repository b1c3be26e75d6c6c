//! A row of the table: a program, what is typed at it first, and what must be said of it.

use std::ffi::OsString;
use std::path::PathBuf;

use outlast_pty::evidence::{InputKind, Level};

/// How the name of a program begins that is in the folder of fetched tools.
const IN_TOOLS: &str = "tools/";

/// The folder of what `cargo xtask test` fetches from registries.
pub(crate) fn tools() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools"))
}

/// What must be said of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expect {
    /// That it waits, at least this surely, for this.
    Waits { at_least: Level, kind: InputKind },
    /// That it listens; never that it waits.
    Listens,
    /// That it is stopped; never that it waits.
    Stopped,
    /// Anything but that it waits.
    Never,
}

/// Who has to run a program for it to behave as told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Anybody,
    Root,
    /// Anybody but root.
    User,
}

/// A program and what must be said of it.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) argv: Vec<&'static str>,
    /// Programs that must be there besides the first of `argv`.
    pub(crate) needs: Vec<&'static str>,
    /// What to type once a text is on the screen, one after the other.
    pub(crate) sends: Vec<(&'static str, &'static str)>,
    /// The verdict counts only once this is on the screen.
    pub(crate) once: &'static str,
    /// Who has to run it, if it matters.
    pub(crate) who: Who,
    pub(crate) expect: Expect,
    /// More must not be said.
    pub(crate) at_most: Level,
    /// Only run at full size: its program is too large to install for every change.
    pub(crate) full_size: bool,
}

fn row(name: &'static str, argv: &[&'static str], expect: Expect) -> Row {
    Row {
        name,
        argv: argv.to_vec(),
        needs: Vec::new(),
        sends: Vec::new(),
        once: "",
        who: Who::Anybody,
        expect,
        at_most: Level::Certain,
        full_size: false,
    }
}

/// It sits in a read: certainly waiting.
pub(crate) fn certain(name: &'static str, kind: InputKind, argv: &[&'static str]) -> Row {
    row(name, argv, Expect::Waits { at_least: Level::Certain, kind })
}

/// It polls, through a relay or with a timer: likely waiting.
pub(crate) fn likely(name: &'static str, kind: InputKind, argv: &[&'static str]) -> Row {
    row(name, argv, Expect::Waits { at_least: Level::Likely, kind })
}

/// It may not be looked into: possibly waiting.
pub(crate) fn possible(name: &'static str, kind: InputKind, argv: &[&'static str]) -> Row {
    row(name, argv, Expect::Waits { at_least: Level::Possible, kind })
}

pub(crate) fn listens(name: &'static str, argv: &[&'static str]) -> Row {
    row(name, argv, Expect::Listens)
}

pub(crate) fn stopped(name: &'static str, argv: &[&'static str]) -> Row {
    row(name, argv, Expect::Stopped)
}

pub(crate) fn busy(name: &'static str, argv: &[&'static str]) -> Row {
    row(name, argv, Expect::Never)
}

impl Row {
    pub(crate) fn needs(mut self, programs: &[&'static str]) -> Self {
        self.needs.extend_from_slice(programs);
        self
    }

    pub(crate) fn after(mut self, text: &'static str, send: &'static str) -> Self {
        self.sends.push((text, send));
        self
    }

    pub(crate) fn once(mut self, text: &'static str) -> Self {
        self.once = text;
        self
    }

    /// It may wait, but it could also go on by itself.
    pub(crate) fn uncertain(mut self) -> Self {
        self.at_most = Level::Likely;
        self
    }

    pub(crate) fn at_full_size(mut self) -> Self {
        self.full_size = true;
        self
    }

    pub(crate) fn root(mut self) -> Self {
        self.who = Who::Root;
        self
    }

    pub(crate) fn user(mut self) -> Self {
        self.who = Who::User;
        self
    }

    /// Whether its program waits for somebody to type.
    pub(crate) fn waits(&self) -> bool {
        matches!(self.expect, Expect::Waits { .. })
    }

    /// Its command, with the place of a fetched program filled in.
    pub(crate) fn command(&self) -> Vec<OsString> {
        let word = |word: &&str| match word.strip_prefix(IN_TOOLS) {
            Some(rest) => tools().join(rest).into_os_string(),
            None => OsString::from(word),
        };
        self.argv.iter().map(word).collect()
    }

    /// The first program that this machine does not have, of those of the row and one more.
    pub(crate) fn absent(&self, besides: Option<&'static str>) -> Option<&'static str> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let there = |program: &str| match program.strip_prefix(IN_TOOLS) {
            Some(rest) => tools().join(rest).is_file(),
            None => std::env::split_paths(&path).any(|folder| folder.join(program).is_file()),
        };
        self.argv.iter().take(1).chain(&self.needs).copied().chain(besides).find(|program| !there(program))
    }
}
