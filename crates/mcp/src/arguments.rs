//! Parses the arguments of a call leniently: a number may come as text, and null counts as missing.

use std::collections::BTreeMap;
use std::time::Duration;

use outlast_job::Failure;
use serde_json::{Map, Value};

/// The arguments of one call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments(Map<String, Value>);

impl Arguments {
    pub(crate) fn new(arguments: Option<Map<String, Value>>) -> Self {
        Self(arguments.unwrap_or_default())
    }

    /// Arguments that a tool does not know, so that a misspelled one is reported instead of ignored.
    pub(crate) fn unknown(&self, known: &[String]) -> Vec<String> {
        // Gemini CLI adds this one to every schema.
        let noise = |name: &String| name == "wait_for_previous";
        self.0.keys().filter(|name| !known.contains(name) && !noise(name)).cloned().collect()
    }

    /// The value of an argument; null counts as missing.
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, Failure> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(Value::Bool(flag)) => Ok(Some(flag.to_string())),
            Some(other) => Err(wrong(name, "text", other)),
        }
    }

    /// A text that is not empty: an empty one counts as missing.
    pub(crate) fn filled(&self, name: &str) -> Result<Option<String>, Failure> {
        Ok(self.text(name)?.filter(|text| !text.is_empty()))
    }

    pub(crate) fn required(&self, name: &str, example: &str) -> Result<String, Failure> {
        self.filled(name)?.ok_or_else(|| missing(name, example))
    }

    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, Failure> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
            Some(other) => Err(wrong(name, "true or false", other)),
        }
    }

    fn number(&self, name: &str) -> Result<Option<f64>, Failure> {
        let number = match self.get(name) {
            None => return Ok(None),
            Some(Value::Number(number)) => number.as_f64(),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(_) => None,
        };
        match number.filter(|number: &f64| number.is_finite() && *number >= 0.0) {
            Some(number) => Ok(Some(number)),
            None => Err(wrong(name, "a number, 0 or more", self.get(name).unwrap_or(&Value::Null))),
        }
    }

    /// A number of seconds.
    pub(crate) fn seconds(&self, name: &str) -> Result<Option<Duration>, Failure> {
        Ok(self.number(name)?.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)))
    }

    /// A number of milliseconds.
    pub(crate) fn millis(&self, name: &str) -> Result<Option<Duration>, Failure> {
        let millis = self.number(name)?;
        Ok(millis.map(|millis| Duration::try_from_secs_f64(millis / 1000.0).unwrap_or(Duration::MAX)))
    }

    /// A count or an offset.
    pub(crate) fn count(&self, name: &str) -> Result<Option<u64>, Failure> {
        let number = self.number(name)?;
        if number.is_some_and(|number| number.fract() != 0.0) {
            return Err(wrong(name, "a whole number", self.get(name).unwrap_or(&Value::Null)));
        }
        // Exact up to 2^53, which is more than a log can hold.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be 0 or more"
        )]
        Ok(number.map(|number| number as u64))
    }

    /// A TCP port.
    pub(crate) fn port(&self, name: &str) -> Result<Option<u16>, Failure> {
        let Some(port) = self.count(name)? else { return Ok(None) };
        u16::try_from(port).map(Some).map_err(|_| {
            let why = format!("{name} must be a port from 1 to 65535, or 0 for any, not {port}");
            Failure::usage(why).hint(format!("call again with another {name}"))
        })
    }

    /// A list of texts, or a single one.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, Failure> {
        match self.get(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(values)) => values
                .iter()
                .map(|value| match value {
                    Value::String(text) => Ok(text.clone()),
                    Value::Number(number) => Ok(number.to_string()),
                    other => Err(wrong(name, "a list of texts", other)),
                })
                .collect(),
            Some(Value::String(text)) if text.starts_with('[') => serde_json::from_str::<Vec<Value>>(text)
                .map(|values| values.iter().map(plain).collect())
                .or_else(|_| Ok(vec![text.clone()])),
            Some(Value::String(text)) if text.is_empty() => Ok(Vec::new()),
            Some(other @ (Value::String(_) | Value::Number(_))) => Ok(vec![plain(other)]),
            Some(other) => Err(wrong(name, "a list of texts", other)),
        }
    }

    /// One of a few words.
    pub(crate) fn choice<T: Copy>(&self, name: &str, of: &[(&str, T)]) -> Result<Option<T>, Failure> {
        let Some(word) = self.filled(name)? else { return Ok(None) };
        let words = || of.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
        let found = of.iter().find(|(known, _)| *known == word).map(|(_, value)| *value);
        found.map(Some).ok_or_else(|| wrong(name, &format!("one of {}", words()), &Value::String(word)))
    }

    /// Names with values.
    pub(crate) fn pairs(&self, name: &str) -> Result<BTreeMap<String, String>, Failure> {
        match self.get(name) {
            None => Ok(BTreeMap::new()),
            Some(Value::Object(pairs)) => {
                Ok(pairs.iter().map(|(key, value)| (key.clone(), plain(value))).collect())
            }
            Some(other) => Err(wrong(name, "an object of names and values", other)),
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub(crate) fn missing(name: &str, example: &str) -> Failure {
    Failure::usage(format!("{name} is missing")).hint(format!("call again with it, for example {example}"))
}

fn wrong(name: &str, expected: &str, got: &Value) -> Failure {
    let mut got = got.to_string();
    got.truncate(got.floor_char_boundary(60));
    Failure::usage(format!("{name} must be {expected}, not {got}"))
        .hint(format!("call again with another {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn arguments(value: Value) -> Arguments {
        Arguments::new(value.as_object().cloned())
    }

    #[test]
    fn numbers_may_come_as_text_and_null_is_not_given() {
        let given = arguments(json!({"a": "2.5", "b": 3, "c": null, "handle": 7}));
        assert_eq!(given.seconds("a").unwrap(), Some(Duration::from_millis(2500)));
        assert_eq!(given.count("b").unwrap(), Some(3));
        assert_eq!(given.count("c").unwrap(), None);
        assert!(given.count("a").unwrap_err().message.contains("a whole number"));
        assert_eq!(given.text("handle").unwrap().as_deref(), Some("7"));
    }

    #[test]
    fn lists_may_come_as_one_text() {
        let given = arguments(json!({"a": "Enter", "b": ["Up", "Enter"], "c": "[1, 2]", "d": [3]}));
        assert_eq!(given.texts("a").unwrap(), ["Enter"]);
        assert_eq!(given.texts("b").unwrap(), ["Up", "Enter"]);
        assert_eq!(given.texts("c").unwrap(), ["1", "2"]);
        assert_eq!(given.texts("d").unwrap(), ["3"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let given = arguments(json!({"ai_callback_delay": "soon", "pty": 3}));
        let failure = given.seconds("ai_callback_delay").unwrap_err();
        assert!(
            failure.message.contains("ai_callback_delay") && failure.message.contains("soon"),
            "{failure}"
        );
        assert!(given.flag("pty").is_err());
    }
}
