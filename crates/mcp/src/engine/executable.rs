//! Whether a command line that goes to the background begins with something that can be executed.
//!
//! The keeper knows from the exec itself that the shell runs. What the shell is to run is known by looking where the shell
//! will look. Only a line that will fail there is waited for, so that its failure is said in the same answer. What can't be
//! told from the text counts as executable: a wrong guess costs a moment, and never says anything wrong.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// Builtins that do something and leave the rest of the line to be looked at.
const BUILTINS: &[&str] = &[
    ":", "cd", "declare", "echo", "export", "false", "hash", "printf", "pushd", "pwd", "readonly", "set",
    "shopt", "test", "true", "type", "typeset", "ulimit", "umask", "unset",
];
/// What runs the command behind it.
const PREFIXES: &[&str] = &["command", "env", "exec", "nohup", "setsid", "time"];
/// Keywords and builtins after which the text alone does not tell what is executed.
const UNTOLD: &[&str] = &[
    "!",
    ".",
    "[",
    "[[",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "case",
    "compgen",
    "complete",
    "continue",
    "coproc",
    "dirs",
    "disown",
    "enable",
    "eval",
    "exit",
    "fc",
    "fg",
    "for",
    "function",
    "getopts",
    "help",
    "history",
    "if",
    "jobs",
    "kill",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "read",
    "readarray",
    "return",
    "select",
    "shift",
    "source",
    "suspend",
    "times",
    "trap",
    "until",
    "wait",
    "while",
    "{",
    "}",
];

/// What a simple command of a line begins with.
enum Begins {
    /// With something that is there.
    Executable,
    /// With something that is not there.
    Missing,
    /// With a builtin: the next command counts.
    Builtin,
    /// With something that the text does not tell.
    Untold,
}

/// Whether the line fails at its first program, or at the folder that it goes to.
pub(super) fn is_missing(line: &str, folder: &Path, path: Option<&OsStr>) -> bool {
    let mut folder = folder.to_owned();
    for words in simple_commands(line) {
        match begins(&words, &mut folder, path) {
            Begins::Executable | Begins::Untold => return false,
            Begins::Missing => return true,
            Begins::Builtin => {}
        }
    }
    false
}

fn begins(words: &[Word], folder: &mut PathBuf, path: Option<&OsStr>) -> Begins {
    let is_assignment = |word: &Word| word.text.split_once('=').is_some_and(|(name, _)| is_name(name));
    // From here on another path may count.
    let sets_path =
        |word: &Word| word.text == "PATH" || word.text.trim_start_matches(['"', '\'']).starts_with("PATH=");
    if words.iter().any(sets_path) {
        return Begins::Untold;
    }
    let mut words = words.iter().skip_while(|word| is_assignment(word));
    let mut prefixed = false;
    loop {
        let Some(word) = words.next() else { return if prefixed { Begins::Untold } else { Begins::Builtin } };
        let name = match word.plain() {
            // An option of what runs it may have a value of its own.
            Some(name) if prefixed && name.starts_with('-') || is_assignment(word) => return Begins::Untold,
            Some(name) => name,
            None => return Begins::Untold,
        };
        if PREFIXES.contains(&name) {
            prefixed = true;
        } else if name == "cd" {
            return enters(words.next(), words.next().is_some(), folder);
        } else if UNTOLD.contains(&name) {
            return Begins::Untold;
        } else if BUILTINS.contains(&name) {
            return Begins::Builtin;
        } else if is_there(name, folder, path) {
            return Begins::Executable;
        } else {
            return Begins::Missing;
        }
    }
}

fn enters(into: Option<&Word>, has_more: bool, folder: &mut PathBuf) -> Begins {
    match into.and_then(Word::plain) {
        Some(into) if !has_more && !into.starts_with('-') => {
            let into = folder.join(into);
            if !into.is_dir() {
                return Begins::Missing;
            }
            *folder = into;
            Begins::Builtin
        }
        Some(_) | None => Begins::Untold,
    }
}

fn is_there(name: &str, folder: &Path, path: Option<&OsStr>) -> bool {
    let runs = |file: &Path| access(file, Access::EXEC_OK).is_ok() && !file.is_dir();
    if name.contains('/') {
        return runs(&folder.join(name));
    }
    // Without a path the shell has its own, which is not known here.
    path.is_none_or(|path| std::env::split_paths(path).any(|part| runs(&folder.join(part).join(name))))
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A word of a line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Word {
    text: String,
    /// It has quotes, expansions or anything else that the shell would change.
    changes: bool,
}

impl Word {
    /// The word, if the shell takes it as it is.
    fn plain(&self) -> Option<&str> {
        (!self.changes).then_some(self.text.as_str())
    }
}

/// The simple commands at the beginning of a line, up to where anything else begins.
fn simple_commands(line: &str) -> Vec<Vec<Word>> {
    let mut commands = vec![Vec::new()];
    let mut word = None::<Word>;
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        let of_word = |word: &mut Option<Word>, changes| {
            let word = word.get_or_insert_default();
            word.changes |= changes;
            word.text.push(c);
        };
        match c {
            ' ' | '\t' => end_word(&mut commands, &mut word),
            '\n' | ';' | '&' | '|' => {
                end_word(&mut commands, &mut word);
                commands.push(Vec::new());
            }
            '\'' | '"' => {
                of_word(&mut word, true);
                loop {
                    match rest.next() {
                        Some(end) if end == c => break,
                        Some('\\') if c == '"' => drop(rest.next()),
                        Some('`') if c == '"' => return commands,
                        Some('$') if c == '"' && rest.peek() == Some(&'(') => return commands,
                        Some(_) => {}
                        None => return commands,
                    }
                }
            }
            '\\' => {
                of_word(&mut word, true);
                let _ = rest.next();
            }
            '$' if rest.peek() != Some(&'(') => of_word(&mut word, true),
            '*' | '?' | '[' | ']' | '~' | '{' | '}' => {
                // A keyword is one only as a word of its own.
                let begins = word.is_none() && matches!(c, '[' | '{' | '}');
                of_word(&mut word, !begins);
            }
            // A redirection, a substitution, a group, a comment.
            '<' | '>' | '(' | ')' | '`' | '$' | '#' => return up_to_here(commands, &word),
            _ => of_word(&mut word, false),
        }
    }
    end_word(&mut commands, &mut word);
    commands
}

fn end_word(commands: &mut [Vec<Word>], word: &mut Option<Word>) {
    if let (Some(command), Some(word)) = (commands.last_mut(), word.take()) {
        command.push(word);
    }
}

/// What stands before something else: a word that it is part of is not known.
fn up_to_here(mut commands: Vec<Vec<Word>>, word: &Option<Word>) -> Vec<Vec<Word>> {
    if let Some(command) = commands.last_mut()
        && (command.is_empty() || word.is_some())
    {
        command.push(Word { text: String::new(), changes: true });
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(line: &str) -> bool {
        is_missing(line, Path::new("/"), Some(OsStr::new("/usr/bin:/bin")))
    }

    #[test]
    fn what_is_not_there_is_missing() {
        for line in [
            "no-such-program",
            "no-such-program --serve 8080 > log 2>&1",
            "PORT=1 no-such-program",
            "exec no-such-program",
            "nohup no-such-program &",
            "/no/such/file",
            "./no-such-file x",
            "/etc/passwd",
            "/tmp",
            "cd /tmp && no-such-program",
            "cd no-such-folder && sh",
            "export A=1; no-such-program",
            "echo hi; no-such-program",
            "no-such-program | cat",
            "no-such-program \"$HOME\"",
        ] {
            assert!(missing(line), "{line}");
        }
    }

    #[test]
    fn what_is_there_or_can_not_be_told_is_not() {
        for line in [
            "sh -c 'no-such-program'",
            "sleep 1000",
            "cd /usr && ls",
            "cd usr && cd bin && ./sh",
            "A=1 B=2 sleep 1; no-such-program",
            "$PROGRAM x",
            "\"no such program\"",
            "~/x",
            "if no-such-program; then :; fi",
            "for x in 1 2; do no-such-program; done",
            "(no-such-program)",
            "{ no-such-program; }",
            "f() { :; }; f",
            "function f { :; }; f",
            "alias x=y; x",
            ". ./env; no-such-program",
            "source env && no-such-program",
            "eval no-such-program",
            "A=$(no-such-program)",
            "`no-such-program`",
            "env -i no-such-program",
            "> file no-such-program",
            "# no-such-program",
            "echo hi",
            "",
            "no-such-*",
            "cd \"$DIR\" && no-such-program",
            "[ -e x ] && no-such-program",
            "! no-such-program",
        ] {
            assert!(!missing(line), "{line}");
        }
    }

    #[test]
    fn without_a_path_nothing_is_known() {
        assert!(!is_missing("no-such-program", Path::new("/"), None));
    }
}
