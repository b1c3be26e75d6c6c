//! A question to a person, and what comes back, whoever carries it: an MCP client's dialogue, an ACP client's
//! permission request, or the terminal.

use outlast_job::wire::base64;
use outlast_job::{Failure, Kind, Send};

use crate::decision::Tool;

/// Through which door somebody comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// `outlast` on the command line: a person, as a rule.
    CommandLine,
    /// An agent over MCP.
    Mcp,
    /// An agent over ACP.
    Acp,
}

impl Door {
    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Door::CommandLine => "cli",
            Door::Mcp => "mcp",
            Door::Acp => "acp",
        }
    }

    /// Whether it is an agent that comes through it.
    #[must_use]
    pub fn is_agents(self) -> bool {
        self != Door::CommandLine
    }
}

/// What makes it a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// A rule of a policy file says so.
    Rule,
    /// The job belongs to another session.
    Others,
    /// An agent's own job: unless the user said otherwise, agents are asked about before they end or type into
    /// anything.
    Own,
}

/// Something that a person must agree to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Through which door it comes.
    pub door: Door,
    /// What makes it a question.
    pub topic: Topic,
    /// Who wants it.
    pub session: String,
    /// What they use.
    pub tool: Tool,
    /// The job that it is about.
    pub job: Option<u64>,
    /// What they want, in one line: this is noted.
    pub what: String,
    /// What is to be typed, for the person alone: it may be a secret.
    pub typed: Option<String>,
    /// Why it is asked.
    pub why: String,
    /// The rule that says so.
    pub rule: Option<String>,
    /// Where that is written.
    pub place: Option<String>,
}

/// What came of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A person agreed.
    Yes,
    /// A person did not.
    No,
    /// Nobody answered in time.
    Late,
    /// There is nobody who could be asked.
    Unable,
    /// The client could ask, but it runs with nobody in front of it.
    Headless,
    /// There is nobody who could be asked, and the call says that the user has agreed: the client's own approval
    /// of the call showed them that.
    Confirmed,
}

impl Answer {
    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Answer::Yes => "yes",
            Answer::No => "no",
            Answer::Late => "late",
            Answer::Unable => "unable",
            Answer::Headless => "headless",
            Answer::Confirmed => "confirmed",
        }
    }
}

impl Question {
    /// The question as a person reads it. What comes from an agent can't draw on their screen.
    #[must_use]
    pub fn text(&self) -> String {
        let what = self.typed.as_ref().unwrap_or(&self.what);
        let mut text = format!("{}\n  {}\n", self.headline(), shown(what));
        text.push_str(&format!("Asked because {}", shown(&self.why)));
        if let Some(place) = &self.place {
            text.push_str(&format!(" ({place})"));
        }
        text
    }

    /// Its first line.
    #[must_use]
    pub fn headline(&self) -> String {
        let job = self.job.map(|job| format!(" job {job}")).unwrap_or_default();
        let who = shown(&self.session);
        match self.tool {
            Tool::Run => format!("May {who} run this?"),
            Tool::Send => format!("May {who} type into{job}?"),
            Tool::Kill => format!("May {who} end{job}?"),
            tool => format!("May {who} use {}?", tool.name()),
        }
    }

    /// Whether an answer lets it happen. That nobody can be asked is a no, except about an agent's own jobs: there
    /// the client's approval of the call is all there is.
    #[must_use]
    pub fn allows(&self, answer: Answer) -> bool {
        match answer {
            Answer::Yes => true,
            Answer::No | Answer::Late => false,
            Answer::Unable | Answer::Headless => self.topic == Topic::Own,
            Answer::Confirmed => self.topic != Topic::Rule,
        }
    }

    /// The refusal after an answer.
    #[must_use]
    pub fn refusal(&self, answer: Answer) -> Failure {
        let job = self.job.map(|job| format!(" job {job}")).unwrap_or_default();
        let verb = match self.tool {
            Tool::Run => "run this".to_owned(),
            Tool::Send => format!("type into{job}"),
            Tool::Kill => format!("end{job}"),
            tool => format!("use {}", tool.name()),
        };
        let why = match &self.place {
            Some(place) => format!("{} ({place})", self.why),
            None => self.why.clone(),
        };
        let (message, hint) = match answer {
            Answer::No => {
                (format!("the user did not agree to {verb}"), "leave it alone, or ask them what to do")
            }
            Answer::Late => {
                (format!("nobody agreed in time to {verb}: {why}"), "ask the user, and try again")
            }
            Answer::Yes | Answer::Unable | Answer::Headless | Answer::Confirmed
                if self.topic == Topic::Rule =>
            {
                (
                    format!("a person must agree to {verb}, and nobody can be asked here: {why}"),
                    "the user can do it themselves, or allow it in policy.toml",
                )
            }
            Answer::Yes | Answer::Unable | Answer::Headless | Answer::Confirmed => (
                format!("{why}, and nobody can be asked here"),
                "ask the user; if they agree, call again with confirmed=true",
            ),
        };
        Failure::new(Kind::Denied, message).hint(hint)
    }
}

/// How many characters of a text are shown at most: so many of its beginning, and so many of its end.
const SHOWN: (usize, usize) = (700, 300);

/// What can be shown, of bearable length: the middle is left out, because the end of a command counts as much
/// as its beginning.
fn shown(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let escaped = |part: &[char]| {
        let mut line = String::new();
        for c in part {
            match c {
                '\n' => line.push_str("\n  "),
                c if c.is_control() || is_invisible(*c) => line.push_str(&c.escape_unicode().to_string()),
                c => line.push(*c),
            }
        }
        line
    };
    let left_out = characters.len().saturating_sub(SHOWN.0 + SHOWN.1);
    if left_out == 0 {
        return escaped(&characters);
    }
    let (start, end) = (&characters[..SHOWN.0], &characters[characters.len() - SHOWN.1..]);
    format!("{}\n  [... {left_out} characters are not shown ...]\n  {}", escaped(start), escaped(end))
}

/// What is to be typed, as a person reads it.
pub(crate) fn typed(send: &Send) -> String {
    let mut said = if send.bytes.is_empty() {
        send.text.clone()
    } else {
        let bytes = base64::decode(&send.bytes).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let mut keys: Vec<&str> = Vec::new();
    if send.newline {
        keys.push("Enter");
    }
    keys.extend(send.keys.iter().map(String::as_str));
    if send.eof {
        keys.push("the end of the input");
    }
    if !keys.is_empty() {
        let before = if said.is_empty() { "" } else { "\nthen " };
        said.push_str(&format!("{before}[{}]", keys.join("] [")));
    }
    said
}

/// Characters that turn the text around, or are not seen.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
