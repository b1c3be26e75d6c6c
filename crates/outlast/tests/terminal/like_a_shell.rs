//! What people are used to from a shell: Ctrl-Z, a job behind `&`, typing ahead, questions on the terminal beside a
//! redirected input, programs that ask where the cursor is. The judges are terminals that are not ours.

use outlast_testkit::{TEST_TIMEOUT, eventually, has, left_out};
use rustix::process::{Pid, Signal, kill_process};

use crate::judges::Shell;
use crate::sandbox;

/// Fills the screen so that the next command writes from the fifteenth row on.
fn goes_to_row_15(shell: &mut Shell) -> Vec<String> {
    shell.calls("seq 1 11");
    let mut lines = vec![Shell::typed(1, "seq 1 11")];
    lines.extend((1..=11).map(|number| number.to_string()));
    lines
}

#[test]
fn ctrl_z_stops_the_job_and_attach_goes_on_with_it() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start_sized(&sandbox, (100, 24)) else { return };
    let command = "outlast run 'echo up; read x; echo got $x'";
    shell.enter(command);
    shell.wait_for("up");
    shell.press(&["C-z"]);
    shell.comes_back();
    assert_eq!(sandbox.json(["jobs"])["jobs"][0]["activity"], "stopped");
    let shown = sandbox.run(["jobs"]).ok().text();
    assert!(shown.contains("stopped"), "{shown}");
    shell.calls("echo $?");
    shell.enter("outlast fg 1");
    shell.wait_for("attached to job");
    shell.press(&["y", "o", "Enter"]);
    shell.comes_back();
    shell.shows_all(vec![
        Shell::typed(1, command),
        "up".into(),
        "^Z".into(),
        "outlast: job 1 is stopped; go on with it: outlast attach 1   end it: outlast kill 1".into(),
        Shell::typed(2, "echo $?"),
        "148".into(),
        Shell::typed(3, "outlast fg 1"),
        "up".into(),
        "^Zyo".into(),
        "got yo".into(),
        "[job 1 has ended: exit code 0]".into(),
    ]);
}

#[test]
fn ctrl_c_is_not_explained_to_whoever_pressed_it() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start(&sandbox) else { return };
    shell.enter("outlast run 'printf u; echo p; sleep 1000'");
    shell.wait_for("up");
    shell.press(&["C-c"]);
    shell.comes_back();
    shell.calls("echo $?");
    shell.shows_all(vec![
        Shell::typed(1, "outlast run 'printf u; echo p; sleep 1000'"),
        "up".into(),
        "^C".into(),
        Shell::typed(2, "echo $?"),
        "130".into(),
    ]);
    let info = sandbox.json(["jobs", "--all"])["jobs"][0].clone();
    assert_eq!(info["ended_by"], "by Ctrl-C typed by session person", "{info}");
}

#[test]
fn a_question_on_the_terminal_beside_a_redirected_input_is_answered_with_keys() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start(&sandbox) else { return };
    // As sudo does.
    let script = "read -rsp 'Pass''word: ' secret </dev/tty; echo; echo ${#secret}; cat\n";
    std::fs::write(sandbox.work().join("asks"), script).unwrap();
    std::fs::write(sandbox.work().join("data"), "one\ntwo\n").unwrap();
    let command = "outlast run bash asks < data";
    shell.enter(command);
    shell.wait_for("Password:");
    shell.waits_until_unseen();
    shell.press(&["a", "b", "c", "Enter"]);
    shell.comes_back();
    shell.shows_all(vec![
        Shell::typed(1, command),
        "Password:".into(),
        "3".into(),
        "one".into(),
        "two".into(),
    ]);
}

#[test]
fn a_job_behind_an_ampersand_does_not_stop_and_takes_no_keys() {
    let sandbox = sandbox();
    let Some(shell) = Shell::start(&sandbox) else { return };
    // With job control, as a person has it: whoever touches the terminal from behind is stopped.
    shell.enter("outlast run 'echo begun; until test -e go; do sleep 0.05; done; echo mid\"\"dle' &");
    shell.wait_for("begun");
    // What is typed is for the shell, and the job's output comes while it is typed.
    shell.enter("touch go; wait; jobs > left; touch waited");
    eventually("the client ends with its job", TEST_TIMEOUT, || {
        Some(()).filter(|()| sandbox.work().join("waited").exists()).ok_or_else(|| shell.lines().join("\n"))
    });
    assert!(shell.lines().iter().any(|line| line == "middle"), "{}", shell.lines().join("\n"));
    assert_eq!(std::fs::read_to_string(sandbox.work().join("left")).unwrap(), "");
    assert_eq!(sandbox.info(1)["code"], 0);
}

#[test]
fn what_is_typed_after_the_end_is_for_the_shell() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start(&sandbox) else { return };
    for number in 1..=3 {
        let command = format!("outlast run 'sleep 0.3' # {number}");
        shell.enter(&command);
        eventually("the job", TEST_TIMEOUT, || {
            Some(()).filter(|()| sandbox.job(number).exists()).ok_or("none")
        });
        sandbox.wait_for_end(number);
        shell.enter("echo ok");
        shell.has_passed_a_prompt();
        shell.comes_back();
    }
    let lines = shell.lines();
    assert_eq!(lines.iter().filter(|line| *line == "ok").count(), 3, "{}", lines.join("\n"));
}

/// Runs a session by itself and as a job, from the same row; both must look the same.
#[track_caller]
fn looks_as_without_us(program: &str, prompt: &str, then: &[(&[&str], &str)]) {
    let looks = |before: &str| {
        let sandbox = sandbox();
        let mut shell = Shell::start(&sandbox)?;
        goes_to_row_15(&mut shell);
        shell.enter(&format!("{before}{program}"));
        shell.wait_for(prompt);
        let mut screens = vec![];
        for (keys, wanted) in then {
            shell.press(keys);
            shell.wait_for(wanted);
            // It may draw in several steps: until two looks in a row agree.
            screens.push(eventually("a still screen", TEST_TIMEOUT, || {
                let look =
                    || (shell.shows(), shell.tmux(&["display-message", "-p", "#{cursor_y} #{cursor_x}"]));
                let first = look();
                std::thread::sleep(std::time::Duration::from_millis(200));
                if first == look() { Ok(first) } else { Err("it draws") }
            }));
        }
        Some(screens)
    };
    let (Some(alone), Some(as_job)) = (looks(""), looks("outlast run ")) else { return };
    for ((alone, _), (as_job, _)) in alone.iter().zip(&as_job) {
        // Only the line that was typed differs, also where it wraps.
        let is_typed = |row: &str| row.starts_with("2 $") || !row.is_empty() && program.ends_with(row);
        let rest =
            |rows: &[String]| -> Vec<String> { rows.iter().filter(|row| !is_typed(row)).cloned().collect() };
        assert_eq!(rest(alone), rest(as_job));
    }
    let cursors = |screens: &[(Vec<String>, String)]| -> Vec<String> {
        screens.iter().map(|screen| screen.1.clone()).collect()
    };
    assert_eq!(cursors(&alone), cursors(&as_job));
}

#[test]
fn fish_in_row_15_draws_where_it_would_without_us() {
    if has("fish") {
        looks_as_without_us(
            "fish --no-config",
            "#",
            &[(&["e", "c", "h", "o", "Space", "a", "Enter"], "a"), (&["l", "s"], "ls")],
        );
    }
}

#[test]
fn ipython_in_row_15_draws_where_it_would_without_us() {
    if has("ipython3") {
        let then: &[(&[&str], &str)] =
            &[(&["6", "*", "7", "Enter"], "Out[1]: 42"), (&["i", "m", "p", "Tab"], "import")];
        looks_as_without_us("ipython3 --no-banner --no-confirm-exit", "In [1]:", then);
    }
}

#[test]
fn prompt_toolkit_in_row_15_draws_where_it_would_without_us() {
    let python = "/usr/bin/python3";
    let has_it = std::process::Command::new(python).args(["-c", "import prompt_toolkit"]).output();
    if !has_it.is_ok_and(|ran| ran.status.success()) {
        return left_out("there is no prompt_toolkit", "apt-get install python3-prompt-toolkit");
    }
    // A line below the prompt, which is drawn by where the cursor is.
    let line =
        "from prompt_toolkit import prompt; print(len(prompt('p'+'t> ', bottom_toolbar='tool'+'bar')))";
    let then: &[(&[&str], &str)] = &[(&["a", "b", "c"], "pt> abc"), (&["Enter"], "3")];
    looks_as_without_us(&format!("{python} -c \"{line}\""), "pt>", then);
}

#[test]
fn a_program_that_draws_by_row_numbers_draws_below_the_prompt() {
    draws_by_row_numbers(|_| {});
}

/// Symptom that this guards against: a signal about the size, which has stayed the same, and the program's screen is moved to the
/// top of the terminal as if nobody knew where it begins.
#[test]
fn a_size_that_is_told_again_moves_nothing() {
    draws_by_row_numbers(|shell| {
        let pane = shell.tmux(&["display-message", "-p", "#{pane_pid}"]);
        let pid = Pid::from_raw(pane.trim().parse().unwrap()).unwrap();
        let client = outlast_pty::procfs::children(pid).first().copied().unwrap();
        kill_process(client, Signal::WINCH).unwrap();
    });
}

/// The program asks where its cursor is, after `meanwhile`, and draws there.
fn draws_by_row_numbers(meanwhile: impl Fn(&Shell)) {
    let script = "echo first; until test -e go; do sleep 0.02; done; stty raw -echo; printf '\\033[6n'; IFS=';' read -d R row col; stty sane; \
                  printf '\\033[%s;1Hdrawn in %s\\n' ${row#*[} ${row#*[}";
    // A machine under load may answer too late where its cursor is: then the rows are made to agree in another way.
    for _ in 0..5 {
        let sandbox = sandbox();
        let Some(mut shell) = Shell::start(&sandbox) else { return };
        std::fs::write(sandbox.work().join("asks"), script).unwrap();
        let mut wanted = goes_to_row_15(&mut shell);
        shell.enter("outlast run -- bash asks");
        shell.wait_for("first");
        meanwhile(&shell);
        std::fs::write(sandbox.work().join("go"), "").unwrap();
        shell.comes_back();
        let is_known = sandbox.info(1).get("cursor_at_start").is_some();
        if is_known && shell.lines().iter().any(|line| line == "drawn in 16") {
            wanted.extend([
                Shell::typed(2, "outlast run -- bash asks"),
                "first".into(),
                "drawn in 16".into(),
            ]);
            return shell.shows_all(wanted);
        }
    }
    panic!("the terminal never said where its cursor is");
}

#[test]
fn what_was_printed_can_be_shown_again_without_harm() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start(&sandbox) else { return };
    // Mouse, hidden cursor, line drawing, insert mode, and no newline at the end.
    let modes = r"\033[?1000h\033[?25l\033(0\033[4h";
    sandbox.run(["run", &format!("printf 'one\\ntwo{modes}'")]).ok();
    let again = ["outlast logs 1", "outlast logs -f 1", "outlast read --raw 1"];
    let mut wanted = Vec::new();
    for (index, command) in again.into_iter().enumerate() {
        shell.calls(command);
        wanted.extend([Shell::typed(index + 1, command), "one".into(), "two".into()]);
    }
    shell.shows_all(wanted);
    assert_eq!(shell.tmux(&["display-message", "-p", "#{cursor_flag} #{mouse_any_flag}"]).trim(), "1 0");
}

#[test]
fn a_line_of_a_wide_terminal_is_one_line() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start_sized(&sandbox, (200, 24)) else { return };
    let wide = "outlast run 'printf %0180d 7; echo; stty size'";
    shell.calls(wide);
    shell.shows_all(vec![Shell::typed(1, wide), format!("{:0180}", 7), "24 200".into()]);
}

/// Whoever runs something after `&&` must not do so while the job goes on.
#[test]
fn a_run_whose_reader_has_gone_does_not_say_that_all_is_well() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start_sized(&sandbox, (100, 24)) else { return };
    shell.calls("outlast run 'while echo y; do sleep 0.01; done' 2>said | head -n 1; echo ${PIPESTATUS[*]}");
    let lines = shell.lines();
    assert!(lines.iter().any(|line| line == "4 0"), "{}", lines.join("\n"));
    let said = std::fs::read_to_string(sandbox.work().join("said")).unwrap();
    assert!(said.contains("nobody reads the output any more") && said.contains("job 1 runs on"), "{said}");
    sandbox.run(["kill", "1"]).ok();
}

/// An agent's own command may take its time: so much is said on a terminal, and nothing of it stays.
#[test]
fn what_takes_long_says_so_on_a_terminal_and_nowhere_else() {
    let sandbox = sandbox();
    let Some(mut shell) = Shell::start_sized(&sandbox, (100, 24)) else { return };
    let bin = sandbox.work().join("tools");
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(bin.join("claude"), "#!/bin/sh\nuntil test -e go; do sleep 0.1; done; exit 3\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(bin.join("claude"), mode).unwrap();
    shell.calls("export PATH=$PWD/tools:$PATH");
    shell.enter("outlast install --client claude");
    shell.wait_for("running claude mcp add");
    std::fs::write(sandbox.work().join("go"), "").unwrap();
    shell.comes_back();
    let lines = shell.lines();
    assert!(!lines.iter().any(|line| line.contains("running claude")), "{}", lines.join("\n"));
    assert!(lines.iter().any(|line| line.contains("failed (exit status: 3)")), "{}", lines.join("\n"));
    std::fs::remove_file(sandbox.work().join("go")).unwrap();
    shell.calls("(sleep 2; touch go) & outlast install --client claude 2>said; wait");
    let said = std::fs::read_to_string(sandbox.work().join("said")).unwrap();
    assert!(said.contains("failed") && !said.contains("running claude"), "{said}");
}
