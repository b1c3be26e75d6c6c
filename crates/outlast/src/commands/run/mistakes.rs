//! Command lines of `run` that cannot be meant: told before a job is made, with the line that was meant.

use clap::{CommandFactory, FromArgMatches};
use outlast_cli::{Cli, RunArgs};
use outlast_job::{Failure, JobSpec, Kind, Run};

use outlast_protocol::near::nearest;

use crate::suggest::{line_of, quoted, similar_program};

/// What a shell says of a program that it does not find, and of a file that it may not run.
const NO_SUCH_PROGRAM: i32 = 127;
const NOT_EXECUTABLE: i32 = 126;

/// Why nothing can be run, and the exit code for it.
#[derive(Debug)]
pub(super) struct Mistake {
    pub(super) failure: Failure,
    pub(super) code: i32,
}

impl Mistake {
    fn usage(message: String, hint: String) -> Self {
        Self { failure: Failure::usage(message).hint(hint), code: crate::output::USAGE }
    }
}

/// Options that do nothing without others, or that contradict each other.
pub(super) fn check_options(args: &RunArgs) -> Result<(), Failure> {
    let waits_for = args.until.first_flag();
    match (args.deadline, waits_for) {
        (_, Some(option)) if args.background => Err(Failure::usage(format!(
            "-d comes back at once, and {option} waits"
        ))
        .hint(format!(
            "leave out -d: the job runs on either way   or wait later: outlast wait JOB {option} ..."
        ))),
        (Some(_), None) => Err(Failure::usage(
            "--deadline says how long to wait for --pattern, --port, --http, --awaiting-input and the like; none is given",
        )
        .hint("to end the job after that time: --timeout TIME   to come back at once: -d")),
        _ => Ok(()),
    }
}

/// What is wrong with the program that is to be run, if it is not there.
pub(super) fn of_program(spec: &JobSpec, args: &RunArgs) -> Option<Mistake> {
    if let Some(mistake) = value_after_a_space(args) {
        return Some(mistake);
    }
    if let Some(cwd) = spec.cwd.as_deref().filter(|cwd| !std::path::Path::new(cwd).is_dir()) {
        let failure = Failure::new(Kind::CannotStart, format!("there is no folder {cwd}"))
            .hint("check --cwd, or make it: mkdir -p DIR");
        return Some(Mistake { failure, code: 1 });
    }
    let files = outlast_job::spec::program_files(spec).ok()?;
    let Some(file) = files.first() else {
        return Some(missing(spec, args));
    };
    let runs = rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok();
    let Run::Program(argv) = &spec.run else { return None };
    if runs && !file.is_dir() {
        return None;
    }
    let program = argv.first().cloned().unwrap_or_default();
    let (why, hint) = if file.is_dir() {
        (
            "it is a folder".to_owned(),
            format!("to run something in it: outlast run --cwd {} COMMAND", quoted(&program)),
        )
    } else {
        let plain = quoted(&program);
        (
            "it may not be executed".to_owned(),
            format!(
                "allow it: chmod +x {plain}   or name what runs it, for example: outlast run bash {plain}"
            ),
        )
    };
    let failure = Failure::new(Kind::CannotStart, format!("{program:?} can't be run: {why}")).hint(hint);
    Some(Mistake { failure, code: NOT_EXECUTABLE })
}

/// `--port 5173 CMD`: these options take their value after `=` only.
fn value_after_a_space(args: &RunArgs) -> Option<Mistake> {
    let (first, rest) = args.command.split_first()?;
    let option = match args.until.lacks_value(first) {
        Some(_) if std::path::Path::new(first).exists() => return None,
        Some(option) => option,
        None if args.bounds.sandbox.is_some() && ["bwrap", "kernel"].contains(&first.as_str()) => {
            "--sandbox".to_owned()
        }
        None => return None,
    };
    let rest = if rest.is_empty() { "COMMAND".to_owned() } else { line_of(rest) };
    Some(Mistake::usage(
        format!("the value of {option} comes after `=`; here {first:?} would be the command"),
        format!("write: outlast run {option}={first} {rest}"),
    ))
}

/// The program that is to read the line is not there.
fn missing_interpreter(program: &str, path: Option<&String>, args: &RunArgs) -> Mistake {
    let hint = match (&args.with, similar_program(path, program)) {
        (Some(_), Some(similar)) => {
            format!("did you mean: outlast run --with {similar} {}", line_of(&args.command))
        }
        (Some(_), None) => "check the spelling, or give its full path".to_owned(),
        (None, _) => "it is your setting; bash again: outlast config unset terminal.shell".to_owned(),
    };
    let message = format!("there is no program {program:?} to read the line");
    Mistake { failure: Failure::new(Kind::CannotStart, message).hint(hint), code: NO_SUCH_PROGRAM }
}

fn missing(spec: &JobSpec, args: &RunArgs) -> Mistake {
    let path = spec.env.get("PATH").cloned().unwrap_or_else(|| std::env::var("PATH").ok());
    if let Run::Program(argv) = &spec.run
        && let Some(program) = argv.first()
        && Some(program) != args.command.first()
    {
        return missing_interpreter(program, path.as_ref(), args);
    }
    let (first, rest) = args.command.split_first().map_or(("", [].as_slice()), |(a, b)| (a.as_str(), b));
    if first.starts_with('-') {
        return unknown_option(first, rest);
    }
    if let Some(options) = options_of_ours(rest) {
        let line = format!(
            "outlast run {} {}",
            line_of(options),
            line_of(&args.command[..=rest.len() - options.len()])
        );
        return Mistake::usage(
            format!("there is no program {first:?}: options of outlast come before the command"),
            format!("write: {line}"),
        );
    }
    if first.contains(char::is_whitespace) {
        let all = args.command.join(" ");
        return Mistake::usage(
            format!("there is no program {first:?}: a line for the shell is one argument"),
            format!("write: outlast run {}", quoted(&all)),
        );
    }
    if let Some(mistake) = word_of_the_shell(first, &args.command) {
        return mistake;
    }
    let message = format!("there is no program {first:?}");
    let hint = match (first.contains('/'), similar_program(path.as_ref(), first)) {
        (true, _) => format!(
            "there is no such file in {}; to start somewhere else: outlast run --cwd DIR {first}",
            spec.cwd.as_deref().unwrap_or("this folder")
        ),
        (false, Some(similar)) => format!("did you mean: outlast run {} {}", similar, line_of(rest)),
        (false, None) => "check the spelling, or give its full path. An alias or function of your shell: \
                          outlast run -- bash -ic 'NAME'"
            .to_owned(),
    };
    let failure = Failure::new(Kind::CannotStart, message).hint(hint.trim_end());
    Mistake { failure, code: NO_SUCH_PROGRAM }
}

/// Words that only a shell knows.
const WORDS_OF_SHELLS: &[&str] = &[
    ".", "alias", "cd", "declare", "eval", "exec", "export", "for", "history", "if", "popd", "pushd", "set",
    "shopt", "source", "trap", "type", "ulimit", "umask", "unset", "until", "while",
];

/// `run cd /tmp` and `run FOO=1 make`: a shell would have understood them.
fn word_of_the_shell(first: &str, words: &[String]) -> Option<Mistake> {
    let name = first.split('=').next().unwrap_or_default();
    let is_setting = first.contains('=')
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let (what, line) = if is_setting {
        ("sets a variable", format!("-e {}", line_of(words)))
    } else if WORDS_OF_SHELLS.contains(&first) {
        ("is a word of the shell", quoted(&words.join(" ")))
    } else {
        return None;
    };
    let line = if words.len() == 1 && is_setting { format!("{line} COMMAND") } else { line };
    let failure = Failure::new(Kind::CannotStart, format!("there is no program {first:?}: it {what}"))
        .hint(format!("write: outlast run {line}"));
    Some(Mistake { failure, code: NO_SUCH_PROGRAM })
}

fn unknown_option(option: &str, rest: &[String]) -> Mistake {
    let command = if rest.is_empty() { "COMMAND".to_owned() } else { line_of(rest) };
    // What other programs have.
    let hint = match option.split('=').next().unwrap_or(option) {
        "-it" | "-ti" | "-i" | "--interactive" => {
            format!("at a terminal a job is interactive by itself: outlast run {command}")
        }
        "--detach" | "--bg" => format!("write: outlast run -d {command}"),
        "-w" | "--workdir" | "--dir" | "-C" => "write: outlast run --cwd DIR COMMAND".to_owned(),
        "--rm" => "finished jobs go away by themselves; at once: outlast prune --all".to_owned(),
        "-p" => "to wait for a port: outlast run --port=PORT COMMAND".to_owned(),
        name => match nearest(name, option_names().iter().map(String::as_str)) {
            Some(known) => format!("did you mean: outlast run {known} {command}"),
            None => {
                format!("see its options: outlast run --help   a program of that name: outlast run ./{name}")
            }
        },
    };
    Mistake::usage(format!("`outlast run` has no option {option:?}"), hint)
}

/// The end of the words, if it is made of options that `run` has.
fn options_of_ours(words: &[String]) -> Option<&[String]> {
    let start = words.iter().position(|word| word.starts_with('-') && word.len() > 1 && word != "--")?;
    let options = &words[start..];
    // As they would be before a command.
    let line =
        ["run"].into_iter().map(str::to_owned).chain(options.iter().cloned()).chain(["true".to_owned()]);
    let matches =
        Cli::command().try_get_matches_from(std::iter::once("outlast".to_owned()).chain(line)).ok()?;
    let cli = Cli::from_arg_matches(&matches).ok()?;
    match cli.verb {
        outlast_cli::Verb::Run(run) if run.command == ["true"] => Some(options),
        _ => None,
    }
}

fn option_names() -> Vec<String> {
    let command = Cli::command();
    let run = command.find_subcommand("run").into_iter();
    run.flat_map(clap::Command::get_arguments)
        .filter_map(|argument| argument.get_long().map(|name| format!("--{name}")))
        .collect()
}
