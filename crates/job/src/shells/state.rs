//! What a shell remembers, as the commands that make another shell remember it: only what was changed since it was made,
//! and nothing that is a secret.

use std::collections::{BTreeMap, BTreeSet};

use outlast_protocol::shell::ShellKind;

use super::{fish, quoted};

/// The parts of a state, as a shell tells them.
const EXPORTS: usize = 0;
const FUNCTIONS: usize = 1;
const ALIASES: usize = 2;
const OPTIONS: usize = 3;

/// Variables that belong to a shell, and not to what was done in it.
const OWN: &[&str] =
    &["_", "PWD", "OLDPWD", "SHLVL", "PROMPT_COMMAND", "BASH_FUNC", "OUTLAST_JOB", "OUTLAST_HOME", "PPID"];
/// Options that would end the next shell, or fill its output, before anybody asked for that.
const NOT_AGAIN: &[&str] = &["errexit", "xtrace", "verbose", "history", "noexec"];

/// The parts in their order, as people call them.
const PARTS: [&str; 5] = ["variables", "functions", "aliases", "options", "umask"];
/// So many names of what a step changed are told.
const MAX_NAMES: usize = 100;

/// What was changed in a shell since it was made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Changed {
    /// The commands that bring another shell there.
    pub(crate) script: String,
    /// What they bring and what they do not, in words.
    pub(crate) words: String,
    /// What was changed, by names.
    pub(crate) names: BTreeMap<String, Vec<String>>,
}

/// What brings a shell from one state to another. `is_secret` is asked with a name and all that is said of it.
pub(crate) fn changed(
    kind: ShellKind,
    (before, now): (&[u8], &[u8]),
    folder: &str,
    is_secret: impl Fn(&str, &str) -> bool,
) -> Changed {
    let mut names = BTreeMap::new();
    let (mut script, mut counts, mut secrets) = (String::new(), Vec::new(), Vec::new());
    for (part, what) in PARTS.iter().enumerate() {
        let Difference { mut new, gone } = difference(kind, part, before, now);
        let all: Vec<String> =
            new.iter().map(|entry| name_of(entry).to_owned()).chain(gone.clone()).collect();
        if !all.is_empty() {
            names.insert((*what).to_owned(), all);
        }
        new.retain(|entry| {
            let is_secret = is_secret(name_of(entry), entry);
            secrets.extend(is_secret.then(|| name_of(entry).to_owned()));
            !is_secret
        });
        counts.extend(counted(new.len() + gone.len(), part));
        script.extend(new.into_iter().map(|entry| entry + "\n"));
        script.extend(gone.iter().filter_map(|name| remove(kind, part, name)));
    }
    counts.insert(0, "folder".into());
    let mut words = counts.join(", ");
    if !secrets.is_empty() {
        words += &format!("; not kept, as for secrets: {}", secrets.join(", "));
    }
    Changed { script: script + &go_to(kind, folder), words, names }
}

/// The command that brings a shell to a folder.
pub(crate) fn go_to(kind: ShellKind, folder: &str) -> String {
    match kind {
        ShellKind::Bash | ShellKind::Zsh => format!("\\builtin cd -- {}\n", quoted(folder)),
        ShellKind::Fish => format!("builtin cd {}\n", fish::escaped(folder)),
        ShellKind::Dash => format!("PWD={}\n", quoted(folder)),
    }
}

/// The names of what is not the same in two states.
pub(crate) fn names_between(kind: ShellKind, before: &[u8], now: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    for part in 0..PARTS.len() {
        let Difference { new, gone } = difference(kind, part, before, now);
        names.extend(new.iter().map(|entry| name_of(entry).to_owned()).chain(gone));
    }
    names.truncate(MAX_NAMES);
    names
}

/// What is not the same in a part of two states.
struct Difference {
    /// Entries that are new, or say something else.
    new: Vec<String>,
    /// Names that are there no more.
    gone: Vec<String>,
}

fn difference(kind: ShellKind, part: usize, before: &[u8], now: &[u8]) -> Difference {
    let begins: fn(&str) -> bool = match part {
        EXPORTS => begins_export,
        FUNCTIONS => begins_function,
        ALIASES => |line| line.starts_with("alias "),
        _ => |_| true,
    };
    let of = |state| {
        let mut entries = entries(state, part, begins);
        entries.retain(|entry| !entry.contains("__outlast") && is_kept(kind, part, entry));
        entries
    };
    let (before, mut new) = (of(before), of(now));
    let names: BTreeSet<&str> = new.iter().map(|entry| name_of(entry)).collect();
    let gone = before.iter().map(|entry| name_of(entry)).filter(|name| !names.contains(name));
    // Options and the umask are always there, and say what they are.
    let gone = gone.filter(|_| part < OPTIONS).map(str::to_owned).collect();
    let before: BTreeSet<&String> = before.iter().collect();
    new.retain(|entry| !before.contains(entry));
    Difference { new, gone }
}

/// Whether another shell may be told of it.
fn is_kept(kind: ShellKind, part: usize, entry: &str) -> bool {
    match part {
        EXPORTS => {
            let has_value = kind == ShellKind::Fish || entry.contains('=');
            has_value && !OWN.contains(&name_of(entry)) && !entry.starts_with("declare -xr")
        }
        OPTIONS => !NOT_AGAIN.iter().any(|not| entry.ends_with(not)),
        _ => true,
    }
}

/// The command that removes what another shell has from the beginning.
fn remove(kind: ShellKind, part: usize, name: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.:+".contains(c);
    let command = match (part, kind) {
        _ if !name.chars().all(fits) || name.starts_with('-') => return None,
        (EXPORTS, ShellKind::Fish) => "set -e",
        (EXPORTS, ShellKind::Bash | ShellKind::Zsh | ShellKind::Dash) => "unset",
        (FUNCTIONS, ShellKind::Fish) => "functions -e",
        (FUNCTIONS, ShellKind::Bash | ShellKind::Zsh | ShellKind::Dash) => "unset -f",
        (ALIASES, ShellKind::Bash | ShellKind::Zsh | ShellKind::Dash) => "unalias",
        _ => return None,
    };
    Some(format!("{command} {name}\n"))
}

fn counted(count: usize, part: usize) -> Option<String> {
    let (one, many) = match part {
        EXPORTS => ("exported variable", "exported variables"),
        FUNCTIONS => ("function", "functions"),
        ALIASES => ("alias", "aliases"),
        OPTIONS => ("option", "options"),
        _ => return (count > 0).then(|| "umask".to_owned()),
    };
    (count > 0).then(|| format!("{count} {}", if count == 1 { one } else { many }))
}

fn begins_export(line: &str) -> bool {
    ["declare -", "export ", "typeset -", "set -gx "].iter().any(|begin| line.starts_with(begin))
}

fn begins_function(line: &str) -> bool {
    let first = !line.starts_with([' ', '\t', '}']);
    first && (line.ends_with("() ") || line.ends_with("() {") || line.starts_with("function "))
}

/// The entries of a part; each begins with a line that says so.
fn entries(state: &[u8], part: usize, begins: fn(&str) -> bool) -> Vec<String> {
    let text = state.split(|byte| *byte == 0).nth(part).unwrap_or_default();
    let text = String::from_utf8_lossy(text);
    let mut entries: Vec<String> = Vec::new();
    for line in text.lines() {
        match entries.last_mut() {
            Some(entry) if !begins(line) => {
                entry.push('\n');
                entry.push_str(line);
            }
            _ => entries.push(line.to_owned()),
        }
    }
    entries
}

/// `declare -x NAME="value"`, `export NAME=value`, `set -gx NAME value`, `NAME () `, `function NAME`, `alias NAME='…'`,
/// `shopt -s NAME`.
fn name_of(entry: &str) -> &str {
    let mut rest = entry;
    for word in ["alias ", "export ", "declare ", "typeset ", "function ", "set ", "shopt "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    while let Some((option, after)) =
        rest.split_once(' ').filter(|(option, _)| option.starts_with(['-', '+']))
    {
        let _ = option;
        rest = after;
    }
    rest.split(['=', ' ', '\n', ';']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_and_is_no_secret_is_kept() {
        let before =
            b"declare -x A=\"1\"\ndeclare -x PWD=\"/\"\n\0\0alias l='ls'\n\0set +o errexit\n\0umask 0022\n\0";
        let now = b"declare -x A=\"1\"\ndeclare -x B=\"two\nlines\"\ndeclare -x API_TOKEN=\"s\"\ndeclare -x PWD=\"/x\"\n\0f () \n{ \n    echo f\n}\n__outlast_r () \n{ \n}\n\0alias l='ls'\nalias g='git'\n\0set -o errexit\nshopt -s extglob\n\0umask 0077\n\0";
        let is_secret = |name: &str, _: &str| name == "API_TOKEN";
        let Changed { script, words, names } = changed(ShellKind::Bash, (before, now), "/x y", is_secret);
        assert_eq!(
            script,
            "declare -x B=\"two\nlines\"\nf () \n{ \n    echo f\n}\nalias g='git'\nshopt -s extglob\numask 0077\n\\builtin cd -- '/x y'\n"
        );
        assert_eq!(
            words,
            "folder, 1 exported variable, 1 function, 1 alias, 1 option, umask; not kept, as for secrets: API_TOKEN"
        );
        assert_eq!(names["variables"], ["B", "API_TOKEN"]);
        assert_eq!(
            (&names["functions"][..], &names["options"][..]),
            (&["f".into()][..], &["extglob".into()][..])
        );
    }

    #[test]
    fn what_is_gone_is_removed_and_what_changes_again_is_told_again() {
        let before = b"export A='1'\nexport B='2'\n\0\0alias l='ls'\n\0set +o nounset\n\0umask 0022\n\0";
        let now = b"export A='3'\n\0\0\0set -o nounset\n\0umask 0022\n\0";
        let Changed { script, words, .. } = changed(ShellKind::Dash, (before, now), "/", |_, _| false);
        assert_eq!(script, "export A='3'\nunset B\nunalias l\nset -o nounset\nPWD='/'\n");
        assert_eq!(words, "folder, 2 exported variables, 1 alias, 1 option");
        assert_eq!(names_between(ShellKind::Dash, before, now), ["A", "B", "l", "nounset"]);
        assert!(names_between(ShellKind::Dash, now, now).is_empty());
    }
}
