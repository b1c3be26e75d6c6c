//! What clients of 0.1.0 say, said again to a keeper of this version: its answers must have everything that they read,
//! spelled as they know it.

use std::collections::HashMap;

use outlast_testkit::recorded::{Action, CLOSES, Matcher, Side, missing};
use outlast_testkit::{Socket, Stage};
use serde_json::Value;

use crate::{PROGRAM, each_recording, recording, sandbox};

each_recording!(replay);

/// A connection to the keeper.
struct Line {
    socket: Socket,
    matcher: Matcher,
}

fn replay(name: &str) {
    let program = std::path::Path::new(PROGRAM);
    let mut stage = Stage::new(program, program, &sandbox().fixture());
    let mut lines: HashMap<usize, Line> = HashMap::new();
    for scene in recording(name) {
        if let Action::Job(_) | Action::Until(_) = scene.action {
            let _ = stage.perform(&scene.action);
        }
        for said in &scene.said {
            let (number, text) = (said.connection, said.line.as_str());
            match (said.side, text) {
                (Side::Client, CLOSES) => drop(lines.remove(&number)),
                (Side::Client, _) => {
                    let line = lines.entry(number).or_insert_with(|| connect(&stage));
                    line.socket.say(format!("{text}\n").as_bytes()).unwrap();
                }
                (Side::Keeper, CLOSES) => {
                    lines.remove(&number).iter_mut().for_each(|line| line.socket.drain())
                }
                (Side::Keeper, _) => {
                    // It came after the client had left.
                    let closed = !lines.contains_key(&number) && !is_greeting(&said.json());
                    if !closed {
                        lines.entry(number).or_insert_with(|| connect(&stage)).expect(&said.json(), &stage);
                    }
                }
            }
        }
    }
}

fn connect(stage: &Stage) -> Line {
    let socket = Socket::connect(&stage.job()).unwrap();
    Line { socket, matcher: Matcher::default() }
}

fn is_greeting(line: &Value) -> bool {
    line.get("outlast").is_some()
}

impl Line {
    /// Insists on a line that has all that the recorded one has.
    fn expect(&mut self, old: &Value, stage: &Stage) {
        let Self { socket, matcher } = self;
        let new = matcher.find(old, || {
            let line = socket.hear()?;
            Some(serde_json::from_str(&stage.without_paths(&line.to_string())).unwrap())
        });
        let Some(new) = new else {
            panic!("the keeper ended the connection instead of saying {old}\nbefore: {matcher:?}");
        };
        let missing = missing(old, &new);
        assert!(missing.is_empty(), "a client of 0.1.0 misses {missing:#?}\nin  {new}\nwas {old}");
    }
}
