//! The real bash is the judge of the judge: lines put together by chance are run where the denied program only
//! leaves a mark. Whenever the mark is there, the line must have been refused or asked for.
//!
//! A few hundred lines with every run; `OUTLAST_LONG_TESTS=1` tries twenty thousand.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, and says what it leaves out")]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use outlast_policy::{Decision, Policy, Tool};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// What lines are put together from. Nothing in it can define a function: no chance makes a fork bomb.
const PARTS: &[&str] = &[
    "rm",
    "rm",
    "rm x",
    " rm ",
    "r",
    "m",
    "x",
    " ",
    " ",
    "\n",
    "\\\n",
    ";",
    "&&",
    "||",
    "|",
    "& ",
    "'",
    "\"",
    "\\",
    "`",
    "$(",
    ")",
    "(",
    "{ ",
    "; }",
    "$X",
    "${X}",
    "X=rm ",
    "X=rm;",
    "$'",
    "\\x72",
    "\\162",
    "#",
    " # ",
    "!",
    "! ",
    "<",
    ">",
    ">y ",
    "<<E\n",
    "\nE\n",
    "<<< ",
    "echo ",
    "eval ",
    "sh -c ",
    "bash -c ",
    "sh ",
    "env ",
    "command ",
    "exec ",
    "xargs ",
    "true ",
    "if ",
    "then ",
    "; then ",
    "; fi",
    "else ",
    "while ",
    "; do ",
    "done",
    "for i in ",
    "case x in x) ",
    ";;",
    " esac",
    "[[ ",
    " ]]",
    "((",
    "))",
    "$((",
    "time ",
    "nice ",
    "timeout 1 ",
    "-",
    "--",
    "*",
    "?",
    "[m]",
    "{r,}",
    "~",
    "=",
    "$IFS",
    "${IFS}",
    "<(",
    ">(",
    "&>",
    "2>&1",
    "$@",
    "$1",
    ",",
    "builtin ",
    "coproc ",
    "until ",
    "set -- ",
    "trap ",
    "EXIT",
    "$\"",
    "\\'",
    "\t",
];

struct Yard {
    folder: tempfile::TempDir,
}

impl Yard {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        let mark = folder.path().join("mark");
        std::fs::write(bin.join("rm"), format!("#!/bin/sh\n: > '{}'\n", mark.display())).unwrap();
        std::fs::set_permissions(bin.join("rm"), std::fs::Permissions::from_mode(0o755)).unwrap();
        for program in ["sh", "bash", "env", "xargs", "nice", "timeout", "cat", "true", "echo"] {
            let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
                .map(|folder| folder.join(program))
                .find(|file| file.is_file());
            if let Some(file) = found {
                symlink(file, bin.join(program)).unwrap();
            }
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Whether a line runs the program.
    fn runs(&self, line: &str) -> bool {
        let _ = std::fs::remove_file(self.path("mark"));
        // A line may block, or start something that does: its group is ended with it.
        let script = "ulimit -t 5; timeout -s KILL 5 bash -c \"$1\" </dev/null >/dev/null 2>&1";
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", script, "sh", line])
            .env_clear()
            .env("PATH", self.path("bin"))
            .current_dir(self.path("work"))
            .stdin(Stdio::null());
        command.status().unwrap();
        for entry in std::fs::read_dir(self.path("work")).unwrap() {
            let _ = std::fs::remove_file(entry.unwrap().path());
        }
        self.path("mark").exists()
    }
}

fn policy() -> Policy {
    Policy::parse(Path::new("policy.toml"), "[[rule]]\ndecision = \"deny\"\nprefix = \"rm\"\n").unwrap()
}

/// `()` would define a function.
fn is_fit(line: &str) -> bool {
    let close: String = line.chars().filter(|c| !c.is_whitespace() && *c != '\\').collect();
    !close.contains("()") && !line.contains('\0')
}

/// Puts a line into another, in one of many ways.
fn inside(way: usize, line: &str) -> String {
    let quoted = line.replace('\'', "'\\''");
    match way {
        0 => format!("sh -c '{quoted}'"),
        1 => format!("echo $({line})"),
        2 => format!("if true; then {line}; fi"),
        3 => format!("bash <<E\n{line}\nE"),
        4 => format!("eval '{quoted}'"),
        5 => format!("( {line} )"),
        6 => format!("{{ {line}; }} >y 2>&1"),
        7 => format!("true && {line} | cat"),
        8 => format!("env A=b {line}"),
        9 => format!("echo `{line}`"),
        10 => format!("X='{quoted}'; $X"),
        11 => format!("timeout 1 nice {line}"),
        12 => format!("cat <({line})"),
        13 => format!("case x in (x) {line};; esac"),
        14 => format!("while {line}; do break; done"),
        15 => format!("echo \"a $({line}) b\""),
        16 => format!("bash <<< '{quoted}'"),
        17 => format!("true # it's\n{line}"),
        18 => format!("cat <<'E'\nit's\nE\n{line}"),
        19 => format!(">y {line}"),
        20 => format!("! {line}"),
        21 => format!("for i in 1; do {line}; done"),
        22 => format!("[[ -n $({line}) ]]"),
        23 => format!("a=($({line}))"),
        24 => format!("trap '{quoted}' EXIT"),
        25 => format!("echo '{quoted}' | sh"),
        26 => format!("x=${{x:-$({line})}}"),
        27 => format!("time {line}"),
        _ => format!("{line} & wait"),
    }
}

/// Lines put together by chance, and the denied command put into others, with something by chance in between.
fn lines() -> impl Strategy<Value = String> {
    let part = || prop::sample::select(PARTS);
    let chance = prop::collection::vec(part(), 2..10).prop_map(|parts| parts.concat());
    let ways = prop::collection::vec(0..29_usize, 1..4);
    let disturbed = prop::collection::vec((any::<prop::sample::Index>(), part()), 0..3);
    let nested = (ways, disturbed).prop_map(|(ways, disturbed)| {
        let mut line = ways.iter().fold("rm x".to_owned(), |line, way| inside(*way, &line));
        for (at, part) in disturbed {
            line.insert_str(line.floor_char_boundary(at.index(line.len())), part);
        }
        line
    });
    prop_oneof![1 => chance, 1 => nested]
}

#[test]
fn whatever_bash_runs_was_refused_or_asked_for() {
    if !outlast_testkit::has("bash") {
        return;
    }
    let long = std::env::var_os("OUTLAST_LONG_TESTS").is_some();
    let (yard, policy) = (Yard::new(), policy());
    let seed = std::env::var("OUTLAST_SEED").ok().and_then(|seed| seed.parse::<u8>().ok()).unwrap_or(7);
    let config =
        Config { cases: if long { 20_000 } else { 300 }, failure_persistence: None, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let counted = std::cell::Cell::new(0_u32);
    let result = runner.run(&lines(), |line| {
        // What is refused or asked for anyway needs no proof.
        if !is_fit(&line) || policy.judge_line(Tool::Run, &line).decision > Decision::Allow {
            return Ok(());
        }
        counted.set(counted.get() + 1);
        prop_assert!(!yard.runs(&line), "bash runs it: {line:?}");
        Ok(())
    });
    result.unwrap();
    eprintln!("{} lines were allowed, and none of them ran the program", counted.get());
    assert!(counted.get() > 20, "the judge does not just refuse everything");
}

#[test]
fn the_yard_knows_when_the_program_is_run() {
    if !outlast_testkit::has("bash") {
        return;
    }
    let yard = Yard::new();
    assert!(yard.runs("env sh -c 'r''m x'"));
    assert!(!yard.runs("echo rm x"));
}

/// One character as a shell may have it written.
fn quoted(c: char) -> impl Strategy<Value = String> {
    let plain = if c.is_ascii_alphanumeric() || "/-.".contains(c) { c.to_string() } else { format!("\\{c}") };
    prop_oneof![
        4 => Just(plain),
        1 => Just(format!("\\{c}")),
        1 => Just(format!("'{c}'")),
        1 => Just(format!("\"{c}\"")),
        1 => Just(format!("$'\\x{:02x}'", c as u32)),
        1 => Just(format!("$'\\{:03o}'", c as u32)),
        1 => Just(format!("$'\\u{:04x}'", c as u32)),
        1 => Just(format!("''{c}")),
        1 => Just(format!("{c}\"\"")),
        1 => Just(format!("\\\n{c}")),
    ]
}

fn written(word: &'static str) -> impl Strategy<Value = String> {
    word.chars().map(quoted).collect::<Vec<_>>().prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(Config { cases: 500, failure_persistence: None, ..Config::default() })]

    #[test]
    fn quotes_hide_nothing(
        program in written("rm"),
        verb in (written("git"), written("push")),
        before in prop::sample::select(&["", "true; ", "sudo ", "A=b ", "( ", "\n", "! ", "env "][..]),
    ) {
        let text = "[[rule]]\ndecision = \"deny\"\nprefix = \"rm\"\n[[rule]]\ndecision = \"deny\"\nprefix = \"git push\"\n";
        let policy = Policy::parse(Path::new("policy.toml"), text).unwrap();
        let close = if before == "( " { " )" } else { "" };
        for line in [format!("{before}{program} x{close}"), format!("{before}{} {} x{close}", verb.0, verb.1)] {
            let verdict = policy.judge_line(Tool::Run, &line);
            prop_assert!(verdict.decision == Decision::Deny, "{line:?}: {verdict:?}");
            let inner = format!("bash -c '{}'", line.replace('\'', "'\\''"));
            prop_assert!(policy.judge_line(Tool::Run, &inner).decision == Decision::Deny, "{inner:?}");
        }
    }
}
