//! The real bash is the judge of the judge: lines put together by chance are run where the denied program
//! only leaves a mark. Whenever the mark is there, the line must have been refused or asked for.
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

/// Ways to get a text that arithmetic would run into `v`.
const SETS: &[&str] = &[
    "v='a[$(rm x)]'",
    "v='a[0+$(rm x)]'",
    "v=a[\\$\\(rm\\ x\\)]",
    "v=$'a[\\x24(rm x)]'",
    "v=\"a[\\$(rm x)]\"",
    "v=\"a[\\`rm x\\`]\"",
    "v='a[$'; w='(rm x)]'; v=$v$w",
    "v='a[$_(rm x)]'; v=${v/_/}",
    "d='$'; v=\"a[$d(rm x)]\"",
    "read -r v <<< 'a[$(rm x)]'",
    "read -r v <<< $'a[\\x24(rm x)]'",
    "read -r v <<'E'\na[$(rm x)]\nE\n",
    "printf -v v 'a[\\x24(rm x)]'",
    "v=$(printf 'a[\\x24(rm x)]')",
    "v=$(echo -e 'a[\\x24(rm x)]')",
    "for v in 'a[$(rm x)]'; do :; done",
    "v=('a[$(rm x)]')",
    "v+='a[$(rm x)]'",
    "set -- 'a[$(rm x)]'; v=$1",
    "declare v='a[$(rm x)]'",
    "export \"v=a[\\$(rm x)]\"",
    "mapfile -t v <<< 'a[$(rm x)]'",
    "declare -n v='a[$(rm x)]'",
    "v='$(rm x)'",
    ": ${v:='a[$(rm x)]'}",
    "u='a[$(rm x)]' v=u",
];

/// Ways to have it evaluated.
const EVALUATES: &[&str] = &[
    "((v))",
    "(( 1 + v ))",
    "echo $((v))",
    "echo $[v]",
    "echo $(($v))",
    "[[ $v -eq 0 ]]",
    "[[ v -gt 1 ]]",
    "[[ -v $v ]]",
    "echo ${q:v}",
    "q=abc; echo ${q:0:v}",
    "echo ${@:v}",
    "let v",
    "let \"q=v\"",
    "declare -i q=v",
    "declare -i q; q=$v",
    "test -v \"$v\"",
    "[ -v \"$v\" ]",
    "unset \"$v\"",
    "printf -v \"$v\" z",
    "read \"$v\" <<< z",
    "echo ${!v}",
    "q=${v@P}",
    "q=(1); echo ${q[v]}",
    "q[v]=1",
    "q[$v]=1",
    "for ((; v; )); do break; done",
    "f() { echo $(($1)); }; f \"$v\"",
    "set -- \"$v\"; echo $(($1))",
    "declare -a \"q=($v)\"",
    "typeset -a 'q=($(rm x))'",
    "declare -a 'q=($(rm x))'",
    "echo $v",
    "builtin declare -i q=v",
    "w=v; echo $((w))",
    "d='$'; echo >&\"$d(rm x)\"",
    "echo >& '$(rm x)'",
    "! ((v))",
    "time ((v))",
    "time q[v]=1",
    "! { let v; }",
    "time >y q[v]=1",
    "time w=$v; echo $((w))",
    "[[ $(printf 'a[\\x24(rm x)]') -lt 5 ]]",
    "echo $(( $(printf 'a[\\x24(rm x)]') ))",
    "q=abc; echo ${q:$(printf 'a[\\x24(rm x)]')}",
    "let q=$(printf 'a[\\x24(rm x)]')",
    "declare -i q=$(printf 'a[\\x24(rm x)]')",
    "declare -i q; q=$(printf 'a[\\x24(rm x)]')",
];

/// What may stand before a `#`, and between the two.
const BEFORE: &[&str] = &[
    "x=(1)",
    "x=()",
    "x+=(1)",
    "declare x=(1)",
    "export x=(1)",
    "x=1",
    "echo a",
    "[[ a ]]",
    "(true)",
    "true;",
    "true &",
    "echo $(echo)",
    "echo ${x:-a}",
    "echo \"a\"",
    "{ true; }",
    "echo $((1))",
    "true",
    "x=(1",
    "((1",
    "echo ${x",
];
const BETWEEN: &[&str] =
    &["", " ", "\t", "\r", "\x0b", "\x0c", "\u{85}", "\u{a0}", "\u{2028}", "\\ ", "\\\n", " \r"];

/// The programs of these lines may be run, and nothing else.
const LIST: &str = "default = \"deny\"\n[[rule]]\ndecision = \"allow\"\nprefix = [[\"echo\", \"printf\", \"read\", \"test\",     \"[\", \":\", \"true\", \"set\", \"unset\", \"let\", \"mapfile\", \"f\", \"break\", \"builtin\", \"cat\"]]\n";

#[test]
fn nothing_runs_by_a_second_reading_or_a_false_comment() {
    if !outlast_testkit::has("bash") {
        return;
    }
    let parse = |text: &str| Policy::parse(Path::new("policy.toml"), text).unwrap();
    let policies = [parse("default = \"deny\"\n"), parse("default = \"ask\"\n"), parse(LIST), policy()];
    let mut lines: Vec<String> = Vec::new();
    for set in SETS {
        lines.extend(EVALUATES.iter().map(|evaluate| format!("{set}; {evaluate}").replace("\n; ", "\n")));
    }
    lines.extend(
        EVALUATES
            .iter()
            .map(|evaluate| evaluate.replace("$v", "a[$(rm x)]").replace("\"$v\"", "'a[$(rm x)]'")),
    );
    lines.push("[[ 'a[0+$(rm x)]' -eq 0 ]]".into());
    lines.push("[[ 'a[$'\"(rm x)]\" -eq 0 ]]".into());
    for before in BEFORE {
        for between in BETWEEN {
            lines.extend(
                ["; rm x", "\nrm x", " '\nrm x\n'"].map(|after| format!("{before}{between}#{after}")),
            );
            lines.push(format!("{before}{between}# a comment"));
        }
    }
    let yard = Yard::new();
    let allows = |line: &str| {
        policies.iter().any(|policy| policy.judge_line(Tool::Run, line).decision == Decision::Allow)
    };
    let allowed: Vec<&String> = lines.iter().filter(|line| allows(line)).collect();
    let ran: Vec<&&String> = allowed.iter().filter(|line| yard.runs(line)).collect();
    assert!(ran.is_empty(), "bash runs the program in {ran:#?}");
    eprintln!("{} of {} lines were allowed, and none of them ran the program", allowed.len(), lines.len());
    assert!(allowed.len() > 20, "the judge does not just refuse everything");
    // And the tries are real: bash runs the program in many of those that are refused.
    let real = lines.iter().filter(|line| !allows(line)).step_by(9).filter(|line| yard.runs(line)).count();
    assert!(real > 20, "{real}");
    // Without a rule that allows anything, nothing but comments is allowed.
    for line in ["x=1", "[[ a == b ]]", "((1))", "declare x", "x=(1)# ; rm x", "x='$(rm x)'; y=${x@P}"] {
        assert_eq!(policies[0].judge_line(Tool::Run, line).decision, Decision::Deny, "{line}");
        assert_eq!(policies[1].judge_line(Tool::Run, line).decision, Decision::Ask, "{line}");
    }
}

/// Both ways together, disturbed by chance.
fn second_readings() -> impl Strategy<Value = String> {
    let disturbed = prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(PARTS)), 0..4);
    let between =
        prop::sample::select(&["; ", "\n", " && ", " | ", "; { ", "; ( ", "; bash -c '", "; eval '"][..]);
    (prop::sample::select(SETS), between, prop::sample::select(EVALUATES), disturbed).prop_map(
        |(set, between, evaluate, disturbed)| {
            let close = match between {
                "; { " => "; }",
                "; ( " => " )",
                "; bash -c '" | "; eval '" => "'",
                _ => "",
            };
            let mut line = format!("{set}{between}{evaluate}{close}");
            for (at, part) in disturbed {
                line.insert_str(line.floor_char_boundary(at.index(line.len())), part);
            }
            line
        },
    )
}

#[test]
fn chance_finds_no_second_reading_either() {
    if !outlast_testkit::has("bash") {
        return;
    }
    let long = std::env::var_os("OUTLAST_LONG_TESTS").is_some();
    let yard = Yard::new();
    let policies = [Policy::parse(Path::new("policy.toml"), LIST).unwrap(), policy()];
    let config =
        Config { cases: if long { 50_000 } else { 1_500 }, failure_persistence: None, ..Config::default() };
    let seed = std::env::var("OUTLAST_SEED").ok().and_then(|seed| seed.parse::<u8>().ok()).unwrap_or(7);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let result = runner.run(&second_readings(), |line| {
        let allows = |policy: &Policy| policy.judge_line(Tool::Run, &line).decision == Decision::Allow;
        if is_fit(&line) && policies.iter().any(allows) {
            prop_assert!(!yard.runs(&line), "bash runs it: {line:?}");
        }
        Ok(())
    });
    result.unwrap();
}
