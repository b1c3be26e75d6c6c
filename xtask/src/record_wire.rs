//! Records what the program of 0.1.0 says to its keepers and what they answer, for the tests of later
//! versions.
//!
//! Each file is its own recipe: its actions are done again by the old program, with us between client and
//! keeper, and what was said is written below them. Pids, times and paths are made neutral.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast_testkit::recorded::{self, Action, CLOSES, Said, Scene, Side};
use outlast_testkit::{Stage, stand_between};
use serde_json::Value;

use crate::museum;
use crate::test::tools::workspace;

/// Where the recordings are.
const FOLDER: &str = "crates/outlast/tests/museum/wire/0.1.0";

/// A scene is over when nothing was said for so long after its action.
const SILENCE: Duration = Duration::from_millis(100);

/// # Errors
/// When the old program cannot be built, or a file cannot be read or written.
pub(crate) fn run(names: &[&str]) -> Result<(), String> {
    let root = workspace();
    let program = museum::program(&root)?;
    let folder = root.join(FOLDER);
    let files = std::fs::read_dir(&folder).map_err(|error| format!("{FOLDER}: {error}"))?;
    let mut files: Vec<_> = files.flatten().map(|file| file.path()).collect();
    files.sort();
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !names.is_empty() && !names.contains(&name.as_str()) {
            continue;
        }
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{name}: {error}"))?;
        let mut studio = Studio::new(&program, &root);
        let scenes: Vec<Scene> =
            recorded::parse(&text).into_iter().map(|scene| studio.record(scene.action)).collect();
        drop(studio);
        std::fs::write(&file, recorded::format(&scenes)).map_err(|error| format!("{name}: {error}"))?;
        println!("{name}: {} lines", scenes.iter().map(|scene| scene.said.len()).sum::<usize>());
    }
    Ok(())
}

/// A home of the old program, with one job.
struct Studio {
    stage: Stage,
    heard: Heard,
}

/// How many connections there were, and what went over the socket in the scene that is being recorded.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<(usize, Vec<Said>)>>);

impl Studio {
    fn new(program: &Path, root: &Path) -> Self {
        let fixture = root.join("target/debug/examples/fixture");
        Self { stage: Stage::new(program, program, &fixture.to_string_lossy()), heard: Heard::default() }
    }

    fn record(&mut self, action: Action) -> Scene {
        self.heard.begin();
        let answer = self.stage.perform(&action);
        match action {
            Action::Job(_) => {
                let heard = self.heard.clone();
                stand_between(&self.stage.job(), move |client, keeper| listen_in(&client, &keeper, &heard));
            }
            // A condition of ours: it is none of the recording.
            Action::Until(_) => self.heard.forget(),
            Action::Comment(_) | Action::Call(_) | Action::Attach(..) | Action::Tool(..) | Action::Raw(_) => {
            }
        }
        let said = self.heard.end().into_iter().map(|said| {
            let line = self.stage.without_paths(&said.line);
            // What a client says is kept byte for byte: it is sent again.
            Said { line: if said.side == Side::Client { line } else { neutral(&line) }, ..said }
        });
        Scene { said: said.collect(), answer: answer.iter().map(|line| neutral(line)).collect(), action }
    }
}

/// Passes every line on, both ways, and remembers it.
fn listen_in(client: &UnixStream, keeper: &UnixStream, heard: &Heard) {
    let connection = heard.connected();
    for (from, to, side) in [(client, keeper, Side::Client), (keeper, client, Side::Keeper)] {
        let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else { continue };
        let heard = heard.clone();
        std::thread::spawn(move || pass_on(from, to, connection, side, &heard));
    }
}

fn pass_on(from: UnixStream, mut to: UnixStream, connection: usize, side: Side, heard: &Heard) {
    let mut from = BufReader::new(from);
    let mut line = String::new();
    while from.read_line(&mut line).is_ok_and(|read| read > 0) {
        heard.add(Said { connection, side, line: line.trim_end().to_owned() });
        if to.write_all(line.as_bytes()).is_err() {
            break;
        }
        line.clear();
    }
    heard.add(Said { connection, side, line: CLOSES.to_owned() });
    let _ = to.shutdown(std::net::Shutdown::Write);
}

impl Heard {
    fn begin(&self) {
        self.locked().1.clear();
    }

    fn forget(&self) {
        let forgotten = self.end().iter().map(|said| said.connection).min();
        let mut heard = self.locked();
        heard.0 = forgotten.map_or(heard.0, |first| first - 1);
    }

    fn connected(&self) -> usize {
        let mut heard = self.locked();
        heard.0 += 1;
        heard.0
    }

    fn add(&self, said: Said) {
        self.locked().1.push(said);
    }

    /// All that was said, once nobody says anything any more.
    fn end(&self) -> Vec<Said> {
        let mut said = usize::MAX;
        while self.locked().1.len() != said {
            said = self.locked().1.len();
            std::thread::sleep(SILENCE);
        }
        std::mem::take(&mut self.locked().1)
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, (usize, Vec<Said>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A line with what is different in every run made the same.
fn neutral(line: &str) -> String {
    let Ok(mut value) = serde_json::from_str(line) else { return line.to_owned() };
    make_neutral(&mut value);
    value.to_string()
}

fn make_neutral(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match (key.as_str(), &value) {
                    ("pid" | "started" | "max_rss_kib", Value::Number(_)) => *value = 4242.into(),
                    ("at" | "created_at" | "ended_at", Value::Number(_)) => {
                        *value = 1_763_000_000_000_u64.into()
                    }
                    ("age_ms" | "elapsed_ms" | "for_ms" | "user_ms" | "system_ms", Value::Number(_)) => {
                        *value = 5.into();
                    }
                    ("boot_id", Value::String(_)) => *value = "neutral".into(),
                    ("endpoints", Value::Array(_)) => *value = ["neutral"].into_iter().collect(),
                    _ => make_neutral(value),
                }
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(make_neutral),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
