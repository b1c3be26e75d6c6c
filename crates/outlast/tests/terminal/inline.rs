//! A job in the foreground writes below the prompt like any command. The judges are terminals that are not
//! ours.

use outlast_testkit::{TEST_TIMEOUT, eventually, has};

use crate::judges::Shell;
use crate::{sandbox, tui};

/// The sizes (columns, rows) in which each is tried.
const SIZES: [(u16, u16); 2] = [(80, 24), (200, 50)];

/// How often each is tried in each size.
fn times() -> usize {
    if std::env::var_os("OUTLAST_LONG_TESTS").is_some() { 20 } else { 3 }
}

/// Has a session in a terminal of each size, and insists that all judges have the lines that it says.
#[track_caller]
fn in_every_size(session: impl Fn(&mut Shell) -> Vec<String>) {
    for size in SIZES {
        let sandbox = sandbox();
        std::fs::create_dir(sandbox.work().join("folder")).unwrap();
        for file in ["a.txt", "b.txt"] {
            std::fs::write(sandbox.work().join(file), "").unwrap();
        }
        let Some(mut shell) = Shell::start_sized(&sandbox, size) else { return };
        let wanted = session(&mut shell);
        shell.shows_all(wanted);
    }
}

/// Calls a command several times, and insists that each time exactly these lines are between the prompts.
#[track_caller]
fn prints(command: &str, lines: &[String]) {
    in_every_size(|shell| {
        let mut wanted = Vec::new();
        for prompt in 1..=times() {
            shell.calls(command);
            wanted.push(Shell::typed(prompt, command));
            wanted.extend_from_slice(lines);
        }
        wanted
    });
}

fn numbers(to: usize) -> Vec<String> {
    (1..=to).map(|number| number.to_string()).collect()
}

#[test]
fn a_command_that_pauses_writes_below_the_prompt() {
    prints("outlast run 'echo hello; sleep 0.2; echo done'", &["hello".into(), "done".into()]);
}

#[test]
fn more_lines_than_the_screen_has_are_all_there() {
    prints("outlast run 'seq 1 60'", &numbers(60));
}

#[test]
fn a_thousand_lines_are_all_there() {
    prints("outlast run 'seq 1 1000'", &numbers(1000));
}

#[test]
fn coloured_output_is_one_line_like_anywhere() {
    prints("outlast run 'ls --color'", &["a.txt  b.txt  folder".into()]);
}

#[test]
fn after_an_unfinished_line_the_prompt_is_on_its_own() {
    prints("outlast run 'printf no-newline'", &["no-newline".into()]);
}

#[test]
fn modes_that_a_program_leaves_on_are_switched_off_where_the_cursor_is() {
    // Mouse, paste marks, scroll region, hidden cursor, line drawing, and a line after them.
    let modes = r"\033[?1000h\033[?2004h\033[?25l\033(0\033[?1h\033[4h\n";
    prints(&format!("outlast run \"printf 'one\\ntwo{modes}'\""), &["one".into(), "two".into()]);
}

#[test]
fn a_bar_is_drawn_over_itself() {
    let steps = "for i in 10 50 100; do printf \"\\r%3d%% [%-20s]\" $i $(seq -s# $((i / 5 + 1)) | tr -d 0-9); sleep 0.02; done; echo";
    prints(&format!("outlast run '{steps}'"), &[format!("100% [{}]", "#".repeat(20))]);
}

#[test]
fn a_full_screen_program_takes_the_screen_and_gives_it_back() {
    if !has("vim") {
        return;
    }
    in_every_size(|shell| {
        let command = "outlast run -- vim -u NONE -N -i NONE note.txt";
        let mut wanted = Vec::new();
        for prompt in 1..=times() {
            shell.enter(command);
            shell.wait_for("\"note.txt\" [New]");
            shell.press(&["i", "h", "e", "y"]);
            shell.wait_for("hey");
            let shown = shell.shows();
            assert_eq!(
                (shown[0].as_str(), shown[1].as_str(), shown[shown.len() - 2].as_str()),
                ("hey", "~", "~")
            );
            assert!(shell.is_on_alternate_screen());
            shell.press(&["Escape"]);
            shell.enter(":q!");
            shell.comes_back();
            wanted.push(Shell::typed(prompt, command));
        }
        wanted
    });
}

#[test]
fn a_pager_takes_the_screen_and_gives_it_back() {
    if !has("less") {
        return;
    }
    in_every_size(|shell| {
        let command = "outlast run 'seq 1 1000 | LESS= less'";
        let mut wanted = Vec::new();
        for prompt in 1..=times() {
            shell.enter(command);
            eventually("the pager", TEST_TIMEOUT, || {
                Some(()).filter(|()| shell.is_on_alternate_screen()).ok_or_else(|| shell.shows())
            });
            shell.press(&["G"]);
            shell.wait_for("1000");
            shell.press(&["q"]);
            shell.comes_back();
            assert!(!shell.is_on_alternate_screen());
            wanted.push(Shell::typed(prompt, command));
        }
        wanted
    });
}

#[test]
fn a_question_is_answered_where_it_is_asked() {
    in_every_size(|shell| {
        // What is waited for is not in the command itself, which the pane shows too.
        let command = "outlast run 'read -p \"Na\"\"me: \" name; echo Hello $name'";
        let mut wanted = Vec::new();
        for prompt in 1..=times() {
            shell.enter(command);
            shell.wait_for("Name:");
            shell.press(&["A", "d", "a", "Enter"]);
            shell.comes_back();
            wanted.extend([Shell::typed(prompt, command), "Name: Ada".into(), "Hello Ada".into()]);
        }
        wanted
    });
}

#[test]
fn a_window_that_changes_its_size_loses_nothing() {
    in_every_size(|shell| {
        let command = "outlast run 'seq 5; read x; stty size; seq 6 9'";
        let (cols, rows) = shell.size();
        let mut wanted = Vec::new();
        for prompt in 1..=times() {
            shell.enter(command);
            shell.wait_for("5");
            // There and back again.
            let (cols, rows) = if prompt % 2 == 1 { (cols + 20, rows + 6) } else { (cols, rows) };
            shell.resizes(cols, rows);
            eventually("the job has the new size", TEST_TIMEOUT, || {
                let size = shell.job_size(prompt);
                if size == (cols, rows) { Ok(()) } else { Err(size) }
            });
            shell.press(&["Enter"]);
            shell.comes_back();
            wanted.push(Shell::typed(prompt, command));
            wanted.extend(numbers(5));
            wanted.extend([String::new(), format!("{rows} {cols}")]);
            wanted.extend(numbers(9)[5..].iter().cloned());
        }
        wanted
    });
}

#[test]
fn leaving_and_coming_back_lose_and_cover_nothing() {
    in_every_size(|shell| {
        // What is waited for is not in the command itself, which the pane shows too.
        let command = "outlast run 'seq 3; printf \"na%s? \" me; read x; echo bye'";
        let mut wanted = Vec::new();
        for job in 1..=times() {
            let attach = format!("outlast attach {job}");
            let lines = ["1", "2", "3", "name?"].map(str::to_owned);
            shell.enter(command);
            shell.wait_for("name?");
            shell.press(&["C-]"]);
            shell.comes_back();
            wanted.push(Shell::typed(3 * job - 2, command));
            wanted.extend_from_slice(&lines);
            let kill = format!("outlast kill {job}");
            wanted.push(format!("outlast: job {job} runs on; back to it: {attach}   end it: {kill}"));
            shell.enter(&attach);
            shell.wait_for("attached to job");
            shell.press(&["C-]"]);
            shell.comes_back();
            wanted.push(Shell::typed(3 * job - 1, &attach));
            wanted.extend_from_slice(&lines);
            wanted.push(format!("[left job {job}; it runs on; back to it: {attach}]"));
            shell.enter(&attach);
            shell.wait_for("attached to job");
            shell.press(&["y", "o", "u", "Enter"]);
            shell.comes_back();
            wanted.push(Shell::typed(3 * job, &attach));
            wanted.extend_from_slice(&lines[..3]);
            wanted.extend(["name? you".into(), "bye".into()]);
            wanted.push(format!("[job {job} has ended: exit code 0]"));
        }
        wanted
    });
}

#[test]
fn leaving_a_full_screen_program_gives_the_screen_back() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start(&sandbox) else { return };
    let program = tui(&sandbox);
    shell.calls(&format!("p={program}"));
    shell.enter("outlast run -- $p full-screen before");
    shell.wait_for("full screen");
    shell.press(&["C-]"]);
    shell.comes_back();
    shell.enter("outlast attach 1");
    shell.wait_for("attached to job");
    shell.wait_for("full screen");
    shell.press(&["C-]"]);
    shell.comes_back();
    shell.shows_all(vec![
        Shell::typed(1, &format!("p={program}")),
        Shell::typed(2, "outlast run -- $p full-screen before"),
        "before".into(),
        "outlast: job 1 runs on; back to it: outlast attach 1   end it: outlast kill 1".into(),
        Shell::typed(3, "outlast attach 1"),
        "[left job 1; it runs on; back to it: outlast attach 1]".into(),
    ]);
}

#[test]
fn a_program_that_asks_where_the_cursor_is_gets_the_rows_that_it_counts_on() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start(&sandbox) else { return };
    // It asks for its row and then draws in that row by its number, as inline user interfaces do.
    let script = "echo first; stty raw -echo; printf '\\033[6n'; IFS=';' read -d R row col; stty sane; \
                  printf '\\033[%s;1Hdrawn\\n' ${row#*[}";
    std::fs::write(sandbox.work().join("asks"), script).unwrap();
    shell.calls("echo before");
    shell.calls("outlast run -- bash asks");
    shell.shows_all(vec![
        Shell::typed(1, "echo before"),
        "before".into(),
        Shell::typed(2, "outlast run -- bash asks"),
        "first".into(),
        "drawn".into(),
    ]);
}

#[test]
fn a_killed_client_leaves_the_prompt_to_the_shell() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start(&sandbox) else { return };
    shell.enter("sh -c 'echo $$ > pid; exec outlast run \"printf quest%s ion; sleep 1000\"'");
    shell.wait_for("question");
    let pid = std::fs::read_to_string(sandbox.work().join("pid")).unwrap();
    let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    shell.comes_back();
    let lines = shell.lines();
    assert!(lines.iter().any(|line| line.starts_with("question")), "{}", lines.join("\n"));
}

#[test]
fn what_we_say_and_the_prompt_begin_in_a_line_of_their_own() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start(&sandbox) else { return };
    let command = "outlast run --input --deadline 30s 'printf \"na%s? \" me; read x; printf age?; read y'";
    shell.calls(command);
    shell.calls("outlast send 1 you");
    shell.calls("outlast read 1");
    shell.shows_all(vec![
        Shell::typed(1, command),
        "name?".into(),
        "awaiting_input: job 1 runs on; answer it: outlast send 1 TEXT".into(),
        Shell::typed(2, "outlast send 1 you"),
        "you".into(),
        "age?".into(),
        Shell::typed(3, "outlast read 1"),
        "name? you".into(),
        "age?".into(),
    ]);
}

/// Keys are looked at also while more comes than a terminal can show.
#[test]
fn a_flood_is_ended_by_an_interrupt() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start(&sandbox) else { return };
    shell.enter("outlast run yes");
    eventually("a flood", TEST_TIMEOUT, || {
        let printed = std::fs::metadata(sandbox.job(1).join("output.log")).map_or(0, |log| log.len());
        if printed > 4 << 20 { Ok(()) } else { Err(printed) }
    });
    shell.press(&["C-c"]);
    shell.comes_back();
    assert_eq!(sandbox.info(1)["signal"], "SIGINT");
}

/// A pager that reads a pipe takes its keys from its terminal, as anywhere.
#[test]
fn a_pager_that_reads_a_pipe_gets_keys() {
    let sandbox = sandbox();
    if !has("less") {
        return;
    }
    let Some(mut shell) = Shell::start(&sandbox) else { return };
    shell.enter("seq 1 1000 | outlast run less");
    shell.wait_for("23");
    shell.press(&["G"]);
    shell.wait_for("1000");
    shell.press(&["q"]);
    shell.comes_back();
    assert!(!shell.is_on_alternate_screen());
    shell.shows_all(vec![Shell::typed(1, "seq 1 1000 | outlast run less")]);
}
