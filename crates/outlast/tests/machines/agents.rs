//! Agents and other machines: they may use those that the user lists for them, and hear of what happens there.

use outlast_testkit::{Conversation, Sandbox, TEST_TIMEOUT, eventually};
use serde_json::{Value, json};

use super::sandbox;
use super::wire::Wire;

fn server(near: &Sandbox) -> Conversation {
    let mut talk = near.call(["mcp", "--session", "agent", "--own", "allow"]).converse();
    let client = json!({ "name": "test", "version": "1" });
    let asked = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let _hello = talk.call("initialize", asked);
    talk.notify("notifications/initialized", json!({}));
    talk
}

fn tool(talk: &mut Conversation, name: &str, arguments: Value) -> Value {
    talk.call("tools/call", json!({ "name": name, "arguments": arguments }))
}

fn text(answer: &Value) -> String {
    answer["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

fn near(wire: &Wire, allowed: &str) -> Sandbox {
    let near = sandbox();
    near.run(["host", "add", "gpu1", &format!("command:exec {}", wire.command().join(" "))]).ok();
    std::fs::write(
        near.root().join("config/outlast/config.toml"),
        format!("[agents]\nhosts = [{allowed}]\n"),
    )
    .unwrap();
    near
}

#[test]
fn an_agent_may_use_only_the_hosts_that_are_listed_for_agents() {
    let wire = Wire::new(sandbox());
    let near = near(&wire, "");
    let mut talk = server(&near);
    let refused = tool(&mut talk, "run_shell_command", json!({ "command": "echo hi", "host": "gpu1" }));
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(text(&refused).contains("agents may not use the host gpu1"), "{refused}");
    let refused = tool(&mut talk, "read_output", json!({ "handle": "gpu1/1" }));
    assert!(text(&refused).contains("agents may not use"), "{refused}");
    assert!(!wire.far.job(1).exists());
}

#[test]
fn an_agent_works_on_another_machine_and_hears_of_its_end() {
    let wire = Wire::new(sandbox());
    let near = near(&wire, "\"gpu1\"");
    let mut talk = server(&near);
    let line = "echo ready; read x; echo got $x; exit 4";
    let started = tool(&mut talk, "run_shell_command", json!({ "command": line, "host": "gpu1" }));
    assert!(text(&started).contains("gpu1/1") && text(&started).contains("ready"), "{started}");
    let listed = tool(&mut talk, "jobs", json!({}));
    assert!(text(&listed).contains("gpu1/1"), "{listed}");
    // Somebody else answers it, and the connection is cut meanwhile.
    wire.cut();
    wire.far.run(["send", "1", "--no-wait", "you"]).ok();
    wire.far.wait_for_end(1);
    eventually("its end is told with an answer about something else", TEST_TIMEOUT, || {
        let other = tool(&mut talk, "run_shell_command", json!({ "command": "true", "again": true }));
        let said = text(&other);
        if said.contains("gpu1/1") && said.contains("exit") { Ok(()) } else { Err(said) }
    });
    let read = tool(&mut talk, "read_output", json!({ "handle": "gpu1/1" }));
    assert!(text(&read).contains("got you"), "{read}");
    wire.down(true);
    let listed = tool(&mut talk, "jobs", json!({}));
    assert!(text(&listed).contains("gpu1: cannot be reached"), "{listed}");
}
