//! Completions and man pages, generated from the command line's own definition.

mod man;

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
pub(super) fn man(folder: &Path, out: &mut Output) -> Result<i32, Failure> {
    let unwritable = |error| Failure::system(format!("{} can't be written", folder.display()), error);
    std::fs::create_dir_all(folder).map_err(unwritable)?;
    let mut files = Vec::new();
    for (name, page) in man::pages(&Cli::command()) {
        std::fs::write(folder.join(&name), page).map_err(unwritable)?;
        files.push(name);
    }
    if out.json {
        out.value(&serde_json::json!({ "folder": folder, "files": files }));
    } else {
        out.talk(&format!("{} pages written; read one: man {}/outlast.1", files.len(), folder.display()));
    }
    Ok(0)
}
