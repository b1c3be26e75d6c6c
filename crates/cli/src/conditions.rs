//! What `wait` and `watch` can look for in a job: a flag for each row of the table of conditions.

use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use outlast_protocol::condition::{CONDITIONS, ConditionWord, TakesValue};
use outlast_protocol::units::millis;
use outlast_protocol::{Condition, Reason, Stable};

use crate::values::duration;

/// Conditions whose flag is not simply their word, and another spelling that is accepted.
const FLAGS: &[(Reason, &str, &str)] =
    &[(Reason::AwaitingInput, "awaiting-input", "input"), (Reason::Quiet, "quiet-for", "quiet")];

/// Conditions that a job may meet.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    until: Vec<Condition>,
}

impl Conditions {
    /// As they were given, in the order of the table.
    #[must_use]
    pub fn conditions(&self) -> Vec<Condition> {
        self.until.clone()
    }
}

impl Args for Conditions {
    fn augment_args(command: Command) -> Command {
        command.args(CONDITIONS.iter().map(flag)).args(stable_args())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Conditions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut until: Vec<Condition> = Vec::new();
        for row in CONDITIONS {
            match row.takes {
                TakesValue::No if matches.get_flag(row.word()) => until.extend(row.with(None).ok()),
                TakesValue::No => {}
                TakesValue::Optional | TakesValue::Required => {
                    until.extend(matches.get_many::<Condition>(row.word()).into_iter().flatten().cloned());
                }
            }
        }
        let (until, gone) = until.into_iter().partition(|condition| condition.reason() != Reason::Gone);
        let mut conditions = Self { until };
        conditions.until.extend(none_of(&gone).map(Condition::Gone));
        conditions.refine_stable(matches);
        Ok(conditions)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Conditions {
    fn refine_stable(&mut self, matches: &ArgMatches) {
        let interval = matches.get_one::<Duration>("stable_interval").copied();
        let ignore: Vec<String> =
            matches.get_many::<String>("stable_ignore").into_iter().flatten().cloned().collect();
        for condition in &mut self.until {
            if let Condition::Stable(stable) = condition {
                let interval_ms = interval.map_or(stable.interval_ms, millis);
                *stable = Stable { interval_ms, ignore: ignore.clone(), ..stable.clone() };
            }
        }
    }
}

/// The flag of a condition. Its id is the condition's word.
fn flag(row: &'static ConditionWord) -> Arg {
    let word = row.word();
    let arg = Arg::new(word).help(sentence(row.help));
    let arg = match FLAGS.iter().find(|(reason, ..)| *reason == row.reason) {
        Some((_, flag, alias)) => arg.long(*flag).visible_alias(*alias),
        None => arg.long(word),
    };
    match row.takes {
        TakesValue::No => arg.action(ArgAction::SetTrue),
        TakesValue::Optional => {
            // Nothing after the flag is an empty value to clap.
            let value = move |text: &str| row.with(Some(text).filter(|text| !text.is_empty()));
            let arg = arg.value_name(row.placeholder).num_args(0..=1).default_missing_value("");
            // What follows this flag was always the job.
            arg.require_equals(row.reason == Reason::AwaitingInput).value_parser(value)
        }
        TakesValue::Required => {
            let value = move |text: &str| row.with(Some(text));
            arg.value_name(row.placeholder).action(ArgAction::Append).value_parser(value)
        }
    }
}

/// What refines `--stable`.
fn stable_args() -> [Arg; 2] {
    let interval = Arg::new("stable_interval")
        .long("stable-interval")
        .value_name("TIME")
        .value_parser(duration)
        .default_value("1s")
        .help("How far apart the checks of --stable are");
    let ignore = Arg::new("stable_ignore")
        .long("stable-ignore")
        .value_name("REGEX")
        .action(ArgAction::Append)
        .help("What --stable leaves out: clocks, spinners; may be given more than once");
    [interval, ignore]
}

/// A line of help begins with a capital letter.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// One regular expression that matches where any of these does: all of them must be gone.
fn none_of(gone: &[Condition]) -> Option<String> {
    let patterns: Vec<&String> = gone.iter().flat_map(Condition::regexes).collect();
    match patterns.as_slice() {
        [] => None,
        [one] => Some((*one).clone()),
        several => Some(several.iter().map(|one| format!("(?:{one})")).collect::<Vec<_>>().join("|")),
    }
}

/// A port to wait for; 0 is any.
#[must_use]
pub fn any_if_zero(port: u16) -> Condition {
    Condition::Port((port != 0).then_some(port))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kind of wake that the help does not name is found by nobody.
    #[test]
    fn the_help_of_run_names_each_kind_of_wake() {
        let mut cli = <crate::Cli as clap::CommandFactory>::command();
        let run = cli.find_subcommand_mut("run").unwrap();
        let wake = run.get_arguments().find(|argument| argument.get_id() == "wake").unwrap();
        let help = wake.get_help().unwrap().to_string();
        for kind in outlast_protocol::WakeKind::ALL {
            assert!(help.contains(kind.usage()), "{} is not in: {help}", kind.usage());
        }
    }

    #[test]
    fn an_empty_regular_expression_matches_anything() {
        assert_eq!(read(&["--pattern", ""]).unwrap(), [Condition::Pattern(String::new())]);
        assert!(read(&["--quiet-for", ""]).is_err());
    }

    fn read(args: &[&str]) -> Result<Vec<Condition>, clap::Error> {
        let command = Conditions::augment_args(Command::new("wait").no_binary_name(true));
        let matches = command.try_get_matches_from(args)?;
        Ok(Conditions::from_arg_matches(&matches)?.conditions())
    }

    #[test]
    fn every_condition_has_a_flag() {
        for row in CONDITIONS {
            let flag = format!("--{}", row.word().replace('_', "-"));
            let args: &[&str] =
                if row.takes == TakesValue::Required { &[flag.as_str(), "7"] } else { &[flag.as_str()] };
            let read = read(args).unwrap();
            assert_eq!(read.iter().map(Condition::reason).collect::<Vec<_>>(), [row.reason], "{flag}");
        }
    }

    #[test]
    fn flags_mean_what_they_always_meant() {
        let stable = Stable { checks: 2, interval_ms: 100, ignore: vec!["x".into()], ..Stable::default() };
        let args = ["--stable", "2", "--stable-interval", "100ms", "--stable-ignore", "x", "--gone", "a"];
        let wanted = [Condition::Stable(stable), Condition::Gone("(?:a)|(?:b)".into())];
        assert_eq!(read(&[&args[..], &["--gone", "b"]].concat()).unwrap(), wanted);
        let args = ["--port", "--input", "--quiet-for", "2s", "--pattern", "a", "--pattern", "b"];
        let wanted = [
            Condition::Pattern("a".into()),
            Condition::Pattern("b".into()),
            Condition::AwaitingInput,
            Condition::Quiet { ms: 2000 },
            Condition::Port(None),
        ];
        assert_eq!(read(&args).unwrap(), wanted);
        let level = outlast_protocol::Level::Certain;
        assert_eq!(read(&["--input=certain"]).unwrap(), [Condition::AwaitingAtLeast(level)]);
        assert!(read(&["--input=perhaps"]).is_err());
        assert!(read(&["--input", "certain"]).is_err(), "it is the name of a job");
        assert!(read(&["--quiet", "soon"]).is_err());
        assert!(read(&["--port", "http"]).is_err());
    }
}
