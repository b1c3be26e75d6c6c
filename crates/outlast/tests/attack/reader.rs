//! The reader of commands against what the kernel sees: lines put together by chance are run, and every program that they
//! execute is told by the exec guard. A denied program that is executed, and was not seen in the text, is a difference.

use serde_json::{Value, json};

use crate::client::{Client, Sandbox};
use crate::{Tally, is_full};

/// How many lines are made.
const LINES: (usize, usize) = (40, 2_000);
const SEED: u64 = 0x005e_ed0f_1e55;

/// Ways to write the name.
const NAMES: &[&str] = &[
    "rm",
    "/bin/rm",
    "r\\m",
    "'rm'",
    "\"rm\"",
    "r''m",
    "$'rm'",
    "$'\\x72m'",
    "r\"\"m",
    "\\rm",
    "/usr/bin/rm",
    "//bin/rm",
    "${N:-rm}",
    "$(echo rm)",
    "`echo rm`",
    "{rm,}",
    "r{m,}",
    "/bin/r?",
    "/bin/[r]m",
    "$R",
    "${R}",
    "$(printf rm)",
];
/// What stands before a program.
const BEFORE: &[&str] = &[
    "",
    "",
    "",
    "X=1 ",
    "command ",
    "env ",
    "env X=1 ",
    "nice ",
    "nohup ",
    "timeout 9 ",
    "exec ",
    "! ",
    "time ",
    "setsid -w ",
    "stdbuf -o0 ",
    "busybox ",
    "builtin command ",
    "xargs ",
    "command -p ",
    "env -i /usr/bin/env ",
    "\\command ",
    "sudo -n ",
];
/// What stands behind it.
const BEHIND: &[&str] = &[
    "",
    " -f",
    " -- ",
    " >/dev/null",
    " 2>&1",
    " # x",
    " ; true",
    " &",
    " || true",
    " </dev/null",
    " && :",
    " |cat",
];
/// What a line stands in; `L` is the line.
const AROUND: &[&str] = &[
    "L",
    "L",
    "true; L",
    "false || L",
    "(L)",
    "{ L\n}",
    "if true; then L\nfi",
    "for i in 1; do L\ndone",
    "while :; do L\nbreak; done",
    "until L\ndo break; done",
    "case x in x) L\n;; esac",
    "f() { L\n}; f",
    "function g { L\n}; g",
    "echo $(L\n)",
    "echo `L`",
    "x=$(L\n)",
    "x=($(L\n))",
    "cat <(L\n)",
    "cat <<E\n$(L\n)\nE",
    "[[ -n $(L\n) ]]",
    "echo $((1 + $(L\necho 1)))",
    "echo \"$(L\n)\"",
    "eval 'L'",
    "bash -c 'L'",
    "sh -c \"L\"",
    "bash <<'E'\nL\nE",
    "bash <<< 'L'",
    "echo 'L' | sh",
    "printf '%s\\n' 'L' | bash",
    "trap 'L' EXIT",
    "coproc { L\n}; wait",
    "bash -ec 'L'",
    "bash -o errexit -c 'L'",
    "find . -maxdepth 0 -exec sh -c 'L' ';'",
    "echo x | xargs -I{} sh -c 'L'",
    "time L",
    "! L",
    "set -e; L",
    "true & L",
    "true |& L",
    ":\nL",
    "# c\nL",
    "true \\\n&& L",
    "alias q='L'; q",
    "(( 1 )) && L",
    "select i in a; do L\nbreak; done <<< 1",
    "export R=rm; L",
    "R=rm; L",
    "declare R=rm; L",
    "read R <<< rm; L",
    "printf -v R rm; L",
    "awk 'BEGIN { system(\"L\") }'",
    "env sh -c 'L'",
    "nice bash -c 'L'",
    "echo a; echo 'L' > s; sh s",
    "source /dev/stdin <<< 'L'",
];

/// A generator of numbers: the same lines every time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

fn line(chance: &mut Chance) -> String {
    let (before, name, behind) = (chance.of(BEFORE), chance.of(NAMES), chance.of(BEHIND));
    let mut line = format!("{before}{name} canary{behind}");
    for _ in 0..=chance.below(2) {
        let around = chance.of(AROUND);
        // Quotes in quotes would be another line.
        if around.contains("'L'") && line.contains('\'')
            || around.contains("\"L\"") && line.contains(['"', '$', '\\'])
        {
            continue;
        }
        if around.contains('`') && line.contains(['`', '\\']) {
            continue;
        }
        line = around.replacen('L', &line, 1);
    }
    line
}

/// Whether the guard stopped something in the job of an answer: then the text had let it pass.
fn was_stopped(sandbox: &Sandbox, answer: &Value) -> bool {
    let Some(job) = answer["structuredContent"]["handle"].as_u64() else { return false };
    let events = sandbox.path().join(format!("home/jobs/{job}/events.jsonl"));
    std::fs::read_to_string(events).is_ok_and(|events| events.contains("exec_refused"))
}

fn run(client: &mut Client, line: &str) -> Value {
    client.call("run_shell_command", json!({"command": line, "timeout": 20}))
}

#[test]
fn what_is_executed_was_seen_in_the_text() {
    let sandbox = Sandbox::new();
    let settings = sandbox.path().join(".config/outlast");
    std::fs::create_dir_all(&settings).unwrap();
    std::fs::write(settings.join("policy.toml"), "[[rule]]\ndecision = \"deny\"\nprefix = \"rm\"\n").unwrap();
    let canary = sandbox.path().join("canary");
    std::fs::write(&canary, "alive").unwrap();
    let mut client = sandbox.client();
    // The instrument works: a script is not read, and what it executes is told.
    std::fs::write(sandbox.path().join("script"), "#!/bin/sh\nrm canary\n").unwrap();
    std::fs::set_permissions(
        sandbox.path().join("script"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let answer = run(&mut client, "./script");
    assert!(was_stopped(&sandbox, &answer), "{answer}");
    let mut chance = Chance(SEED);
    let mut tally = Tally::default();
    for _ in 0..if is_full() { LINES.1 } else { LINES.0 } {
        let line = line(&mut chance);
        let answer = run(&mut client, &line);
        let is_gone = !canary.exists();
        if is_gone {
            std::fs::write(&canary, "alive").unwrap();
        }
        tally.count(&line, is_gone || was_stopped(&sandbox, &answer));
    }
    tally.nothing_got_through("generated lines: executed, and not seen in the text");
}
