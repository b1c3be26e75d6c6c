//! What a wait waits for. A wait, a watch, `--notify` and a wake's `on` all speak of the same conditions.
//!
//! [`CONDITIONS`] is the one table of them: flags, tool schemas, parsers and docs are made from it or tested against it.
//! A new condition needs a [`Reason`], a variant and a row here, and whatever decides in the keeper whether it holds.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::awaiting::Level;
use crate::failure::Failure;
use crate::reason::Reason;
use crate::units::{millis, parse_duration, print_millis};
use crate::words::UnknownWord;

/// Something that can hold of a job, and end a wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// The job has ended.
    Exit,
    /// This regular expression matches what was printed from the start of the wait on.
    Pattern(String),
    /// The foreground program waits for input.
    AwaitingInput,
    /// The same, at least this surely.
    #[serde(rename = "awaiting_input_at_least")]
    AwaitingAtLeast(Level),
    /// Nothing was printed for this long.
    Quiet {
        /// How long, in milliseconds.
        ms: u64,
    },
    /// The screen has not changed for some checks in a row.
    Stable(Stable),
    /// The job, or a child of it, listens on this TCP port; none for any.
    Port(Option<u16>),
    /// A path on a port of the job answers with the wanted status.
    Http(Http),
    /// Anything was printed from the start of the wait on.
    Output,
    /// This regular expression matches nothing on the screen.
    Gone(String),
    /// Lines were printed: they come in batches.
    Lines,
}

/// When a screen counts as unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stable {
    /// How many checks in a row must find it unchanged.
    pub checks: u32,
    /// How far apart they are, in milliseconds.
    pub interval_ms: u64,
    /// What always moves and is left out before screens are compared: regular expressions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// Rows that are left out, from 0 at the top; negative ones count from the bottom.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore_rows: Vec<i32>,
}

impl Default for Stable {
    fn default() -> Self {
        Self { checks: 3, interval_ms: 1000, ignore: Vec::new(), ignore_rows: Vec::new() }
    }
}

/// What a port of the job is asked for, and which answer counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Http {
    /// The port; none for any that the job listens on. A port that is not the job's is never asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The path, with its query.
    pub path: String,
    /// The wanted status; none for any of 2xx.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

impl Http {
    /// Reads `/path`, `PORT/path`, `PORT` or `http://127.0.0.1:PORT/path`, each perhaps with `#STATUS`.
    fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = |what: &str| {
            Failure::usage(format!("{text:?}: {what}")).hint(
                "write http=/health, http=3000/health, http=http://127.0.0.1:3000/x or http=/health#204",
            )
        };
        let (place, status) = text.split_once('#').map_or((text, None), |(place, it)| (place, Some(it)));
        let status = status.map(|status| number::<u16>(status, "an HTTP status")).transpose()?;
        if status.is_some_and(|status| !(100..600).contains(&status)) {
            return Err(wrong("a status has three digits"));
        }
        let place = match place.split_once("://") {
            Some(("http", rest)) => {
                let at = rest.find('/').unwrap_or(rest.len());
                let (host, port) = rest[..at].rsplit_once(':').ok_or_else(|| wrong("name the port"))?;
                if !["127.0.0.1", "localhost", "[::1]"].contains(&host) {
                    return Err(wrong("only this machine is asked: 127.0.0.1, localhost or [::1]"));
                }
                format!("{port}{}", &rest[at..])
            }
            Some(_) => return Err(wrong("only http is spoken")),
            None => place.to_owned(),
        };
        let at = place.find('/').unwrap_or(place.len());
        let (port, path) = place.split_at(at);
        let port = if port.is_empty() { None } else { Some(number::<u16>(port, "the number of a port")?) };
        if port == Some(0) {
            return Err(wrong("there is no port 0"));
        }
        if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong("a path has no blanks, and other letters are written with %"));
        }
        let path = if path.is_empty() { "/".to_owned() } else { path.to_owned() };
        Ok(Self { port, path, status })
    }

    /// Whether an answer with this status counts.
    #[must_use]
    pub fn accepts(&self, status: u16) -> bool {
        self.status.map_or((200..300).contains(&status), |wanted| wanted == status)
    }
}

impl fmt::Display for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(port) = self.port {
            write!(f, "{port}")?;
        }
        f.write_str(&self.path)?;
        self.status.map_or(Ok(()), |status| write!(f, "#{status}"))
    }
}

/// Whether a condition's word is followed by a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakesValue {
    /// Never: `exit`.
    No,
    /// It may: `port` or `port=3000`.
    Optional,
    /// Always: `pattern=REGEX`.
    Required,
}

/// A row of [`CONDITIONS`].
#[derive(Debug)]
pub struct ConditionWord {
    /// The reason that a wait gives when this condition ended it. Its word is the condition's word.
    pub reason: Reason,
    /// Whether a value follows the word.
    pub takes: TakesValue,
    /// What stands for the value in help texts.
    pub placeholder: &'static str,
    /// When it holds: completes "until …".
    pub help: &'static str,
    /// What an event says of it, where it has nothing more to show.
    pub told: &'static str,
    /// Whether what it is about is an event of the job's own, whether or not anybody watches for it.
    pub own_event: bool,
    make: fn(Option<&str>) -> Result<Condition, Failure>,
}

/// All conditions, in the order in which they are listed for users.
pub const CONDITIONS: &[ConditionWord] = &[
    ConditionWord {
        reason: Reason::Exit,
        takes: TakesValue::No,
        placeholder: "",
        help: "the job has ended",
        told: "it has ended",
        own_event: true,
        make: |_| Ok(Condition::Exit),
    },
    ConditionWord {
        reason: Reason::Pattern,
        takes: TakesValue::Required,
        placeholder: "REGEX",
        help: "this regular expression matches the output",
        told: "the pattern was found",
        own_event: false,
        make: |value| Ok(Condition::Pattern(value.unwrap_or_default().to_owned())),
    },
    ConditionWord {
        reason: Reason::AwaitingInput,
        takes: TakesValue::Optional,
        placeholder: "LEVEL",
        help: "the program waits for input, at least this surely: certain, likely, possible (unless told), listening",
        told: "it waits for input",
        own_event: true,
        make: |value| match value.map(str::parse::<Level>).transpose()? {
            None | Some(Level::Possible) => Ok(Condition::AwaitingInput),
            Some(level) => Ok(Condition::AwaitingAtLeast(level)),
        },
    },
    ConditionWord {
        reason: Reason::Quiet,
        takes: TakesValue::Required,
        placeholder: "TIME",
        help: "nothing was printed for this long",
        told: "it prints nothing any more",
        own_event: false,
        make: |value| {
            let ms = millis(parse_duration(value.unwrap_or_default())?);
            Ok(Condition::Quiet { ms })
        },
    },
    ConditionWord {
        reason: Reason::Stable,
        takes: TakesValue::Optional,
        placeholder: "CHECKS",
        help: "the screen has not changed for this many checks, a second apart; 3 unless told",
        told: "its screen stands still",
        own_event: false,
        make: |value| {
            let checks =
                value.map_or(Ok(Stable::default().checks), |text| number(text, "a number of checks"))?;
            if checks == 0 {
                return Err(Failure::usage(
                    "a screen stands still only if it was looked at more than 0 times",
                )
                .hint("give 1 or more; without a number it is 3"));
            }
            Ok(Condition::Stable(Stable { checks, ..Stable::default() }))
        },
    },
    ConditionWord {
        reason: Reason::Port,
        takes: TakesValue::Optional,
        placeholder: "PORT",
        help: "the job, or a child of it, listens on this TCP port; any unless told",
        told: "it listens on a port",
        own_event: true,
        make: |value| {
            let port = value.map_or(Ok(0), |text| number(text, "the number of a port"))?;
            Ok(Condition::Port((port != 0).then_some(port)))
        },
    },
    ConditionWord {
        reason: Reason::Http,
        takes: TakesValue::Optional,
        placeholder: "[PORT]/PATH[#STATUS]",
        help: "this path on the job's port answers with this status; any port, / and 2xx unless told",
        told: "it answers over HTTP",
        own_event: false,
        make: |value| Ok(Condition::Http(Http::parse(value.unwrap_or("/"))?)),
    },
    ConditionWord {
        reason: Reason::Output,
        takes: TakesValue::No,
        placeholder: "",
        help: "anything is printed",
        told: "it has printed something",
        own_event: false,
        make: |_| Ok(Condition::Output),
    },
    ConditionWord {
        reason: Reason::Gone,
        takes: TakesValue::Required,
        placeholder: "REGEX",
        help: "this regular expression matches nothing on the screen",
        told: "the text has gone from its screen",
        own_event: false,
        make: |value| Ok(Condition::Gone(value.unwrap_or_default().to_owned())),
    },
    ConditionWord {
        reason: Reason::Lines,
        takes: TakesValue::No,
        placeholder: "",
        help: "lines are printed: they come in batches",
        told: "it has printed lines",
        own_event: false,
        make: |_| Ok(Condition::Lines),
    },
];

fn number<T: FromStr>(text: &str, what: &str) -> Result<T, Failure> {
    text.parse().map_err(|_| Failure::usage(format!("{text:?} is not {what}")))
}

impl ConditionWord {
    /// What an event says of a condition that ended a wait for this reason, where it has nothing more to show.
    #[must_use]
    pub fn told(reason: Reason) -> &'static str {
        CONDITIONS.iter().find(|row| row.reason == reason).map_or(reason.name(), |row| row.told)
    }

    /// The row of a word, in its spelling of today or an older one.
    ///
    /// # Errors
    /// No condition has that word; the error lists those that there are.
    pub fn of(word: &str) -> Result<&'static Self, UnknownWord> {
        let known = |row: &&Self| row.word() == word || row.older().contains(&word);
        CONDITIONS.iter().find(known).ok_or_else(|| UnknownWord {
            noun: "condition",
            word: word.to_owned(),
            known: CONDITIONS.iter().map(Self::word).collect(),
        })
    }

    /// The word for it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        self.reason.name()
    }

    /// Older spellings of the word, which are still understood.
    #[must_use]
    pub fn older(&self) -> &'static [&'static str] {
        self.reason.older()
    }

    /// How it is written: `exit`, `pattern=REGEX`, `port[=PORT]`.
    #[must_use]
    pub fn usage(&self) -> String {
        let (word, placeholder) = (self.word(), self.placeholder);
        match self.takes {
            TakesValue::No => word.to_owned(),
            TakesValue::Optional => format!("{word}[={placeholder}]"),
            TakesValue::Required => format!("{word}={placeholder}"),
        }
    }

    /// The condition with this value.
    ///
    /// # Errors
    /// A usage failure: a value that is missing, that does not belong there, or that is invalid. Whether a regular
    /// expression compiles is not known here.
    pub fn with(&self, value: Option<&str>) -> Result<Condition, Failure> {
        let wrong = |what: String| Err(Failure::usage(what).hint(format!("write {}", self.usage())));
        match (self.takes, value) {
            (TakesValue::No, Some(_)) => wrong(format!("the condition {} takes no value", self.word())),
            (TakesValue::Required, None) => wrong(format!("the condition {} needs a value", self.word())),
            (TakesValue::No | TakesValue::Optional | TakesValue::Required, value) => (self.make)(value),
        }
    }
}

impl Condition {
    /// The reason that a wait gives when this condition ended it.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::Exit => Reason::Exit,
            Self::Pattern(_) => Reason::Pattern,
            Self::AwaitingInput | Self::AwaitingAtLeast(_) => Reason::AwaitingInput,
            Self::Quiet { .. } => Reason::Quiet,
            Self::Stable(_) => Reason::Stable,
            Self::Port(_) => Reason::Port,
            Self::Http(_) => Reason::Http,
            Self::Output => Reason::Output,
            Self::Gone(_) => Reason::Gone,
            Self::Lines => Reason::Lines,
        }
    }

    /// Whether it looks at the screen: then it must begin with the screen as it is.
    #[must_use]
    pub fn needs_screen(&self) -> bool {
        match self {
            Self::Stable(_) | Self::Gone(_) => true,
            Self::Exit
            | Self::Pattern(_)
            | Self::AwaitingInput
            | Self::AwaitingAtLeast(_)
            | Self::Quiet { .. }
            | Self::Port(_)
            | Self::Http(_)
            | Self::Output
            | Self::Lines => false,
        }
    }

    /// Whether it is counted from where a wait begins: one that is asked about again and again would never see it.
    #[must_use]
    pub fn counts_from_wait(&self) -> bool {
        match self {
            Self::Quiet { .. } | Self::Stable(_) | Self::Gone(_) => true,
            Self::Exit
            | Self::Pattern(_)
            | Self::AwaitingInput
            | Self::AwaitingAtLeast(_)
            | Self::Port(_)
            | Self::Http(_)
            | Self::Output
            | Self::Lines => false,
        }
    }

    /// Whether what it is about is an event of the job's own, whether or not anybody watches for it.
    #[must_use]
    pub fn has_own_event(&self) -> bool {
        CONDITIONS.iter().any(|row| row.reason == self.reason() && row.own_event)
    }

    /// The regular expressions in it.
    #[must_use]
    pub fn regexes(&self) -> &[String] {
        match self {
            Self::Pattern(pattern) | Self::Gone(pattern) => std::slice::from_ref(pattern),
            Self::Stable(stable) => &stable.ignore,
            Self::Exit
            | Self::AwaitingInput
            | Self::AwaitingAtLeast(_)
            | Self::Quiet { .. }
            | Self::Port(_)
            | Self::Http(_)
            | Self::Output
            | Self::Lines => &[],
        }
    }

    /// Its value as it is written after the word, if it has one. Of `stable` only the number of checks is written.
    #[must_use]
    pub fn value(&self) -> Option<String> {
        match self {
            Self::Pattern(pattern) | Self::Gone(pattern) => Some(pattern.clone()),
            Self::Quiet { ms } => Some(print_millis(*ms)),
            Self::Stable(stable) => {
                (stable.checks != Stable::default().checks).then(|| stable.checks.to_string())
            }
            Self::Port(port) => port.map(|port| port.to_string()),
            Self::Http(http) => Some(http.to_string()),
            Self::AwaitingAtLeast(level) => Some(level.to_string()),
            Self::Exit | Self::AwaitingInput | Self::Output | Self::Lines => None,
        }
    }

    /// Reads conditions with commas between them: `exit,pattern=a{2,3},quiet=30s`. A comma that no known word follows
    /// belongs to the value before it.
    ///
    /// # Errors
    /// As [`Condition::from_str`].
    pub fn parse_list(text: &str) -> Result<Vec<Self>, Failure> {
        split_list(text, &[]).iter().map(|word| word.parse()).collect()
    }
}

/// Splits a list of conditions at its commas, but not inside of a value. `besides` are words that the caller knows.
#[must_use]
pub fn split_list(text: &str, besides: &[&str]) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for piece in text.split(',') {
        let key = piece.split_once('=').map_or(piece, |(key, _)| key);
        let known = besides.contains(&key) || ConditionWord::of(key).is_ok();
        match words.last_mut() {
            Some(last) if !known && last.contains('=') => {
                last.push(',');
                last.push_str(piece);
            }
            _ => words.push(piece.to_owned()),
        }
    }
    words
}

impl FromStr for Condition {
    type Err = Failure;

    /// Reads `word` or `word=value`.
    fn from_str(text: &str) -> Result<Self, Failure> {
        let (word, value) = text.split_once('=').map_or((text, None), |(word, value)| (word, Some(value)));
        let row = ConditionWord::of(word).map_err(|_| {
            let usages: Vec<String> = CONDITIONS.iter().map(ConditionWord::usage).collect();
            Failure::usage(format!("unknown condition {word:?}"))
                .hint(format!("choose among: {}", usages.join(", ")))
        })?;
        row.with(value)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason().name())?;
        match self.value() {
            Some(value) => write!(f, "={value}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(row: &ConditionWord) -> Condition {
        let value = match row.takes {
            TakesValue::No => None,
            TakesValue::Optional if row.reason == Reason::AwaitingInput => Some("certain"),
            TakesValue::Optional | TakesValue::Required => Some("7"),
        };
        row.with(value).unwrap()
    }

    #[test]
    fn every_row_makes_the_condition_of_its_word_and_reads_back_what_it_prints() {
        for row in CONDITIONS {
            let condition = sample(row);
            assert_eq!(condition.reason(), row.reason);
            assert_eq!(condition.to_string().parse::<Condition>().unwrap(), condition);
            for older in row.older() {
                let text = condition.to_string().replacen(row.word(), older, 1);
                assert_eq!(text.parse::<Condition>().unwrap(), condition, "{text}");
            }
            let json = serde_json::to_string(&condition).unwrap();
            assert_eq!(serde_json::from_str::<Condition>(&json).unwrap(), condition);
            assert!(json.contains(row.word()), "{json} has another word than {}", row.word());
        }
    }

    #[test]
    fn a_reason_is_a_condition_or_needs_none() {
        for reason in Reason::ALL {
            let row = CONDITIONS.iter().filter(|row| row.reason == *reason).count();
            let without = matches!(reason, Reason::Deadline | Reason::Started);
            assert_eq!(row, usize::from(!without), "{reason}");
        }
    }

    #[test]
    fn an_http_condition_is_about_a_port_of_this_machine() {
        let http = |text: &str| match format!("http={text}").parse() {
            Ok(Condition::Http(http)) => Ok((http.port, http.path, http.status)),
            Ok(other) => panic!("{other}"),
            Err(failure) => Err(failure),
        };
        assert_eq!(http("/health").unwrap(), (None, "/health".into(), None));
        assert_eq!(http("3000").unwrap(), (Some(3000), "/".into(), None));
        assert_eq!(http("3000/a?b=1#204").unwrap(), (Some(3000), "/a?b=1".into(), Some(204)));
        assert_eq!(http("http://localhost:80/x").unwrap(), (Some(80), "/x".into(), None));
        assert_eq!(http("http://[::1]:80").unwrap(), (Some(80), "/".into(), None));
        for wrong in [
            "http://10.0.0.1:80/",
            "https://localhost:80/",
            "http://localhost/",
            "/a b",
            "0/",
            "x/y",
            "/a\r\nHost: b",
            "/#2",
            "http://127.0.0.1.example.org:80/",
        ] {
            assert!(http(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_value_keeps_its_commas() {
        let read = Condition::parse_list("exit,pattern=a{2,3},quiet=30s,input").unwrap();
        let wanted = [
            Condition::Exit,
            Condition::Pattern("a{2,3}".into()),
            Condition::Quiet { ms: 30_000 },
            Condition::AwaitingInput,
        ];
        assert_eq!(read, wanted);
    }

    #[test]
    fn what_is_not_understood_is_refused_with_what_is_known() {
        let failure = "exits".parse::<Condition>().unwrap_err();
        assert!(failure.message.contains("exits"), "{failure}");
        let hint = failure.hint.unwrap().to_string();
        for row in CONDITIONS {
            assert!(hint.contains(row.word()), "{hint}");
        }
        for wrong in ["exit=1", "pattern", "quiet=soon", "port=http", "stable=often", ""] {
            assert!(wrong.parse::<Condition>().is_err(), "{wrong}");
        }
    }
}
