//! Puts the program on a machine that does not have it, through the same connection and with nothing but a plain `sh` at the other end: no download, no
//! compiler, no root. Versions stay side by side, since keepers of running jobs use theirs.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use outlast_protocol::{Failure, Kind};

use crate::hosts::{Reach, Sharing};

/// Says what machine it is.
const WHICH: &str = "uname -s; uname -m";

/// What was put where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// The version, as the program says itself on that machine.
    pub version: String,
    /// Where it is there.
    pub path: String,
    /// How many bytes were sent.
    pub bytes: usize,
}

/// Puts a program on a host: the one that is given, else this one if it runs there.
///
/// # Errors
/// [`Kind::Unreachable`], or that there is no program for that machine.
pub fn install(reach: &Reach, binary: Option<&Path>) -> Result<Installed, Failure> {
    if let Reach::Command(_) = reach {
        return Err(Failure::usage("a host that is reached by command: gives only a pipe to a relay")
            .hint("put outlast there by yourself, or add it as ssh:, docker:, podman: or kubectl:"));
    }
    let said = run(reach, WHICH, &[])?;
    let mut lines = said.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    let (machine, system) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    if system != "Linux" {
        return Err(Failure::usage(format!("that machine is {system:?}, and outlast runs on Linux")));
    }
    let program = choose(binary, machine)?;
    let bytes = std::fs::read(&program)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", program.display())))?;
    check(&bytes, machine, binary.is_some())?;
    let said = run(reach, &receive(&sum(&bytes)), &bytes)?;
    let installed = said.lines().find_map(|line| line.strip_prefix("installed ")?.split_once(' '));
    let Some((version, path)) = installed else {
        let why = said.lines().last().unwrap_or("it said nothing").to_owned();
        return Err(Failure::new(Kind::Unreachable, format!("the program was not put there: {why}")));
    };
    Ok(Installed { version: version.to_owned(), path: path.to_owned(), bytes: bytes.len() })
}

/// What takes the program in: it is tried before anybody can run it by its name. There is no single quote in it.
fn receive(sum: &str) -> String {
    format!(
        ": \"${{HOME:=$PWD}}\"; export HOME; D=\"${{XDG_DATA_HOME:-$HOME/.local/share}}/outlast/bin\"; T=\"$D/.new.$$\"; \
         mkdir -p \"$D\" && cat > \"$T\" && chmod 755 \"$T\" || exit 1; \
         S=$( (sha256sum \"$T\" || shasum -a 256 \"$T\") 2>/dev/null | cut -d\" \" -f1 ); \
         if [ -n \"$S\" ] && [ \"$S\" != {sum} ]; then rm -f \"$T\"; echo it arrived damaged >&2; exit 1; fi; \
         V=$(\"$T\" --version) || {{ rm -f \"$T\"; echo it does not run there >&2; exit 1; }}; V=\"${{V#outlast }}\"; \
         mkdir -p \"$D/$V\" && mv -f \"$T\" \"$D/$V/outlast\" && rm -f \"$D/current\" && ln -s \"$V\" \"$D/current\" && \
         echo \"installed $V $D/$V/outlast\""
    )
}

/// Runs a line there and gives it bytes; what it printed.
fn run(reach: &Reach, line: &str, input: &[u8]) -> Result<String, Failure> {
    let command = reach.run(line, Sharing::Shared);
    let unreachable = |why: String| Failure::new(Kind::Unreachable, format!("cannot be reached: {why}"));
    let Some((program, arguments)) = command.split_first() else { return Err(unreachable(String::new())) };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| unreachable(format!("cannot run {program}: {error}")))?;
    let stdin = child.stdin.take();
    let written = std::thread::scope(|scope| {
        let writer = scope.spawn(move || stdin.map_or(Ok(()), |mut stdin| stdin.write_all(input)));
        let output = child.wait_with_output();
        (writer.join(), output)
    });
    let output = written.1.map_err(|error| unreachable(error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let why = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it failed without a word");
    Err(unreachable(why.trim().to_owned()))
}

/// The program for a machine: the given one, else this one, else what a package put beside our data.
fn choose(binary: Option<&Path>, machine: &str) -> Result<PathBuf, Failure> {
    if let Some(binary) = binary {
        return Ok(binary.to_owned());
    }
    let own = PathBuf::from("/proc/self/exe");
    if let Ok(bytes) = std::fs::read(&own)
        && check(&bytes, machine, false).is_ok()
    {
        return Ok(own);
    }
    let packaged = data_folders()
        .into_iter()
        .map(|folder| folder.join("outlast/binaries").join(machine).join("outlast"));
    packaged.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        Failure::usage(format!(
            "this program does not run on that machine ({machine}): it is not static, or for another kind"
        ))
        .hint("name one that does: outlast host add NAME REACH --bootstrap --binary FILE")
    })
}

fn data_folders() -> Vec<PathBuf> {
    let var = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let own = var("XDG_DATA_HOME").or_else(|| var("HOME").map(|home| home.join(".local/share")));
    own.into_iter().chain([PathBuf::from("/usr/local/share"), PathBuf::from("/usr/share")]).collect()
}

/// Whether a program can run on a machine: of its kind and, unless the user has chosen it, without libraries that may not be there.
fn check(bytes: &[u8], machine: &str, chosen: bool) -> Result<(), Failure> {
    const INTERPRETER: u32 = 3;
    let word = |at: usize| bytes.get(at..at + 2).map(|two| u16::from_le_bytes([two[0], two[1]]));
    if bytes.get(..5) != Some(b"\x7fELF\x02") {
        return Err(Failure::usage("it is not a program for 64-bit Linux"));
    }
    let wanted = match machine {
        "x86_64" | "amd64" => 62,
        "aarch64" | "arm64" => 183,
        "riscv64" => 243,
        other => return Err(Failure::usage(format!("there is no outlast for {other}"))),
    };
    if word(18) != Some(wanted) {
        return Err(Failure::usage(format!("it is a program for another kind of machine than {machine}")));
    }
    let headers = bytes
        .get(32..40)
        .map_or(0, |at| usize::try_from(u64::from_le_bytes(at.try_into().unwrap_or_default())).unwrap_or(0));
    let (size, count) = (usize::from(word(54).unwrap_or(0)), usize::from(word(56).unwrap_or(0)));
    let kind = |i: usize| {
        bytes
            .get(headers + i * size..headers + i * size + 4)
            .map(|four| u32::from_le_bytes(four.try_into().unwrap_or_default()))
    };
    if !chosen && (0..count).any(|i| kind(i) == Some(INTERPRETER)) {
        return Err(Failure::usage(
            "it is not static: it needs the libraries of the machine it was built on",
        ));
    }
    Ok(())
}

fn sum(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_taken_only_for_its_own_kind_of_machine() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let here = std::env::consts::ARCH;
        assert!(check(&own, here, true).is_ok());
        let other = if here == "x86_64" { "aarch64" } else { "x86_64" };
        assert!(check(&own, other, true).is_err());
        assert!(check(b"#!/bin/sh\n", here, true).is_err());
        assert!(!receive("0").contains('\''));
    }
}
