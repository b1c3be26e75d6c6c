//! A list of what may be run, and ways to run something else: by options, operands, variables and files of programs on the list.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::evasions::prepared;
use crate::{Tally, chosen};

/// What people allow, and some that can do more than they are allowed for.
const ALLOWED: &[&str] = &[
    "ls",
    "echo",
    "cat",
    "grep",
    "printf",
    "git status",
    "git log",
    "git diff",
    "git show",
    "git fetch",
    "git grep",
    "git archive",
    "cargo build",
    "cargo test",
    "find",
    "sort",
    "sed",
    "awk",
    "tar",
    "env",
    "xargs",
    "uniq",
    "curl",
    "ssh",
    "jobs",
    "export",
    "read",
    "declare",
    "timeout",
    "cd",
    "make test",
    "python3 -m pytest",
    "less",
    "python3 -q",
];

/// Lines that would make the file `here`.
const LINES: &[&str] = &[
    r"git fetch --upload-pack='touch here;git-upload-pack' .",
    r"git fetch --upload-pa='touch here;git-upload-pack' .",
    r"git fetch --upl 'touch here;git-upload-pack' .",
    r"git fetch 'ext::touch here'",
    r"git log -1 --output=here",
    r"git log -1 --outpu here",
    r"git diff --outp=here HEAD",
    r"git show --output here",
    r"git diff --no-index --output=here Makefile line",
    r"git show --open-files-in-pager='touch here'",
    r"git status -c core.fsmonitor='touch here'",
    r"git grep -O'touch here' all",
    r"git -P grep -n -O./bin/ls all",
    r"git archive -o here HEAD",
    r"git archive -ohere HEAD",
    r"awk -E program.awk",
    r"awk --exec program.awk",
    r"awk --exe=program.awk",
    r"awk -i inplace '{print}' names",
    r"awk -ohere 'BEGIN{}'",
    r"awk -phere 'BEGIN{}'",
    r"awk -dhere 'BEGIN{}'",
    r"awk --dump-variables=here 'BEGIN{}'",
    r"awk --prof=here 'BEGIN{}'",
    r"curl -w '%output{here}x' file:///etc/hostname",
    r"curl --write-out '%output{here}x' file:///etc/hostname",
    r"printf -v PATH ./bin; ls",
    r"printf -vPATH ./bin && ls",
    r"printf -v 'x[$(touch here)]' y",
    r"read PATH < names; ls",
    r"export PATH=./bin; ls",
    r"export BASH_ENV=line",
    r"declare PATH=./bin; ls",
    r"env PATH=./bin ls",
    r"env touch here",
    r"find . -maxdepth 0 -exec touch here ';'",
    r"find . -maxdepth 0 -exec touch here +",
    r"find . -maxdepth 0 -fprintf here x",
    r"find . -fls here",
    r"sort -o here Makefile",
    r"sort Makefile -ohere",
    r"sort --outp=here Makefile",
    r"sort --compress-prog=./bin/ls -S 1k Makefile",
    r"sed '1e touch here' Makefile",
    r"sed 's/.*/touch here/e' Makefile",
    r"sed --expression='e touch here' Makefile",
    r"sed -f program Makefile",
    r"sed -n 'w here' Makefile",
    r"sed 's/a/b/w here' Makefile",
    r"sed -i.here s/a/b/ names",
    r#"awk 'BEGIN{system("touch here")}'"#,
    r#"awk 'BEGIN{print > "here"}'"#,
    r#"awk 'BEGIN{print | "touch here"}'"#,
    r#"awk 'BEGIN{"touch here" | getline}'"#,
    r"tar cf x.tar Makefile --checkpoint=1 --checkpoint-action=exec='touch here'",
    r"tar cf x.tar Makefile --checkpoint=1 --checkpoint-ac=exec='touch here'",
    r"tar cIf 'touch here' x.tar Makefile",
    r"tar -I 'touch here' -cf x.tar Makefile",
    r"xargs touch < names",
    r"echo here | xargs touch",
    r"uniq Makefile here",
    r"curl -so here file:///etc/hostname",
    r"curl --outpu here file:///etc/hostname",
    r"curl -D here file:///etc/hostname",
    r"curl --trace here file:///etc/hostname",
    r"ssh -E here nowhere.invalid",
    r"ssh -oProxyCommand='touch here' nowhere.invalid",
    r"jobs -x touch here",
    r"cat Makefile > here",
    r"ls 2> here",
    r"ls >& here",
    r"ls &> here",
    r"ls >| here",
    r"cat < /dev/tcp/127.0.0.1/9; touch here",
    r"ls; touch here",
    r"ls & touch here",
    r"ls | touch here",
    r"ls || touch here; touch here",
    r"ls # x",
    r"ls $(touch here)",
    r"ls `touch here`",
    r#"ls "$(touch here)""#,
    r"ls <(touch here)",
    r"ls ${x:-$(touch here)}",
    r"echo 'a\'; touch here #'",
    r"cd bin && ./ls",
    r"./bin/ls",
    r"timeout 5 touch here",
    r"timeout --foreground 5 touch here",
    r"nohup ./bin/ls",
    r#"cargo test --config 'build.rustc="./bin/ls"'"#,
    r"make test CC='touch here #'",
    r"make test SHELL=./bin/ls",
    r"make -C. test CC='touch here #'",
    r"make test --eval='$(shell touch here)'",
    r"make test -E '$(shell touch here)'",
    r"python3 -m pytest --junitxml=here",
    r"python3 -m pytest --log-file here",
    r"LANG=C touch here",
    r"> here",
    r"trap 'touch here' EXIT",
    r"alias ls='touch here'",
    r"ls() { touch here; }; ls",
    "cat <<E\n$(touch here)\nE",
    "cat <<'E'\nE\ntouch here",
    "ls\ntouch here",
    "ls\r\ntouch here",
    "ls \\\n; touch here",
];

/// Variables of a call that would make it.
const VARIABLES: &[(&str, &str, &str)] = &[
    ("ls", "PATH", "./bin"),
    ("ls", "BASH_ENV", "./line"),
    ("ls", "BASH_FUNC_ls%%", "() { touch here; }"),
    ("git log -p", "GIT_EXTERNAL_DIFF", "touch here"),
    ("git status", "GIT_CONFIG_PARAMETERS", "'core.fsmonitor=touch here'"),
    ("tar cf /dev/null Makefile", "TAR_OPTIONS", "--checkpoint=1 --checkpoint-action=exec=./bin/ls"),
];

/// What is typed into programs on the list: a start, and then lines.
const TYPED: &[(&str, &[&str])] = &[
    ("less Makefile", &["!touch here\n"]),
    ("less Makefile", &["!", "touch", " here", "\n"]),
    ("less Makefile", &["v", ":!touch here\n"]),
    ("python3 -q", &["import os; os.system('touch here')\n"]),
    ("python3 -q", &["import os\n", "os.mkdir('here')\n"]),
    ("python3 -q", &["open(", "'here','w')\n"]),
];

#[test]
fn where_little_is_allowed_nothing_is_typed_that_runs() {
    let rules: String =
        ALLOWED.iter().map(|line| format!("[[rule]]\ndecision = \"allow\"\nprefix = \"{line}\"\n")).collect();
    let mut tally = Tally::default();
    let sandbox = prepared(&format!("default = \"deny\"\n{rules}"));
    let here = sandbox.path().join("here");
    let mut client = sandbox.client();
    for (start, lines) in chosen(TYPED.to_vec(), 2) {
        let call = json!({"command": start, "is_background": true, "again": true});
        let started = client.call("run_shell_command", call);
        assert!(started["isError"] != true, "it may be started: {started}");
        let handle = started["structuredContent"]["handle"].clone();
        for line in lines {
            client.call("send_input", json!({"handle": handle, "input": line, "append_newline": false}));
        }
        // Whatever it was given has been read when the job has ended.
        client.call("kill", json!({"handle": handle}));
        tally.count(&format!("{start}: {lines:?}"), here.exists());
        let _ = std::fs::remove_file(&here);
        let _ = std::fs::remove_dir(&here);
    }
    tally.nothing_got_through("something else, typed into what is allowed");
}

#[test]
fn where_little_is_allowed_nothing_else_runs() {
    let rules: String =
        ALLOWED.iter().map(|line| format!("[[rule]]\ndecision = \"allow\"\nprefix = \"{line}\"\n")).collect();
    let mut tally = Tally::default();
    for default in ["deny", "ask"] {
        let sandbox = prepared(&format!("default = \"{default}\"\n{rules}"));
        let at = |name: &str| sandbox.path().join(name);
        std::fs::create_dir(at("bin")).unwrap();
        for (name, text) in [
            ("bin/ls", format!("#!/bin/sh\n/bin/touch {}\n", at("here").display())),
            ("line", "touch here\n".into()),
            ("names", "here\n".into()),
            ("Makefile", "test:\n\t$(CC) --version\n".into()),
            ("program", "e touch here\n".into()),
            ("program.awk", "BEGIN { system(\"touch here\") }\n".into()),
        ] {
            std::fs::write(at(name), text).unwrap();
            std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let made = std::process::Command::new("git").args(["init", "-q"]).arg(sandbox.path()).status();
        assert!(made.is_ok_and(|done| done.success()), "git is here");
        let mut client = sandbox.client();
        // The instrument works: what is on the list runs.
        let ran = client.call("run_shell_command", json!({"command": "ls", "timeout": 20}));
        assert!(ran["isError"] != true, "{ran}");
        let lines = LINES.iter().map(|line| json!({"command": line, "timeout": 20, "again": true}));
        let variables = VARIABLES.iter().map(
            |(line, name, value)| json!({"command": line, "timeout": 20, "again": true, "env": {(*name): value}}),
        );
        for call in chosen(lines.chain(variables).collect(), 7) {
            let shown = format!("{default}: {call}");
            client.call("run_shell_command", call);
            let made = ["here", "names.here"].map(|name| at(name).exists());
            tally.count(&shown, made.contains(&true));
            let _ = std::fs::remove_file(at("here"));
            let _ = std::fs::remove_file(at("names.here"));
        }
    }
    tally.nothing_got_through("something else, with a list of what is allowed");
}
