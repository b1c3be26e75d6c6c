//! What a prompt asks for: a command line, or one of our own commands.

use std::time::Duration;

use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, SessionUpdate, UnstructuredCommandInput,
};
use outlast_job::Failure;
use outlast_job::registry::sweep::parse_duration;

/// A prompt, understood.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// A line for the shell; in the background if it ended with `&`.
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
        lines: Option<usize>,
    },
    Wait {
        job: String,
        limit: Option<Duration>,
    },
    Kill {
        job: String,
    },
}

/// Name, what is typed after it, what it does.
const COMMANDS: [(&str, &str, &str); 6] = [
    ("send", "JOB TEXT", "Type a line into a job"),
    ("keys", "JOB KEY...", "Press keys in a job: Enter, Tab, Up, Ctrl-C and so on"),
    ("jobs", "[all]", "List this session's jobs, or all"),
    ("read", "JOB [LINES]", "Show what a job printed"),
    ("wait", "JOB [TIME]", "Wait until a job has ended or asks for input"),
    ("kill", "JOB", "End a job and all that it started"),
];

/// The commands as a client lists them.
pub(crate) fn available() -> SessionUpdate {
    let command = |(name, input, what): (&str, &str, &str)| {
        let hint = AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(input));
        AvailableCommand::new(name, what).input(hint)
    };
    SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(COMMANDS.map(command).to_vec()))
}

impl Order {
    /// Reads a prompt. A slash that begins none of our commands begins a path.
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
            "read" if rest.is_empty() => Self::Read { job, lines: None },
            "read" => {
                let lines =
                    rest.parse().map_err(|_| Failure::usage(format!("{rest:?} is no number of lines")))?;
                Self::Read { job, lines: Some(lines) }
            }
            "wait" if rest.is_empty() => Self::Wait { job, limit: None },
            "wait" => Self::Wait { job, limit: Some(parse_duration(rest)?) },
            _ => Self::Kill { job },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str, background: bool) -> Order {
        Order::Run { line: line.into(), background }
    }

    #[test]
    fn a_command_line_is_told_from_our_commands() {
        let parse = |prompt| Order::parse(prompt).unwrap();
        assert_eq!(parse(" ls -l "), run("ls -l", false));
        assert_eq!(parse("npm run dev &"), run("npm run dev", true));
        assert_eq!(parse("true &&"), run("true &&", false));
        assert_eq!(parse("/usr/bin/env sh"), run("/usr/bin/env sh", false));
        assert_eq!(
            parse("/send 3  yes, please "),
            Order::Send { job: "3".into(), text: "yes, please".into() }
        );
        assert_eq!(
            parse("/keys web Ctrl-C Enter"),
            Order::Keys { job: "web".into(), keys: vec!["Ctrl-C".into(), "Enter".into()] }
        );
        assert_eq!(
            parse("/wait 3 10s"),
            Order::Wait { job: "3".into(), limit: Some(Duration::from_secs(10)) }
        );
        assert_eq!(parse("/jobs"), Order::Jobs { all: false });
    }

    #[test]
    fn what_is_missing_is_named() {
        assert!(Order::parse("  ").is_err());
        let failure = Order::parse("/kill").unwrap_err();
        assert!(failure.hint.unwrap().contains("/kill JOB"));
        assert!(Order::parse("/read 3 x").is_err());
    }
}
