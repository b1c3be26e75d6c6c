//! What an agent's job really executes is judged before it happens, whatever the route. The routes that are known not to
//! be seen are a closed list, in docs/policy.md.

use std::os::unix::fs::PermissionsExt;

use outlast_testkit::{has, processes};
use serde_json::{Value, json};

use crate::client::{Client, PROGRAM, Sandbox, eventually};

const NO_RM: &str = "[agents]\nothers = \"allow\"\n[[rule]]\ndecision = \"deny\"\nprefix = \"rm\"\n";

/// Ways to run `rm canary` that no text shows: each is a script of its own, and needs a program.
const ROUTES: &[(&str, &str)] = &[
    ("sh", "rm canary"),
    ("make", "make -f Makefile"),
    ("python3", "python3 -uc 'import os; os.system(\"rm canary\")'"),
    ("python3", "python3 -Ic 'import subprocess; subprocess.run([\"rm\", \"canary\"])'"),
    ("python3", "python3 by_descriptor.py"),
    ("python3", "python3 by_proc.py"),
    ("python3", "python3 from_memory.py"),
    ("perl", "perl -we 'system(q(rm canary))'"),
    ("xargs", "echo canary | xargs rm"),
    ("find", "find . -name canary -exec rm {} ';'"),
    ("env", "env rm canary; nice rm canary; setsid rm canary; timeout 5 rm canary"),
    ("awk", "awk 'BEGIN { system(\"rm canary\") }'"),
    ("sed", "sed '1erm canary' Makefile"),
    ("git", "git -c alias.x='!rm canary' x"),
    ("flock", "flock lock -c 'rm canary'"),
    ("bash", "exec -a ls rm canary"),
    ("bash", "cd /bin && ./rm \"$OLDPWD/canary\""),
    ("sh", "./direct canary"),
    ("sh", "./by_env canary"),
    ("sh", "./copied canary"),
    ("sh", "./linked canary"),
    ("sh", "./nested.sh"),
    ("sh", "/lib64/ld-linux-x86-64.so.2 /bin/rm canary"),
    ("sh", "/lib64/ld-linux-x86-64.so.2 --argv0 ls /bin/rm canary"),
    ("sh", "./loader /bin/rm canary"),
    ("sh", "cd /bin && /lib64/ld-linux-x86-64.so.2 --library-path . rm \"$OLDPWD/canary\""),
    ("busybox", "busybox rm canary"),
    ("busybox", "./box rm canary; ./boxed canary; ln -s ./box rm; ./rm canary"),
];

fn with_policy(policy: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let folder = sandbox.path().join(".config/outlast");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("policy.toml"), policy).unwrap();
    sandbox
}

fn script(sandbox: &Sandbox, name: &str, text: &str) {
    let path = sandbox.path().join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Files that the routes use.
fn prepare(sandbox: &Sandbox) {
    std::fs::write(sandbox.path().join("Makefile"), "all:\n\trm canary\n").unwrap();
    script(sandbox, "direct", "#!/bin/rm\n");
    script(sandbox, "by_env", "#!/usr/bin/env -S rm -f\n");
    script(sandbox, "nested.sh", "#!/bin/sh\nsh -c 'sh -c \"rm canary\"'\n");
    let open = "import os\nfd = os.open('/bin/rm', os.O_RDONLY)\nos.set_inheritable(fd, True)\n";
    script(sandbox, "by_descriptor.py", &format!("{open}os.execve(fd, ['x', 'canary'], {{}})\n"));
    script(sandbox, "by_proc.py", &format!("{open}os.execv('/dev/fd/%d' % fd, ['x', 'canary'])\n"));
    let memory = "import os\nfd = os.memfd_create('x', 0)\nos.write(fd, open('/bin/rm', 'rb').read())\n";
    script(sandbox, "from_memory.py", &format!("{memory}os.execve(fd, ['x', 'canary'], {{}})\n"));
    let at = |name: &str| sandbox.path().join(name);
    std::fs::copy("/bin/rm", at("copied")).unwrap();
    std::os::unix::fs::symlink("/bin/rm", at("linked")).unwrap();
    let _ = std::fs::copy("/lib64/ld-linux-x86-64.so.2", at("loader"));
    if has("busybox") {
        for name in ["/usr/bin/busybox", "/bin/busybox"] {
            let _ = std::fs::copy(name, at("box"));
        }
        script(sandbox, "boxed", "#!./box rm\n");
    }
}

fn run(client: &mut Client, command: &str) -> Value {
    client.tool("run_shell_command", json!({"command": command, "timeout": 60}))
}

fn info(sandbox: &Sandbox, job: u64) -> Value {
    let text = std::fs::read_to_string(sandbox.path().join(format!("home/jobs/{job}/info.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Which routes remove the file, out of those that this machine has the programs for.
fn routes_through(sandbox: &Sandbox) -> Vec<&'static str> {
    prepare(sandbox);
    let mut client = sandbox.client();
    let canary = sandbox.path().join("canary");
    let mut through = Vec::new();
    for (program, route) in ROUTES {
        if !has(program) {
            outlast_testkit::left_out(&format!("there is no {program}"), "see .ci/packages");
            continue;
        }
        std::fs::write(&canary, "alive").unwrap();
        script(sandbox, "route", &format!("#!/bin/bash\n{route}\n"));
        run(&mut client, "./route");
        if !canary.exists() {
            through.push(*route);
        }
    }
    through
}

#[test]
fn a_denied_program_is_not_executed_by_any_route() {
    assert_eq!(routes_through(&with_policy(NO_RM)), [""; 0]);
    // The routes do work where nobody judges.
    let tried = ROUTES.iter().filter(|(program, _)| has(program)).count();
    let open = routes_through(&with_policy(&format!("guard = \"off\"\n{NO_RM}"))).len();
    assert!(open + 1 >= tried, "{open} of {tried}");
}

#[test]
fn what_no_rule_is_about_runs_as_ever() {
    let sandbox = with_policy(NO_RM);
    script(
        &sandbox,
        "steps",
        "#!/bin/sh\nls /bin | head -1 >/dev/null && no-such-program; echo \"code $?\"\nexec ./missing\n",
    );
    let mut client = sandbox.client();
    let done = run(&mut client, "./steps");
    assert!(done["output"].as_str().unwrap().contains("code 127"), "{done}");
    assert_eq!(done["exit_code"], 127, "a missing program is missing, not forbidden: {done}");
    assert_eq!(info(&sandbox, 1)["guard_by"], "seccomp user notification");
    // Nothing is in the way where no rule is about programs.
    let free = with_policy("[[rule]]\ndecision = \"deny\"\ntool = \"prune\"\n");
    run(&mut free.client(), "true");
    assert_eq!(info(&free, 1).get("guard_by"), None);
}

#[test]
fn a_refusal_is_an_event_with_its_rule() {
    let sandbox = with_policy(NO_RM);
    script(&sandbox, "steps", "#!/bin/sh\nrm canary\n");
    run(&mut sandbox.client(), "./steps");
    let events = std::fs::read_to_string(sandbox.path().join("home/jobs/1/events.jsonl")).unwrap();
    let refused: Vec<Value> = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|event| event["event"] == "exec_refused")
        .collect();
    let first = refused.first().expect("the refusal is told");
    assert!(first["command"].as_str().unwrap().ends_with("rm canary"), "{first}");
    assert!(first["place"].as_str().unwrap().ends_with("policy.toml:3"), "{first}");
}

#[test]
fn the_heir_goes_on_judging() {
    goes_on_judging(1);
}

/// Symptom that this guards against: the first heir took the listener, and its own heir had none; every program of the job
/// then failed with "Function not implemented", or stood still.
#[test]
fn the_heir_of_an_heir_goes_on_judging() {
    if outlast_pty::watched::can_tell_ends() {
        goes_on_judging(2);
    }
}

/// A job on pipes, which outlives its first heir, whose keeper is killed so many times.
fn goes_on_judging(kills: u64) {
    let sandbox = with_policy(NO_RM);
    script(
        &sandbox,
        "steps",
        "#!/bin/bash\ni=0\nuntil [ -e stop ]; do /bin/true || exit 9; i=$((i+1)); echo $i > count; done\nrm canary\necho after\n",
    );
    std::fs::write(sandbox.path().join("canary"), "alive").unwrap();
    let mut client = sandbox.client();
    let job = json!({"command": "./steps", "is_background": true, "pty": false});
    client.tool("run_shell_command", job);
    let count = || {
        std::fs::read_to_string(sandbox.path().join("count")).ok().and_then(|text| text.trim().parse().ok())
    };
    let runs_on =
        |before: u64| eventually("it runs on", || count().is_some_and(|now: u64| now > before + 20));
    runs_on(0);
    for kill in 1..=kills {
        let keeper = info(&sandbox, 1)["keeper"]["pid"].as_i64().unwrap();
        let keeper = processes::find(i32::try_from(keeper).unwrap()).unwrap();
        processes::kill_dash_nine(&keeper);
        eventually("another took over", || info(&sandbox, 1)["takeovers"] == kill);
        runs_on(count().unwrap_or(0));
    }
    std::fs::write(sandbox.path().join("stop"), "").unwrap();
    let waited = client.tool("wait_for", json!({"handle": "1", "timeout": 60}));
    assert_eq!(waited["exit_code"], 0, "{waited}");
    assert!(sandbox.path().join("canary").exists(), "rm was executed after the keeper's death");
    assert_eq!(info(&sandbox, 1)["takeovers"], kills);
}

#[test]
fn programs_of_a_guarded_job_can_use_outlast_and_stay_judged() {
    let sandbox = with_policy(NO_RM);
    std::fs::write(sandbox.path().join("canary"), "alive").unwrap();
    let home = sandbox.path().join("home").display().to_string();
    let text = format!(
        "#!/bin/sh\nexport OUTLAST_HOME={home}\n{PROGRAM} read 1 && echo could-read\n\
         {PROGRAM} run -q -n --name inner ./inner\n"
    );
    script(&sandbox, "steps", &text);
    script(&sandbox, "inner", "#!/bin/sh\nrm canary\n");
    let mut client = sandbox.client();
    client.tool("run_shell_command", json!({"command": "sleep 600", "is_background": true}));
    let done = run(&mut client, "./steps");
    assert!(done["output"].as_str().unwrap().contains("could-read"), "{done}");
    assert!(sandbox.path().join("canary").exists(), "{done}");
    assert_eq!(info(&sandbox, 3)["guard_by"], "the guard of job 2", "{done}");
}

#[test]
fn calls_of_other_instruction_sets_execute_nothing() {
    if !has("gcc") || !cfg!(target_arch = "x86_64") {
        return;
    }
    let sandbox = with_policy(NO_RM);
    // execve by the 32-bit entry, with all of its memory below 4 GiB; then by the x32 numbers.
    let source = r#"
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <sys/syscall.h>
int main(void) {
  char *low = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  strcpy(low, "/bin/rm"); strcpy(low + 64, "canary");
  unsigned *argv = (unsigned *)(low + 128);
  argv[0] = (unsigned)(long)low; argv[1] = (unsigned)(long)(low + 64); argv[2] = 0;
  long result;
  asm volatile("int $0x80" : "=a"(result) : "a"(11), "b"(low), "c"(argv), "d"(0) : "memory");
  char *args[] = {low, low + 64, 0};
  syscall(0x40000000 + 520, low, args, 0);
  return 7;
}
"#;
    std::fs::write(sandbox.path().join("other.c"), source).unwrap();
    let built = sandbox.of_environment("gcc").args(["-o", "other", "other.c"]).status().unwrap();
    assert!(built.success());
    std::fs::write(sandbox.path().join("canary"), "alive").unwrap();
    let done = run(&mut sandbox.client(), "./other");
    assert_eq!(done["exit_code"], 7, "{done}");
    assert!(sandbox.path().join("canary").exists(), "{done}");
}

#[test]
fn who_agreed_to_a_line_agreed_to_its_commands_once() {
    let sandbox = with_policy("[[rule]]\ndecision = \"ask\"\nprefix = \"touch\"\n");
    let mut client =
        Client::start(sandbox.command(&[])).initialized("2025-06-18", &json!({"elicitation": {}}));
    let id = client
        .ask("tools/call", json!({"name": "run_shell_command", "arguments": {"command": "touch here"}}));
    let question = client.hear_until("a question", |message| message["method"] == "elicitation/create");
    let yes = json!({"action": "accept", "content": {"agree": true}});
    client.say(&json!({"jsonrpc": "2.0", "id": question["id"], "result": yes}));
    let done = client.answer(id)["result"].clone();
    assert_eq!(done["structuredContent"]["exit_code"], 0, "{done}");
    assert!(sandbox.path().join("here").exists(), "{done}");
}

const ASK_TOUCH: &str =
    "answer_within = \"300s\"\n[[rule]]\ndecision = \"ask\"\nprefix = \"touch\"\nwhy = \"look first\"\n";

/// A job whose script wants to touch a file, and stands still; its server's client.
fn standing_still(policy: &str, capabilities: &Value) -> (Sandbox, Client) {
    let sandbox = with_policy(policy);
    script(&sandbox, "steps", "#!/bin/sh\necho before\ntouch here\necho \"after $?\"\n");
    let mut client = Client::start(sandbox.command(&[])).initialized("2025-06-18", capabilities);
    let told = run(&mut client, "./steps");
    assert_eq!(told["reason"], "awaiting_input", "whoever waits is told that it asks: {told}");
    assert_eq!(told["awaiting_input"]["kind"], "approval", "{told}");
    (sandbox, client)
}

/// Calls the command line in the sandbox, as a person would.
fn outlast(sandbox: &Sandbox, arguments: &[&str]) -> (i32, Value) {
    let home = sandbox.path().join("home");
    let output = sandbox
        .of_environment(PROGRAM)
        .env("OUTLAST_HOME", home)
        .args(arguments)
        .arg("--json")
        .output()
        .unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap(), serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

fn pending(sandbox: &Sandbox) -> Vec<Value> {
    outlast(sandbox, &["policy", "pending"]).1["pending"].as_array().cloned().unwrap_or_default()
}

fn ended(client: &mut Client) -> Value {
    client.tool("wait_for", json!({"handle": "1", "until": ["exit"], "timeout": 60}))
}

#[test]
fn a_program_stands_still_until_a_person_agrees() {
    let (sandbox, mut client) = standing_still(ASK_TOUCH, &json!({}));
    let asked = pending(&sandbox);
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(asked[0]["asked"]["command"].as_str().unwrap().ends_with("touch here"), "{asked:?}");
    assert_eq!(asked[0]["asked"]["why"], "look first");
    assert!(!sandbox.path().join("here").exists());
    let (_, jobs) = outlast(&sandbox, &["jobs", "--all"]);
    assert!(jobs.to_string().contains("\"asking\""), "{jobs}");
    let question = asked[0]["asked"]["question"].to_string();
    assert_ne!(outlast(&sandbox, &["policy", "answer", "1", "77", "yes"]).0, 0, "nobody asked that");
    assert_eq!(outlast(&sandbox, &["policy", "answer", "1", &question, "yes"]).0, 0);
    let done = ended(&mut client);
    assert_eq!(done["exit_code"], 0, "{done}");
    assert!(sandbox.path().join("here").exists());
    assert!(pending(&sandbox).is_empty());
    let audit = std::fs::read_to_string(sandbox.path().join("home/audit.jsonl")).unwrap();
    assert!(audit.contains("touch here") && audit.contains("\"answer\":\"yes\""), "{audit}");
}

#[test]
fn a_no_is_a_refusal_in_every_folder_of_the_path() {
    let (sandbox, mut client) = standing_still(ASK_TOUCH, &json!({}));
    let question = pending(&sandbox)[0]["asked"]["question"].to_string();
    assert_eq!(outlast(&sandbox, &["policy", "answer", "1", &question, "no"]).0, 0);
    let done = ended(&mut client);
    let output = std::fs::read_to_string(sandbox.path().join("home/jobs/1/stdout.txt")).unwrap();
    assert!(output.contains("after 126"), "{output}");
    assert_eq!(done["exit_code"], 0, "{done}");
    assert!(!sandbox.path().join("here").exists());
}

#[test]
fn no_answer_in_time_is_a_no() {
    let (sandbox, mut client) = standing_still(&ASK_TOUCH.replace("300s", "1s"), &json!({}));
    let done = ended(&mut client);
    assert_eq!(done["exit_code"], 0, "{done}");
    assert!(!sandbox.path().join("here").exists() && pending(&sandbox).is_empty());
}

#[test]
fn the_next_call_of_the_session_asks() {
    let (sandbox, mut client) = standing_still(ASK_TOUCH, &json!({"elicitation": {}}));
    let id =
        client.ask("tools/call", json!({"name": "wait_for", "arguments": {"handle": "1", "timeout": 60}}));
    let question = client.hear_until("a question", |message| message["method"] == "elicitation/create");
    let said = question["params"]["message"].as_str().unwrap();
    assert!(said.contains("job 1") && said.contains("touch here") && said.contains("look first"), "{said}");
    let yes = json!({"action": "accept", "content": {"agree": true}});
    client.say(&json!({"jsonrpc": "2.0", "id": question["id"], "result": yes}));
    let done = client.answer(id)["result"].clone();
    assert_eq!(done["structuredContent"]["exit_code"], 0, "{done}");
    assert!(sandbox.path().join("here").exists());
}

#[test]
fn a_keeper_killed_while_it_asks_hangs_nobody() {
    let (sandbox, mut client) = standing_still(ASK_TOUCH, &json!({}));
    let keeper = i32::try_from(info(&sandbox, 1)["keeper"]["pid"].as_i64().unwrap()).unwrap();
    processes::kill_dash_nine(&processes::find(keeper).unwrap());
    eventually("the heir asks again", || pending(&sandbox).len() == 1 && info(&sandbox, 1)["takeovers"] == 1);
    let question = pending(&sandbox)[0]["asked"]["question"].to_string();
    assert_eq!(outlast(&sandbox, &["policy", "answer", "1", &question, "yes"]).0, 0);
    assert_eq!(ended(&mut client)["exit_code"], 0);
    assert!(sandbox.path().join("here").exists());
}

#[test]
fn a_question_of_a_process_that_is_gone_is_withdrawn() {
    let (sandbox, mut client) = standing_still(ASK_TOUCH, &json!({}));
    let pid = i32::try_from(pending(&sandbox)[0]["asked"]["pid"].as_i64().unwrap()).unwrap();
    processes::kill_dash_nine(&processes::find(pid).unwrap());
    eventually("nothing is asked", || pending(&sandbox).is_empty());
    assert_eq!(ended(&mut client)["exit_code"], 0);
    assert!(!sandbox.path().join("here").exists());
}

#[test]
fn nobody_inside_a_job_answers() {
    let (sandbox, mut client) = standing_still(ASK_TOUCH, &json!({}));
    let home = sandbox.path().join("home").display().to_string();
    let text = format!(
        "#!/bin/sh\nexport OUTLAST_HOME={home}\n{PROGRAM} policy answer 1 1 yes\n\
         printf '{{\"id\":1,\"outlast\":2,\"verb\":\"answer_question\",\"question\":1,\"allow\":true,\"by\":\"me\"}}\\n' | \
         timeout 5 socat - UNIX-CONNECT:{home}/jobs/1/socket\n"
    );
    script(&sandbox, "approve", &text);
    let said = run(&mut client, "./approve").to_string();
    assert!(said.contains("inside a job"), "{said}");
    assert_eq!(pending(&sandbox).len(), 1, "{said}");
    assert!(!sandbox.path().join("here").exists(), "{said}");
}
