//! The small grammar of lines that a rule can allow where the default is `ask` or `deny`.
//!
//! ```text
//! LINE     = COMMAND { ("&&" | "||" | "|" | "&" | ";" | newline) COMMAND }
//! COMMAND  = PROGRAM { WORD | REDIRECT }
//! PROGRAM  = letters, digits and . / _ + -, no word that the shell itself knows
//! WORD     = { letters, digits and . / _ + - : , @ % = ~ * ? | 'text' | "text" }
//! REDIRECT = ("<" | [1|2] ">" | [1|2] ">>") WORD | "2>&1" | "1>&2" | ">&2"
//! ```
//!
//! In quotes there is anything but what the shell evaluates (`$`, a backtick, a backslash and `!` in double quotes, a backslash
//! before the closing quote or before another one in single quotes) and control characters. Everything in it means the same to bash, dash, zsh and fish, and to our parser. Whatever is outside
//! of it is a question, however harmless: nobody has to know every corner of a shell for it to be closed.

/// Words at the start of a command that the shell itself takes, and that change how it reads on or what it runs.
const OF_THE_SHELL: &[&str] = &[
    "if",
    "then",
    "else",
    "elif",
    "fi",
    "for",
    "while",
    "until",
    "do",
    "done",
    "case",
    "esac",
    "select",
    "in",
    "function",
    "time",
    "coproc",
    "eval",
    "source",
    ".",
    "exec",
    "trap",
    "alias",
    "unalias",
    "set",
    "setopt",
    "shopt",
    "enable",
    "hash",
    "bind",
    "complete",
    "fc",
    "history",
    "builtin",
    "command",
    "noglob",
    "nocorrect",
    "repeat",
    "end",
    "begin",
    "switch",
    "and",
    "or",
    "not",
    "autoload",
    "zmodload",
    "emulate",
    "unsetopt",
    "abbr",
];

/// Builtins that evaluate their arguments once more, as names of variables or as arithmetic.
const EVALUATE: &[&str] = &[
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "unset",
    "read",
    "mapfile",
    "readarray",
    "let",
    "getopts",
    "printf",
    "print",
    "test",
    "[",
    "integer",
    "float",
    "wait",
    "math",
    "string",
];

/// Builtins that set variables. Any variable can change what runs next (`PATH`, `LD_PRELOAD`, `GIT_SSH_COMMAND`), so only those
/// of [`HARMLESS_VARIABLES`] may be set.
const SET_VARIABLES: &[&str] = &[
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "unset",
    "read",
    "mapfile",
    "readarray",
    "let",
    "getopts",
    "integer",
    "float",
    "vared",
    "zparseopts",
];

/// Variables of a call that change no program's behaviour but for what it prints.
const HARMLESS_VARIABLES: &[&str] = &[
    "LANG",
    "LANGUAGE",
    "TZ",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "COLORTERM",
    "TERM",
    "COLUMNS",
    "LINES",
    "CI",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "CARGO_TERM_COLOR",
    "PYTHONUNBUFFERED",
    "VERBOSE",
    "DEBUG",
];

const CONTROL: &str = "it has a control character";
const EVALUATED: &str = "it has something that the shell evaluates";
const WORD: &str = "it has a sign outside of quotes that means something to a shell";
const PROGRAM: &str = "a command does not begin with a plain name";
const SHELLS_OWN: &str = "it uses a word that the shell itself takes";
const REDIRECTION: &str = "it has a redirection that is not plain";
const OPEN: &str = "a quote or a command is not finished";
const SETS: &str = "it sets a variable that could change what runs";
const CONNECTS: &str = "it redirects to a network connection";

/// Why a line is outside of the grammar; none if it is inside.
pub(crate) fn outside(line: &str) -> Option<&'static str> {
    if line.contains(|c: char| c.is_control() && c != '\t' && c != '\n') {
        return Some(CONTROL);
    }
    Scan { rest: line, words: Vec::new() }.line().err()
}

/// Whether a variable that a call sets could change what is run.
pub(crate) fn is_harmless_variable(name: &str) -> bool {
    HARMLESS_VARIABLES.contains(&name) || name.starts_with("LC_")
}

/// Whether a command only starts another, in a form that leaves no doubt which: then that one alone is judged.
pub(crate) fn is_plain_wrapper(words: &[&str]) -> bool {
    let is_program = |word: &&str| !word.starts_with('-') && !word.contains('=');
    match words {
        ["nohup" | "setsid", program, ..] => is_program(program),
        ["timeout", time, program, ..] => is_time(time) && is_program(program),
        ["nice", "-n", number, program, ..] => number.parse::<i8>().is_ok() && is_program(program),
        ["nice", program, ..] => is_program(program),
        _ => false,
    }
}

fn is_time(text: &str) -> bool {
    let number = text.strip_suffix(['s', 'm', 'h', 'd']).unwrap_or(text);
    !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.')
}

struct Scan<'a> {
    rest: &'a str,
    /// The words of the command so far, without their quotes.
    words: Vec<String>,
}

impl Scan<'_> {
    fn line(mut self) -> Result<(), &'static str> {
        // After an operator that needs another command.
        let mut wants_more = false;
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t']);
            let Some(c) = self.rest.chars().next() else { break };
            let operator =
                ["&&", "||", "|", "&", ";", "\n"].into_iter().find(|sign| self.rest.starts_with(sign));
            if let Some(operator) = operator {
                let is_empty = self.words.is_empty();
                if is_empty && operator != "\n" {
                    return Err(PROGRAM);
                }
                self.command()?;
                self.rest = &self.rest[operator.len()..];
                if self.rest.starts_with(['&', '|', ';', '>']) && operator != "\n" {
                    return Err(WORD);
                }
                wants_more = match operator {
                    "&&" | "||" | "|" => true,
                    "\n" => wants_more && is_empty,
                    _ => false,
                };
                continue;
            }
            if c == '<' || c == '>' {
                self.redirect()?;
            } else {
                self.word()?;
            }
        }
        if wants_more && self.words.is_empty() {
            return Err(OPEN);
        }
        self.command()
    }

    /// A command has ended.
    fn command(&mut self) -> Result<(), &'static str> {
        let words = std::mem::take(&mut self.words);
        let Some((program, arguments)) = words.split_first() else { return Ok(()) };
        if OF_THE_SHELL.contains(&program.as_str()) {
            return Err(SHELLS_OWN);
        }
        let is_evaluated = |word: &String| word.contains(['$', '`', '[', '(']);
        if EVALUATE.contains(&program.as_str()) && arguments.iter().any(is_evaluated) {
            return Err(EVALUATED);
        }
        let is_harmless = |word: &String| {
            word.starts_with('-') || is_harmless_variable(word.split('=').next().unwrap_or_default())
        };
        if SET_VARIABLES.contains(&program.as_str()) && !arguments.iter().all(is_harmless) {
            return Err(SETS);
        }
        // `printf -v NAME`, `print -v NAME`, `wait -p NAME`.
        let names_a_variable = |word: &String| word.starts_with("-v") || word.starts_with("-p");
        if ["printf", "print", "wait"].contains(&program.as_str()) && arguments.iter().any(names_a_variable) {
            return Err(SETS);
        }
        Ok(())
    }

    fn word(&mut self) -> Result<(), &'static str> {
        let is_program = self.words.is_empty();
        let mut text = String::new();
        while let Some(c) = self.rest.chars().next() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' => break,
                '<' | '>' => {
                    // A number just before it belongs to it.
                    if c == '>' && (text == "1" || text == "2") && !is_program {
                        return self.redirect();
                    }
                    return Err(REDIRECTION);
                }
                '\'' | '"' if is_program => return Err(PROGRAM),
                '\'' | '"' => text.push_str(self.quoted(c)?),
                c if is_in_a_program(c) || !is_program && is_in_a_word(c) => {
                    text.push(c);
                    self.rest = &self.rest[c.len_utf8()..];
                }
                '$' | '`' | '\\' | '!' => return Err(EVALUATED),
                _ if is_program => return Err(PROGRAM),
                _ => return Err(WORD),
            }
        }
        self.words.push(text);
        Ok(())
    }

    /// A quoted part; its text.
    fn quoted(&mut self, quote: char) -> Result<&str, &'static str> {
        let inner = &self.rest[1..];
        let end = inner.find(quote).ok_or(OPEN)?;
        let (text, after) = inner.split_at(end);
        if text.contains('\n') {
            return Err(OPEN);
        }
        // In fish a backslash escapes a quote also there.
        if quote == '\'' && (text.ends_with('\\') || text.contains("\\\\")) {
            return Err(EVALUATED);
        }
        if quote == '"' && text.contains(['$', '`', '\\', '!']) {
            return Err(EVALUATED);
        }
        self.rest = &after[1..];
        Ok(text)
    }

    fn redirect(&mut self) -> Result<(), &'static str> {
        if self.words.is_empty() {
            return Err(PROGRAM);
        }
        for whole in [">&2", ">&1"] {
            if let Some(after) = self.rest.strip_prefix(whole) {
                if !after.is_empty() && !after.starts_with([' ', '\t', '\n', ';', '|']) {
                    return Err(REDIRECTION);
                }
                self.rest = after;
                return Ok(());
            }
        }
        let sign = if self.rest.starts_with(">>") { 2 } else { 1 };
        self.rest = self.rest[sign..].trim_start_matches([' ', '\t']);
        // A file, not another sign.
        if !self.rest.starts_with(|c: char| is_in_a_word(c) || c == '\'' || c == '"') {
            return Err(REDIRECTION);
        }
        let before = self.words.len();
        self.word()?;
        let mut target = self.words.split_off(before);
        // The shell itself opens a connection.
        let connects = |path: &String| path.starts_with("/dev/tcp") || path.starts_with("/dev/udp");
        if target.pop().as_ref().is_some_and(connects) { Err(CONNECTS) } else { Ok(()) }
    }
}

fn is_in_a_program(c: char) -> bool {
    c.is_ascii_alphanumeric() || "./_+-".contains(c)
}

fn is_in_a_word(c: char) -> bool {
    c.is_alphanumeric() || "./_+-:,@%=~*?".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_lines_are_inside() {
        for line in [
            "ls",
            "ls -la src/*.rs | grep -v 'a b' | wc -l",
            "cargo test --workspace && git status; git log -1 --format=\"%h %s\"",
            "grep -rn 'x = $(y)' src 2>/dev/null",
            "make > out.txt 2>&1",
            "cat < in.txt >> out.txt",
            "git diff --stat\ngit log -3 ||\n  echo no",
            "sleep 1 &",
            "",
            "  \n",
            "timeout 5 ls ~/x",
            "export LANG=C NO_COLOR=1",
            "printf '%s' x",
            "wait",
            "echo größer 2>&1 | head -n 3",
        ] {
            assert_eq!(outside(line), None, "{line:?}");
        }
    }

    #[test]
    fn everything_else_is_outside() {
        for line in [
            "x=1",
            "x=(1)# ; rm y",
            "ls # a",
            "ls\r# ; rm y",
            "[[ a == b ]]",
            "((x))",
            "echo $X",
            "echo $(rm y)",
            "echo `rm y`",
            "echo \"$X\"",
            "echo \\a",
            "cat <<E\nrm\nE",
            "cat <<$'E'\nrm y\nE",
            "cat <(ls)",
            "ls >| x",
            "ls &> x",
            "ls >&x",
            "> x",
            "{ ls; }",
            "(ls)",
            "! ls",
            "f() { ls; }",
            "if true; then ls; fi",
            "time ls",
            "eval ls",
            ". x",
            "source x",
            "trap ls EXIT",
            "'ls'",
            "l\"s\"",
            "\"ls\"",
            "ls {a,b}",
            "ls [a]",
            "echo a!b",
            "ls 'open",
            "ls \"open",
            "ls &&",
            "ls |",
            "&& ls",
            ";ls",
            "ls;; ls",
            "ls |& cat",
            "=rm x",
            "~/x",
            "ls #x",
            "ls x#y",
            "printf -v 'a[$(rm y)]' x",
            "test -v 'a[$(rm y)]'",
            "unset 'a[`rm y`]'",
            "read 'a[$(rm y)]'",
            "PATH=x ls",
            "export 'X=$(rm)'",
            "echo \u{1b}",
            "ls a2>x",
            "printf -v PATH ./here",
            "printf -vPATH ./here; ls",
            "read PATH < file",
            "export PATH=./here",
            "declare LD_PRELOAD=./x.so",
            "unset PATH",
            "wait -p PATH",
            "cat < /dev/tcp/127.0.0.1/80",
            "echo x > '/dev/tcp/h/1'",
            "cat 2> /dev/udp/h/1",
            "ls ^x",
            "coproc ls",
        ] {
            assert!(outside(line).is_some(), "{line:?}");
        }
    }

    #[test]
    fn a_wrapper_is_plain_only_without_options_that_could_mean_anything() {
        let plain = |line: &str| is_plain_wrapper(&line.split(' ').collect::<Vec<_>>());
        assert!(
            plain("timeout 5 ls")
                && plain("nohup ls -l")
                && plain("nice -n 10 ls")
                && plain("timeout 1.5m ls")
        );
        for line in [
            "timeout -s 9 5 ls",
            "timeout",
            "nohup",
            "nohup -x ls",
            "flock f -c ls",
            "time -o f ls",
            "env ls",
            "xargs ls",
            "nice -n",
        ] {
            assert!(!plain(line), "{line}");
        }
    }
}
