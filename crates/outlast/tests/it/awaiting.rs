//! Whether a job waits for input, where a clock can wake it, too: programs at work are not asking, and answers come
//! after the output that they are to hold.

use outlast_testkit::{Sandbox, has};
use serde_json::Value;

use crate::sandbox;

/// What a wait for a question or for the end says of a Python program.
fn asked_or_ended(sandbox: &Sandbox, program: &[&str]) -> Value {
    let job = sandbox.start(["--"].iter().chain(program)).to_string();
    sandbox.json(["wait", &job, "--input", "--exit", "--deadline", "60s"])
}

/// A build tool that can be told to stop, for example.
#[test]
fn a_reader_beside_a_loop_with_a_timed_wait_is_not_asking() {
    if !has("python3") {
        return;
    }
    let sandbox = sandbox();
    let program = "import os,sys,threading\n\
        threading.Thread(target=sys.stdin.readline,daemon=True).start()\n\
        for step in range(10): threading.Event().wait(.2)\n\
        os._exit(0)";
    let answer = asked_or_ended(&sandbox, &["python3", "-c", program]);
    assert_eq!(answer["reason"], "exit", "{answer}");
}

#[test]
fn a_question_beside_a_timed_wait_is_likely_and_no_more() {
    if !has("python3") {
        return;
    }
    let sandbox = sandbox();
    let program = "import os,sys,threading\n\
        print('Stop? ',end='',flush=True)\n\
        threading.Thread(target=sys.stdin.readline,daemon=True).start()\n\
        while True: threading.Event().wait(.2)";
    let answer = asked_or_ended(&sandbox, &["python3", "-c", program]);
    assert_eq!(answer["reason"], "awaiting_input", "{answer}");
    assert_eq!(answer["awaiting_input"]["level"], "likely", "{answer}");
    assert_eq!(answer["awaiting_input"]["prompt"], "Stop?", "{answer}");
}

/// Spinners throw away what is typed meanwhile, and so read the terminal.
#[test]
fn a_spinner_is_not_asking() {
    if !has("node") {
        return;
    }
    let sandbox = sandbox();
    for (period, row) in [(130, "Installing packages"), (400, "Uploading (1/3):")] {
        let program = format!(
            "process.stdin.setRawMode(true);process.stdin.on('data',()=>{{}});process.stdout.write('\\x1b[?25l');\
             let n=0;const draw=()=>process.stdout.write('\\r\\x1b[K'+'-\\\\|/'[n++%4]+' {row}');\
             draw();setInterval(draw,{period});setTimeout(()=>process.exit(),2500)"
        );
        let answer = asked_or_ended(&sandbox, &["node", "-e", &program]);
        assert_eq!(answer["reason"], "exit", "{row} every {period} ms: {answer}");
    }
}

/// An interpreter that edits lines itself, and goes on with a timer while it works, as mongosh does.
#[test]
fn an_interpreter_that_marks_pastes_is_not_asking_while_it_works() {
    if !has("node") {
        return;
    }
    let sandbox = sandbox();
    let program = "process.stdin.setRawMode(true);process.stdout.write('\\x1b[?2004hdb> ');\
        process.stdin.on('data',line=>{process.stdout.write(line.toString().trim()+'\\r\\n');\
        setTimeout(()=>process.stdout.write('slept\\r\\ndb> '),1500)})";
    let job = sandbox.start(["--", "node", "-e", program]).to_string();
    sandbox.json(["wait", &job, "--input", "--deadline", "60s"]);
    let answer = sandbox.json(["send", &job, "sleep(1500)", "--deadline", "60s"]);
    assert_eq!(answer["reason"], "awaiting_input", "{answer}");
    assert_eq!(answer["output"], "sleep(1500)\nslept\ndb> ", "{answer}");
}

/// Each answer has what the program printed, and its next prompt.
#[track_caller]
fn answers(sandbox: &Sandbox, job: &str, exchanges: &[(&str, &str)]) {
    for (input, printed) in exchanges {
        let answer = sandbox.json(["send", job, input, "--deadline", "60s"]);
        let output = answer["output"].as_str().unwrap();
        assert_eq!(answer["reason"], "awaiting_input", "{input}: {answer}");
        assert!(output.contains(printed) && output.ends_with("> "), "{input}: {answer}");
    }
}

/// GNU readline can show the bracket that belongs to the one just typed: it puts the cursor there for half a second,
/// and the input that follows is in its own buffer by then.
#[test]
fn a_line_editor_that_shows_brackets_is_not_asking_meanwhile() {
    if !has("python3") {
        return;
    }
    let sandbox = sandbox();
    let program = r"
import os, select, sys, tty
tty.setraw(0)
out = lambda text: (sys.stdout.write(text), sys.stdout.flush())
number, line = 1, ''
out('calc:1> ')
while True:
    if not select.select([0], [], [], .1)[0]:
        continue
    for key in os.read(0, 4096).decode():
        if key == '\r':
            number += 1
            out('\r\n= %s\r\ncalc:%d> ' % (eval(line), number))
            line = ''
            continue
        line += key
        out(key)
        if key == ')':
            back = len(line) - line.rindex('(')
            out('\x1b[%dD' % back)
            select.select([0], [], [], .5)
            out('\x1b[%dC' % back)
";
    let job = sandbox.start(["--", "python3", "-c", program]).to_string();
    sandbox.json(["wait", &job, "--input", "--deadline", "60s"]);
    answers(&sandbox, &job, &[("sum((1,2))", "= 3"), ("(1+2)*3", "= 9"), ("7", "= 7"), ("3>(2)", "= True")]);
    // Half a line is waited for, too.
    let half = sandbox.json(["send", &job, "--no-newline", "40+", "--deadline", "60s"]);
    assert_eq!((&half["reason"], &half["output"]), (&"awaiting_input".into(), &"40+".into()), "{half}");
    answers(&sandbox, &job, &[("2", "= 42")]);
}

#[test]
fn octave_answers_after_its_output() {
    if !has("octave-cli") {
        return;
    }
    let sandbox = sandbox();
    let job = sandbox.start(["--", "octave-cli", "-q", "--norc"]).to_string();
    sandbox.json(["wait", &job, "--input", "--deadline", "60s"]);
    let exchanges = [
        ("pause(0.5); printf(\"%s\\n\",\"A\")", "\nA\n"),
        ("(1+2)*3", "ans = 9"),
        ("x = 4", "x = 4"),
        ("disp(sum([1 2]))", "\n3\n"),
    ];
    answers(&sandbox, &job, &exchanges);
}

/// A program that waits without having printed anything is shown as waiting.
#[test]
fn a_reader_without_a_prompt_is_listed_as_waiting() {
    let sandbox = sandbox();
    sandbox.start(["--name", "ct", "cat"]);
    let row = outlast_testkit::eventually("`jobs` shows what waits", outlast_testkit::TEST_TIMEOUT, || {
        let row = sandbox.json(["jobs"])["jobs"][0].clone();
        if row["awaiting_input"].is_object() { Ok(row) } else { Err(row) }
    });
    assert_eq!(
        (&row["activity"], &row["awaiting_input"]["level"]),
        (&"awaiting_input".into(), &"certain".into())
    );
    sandbox.run(["kill", "ct"]).ok();
}

/// What a wait says whose time is up.
fn late(sandbox: &Sandbox, args: &[&str]) -> Value {
    sandbox.call(["--json"]).args(args).run().code(4).json()
}

/// A development server, for example: it takes keys, and goes on without.
const LISTENER: &str = "process.stdin.on('data',()=>{});console.log('up');setInterval(()=>{},5000)";

#[test]
fn a_job_that_listens_is_said_to_and_can_be_waited_for() {
    if !has("node") {
        return;
    }
    let sandbox = sandbox();
    let job = sandbox.start(["--", "node", "-e", LISTENER]).to_string();
    let answer = sandbox.json(["wait", &job, "--input=listening", "--exit", "--deadline", "60s"]);
    assert_eq!(answer["reason"], "awaiting_input", "{answer}");
    assert_eq!(answer["awaiting_input"]["level"], "listening", "{answer}");
    // Who asks for less is not told that it waits, but that it listens.
    let late = late(&sandbox, &["wait", &job, "--input", "--deadline", "1s"]);
    assert_eq!(
        (&late["reason"], &late["listening"]["level"]),
        (&"deadline".into(), &"listening".into()),
        "{late}"
    );
    assert!(late["awaiting_input"].is_null(), "{late}");
    // A job that has just printed something is working.
    outlast_testkit::eventually("`jobs` shows what listens", outlast_testkit::TEST_TIMEOUT, || {
        let row = sandbox.json(["jobs"])["jobs"][0].clone();
        if row["activity"] == "listening" { Ok(()) } else { Err(row) }
    });
    sandbox.run(["kill", &job]).ok();
}

#[test]
fn a_wait_can_ask_for_a_least_level() {
    let sandbox = sandbox();
    let beside_a_sleeper =
        sandbox.start(["--", "sh", "-c", "sleep 60 & printf 'Name: '; read x"]).to_string();
    let likely = sandbox.json(["wait", &beside_a_sleeper, "--input=likely", "--deadline", "60s"]);
    assert_eq!(likely["awaiting_input"]["level"], "likely", "{likely}");
    let late = late(&sandbox, &["wait", &beside_a_sleeper, "--input=certain", "--deadline", "500ms"]);
    assert_eq!(late["reason"], "deadline", "{late}");
    let alone = sandbox.start(["--", "sh", "-c", "printf 'Name: '; read x"]).to_string();
    let certain = sandbox.json(["wait", &alone, "--input=certain", "--deadline", "60s"]);
    assert_eq!(certain["awaiting_input"]["level"], "certain", "{certain}");
    sandbox.run(["wait", &alone, "--input=perhaps"]).code(2).says("certain, likely, possible, listening");
}

/// Without a terminal: the pipe to it is empty, and only we can write to it.
#[test]
fn a_job_without_a_terminal_waits_at_its_empty_pipe() {
    let sandbox = sandbox();
    let job = sandbox
        .start(["--pipe", "--", "sh", "-c", "echo 'What is your name?'; read x; echo $x; cat"])
        .to_string();
    let asked = sandbox.json(["wait", &job, "--input", "--exit", "--deadline", "60s"]);
    let awaiting = &asked["awaiting_input"];
    assert_eq!((&awaiting["kind"], &awaiting["level"]), (&"stdin".into(), &"certain".into()), "{asked}");
    assert_eq!(awaiting["prompt"], "What is your name?", "{asked}");
    let answered = sandbox.json(["send", &job, "Ann", "--deadline", "60s"]);
    assert_eq!(
        (&answered["reason"], &answered["output"]),
        (&"awaiting_input".into(), &"Ann\n".into()),
        "{answered}"
    );
}

/// A server that speaks a protocol idles at its input, too. Nobody is told of that.
#[test]
fn a_job_that_never_asked_is_not_told_to_wait_at_its_pipe() {
    let sandbox = sandbox();
    let job = sandbox.start(["--pipe", "--", "sh", "-c", "echo ready; cat"]).to_string();
    sandbox.json(["wait", &job, "--quiet-for", "2s", "--deadline", "60s"]);
    let listed = sandbox.json(["jobs"]);
    assert!(listed["jobs"][0]["awaiting_input"].is_null(), "{listed}");
    let asked = sandbox.json(["wait", &job, "--input", "--deadline", "60s"]);
    assert_eq!(asked["awaiting_input"]["kind"], "stdin", "{asked}");
}
