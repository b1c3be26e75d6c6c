//! The tap: everything that passes, in order, with times, and unchanged.

use serde_json::{Value, json};

use super::sandbox;

#[test]
fn both_sides_are_recorded_as_they_were_and_shown_readably() {
    let sandbox = sandbox();
    let file = sandbox.root().join("wire.jsonl");
    let agent = sandbox.example("acp_agent");
    let mut editor = sandbox.call(["acp", "tap", "--out", file.to_str().unwrap(), "--", &agent]).converse();
    editor.call("initialize", json!({ "protocolVersion": 1 }));
    let odd = "{ \"jsonrpc\" :\"2.0\", \"method\":\"_odd\",\"params\":{\"big\":12345678901234567890123} }";
    editor.say(odd);
    editor.wait_for("what the agent heard", |all| all.iter().find(|m| m["params"]["line"] == odd).cloned());
    assert_eq!(editor.hang_up(), Some(0));
    let text = std::fs::read_to_string(&file).unwrap();
    let records: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(&line.replace(odd, "\"odd\"")).unwrap()).collect();
    assert_eq!((&records[0]["outlast_tap"], &records[0]["command"]), (&json!(1), &json!([agent])));
    let sides: Vec<&str> = records[1..].iter().map(|record| record["from"].as_str().unwrap()).collect();
    assert_eq!(sides, ["client", "agent", "client", "agent"]);
    assert_eq!(records[3]["message"], "odd", "the exact bytes are in the file");
    assert!(records[1..].windows(2).all(|pair| pair[0]["ms"].as_f64() <= pair[1]["ms"].as_f64()));
    let shown = sandbox.run(["acp", "tap", "--show", file.to_str().unwrap()]).ok().text();
    assert!(shown.lines().next().unwrap().contains("client → initialize #1 "), "{shown}");
    assert!(shown.contains("agent  ← result #1 "), "{shown}");
    sandbox.run(["acp", "tap", "--show", "/dev/null"]).code(2).says("is not a recording");
}

#[test]
fn an_agent_that_is_not_there_is_named() {
    let sandbox = sandbox();
    for verb in ["tap", "sidecar"] {
        sandbox.run(["acp", verb, "--", "no-such-agent"]).code(1).says("\"no-such-agent\" can't be started");
    }
}

#[test]
fn the_agents_own_exit_code_is_passed_on() {
    let sandbox = sandbox();
    for verb in ["tap", "sidecar"] {
        sandbox.run(["acp", verb, "--", "sh", "-c", "exit 7"]).code(7);
    }
}
