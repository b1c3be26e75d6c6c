//! Which programs a command names: a hint for the readers, never a proof.

/// Programs that show text which others have written: what it says is not the result of this run.
const SHOW: &[&str] = &[
    "cat",
    "bat",
    "less",
    "more",
    "head",
    "tail",
    "grep",
    "egrep",
    "rg",
    "ag",
    "sed",
    "awk",
    "cut",
    "sort",
    "uniq",
    "wc",
    "tr",
    "ls",
    "find",
    "fd",
    "jq",
    "diff",
    "strings",
    "xxd",
    "tree",
    "journalctl",
    "echo",
    "printf",
    "zcat",
    "tac",
    "nl",
    "column",
    "cd",
    "true",
];
/// Programs after whose name the real one comes.
const BEFORE: &[&str] = &[
    "sudo", "env", "time", "nice", "nohup", "timeout", "exec", "command", "stdbuf", "npx", "bunx", "pnpx",
    "xvfb-run", "ionice",
];

/// Tools that print nothing but their results. Those that may also run a program of the user's, with the words after
/// which they do not.
const KNOWN: &[(&str, &[&str])] = &[
    ("cargo", &["build", "b", "check", "c", "test", "t", "clippy", "fmt", "doc"]),
    ("go", &["build", "test", "vet", "install"]),
    ("npm", &["install", "i", "ci", "test", "t", "add"]),
    ("pnpm", &["install", "i", "test", "t", "add"]),
    ("pip", &["install", "uninstall"]),
    ("pip3", &["install", "uninstall"]),
    ("git", &["commit", "pull", "merge", "push", "fetch", "clone", "rebase", "cherry-pick"]),
    ("rustc", &[]),
    ("gcc", &[]),
    ("g++", &[]),
    ("cc", &[]),
    ("c++", &[]),
    ("clang", &[]),
    ("clang++", &[]),
    ("pytest", &[]),
    ("unittest", &[]),
    ("jest", &[]),
    ("vitest", &[]),
    ("tsc", &[]),
    ("eslint", &[]),
    ("ruff", &[]),
    ("mypy", &[]),
    ("cd", &[]),
];

/// The programs of a command, in order.
#[derive(Debug)]
pub(super) struct Programs<'a> {
    named: Vec<&'a str>,
    /// Each is known to print nothing but its results.
    known: bool,
    /// Some of what is printed goes through a program that leaves lines out.
    filtered: bool,
}

impl<'a> Programs<'a> {
    pub(super) fn of(command: &'a str) -> Self {
        let mut named = Vec::new();
        let (mut filtered, mut known) = (false, true);
        for stage in command.split(['\n', ';', '&', '(', ')', '{', '}']) {
            for (i, part) in stage.split('|').enumerate() {
                let words: Vec<&str> = part.split_whitespace().collect();
                let before = named.len();
                add(&mut named, &words);
                known &= named.len() == before || is_known(&named[before..], &words);
                filtered |= i > 0 && named[before..].iter().any(|name| SHOW.contains(name));
            }
        }
        Self { known: known && !named.is_empty(), named, filtered }
    }

    /// Whether one of these is run.
    pub(super) fn name(&self, programs: &[&str]) -> bool {
        self.named.iter().any(|named| programs.contains(named))
    }

    /// Whether nothing is run but what shows text.
    pub(super) fn only_show(&self) -> bool {
        !self.named.is_empty() && self.named.iter().all(|named| SHOW.contains(named) || *named == "git show")
    }

    /// Whether each of them prints nothing but its results.
    pub(super) fn are_known(&self) -> bool {
        self.known
    }

    /// Whether lines may be missing.
    pub(super) fn filter(&self) -> bool {
        self.filtered
    }
}

fn is_known(named: &[&str], words: &[&str]) -> bool {
    // `python -m pytest` and `uv run pytest` name two.
    let Some(last) = named.last() else { return true };
    let Some((_, only)) = KNOWN.iter().find(|(name, _)| name == last) else { return false };
    let after = words.iter().skip_while(|word| !word.trim_matches(['"', '\'']).ends_with(last)).skip(1);
    let mut verb =
        after.map(|word| word.trim_matches(['"', '\''])).filter(|word| !word.starts_with(['-', '+']));
    only.is_empty() || verb.next().is_some_and(|verb| only.contains(&verb))
}

fn add<'a>(named: &mut Vec<&'a str>, words: &[&'a str]) {
    let is_setting =
        |word: &&str| word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && !name.contains('/'));
    let mut rest = words.iter().copied().skip_while(|word| is_setting(word)).peekable();
    while let Some(word) = rest.next() {
        let word = word.trim_matches(['"', '\'', '!', '`']);
        let name = word.rsplit('/').next().unwrap_or(word);
        if name.is_empty() || name.starts_with('-') || name.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        if BEFORE.contains(&name) {
            while rest
                .next_if(|word| {
                    word.starts_with('-')
                        || is_setting(word)
                        || word.starts_with(|c: char| c.is_ascii_digit())
                })
                .is_some()
            {}
            continue;
        }
        named.push(name);
        let more: Vec<&str> = rest.collect();
        match (name, more.as_slice()) {
            ("uv" | "poetry" | "pdm" | "rye" | "hatch", ["run" | "tool", more @ ..])
            | ("pnpm" | "yarn" | "npm" | "bundle", ["exec" | "dlx", more @ ..]) => add(named, more),
            ("sh" | "bash" | "zsh" | "dash", ["-c" | "-lc" | "-ec", more @ ..]) => add(named, more),
            (python, more) if python.starts_with("python") => {
                if let Some(at) = more.iter().position(|word| *word == "-m") {
                    add(named, &more[at + 1..]);
                }
            }
            ("git", ["log" | "show" | "diff" | "grep" | "blame", ..]) => {
                named.pop();
                named.push("git show");
            }
            _ => {}
        }
        return;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_is_really_run() {
        let names = |command| Programs::of(command).named.join(" ");
        assert_eq!(names("cd a && RUST_LOG=x cargo test | tail -3"), "cd cargo tail");
        assert_eq!(names("sudo -E /usr/bin/make -j4; python3 -m pytest -q"), "make python3 pytest");
        assert_eq!(names("timeout 60 npx jest"), "jest");
        assert_eq!(names("uv run pytest"), "uv pytest");
        for command in [
            "cd a && cargo test -q",
            "cargo +nightly build 2>&1",
            "python3 -m pytest",
            "sh -c 'pip install x'",
            "npx jest",
        ] {
            assert!(Programs::of(command).are_known(), "{command}");
        }
        for command in [
            "cargo run",
            "make",
            "pip install x && python train.py",
            "npm run report",
            "./ci.sh",
            "git stash list",
        ] {
            assert!(!Programs::of(command).are_known(), "{command}");
        }
        assert!(Programs::of("cat build.log | grep error").only_show());
        assert!(Programs::of("git log -p").only_show());
        assert!(!Programs::of("git commit -m x").only_show());
        assert!(Programs::of("cargo build 2>&1 | tail").filter());
        assert!(!Programs::of("cargo build").filter());
    }
}
