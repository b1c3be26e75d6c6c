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
const UMASK: usize = 4;

/// Variables that belong to a shell, and not to what was done in it.
const OWN: &[&str] =
    &["_", "PWD", "OLDPWD", "SHLVL", "PROMPT_COMMAND", "BASH_FUNC", "OUTLAST_JOB", "OUTLAST_HOME", "PPID"];
/// Options that would end the next shell, or fill its output, before anybody asked for that.
const NOT_AGAIN: &[&str] = &["errexit", "xtrace", "verbose", "history", "noexec"];

/// What was changed in a shell since it was made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Changed {
    /// The commands that bring another shell there.
    pub(crate) script: String,
    /// What they bring, in words.
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
    let changed = |part: usize, begins: fn(&str) -> bool| -> Vec<String> {
        let known: BTreeSet<String> = entries(before, part, begins).into_iter().collect();
        let mut entries = entries(now, part, begins);
        entries.retain(|entry| !known.contains(entry) && !entry.contains("__outlast"));
        entries
    };
    let mut exports = changed(EXPORTS, begins_export);
    exports.retain(|entry| !OWN.contains(&name_of(entry)) && !entry.starts_with("declare -xr"));
    if kind != ShellKind::Fish {
        exports.retain(|entry| entry.contains('='));
    }
    let functions = changed(FUNCTIONS, begins_function);
    let aliases = changed(ALIASES, |line| line.starts_with("alias "));
    let mut options = changed(OPTIONS, |_| true);
    options.retain(|option| !NOT_AGAIN.iter().any(|not| option.ends_with(not)));
    let umask = changed(UMASK, |_| true);
    let mut names = BTreeMap::new();
    let mut lists = Vec::new();
    for (what, mut list) in [
        ("variables", exports),
        ("functions", functions),
        ("aliases", aliases),
        ("options", options),
        ("umask", umask),
    ] {
        if !list.is_empty() {
            names.insert(what.to_owned(), list.iter().map(|entry| name_of(entry).to_owned()).collect());
        }
        list.retain(|entry| !is_secret(name_of(entry), entry));
        lists.push(list);
    }
    let words = format!(
        "folder, {} exported variables, {} functions, {} aliases, {} options",
        lists[EXPORTS].len(),
        lists[FUNCTIONS].len(),
        lists[ALIASES].len(),
        lists[OPTIONS].len()
    );
    let script: String = lists.concat().into_iter().map(|entry| entry + "\n").collect();
    let cd = match kind {
        ShellKind::Bash | ShellKind::Zsh => format!("\\builtin cd -- {}\n", quoted(folder)),
        ShellKind::Fish => format!("builtin cd {}\n", fish::escaped(folder)),
        ShellKind::Dash => format!("PWD={}\n", quoted(folder)),
    };
    Changed { script: script + &cd, words, names }
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
        assert_eq!(words, "folder, 1 exported variables, 1 functions, 1 aliases, 1 options");
        assert_eq!(names["variables"], ["B", "API_TOKEN"]);
        assert_eq!(
            (&names["functions"][..], &names["options"][..]),
            (&["f".into()][..], &["extglob".into()][..])
        );
    }
}
