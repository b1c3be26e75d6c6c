//! The `outlast` binary: the front doors. Parses, dispatches, exits.

mod answer;
mod ask;
mod choices;
mod commands;
mod completion;
mod human;
mod install;
mod last_job;
mod live;
mod output;
mod progress;
mod suggest;
mod svg;
mod table;
mod terminal;
mod version;
mod viewer;

use std::io::Write;

use clap::Parser;

fn main() {
    // Before anything else: a keeper is this same program, and must stay small.
    outlast_job::keep_if_asked();
    if std::env::args_os().nth(1).is_some_and(|verb| verb == terminal::GUARD) {
        exit(terminal::guard());
    }
    if completion::is_asked() {
        exit(completion::answer());
    }
    if version::is_asked_as_json() {
        output::Output::new(true).value(&version::about());
        exit(0);
    }
    outlast_job::client::signals::see_children();
    outlast_job::client::init::fork_if_first();
    let alone = std::env::args_os().len() == 1 && commands::shows_jobs();
    let words = suggest::with_signal(std::env::args_os().chain(alone.then(|| "top".into())));
    let cli = match outlast_cli::Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => match suggest::misread(&error) {
            Some(said) => {
                let _ = std::io::stderr().lock().write_all(said.as_bytes());
                exit(output::USAGE);
            }
            None => error.exit(),
        },
    };
    let mut out = output::Output::new(cli.json);
    let code = match commands::run(cli, &mut out) {
        Ok(code) => code,
        Err(failure) => out.failure(&failure),
    };
    out.end_line();
    exit(code);
}

#[expect(clippy::exit, reason = "the one place where the program ends")]
fn exit(code: i32) -> ! {
    std::process::exit(code)
}
