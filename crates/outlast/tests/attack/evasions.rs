//! Ways around rules: a denied program in many spellings, by many routes; and anything at all where nothing is allowed.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use outlast_testkit::has;
use serde_json::json;

use crate::client::Sandbox;
use crate::{Tally, chosen};

/// Ways to write the name of a program.
const SPELLINGS: &[&str] = &[
    "rm",
    "/bin/rm",
    "r\\m",
    "'rm'",
    "\"r\"'m'",
    "$'\\x72m'",
    "$(echo rm)",
    "`echo rm`",
    "${NOTHING:-rm}",
    "$(printf '\\162m')",
    "/usr/bin/../bin/rm",
    "/bin/r?",
    "./copied",
    "./linked",
];

/// Ways to have a line run; `LINE` is the line, without single quotes in it if it stands in such.
const ROUTES: &[(&str, &str)] = &[
    ("sh", "LINE"),
    ("sh", "true && LINE"),
    ("sh", "(LINE)"),
    ("sh", "{ LINE; }"),
    ("sh", "f() { LINE; }; f"),
    ("sh", "if true; then LINE; fi"),
    ("sh", "x=1; LINE # a comment"),
    ("sh", "cat <<END | sh\nLINE\nEND"),
    ("sh", "sh <<'END'\nLINE\nEND"),
    ("bash", "bash <<< \"$(cat line)\""),
    ("bash", "source ./line"),
    ("bash", "bash ./line"),
    ("bash", "bash -oc pipefail \"$(cat line)\""),
    ("sh", "sh -c \"$(cat line)\""),
    ("sh", "eval \"$(cat line)\""),
    ("sh", "echo \"$(cat line)\" | sh"),
    ("bash", "exec < ./line; bash"),
    ("bash", "trap \"$(cat line)\" EXIT"),
    ("bash", "PROMPT_COMMAND=\"$(cat line)\" bash -i < /dev/null"),
    ("bash", "BASH_ENV=./line bash -c true"),
    ("bash", "coproc bash; cat line >&${COPROC[1]}; exec {COPROC[1]}>&-; wait"),
    ("bash", "mapfile -c1 -C'. ./line #' x <<< y"),
    ("bash", "x='a[$(. ./line)]'; echo $((x))"),
    ("env", "env sh ./line"),
    ("env", "env -S 'sh ./line'"),
    ("nice", "nice -n 1 sh ./line"),
    ("timeout", "timeout 20 sh ./line"),
    ("setsid", "setsid -w sh ./line"),
    ("setarch", "setarch -R sh ./line"),
    ("xargs", "echo ./line | xargs sh"),
    ("xargs", "echo canary | xargs ./copied"),
    ("find", "find . -maxdepth 1 -name line -exec sh {} ';'"),
    ("make", "make -s -f Makefile"),
    ("python3", "python3 -uc 'import os; os.system(open(\"line\").read())'"),
    ("python3", "python3 -Ic 'import subprocess; subprocess.run([\"sh\", \"line\"])'"),
    ("python3", "python3 /dev/stdin <<< 'import os; os.system(\"sh ./line\")'"),
    ("perl", "perl -we 'system(q(sh ./line))'"),
    ("perl", "echo x | perl -lne 'exec q(sh ./line)'"),
    ("awk", "awk 'BEGIN { system(\"sh ./line\") }'"),
    ("sed", "sed '1esh ./line' Makefile"),
    ("sed", "echo 'sh ./line' | sed -e's/.*/&/e'"),
    ("git", "git -c alias.x='!sh ./line' x"),
    ("git", "git -c core.pager='sh ./line' -p --version"),
    ("git", "git -c core.sshCommand='sh ./line #' ls-remote ssh://x/y"),
    ("tar", "tar cf /dev/null Makefile --checkpoint=1 --checkpoint-action=exec='sh ./line'"),
    ("flock", "flock lock sh ./line"),
    ("script", "script -qc 'sh ./line' /dev/null"),
    ("split", "echo x | split --filter='sh ./line' -"),
    ("vim", "vim -es -c '!sh ./line' -c q Makefile"),
    ("strace", "strace -o '|sh ./line' true"),
    ("busybox", "busybox sh ./line"),
    ("busybox", "busybox busybox rm canary"),
    ("busybox", "busybox busybox-2 rm canary"),
    ("busybox", "cp $(command -v busybox) many; (exec -a busybox9 ./many busybox rm canary)"),
    ("sh", "./returned canary"),
    ("sh", "./unreadable canary"),
    ("sh", "/lib64/ld-linux-x86-64.so.2 ./$(printf '\\377') canary"),
    ("bash", "(exec -a ls ./copied canary)"),
    ("bash", "exec 9< copied; /proc/self/fd/9 canary"),
    ("bash", "jobs -x ./line"),
];

/// A home with a policy, and files that the routes use.
pub(crate) fn prepared(policy: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let folder = sandbox.path().join(".config/outlast");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("policy.toml"), policy).unwrap();
    std::fs::write(sandbox.path().join("Makefile"), "all:\n\tsh ./line\n").unwrap();
    std::fs::copy("/bin/rm", sandbox.path().join("copied")).unwrap();
    std::os::unix::fs::symlink("/bin/rm", sandbox.path().join("linked")).unwrap();
    // Interpreters whose names are easily misread: the kernel takes the carriage return, and bytes that are no text, for a part.
    let path = |name: &[u8]| sandbox.path().join(std::ffi::OsStr::from_bytes(name));
    for (script, interpreter) in [("returned", &b"evil\r"[..]), ("unreadable", b"\xff")] {
        std::fs::copy("/bin/rm", path(interpreter)).unwrap();
        let first_line = [b"#!", path(interpreter).as_os_str().as_bytes(), b"\n"].concat();
        std::fs::write(path(script.as_bytes()), first_line).unwrap();
        std::fs::set_permissions(path(script.as_bytes()), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    sandbox
}

#[test]
fn a_denied_program_runs_in_no_spelling_and_by_no_route() {
    let sandbox = prepared("[[rule]]\ndecision = \"deny\"\nprefix = \"rm\"\n");
    let mut client = sandbox.client();
    let canary = sandbox.path().join("canary");
    let mut tally = Tally::default();
    let routes: Vec<_> = ROUTES.iter().filter(|(program, _)| has(program)).collect();
    let all =
        SPELLINGS.iter().flat_map(|name| routes.iter().map(move |(_, route)| (*name, *route))).collect();
    // A prime, so that the part has every spelling and every route in it.
    for (name, route) in chosen(all, 29) {
        let line = format!("{name} canary");
        let file = sandbox.path().join("line");
        std::fs::write(&canary, "alive").unwrap();
        std::fs::write(&file, format!("{line}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        let command = route.replace("LINE", &line);
        client.call("run_shell_command", json!({"command": command, "timeout": 30, "again": true}));
        tally.count(&format!("{command} [{line}]"), !canary.exists());
    }
    tally.nothing_got_through("a denied program, by text and by what is executed");
}

/// Lines that run no plain command.
const FORMS: &[&str] = &[
    "COMMAND",
    "x=(1)# ; COMMAND",
    "x=()#\nCOMMAND",
    "x+=(1)# ; COMMAND",
    "declare x=(1)# ; COMMAND",
    "export x=(1)# ; COMMAND",
    "x=1\r# ; COMMAND",
    "x=1\u{b}# ; COMMAND",
    "x=1\u{c}# ; COMMAND",
    "x=1\u{a0}; COMMAND",
    "[[ 'a[0+$(COMMAND)]' -eq 0 ]]",
    "x='a[$(COMMAND)]'; ((x))",
    "x='a[$(COMMAND)]'; y=$((x))",
    "x='a[$(COMMAND)]'; y=${!x}",
    "x='a[$(COMMAND)]'; declare -i y=x",
    "x='a[$(COMMAND)]'; unset \"$x\"",
    "x='a[$(COMMAND)]'; let x",
    "x='$(COMMAND)'; y=${x@P}",
    "declare -a 'x=($(COMMAND))'",
    "typeset -a 'x=($(COMMAND))'",
    "x=$(COMMAND)",
    "x=`COMMAND`",
    "x=${y:-$(COMMAND)}",
    "x[$(COMMAND)]=1",
    ": $(COMMAND)",
    ": <(COMMAND)",
    "[[ -n $(COMMAND) ]]",
    "(( $(COMMAND) ))",
    "case $(COMMAND) in *) ;; esac",
    "for x in $(COMMAND); do :; done",
    "function f { COMMAND; }; f",
    "> $(COMMAND)",
    "cat <<END\n$(COMMAND)\nEND",
    "PS4='$(COMMAND)'; set -x; :",
    "trap 'COMMAND' EXIT",
    "eval ''; q=Q; d=${q/Q/\\$}; l=${q/Q/\\[}; Z=a$l$d'(COMMAND)]'; ((Z))",
    "alias x='COMMAND'\nx",
    "command_not_found_handle() { COMMAND; }; nothing",
    "! COMMAND",
    "time COMMAND",
    "coproc COMMAND",
    "{ COMMAND; } &",
    "\\\nCOMMAND",
];

#[test]
fn where_nothing_is_allowed_nothing_runs() {
    let commands = ["touch here", "t\\ouch here", "/bin/touch here", "> here", "mkdir here"];
    let mut tally = Tally::default();
    for default in ["deny", "ask"] {
        let sandbox = prepared(&format!("default = \"{default}\"\n"));
        let mut client = sandbox.client();
        let here = sandbox.path().join("here");
        let all = FORMS.iter().flat_map(|form| commands.map(|command| form.replace("COMMAND", command)));
        for line in chosen(all.collect(), 7) {
            client.call("run_shell_command", json!({"command": line, "timeout": 20}));
            tally.count(&format!("{default}: {line}"), here.exists());
            let _ = std::fs::remove_file(&here);
            let _ = std::fs::remove_dir(&here);
        }
        assert!(sandbox.outlast().jobs().is_empty(), "no job was started");
    }
    tally.nothing_got_through("anything, with default = \"deny\" or \"ask\" and nobody to ask");
}
