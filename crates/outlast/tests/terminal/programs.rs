//! Real programs: started, driven by keys, read by screen, left cleanly. One that is not on the machine is passed over.

use outlast_testkit::{Sandbox, has};

use crate::{ends_with, lines, press, rows, sandbox, type_in, wait_for_screen, wait_to_show};

/// A file in the folder where jobs start.
fn file(sandbox: &Sandbox, name: &str, text: &str) -> std::path::PathBuf {
    let path = sandbox.work().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn numbered(count: usize) -> String {
    (1..=count).map(|i| format!("this is line {i}\n")).collect()
}

#[test]
fn vim() {
    if !has("vim") {
        return;
    }
    let sandbox = sandbox();
    let path = file(&sandbox, "notes.txt", "one\ntwo\nthree\n");
    let job = sandbox.start(["--", "vim", "-u", "NONE", "-i", "NONE", "-N", "notes.txt"]);
    let shot = wait_to_show(&sandbox, job, "three");
    assert_eq!(shot["alternate"], true);
    press(&sandbox, job, &["Down", "Down", "End"]);
    wait_for_screen(&sandbox, job, |shot, _| shot["cursor"]["row"] == 2 && shot["cursor"]["col"] == 4);
    press(&sandbox, job, &["o"]);
    wait_to_show(&sandbox, job, "-- INSERT --");
    type_in(&sandbox, job, "fo\u{fc}r");
    press(&sandbox, job, &["Enter"]);
    type_in(&sandbox, job, "five");
    press(&sandbox, job, &["Escape"]);
    let shot = wait_for_screen(&sandbox, job, |_, rows| {
        rows[4] == "five" && !rows.iter().any(|row| row.contains("INSERT"))
    });
    assert_eq!(rows(&shot)[..5], ["one", "two", "three", "fo\u{fc}r", "five"]);
    type_in(&sandbox, job, ":wq");
    press(&sandbox, job, &["Enter"]);
    ends_with(&sandbox, job, 0);
    assert_eq!(std::fs::read_to_string(path).unwrap(), "one\ntwo\nthree\nfo\u{fc}r\nfive\n");
    // A session in an editor costs a reader nothing.
    assert_eq!(lines(&sandbox, job), Vec::<String>::new());
}

#[test]
fn less() {
    if !has("less") {
        return;
    }
    let sandbox = sandbox();
    file(&sandbox, "long.txt", &numbered(200));
    let job = sandbox.start(["--size", "80x24", "-e", "LESS=", "--", "less", "long.txt"]);
    let shot = wait_to_show(&sandbox, job, "this is line 23");
    assert_eq!(shot["alternate"], true);
    press(&sandbox, job, &["PageDown"]);
    wait_for_screen(&sandbox, job, |_, rows| rows[0] == "this is line 24");
    press(&sandbox, job, &["Up"]);
    wait_for_screen(&sandbox, job, |_, rows| rows[0] == "this is line 23");
    sandbox.run(["send", &job.to_string(), "--no-wait", "/line 150$"]).ok();
    wait_for_screen(&sandbox, job, |_, rows| rows[0] == "this is line 150");
    press(&sandbox, job, &["G"]);
    wait_for_screen(&sandbox, job, |_, rows| rows[22] == "this is line 200" && rows[23].contains("END"));
    press(&sandbox, job, &["q"]);
    ends_with(&sandbox, job, 0);
    assert_eq!(lines(&sandbox, job), Vec::<String>::new());
}

#[test]
fn python() {
    if !has("python3") {
        return;
    }
    let sandbox = sandbox();
    let job = sandbox.start(["--", "python3", "-q", "-E"]);
    let handle = job.to_string();
    wait_to_show(&sandbox, job, ">>>");
    let answer = sandbox.json(["send", &handle, "6 * 7", "--pattern", "42\\s+>>> "]);
    assert_eq!(answer["reason"], "pattern", "{answer}");
    sandbox.json(["send", &handle, "print('\u{e9}t\u{e9}')", "--pattern", "(?m)^\u{e9}t\u{e9}"]);
    press(&sandbox, job, &["Up", "Enter"]);
    wait_for_screen(&sandbox, job, |_, rows| rows.iter().filter(|row| *row == "\u{e9}t\u{e9}").count() == 2);
    sandbox.json(["send", &handle, "while True: pass\n", "--no-wait"]);
    press(&sandbox, job, &["Ctrl-C"]);
    wait_to_show(&sandbox, job, "KeyboardInterrupt");
    sandbox.run(["send", &handle, "import sys; sys.exit(4)", "--no-wait"]).ok();
    ends_with(&sandbox, job, 4);
    let lines = lines(&sandbox, job);
    assert!(lines.iter().any(|line| line == "42"), "{lines:?}");
}

#[test]
fn gdb() {
    if !has("gdb") {
        return;
    }
    let sandbox = sandbox();
    let job = sandbox.start(["--", "gdb", "-q", "-nx"]);
    let handle = job.to_string();
    wait_to_show(&sandbox, job, "(gdb)");
    let answer = sandbox.json(["send", &handle, "print 6 * 7", "--pattern", "= 42"]);
    assert_eq!(answer["reason"], "pattern", "{answer}");
    type_in(&sandbox, job, "prin");
    press(&sandbox, job, &["Tab"]);
    wait_to_show(&sandbox, job, "(gdb) print");
    press(&sandbox, job, &["Ctrl-U"]);
    sandbox.run(["send", &handle, "quit", "--no-wait"]).ok();
    ends_with(&sandbox, job, 0);
}

#[test]
fn ed() {
    if !has("ed") {
        return;
    }
    let sandbox = sandbox();
    let path = file(&sandbox, "lines.txt", "alpha\nbeta\n");
    let job = sandbox.start(["--", "ed", "-p", "* ", "lines.txt"]);
    let handle = job.to_string();
    wait_to_show(&sandbox, job, "*");
    for line in ["2s/beta/gamma/", "a", "delta", ".", ",n", "w"] {
        sandbox.run(["send", &handle, line, "--no-wait"]).ok();
    }
    sandbox.wait_for_text(job, "3\\s+delta\\s+(?s).*18");
    sandbox.run(["send", &handle, "q", "--no-wait"]).ok();
    ends_with(&sandbox, job, 0);
    assert_eq!(std::fs::read_to_string(path).unwrap(), "alpha\ngamma\ndelta\n");
}

#[test]
fn tmux() {
    if !has("tmux") {
        return;
    }
    let sandbox = sandbox();
    file(
        &sandbox,
        "tmux.conf",
        "set -g default-command 'echo inner pane; exec cat'\nset -sg escape-time 0\n",
    );
    let socket = sandbox.root().join("tmux");
    let socket = socket.to_str().unwrap();
    let job = sandbox.start(["--", "tmux", "-u", "-S", socket, "-f", "tmux.conf", "new-session"]);
    let shot = wait_to_show(&sandbox, job, "inner pane");
    assert_eq!(shot["alternate"], true);
    sandbox.run(["send", &job.to_string(), "hello", "--no-wait"]).ok();
    wait_for_screen(&sandbox, job, |_, rows| rows[..3] == ["inner pane", "hello", "hello"]);
    press(&sandbox, job, &["C-b", "\""]);
    let shot = wait_for_screen(&sandbox, job, |_, rows| {
        rows.iter().filter(|row| row.contains("inner pane")).count() == 2
    });
    assert!(rows(&shot).iter().any(|row| row.starts_with("\u{2500}\u{2500}")), "{shot}");
    for panes in [1, 0] {
        press(&sandbox, job, &["Ctrl-D"]);
        if panes > 0 {
            wait_for_screen(&sandbox, job, |_, rows| {
                rows.iter().filter(|row| row.contains("inner pane")).count() == panes
            });
        }
    }
    ends_with(&sandbox, job, 0);
    let lines = lines(&sandbox, job);
    assert!(!lines.iter().any(|line| line.contains("inner pane")), "{lines:?}");
}

#[test]
fn nano() {
    if !has("nano") {
        return;
    }
    let sandbox = sandbox();
    let path = file(&sandbox, "letter.txt", "Dear\n");
    let job = sandbox.start(["--", "nano", "--ignorercfiles", "letter.txt"]);
    let shot = wait_to_show(&sandbox, job, "Dear");
    assert_eq!(shot["alternate"], true);
    press(&sandbox, job, &["End"]);
    type_in(&sandbox, job, " reader");
    wait_to_show(&sandbox, job, "Dear reader");
    press(&sandbox, job, &["Ctrl-O"]);
    wait_to_show(&sandbox, job, "File Name to Write");
    press(&sandbox, job, &["Enter"]);
    wait_to_show(&sandbox, job, "Wrote 1 line");
    press(&sandbox, job, &["Ctrl-X"]);
    ends_with(&sandbox, job, 0);
    assert_eq!(std::fs::read_to_string(path).unwrap(), "Dear reader\n");
    assert_eq!(lines(&sandbox, job).join(""), "");
}

#[test]
fn htop() {
    if !has("htop") {
        return;
    }
    let sandbox = sandbox();
    let job = sandbox.start(["--", "htop"]);
    let shot = wait_to_show(&sandbox, job, "PID");
    assert_eq!(shot["alternate"], true);
    press(&sandbox, job, &["F1"]);
    wait_to_show(&sandbox, job, "htop ");
    press(&sandbox, job, &["Escape"]);
    wait_to_show(&sandbox, job, "PID");
    press(&sandbox, job, &["F10"]);
    ends_with(&sandbox, job, 0);
    assert_eq!(lines(&sandbox, job).join(""), "");
}

#[test]
fn fzf() {
    if !has("fzf") {
        return;
    }
    let sandbox = sandbox();
    file(&sandbox, "fruit", "apple\nbanana\ncherry\ncranberry\n");
    let job = sandbox.start(["--", "sh", "-c", "fzf < fruit > chosen; cat chosen"]);
    wait_to_show(&sandbox, job, "4/4");
    type_in(&sandbox, job, "rry");
    wait_to_show(&sandbox, job, "2/4");
    press(&sandbox, job, &["Up"]);
    press(&sandbox, job, &["Enter"]);
    ends_with(&sandbox, job, 0);
    let chosen = std::fs::read_to_string(sandbox.work().join("chosen")).unwrap();
    assert!(["cherry\n", "cranberry\n"].contains(&chosen.as_str()), "{chosen}");
    assert_eq!(lines(&sandbox, job), [chosen.trim_end()]);
}

#[test]
fn whiptail() {
    if !has("whiptail") {
        return;
    }
    let sandbox = sandbox();
    let menu = "whiptail --menu Choose 15 40 4 a first b second c third 2>chosen; echo code $?";
    let job = sandbox.start(["--size", "80x24", "--", "sh", "-c", menu]);
    wait_to_show(&sandbox, job, "third");
    press(&sandbox, job, &["Down"]);
    press(&sandbox, job, &["Tab"]);
    press(&sandbox, job, &["Enter"]);
    sandbox.wait_for_text(job, "code 0");
    ends_with(&sandbox, job, 0);
    assert_eq!(std::fs::read_to_string(sandbox.work().join("chosen")).unwrap(), "b");
}
