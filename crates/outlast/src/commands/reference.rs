//! Completions and man pages, generated from the command line's own definition.

use std::path::Path;

use clap::CommandFactory;
use outlast_cli::{Cli, Shell};
use outlast_job::Failure;

use crate::output::Output;

/// Prints completions for a shell.
pub(super) fn completions(shell: Shell, out: &mut Output) -> i32 {
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Elvish => clap_complete::Shell::Elvish,
        Shell::Fish => clap_complete::Shell::Fish,
        Shell::PowerShell => clap_complete::Shell::PowerShell,
        Shell::Zsh => clap_complete::Shell::Zsh,
    };
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "outlast", &mut text);
    out.data(&text);
    0
}

/// Writes one page for each verb.
pub(super) fn man(folder: &Path) -> Result<i32, Failure> {
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
        .map_err(|error| Failure::system(format!("{} can't be written", folder.display()), error))?;
    Ok(0)
}
