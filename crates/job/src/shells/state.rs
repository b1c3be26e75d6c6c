//! What a shell remembers, as the commands that make another shell remember it: only what was changed since it was made,
//! and nothing that is a secret.

use std::collections::BTreeSet;

use super::quoted;

/// The parts of a state, as a shell tells them.
const EXPORTS: usize = 0;
const FUNCTIONS: usize = 1;
const ALIASES: usize = 2;
const OPTIONS: usize = 3;
const UMASK: usize = 4;

/// Variables that belong to a shell, and not to what was done in it.
const OWN: &[&str] =
    &["_", "PWD", "OLDPWD", "SHLVL", "PROMPT_COMMAND", "BASH_FUNC", "OUTLAST_JOB", "OUTLAST_HOME"];
/// Options that would end the next shell, or fill its output, before anybody asked for that.
const NOT_AGAIN: &[&str] = &["errexit", "xtrace", "verbose", "history", "noexec"];

/// The commands that bring a shell from one state to another, and what they bring in words. `is_secret` is asked with a name
/// and all that is said of it.
pub(crate) fn script(
    before: &[u8],
    now: &[u8],
    folder: &str,
    is_secret: impl Fn(&str, &str) -> bool,
) -> (String, String) {
    let changed = |part: usize, begins: fn(&str) -> bool| -> Vec<String> {
        let known: BTreeSet<String> = entries(before, part, begins).into_iter().collect();
        let mut entries = entries(now, part, begins);
        entries.retain(|entry| !known.contains(entry) && !entry.contains("__outlast"));
        entries.retain(|entry| !is_secret(name_of(entry), entry));
        entries
    };
    let mut exports = changed(EXPORTS, |line| line.starts_with("declare -"));
    exports.retain(|entry| {
        !OWN.contains(&name_of(entry)) && !entry.starts_with("declare -xr") && entry.contains('=')
    });
    let functions = changed(FUNCTIONS, |line| line.ends_with("() ") && !line.starts_with([' ', '\t']));
    let aliases = changed(ALIASES, |line| line.starts_with("alias "));
    let mut options = changed(OPTIONS, |_| true);
    options.retain(|option| !NOT_AGAIN.iter().any(|not| option.ends_with(not)));
    let umask = changed(UMASK, |_| true);
    let words = format!(
        "folder, {} exported variables, {} functions, {} aliases, {} options",
        exports.len(),
        functions.len(),
        aliases.len(),
        options.len()
    );
    let all = [exports, functions, aliases, options, umask].concat();
    let script = all.into_iter().map(|entry| entry + "\n").collect::<String>();
    (format!("{script}\\builtin cd -- {}\n", quoted(folder)), words)
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

/// `declare -x NAME="value"`, `NAME () `, `alias NAME='…'`.
fn name_of(entry: &str) -> &str {
    let entry = entry.strip_prefix("alias ").unwrap_or(entry);
    let entry =
        entry.strip_prefix("declare ").and_then(|rest| rest.split_once(' ')).map_or(entry, |(_, rest)| rest);
    entry.split(['=', ' ', '\n']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_and_is_no_secret_is_kept() {
        let before =
            b"declare -x A=\"1\"\ndeclare -x PWD=\"/\"\n\0\0alias l='ls'\n\0set +o errexit\n\0umask 0022\n\0";
        let now = b"declare -x A=\"1\"\ndeclare -x B=\"two\nlines\"\ndeclare -x API_TOKEN=\"s\"\ndeclare -x PWD=\"/x\"\n\0f () \n{ \n    echo f\n}\n__outlast_r () \n{ \n}\n\0alias l='ls'\nalias g='git'\n\0set -o errexit\nshopt -s extglob\n\0umask 0077\n\0";
        let (script, words) = script(before, now, "/x y", |name, _| name == "API_TOKEN");
        assert_eq!(
            script,
            "declare -x B=\"two\nlines\"\nf () \n{ \n    echo f\n}\nalias g='git'\nshopt -s extglob\numask 0077\n\\builtin cd -- '/x y'\n"
        );
        assert_eq!(words, "folder, 1 exported variables, 1 functions, 1 aliases, 1 options");
    }
}
