//! Tables of known programs.

/// How a wrapper passes on its command.
#[derive(Clone, Copy, Debug)]
pub(super) enum CommandForm {
    /// As words.
    Words,
    /// As words that are joined into a shell line.
    Line,
    /// As words, with more words appended.
    More,
}

/// A program that starts another.
#[derive(Debug)]
pub(super) struct Wrapper {
    pub(super) names: &'static [&'static str],
    /// Short options with a value.
    pub(super) shorts: &'static str,
    /// Long options with a value in the next word.
    pub(super) longs: &'static [&'static str],
    /// Options whose value is a shell line.
    pub(super) lines: &'static [&'static str],
    /// How many words come before the command.
    pub(super) positionals: usize,
    /// Whether `NAME=VALUE` may come before the command.
    pub(super) assigns: bool,
    pub(super) then: CommandForm,
    /// Whether no rule would need to match the wrapper itself.
    pub(super) transparent: bool,
}

const PLAIN: Wrapper = Wrapper {
    names: &[],
    shorts: "",
    longs: &[],
    lines: &[],
    positionals: 0,
    assigns: false,
    then: CommandForm::Words,
    transparent: true,
};

/// The wrappers that are unwrapped.
pub(super) const WRAPPERS: &[Wrapper] = &[
    // Shell keywords that the grammar takes for programs.
    Wrapper {
        names: &["{", "!", "then", "do", "else", "elif", "if", "while", "until", "function", "select"],
        ..PLAIN
    },
    Wrapper {
        names: &["nohup", "setsid", "builtin", "coproc", "busybox", "toybox", "nocache", "eatmydata"],
        ..PLAIN
    },
    Wrapper { names: &["command", "exec"], shorts: "a", ..PLAIN },
    Wrapper { names: &["time"], shorts: "fo", longs: &["format", "output"], ..PLAIN },
    Wrapper {
        names: &["env"],
        shorts: "uC",
        longs: &["unset", "chdir"],
        lines: &["S", "split-string"],
        assigns: true,
        ..PLAIN
    },
    Wrapper { names: &["nice"], shorts: "n", longs: &["adjustment"], ..PLAIN },
    Wrapper { names: &["ionice"], shorts: "cnpPu", longs: &["class", "classdata"], ..PLAIN },
    Wrapper { names: &["stdbuf"], shorts: "ioe", longs: &["input", "output", "error"], ..PLAIN },
    Wrapper { names: &["timeout"], shorts: "ks", longs: &["kill-after", "signal"], positionals: 1, ..PLAIN },
    Wrapper { names: &["chrt", "taskset"], positionals: 1, shorts: "TPD", ..PLAIN },
    Wrapper {
        names: &["sudo"],
        shorts: "ughpCTRDtr",
        longs: &[
            "user",
            "group",
            "host",
            "prompt",
            "close-from",
            "command-timeout",
            "chroot",
            "chdir",
            "role",
            "type",
        ],
        assigns: true,
        transparent: false,
        ..PLAIN
    },
    Wrapper { names: &["doas"], shorts: "uC", transparent: false, ..PLAIN },
    Wrapper {
        names: &["su", "runuser"],
        shorts: "gGsu",
        lines: &["c", "command"],
        positionals: 1,
        transparent: false,
        ..PLAIN
    },
    Wrapper {
        names: &["chroot"],
        longs: &["userspec", "groups"],
        positionals: 1,
        transparent: false,
        ..PLAIN
    },
    Wrapper { names: &["unshare", "setpriv", "fakeroot", "proot"], transparent: false, ..PLAIN },
    Wrapper { names: &["nsenter"], shorts: "tSG", longs: &["target"], transparent: false, ..PLAIN },
    Wrapper { names: &["strace", "ltrace"], shorts: "eopPsSuabIOEX", transparent: false, ..PLAIN },
    Wrapper {
        names: &["script"],
        shorts: "mEIOBTo",
        lines: &["c", "command"],
        positionals: 1,
        transparent: false,
        ..PLAIN
    },
    Wrapper { names: &["flock"], shorts: "wE", lines: &["c", "command"], positionals: 1, ..PLAIN },
    Wrapper {
        names: &["xargs"],
        shorts: "adEILnPs",
        longs: &[
            "arg-file",
            "delimiter",
            "max-lines",
            "max-args",
            "max-procs",
            "max-chars",
            "process-slot-var",
        ],
        then: CommandForm::More,
        ..PLAIN
    },
    Wrapper { names: &["parallel"], shorts: "jIaSN", then: CommandForm::Line, transparent: false, ..PLAIN },
    Wrapper { names: &["watch"], shorts: "nq", longs: &["interval"], then: CommandForm::Line, ..PLAIN },
    Wrapper { names: &["eval"], then: CommandForm::Line, ..PLAIN },
    Wrapper {
        names: &["ssh", "autossh"],
        shorts: "BbcDEeFIiJLlmOopQRSWw",
        positionals: 1,
        then: CommandForm::Line,
        transparent: false,
        ..PLAIN
    },
    Wrapper {
        names: &["systemd-run"],
        shorts: "puGtMH",
        longs: &["unit", "property", "uid", "gid"],
        transparent: false,
        ..PLAIN
    },
];

/// Programs that run commands that are typed into them.
pub(crate) const SHELLS: &[&str] = &[
    "sh",
    "bash",
    "rbash",
    "dash",
    "ash",
    "zsh",
    "ksh",
    "ksh93",
    "mksh",
    "lksh",
    "pdksh",
    "yash",
    "posh",
    "fish",
    "csh",
    "tcsh",
    "rc",
    "es",
    "pwsh",
    "powershell",
    "nu",
    "xonsh",
    "elvish",
    "osh",
    "oil",
];

/// Shells with a syntax that we can read.
pub(super) const BASH_LIKE_SHELLS: &[&str] = &[
    "sh", "bash", "rbash", "dash", "ash", "zsh", "ksh", "ksh93", "mksh", "lksh", "pdksh", "yash", "posh",
    "osh",
];

/// Programs that may have a shell behind them.
pub(crate) const MAY_START_SHELL: &[&str] = &[
    "ssh",
    "autossh",
    "mosh",
    "mosh-client",
    "telnet",
    "rlogin",
    "su",
    "sudo",
    "doas",
    "runuser",
    "login",
    "tmux",
    "screen",
    "zellij",
    "abduco",
    "dtach",
    "dvtm",
    "shpool",
    "docker",
    "podman",
    "nerdctl",
    "kubectl",
    "oc",
    "machinectl",
    "lxc",
    "incus",
    "nsenter",
    "chroot",
    "unshare",
    "bwrap",
    "firejail",
    "script",
    "expect",
    "socat",
    "nc",
    "ncat",
    "busybox",
    "toybox",
    "outlast",
    "adb",
    "vagrant",
    "wsl",
    "minicom",
    "picocom",
    "cu",
];

/// Interpreters that can run anything, given as a text.
pub(super) const INTERPRETERS: &[&str] = &[
    "python",
    "python2",
    "python3",
    "pypy",
    "pypy3",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "deno",
    "bun",
    "php",
    "lua",
    "luajit",
    "tclsh",
    "wish",
    "expect",
    "osascript",
    "Rscript",
    "R",
    "guile",
    "racket",
    "sbcl",
    "ghci",
    "runghc",
    "runhaskell",
    "jshell",
    "groovy",
    "scala",
    "julia",
    "elixir",
    "iex",
    "erl",
    "irb",
    "ipython",
    "ipython3",
    "raku",
    "ocaml",
    "swift",
    "sqlite3",
    "psql",
    "mysql",
    "gdb",
    "lldb",
    "m4",
    "emacs",
    "vim",
    "vi",
    "nvim",
    "ex",
    "view",
    "ed",
    "octave",
    "bc",
    "dc",
    "jq",
];

/// The interpreters whose code cannot run a command.
pub(super) const CANNOT_RUN_COMMANDS: &[&str] = &["jq", "bc"];

/// Programs that do not run their arguments: they only print, inspect, move or delete. A rule can still match
/// them.
pub(super) const ARGUMENTS_NOT_RUN: &[&str] = &[
    "echo",
    "printf",
    "cat",
    "tac",
    "ls",
    "dir",
    "pwd",
    "cd",
    "pushd",
    "popd",
    "dirs",
    "true",
    "false",
    ":",
    "test",
    "[",
    "grep",
    "egrep",
    "fgrep",
    "head",
    "tail",
    "wc",
    "uniq",
    "cut",
    "tr",
    "nl",
    "fold",
    "expand",
    "paste",
    "join",
    "comm",
    "diff",
    "cmp",
    "stat",
    "file",
    "du",
    "df",
    "free",
    "ps",
    "pgrep",
    "top",
    "uptime",
    "who",
    "whoami",
    "id",
    "groups",
    "uname",
    "hostname",
    "date",
    "cal",
    "sleep",
    "wait",
    "seq",
    "mkdir",
    "rmdir",
    "touch",
    "basename",
    "dirname",
    "realpath",
    "readlink",
    "which",
    "whereis",
    "type",
    "help",
    "apropos",
    "md5sum",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "b2sum",
    "cksum",
    "base64",
    "xxd",
    "od",
    "hexdump",
    "strings",
    "column",
    "rev",
    "shuf",
    "numfmt",
    "chmod",
    "chown",
    "chgrp",
    "umask",
    "ulimit",
    "read",
    "shift",
    "return",
    "exit",
    "break",
    "continue",
    "set",
    "unset",
    "local",
    "jobs",
    "fg",
    "bg",
    "disown",
    "kill",
    "logger",
    "clear",
    "reset",
    "tput",
    "getconf",
    "nproc",
    "lscpu",
    "lsblk",
    "printenv",
    "locale",
    "history",
    "tree",
    "rm",
    "mv",
    "cp",
    "git",
    "jq",
    "bc",
    "gzip",
    "gunzip",
    "zcat",
    "xz",
    "bzip2",
    "unzip",
];

/// Variables that name a file to run, or a library to load.
pub(super) const RUNS_FILES: &[&str] = &[
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "SHELLOPTS",
    "BASHOPTS",
    "LD_PRELOAD",
    "LD_AUDIT",
    "LESSOPEN",
    "LESSCLOSE",
    "PERL5OPT",
    "PERL5DB",
    "PYTHONSTARTUP",
    "PYTHONINSPECT",
    "RUBYOPT",
    "NODE_OPTIONS",
    "INPUTRC",
    "ZDOTDIR",
    "BASH_ALIASES",
    "BASH_CMDS",
    "HISTFILE",
    "MAKEFLAGS",
    "GIT_EXEC_PATH",
];

/// Prompts: a shell runs substitutions in them.
pub(super) const PROMPTS: &[&str] = &["PS0", "PS1", "PS2", "PS3", "PS4"];

/// Like [`RUNS_FILES`], by prefix.
pub(super) const RUNS_FILES_LIKE: &[&str] = &["BASH_FUNC_", "GIT_CONFIG"];

/// Variables whose value is a command.
pub(super) const COMMAND_VARIABLES: &[&str] = &[
    "PAGER",
    "GIT_PAGER",
    "MANPAGER",
    "SYSTEMD_PAGER",
    "EDITOR",
    "VISUAL",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "SUDO_EDITOR",
    "FCEDIT",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "GIT_EXTERNAL_DIFF",
    "GIT_PROXY_COMMAND",
    "BROWSER",
    "RSYNC_RSH",
    "CVS_RSH",
    "SHELL",
    "CC",
    "CXX",
    "FZF_DEFAULT_COMMAND",
];

/// Variables whose value is not a command itself, but is judged as one to be on the safe side: options that
/// can name a command to run, and values that a program may pass on to a shell.
pub(super) const JUDGED_AS_COMMANDS: &[&str] = &["TAR_OPTIONS", "WATCH_INTERVAL", "MAIL"];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Decision, Policy, Tool};

    /// Command lines that use every column of a row.
    fn lines(wrapper: &Wrapper, name: &str) -> Vec<String> {
        let before = "1 ".repeat(wrapper.positionals);
        let plain = std::iter::once(String::new());
        let shorts = wrapper.shorts.chars().map(|short| format!("-{short} 1 "));
        let longs = wrapper.longs.iter().map(|long| format!("--{long} 1 "));
        let assigned = wrapper.assigns.then(|| "A=1 ".to_owned());
        let options = plain.chain(shorts).chain(longs).chain(assigned);
        let words = options.map(|option| format!("{name} {option}{before}rm x"));
        let in_a_line = wrapper.lines.iter().map(|option| {
            let dashes = if option.len() == 1 { "-" } else { "--" };
            format!("{name} {before}{dashes}{option} 'rm x'")
        });
        words.chain(in_a_line).collect()
    }

    /// A row that is wrong would let a denied command through without a sound.
    #[test]
    fn what_every_wrapper_runs_is_found() {
        let rule = "[[rule]]\ndecision = \"deny\"\nprefix = \"rm\"\n";
        let policy = Policy::parse(Path::new("policy.toml"), rule).expect("a rule");
        let through: Vec<String> = WRAPPERS
            .iter()
            .flat_map(|wrapper| wrapper.names.iter().map(move |name| (wrapper, name)))
            .flat_map(|(wrapper, name)| lines(wrapper, name))
            .filter(|line| policy.judge_line(Tool::Run, line).decision == Decision::Allow)
            .collect();
        assert!(through.is_empty(), "{through:#?}");
    }
}
