//! Options by which an ordinary program runs another one, or writes a file that no redirection shows.
//!
//! Whoever allows `tar` or `git fetch` does not mean `--checkpoint-action=exec=…` or `--upload-pack=…`. Programs take the
//! beginning of a long option for the option, so any beginning counts.

use super::Inner;
use crate::word::{Kind, Word, known_text};

/// Options of a program that name what it runs, or where it writes.
struct Options {
    /// The program; with a verb behind it, only that part of it.
    names: &'static [&'static str],
    /// Long options, without their dashes. Some are given with one dash.
    longs: &'static [&'static str],
    /// Short options.
    shorts: &'static str,
    does: Does,
}

#[derive(Clone, Copy)]
enum Does {
    /// Runs something else.
    Run,
    /// Decides what the program runs, as it always does: another project, other settings. It matters only where a rule has
    /// to allow it.
    Decide,
    Write,
}

use Does::{Decide, Run, Write};

const OPTIONS: &[Options] = &[
    Options {
        names: &["tar", "gtar", "bsdtar"],
        longs: &[
            "checkpoint-action",
            "to-command",
            "use-compress-program",
            "rsh-command",
            "rmt-command",
            "info-script",
            "new-volume-script",
        ],
        shorts: "IF",
        does: Run,
    },
    Options { names: &["rsync"], longs: &["rsh", "rsync-path"], shorts: "e", does: Run },
    Options { names: &["sort", "gsort"], longs: &["compress-program"], shorts: "", does: Run },
    Options { names: &["sort", "gsort"], longs: &["output"], shorts: "o", does: Write },
    Options { names: &["split", "gsplit"], longs: &["filter"], shorts: "", does: Run },
    Options { names: &["ssh", "autossh"], longs: &[], shorts: "oFPI", does: Run },
    Options { names: &["scp", "sftp"], longs: &[], shorts: "oFSD", does: Run },
    Options { names: &["zip"], longs: &["unzip-command"], shorts: "T", does: Run },
    Options { names: &["man"], longs: &["pager", "html", "config-file"], shorts: "PHC", does: Run },
    Options { names: &["cargo"], longs: &["config"], shorts: "Z", does: Run },
    Options { names: &["cargo"], longs: &["open"], shorts: "", does: Decide },
    Options { names: &["cargo"], longs: &["target-dir", "out-dir", "artifact-dir"], shorts: "", does: Write },
    Options { names: &["kubectl"], longs: &["kubeconfig"], shorts: "", does: Decide },
    Options { names: &["tree"], longs: &[], shorts: "R", does: Decide },
    Options {
        names: &["rustc", "rustdoc"],
        longs: &["codegen", "runtool", "test-runtool"],
        shorts: "C",
        does: Run,
    },
    Options {
        names: &["gcc", "g++", "cc", "c++", "clang", "clang++"],
        longs: &["wrapper", "specs", "fplugin", "use-ld", "ld-path"],
        shorts: "B",
        does: Run,
    },
    Options {
        names: &["go"],
        longs: &["exec", "toolexec", "vettool", "overlay", "modfile"],
        shorts: "",
        does: Run,
    },
    Options {
        names: &["go"],
        longs: &["ldflags", "gcflags", "asmflags", "gccgoflags"],
        shorts: "C",
        does: Decide,
    },
    Options {
        names: &["go"],
        longs: &[
            "o",
            "coverprofile",
            "cpuprofile",
            "memprofile",
            "blockprofile",
            "mutexprofile",
            "trace",
            "outputdir",
        ],
        shorts: "",
        does: Write,
    },
    Options {
        names: &["npm", "pnpm", "yarn", "npx"],
        longs: &["script-shell", "node-options", "shell", "call", "git", "editor"],
        shorts: "c",
        does: Run,
    },
    Options {
        names: &["npm", "pnpm", "yarn", "npx"],
        longs: &["viewer", "userconfig", "globalconfig", "prefix"],
        shorts: "C",
        does: Decide,
    },
    Options {
        names: &["npm", "pnpm", "yarn", "npx"],
        longs: &["cache", "logs-dir"],
        shorts: "",
        does: Write,
    },
    Options {
        names: &["pytest", "py.test"],
        longs: &["rootdir", "config-file", "override-ini", "pastebin"],
        shorts: "pco",
        does: Run,
    },
    Options {
        names: &["pytest", "py.test"],
        longs: &["pdb", "pdbcls", "trace", "confcutdir", "pyargs", "cov-config"],
        shorts: "",
        does: Decide,
    },
    Options {
        names: &["pytest", "py.test"],
        longs: &[
            "junitxml",
            "junit-xml",
            "log-file",
            "basetemp",
            "debug",
            "report-log",
            "result-log",
            "cov-report",
        ],
        shorts: "",
        does: Write,
    },
    Options {
        names: &["make", "gmake"],
        longs: &["eval", "file", "makefile", "include-dir"],
        shorts: "fIE",
        does: Run,
    },
    Options { names: &["make", "gmake"], longs: &["directory"], shorts: "C", does: Decide },
    Options { names: &["curl"], longs: &["config", "engine"], shorts: "K", does: Run },
    Options {
        names: &["curl"],
        longs: &[
            "output",
            "output-dir",
            "remote-name",
            "remote-name-all",
            "remote-header-name",
            "dump-header",
            "cookie-jar",
            "trace",
            "trace-ascii",
            "stderr",
            "etag-save",
            "hsts",
            "alt-svc",
            "libcurl",
        ],
        shorts: "oODcJ",
        does: Write,
    },
    Options {
        names: &["wget"],
        longs: &["output-document", "output-file", "append-output", "directory-prefix", "save-cookies"],
        shorts: "OoaP",
        does: Write,
    },
    Options { names: &["ssh", "autossh"], longs: &[], shorts: "E", does: Write },
    Options { names: &["less", "more", "most"], longs: &["log-file", "LOG-FILE"], shorts: "oO", does: Write },
    Options { names: &["wget"], longs: &["use-askpass", "execute", "config"], shorts: "e", does: Run },
    Options {
        names: &["less", "more", "most"],
        longs: &["lesskey-file", "lesskey-src", "lesskey-content"],
        shorts: "k+",
        does: Run,
    },
    Options {
        names: &["gpg", "gpg2"],
        longs: &["exec-path", "agent-program", "dirmngr-program", "photo-viewer", "options"],
        shorts: "",
        does: Run,
    },
    Options {
        names: &["ctags", "universal-ctags"],
        longs: &["options", "quiet", "filter"],
        shorts: "",
        does: Run,
    },
    Options { names: &["rg"], longs: &["pre", "hostname-bin"], shorts: "", does: Run },
    Options { names: &["fd", "fdfind"], longs: &["exec", "exec-batch"], shorts: "xX", does: Run },
    Options { names: &["jobs"], longs: &[], shorts: "x", does: Run },
    Options { names: &["7z", "unrar"], longs: &[], shorts: "o", does: Write },
    Options { names: &["openssl"], longs: &["engine", "provider", "config"], shorts: "", does: Run },
    Options { names: &["file"], longs: &["magic-file", "compile"], shorts: "mC", does: Write },
    Options { names: &["find"], longs: &["fprint", "fprint0", "fprintf", "fls"], shorts: "", does: Write },
    Options { names: &["tree", "ltrace", "shuf"], longs: &["output"], shorts: "o", does: Write },
    Options {
        names: &["git"],
        longs: &[
            "upload-pack",
            "receive-pack",
            "exec",
            "extcmd",
            "open-files-in-pager",
            "exec-path",
            "config-env",
            "template",
            "tree-filter",
            "index-filter",
            "msg-filter",
            "env-filter",
            "commit-filter",
            "tag-name-filter",
            "parent-filter",
            "subdirectory-filter",
            "to-cmd",
            "cc-cmd",
            "header-cmd",
            "sendmail-cmd",
            "smtp-server",
        ],
        shorts: "",
        does: Run,
    },
    Options { names: &["git"], longs: &["output", "output-directory"], shorts: "", does: Write },
    Options { names: &["git grep"], longs: &[], shorts: "O", does: Run },
    Options { names: &["git archive", "git format-patch"], longs: &[], shorts: "o", does: Write },
    Options {
        names: &["awk", "gawk", "mawk", "nawk"],
        longs: &["exec", "include", "load"],
        shorts: "Eil",
        does: Run,
    },
    Options {
        names: &["awk", "gawk", "mawk", "nawk"],
        longs: &["dump-variables", "profile", "pretty-print", "debug"],
        shorts: "dopD",
        does: Write,
    },
];

/// What these arguments would run or write by an option.
pub(super) fn of(name: &str, rest: &[Word]) -> Vec<Inner> {
    let mut inner = Vec::new();
    // `python3 -m pytest` is `pytest`.
    if name.starts_with("python")
        && let Some(at) = rest.iter().position(|word| word.text == "-m")
        && let Some((module, rest)) = rest[at + 1..].split_first()
    {
        let only_where_it_must_be_allowed = |inner| match inner {
            Inner::Opaque(why) => Inner::Unclear(why),
            inner => inner,
        };
        inner.extend(of(&module.text, rest).into_iter().map(only_where_it_must_be_allowed));
    }
    // A variable of make can be what a recipe runs.
    if ["make", "gmake"].contains(&name)
        && let Some(at) = rest.iter().position(|word| !word.is_option() && word.text.contains('='))
    {
        inner.extend([
            Inner::Mention(known_text(&rest[at..]).replace('=', " ")),
            Inner::Unclear("it sets a variable that a recipe could run"),
        ]);
    }
    for options in OPTIONS.iter().filter(|options| options.are_of(name, rest)) {
        for (i, word) in rest.iter().enumerate() {
            if word.text == "--" && word.is_plain() {
                break;
            }
            // Tar takes its letters without a dash too.
            let bundle = i == 0 && ["tar", "gtar", "bsdtar"].contains(&name) && !word.text.starts_with('-');
            let Some(value) = options.value(word, bundle) else { continue };
            match options.does {
                Run => inner.extend([
                    Inner::Mention(format!("{value} {}", known_text(&rest[i + 1..]))),
                    Inner::Opaque("an option names something that it runs"),
                ]),
                Decide => inner.extend([
                    Inner::Mention(format!("{value} {}", known_text(&rest[i + 1..]))),
                    Inner::Unclear("an option decides what it runs"),
                ]),
                Write if value.is_empty() => inner.extend(rest.get(i + 1).cloned().map(Inner::Output)),
                Write => inner.push(Inner::Output(Word { text: value.to_owned(), kind: word.kind })),
            }
        }
    }
    inner
}

impl Options {
    fn are_of(&self, name: &str, rest: &[Word]) -> bool {
        let is_verb = |verb: &str| rest.iter().any(|word| word.text == verb || !word.is_plain());
        self.names.iter().any(|of| match of.split_once(' ') {
            Some((program, verb)) => program == name && is_verb(verb),
            None => *of == name,
        })
    }

    /// What is attached to the option, if the word is one of these.
    fn value<'a>(&self, word: &'a Word, bundle: bool) -> Option<&'a str> {
        let text = word.text.as_str();
        if let Some(long) = text.strip_prefix("--") {
            let (long, value) = long.split_once('=').unwrap_or((long, ""));
            let is = |option: &&str| option.starts_with(long);
            return (!long.is_empty() && self.longs.iter().any(is)).then_some(value);
        }
        let letters = match text.strip_prefix(['-', '+']) {
            Some(letters) if !letters.is_empty() => letters,
            Some(_) => return None,
            None if bundle => text,
            None => return None,
        };
        // Some programs have long options with one dash.
        let (long, value) = letters.split_once('=').unwrap_or((letters, ""));
        if self.longs.contains(&long) && !bundle {
            return Some(value);
        }
        if self.shorts.contains('+') && text.starts_with('+') {
            return Some(letters);
        }
        let at = letters.find(|c| self.shorts.contains(c))?;
        // Behind the value of another option a letter means nothing, but we do not know which have one.
        (word.kind != Kind::Dynamic || at == 0).then(|| &letters[at + 1..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Vec<Inner> {
        let words: Vec<Word> = line.split(' ').map(Word::plain).collect();
        of(&words[0].text, &words[1..])
    }

    #[test]
    fn options_that_run_something_are_found_however_they_are_written() {
        for line in [
            "tar cf x --checkpoint-action=exec=y z",
            "tar cf x --checkpoint-a exec=y z",
            "tar -I ./y -cf x z",
            "tar cIf ./y x z",
            "git fetch --upload-pack=./y .",
            "git fetch --upload-pa ./y .",
            "git clone --templ=./y x",
            "sort --compress-prog=./y x",
            "ssh -oProxyCommand=./y x",
            "ssh -voProxyCommand=./y x",
            "cargo test --config x.toml",
            "go test -exec ./y",
            "gcc -wrapper ./y x.c",
            "make -E y test",
            "rg --pre ./y x",
            "jobs -x ./y",
            "git grep -O./y x",
            "git -C z grep -O ./y x",
            "awk -E y",
            "awk -i inplace y x",
            "gawk -ly x",
            "less --lesskey-src=y x",
            "man -C y x",
        ] {
            assert!(found(line).iter().any(|inner| matches!(inner, Inner::Opaque(_))), "{line}");
        }
        for line in [
            "python3 -m pytest -p y",
            "python3 -m pytest --pdb",
            "npm test --userconfig=y",
            "npm test --prefix y",
            "make test -C y",
            "make test CC=y",
            "go test -ldflags=-extld=y",
            "kubectl get x --kubeconfig=y",
            "tree -R -L 1",
        ] {
            assert!(found(line).iter().any(|inner| matches!(inner, Inner::Unclear(_))), "{line}");
        }
        for line in [
            "sort -o x y",
            "sort --outp=x y",
            "git log --outp=x",
            "git diff --output x",
            "find . -fprintf x y",
            "curl -sox y",
            "curl -o x y",
            "git archive -o x HEAD",
            "git archive -ox HEAD",
            "awk -ox y",
            "python3 -m pytest --junitxml=x y",
            "python3 -m pytest --log-file x y",
            "cargo build --target-dir x",
            "go test -coverprofile=x",
            "npm test --cache x",
            "awk --profile=x y",
            "awk --dump-variables=x y",
        ] {
            assert!(found(line).contains(&Inner::Output(Word::plain("x"))), "{line}: {:?}", found(line));
        }
        for line in [
            "tar xf x",
            "python3 -m pytest -q x -k y",
            "make -j4 test",
            "go test -v ./...",
            "npm test -s",
            "git log --oneline -1",
            "git fetch origin",
            "cargo test --workspace",
            "sort x",
            "git log -- --output",
            "git ls-files -o",
            "git grep x",
            "awk -F: -v x=1 y z",
        ] {
            assert!(found(line).is_empty(), "{line}: {:?}", found(line));
        }
    }
}
