//! Two conversations are two sessions: what tells them apart is who talks to the server, and not which folder it is in.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::client::{Client, PROGRAM, Sandbox, eventually, text};

const OLDER: &str = "2025-06-18";

/// A client of its own: the server's pipe is made by another process than the tests. Same name, same folder.
fn another_agent(sandbox: &Sandbox) -> Client {
    let mut agent = sandbox.of_environment("sh");
    agent.args(["-c", "cat | \"$0\" mcp", PROGRAM]);
    Client::start(agent).initialized(OLDER, &json!({}))
}

fn events(client: &mut Client) -> Vec<Value> {
    client.tool("jobs", json!({}))["events"].as_array().cloned().unwrap_or_default()
}

fn has_ended(sandbox: &Sandbox, handle: &Value) {
    let job = sandbox.outlast().job(&handle.to_string()).unwrap();
    eventually("the job has ended", || !job.info().unwrap().state.is_live());
}

/// Starts a job that says something and fails, and waits until it has, behind the client's back.
fn job_that_fails(sandbox: &Sandbox, client: &mut Client) {
    let command = "read go; echo IMPORTANT RESULT; exit 3";
    let started = client.tool("run_shell_command", json!({"command": command, "is_background": true}));
    sandbox.outlast().job(&started["handle"].to_string()).unwrap().type_line("go").unwrap();
    has_ended(sandbox, &started["handle"]);
}

#[test]
fn two_agents_in_one_folder_take_nothing_from_each_other() {
    let sandbox = Sandbox::new();
    let (mut one, mut other) = (another_agent(&sandbox), another_agent(&sandbox));
    job_that_fails(&sandbox, &mut one);
    let listed = other.tool("jobs", json!({}));
    assert_eq!((&listed["jobs"], &listed["events"]), (&json!([]), &Value::Null), "{listed}");
    let all = other.tool("jobs", json!({"all": true}));
    assert_eq!(all["jobs"][0]["this_session"], false, "{all}");
    assert!(other.tool("read_output", json!({"handle": 1}))["output"].as_str().unwrap().contains("RESULT"));
    let told = events(&mut one);
    assert_eq!(told.len(), 1, "its own events are still there: {told:?}");
    assert_eq!(told[0]["event"], "exit", "{told:?}");
    let output = one.tool("read_output", json!({"handle": 1}))["output"].clone();
    assert!(output.as_str().unwrap().contains("IMPORTANT RESULT"), "and its output: {output}");
}

#[test]
fn another_agent_is_asked_before_it_ends_or_types_into_a_job() {
    let sandbox = Sandbox::new();
    let (mut one, mut other) = (another_agent(&sandbox), another_agent(&sandbox));
    one.tool("run_shell_command", json!({"command": "cat", "is_background": true}));
    for (tool, arguments) in
        [("kill", json!({"handle": 1})), ("send_input", json!({"handle": 1, "input": "x"}))]
    {
        let words = other.refused(tool, arguments);
        assert!(words.contains("belongs to another session"), "{words}");
    }
    assert_eq!(one.tool("kill", json!({"handle": 1}))["status"], "killed", "its own it ends unasked");
}

#[test]
fn an_agent_that_starts_its_server_again_is_the_same_also_through_launchers() {
    let sandbox = Sandbox::new();
    let mut client = sandbox.client();
    job_that_fails(&sandbox, &mut client);
    client.hang_up();
    // As `npx` and `sh -c` do: they hand on their standard input, and wait.
    let mut launched = sandbox.of_environment("sh");
    launched.args(["-c", "sh -c '\"$0\" mcp; true' \"$0\"; true", PROGRAM]);
    let mut client = Client::start(launched).initialized(OLDER, &json!({}));
    let listed = client.tool("jobs", json!({}));
    assert_eq!(listed["jobs"][0]["this_session"], true, "{listed}");
    assert_eq!(listed["events"].as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(events(&mut client).len(), 0, "told once");
}

#[test]
fn a_named_session_and_a_named_thread_go_before_the_process() {
    let sandbox = Sandbox::new();
    let named = || {
        let mut agent = sandbox.of_environment("sh");
        agent.args(["-c", "cat | \"$0\" mcp", PROGRAM]).env("OUTLAST_SESSION", "mine");
        Client::start(agent).initialized(OLDER, &json!({}))
    };
    named().tool("run_shell_command", json!({"command": "true"}));
    assert_eq!(named().tool("jobs", json!({}))["jobs"][0]["session"], "mine");
    let in_thread = |tool: &str, arguments: Value| {
        let mut client = another_agent(&sandbox);
        let call = json!({"name": tool, "arguments": arguments, "_meta": {"threadId": "t-1"}});
        client.request("tools/call", call)["result"]["structuredContent"].clone()
    };
    in_thread("run_shell_command", json!({"command": "true"}));
    let listed = in_thread("jobs", json!({}));
    assert_eq!((&listed["jobs"][0]["handle"], &listed["jobs"][0]["this_session"]), (&json!(2), &json!(true)));
}

#[test]
fn the_next_conversation_is_told_once_what_one_that_is_gone_has_left() {
    let sandbox = Sandbox::new();
    let mut gone = another_agent(&sandbox);
    gone.tool("run_shell_command", json!({"command": "sleep 1000", "is_background": true}));
    job_that_fails(&sandbox, &mut gone);
    let mut beside = another_agent(&sandbox);
    let words = text(&beside.call("jobs", json!({})));
    assert!(!words.contains("earlier"), "it still lives: {words}");
    let agent = sandbox.outlast().jobs()[0].session.rsplit_once('#').unwrap().1.to_owned();
    gone.hang_up();
    eventually("the agent is gone", || outlast_job::session::agent_lives(&agent) == Some(false));
    let mut next = another_agent(&sandbox);
    let words = text(&next.call("jobs", json!({})));
    assert!(words.contains("still running from an earlier conversation here: job 1"), "{words}");
    assert!(words.contains("job 2 exit") && words.contains("jobs(all=true)"), "{words}");
    let words = text(&next.call("jobs", json!({})));
    assert!(!words.contains("earlier"), "once: {words}");
    let words = text(&another_agent(&sandbox).call("jobs", json!({})));
    assert!(!words.contains("job 2 exit"), "what was told is not told to the one after it: {words}");
    assert!(next.refused("kill", json!({"handle": 1})).contains("belongs to another session"));
    let adopted = next.tool("jobs", json!({"adopt": true}));
    let of = |job: &Value| (job["handle"].clone(), job["this_session"].clone());
    assert!(
        adopted["jobs"].as_array().unwrap().iter().map(of).any(|job| job == (json!(1), json!(true))),
        "{adopted}"
    );
    let killed = text(&next.call("kill", json!({"handle": 1})));
    assert!(killed.starts_with("job 1 · SIGTERM") && !killed.contains("job 1 exit"), "told twice: {killed}");
    assert!(!text(&next.call("jobs", json!({}))).contains("jobs(adopt=true)"));
}

/// Node connects by a pair of sockets where others use pipes; its process is found by who made them.
#[test]
fn node_processes_are_told_apart_and_known_again() {
    if !outlast_testkit::has("node") {
        return;
    }
    // One node process, which starts the server twice, one after the other; says whose job it sees the second time.
    let script = r#"
        const { spawn } = require('node:child_process');
        const { createInterface } = require('node:readline');
        const conversation = (tool, args) => new Promise((resolve) => {
          const server = spawn(process.argv[1], ['mcp'], { stdio: ['pipe', 'pipe', 'inherit'] });
          const say = (message) => server.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');
          let answer;
          createInterface({ input: server.stdout }).on('line', (line) => {
            const message = JSON.parse(line);
            if (message.id === 1) {
              say({ method: 'notifications/initialized' });
              say({ id: 2, method: 'tools/call', params: { name: tool, arguments: args } });
            }
            if (message.id === 2) { answer = message.result.structuredContent; server.stdin.end(); }
          });
          server.on('exit', () => resolve(answer));
          say({ id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {},
            clientInfo: { name: 'tests', version: '1' } } });
        });
        (async () => {
          await conversation('run_shell_command', { command: 'true' });
          const { jobs } = await conversation('jobs', { all: true });
          console.log(JSON.stringify(jobs.map((job) => job.this_session)));
        })();
    "#;
    let sandbox = Sandbox::new();
    let run = || {
        let mut node = sandbox.of_environment("node");
        let ran = node.args(["-e", script, PROGRAM]).stdin(Stdio::null()).output().unwrap();
        String::from_utf8_lossy(&ran.stdout).trim().to_owned() + &String::from_utf8_lossy(&ran.stderr)
    };
    assert_eq!(run(), "[true]", "its own job, also with another server");
    assert_eq!(run(), "[true,false]", "another node process is another conversation");
}
