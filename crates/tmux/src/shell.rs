//! Shells that a person lets notices be typed into. A shell runs what is typed, so each gets a notice in a form that it
//! ignores, at an empty prompt of its own, and only the shell that was named.

use outlast_protocol::failure::Failure;
use serde::{Deserialize, Serialize};

use super::pane::{Held, Look, Pane};
use super::prompt::{before_cursor, prompt_of};
use super::screen::Row;

/// What ends a prompt, unless the person has described theirs. Not `>`: it also stands before the rest of a command
/// that is not whole yet, where a notice would become part of it.
const USUAL_PROMPT: &str = "^.*?[$%#] ";
/// A notice takes no more rows of a narrow pane.
const MOST_ROWS: usize = 8;

/// A shell whose way to ignore a line is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeShell {
    /// GNU bash.
    Bash,
    /// The Debian Almquist shell.
    Dash,
    /// The friendly interactive shell.
    Fish,
    /// The Z shell.
    Zsh,
}

impl NoticeShell {
    const ALL: [Self; 4] = [Self::Bash, Self::Dash, Self::Fish, Self::Zsh];

    /// Its name as a program.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Dash => "dash",
            Self::Fish => "fish",
            Self::Zsh => "zsh",
        }
    }

    /// # Errors
    /// A usage failure that names the shells there are.
    pub fn named(name: &str) -> Result<Self, Failure> {
        Self::ALL.into_iter().find(|shell| shell.name() == name).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            Failure::usage(format!("a notice can't be typed into the shell {name:?}"))
                .hint(format!("choose among: {known}"))
        })
    }

    /// A text in the form that this shell ignores. A comment, but for zsh, where people type none.
    #[must_use]
    pub fn ignores(self, text: &str) -> String {
        match self {
            Self::Bash | Self::Dash | Self::Fish => format!("# {text}"),
            Self::Zsh => format!(": '{}'", text.replace('\'', "'\\''")),
        }
    }

    /// Whether it edits its own line: then a terminal that does so belongs to a `read`.
    fn edits_lines(self) -> bool {
        match self {
            Self::Bash | Self::Fish | Self::Zsh => true,
            Self::Dash => false,
        }
    }
}

impl Pane {
    /// Lets notices be typed at the prompt of a shell.
    ///
    /// # Errors
    /// When the usual prompt is no regular expression, which it is.
    pub fn with_shell(mut self, shell: Option<NoticeShell>) -> Result<Self, Failure> {
        self.named_shell = shell;
        if shell.is_some() && self.prompt.is_none() {
            self.prompt = Some(prompt_of(USUAL_PROMPT)?);
        }
        Ok(self)
    }

    /// Whether the shell that was named is in the foreground, and reads a command.
    fn is_shell_named(&self, named: NoticeShell) -> bool {
        self.shell().as_deref() == Some(named.name()) && !(named.edits_lines() && self.reads_lines())
    }

    /// Whether a shell is in the foreground exactly if one was named, and then that one.
    pub(super) fn has_shell_as_meant(&self) -> bool {
        self.named_shell.map_or_else(|| self.shell().is_none(), |named| self.is_shell_named(named))
    }

    /// Why a notice can't be typed into the shell that was named.
    pub(super) fn holds_in_shell(&self, look: &Look, named: NoticeShell) -> Option<Held> {
        if self.hides_lines() {
            return Some(Held::Password);
        }
        match self.shell() {
            Some(shell) if shell != named.name() => return Some(Held::Shell(shell)),
            Some(shell) if !self.is_shell_named(named) => return Some(Held::Works(shell)),
            Some(_) => {}
            None => {
                let front = self.front().map_or_else(|| "another program".to_owned(), |front| front.program);
                return Some(Held::Another(front));
            }
        }
        if let Some(front) = self.front().filter(|front| front.waits == Some(false)) {
            return Some(Held::Works(front.program));
        }
        let line = self.prompt().and_then(|prompt| before_cursor(&look.row(), look.cursor.0, prompt));
        match line {
            None => Some(Held::NoPrompt),
            Some(draft) if !draft.is_empty() => Some(Held::HalfTyped(draft)),
            Some(_) => look.under_cursor().map(Held::HalfTyped),
        }
    }

    /// Whether exactly this text stands between a prompt and the cursor, over several rows if need be.
    pub(super) fn holds_at_prompt(&self, look: &Look, text: &str) -> bool {
        let Some(prompt) = self.prompt() else { return false };
        let plain = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        let (column, last) = look.cursor;
        let before: String = look.row().chars().take(column).collect();
        (last.saturating_sub(MOST_ROWS)..=last).rev().any(|first| {
            let above = look.rows.get(first..last).unwrap_or_default();
            let line: String = above.iter().map(Row::text).chain([before.clone()]).collect();
            let end = line.chars().count().max(if first == last { column } else { 0 });
            let typed = before_cursor(&line, end, prompt);
            look.under_cursor().is_none() && typed.is_some_and(|typed| plain(&typed) == plain(text))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_ignored_by_the_shell_that_is_named() {
        let said = "[outlast: automatic notice] it's $(touch x) `touch x` !! \\";
        for shell in NoticeShell::ALL {
            let Ok(ran) = std::process::Command::new(shell.name())
                .args(["-c", &format!("{}\necho after", shell.ignores(said))])
                .current_dir("/")
                .output()
            else {
                continue;
            };
            assert_eq!(String::from_utf8_lossy(&ran.stdout), "after\n", "{shell:?}: {ran:?}");
            assert!(ran.stderr.is_empty(), "{shell:?}: {ran:?}");
        }
        assert_eq!(NoticeShell::named("fish").unwrap(), NoticeShell::Fish);
        assert!(NoticeShell::named("csh").unwrap_err().to_string().contains("zsh"));
    }

    #[test]
    fn a_prompt_is_none_where_a_command_is_not_whole_yet() {
        let prompt = prompt_of(USUAL_PROMPT).unwrap();
        for (row, draft) in [
            ("$ ", Some("")),
            ("user@host:/x# ", Some("")),
            ("host% ", Some("")),
            ("$ # [outlast: automatic notice]", Some("# [outlast: automatic notice]")),
            ("> ", None),
            ("quote> ", None),
            ("Continue? (y/n) ", None),
            ("#? ", None),
            ("", None),
        ] {
            assert_eq!(before_cursor(row, row.chars().count(), &prompt).as_deref(), draft, "{row:?}");
        }
    }
}
