//! Programs that run another one without executing it: the interpreter of a script, the dynamic loader, and programs
//! that are many in one file. What they run is found in their arguments, or in the first bytes of a file.

use crate::word::base;

/// How many bytes of a file the kernel looks at.
pub const HEADER_BYTES: usize = 256;
/// How many interpreters in a row the kernel follows.
pub const MAX_INTERPRETERS: usize = 5;

/// Programs that are many in one file, and choose by their own name or by their first argument.
pub const MANY_IN_ONE: &[&str] = &["busybox", "toybox", "coreutils"];

/// What a program that is many in one is told to be: each name that it could go by, and the index of the argument behind which
/// that one's own arguments begin. `busybox busybox rm` is `rm`, and so is `coreutils --coreutils-prog=rm`.
#[must_use]
pub fn applets(argv: &[String]) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    for (index, word) in argv.iter().enumerate() {
        let name = base(word).trim_start_matches('-');
        let name = name.split_once('=').filter(|(option, _)| option.starts_with("coreutils-prog"));
        let name = name.map_or_else(|| base(word).trim_start_matches('-'), |(_, name)| base(name));
        // Busybox goes by everything that begins with its name.
        if !MANY_IN_ONE.iter().any(|many| name.starts_with(many)) {
            found.push((name, index));
            // Under a name of its own it is what it is called; only else it looks at its first argument.
            if index > 0 {
                break;
            }
        }
    }
    found
}

/// The first line of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shebang {
    /// The program that runs it.
    pub interpreter: String,
    /// The only argument that the line can give to it.
    pub argument: Option<String>,
}

/// The interpreter that the first bytes of a file name, read as the kernel reads them: only blanks and tabs separate, so a
/// carriage return is a part of the name.
#[must_use]
pub fn shebang(header: &[u8]) -> Option<Shebang> {
    let line = header.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n' || *byte == 0).next()?;
    let line = trim_blanks(line);
    let end = line.iter().position(is_blank).unwrap_or(line.len());
    let (interpreter, rest) = line.split_at(end);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let rest = trim_blanks(rest);
    (!interpreter.is_empty())
        .then(|| Shebang { interpreter: text(interpreter), argument: (!rest.is_empty()).then(|| text(rest)) })
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn trim_blanks(bytes: &[u8]) -> &[u8] {
    let begin = bytes.iter().position(|byte| !is_blank(byte)).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(|byte| !is_blank(byte)).map_or(begin, |last| last + 1);
    &bytes[begin..end]
}

/// Whether a file is called like a dynamic loader, which maps a program itself instead of executing it.
#[must_use]
pub fn is_loader_name(name: &str) -> bool {
    let name = base(name);
    name == "ld.so"
        || ["ld-linux", "ld-musl-", "ld64.so", "ld-2."].iter().any(|start| name.starts_with(start))
}

/// What a loader is told to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// The program is this argument; its own arguments follow.
    Program(usize),
    /// It runs nothing: it lists, or shows its help.
    Nothing,
    /// It has an option that we do not know, so we cannot say.
    Unknown,
}

/// Which of a loader's arguments is the program that it runs.
#[must_use]
pub fn loaded(argv: &[String]) -> Loaded {
    let mut index = 1;
    while let Some(word) = argv.get(index) {
        match word.as_str() {
            "--list" | "--verify" | "--inhibit-cache" => index += 1,
            "--library-path"
            | "--inhibit-rpath"
            | "--audit"
            | "--preload"
            | "--argv0"
            | "--glibc-hwcaps-prepend"
            | "--glibc-hwcaps-mask" => index += 2,
            "--help" | "--version" | "--list-tunables" | "--list-diagnostics" => return Loaded::Nothing,
            "--" => return if index + 1 < argv.len() { Loaded::Program(index + 1) } else { Loaded::Nothing },
            option if option.starts_with('-') => return Loaded::Unknown,
            _ => return Loaded::Program(index),
        }
    }
    Loaded::Nothing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_is_read_as_the_kernel_reads_it() {
        let read = |text: &str| shebang(text.as_bytes()).map(|line| (line.interpreter, line.argument));
        let line =
            |program: &str, argument: Option<&str>| Some((program.to_owned(), argument.map(str::to_owned)));
        assert_eq!(read("#!/bin/sh\nrm x\n"), line("/bin/sh", None));
        assert_eq!(read("#! \t/usr/bin/env  -S rm -f \t\n"), line("/usr/bin/env", Some("-S rm -f")));
        assert_eq!(read("#!/x/y\r\n"), line("/x/y\r", None));
        assert_eq!(read("#!/x/y\u{b}\n"), line("/x/y\u{b}", None));
        assert_eq!(read("#!/bin/rm"), line("/bin/rm", None));
        assert_eq!(read("#!\n"), None);
        assert_eq!(read("#! \t \n"), None);
        assert_eq!(read("\x7fELF"), None);
    }

    #[test]
    fn what_is_many_in_one_is_told_what_to_be() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let names = |line: &str| {
            let words = words(line);
            applets(&words).into_iter().map(|(name, at)| (name.to_owned(), at)).collect::<Vec<_>>()
        };
        let one = |name: &str, at: usize| (name.to_owned(), at);
        assert_eq!(names("busybox rm x"), [one("rm", 1)]);
        assert_eq!(names("busybox busybox-2 /bin/rm x"), [one("rm", 2)]);
        assert_eq!(names("/x/coreutils --coreutils-prog=rm x"), [one("rm", 1)]);
        assert_eq!(names("rm x"), [one("rm", 0), one("x", 1)]);
        assert_eq!(names("-sh"), [one("sh", 0)]);
    }

    #[test]
    fn a_loader_runs_its_first_operand() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(loaded(&words("ld.so /bin/rm x")), Loaded::Program(1));
        assert_eq!(loaded(&words("ld.so --library-path /x --argv0 ls /bin/rm x")), Loaded::Program(5));
        assert_eq!(loaded(&words("ld.so --version")), Loaded::Nothing);
        assert_eq!(loaded(&words("ld.so")), Loaded::Nothing);
        assert_eq!(loaded(&words("ld.so --new-option /bin/rm")), Loaded::Unknown);
        assert!(is_loader_name("/lib64/ld-linux-x86-64.so.2") && !is_loader_name("/usr/bin/ld"));
    }
}
