//! Every tool of every profile goes through the gate, once: what is denied is refused, noted once, and does
//! nothing.

use outlast_protocol::Tool;
use serde_json::{Map, Value, json};

use crate::client::{Client, Sandbox};

const PROFILES: [&str; 4] = ["plain", "gemini", "codex", "claude"];

/// Tools whose whole effect is an answer.
const LOOKS: [Tool; 4] = [Tool::Screen, Tool::Read, Tool::Wait, Tool::Jobs];

fn deny(sandbox: &Sandbox, tools: impl IntoIterator<Item = Tool>) {
    let rule = |tool: Tool| format!("[[rule]]\ndecision = \"deny\"\ntool = \"{tool}\"\n");
    let file = sandbox.path().join(".config/outlast/policy.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, tools.into_iter().map(rule).collect::<String>()).unwrap();
}

fn audit(sandbox: &Sandbox) -> Vec<Value> {
    let text = std::fs::read_to_string(sandbox.path().join("home/audit.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A job that shows what is typed into it: its record as the tool answered.
fn job(sandbox: &Sandbox) -> Value {
    let mut client = sandbox.client();
    let started = client.tool("run_shell_command", json!({"command": "cat", "is_background": true}));
    client.hang_up();
    started
}

fn of_profile(sandbox: &Sandbox, profile: &str) -> Client {
    Client::start(sandbox.command(&["--profile", profile])).initialized("2025-06-18", &json!({}))
}

fn tools(client: &mut Client) -> Vec<Value> {
    client.request("tools/list", json!({}))["result"]["tools"].as_array().unwrap().clone()
}

/// Arguments with which a tool would do something to the job.
fn arguments(tool: &Value, job: &Value) -> Value {
    let mut arguments = Map::new();
    for name in tool["inputSchema"]["properties"].as_object().unwrap().keys() {
        let value = match name.as_str() {
            "command" | "cmd" => json!("touch here"),
            "input" | "chars" => json!("typed"),
            "handle" | "bash_id" | "shell_id" | "session_id" => job["handle"].clone(),
            "pid" => job["pid"].clone(),
            _ => continue,
        };
        arguments.insert(name.clone(), value);
    }
    Value::Object(arguments)
}

#[test]
fn every_tool_is_judged_once_and_a_denied_one_does_nothing() {
    let sandbox = Sandbox::new();
    let job = job(&sandbox);
    deny(&sandbox, Tool::ALL.iter().copied());
    for profile in PROFILES {
        let mut client = of_profile(&sandbox, profile);
        for tool in tools(&mut client) {
            let name = tool["name"].as_str().unwrap();
            let rule: Tool = name.parse().unwrap_or_else(|_| panic!("no rule can be about {name}"));
            let before = audit(&sandbox).len();
            let said = client.refused(name, arguments(&tool, &job));
            assert!(
                said.contains("denied") && said.contains(&format!("tool {rule}")),
                "{profile} {name}: {said}"
            );
            let noted = audit(&sandbox);
            assert_eq!(noted.len(), before + 1, "{profile} {name} is judged once");
            assert_eq!(noted[before]["tool"], rule.name(), "{profile} {name}");
            let reads_only = tool["annotations"]["readOnlyHint"] == true;
            assert_eq!(reads_only, LOOKS.contains(&rule), "{profile} {name}");
        }
    }
    let outlast = sandbox.outlast();
    assert_eq!(outlast.jobs().len(), 1, "nothing was started");
    assert!(!sandbox.path().join("here").exists());
    let job = outlast.job("1").unwrap();
    assert!(job.info().unwrap().state.is_live(), "nothing was ended");
    assert_eq!(job.typed().unwrap().count, 0, "nothing was typed");
}

#[test]
fn rules_about_looks_hold_for_looks_alone() {
    let sandbox = Sandbox::new();
    let job = job(&sandbox);
    deny(&sandbox, LOOKS);
    for profile in PROFILES {
        let mut client = of_profile(&sandbox, profile);
        for tool in tools(&mut client) {
            let name = tool["name"].as_str().unwrap();
            match name.parse().unwrap() {
                Tool::Run => drop(client.call(name, json!({"command": "true", "cmd": "true"}))),
                // Ends the job that the others are tried with.
                Tool::Kill => {}
                Tool::Send => {
                    let answer = client.call(name, arguments(&tool, &job));
                    assert!(answer["isError"] != true, "{profile} {name}: {answer}");
                }
                look => {
                    let said = client.refused(name, arguments(&tool, &job));
                    assert!(said.contains(&format!("tool {look}")), "{profile} {name}: {said}");
                }
            }
        }
    }
}

/// Codex types nothing to wait: that is a wait.
#[test]
fn an_empty_write_is_judged_as_the_wait_that_it_is() {
    let sandbox = Sandbox::new();
    let job = job(&sandbox);
    deny(&sandbox, [Tool::Wait]);
    let mut client = of_profile(&sandbox, "codex");
    let said = client.refused("write_stdin", json!({"session_id": job["handle"], "chars": ""}));
    assert!(said.contains("tool wait_for"), "{said}");
}

#[test]
fn resources_are_looks_too() {
    let sandbox = Sandbox::new();
    job(&sandbox);
    let read = |client: &mut Client, part: &str| {
        client.request("resources/read", json!({"uri": format!("outlast://jobs/1/{part}")}))
    };
    let mut client = sandbox.client();
    assert!(read(&mut client, "transcript")["error"].is_null());
    deny(&sandbox, [Tool::Read, Tool::Jobs]);
    let mut client = sandbox.client();
    for part in ["transcript", "events"] {
        let answer = read(&mut client, part);
        assert!(answer["error"]["message"].as_str().unwrap().contains("denied"), "{answer}");
    }
    assert!(read(&mut client, "screen")["error"].is_null());
    assert!(!client.request("resources/list", json!({}))["error"].is_null());
}
