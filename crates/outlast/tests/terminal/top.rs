//! `outlast top`: all jobs on one screen. What is on it is what tmux says, in windows of several sizes.

use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually, has};
use rustix::process::{Signal, kill_process};

use crate::judges::Shell;
use crate::{sandbox, wait_to_show};

/// Starts a job that asks, one that failed, one that runs and one that is done, in another order than they are shown.
fn four_jobs(sandbox: &Sandbox) {
    sandbox.run(["run", "--name", "fine", "echo all good"]).ok();
    sandbox.start(["--name", "server", "--description", "serves", "echo listening; sleep 1000"]);
    let _ = sandbox.run(["run", "--name", "broken", "echo it broke; exit 3"]);
    sandbox.start([
        "--name",
        "question",
        "read -p 'Go on? [y/n] ' answer; echo you said $answer; sleep 1000",
    ]);
    sandbox.json(["wait", "question", "--awaiting-input", "--deadline", "30s"]);
}

/// Waits until what the pane shows is as it should be, and returns it.
#[track_caller]
fn sees(shell: &Shell, what: &str, wanted: impl Fn(&[String]) -> bool) -> Vec<String> {
    eventually(what, TEST_TIMEOUT, || {
        let shown = shell.shows();
        if wanted(&shown) { Ok(shown) } else { Err(format!("\n{}", shown.join("\n"))) }
    })
}

#[track_caller]
fn sees_text(shell: &Shell, text: &str) -> Vec<String> {
    sees(shell, text, |rows| rows.iter().any(|row| row.contains(text)))
}

/// Leaves, and insists that the terminal is as it was: the prompt below what was typed, and nothing else.
#[track_caller]
fn leaves(shell: &mut Shell, key: &str) {
    shell.press(&[key]);
    shell.comes_back();
    let alternate = shell.tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag} #{wrap_flag}"]);
    assert_eq!(alternate.trim(), "0 1 1", "the terminal is given back");
}

/// The names of the jobs, from the top.
fn order(rows: &[String]) -> Vec<&'static str> {
    let names = ["question", "broken", "server", "fine"];
    let name_in = |row: &String| {
        let list: String = row.chars().take(20).collect();
        names.into_iter().find(|name| list.contains(name) && list.starts_with(['?', '!', '>', '.']))
    };
    rows.iter().filter_map(name_in).collect()
}

#[test]
fn questions_come_first_and_the_chosen_job_is_beside_the_list_at_80_columns() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start(&sandbox) else { return };
    four_jobs(&sandbox);
    shell.enter("outlast top");
    let rows = sees_text(&shell, "Go on? [y/n]");
    assert_eq!(order(&rows), ["question", "broken", "server", "fine"], "\n{}", rows.join("\n"));
    assert!(rows[0].starts_with("outlast · 1 asks, 1 failed, 1 running, 1 done"), "{}", rows[0]);
    assert_eq!(rows[23].trim_end(), "$ outlast screen question");
    assert!(rows.iter().all(|row| row.chars().count() <= 80));
    shell.press(&["Down"]);
    sees_text(&shell, "it broke");
    shell.press(&["j"]);
    let rows = sees_text(&shell, "listening");
    assert_eq!(rows[23].trim_end(), "$ outlast screen server");
    leaves(&mut shell, "q");
    assert!(!shell.shows().iter().any(|row| row.contains("listening")));
    assert_eq!(sandbox.json(["jobs", "--running", "-a"])["jobs"].as_array().unwrap().len(), 2, "all run on");
}

#[test]
fn an_answer_is_typed_and_the_job_is_seen_to_go_on() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start_sized(&sandbox, (200, 50)) else { return };
    four_jobs(&sandbox);
    shell.enter("outlast top");
    sees_text(&shell, "? Go on? [y/n]");
    shell.press(&["s"]);
    sees_text(&shell, "outlast send 4");
    shell.press(&["y", "e", "x", "BSpace", "p"]);
    sees_text(&shell, "outlast send 4 yep");
    shell.press(&["Enter"]);
    sees_text(&shell, "you said yep");
    sees(&shell, "it asks no longer", |rows| order(rows).first() == Some(&"broken"));
    leaves(&mut shell, "C-c");
}

#[test]
fn a_filter_works_while_it_is_typed() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start(&sandbox) else { return };
    four_jobs(&sandbox);
    shell.enter("outlast top");
    sees_text(&shell, "Go on?");
    shell.press(&["/", "s", "e", "r"]);
    let rows = sees(&shell, "only the server", |rows| order(rows) == ["server"]);
    assert!(rows[23].starts_with("/ser"), "{}", rows[23]);
    sees_text(&shell, "listening");
    shell.press(&["Escape"]);
    sees(&shell, "all again", |rows| order(rows).len() == 4);
    leaves(&mut shell, "q");
}

#[test]
fn a_job_is_ended_only_after_a_yes_and_its_end_is_seen() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start(&sandbox) else { return };
    sandbox.start(["--name", "server", "echo listening; sleep 1000"]);
    shell.enter("outlast top");
    sees_text(&shell, "listening");
    shell.press(&["k"]);
    sees_text(&shell, "End job 1 and all that it started? [y/N]  $ outlast kill server");
    shell.press(&["x"]);
    sees_text(&shell, "nothing was done");
    assert_eq!(sandbox.json(["show", "1"])["status"], "running");
    shell.press(&["k", "y"]);
    let rows = sees_text(&shell, "outlast · 1 done");
    assert!(rows.iter().any(|row| row.contains("SIGTERM")), "\n{}", rows.join("\n"));
    leaves(&mut shell, "q");
}

#[test]
fn a_job_that_ends_by_itself_is_seen_to_end_and_can_be_run_again() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start(&sandbox) else { return };
    let go = sandbox.work().join("go");
    sandbox.start([
        "--name",
        "build",
        "echo building; while ! [ -e go ]; do sleep 0.05; done; echo built; exit 4",
    ]);
    shell.enter("outlast top");
    sees_text(&shell, "building");
    std::fs::write(&go, "").unwrap();
    let rows = sees_text(&shell, "exit 4");
    assert!(rows[0].contains("1 failed"), "{}", rows[0]);
    sees_text(&shell, "built");
    shell.press(&["r"]);
    sees_text(&shell, "2 failed");
    assert_eq!(sandbox.json(["show", "2"])["name"], "build");
    leaves(&mut shell, "q");
}

#[test]
fn attach_takes_the_terminal_and_comes_back_to_the_list() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start(&sandbox) else { return };
    sandbox.start(["--name", "echoes", "echo ready; cat"]);
    shell.enter("outlast top");
    sees_text(&shell, "ready");
    shell.press(&["a"]);
    sees_text(&shell, "attached to job 1");
    shell.press(&["h", "i", "Enter"]);
    sees(&shell, "the echo", |rows| rows.iter().filter(|row| row.trim() == "hi").count() == 2);
    shell.press(&["C-]"]);
    let rows = sees_text(&shell, "outlast · ");
    assert!(rows[0].starts_with("outlast · "), "{}", rows.join("\n"));
    sees(&shell, "the job's screen", |rows| rows.iter().filter(|row| row.ends_with("hi")).count() == 2);
    leaves(&mut shell, "q");
}

#[test]
fn a_full_screen_program_and_wide_characters_have_their_places() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start_sized(&sandbox, (200, 50)) else { return };
    if !has("vim") {
        return;
    }
    std::fs::write(sandbox.work().join("note.txt"), "日本語のテキスト|\nplain text here|\n").unwrap();
    sandbox.start([
        "--size",
        "80x24",
        "-e",
        "LC_ALL=C.UTF-8",
        "--description",
        "エディタ",
        "--",
        "vim",
        "-u",
        "NONE",
        "-N",
        "-i",
        "NONE",
        "note.txt",
    ]);
    shell.enter("outlast top");
    let rows = sees_text(&shell, "日本語のテキスト|");
    let place = |text: &str| {
        let row = rows.iter().find(|row| row.contains(text)).unwrap();
        let before = &row[..row.find(text).unwrap()];
        unicode_width::UnicodeWidthStr::width(before)
    };
    assert_eq!(place("日本語のテキスト|"), place("plain text here|"), "\n{}", rows.join("\n"));
    assert!(rows.iter().any(|row| row.contains("1 エディタ")), "\n{}", rows.join("\n"));
    shell.press(&["S"]);
    shell.enter("d d");
    sees(&shell, "a row less", |rows| {
        rows.iter().any(|row| row.contains("plain text here|"))
            && !rows.iter().any(|row| row.contains("日本語"))
    });
    leaves(&mut shell, "q");
}

#[test]
fn another_size_is_drawn_anew_down_to_a_few_rows() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start(&sandbox) else { return };
    four_jobs(&sandbox);
    shell.enter("outlast top");
    sees_text(&shell, "Go on?");
    for (cols, lines) in [(200, 50), (40, 12), (80, 6), (30, 5), (100, 30)] {
        shell.tmux(&["resize-window", "-x", &cols.to_string(), "-y", &lines.to_string()]);
        let rows = sees(&shell, "the list in another size", |rows| {
            rows.len() == lines
                && rows[0].starts_with("outlast · 1 asks")
                && rows[1].starts_with("? 4 question")
                && rows[lines - 1].starts_with("$ outlast screen question")
        });
        assert!(rows.iter().all(|row| row.chars().count() <= cols), "{cols}\n{}", rows.join("\n"));
    }
    leaves(&mut shell, "q");
}

#[test]
fn logs_of_marked_jobs_are_merged_and_followed() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start(&sandbox) else { return };
    let talks = |name: &str| {
        format!("echo {name} one; while ! [ -e go ]; do sleep 0.05; done; echo {name} two; sleep 1000")
    };
    sandbox.start(["--name", "api", &talks("api")]);
    sandbox.start(["--name", "web", &talks("web")]);
    shell.enter("outlast top");
    sees_text(&shell, "web one");
    shell.press(&["Space", "Space", "m"]);
    let rows = sees_text(&shell, "api | api one");
    assert_eq!(rows[23].trim_end(), "$ outlast logs -f -n 200 api web");
    sees_text(&shell, "web | web one");
    std::fs::write(sandbox.work().join("go"), "").unwrap();
    sees_text(&shell, "api | api two");
    sees_text(&shell, "web | web two");
    shell.press(&["Escape"]);
    sees_text(&shell, "? help");
    leaves(&mut shell, "q");
}

#[test]
fn the_timeline_goes_back_to_what_was_on_the_screen() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start(&sandbox) else { return };
    let job = sandbox.start(["--name", "steps", "echo first; read x; clear; echo second; read x"]);
    sandbox.json(["wait", "steps", "--awaiting-input", "--deadline", "30s"]);
    sandbox.run(["send", "steps", "on"]).ok();
    wait_to_show(&sandbox, job, "second");
    shell.enter("outlast top");
    sees_text(&shell, "second");
    shell.press(&["t"]);
    sees_text(&shell, "asked:");
    shell.press(&["Home"]);
    sees(&shell, "the beginning", |rows| {
        rows[23].starts_with("$ outlast replay steps --at 0ms")
            && !rows[..19].iter().any(|row| row.contains("second"))
    });
    // From event to event: it started, and then asked for the first time.
    shell.press(&["n", "n"]);
    sees(&shell, "what was there then", |rows| rows[1].starts_with("first") && rows[22].contains("n p"));
    shell.press(&["Escape"]);
    sees_text(&shell, "? help");
    leaves(&mut shell, "q");
}

#[test]
fn without_colours_there_are_none_and_signs_tell() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start(&sandbox) else { return };
    four_jobs(&sandbox);
    sandbox.start(["--name", "red", "printf '\\033[31mred text\\033[0m\\n'; sleep 1000"]);
    shell.enter("NO_COLOR=1 outlast top");
    sees_text(&shell, "Go on?");
    shell.press(&["Down", "Down"]);
    sees_text(&shell, "red text");
    let styled = shell.tmux(&["capture-pane", "-p", "-e"]);
    let colours: Vec<&str> =
        styled.split("\u{1b}[").skip(1).filter(|code| code.starts_with(['3', '4'])).collect();
    assert!(colours.iter().all(|code| code.starts_with("39") || code.starts_with("49")), "{colours:?}");
    leaves(&mut shell, "q");
}

#[test]
fn the_terminal_is_given_back_whatever_ends_it() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start(&sandbox) else { return };
    sandbox.start(["--name", "server", "echo listening; sleep 1000"]);
    for signal in [Signal::TERM, Signal::HUP, Signal::KILL] {
        shell.enter("outlast top");
        sees_text(&shell, "listening");
        let tty = shell.tmux(&["display-message", "-p", "#{pane_pid}"]);
        let children = outlast_pty::procfs::children(
            rustix::process::Pid::from_raw(tty.trim().parse().unwrap()).unwrap(),
        );
        kill_process(children[0], signal).unwrap();
        // The shell says that it was killed, should it have been.
        shell.has_passed_a_prompt();
        eventually("the terminal is given back", TEST_TIMEOUT, || {
            let modes = shell.tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag} #{wrap_flag}"]);
            let shown = shell.shows();
            let has_prompt =
                shown.iter().rev().find(|row| !row.trim().is_empty()).is_some_and(|row| row.ends_with(" $"));
            // Nobody can hold the shell back then: its prompt may be on the screen that is left.
            let back = has_prompt || signal == Signal::KILL;
            if modes.trim() == "0 1 1" && back { Ok(()) } else { Err((modes, shown.join("\n"))) }
        });
        shell.enter("echo 'it is' fine");
        sees_text(&shell, "it is fine");
        shell.has_passed_a_prompt();
        shell.enter("clear");
        shell.has_passed_a_prompt();
    }
}

#[test]
fn ctrl_z_gives_the_shell_its_prompt_and_fg_comes_back() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start(&sandbox) else { return };
    sandbox.start(["--name", "server", "echo listening; sleep 1000"]);
    shell.enter("outlast top");
    sees_text(&shell, "listening");
    shell.press(&["C-z"]);
    sees_text(&shell, "Stopped");
    shell.comes_back();
    shell.enter("fg");
    sees_text(&shell, "listening");
    leaves(&mut shell, "q");
}

#[test]
fn the_bare_name_shows_all_jobs_when_there_are_any_and_the_help_otherwise() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start_sized(&sandbox, (100, 50)) else { return };
    shell.enter("outlast 2>&1 | tail -n 5");
    sees_text(&shell, "Exit codes:");
    shell.comes_back();
    shell.calls("outlast 2>&1 >/dev/null | head -n 1");
    sandbox.start(["--name", "server", "echo listening; sleep 1000"]);
    shell.calls("clear");
    shell.enter("outlast");
    sees_text(&shell, "listening");
    leaves(&mut shell, "q");
    // Nobody looks at a pipe.
    let alone = sandbox.run(Vec::<&str>::new());
    alone.code(2).says("Usage");
    sandbox.run(["top"]).code(2).says("outlast jobs --watch");
}

#[test]
fn what_a_policy_asks_about_is_asked_before_it_is_done() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start_sized(&sandbox, (100, 30)) else { return };
    let config = sandbox.root().join("policy.toml");
    std::fs::write(&config, "[[rule]]\ntool = \"kill\"\ndecision = \"ask\"\n").unwrap();
    std::fs::create_dir_all(sandbox.root().join("user/.config/outlast")).unwrap();
    std::fs::rename(&config, sandbox.root().join("user/.config/outlast/policy.toml")).unwrap();
    sandbox.start(["sleep", "1000"]);
    shell.enter("outlast top");
    sees_text(&shell, "outlast · 1");
    shell.press(&["k", "y"]);
    sees_text(&shell, "Do it? [y/N]");
    shell.enter("n");
    sees(&shell, "the list again", |rows| rows[0].starts_with("outlast · 1"));
    assert_eq!(sandbox.json(["show", "1"])["status"], "running");
    leaves(&mut shell, "q");
}

#[test]
fn jobs_of_other_machines_are_in_the_list() {
    let (near, far) = (sandbox(), sandbox());
    far.start(["--name", "there", "--", "sh", "-c", "echo from afar; read x; echo got $x; sleep 600"]);
    let reach =
        format!("command:exec env OUTLAST_HOME={} {} relay", far.home().display(), far.program().display());
    near.run(["host", "add", "gpu1", &reach]).ok();
    near.run(["host", "add", "gone", "command:exec false"]).ok();
    near.start(["--name", "here", "--", "sleep", "600"]);
    let Some(mut shell) = Shell::start(&near) else { return };
    shell.enter(&format!("XDG_CONFIG_HOME={} outlast top", near.root().join("config").display()));
    sees(&shell, "both are listed, and who does not answer", |rows| {
        rows[0].contains("1 asks, 1 running · not reached: gone")
            && rows[1].contains("gpu1/1 there")
            && rows[2].contains("1 here")
    });
    // The list of this machine was there first, and its job is chosen.
    shell.press(&["Up"]);
    sees(&shell, "its screen", |rows| rows.iter().any(|row| row.contains("from afar")));
    sees(&shell, "the command with its host", |rows| {
        rows.iter().any(|row| row.contains("$ outlast screen gpu1/there"))
    });
    far.run(["send", "1", "--no-wait", "hello"]).ok();
    sees(&shell, "it told that something changed", |rows| {
        rows[0].contains("2 running") && rows.iter().any(|row| row.contains("got hello"))
    });
    leaves(&mut shell, "q");
}
