//! What reads the input of a job, by what the kernel says about its processes.

use outlast_job::request::ProcessDetail;
use outlast_job::wire::Level;
use outlast_job::{Failure, Job};

use crate::typed::Reader;
use crate::unwrap::{MAY_START_SHELL, SHELLS};
use crate::word::base;

/// What reads the input. What a program does not read stays in the terminal, for the shell that started it.
/// So a shell anywhere in the job counts, unless another program is known to read now.
pub(super) fn of(job: &Job) -> Result<Reader, Failure> {
    // A job without a keeper takes no input.
    let Some(status) = job.status()? else { return Ok(Reader::Shell) };
    // The machine that it is on looks at them.
    let processes = job.processes()?;
    let shell = processes.is_empty() || processes.iter().any(reads_commands);
    let reading = status.awaiting_input.as_ref().filter(|awaiting| awaiting.level != Level::Possible);
    let program = reading.map(|awaiting| &awaiting.evidence).filter(|evidence| evidence.pid > 0);
    let is_shell =
        |pid: i32| processes.iter().any(|detail| detail.process.pid == pid && reads_commands(detail));
    let other = processes.iter().find_map(other_shell);
    // Nobody reads now, and a shell that has its orders may start another that will.
    let later = processes.iter().find_map(shell_name).filter(|_| !shell);
    let of_shell = move || other.map_or(Reader::Shell, |program| Reader::OtherShell { program });
    Ok(match program {
        Some(evidence) if is_shell(evidence.pid) => of_shell(),
        Some(evidence) if shell => Reader::Before { program: evidence.program.clone() },
        Some(evidence) => Reader::Program { program: evidence.program.clone() },
        None if shell => of_shell(),
        None => later.map_or_else(
            || {
                let program = processes.last().map(|detail| detail.process.program.clone());
                Reader::Program { program: program.unwrap_or_default() }
            },
            |program| Reader::OtherShell { program },
        ),
    })
}

/// Whether a process runs commands that are typed: a shell without a command or script of its own, or a
/// program that may have one behind it.
fn reads_commands(detail: &ProcessDetail) -> bool {
    let names = [detail.file.as_deref().unwrap_or_default(), &detail.process.program];
    let names: Vec<&str> = names.iter().map(|name| base(name).trim_start_matches('-')).collect();
    if names.iter().any(|name| MAY_START_SHELL.contains(name)) {
        return true;
    }
    names.iter().any(|name| SHELLS.contains(name)) && !has_its_orders(&detail.arguments)
}

/// The name of what takes commands and is not known to be bash: another shell, or a program with any shell behind it.
fn other_shell(detail: &ProcessDetail) -> Option<String> {
    if !reads_commands(detail) {
        return None;
    }
    let names = [detail.file.as_deref().unwrap_or_default(), &detail.process.program];
    let behind = names.iter().map(|name| base(name)).find(|name| MAY_START_SHELL.contains(name));
    behind
        .map(str::to_owned)
        .or_else(|| shell_name(detail).filter(|name| !["bash", "rbash"].contains(&name.as_str())))
}

/// The name of a shell, whatever it does.
fn shell_name(detail: &ProcessDetail) -> Option<String> {
    let program = detail.file.as_ref().unwrap_or(&detail.process.program);
    let name = base(program).trim_start_matches('-').to_owned();
    SHELLS.contains(&name.as_str()).then_some(name)
}

/// Whether a shell was started with a command or a script to run.
fn has_its_orders(arguments: &[String]) -> bool {
    let mut arguments = arguments.iter().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "-" || argument == "--" {
            // The end of its options.
            return arguments.next().is_some();
        }
        let is_option = argument.len() > 1 && (argument.starts_with('-') || argument.starts_with('+'));
        if !is_option {
            return true;
        }
        if argument.starts_with("--") {
            if ["--rcfile", "--init-file"].contains(&argument.as_str()) {
                arguments.next();
            }
            continue;
        }
        // Interactive, or told to read its stdin: it takes commands in any case.
        if argument.contains(['i', 's']) {
            return false;
        }
        if argument.contains('c') {
            return true;
        }
        if argument.ends_with(['o', 'O']) {
            arguments.next();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_with_a_command_or_script_reads_none() {
        let given = |line: &str| has_its_orders(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for line in ["bash -c x", "sh -ec x", "bash script.sh", "bash -o pipefail -c x", "bash --norc -c x"] {
            assert!(given(line), "{line}");
        }
        for line in [
            "bash",
            "-bash",
            "bash -",
            "sh --",
            "bash -i",
            "bash -l",
            "sh -s x",
            "bash --rcfile x -i",
            "zsh -o extendedglob",
        ] {
            assert!(!given(line), "{line}");
        }
    }
}
