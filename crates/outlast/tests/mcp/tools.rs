//! Each of the seven tools.

use serde_json::json;

use crate::client::{PROGRAM, Sandbox, text};

#[test]
fn a_fast_failure_is_whole_in_the_first_answer() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let result = client.call("run_shell_command", json!({"command": "echo out; nosuchprogram; exit 7"}));
    let facts = &result["structuredContent"];
    assert_eq!(
        (&facts["status"], &facts["exit_code"], &facts["reason"]),
        (&json!("failed"), &json!(7), &json!("exit"))
    );
    assert!(facts["output"].as_str().unwrap().contains("nosuchprogram: command not found"), "{facts}");
    assert_ne!(result["isError"], true);
    assert!(text(&result).starts_with("job 1 · exit 7\n"), "{}", text(&result));
    let file = facts["output_file"].as_str().unwrap();
    assert!(std::fs::read_to_string(file).unwrap().starts_with("out\r\n"));
}

#[test]
fn no_pager_takes_the_screen_and_the_caller_can_say_otherwise() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let command = "echo $PAGER $GIT_PAGER $MANPAGER $X; echo o=$OUTLAST_HOME";
    let ran =
        client.tool("run_shell_command", json!({"command": command, "env": {"MANPAGER": "less", "X": 1}}));
    // An `outlast` in the job works in the same home.
    let home = sandbox.path().join("home").display().to_string();
    assert_eq!(ran["output"], format!("cat cat less 1\no={home}\n"));
}

#[test]
fn folder_name_and_pipes_are_what_was_asked_for() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    std::fs::create_dir(sandbox.path().join("sub")).unwrap();
    let ran = client.tool(
        "run_shell_command",
        json!({"command": "pwd; echo bad >&2; test -t 1 || echo pipes", "dir_path": "sub", "name": "here", "pty": false}),
    );
    let output = ran["output"].as_str().unwrap();
    assert!(
        output.starts_with(&format!("{}/sub\npipes\n", sandbox.path().canonicalize().unwrap().display())),
        "{output}"
    );
    assert_eq!((output.ends_with("/sub\npipes\n"), &ran["stderr"]), (true, &json!("bad\n")), "{ran}");
    assert_eq!(client.tool("read_output", json!({"handle": "here", "tail": 1}))["output"], "pipes\n");
    assert_eq!(
        client.tool("read_output", json!({"handle": "here", "stderr": true, "offset": 0}))["output"],
        "bad\n"
    );
}

#[test]
fn a_job_in_the_background_is_started_and_found_when_it_speaks() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let command = "echo listening; read x; echo bye";
    let started = client.tool("run_shell_command", json!({"command": command, "is_background": true}));
    assert_eq!((&started["status"], &started["reason"]), (&json!("running"), &json!("started")));
    // It may have been in the first answer already: who waits for it finds it all the same.
    let heard = client.tool("wait_for", json!({"handle": started["handle"], "pattern": "lis(t)ening"}));
    assert_eq!((&heard["reason"], &heard["match"]["captures"]), (&json!("pattern"), &json!(["t"])));
    assert_eq!(heard["match"]["text"], "listening");
}

/// The answer of a start does not wait for anything, unless it is known beforehand that nothing can be executed.
#[test]
fn a_command_that_cannot_be_executed_is_said_in_the_answer_of_its_start() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let mut start = |command: &str| {
        client.tool("run_shell_command", json!({"command": command, "is_background": true, "again": true}))
    };
    for (command, code) in [
        ("no-such-program-here --serve", 127),
        ("./no-such-file", 127),
        ("/etc/passwd", 126),
        ("cd / && PORT=1 no-such-program-here", 127),
    ] {
        let failed = start(command);
        assert_eq!((&failed["reason"], &failed["exit_code"]), (&json!("exit"), &json!(code)), "{failed}");
        assert!(failed["output"].as_str().unwrap().contains("no-such") || code == 126, "{failed}");
    }
    for command in
        ["sleep 1000", "cd / && read x", "$SHELL_OF_NOBODY sleep 1000", "if true; then sleep 1000; fi"]
    {
        let started = start(command);
        assert_eq!(
            (&started["status"], &started["reason"]),
            (&json!("running"), &json!("started")),
            "{started}"
        );
    }
}

#[test]
fn typing_returns_what_came_after_the_input() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let run =
        json!({"command": "while read -p '? ' x; do echo got:$x; done", "ai_callback_pattern": "\\? $"});
    let handle = client.tool("run_shell_command", run)["handle"].clone();
    let send = json!({"handle": handle, "input": "one", "ai_callback_pattern": "got:\\w+\\s+\\? $"});
    let sent = client.tool("send_input", send);
    assert_eq!(sent["reason"], "pattern");
    assert_eq!(sent["output"], "one\ngot:one\n? ");
    // Nothing of it is new any more.
    assert_eq!(client.tool("read_output", json!({"handle": handle}))["output"], "");
}

#[test]
fn the_echo_of_the_input_is_not_taken_for_the_answer() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let run = json!({"command": "echo ready; read x; read -t 0.2 y < <(sleep 1); eval $x", "ai_callback_pattern": "ready"});
    let handle = client.tool("run_shell_command", run)["handle"].clone();
    let sent = client
        .tool("send_input", json!({"handle": handle, "input": "echo DONE", "ai_callback_pattern": "DONE"}));
    assert_eq!(sent["reason"], "pattern");
    assert_eq!(sent["output"], "echo DONE\nDONE\n");
}

#[test]
fn the_screen_is_what_a_person_would_see() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let command = "printf 'a\\rb\\n\\033[31mred\\033[m\\n'; read x";
    let run = json!({"command": command, "ai_callback_pattern": "red"});
    let handle = client.tool("run_shell_command", run)["handle"].clone();
    let shown = client.tool("read_shell", json!({"handle": handle}));
    assert_eq!(shown["screen"]["text"], "b\nred");
    assert_eq!(shown["screen"]["cursor"], json!({"row": 2, "column": 0, "visible": true}));
    client.tool("kill", json!({"handle": handle}));
    let last = client.tool("read_shell", json!({"handle": handle}));
    assert!(last["screen"]["text"].as_str().unwrap().contains("red"), "{last}");
}

#[test]
fn parts_of_the_output_can_be_read() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    client.tool("run_shell_command", json!({"command": "seq 1 20"}));
    let mut read = |arguments: serde_json::Value| {
        let mut arguments = arguments;
        arguments["handle"] = json!(1);
        client.tool("read_output", arguments)["output"].as_str().unwrap().to_owned()
    };
    assert_eq!(read(json!({"head": 2})), "1\n2\n");
    assert_eq!(read(json!({"tail": 2})), "19\n20\n");
    assert_eq!(read(json!({"pattern": "^1?7$"})), "7: 7\n17: 17\n");
    assert_eq!(read(json!({"offset": 0, "until": 6})), "1\n2\n");
    assert_eq!(read(json!({"offset": 0, "until": 3, "raw": true})), "1\\r\n");
}

#[test]
fn the_first_of_several_jobs_ends_the_wait() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    for command in ["sleep 1000", "read x; exit 4"] {
        client.tool("run_shell_command", json!({"command": command, "is_background": true}));
    }
    let id = client.ask(
        "tools/call",
        json!({"name": "wait_for", "arguments": {"handles": [1, "2"], "until": ["exit"]}}),
    );
    sandbox.outlast().job("2").unwrap().type_line("x").unwrap();
    let answer = client.answer(id);
    let facts = &answer["result"]["structuredContent"];
    assert_eq!((&facts["handle"], &facts["exit_code"]), (&json!(2), &json!(4)));
    assert!(text(&answer["result"]).contains("\njob 1 · running\n"), "{answer}");
}

#[test]
fn killing_ends_all_of_it_and_twice_is_no_error() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let command = "trap '' TERM; echo up; while :; do sleep 0.1; done";
    client.tool("run_shell_command", json!({"command": command, "ai_callback_pattern": "up"}));
    let killed = client.tool("kill", json!({"handle": 1}));
    assert_eq!((&killed["status"], &killed["signal"]), (&json!("killed"), &json!("SIGKILL")));
    let again = client.call("kill", json!({"handle": 1}));
    assert!(text(&again).contains("already ended"), "{again}");
}

#[test]
fn what_needs_attention_comes_first() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    client.tool("run_shell_command", json!({"command": "true"}));
    let sleeper =
        json!({"command": "sleep 1000", "is_background": true, "name": "nap", "description": "to rest"});
    client.tool("run_shell_command", sleeper);
    client.tool("run_shell_command", json!({"command": "true"}));
    let result = client.call("jobs", json!({}));
    let jobs = result["structuredContent"]["jobs"].as_array().unwrap();
    let order: Vec<&serde_json::Value> = jobs.iter().map(|job| &job["handle"]).collect();
    assert_eq!(order, [2, 3, 1], "{jobs:#?}");
    assert_eq!((&jobs[0]["name"], &jobs[0]["description"]), (&json!("nap"), &json!("to rest")));
    assert!(text(&result).contains("for: to rest"), "{}", text(&result));
}

#[test]
fn a_question_ends_the_call_and_its_answer_brings_the_next_one() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let command = "while read -p 'name? ' x; do echo hello $x; done";
    let asked = client.tool("run_shell_command", json!({"command": command, "ai_callback_delay": 30}));
    assert_eq!(asked["reason"], "awaiting_input", "{asked}");
    assert_eq!(asked["awaiting_input"]["kind"], "line", "{asked}");
    assert_eq!(asked["output"], "name? ");
    let answered = client.tool("send_input", json!({"handle": 1, "input": "you", "ai_callback_delay": 30}));
    assert_eq!(answered["reason"], "awaiting_input", "{answered}");
    assert_eq!(answered["output"], "you\nhello you\nname? ");
    let first = client.tool("jobs", json!({}))["jobs"][0].clone();
    assert_eq!(first["activity"], "awaiting_input", "{first}");
    let keys = json!({"handle": 1, "special_keys": ["Ctrl-D"], "ai_callback_delay": 30});
    assert_eq!(client.tool("send_input", keys)["reason"], "exit");
}

#[test]
fn a_server_is_told_by_its_port() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let fixture = std::path::Path::new(PROGRAM).with_file_name("examples").join("fixture");
    let run = json!({"command": format!("{} listens", fixture.display()), "ai_callback_delay": 30});
    let up = client.tool("run_shell_command", run);
    assert_eq!(up["reason"], "port", "{up}");
    let output = client.tool("wait_for", json!({"handle": 1, "pattern": "listening on", "offset": 0}));
    assert!(up["port"].as_u64().is_some_and(|port| port > 0), "{up}");
    let text = format!("{}{}", up["output"].as_str().unwrap(), output["output"].as_str().unwrap());
    assert!(text.contains(&format!("listening on {}", up["port"])), "{text}");
}

#[test]
fn the_end_of_input_can_be_typed_alone() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let run = json!({"command": "cat; echo over", "ai_callback_delay": 0.3});
    for (pty, handle) in [(true, 1), (false, 2)] {
        let mut run = run.clone();
        run["pty"] = pty.into();
        client.tool("run_shell_command", run);
        let ended = client.tool("send_input", json!({"handle": handle, "eof": true}));
        assert_eq!((&ended["reason"], &ended["exit_code"]), (&json!("exit"), &json!(0)), "{ended}");
        assert!(ended["output"].as_str().unwrap().ends_with("over\n"), "{ended}");
    }
    client.tool("run_shell_command", run);
    let keys = client.tool("send_input", json!({"handle": 3, "special_keys": ["Ctrl-D"]}));
    assert_eq!(keys["reason"], "exit", "{keys}");
    client.tool("run_shell_command", json!({"command": "read x; echo got:$x"}));
    let enter = client.tool("send_input", json!({"handle": 4, "append_newline": true}));
    assert!(enter["output"].as_str().unwrap().contains("got:\n"), "{enter}");
    assert!(client.refused("send_input", json!({"handle": 4})).contains("input is missing"));
}
