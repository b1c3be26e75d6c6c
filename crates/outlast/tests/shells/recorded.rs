//! A recorded list of commands in one shell. Where the list does not say what must come, the real bash is the judge: it
//! runs the same commands in the same order, each with `eval`, and its codes and lines are what ours must be.

use std::process::Stdio;

use crate::{Main, sandbox};

/// A command of the list, with what it must give where the judge is not asked.
struct Recorded {
    command: String,
    wanted: Option<(i32, String)>,
}

fn list() -> Vec<Recorded> {
    let text = include_str!("bash.txt");
    let mut list = Vec::new();
    for block in text.split("\n====\n").map(str::trim_end).filter(|block| !block.is_empty()) {
        let (command, wanted) = match block.split_once("\n----") {
            None => (block, None),
            Some((command, wanted)) => {
                let (code, output) = wanted.split_once('\n').unwrap_or((wanted, ""));
                (command, Some((code.trim().parse().unwrap(), output.to_owned())))
            }
        };
        list.push(Recorded { command: command.to_owned(), wanted });
    }
    list
}

/// What both shells say in their own way is not compared; nor how deep in the shell a traced command is.
fn lines(output: &str) -> Vec<String> {
    let own = |line: &&str| !line.starts_with("bash: ") && !line.contains(": line ");
    let even = |line: &str| match line.trim_start_matches('+').strip_prefix(' ') {
        Some(traced) if line.starts_with('+') => format!("+ {traced}"),
        _ => line.to_owned(),
    };
    output.replace('\r', "").lines().filter(own).map(even).collect()
}

/// What the real bash gives for those that are left to it.
fn judged(list: &[Recorded], folder: &std::path::Path, home: &std::path::Path) -> Vec<(i32, Vec<String>)> {
    let mut script =
        String::from("shopt -s expand_aliases; set -m 2>/dev/null; set +m; c=0; r() { return $1; }\n");
    for (i, recorded) in list.iter().enumerate() {
        let file = folder.join(format!("command-{i}"));
        std::fs::write(&file, &recorded.command).unwrap();
        if recorded.wanted.is_none() {
            script += &format!(
                "IFS= read -r -d '' command < {}; r $c; eval \"$command\"; c=$?; printf '\\n@@ {i} %s\\n' $c\n",
                file.display()
            );
        }
    }
    let file = folder.join("judge");
    std::fs::write(&file, script).unwrap();
    let output = std::process::Command::new("bash")
        .args(["--norc", "--noprofile"])
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

#[test]
fn every_recorded_command_gives_what_the_real_bash_gives() {
    let sandbox = sandbox();
    let list = list();
    assert!(list.len() >= 100, "{}", list.len());
    let judge = sandbox.root().join("judge");
    let home = sandbox.root().join("judged/work");
    std::fs::create_dir(&judge).unwrap();
    std::fs::create_dir_all(&home).unwrap();
    let verdicts = judged(&list, &judge, &home);
    let main = Main::new(&sandbox);
    let mut wrong = Vec::new();
    for (recorded, verdict) in list.iter().zip(verdicts) {
        let (step, output) = main.run(&recorded.command);
        let seen = (step.exit_code.unwrap_or(-1), lines(&output));
        let wanted = match &recorded.wanted {
            Some((code, output)) => (*code, lines(output)),
            None => verdict,
        };
        if seen != wanted {
            wrong.push(format!("{}\n  gave {seen:?}\n  not  {wanted:?}", recorded.command));
        }
    }
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), list.len(), wrong.join("\n"));
}
