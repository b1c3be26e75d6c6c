//! Jobs as resources, and being told when they change.

use serde_json::json;

use crate::client::Sandbox;

const TRANSCRIPT: &str = "outlast://jobs/1/transcript";

#[test]
fn screen_transcript_and_events_can_be_read() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    client.tool("run_shell_command", json!({"command": "echo hi"}));
    let list = client.request("resources/list", json!({}));
    assert_eq!(list["result"]["resources"].as_array().unwrap().len(), 3);
    let mut read = |part: &str| {
        let answer = client.request("resources/read", json!({"uri": format!("outlast://jobs/1/{part}")}));
        answer["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    assert_eq!(read("transcript"), "hi\n");
    assert_eq!(read("screen"), "hi");
    assert_eq!(read("events").lines().count(), 2);
    let missing = client.request("resources/read", json!({"uri": "outlast://jobs/9/screen"}));
    assert_eq!(missing["error"]["code"], -32002, "{missing}");
}

#[test]
fn older_clients_subscribe_and_unsubscribe() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    client.tool(
        "run_shell_command",
        json!({"command": "while read x; do echo $x; done", "is_background": true}),
    );
    assert_eq!(client.request("resources/subscribe", json!({"uri": TRANSCRIPT}))["result"], json!({}));
    sandbox.outlast().job("1").unwrap().type_line("hello").unwrap();
    let told =
        client.hear_until("an update", |message| message["method"] == "notifications/resources/updated");
    assert_eq!(told["params"]["uri"], TRANSCRIPT);
    assert_eq!(client.request("resources/unsubscribe", json!({"uri": TRANSCRIPT}))["result"], json!({}));
    let missing = client.request("resources/subscribe", json!({"uri": "outlast://jobs/9/screen"}));
    assert_eq!(missing["error"]["code"], -32002);
}

#[test]
fn newer_clients_listen() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.modern(json!({}));
    client.tool("run_shell_command", json!({"command": "read x; echo $x", "is_background": true}));
    let filter = json!({"notifications": {"resourceSubscriptions": [TRANSCRIPT, "outlast://jobs/9/screen"]}});
    let id = client.ask("subscriptions/listen", filter);
    let taken = client.hear_until("that it listens", |message| {
        message["method"] == "notifications/subscriptions/acknowledged"
    });
    assert_eq!(taken["params"]["notifications"]["resourceSubscriptions"], json!([TRANSCRIPT]));
    sandbox.outlast().job("1").unwrap().type_line("hello").unwrap();
    let told =
        client.hear_until("an update", |message| message["method"] == "notifications/resources/updated");
    assert_eq!(told["params"]["uri"], TRANSCRIPT);
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
}

/// A job of somebody else: nothing that this client does.
fn started_elsewhere(sandbox: &Sandbox) {
    let mut other = sandbox.client();
    other.tool("run_shell_command", json!({"command": "true"}));
}

#[test]
fn a_list_that_has_changed_is_told_in_both_eras() {
    let sandbox = Sandbox::new();
    let changed = |message: &serde_json::Value| message["method"] == "notifications/resources/list_changed";
    let mut older = sandbox.client();
    let mut newer = sandbox.modern(json!({}));
    let id = newer.ask("subscriptions/listen", json!({"notifications": {"resourcesListChanged": true}}));
    let taken = newer.hear_until("that it listens", |message| {
        message["method"] == "notifications/subscriptions/acknowledged"
    });
    assert_eq!(taken["params"]["notifications"]["resourcesListChanged"], true, "{taken}");
    // An answer to a request after the greeting: the server has taken note of it.
    older.request("resources/list", json!({}));
    started_elsewhere(&sandbox);
    older.hear_until("the older client is told", changed);
    let told = newer.hear_until("the newer client is told", changed);
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    let all = || outlast_job::request::PruneLimits { all: true, ..Default::default() };
    crate::client::eventually("the job is removed", || {
        !sandbox.outlast().prune(all(), false).unwrap().removed.is_empty()
    });
    older.hear_until("that it is gone, too", changed);
}
