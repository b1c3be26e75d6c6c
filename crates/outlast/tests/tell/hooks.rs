//! Agents woken by their own hooks: the hook takes what waits for its agent out of the spool, once, when the agent is idle.
//! This test is the agent: the hooks that it runs find it above them.

use outlast_testkit::{Call, Sandbox, TEST_TIMEOUT, eventually, processes};

use super::{entry, sandbox};

/// The session that an MCP server of this agent would use.
fn session() -> String {
    let me = processes::find(i32::try_from(std::process::id()).unwrap()).unwrap();
    format!("agent:/project#{}-{}", me.pid.as_raw_nonzero(), me.start_time)
}

fn start(sandbox: &Sandbox, line: &str) -> u64 {
    let call =
        sandbox.call(["--json", "run", "-d", "--wake", "agent", line]).env("OUTLAST_SESSION", session());
    let answer = call.run().ok().json();
    assert_eq!(answer["wakes"][0]["will"], true, "{answer}");
    answer["handle"].as_u64().unwrap()
}

fn hook(sandbox: &Sandbox, words: &[&str]) -> Call {
    sandbox.call(["hook"]).args(words)
}

/// The hook waits in the background.
fn is_waiting(sandbox: &Sandbox) {
    eventually("a hook waits", TEST_TIMEOUT, || {
        let names = std::fs::read_dir(sandbox.home().join("wakes")).map_err(|error| error.to_string())?;
        let mut names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.find(|name| name.starts_with("waits-")).ok_or_else(|| "not yet".to_owned())
    });
}

fn waiting(sandbox: &Sandbox) -> usize {
    sandbox.json(["wakes", "list"])["wakes"].as_array().unwrap().len()
}

#[test]
fn an_idle_agent_is_woken_by_its_hook_and_a_working_one_when_it_is_idle() {
    let sandbox = sandbox();
    hook(&sandbox, &["opencode", "working"]).stdin("{}").run().ok();
    let mut waits = hook(&sandbox, &["opencode", "idle", "--wake"]).stdin("taken\n").spawn();
    is_waiting(&sandbox);
    // Another hook of the same agent finds that one waits.
    hook(&sandbox, &["opencode", "idle", "--wake"]).run().ok();
    let jobs = [start(&sandbox, "exit 3"), start(&sandbox, "exit 4")];
    eventually("both wait for the agent", TEST_TIMEOUT, || match waiting(&sandbox) {
        2 => Ok(()),
        other => Err(other),
    });
    assert!(waits.is_running(), "it works: it is told when it is idle");
    hook(&sandbox, &["opencode", "idle"]).stdin("{}").run().ok();
    let ran = waits.wait().code(2);
    let words = format!("[outlast: automatic notice] 2 events of jobs {} {}", jobs[0], jobs[1]);
    assert!(ran.stderr.starts_with(&words), "{}", ran.stderr);
    assert_eq!(waiting(&sandbox), 0, "told once");
    let waits = hook(&sandbox, &["opencode", "idle", "--wake"]).stdin("taken\n").spawn();
    let job = start(&sandbox, "exit 5");
    let ran = waits.wait().code(2);
    assert!(ran.stderr.contains(&format!("job {job} exit: failed, exit code 5")), "{}", ran.stderr);
    sandbox.nothing_runs();
}

#[test]
fn a_plugin_that_did_not_get_through_is_told_again_and_so_is_a_killed_hooks() {
    let sandbox = sandbox();
    hook(&sandbox, &["opencode", "idle"]).stdin("{}").run().ok();
    let waits = hook(&sandbox, &["opencode", "idle", "--wake"]).spawn();
    is_waiting(&sandbox);
    waits.kill_dash_nine();
    let job = start(&sandbox, "exit 3");
    // Its input ends without a word.
    let ran = hook(&sandbox, &["opencode", "idle", "--wake"]).run().ok();
    let what = format!("job {job} exit: failed, exit code 3");
    assert!(ran.stderr.contains(&what) && !ran.stderr.contains("again"), "{}", ran.stderr);
    let ran = hook(&sandbox, &["opencode", "idle", "--wake"]).stdin("taken\n").run().code(2);
    assert!(ran.stderr.contains(&what) && ran.stderr.contains("notice, again]"), "{}", ran.stderr);
    assert_eq!(waiting(&sandbox), 0);
    sandbox.nothing_runs();
}

/// Its job's helper may look after it just then. Nothing tells when it lets go.
#[test]
fn an_order_that_another_has_in_hand_is_told_a_moment_later() {
    let sandbox = sandbox();
    hook(&sandbox, &["opencode", "idle"]).stdin("{}").run().ok();
    let job = start(&sandbox, "exit 3");
    let order = eventually("the order", TEST_TIMEOUT, || {
        let names = std::fs::read_dir(sandbox.home().join("wakes")).map_err(|error| error.to_string())?;
        let mut paths = names.map(|entry| entry.unwrap().path());
        paths.find(|path| path.extension().is_some_and(|end| end == "order")).ok_or("none yet".to_owned())
    });
    let held = std::fs::File::open(order).unwrap();
    held.lock().unwrap();
    let waits = hook(&sandbox, &["opencode", "idle", "--wake"]).stdin("taken\n").spawn();
    is_waiting(&sandbox);
    eventually("it has looked", TEST_TIMEOUT, || {
        let call = std::fs::read_to_string(format!("/proc/{}/syscall", waits.pid())).unwrap();
        let number = call.split(' ').next().unwrap_or_default().to_owned();
        // poll, ppoll.
        if ["7", "271", "73"].contains(&number.as_str()) { Ok(()) } else { Err(call) }
    });
    drop(held);
    let ran = waits.wait().code(2);
    assert!(ran.stderr.contains(&format!("job {job} exit: failed, exit code 3")), "{}", ran.stderr);
    sandbox.nothing_runs();
}

/// A hook that Claude Code runs for a single prompt, or for another program, would hold up its turn.
#[test]
fn a_hook_of_an_agent_that_is_not_at_a_terminal_does_not_wait() {
    let sandbox = sandbox();
    // An agent that is no shell, with files instead of a terminal.
    let program = sandbox.program().to_string_lossy().into_owned();
    let agent = sandbox
        .call_other(std::path::Path::new("timeout"), ["60", &program, "hook", "claude", "idle", "--wake"]);
    let ran = agent.run().ok();
    assert_eq!(ran.stderr, "");
}

#[test]
fn a_wake_of_the_settings_for_agents_is_not_about_a_persons_own_jobs() {
    let sandbox = sandbox();
    let config = sandbox.root().join("config/outlast");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config.toml"), "[[wake]]\nkind = \"agent\"\n").unwrap();
    let answer = sandbox.json(["run", "-d", "exit 3"]);
    assert_eq!(answer["wakes"].as_array().map_or(0, Vec::len), 0, "{answer}");
    entry(&sandbox, "exit");
    sandbox.nothing_runs();
    assert!(super::entries(&sandbox).iter().all(|entry| entry["event"] != "wake_failed"));
}

#[test]
fn an_agent_that_can_not_be_woken_is_said_at_the_start_and_told_as_failed() {
    let sandbox = sandbox();
    let answer = sandbox.json(["run", "-d", "--wake", "agent", "exit 3"]);
    assert_eq!(answer["wakes"][0]["will"], false, "{answer}");
    let told = entry(&sandbox, "wake_failed");
    assert!(told["text"].as_str().unwrap().contains("outlast install --hooks"), "{told}");
    sandbox.nothing_runs();
}
