//! Rules that name files: what an agent's job can't read or change, whatever the program and the spelling.

use outlast_testkit::{has, left_out};
use serde_json::{Value, json};

use crate::client::{Client, PROGRAM, Sandbox, eventually};

const SECRET: &str = "k3y-of-the-envelope";
const NO_ENV: &str = "[[rule]]\ndecision = \"deny\"\npath = \".env\"\n";

/// Ways to show the file. Each is tried as the line of a call, and as a script that no text shows.
const WAYS: &[&str] = &[
    "cat .env",
    "cat ./.env",
    "cat $PWD/.env",
    "cat README .env",
    "cat < .env",
    "cat 0< .env",
    "cat '.env'",
    "cat \".e\"nv",
    "cat .e\\nv",
    "cat $'\\x2eenv'",
    "cat .e*",
    "cat .??v",
    "cat .[e]nv",
    "cat {.env,}",
    "X=.env; cat $X",
    "X=nv; cat .e$X",
    "cat $(echo .env)",
    "cat $(printf '.%s' env)",
    "cat `ls -A | grep '^.env$'`",
    "head -c 100 .env",
    "tail .env",
    "less -F .env",
    "more .env",
    "nl .env",
    "tac .env | tac",
    "rev .env | rev",
    "od -c .env | tr -d ' \\n0-9'",
    "xxd .env | xxd -r",
    "base64 .env | base64 -d",
    "grep . .env",
    "grep -r envelope .",
    "sed p .env",
    "awk 1 .env",
    "sort .env",
    "uniq .env",
    "cut -c1- .env",
    "paste .env",
    "fold .env",
    "fmt .env",
    "pr .env",
    "tr a a < .env",
    "dd if=.env",
    "diff /dev/null .env",
    "cmp -l .env /dev/null; comm .env /dev/null",
    "git diff --no-index /dev/null .env",
    "tar cf - .env | tar xOf -",
    "cp .env g; cat g",
    "mv .env g; cat g",
    "ln .env h; cat h",
    "ln -s .env s; cat s",
    "ln -s $PWD d; cat d/.env",
    "install .env i; cat i",
    "echo $(<.env)",
    "while read -r l; do echo \"$l\"; done < .env",
    "mapfile -t a < .env; echo \"${a[@]}\"",
    "set -a; . ./.env; set +a; env",
    "source .env; echo $TOKEN",
    "bash -c 'cat .env'",
    "find . -name .env -exec cat {} +",
    "ls -A | xargs cat",
    "python3 -c 'print(open(\".env\").read())'",
    "perl -pe '' .env",
    "cd ..; cat work/.env",
    "cat /proc/self/cwd/.env",
    "for p in /proc/[0-9]*; do cat $p/cwd/.env $p/root$PWD/.env; done",
    "umount .env; cat .env",
    "unshare -m sh -c 'umount .env; cat .env'",
    "unshare -Urm sh -c 'umount .env; cat .env'",
    "nsenter -t 1 -m cat $PWD/.env",
    "setsid nohup cat .env",
    "(cat .env &) ; wait; sleep 0.1",
    "cat sub/.env",
    "cat sub/deep/.env",
];

/// A project with the file, and a server in it.
fn project(policy: &str) -> (Sandbox, std::path::PathBuf) {
    let sandbox = Sandbox::new();
    let folder = sandbox.path().join(".config/outlast");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("policy.toml"), policy).unwrap();
    let work = sandbox.path().join("work");
    std::fs::create_dir_all(work.join("sub/deep")).unwrap();
    std::fs::write(work.join("README"), "read me\n").unwrap();
    for file in [".env", "sub/.env", "sub/deep/.env"] {
        std::fs::write(work.join(file), format!("TOKEN={SECRET}\n")).unwrap();
    }
    (sandbox, work)
}

fn client(sandbox: &Sandbox, work: &std::path::Path) -> Client {
    let mut command = sandbox.command(&[]);
    command.current_dir(work);
    Client::start(command).initialized("2025-06-18", &json!({}))
}

fn can_close() -> bool {
    match outlast_pty::confine::can_enclose() {
        Ok(()) => true,
        Err(error) => {
            left_out(&format!("no namespaces here: {error}"), "allow user namespaces");
            false
        }
    }
}

fn run(client: &mut Client, command: &str) -> Value {
    client.call("run_shell_command", json!({"command": command, "timeout": 60}))
}

/// What of the secret is in a log.
fn shown(sandbox: &Sandbox, told: &Value) -> bool {
    let jobs = sandbox.path().join("home/jobs");
    let logs = std::fs::read_dir(jobs).into_iter().flatten().flatten();
    let in_log = logs
        .filter_map(|job| std::fs::read(job.path().join("output.log")).ok())
        .any(|log| String::from_utf8_lossy(&log).contains(SECRET));
    in_log || told.to_string().contains(SECRET)
}

/// Which ways show the file, as scripts, which no text betrays.
fn ways_through(sandbox: &Sandbox, work: &std::path::Path) -> Vec<&'static str> {
    let mut client = client(sandbox, work);
    let mut through = Vec::new();
    for way in WAYS {
        std::fs::write(work.join("way.sh"), format!("{way}\n")).unwrap();
        let told = run(&mut client, "bash way.sh");
        if shown(sandbox, &told) {
            through.push(*way);
            std::fs::write(work.join(".env"), format!("TOKEN={SECRET}\n")).unwrap();
            let _ = std::fs::remove_dir_all(sandbox.path().join("home/jobs"));
        }
        for left in ["g", "h", "s", "d", "i"] {
            let _ = std::fs::remove_file(work.join(left));
        }
    }
    through
}

/// Symptom that this guards against: `deny cat .env` is written, and 28 of 57 other ways show the file.
#[test]
fn a_closed_file_is_not_shown_by_any_way() {
    if !can_close() {
        return;
    }
    let (sandbox, work) = project(NO_ENV);
    assert_eq!(ways_through(&sandbox, &work), [""; 0]);
    assert_eq!(std::fs::read_to_string(work.join(".env")).unwrap(), format!("TOKEN={SECRET}\n"));
}

#[test]
fn text_that_could_name_a_closed_file_is_asked_about() {
    if !can_close() {
        return;
    }
    let (sandbox, work) = project(NO_ENV);
    let mut client = client(&sandbox, &work);
    for line in ["cat .env", "cat < .env", "cat .e*", "cp .env x", "cat sub/.env", "cat '.e'nv"] {
        let told = run(&mut client, line);
        assert!(told.to_string().contains("deny path .env"), "{line}: {told}");
    }
    let told = run(&mut client, "cat README");
    assert!(told.to_string().contains("read me"), "{told}");
}

#[test]
fn a_file_that_may_not_be_changed_can_be_read() {
    if !can_close() {
        return;
    }
    let (sandbox, work) =
        project("[[rule]]\ndecision = \"deny\"\npath = [\"README\", \"new\"]\naccess = \"write\"\n");
    let mut client = client(&sandbox, &work);
    let told = run(&mut client, "cat README; echo x >> README; rm -f README; mv README y; echo x > new; ls");
    assert!(told.to_string().contains("read me"), "{told}");
    assert_eq!(std::fs::read_to_string(work.join("README")).unwrap(), "read me\n");
    eventually("nothing is left of the placeholder", || !work.join("new").exists());
    assert!(!work.join("y").exists());
}

/// Who is asked before the job starts opens the file for that job alone.
#[test]
fn an_ask_rule_is_asked_before_the_job_starts() {
    if !can_close() {
        return;
    }
    let (sandbox, work) = project("[[rule]]\ndecision = \"ask\"\npath = \".env\"\n");
    let mut command = sandbox.command(&[]);
    command.current_dir(&work);
    let mut client = Client::start(command).initialized("2025-06-18", &json!({"elicitation": {}}));
    let call = json!({"name": "run_shell_command", "arguments": {"command": "wc -c .env"}});
    let id = client.ask("tools/call", call);
    let question = client.hear_until("a question", |message| message["method"] == "elicitation/create");
    let yes = json!({"action": "accept", "content": {"agree": true}});
    client.say(&json!({"jsonrpc": "2.0", "id": question["id"], "result": yes}));
    let done = client.answer(id)["result"].clone();
    assert_eq!(done["structuredContent"]["exit_code"], 0, "{done}");
    // A job that does not name it was not asked about, and has it closed.
    std::fs::write(work.join("way.sh"), "wc -c .env\n").unwrap();
    let told = run(&mut client, "bash way.sh");
    assert_eq!(told["structuredContent"]["exit_code"], 1, "{told}");
}

/// A file in the sandbox of agents, and jobs that a job starts.
#[test]
fn a_closed_file_stays_closed_in_a_sandbox_and_in_nested_jobs() {
    if !can_close() {
        return;
    }
    let (sandbox, work) = project(&format!("{NO_ENV}[agents]\nothers = \"allow\"\n"));
    let home = sandbox.path().join("home").display().to_string();
    let nested = format!("OUTLAST_HOME={home} {PROGRAM} run -q -n ./inner.sh\n");
    std::fs::write(work.join("way.sh"), nested).unwrap();
    std::fs::write(work.join("inner.sh"), "#!/bin/sh\necho inner; cat .env\n").unwrap();
    std::fs::set_permissions(work.join("inner.sh"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let told = run(&mut client(&sandbox, &work), "sh way.sh");
    assert!(told.to_string().contains("inner") && !shown(&sandbox, &told), "{told}");
    let mut backends = vec!["kernel"];
    if has("bwrap") {
        backends.push("bwrap");
    }
    for by in backends {
        let settings = format!("[agents.sandbox]\nby = \"{by}\"\n");
        std::fs::write(sandbox.path().join(".config/outlast/config.toml"), settings).unwrap();
        std::fs::write(work.join("way.sh"), "echo begun; cat .env; cat sub/.env; cp .env x; cat x\n")
            .unwrap();
        let told = run(&mut client(&sandbox, &work), "sh way.sh");
        assert!(told.to_string().contains("begun") && !shown(&sandbox, &told), "{by}: {told}");
    }
}

#[test]
fn a_rule_about_files_that_makes_no_sense_does_not_load() {
    let wrong = [
        ("path = \".env\"\nprefix = \"cat\"", "not about both"),
        ("path = \"a/b\"", "begins with / or ~/"),
        ("path = \"**/x\"", "wildcards"),
        ("path = \"..\"", "names no file"),
        ("prefix = \"cat\"\naccess = \"read\"", "belongs to a rule with a path"),
    ];
    for (rule, why) in wrong {
        let (sandbox, _) = project(&format!("[[rule]]\ndecision = \"deny\"\n{rule}\n"));
        let output = sandbox.of_environment(PROGRAM).args(["policy", "check"]).output().unwrap();
        let said =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success() && said.contains(why), "{rule}: {said}");
    }
}

/// Symptom that this guards against: such a job has process numbers of its own, a job that it starts knows itself by those, was
/// taken for a part of it, and was ended with it.
#[test]
fn a_job_that_was_started_from_inside_is_not_ended_with_the_outer_one() {
    if !can_close() {
        return;
    }
    let (sandbox, work) = project(NO_ENV);
    let mut client = client(&sandbox, &work);
    let home = sandbox.path().join("home");
    let inner =
        format!("'{PROGRAM}' --home '{}' run -d --name inner -- sleep 1000; sleep 1000", home.display());
    client.call("run_shell_command", json!({"command": inner, "ai_callback_delay": 0.2}));
    let outlast = |words: &[&str]| {
        let mut command = sandbox.of_environment(PROGRAM);
        let output = command.arg("--home").arg(&home).args(words).arg("--json").output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default()
    };
    eventually("the inner job runs", || outlast(&["show", "inner"])["status"] == "running");
    let killed = outlast(&["kill", "1", "--force"]);
    assert_eq!((&killed["status"], &killed["survivors"]), (&json!("killed"), &json!([])), "{killed}");
    let shown = outlast(&["show", "inner"]);
    assert_eq!(shown["status"], "running", "{shown}");
    let killed = outlast(&["kill", "inner", "--force"]);
    assert_eq!((&killed["status"], &killed["survivors"]), (&json!("killed"), &json!([])), "{killed}");
}
