//! What keepers of 0.1.0 answer, given to clients of this version: they must make of it what the old clients made.
//!
//! A real job is there, with a keeper of this version, so that logs grow and programs read what is typed. But between it
//! and the client stands one that gives the recorded answer of the old keeper in place of each answer.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex};

use outlast_testkit::recorded::{Action, CLOSES, Matcher, Said, Scene, Side, missing};
use outlast_testkit::{Stage, stand_between};
use serde_json::{Value, json};

use crate::{PROGRAM, each_recording, recording, sandbox};

each_recording!(replay);

/// What the old keeper said in the scene that is being played.
type Script = Arc<Mutex<Vec<Said>>>;

/// Where an answer of the MCP server has the output, as a difference names it.
const OUTPUT: &str = ".structuredContent.output is";

/// The output in an answer of the MCP server. The log is the real job's: which of two calls comes first to see a line
/// of it depends on how fast the program is, so a line counts when any call so far has shown it.
fn output_of(answer: &Value) -> &str {
    answer["structuredContent"]["output"].as_str().unwrap_or_default()
}

fn replay(name: &str) {
    let program = Path::new(PROGRAM);
    let mut stage = Stage::new(program, program, &sandbox().fixture());
    let script = Script::default();
    let mut shown = String::new();
    for Scene { action, said, answer } in recording(name) {
        *script.lock().unwrap() = said;
        let new = stage.perform(&action);
        if let Action::Job(_) = action {
            let script = Arc::clone(&script);
            stand_between(&stage.job(), move |client, keeper| drop(stand_in(client, keeper, &script)));
        }
        // A keeper of this version types one line when the one before it was taken, and the old answer comes at once.
        let types_lines =
            matches!(&action, Action::Call(words) if words.iter().any(|word| word.contains('\n')));
        assert_eq!(new.len(), answer.len(), "{name}: {action:?}: {new:#?}\nwas {answer:#?}");
        for (new, old) in new.iter().zip(&answer) {
            let missing: Vec<_> = match (serde_json::from_str(old), serde_json::from_str(new)) {
                (Ok(old), Ok(new)) => {
                    let missing = missing(&old, &new);
                    shown.push_str(output_of(&new));
                    let is_shown = shown.contains(output_of(&old));
                    let may_differ = |line: &str| {
                        is_shown && line.starts_with(OUTPUT) || types_lines && line.starts_with(".output is")
                    };
                    missing.into_iter().filter(|line| !may_differ(line)).collect()
                }
                _ => missing(&old.as_str().into(), &new.as_str().into()),
            };
            assert!(missing.is_empty(), "{name}: {action:?}: missing {missing:#?}\nin  {new}\nwas {old}");
        }
    }
}

/// Passes requests on, and gives the recorded answers instead of the real ones.
fn stand_in(mut client: UnixStream, mut keeper: UnixStream, script: &Script) -> std::io::Result<()> {
    let mut lines = BufReader::new(keeper.try_clone()?).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next()?.ok()?).ok();
    // None when it is just leaving: the client sees the same.
    let Some(greeting) = next() else { return Ok(()) };
    writeln!(client, "{}", first(script, |line| line.get("outlast").is_some()).unwrap_or(greeting))?;
    let mut matcher = Matcher::default();
    for request in BufReader::new(client.try_clone()?).lines() {
        let request = request?;
        let asked: Value = serde_json::from_str(&request).unwrap_or_default();
        let answers = answers_to(script, &asked);
        writeln!(keeper, "{request}")?;
        if answers.is_empty() {
            let reply = json!({"reply": {"id": asked["id"]}});
            let Some(reply) = matcher.find(&reply, &mut next) else { break };
            writeln!(client, "{reply}")?;
        }
        for answer in answers {
            // What it tells has happened when the real keeper tells it too, or has ended.
            let _ = matcher.find(&answer, &mut next);
            writeln!(client, "{answer}")?;
        }
    }
    Ok(())
}

fn first(script: &Script, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
    let script = script.lock().unwrap();
    let lines = script.iter().filter(|said| said.side == Side::Keeper && said.line != CLOSES);
    lines.map(Said::json).find(wanted)
}

/// The lines that the old keeper said after the first request with the same verb, up to the next request; with the id
/// that is asked with now. Each is given once.
fn answers_to(script: &Script, asked: &Value) -> Vec<Value> {
    let mut script = script.lock().unwrap();
    let is_request = |said: &Said| said.side == Side::Client && said.line != CLOSES;
    let verb_of = |said: &Said| serde_json::from_str::<Value>(&said.line).unwrap_or_default()["verb"].clone();
    let Some(at) = script.iter().position(|said| is_request(said) && verb_of(said) == asked["verb"]) else {
        return Vec::new();
    };
    let mut answers = Vec::new();
    script.remove(at);
    while at < script.len() && !is_request(&script[at]) {
        let said = script.remove(at);
        if said.side == Side::Keeper && said.line != CLOSES && !said.line.contains("\"outlast\":") {
            let mut answer = said.json();
            if answer["reply"]["id"].as_u64().is_some_and(|id| id != 0) {
                answer["reply"]["id"] = asked["id"].clone();
            }
            answers.push(answer);
        }
    }
    answers
}
