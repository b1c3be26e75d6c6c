//! Text of several lines in one call: each program takes it as its lines, and the answer has all that came of
//! them.

use std::path::PathBuf;
use std::process::Command;

use outlast_testkit::{Conversation, Sandbox, has, left_out};
use serde_json::{Value, json};

use crate::{lines, sandbox, tui_job};

/// How often each is typed: once may be luck.
const ROUNDS: usize = 10;

/// A definition in a definition, where typed indents would add to those that a program makes by itself.
const NESTED: &str = "def outer(n):\n    def inner(k):\n        return k * 2\n    return inner(n) + 1\n";

/// An agent that has one job, at its prompt.
struct Agent {
    server: Conversation,
    handle: Value,
}

impl Agent {
    #[track_caller]
    fn with(sandbox: &Sandbox, command: &str) -> Self {
        let mut server = sandbox.call(["mcp"]).converse();
        server.call(
            "initialize",
            json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "tests", "version": "1"},
            }),
        );
        server.notify("notifications/initialized", json!({}));
        let mut agent = Self { server, handle: Value::Null };
        let run = json!({"command": format!("exec {command}"), "ai_callback_delay": 30});
        let started = agent.tool("run_shell_command", run);
        assert_eq!(started["reason"], "awaiting_input", "{started}");
        agent.handle = started["handle"].clone();
        agent
    }

    #[track_caller]
    fn call(&mut self, name: &str, arguments: Value) -> Value {
        let result = self.server.call("tools/call", json!({"name": name, "arguments": arguments}));
        assert_ne!(result["isError"], true, "{name}: {result}");
        result
    }

    #[track_caller]
    fn tool(&mut self, name: &str, arguments: Value) -> Value {
        self.call(name, arguments)["structuredContent"].clone()
    }

    /// Types, and insists that the program asks again; what it printed.
    #[track_caller]
    fn types(&mut self, input: &str) -> String {
        let send = json!({"handle": self.handle, "input": input, "ai_callback_delay": 30});
        let sent = self.tool("send_input", send);
        assert_eq!(sent["reason"], "awaiting_input", "{sent}");
        sent["output"].as_str().unwrap().to_owned()
    }
}

#[track_caller]
fn has_lines(output: &str, wanted: &[&str]) {
    let mut lines = output.lines().map(str::trim_end);
    for line in wanted {
        assert!(lines.any(|shown| shown == *line), "{line:?} is missing, or not in its place, in:\n{output}");
    }
}

/// A gdb with a program that has a function `sum`.
fn program_to_debug(sandbox: &Sandbox) -> bool {
    if !has("gdb") || !has("gcc") {
        return false;
    }
    let source = "int sum(int n) {\n  return n * 2;\n}\nint main(void) {\n  return sum(21) != 42;\n}\n";
    std::fs::write(sandbox.work().join("sum.c"), source).unwrap();
    let made =
        Command::new("gcc").args(["-g", "-O0", "-o", "sum", "sum.c"]).current_dir(sandbox.work()).status();
    assert!(made.unwrap().success());
    true
}

#[test]
fn gdb_takes_commands_one_by_one() {
    let sandbox = sandbox();
    if !program_to_debug(&sandbox) {
        return;
    }
    let mut agent = Agent::with(&sandbox, "gdb -q -nx -iex 'set debuginfod enabled off' ./sum");
    agent.types("set confirm off");
    for round in 1..=ROUNDS {
        // A line break at the end is no empty line, which would do the last command again.
        let output = agent.types("tbreak sum\nrun\nprint n\n");
        let answer = format!("${round} = 21");
        has_lines(&output, &["(gdb) run", "2\t  return n * 2;", "(gdb) print n", &answer, "(gdb)"]);
        assert!(output.starts_with("tbreak sum\nTemporary breakpoint "), "{output}");
        agent.types("kill");
    }
}

#[test]
fn gdb_takes_commands_from_the_command_line() {
    let sandbox = sandbox();
    if !program_to_debug(&sandbox) {
        return;
    }
    let job = sandbox.start(["--", "gdb", "-q", "-nx", "-iex", "set debuginfod enabled off", "./sum"]);
    let handle = job.to_string();
    sandbox.run(["wait", &handle, "--input"]).ok();
    let sent = sandbox.run(["send", &handle, "--deadline", "30s", "break sum\nrun"]).ok();
    has_lines(
        &sent.text(),
        &["(gdb) run", "Breakpoint 1, sum (n=21) at sum.c:2", "2\t  return n * 2;", "(gdb)"],
    );
}

/// A Python with an editor of its own, which indents by itself.
fn python_3_13() -> Option<PathBuf> {
    let pyenv = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let pyenv = pyenv.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")));
    let versions = pyenv.and_then(|root| std::fs::read_dir(root.join("versions")).ok());
    let versions =
        versions.into_iter().flatten().flatten().map(|version| version.path().join("bin/python3.13"));
    let found = [PathBuf::from("/usr/bin/python3.13"), PathBuf::from("/usr/local/bin/python3.13")]
        .into_iter()
        .chain(versions)
        .find(|path| path.is_file());
    if found.is_none() {
        left_out("Python 3.13 is not installed", "pyenv install 3.13");
    }
    found
}

#[test]
fn a_python_that_indents_by_itself_takes_a_nested_definition_and_its_call() {
    let Some(python) = python_3_13() else { return };
    let sandbox = sandbox();
    let mut agent = Agent::with(&sandbox, &format!("{} -q", python.display()));
    for round in 0..ROUNDS {
        let output = agent.types(&format!("{NESTED}print('got', outer({round}))"));
        has_lines(&output, &["...     return inner(n) + 1", &format!("got {}", round * 2 + 1), ">>>"]);
    }
    // Only a definition: it is taken too, and what it prints when it is called is no prompt of its own.
    let output = agent.types("def alone():\n    return 6 * 7");
    has_lines(&output, &["...     return 6 * 7", ">>>"]);
    has_lines(&agent.types("alone()"), &["42", ">>>"]);
    // A program that took the paste and asks is not answered by us.
    let output = agent.types("answer = input(\n  '? ')");
    assert!(output.trim_end().ends_with('?'), "{output}");
    agent.types("mine");
    has_lines(&agent.types("answer"), &["'mine'", ">>>"]);
}

#[test]
fn a_python_that_reads_lines_takes_a_nested_definition_and_its_call() {
    if !has("/usr/bin/python3") {
        return;
    }
    let sandbox = sandbox();
    let mut agent = Agent::with(&sandbox, "env PYTHON_BASIC_REPL=1 /usr/bin/python3 -q -E");
    for round in 0..ROUNDS {
        let output = agent.types(&format!("{NESTED}\nprint('got', outer({round}))"));
        let call = format!(">>> print('got', outer({round}))");
        has_lines(
            &output,
            &["...     return inner(n) + 1", "...", &call, &format!("got {}", round * 2 + 1), ">>>"],
        );
    }
}

#[test]
fn bash_takes_a_here_document_and_what_follows() {
    let sandbox = sandbox();
    let mut agent = Agent::with(&sandbox, "env PS1='$ ' bash --norc --noprofile");
    for round in 0..ROUNDS {
        // The tab is text here, and no question what it could be completed to.
        let output =
            agent.types(&format!("cat <<END | tr a-z A-Z\nhello {round}\n\tworld\nEND\necho after {round}"));
        let (hello, echo) = (format!("HELLO {round}"), format!("$ echo after {round}"));
        has_lines(&output, &["> END", &hello, "\tWORLD", &echo, &format!("after {round}"), "$"]);
    }
    // A pattern is looked for in what comes of the lines, not in the lines.
    let send =
        json!({"handle": agent.handle, "input": "x=1\nsleep 1; echo DONE", "ai_callback_pattern": "DONE"});
    let found = agent.tool("send_input", send);
    assert_eq!(found["reason"], "pattern", "{found}");
    assert!(found["output"].as_str().unwrap().contains("\nDONE"), "{found}");
    // The next line is for whoever asks for it.
    has_lines(&agent.types("read -p 'who? ' who\nme\necho it is $who"), &["it is me", "$"]);
    let send =
        json!({"handle": agent.handle, "input": "echo one\nexit 3\necho never", "ai_callback_delay": 30});
    let ended = agent.call("send_input", send);
    assert_eq!(ended["structuredContent"]["exit_code"], 3, "{ended}");
    let words = ended["content"][0]["text"].as_str().unwrap();
    assert!(words.contains("the last 10 bytes of the input were not typed"), "{words}");
}

#[test]
fn lines_that_the_terminal_edits_are_typed_when_they_are_asked_for() {
    let sandbox = sandbox();
    let mut agent = Agent::with(&sandbox, "env PS1='$ ' dash -i");
    let output = agent.types("echo one\nread x\nabc\necho got $x");
    assert_eq!(output, "echo one\none\n$ read x\nabc\n$ echo got $x\ngot abc\n$ ");
    // Who asks for a password throws away what was typed before.
    let asks = "stty -F /dev/tty -echo; sleep 0.1; python3 -c 'import termios as t; t.tcflush(0, t.TCIFLUSH)'; \
                read -r p; stty -F /dev/tty echo; echo \"${#p} letters\"";
    has_lines(&agent.types(&format!("{asks}\nhidden\necho after")), &["6 letters", "after"]);
    // One line that can't be typed: no line is.
    let long = format!("echo first\n{}\necho last", "x".repeat(5000));
    let send = json!({"name": "send_input", "arguments": {"handle": agent.handle, "input": long}});
    let refused = agent.server.call("tools/call", send);
    assert!(refused["content"][0]["text"].as_str().unwrap().contains("a line of 5000 bytes"), "{refused}");
    // Who takes lines without a word gets all of them, in the end without being waited for.
    let many: String = (0..200).map(|number| format!("{number}\n")).collect();
    has_lines(&agent.types(&format!("cat > many <<'END'\n{many}END\nwc -l < many")), &["200", "$"]);
    let output = agent.types("echo still here");
    assert!(!output.contains("first") && output.ends_with("still here\n$ "), "{output}");
    let mut agent = Agent::with(&sandbox, "dash -c 'cat > silent'");
    agent.types(many.trim_end());
    agent.tool("send_input", json!({"handle": agent.handle, "special_keys": ["Ctrl-D"]}));
    assert_eq!(std::fs::read_to_string(sandbox.work().join("silent")).unwrap(), many);
}

#[test]
fn sqlite_takes_a_statement_over_three_lines() {
    if !has("sqlite3") {
        return;
    }
    let sandbox = sandbox();
    let mut agent = Agent::with(&sandbox, "sqlite3");
    for round in 0..ROUNDS {
        let output = agent.types(&format!("select 'round' as r,\n  {round} as n,\n  6 * 7 as answer;"));
        has_lines(&output, &[&format!("round|{round}|42"), "sqlite>"]);
    }
}

#[test]
fn the_caller_can_choose() {
    let sandbox = sandbox();
    let mut agent = Agent::with(&sandbox, "env PS1='$ ' bash --norc --noprofile");
    let send = json!({"handle": agent.handle, "input": "echo one\necho two", "paste": true, "ai_callback_delay": 30});
    let pasted = agent.tool("send_input", send);
    assert!(pasted["output"].as_str().unwrap().ends_with("\none\ntwo\n$ "), "{pasted}");
    let job = tui_job(&sandbox, &["shows-keys", "paste"]);
    sandbox.wait_for_text(job, "ready");
    sandbox.run(["send", &job.to_string(), "--no-wait", "--no-paste", "one\ntwo"]).ok();
    sandbox.wait_for_text(job, "two");
    assert_eq!(lines(&sandbox, job)[1..], ["<one\\r>", "<two\\r>"]);
}

#[test]
fn who_types_in_between_stops_the_rest() {
    let sandbox = sandbox();
    let job = sandbox.start(["-e", "PS1=$ ", "--", "bash", "--norc", "--noprofile"]);
    let handle = job.to_string();
    sandbox.run(["wait", &handle, "--input"]).ok();
    let text = "until [ -e go ]; do echo tick; sleep 0.1; done\necho second\necho third";
    let first = sandbox.call(["send", &handle, "--patience", "60s", text]).spawn();
    sandbox.wait_for_text(job, "(?m)^tick");
    sandbox.run(["send", &handle, "--no-wait", "echo other"]).ok();
    std::fs::write(sandbox.work().join("go"), "").unwrap();
    first.wait().code(5).says("only 1 of 3 lines were typed").says("somebody else typed in between");
    sandbox.wait_for_text(job, "(?m)^other");
    let shown = lines(&sandbox, job);
    assert!(!shown.iter().any(|line| line.contains("second")), "{shown:?}");
}
