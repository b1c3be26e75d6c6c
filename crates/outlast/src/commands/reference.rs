//! Completions and man pages, generated from the command line's own definition.

use std::path::Path;

use clap::CommandFactory;
use outlast_cli::{Cli, Shell};
use outlast_job::Failure;

use crate::output::Output;

/// Prints completions for a shell.
pub(super) fn completions(shell: Shell, out: &mut Output) -> i32 {
    let script = crate::completion::script(shell);
    if out.json {
        out.value(&serde_json::json!({ "script": String::from_utf8_lossy(&script) }));
    } else {
        out.data(&script);
    }
    0
}

/// Writes one page for each verb.
pub(super) fn man(folder: &Path) -> Result<i32, Failure> {
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
        .map_err(|error| Failure::system(format!("{} can't be written", folder.display()), error))?;
    Ok(0)
}
