//! What `wait` and `watch` can look for in a job, and what `run` can come back at: a flag for each row of the table of
//! conditions.

use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use outlast_protocol::condition::{CONDITIONS, ConditionWord, TakesValue};
use outlast_protocol::units::millis;
use outlast_protocol::{Condition, Reason, Stable};

use crate::values::duration;

/// Conditions whose flag is not simply their word, and another spelling that is accepted.
const FLAGS: &[(Reason, &str, &str)] =
    &[(Reason::AwaitingInput, "awaiting-input", "input"), (Reason::Quiet, "quiet-for", "quiet")];

/// The heading of the conditions in the help of `run`.
const COMES_BACK: &str = "Come back when, and let it go on in the background";

/// Conditions that a job may meet.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    until: Vec<Condition>,
}

/// At which conditions `run` comes back before the job has ended: all of the table, but for the end itself.
#[derive(Clone, Debug, Default)]
pub struct ComesBackAt {
    until: Vec<Condition>,
}

impl Conditions {
    /// As they were given, in the order of the table.
    #[must_use]
    pub fn conditions(&self) -> Vec<Condition> {
        self.until.clone()
    }
}

impl ComesBackAt {
    /// As they were given, in the order of the table.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        &self.until
    }

    /// The flag of the first one.
    #[must_use]
    pub fn first_flag(&self) -> Option<String> {
        self.until.first().map(|condition| long(condition.reason()))
    }

    /// The flag that was given without a value, if this word could have been its value.
    #[must_use]
    pub fn lacks_value(&self, word: &str) -> Option<String> {
        let could_be_value = |row: &&ConditionWord| {
            let without = (row.takes == TakesValue::Optional).then(|| row.with(None).ok()).flatten();
            without.is_some_and(|without| self.until.contains(&without)) && row.with(Some(word)).is_ok()
        };
        CONDITIONS.iter().find(could_be_value).map(|row| long(row.reason))
    }
}

/// The rows that `run` has flags for.
fn rows_of_run() -> impl Iterator<Item = &'static ConditionWord> {
    CONDITIONS.iter().filter(|row| row.reason != Reason::Exit)
}

impl Args for ComesBackAt {
    fn augment_args(command: Command) -> Command {
        let flags = rows_of_run().map(|row| {
            let arg = flag(row).help_heading(COMES_BACK);
            // `--quiet` of `run` is about our own words.
            let arg = arg.visible_aliases(alias(row.reason).filter(|alias| *alias != "quiet"));
            // What follows is the command.
            arg.require_equals(row.takes == TakesValue::Optional)
        });
        command.args(flags).args(stable_args().map(|arg| arg.help_heading(COMES_BACK)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ComesBackAt {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self { until: given(matches, rows_of_run()) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Conditions {
    fn augment_args(command: Command) -> Command {
        let flags = CONDITIONS.iter().map(|row| flag(row).visible_aliases(alias(row.reason)));
        command.args(flags).args(stable_args())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Conditions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self { until: given(matches, CONDITIONS) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The conditions that were given, in the order of the table.
fn given(matches: &ArgMatches, rows: impl IntoIterator<Item = &'static ConditionWord>) -> Vec<Condition> {
    let mut until: Vec<Condition> = Vec::new();
    for row in rows {
        match row.takes {
            TakesValue::No if matches.get_flag(row.word()) => until.extend(row.with(None).ok()),
            TakesValue::No => {}
            TakesValue::Optional | TakesValue::Required => {
                until.extend(matches.get_many::<Condition>(row.word()).into_iter().flatten().cloned());
            }
        }
    }
    let (mut until, gone): (Vec<_>, Vec<_>) =
        until.into_iter().partition(|condition| condition.reason() != Reason::Gone);
    until.extend(none_of(&gone).map(Condition::Gone));
    refine_stable(&mut until, matches);
    until
}

fn refine_stable(until: &mut [Condition], matches: &ArgMatches) {
    let interval = matches.get_one::<Duration>("stable_interval").copied();
    let ignore: Vec<String> =
        matches.get_many::<String>("stable_ignore").into_iter().flatten().cloned().collect();
    for condition in until {
        if let Condition::Stable(stable) = condition {
            let interval_ms = interval.map_or(stable.interval_ms, millis);
            *stable = Stable { interval_ms, ignore: ignore.clone(), ..stable.clone() };
        }
    }
}

/// The flag of a condition, without its dashes, and another spelling of it.
fn names(reason: Reason) -> (&'static str, Option<&'static str>) {
    let other = FLAGS.iter().find(|(of, ..)| *of == reason);
    other.map_or((reason.name(), None), |(_, flag, alias)| (*flag, Some(*alias)))
}

fn long(reason: Reason) -> String {
    format!("--{}", names(reason).0)
}

fn alias(reason: Reason) -> Option<&'static str> {
    names(reason).1
}

/// The flag of a condition. Its id is the condition's word.
fn flag(row: &'static ConditionWord) -> Arg {
    let word = row.word();
    let arg = Arg::new(word).long(names(row.reason).0).help(sentence(row.help));
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

    fn read_by_run(args: &[&str]) -> Result<ComesBackAt, clap::Error> {
        let command = ComesBackAt::augment_args(Command::new("run").no_binary_name(true));
        ComesBackAt::from_arg_matches(&command.try_get_matches_from(args)?)
    }

    /// A new condition has a flag of `wait`, `watch` and `run` as soon as it has a row in the table.
    #[test]
    fn every_condition_has_a_flag() {
        for row in CONDITIONS {
            let flag = long(row.reason);
            let args: &[&str] =
                if row.takes == TakesValue::Required { &[flag.as_str(), "7"] } else { &[flag.as_str()] };
            let reasons = |read: &[Condition]| read.iter().map(Condition::reason).collect::<Vec<_>>();
            assert_eq!(reasons(&read(args).unwrap()), [row.reason], "{flag}");
            match read_by_run(args) {
                Ok(read) => assert_eq!(reasons(read.conditions()), [row.reason], "{flag}"),
                Err(_) => assert_eq!(row.reason, Reason::Exit),
            }
        }
    }

    #[test]
    fn run_knows_which_flag_lacks_the_value_that_came_after_a_space() {
        let lacks = |args: &[&str], word| read_by_run(args).unwrap().lacks_value(word);
        assert_eq!(lacks(&["--port"], "5173").as_deref(), Some("--port"));
        assert_eq!(lacks(&["--port", "--http"], "/health").as_deref(), Some("--http"));
        assert_eq!(lacks(&["--input"], "certain").as_deref(), Some("--awaiting-input"));
        assert_eq!(lacks(&["--port"], "node"), None);
        assert_eq!(lacks(&["--port=80"], "5173"), None);
        assert_eq!(lacks(&["--pattern", "x"], "5173"), None);
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
