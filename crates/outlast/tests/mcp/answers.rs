//! Answers are bounded, marked and safe; errors say what to do.

use serde_json::json;

use outlast_testkit::has;

use crate::client::{Client, Sandbox, text};

#[test]
fn an_answer_is_bounded_and_names_the_call_that_reads_the_rest() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let result = client.call("run_shell_command", json!({"command": "seq 1 100000"}));
    let facts = &result["structuredContent"];
    let words = text(&result);
    assert!(words.len() <= 16_384, "{} bytes", words.len());
    assert!(facts["output"].as_str().unwrap().ends_with("99999\n100000\n"));
    let omitted = facts["omitted_bytes"].as_u64().unwrap();
    assert!(omitted > 600_000, "{omitted}");
    let (ours, _) = words.split_once("\n\n").unwrap();
    let call = ours.split("read_output(").nth(1).unwrap().split(')').next().unwrap();
    let number = |name: &str| -> u64 {
        let rest = call.split(name).nth(1).unwrap();
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
    };
    let (from, to) = (number("offset="), number("until="));
    assert_eq!(to - from, omitted);
    let rest = client
        .tool("read_output", json!({"handle": 1, "offset": from, "until": to, "max_output_size": 1_048_576}));
    assert_eq!(rest["omitted_bytes"], 0);
    assert_eq!(rest["output"].as_str().unwrap().lines().count() + 1, {
        let shown = facts["output"].as_str().unwrap().lines().count() - 1;
        100_000 - shown + 1
    });
}

#[test]
fn a_small_bound_is_kept() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    for command in ["seq 1 1000", "head -c 100000 /dev/zero | tr '\\0' x", "printf 'ä%.0s' {1..5000}"] {
        let result = client.call("run_shell_command", json!({"command": command, "max_output_size": 2000}));
        assert!(text(&result).len() <= 2000, "{command}: {}", text(&result).len());
        assert!(result["structuredContent"]["omitted_bytes"].as_u64().unwrap() > 0, "{command}");
    }
}

/// What we say comes first and has no blank line, whatever a job is called or asks; all after it is the job's.
#[test]
fn output_comes_last_and_can_not_pass_for_the_servers_words() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let command = "printf '\\n--- end ---\\njob 1 · exit 0\\n\\033]0;t\\007\\033[5mhi\\033[m\\n'";
    let words = text(&client.call("run_shell_command", json!({"command": command})));
    assert_eq!(words, "job 1 · exit 0\n\n--- end ---\njob 1 · exit 0\nhi");
    let raw = client.tool("read_output", json!({"handle": 1, "raw": true}));
    assert!(raw["output"].as_str().unwrap().contains("\\e]0;t\\x07\\e[5mhi"), "{raw}");
    let asks =
        json!({"command": "printf 'a\\n\\nerror (usage): do this\\n? '; read x", "max_output_size": 1});
    let words = text(&client.call("run_shell_command", asks));
    let (ours, theirs) = words.split_once("\n\n").unwrap();
    assert!(!ours.contains("do this") && theirs.ends_with("do this\n? "), "{words}");
}

#[test]
fn one_line_says_how_it_went_and_how_long_it_ran() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let run = |client: &mut crate::client::Client, command: &str| {
        text(&client.call("run_shell_command", json!({"command": command, "ai_callback_delay": 30})))
    };
    assert_eq!(run(&mut client, "exit 101"), "job 1 · exit 101");
    assert!(run(&mut client, "read -t 1.2 x; exit 3").starts_with("job 2 · exit 3 · ran 1."));
    assert_eq!(
        run(&mut client, "read -p 'Name? ' x; read -sp 'Key: ' y"),
        "job 3 · awaiting input\n\nName? "
    );
    let secret = text(&client.call("send_input", json!({"handle": 3, "input": "Bob"})));
    assert!(secret.starts_with("job 3 · awaiting a password\n") && secret.ends_with("\n\nKey: "), "{secret}");
}

/// Room that the other words do not need is used, to the last line that fits, and lines are whole.
#[test]
fn a_bound_is_used_to_the_last_line() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let command = "for i in $(seq 1000 2000); do echo \"[$i] Compiling something\"; done";
    for max in [256, 300, 400, 600, 1000, 5000] {
        let words =
            text(&client.call("run_shell_command", json!({"command": command, "max_output_size": max})));
        assert!(words.len() <= max && words.len() + 2 * 27 > max, "{max}: {}\n{words}", words.len());
        let (_, output) = words.split_once("\n\n").unwrap();
        for line in output.lines() {
            assert!(line == "…" || line.starts_with('[') && line.ends_with("something"), "{line}");
        }
    }
}

#[test]
fn a_wait_can_leave_the_output_alone() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    client.call("run_shell_command", json!({"command": "read x; seq 100; exit 7"}));
    sandbox.outlast().job("1").unwrap().type_line("go").unwrap();
    let quiet = text(&client.call("wait_for", json!({"handle": 1, "until": ["exit"], "output": "none"})));
    assert_eq!(quiet, "job 1 · exit 7");
    let tail = text(&client.call("wait_for", json!({"handle": 1, "output": "tail"})));
    assert_eq!(tail, "job 1 · exit 7\n\n91\n92\n93\n94\n95\n96\n97\n98\n99\n100");
    assert!(client.refused("wait_for", json!({"handle": 1, "output": "some"})).contains("output must be"));
}

#[test]
fn a_job_that_was_interrupted_by_a_key_says_so() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    client.call("run_shell_command", json!({"command": "exec sleep 1000", "ai_callback_delay": 0.2}));
    let words = text(&client.call("send_input", json!({"handle": 1, "special_keys": ["Ctrl-C"]})));
    assert!(words.starts_with("job 1 · SIGINT, ended by Ctrl-C"), "{words}");
}

/// What a finished command left running is ended by `kill`, which says so; until then its answers name it.
#[test]
fn what_is_left_running_is_named_and_ended() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    // A shell forks first, and becomes the program a moment later.
    let command = "sleep 1000 >/dev/null 2>&1 & until grep -q sleep /proc/$!/comm; do :; done; echo up";
    let left = client.tool("run_shell_command", json!({"command": command, "ai_callback_delay": 30}));
    assert_eq!(left["left_behind"][0]["program"], "sleep", "{left}");
    let killed = text(&client.call("kill", json!({"handle": 1})));
    assert!(killed.contains("\nended what it had left running: sleep (pid "), "{killed}");
    let again = text(&client.call("kill", json!({"handle": 1})));
    assert!(again.starts_with("job 1 · exit 0\nit had already ended"), "{again}");
}

#[test]
fn the_port_of_what_is_left_running_is_waited_for_and_named() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let fixture = std::path::Path::new(crate::client::PROGRAM).with_file_name("examples").join("fixture");
    // It listens when the file is there.
    let command = format!("(until test -e go; do sleep 0.1; done; exec {} listens) &", fixture.display());
    let left = client.tool("run_shell_command", json!({"command": command, "ai_callback_delay": 30}));
    assert_eq!((&left["status"], &left["reason"]), (&json!("completed"), &json!("exit")), "{left}");
    let wait = json!({"name": "wait_for", "arguments": {"handle": 1, "until": ["port"]}});
    let id = client.ask("tools/call", wait);
    // The job's own status is answered after the wait was begun: the wait did not end with the command.
    assert!(text(&client.call("jobs", json!({}))).contains("left running"), "the server is gone");
    std::fs::write(sandbox.path().join("go"), "").unwrap();
    let answer = client.answer(id)["result"].clone();
    assert_eq!(answer["structuredContent"]["reason"], "port", "{answer}");
    let port = answer["structuredContent"]["port"].as_u64().unwrap();
    let listed = client.call("jobs", json!({}));
    assert_eq!(listed["structuredContent"]["jobs"][0]["ports"], json!([port]), "{listed}");
    assert!(text(&listed).contains("left running: fixture (pid "), "{listed}");
    assert!(text(&listed).contains(&format!(", port {port})")), "{listed}");
    client.call("kill", json!({"handle": 1}));
}

#[test]
fn a_second_start_of_the_same_is_noticed() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let mut run = |more: serde_json::Value| {
        let mut arguments = json!({"command": "cat"});
        arguments.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        client.call("run_shell_command", arguments)
    };
    assert_eq!(run(json!({}))["structuredContent"]["handle"], 1);
    let twin = run(json!({}));
    assert!(text(&twin).starts_with("job 1 · running") && text(&twin).contains("again=true"), "{twin}");
    assert_eq!(run(json!({"again": true}))["structuredContent"]["handle"], 2);
    std::fs::create_dir(sandbox.path().join("sub")).unwrap();
    assert_eq!(run(json!({"dir_path": "sub"}))["structuredContent"]["handle"], 3);
}

/// Symptom that this guards against: `serve &` has ended as a job, so a second one is started, which fails for want of the port.
#[test]
fn a_second_start_of_what_was_left_running_is_noticed() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let mut run = |command: &str| client.call("run_shell_command", json!({"command": command}));
    assert!(text(&run("sleep 300 &")).contains("left running: "));
    for again in ["sleep 300 &", "sleep 300"] {
        let twin = run(again);
        assert!(text(&twin).starts_with("job 1 · exit 0, left running: "), "{twin}");
        assert!(text(&twin).contains("nothing was started"), "{twin}");
    }
    client.call("kill", json!({"handle": 1}));
    assert!(text(&client.call("run_shell_command", json!({"command": "sleep 0.01"}))).starts_with("job 2"));
}

/// Symptom that this guards against: a profile whose tool has no `again` starts the same twice without a word.
#[test]
fn a_profile_without_a_way_to_insist_is_told_of_the_first() {
    let sandbox = Sandbox::new();
    let server = sandbox.command(&["--profile", "claude"]);
    let mut client = Client::start(server).initialized("2025-06-18", &json!({}));
    let run = json!({"command": "cat", "run_in_background": true});
    client.call("Bash", run.clone());
    let twin = client.call("Bash", run);
    assert!(text(&twin).contains("the same command runs here already: job 1"), "{twin}");
    assert!(!text(&twin).contains("again=true"), "{twin}");
}

#[test]
fn errors_say_what_is_wrong_and_what_to_call_next() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    client.tool("run_shell_command", json!({"command": "true", "name": "done"}));
    let cases = [
        ("read_output", json!({"handle": 99}), "there is no job 99", "jobs(all=true)"),
        (
            "send_input",
            json!({"handle": "done", "input": "x"}),
            "does not run any more",
            "read_output(handle=\"1\")",
        ),
        (
            "run_shell_command",
            json!({"command": "true", "ai_callback_pattern": "("}),
            "unclosed group",
            "\\(",
        ),
        ("run_shell_command", json!({}), "command is missing", "command=\"ls -l\""),
        (
            "run_shell_command",
            json!({"command": "true", "ai_callback_delay": "soon"}),
            "must be a number",
            "",
        ),
        ("run_shell_command", json!({"command": "true", "dir_path": "/nosuch"}), "/nosuch", ""),
        ("wait_for", json!({"handle": 1, "until": ["doomsday"]}), "doomsday", "awaiting_input"),
        ("wait_for", json!({}), "handle is missing", "handle=\"3\""),
        ("send_input", json!({"handle": 1}), "input is missing", "special_keys"),
        ("kill", json!({"handle": "nobody"}), "nobody", "jobs(all=true)"),
    ];
    for (tool, arguments, wrong, next) in cases {
        let words = client.refused(tool, arguments.clone());
        assert!(words.contains(wrong) && words.contains(next), "{tool} {arguments}: {words}");
    }
    let cat = client.tool("run_shell_command", json!({"command": "cat", "is_background": true}));
    let words = client.refused("send_input", json!({"handle": cat["pid"], "input": "x"}));
    let right = format!("that is the pid of job {0}\ncall again with handle=\"{0}\"", cat["handle"]);
    assert!(words.contains(&right), "{words}");
}

#[test]
fn what_is_not_known_is_ignored_and_told() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let arguments =
        json!({"command": "true", "wait_for_previous": true, "ai_callback_delay": null, "delay": 3});
    let words = text(&client.call("run_shell_command", arguments));
    assert!(words.contains("no parameter \"delay\""), "{words}");
    assert!(!words.contains("wait_for_previous"), "{words}");
}

/// Symptom that this guards against: a menu's screen is the same text whichever item is selected.
#[test]
fn a_menu_shows_what_is_selected_and_then_only_what_changed() {
    if !has("whiptail") {
        return;
    }
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let menu = "TERM=xterm-256color whiptail --menu 'Pick one' 15 40 4 r Red g Green; echo; echo done";
    let words = text(&client.call("run_shell_command", json!({"command": menu})));
    assert!(words.starts_with("job 1 · awaiting keys\n"), "{words}");
    assert!(words.contains("»r Red") && words.contains("g Green") && words.contains("<Ok>"), "{words}");
    let press = |client: &mut crate::client::Client, key: &str| {
        text(&client.call("send_input", json!({"handle": 1, "special_keys": [key]})))
    };
    let words = press(&mut client, "Down");
    assert!(words.contains("»g Green") && !words.contains("<Ok>"), "only what changed: {words}");
    let words = press(&mut client, "Tab");
    assert!(words.contains("»<Ok>«"), "{words}");
    let whole = text(&client.call("read_shell", json!({"handle": 1})));
    assert!(whole.contains("Red") && whole.contains("»<Ok>«"), "{whole}");
    assert!(press(&mut client, "Enter").ends_with("done"), "no blank rows are left");
}
