//! Who may do what, over MCP. In these tests nobody may `touch`: so a file that is there tells.

use std::path::Path;

use serde_json::{Value, json};

use crate::client::{Client, PROGRAM, Sandbox, text};

const NO_TOUCH: &str = "[[rule]]\ndecision = \"deny\"\nprefix = \"touch\"\n";
const ASK_TOUCH: &str = "[[rule]]\ndecision = \"ask\"\nprefix = \"touch\"\nwhy = \"better look first\"\n";

fn with_policy(policy: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    write(&sandbox.path().join(".config/outlast/policy.toml"), policy);
    sandbox
}

fn write(file: &Path, text: &str) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

fn there(sandbox: &Sandbox) -> bool {
    sandbox.path().join("here").exists()
}

fn audit(sandbox: &Sandbox) -> Vec<Value> {
    let text = std::fs::read_to_string(sandbox.path().join("home/audit.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_profile(sandbox: &Sandbox, profile: &str) -> Client {
    Client::start(sandbox.command(&["--profile", profile])).initialized("2025-06-18", &json!({}))
}

fn that_can_ask(sandbox: &Sandbox, more: &[&str]) -> Client {
    Client::start(sandbox.command(more)).initialized("2025-06-18", &json!({"elicitation": {}}))
}

/// Starts an interactive shell; returns what the tool says of it.
fn shell(client: &mut Client, tool: &str, command: &str) -> Value {
    let line = "PS1='ready> ' exec bash --norc --noprofile -i";
    let mut arguments = json!({command: line});
    if tool == "run_shell_command" {
        arguments["ai_callback_pattern"] = json!("ready> ");
    }
    client.tool(tool, arguments)
}

/// Calls a tool of a client that can ask; what was asked, and the answer.
fn asked(client: &mut Client, tool: &str, arguments: Value, result: Value) -> (Option<String>, Value) {
    let id = client.ask("tools/call", json!({"name": tool, "arguments": arguments}));
    let message = client.hear_until("a question or the answer", |message| {
        message["method"] == "elicitation/create" || message["id"] == id
    });
    if message["method"] != "elicitation/create" {
        return (None, message["result"].clone());
    }
    let question = message["params"]["message"].as_str().unwrap().to_owned();
    client.say(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
    (Some(question), client.answer(id)["result"].clone())
}

fn yes() -> Value {
    json!({"action": "accept", "content": {"agree": true}})
}

#[test]
fn a_policy_that_does_not_load_stops_the_server() {
    let sandbox = with_policy("[[rule]]\ndecision = \"deny\"\nprefixx = \"rm\"\n");
    let output = sandbox.command(&[]).stdin(std::process::Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("policy.toml:3") && said.contains("prefixx"), "{said}");
}

#[test]
fn a_denied_command_is_not_run_by_any_tool() {
    let sandbox = with_policy(NO_TOUCH);
    let tries = [
        "touch here",
        "true; touch here",
        "true\ntouch here",
        "env bash -c 'touch here'",
        "t\\ouch here",
        "$(echo touch) here",
        "echo dG91Y2ggaGVyZQo= | base64 -d | sh",
        "python3 -c 'open(\"here\", \"w\")'",
        "xargs touch <<< here",
    ];
    for (profile, tool, command) in [
        ("plain", "run_shell_command", "command"),
        ("codex", "exec_command", "cmd"),
        ("claude", "Bash", "command"),
    ] {
        let mut client = of_profile(&sandbox, profile);
        for line in tries {
            client.refused(tool, json!({command: line, "confirmed": true}));
        }
        let answer = client.call(tool, json!({command: "echo fine"}));
        assert!(answer["isError"] != true && text(&answer).ends_with("\n\nfine"), "{answer}");
    }
    let mut client = sandbox.client();
    let words = client.refused("run_shell_command", json!({"command": "touch here"}));
    assert!(words.contains("denied") && words.contains("policy.toml:1"), "{words}");
    client.refused("run_shell_command", json!({"command": "true && true", "env": {"BASH_ENV": "evil"}}));
    client.refused(
        "run_shell_command",
        json!({"command": "true && true", "env": {"BASH_FUNC_true%%": "() { touch here; }"}}),
    );
    assert!(!there(&sandbox));
    assert_eq!(audit(&sandbox).len(), 3 * tries.len() + 3);
}

#[test]
fn what_is_typed_into_a_shell_is_judged_by_every_tool_that_types() {
    let sandbox = with_policy(NO_TOUCH);
    let mut client = of_profile(&sandbox, "gemini");
    let started = shell(&mut client, "run_shell_command", "command");
    let (handle, pid) = (started["handle"].clone(), started["pid"].clone());
    for input in ["touch here", "true\ntouch here", "X=touch; $X here", "echo touch here | sh", "!!"] {
        client.refused("send_input", json!({"handle": handle, "input": input}));
        client.refused("write_to_shell", json!({"pid": pid, "input": format!("{input}\n")}));
        client.refused("write_to_shell", json!({"pid": pid, "input": input, "special_keys": ["Enter"]}));
    }
    let answer = client.tool(
        "send_input",
        json!({"handle": handle, "input": "echo fi''ne", "ai_callback_pattern": "fine\\s"}),
    );
    assert_eq!(answer["reason"], "pattern", "{answer}");
    client.tool("write_to_shell", json!({"pid": pid, "input": "tou"}));
    client.refused("write_to_shell", json!({"pid": pid, "input": "ch here", "special_keys": ["Enter"]}));
    client.tool("write_to_shell", json!({"pid": pid, "special_keys": ["Ctrl-C"]}));
    client.refused("write_to_shell", json!({"pid": pid, "special_keys": ["Up", "Enter"]}));
    let mut codex = of_profile(&sandbox, "codex");
    codex.refused("write_stdin", json!({"session_id": handle, "chars": "touch here\n", "confirmed": true}));
    assert!(!there(&sandbox));
}

#[test]
fn a_shell_on_pipes_is_a_shell_too() {
    let sandbox = with_policy(NO_TOUCH);
    let mut client = sandbox.client();
    let started =
        client.tool("run_shell_command", json!({"command": "bash", "pty": false, "is_background": true}));
    let handle = started["handle"].clone();
    client.refused("send_input", json!({"handle": handle, "input": "touch here"}));
    client.refused("send_input", json!({"handle": handle, "input": "true; touch here;\u{15}true"}));
    let answer = client
        .tool("send_input", json!({"handle": handle, "input": "echo fine", "ai_callback_pattern": "fine"}));
    assert_eq!(answer["reason"], "pattern", "{answer}");
    assert!(!there(&sandbox));
}

#[test]
fn the_person_decides_what_is_asked_for() {
    let sandbox = with_policy(ASK_TOUCH);
    let mut client = that_can_ask(&sandbox, &[]);
    let run = json!({"command": "touch here", "confirmed": true});
    for no in [
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
        json!({"action": "accept", "content": {"agree": false}}),
    ] {
        let (question, answer) = asked(&mut client, "run_shell_command", run.clone(), no);
        let question = question.unwrap();
        assert!(question.contains("touch here") && question.contains("better look first"), "{question}");
        assert!(answer["isError"] == true && text(&answer).contains("did not agree"), "{answer}");
    }
    assert!(!there(&sandbox));
    let (question, answer) = asked(&mut client, "run_shell_command", run.clone(), yes());
    assert!(question.is_some() && answer["isError"] != true, "{answer}");
    assert!(there(&sandbox));
    let (question, _) = asked(&mut client, "run_shell_command", json!({"command": "true"}), yes());
    assert_eq!(question, None);
    // A client that can't ask gets a no, whatever the call says.
    let words = sandbox.client().refused("run_shell_command", run);
    assert!(words.contains("nobody can be asked"), "{words}");
    let answers: Vec<Value> = audit(&sandbox).iter().map(|line| line["answer"].clone()).collect();
    assert_eq!(answers, ["no", "no", "no", "yes", "unable"]);
}

#[test]
fn newer_clients_ask_and_call_again() {
    let sandbox = with_policy(ASK_TOUCH);
    let mut client = sandbox.modern(json!({"elicitation": {"form": {}}}));
    let mut call = json!({"name": "run_shell_command", "arguments": {"command": "touch here"}});
    let first = client.request("tools/call", call.clone())["result"].clone();
    assert_eq!(first["resultType"], "input_required", "{first}");
    assert!(!there(&sandbox));
    call["requestState"] = first["requestState"].clone();
    call["inputResponses"] = json!({"confirm": {"action": "decline"}});
    assert_eq!(client.request("tools/call", call.clone())["result"]["isError"], true);
    assert!(!there(&sandbox));
    call["inputResponses"] = json!({"confirm": yes()});
    // That question has its answer.
    let asked = client.request("tools/call", call.clone())["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    call["requestState"] = asked["requestState"].clone();
    client.request("tools/call", call);
    assert!(there(&sandbox));
}

#[test]
fn an_answer_counts_for_its_own_question_once_and_none_can_be_made_up() {
    let sandbox = with_policy(ASK_TOUCH);
    let can_ask = || json!({"elicitation": {"form": {}}});
    let mut client = sandbox.modern(can_ask());
    let call = |file: &str, state: Value| {
        let mut call =
            json!({"name": "run_shell_command", "arguments": {"command": format!("touch {file}")}});
        call["inputResponses"] = json!({"confirm": yes()});
        if !state.is_null() {
            call["requestState"] = state;
        }
        call
    };
    let first = client.request("tools/call", call("here", Value::Null))["result"].clone();
    assert_eq!(first["resultType"], "input_required", "an answer to what was not asked: {first}");
    let state = &first["requestState"];
    for (file, state) in
        [("elsewhere", state.clone()), ("here", json!("1.9999999999999.00.00")), ("here", json!(""))]
    {
        let asked = client.request("tools/call", call(file, state.clone()))["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{file} {state}: {asked}");
    }
    assert!(!there(&sandbox) && !sandbox.path().join("elsewhere").exists());
    client.request("tools/call", call("here", state.clone()));
    assert!(there(&sandbox));
    // Neither the same server nor another one takes it again.
    for client in [&mut client, &mut sandbox.modern(can_ask())] {
        let again = client.request("tools/call", call("here", state.clone()))["result"].clone();
        assert_eq!(again["resultType"], "input_required", "{again}");
    }
}

#[test]
fn without_a_policy_a_person_is_asked_before_an_agent_ends_or_types_where_that_is_possible() {
    let sandbox = Sandbox::new();
    let mut client = that_can_ask(&sandbox, &[]);
    let handle =
        client.tool("run_shell_command", json!({"command": "cat", "ai_callback_delay": 0.2}))["handle"]
            .clone();
    let send = json!({"handle": handle, "input": "one", "ai_callback_delay": 0.2});
    let (question, answer) = asked(&mut client, "send_input", send.clone(), json!({"action": "decline"}));
    assert!(question.is_some_and(|question| question.contains("type into job 1")), "{answer}");
    assert_eq!(answer["isError"], true);
    let for_job = json!({"action": "accept", "content": {"agree": true, "for_this_job": true}});
    let (question, answer) = asked(&mut client, "send_input", send.clone(), for_job);
    assert!(question.is_some() && answer["isError"] != true, "{answer}");
    let (question, answer) = asked(&mut client, "send_input", send, yes());
    assert!(
        question.is_none() && answer["isError"] != true,
        "once agreed for the job, it may be typed into: {answer}"
    );
    let (question, answer) =
        asked(&mut client, "kill", json!({"handle": handle}), json!({"action": "decline"}));
    assert!(
        question.is_some_and(|question| question.contains("end job 1")) && answer["isError"] == true,
        "{answer}"
    );
    let (_, answer) = asked(&mut client, "kill", json!({"handle": handle}), yes());
    assert_eq!(answer["structuredContent"]["status"], "killed", "{answer}");
    let (question, answer) = asked(&mut client, "kill", json!({"handle": handle}), yes());
    assert!(
        question.is_none() && answer["isError"] != true,
        "an ended job is nothing to ask about: {answer}"
    );
    assert_eq!(audit(&sandbox).len(), 4, "{:?}", audit(&sandbox));
    assert!(
        !std::fs::read_to_string(sandbox.path().join("home/audit.jsonl")).unwrap().contains("one"),
        "what is typed may be a secret"
    );
}

/// Starts a client with a name of its own that can ask, in whatever way the server is started.
fn named(command: std::process::Command, name: &str) -> Client {
    let mut client = Client::start(command);
    client.request(
        "initialize",
        json!({"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": name, "version": "1"}}),
    );
    client.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    client.tool("run_shell_command", json!({"command": "cat", "is_background": true, "again": true}));
    client
}

/// Symptom that this guards against: a no that comes quickly from a client of a certain name is taken for a
/// yes.
#[test]
fn a_no_is_a_no_whoever_says_it_and_however_fast() {
    let by_file = with_policy("[agents]\nkill = \"ask\"\ninput = \"ask\"\n");
    let plain = Sandbox::new();
    for (sandbox, more) in [(&plain, &[][..]), (&plain, &["--own", "ask"]), (&by_file, &[])] {
        for name in ["codex-mcp-client", "claude-code", "another"] {
            let mut client = named(sandbox.command(more), name);
            let before = audit(sandbox).len();
            let handle = sandbox.outlast().jobs().last().unwrap().handle.to_string();
            let decline = || json!({"action": "decline"});
            let input = json!({"handle": handle, "input": "typed", "ai_callback_delay": 0.1});
            let (question, answer) = asked(&mut client, "send_input", input, decline());
            assert!(question.is_some() && answer["isError"] == true, "{name}: {answer}");
            let (question, answer) = asked(&mut client, "kill", json!({"handle": handle}), decline());
            assert!(question.is_some() && answer["isError"] == true, "{name}: {answer}");
            let job = sandbox.outlast().job(&handle).unwrap();
            assert!(job.info().unwrap().state.is_live() && job.log_end() == 0, "{name}");
            let noted = audit(sandbox)[before..].to_vec();
            assert!(noted.len() == 2 && noted.iter().all(|line| line["answer"] == "no"), "{noted:?}");
        }
    }
}

/// A server that an agent without a person has started: a shell under the agent's name stands in for it.
fn headless(sandbox: &Sandbox, line: &[&str], more: &str) -> std::process::Command {
    use std::os::unix::process::CommandExt;
    let mut command = sandbox.of_environment("bash");
    // The shell stays, so that it is the parent of the server.
    command.arg0(line[0]).args(["-c", &format!("{PROGRAM} mcp {more}; true")]).args(line);
    command
}

#[test]
fn nobody_is_asked_where_nobody_is_and_that_is_noted() {
    let sandbox = Sandbox::new();
    for (name, line) in
        [("claude-code", &["claude", "-p", "go"][..]), ("codex-mcp-client", &["codex", "exec", "go"])]
    {
        let before = audit(&sandbox).len();
        let mut client = named(headless(&sandbox, line, ""), name);
        let handle = sandbox.outlast().jobs().last().unwrap().handle.to_string();
        let decline = || json!({"action": "decline"});
        let (question, answer) = asked(&mut client, "kill", json!({"handle": handle}), decline());
        assert!(question.is_none() && text(&answer).contains("ended by kill"), "{name}: {answer}");
        let noted = audit(&sandbox)[before..].to_vec();
        assert!(noted.len() == 1 && noted[0]["answer"] == "headless", "{noted:?}");
        // Neither another's job nor a rule of the user is lifted by it.
        let mut other =
            Client::start(sandbox.command(&["--session", "other"])).initialized("2025-06-18", &json!({}));
        let started =
            other.tool("run_shell_command", json!({"command": "cat", "is_background": true, "again": true}));
        let (question, answer) = asked(&mut client, "kill", json!({"handle": started["handle"]}), decline());
        assert!(question.is_none() && answer["isError"] == true, "{name}: {answer}");
        let mut client = named(headless(&sandbox, line, "--own ask"), name);
        let handle = sandbox.outlast().jobs().last().unwrap().handle.to_string();
        let (question, answer) = asked(&mut client, "kill", json!({"handle": handle}), decline());
        assert!(question.is_none() && answer["isError"] == true, "{name}: {answer}");
    }
    // What the user says of such agents counts, for both kinds of jobs.
    for (said, own, others) in [("none", false, false), ("own", true, false), ("all", true, true)] {
        let sandbox = Sandbox::new();
        let policy = format!("[agents]\nunattended = \"{said}\"\n");
        write(&sandbox.path().join(".config/outlast/policy.toml"), &policy);
        let mut other =
            Client::start(sandbox.command(&["--session", "other"])).initialized("2025-06-18", &json!({}));
        other.tool("run_shell_command", json!({"command": "cat", "is_background": true}));
        let mut client = named(headless(&sandbox, &["claude", "-p", "go"], ""), "claude-code");
        for (handle, allowed) in [("2", own), ("1", others)] {
            let decline = json!({"action": "decline"});
            let (question, answer) = asked(&mut client, "kill", json!({"handle": handle}), decline);
            assert!(question.is_none(), "{said}: {answer}");
            assert_eq!(answer["isError"] != true, allowed, "{said}, job {handle}: {answer}");
        }
    }
    // Somebody sits in front of this one.
    let mut client = named(headless(&sandbox, &["claude", "--continue"], ""), "claude-code");
    let handle = sandbox.outlast().jobs().last().unwrap().handle.to_string();
    let (question, answer) =
        asked(&mut client, "kill", json!({"handle": handle}), json!({"action": "decline"}));
    assert!(question.is_some() && answer["isError"] == true, "{answer}");
}

#[test]
fn the_question_shows_what_is_to_be_typed() {
    let sandbox = Sandbox::new();
    let mut client = that_can_ask(&sandbox, &[]);
    client.tool("run_shell_command", json!({"command": "cat", "is_background": true, "again": true}));
    let no = || json!({"action": "decline"});
    let long = format!("echo start; {}; rm -rf precious", "x".repeat(5000));
    for (input, keys, wanted) in [
        ("sudo reboot", json!([]), vec!["sudo reboot", "[Enter]"]),
        ("", json!(["Ctrl-C", "Up"]), vec!["[Ctrl-C] [Up]"]),
        ("a\u{202e}b\u{1b}[2J", json!([]), vec!["a\\u{202e}b\\u{1b}[2J"]),
        (&long, json!([]), vec!["echo start", "rm -rf precious", "characters are not shown"]),
    ] {
        let call =
            json!({"handle": "1", "input": input, "special_keys": keys, "append_newline": !input.is_empty()});
        let (question, answer) = asked(&mut client, "send_input", call, no());
        let question = question.unwrap();
        assert!(wanted.iter().all(|wanted| question.contains(wanted)), "{question}");
        assert!(question.len() < 2500 && answer["isError"] == true, "{question}: {answer}");
    }
    let noted = serde_json::to_string(&audit(&sandbox)).unwrap();
    assert!(!noted.contains("reboot"), "what may be a secret is not noted: {noted}");
}

#[test]
fn the_user_can_say_that_agents_need_not_be_asked_about() {
    let by_file = with_policy("[agents]\nkill = \"allow\"\ninput = \"allow\"\n");
    let by_option = Sandbox::new();
    for (sandbox, more) in [(&by_file, &[][..]), (&by_option, &["--own", "allow"])] {
        let mut client = that_can_ask(sandbox, more);
        let handle =
            client.tool("run_shell_command", json!({"command": "cat", "is_background": true, "again": true}))
                ["handle"]
                .clone();
        let (question, answer) = asked(
            &mut client,
            "send_input",
            json!({"handle": handle, "input": "one", "ai_callback_delay": 0.1}),
            yes(),
        );
        assert!(question.is_none() && answer["isError"] != true, "{answer}");
        let (question, answer) = asked(&mut client, "kill", json!({"handle": handle}), yes());
        assert!(question.is_none() && answer["structuredContent"]["status"] == "killed", "{answer}");
        assert!(audit(sandbox).is_empty());
    }
    // A project can tighten that.
    write(&by_file.path().join(".outlast/policy.toml"), "[agents]\nkill = \"deny\"\n");
    let mut client = that_can_ask(&by_file, &[]);
    let handle = client
        .tool("run_shell_command", json!({"command": "cat", "is_background": true, "again": true}))["handle"]
        .clone();
    client.refused("kill", json!({"handle": handle}));
}

#[test]
fn what_is_said_of_typing_says_nothing_of_ending() {
    let sandbox = with_policy("[agents]\ninput = \"deny\"\n");
    let mut client = sandbox.client();
    client.tool("run_shell_command", json!({"command": "cat", "is_background": true}));
    let words = client.refused("send_input", json!({"handle": 1, "input": "x"}));
    assert!(words.contains("agents may not type into jobs"), "{words}");
    // Nobody can be asked here: its own jobs are its own.
    assert_eq!(client.tool("kill", json!({"handle": 1}))["status"], "killed");
}

#[test]
fn outlast_itself_is_no_way_around_whose_job_it_is() {
    let sandbox = Sandbox::new();
    let mut owner =
        Client::start(sandbox.command(&["--session", "owner"])).initialized("2025-06-18", &json!({}));
    owner.tool("run_shell_command", json!({"command": "cat", "is_background": true, "again": true}));
    let mut other = sandbox.client();
    for line in ["outlast kill 1", "x=1; env outlast --home h send 1 x", "sh -c 'outlast kill 1'"] {
        let words = other.refused("run_shell_command", json!({"command": line}));
        assert!(words.contains("outlast itself") && words.contains("confirmed = true"), "{words}");
    }
    other.tool("run_shell_command", json!({"command": "echo outlast jobs"}));
}

#[test]
fn tools_can_be_closed_by_any_of_their_names() {
    let sandbox = with_policy(
        "[[rule]]\ndecision = \"deny\"\ntool = \"Bash\"\n[[rule]]\ndecision = \"deny\"\ntool = \"jobs\"\n",
    );
    sandbox.client().refused("run_shell_command", json!({"command": "true"}));
    of_profile(&sandbox, "codex").refused("exec_command", json!({"cmd": "true"}));
    of_profile(&sandbox, "gemini").refused("list_background_processes", json!({}));
}

#[test]
fn a_server_in_a_job_does_not_end_that_job() {
    let sandbox = Sandbox::new();
    let outlast = sandbox.outlast().kept_by(PROGRAM);
    let server = sandbox.command(&[]);
    let mut spec =
        outlast_job::JobSpec::new(outlast_job::Run::Program(vec![PROGRAM.to_owned(), "mcp".to_owned()]));
    spec.streams = outlast_job::Streams::Pipes;
    spec.cwd = Some(sandbox.path().to_string_lossy().into_owned());
    spec.env = server
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), Some(value?.to_str()?.to_owned()))))
        .collect();
    spec.session = "agent".into();
    let job = outlast.start(spec).unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}});
    let kill = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "kill", "arguments": {"handle": 1, "confirmed": true}}});
    job.type_line(hello.to_string()).unwrap();
    job.type_line(r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#).unwrap();
    job.type_line(kill.to_string()).unwrap();
    let patience = Some(crate::client::TEST_TIMEOUT);
    let waited = job.wait(&outlast_job::Wait::for_pattern("it would end who asks"), patience).unwrap();
    assert_eq!(waited.reason.name(), "pattern");
    assert!(job.info().unwrap().state.is_live());
}

#[test]
fn where_nothing_is_allowed_no_line_runs_anything() {
    let sandbox = with_policy("default = \"deny\"\n");
    let mut client = sandbox.client();
    let lines = [
        "x=(1)# ; touch here",
        "x+=(1)# ; touch here",
        "declare x=(1)# ; touch here",
        "x=1\r# ; touch here",
        "x=1\u{b}# ; touch here",
        "x=1\u{c}# ; touch here",
        "[[ 'a[0+$(touch here)]' -eq 0 ]]",
        "x='a[$(touch here)]'; ((x))",
        "x='a[$(touch here)]'; y=$((x))",
        "x='a[$(touch here)]'; y=${!x}",
        "x='a[$(touch here)]'; declare -i y=x",
        "x='a[$(touch here)]'; unset \"$x\"",
        "x='$(touch here)'; y=${x@P}",
        "declare -a 'x=($(touch here))'",
        "typeset -a 'x=($(touch here))'",
        // A wrapper around nothing is no program either.
        "eval ''; q=Q; d=${q/Q/\\$}; l=${q/Q/\\[}; Z=a$l$d'(touch here)]'; ((Z))",
        "watch '((touch - here))'",
    ];
    for line in lines {
        let said = client.refused("run_shell_command", json!({ "command": line }));
        assert!(
            said.contains("denied") || said.contains("refused") || said.contains("deny"),
            "{line}: {said}"
        );
        assert!(!there(&sandbox), "{line}");
    }
    assert!(sandbox.outlast().jobs().is_empty());
    assert_eq!(audit(&sandbox).len(), lines.len());
    // Nor by a variable of the call, where only echo may be run.
    let allow = "default = \"deny\"\n[[rule]]\ndecision = \"allow\"\nprefix = \"echo\"\n";
    let sandbox = with_policy(allow);
    let mut client = sandbox.client();
    let call = json!({ "command": "echo $((x))", "env": { "x": "a[$(touch here)]" } });
    client.refused("run_shell_command", call);
    assert!(!there(&sandbox));
    for env in [json!({ "PATH": "." }), json!({ "GIT_DIR": "x" })] {
        client.refused("run_shell_command", json!({ "command": "echo two", "env": env }));
    }
    // Only plain lines can be allowed.
    client.refused("run_shell_command", json!({ "command": "i=1; echo $((i + 1)) # two" }));
    client.tool("run_shell_command", json!({ "command": "echo two", "env": { "LANG": "C" } }));
}
