//! Recorded conversations between a client and a keeper: their text format, and what a later version must
//! keep of them.
//!
//! A file is its own recipe. A line that says what is done (`job`, `until`, `call`, …) is written by a
//! person; the lines below it are what went over the socket then (`1> ` from the client on connection 1, `1<
//! ` from the keeper) and what the client answered (`= `). `cargo xtask record-wire` makes them.

use std::fmt::Write as _;

use serde_json::Value;

/// Fields whose value is different in every run, or is prose. They must be there, with a value of the same
/// type.
const VARIABLE: &[&str] = &[
    "age_ms",
    "already",
    "at",
    "at_offset",
    "bells",
    "boot_id",
    "created_at",
    "elapsed_ms",
    "ended_at",
    "endpoints",
    "env_names",
    "for_ms",
    "hint",
    "max_rss_kib",
    "message",
    "offset",
    "pid",
    "port",
    "ports",
    "queued",
    "repaint",
    "seq",
    "signalled",
    "started",
    "system_ms",
    "text",
    "user_ms",
    "version",
    "viewers",
    "why",
];

/// The line that stands for the end of a connection, on the side that ended it.
pub const CLOSES: &str = "(closes)";

/// What is done, and by whom.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A line for people.
    Comment(String),
    /// Starts the job, in the background: arguments of `run`.
    Job(Vec<String>),
    /// Waits until the job has printed this.
    Until(String),
    /// Runs a client with these arguments.
    Call(Vec<String>),
    /// Runs `attach` with these arguments on a terminal, types the text, and leaves.
    Attach(Vec<String>, String),
    /// Calls a tool of the MCP server.
    Tool(String, Value),
    /// Sends a line by hand: what no client of ours says.
    Raw(String),
}

/// Who said a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The client.
    Client,
    /// The keeper.
    Keeper,
}

/// A line that went over a keeper's socket.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// Counts from 1 in a file.
    pub connection: usize,
    /// Who said it.
    pub side: Side,
    /// Without its end.
    pub line: String,
}

impl Said {
    /// The line as JSON.
    ///
    /// # Panics
    /// When it is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.line).unwrap_or_else(|error| panic!("{error}: {}", self.line))
    }
}

/// One action, with all that was said because of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// What was done.
    pub action: Action,
    /// What went over the socket.
    pub said: Vec<Said>,
    /// What the client printed.
    pub answer: Vec<String>,
}

/// Reads a file.
///
/// # Panics
/// When it is not in the format.
#[must_use]
pub fn parse(text: &str) -> Vec<Scene> {
    let mut scenes: Vec<Scene> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if let Some(scene) = scenes.last_mut()
            && let Some(added) = recorded(word, rest)
        {
            match added {
                Recorded::Said(said) => scene.said.push(said),
                Recorded::Answer(answer) => scene.answer.push(answer),
            }
            continue;
        }
        let action = action(word, rest).unwrap_or_else(|| panic!("not a line of a recording: {line}"));
        scenes.push(Scene { action, said: Vec::new(), answer: Vec::new() });
    }
    scenes
}

enum Recorded {
    Said(Said),
    Answer(String),
}

fn recorded(word: &str, rest: &str) -> Option<Recorded> {
    if word == "=" {
        return Some(Recorded::Answer(rest.to_owned()));
    }
    let side = match word.chars().last()? {
        '>' => Side::Client,
        '<' => Side::Keeper,
        _ => return None,
    };
    let connection = word[..word.len() - 1].parse().ok()?;
    Some(Recorded::Said(Said { connection, side, line: rest.to_owned() }))
}

fn action(word: &str, rest: &str) -> Option<Action> {
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    let words = |text: &str| serde_json::from_str::<Vec<String>>(text).ok();
    Some(match word {
        "#" => Action::Comment(rest.to_owned()),
        "job" => Action::Job(words(rest)?),
        "until" => Action::Until(value(rest)?.as_str()?.to_owned()),
        "call" => Action::Call(words(rest)?),
        "attach" => {
            let mut words = words(rest)?;
            let keys = words.pop()?;
            Action::Attach(words, keys)
        }
        "tool" => {
            let (name, arguments) = rest.split_once(' ')?;
            Action::Tool(name.to_owned(), value(arguments)?)
        }
        "raw" => Action::Raw(rest.to_owned()),
        _ => return None,
    })
}

/// Writes a file.
#[must_use]
pub fn format(scenes: &[Scene]) -> String {
    let mut text = String::new();
    for Scene { action, said, answer } in scenes {
        let list = |words: &[String]| Value::from(words.to_vec());
        let _ = match action {
            Action::Comment(comment) => writeln!(text, "# {comment}"),
            Action::Job(words) => writeln!(text, "\njob {}", list(words)),
            Action::Until(pattern) => writeln!(text, "until {}", Value::from(pattern.as_str())),
            Action::Call(words) => writeln!(text, "\ncall {}", list(words)),
            Action::Attach(words, keys) => {
                let words: Vec<String> = words.iter().chain([keys]).cloned().collect();
                writeln!(text, "\nattach {}", list(&words))
            }
            Action::Tool(name, arguments) => writeln!(text, "\ntool {name} {arguments}"),
            Action::Raw(line) => writeln!(text, "\nraw {line}"),
        };
        for Said { connection, side, line } in said {
            let sign = if *side == Side::Client { '>' } else { '<' };
            let _ = writeln!(text, "{connection}{sign} {line}");
        }
        for line in answer {
            let _ = writeln!(text, "= {line}");
        }
    }
    text
}

/// Finds in what a keeper says the lines that another keeper said before. They may come in another order:
/// what a follower is told has no fixed place between replies, and several growths of a log may be told as
/// one.
#[derive(Debug, Default)]
pub struct Matcher {
    /// What came and was not looked for yet.
    unasked: Vec<Value>,
    /// How far the log has grown, as far as was told.
    grown: Option<Value>,
}

impl Matcher {
    /// The line that says the same as an old one: of those that came already, or from `next`; none when that
    /// ends.
    pub fn find(&mut self, old: &Value, mut next: impl FnMut() -> Option<Value>) -> Option<Value> {
        let offset = |line: &Value| line["grown"]["offset"].as_u64();
        if let Some(at) = self.unasked.iter().position(|line| says_the_same(old, line)) {
            return Some(self.unasked.remove(at));
        }
        loop {
            if offset(old).is_some() && self.grown.as_ref().and_then(offset) >= offset(old) {
                return self.grown.clone();
            }
            let line = next()?;
            if offset(&line).is_some() {
                self.grown = Some(line);
            } else if says_the_same(old, &line) {
                return Some(line);
            } else {
                self.unasked.push(line);
            }
        }
    }
}

/// Whether two lines of keepers are replies to the same request, events of the same kind, or greetings.
fn says_the_same(old: &Value, new: &Value) -> bool {
    let same = |part: &str, field: &str| old[part][field] == new[part][field];
    ["reply", "event", "outlast"].into_iter().any(|sort| {
        let both = old.get(sort).is_some() && new.get(sort).is_some();
        both && match sort {
            // 0.1.0 did not say which request it could not read.
            "reply" => same("reply", "id") || old["reply"]["id"] == 0 && new["reply"].get("error").is_some(),
            "event" => same("event", "event"),
            _ => true,
        }
    })
}

/// What a reader of the old value would miss in the new one: a field that is gone or has another type, a word
/// that is spelled differently. Fields that were added are welcome.
#[must_use]
pub fn missing(old: &Value, new: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", false, old, new, &mut found);
    found
}

fn compare(path: &str, varies: bool, old: &Value, new: &Value, found: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in old {
                let path = format!("{path}.{key}");
                match new.get(key) {
                    Some(there) => compare(&path, VARIABLE.contains(&key.as_str()), value, there, found),
                    None => found.push(format!("{path} is missing; it was {value}")),
                }
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            // Which children the command has just then is a matter of chance.
            let wanted = if path.ends_with(".processes") { 1 } else { old.len() };
            if new.len() < wanted {
                found.push(format!("{path} has {} elements; there were {wanted}", new.len()));
            }
            for (i, (old, new)) in old.iter().take(wanted).zip(new).enumerate() {
                compare(&format!("{path}[{i}]"), varies, old, new, found);
            }
        }
        _ if varies && std::mem::discriminant(old) == std::mem::discriminant(new) => {}
        (Value::String(old), Value::String(new)) if is_same_text(old, new) => {}
        _ if old == new => {}
        // The request that could not be read: 0.1.0 did not say which.
        _ if path == ".reply.id" && old == 0 => {}
        _ => found.push(format!("{path} is {new}; it was {old}")),
    }
}

/// Whether two texts are the same, but for numbers that are as long as those of ports and processes, and for
/// what a job is doing, which depends on the time of the question.
fn is_same_text(old: &str, new: &str) -> bool {
    let without_numbers = |text: &str| -> Vec<String> {
        let parts = text.split_inclusive(|c: char| !c.is_ascii_digit());
        parts
            .filter(|part| part.bytes().take_while(u8::is_ascii_digit).count() < 4)
            .map(ToOwned::to_owned)
            .collect()
    };
    let by_time = ["working", "quiet"];
    without_numbers(old) == without_numbers(new) || (by_time.contains(&old) && by_time.contains(&new))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let text = "# about\n\njob [\"--size\",\"80x24\",\"read x\"]\nuntil \"\\\\$\"\n\ncall [\"kill\",\"1\"]\n\
                    1< {\"outlast\":1}\n2> {\"id\":1}\n= {}\n\nattach [\"1\",\"x\\r\"]\n\ntool jobs {\"all\":true}\n\nraw {\n";
        let scenes = parse(text);
        assert_eq!(format(&scenes), text);
        assert_eq!(scenes[3].said[1].connection, 2);
        assert_eq!(scenes[4].action, Action::Attach(vec!["1".into()], "x\r".into()));
    }

    #[test]
    fn a_missing_field_another_word_and_another_type_are_found() {
        let old = json!({"reason": "exit", "offset": 7, "pid": 12, "list": [{"kind": "line"}]});
        let more = json!({"reason": "exit", "offset": 7, "pid": 99, "list": [{"kind": "line"}], "new": 1});
        assert_eq!(missing(&old, &more), Vec::<String>::new());
        for worse in [
            json!({"offset": 7, "pid": 12, "list": [{"kind": "line"}]}),
            json!({"reason": "ended", "offset": 7, "pid": 12, "list": [{"kind": "line"}]}),
            json!({"reason": "exit", "offset": 7, "pid": "12", "list": [{"kind": "line"}]}),
            json!({"reason": "exit", "offset": 7, "pid": 12, "list": [{"kind": "key"}]}),
            json!({"reason": "exit", "offset": 7, "pid": 12, "list": []}),
        ] {
            assert_eq!(missing(&old, &worse).len(), 1, "{worse}");
        }
    }
}
