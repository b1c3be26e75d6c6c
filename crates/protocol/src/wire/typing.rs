//! What is typed into a job, and what became of it.

use serde::{Deserialize, Serialize};

use super::base64;

/// Something to type.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Send {
    /// Text, typed as it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Bytes in base64, for what is not text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub bytes: String,
    /// Press Enter after the text.
    pub newline: bool,
    /// Then press these keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Then end the input.
    pub eof: bool,
    /// Only if exactly this was typed before: see [`Typed::count`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// Text of several lines as one paste, or line by line; unless told, as suits the program that reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paste: Option<bool>,
    /// The keeper may type the first line only: the client sends the rest when the program asks again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_steps: bool,
    /// The session that types.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The name under which a person has taken the job over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
}

/// What became of something typed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// The end of the log before it was typed: what comes after is the answer.
    pub offset: u64,
    /// How many bytes the keeper took.
    pub taken: u64,
    /// How many bytes the program has not read yet.
    pub queued: u64,
    /// How many bytes at the end of the text were not typed, with what comes after the text: see
    /// [`Send::in_steps`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<u64>,
    /// The text went as one marked paste.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pasted: bool,
    /// How often something was typed until now: see [`Typed::count`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// What was typed into a job last, by whomever: a line that is half typed belongs to what comes next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Typed {
    /// The bytes since the last Ctrl-C, in base64; only the last of them, if they are many.
    pub recent: String,
    /// How often something was typed: says whether somebody typed since.
    pub count: u64,
}

impl Typed {
    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        base64::decode(&self.recent).unwrap_or_default()
    }
}
