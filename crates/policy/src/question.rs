//! A question to a person, and what comes back, whoever carries it: an MCP client's dialogue, an ACP client's
//! permission request, or the terminal.

use outlast_job::{Failure, Kind};

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
    /// An agent's own job: agents are asked about before they end or type into anything.
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
    /// What they want, in one line.
    pub what: String,
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
            Answer::Confirmed => "confirmed",
        }
    }
}

impl Question {
    /// The question as a person reads it. What comes from an agent can't draw on their screen.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{}\n  {}\n", self.headline(), shown(&self.what));
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
            Answer::Unable => self.topic == Topic::Own,
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
            _ if self.topic == Topic::Rule => (
                format!("a person must agree to {verb}, and nobody can be asked here: {why}"),
                "the user can do it themselves, or allow it in policy.toml",
            ),
            _ => (
                format!("{why}, and nobody can be asked here"),
                "ask the user; if they agree, call again with confirmed=true",
            ),
        };
        Failure::new(Kind::Denied, message).hint(hint)
    }
}

/// One line of what can be shown, of bearable length.
fn shown(text: &str) -> String {
    let mut line = String::new();
    for c in text.chars().take(1000) {
        match c {
            '\n' => line.push_str("\n  "),
            c if c.is_control() || is_invisible(c) => line.push_str(&c.escape_unicode().to_string()),
            c => line.push(c),
        }
    }
    if text.chars().count() > 1000 {
        line.push_str("...");
    }
    line
}

/// Characters that turn the text around, or are not seen.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}
