//! What the messages say: the JSON in the [frames](crate::frame). Unknown fields are ignored, and all but a few may be left out, so
//! that old and new sides understand each other.

use outlast_protocol::request::{Answer, JobRequest, Request, Subscription};
use outlast_protocol::wire::WireFailure;
use outlast_protocol::{Failure, Kind};
use serde::{Deserialize, Serialize};

/// The version of the frames that this program speaks.
pub const FRAMES: u32 = 1;
/// The oldest version that it understands.
pub const OLDEST_FRAMES: u32 = 1;

/// The first message of each side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The newest version of the frames that this side speaks.
    pub frames: u32,
    /// The oldest one.
    #[serde(default = "first")]
    pub oldest: u32,
    /// The program and its version, for people.
    #[serde(default)]
    pub program: String,
    /// Client: how many bytes the relay may send on a stream before it is given credit; none for as many as there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Client: a frame comes at least this often, in milliseconds. After three times as long without one, the client is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ping_ms: Option<u64>,
    /// Client: who it is, for the host's records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Caller>,
    /// Relay: what this machine calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Relay: changes when the machine is started anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// Relay: what it can do besides what every relay can: `hosts`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
}

fn first() -> u32 {
    1
}

impl Hello {
    /// A greeting of this program.
    #[must_use]
    pub fn new() -> Self {
        Self {
            frames: FRAMES,
            oldest: OLDEST_FRAMES,
            program: concat!("outlast ", env!("CARGO_PKG_VERSION")).into(),
            window: None,
            ping_ms: None,
            caller: None,
            machine: None,
            boot: None,
            features: Vec::new(),
        }
    }

    /// The version that both sides speak.
    ///
    /// # Errors
    /// There is none.
    pub fn common(&self, other: &Self) -> Result<u32, Failure> {
        let common = self.frames.min(other.frames);
        if common >= self.oldest && common >= other.oldest {
            return Ok(common);
        }
        let (older, newer) = if self.frames < other.frames { (self, other) } else { (other, self) };
        let said = format!(
            "{} speaks frames {}, and {} needs {} at least",
            older.program, older.frames, newer.program, newer.oldest
        );
        Err(Failure::new(Kind::UnknownFormat, said).hint(format!("bring {} up to date", older.program)))
    }
}

impl Default for Hello {
    fn default() -> Self {
        Self::new()
    }
}

/// Who asks, for the host's records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Caller {
    /// The user's name there.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// The name of the machine.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// An agent asks, not a person.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub agent: bool,
}

impl Caller {
    /// This process.
    #[must_use]
    pub fn here() -> Self {
        let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_default();
        Self { user, machine: machine_name(), agent: false }
    }

    /// `user@machine`, as far as that is known.
    #[must_use]
    pub fn shown(&self) -> String {
        match (self.user.as_str(), self.machine.as_str()) {
            ("", "") => "somebody".into(),
            ("", machine) => machine.into(),
            (user, "") => user.into(),
            (user, machine) => format!("{user}@{machine}"),
        }
    }
}

/// What this machine calls itself.
#[must_use]
pub fn machine_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map(|name| name.trim().to_owned())
        .unwrap_or_default()
}

/// Opens a stream with a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ask {
    /// The request.
    pub ask: Request,
    /// An agent asks: secrets are hidden in the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
    /// Names this order, for one that must not be carried out twice: asked again under the same name, it is answered again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// The host to ask, for a relay that reaches others; none for its own machine, or that of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// What the client will ask next about the same job, and nothing that must not be done twice: answered with [`Also`] on
    /// the way, by a relay that knows this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<JobRequest>,
}

/// Opens a stream with a subscription.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Subscribe {
    /// What to be told of.
    pub to: Subscription,
    /// An agent asks: secrets are hidden.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
    /// As [`Ask::host`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// As [`Ask::also`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<JobRequest>,
}

/// The answers to what will be asked next, in its order.
#[derive(Debug, Serialize, Deserialize)]
pub struct Also {
    /// One for each, as far as the relay went.
    pub answers: Vec<AlsoAnswer>,
}

/// One of them.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlsoAnswer {
    /// As for a request of its own.
    Answer(Box<Answer>),
    /// The same.
    Failure(WireFailure),
}

impl From<Result<Answer, Failure>> for AlsoAnswer {
    fn from(answer: Result<Answer, Failure>) -> Self {
        match answer {
            Ok(answer) => Self::Answer(Box::new(answer)),
            Err(failure) => Self::Failure(failure.into()),
        }
    }
}

impl From<AlsoAnswer> for Result<Answer, Failure> {
    fn from(answer: AlsoAnswer) -> Self {
        match answer {
            AlsoAnswer::Answer(answer) => Ok(*answer),
            AlsoAnswer::Failure(failure) => Err(failure.into()),
        }
    }
}

/// Where each job of a wait began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Began {
    /// The offsets in their logs.
    pub from: Vec<u64>,
}

/// Room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credit {
    /// How many bytes.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_new_sides_agree_on_the_newest_version_that_both_speak() {
        let speaks = |oldest, frames| Hello { frames, oldest, ..Hello::new() };
        assert_eq!(speaks(1, 1).common(&speaks(1, 4)).unwrap(), 1);
        assert_eq!(speaks(1, 4).common(&speaks(2, 3)).unwrap(), 3);
        let refused = speaks(1, 1).common(&speaks(2, 3)).unwrap_err();
        assert_eq!(refused.kind, Kind::UnknownFormat);
        let newer = r#"{"frames":7,"oldest":1,"program":"outlast 9","invented":{"a":1}}"#;
        let newer: Hello = serde_json::from_str(newer).unwrap();
        assert_eq!(Hello::new().common(&newer).unwrap(), FRAMES);
    }
}
