//! What is typed, the line that it makes, and how that is judged.

use std::path::Path;

use outlast_job::wire::{Send, base64};

use super::*;

fn policy() -> Policy {
    let text = "[[rule]]\ndecision = \"deny\"\nprefix = \"rm\"\n\
    [[rule]]\ndecision = \"deny\"\nprefix = \"git push\"\n";
    Policy::parse(Path::new("policy.toml"), text).unwrap()
}

fn judged(reader: &Reader, before: &str, send: &Send) -> Decision {
    policy().judge_typed(reader, before.as_bytes(), &TypedInput::new(send.clone()).unwrap()).decision
}

fn line(text: &str) -> Send {
    Send { text: text.into(), newline: true, ..Send::default() }
}

fn keys(text: &str, keys: &[&str]) -> Send {
    Send { text: text.into(), keys: keys.iter().map(|key| (*key).into()).collect(), ..Send::default() }
}

#[test]
fn a_line_is_judged_with_what_was_typed_before_it() {
    for before in
        ["", "ls\r", "echo 'a\rb'\r", "\u{3}", "rm x\r", "rm x\r\u{3}", "echo don\\'t\r", "# don't\r"]
    {
        assert_eq!(judged(&Reader::Shell, before, &line("ls")), Decision::Allow, "{before:?}");
        assert_eq!(judged(&Reader::Shell, before, &line("rm x")), Decision::Deny, "{before:?}");
    }
    for (before, then) in [
        ("r", "m x"),
        ("rm", " x"),
        ("r\\\r", "m x"),
        ("git \\\r", "push"),
        ("ls &&\r", "rm x"),
        ("bash -c '\r", "rm x'"),
        ("if true\rthen\r", "rm x"),
        ("bash <<EOF\r", "rm x"),
        ("true |\r", "rm x"),
    ] {
        assert_eq!(judged(&Reader::Shell, before, &line(then)), Decision::Deny, "{before:?} {then:?}");
    }
    assert_eq!(judged(&Reader::Shell, "curl x |\r", &line("sh")), Decision::Ask);
}

#[test]
fn every_way_to_end_a_line_counts() {
    for send in [
        line("ls\nrm x"),
        line("ls\rrm x\r"),
        keys("rm x", &["Enter"]),
        keys("rm x", &["Ctrl-M"]),
        keys("rm x", &["Ctrl-J"]),
        keys("rm x", &["^O"]),
        keys("rm x", &["Ctrl-D"]),
        keys("rm x", &["KeypadEnter"]),
        keys("", &["r", "m", "Space", "x", "Enter"]),
        Send { text: "rm x".into(), eof: true, ..Send::default() },
        Send { bytes: base64::encode(b"rm x\r"), ..Send::default() },
        Send { bytes: base64::encode(b"\x1b[200~ls\rrm x\x1b[201~\r"), ..Send::default() },
        keys("rm x", &[]),
    ] {
        assert_eq!(judged(&Reader::Shell, "", &send), Decision::Deny, "{send:?}");
    }
}

#[test]
fn a_line_that_cannot_be_seen_is_a_question() {
    for (before, send) in [
        // A program may take no notice of Ctrl-C, or delete with Ctrl-D; Ctrl-L inserts nothing.
        ("ls\u{3}", line("ls")),
        ("", keys("l", &["Ctrl-L", "s", "Enter"])),
        ("", keys("ls", &["Alt-Enter", "x", "Enter"])),
        ("", line("lx\u{301}\u{7f}s")),
        ("", line("lé\u{7f}s")),
        ("", keys("", &["Up", "Enter"])),
        ("\u{1b}[A", keys("", &["Enter"])),
        ("", keys("m x", &["Home", "r", "Enter"])),
        ("", keys("", &["Ctrl-R", "r", "Enter"])),
        ("", keys("mr", &["Ctrl-T", "Enter"])),
        ("", keys("r", &["Tab", "Enter"])),
        ("", keys("", &["Ctrl-X", "Ctrl-E"])),
        ("", keys("", &["Alt-.", "Enter"])),
        ("", line("!!")),
        ("", line("!r")),
        ("", line("^ls^rm")),
        ("", line("echo 'it''s' !$")),
        ("", line("$(echo rm) x")),
        ("", line("echo 'rm x' | sh")),
        ("", line("oops (")),
    ] {
        assert_eq!(judged(&Reader::Shell, before, &send), Decision::Ask, "{before:?} {send:?}");
    }
}

#[test]
fn deleting_characters_hides_nothing() {
    assert_eq!(judged(&Reader::Shell, "", &line("rx\u{7f}m x")), Decision::Deny);
    assert_eq!(judged(&Reader::Shell, "", &line("rm x;\u{15}ls")), Decision::Deny);
    assert_eq!(judged(&Reader::Shell, "lz\u{7f}", &line("s")), Decision::Allow);
}

#[test]
fn ordinary_lines_and_blocks_are_allowed() {
    for text in [
        "ls -la",
        "echo \"don't\"",
        "for i in 1 2; do",
        "done",
        "if true; then",
        "fi",
        "echo 'hello!'",
        "[ ! -f x ] && echo no",
        "cat <<EOF\nit's\nEOF",
        "y",
        "",
    ] {
        assert_eq!(judged(&Reader::Shell, "", &line(text)), Decision::Allow, "{text:?}");
    }
    assert_eq!(judged(&Reader::Shell, "", &keys("", &["Ctrl-C"])), Decision::Allow);
    assert_eq!(judged(&Reader::Shell, "", &keys("", &["Up"])), Decision::Allow, "nothing is run yet");
}

#[test]
fn another_program_is_a_question_if_it_clearly_mentions_a_rule() {
    let python = Reader::Program { program: "python3".into() };
    assert_eq!(judged(&python, "", &line("os.system('rm x')")), Decision::Ask);
    assert_eq!(judged(&python, "", &line("print('it is fine')")), Decision::Allow);
    let before = Reader::Before { program: "python3".into() };
    assert_eq!(judged(&before, "", &line("print('it is fine')")), Decision::Allow);
    assert_eq!(judged(&before, "", &line("exit()\nrm x")), Decision::Deny);
    assert_eq!(judged(&before, "", &line("exit()\n$X x")), Decision::Ask);
}

#[test]
fn a_key_that_a_program_may_ignore_does_not_hide_the_line() {
    for before in ["r\u{3}", "r\u{c}", "r\u{4}"] {
        assert_ne!(judged(&Reader::Shell, before, &line("m x")), Decision::Allow, "{before:?}");
    }
}

#[test]
fn another_shell_than_bash_is_typed_plain_lines_only() {
    let zsh = Reader::OtherShell { program: "zsh".into() };
    assert_eq!(judged(&zsh, "", &line("ls -l")), Decision::Allow);
    for text in ["echo # ; rm x", "((ls - x))", "[[ -n a || rm != x ]]", "echo 'a\\'' ; rm x #'"] {
        assert_ne!(judged(&zsh, "", &line(text)), Decision::Allow, "{text}");
    }
}

#[test]
fn where_little_is_allowed_a_program_is_given_answers_only() {
    let text = "default = \"deny\"\n[[rule]]\ndecision = \"allow\"\nprefix = \"less\"\n";
    let policy = Policy::parse(Path::new("policy.toml"), text).unwrap();
    let judged = |program: &str, before: &str, send: &Send| {
        let reader = Reader::Program { program: program.into() };
        policy.judge_typed(&reader, before.as_bytes(), &TypedInput::new(send.clone()).unwrap()).decision
    };
    for (program, before, send) in [
        ("npm", "", line("y")),
        ("npm", "", line("my-package_2")),
        ("npm", "", line("")),
        ("apt", "", line("1 3, 5")),
        ("cat", "ls x\r", line("no")),
        ("npm", "", keys("", &["Down", "Enter"])),
        ("less", "", keys(" jjG", &["q"])),
    ] {
        assert_eq!(judged(program, before, &send), Decision::Allow, "{program} {send:?}");
    }
    for (program, before, send) in [
        ("less", "", line("!touch x")),
        ("less", "!", line("ls")),
        ("less", "", keys("v", &[])),
        ("vim", "", line(":r")),
        ("python3", "", line("import os; os.system('touch x')")),
        ("python3", "import ", line("os")),
        ("python3", "", line("exec(x)")),
        ("gdb", "", line("shell ls")),
        ("psql", "", line("\\! ls")),
    ] {
        assert_eq!(judged(program, before, &send), Decision::Deny, "{program} {before:?} {send:?}");
    }
}
