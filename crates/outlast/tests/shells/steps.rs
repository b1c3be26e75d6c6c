//! What a step is told, and what is told of it.

use std::collections::BTreeMap;

use outlast_job::shell::{StepOrder, StepState};
use outlast_job::{Condition, Kind, Reason, Wait};
use outlast_testkit::TEST_TIMEOUT;

use crate::{Main, finished, printed, sandbox};

#[test]
fn a_shell_remembers_folder_variables_functions_and_options() {
    let sandbox = sandbox();
    let main = Main::new(&sandbox);
    let (step, _) = main.run("mkdir -p a/b && cd a/b; export X=1; y=2; f() { echo f $1; }; alias g='echo g'");
    let folder = sandbox.work().join("a/b");
    assert_eq!(step.new_folder(), folder.to_str());
    assert_eq!(main.says("echo $X $y; f z; g; pwd"), format!("1 2\nf z\ng\n{}\n", folder.display()));
    let (step, _) = main.run("true");
    assert_eq!(step.new_folder(), None);
    assert_eq!(step.step, 3);
    assert_eq!(main.run("false | true | (exit 3)").0.pipeline, [1, 0, 3]);
    let events = sandbox.events(1);
    let of = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    assert_eq!((of("step_started"), of("step")), (4, 4), "{events:?}");
}

/// Symptom that this guards against: the log of events grows with every step, for as long as the shell lives.
#[test]
fn steps_have_a_file_of_their_own_and_are_told_in_their_place() {
    let sandbox = sandbox();
    let main = Main::new(&sandbox);
    for number in 1..=3 {
        assert_eq!(
            main.says(&format!("echo {number}; mkdir -p s{number}; cd s{number}")),
            format!("{number}\n")
        );
    }
    let job = main.outlast.job("1").unwrap();
    let told = job.event_lines(1 << 20).unwrap();
    let events: Vec<serde_json::Value> =
        told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<u64>>(), "{told}");
    let of = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    assert_eq!((of("started"), of("step_started"), of("step")), (1, 3, 3), "{told}");
    let other = std::fs::read_to_string(sandbox.job(1).join("events.jsonl")).unwrap();
    assert!(other.contains("started") && !other.contains("step"), "{other}");
    assert_eq!(job.shell_folder().unwrap(), sandbox.work().join("s1/s2/s3").to_str().unwrap());
    assert_eq!(sandbox.run(["read", "1", "--step", "2"]).ok().text(), "2\n");
    sandbox.run(["kill", "1", "--force"]).ok();
    assert_eq!(sandbox.run(["read", "1", "--step", "3"]).ok().text(), "3\n");
}

#[test]
fn folder_and_variables_of_one_step_are_put_back() {
    let sandbox = sandbox();
    let main = Main::new(&sandbox);
    main.says("mkdir sub; export KEPT=old; PLAIN=p");
    let env = [("KEPT", Some("new's \"x\"")), ("PLAIN", Some("q")), ("FRESH", Some("f")), ("HOME", None)];
    let env: BTreeMap<_, _> = env.map(|(name, value)| (name.to_owned(), value.map(str::to_owned))).into();
    let order = StepOrder {
        command: "env | grep -E '^(KEPT|PLAIN|FRESH|HOME)=' | sort; pwd; cd /".into(),
        folder: Some(sandbox.work().join("sub").to_str().unwrap().into()),
        env,
        ..StepOrder::default()
    };
    let (step, output) = main.run_order(&order);
    let sub = sandbox.work().join("sub");
    assert_eq!(output, format!("FRESH=f\nKEPT=new's \"x\"\nPLAIN=q\n{}\n", sub.display()));
    assert_eq!(step.new_folder(), None, "{step:?}");
    let after =
        main.says("echo ${KEPT-} ${PLAIN-} ${FRESH-none} ${HOME+home}; pwd; env | grep -c ^PLAIN= || true");
    assert_eq!(after, format!("old p none home\n{}\n0\n", sandbox.work().display()));
    let nowhere =
        StepOrder { command: "echo ran".into(), folder: Some("/nowhere".into()), ..StepOrder::default() };
    let (step, output) = main.run_order(&nowhere);
    assert_eq!(step.exit_code, Some(1));
    assert!(output.contains("/nowhere") && !output.contains("ran"), "{output}");
}

#[test]
fn steps_wait_for_their_turn_or_are_refused() {
    let sandbox = sandbox();
    let main = Main::new(&sandbox);
    let (job, first) = main.begin("echo begun; read x; echo got $x");
    printed(&job, first.step, "begun");
    let (_, second) = main.begin("echo second");
    assert_eq!((second.step, second.state), (2, StepState::Queued));
    let idle = StepOrder { command: "echo no".into(), if_idle: true, ..StepOrder::default() };
    let refused = main.outlast.step(&main.spec, &idle).unwrap_err();
    assert_eq!(refused.kind, Kind::Denied, "{refused}");
    assert!(refused.message.contains("shell main, step 1 runs: echo begun"), "{refused}");
    let late = job.wait(&Wait::for_exit().of_step(2), Some(std::time::Duration::from_millis(50))).unwrap();
    assert_eq!((late.reason, late.step.unwrap().state), (Reason::Deadline, StepState::Queued));
    job.type_line("yes").unwrap();
    let (step, output) = finished(&job, 2);
    assert_eq!((step.exit_code, output.as_str()), (Some(0), "second\n"));
    assert_eq!(finished(&job, 1).1, "begun\nyes\ngot yes\n");
}

#[test]
fn a_question_of_a_step_is_seen_and_answered() {
    let sandbox = sandbox();
    let main = Main::new(&sandbox);
    main.says("true");
    let (job, step) = main.begin("read -p 'Sure? ' x; echo said $x");
    let wait = Wait::for_exit().or(Condition::AwaitingInput).of_step(step.step);
    let waited = job.wait(&wait, Some(TEST_TIMEOUT)).unwrap();
    assert_eq!(waited.reason, Reason::AwaitingInput, "{waited:?}");
    job.type_line("y").unwrap();
    assert!(finished(&job, step.step).1.ends_with("said y\n"));
    // An idle shell asks nobody anything.
    let status = job.status().unwrap().unwrap();
    assert!(status.awaiting_input.is_none(), "{status:?}");
}

#[test]
fn a_command_of_a_megabyte_is_run() {
    let sandbox = sandbox();
    let main = Main::new(&sandbox);
    let long = "x".repeat(900 << 10);
    assert_eq!(main.says(&format!("v={long}; echo ${{#v}}")), format!("{}\n", long.len()));
}

#[test]
fn the_command_line_runs_steps_with_the_code_of_the_step() {
    let sandbox = sandbox();
    sandbox.run(["run", "--shell", "main", "cd /usr; export A=5"]).ok();
    let ran = sandbox.run(["run", "--shell", "main", "echo $A $PWD; (exit 3)"]);
    assert_eq!((ran.code, ran.stdout.as_slice()), (Some(3), b"5 /usr\n".as_slice()), "{ran:?}");
    let ran = sandbox.run(["--json", "run", "--shell", "main", "cd /tmp; true | false"]).json();
    let facts =
        (&ran["shell"], &ran["step"], &ran["exit_code"], &ran["folder"], &ran["pipeline"], &ran["status"]);
    let wanted = serde_json::json!(["main", 3, 1, "/tmp", [0, 1], "failed"]);
    assert_eq!(serde_json::json!([facts.0, facts.1, facts.2, facts.3, facts.4, facts.5]), wanted, "{ran}");
    let handle = ran["handle"].to_string();
    assert_eq!(sandbox.run(["read", &handle, "--step", "2"]).ok().stdout, b"5 /usr\n");
    let one = sandbox.run(["run", "--shell", "main", "--cwd", "/", "-e", "A=6", "echo $A $PWD"]).ok();
    assert_eq!(one.stdout, b"6 /\n");
    let back = sandbox.run(["run", "--shell", "main", "--env", "B=7", "echo $A $PWD"]).ok();
    assert_eq!(back.stdout, b"5 /tmp\n");
    // Another session has its own.
    let other =
        sandbox.call(["run", "--shell", "main", "echo $A"]).env("OUTLAST_SESSION", "other").run().ok();
    assert_eq!(other.stdout, b"\n");
}

#[test]
fn lists_replays_and_recordings_know_the_steps() {
    let sandbox = sandbox();
    let main = Main::new(&sandbox);
    main.says("echo first");
    main.says("printf '\\033[2J\\033[H'; echo second");
    let (job, step) = main.begin("echo up; cat\ntrue");
    printed(&job, step.step, "up");
    let jobs = sandbox.run(["jobs", "--all", "--json"]).json();
    let shown = serde_json::json!({ "step": 3, "command": "echo up; cat" });
    assert_eq!(jobs["jobs"][0]["step"], shown, "{jobs}");
    let command = jobs["jobs"][0]["command"].as_str().unwrap();
    assert!(command.ends_with(", step 3: echo up; cat"), "{jobs}");
    assert_eq!(sandbox.run(["replay", "1", "--step", "1"]).ok().text(), "first\n");
    assert_eq!(sandbox.run(["replay", "1", "--step", "2"]).ok().text(), "second\n");
    let cast = sandbox.run(["replay", "1", "--export", "cast"]).ok().text();
    let marks: Vec<&str> = cast.lines().filter(|line| line.contains(",\"m\",")).collect();
    assert_eq!(marks.len(), 3, "{cast}");
    assert!(marks[2].contains("step 3: echo up; cat"), "{cast}");
    job.end_step(None, crate::GRACE, "me").unwrap();
    finished(&job, step.step);
}
