//! Version 1 of the protocol, which 0.1 speaks: its shapes of a wait and of a watch, and its words for events.
//!
//! What is read may be in either shape, no matter who wrote it: a client, a keeper or an older file. What is written has both
//! where version 1 can say it, so that a wait needs no greeting first. Only the words of events depend on who listens.

use serde::{Deserialize, Serialize};

use crate::condition::{Condition, Stable};
use crate::event::EventKind;
use crate::reason::Reason;
use crate::wire;

/// How version 1 watches lines: a finished line with something in it.
const LINE: &str = r".+\n";

/// A wait of version 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wait {
    /// Until the job has ended.
    pub exit: bool,
    /// Until one of these is found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    /// Until nothing was printed for this long, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_ms: Option<u64>,
    /// Until anything was printed.
    pub output: bool,
    /// Until the foreground program waits for input.
    pub awaiting_input: bool,
    /// Until the screen has not changed for a while.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable: Option<Stable>,
    /// Until it listens on this TCP port; 0 for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Until none of these is on the screen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
    /// Where the wait begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// At most this long, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// Patterns see no secrets.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
}

/// A watch of version 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Watch {
    /// What it is called.
    pub id: String,
    /// The conditions.
    pub on: Wait,
    /// Every time, instead of once.
    pub each: bool,
}

/// Version 1 has no word for this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a keeper of version 1 does not know the condition {0}")]
pub struct NoWord(pub String);

impl Wait {
    fn conditions(&self) -> Vec<Condition> {
        let mut until = Vec::new();
        until.extend(self.exit.then_some(Condition::Exit));
        until.extend(self.patterns.iter().cloned().map(Condition::Pattern));
        until.extend(self.quiet_ms.map(|ms| Condition::Quiet { ms }));
        until.extend(self.output.then_some(Condition::Output));
        until.extend(self.awaiting_input.then_some(Condition::AwaitingInput));
        until.extend(self.stable.clone().map(Condition::Stable));
        until.extend(self.port.map(|port| Condition::Port((port != 0).then_some(port))));
        until.extend(none_of(&self.gone).map(Condition::Gone));
        until
    }

    /// Adds a condition, if there is a field for it that is not taken.
    fn add(&mut self, condition: &Condition) -> Result<(), NoWord> {
        let free = match condition {
            Condition::Exit => !std::mem::replace(&mut self.exit, true),
            Condition::Output => !std::mem::replace(&mut self.output, true),
            // Version 1 knows no levels.
            Condition::AwaitingInput | Condition::AwaitingAtLeast(_) => {
                !std::mem::replace(&mut self.awaiting_input, true)
            }
            Condition::Quiet { ms } => self.quiet_ms.replace(*ms).is_none(),
            Condition::Stable(stable) => self.stable.replace(stable.clone()).is_none(),
            Condition::Port(port) => self.port.replace(port.unwrap_or(0)).is_none(),
            Condition::Gone(pattern) => {
                self.gone.push(pattern.clone());
                self.gone.len() == 1
            }
            Condition::Pattern(pattern) => {
                self.patterns.push(pattern.clone());
                true
            }
            // Version 1 stays what it is: it has no word for what came later.
            Condition::Http(_) | Condition::Lines => false,
        };
        if free { Ok(()) } else { Err(NoWord(condition.to_string())) }
    }
}

/// One regular expression that matches where any of these does.
fn none_of(patterns: &[String]) -> Option<String> {
    match patterns {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(several.iter().map(|one| format!("(?:{one})")).collect::<Vec<_>>().join("|")),
    }
}

impl From<Wait> for wire::Wait {
    fn from(old: Wait) -> Self {
        Self {
            until: old.conditions(),
            from: old.from,
            deadline_ms: old.deadline_ms,
            masked: old.masked,
            step: None,
        }
    }
}

impl TryFrom<&wire::Wait> for Wait {
    type Error = NoWord;

    fn try_from(wait: &wire::Wait) -> Result<Self, NoWord> {
        let (from, deadline_ms, masked) = (wait.from, wait.deadline_ms, wait.masked);
        let mut old = Self { from, deadline_ms, masked, ..Self::default() };
        wait.until.iter().try_for_each(|condition| old.add(condition))?;
        Ok(old)
    }
}

impl From<Watch> for wire::watch::Watch {
    fn from(Watch { id, on, each }: Watch) -> Self {
        let lines = each && on.patterns == [LINE];
        let until = if lines { vec![Condition::Lines] } else { on.conditions() };
        Self { id, until, from: on.from, each }
    }
}

impl TryFrom<&wire::watch::Watch> for Watch {
    type Error = NoWord;

    fn try_from(watch: &wire::watch::Watch) -> Result<Self, NoWord> {
        let mut on = Wait { from: watch.from, ..Wait::default() };
        for condition in &watch.until {
            if watch.each && *condition == Condition::Lines {
                on.add(&Condition::Pattern(LINE.into()))?;
            } else {
                on.add(condition)?;
            }
        }
        // A keeper of version 1 takes these from a watch, and never tells them.
        match on.output || !on.gone.is_empty() {
            true => Err(NoWord(watch.until.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))),
            false => Ok(Self { id: watch.id.clone(), on, each: watch.each }),
        }
    }
}

/// A wait in the shape of version 2, of version 1, or in both at once.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct EitherWait {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    until: Vec<Condition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<u64>,
    #[serde(flatten)]
    old: Wait,
}

impl From<EitherWait> for wire::Wait {
    fn from(EitherWait { until, step, old }: EitherWait) -> Self {
        let wait = Self { step, ..old.into() };
        if until.is_empty() { wait } else { Self { until, ..wait } }
    }
}

impl From<wire::Wait> for EitherWait {
    fn from(wait: wire::Wait) -> Self {
        let (from, deadline_ms, masked) = (wait.from, wait.deadline_ms, wait.masked);
        let old = Wait::try_from(&wait).unwrap_or(Wait { from, deadline_ms, masked, ..Wait::default() });
        Self { until: wait.until, step: wait.step, old }
    }
}

/// A watch in the shape of version 2, of version 1, or in both at once.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct EitherWatch {
    id: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    until: Vec<Condition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<u64>,
    each: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    on: Option<Wait>,
}

impl From<EitherWatch> for wire::watch::Watch {
    fn from(EitherWatch { id, until, from, each, on }: EitherWatch) -> Self {
        match on {
            Some(on) if until.is_empty() => Watch { id, on, each }.into(),
            Some(_) | None => Self { id, until, from, each },
        }
    }
}

impl From<wire::watch::Watch> for EitherWatch {
    fn from(watch: wire::watch::Watch) -> Self {
        let on = Watch::try_from(&watch).ok().map(|old| old.on);
        let wire::watch::Watch { id, until, from, each } = watch;
        Self { id, until, from, each, on }
    }
}

/// A line of a keeper in the words of version 1.
///
/// # Errors
/// It cannot be written as JSON.
pub fn line(line: &wire::Line) -> Result<Vec<u8>, serde_json::Error> {
    let mut value = serde_json::to_value(line)?;
    // A job that asks waits for somebody, as far as version 1 knows.
    for status in ["status", "glance"] {
        let said = value.pointer_mut(&format!("/reply/{status}/activity/activity"));
        match said {
            Some(activity) if *activity == "asking" => *activity = "awaiting_input".into(),
            Some(activity) if *activity == "queued" => *activity = "working".into(),
            // It has the same field as a job that is quiet.
            Some(activity) if *activity == "listening" => *activity = "quiet".into(),
            _ => {}
        }
    }
    if let wire::Line::Event(event) = line {
        let said = &mut value["event"];
        if let Some(word) = word_for(&event.what) {
            said["event"] = word.into();
        }
        // Lines were a pattern.
        if let EventKind::Watch { fired } = &event.what
            && fired.reason == Reason::Lines
        {
            said["reason"] = Reason::Pattern.name().into();
        }
    }
    let mut bytes = serde_json::to_vec(&value)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The word of version 1 for an event, where it is another.
fn word_for(kind: &EventKind) -> Option<&'static str> {
    match kind {
        EventKind::Exit { .. } => Some("ended"),
        EventKind::Port { .. } => Some("port_open"),
        EventKind::Queued { .. }
        | EventKind::Started { .. }
        | EventKind::AllGone
        | EventKind::AwaitingInput { .. }
        | EventKind::WentOn
        | EventKind::Listening { .. }
        | EventKind::Stopped
        | EventKind::Continued
        | EventKind::Watch { .. }
        | EventKind::LogFailing { .. }
        | EventKind::LogResumed { .. }
        | EventKind::LogCapped { .. }
        | EventKind::TookOver { .. }
        | EventKind::HeirGone
        | EventKind::Agent { .. }
        | EventKind::ExecRefused { .. }
        | EventKind::HostRefused { .. }
        | EventKind::Asking { .. }
        | EventKind::Answered { .. }
        | EventKind::StepStarted { .. }
        | EventKind::Step { .. }
        | EventKind::StepChanged { .. }
        | EventKind::StepForged { .. }
        | EventKind::Taken { .. }
        | EventKind::GivenBack { .. }
        | EventKind::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::watch;

    fn read_wait(json: &str) -> wire::Wait {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_wait_of_version_1_is_read() {
        let old = r#"{"exit":true,"patterns":["a","b"],"quiet_ms":5,"output":false,"awaiting_input":true,
            "stable":{"checks":2},"port":0,"gone":["x","y"],"from":7,"token":"t","deadline_ms":9,"masked":true}"#;
        let stable = Stable { checks: 2, ..Stable::default() };
        let wanted = wire::Wait {
            until: vec![
                Condition::Exit,
                Condition::Pattern("a".into()),
                Condition::Pattern("b".into()),
                Condition::Quiet { ms: 5 },
                Condition::AwaitingInput,
                Condition::Stable(stable),
                Condition::Port(None),
                Condition::Gone("(?:x)|(?:y)".into()),
            ],
            from: Some(7),
            deadline_ms: Some(9),
            masked: true,
            step: None,
        };
        assert_eq!(read_wait(old), wanted);
    }

    #[test]
    fn a_wait_is_written_so_that_both_versions_read_it() {
        let wait = wire::Wait::of([Condition::Exit, Condition::Port(Some(80))]).from(3);
        let json = serde_json::to_string(&wait).unwrap();
        let both = r#"{"until":["exit",{"port":80}],"exit":true,"output":false,"awaiting_input":false,"port":80,"from":3}"#;
        assert_eq!(json, both);
        assert_eq!(read_wait(&json), wait);
        let old: Wait = serde_json::from_str(&json).unwrap();
        assert_eq!(<wire::Wait as From<Wait>>::from(old), wait);
    }

    #[test]
    fn what_version_1_has_no_word_for_needs_version_2() {
        let two_ports = wire::Wait::of([Condition::Port(Some(1)), Condition::Port(Some(2))]);
        for wait in [two_ports, wire::Wait::of([Condition::Lines])] {
            assert_eq!(wire::Verb::Wait(wait.clone()).needs_version(), 2);
            let json = serde_json::to_string(&wait).unwrap();
            assert_eq!(read_wait(&json), wait, "{json}");
        }
        // A keeper of version 1 would take these and stay silent forever.
        for condition in [Condition::Output, Condition::Gone("x".into())] {
            let watch = watch::Watch { until: vec![condition], ..watch::Watch::default() };
            assert_eq!(wire::Verb::Watch { watch }.needs_version(), 2);
        }
        assert_eq!(wire::Verb::Wait(wire::Wait::for_exit()).needs_version(), 1);
    }

    #[test]
    fn events_have_their_old_words() {
        let event = crate::Event { seq: 1, at: 2, offset: 3, what: EventKind::Port { port: 80 } };
        let said = line(&wire::Line::Event(event)).unwrap();
        let said: serde_json::Value = serde_json::from_slice(&said).unwrap();
        assert_eq!(said["event"]["event"], "port_open");
    }

    #[test]
    fn a_watch_is_read_and_written_in_both_shapes() {
        let old = r#"{"id":"lines-1","on":{"exit":false,"patterns":[".+\\n"],"output":false,"from":0},"each":true}"#;
        let watch: watch::Watch = serde_json::from_str(old).unwrap();
        let until = vec![Condition::Lines];
        assert_eq!(watch, watch::Watch { id: "lines-1".into(), until, from: Some(0), each: true });
        let json = serde_json::to_string(&watch).unwrap();
        assert_eq!(serde_json::from_str::<watch::Watch>(&json).unwrap(), watch);
        let again: Watch = serde_json::from_str(&json).unwrap();
        assert_eq!(again.on.patterns, [LINE]);
    }
}
