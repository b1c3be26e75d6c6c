//! A question to a person and its answer, whatever carries it: an MCP client's dialogue, an ACP client's
//! permission request, or the terminal.

use outlast_job::{Failure, Handle, Kind};
use outlast_protocol::{Door, Tool};
use outlast_rules::exec::ExecRules;

use crate::decision::Unattended;
use crate::order::TypedInput;

/// Why a question is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// A rule of a policy file says so.
    Rule,
    /// The job belongs to another session.
    Others,
    /// An agent's own job: unless the user said otherwise, a person is asked before an agent ends it or types
    /// into it.
    Own,
    /// A program of a job wants to execute something that a rule asks about.
    Exec,
    /// A host that a job is not connected to.
    Host,
}

impl Topic {
    /// Whether a rule asks: then nothing but a person's yes will do.
    pub(crate) fn is_of_a_rule(self) -> bool {
        match self {
            Self::Rule | Self::Exec | Self::Host => true,
            Self::Others | Self::Own => false,
        }
    }
}

/// Something that needs a person's approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The door it comes through.
    pub door: Door,
    /// Why it is asked.
    pub topic: Topic,
    /// The session that asks.
    pub session: String,
    /// The tool it uses.
    pub tool: Tool,
    /// The job it is about.
    pub job: Option<Handle>,
    /// What it wants to do, in one line. This is recorded.
    pub what: String,
    /// What it wants to type, shown to the person only: it may be a secret.
    pub typed: Option<String>,
    /// The reason, in words.
    pub why: String,
    /// The rule that asks.
    pub rule: Option<String>,
    /// Where that rule is written.
    pub place: Option<String>,
    /// After how much input it was judged.
    pub(crate) typed_after: Option<u64>,
    /// What is done where nobody is in front of the agent.
    pub(crate) unattended: Unattended,
    /// Whether the call's own word that the user agreed counts.
    pub(crate) confirmed: bool,
    /// The parts that it is asked for.
    pub(crate) parts: Vec<String>,
    /// The rules for what the job executes, should a person agree.
    pub(crate) guard: Option<ExecRules>,
}

/// The answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A person agreed to this.
    Yes,
    /// A person agreed to this, and to whatever this session types into this job from now on.
    YesForJob,
    /// A person refused.
    No,
    /// Nobody answered in time.
    Late,
    /// There is no way to ask a person.
    Unable,
    /// The client could ask, but no one is in front of it.
    Headless,
    /// There is no way to ask a person, and the call says that the user has agreed: the client's own approval
    /// of the call showed them that.
    Confirmed,
}

impl Answer {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Answer::Yes => "yes",
            Answer::YesForJob => "yes_for_job",
            Answer::No => "no",
            Answer::Late => "late",
            Answer::Unable => "unable",
            Answer::Headless => "headless",
            Answer::Confirmed => "confirmed",
        }
    }
}

impl Question {
    /// The question as a person reads it. Text from an agent cannot draw on their screen.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{}\n  {}\n", self.headline(), shown_up_to(self.max_whole(), self.wanted()));
        // Of a long text the middle is left out, but never what it is asked for.
        for part in self.unseen_parts() {
            text.push_str(&format!("It is about this part:\n  {}\n", shown(part)));
        }
        text.push_str(&format!("Asked because {}", shown(&self.why)));
        if let Some(place) = &self.place {
            text.push_str(&format!(" ({place})"));
        }
        text
    }

    /// What it is about, as it was given.
    fn wanted(&self) -> &str {
        self.typed.as_ref().unwrap_or(&self.what)
    }

    /// How many characters of it are shown whole.
    fn max_whole(&self) -> usize {
        if self.topic.is_of_a_rule() { MAX_JUDGED_CHARS } else { MAX_WHOLE_CHARS }
    }

    /// The parts that it is asked for and that its text does not show.
    fn unseen_parts(&self) -> Vec<&String> {
        let (text, mut unseen) = (shown_up_to(self.max_whole(), self.wanted()), Vec::new());
        if self.wanted().chars().count() <= self.max_whole() {
            return unseen;
        }
        for part in &self.parts {
            if !text.contains(shown(part).as_str()) && !unseen.contains(&part) {
                unseen.push(part);
            }
        }
        unseen
    }

    /// Whether a person can see all that a rule asks for. Nobody can agree to what is left out.
    pub(crate) fn can_be_shown(&self) -> bool {
        let unseen = self.unseen_parts();
        !self.topic.is_of_a_rule()
            || unseen.len() <= MAX_PARTS && !unseen.iter().any(|part| crate::reading::is_cut(part))
    }

    /// The failure where it can't be shown.
    pub(crate) fn too_long(&self) -> Failure {
        let length = self.wanted().chars().count();
        let message = format!(
            "a person must agree to this, and its {length} characters can't be shown to them: {}",
            self.why
        );
        Failure::new(Kind::Denied, message).hint(
            "split it up, or write it into a file and run that, so that the user can see what they agree to",
        )
    }

    /// The session that wants it.
    #[must_use]
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Whether a person can agree once for all that is typed into this job. What a rule asks about is always asked.
    #[must_use]
    pub fn can_be_for_job(&self) -> bool {
        self.tool == Tool::Send && self.job.is_some() && !self.topic.is_of_a_rule()
    }

    /// Its first line.
    #[must_use]
    pub fn headline(&self) -> String {
        let job = self.job.map(|job| format!(" job {job}")).unwrap_or_default();
        let who = shown(&self.session);
        match self.tool {
            Tool::Run if self.topic == Topic::Exec => format!("May{job} of {who} execute this?"),
            Tool::Run if self.topic == Topic::Host => format!("May{job} of {who} connect to this host?"),
            Tool::Run => format!("May {who} run this?"),
            Tool::Send => format!("May {who} type into{job}?"),
            Tool::Kill => format!("May {who} end{job}?"),
            tool @ (Tool::Screen
            | Tool::Read
            | Tool::Wait
            | Tool::Jobs
            | Tool::Events
            | Tool::Watch
            | Tool::Resize
            | Tool::Prune) => format!("May {who} use {}?", tool.name()),
        }
    }

    /// Whether an answer permits it. If no one can be asked, it is refused, except for an agent's own jobs:
    /// there the client's approval of the call is all there is.
    #[must_use]
    pub fn allows(&self, answer: Answer) -> bool {
        match answer {
            Answer::Yes | Answer::YesForJob => true,
            Answer::No | Answer::Late => false,
            Answer::Unable => self.topic == Topic::Own,
            Answer::Headless => match self.unattended {
                Unattended::All => !self.topic.is_of_a_rule(),
                Unattended::Own => self.topic == Topic::Own,
                Unattended::None => false,
            },
            Answer::Confirmed => self.confirmed && !self.topic.is_of_a_rule(),
        }
    }

    /// The failure that an agent gets for an answer.
    #[must_use]
    pub fn refusal(&self, answer: Answer) -> Failure {
        let job = self.job.map(|job| format!(" job {job}")).unwrap_or_default();
        let verb = match self.tool {
            Tool::Run => "run this".to_owned(),
            Tool::Send => format!("type into{job}"),
            Tool::Kill => format!("end{job}"),
            tool @ (Tool::Screen
            | Tool::Read
            | Tool::Wait
            | Tool::Jobs
            | Tool::Events
            | Tool::Watch
            | Tool::Resize
            | Tool::Prune) => format!("use {}", tool.name()),
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
            Answer::Yes | Answer::YesForJob | Answer::Unable | Answer::Headless | Answer::Confirmed
                if self.topic.is_of_a_rule() =>
            {
                (
                    format!("a person must agree to {verb}, and nobody can be asked here: {why}"),
                    "the user can do it themselves, or allow it in policy.toml",
                )
            }
            Answer::Headless => (
                format!("{why}, and nobody is in front of this agent"),
                "leave it alone; what may be done then is [agents] unattended in the user's policy.toml",
            ),
            Answer::Yes | Answer::YesForJob | Answer::Unable | Answer::Confirmed if self.confirmed => (
                format!("{why}, and nobody can be asked here"),
                "ask the user; if they agree, call again with confirmed=true",
            ),
            Answer::Yes | Answer::YesForJob | Answer::Unable | Answer::Confirmed => (
                format!("{why}, and nobody can be asked here"),
                "the user can do it themselves; [agents] confirmed = true in their policy.toml lets a call say that they agreed",
            ),
        };
        Failure::new(Kind::Denied, message).hint(hint)
    }
}

/// A text of so many characters is shown whole; a longer one where a person judges by it.
const MAX_WHOLE_CHARS: usize = 2000;
const MAX_JUDGED_CHARS: usize = 8000;
/// Of a longer one, so many of its start and of its end.
const MAX_SHOWN_CHARS: (usize, usize) = (700, 300);
/// More parts than these are not shown one by one.
const MAX_PARTS: usize = 8;
/// So many blanks, or empty lines, in a row push nothing out of sight; more are counted instead.
const MAX_BLANKS: usize = 24;
const MAX_LINE_ENDS: usize = 3;

/// The text with control characters escaped, and cut to a readable length. The middle is left out: the end of
/// a command matters as much as its start.
fn shown(text: &str) -> String {
    shown_up_to(MAX_WHOLE_CHARS, text)
}

fn shown_up_to(most: usize, text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    if characters.len() <= most {
        return escaped(&characters);
    }
    let left_out = characters.len() - MAX_SHOWN_CHARS.0 - MAX_SHOWN_CHARS.1;
    let (start, end) =
        (&characters[..MAX_SHOWN_CHARS.0], &characters[characters.len() - MAX_SHOWN_CHARS.1..]);
    format!("{}\n  [... {left_out} characters are not shown ...]\n  {}", escaped(start), escaped(end))
}

/// A text with everything in it that a terminal would not show as it is: what is invisible, changes the direction or moves the
/// cursor is written out.
#[must_use]
pub fn visible(text: &str) -> String {
    escaped(&text.chars().collect::<Vec<_>>())
}

fn escaped(text: &[char]) -> String {
    let mut line = String::new();
    let mut at = 0;
    while let Some(c) = text.get(at) {
        let alike = text[at..].iter().take_while(|other| is_same_blank(*c, **other)).count();
        at += alike.max(1);
        match c {
            '\n' if alike > MAX_LINE_ENDS => line.push_str(&format!("\n  [{alike} line ends]\n  ")),
            '\n' => line.push_str(&"\n  ".repeat(alike)),
            ' ' | '\t' if alike > MAX_BLANKS => line.push_str(&format!(" [{alike} blanks] ")),
            ' ' | '\t' => line.push_str(&" ".repeat(alike)),
            c if c.is_control() || is_invisible(*c) => line.push_str(&c.escape_unicode().to_string()),
            c => line.push(*c),
        }
    }
    line
}

/// Whether two characters in a row only move what comes behind them.
fn is_same_blank(one: char, other: char) -> bool {
    match one {
        ' ' | '\t' => other == ' ' || other == '\t',
        '\n' => other == '\n',
        _ => false,
    }
}

/// What is to be typed, as a person reads it.
pub(crate) fn typed(input: &TypedInput) -> String {
    let (mut said, send) = (input.text().to_owned(), input.as_given());
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

/// Characters that reorder text, are invisible, or look like a blank and are none to a shell: those of Unicode's classes
/// Cf, Zl, Zp and Zs, what it calls default ignorable, and private ones, which look like anything.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}'
        | '\u{8e2}' | '\u{115f}'..='\u{1160}' | '\u{1680}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}' | '\u{2800}' | '\u{3000}' | '\u{3164}'
        | '\u{e000}'..='\u{f8ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1345f}' | '\u{16fe4}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{10ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_in_question_is_shown_wherever_it_stands() {
        let what = format!("ls # {}; rm -rf y; {}", "x".repeat(8000), "z".repeat(900));
        let question = Question {
            door: Door::Mcp,
            topic: Topic::Rule,
            session: "me".into(),
            tool: Tool::Run,
            job: None,
            what,
            typed: None,
            why: "because".into(),
            rule: None,
            place: None,
            typed_after: None,
            unattended: Unattended::Own,
            confirmed: false,
            parts: vec!["ls".into(), "rm -rf y".into()],
            guard: None,
        };
        assert!(question.text().contains("rm -rf y") && question.text().contains("are not shown"));
        assert!(question.can_be_shown());
        let short = Question { what: "rm -rf y".into(), ..question.clone() };
        assert!(!short.text().contains("about this part"), "{}", short.text());
        // Nobody agrees to what they can't see.
        let cut = format!("{}...", "x".repeat(200));
        let many = (0..20).map(|i| format!("touch {i}")).collect();
        for parts in [vec![cut], many] {
            let hidden = Question { parts, ..question.clone() };
            assert!(!hidden.can_be_shown());
            assert!(Question { topic: Topic::Own, ..hidden }.can_be_shown());
        }
    }

    #[test]
    fn blanks_push_nothing_out_of_sight() {
        let text = shown(&format!("ls{}; rm x{}; rm y", " ".repeat(900), "\n".repeat(500)));
        assert_eq!(text, "ls [900 blanks] ; rm x\n  [500 line ends]\n  ; rm y");
    }

    #[test]
    fn signs_that_nobody_sees_are_written_out() {
        for sign in [
            '\u{2028}',
            '\u{2029}',
            '\u{ad}',
            '\u{3164}',
            '\u{115f}',
            '\u{34f}',
            '\u{202e}',
            '\u{2800}',
            '\u{ffa0}',
            '\r',
            '\u{1b}',
            '\u{a0}',
            '\u{3000}',
            '\u{206f}',
            '\u{e0100}',
            '\u{1d173}',
            '\u{e000}',
        ] {
            assert!(!shown(&format!("a{sign}b")).contains(sign), "{sign:?}");
        }
    }
}
