//! The other doors by which what a job printed leaves: editors, guests of the web view, wakes, other machines, shells that
//! remember, exports, files in the home. A known secret is in none of them, in no spelling.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};

use outlast_testkit::has;
use serde_json::{Value, json};

use crate::client::{Client, PROGRAM, eventually};
use crate::leaks::{SECRET, SPELLINGS, leaks, printed_by, texts};
use crate::web_client::Served;
use crate::{Tally, chosen};

/// A server that is posted to, and keeps what it gets.
struct Hook {
    url: String,
    posted: Arc<Mutex<Vec<u8>>>,
}

impl Hook {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let posted = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&posted);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut bytes = Vec::new();
                let mut piece = [0; 4096];
                // The head says how long the body is.
                let is_whole = |bytes: &[u8]| {
                    let text = String::from_utf8_lossy(bytes);
                    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
                    let lower = head.to_ascii_lowercase();
                    let length = lower.lines().find_map(|line| line.strip_prefix("content-length:"));
                    length
                        .and_then(|length| length.trim().parse().ok())
                        .is_none_or(|length: usize| body.len() >= length)
                };
                while !is_whole(&bytes) {
                    match stream.read(&mut piece) {
                        Ok(0) | Err(_) => break,
                        Ok(read) => bytes.extend_from_slice(&piece[..read]),
                    }
                }
                kept.lock().unwrap().extend_from_slice(&bytes);
                let _ = stream
                    .write_all(b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            }
        });
        Self { url, posted }
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&self.posted.lock().unwrap()).into_owned()
    }
}

/// A home with every way to be told, and another machine that is this one.
struct House {
    sandbox: outlast_testkit::Sandbox,
    hook: Hook,
}

impl House {
    fn new() -> Self {
        let sandbox = outlast_testkit::Sandbox::new(PROGRAM);
        let hook = Hook::start();
        let root = sandbox.root().display().to_string();
        let far = format!("#!/bin/sh\nOUTLAST_HOME={root}/far exec {PROGRAM} relay\n");
        std::fs::write(sandbox.root().join("far.sh"), far).unwrap();
        sandbox.run(["host", "add", "far", &format!("command:exec sh {root}/far.sh")]).ok();
        let settings = sandbox.root().join("config/outlast");
        std::fs::create_dir_all(&settings).unwrap();
        let text = format!(
            "[agents]\nhosts = [\"far\"]\n\
             [[wake]]\nkind = \"file\"\npath = \"{root}/told\"\n\
             [[wake]]\nkind = \"exec\"\ncommand = \"cat >> {root}/executed\"\n\
             [[wake]]\nkind = \"webhook\"\nurl = \"{}\"\n",
            hook.url
        );
        std::fs::write(settings.join("config.toml"), text).unwrap();
        Self { sandbox, hook }
    }

    /// A program in the house, to which the secret is known by its name.
    fn with_secret(&self, arguments: &[&str]) -> outlast_testkit::Call {
        self.sandbox
            .call(arguments.iter().copied())
            .env("DEPLOY_TOKEN", SECRET)
            .env("LC_ALL", "C.UTF-8")
            .env("PYTHONIOENCODING", "utf-8")
    }

    fn agent(&self) -> Client {
        let mut command = self.sandbox.command(PROGRAM);
        command.arg("mcp").env("DEPLOY_TOKEN", SECRET).env("LC_ALL", "C.UTF-8");
        command.env("PYTHONIOENCODING", "utf-8").env_remove("OUTLAST_SESSION");
        Client::start(command).initialized("2025-06-18", &json!({}))
    }

    fn file(&self, name: &str) -> String {
        std::fs::read(self.sandbox.root().join(name)).map(|bytes| as_text(&bytes)).unwrap_or_default()
    }

    /// All that is written into the home but for the log itself, which is the user's.
    fn files(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        gather(self.sandbox.home(), &mut found);
        found.retain(|(path, _)| !path.ends_with("/output.log"));
        found
    }
}

fn gather(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            gather(&entry.path(), found);
        } else if kind.is_file()
            && let Ok(bytes) = std::fs::read(entry.path())
        {
            found.push((entry.path().display().to_string(), as_text(&bytes)));
        }
    }
}

/// Bytes as the text that somebody would find in them: JSON lines as their strings, marks of pictures taken out.
fn as_text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut all = text.clone().into_owned();
    for line in text.lines() {
        if let Some(at) = line.find(['{', '['])
            && let Ok(value) = serde_json::from_str::<Value>(&line[at..])
        {
            all.push_str(&texts(&value));
        }
    }
    let mut inside = false;
    let shown: String = text
        .chars()
        .filter(|c| {
            inside = if *c == '<' { true } else { inside };
            let keep = !inside;
            inside = inside && *c != '>';
            keep
        })
        .collect();
    let marks = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    all.push_str(&marks.iter().fold(shown, |shown, (mark, sign)| shown.replace(mark, sign)));
    all
}

/// Whether what somebody was told shows what a program printed.
fn tells(said: &str, printed: &str) -> bool {
    leaks(&json!(said).to_string(), printed)
}

#[test]
fn a_known_secret_leaves_by_no_other_door() {
    let mut tally = Tally::default();
    let house = House::new();
    let mut agent = house.agent();
    let all: Vec<_> = SPELLINGS.iter().filter(|(program, ..)| has(program)).collect();
    for (_, line, skip) in chosen(all, 13) {
        let printed = printed_by(line, *skip);
        let line = format!("export T=\"$DEPLOY_TOKEN\"; {line}; echo");
        let mut door =
            |door: &str, said: &str| tally.count(&format!("{line} by {door}"), tells(said, &printed));
        through_agents(&house, &mut agent, &line, &mut door);
        through_an_editor(&house, &line, &mut door);
        through_the_web(&house, &line, &mut door);
        door("a file that is told", &house.file("told"));
        door("a program that is told", &house.file("executed"));
        door("a webhook", &as_text(house.hook.said().as_bytes()));
        let telling = house.files().into_iter().filter(|(_, text)| tells(text, &printed));
        let telling: Vec<String> = telling.map(|(path, _)| path).collect();
        tally.count(&format!("{line} by the files {telling:?}"), !telling.is_empty());
    }
    // The instrument works: all of them were told something.
    assert!(house.file("told").contains("\"exit\"") && house.file("executed").contains("\"exit\""));
    assert!(house.hook.said().contains("\"exit\""));
    tally.nothing_got_through("a known secret, by editors, guests, wakes, other machines and files");
}

fn through_agents(house: &House, agent: &mut Client, line: &str, door: &mut impl FnMut(&str, &str)) {
    let watched = json!({"command": line, "again": true, "timeout": 30, "notify": ["exit", "lines"]});
    let answer = agent.call("run_shell_command", watched);
    let handle = answer["structuredContent"]["handle"].clone();
    let said = |door: &str, answer: &Value| (door.to_owned(), texts(answer));
    let mut all = vec![said("an answer with watches", &answer)];
    for (name, tool, arguments) in [
        (
            "wait_for a pattern",
            "wait_for",
            json!({"handle": handle, "pattern": "(.+)", "offset": 0, "timeout": 5}),
        ),
        (
            "wait_for the end",
            "wait_for",
            json!({"handle": handle, "until": ["exit"], "output": true, "timeout": 5}),
        ),
        ("jobs", "jobs", json!({"all": true})),
    ] {
        all.push(said(name, &agent.call(tool, arguments)));
    }
    let step = json!({"command": line, "shell": "main", "again": true, "timeout": 30});
    all.push(said("a step of a shell", &agent.call("run_shell_command", step)));
    let far = json!({"command": line, "host": "far", "again": true, "timeout": 30, "env": {"DEPLOY_TOKEN": SECRET}});
    let far = agent.call("run_shell_command", far);
    assert!(far["isError"] != true, "the other machine answers: {far}");
    all.push(said("another machine", &far));
    let far = far["structuredContent"]["handle"].clone();
    for raw in [false, true] {
        let read = agent.call("read_output", json!({"handle": far, "offset": 0, "raw": raw}));
        all.push(said("a read of another machine", &read));
    }
    let typed =
        json!({"command": format!("read x; {line}"), "again": true, "is_background": true, "env": {}});
    let asks = agent.call("run_shell_command", typed)["structuredContent"]["handle"].clone();
    all.push(said("an answer to input", &agent.call("send_input", json!({"handle": asks, "input": "y"}))));
    for (name, text) in all {
        door(&name, &text);
    }
    let handle = handle.to_string();
    let handle = handle.trim_matches('"');
    for verb in [
        &["read", handle][..],
        &["logs", handle],
        &["screen", handle],
        &["screen", handle, "--svg"],
        &["show", handle],
        &["jobs", "--all"],
        &["events"],
        &["diff", handle, handle],
        &["--json", "read", handle],
        &["--json", "show", handle],
        &["--json", "events"],
    ] {
        let ran = house.with_secret(&["--mask"]).args(verb).run();
        door(&format!("--mask {}", verb.join(" ").replace(handle, "JOB")), &as_text(&ran.stdout));
    }
}

fn through_an_editor(house: &House, line: &str, door: &mut impl FnMut(&str, &str)) {
    let mut editor = house.with_secret(&["acp", "agent"]).converse();
    editor.call("initialize", json!({"protocolVersion": 1}));
    let opened = editor.call("session/new", json!({"cwd": house.sandbox.work(), "mcpServers": []}));
    let session = opened["sessionId"].as_str().unwrap();
    let prompt = |text: &str| json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    editor.call("session/prompt", prompt(line));
    editor.call("session/prompt", prompt("/jobs"));
    let heard: String = editor.heard().iter().map(texts).collect();
    door("an editor", &heard);
}

fn through_the_web(house: &House, line: &str, door: &mut impl FnMut(&str, &str)) {
    let started =
        house.with_secret(&["--json", "run", "-d", &format!("{line}; echo shown; sleep 600")]).run().ok();
    let job = started.json()["handle"].to_string();
    house.sandbox.wait_for_text(job.parse().unwrap(), "shown");
    let served = Served::start(&house.sandbox, &[]);
    let share = house.sandbox.json(["web", "share", &job, "--read-only", "--for", "1h"]);
    let url = share["url"].as_str().unwrap();
    let guest = served.enter(json!({"share": url.split("#share=").nth(1).unwrap()})).unwrap();
    for call in ["screen", "job"] {
        let said = guest.call(&json!({"call": call, "job": job}));
        // Rows come as pieces of one style each.
        let whole: String = texts(&said).replace('\n', "");
        door(&format!("a guest's {call}"), &format!("{}{whole}", texts(&said)));
    }
    let mut socket = guest.socket();
    socket.say(&json!({"t": "open", "job": job, "channel": 1}));
    let mut heard = String::new();
    eventually("the guest sees the screen", || {
        heard.push_str(&socket.hear().map(|(_, said)| as_text(&said)).unwrap_or_default());
        heard.contains("shown")
    });
    door("a guest's socket", &format!("{heard}{}", heard.replace('\n', "")));
    house.sandbox.run(["kill", &job]).ok();
}
