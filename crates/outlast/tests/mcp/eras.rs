//! Both eras of the protocol, from one server.

use serde_json::json;

use crate::client::{Client, Sandbox};

const SEVEN: [&str; 7] =
    ["run_shell_command", "send_input", "read_shell", "read_output", "wait_for", "jobs", "kill"];

fn names(client: &mut Client) -> Vec<String> {
    let list = client.request("tools/list", json!({}));
    let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}")).clone();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn older_clients_shake_hands_first() {
    for version in ["2025-06-18", "2025-11-25"] {
        let sandbox = Sandbox::new();
        let mut client = Client::start(sandbox.command(&[])).initialized(version, &json!({}));
        assert_eq!(names(&mut client), SEVEN);
        assert_eq!(client.request("ping", json!({}))["result"], json!({}));
        client.hang_up();
    }
}

#[test]
fn newer_clients_just_ask() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.modern(json!({}));
    let found = client.request("server/discover", json!({}));
    let versions = found["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")), "{found}");
    assert_eq!(names(&mut client), SEVEN);
    let ran = client.tool("run_shell_command", json!({"command": "echo hi"}));
    assert_eq!(ran["output"], "hi\n");
    client.hang_up();
}

#[test]
fn what_the_tools_do_to_the_world_is_declared() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    let list = client.request("tools/list", json!({}));
    for tool in list["result"]["tools"].as_array().unwrap() {
        let (hints, name) = (&tool["annotations"], tool["name"].as_str().unwrap());
        let reads = ["jobs", "read_shell", "read_output", "wait_for"].contains(&name);
        assert_eq!(hints["readOnlyHint"], reads, "{name}");
        assert_eq!(hints["openWorldHint"], ["run_shell_command", "send_input"].contains(&name), "{name}");
        assert!(tool["outputSchema"]["properties"].is_object(), "{name}");
    }
}

#[test]
fn prompts_are_not_offered_and_an_unknown_tool_is_a_protocol_error() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    assert_eq!(client.request("prompts/list", json!({}))["error"]["code"], -32601);
    let answer = client.request("tools/call", json!({"name": "nosuch", "arguments": {}}));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}
