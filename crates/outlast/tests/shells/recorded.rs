//! Recorded lists of commands, each in one shell. Where a list does not say what must come, the real shell is the judge: it
//! runs the same commands in the same order, each with `eval`, and its codes and lines are what ours must be. At full size
//! families of commands come to each list, and all of it runs three times.

use std::path::Path;
use std::process::Stdio;

use outlast_job::shell::ShellKind;

use crate::{Main, sandbox};

/// What a command must give where the judge is not asked.
enum Wanted {
    Exactly(i32, String),
    /// Any code but 0, and whatever is said to it.
    Failure,
}

/// A command of a list.
struct Recorded {
    command: String,
    wanted: Option<Wanted>,
}

fn parsed(text: &str) -> Vec<Recorded> {
    let mut list = Vec::new();
    for block in text.split("\n====\n").map(str::trim_end).filter(|block| !block.is_empty()) {
        let (command, wanted) = match block.split_once("\n----") {
            None => (block, None),
            Some((command, wanted)) => {
                let (code, output) = wanted.split_once('\n').unwrap_or((wanted, ""));
                let wanted = match code.trim() {
                    "@" => Wanted::Failure,
                    code => Wanted::Exactly(code.parse().unwrap(), output.to_owned()),
                };
                (command, Some(wanted))
            }
        };
        list.push(Recorded { command: command.to_owned(), wanted });
    }
    list
}

/// Commands that differ in codes, texts and ways to say them; the real shell judges them all.
fn family(kind: ShellKind) -> Vec<Recorded> {
    let mut all = Vec::new();
    let texts = [
        "plain",
        "two  words",
        "tab\there",
        "ünï",
        "a;b|c&d",
        "*?[x]",
        "-n -e",
        "~ # !",
        "per%s%d",
        "back\\\\slash",
    ];
    for code in [0, 1, 2, 3, 42, 77, 126, 127, 128, 129, 130, 200, 254, 255] {
        all.push(format!("sh -c 'exit {code}'"));
        all.push(format!("echo before; sh -c 'exit {code}'"));
        all.push(format!("true | sh -c 'exit {code}'"));
        all.push(format!("sh -c 'exit {code}' | cat"));
        match kind {
            ShellKind::Bash | ShellKind::Zsh | ShellKind::Dash => {
                all.push(format!("(exit {code})"));
                all.push("echo $?".to_owned());
                all.push(format!("sh -c 'exit {code}' || echo failed $?"));
                all.push(format!("fam() {{ return {code}; }}; fam"));
                all.push(format!("if sh -c 'exit {code}'; then echo good; else echo bad; fi"));
                all.push(format!("c={code}; [ $c -gt 100 ]"));
            }
            ShellKind::Fish => {
                all.push(format!("function fam; return {code}; end; fam"));
                all.push("echo $status".to_owned());
                all.push(format!("sh -c 'exit {code}'; or echo failed $status"));
                all.push(format!("if sh -c 'exit {code}'; echo good; else; echo bad; end"));
                all.push(format!("set c {code}; test $c -gt 100"));
                all.push(format!("begin; sh -c 'exit {code}'; end"));
            }
        }
    }
    for text in texts {
        all.push(format!("printf '%s\\n' '{text}'"));
        all.push(format!("printf '%s' '{text}'"));
        all.push(format!("printf '%s\\n' '{text}' | cat"));
        all.push(format!("printf '%s\\n' '{text}' > text; cat text"));
        all.push(format!("env TEXT='{text}' sh -c 'printf \"%s\\n\" \"$TEXT\"'"));
        all.push(format!("sh -c 'printf \"%s\\n\" \"$1\"; exit 5' - '{text}'"));
        match kind {
            ShellKind::Bash | ShellKind::Zsh | ShellKind::Dash => {
                all.push(format!("t='{text}'; printf '%s\\n' \"$t\""));
                all.push("printf '<%s>\\n' \"$t\"".to_owned());
                all.push(format!("cat <<'END'\n{text}\nEND"));
                all.push(format!("cat <<END\n{}\nEND", text.replace('\\', "")));
                all.push(format!("case '{text}' in *p*) echo p;; *) echo none;; esac"));
                all.push(format!("x$(printf 'y')='{text}' 2>/dev/null"));
            }
            ShellKind::Fish => {
                all.push(format!("set t '{text}'; printf '%s\\n' $t"));
                all.push("printf '<%s>\\n' \"$t\"".to_owned());
                all.push(format!("set -gx T '{text}'; sh -c 'printf \"%s\\n\" \"$T\"'"));
                all.push(format!("string length -- '{text}'"));
                all.push(format!("string escape -- '{text}'"));
                all.push(format!("switch '{text}'; case '*p*'; echo p; case '*'; echo none; end"));
            }
        }
    }
    for n in [1, 2, 3, 5, 7, 11, 20, 40] {
        all.push(format!("seq {n} | tail -1"));
        all.push(format!("seq {n} | wc -l"));
        all.push(format!("seq -s, {n}"));
    }
    all.into_iter().map(|command| Recorded { command, wanted: None }).collect()
}

/// The list of a kind of shell, at full size with its family.
fn list(kind: ShellKind) -> Vec<Recorded> {
    let posix = include_str!("posix.txt");
    let mut list = match kind {
        ShellKind::Bash => parsed(include_str!("bash.txt")),
        ShellKind::Zsh => parsed(&format!("{posix}\n====\n{}", include_str!("zsh.txt"))),
        ShellKind::Fish => parsed(include_str!("fish.txt")),
        ShellKind::Dash => parsed(&format!("{posix}\n====\n{}", include_str!("dash.txt"))),
    };
    if is_full() {
        // What a list does to its shell at the end is part of the trial.
        let at = list.len() / 2;
        let rest = list.split_off(at);
        list.extend(family(kind));
        list.extend(rest);
    }
    list
}

fn is_full() -> bool {
    std::env::var_os("OUTLAST_LONG_TESTS").is_some_and(|value| value == "1")
}

/// What both shells say in their own way is not compared; nor how deep in the shell a traced command is.
fn lines(output: &str) -> Vec<String> {
    let own = |line: &&str| {
        let begins = ["bash: ", "fish: ", "zsh: ", "in function '__outlast"];
        let has = [": line ", "(eval):", "dash: "];
        // `[6] 4711`: a job in the background.
        let job = line.strip_prefix('[').and_then(|job| job.split_once(']'));
        let is_job = job.is_some_and(|(number, _)| number.parse::<u32>().is_ok());
        let is_shells =
            begins.iter().any(|begin| line.starts_with(begin)) || has.iter().any(|text| line.contains(text));
        !is_job && !is_shells
    };
    let even = |line: &str| match line.trim_start_matches('+').split_once(' ') {
        Some((_, traced)) if line.starts_with("+(eval)") => format!("+ {traced}"),
        Some(("", traced)) if line.starts_with('+') => format!("+ {traced}"),
        _ => line.to_owned(),
    };
    // The line of a trace is not what `own` is about.
    output.replace('\r', "").lines().map(even).filter(|line| own(&line.as_str())).collect()
}

/// The judge's script: all that is left to it, in order.
fn script(kind: ShellKind, list: &[Recorded], folder: &Path) -> String {
    let mut script = match kind {
        ShellKind::Bash => "shopt -s expand_aliases; set -m 2>/dev/null; set +m; c=0; r() { return $1; }\n",
        ShellKind::Zsh => "setopt aliases; c=0; r() { return $1 }\n",
        ShellKind::Fish => "set c 0; function r; return $argv[1]; end\n",
        ShellKind::Dash => "c=0; r() { return $1; }\n",
    }
    .to_owned();
    for (i, recorded) in list.iter().enumerate() {
        let file = folder.join(format!("command-{i}"));
        std::fs::write(&file, &recorded.command).unwrap();
        if recorded.wanted.is_some() {
            continue;
        }
        let file = file.display();
        script += &match kind {
            ShellKind::Bash | ShellKind::Zsh => format!(
                "IFS= read -r -d '' command < {file}; r $c; eval \"$command\"; c=$?; printf '\\n@@ {i} %s\\n' $c\n"
            ),
            ShellKind::Fish => format!(
                "set command (cat {file} | string collect); r $c; eval $command; set c $status; printf '\\n@@ {i} %s\\n' $c\n"
            ),
            ShellKind::Dash => {
                format!("command=$(cat {file}); r $c; eval \"$command\"; c=$?; printf '\\n@@ {i} %s\\n' $c\n")
            }
        };
    }
    script
}

/// What the real shell gives for those that are left to it.
fn judged(kind: ShellKind, list: &[Recorded], folder: &Path, home: &Path) -> Vec<(i32, Vec<String>)> {
    let file = folder.join("judge");
    std::fs::write(&file, script(kind, list, folder)).unwrap();
    let options: &[&str] = match kind {
        ShellKind::Bash => &["--norc", "--noprofile"],
        ShellKind::Zsh => &["-f"],
        ShellKind::Fish => &["--no-config"],
        ShellKind::Dash => &[],
    };
    // A shell can't trap what its caller ignores, as one in the background does.
    let output = std::process::Command::new("env")
        .args(["--default-signal=INT,QUIT", kind.name()])
        .args(options)
        .arg(&file)
        .current_dir(home)
        .env("HOME", home)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut verdicts = vec![(-1, Vec::new()); list.len()];
    let mut said = String::new();
    for line in text.lines() {
        let Some(verdict) = line.strip_prefix("@@ ") else {
            said += line;
            said.push('\n');
            continue;
        };
        let (i, code) = verdict.split_once(' ').unwrap();
        // The newline before a verdict is the judge's own.
        let own = said.strip_suffix('\n').unwrap_or(&said).to_owned();
        verdicts[i.parse::<usize>().unwrap()] = (code.parse().unwrap(), lines(&own));
        said.clear();
    }
    verdicts
}

#[expect(clippy::print_stdout, reason = "clients/shells/recorded puts it into the documentation")]
fn try_all(kind: ShellKind) {
    if !outlast_testkit::has(kind.name()) {
        return;
    }
    let runs = if is_full() { 3 } else { 1 };
    for run in 1..=runs {
        let sandbox = sandbox();
        let list = list(kind);
        assert!(list.len() >= if is_full() { 400 } else { 100 }, "{}", list.len());
        let judge = sandbox.root().join("judge");
        let home = sandbox.root().join("judged/work");
        std::fs::create_dir(&judge).unwrap();
        std::fs::create_dir_all(&home).unwrap();
        let verdicts = judged(kind, &list, &judge, &home);
        let main = Main::of(&sandbox, kind);
        let mut wrong = Vec::new();
        for (recorded, verdict) in list.iter().zip(verdicts) {
            let (step, output) = main.run(&recorded.command);
            let seen = (step.exit_code.unwrap_or(-1), lines(&output));
            let wanted = match &recorded.wanted {
                Some(Wanted::Failure) if seen.0 > 0 => continue,
                Some(Wanted::Failure) => (1, Vec::new()),
                Some(Wanted::Exactly(code, output)) => (*code, lines(output)),
                None => verdict,
            };
            if seen != wanted {
                wrong.push(format!("{}\n  gave {seen:?}\n  not  {wanted:?}", recorded.command));
            }
        }
        assert_eq!(main.outlast.jobs().len(), 1, "the shell ended on the way");
        assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), list.len(), wrong.join("\n"));
        println!("recorded {kind}: run {run} of {runs}, {} commands, 0 wrong", list.len());
    }
}

#[test]
fn every_recorded_command_gives_what_the_real_bash_gives() {
    try_all(ShellKind::Bash);
}

#[test]
fn every_recorded_command_gives_what_the_real_zsh_gives() {
    try_all(ShellKind::Zsh);
}

#[test]
fn every_recorded_command_gives_what_the_real_fish_gives() {
    try_all(ShellKind::Fish);
}

#[test]
fn every_recorded_command_gives_what_the_real_dash_gives() {
    try_all(ShellKind::Dash);
}
