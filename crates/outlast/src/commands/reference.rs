//! Completions and man pages, generated from the command line's own definition.

use std::path::Path;

use clap::CommandFactory;
use outlast_job::Failure;

use crate::cli::Cli;
use crate::output::Output;

/// Prints completions for a shell.
pub(super) fn completions(shell: clap_complete::Shell, out: &mut Output) -> i32 {
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
