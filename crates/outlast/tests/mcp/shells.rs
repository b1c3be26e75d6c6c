//! Commands in a shell that remembers, as an agent runs them.

use serde_json::json;

use crate::client::{Sandbox, text};

#[test]
fn a_shell_remembers_from_call_to_call() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let run = |command: &str| json!({"command": command, "shell": "main"});
    let first = client.call("run_shell_command", run("mkdir sub && cd sub && export A=5"));
    assert!(text(&first).starts_with("job 1 · shell main, step 1 · exit 0\n"), "{}", text(&first));
    assert!(text(&first).contains("now in ") && text(&first).contains("/sub"), "{}", text(&first));
    let second = client.tool("run_shell_command", run("echo $A; basename $PWD; (exit 3)"));
    assert_eq!(
        (&second["output"], &second["exit_code"], &second["step"], &second["status"], &second["shell"]),
        (&json!("5\nsub\n"), &json!(3), &json!(2), &json!("failed"), &json!("main")),
        "{second}"
    );
    let once = client.tool(
        "run_shell_command",
        json!({"command": "echo $A $PWD", "shell": "main", "env": {"A": "6"}, "dir_path": "/"}),
    );
    assert_eq!(once["output"], "6 /\n", "{once}");
    assert_eq!(client.tool("run_shell_command", run("echo $A"))["output"], "5\n");
    let piped = client.call("run_shell_command", run("false | true"));
    assert!(text(&piped).contains("pipeline: 1 0"), "{}", text(&piped));
    let unknown = client.call("run_shell_command", run("nosuchprogram"));
    assert!(text(&unknown).contains("rc=true"), "{}", text(&unknown));
}

#[test]
fn a_step_past_its_time_goes_on_is_typed_into_waited_for_and_ended() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let asked = client.call(
        "run_shell_command",
        json!({"command": "read -p 'Name? ' n; echo hi $n; sleep 1000", "shell": "main", "ai_callback_delay": 20}),
    );
    assert!(text(&asked).contains("shell main, step 1 · awaiting input"), "{}", text(&asked));
    let typed = client.tool(
        "send_input",
        json!({"handle": "1", "input": "Ann", "ai_callback_pattern": "hi \\w+", "pattern_timeout": 20}),
    );
    assert_eq!(typed["status"], "running", "{typed}");
    let queued = client.call(
        "run_shell_command",
        json!({"command": "echo queued", "shell": "main", "ai_callback_delay": 0.2}),
    );
    assert!(text(&queued).contains("step 2 · waits for the step before it"), "{}", text(&queued));
    let killed = client.call("kill", json!({"handle": "1"}));
    assert!(text(&killed).contains("the shell stays"), "{}", text(&killed));
    let after = client.tool("wait_for", json!({"handle": "1", "timeout": 20}));
    assert_eq!((&after["step"], &after["exit_code"]), (&json!(2), &json!(0)), "{after}");
}
