//! Whose job it is, and who may end it.

use serde_json::{Value, json};

use crate::client::{Client, Sandbox};

fn of_session(sandbox: &Sandbox, session: &str, capabilities: &Value) -> Client {
    Client::start(sandbox.command(&["--session", session])).initialized("2025-06-18", capabilities)
}

fn start(client: &mut Client) {
    client.tool("run_shell_command", json!({"command": "sleep 1000", "is_background": true}));
}

#[test]
fn a_conversation_sees_its_own_jobs_first() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    for thread in ["a", "b"] {
        let call = json!({
            "name": "run_shell_command",
            "arguments": {"command": "true"},
            "_meta": {"threadId": thread},
        });
        client.request("tools/call", call);
    }
    let mut jobs = |arguments: Value| {
        let call = json!({"name": "jobs", "arguments": arguments, "_meta": {"threadId": "a"}});
        let answer = client.request("tools/call", call);
        let jobs = answer["result"]["structuredContent"]["jobs"].as_array().unwrap().clone();
        jobs.iter().map(|job| (job["handle"].clone(), job["this_session"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(jobs(json!({})), [(json!(1), json!(true))]);
    assert_eq!(jobs(json!({"all": true})), [(json!(1), json!(true)), (json!(2), json!(false))]);
}

#[test]
fn without_a_way_to_ask_the_call_must_say_that_the_user_agreed() {
    let sandbox = Sandbox::new();
    start(&mut of_session(&sandbox, "owner", &json!({})));
    let mut other = of_session(&sandbox, "other", &json!({}));
    // The call's own word counts only if the user has switched that on.
    for arguments in [json!({"handle": 1}), json!({"handle": 1, "confirmed": true})] {
        let words = other.refused("kill", arguments);
        assert!(
            words.contains("belongs to another session (owner)") && words.contains("confirmed = true"),
            "{words}"
        );
    }
    drop(other);
    let folder = sandbox.path().join(".config/outlast");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("policy.toml"), "[agents]\nconfirmed = true\n").unwrap();
    let mut other = of_session(&sandbox, "other", &json!({}));
    let words = other.refused("kill", json!({"handle": 1}));
    assert!(words.contains("confirmed=true"), "{words}");
    let words = other.refused("send_input", json!({"handle": 1, "input": "x"}));
    assert!(words.contains("belongs to another session"), "{words}");
    assert_eq!(other.tool("kill", json!({"handle": 1, "confirmed": true}))["status"], "killed");
}

#[test]
fn older_clients_are_asked_in_the_middle_of_the_call() {
    let sandbox = Sandbox::new();
    start(&mut of_session(&sandbox, "owner", &json!({})));
    let mut other = of_session(&sandbox, "other", &json!({"elicitation": {}}));
    for (agree, status) in [(false, None), (true, Some("killed"))] {
        let id =
            other.ask("tools/call", json!({"name": "kill", "arguments": {"handle": 1, "confirmed": true}}));
        let question = other.hear_until("a question", |message| message["method"] == "elicitation/create");
        assert!(question["params"]["message"].as_str().unwrap().contains("end job 1"), "{question}");
        let result = json!({"action": "accept", "content": {"agree": agree}});
        other.say(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}));
        let answer = other.answer(id);
        assert_eq!(answer["result"]["isError"], !agree, "{answer}");
        assert_eq!(answer["result"]["structuredContent"]["status"].as_str(), status);
    }
}

/// Symptom that this guards against: a person agrees to one answer, and anything may be typed after it unseen.
#[test]
fn a_yes_is_for_what_was_shown_or_for_the_job() {
    let sandbox = Sandbox::new();
    let mut client = of_session(&sandbox, "owner", &json!({"elicitation": {}}));
    start(&mut client);
    let mut type_in = |text: &str, answer: Option<Value>| {
        let send =
            json!({"name": "send_input", "arguments": {"handle": 1, "input": text, "ai_callback_delay": 0}});
        let id = client.ask("tools/call", send);
        if let Some(answer) = answer {
            let question =
                client.hear_until("a question", |message| message["method"] == "elicitation/create");
            assert!(question["params"]["message"].as_str().unwrap().contains(text), "{question}");
            let result = json!({"action": "accept", "content": answer});
            client.say(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}));
        }
        assert_eq!(client.answer(id)["result"]["isError"], false);
    };
    type_in("first", Some(json!({"agree": true})));
    type_in("second", Some(json!({"agree": true, "for_this_job": true})));
    type_in("third", None);
}

#[test]
fn newer_clients_ask_and_call_again() {
    let sandbox = Sandbox::new();
    start(&mut of_session(&sandbox, "owner", &json!({})));
    let mut other = sandbox.modern(json!({"elicitation": {"form": {}}}));
    let call = json!({"name": "kill", "arguments": {"handle": 1}});
    let answer = other.request("tools/call", call.clone());
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    assert_eq!(answer["result"]["inputRequests"]["confirm"]["method"], "elicitation/create");
    let mut with = |response: Value| {
        let mut call = call.clone();
        call["requestState"] = other.request("tools/call", call.clone())["result"]["requestState"].clone();
        call["inputResponses"] = json!({"confirm": response});
        other.request("tools/call", call)["result"].clone()
    };
    assert_eq!(with(json!({"action": "decline"}))["isError"], true);
    let killed = with(json!({"action": "accept", "content": {"agree": true}}));
    assert_eq!(killed["structuredContent"]["status"], "killed", "{killed}");
}
