//! What a prompt asks for: a command line, or one of our own commands.

use std::time::Duration;

use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, SessionUpdate, UnstructuredCommandInput,
};
use outlast_job::Failure;
use outlast_job::units::parse_duration;
use outlast_protocol::Call;

/// A parsed prompt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Prompt {
    /// A shell line; in the background if it ended with `&`.
    Run {
        line: String,
        background: bool,
    },
    Send {
        job: String,
        text: String,
    },
    Keys {
        job: String,
        keys: Vec<String>,
    },
    Jobs {
        all: bool,
    },
    Read {
        job: String,
        part: Part,
    },
    Wait {
        job: String,
        limit: Option<Duration>,
    },
    Kill {
        job: String,
    },
}

/// What to show of a job's output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    All,
    /// So many lines from the end.
    Last(usize),
    /// The bytes from an offset to another.
    Bytes(u64, u64),
}

impl Part {
    fn parse(text: &str) -> Result<Self, Failure> {
        let bytes = text.split_once('-').and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
        match (text, bytes) {
            ("", _) => Ok(Self::All),
            (_, Some((from, to))) => Ok(Self::Bytes(from, to)),
            _ => text.parse().map(Self::Last).map_err(|_| {
                Failure::usage(format!("{text:?} is neither a number of lines nor FROM-TO"))
                    .hint("write /read JOB 20 for the last 20 lines, or /read JOB 0-4096 for these bytes")
            }),
        }
    }
}

/// Name, arguments and description.
const COMMANDS: [(&str, &str, &str); 6] = [
    ("send", "JOB TEXT", "Type a line into a job"),
    ("keys", "JOB KEY...", "Press keys in a job: Enter, Tab, Up, Ctrl-C and so on"),
    ("jobs", "[all]", "List this session's jobs, or all"),
    ("read", "JOB [LINES | FROM-TO]", "Show what a job printed"),
    ("wait", "JOB [TIME]", "Wait until a job has ended or asks for input"),
    ("kill", "JOB", "End a job and all that it started"),
];

/// A failure as a person in an editor reads it: what to do next is one of our commands, if there is one for it.
pub(crate) fn failure_text(failure: &Failure) -> String {
    let hint = failure.hint.as_ref().map(|hint| format!("\n  {}", hint.worded(call))).unwrap_or_default();
    format!("{}{hint}\n", failure.message)
}

fn call(call: &Call) -> String {
    match call {
        Call::Read(job) | Call::Follow(job) => format!("/read {job}"),
        Call::Send(job) => format!("/send {job} TEXT"),
        Call::Kill(job) => format!("/kill {job}"),
        Call::AllJobs => "/jobs all".into(),
        Call::RunExample(command) => command.clone(),
        Call::RunForInput => "type its command again".into(),
        Call::RunInFolder => "cd in the command".into(),
        Call::RunOnPipes => "COMMAND < FILE".into(),
        // Only the command line has these.
        Call::Screen(_) | Call::AttachShared(_) | Call::Watches(_) | Call::Doctor | Call::ExplainPolicy => {
            call.command_line()
        }
    }
}

/// The commands as a client lists them.
pub(crate) fn available() -> SessionUpdate {
    let command = |(name, input, what): (&str, &str, &str)| {
        let hint = AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(input));
        AvailableCommand::new(name, what).input(hint)
    };
    SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(COMMANDS.map(command).to_vec()))
}

impl Prompt {
    /// Parses a prompt. A slash that does not start one of our commands starts a path.
    pub(crate) fn parse(prompt: &str) -> Result<Self, Failure> {
        let prompt = prompt.trim();
        let (word, rest) = prompt.split_once(char::is_whitespace).unwrap_or((prompt, ""));
        let known = word.strip_prefix('/').filter(|name| COMMANDS.iter().any(|(known, ..)| known == name));
        match known {
            Some(name) => Self::command(name, rest.trim_start()),
            None if prompt.is_empty() => Err(Failure::usage("the prompt has no text").hint(
                "write a command line, for example: cargo test; with & at its end it runs in the background",
            )),
            None => {
                let background = prompt.strip_suffix('&').filter(|line| !line.ends_with(['&', '\\']));
                let line = background.unwrap_or(prompt).trim_end().to_owned();
                Ok(Self::Run { line, background: background.is_some() })
            }
        }
    }

    fn command(name: &str, rest: &str) -> Result<Self, Failure> {
        if name == "jobs" {
            return Ok(Self::Jobs { all: rest.trim() == "all" });
        }
        let (job, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if job.is_empty() {
            let how = COMMANDS.iter().find(|(known, ..)| *known == name).map_or("", |(_, how, _)| how);
            return Err(Failure::usage(format!("/{name} needs a job")).hint(format!("write /{name} {how}")));
        }
        let job = job.to_owned();
        let rest = rest.trim();
        Ok(match name {
            "send" => Self::Send { job, text: rest.to_owned() },
            "keys" if rest.is_empty() => {
                return Err(Failure::usage("/keys needs a key").hint(format!("write /keys {job} Enter")));
            }
            "keys" => Self::Keys { job, keys: rest.split_whitespace().map(ToOwned::to_owned).collect() },
            "read" => Self::Read { job, part: Part::parse(rest)? },
            "wait" if rest.is_empty() => Self::Wait { job, limit: None },
            "wait" => Self::Wait { job, limit: Some(parse_duration(rest)?) },
            _ => Self::Kill { job },
        })
    }
}

#[cfg(test)]
mod tests {
    use outlast_protocol::Hint;

    use super::*;

    fn run(line: &str, background: bool) -> Prompt {
        Prompt::Run { line: line.into(), background }
    }

    #[test]
    fn a_command_line_is_not_one_of_our_commands() {
        let parse = |prompt| Prompt::parse(prompt).unwrap();
        assert_eq!(parse(" ls -l "), run("ls -l", false));
        assert_eq!(parse("npm run dev &"), run("npm run dev", true));
        assert_eq!(parse("true &&"), run("true &&", false));
        assert_eq!(parse("/usr/bin/env sh"), run("/usr/bin/env sh", false));
        assert_eq!(
            parse("/send 3  yes, please "),
            Prompt::Send { job: "3".into(), text: "yes, please".into() }
        );
        assert_eq!(
            parse("/keys web Ctrl-C Enter"),
            Prompt::Keys { job: "web".into(), keys: vec!["Ctrl-C".into(), "Enter".into()] }
        );
        assert_eq!(
            parse("/wait 3 10s"),
            Prompt::Wait { job: "3".into(), limit: Some(Duration::from_secs(10)) }
        );
        assert_eq!(parse("/jobs"), Prompt::Jobs { all: false });
        assert_eq!(parse("/read 3 20"), Prompt::Read { job: "3".into(), part: Part::Last(20) });
        assert_eq!(parse("/read 3 7-99"), Prompt::Read { job: "3".into(), part: Part::Bytes(7, 99) });
    }

    #[test]
    fn the_next_step_is_a_command_that_the_agent_has() {
        for call in Call::samples() {
            let text = failure_text(&Failure::usage("no").hint(Hint::call("next: ", call.clone())));
            let Some((_, name)) = text.split_once("next: /") else { continue };
            let name = name.split_whitespace().next().unwrap();
            assert!(COMMANDS.iter().any(|(known, ..)| *known == name), "{call:?}: {text}");
        }
        let ended = Failure::usage("it has ended").hint(Hint::call("see how: ", Call::Read("3".into())));
        assert_eq!(failure_text(&ended), "it has ended\n  see how: /read 3\n");
    }

    #[test]
    fn a_missing_argument_is_named() {
        assert!(Prompt::parse("  ").is_err());
        let failure = Prompt::parse("/kill").unwrap_err();
        assert!(failure.hint.unwrap().to_string().contains("/kill JOB"));
        assert!(Prompt::parse("/read 3 x").is_err());
    }
}
