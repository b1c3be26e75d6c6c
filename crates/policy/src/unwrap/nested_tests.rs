//! Every verb and option of `outlast` has a verdict, and no option hides the command behind it.

use std::collections::BTreeSet;
use std::path::Path;

use clap::Command;
use outlast_cli::Verb;

use super::*;
use crate::decision::{Decision, Tool};
use crate::policy::Policy;
use crate::word::plain_words;

/// Each verb, with arguments, and what it is for the policy. A verb that is not here is one that nobody has
/// thought about.
const VERBS: &[(&str, Does)] = &[
    ("run make", Does::Runs),
    ("jobs", Does::Looks(Tool::Jobs)),
    ("top", Does::Unknown),
    ("show 3", Does::Looks(Tool::Jobs)),
    ("read 3", Does::Looks(Tool::Read)),
    ("logs 3", Does::Looks(Tool::Read)),
    ("tail web", Does::Looks(Tool::Read)),
    ("screen 3", Does::Looks(Tool::Screen)),
    ("replay 3", Does::Looks(Tool::Read)),
    ("diff 3 4", Does::Looks(Tool::Read)),
    ("wait 3", Does::Looks(Tool::Wait)),
    ("events", Does::Looks(Tool::Events)),
    ("events --ack-all", Does::Looks(Tool::Events)),
    ("events --ack-all --session other", Does::Acts(Tool::Events)),
    ("watch 3 --list", Does::Looks(Tool::Watch)),
    ("watch 3 --list --remove w1", Does::Acts(Tool::Watch)),
    ("watch 3 --exit", Does::Acts(Tool::Watch)),
    ("send 3 make", Does::Types),
    ("secret 3", Does::Acts(Tool::Send)),
    ("attach 3", Does::Acts(Tool::Send)),
    ("attach 3 --read-only", Does::Looks(Tool::Screen)),
    ("shell main", Does::Unknown),
    ("resize 3 80x24", Does::Acts(Tool::Resize)),
    ("tmux submit make", Does::Types),
    ("tmux watch %1", Does::Acts(Tool::Send)),
    ("tmux mirror %1", Does::Acts(Tool::Send)),
    ("tmux read %1", Does::Looks(Tool::Screen)),
    ("tmux work file", Does::Unknown),
    ("kill 3", Does::Acts(Tool::Kill)),
    ("rerun 3", Does::Unknown),
    ("pin 3", Does::Looks(Tool::Jobs)),
    ("pin --remove 3", Does::Acts(Tool::Prune)),
    ("rm 3", Does::Acts(Tool::Prune)),
    ("prune", Does::Acts(Tool::Prune)),
    ("prune --all --dry-run", Does::Looks(Tool::Jobs)),
    ("wakes list", Does::Looks(Tool::Events)),
    ("wakes retry 3", Does::Acts(Tool::Events)),
    ("wakes cancel 3", Does::Acts(Tool::Events)),
    ("wakes pause --pane %1", Does::Acts(Tool::Events)),
    ("wakes resume --all", Does::Acts(Tool::Events)),
    ("policy check make", Does::Nothing),
    ("policy pending", Does::Looks(Tool::Jobs)),
    ("policy answer 3 1 yes", Does::Unknown),
    ("policy log", Does::Looks(Tool::Jobs)),
    ("web", Does::Unknown),
    ("web share 3", Does::Unknown),
    ("web shares", Does::Looks(Tool::Jobs)),
    ("web revoke 1", Does::Acts(Tool::Jobs)),
    ("mcp", Does::Unknown),
    ("acp agent", Does::Unknown),
    ("acp sidecar make", Does::Runs),
    ("acp tap make", Does::Runs),
    ("acp tap --show file", Does::Nothing),
    ("install --client zed", Does::Unknown),
    ("install --client zed --dry-run", Does::Nothing),
    ("uninstall --client zed", Does::Unknown),
    ("hook claude idle", Does::Acts(Tool::Events)),
    ("host add gpu1 ssh:me@gpu1", Does::Unknown),
    ("host list", Does::Looks(Tool::Jobs)),
    ("host test gpu1", Does::Unknown),
    ("host remove gpu1", Does::Unknown),
    ("cp gpu1:a b", Does::Unknown),
    ("relay", Does::Unknown),
    ("node", Does::Unknown),
    ("fleet init folder", Does::Unknown),
    ("fleet add folder gpu1 --host", Does::Unknown),
    ("fleet revoke folder gpu1", Does::Unknown),
    ("fleet join gpu1.toml", Does::Unknown),
    ("fleet status", Does::Looks(Tool::Jobs)),
    ("fleet log gpu1/3", Does::Looks(Tool::Read)),
    ("submit --on build make", Does::Unknown),
    ("order list", Does::Looks(Tool::Jobs)),
    ("order show order-0001", Does::Looks(Tool::Jobs)),
    ("order results", Does::Looks(Tool::Jobs)),
    ("order cancel order-0001", Does::Acts(Tool::Kill)),
    ("order resolve order-0001 --again", Does::Unknown),
    ("telemetry --once", Does::Unknown),
    ("config", Does::Nothing),
    ("config list", Does::Nothing),
    ("config get kill.grace", Does::Nothing),
    ("config path", Does::Nothing),
    ("config set kill.grace 5s", Does::Unknown),
    ("config unset kill.grace", Does::Unknown),
    ("doctor", Does::Nothing),
    ("completions bash", Does::Nothing),
    ("man pages", Does::Writes),
    ("secret list", Does::Looks(Tool::Jobs)),
    ("secret forget --all", Does::Unknown),
    ("policy init", Does::Unknown),
    ("policy init --dry-run", Does::Nothing),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Does {
    Runs,
    Types,
    Acts(Tool),
    Looks(Tool),
    Writes,
    Unknown,
    Nothing,
}

fn inside(line: &str) -> Vec<Inner> {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    unwrap(&plain_words(&words), &StdinSource::Outside)
}

fn does(inner: &[Inner]) -> Does {
    let runs = |inner: &Inner| matches!(inner, Inner::Line(_) | Inner::Words(_));
    if inner.iter().any(|inner| matches!(inner, Inner::Opaque(_))) {
        return Does::Unknown;
    }
    if inner.iter().any(runs) {
        return if inner.contains(&Inner::Tool(Tool::Send)) { Does::Types } else { Does::Runs };
    }
    match inner {
        [] => Does::Nothing,
        [Inner::Tool(tool)] => Does::Acts(*tool),
        [Inner::Look(tool)] => Does::Looks(*tool),
        [Inner::Write(_)] => Does::Writes,
        other => panic!("{other:?}"),
    }
}

/// The names of all verbs, as clap has them.
fn verbs(command: &Command, before: &str, into: &mut BTreeSet<String>) {
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        let name = format!("{before}{}", verb.get_name());
        if verb.has_subcommands() {
            verbs(verb, &format!("{name} "), into);
        } else {
            into.insert(name);
        }
    }
}

#[test]
fn every_verb_has_a_verdict() {
    for (line, expected) in VERBS {
        assert_eq!(does(&inside(line)), *expected, "{line}");
    }
    let mut known = BTreeSet::new();
    verbs(&Cli::command(), "", &mut known);
    for verb in known {
        let is_here = |(line, _): &&(&str, Does)| format!("{line} ").starts_with(&format!("{verb} "));
        assert!(VERBS.iter().any(|row| is_here(&row)), "what does `outlast {verb}` do, for the policy?");
    }
}

/// The same command as it is written for a shell, and as words.
const COMMANDS: [(&str, &[&str]); 4] = [
    ("rm -rf x", &["rm", "-rf", "x"]),
    ("-- rm -rf x", &["--", "rm", "-rf", "x"]),
    ("'rm -rf x'", &["rm -rf x"]),
    ("-- 'rm -rf x'", &["--", "rm -rf x"]),
];

/// What some options need before them.
const SANDBOXES: [&str; 3] = ["", "--sandbox ", "--sandbox --network=hosts "];

/// Whatever options `run` has, the command behind them is found.
#[test]
fn no_option_of_run_hides_its_command() {
    let rule = "[[rule]]\ndecision = \"deny\"\nprefix = [\"rm\", \"-rf\"]\n";
    let policy = Policy::parse(Path::new("policy.toml"), rule).unwrap();
    let mut cli = Cli::command();
    cli.build();
    let run = cli.find_subcommand("run").unwrap();
    let mut tried = 0;
    for option in run.get_arguments().filter(|option| !option.is_positional()) {
        if option.get_id() == "help" {
            continue;
        }
        let value = valid_value(option);
        let long = option.get_long().map(|long| format!("--{long}"));
        let short = option.get_short().map(|short| format!("-{short}"));
        for name in [long, short].into_iter().flatten() {
            let mut spellings = Vec::new();
            if !option.is_require_equals_set() {
                spellings
                    .push(value.as_ref().map_or_else(|| name.clone(), |value| format!("{name} {value}")));
            }
            spellings.extend(value.as_ref().map(|value| format!("{name}={value}")));
            if option.is_require_equals_set() {
                spellings.push(name.clone());
            }
            for option in spellings {
                for (written, command) in COMMANDS {
                    // Some options are only for a sandbox.
                    for sandbox in SANDBOXES {
                        let options = format!("run {sandbox}{option}");
                        let arguments = options.split(' ').chain(command.iter().copied());
                        let line = format!("outlast {options} {written}");
                        let decision = policy.judge_line(Tool::Run, &line).decision;
                        let expected = match Cli::try_parse_from(std::iter::once("outlast").chain(arguments))
                        {
                            Ok(Cli { verb: Verb::Run(run), .. }) if run.command.join(" ") == "rm -rf x" => {
                                tried += 1;
                                Decision::Deny
                            }
                            _ => Decision::Ask,
                        };
                        assert_eq!(decision, expected, "{line}");
                    }
                }
            }
        }
    }
    assert!(tried > 200, "{tried}");
}

/// A value that the option takes; none if it takes none.
fn valid_value(option: &clap::Arg) -> Option<String> {
    if !option.get_action().takes_values() {
        return None;
    }
    if let Some(value) = option.get_possible_values().first() {
        return Some(value.get_name().to_owned());
    }
    let parses = |value: &&str| {
        let name = option.get_long().unwrap_or_default();
        let given = format!("--{name}={value}");
        SANDBOXES.iter().any(|sandbox| {
            let words = ["outlast", "run"].into_iter().chain(sandbox.split_whitespace());
            Cli::try_parse_from(words.chain([given.as_str(), "true"])).is_ok()
        })
    };
    let value = ["1", "80x24", "exec:true", "none", "certain"].into_iter().find(parses);
    Some(value.unwrap_or_else(|| panic!("a value for {option}?")).to_owned())
}

/// A line for another shell is asked about, unless a rule is about what bash would read in it.
#[test]
fn a_line_for_another_shell_is_a_question() {
    let rule = "[[rule]]\ndecision = \"deny\"\nprefix = [\"rm\", \"-rf\"]\n";
    let policy = Policy::parse(Path::new("policy.toml"), rule).unwrap();
    let decision = |line: &str| policy.judge_line(Tool::Run, line).decision;
    assert_eq!(decision("outlast run --with bash 'echo x'"), Decision::Allow);
    assert_eq!(decision("outlast run --with fish 'echo x'"), Decision::Ask);
    assert_eq!(decision("outlast run --with 'python3 -q' 'print(1)'"), Decision::Ask);
    assert_eq!(decision("outlast run --with fish 'rm -rf x'"), Decision::Deny);
}

#[test]
fn a_command_is_judged_in_its_folder() {
    let folders = |line: &str| {
        let verdict = Policy::default().judge_line(Tool::Run, line);
        verdict.folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(folders("outlast run --cwd sub/dir make"), ["sub/dir"]);
    assert_eq!(folders("cd x && outlast run --cwd=/a outlast run --cwd b make"), ["/a", "b"]);
    assert!(folders("outlast run --cwd $x make").is_empty());
}
