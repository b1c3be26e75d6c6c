//! No secret reaches an agent: not from the environment, not by a prompt, not in output that is cut anywhere.

use serde_json::{Value, json};

use crate::client::{Client, Sandbox};

const SECRET: &str = "q7Rt-zebra9/KLm2+x";

/// A server whose own environment has a secret, as an agent's would.
fn client(sandbox: &Sandbox) -> Client {
    let mut command = sandbox.command(&[]);
    command.env("DEPLOY_TOKEN", SECRET);
    Client::start(command).initialized("2025-06-18", &json!({}))
}

/// Insists that no four bytes of the secret in a row are in what the server said.
#[track_caller]
fn assert_hidden(said: &Value) {
    let said = said.to_string();
    for piece in SECRET.as_bytes().windows(4) {
        let piece = std::str::from_utf8(piece).unwrap();
        assert!(!said.contains(piece), "{piece:?} is in {said}");
    }
}

/// Everything that an agent can ask about a job.
#[track_caller]
fn ask_everything(client: &mut Client, handle: u64) {
    let end = client.tool("jobs", json!({}))["jobs"][0]["unread_bytes"].as_u64().unwrap_or(0) + 400;
    let asks = [
        ("jobs", json!({"all": true})),
        ("read_shell", json!({"handle": handle, "scrollback": 50})),
        ("read_output", json!({"handle": handle, "offset": 0})),
        ("read_output", json!({"handle": handle, "raw": true})),
        ("read_output", json!({"handle": handle, "tail": 1})),
        ("read_output", json!({"handle": handle, "pattern": "."})),
        ("read_output", json!({"handle": handle, "offset": end / 2, "until": end / 2 + 9})),
        (
            "wait_for",
            json!({"handle": handle, "until": ["pattern"], "pattern": "(q7?.?.?.?.?.?.?.?.?.?)", "offset": 0, "timeout": 0}),
        ),
    ];
    for (tool, arguments) in asks {
        assert_hidden(&client.call(tool, arguments));
    }
    for part in ["screen", "transcript", "events"] {
        let uri = format!("outlast://jobs/{handle}/{part}");
        assert_hidden(&client.request("resources/read", json!({"uri": uri})));
    }
    assert_hidden(&client.request("resources/list", json!({})));
}

#[test]
fn a_secret_cut_at_every_border_reaches_no_agent() {
    let sandbox = Sandbox::new();
    let mut client = client(&sandbox);
    // Prints the secret up to a border, waits, prints the rest: once for each border.
    let command = r#"S=$DEPLOY_TOKEN; for i in $(seq 1 ${#S}); do printf 'at %s: %s' $i "${S:0:i}"; read x
        printf '%s|\n' "${S:i}"; done; echo done"#;
    let run = client.call("run_shell_command", json!({"command": command}));
    assert_hidden(&run);
    let handle = run["structuredContent"]["handle"].as_u64().unwrap();
    for border in 1..=SECRET.len() {
        let asks = format!("at {border}: ");
        let waited =
            json!({"handle": handle, "until": ["pattern"], "pattern": asks, "timeout": 20, "offset": 0});
        assert_hidden(&client.call("wait_for", waited));
        assert_hidden(
            &client.call("wait_for", json!({"handle": handle, "until": ["awaiting_input"], "timeout": 20})),
        );
        ask_everything(&mut client, handle);
        assert_hidden(&client.call("send_input", json!({"handle": handle, "input": ""})));
    }
    let end = client.tool("wait_for", json!({"handle": handle, "until": ["exit"], "timeout": 20}));
    assert_eq!(end["reason"], "exit", "{end}");
    ask_everything(&mut client, handle);
    let log = std::fs::read_to_string(sandbox.path().join(format!("home/jobs/{handle}/output.log"))).unwrap();
    assert!(log.contains(SECRET), "the user's own log is whole");
    for file in ["stdout.txt", "events.jsonl", "info.json", "masks", "screen.txt"] {
        let text =
            std::fs::read_to_string(sandbox.path().join(format!("home/jobs/{handle}/{file}"))).unwrap();
        assert_hidden(&json!(text));
    }
}

#[test]
fn a_log_read_in_pieces_of_any_size_gives_no_secret_away() {
    let sandbox = Sandbox::new();
    let mut client = client(&sandbox);
    let run = client.tool(
        "run_shell_command",
        json!({"command": "printf 'a%sb\\n' \"$DEPLOY_TOKEN\"; cat /proc/self/environ; env"}),
    );
    assert_hidden(&run);
    let mut together = String::new();
    for offset in 0..SECRET.len() + 3 {
        let piece = json!({"handle": 1, "offset": offset, "until": offset + 1, "raw": true});
        let facts = client.tool("read_output", piece);
        together.push_str(facts["output"].as_str().unwrap());
    }
    assert_eq!(together, format!("a{}b\\r", "*".repeat(SECRET.len())), "byte by byte");
}

#[test]
fn prompts_titles_colours_and_wrapped_rows_show_no_secret() {
    let sandbox = Sandbox::new();
    let mut client = client(&sandbox);
    let command = r#"S=$DEPLOY_TOKEN; printf '\033]0;deploy %s\007' "$S"; printf '\033[31m%s\033[1m%s\033[0m\n' "${S:0:7}" "${S:7}"
        printf '%0110d%s\n' 0 "$S"; printf '\033[5;10H%s\033[20;1H\n' "$S"; read -p "key [$S]: " x"#;
    let run = client.call("run_shell_command", json!({"command": command}));
    assert_eq!(run["structuredContent"]["reason"], "awaiting_input", "{run}");
    assert!(
        run["structuredContent"]["awaiting_input"]["prompt"].as_str().unwrap().contains("key [****"),
        "{run}"
    );
    assert_hidden(&run);
    ask_everything(&mut client, 1);
    client.tool("kill", json!({"handle": 1}));
    ask_everything(&mut client, 1);
}

/// A person's job, for example: its record has the secret in it, whether it runs or has ended.
#[test]
fn a_secret_in_a_command_is_in_no_list() {
    let sandbox = Sandbox::new();
    let mut client = client(&sandbox);
    client.call(
        "run_shell_command",
        json!({"command": format!("read x; : {SECRET}"), "description": format!("for {SECRET}"), "is_background": true}),
    );
    for status in ["running", "killed"] {
        let list = client.call("jobs", json!({}));
        assert_eq!(list["structuredContent"]["jobs"][0]["status"], status, "{list}");
        assert_hidden(&list);
        client.tool("kill", json!({"handle": 1}));
    }
}

#[test]
fn a_pattern_can_not_be_used_to_guess_a_secret() {
    let sandbox = Sandbox::new();
    let mut client = client(&sandbox);
    client.tool(
        "run_shell_command",
        json!({"command": "echo \"it is $DEPLOY_TOKEN\"; sleep 60", "is_background": true}),
    );
    client.tool("wait_for", json!({"handle": 1, "pattern": "it is", "offset": 0, "timeout": 20}));
    let guess = client.tool(
        "wait_for",
        json!({"handle": 1, "until": ["pattern"], "pattern": "is q", "offset": 0, "timeout": 0.3}),
    );
    assert_eq!(guess["reason"], "deadline", "{guess}");
    let lines = client.call("read_output", json!({"handle": 1, "pattern": "zebra"}));
    assert!(lines.to_string().contains("no line"), "{lines}");
    client.tool("kill", json!({"handle": 1}));
    let guess = client.tool(
        "wait_for",
        json!({"handle": 1, "until": ["pattern"], "pattern": "is q", "offset": 0, "timeout": 1}),
    );
    assert_eq!(guess["reason"], "exit", "{guess}");
}

#[test]
fn the_user_decides_in_which_sandbox_an_agents_jobs_run() {
    let sandbox = Sandbox::new();
    let config = sandbox.path().join(".config/outlast");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::create_dir_all(sandbox.path().join("work")).unwrap();
    std::fs::write(config.join("config.toml"), "[agents.sandbox]\nnetwork = \"off\"\n").unwrap();
    let mut command = sandbox.command(&[]);
    command.current_dir(sandbox.path().join("work"));
    let mut client = Client::start(command).initialized("2025-06-18", &json!({}));
    let run = json!({"command": "touch in ../out; ls", "network": "on", "sandbox": false});
    let said = client.call("run_shell_command", run);
    if said["isError"] == true {
        // A kernel that can't do it: then nothing runs.
        assert!(said.to_string().contains("can't be had"), "{said}");
        assert!(!sandbox.path().join("work/in").exists());
        return;
    }
    assert!(sandbox.path().join("work/in").exists(), "{said}");
    assert!(!sandbox.path().join("out").exists(), "{said}");
    let home = client.refused("run_shell_command", json!({"command": "touch ran", "dir_path": ".."}));
    assert!(home.contains("the sandbox of agents can't begin"), "{home}");
    assert!(!sandbox.path().join("ran").exists());
}

/// Symptom that this guards against: a value that was drawn right to left is whole on the screen, and in the raw bytes for
/// whoever puts them in order.
#[test]
fn raw_bytes_are_refused_where_a_secret_cannot_be_cut_out() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let value = "k3nvalue-77-otter";
    // Every character at its column, the last one first.
    let cells = value.bytes().enumerate().rev();
    let draw: String = cells.map(|(column, c)| format!("\\033[{}G{}", column + 1, char::from(c))).collect();
    let env = json!({"MY_TOKEN": value});
    let drawn = json!({"command": format!("printf '{draw}\\n'; echo after"), "env": env});
    client.call("run_shell_command", drawn);
    let raw = client.call("read_output", json!({"handle": "1", "offset": 0, "raw": true}));
    let said = raw.to_string();
    assert!(said.contains("in another order"), "{said}");
    assert!(!said.contains("[17G"), "{said}");
    let text = client.call("read_output", json!({"handle": "1", "offset": 0})).to_string();
    assert!(text.contains("after") && !text.contains(value), "{text}");
    // In one piece it is hidden, and the rest is there.
    let plain = json!({"command": format!("echo {value} plain"), "env": {"MY_TOKEN": value}});
    client.call("run_shell_command", plain);
    let raw = client.call("read_output", json!({"handle": "2", "offset": 0, "raw": true})).to_string();
    assert!(raw.contains("plain") && !raw.contains(value), "{raw}");
}
